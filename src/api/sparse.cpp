// SparseCholesky: checks, memory and permutations around the host's numeric phases.
#include <api/check.hpp>
#include <api/queue_state.hpp>
#include <host/sparse.hpp>
#include <trifactor/sparse.hpp>

namespace trifactor {

namespace {

using namespace api;
using core::conj;
using core::Real;
using core::real;
using sparse::Plan;

/// The front that column j lies in, for loops over ascending columns.
template <class F>
void for_columns_of(const Plan& plan, F f) {
  for (index_t s = 0; s < plan.fronts(); ++s)
    for (index_t c = 0; c < plan.col_count(s); ++c) f(s, c, plan.factor_start[s] + c * plan.row_count(s));
}

constexpr index_t most_at_once = 32;  // right-hand sides: enough for BLAS, and the scratch memory stays small

Queue& checked_host(Queue& q) {
  if (q.is_cuda()) fail("SparseCholesky", "q is a CUDA queue, but sparse factorizations run on host queues so far");
  return q;
}

template <class T>
std::shared_ptr<const T> checked_plan(std::shared_ptr<const T> plan) {
  if (!plan) fail("SparseCholesky", "plan must not be null");
  return plan;
}

}  // namespace

template <Scalar T>
struct SparseCholesky<T>::State {
  using I = inner_t<T>;

  State(Queue& q, std::shared_ptr<const SparsePlan> given)
      : queue(checked_host(q).state()),
        shared(checked_plan(std::move(given))),
        plan(shared->data()),
        schedule(sparse::make_schedule(plan, queue->host.threads())),
        factor(q, plan.factor_entries),
        work(q, schedule.work_entries),
        vectors(q, vector_entries(1)) {}

  host::SparseData<I> data() const { return {plan, schedule, factor.data()}; }

  index_t vector_entries(index_t k) const {
    return plan.n * k + host::sparse_solve_scratch(schedule, plan.n, k);
  }
  /// X^H of k right-hand sides, and the scratch memory of solves behind it.
  I* vectors_for(index_t k) {
    if (vectors.size() < vector_entries(k)) vectors = Buffer<I>(vector_entries(k));
    return vectors.data();
  }

  /// X^H, as the plan numbers its rows, from the columns of B; or without the permutation.
  void take(MatrixView<I> B, I* X, bool permute) const {
    const index_t k = B.cols;
    for (index_t c = 0; c < k; ++c)
      for (index_t i = 0; i < plan.n; ++i) X[i * k + c] = conj(B(permute ? plan.permutation[i] : i, c));
  }
  void give(MatrixView<I> B, const I* X, bool permute) const {
    const index_t k = B.cols;
    for (index_t c = 0; c < k; ++c)
      for (index_t i = 0; i < plan.n; ++i) B(permute ? plan.permutation[i] : i, c) = conj(X[i * k + c]);
  }
  void solve(MatrixView<I> B, SparsePart part) {
    const bool all = part == SparsePart::All;
    for (index_t done = 0; done < B.cols; done += most_at_once) {
      const auto part_of_B = B.block(0, done, plan.n, std::min(most_at_once, B.cols - done));
      const index_t k = part_of_B.cols;
      I* X = vectors_for(k);
      I* scratch = X + plan.n * k;
      take(part_of_B, X, all || part == SparsePart::Permute);
      if (all || part == SparsePart::Lower) host::sparse_forward(data(), k, X, scratch);
      if (all || part == SparsePart::LowerAdjoint) host::sparse_backward(data(), k, X, scratch);
      give(part_of_B, X, all || part == SparsePart::PermuteBack);
    }
  }

