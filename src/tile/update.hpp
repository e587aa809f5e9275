// C -= A B, the update that every blocked routine is made of.
#pragma once

#include <tile/team.hpp>

namespace trifactor::tile {

enum class Part { All, Lower };

/// C -= op(A) op(B), with either factor conjugated on request; Part::Lower writes i >= j only.
/// Ranks take micro-tiles of C; no sync inside: the caller syncs before and after.
template <Team G, class T, class I, class J, class K>
TF_HD void update(const G& team, core::Tile<const T, I> A, bool conj_a, core::Tile<const T, J> B, bool conj_b,
                  core::Tile<T, K> C, Part part = Part::All) {
  constexpr int r = core::is_complex<T> ? 2 : 4;   // r x r accumulators stay in registers
  const int m = int(C.rows), n = int(C.cols), k = int(A.cols);
  const int tiles_down = (m + r - 1) / r, tiles = tiles_down * ((n + r - 1) / r);
  for (int t = team.rank(); t < tiles; t += team.size()) {
    const int i0 = t % tiles_down * r, j0 = t / tiles_down * r;
    if (part == Part::Lower && j0 > i0 + r - 1) continue;
    int row[r], col[r];   // clamped, so that edge tiles read valid entries that are not stored
    TF_UNROLL
    for (int x = 0; x < r; ++x) row[x] = core::min(i0 + x, m - 1), col[x] = core::min(j0 + x, n - 1);
    T c[r][r];
    TF_UNROLL
    for (int y = 0; y < r; ++y)
    TF_UNROLL
      for (int x = 0; x < r; ++x) c[y][x] = T(0);
    for (int p = 0; p < k; ++p) {
      T a[r], b[r];
    TF_UNROLL
      for (int x = 0; x < r; ++x) a[x] = core::conj_if(conj_a, A(I(row[x]), I(p))), b[x] = core::conj_if(conj_b, B(J(p), J(col[x])));
    TF_UNROLL
      for (int y = 0; y < r; ++y)
    TF_UNROLL
        for (int x = 0; x < r; ++x) c[y][x] = core::minus_product(c[y][x], a[x], b[y]);
    }
    TF_UNROLL
    for (int y = 0; y < r; ++y)
    TF_UNROLL
      for (int x = 0; x < r; ++x)
        if (i0 + x < m && j0 + y < n && (part == Part::All || i0 + x >= j0 + y)) C(K(i0 + x), K(j0 + y)) += c[y][x];
  }
}

}  // namespace trifactor::tile
