// Blocked LU with partial pivoting, right-looking, of matrices of any shape.
#pragma once

#include <core/path.hpp>
#include <dense/panel.hpp>
#include <dense/triangle.hpp>

namespace trifactor::dense {

// LU goes on where a pivot is zero, so operations skip by `skip` instead of info: items of a ragged batch whose sizes are
// impossible. It is null for other batches.

/// Inverses of the diagonal blocks of a panel's triangle, of this edge, for several solves with it; 0: there are none.
template <class T>
struct PanelInverses {
  const T* data = nullptr;
  index_t edge = 0;
};

/// The columns A to the right of a panel with the triangle L and so many pivots: A := P A, and its first rows := L^-1 times them.
template <class T, EngineFor<T> E>
void lu_row_block(E& e, Items<T> L, Pivots<int> pivots, Items<T> A, const int* skip, PanelInverses<T> inverses = {}) {
  if (A.cols == 0 || e.lu_row_block(Items<const T>(L), pivots, A, skip)) return;
  auto A1 = A.block(0, 0, L.rows, A.cols);
  e.swap_rows(A, pivots, L.rows, false, skip);
  if (inverses.edge > 0)
    Triangle<T, E>(e, unit_lower, plain(L), inverses.data, inverses.edge, {}).solve(A1, skip);
  else
    trsm(e, unit_lower, plain(L), A1, skip);
}

/// The trailing update of the columns A to the right of the panel L: what lu_row_block does, and below A -= L times its first rows.
template <class T, EngineFor<T> E>
void lu_trailing_update(E& e, Items<T> L, Pivots<int> pivots, Items<T> A, const int* skip, PanelInverses<T> inverses = {}) {
  const index_t m = L.rows, w = L.cols;
  if (A.cols == 0 || e.lu_trailing_update(Items<const T>(L), pivots, A, skip)) return;
  lu_row_block(e, L.block(0, 0, w, w), pivots, A, skip, inverses);     // A1 := L1^-1 A1, of the exchanged rows
  e.gemm(plain(L.block(w, 0, m - w, w)), plain(A.block(0, 0, w, A.cols)), A.block(w, 0, m - w, A.cols), skip);   // A2 -= L2 A1
}

/// The panel, in parts down to `leaf` columns. The interchanges are also made in `left` columns to the left of it, which belong
/// to the same panel. The last `beyond` columns of A are not part of the panel; they are updated with it, the first time after
/// ready().
template <class T, EngineFor<T> E, class Ready>
void lu_panel(E& e, Items<T> A, Pivots<int> pivots, int* info, const int* skip, index_t leaf, index_t left, index_t beyond,
              Ready& ready) {
  constexpr index_t in_turn = 4;   // leaves: of these, one after the other is factored; more are halved, with deeper products
  const index_t m = A.rows, n = A.cols - beyond, all = min(m, n);
  const bool one = A.count == 1;
  leaf = min(leaf, e.lu_tile_limit(A));
  const index_t k = all <= leaf ? n : one && all <= in_turn * leaf ? leaf : halve(all, leaf);
  auto first = A.block(0, 0, m, k);
  if (all <= leaf)
    e.lu_tile(first, pivots, info, left);
  else
    lu_panel(e, first, pivots, info, skip, leaf, left, 0, ready);
  if (beyond > 0) ready();
  lu_trailing_update(e, first, pivots, A.block(0, k, m, A.cols - k), skip);   // A12 := L11^-1 A12,  A22 -= L21 A12
  if (all <= leaf) return;
  lu_panel(e, A.block(k, k, m - k, A.cols - k), pivots.from(k), info, skip, leaf, one ? left + k : 0, beyond, ready);
  if (!one) e.swap_rows(A.block(k, 0, m - k, k), pivots.from(k), all - k, false, skip);
}

/// The lanes of a blocked LU: panels on one, updates of the columns to the right on the other. They begin after what the
/// engine has enqueued, and end before what it enqueues next.
template <class E>
class LuLanes {
 public:
  LuLanes(E& e, E& panel_lane, E& update_lane) : engine(e), panels(panel_lane), updates(update_lane) {
    e.mark();
    for (E* lane : {&panels, &updates}) lane->wait_for_mark(e);
  }
  LuLanes(const LuLanes&) = delete;
  ~LuLanes() { join_after_failure(*this); }
  void join() {
    if (std::exchange(joined_, true)) return;
    for (E* lane : {&panels, &updates})
      if (lane != &engine) lane->mark(), engine.wait_for_mark(*lane);
  }

  E &engine, &panels, &updates;

 private:
  bool joined_ = false;
};

/// The columns of a matrix that no panel has come near. Every panel moves rows there, so large matrices have a copy of these
/// columns that lies by rows, where there is memory for it; the others are their own.
template <class T, EngineFor<T> E>
class FarColumns {
 public:
  FarColumns(E& e, E& updates, Items<T> A, bool by_rows)
      : updates_(updates), A_(A), line_(ceil_div(A.cols, index_t(16)) * 16),
        room_(e.template take_spare<T>(by_rows ? A.rows * line_ : 0)), far_(A) {
    if (copied()) far_ = one_matrix(room_.data(), A.cols, A.rows, line_).flipped();
    if (copied()) set_path("blocked right", " by rows");
  }
  Items<T> block(index_t i, index_t j, index_t rows, index_t cols) const { return far_.block(i, j, rows, cols); }
  /// From this column on, they are as in A.
  void begin(index_t j) const {
    const index_t cols = A_.cols - j;
    if (copied()) updates_.copy_matrix(Items<const T>(A_.block(0, j, A_.rows, cols)), block(0, j, A_.rows, cols));
  }
  /// A is as they are, in a block that is final, or that a panel comes near.
  void bring(index_t i, index_t j, index_t rows, index_t cols) const {
    if (copied()) updates_.copy_matrix(Items<const T>(block(i, j, rows, cols)), A_.block(i, j, rows, cols));
  }

