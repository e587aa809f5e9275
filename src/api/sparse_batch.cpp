// SparseCholeskyBatch: checks around the numeric phases of a forest, whose trees are those of the items.
#include <api/sparse_state.hpp>

#include <limits>

namespace trifactor {

using namespace api;

template <Scalar T>
struct SparseCholeskyBatch<T>::State : SparseState<inner_t<T>> {
  using SparseState<inner_t<T>>::SparseState;
  index_t count() const { return this->plan.items; }
};

namespace {

template <class T, class State>
const inner_t<T>* checked_values(const char* call, const State& state, std::span<const T> values) {
  if (values.size() != state.plan.target.size())
    fail(call, "values.size()", index_t(values.size()),
         "equal the entries of the pattern times count, " + std::to_string(state.shared->entries()) + " * " +
             std::to_string(state.count()) + " = " + std::to_string(state.plan.target.size()));
  return reinterpret_cast<const inner_t<T>*>(values.data());
}

/// What belongs to failed items becomes NaN.
template <class R>
void hide_failed(const std::vector<int>& info, std::vector<R>& numbers) {
  const std::size_t each = info.empty() ? 0 : numbers.size() / info.size();
  for (std::size_t i = 0; i < info.size(); ++i)
    if (info[i] != 0)
      std::fill_n(numbers.begin() + std::ptrdiff_t(i * each), each, std::numeric_limits<R>::quiet_NaN());
}

}  // namespace

template <Scalar T>
SparseCholeskyBatch<T>::SparseCholeskyBatch(Queue& q, std::shared_ptr<const SparsePlan> plan, index_t count,
                                            const SparseOptions& options)
    try : state_(std::make_unique<State>("SparseCholeskyBatch", q, std::move(plan), count, options)) {
} TRIFACTOR_CATCH_BAD_ALLOC
template <Scalar T>
SparseCholeskyBatch<T>::SparseCholeskyBatch(SparseCholeskyBatch&&) noexcept = default;
template <Scalar T>
SparseCholeskyBatch<T>& SparseCholeskyBatch<T>::operator=(SparseCholeskyBatch&&) noexcept = default;
template <Scalar T>
SparseCholeskyBatch<T>::~SparseCholeskyBatch() = default;

template <Scalar T>
SparseMemory SparseCholeskyBatch<T>::memory(Queue& q, const SparsePlan& plan, index_t count,
                                            const SparseOptions& options) try {
  const ItemsPlan items(plan.data(), count);
  return memory_of(*q.state(), items, *make_numeric<inner_t<T>>("SparseCholeskyBatch", q, items, options));
} TRIFACTOR_CATCH_BAD_ALLOC

template <Scalar T>
index_t SparseCholeskyBatch<T>::factor(std::span<const T> values, real_t<T> shift) try {
  State& state = *state_;
  constexpr const char* call = "SparseCholeskyBatch::factor";
  state.start(call, checked_values(call, state, values), shift, nullptr);
  state.settle();
  return index_t(state.info.size()) - std::count(state.info.begin(), state.info.end(), 0);
} TRIFACTOR_CATCH_BAD_ALLOC

template <Scalar T>
void SparseCholeskyBatch<T>::factor_async(std::span<const T> values, ArrayView<int> info, real_t<T> shift) try {
  constexpr const char* call = "SparseCholeskyBatch::factor_async";
  if (state_->count() > 0) check_array(call, "info", info, state_->count(), "count");
  state_->start(call, checked_values(call, *state_, values), shift, info.data);
} TRIFACTOR_CATCH_BAD_ALLOC

template <Scalar T>
const std::vector<int>& SparseCholeskyBatch<T>::info() const noexcept {
  return state_->info;
}

template <Scalar T>
void SparseCholeskyBatch<T>::solve(StridedBatch<T> B, SparsePart part) const try {
  constexpr const char* call = "SparseCholeskyBatch::solve";
  const State& state = *state_;
  const auto b = items(call, "B", B);
  if (B.count != state.count()) fail(call, "B.count", B.count, "equal count = " + std::to_string(state.count()));
  if (B.rows != state.shared->n())
    fail(call, "B.rows", B.rows, "equal the order of A, " + std::to_string(state.shared->n()));
  state.check_started(call);
  state.numeric->solve(b, part);
} TRIFACTOR_CATCH_BAD_ALLOC

template <Scalar T>
std::vector<T> SparseCholeskyBatch<T>::solve(const std::vector<T>& b) const try {
  const State& state = *state_;
  const index_t n = state.shared->n();
  if (index_t(b.size()) != state.plan.n)
    fail("SparseCholeskyBatch::solve", "b.size()", index_t(b.size()),
         "equal the order of A times count, " + std::to_string(n) + " * " + std::to_string(state.count()) + " = " +
             std::to_string(state.plan.n));
  state.check_started("SparseCholeskyBatch::solve");
  Buffer<T> x(state.queue, state.plan.n);
  copy(*state.queue, b.data(), x.data(), b.size() * sizeof(T));
  solve(StridedBatch<T>{x.data(), n, 1, std::max<index_t>(1, n), n, state.count()});
  return x.to_host();
} TRIFACTOR_CATCH_BAD_ALLOC

template <Scalar T>
std::vector<real_t<T>> SparseCholeskyBatch<T>::log_det() const try {
  using R = real_t<T>;
  state_->check_started("SparseCholeskyBatch::log_det");
  const std::vector<R> all = diagonal();
  const std::size_t n = std::size_t(state_->shared->n());
  std::vector<R> result(std::size_t(state_->count()));
  for (std::size_t i = 0; i < result.size(); ++i) result[i] = log_det_of(std::span<const R>(all).subspan(i * n, n));
  hide_failed(state_->info, result);
  return result;
} TRIFACTOR_CATCH_BAD_ALLOC

template <Scalar T>
std::vector<real_t<T>> SparseCholeskyBatch<T>::diagonal() const try {
  state_->check_started("SparseCholeskyBatch::diagonal");
  state_->settle();
  std::vector<real_t<T>> all = state_->template diagonal<real_t<T>>();
  hide_failed(state_->info, all);
  return all;
} TRIFACTOR_CATCH_BAD_ALLOC

template <Scalar T>
index_t SparseCholeskyBatch<T>::count() const noexcept {
  return state_->count();
}

template <Scalar T>
const SparsePlan& SparseCholeskyBatch<T>::plan() const noexcept {
  return *state_->shared;
}

template <Scalar T>
SparseMemory SparseCholeskyBatch<T>::memory() const try {
  return state_->memory();
} TRIFACTOR_CATCH_BAD_ALLOC

#define TRIFACTOR_INSTANTIATE(T) template class TRIFACTOR_API SparseCholeskyBatch<core::ScalarTraits<T>::Public>;
TRIFACTOR_FOR_EACH_SCALAR(TRIFACTOR_INSTANTIATE)
#undef TRIFACTOR_INSTANTIATE

}  // namespace trifactor
