// What a Cholesky factor of one matrix is for: solves, the inverse, the logarithm of the determinant.
#include <support/batches.hpp>

namespace trifactor::test {
namespace {

template <class T>
class CholeskySolve : public DeviceTest {
 protected:
  /// The factor of one triangle of A, canaries in the other.
  Factored<T> factor(Uplo uplo, const HostMatrix<T>& A) { return factor_cholesky(q, uplo, only_triangle(A, uplo)); }
  HostMatrix<T> inverse(Uplo uplo, const HostMatrix<T>& F, const HostMatrix<T>& X, const int* told = nullptr) {
    DeviceMatrix<T> L(q, F), result(q, X);
    DeviceArray<int> info(q, 1, told ? *told : 0);
    cholesky_inverse(q, uplo, L.view(), result.view(), told ? info.data() : nullptr);
    q.sync();
    EXPECT_TRUE(same_bits(L.download(), F)) << "the inverse wrote to the factor";
    return result.download();
  }
  real_t<T> log_det(Uplo uplo, const HostMatrix<T>& F, const int* told = nullptr) {
    DeviceMatrix<T> L(q, F);
    DeviceArray<int> info(q, 1, told ? *told : 0);
    DeviceArray<real_t<T>> result(q, 1, real_t<T>(garbage));
    cholesky_log_det(q, uplo, MatrixView<const T>(L.view()), result.data(), told ? info.data() : nullptr);
    q.sync();
    return result.download()[0];
  }
};
TYPED_TEST_SUITE(CholeskySolve, AllScalars, ScalarNames);

TYPED_TEST(CholeskySolve, SolvesForAnyNumberOfRightHandSides) {
  for (Uplo uplo : both_uplos)
    for (index_t n : {0, 1, 2, 3, 5, 10, 50, 64, 65, 130, 300}) {
      const auto A = random_spd<TypeParam>(this->random, n, n % 2 ? 1 : 0);
      const auto L = this->factor(uplo, A);
      EXPECT_EQ(L.info, 0);
      for (index_t columns : {0, 1, 2, 15}) {
        SCOPED_TRACE(::testing::Message() << name(uplo) << " n=" << n << " rhs=" << columns);
        const auto B = random_matrix<TypeParam>(this->random, n, columns, 2);
        const auto X = solve_cholesky(this->q, uplo, L.F, B);
        EXPECT_LT(solve_ratio(Op::None, A, X, B), threshold);
        EXPECT_TRUE(same_frame(B, X));
      }
    }
}

TYPED_TEST(CholeskySolve, SolvesLargerSystems) {
  for (auto [n, columns] : {std::pair<index_t, index_t>{500, 1}, {500, 300}, {1100, 5}}) {
    const auto A = random_spd<TypeParam>(this->random, n);
    const auto B = random_matrix<TypeParam>(this->random, n, columns);
    for (Uplo uplo : both_uplos) {
      const auto L = this->factor(uplo, A);
      EXPECT_EQ(L.info, 0);
      EXPECT_LT(solve_ratio(Op::None, A, solve_cholesky(this->q, uplo, L.F, B), B), threshold)
          << name(uplo) << " n=" << n << " rhs=" << columns;
    }
  }
}

TYPED_TEST(CholeskySolve, SolvesIllConditionedSystemsBackwardStably) {
  using T = TypeParam;
  for (index_t n : {10, 50, 100})
    for (Uplo uplo : both_uplos) {
      const auto A = with_eigenvalues<T>(this->random, graded(n, std::sqrt(0.1 / eps<T>)));
      const auto L = this->factor(uplo, A);
      ASSERT_EQ(L.info, 0);
      const auto B = random_matrix<T>(this->random, n, 2);
      EXPECT_LT(solve_ratio(Op::None, A, solve_cholesky(this->q, uplo, L.F, B), B), threshold)
          << name(uplo) << " n=" << n;
    }
}

TYPED_TEST(CholeskySolve, SolvesWithoutInfo) {
  for (Uplo uplo : both_uplos) {
    const auto A = random_spd<TypeParam>(this->random, 20);
    const auto B = random_matrix<TypeParam>(this->random, 20, 3);
    DeviceMatrix<TypeParam> L(this->q, this->factor(uplo, A).F), X(this->q, B);
    cholesky_solve(this->q, uplo, L.view(), X.view());
    this->q.sync();
    EXPECT_LT(solve_ratio(Op::None, A, X.download(), B), threshold);
  }
}

TYPED_TEST(CholeskySolve, IsSkippedWhenTheFactorizationFailed) {
  for (Uplo uplo : both_uplos)
    for (index_t n : {1, 5, 70, 300}) {
      auto A = random_spd<TypeParam>(this->random, n);
      A(n / 2, n / 2) = TypeParam(nan<TypeParam>);
      const auto L = this->factor(uplo, A);
      EXPECT_EQ(L.info, n / 2 + 1);
      for (index_t columns : {1, 40}) {
        const auto B = random_matrix<TypeParam>(this->random, n, columns, 1);
        EXPECT_TRUE(same_bits(solve_cholesky(this->q, uplo, L.F, B, L.info), B)) << name(uplo) << " n=" << n;
      }
      const auto X = random_matrix<TypeParam>(this->random, n, n, 1);
      EXPECT_TRUE(same_bits(this->inverse(uplo, L.F, X, &L.info), X)) << name(uplo) << " n=" << n;
      EXPECT_TRUE(std::isnan(this->log_det(uplo, L.F, &L.info)));
    }
}

TYPED_TEST(CholeskySolve, InvertsIntoBothTriangles) {
  for (Uplo uplo : both_uplos)
    for (index_t n : {0, 1, 2, 3, 10, 50, 65, 130, 300})
      for (index_t pad : {0, 3}) {
        SCOPED_TRACE(::testing::Message() << name(uplo) << " n=" << n << " pad=" << pad);
        const auto A = random_spd<TypeParam>(this->random, n, pad);
        HostMatrix<TypeParam> given(n, n, pad);
        for (index_t j = 0; j < n; ++j)
          for (index_t i = 0; i < n; ++i) given(i, j) = canary<TypeParam>(i + j);  // X is not read
        const int info = 0;
        for (const int* told : {static_cast<const int*>(nullptr), &info}) {
          const auto X = this->inverse(uplo, this->factor(uplo, A).F, given, told);
          EXPECT_LT(inverse_ratio(A, X), threshold);
          EXPECT_TRUE(same_frame(given, X));
        }
      }
}

TYPED_TEST(CholeskySolve, LogDetIsTwiceTheSumOverTheDiagonal) {
  using T = TypeParam;
  for (Uplo uplo : both_uplos)
    for (index_t n : {0, 1, 2, 10, 65, 300, 1000})
      for (double scale : {1e-6, 1.0, 1e6}) {  // det A itself would over- or underflow
        HostMatrix<T> F(n, n, 1);
        for (index_t j = 0; j < n; ++j) F(j, j) = T(real_t<T>(this->random.uniform(0.5, 2) * scale));
        EXPECT_LT(std::abs(double(this->log_det(uplo, F)) - log_det_of(F)), log_tolerance(F))
            << name(uplo) << " n=" << n;
      }
}

TYPED_TEST(CholeskySolve, LogDetOfTheInverseHasTheOtherSign) {
  using T = TypeParam;
  const index_t n = 40;
  for (Uplo uplo : both_uplos) {
    const auto A = random_spd<T>(this->random, n);
    const auto L = this->factor(uplo, A);
    const auto X = this->inverse(uplo, L.F, HostMatrix<T>(n, n));
    EXPECT_LT(std::abs(double(this->log_det(uplo, L.F)) + double(this->log_det(uplo, this->factor(uplo, X).F))),
              1e4 * n * eps<T>);
  }
}

}  // namespace
}  // namespace trifactor::test
