// What SparseCholesky and SparseCholeskyBatch hold and check: a plan, its numeric phases, and what became of the items.
#pragma once

#include <api/check.hpp>
#include <api/sparse_numeric.hpp>
#include <sparse/forest.hpp>
#include <tuning/rows.hpp>

#include <algorithm>
#include <cmath>
#include <span>

namespace trifactor::api {

/// A plan for `count` matrices, the one that was given or a forest of copies of it.
class ItemsPlan {
 public:
  ItemsPlan(const sparse::Plan& one, index_t count)
      : forest_(count == 1 ? nullptr : std::make_unique<sparse::Plan>(sparse::forest_of(one, count))),
        plan_(forest_ ? *forest_ : one) {}
  operator const sparse::Plan&() const { return plan_; }
  /// Of what was not given.
  std::size_t bytes() const { return forest_ ? forest_->bytes() : 0; }

 private:
  const std::unique_ptr<const sparse::Plan> forest_;
  const sparse::Plan& plan_;
};

template <class T>
std::unique_ptr<SparseNumeric<T>> make_numeric(const char* name, const Queue& q, const sparse::Plan& plan,
                                               const SparseOptions& options) {
  const auto tuning = tuning::find<core::SparseTuning>(q.state()->machine(), core::scalar_name(T{}),
                                                       plan.item_columns(), 1, options.tuning);
  const bool by_level = q.is_cuda() || tuning.levels != 0, hybrid = options.mode == Mode::Hybrid;
  if (hybrid && !by_level) fail_hybrid_on_host(name);
  return by_level ? sparse_by_level<T>(name, q.state(), plan, tuning, options)
                  : sparse_by_branches<T>(q.state(), plan, tuning);
}

/// With what the object holds besides. A forest is memory of the host.
template <class T>
SparseMemory memory_of(const detail::QueueState& queue, const ItemsPlan& plan, const SparseNumeric<T>& numeric) {
  SparseMemory memory = numeric.memory();
  memory.values = static_cast<const sparse::Plan&>(plan).target.size() * sizeof(T);
  if (detail::on_host(queue)) memory.lists += plan.bytes();
  return memory;
}

/// T is an inner scalar.
template <class T>
struct SparseState {
  SparseState(const char* name, Queue& q, std::shared_ptr<const SparsePlan> given, index_t count,
              const SparseOptions& options)
      : queue(q.state()),
        shared(std::move(given)),
        items_plan(checked(name, shared), count),
        plan(items_plan),
        numeric(make_numeric<T>(name, q, plan, options)),
        hybrid(options.mode == Mode::Hybrid) {
    numeric->allocate();
    values = Buffer<T>(queue, index_t(plan.target.size()));
    info.assign(std::size_t(count), -1);
  }

  /// Enqueues a factorization.
  void start(const char* call, const T* from, core::Real<T> new_shift, int* out) {
    if (!std::isfinite(new_shift)) fail(call, "shift = " + std::to_string(new_shift) + " must be finite");
    if (hybrid) check_hybrid_not_captured(call, *queue);
    progress = Progress::Nothing, shift = new_shift;
    std::fill(info.begin(), info.end(), -1);
    enqueue_copy(*queue, from, values.data(), plan.target.size() * sizeof(T));
    numeric->factor(values.data(), shift, out);
    progress = Progress::UnderWay;
  }
  /// Waits for it, if there is one: info is known then.
  void settle() {
    if (progress != Progress::UnderWay) return;
    numeric->failed(info.data());
    progress = Progress::Complete;
  }
  void check_started(const char* call) const {
    if (progress == Progress::Nothing) fail(call, "nothing has been factored yet");
  }
  SparseMemory memory() const { return memory_of(*queue, items_plan, *numeric); }
  /// The diagonals of all factors, item after item.
  template <class R>
  std::vector<R> diagonal() const {
    std::vector<T> entries(plan.n);
    numeric->diagonal(entries.data());
    std::vector<R> d;
    d.reserve(entries.size());
    for (const T& entry : entries) d.push_back(core::real(entry));
    return d;
  }

  enum class Progress { Nothing, UnderWay, Complete };

  const std::shared_ptr<detail::QueueState> queue;
  const std::shared_ptr<const SparsePlan> shared;
  const ItemsPlan items_plan;
  const sparse::Plan& plan;
  const std::unique_ptr<SparseNumeric<T>> numeric;
  const bool hybrid;
  Buffer<T> values;       // of the last factorization
  std::vector<int> info;  // of each item; -1: not known
  core::Real<T> shift = 0;
  Progress progress = Progress::Nothing;

 private:
  static const sparse::Plan& checked(const char* name, const std::shared_ptr<const SparsePlan>& given) {
    if (!given) fail(name, "plan must not be null");
    return given->data();
  }
};

/// log det of an item from the diagonal of its factor.
template <class R>
R log_det_of(std::span<const R> diagonal) {
  double sum = 0;
  for (const R d : diagonal) sum += std::log(double(d));
  return R(2 * sum);
}

}  // namespace trifactor::api
