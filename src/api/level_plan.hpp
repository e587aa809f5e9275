// What a SparseCholesky by level decides before it allocates anything: branches, lists, and where everything lies in
// how much memory.
#pragma once

#include <api/check.hpp>
#include <api/host_part.hpp>
#include <api/sparse_numeric.hpp>
#include <api/uploaded_lists.hpp>
#include <sparse/numeric.hpp>
#include <sparse/ring.hpp>
#include <sparse/solve_lists.hpp>
#include <sparse/split.hpp>
#include <tuning/rows.hpp>

namespace trifactor::api {

using core::Real;
using sparse::Plan;

template <class T>
class LevelPlan {
 protected:
  LevelPlan(const char* name, std::shared_ptr<detail::QueueState> queue, const Plan& plan,
            const core::SparseTuning& tuning, const SparseOptions& options)
      : queue_(std::move(queue)),
        given_(plan),
        split_(sparse::split_fronts(plan, tuning.widest, queue_->host.threads())),
        plan_(split_ ? split_->plan : given_),
        tuning_(tuning) {
    data_.solve = find_tuning(core::SolveTuning{}, plan.n, 1);
    sparse::BranchRules rules{sparse::update_shape(tuning, small_fronts()), in_subtree()};
    if (options.mode == Mode::Hybrid) rules.host = choose_host_part(rules);
    constexpr index_t spare = (80 << 20) / sizeof(T);  // branches take time, too
    take(sparse::cut_in_memory(plan_, rules, tuning.spare_percent, spare), false);
    const std::size_t most = options.max_device_bytes > 0 ? options.max_device_bytes : free_bytes();
    if (memory_.total() + value_bytes() > most) stream_within(name, most, rules, options);
    if (given_part_.end > given_part_.begin) {
      host_part_ = std::make_unique<HostPart<T>>(given_, given_part_, host_speed_, split_, plan_, levels_);
      memory_.host += host_part_->bytes() + Host::bytes(*host_part_, value_count(), streams(), offloaded_entries());
    }
  }

  /// Whether the factor passes through a ring of the queue's memory.
  bool streams() const { return !ring_.at.empty(); }
  /// Right-hand sides that there is memory for from the beginning on: later, there may be none left.
  index_t columns_at_first() const { return streaming_ ? at_once_ : 1; }
  /// Whether solves go level by level, too.
  bool by_level() {
    return on_engine(*queue_, [](auto& e) { return !one_launch<decltype(e)>; });
  }
  template <class E>
  static constexpr bool one_launch = core::SolvesFrontsFor<std::remove_reference_t<E>, T>;

  /// Values that are given, and entries of update matrices that the host holds.
  index_t value_count() const { return index_t(given_.target.size()); }
  std::size_t value_bytes() const { return given_.target.size() * sizeof(T); }
  index_t offloaded_entries() const { return levels_.cut.updates.offloaded_entries; }

  /// The lists of one branch among those of all.
  core::SolveLists lists_of_branch(index_t b) const {
    const auto &begin = branch_start_[b], &end = branch_start_[b + 1];
    core::SolveLists lists = solve_lists_;
    lists.subtree_start += begin.subtree, lists.subtree_groups = int(end.subtree - begin.subtree);
    lists.forward += begin.forward, lists.forward_strips = int(end.forward - begin.forward);
    const index_t backward_end = b > 0 ? branch_start_[b - 1].backward : solve_lists_.backward_strips;
    lists.backward += begin.backward, lists.backward_strips = int(backward_end - begin.backward);
    return lists;
  }
  /// Of Z, for so many right-hand sides.
  index_t vector_entries(index_t columns) {
    return on_engine(*queue_, [&](auto& e) {
      if constexpr (one_launch<decltype(e)>) {
        core::Fronts f;
        f.n = plan_.n, f.lines = levels_.lines();
        return e.template solve_vector_entries<T>(f, columns);
      } else {
        return levels_.lines() * columns;
      }
    });
  }

  const std::shared_ptr<detail::QueueState> queue_;
  const Plan& given_;
  const std::optional<sparse::SplitPlan> split_;  // of the given one, where it has wide fronts
  const Plan& plan_;                              // that one, or else the given one
  const core::SparseTuning tuning_;
  sparse::Levels levels_;
  std::vector<core::CholeskyTuning> cholesky_;
  SparseMemory memory_;
  UploadedLists lists_;
  std::size_t F11_at_ = 0, F21_at_ = 0, U_at_ = 0;  // lists of pointers, which follow when the memory is there
  core::SolveLists solve_lists_;
  sparse::Ring ring_;                  // empty: the factor is all there
  std::unique_ptr<HostPart<T>> host_part_;  // null: the engine factors all
  index_t at_once_ = tuning_.at_once;  // right-hand sides
  sparse::LevelData<T> data_{levels_, cholesky_, {}, tuning_.at_once};

