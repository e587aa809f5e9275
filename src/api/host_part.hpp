// The part of a sparse factorization that threads of the CPU do beside a GPU: Mode::Hybrid.
#pragma once

#include <api/queue_state.hpp>
#include <core/sparse_engine.hpp>
#include <host/blas_memory.hpp>
#include <host/sparse.hpp>
#include <host/threads.hpp>
#include <sparse/host_part.hpp>
#include <sparse/levels.hpp>
#include <sparse/split.hpp>

#include <algorithm>
#include <exception>
#include <mutex>
#include <optional>

namespace trifactor::api {

/// What the CPU knows of its part, and its memory. T is an inner scalar.
template <class T>
class HostPart {
 public:
  /// `part` are fronts of the given plan; fronts of `plan` may be parts of those (split_fronts), and `levels` are that
  /// one's.
  HostPart(const sparse::Plan& given, const sparse::Branch& part, const sparse::HostSpeed& host,
           const std::optional<sparse::SplitPlan>& split, const sparse::Plan& plan, const sparse::Levels& levels)
      : part_(part),
        split_(split),
        plan_(plan),
        levels_(levels),
        own_(sparse::plan_of_part(given, part)),
        tuning_(host.tuning),
        threads_(host.threads),
        schedule_(sparse::make_schedule(own_, threads_, tuning_)),
        progress_(own_, schedule_, tuning_) {
    const auto& branches = levels_.cut.branches;
    const auto first_of = [&](index_t front) {  // the branch that begins with this front
      return std::lower_bound(branches.begin(), branches.end(), front,
                              [](const sparse::Branch& b, index_t s) { return b.begin < s; }) -
             branches.begin();
    };
    first_branch_ = first_of(levels_.cut.host.begin), last_branch_ = first_of(levels_.cut.host.end) - 1;
    first_front_ = levels_.groups[levels_.levels[levels_.branches[first_branch_].begin].begin].begin;
    front_end_ = levels_.groups[levels_.levels[levels_.branches[last_branch_].end - 1].end - 1].end;
  }

  /// Its branches; and its fronts in the order of Levels::front, from the first one on.
  index_t first_branch() const { return first_branch_; }
  index_t last_branch() const { return last_branch_; }
  index_t first_front() const { return first_front_; }
  index_t fronts() const { return front_end_ - first_front_; }
  /// Its part of the factor as the levels store it.
  index_t factor_begin() const { return levels_.branches[first_branch_].factor_begin; }
  index_t factor_entries() const { return levels_.branches[last_branch_].factor_end - factor_begin(); }

  std::size_t bytes() const {
    return own_.bytes() + schedule_.bytes() + progress_.bytes() +
           std::size_t(own_.factor_entries + schedule_.work_entries) * sizeof(T);
  }
  void allocate() {
    factor_ = Buffer<T>(own_.factor_entries);
    work_ = Buffer<T>(schedule_.work_entries);
    blas_callers();
  }

  /// Writes the factor where its first entry, that of the whole factor, would be at `factor`; update matrices of roots
  /// where the levels say in `updates`; and what each of its fronts reports.
  void run(const T* values, core::Real<T> shift, T* factor, T* updates, int* info) {
    const auto callers = blas_callers();
    host::sparse_factor<T>({own_, schedule_, tuning_, factor_.data()}, values, shift, work_.data(), progress_);
    store_factor(factor);
    store_updates(updates);
    std::fill_n(info, fronts(), 0);
    for (index_t item = 0; item < own_.items; ++item)
      if (const index_t column = progress_.failed(item); column >= 0)
        for (index_t t = first_front_; t < front_end_; ++t)
          if (levels_.first[t] <= column && column < levels_.first[t] + levels_.columns[t])
            info[t - first_front_] = int(column - levels_.first[t] + 1);
  }

 private:
  host::BlasCallers blas_callers() const { return {threads_, schedule_.threads}; }

  /// The front of its own plan that front s of the split one is a part of.
  index_t whole(index_t s) const { return (split_ ? split_->whole[s] : s) - part_.begin; }

