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
  constexpr int ib = 8;   // columns between two updates of the rest
  const int n = int(A.rows), rank = team.rank(), size = team.size();
  for (int k = 0; k < n; k += ib) {
    const int end = core::min(k + ib, n);
    for (int j = k; j < end; ++j) {
      const R d = core::real(A(I(j), I(j)));
      if (!core::good_pivot(d)) {
        team.sync();   // nobody returns, and lets the caller write, while others still read
        return j + 1;
      }
      const R root = std::sqrt(d), scale = R(1) / root;
      for (int i = j + 1 + rank; i < n; i += size) {
        const T l = A(I(i), I(j)) * scale;
        const int last = core::min(end, i + 1);
        for (int q = j + 1; q < last; ++q) A(I(i), I(q)) = core::minus_product(A(I(i), I(q)), l, core::conj(A(I(q), I(j)) * scale));
      }
      team.sync();   // column j is read, unscaled, before anyone scales it; column j+1 is complete
      if (rank == 0) A(I(j), I(j)) = T(root);
      for (int i = j + 1 + rank; i < n; i += size) A(I(i), I(j)) = A(I(i), I(j)) * scale;
    }
    team.sync();     // the block column is final before anyone updates with it
    if (end < n) {
      const auto below = core::Tile<const T, I>(A.block(I(end), I(k), I(n - end), I(end - k)));              // (n-end, ib)
      update(team, below, false, below.flipped(), true, A.block(I(end), I(end), I(n - end), I(n - end)), Part::Lower);
      team.sync();   // the rest is updated before the next column is read
    }
  }
  return 0;
}

}  // namespace trifactor::tile
