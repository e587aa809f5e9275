// SparseCholesky: checks around the numeric phases, and what is told about the factor.
#include <api/check.hpp>
#include <api/sparse_numeric.hpp>
#include <core/condition.hpp>
#include <sparse/norm.hpp>
#include <tuning/rows.hpp>

namespace trifactor {

namespace {

using namespace api;
using core::real;
using sparse::Plan;

template <class T>
std::unique_ptr<SparseNumeric<T>> make_numeric(const Queue& q, const Plan& plan, const SparseOptions& options) {
  const auto tuning =
      tuning::find<core::SparseTuning>(q.state()->machine(), core::scalar_name(T{}), plan.n, 1, options.tuning);
  return q.is_cuda() || tuning.levels != 0
             ? sparse_by_level<T>(q.state(), plan, tuning, {options.max_device_bytes, plan.target.size() * sizeof(T)})
             : sparse_by_branches<T>(q.state(), plan, tuning);
}

std::shared_ptr<const SparsePlan> checked_plan(std::shared_ptr<const SparsePlan> plan) {
  if (!plan) fail("SparseCholesky", "plan must not be null");
  return plan;
}

template <class T>
SparseMemory with_values(SparseMemory memory, const Plan& plan) {
  memory.values = plan.target.size() * sizeof(T);
  return memory;
}

}  // namespace

template <Scalar T>
struct SparseCholesky<T>::State {
  using I = inner_t<T>;

  State(Queue& q, std::shared_ptr<const SparsePlan> given, const SparseOptions& options)
      : queue(q.state()),
        shared(checked_plan(std::move(given))),
        plan(shared->data()),
        numeric(make_numeric<I>(q, plan, options)) {
    numeric->allocate();
    values = Buffer<I>(queue, index_t(plan.target.size()));
  }