  void store_factor(T* factor) const {
    const double each = double(factor_entries()) / double(fronts());
    host::for_items(schedule_.threads, fronts(), nullptr, each, [&](index_t k) {
      const index_t t = first_front_ + k, s = levels_.front[t], of = whole(s), above = plan_.first[s] - own_.first[of];
      const index_t m = plan_.row_count(s), w = plan_.col_count(s), ld = own_.row_count(of);
      const core::FrontShape shape(m, w);
      for (index_t c = 0; c < w; ++c) {
        const T* from = factor_.data() + own_.factor_start[of] + (above + c) * ld + above;
        T* to = factor + levels_.factor_at[t] + c * shape.ld;
        std::copy_n(from + c, w - c, to + c);
        std::copy_n(from + w, m - w, to + w + shape.gap);
      }
    });
  }
  void store_updates(T* updates) const {
    for (const sparse::Offloaded& update : levels_.cut.updates.from_host) {
      const index_t order = plan_.row_count(update.front) - plan_.col_count(update.front);
      const T* U = work_.data() + schedule_.update_at[whole(update.front)];
      host::for_items(schedule_.threads, order, nullptr, double(order) / 2, [&](index_t c) {
        std::copy_n(U + c * order + c, order - c, updates + update.at + levels_.update.column(order, c) + c);
      });
    }
  }

  const sparse::Branch part_;
  const std::optional<sparse::SplitPlan>& split_;
  const sparse::Plan& plan_;
  const sparse::Levels& levels_;
  const sparse::Plan own_;
  const core::SparseTuning tuning_;
  const int threads_;
  const sparse::Schedule schedule_;
  host::Progress progress_;
  index_t first_branch_ = 0, last_branch_ = 0, first_front_ = 0, front_end_ = 0;
  Buffer<T> factor_, work_;
};

/// The same beside the operations of an engine: enqueued on a lane of its own.
template <class T, core::CopiesBesideWork E>
class HostLane {
 public:
  /// `offloaded`, in page-locked memory, holds the update matrices that the engine reads; null: room for those of the
  /// part is taken. `stored` is where the factor lies in page-locked memory; null: it is copied to the engine's.
  HostLane(E& e, HostPart<T>& part, index_t values, T* stored, T* offloaded, index_t offloaded_entries)
      : part_(part),
        lane_(e, 1, "host"),
        value_count_(values),
        values_(allocate<T>(values)),
        info_(allocate<int>(part.fronts())),
        factor_(stored ? stored : allocate<T>(part.factor_entries()) - part.factor_begin()),
        offloaded_(offloaded ? offloaded : allocate<T>(offloaded_entries)),
        copies_back_(!stored) {}
  /// Of the page-locked memory that it takes.
  static std::size_t bytes(const HostPart<T>& part, index_t values, bool stored, index_t offloaded_entries) {
    return std::size_t(values + (stored ? 0 : part.factor_entries() + offloaded_entries)) * sizeof(T) +
           std::size_t(part.fronts()) * sizeof(int);
  }

  const T* offloaded() const { return offloaded_; }

  /// Once what is enqueued is done: values to the host, the part, and back to `factor` and `info` in the engine's
  /// memory.
  void start(const T* values, core::Real<T> shift, T* factor, int* info) {
    lane_.work_is_at(0), lane_.copies_wait_for_work(0);
    lane_.copy("values", values, values_, std::size_t(value_count_) * sizeof(T));
    lane_.call("host", [this, shift] {
      try {
        part_.run(values_, shift, factor_, offloaded_, info_);
      } catch (...) {
        std::fill_n(info_, part_.fronts(), 1);  // solves leave B alone
        const std::lock_guard lock(mutex_);
        fault_ = std::current_exception();
      }
    });
    const std::size_t begin = std::size_t(part_.factor_begin());
    if (copies_back_)
      lane_.copy("factor", factor_ + begin, factor + begin, std::size_t(part_.factor_entries()) * sizeof(T));
    lane_.copy("info", info_, info + part_.first_front(), std::size_t(part_.fronts()) * sizeof(int));
    lane_.copies_are_at(0);
  }
  /// What is enqueued from here on comes after all of that.
  void join() { lane_.work_waits_for_copies(0); }
  /// When it is complete: throws what the part threw.
  void check() {
    lane_.finish();
    const std::lock_guard lock(mutex_);
    if (fault_) std::rethrow_exception(std::exchange(fault_, nullptr));
  }

 private:
  template <class V>
  V* allocate(index_t entries) {
    return static_cast<V*>(lane_.allocate(std::max<std::size_t>(1, std::size_t(entries)) * sizeof(V)));
  }

  HostPart<T>& part_;
  std::mutex mutex_;
  std::exception_ptr fault_;
  typename E::CopyLane lane_;  // its end waits for the calls
  const index_t value_count_;
  T* const values_;
  int* const info_;
  T* const factor_;  // where the first entry of the whole factor would be
  T* const offloaded_;
  const bool copies_back_;
};

}  // namespace trifactor::api
