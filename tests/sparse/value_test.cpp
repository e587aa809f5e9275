// sparse_cholesky: no queue, everything in the host's memory, on the device of the test or on the one that suits.
#include <sparse/calls.hpp>
#include <support/ratios.hpp>
#include <trifactor/info.hpp>

namespace trifactor::test {
namespace {

template <class T>
class SparseValue : public DeviceTest {
 protected:
  Device device() const { return on_cuda() ? Device::Cuda : Device::Host; }
};
TYPED_TEST_SUITE(SparseValue, Scalars, ScalarNames);

TYPED_TEST(SparseValue, FactorsAndSolvesMatricesOfTheHost) {
  using T = TypeParam;
  for (const auto& A : {poisson2d<T>(this->random, 9), full_matrix<T>(this->random, 40), poisson3d<T>(this->random, 5)})
    for (const Device device : {this->device(), Device::Auto}) {
      SCOPED_TRACE(A.name + " on device " + std::to_string(int(device)));
      const auto given = A.stored(Stored::Lower);
      auto F = sparse_cholesky(given.pattern(), given.values, {.device = device});
      if (device != Device::Auto) { EXPECT_EQ(F.device(), device); }
      const auto B = random_matrix<T>(this->random, A.n, 6, 2);
      EXPECT_LT(A.solve_ratio(as_host_matrix(F.solve(B.view())), B), threshold);
      const auto c = random_matrix<T>(this->random, A.n, 1);
      const auto x = F.solve(std::vector<T>(c.data(), c.data() + A.n));
      HostMatrix<T> X(A.n, 1);
      for (index_t i = 0; i < A.n; ++i) X(i, 0) = x[std::size_t(i)];
      EXPECT_LT(A.solve_ratio(X, c), threshold);
      EXPECT_GT(F.rcond(), 0);

      const auto other = A.with_new_values(this->random);
      const auto log_det = F.log_det();
      F.factor(other.stored(Stored::Lower).values);
      EXPECT_NE(F.log_det(), log_det);
      EXPECT_LT(other.solve_ratio(as_host_matrix(F.solve(B.view())), B), threshold);
      const auto shifted = sparse_cholesky(given.pattern(), given.values, {.device = device, .shift = 3});
      EXPECT_GT(shifted.log_det(), log_det);
    }
}

TYPED_TEST(SparseValue, SizeAndNumberOfFactorizationsChooseTheDevice) {
  using T = TypeParam;
  const auto given = poisson2d<T>(this->random, 8).stored(Stored::Lower);
  EXPECT_EQ(sparse_cholesky(given.pattern(), given.values).device(), Device::Host) << "a small one";
  const auto often = sparse_cholesky(given.pattern(), given.values, {.expected_factorizations = 100000000});
  EXPECT_EQ(often.device() == Device::Cuda, why_no_cuda().empty());
}

TYPED_TEST(SparseValue, HybridIsAMatterOfTheDevice) {
  using T = TypeParam;
  const auto A = poisson2d<T>(this->random, 8);
  const auto given = A.stored(Stored::Lower);
  EXPECT_THROW(sparse_cholesky(given.pattern(), given.values, {.device = Device::Host, .mode = Mode::Hybrid}),
               InvalidArgument);
  if (!why_no_cuda().empty()) {
    EXPECT_THROW(sparse_cholesky(given.pattern(), given.values, {.mode = Mode::Hybrid}), DeviceFault);
    return;
  }
  const auto F = sparse_cholesky(given.pattern(), given.values, {.mode = Mode::Hybrid});
  EXPECT_EQ(F.device(), Device::Cuda);
  const auto B = random_matrix<T>(this->random, A.n, 2);
  EXPECT_LT(A.solve_ratio(as_host_matrix(F.solve(B.view())), B), threshold);
}

TYPED_TEST(SparseValue, MistakesAreNamed) {
  using T = TypeParam;
  const auto A = banded<T>(this->random, 12, 2);
  auto given = A.stored(Stored::Lower);
  const SparseValueOptions options{.device = this->device()};
  auto F = sparse_cholesky(given.pattern(), given.values, options);
  EXPECT_THROW(F.solve(std::vector<T>(11)), InvalidArgument);
  EXPECT_THROW(F.solve(random_matrix<T>(this->random, 13, 1).view()), InvalidArgument);
  EXPECT_THROW(F.factor(std::span<const T>(given.values).first(3)), InvalidArgument);
  EXPECT_THROW(sparse_cholesky(given.pattern(), given.values, {.expected_factorizations = 0}), InvalidArgument);
  EXPECT_THROW(SparseCholeskyFactor<T>(nullptr, given.values, options), InvalidArgument);
  given.at(7, 7) = T(-1);
  try {
    F.factor(given.values);
    FAIL() << "the matrix is not positive definite";
  } catch (const NotPositiveDefinite& e) { EXPECT_EQ(e.order(), 8); }
  EXPECT_THROW(F.solve(std::vector<T>(12)), InvalidArgument) << "the last factorization failed";
  EXPECT_THROW(sparse_cholesky(given.pattern(), given.values, options), NotPositiveDefinite);
  auto moved = std::move(F);
  moved.factor(A.stored(Stored::Lower).values);
  EXPECT_GT(moved.rcond(), 0);
}

}  // namespace
}  // namespace trifactor::test