 private:
  bool copied() const { return room_.data() != nullptr; }
  E& updates_;
  Items<T> A_;
  index_t line_;
  Arena::Scratch<T> room_;
  Items<T> far_;
};

/// info was reset. With one matrix and two lanes, panels go ahead: the panels' lane also updates the columns of the next panel,
/// leaf by leaf, and the other lane those to the right, the columns of the panel after the next first. Otherwise the columns
/// of the next panel are updated with all of this one, and the panel hides behind the update of the others.
template <class T, EngineFor<T> E, class Panel>
void lu_blocked(LuLanes<E>& lanes, Items<T> A, Pivots<int> pivots, int* info, const int* skip, const LuTuning& tuning,
                Panel& panel) {
  const index_t m = A.rows, n = A.cols, all = min(m, n), nb = min(tuning.nb, all);
  E &panels = lanes.panels, &updates = lanes.updates;
  const bool late = updates.lu_swaps_late(A), ahead = A.count == 1 && &panels != &updates;
  index_t reach = nb + (ahead ? min(nb, n - nb) : 0);   // the panels' lane updates with its next panel up to this column,
  bool waits = false;                                   // once the other lane has updated these with the panels before
  auto ready = [&] { if (std::exchange(waits, false)) panels.wait_for_mark(updates); };
  auto factor = [&](auto& engine, Items<T> window, Pivots<int> window_pivots, int* window_info, index_t first) {
    const index_t beyond = window.cols - min(nb, all - first);
    lu_panel(engine, window, window_pivots, window_info, skip, panel.leaf(tuning.leaf), 0, beyond, ready);
  };
  const bool by_rows = ahead && !A.is_flipped && all >= tuning.by_rows && reach < n;
  const FarColumns<T, E> far(lanes.engine, updates, A, by_rows);
  const auto triangle = plain(A.block(0, 0, nb, nb));
  const index_t edge = ahead ? lanes.engine.inverse_edge(triangle, A, SolveTuning{}) : 0;
  auto inverses = lanes.engine.arena().template take<T>(edge > 0 ? updates.inverses_size(triangle) : 0);
  far.begin(reach);
  auto next = A.block(0, 0, m, reach);
  panel.begin(next, pivots, info, 0, factor);
  panel.end(next, pivots, info, 0, factor);
  for (index_t k = 0; k < all; k += nb) {
    const index_t w = min(nb, all - k), k1 = k + w, v = min(nb, all - k1), k2 = ahead ? reach : k1 + v;
    auto L = A.block(k, k, m - k, w);
    const auto update = [&](E& e, const auto& in, index_t j, index_t cols, PanelInverses<T> with = {}) {
      lu_trailing_update(e, L, pivots.from(k), in.block(k, j, m - k, cols), skip, with);   // A12 := L11^-1 A12,  A22 -= L21 A12
    };
    const PanelInverses<T> inverted{inverses.data(), edge};
    index_t done = 0;   // columns from k2 on
    panels.mark();
    updates.wait_for_mark(panels);
    if (!ahead && v > 0) {
      if (k > 0) panels.wait_for_mark(updates);
      update(panels, A, k1, v);
    }
    if (ahead) {
      if (edge > 0) updates.invert_blocks(unit_lower, plain(L.block(0, 0, w, w)), inverses.data(), skip);
      done = v > 0 ? min(nb, n - k2) : 0;
      reach = k2 + done;
      update(updates, far, k2, done, inverted);
      far.bring(k, k2, m - k, done);
      updates.mark();
      waits = true;
    }
    if (v > 0) {
      next = A.block(k1, k1, m - k1, ahead ? reach - k1 : v);
      panel.begin(next, pivots.from(k1), info, k1, factor);
    }
    update(updates, far, k2 + done, n - k2 - done, inverted);
    far.bring(k, k2 + done, w, n - k2 - done);
    if (!ahead) updates.mark();
    if (!late) updates.swap_rows(A.block(k, 0, m - k, k), pivots.from(k), w, false, skip);
    if (v > 0) panel.end(next, pivots.from(k1), info, k1, factor);
  }
  lanes.join();
  if (!late || all <= nb || lanes.engine.lu_swap_left(A, Pivots<const int>(pivots), nb)) return;
  for (index_t k1 = nb; k1 < all; k1 += nb)
    lanes.engine.swap_rows(A.block(k1, k1 - nb, m - k1, nb), pivots.from(k1), all - k1, false, skip);
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
    // Updates of a tall matrix are too short to hide its panels, and panels that have the device to themselves take less time.
    const bool one = A.count == 1, alone = one && A.rows / A.cols >= tuning.tall && e.lu_alone_is_better(A);
    LuTuning used = tuning;
    if (alone) used.nb = min(A.rows, A.cols);
    set_path("blocked right", used.nb > tuning.nb ? " in one panel" : "");
    LuLanes<E> lanes(e, alone ? e : e.side(), one && !alone ? e.background() : e);
    LanePanel<E> panel{lanes.panels};
    lu_blocked(lanes, A, pivots_of(A, pivots.data), info.data, A.ragged() ? impossible.data() : nullptr, used, panel);
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
  LuLanes<E> lanes(e, e, e);
  lu_blocked(lanes, A, pivots_of(A, pivots), info, nullptr, tuning, panel);
}

}  // namespace trifactor::dense
