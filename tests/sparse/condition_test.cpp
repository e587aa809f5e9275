// rcond() of sparse factors, against an explicit inverse.
#include <sparse/matrices.hpp>
#include <support/condition.hpp>
#include <support/device.hpp>

namespace trifactor::test {
namespace {

template <class T>
class SparseCondition : public DeviceTest {
 protected:
  Random fixed{20};  // a third of the truth is likely, not certain: always the same matrices

  /// Of A + shift I. The values are gone when rcond() is asked for.
  real_t<T> rcond(const StoredMatrix<T>& given, const AnalyzeOptions& options = {}, real_t<T> shift = 0) {
    SparseCholesky<T> F(q, analyze(given.pattern(), options));
    DeviceArray<T> values(q, given.values);
    F.factor(std::span<const T>(values.data(), given.values.size()), shift);
    values.upload(std::vector<T>(given.values.size(), T(real_t<T>(1e6))));
    return F.rcond();
  }
};
TYPED_TEST_SUITE(SparseCondition, Scalars, ScalarNames);

TYPED_TEST(SparseCondition, IsNearThatOfAnExplicitInverse) {
  using T = TypeParam;
  std::vector<SparseMatrix<T>> all{poisson2d<T>(this->fixed, 7), arrow<T>(this->fixed, 30, true),
                                   banded<T>(this->fixed, 40, 3), random_pattern<T>(this->fixed, 50, 2)};
  for (index_t n : {1, 2, 3, 5, 10, 50}) all.push_back(full_matrix<T>(this->fixed, n));
  for (const auto& A : all)
    for (Stored stored : {Stored::Lower, Stored::Upper, Stored::Full})
      for (real_t<T> shift : {real_t<T>(0), real_t<T>(3), real_t<T>(-0.01)}) {
        SCOPED_TRACE(::testing::Message() << A.name << " n=" << A.n << " stored " << int(stored) << " shift " << shift);
        auto full = A.full();
        for (index_t j = 0; j < A.n; ++j) full(j, j) += shift;
        expect_rcond<T>(this->rcond(A.stored(stored), {}, shift), true_rcond(full), A.n);
      }
}

/// The inverse of the one-dimensional Laplacian is known: |A^-1| = (n + 1)^2 / 8 for odd n.
TYPED_TEST(SparseCondition, OfALongTridiagonalMatrix) {
  using T = TypeParam;
  const index_t n = 199;
  SparseMatrix<T> A{"laplacian", n, {}};
  for (index_t j = 0; j < n; ++j) {
    A.lower[{j, j}] = T(2);
    if (j + 1 < n) A.lower[{j, j + 1}] = T(-1);
  }
  expect_rcond<T>(this->rcond(A.stored(Stored::Lower)), 1 / (4 * 200.0 * 200.0 / 8), n);
}

TYPED_TEST(SparseCondition, OfTheIdentityIsOne) {
  using T = TypeParam;
  for (index_t n : {0, 1, 2, 50}) {
    SparseMatrix<T> A{"identity", n, {}};
    for (index_t j = 0; j < n; ++j) A.lower[{j, j}] = T(1);
    EXPECT_NEAR(double(this->rcond(A.stored(Stored::Lower))), 1, 10 * eps<T>);
    EXPECT_NEAR(double(this->rcond(A.stored(Stored::Full), {}, 4)), 1, 10 * eps<T>);
  }
}

/// Diagonals with gaps are filled by the shift, and entries of the same place count as their sum.
TYPED_TEST(SparseCondition, CountsWhatIsFactored) {
  using T = TypeParam;
  using R = real_t<T>;
  StoredMatrix<T> A{2, Stored::Lower, {0, 2, 2}, {1, 1}, {T(R(100)), T(R(-99))}};  // [5 1; 1 5] with the shift
  HostMatrix<T> full(2, 2);
  full(0, 0) = full(1, 1) = T(5), full(0, 1) = full(1, 0) = T(1);
  expect_rcond<T>(this->rcond(A, {.duplicates = true}, 5), true_rcond(full), 2);
  EXPECT_NEAR(double(this->rcond(A, {.duplicates = true}, 5)), 4.0 / 6, 1e-5);
}

TYPED_TEST(SparseCondition, NeedsAFactorization) {
  using T = TypeParam;
  auto given = full_matrix<T>(this->random, 5).stored(Stored::Lower);
  SparseCholesky<T> F(this->q, analyze(given.pattern()));
  EXPECT_THROW(F.rcond(), InvalidArgument);
  const auto try_factor = [&] {
    const DeviceArray<T> values(this->q, given.values);
    return F.try_factor(std::span<const T>(values.data(), given.values.size()));
  };
  EXPECT_EQ(try_factor(), 0);
  EXPECT_GT(F.rcond(), 0);
  given.at(3, 3) = T(nan<T>);
  EXPECT_EQ(try_factor(), 4);
  EXPECT_THROW(F.rcond(), InvalidArgument);
}

}  // namespace
}  // namespace trifactor::test
