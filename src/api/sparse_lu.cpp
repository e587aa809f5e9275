// SparseLu: scalings, permutations and checks around the numeric phases.
#include <api/check.hpp>
#include <api/sparse_numeric.hpp>
#include <core/condition.hpp>
#include <core/interruption.hpp>
#include <core/memory.hpp>
#include <core/path.hpp>
#include <host/sparse_lu.hpp>
#include <trifactor/sparse_lu.hpp>

#include <algorithm>
#include <cmath>
#include <complex>

namespace trifactor {

namespace {

using namespace api;
using core::Real;

std::shared_ptr<const SparseLuPlan> checked_lu_plan(const Queue& q, std::shared_ptr<const SparseLuPlan> plan) {
  if (q.is_cuda()) fail("SparseLu", "sparse LU runs on the host only: give it Queue::host() in place of a CUDA queue");
  if (!plan) fail("SparseLu", "plan must not be null");
  return plan;
}

double checked_threshold(const SparseLuPlan& plan, const SparseLuOptions& options) {
  const double threshold = options.pivot_threshold.value_or(plan.ordering() == LuOrdering::Amd ? 0.1 : 1.0);
  if (!(threshold >= 0 && threshold <= 1))
    fail("SparseLu", "options.pivot_threshold = " + std::to_string(threshold) + " must be from 0 to 1");
  return threshold;
}

/// Of the power of 2 that takes a number with this exponent, of R, to at least 1 and less than 2. Its reciprocal is finite.
template <class R>
int scale_for(int exponent) {
  constexpr int max_exponent = std::numeric_limits<R>::max_exponent - 2;
  return std::clamp(-exponent, -max_exponent, max_exponent);
}

template <class R>
R times_power(R x, int exponent) {
  return std::ldexp(x, exponent);
}
template <class R>
core::Complex<R> times_power(core::Complex<R> x, int exponent) {
  return {std::ldexp(x.re, exponent), std::ldexp(x.im, exponent)};
}

/// The largest exponent in a row or column. A zero has none, and what is not finite keeps its line as it is.
class LargestExponent {
 public:
  template <class R>
  void add(R modulus, int scaled_by) {
    if (!std::isfinite(modulus)) finite_ = false;
    if (modulus > 0 && finite_) largest_ = std::max(largest_, std::ilogb(modulus) + scaled_by);
  }
  int get() const { return finite_ && largest_ > none ? largest_ : 0; }

 private:
  static constexpr int none = std::numeric_limits<int>::min();
  int largest_ = none;
  bool finite_ = true;
};

/// -1 for an odd permutation, otherwise 1.
int sign_of(index_t n, const auto& place_of) {
  std::vector<bool> seen(n, false);
  int sign = 1;
  for (index_t i = 0; i < n; ++i)
    for (index_t k = place_of(i); !seen[i] && k != i; k = place_of(k)) seen[k] = true, sign = -sign;
  return sign;
}

}  // namespace

template <Scalar T>
struct SparseLu<T>::State {
  using I = inner_t<T>;
  using R = real_t<T>;

  static constexpr index_t at_once = 16;  // right-hand sides: a row of them is a few cache lines

  State(Queue& q, std::shared_ptr<const SparseLuPlan> given, const SparseLuOptions& options)
      : shared(checked_lu_plan(q, std::move(given))),
        plan(shared->data()),
        threshold(checked_threshold(*shared, options)),
        equilibrate(options.equilibrate),
        factors(plan.n),
        row_scale(plan.n),
        column_scale(plan.n),
        vectors(plan.n) {}

  /// The given values in the plan's places.
  Buffer<I> placed(std::span<const T> values) const {
    Buffer<I> a(index_t(plan.row.size()));
    std::fill_n(a.data(), a.size(), I(0));
    const auto* given = reinterpret_cast<const I*>(values.data());
    for (std::size_t k = 0; k < values.size(); ++k) a.data()[plan.place[k]] += given[k];
    return a;
  }

  /// Visits (row of A, column of A Q, entry).
  template <class Visit>
  void for_each_entry(I* a, const Visit& visit) const {
    for (index_t j = 0; j < plan.n; ++j)
      for (int k = plan.start[j]; k < plan.start[j + 1]; ++k) visit(plan.row[k], j, a[k]);
  }

  void set_norm(I* a) {
    std::vector<R> sum(plan.n, R(0));
    for_each_entry(a, [&](index_t, index_t j, const I& v) { sum[j] += std::abs(reinterpret_cast<const T&>(v)); });
    norm = 0;
    for (const R s : sum) norm = core::max_or_nan(norm, s);
  }

