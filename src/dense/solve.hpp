// Solves and inverses from the factors.
#pragma once

#include <dense/cholesky.hpp>
#include <dense/lu.hpp>

namespace trifactor::dense {

/// X as it was, put back at the end of the scope's work where the factorization had failed.
template <class T, EngineFor<T> E>
class Saved {
 public:
  Saved(E& e, Items<T> X, const int* info) : e_(e), X_(X), info_(info), saved_(e.arena().template take<T>(e.saved_size(X, info))) {
    e_.save(X_, info_, saved_.data());
  }
  void restore() { e_.restore(X_, info_, saved_.data()); }

 private:
  E& e_;
  Items<T> X_;
  const int* info_;
  Arena::Scratch<T> saved_;
};

/// Which items a solve skips: those of info and, in a ragged batch, those that do not fit each other, or whose X is not
/// square though it must be.
template <class T, EngineFor<T> E>
class Skipped {
 public:
  Skipped(E& e, Items<const T> factor, Items<T> X, const int* info, bool square = false)
      : own_(e.arena().template take<int>(X.ragged() ? X.count : 0)), items_(X.ragged() ? own_.data() : info) {
    if (X.ragged()) e.check_solve(factor, X, info, own_.data());
    if (X.ragged() && square) e.check_solve(Items<const T>(X), X, own_.data(), own_.data());
  }
  const int* items() const { return items_; }

