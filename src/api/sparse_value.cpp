// The value form of sparse matrices: chooses the device, and calls SparseCholesky.
#include <api/check.hpp>
#include <api/lease.hpp>
#include <trifactor/sparse.hpp>

namespace trifactor {

namespace {

using namespace api;

template <class T>
Device device_for(const SparsePlan& plan, const SparseValueOptions& o) {
  if (o.expected_factorizations < 1)
    fail("sparse_cholesky", "expected_factorizations", o.expected_factorizations, "be at least 1");
  if (o.mode == Mode::Hybrid && o.device == Device::Host) fail_hybrid_on_host("sparse_cholesky");
  const Device asked = o.mode == Mode::Hybrid && o.device == Device::Auto ? Device::Cuda : o.device;
  return choose_device<inner_t<T>>(asked, plan.n(), [&](const core::ValueTuning& tuning) {
    return plan.flops() * double(o.expected_factorizations) >= 1e6 * double(tuning.gpu_mflops);
  });
}

const SparsePlan& checked_for_value(const std::shared_ptr<const SparsePlan>& plan) {
  if (!plan) fail("sparse_cholesky", "plan must not be null");
  return *plan;
}

}  // namespace

template <Scalar T>
struct SparseCholeskyFactor<T>::State {
  State(std::shared_ptr<const SparsePlan> plan, const SparseValueOptions& o)
      : lease(device_for<T>(checked_for_value(plan), o)),
        factorization(*lease, std::move(plan), {.max_device_bytes = on_device() ? o.max_device_bytes : 0, .mode = o.mode}),
        values(*lease, on_device() ? factorization.plan().entries() : 0) {}
  bool on_device() { return (*lease).is_cuda(); }

  Lease lease;
  SparseCholesky<T> factorization;
  Buffer<T> values;  // on a device
};

template <Scalar T>
SparseCholeskyFactor<T>::SparseCholeskyFactor(std::shared_ptr<const SparsePlan> plan, std::span<const T> values,
                                              const SparseValueOptions& o)
    try : state_(std::make_unique<State>(std::move(plan), o)) {
  factor(values, real_t<T>(o.shift));
} TRIFACTOR_CATCH_BAD_ALLOC
template <Scalar T>
SparseCholeskyFactor<T>::SparseCholeskyFactor(SparseCholeskyFactor&&) noexcept = default;
template <Scalar T>
SparseCholeskyFactor<T>& SparseCholeskyFactor<T>::operator=(SparseCholeskyFactor&&) noexcept = default;
template <Scalar T>
SparseCholeskyFactor<T>::~SparseCholeskyFactor() = default;

template <Scalar T>
void SparseCholeskyFactor<T>::factor(std::span<const T> values, real_t<T> shift) try {
  State& state = *state_;
  check_values("sparse_cholesky", values.size(), std::size_t(plan().entries()));
  if (!state.on_device()) return state.factorization.factor(values, shift);
  api::copy(*(*state.lease).state(), values.data(), state.values.data(), values.size_bytes());
  state.factorization.factor({state.values.data(), values.size()}, shift);
} TRIFACTOR_CATCH_BAD_ALLOC

template <Scalar T>
Matrix<T> SparseCholeskyFactor<T>::solve(MatrixView<const T> B) const try {
  constexpr const char* call = "SparseCholeskyFactor::solve";
  items(call, "B", B);
  if (B.rows != plan().n()) fail(call, "B.rows", B.rows, "equal the order of A, " + std::to_string(plan().n()));
  Matrix<T> X(*state_->lease, B);
  state_->factorization.solve(X.view());
  return X.on_host() ? std::move(X) : X.to_host();
} TRIFACTOR_CATCH_BAD_ALLOC

template <Scalar T>
std::vector<T> SparseCholeskyFactor<T>::solve(const std::vector<T>& b) const try {
  return state_->factorization.solve(b);
} TRIFACTOR_CATCH_BAD_ALLOC

template <Scalar T>
real_t<T> SparseCholeskyFactor<T>::log_det() const {
  return state_->factorization.log_det();
}
template <Scalar T>
real_t<T> SparseCholeskyFactor<T>::rcond() const {
  return state_->factorization.rcond();
}
template <Scalar T>
Device SparseCholeskyFactor<T>::device() const noexcept {
  return state_->on_device() ? Device::Cuda : Device::Host;
}
template <Scalar T>
const SparsePlan& SparseCholeskyFactor<T>::plan() const noexcept {
  return state_->factorization.plan();
}

#define TRIFACTOR_INSTANTIATE(T) template class TRIFACTOR_API SparseCholeskyFactor<core::ScalarTraits<T>::Public>;
TRIFACTOR_FOR_EACH_SCALAR(TRIFACTOR_INSTANTIATE)
#undef TRIFACTOR_INSTANTIATE

}  // namespace trifactor