  /// a := R a C, by powers of 2. Each entry is scaled once: between the two it might not be representable.
  void scale(I* a) {
    std::vector<LargestExponent> row(plan.n), column(plan.n);
    std::vector<int> r(plan.n, 0), c(plan.n, 0);
    if (equilibrate) {
      for_each_entry(a, [&](index_t i, index_t, I& v) { row[i].add(core::abs1(v), 0); });
      for (index_t i = 0; i < plan.n; ++i) r[i] = scale_for<R>(row[i].get());
      for_each_entry(a, [&](index_t i, index_t j, I& v) { column[j].add(core::abs1(v), r[i]); });
      for (index_t j = 0; j < plan.n; ++j) c[j] = scale_for<R>(column[j].get());
      for_each_entry(a, [&](index_t i, index_t j, I& v) { v = times_power(v, r[i] + c[j]); });
    }
    for (index_t i = 0; i < plan.n; ++i) {
      row_scale.data()[i] = times_power(R(1), r[i]);
      column_scale.data()[i] = times_power(R(1), c[i]);
    }
  }

  /// B := op(A)^-1 B for a few columns.
  void solve_some(MatrixView<I> B, Op op) {
    const index_t n = plan.n, k = B.cols;
    if (vectors.size() < n * k) vectors = Buffer<I>(n * k);
    I* const X = vectors.data();
    const auto by_column = [&](const auto& visit) {  // (row of B, row of X, scaling)
      for (index_t j = 0; j < n; ++j) visit(plan.permutation[j], j, column_scale.data()[j]);
    };
    const auto by_row = [&](const auto& visit) {
      for (index_t i = 0; i < n; ++i) visit(i, index_t(factors.row_place.data()[i]), row_scale.data()[i]);
    };
    const auto take = [&](index_t i, index_t at, R s) {
      for (index_t c = 0; c < k; ++c) X[at * k + c] = B(i, c) * s;
    };
    const auto give = [&](index_t i, index_t at, R s) {
      for (index_t c = 0; c < k; ++c) B(i, c) = X[at * k + c] * s;
    };
    if (op == Op::None)
      by_row(take);
    else
      by_column(take);
    host::sparse_lu_solve(factors, op, k, X);
    if (op == Op::None)
      by_column(give);
    else
      by_row(give);
  }

  typename SparseNumeric<I>::Refined refine(const I* a, Op op, MatrixView<I> column) {
    const index_t n = plan.n;
    Buffer<I> b(n), r(n);
    std::copy_n(column.data, n, b.data());
    const auto solve = [&] { solve_some({r.data(), n, 1, std::max<index_t>(1, n)}, op); };
    const auto residual = [&](const I* x, R* size) {
      host::sparse_lu_residual(plan, a, op, b.data(), x, r.data(), size);
    };
    return refined_on_host(n, b.data(), r.data(), column.data, solve, residual);
  }

  void check_values(const char* call, std::span<const T> values) const {
    api::check_values(call, values.size(), plan.place.size());
  }
  MatrixView<I> checked(const char* call, MatrixView<T> B) const {
    items(call, "B", B);
    if (B.rows != plan.n) fail(call, "B.rows", B.rows, "equal the order of A, " + std::to_string(plan.n));
    return {reinterpret_cast<I*>(B.data), B.rows, B.cols, B.ld};
  }
  void check_factored(const char* call) const {
    if (info < 0) fail(call, "nothing has been factored yet");
    if (info > 0) fail(call, "the matrix is singular: the pivot of its column " + std::to_string(info) + " is zero");
  }

