// A factor in the host's memory that passes through a ring of the engine's memory, branch by branch. Copies go beside
// operations. Update matrices that would wait for long go to the host's memory, too.
#pragma once

#include <core/sparse_engine.hpp>
#include <sparse/ring.hpp>

#include <algorithm>
#include <memory>
#include <utility>

namespace trifactor::api {

template <class T, core::CopiesBesideWork E>
class FactorStream {
 public:
  /// `ring` and `updates` are in the engine's memory; page-locked memory for the rest is allocated.
  FactorStream(E& e, const sparse::Levels& levels, sparse::Ring places, T* ring, const T* updates)
      : levels_(levels),
        places_(std::move(places)),
        ring_(ring),
        updates_(updates),
        lane_(e, count() + 1, "copies"),
        host_(allocate(levels.factor_entries)),
        offloaded_(allocate(levels.cut.updates.offloaded_entries)),
        loaded_(levels.branches.size(), false) {}

  /// Where the first entry of the whole factor would be while branch b is in the ring.
  T* base(index_t b) const { return ring_ + places_.at[b] - branch(b).factor_begin; }

  /// Where fronts find the update matrices of their children that are not in the engine's memory any more.
  T* offloaded() const { return offloaded_; }
  /// The whole factor in the host's memory; on_host() says when it is complete.
  T* stored() const { return host_; }

  /// work(b) factors the part of branch b, for all of them; parts follow to the host's memory.
  template <class Work>
  void factor(Work work) {
    std::fill(loaded_.begin(), loaded_.end(), false);
    begin_pass();
    lane_.copies_are_at(count());
    lane_.work_waits_for_copies(count());  // of the last pass
    const sparse::UpdatePlaces& updates = levels_.cut.updates;
    auto next = updates.offloaded.begin();
    for (index_t b = 0; b < count(); ++b) {
      const index_t offloaded = updates.waits_for.empty() ? -1 : updates.waits_for[b];
      if (const index_t last = std::max(places_.before[b], offloaded); last >= 0) lane_.work_waits_for_copies(last);
      work(b);
      lane_.work_is_at(b);
      lane_.copies_wait_for_work(b);
      for (; next != updates.offloaded.end() && next->front < levels_.cut.branches[b].end; ++next)
        lane_.copy("offload", updates_ + updates.at[next->front], offloaded_ + next->at,
                   std::size_t(next->entries) * sizeof(T));
      lane_.copy("store", ring_ + places_.at[b], host_ + branch(b).factor_begin, bytes(b));
      lane_.copies_are_at(b);
      now_loaded(b);
    }
  }

  /// work(b) reads the part of branch b: from the first branch to the last, or back.
  template <class Work>
  void pass(bool forward, Work work) {
    begin_pass();
    for (index_t k = 0; k < count(); ++k) {
      const index_t b = forward ? k : count() - 1 - k, replaced = forward ? places_.before[b] : places_.after[b];
      if (!loaded_[b]) {
        if (replaced >= 0) lane_.copies_wait_for_work(replaced);
        lane_.copy("load", host_ + branch(b).factor_begin, ring_ + places_.at[b], bytes(b));
        lane_.copies_are_at(b);
        lane_.work_waits_for_copies(b);
        now_loaded(b);
      }
      work(b);
      lane_.work_is_at(b);
    }
  }

  /// The whole factor, when all copies are complete.
  const T* on_host() {
    lane_.finish();
    return host_;
  }

 private:
  T* allocate(index_t entries) {
    return entries > 0 ? static_cast<T*>(lane_.allocate(std::size_t(entries) * sizeof(T))) : nullptr;
  }
  index_t count() const { return index_t(levels_.branches.size()); }
  const sparse::BranchLevels& branch(index_t b) const { return levels_.branches[b]; }
  std::size_t bytes(index_t b) const { return std::size_t(branch(b).factor_end - branch(b).factor_begin) * sizeof(T); }
  /// No copy overtakes what was enqueued before.
  void begin_pass() {
    keeps_ &= !lane_.captured();
    if (!keeps_) std::fill(loaded_.begin(), loaded_.end(), false);
    lane_.work_is_at(count()), lane_.copies_wait_for_work(count());
  }
  void now_loaded(index_t b) {
    const auto begin = [&](index_t k) { return places_.at[k]; };
    const auto end = [&](index_t k) { return places_.at[k] + branch(k).factor_end - branch(k).factor_begin; };
    for (index_t k = 0; k < count(); ++k)
      if (begin(k) < end(b) && begin(b) < end(k)) loaded_[k] = false;
    loaded_[b] = true;
  }

  const sparse::Levels& levels_;
  const sparse::Ring places_;
  T* const ring_;
  const T* const updates_;
  typename E::CopyLane lane_;
  T* const host_;
  T* const offloaded_;
  std::vector<char> loaded_;  // in the ring, once all that is enqueued is done
  bool keeps_ = true;         // false once a pass was captured: nobody knows when it runs
};

}  // namespace trifactor::api
