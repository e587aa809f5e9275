// Solves and inverses from the factors.
#pragma once

#include <dense/triangle.hpp>

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

/// A X = B with A = L L^H, or with A = conj(L) L^T where L is an upper factor seen flipped.
template <class T, EngineFor<T> E>
void cholesky_triangles(E& e, bool flipped, Items<const T> L, Items<T> X, const int* info) {
  trsm(e, lower, Operand<T>{L, flipped}, X, info);                // X := L^-1 X      or conj(L)^-1 X
  trsm(e, upper, Operand<T>{L.flipped(), !flipped}, X, info);     // X := L^-H X      or L^-T X
}

template <class T, EngineFor<T> E>
void cholesky_solve(E& e, bool flipped, Items<const T> L, Items<T> X, const int* info) {
  if (X.count == 0 || X.rows == 0 || X.cols == 0) return;
  auto skip = e.arena().template take<int>(X.ragged() ? X.count : 0);   // ragged sizes may not fit each other
  if (X.ragged()) e.check_solve(L, X, info, skip.data());
  const int* unfit = X.ragged() ? skip.data() : info;
  Kept<T, E> kept(e, X, unfit);
  cholesky_triangles(e, flipped, L, X, unfit);
  kept.restore();
}

/// X = A^-1. Column block j of the lower triangle of the inverse needs only the factor's rows and columns from j on.
template <class T, EngineFor<T> E>
void cholesky_inverse(E& e, bool flipped, Items<const T> L, Items<T> X, const int* info, const SolveTuning& tuning) {
  const index_t n = X.rows;
  if (n == 0) return;
  Kept<T, E> kept(e, X, info);
  e.set_identity(X, info);
  for (index_t j = 0; j < n; j += tuning.nb)
    cholesky_triangles(e, flipped, L.block(j, j, n - j, n - j), X.block(j, j, n - j, min(tuning.nb, n - j)), info);
  e.mirror_lower(X, info);
  kept.restore();
}

/// A X = B, A^T X = B or A^H X = B with P A = L U.
template <class T, EngineFor<T> E>
void lu_triangles(E& e, Op op, Items<const T> LU, const int* pivots, Items<T> X, const int* info) {
  const index_t n = LU.rows;
  if (op == Op::None) {
    e.swap_rows(X, pivots, n, 0, false, info);                    // X := P X
    trsm(e, unit_lower, plain(LU), X, info);                      // X := L^-1 X
    trsm(e, upper, plain(LU), X, info);                           // X := U^-1 X
  } else {
    const auto LUt = op == Op::Transpose ? transpose(LU) : hermitian(LU);
    trsm(e, lower, LUt, X, info);                                 // X := U^-T X   or U^-H X
    trsm(e, unit_upper, LUt, X, info);                            // X := L^-T X   or L^-H X
    e.swap_rows(X, pivots, n, 0, true, info);                     // X := P^T X
  }
}

template <class T, EngineFor<T> E>
void lu_solve(E& e, Op op, Items<const T> LU, const int* pivots, Items<T> X, const int* info) {
  if (X.rows == 0 || X.cols == 0) return;
  Kept<T, E> kept(e, X, info);
  lu_triangles(e, op, LU, pivots, X, info);
  kept.restore();
}

template <class T, EngineFor<T> E>
void lu_inverse(E& e, Items<const T> LU, const int* pivots, Items<T> X, const int* info) {
  if (X.rows == 0) return;
  Kept<T, E> kept(e, X, info);
  e.set_identity(X, info);
  lu_triangles(e, Op::None, LU, pivots, X, info);
  kept.restore();
}

}  // namespace trifactor::dense
