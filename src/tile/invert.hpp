// The inverse of a small triangle by one team.
#pragma once

#include <tile/team.hpp>

#include <core/batch.hpp>

namespace trifactor::tile {

/// V := D^-1 for a lower or upper triangle of order `edge`, 16 times a power of two; both column-major with `ld`
/// between columns. D has zeros in its other triangle. On entry V is all zeros, and all ranks see D and V; on return
/// each rank sees what it wrote itself.
///
/// Blocks of 16 x 16 are inverted by substitution, a column to a rank. Then two neighbours become one, again and again:
/// the block beside the inverses A and B of two neighbours is -A D B. D B waits in the other triangle of V meanwhile.
template <int edge, Team G, class T>
TF_HD void invert_triangle(const G& team, bool lower, const T* D, T* V, int ld) {
  constexpr int base = 16, together = 4;   // columns of a product that a rank makes at once
  static_assert(edge % base == 0 && (edge / base & (edge / base - 1)) == 0);
  for (int k = team.rank(); k < edge; k += team.size()) V[k * ld + k] = T(1) / D[k * ld + k];
  team.sync();   // the inverses of the diagonal are there
  for (int c = team.rank(); c < edge; c += team.size()) {
    const auto row = [&](int i) { return c / base * base + (lower ? i : base - 1 - i); };
    const int first = lower ? c % base : base - 1 - c % base;   // the step that row c is solved in
    T x[base];
    TF_UNROLL
    for (int i = 0; i < base; ++i) x[i] = T(i == first ? 1 : 0);
    TF_UNROLL
    for (int k = 0; k < base; ++k) {
      x[k] = k < first ? T(0) : x[k] * V[row(k) * ld + row(k)];   // zeros stay zeros, where V is infinite too
      TF_UNROLL
      for (int i = k + 1; i < base; ++i) x[i] = core::minus_product(x[i], D[row(k) * ld + row(i)], x[k]);
    }
    TF_UNROLL
    for (int i = 0; i < base; ++i)
      if (i > first) V[c * ld + row(i)] = x[i];
  }
  for (int h = base; h < edge; h *= 2) {
    team.sync();   // the inverses of blocks of h x h are there, and zeros beside them
    // f(row, first column) for `together` columns of every h x h block that is made
    const auto for_columns = [&](const auto& f) {
      for (int t = team.rank(); t < edge / 2 * (h / together); t += team.size()) {
        const int pair = t / h / (h / together) * 2 * h;
        f(pair + (lower ? h : 0), pair + (lower ? 0 : h), t % h, t / h % (h / together) * together);
      }
    };
    for_columns([&](int r0, int c0, int r, int c) {   // D B, to rows c0 ... and columns r0 ...
      T sum[together] = {};
      const int first = lower ? c : 0, last = lower ? h : c + together;   // B has zeros elsewhere
      for (int k = first; k < last; ++k) {
        const T d = D[(c0 + k) * ld + r0 + r];
        TF_UNROLL
        for (int e = 0; e < together; ++e) sum[e] = core::minus_product(sum[e], d, V[(c0 + c + e) * ld + c0 + k]);
      }
      TF_UNROLL
      for (int e = 0; e < together; ++e) V[(r0 + c + e) * ld + c0 + r] = -sum[e];
    });
    team.sync();   // D B is there
    for_columns([&](int r0, int c0, int r, int c) {
      T sum[together] = {};
      for (int k = 0; k < h; ++k) {
        const T a = V[(r0 + k) * ld + r0 + r];
        TF_UNROLL
        for (int e = 0; e < together; ++e) sum[e] = core::minus_product(sum[e], a, V[(r0 + c + e) * ld + c0 + k]);
      }
      TF_UNROLL
      for (int e = 0; e < together; ++e) V[(c0 + c + e) * ld + r0 + r] = sum[e];
    });
    team.sync();   // D B is no longer read
    for_columns([&](int r0, int c0, int r, int c) {
      TF_UNROLL
      for (int e = 0; e < together; ++e) V[(r0 + c + e) * ld + c0 + r] = T(0);
    });
  }
}

}  // namespace trifactor::tile