  const std::shared_ptr<detail::QueueState> queue;
  const std::shared_ptr<const SparsePlan> shared;
  const Plan& plan;
  const sparse::Schedule schedule;
  Buffer<I> factor, work, vectors;
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

template <class State>
void check_factored(const char* call, const State& state) {
  if (state.info < 0) fail(call, "nothing has been factored yet");
  if (state.info > 0)
    fail(call, "the last factorization failed at column " + std::to_string(state.info) + " of the matrix");
}

}  // namespace

template <Scalar T>
SparseCholesky<T>::SparseCholesky(Queue& q, std::shared_ptr<const SparsePlan> plan)
    : state_(std::make_unique<State>(q, std::move(plan))) {}
template <Scalar T>
SparseCholesky<T>::SparseCholesky(SparseCholesky&&) noexcept = default;
template <Scalar T>
SparseCholesky<T>& SparseCholesky<T>::operator=(SparseCholesky&&) noexcept = default;
template <Scalar T>
SparseCholesky<T>::~SparseCholesky() = default;

template <Scalar T>
index_t SparseCholesky<T>::try_factor(std::span<const T> values, real_t<T> shift) {
  State& state = *state_;
  const auto* inner = checked("SparseCholesky::factor", state, values);
  state.info = -1, state.shift = shift;
  const index_t failed = host::sparse_factor(state.data(), inner, shift, state.work.data());
  return state.info = failed < 0 ? 0 : state.plan.permutation[failed] + 1;
}

template <Scalar T>
void SparseCholesky<T>::factor(std::span<const T> values, real_t<T> shift) {
  if (const index_t column = try_factor(values, shift); column != 0)
    throw NotPositiveDefinite(column, "the matrix is not positive definite: the pivot of column " +
                                          std::to_string(column) + " (counted from 1) is not positive and finite");
}

template <Scalar T>
index_t SparseCholesky<T>::info() const noexcept {
  return state_->info;
}

template <Scalar T>
void SparseCholesky<T>::solve(MatrixView<T> B, SparsePart part) const {
  const auto b = checked("SparseCholesky::solve", *state_, B);
  check_factored("SparseCholesky::solve", *state_);
  state_->solve(b, part);
}

template <Scalar T>
std::vector<T> SparseCholesky<T>::solve(const std::vector<T>& b) const {
  std::vector<T> x = b;
  solve(MatrixView<T>{x.data(), index_t(x.size()), 1, std::max<index_t>(1, index_t(x.size()))});
  return x;
}

template <Scalar T>
Refinement<T> SparseCholesky<T>::solve_refined(std::span<const T> values, MatrixView<T> B) const {
  using I = inner_t<T>;
  using R = real_t<T>;
  constexpr const char* call = "SparseCholesky::solve_refined";
  constexpr int most_steps = 10;
  State& state = *state_;
  const auto view = checked(call, state, B);
  const I* a = checked(call, state, values);
  check_factored(call, state);
  const index_t n = state.plan.n;
  const auto data = state.data();
  Buffer<I> b(n), x(n), best(n);
  Buffer<R> size(n);
  Refinement<T> result;
  for (index_t c = 0; c < view.cols; ++c) {
    const auto column = view.block(0, c, n, 1);
    I* r = state.vectors_for(1);
    state.take(column, b.data(), true);
    std::fill(x.data(), x.data() + n, I(0));
    std::copy(b.data(), b.data() + n, r);
    R error = std::numeric_limits<R>::infinity();
    int steps = 0;
    for (;; ++steps) {  // x is zero at first, so the first step is the solve itself
      host::sparse_forward(data, 1, r, r + n);
      host::sparse_backward(data, 1, r, r + n);
      for (index_t i = 0; i < n; ++i) x.data()[i] += r[i];
      host::sparse_residual(data, a, state.shift, b.data(), x.data(), r, size.data());
      R next = 0;
      for (index_t i = 0; i < n; ++i) {
        const R e = core::abs1(r[i]) / size.data()[i];
        if (size.data()[i] > 0 && !(e <= next)) next = e;  // a NaN stays
      }
      const bool better = next < error;
      const bool much_better = next < error / 2;
      if (better) error = next, std::copy(x.data(), x.data() + n, best.data());
      if (!much_better || next <= std::numeric_limits<R>::epsilon() / 2 || steps == most_steps) break;
    }
    state.give(column, error < std::numeric_limits<R>::infinity() ? best.data() : x.data(), true);
    result.steps = std::max(result.steps, steps);
    if (!(error <= result.backward_error)) result.backward_error = error;
  }
  return result;
}

template <Scalar T>
real_t<T> SparseCholesky<T>::log_det() const {
  check_factored("SparseCholesky::log_det", *state_);
  double sum = 0;
  for_columns_of(state_->plan, [&](index_t, index_t c, index_t at) { sum += std::log(double(real(state_->factor[at + c]))); });
  return real_t<T>(2 * sum);
}

template <Scalar T>
std::vector<real_t<T>> SparseCholesky<T>::diagonal() const {
  check_factored("SparseCholesky::diagonal", *state_);
  std::vector<real_t<T>> d;
  d.reserve(state_->plan.n);
  for_columns_of(state_->plan, [&](index_t, index_t c, index_t at) { d.push_back(real(state_->factor[at + c])); });
  return d;
}

template <Scalar T>
CompressedColumns<T> SparseCholesky<T>::lower() const {
  check_factored("SparseCholesky::lower", *state_);
  const Plan& plan = state_->plan;
  const T* factor = reinterpret_cast<const T*>(state_->factor.data());
  CompressedColumns<T> L;
  L.start.push_back(0);
  for_columns_of(plan, [&](index_t s, index_t c, index_t at) {
    const index_t m = plan.row_count(s);
    const auto rows = plan.rows.begin() + plan.row_start[s];
    L.index.insert(L.index.end(), rows + c, rows + m);
    L.values.insert(L.values.end(), factor + at + c, factor + at + m);
    L.start.push_back(index_t(L.index.size()));
  });
  return L;
}

template <Scalar T>
const SparsePlan& SparseCholesky<T>::plan() const noexcept {
  return *state_->shared;
}

template <Scalar T>
std::size_t SparseCholesky<T>::bytes() const noexcept {
  const State& s = *state_;
  return std::size_t(s.factor.size() + s.work.size() + s.vectors.size()) * sizeof(T) + s.schedule.bytes();
}

#define TRIFACTOR_INSTANTIATE(T) template class TRIFACTOR_API SparseCholesky<core::ScalarTraits<T>::Public>;
TRIFACTOR_FOR_EACH_SCALAR(TRIFACTOR_INSTANTIATE)

}  // namespace trifactor
