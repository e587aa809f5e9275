// Cholesky of one small matrix by one team.
#pragma once

#include <tile/update.hpp>

namespace trifactor::tile {

/// Factors the lower triangle of A = L L^H in place; reads and writes nothing above the diagonal. Returns, on every
/// rank, 0 or the order k of the first leading minor whose pivot is not positive and finite; the leading triangle of
/// order k-1 is then valid. A is visible to all ranks on entry; L is on return.
template <Team G, class T, class I>
TF_HD int cholesky(const G& team, core::Tile<T, I> A) {
  using R = core::Real<T>;
  constexpr int ib = core::is_complex<T> ? 4 : 8;   // columns between two updates of the rest; L below stays in registers
  const int n = int(A.rows), rank = team.rank(), size = team.size();
  for (int k = 0; k < n; k += ib) {
    const int w = core::min(ib, n - k), end = k + w;
    // Every rank factors the (w, w) diagonal block for itself, padded with the identity: no sync between its columns.
    T L[ib][ib];
    R inverse[ib];
    int failed = 0;
    TF_UNROLL
    for (int r = 0; r < ib; ++r)
      TF_UNROLL
      for (int c = 0; c <= r; ++c) L[r][c] = r < w ? A(I(k + r), I(k + c)) : T(r == c ? 1 : 0);
    TF_UNROLL
    for (int c = 0; c < ib; ++c) {
      R d = core::real(L[c][c]);
      if (!core::good_pivot(d)) {
        if (failed == 0) failed = k + c + 1;
        d = 1;
      }
      inverse[c] = core::reciprocal_sqrt(d);
      L[c][c] = T(d * inverse[c]);
      TF_UNROLL
      for (int r = c + 1; r < ib; ++r) L[r][c] = L[r][c] * inverse[c];
      TF_UNROLL
      for (int r = c + 1; r < ib; ++r)
        TF_UNROLL
        for (int q = c + 1; q <= r; ++q) L[r][q] = core::minus_product(L[r][q], L[r][c], core::conj(L[q][c]));
    }
    team.sync();     // everyone has read the block before it is overwritten
    TF_UNROLL
    for (int r = 0; r < ib; ++r)
      if (r < w && r % size == rank)
        TF_UNROLL
        for (int c = 0; c <= r; ++c) A(I(k + r), I(k + c)) = L[r][c];
    for (int i = end + rank; i < n && failed == 0; i += size) {
      T x[ib];       // row i := row i L^-H; the block is full, since there are rows below it
      TF_UNROLL
      for (int c = 0; c < ib; ++c) x[c] = A(I(i), I(k + c));
      TF_UNROLL
      for (int c = 0; c < ib; ++c) {
        TF_UNROLL
        for (int p = 0; p < c; ++p) x[c] = core::minus_product(x[c], x[p], core::conj(L[c][p]));
        x[c] = x[c] * inverse[c];
        A(I(i), I(k + c)) = x[c];
      }
    }
    team.sync();     // the block column is final before anyone updates with it, or returns
    if (failed != 0) return failed;
    if (end < n) {
      const auto below = core::Tile<const T, I>(A.block(I(end), I(k), I(n - end), I(ib)));                   // (n-end, ib)
      update(team, below, false, below.flipped(), true, A.block(I(end), I(end), I(n - end), I(n - end)), Part::Lower);
      team.sync();   // the rest is updated before the next block is read
    }
  }
  return 0;
}

}  // namespace trifactor::tile
