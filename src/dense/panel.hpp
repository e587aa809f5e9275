// The panel pair: begin and end around the large update. What lies between them hides the panel.
// `factor` is called as factor(engine, window, pivots, info, first) on the engine that does the panel: it factors the
// window, whose first column is column `first` of the matrix. Cholesky has no pivots.
#pragma once

#include <core/engine.hpp>

namespace trifactor::dense {

using namespace core;

/// The work of other lanes comes before what follows on the engine, on the way out of a call that failed. That failure may be
/// one of the device, or of a capture, so that this fails too: the first one is on its way to the caller.
template <class E>
void join_after_failure(E& e) noexcept {
  try {
    e.join();
  } catch (...) {
  }
}

/// The panel runs on this lane.
template <class E>
struct LanePanel {
  E& lane;
  static index_t leaf(index_t wanted) { return wanted; }
  template <class T, class F>
  void begin(Items<T> window, Pivots<int> pivots, int* info, index_t first, F& factor) {
    factor(lane, window, pivots, info, first);
  }
  template <class T, class F>
  void end(Items<T>, Pivots<int>, int*, index_t, F&) {}
};

/// The panel runs on the engine's side lane.
template <class E>
class NativePanel {
 public:
  explicit NativePanel(E& e) : e_(e) {}
  static index_t leaf(index_t wanted) { return wanted; }
  NativePanel(const NativePanel&) = delete;
  ~NativePanel() { if (open_) join_after_failure(e_); }

  template <class T, class F>
  void begin(Items<T> window, Pivots<int> pivots, int* info, index_t first, F& factor) {
    e_.fork();
    open_ = true;
    factor(e_.side(), window, pivots, info, first);
  }
  template <class T, class F>
  void end(Items<T>, Pivots<int>, int*, index_t, F&) {
    e_.join();
    open_ = false;
  }

 private:
  E& e_;
  bool open_ = false;
};

/// The panel is copied to the host and factored there while the device updates. One matrix only; blocks the caller.
template <class E, class H, class T>
class HybridPanel {
 public:
  /// Panels have at most `entries` entries and `pivots` pivots.
  HybridPanel(E& e, H& host, index_t entries, index_t pivots)
      : e_(e), host_(host), tile_(e.pinned().template take<T>(planning() ? 0 : entries)),
        pivots_(e.pinned().template take<int>(planning() ? 0 : pivots)),
        info_(e.pinned().template take<int>(planning() ? 0 : 1)) {
    if (!planning()) *info_.data() = 0;
  }
  HybridPanel(const HybridPanel&) = delete;
  static index_t leaf(index_t) { return std::numeric_limits<int>::max(); }   // a panel is one LAPACK call
  /// The copies are complete before their memory is given back: who takes it next writes to it at once.
  ~HybridPanel() {
    if (open_) join_after_failure(e_);
    try {
      e_.side().wait_for_copies();
    } catch (...) {   // a device fault, which surfaces at the next call too
    }
  }

  template <class F>
  void begin(Items<T> window, Pivots<int>, int*, index_t, F&) {
    e_.fork();
    open_ = true;
    e_.side().download(window, tile_.data());
  }
  template <class F>
  void end(Items<T> window, Pivots<int> pivots, int* info, index_t first, F& factor) {
    if (planning()) return;   // the CPU's work takes nothing of the engine's scratch memory
    e_.side().wait_for_copies();
    const auto on_host = window.is_flipped ? one_matrix(tile_.data(), window.cols, window.rows, window.cols).flipped()
                                           : one_matrix(tile_.data(), window.rows, window.cols, window.rows);
    factor(host_, on_host, Pivots<int>{.data = pivots_.data(), .first = first}, info_.data(), first);
    e_.side().upload(window, tile_.data());
    if (pivots.data) e_.side().upload(pivots.data, pivots_.data(), min(window.rows, window.cols));
    e_.side().upload(info, info_.data(), 1);
    e_.join();
    open_ = false;
  }

 private:
  /// In a scratch query nothing is done.
  bool planning() { return e_.arena().planning(); }

  E& e_;
  H& host_;
  Arena::Scratch<T> tile_;
  Arena::Scratch<int> pivots_, info_;   // info_ is sticky over the panels of one call
  bool open_ = false;
};

}  // namespace trifactor::dense
