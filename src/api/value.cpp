// The value forms: host matrices in and out, exceptions. They choose the device, then call the expert forms.
#include <api/check.hpp>
#include <api/lease.hpp>
#include <core/condition.hpp>
#include <trifactor/cholesky.hpp>
#include <trifactor/lu.hpp>

namespace trifactor {

namespace {

using api::fail;
using api::inner_t;
using api::Lease;
using api::on_engine;

template <class T>
Device choose(Device wanted, index_t n) {
  return api::choose_device<inner_t<T>>(wanted, n, [&](const core::ValueTuning& tuning) { return n >= tuning.gpu_from; });
}

template <class T>
T fetched(const Buffer<T>& value) {
  T v;
  value.to_host(&v);
  return v;
}

/// What both factors are made of: a queue, and a matrix in its memory.
template <class T>
struct OnDevice {
  OnDevice(const char* call, MatrixView<const T> A, Device wanted)
      : lease((api::items(call, "A", A), choose<T>(wanted, std::min(A.rows, A.cols)))), matrix(*lease, A) {}

  Device device() { return (*lease).is_cuda() ? Device::Cuda : Device::Host; }
  /// A result, without a copy where it is there already.
  Matrix<T> on_host(Matrix<T> A) { return A.on_host() ? std::move(A) : A.to_host(); }

  /// Enqueues the norms of the columns of A, which the factorization is about to replace.
  void take_norms(core::NormOf of) {
    norms = Buffer<double>(*lease, matrix.cols());
    const MatrixView<const T> A = std::as_const(matrix).view();
    on_engine(*lease, [&](auto& e) { e.column_norms(api::items("rcond", "A", A), of, norms.data()); });
  }
  /// 1 / (|A| |A^-1|): solve(X, adjoint) is X := A^-1 X or A^-H X for one column in the queue's memory.
  template <class Solve>
  real_t<T> rcond(Solve solve) {
    const index_t n = matrix.rows();
    if (n == 0) return 1;
    double norm = 0;
    for (const double sum : norms.to_host()) norm = core::max_or_nan(norm, sum);
    Buffer<inner_t<T>> x(n), sign(n);
    Matrix<T> X(*lease, n, 1);
    const auto solver = [&](bool adjoint) {
      return [&, adjoint](inner_t<T>* b) {
        const std::size_t bytes = std::size_t(n) * sizeof(T);
        api::copy(*(*lease).state(), b, X.data(), bytes);
        solve(X.view(), adjoint);
        api::copy(*(*lease).state(), X.data(), b, bytes);
      };
    };
    return real_t<T>(
        core::reciprocal_condition(norm, core::inverse_norm1(n, x.data(), sign.data(), solver(false), solver(true))));
  }