  const std::shared_ptr<detail::QueueState> queue;
  const std::shared_ptr<const SparsePlan> shared;
  const Plan& plan;
  const std::unique_ptr<SparseNumeric<I>> numeric;
  Buffer<I> values;  // of the last factorization
  index_t info = -1;
  real_t<T> shift = 0;
};

namespace {

template <class T, class State>
MatrixView<inner_t<T>> checked(const char* call, const State& state, MatrixView<T> B) {
  items(call, "B", B);
  if (B.rows != state.plan.n) fail(call, "B.rows", B.rows, "equal the order of A, " + std::to_string(state.plan.n));
  return {reinterpret_cast<inner_t<T>*>(B.data), B.rows, B.cols, B.ld};
}

template <class T, class State>
const inner_t<T>* checked(const char* call, const State& state, std::span<const T> values) {
  if (values.size() != state.plan.target.size())
    fail(call, "values.size()", index_t(values.size()),
         "equal the entries of the pattern, " + std::to_string(state.plan.target.size()));
  return reinterpret_cast<const inner_t<T>*>(values.data());
}

constexpr index_t under_way = -2;  // in place of info

/// Enqueues a factorization of `bytes` bytes of values.
template <class State, class T>
void start(State& state, const T* values, std::size_t bytes, core::Real<T> shift, int* info) {
  state.info = -1, state.shift = shift;
  enqueue_copy(*state.queue, values, state.values.data(), bytes);
  state.numeric->factor(state.values.data(), shift, info);
  state.info = under_way;
}

template <class State>
void check_factored(const char* call, State& state) {
  if (state.info == under_way) state.info = state.numeric->failed();
  if (state.info < 0) fail(call, "nothing has been factored yet");
  if (state.info > 0)
    fail(call, "the last factorization failed at column " + std::to_string(state.info) + " of the matrix");
}

}  // namespace

template <Scalar T>
SparseCholesky<T>::SparseCholesky(Queue& q, std::shared_ptr<const SparsePlan> plan, const SparseOptions& options)
    try : state_(std::make_unique<State>(q, std::move(plan), options)) {
} TRIFACTOR_CATCH_BAD_ALLOC
template <Scalar T>
SparseCholesky<T>::SparseCholesky(SparseCholesky&&) noexcept = default;
template <Scalar T>
SparseCholesky<T>& SparseCholesky<T>::operator=(SparseCholesky&&) noexcept = default;
template <Scalar T>
SparseCholesky<T>::~SparseCholesky() = default;

template <Scalar T>
SparseMemory SparseCholesky<T>::memory(Queue& q, const SparsePlan& plan, const SparseOptions& options) try {
  return with_values<T>(make_numeric<inner_t<T>>(q, plan.data(), options)->memory(), plan.data());
} TRIFACTOR_CATCH_BAD_ALLOC

template <Scalar T>
index_t SparseCholesky<T>::try_factor(std::span<const T> values, real_t<T> shift) try {
  State& state = *state_;
  const auto* inner = checked("SparseCholesky::factor", state, values);
  start(state, inner, values.size_bytes(), shift, nullptr);
  return state.info = state.numeric->failed();
} TRIFACTOR_CATCH_BAD_ALLOC

template <Scalar T>
void SparseCholesky<T>::factor_async(std::span<const T> values, int* info, real_t<T> shift) try {
  constexpr const char* call = "SparseCholesky::factor_async";
  if (!info) fail(call, "info must not be null");
  start(*state_, checked(call, *state_, values), values.size_bytes(), shift, info);
} TRIFACTOR_CATCH_BAD_ALLOC

template <Scalar T>
void SparseCholesky<T>::factor(std::span<const T> values, real_t<T> shift) try {
  if (const index_t column = try_factor(values, shift); column != 0)
    throw NotPositiveDefinite(column, "the matrix is not positive definite: the pivot of column " +
                                          std::to_string(column) + " (counted from 1) is not positive and finite");
} TRIFACTOR_CATCH_BAD_ALLOC

template <Scalar T>
index_t SparseCholesky<T>::info() const noexcept {
  return std::max<index_t>(-1, state_->info);
}

template <Scalar T>
void SparseCholesky<T>::solve(MatrixView<T> B, SparsePart part) const try {
  const auto b = checked("SparseCholesky::solve", *state_, B);
  if (state_->info != under_way) check_factored("SparseCholesky::solve", *state_);
  state_->numeric->solve(b, part);
} TRIFACTOR_CATCH_BAD_ALLOC

template <Scalar T>
std::vector<T> SparseCholesky<T>::solve(const std::vector<T>& b) const try {
  const index_t n = index_t(b.size());
  if (n != state_->plan.n)
    fail("SparseCholesky::solve", "b.size()", n, "equal the order of A, " + std::to_string(state_->plan.n));
  check_factored("SparseCholesky::solve", *state_);
  Buffer<T> x(state_->queue, n);
  std::vector<T> result(b.size());
  copy(*state_->queue, b.data(), x.data(), b.size() * sizeof(T));
  solve(MatrixView<T>{x.data(), n, 1, std::max<index_t>(1, n)});
  copy(*state_->queue, x.data(), result.data(), b.size() * sizeof(T));
  return result;
} TRIFACTOR_CATCH_BAD_ALLOC

template <Scalar T>
Refinement<T> SparseCholesky<T>::solve_refined(std::span<const T> values, MatrixView<T> B) const try {
  constexpr const char* call = "SparseCholesky::solve_refined";
  State& state = *state_;
  const auto view = checked(call, state, B);
  const auto* a = checked(call, state, values);
  check_factored(call, state);
  Refinement<T> result;
  for (index_t c = 0; c < view.cols; ++c) {
    const auto column = state.numeric->refine(a, state.shift, view.block(0, c, state.plan.n, 1));
    result.steps = std::max(result.steps, column.steps);
    if (!(column.error <= result.backward_error)) result.backward_error = column.error;
  }
  return result;
} TRIFACTOR_CATCH_BAD_ALLOC

template <Scalar T>
real_t<T> SparseCholesky<T>::rcond() const try {
  using I = inner_t<T>;
  State& state = *state_;
  check_factored("SparseCholesky::rcond", state);
  const index_t n = state.plan.n;
  if (n == 0) return 1;
  const bool on_host = detail::on_host(*state.queue);
  Buffer<I> copied(on_host ? 0 : state.values.size()), x(n), sign(n), X(state.queue, n);
  copy(*state.queue, state.values.data(), copied.data(), std::size_t(copied.size()) * sizeof(I));
  const std::size_t bytes = std::size_t(n) * sizeof(I);
  const auto solve = [&](I* b) {
    copy(*state.queue, b, X.data(), bytes);
    state.numeric->solve({X.data(), n, 1, n}, SparsePart::All);
    copy(*state.queue, X.data(), b, bytes);
  };
  const double norm = sparse::norm1<I>(state.plan, (on_host ? state.values : copied).data(), state.shift);
  return real_t<T>(core::reciprocal_condition(norm, core::inverse_norm1(n, x.data(), sign.data(), solve, solve)));
} TRIFACTOR_CATCH_BAD_ALLOC

template <Scalar T>
real_t<T> SparseCholesky<T>::log_det() const try {
  check_factored("SparseCholesky::log_det", *state_);
  double sum = 0;
  for (const real_t<T> d : diagonal()) sum += std::log(double(d));
  return real_t<T>(2 * sum);
} TRIFACTOR_CATCH_BAD_ALLOC

template <Scalar T>
std::vector<real_t<T>> SparseCholesky<T>::diagonal() const try {
  check_factored("SparseCholesky::diagonal", *state_);
  std::vector<inner_t<T>> entries(state_->plan.n);
  state_->numeric->diagonal(entries.data());
  std::vector<real_t<T>> d;
  d.reserve(entries.size());
  for (const auto& entry : entries) d.push_back(real(entry));
  return d;
} TRIFACTOR_CATCH_BAD_ALLOC

template <Scalar T>
CompressedColumns<T> SparseCholesky<T>::lower() const try {
  check_factored("SparseCholesky::lower", *state_);
  const Plan& plan = state_->plan;
  std::vector<T> factor(plan.factor_entries);
  state_->numeric->copy_factor(reinterpret_cast<inner_t<T>*>(factor.data()));
  CompressedColumns<T> L;
  L.start.push_back(0);
  for (index_t s = 0; s < plan.fronts(); ++s) {
    const index_t m = plan.row_count(s);
    const auto rows = plan.rows.begin() + plan.row_start[s];
    for (index_t c = 0; c < plan.col_count(s); ++c) {
      const auto column = factor.begin() + plan.factor_start[s] + c * m;
      L.index.insert(L.index.end(), rows + c, rows + m);
      L.values.insert(L.values.end(), column + c, column + m);
      L.start.push_back(index_t(L.index.size()));
    }
  }
  return L;
} TRIFACTOR_CATCH_BAD_ALLOC

template <Scalar T>
const SparsePlan& SparseCholesky<T>::plan() const noexcept {
  return *state_->shared;
}

template <Scalar T>
SparseMemory SparseCholesky<T>::memory() const try {
  return with_values<T>(state_->numeric->memory(), state_->plan);
} TRIFACTOR_CATCH_BAD_ALLOC

#define TRIFACTOR_INSTANTIATE(T) template class TRIFACTOR_API SparseCholesky<core::ScalarTraits<T>::Public>;
TRIFACTOR_FOR_EACH_SCALAR(TRIFACTOR_INSTANTIATE)
#undef TRIFACTOR_INSTANTIATE

}  // namespace trifactor
