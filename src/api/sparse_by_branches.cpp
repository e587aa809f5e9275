// SparseCholesky on the host's own routines: memory and permutations around them.
#include <api/sparse_numeric.hpp>
#include <core/path.hpp>
#include <host/blas_memory.hpp>
#include <host/sparse.hpp>
#include <host/threads.hpp>

#include <algorithm>

namespace trifactor::api {

namespace {

using core::conj;
using core::Real;
using sparse::Plan;

template <class T>
class ByBranches final : public SparseNumeric<T> {
 public:
  ByBranches(std::shared_ptr<detail::QueueState> queue, const Plan& plan, const core::SparseTuning& tuning)
      : queue_(std::move(queue)),
        plan_(plan),
        tuning_(tuning),
        schedule_(sparse::make_schedule(plan, queue_->host.threads(), tuning)),
        progress_(plan, schedule_, tuning),
        done_(schedule_.nodes.size()),
        failed_(std::size_t(plan.items), 0) {}

  SparseMemory memory() const override {
    const auto bytes = [](index_t entries) { return std::size_t(entries) * sizeof(T); };
    return {bytes(plan_.factor_entries), bytes(schedule_.work_entries),
            schedule_.bytes() + progress_.bytes() + failed_.size() * sizeof(int),
            bytes(std::max(vectors_.size(), vector_entries(1))) +
                sizeof(int) * std::size_t(host::solve_places(schedule_, plan_.n)),
            0};
  }
  void allocate() override {
    factor_ = Buffer<T>(queue_, plan_.factor_entries);
    updates_ = Buffer<T>(queue_, schedule_.work_entries);
    vectors_ = Buffer<T>(queue_, vector_entries(1));
    blas_callers();
    places_ = Buffer<int>(queue_, host::solve_places(schedule_, plan_.n));
  }

  void factor(const T* values, Real<T> shift, int* info) override {
    core::set_path("branches");
    const auto callers = blas_callers();
    host::sparse_factor(data(), values, shift, updates_.data(), progress_);
    for (index_t item = 0; item < plan_.items; ++item) {
      const index_t column = progress_.failed(item);
      failed_[item] = column < 0 ? 0 : int(plan_.permutation[column] + 1 - item * plan_.item_columns());
    }
    if (info) failed(info);
  }
  void failed(int* items) override { std::copy(failed_.begin(), failed_.end(), items); }

  void solve(core::Items<T> B, SparsePart part) override {
    if (plan_.items == 1 && failed_[0] != 0) return;
    const bool all = part == SparsePart::All;
    for (index_t done = 0; done < B.cols; done += tuning_.at_once) {
      core::heed_interruption();
      const auto some = B.block(0, done, B.rows, std::min(tuning_.at_once, B.cols - done));
      const index_t k = some.cols;
      T* X = vectors_for(k);
      take(some, X, all || part == SparsePart::Permute);
      if (all || part == SparsePart::Lower) host::sparse_forward(data(), k, X, scratch_behind(X, k));
      if (all || part == SparsePart::LowerAdjoint) host::sparse_backward(data(), k, X, scratch_behind(X, k));
      give(some, X, all || part == SparsePart::PermuteBack);
    }
  }

  typename SparseNumeric<T>::Refined refine(const T* values, Real<T> shift, MatrixView<T> column) override {
    const index_t n = plan_.n;
    Buffer<T> b(n);
    T* r = vectors_for(1);
    const auto B = core::one_matrix(column.data, n, 1, column.ld);
    take(B, b.data(), true);
    const auto solve = [&] {
      host::sparse_forward(data(), 1, r, scratch_behind(r, 1));
      host::sparse_backward(data(), 1, r, scratch_behind(r, 1));
    };
    const auto residual = [&](const T* x, Real<T>* size) {
      host::sparse_residual(data(), values, shift, b.data(), x, r, size);
    };
    Buffer<T> x(n);
    const auto result = refined_on_host(n, b.data(), r, x.data(), solve, residual);
    give(B, x.data(), true);
    return result;
  }

