// SparseCholesky: checks around the numeric phases, and what is told about the factor.
#include <api/sparse_state.hpp>
#include <core/condition.hpp>
#include <sparse/norm.hpp>

namespace trifactor {

using namespace api;

template <Scalar T>
struct SparseCholesky<T>::State : SparseState<inner_t<T>> {
  using SparseState<inner_t<T>>::SparseState;
};

namespace {

template <class T, class State>
core::Items<inner_t<T>> checked(const char* call, const State& state, MatrixView<T> B) {
  const auto b = items(call, "B", B);
  if (B.rows != state.plan.n) fail(call, "B.rows", B.rows, "equal the order of A, " + std::to_string(state.plan.n));
  return b;
}

template <class T, class State>
const inner_t<T>* checked(const char* call, const State& state, std::span<const T> values) {
  check_values(call, values.size(), state.plan.target.size());
  return reinterpret_cast<const inner_t<T>*>(values.data());
}

template <class State>
void check_factored(const char* call, State& state) {
  state.check_started(call);
  state.settle();
  if (state.info[0] != 0)
    fail(call, "the last factorization failed at column " + std::to_string(state.info[0]) + " of the matrix");
}

}  // namespace

template <Scalar T>
SparseCholesky<T>::SparseCholesky(Queue& q, std::shared_ptr<const SparsePlan> plan, const SparseOptions& options)
    try : state_(std::make_unique<State>("SparseCholesky", q, std::move(plan), 1, options)) {
} TRIFACTOR_CATCH_BAD_ALLOC
template <Scalar T>
SparseCholesky<T>::SparseCholesky(SparseCholesky&&) noexcept = default;
template <Scalar T>
SparseCholesky<T>& SparseCholesky<T>::operator=(SparseCholesky&&) noexcept = default;
template <Scalar T>
SparseCholesky<T>::~SparseCholesky() = default;

template <Scalar T>
SparseMemory SparseCholesky<T>::memory(Queue& q, const SparsePlan& plan, const SparseOptions& options) try {
  const ItemsPlan items(plan.data(), 1);
  return memory_of(*q.state(), items, *make_numeric<inner_t<T>>("SparseCholesky", q, items, options));
} TRIFACTOR_CATCH_BAD_ALLOC

template <Scalar T>
index_t SparseCholesky<T>::try_factor(std::span<const T> values, real_t<T> shift) try {
  State& state = *state_;
  constexpr const char* call = "SparseCholesky::factor";
  state.start(call, checked(call, state, values), shift, nullptr);
  state.settle();
  return state.info[0];
} TRIFACTOR_CATCH_BAD_ALLOC

template <Scalar T>
void SparseCholesky<T>::factor_async(std::span<const T> values, int* info, real_t<T> shift) try {
  constexpr const char* call = "SparseCholesky::factor_async";
  if (!info) fail(call, "info must not be null");
  state_->start(call, checked(call, *state_, values), shift, info);
} TRIFACTOR_CATCH_BAD_ALLOC

template <Scalar T>
void SparseCholesky<T>::factor(std::span<const T> values, real_t<T> shift) try {
  if (const index_t column = try_factor(values, shift); column != 0)
    throw NotPositiveDefinite(column, "the matrix is not positive definite: the pivot of column " +
                                          std::to_string(column) + " (counted from 1) is not positive and finite");
} TRIFACTOR_CATCH_BAD_ALLOC

template <Scalar T>
index_t SparseCholesky<T>::info() const noexcept {
  return state_->info[0];
}

template <Scalar T>
void SparseCholesky<T>::solve(MatrixView<T> B, SparsePart part) const try {
  const auto b = checked("SparseCholesky::solve", *state_, B);
  if (state_->progress != State::Progress::UnderWay) check_factored("SparseCholesky::solve", *state_);
  state_->numeric->solve(b, part);
} TRIFACTOR_CATCH_BAD_ALLOC

template <Scalar T>
std::vector<T> SparseCholesky<T>::solve(const std::vector<T>& b) const try {
  const index_t n = index_t(b.size());
  if (n != state_->plan.n)
    fail("SparseCholesky::solve", "b.size()", n, "equal the order of A, " + std::to_string(state_->plan.n));
  check_factored("SparseCholesky::solve", *state_);
  Buffer<T> x(state_->queue, n);
  copy(*state_->queue, b.data(), x.data(), b.size() * sizeof(T));
  solve(MatrixView<T>{x.data(), n, 1, std::max<index_t>(1, n)});
  return x.to_host();
} TRIFACTOR_CATCH_BAD_ALLOC

template <Scalar T>
Refinement<T> SparseCholesky<T>::solve_refined(std::span<const T> values, MatrixView<T> B) const try {
  constexpr const char* call = "SparseCholesky::solve_refined";
  State& state = *state_;
  checked(call, state, B);
  const MatrixView<inner_t<T>> view{reinterpret_cast<inner_t<T>*>(B.data), B.rows, B.cols, B.ld};
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
    state.numeric->solve(core::one_matrix(X.data(), n, 1, n), SparsePart::All);
    copy(*state.queue, X.data(), b, bytes);
  };
  const double norm = sparse::norm1<I>(state.plan, (on_host ? state.values : copied).data(), state.shift);
  return real_t<T>(core::reciprocal_condition(norm, core::inverse_norm1(n, x.data(), sign.data(), solve, solve)));
} TRIFACTOR_CATCH_BAD_ALLOC

template <Scalar T>
real_t<T> SparseCholesky<T>::log_det() const try {
  check_factored("SparseCholesky::log_det", *state_);
  return log_det_of<real_t<T>>(diagonal());
} TRIFACTOR_CATCH_BAD_ALLOC

template <Scalar T>
std::vector<real_t<T>> SparseCholesky<T>::diagonal() const try {
  check_factored("SparseCholesky::diagonal", *state_);
  return state_->template diagonal<real_t<T>>();
} TRIFACTOR_CATCH_BAD_ALLOC

template <Scalar T>
CompressedColumns<T> SparseCholesky<T>::lower() const try {
  check_factored("SparseCholesky::lower", *state_);
  const sparse::Plan& plan = state_->plan;
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
  return state_->memory();
} TRIFACTOR_CATCH_BAD_ALLOC

#define TRIFACTOR_INSTANTIATE(T) template class TRIFACTOR_API SparseCholesky<core::ScalarTraits<T>::Public>;
TRIFACTOR_FOR_EACH_SCALAR(TRIFACTOR_INSTANTIATE)
#undef TRIFACTOR_INSTANTIATE

}  // namespace trifactor