 private:
  using Host = HostLane<T, host::HostEngine>;

  /// Also finds what it is in the given plan.
  sparse::Branch choose_host_part(const sparse::BranchRules& rules) {
    host_speed_ = {queue_->host.threads(), tuning::find<core::SparseTuning>(host_machine(), core::scalar_name(T{}),
                                                                            given_.item_columns(), 1, "")};
    if (!split_) return given_part_ = sparse::choose_host_part(given_, rules.in_subtree, tuning_, host_speed_);
    std::vector<char> in_subtree(rules.in_subtree.empty() ? 0 : given_.fronts());
    for (std::size_t s = 0; s < rules.in_subtree.size(); ++s) in_subtree[split_->whole[s]] = rules.in_subtree[s];
    given_part_ = sparse::choose_host_part(given_, in_subtree, tuning_, host_speed_);
    const auto first_part = [&](index_t front) {
      return std::lower_bound(split_->whole.begin(), split_->whole.end(), front) - split_->whole.begin();
    };
    return {first_part(given_part_.begin), first_part(given_part_.end)};
  }

  template <class Tuning>
  Tuning find_tuning(Tuning, index_t n, index_t count) const {
    return tuning::find<Tuning>(queue_->machine(), core::scalar_name(T{}), n, count, "");
  }
  std::size_t free_bytes() {
    return on_engine(*queue_, [](auto& e) -> std::size_t {
      if constexpr (requires { e.free_bytes(); })
        return e.free_bytes() - e.free_bytes() / 32;
      else
        return std::numeric_limits<std::size_t>::max();
    });
  }

  /// Lists and memory for these branches; the factor is all there.
  void take(sparse::BranchCut cut, bool streaming) {
    levels_ = sparse::make_levels(plan_, given_, std::move(cut), tuning_, small_fronts(), queue_->host.threads());
    cholesky_.clear();
    for (const sparse::Group& group : levels_.groups)
      cholesky_.push_back(find_tuning(core::CholeskyTuning{}, group.columns, group.count()));
    lists_.clear();
    streaming_ = streaming;
    collect_solve_lists();
    collect_lists();
    const auto entries = [](index_t count) { return std::size_t(count) * sizeof(T); };
    memory_ = {};
    memory_.factor = entries(levels_.factor_entries);
    memory_.updates = entries(levels_.cut.updates.entries);
    memory_.vectors = entries(vector_entries(columns_at_first()));
    memory_.lists = lists_.bytes() + levels_.front.size() * ((by_level() ? 2 * sizeof(T*) : 0) + sizeof(int)) +
                    std::size_t(plan_.items + solve_lists_.backward_strips) * sizeof(int);  // failed, inexact
    memory_.scratch = planned_scratch();
  }

  /// Finds branches for a factor that passes through a ring of what the rest leaves of `most` bytes.
  void stream_within(const char* name, std::size_t most, const sparse::BranchRules& rules, const SparseOptions& options) {
    const std::size_t column = memory_.vectors;
    const auto rest = [&] { return memory_.total() - memory_.factor + value_bytes(); };
    const auto room = [&] {
      return index_t((most - std::min(most, rest())) / sizeof(T)) / sparse::Ring::alignment * sparse::Ring::alignment;
    };
    const std::size_t others = rest() - memory_.updates - column;
    at_once_ = 1;  // a power of two, which share a pass, in a sixth of the memory, or less where branches need it
    while (2 * at_once_ <= tuning_.at_once && 12 * std::size_t(at_once_) * column <= most) at_once_ *= 2;
    const auto cut = [&](bool offloads) {
      const std::size_t fixed = others + std::size_t(at_once_) * column;
      return sparse::cut_for_streaming(plan_, rules, index_t((most - std::min(most, fixed)) / sizeof(T)), offloads);
    };
    auto branches = cut(false);
    while (!branches && at_once_ > 1) at_once_ /= 2, branches = cut(true);
    if (!branches) branches = cut(true);
    const bool found = branches.has_value();
    if (found) take(*std::move(branches), true);
    if (!found || room() < sparse::Ring::least(levels_)) {
      at_once_ = 1;
      take(sparse::cut_one_by_one(plan_, rules), true);
    }
    const index_t least = sparse::Ring::least(levels_), ring = std::min(room(), sparse::Ring::all(levels_));
    if (ring < least) {
      const std::size_t needed = rest() + std::size_t(least) * sizeof(T);
      if (options.max_device_bytes == 0) core::throw_out_of_memory("device", needed);
      fail(name, "max_device_bytes", index_t(options.max_device_bytes), "be at least " + std::to_string(needed));
    }
    ring_ = sparse::make_ring(levels_, ring);
    memory_.factor = std::size_t(ring) * sizeof(T);
    memory_.host = std::size_t(levels_.factor_entries + levels_.cut.updates.offloaded_entries) * sizeof(T);
  }

