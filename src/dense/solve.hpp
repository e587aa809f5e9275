// Solves and inverses from the factors.
#pragma once

#include <dense/cholesky.hpp>

namespace trifactor::dense {

/// X as it was, put back at the end of the scope's work where the factorization had failed.
template <class T, EngineFor<T> E>
class Kept {
 public:
  Kept(E& e, Items<T> X, const int* info) : e_(e), X_(X), info_(info), saved_(e.arena().template take<T>(e.kept_size(X, info))) {
    e_.keep(X_, info_, saved_.data());
  }
  void restore() { e_.restore(X_, info_, saved_.data()); }

 private:
  E& e_;
  Items<T> X_;
  const int* info_;
  Arena::Scratch<T> saved_;
};

/// The triangle of a Cholesky factor: A = L L^H, or A = conj(L) L^T where L is an upper factor seen flipped.
template <class T, EngineFor<T> E>
Triangle<T, E> cholesky_triangle(E& e, bool flipped, Items<const T> L, const Items<T>& X, const SolveTuning& tuning) {
  return {e, lower, Operand<T>{L, flipped}, X, tuning};
}

template <class T, EngineFor<T> E>
void cholesky_solve(E& e, bool flipped, Items<const T> L, Items<T> X, const int* info, const SolveTuning& tuning) {
  if (X.count == 0 || X.rows == 0 || X.cols == 0) return;
  auto skip = e.arena().template take<int>(X.ragged() ? X.count : 0);   // ragged sizes may not fit each other
  if (X.ragged()) e.check_solve(L, X, info, skip.data());
  const int* unfit = X.ragged() ? skip.data() : info;
  if (e.cholesky_solved_whole(L, flipped, X, unfit, tuning)) return set_path("one launch");
  Kept<T, E> kept(e, X, unfit);
  const auto triangle = cholesky_triangle(e, flipped, L, X, tuning);
  triangle.solve(X, unfit);                                       // X := L^-1 X      or conj(L)^-1 X
  triangle.solve_adjoint(X, unfit);                               // X := L^-H X      or L^-T X
  kept.restore();
  set_path(triangle.path());
}

/// A = L L^H and X := A^-1 X, for the lower triangle of A or, flipped, the upper one. X is left alone where info is not 0.
template <class T, EngineFor<T> E>
void cholesky_factor_solve(E& e, bool flipped, Items<T> A, Items<T> X, int* info, const CholeskyTuning& tuning,
                           const SolveTuning& solve_tuning) {
  if (A.rows > 0 && A.count > 0 && X.cols > 0 && e.cholesky_solve_whole(A, flipped, X, info, tuning)) return;
  cholesky(e, A, info, tuning);
  cholesky_solve(e, flipped, Items<const T>(A), X, info, solve_tuning);
}

/// X = A^-1. Column block j of the lower triangle of the inverse needs only the factor's rows and columns from j on.
template <class T, EngineFor<T> E>
void cholesky_inverse(E& e, bool flipped, Items<const T> L, Items<T> X, const int* info, const SolveTuning& tuning) {
  constexpr index_t unit = 64;   // where a triangle can be entered
  const index_t n = X.rows, nb = ceil_div(tuning.columns, unit) * unit;
  if (n == 0) return;
  Kept<T, E> kept(e, X, info);
  e.set_identity(X, info);
  const auto triangle = cholesky_triangle(e, flipped, L, X.block(0, 0, n, min(nb, n)), tuning);
  for (index_t j = 0; j < n; j += nb) {
    auto columns = X.block(j, j, n - j, min(nb, n - j));
    triangle.solve(columns, info, j);                             // columns of L^-1
    triangle.solve_adjoint(columns, info, j);                     // and of L^-H L^-1
  }
  e.mirror_lower(X, info);
  kept.restore();
  set_path(triangle.path());
}

/// A X = B, A^T X = B or A^H X = B with P A = L U.
template <class T, EngineFor<T> E>
void lu_triangles(E& e, Op op, Items<const T> LU, const int* pivots, Items<T> X, const int* info,
                  const SolveTuning& tuning) {
  const index_t n = LU.rows;
  const auto solve = [&](Shape shape, const Operand<T>& A) {
    const Triangle<T, E> triangle(e, shape, A, X, tuning);
    triangle.solve(X, info);
    set_path(triangle.path());
  };
  if (op == Op::None) {
    e.swap_rows(X, pivots, n, 0, false, info);                    // X := P X
    solve(unit_lower, plain(LU));                                 // X := L^-1 X
    solve(upper, plain(LU));                                      // X := U^-1 X
  } else {
    const auto LUt = op == Op::Transpose ? transpose(LU) : hermitian(LU);
    solve(lower, LUt);                                            // X := U^-T X   or U^-H X
    solve(unit_upper, LUt);                                       // X := L^-T X   or L^-H X
    e.swap_rows(X, pivots, n, 0, true, info);                     // X := P^T X
  }
}

template <class T, EngineFor<T> E>
void lu_solve(E& e, Op op, Items<const T> LU, const int* pivots, Items<T> X, const int* info, const SolveTuning& tuning) {
  if (X.rows == 0 || X.cols == 0) return;
  Kept<T, E> kept(e, X, info);
  lu_triangles(e, op, LU, pivots, X, info, tuning);
  kept.restore();
}

template <class T, EngineFor<T> E>
void lu_inverse(E& e, Items<const T> LU, const int* pivots, Items<T> X, const int* info, const SolveTuning& tuning) {
  if (X.rows == 0) return;
  Kept<T, E> kept(e, X, info);
  e.set_identity(X, info);
  lu_triangles(e, Op::None, LU, pivots, X, info, tuning);
  kept.restore();
}

}  // namespace trifactor::dense