  Lease lease;
  Matrix<T> matrix;
  Buffer<double> norms;
};

template <class T>
MatrixView<const T> as_column(const std::vector<T>& b) {
  return {b.data(), index_t(b.size()), 1, std::max<index_t>(index_t(b.size()), 1)};
}

template <class T>
std::vector<T> as_vector(const Matrix<T>& x) {
  return {x.data(), x.data() + x.rows()};
}

}  // namespace

template <Scalar T>
struct CholeskyFactor<T>::State : OnDevice<T> {
  State(MatrixView<const T> A, const CholeskyValueOptions& o)
      : OnDevice<T>("cholesky", A, o.mode == Mode::Hybrid && o.device == Device::Auto ? Device::Cuda : o.device),
        uplo(o.uplo) {}
  Uplo uplo;
  double shift = 0;
};

template <Scalar T>
CholeskyFactor<T>::CholeskyFactor(MatrixView<const T> A, const CholeskyValueOptions& o) try {
  if (A.rows != A.cols)
    fail("cholesky", "A is " + std::to_string(A.rows) + " x " + std::to_string(A.cols) + " but must be square");
  state_ = std::make_unique<State>(A, o);
  Queue& q = *state_->lease;
  Buffer<int> info(q, 1);
  Buffer<double> used(q, o.shift_tries > 0 ? 1 : 0);
  used.fill_zero();
  state_->take_norms(o.uplo == Uplo::Lower ? core::NormOf::HermitianLower : core::NormOf::HermitianUpper);
  trifactor::cholesky(q, o.uplo, state_->matrix, info,
                      {.mode = o.mode,
                       .tuning = o.tuning,
                       .shift_tries = o.shift_tries,
                       .shift_first = o.shift_first,
                       .shift_growth = o.shift_growth,
                       .shift_used = used});
  if (const int k = fetched(info); k != 0) throw NotPositiveDefinite(k);
  if (o.shift_tries > 0) state_->shift = fetched(used);
} TRIFACTOR_CATCH_BAD_ALLOC

template <Scalar T>
CholeskyFactor<T>::CholeskyFactor(CholeskyFactor&&) noexcept = default;
template <Scalar T>
CholeskyFactor<T>& CholeskyFactor<T>::operator=(CholeskyFactor&&) noexcept = default;
template <Scalar T>
CholeskyFactor<T>::~CholeskyFactor() = default;
template <Scalar T>
double CholeskyFactor<T>::shift() const noexcept {
  return state_->shift;
}
template <Scalar T>
Uplo CholeskyFactor<T>::uplo() const noexcept {
  return state_->uplo;
}
template <Scalar T>
Device CholeskyFactor<T>::device() const noexcept {
  return state_->device();
}

template <Scalar T>
Matrix<T> CholeskyFactor<T>::solve(MatrixView<const T> B) const try {
  api::items("CholeskyFactor::solve", "B", B);
  const index_t n = state_->matrix.rows();
  if (B.rows != n) fail("CholeskyFactor::solve", "B.rows", B.rows, "equal the order of A, " + std::to_string(n));
  Matrix<T> X(*state_->lease, B);
  cholesky_solve(*state_->lease, state_->uplo, state_->matrix, X);
  return state_->on_host(std::move(X));
} TRIFACTOR_CATCH_BAD_ALLOC

template <Scalar T>
std::vector<T> CholeskyFactor<T>::solve(const std::vector<T>& b) const try {
  return as_vector(solve(as_column(b)));
} TRIFACTOR_CATCH_BAD_ALLOC

template <Scalar T>
real_t<T> CholeskyFactor<T>::log_det() const try {
  Buffer<real_t<T>> value(*state_->lease, 1);
  cholesky_log_det(*state_->lease, state_->uplo, state_->matrix, value);
  return fetched(value);
} TRIFACTOR_CATCH_BAD_ALLOC

template <Scalar T>
Matrix<T> CholeskyFactor<T>::inverse() const try {
  Queue& q = *state_->lease;
  const index_t n = state_->matrix.rows();
  Matrix<T> X(q, n, n);
  cholesky_inverse(q, state_->uplo, state_->matrix, X);
  return state_->on_host(std::move(X));
} TRIFACTOR_CATCH_BAD_ALLOC

template <Scalar T>
real_t<T> CholeskyFactor<T>::rcond() const try {
  State& state = *state_;
  return state.rcond([&](MatrixView<T> X, bool) { cholesky_solve(*state.lease, state.uplo, state.matrix, X); });
} TRIFACTOR_CATCH_BAD_ALLOC

template <Scalar T>
Matrix<T> CholeskyFactor<T>::factor() const try {
  auto L = state_->matrix.to_host();
  for (index_t j = 0; j < L.cols(); ++j) {
    const bool is_lower = state_->uplo == Uplo::Lower;
    for (index_t i = is_lower ? 0 : j + 1; i < (is_lower ? j : L.rows()); ++i) L(i, j) = T(0);
  }
  return L;
} TRIFACTOR_CATCH_BAD_ALLOC

template <Scalar T>
struct LuFactor<T>::State : OnDevice<T> {
  State(MatrixView<const T> A, const LuValueOptions& o)
      : OnDevice<T>("lu", A, o.mode == Mode::Hybrid && o.device == Device::Auto ? Device::Cuda : o.device),
        pivots(*this->lease, std::min(A.rows, A.cols)) {}
  void check_square(const char* call) {
    const auto& A = this->matrix;
    if (A.rows() != A.cols())
      fail(call, "A is " + std::to_string(A.rows()) + " x " + std::to_string(A.cols()) + " but must be square");
  }
  /// The order of A, for calls that need it square and regular.
  index_t regular_order(const char* call) {
    check_square(call);
    if (zero_pivot != 0) throw Singular(zero_pivot);
    return this->matrix.rows();
  }
  Buffer<int> pivots;
  index_t zero_pivot = 0;
};

template <Scalar T>
LuFactor<T>::LuFactor(MatrixView<const T> A, const LuValueOptions& o) try : state_(std::make_unique<State>(A, o)) {
  Queue& q = *state_->lease;
  Buffer<int> info(q, 1);
  if (A.rows == A.cols) state_->take_norms(core::NormOf::General);
  trifactor::lu(q, state_->matrix, state_->pivots, info, {.mode = o.mode, .tuning = o.tuning});
  state_->zero_pivot = fetched(info);
} TRIFACTOR_CATCH_BAD_ALLOC

template <Scalar T>
LuFactor<T>::LuFactor(LuFactor&&) noexcept = default;
template <Scalar T>
LuFactor<T>& LuFactor<T>::operator=(LuFactor&&) noexcept = default;
template <Scalar T>
LuFactor<T>::~LuFactor() = default;
template <Scalar T>
index_t LuFactor<T>::singular_at() const noexcept {
  return state_->zero_pivot;
}
template <Scalar T>
Device LuFactor<T>::device() const noexcept {
  return state_->device();
}

template <Scalar T>
Matrix<T> LuFactor<T>::solve(MatrixView<const T> B, Op op) const try {
  api::items("LuFactor::solve", "B", B);
  const index_t n = state_->regular_order("LuFactor::solve");
  if (B.rows != n) fail("LuFactor::solve", "B.rows", B.rows, "equal the order of A, " + std::to_string(n));
  Matrix<T> X(*state_->lease, B);
  lu_solve(*state_->lease, op, state_->matrix, state_->pivots, X);
  return state_->on_host(std::move(X));
} TRIFACTOR_CATCH_BAD_ALLOC

template <Scalar T>
std::vector<T> LuFactor<T>::solve(const std::vector<T>& b, Op op) const try {
  return as_vector(solve(as_column(b), op));
} TRIFACTOR_CATCH_BAD_ALLOC

template <Scalar T>
Matrix<T> LuFactor<T>::inverse() const try {
  Queue& q = *state_->lease;
  const index_t n = state_->regular_order("LuFactor::inverse");
  Matrix<T> X(q, n, n);
  lu_inverse(q, state_->matrix, state_->pivots, X);
  return state_->on_host(std::move(X));
} TRIFACTOR_CATCH_BAD_ALLOC

template <Scalar T>
real_t<T> LuFactor<T>::rcond() const try {
  State& state = *state_;
  state.check_square("LuFactor::rcond");
  if (state.zero_pivot != 0) return 0;
  return state.rcond([&](MatrixView<T> X, bool adjoint) {
    lu_solve(*state.lease, adjoint ? Op::ConjTranspose : Op::None, state.matrix, state.pivots, X);
  });
} TRIFACTOR_CATCH_BAD_ALLOC

template <Scalar T>
Determinant<T> LuFactor<T>::det() const try {
  Queue& q = *state_->lease;
  Buffer<T> sign(q, 1);
  Buffer<real_t<T>> log_abs(q, 1);
  lu_det(q, state_->matrix, state_->pivots, sign, log_abs);
  return {fetched(sign), fetched(log_abs)};
} TRIFACTOR_CATCH_BAD_ALLOC

template <Scalar T>
Matrix<T> LuFactor<T>::factors() const try {
  return state_->matrix.to_host();
} TRIFACTOR_CATCH_BAD_ALLOC

template <Scalar T>
std::vector<int> LuFactor<T>::row_permutation() const try {
  Queue& q = *state_->lease;
  const index_t rows = state_->matrix.rows();
  Buffer<int> p(q, rows);
  lu_row_permutation(q, state_->pivots, state_->pivots.size(), p, rows);
  return p.to_host();
} TRIFACTOR_CATCH_BAD_ALLOC

#define TRIFACTOR_INSTANTIATE(T)                                              \
  template class TRIFACTOR_API CholeskyFactor<core::ScalarTraits<T>::Public>; \
  template class TRIFACTOR_API LuFactor<core::ScalarTraits<T>::Public>;
TRIFACTOR_FOR_EACH_SCALAR(TRIFACTOR_INSTANTIATE)
#undef TRIFACTOR_INSTANTIATE

}  // namespace trifactor
