// Triangular solve with one small triangle by one team.
#pragma once

#include <tile/update.hpp>

namespace trifactor::tile {

/// B := op(A)^-1 B, for the lower or upper triangle of op(A) = A or conj(A), its diagonal perhaps ones that are not
/// stored. A and B are visible to all ranks on entry; the solution is on return. Right-sided solves flip both views.
template <Team G, class T, class I, class J>
TF_HD void trsm(const G& team, bool lower, bool unit, core::Tile<const T, I> A, bool conj, core::Tile<T, J> B) {
  constexpr int ib = 8;   // rows solved in registers between two updates of the rest
  const int n = int(A.rows), cols = int(B.cols);
  for (int done = 0; done < n; done += ib) {
    const int w = core::min(ib, n - done);
    const int k = lower ? done : n - done - w;   // the block of rows k .. k+w-1
    for (int c = team.rank(); c < cols; c += team.size()) {
      T x[ib] = {};
    TF_UNROLL
      for (int i = 0; i < ib; ++i)
        if (i < w) x[i] = B(J(lower ? k + i : k + w - 1 - i), J(c));
    TF_UNROLL
      for (int i = 0; i < ib; ++i) {
        if (i >= w) continue;
        const int row = lower ? k + i : k + w - 1 - i;
    TF_UNROLL
        for (int p = 0; p < i; ++p)
          x[i] = core::minus_product(x[i], core::conj_if(conj, A(I(row), I(lower ? k + p : k + w - 1 - p))), x[p]);
        if (!unit) x[i] = x[i] / core::conj_if(conj, A(I(row), I(row)));
        B(J(row), J(c)) = x[i];
      }
    }
    team.sync();     // these rows are solved before anyone subtracts them
    const int rest = n - done - w;
    if (rest > 0) {
      const int first = lower ? k + w : 0;
      update(team, A.block(I(first), I(k), I(rest), I(w)), conj, core::Tile<const T, J>(B.block(J(k), J(0), J(w), J(cols))),
             false, B.block(J(first), J(0), J(rest), J(cols)));
      team.sync();   // the rest is updated before the next rows are read
    }
  }
}

}  // namespace trifactor::tile
