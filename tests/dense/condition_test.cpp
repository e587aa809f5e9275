// rcond() of dense factors, against an explicit inverse.
#include <support/condition.hpp>
#include <support/device.hpp>
#include <trifactor/trifactor.hpp>

namespace trifactor::test {
namespace {

constexpr index_t orders[] = {1, 2, 3, 5, 10, 50};

template <class T>
class Condition : public DeviceTest {
 protected:
  Random fixed{20};  // a third of the truth is likely, not certain: always the same matrices
  const Device device = on_cuda() ? Device::Cuda : Device::Host;
  const double hard = sizeof(real_t<T>) == 4 ? 1e3 : 1e9;  // a condition that leaves some digits

  real_t<T> by_lu(const HostMatrix<T>& A) { return lu(A.view(), {.device = device}).rcond(); }
  void expect_lu(const HostMatrix<T>& A, const char* name) {
    SCOPED_TRACE(::testing::Message() << name << " n=" << A.rows);
    expect_rcond<T>(by_lu(A), true_rcond(A), A.rows);
  }
  void expect_cholesky(const HostMatrix<T>& A, const char* name) {
    for (Uplo uplo : both_uplos) {
      SCOPED_TRACE(::testing::Message() << name << " n=" << A.rows << (uplo == Uplo::Lower ? " lower" : " upper"));
      const auto given = only_triangle(A, uplo);  // the other triangle is not read
      const auto F = cholesky(given.view(), {.uplo = uplo, .device = device});
      expect_rcond<T>(F.rcond(), true_rcond(A), A.rows);
      EXPECT_EQ(F.rcond(), F.rcond());
    }
  }
};
TYPED_TEST_SUITE(Condition, Scalars, ScalarNames);

TYPED_TEST(Condition, IsNearThatOfAnExplicitInverse) {
  using T = TypeParam;
  for (index_t n : orders) {
    this->expect_lu(random_matrix<T>(this->fixed, n, n, 2), "random");
    this->expect_lu(with_singular_values<T>(this->fixed, graded(n, this->hard)), "graded");
    this->expect_cholesky(random_spd<T>(this->fixed, n, 2), "random");
    this->expect_cholesky(with_eigenvalues<T>(this->fixed, graded(n, this->hard)), "graded");
    auto scaled = random_matrix<T>(this->fixed, n, n);
    for (index_t i = 0; i < n; i += 2)
      for (index_t j = 0; j < n; ++j) scaled(i, j) *= real_t<T>(1e-10);
    this->expect_lu(scaled, "scaled rows");
    if (n <= (sizeof(real_t<T>) == 4 ? 5 : 10)) {
      this->expect_lu(hilbert<T>(n), "Hilbert");
      this->expect_cholesky(hilbert<T>(n), "Hilbert");
    }
  }
}

/// Where threads share the columns, and the norm of one triangle is that of both.
TYPED_TEST(Condition, OfALargeMatrixIsNearThatOfItsInverse) {
  using T = TypeParam;
  const auto norm_of = [](const Matrix<T>& A) {
    double largest = 0;
    for (index_t j = 0; j < A.cols(); ++j) {
      double sum = 0;
      for (index_t i = 0; i < A.rows(); ++i) sum += std::abs(A(i, j));
      largest = std::max(largest, sum);
    }
    return largest;
  };
  const index_t n = 300;
  auto A = random_spd<T>(this->fixed, n, 1);
  for (index_t i = 1; i < n; ++i)
    set_hermitian<T>(A, i, 0, T(3));  // column 0 is the largest, by its row or column alone
  A(0, 0) = T(real_t<T>(n));
  for (Uplo uplo : both_uplos) {
    const auto F = cholesky(only_triangle(A, uplo).view(), {.uplo = uplo, .device = this->device});
    expect_rcond<T>(F.rcond(), 1 / norm1(widen(A)) / norm_of(F.inverse()), n);
  }
  A(n - 1, 7) = T(real_t<T>(1000));
  const auto F = lu(A.view(), {.device = this->device});
  expect_rcond<T>(F.rcond(), 1 / norm1(widen(A)) / norm_of(F.inverse()), n);
}

TYPED_TEST(Condition, OfTheIdentityIsOneAtAnyScale) {
  using T = TypeParam;
  using R = real_t<T>;
  for (index_t n : {0, 1, 2, 10, 70})
    for (R scale : {R(1), R(1e-18), R(1e18), std::ldexp(std::numeric_limits<R>::min(), 3),
                    std::numeric_limits<R>::max() / 1024}) {
      SCOPED_TRACE(::testing::Message() << "n=" << n << " scale " << scale);
      HostMatrix<T> A(n, n);
      for (index_t j = 0; j < n; ++j) A(j, j) = T(scale);
      const double tolerance = 100 * eps<T>;
      EXPECT_NEAR(double(cholesky(A.view(), {.device = this->device}).rcond()), 1, tolerance);
      EXPECT_NEAR(double(this->by_lu(A)), 1, tolerance);
    }
  HostMatrix<T> A(2, 2);
  A(0, 0) = T(1), A(1, 1) = T(R(1e-30));
  EXPECT_NEAR(double(this->by_lu(A)) / 1e-30, 1, 1e-6);
}

TYPED_TEST(Condition, OfHilbertMatricesIsBelowRounding) {
  using T = TypeParam;
  EXPECT_LT(double(this->by_lu(hilbert<T>(60))), eps<T>);
  EXPECT_GT(double(this->by_lu(hilbert<T>(3))), 1e-4);
}

TYPED_TEST(Condition, OfSingularMatricesAndNotANumberIsZero) {
  using T = TypeParam;
  for (index_t n : {1, 2, 5, 30}) {
    auto A = random_matrix<T>(this->random, n, n);
    for (index_t i = 0; i < n; ++i) A(i, n / 2) = T(0);
    EXPECT_EQ(this->by_lu(A), 0);
    auto B = random_matrix<T>(this->random, n, n);
    B(n - 1, n / 2) = T(nan<T>);
    EXPECT_EQ(this->by_lu(B), 0) << n;
    B(n - 1, n / 2) = T(inf<T>);
    EXPECT_EQ(this->by_lu(B), 0) << n;
  }
  EXPECT_THROW(this->by_lu(random_matrix<T>(this->random, 4, 3)), InvalidArgument);
}

}  // namespace
}  // namespace trifactor::test
