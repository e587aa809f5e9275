// LU with partial pivoting of one narrow matrix by one team.
#pragma once

#include <tile/team.hpp>

namespace trifactor::tile {

/// A row and how good a pivot it holds.
template <class R>
struct PivotCandidate {
  R size;
  int row;

  /// A NaN beats every number, so that it cannot hide; then the larger modulus; then the upper row.
  TF_HD bool beats(const PivotCandidate& b) const {
    const bool nan = size != size, b_nan = b.size != b.size;
    if (nan != b_nan) return nan;
    if (nan || size == b.size) return row < b.row;
    return size > b.size;
  }
};

/// Factors P A = L U in place; pivots[k] = first + (the row exchanged with row k) + 1. Returns, on every rank, 0 or the
/// first k + 1 whose pivot is exactly zero; that column is left as it is and the factorization goes on.
/// `candidates` has a place for every rank and is visible to all.
template <Team G, class T, class I>
TF_HD int lu(const G& team, core::Tile<T, I> A, int* pivots, index_t first, PivotCandidate<core::Real<T>>* candidates) {
  using R = core::Real<T>;
  const int m = int(A.rows), n = int(A.cols), rank = team.rank(), size = team.size();
  int top = 1;
  while (top < size) top *= 2;
  int zero_at = 0;
  // Row i belongs to rank i % size throughout, so that only exchanges need a sync.
  const auto first_row = [&](int from) { return from + (rank - from % size + size) % size; };
  for (int k = 0; k < core::min(m, n); ++k) {
    PivotCandidate<R> best{R(-1), m};
    for (int i = first_row(k); i < m; i += size) {
      const PivotCandidate<R> mine{core::abs1(A(I(i), I(k))), i};
      if (mine.beats(best)) best = mine;
    }
    candidates[rank] = best;
    for (int half = top / 2; half > 0; half /= 2) {
      team.sync();   // the candidates of the level above are written
      if (rank < half && rank + half < size && candidates[rank + half].beats(candidates[rank])) candidates[rank] = candidates[rank + half];
    }
    team.sync();     // the winner is known
    const int p = candidates[0].row;
    const T pivot = A(I(p), I(k));
    if (rank == 0) pivots[k] = int(first + p + 1);
    team.sync();     // everyone has read the winner and its row before either changes
    if (p != k)
      for (int j = rank; j < n; j += size) {
        const T t = A(I(k), I(j));
        A(I(k), I(j)) = A(I(p), I(j)), A(I(p), I(j)) = t;
      }
    team.sync();     // rows k and p are exchanged
    if (pivot == T(0)) {
      if (zero_at == 0) zero_at = k + 1;
      continue;
    }
    const bool safe = core::abs1(pivot) >= core::Limits<R>::smallest;   // its reciprocal does not overflow
    const T inverse = safe ? T(1) / pivot : T(0);
    for (int i = first_row(k + 1); i < m; i += size) {
      const T l = safe ? A(I(i), I(k)) * inverse : A(I(i), I(k)) / pivot;
      A(I(i), I(k)) = l;
      for (int j = k + 1; j < n; ++j) A(I(i), I(j)) = core::minus_product(A(I(i), I(j)), l, A(I(k), I(j)));
    }
  }
  team.sync();       // the factors are complete
  return zero_at;
}

}  // namespace trifactor::tile
