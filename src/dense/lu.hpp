// Blocked LU with partial pivoting, right-looking, of matrices of any shape.
#pragma once

#include <core/path.hpp>
#include <dense/panel.hpp>
#include <dense/triangle.hpp>

namespace trifactor::dense {

// LU goes on where a pivot is zero, so operations skip by `skip` instead of info: items of a ragged batch whose sizes are
// impossible. It is null for other batches.

/// The columns A to the right of a panel with the triangle L and so many pivots: A := P A, and its first rows := L^-1 times them.
template <class T, EngineFor<T> E>
void lu_row_block(E& e, Items<T> L, Pivots<int> pivots, Items<T> A, const int* skip) {
  if (A.cols == 0 || e.lu_row_block(Items<const T>(L), pivots, A, skip)) return;
  e.swap_rows(A, pivots, L.rows, false, skip);
  trsm(e, unit_lower, plain(L), A.block(0, 0, L.rows, A.cols), skip);
}

/// The trailing update of the columns A to the right of the panel L: what lu_row_block does, and below A -= L times its first rows.
template <class T, EngineFor<T> E>
void lu_trailing_update(E& e, Items<T> L, Pivots<int> pivots, Items<T> A, const int* skip) {
  const index_t m = L.rows, w = L.cols;
  if (A.cols == 0 || e.lu_trailing_update(Items<const T>(L), pivots, A, skip)) return;
  lu_row_block(e, L.block(0, 0, w, w), pivots, A, skip);     // A1 := L1^-1 A1, of the exchanged rows
  e.gemm(plain(L.block(w, 0, m - w, w)), plain(A.block(0, 0, w, A.cols)), A.block(w, 0, m - w, A.cols), skip);   // A2 -= L2 A1
}

/// The panel, in parts down to `leaf` columns. The interchanges are also made in `left` columns to the left of it, which belong
/// to the same panel.
template <class T, EngineFor<T> E>
void lu_panel(E& e, Items<T> A, Pivots<int> pivots, int* info, const int* skip, index_t leaf, index_t left = 0) {
  constexpr index_t in_turn = 4;   // leaves: of these, one after the other is factored; more are halved, with deeper products
  const index_t m = A.rows, n = A.cols, all = min(m, n);
  const bool one = A.count == 1;
  leaf = min(leaf, e.lu_tile_limit(A));
  if (all <= leaf) return e.lu_tile(A, pivots, info, left);
  const index_t k = one && all <= in_turn * leaf ? leaf : halve(all, leaf);
  auto first = A.block(0, 0, m, k);
  lu_panel(e, first, pivots, info, skip, leaf, left);
  lu_trailing_update(e, first, pivots, A.block(0, k, m, n - k), skip);   // A12 := L11^-1 A12,  A22 -= L21 A12
  lu_panel(e, A.block(k, k, m - k, n - k), pivots.from(k), info, skip, leaf, one ? left + k : 0);
  if (!one) e.swap_rows(A.block(k, 0, m - k, k), pivots.from(k), all - k, false, skip);
}

/// info was reset. The next panel's columns are updated first; the panel hides behind the update of the others.
template <class T, EngineFor<T> E, class Panel>
void lu_blocked(E& e, Items<T> A, Pivots<int> pivots, int* info, const int* skip, const LuTuning& tuning, Panel& panel) {
  const index_t m = A.rows, n = A.cols, all = min(m, n), nb = tuning.nb;
  auto factor = [&](auto& engine, Items<T> window, Pivots<int> window_pivots, int* window_info, index_t) {
    lu_panel(engine, window, window_pivots, window_info, skip, panel.leaf(tuning.leaf));
  };
  const bool late = e.lu_swaps_late(A);
  auto next = A.block(0, 0, m, min(nb, all));
  panel.begin(next, pivots, info, 0, factor);
  panel.end(next, pivots, info, 0, factor);
  for (index_t k = 0; k < all; k += nb) {
    const index_t w = min(nb, all - k), k1 = k + w, v = min(nb, all - k1);
    auto L = A.block(k, k, m - k, w);
    const auto update = [&](index_t j, index_t cols) {       // A12 := L11^-1 A12,  A22 -= L21 A12
      lu_trailing_update(e, L, pivots.from(k), A.block(k, j, m - k, cols), skip);
    };
    update(k1, v);
    if (v > 0) {
      next = A.block(k1, k1, m - k1, v);
      panel.begin(next, pivots.from(k1), info, k1, factor);
    }
    if (!late) e.swap_rows(A.block(k, 0, m - k, k), pivots.from(k), w, false, skip);
    update(k1 + v, n - k1 - v);
    if (v > 0) panel.end(next, pivots.from(k1), info, k1, factor);
  }
  for (index_t k1 = nb; late && k1 < all; k1 += nb)
    e.swap_rows(A.block(k1, k1 - nb, m - k1, nb), pivots.from(k1), all - k1, false, skip);
}

/// Factors every item of A.
template <class T, EngineFor<T> E>
void lu(E& e, Items<T> A, int* pivots, int* info, const LuTuning& tuning) {
  if (A.rows == 0 || A.cols == 0 || A.count == 0) return e.reset_info(A, false, info);
  if (e.lu_whole(A, pivots_of(A, pivots), info, tuning)) return;
  const auto in_steps = [&e](Items<T> A, Array<int> pivots, Array<int> info, const LuTuning& tuning) {
    e.reset_info(A, false, info.data);
    auto impossible = e.arena().template take<int>(A.ragged() ? A.count : 0);
    if (A.ragged()) e.reset_info(A, false, impossible.data());
    set_path("blocked right");
    NativePanel<E> panel(e);
    lu_blocked(e, A, pivots_of(A, pivots.data), info.data, A.ragged() ? impossible.data() : nullptr, tuning, panel);
  };
  e.run_as_graph(in_steps, A, all_pivots(A, pivots), Array<int>{info, A.count}, tuning);
}

/// The same for one matrix, with the panels on the host.
template <class T, OffloadEngineFor<T> E, EngineFor<T> H>
void lu_hybrid(E& e, H& host, Items<T> A, int* pivots, int* info, const LuTuning& tuning) {
  e.reset_info(A, false, info);
  if (A.rows == 0 || A.cols == 0) return;
  set_path("blocked right", " hybrid");
  const index_t w = min(tuning.nb, min(A.rows, A.cols));
  HybridPanel<E, H, T> panel(e, host, A.rows * w, w);
  lu_blocked(e, A, pivots_of(A, pivots), info, nullptr, tuning, panel);
}

}  // namespace trifactor::dense