 private:
  Arena::Scratch<int> own_;
  const int* items_;
};

/// The triangle of a Cholesky factor: A = L L^H, or A = conj(L) L^T where L is an upper factor seen flipped.
template <class T, EngineFor<T> E>
Triangle<T, E> cholesky_triangle(E& e, bool flipped, Items<const T> L, const Items<T>& X, const int* info,
                                 const SolveTuning& tuning) {
  return {e, lower, Operand<T>{L, flipped}, X, info, tuning};
}

template <class T, EngineFor<T> E>
void cholesky_solve(E& e, bool flipped, Items<const T> L, Items<T> X, const int* info, const SolveTuning& tuning) {
  if (X.count == 0 || X.rows == 0 || X.cols == 0) return;
  if (!X.ragged() && e.cholesky_solved_whole(L, flipped, X, info, tuning)) return;
  const auto solve = [&e](bool flipped, Items<const T> L, Items<T> X, Array<const int> info, const SolveTuning& tuning) {
    const Skipped<T, E> skip(e, L, X, info.data);
    if (X.ragged() && e.cholesky_solved_whole(L, flipped, X, skip.items(), tuning)) return;
    Saved<T, E> saved(e, X, skip.items());
    const auto triangle = cholesky_triangle(e, flipped, L, X, skip.items(), tuning);
    triangle.solve_both(X, skip.items());                         // X := L^-H L^-1 X  or L^-T conj(L)^-1 X
    saved.restore();
    set_path(triangle.path());
  };
  e.run_as_graph(solve, flipped, L, X, Array<const int>{info, X.count}, tuning);
}

/// A = L L^H and X := A^-1 X, for the lower triangle of A or, flipped, the upper one. X is left alone where info is not 0; a
/// ragged item whose X does not fit gets info = -1.
template <class T, EngineFor<T> E>
void cholesky_factor_solve(E& e, bool flipped, Items<T> A, Items<T> X, int* info, const CholeskyTuning& tuning,
                           const SolveTuning& solve_tuning, const ShiftTries& shifts = {}) {
  const bool once = shifts.tries == 0 && A.rows > 0 && A.count > 0 && X.cols > 0;
  if (once && e.cholesky_solve_whole(A, flipped, X, info, tuning)) return;
  const auto both = [&e](bool flipped, Items<T> A, Items<T> X, Array<int> info, const CholeskyTuning& tuning,
                         const SolveTuning& solve_tuning, ShiftTries shifts, Array<double> used) {
    shifts.used = used.data;
    cholesky(e, A, info.data, tuning, shifts);
    if (X.ragged() && X.count > 0) e.check_solve(Items<const T>(A), X, info.data, info.data);
    cholesky_solve(e, flipped, Items<const T>(A), X, info.data, solve_tuning);
  };
  e.run_as_graph(both, flipped, A, X, Array<int>{info, A.count}, tuning, solve_tuning, shifts.without_used(),
             Array<double>{shifts.used, A.count});
}

/// X = A^-1. Column block j of the lower triangle of the inverse needs only the factor's rows and columns from j on.
template <class T, EngineFor<T> E>
void cholesky_inverse(E& e, bool flipped, Items<const T> L, Items<T> X, const int* info, const SolveTuning& tuning) {
  constexpr index_t unit = 64;   // where a triangle can be entered
  if (X.rows == 0 || X.count == 0) return;
  const auto invert = [&e](bool flipped, Items<const T> L, Items<T> X, Array<const int> info, const SolveTuning& tuning) {
    const index_t n = X.rows, nb = ceil_div(tuning.columns, unit) * unit;
    const Skipped<T, E> skip(e, L, X, info.data, true);
    Saved<T, E> saved(e, X, skip.items());
    e.set_identity(X, skip.items());
    const auto triangle = cholesky_triangle(e, flipped, L, X.block(0, 0, n, min(nb, n)), skip.items(), tuning);
    for (index_t j = 0; j < n; j += nb) {
      auto columns = X.block(j, j, n - j, min(nb, n - j));
      triangle.solve(columns, skip.items(), j);                   // columns of L^-1
      triangle.solve_adjoint(columns, skip.items(), j);           // and of L^-H L^-1
    }
    e.mirror_lower(X, skip.items());
    saved.restore();
    set_path(triangle.path());
  };
  e.run_as_graph(invert, flipped, L, X, Array<const int>{info, X.count}, tuning);
}

/// A X = B, A^T X = B or A^H X = B with P A = L U.
template <class T, EngineFor<T> E>
void lu_triangles(E& e, Op op, Items<const T> LU, Pivots<const int> pivots, Items<T> X, const int* info,
                  const SolveTuning& tuning) {
  const index_t n = LU.rows;
  if (e.lu_solved_whole(op, LU, pivots, X, info, tuning)) return;
  const auto solve = [&](Shape shape, const Operand<T>& A) {
    const Triangle<T, E> triangle(e, shape, A, X, info, tuning);
    triangle.solve(X, info);
    set_path(triangle.path());
  };
  if (op == Op::None) {
    e.swap_rows(X, pivots, n, false, info);                       // X := P X
    solve(unit_lower, plain(LU));                                 // X := L^-1 X
    solve(upper, plain(LU));                                      // X := U^-1 X
  } else {
    const auto LUt = op == Op::Transpose ? transpose(LU) : hermitian(LU);
    solve(lower, LUt);                                            // X := U^-T X   or U^-H X
    solve(unit_upper, LUt);                                       // X := L^-T X   or L^-H X
    e.swap_rows(X, pivots, n, true, info);                        // X := P^T X
  }
}

template <class T, EngineFor<T> E>
void lu_solve(E& e, Op op, Items<const T> LU, const int* pivots, Items<T> X, const int* info, const SolveTuning& tuning) {
  if (X.count == 0 || X.rows == 0 || X.cols == 0) return;
  if (!X.ragged() && e.lu_solved_whole(op, LU, pivots_of(LU, pivots), X, info, tuning)) return;
  const auto solve = [&e](Op op, Items<const T> LU, Array<const int> pivots, Items<T> X, Array<const int> info,
                          const SolveTuning& tuning) {
    const Skipped<T, E> skip(e, LU, X, info.data);
    Saved<T, E> saved(e, X, skip.items());
    lu_triangles(e, op, LU, pivots_of(LU, pivots.data), X, skip.items(), tuning);
    saved.restore();
  };
  e.run_as_graph(solve, op, LU, all_pivots(LU, pivots), X, Array<const int>{info, X.count}, tuning);
}

/// Factors A and solves for X. A ragged item whose X does not fit gets info = -1.
template <class T, EngineFor<T> E>
void lu_factor_solve(E& e, Items<T> A, int* pivots, Items<T> X, int* info, const LuTuning& tuning,
                     const SolveTuning& solve_tuning) {
  const auto both = [&e](Items<T> A, Array<int> pivots, Items<T> X, Array<int> info, const LuTuning& tuning,
                         const SolveTuning& solve_tuning) {
    lu(e, A, pivots.data, info.data, tuning);
    if (X.ragged() && X.count > 0) e.check_solve(Items<const T>(A), X, info.data, info.data);
    lu_solve(e, Op::None, Items<const T>(A), pivots.data, X, info.data, solve_tuning);
  };
  e.run_as_graph(both, A, all_pivots(A, pivots), X, Array<int>{info, A.count}, tuning, solve_tuning);
}

template <class T, EngineFor<T> E>
void lu_inverse(E& e, Items<const T> LU, const int* pivots, Items<T> X, const int* info, const SolveTuning& tuning) {
  if (X.rows == 0 || X.count == 0) return;
  const auto invert = [&e](Items<const T> LU, Array<const int> pivots, Items<T> X, Array<const int> info,
                           const SolveTuning& tuning) {
    const Skipped<T, E> skip(e, LU, X, info.data, true);
    Saved<T, E> saved(e, X, skip.items());
    e.set_identity(X, skip.items());
    lu_triangles(e, Op::None, LU, pivots_of(LU, pivots.data), X, skip.items(), tuning);
    saved.restore();
  };
  e.run_as_graph(invert, LU, all_pivots(LU, pivots), X, Array<const int>{info, X.count}, tuning);
}

}  // namespace trifactor::dense