  const std::shared_ptr<const SparseLuPlan> shared;
  const sparse::LuPlan& plan;
  const double threshold;
  const bool equilibrate;
  host::SparseLuFactors<I> factors;
  Buffer<R> row_scale, column_scale;  // of row i of A; of column j of A Q
  Buffer<I> vectors;
  index_t info = -1;
  R norm = 0;
};

template <Scalar T>
SparseLu<T>::SparseLu(Queue& q, std::shared_ptr<const SparseLuPlan> plan, const SparseLuOptions& options) try
    : state_(std::make_unique<State>(q, std::move(plan), options)) {} TRIFACTOR_CATCH_BAD_ALLOC
template <Scalar T>
SparseLu<T>::SparseLu(SparseLu&&) noexcept = default;
template <Scalar T>
SparseLu<T>& SparseLu<T>::operator=(SparseLu&&) noexcept = default;
template <Scalar T>
SparseLu<T>::~SparseLu() = default;

template <Scalar T>
index_t SparseLu<T>::try_factor(std::span<const T> values) try {
  State& state = *state_;
  state.check_values("SparseLu::factor", values);
  state.info = -1;
  const auto a = state.placed(values);
  state.set_norm(a.data());
  state.scale(a.data());
  core::set_path("superlu");
  const index_t failed = host::superlu_factor(state.plan, a.data(), state.threshold, state.factors);
  return state.info = failed < 0 ? 0 : state.plan.permutation[failed] + 1;
} TRIFACTOR_CATCH_BAD_ALLOC

template <Scalar T>
void SparseLu<T>::factor(std::span<const T> values) try {
  if (const index_t column = try_factor(values); column != 0)
    throw Singular(column, "the matrix is singular: the pivot of column " + std::to_string(column) +
                               " (counted from 1) is exactly zero");
} TRIFACTOR_CATCH_BAD_ALLOC

template <Scalar T>
index_t SparseLu<T>::info() const noexcept {
  return state_->info;
}

template <Scalar T>
void SparseLu<T>::solve(MatrixView<T> B, Op op) const try {
  const auto b = state_->checked("SparseLu::solve", B);
  state_->check_factored("SparseLu::solve");
  for (index_t done = 0; done < b.cols; done += State::at_once) {
    core::heed_interruption();
    state_->solve_some(b.block(0, done, b.rows, std::min(State::at_once, b.cols - done)), op);
  }
} TRIFACTOR_CATCH_BAD_ALLOC

template <Scalar T>
std::vector<T> SparseLu<T>::solve(const std::vector<T>& b, Op op) const try {
  const index_t n = index_t(b.size());
  if (n != state_->plan.n)
    fail("SparseLu::solve", "b.size()", n, "equal the order of A, " + std::to_string(state_->plan.n));
  std::vector<T> x = b;
  solve(MatrixView<T>{x.data(), n, 1, std::max<index_t>(1, n)}, op);
  return x;
} TRIFACTOR_CATCH_BAD_ALLOC

template <Scalar T>
Refinement<T> SparseLu<T>::solve_refined(std::span<const T> values, MatrixView<T> B, Op op) const try {
  constexpr const char* call = "SparseLu::solve_refined";
  State& state = *state_;
  const auto b = state.checked(call, B);
  state.check_values(call, values);
  state.check_factored(call);
  const auto a = state.placed(values);
  Refinement<T> result;
  for (index_t c = 0; c < b.cols; ++c) {
    const auto column = state.refine(a.data(), op, b.block(0, c, b.rows, 1));
    result.steps = std::max(result.steps, column.steps);
    if (!(column.error <= result.backward_error)) result.backward_error = column.error;
  }
  return result;
} TRIFACTOR_CATCH_BAD_ALLOC

template <Scalar T>
Determinant<T> SparseLu<T>::det() const try {
  const State& state = *state_;
  if (state.info < 0) fail("SparseLu::det", "nothing has been factored yet");
  if (state.info > 0) return {T(0), -std::numeric_limits<real_t<T>>::infinity()};
  const auto& f = state.factors;
  const index_t n = state.plan.n;
  std::complex<double> phase = 1;
  double log_modulus = 0;
  for (index_t j = 0; j < n; ++j) {
    const index_t above = j - f.first_column[f.supernode[j]];
    const std::complex<double> pivot(reinterpret_cast<const T&>(f.block[f.block_start[j] + above]));
    const double modulus = std::abs(pivot);
    phase *= pivot / modulus;
    log_modulus += std::log(modulus) - std::log(double(state.row_scale[j])) - std::log(double(state.column_scale[j]));
  }
  phase *= double(sign_of(n, [&](index_t i) { return index_t(f.row_place[i]); }) *
                  sign_of(n, [&](index_t j) { return state.plan.permutation[j]; }));
  phase /= std::abs(phase);
  if constexpr (ComplexScalar<T>)
    return {T(phase), real_t<T>(log_modulus)};
  else
    return {T(phase.real()), real_t<T>(log_modulus)};
} TRIFACTOR_CATCH_BAD_ALLOC

template <Scalar T>
real_t<T> SparseLu<T>::rcond() const try {
  using I = inner_t<T>;
  State& state = *state_;
  state.check_factored("SparseLu::rcond");
  const index_t n = state.plan.n;
  if (n == 0) return 1;
  Buffer<I> x(n), sign(n);
  const auto solver = [&](Op op) { return [&, op](I* b) { state.solve_some({b, n, 1, n}, op); }; };
  return real_t<T>(core::reciprocal_condition(
      double(state.norm), core::inverse_norm1(n, x.data(), sign.data(), solver(Op::None), solver(Op::ConjTranspose))));
} TRIFACTOR_CATCH_BAD_ALLOC

template <Scalar T>
real_t<T> SparseLu<T>::norm1() const {
  if (state_->info < 0) fail("SparseLu::norm1", "nothing has been factored yet");
  return state_->norm;
}

template <Scalar T>
index_t SparseLu<T>::factor_nonzeros() const {
  state_->check_factored("SparseLu::factor_nonzeros");
  return state_->factors.nonzeros;
}

template <Scalar T>
const SparseLuPlan& SparseLu<T>::plan() const noexcept {
  return *state_->shared;
}

template <Scalar T>
SparseLuMemory SparseLu<T>::memory() const {
  const State& state = *state_;
  return {state.factors.bytes(), sizeof(T) * std::size_t(state.vectors.size()) +
                                     (2 * sizeof(real_t<T>) + sizeof(int)) * std::size_t(state.plan.n)};
}

#define TRIFACTOR_INSTANTIATE(T) template class TRIFACTOR_API SparseLu<core::ScalarTraits<T>::Public>;
TRIFACTOR_FOR_EACH_SCALAR(TRIFACTOR_INSTANTIATE)
#undef TRIFACTOR_INSTANTIATE

}  // namespace trifactor