  void diagonal(T* out) override {
    for (index_t s = 0; s < plan_.fronts(); ++s)
      for (index_t c = 0; c < plan_.col_count(s); ++c)
        *out++ = factor_.data()[plan_.factor_start[s] + c * (plan_.row_count(s) + 1)];
  }
  void copy_factor(T* out) override { std::copy_n(factor_.data(), factor_.size(), out); }

 private:
  host::BlasCallers blas_callers() const { return {queue_->host.threads(), schedule_.threads}; }
  host::SparseData<T> data() const { return {plan_, schedule_, tuning_, factor_.data()}; }

  index_t vector_entries(index_t k) const { return plan_.n * k + host::solve_entries(schedule_, k); }
  host::SolveScratch<T> scratch_behind(T* X, index_t k) { return {X + plan_.n * k, places_.data(), done_.data()}; }
  /// X^H of k right-hand sides, and the scratch memory of solves behind it.
  T* vectors_for(index_t k) {
    if (vectors_.size() < vector_entries(k)) vectors_ = Buffer<T>(queue_, vector_entries(k));
    return vectors_.data();
  }

  /// f(i, item) for every row, of k numbers.
  template <class F>
  void for_rows(index_t k, F f) const {
    const index_t n = plan_.n, parts = 8 * schedule_.threads, each = core::ceil_div(n, parts);
    host::for_items(schedule_.threads, parts, nullptr, double(each * k), [&](index_t part) {
      const index_t begin = part * each, end = std::min(n, (part + 1) * each);
      if (begin >= end) return;
      index_t item = plan_.item_of(begin), next = (item + 1) * plan_.item_columns();
      for (index_t i = begin; i < end; ++i) {
        if (i == next) ++item, next += plan_.item_columns();
        f(i, item);
      }
    });
  }
  /// Row i of the plan in the right-hand sides of its item, which lie B.stride apart.
  T* row_of(const core::Tile<T>& first, index_t stride, index_t i, index_t item, bool permute) const {
    return first.data + item * (stride - plan_.item_columns()) + (permute ? plan_.permutation[i] : i);
  }

  /// X^H, as the plan numbers its rows, from the columns of B; or without the permutation. Zero where the factor
  /// failed.
  void take(const core::Items<T>& B, T* X, bool permute) const {
    const index_t k = B.cols;
    const core::Tile<T> first = B.item(0);
    for_rows(k, [&](index_t i, index_t item) {
      const T* row = row_of(first, B.stride, i, item, permute);
      for (index_t c = 0; c < k; ++c) X[i * k + c] = failed_[item] == 0 ? conj(row[c * B.ld]) : T(0);
    });
  }
  void give(const core::Items<T>& B, const T* X, bool permute) const {
    const index_t k = B.cols;
    const core::Tile<T> first = B.item(0);
    for_rows(k, [&](index_t i, index_t item) {
      if (failed_[item] != 0) return;
      T* row = row_of(first, B.stride, i, item, permute);
      for (index_t c = 0; c < k; ++c) row[c * B.ld] = conj(X[i * k + c]);
    });
  }

  const std::shared_ptr<detail::QueueState> queue_;
  const Plan& plan_;
  const core::SparseTuning tuning_;
  const sparse::Schedule schedule_;
  host::Progress progress_;
  std::vector<std::atomic<unsigned char>> done_;  // of nodes, in a solve
  Buffer<int> places_;
  std::vector<int> failed_;  // of each item, as failed() tells
  Buffer<T> factor_, updates_, vectors_;
};

}  // namespace

template <class T>
std::unique_ptr<SparseNumeric<T>> sparse_by_branches(std::shared_ptr<detail::QueueState> queue, const Plan& plan,
                                                     const core::SparseTuning& tuning) {
  return std::make_unique<ByBranches<T>>(std::move(queue), plan, tuning);
}

#define TRIFACTOR_INSTANTIATE(T)                                                                                     \
  template std::unique_ptr<SparseNumeric<T>> sparse_by_branches<T>(std::shared_ptr<detail::QueueState>, const Plan&, \
                                                                   const core::SparseTuning&);
TRIFACTOR_FOR_EACH_SCALAR(TRIFACTOR_INSTANTIATE)
#undef TRIFACTOR_INSTANTIATE

}  // namespace trifactor::api