  core::FrontLimits small_fronts() {
    return on_engine(*queue_, [](auto& e) {
      if constexpr (core::FactorsSmallFrontsFor<std::remove_reference_t<decltype(e)>, T>)
        return e.template small_front_limits<T>();
      else
        return core::FrontLimits();
    });
  }

  /// Fronts that solves take together with all those below them.
  std::vector<char> in_subtree() {
    return on_engine(*queue_, [&](auto& e) {
      std::vector<char> inside;
      if constexpr (one_launch<decltype(e)>)
        for (const index_t root : sparse::find_subtrees(plan_, e.template solve_limits<T>()))
          inside.push_back(root >= 0);
      return inside;
    });
  }

  void collect_solve_lists() {
    on_engine(*queue_, [&](auto& e) {
      if constexpr (one_launch<decltype(e)>) {
        const auto limits = e.template solve_limits<T>();
        sparse::SolveLists l = sparse::make_solve_lists(plan_, levels_, limits, !streaming_);
        core::SolveLists& to = solve_lists_;
        to.subtree_groups = int(l.subtree_start.size()) - 1;
        to.forward_strips = int(l.forward.size()), to.backward_strips = int(l.backward.size());
        lists_.add(to.subtree_start, std::move(l.subtree_start));
        lists_.add(to.subtree_fronts, std::move(l.subtree_fronts));
        lists_.add(to.forward, std::move(l.forward));
        lists_.add(to.backward, std::move(l.backward));
        branch_start_ = std::move(l.branch_start);
      }
    });
  }
  /// Everything but the pointers to blocks, whose memory is not there yet. The drivers need no more of most lists.
  void collect_lists() {
    sparse::Levels& l = levels_;
    core::Fronts& f = data_.fronts;
    f.count = index_t(l.front.size()), f.lines = l.lines(), f.n = plan_.n, f.update = l.update;
    f.items = plan_.items, f.item_columns = plan_.item_columns();
    lists_.add(f.columns, l.columns);
    lists_.add(f.line_start, l.line_start);
    lists_.add(f.first, l.first);
    lists_.add(f.factor_at, l.factor_at);
    lists_.add(f.update_at, l.update_at);
    if (!l.offloaded_at.empty()) lists_.add(f.offloaded_at, l.offloaded_at);
    const auto move = [&](auto& place, auto& list) { lists_.add(place, std::move(list)); };
    move(f.front, l.line_front);
    move(f.parent_line, l.parent_line);
    move(f.child_start, l.child_start);
    move(f.child_line, l.child_line);
    move(f.column, l.line_column);
    move(f.line, l.line);
    move(f.permutation, l.permutation);
    move(f.entry_start, l.entry_start);
    move(f.entry_row, l.entry_row);
    move(f.entry_source, l.entry_source);
    move(data_.below, l.below);
    move(data_.factor_ld, l.factor_ld);
    move(data_.update_ld, l.update_ld);
    if (by_level()) {
      lists_.add(data_.line_ld, std::vector<int>(l.front.size(), int(std::max<index_t>(1, l.lines()))));
      lists_.add(data_.side, std::vector<int>(l.front.size(), int(tuning_.at_once)));
    }
    const std::vector<T*> later(l.front.size());
    F11_at_ = lists_.add(data_.F11, later);
    F21_at_ = lists_.add(data_.F21, later);
    U_at_ = lists_.add(data_.U, later);
  }

  /// The drivers take their scratch memory and do nothing else.
  std::size_t planned_scratch() {
    sparse::LevelData<T> data = data_;
    // Planning reads no memory: any address will do, but none is computed from a null pointer.
    data.factor = data.updates = data.Z = reinterpret_cast<T*>(std::uintptr_t(256));
    data.Z1 = data.Z2 = reinterpret_cast<T**>(std::uintptr_t(256));
    return plan(*queue_, [&](auto& e) {
      for (index_t b = 0; b < index_t(levels_.branches.size()); ++b) {
        const sparse::BranchLevels& branch = levels_.branches[b];
        if (!levels_.cut.on_host(b)) sparse::factor(e, data, branch, data.factor, Real<T>(0));
        if constexpr (!one_launch<decltype(e)>) {
          sparse::forward(e, data, branch, 1);
          sparse::backward(e, data, branch, 1);
        }
      }
    });
  }

  bool streaming_ = false;
  sparse::Branch given_part_{0, 0};  // of the given plan, for the host
  sparse::HostSpeed host_speed_;
  std::vector<sparse::SolveLists::Start> branch_start_;
};

}  // namespace trifactor::api
