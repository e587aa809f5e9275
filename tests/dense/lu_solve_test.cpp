// What LU factors are for: solves with A, A^T and A^H, the inverse, the determinant.
#include <support/factored.hpp>
#include <support/ratios.hpp>

namespace trifactor::test {
namespace {

template <class T>
struct Det {
  T sign;
  real_t<T> log_abs;
};

template <class T>
class LuSolve : public DeviceTest {
 protected:
  Det<T> det(const Factored<T>& lu) {
    DeviceMatrix<T> F(q, lu.F);
    DeviceArray<int> pivots(q, lu.pivots);
    DeviceArray<T> sign(q, 1, T(garbage));
    DeviceArray<real_t<T>> log_abs(q, 1, real_t<T>(garbage));
    lu_det(q, F.view(), pivots.data(), sign.data(), log_abs.data());
    q.sync();
    return {sign.download()[0], log_abs.download()[0]};
  }
  HostMatrix<T> inverse(const Factored<T>& lu, const HostMatrix<T>& X, const int* told = nullptr) {
    DeviceMatrix<T> F(q, lu.F), result(q, X);
    DeviceArray<int> pivots(q, lu.pivots), info(q, 1, told ? *told : 0);
    lu_inverse(q, F.view(), pivots.data(), result.view(), told ? info.data() : nullptr);
    q.sync();
    return result.download();
  }
};
TYPED_TEST_SUITE(LuSolve, AllScalars, ScalarNames);

TYPED_TEST(LuSolve, SolvesWithAAndItsTransposes) {
  for (index_t n : {0, 1, 2, 3, 5, 10, 50, 64, 65, 130, 300}) {
    const auto A = random_matrix<TypeParam>(this->random, n, n, n % 2 ? 1 : 0);
    const auto lu = factor_lu(this->q, A);
    EXPECT_EQ(lu.info, 0);
    for (Op op : all_ops)
      for (index_t columns : {0, 1, 2, 15}) {
        SCOPED_TRACE(::testing::Message() << name(op) << " n=" << n << " rhs=" << columns);
        const auto B = random_matrix<TypeParam>(this->random, n, columns, 2);
        const auto X = solve_lu(this->q, op, lu, B);
        EXPECT_LT(solve_ratio(op, A, X, B), threshold);
        EXPECT_TRUE(same_frame(B, X));
      }
  }
}

TYPED_TEST(LuSolve, SolvesLargerSystemsWithManyRightHandSides) {
  for (auto [n, columns] : {std::pair<index_t, index_t>{500, 1}, {500, 70}, {700, 300}}) {
    const auto A = random_matrix<TypeParam>(this->random, n, n);
    const auto lu = factor_lu(this->q, A);
    const auto B = random_matrix<TypeParam>(this->random, n, columns);
    for (Op op : all_ops)
      EXPECT_LT(solve_ratio(op, A, solve_lu(this->q, op, lu, B), B), threshold)
          << name(op) << " n=" << n << " rhs=" << columns;
  }
}

TYPED_TEST(LuSolve, SolvesWithoutInfo) {
  const auto A = random_matrix<TypeParam>(this->random, 20, 20), B = random_matrix<TypeParam>(this->random, 20, 3);
  const auto lu = factor_lu(this->q, A);
  DeviceMatrix<TypeParam> F(this->q, lu.F), X(this->q, B);
  DeviceArray<int> pivots(this->q, lu.pivots);
  lu_solve(this->q, Op::None, F.view(), pivots.data(), X.view());
  this->q.sync();
  EXPECT_LT(solve_ratio(Op::None, A, X.download(), B), threshold);
}

TYPED_TEST(LuSolve, IsSkippedWhenTheFactorizationFailed) {
  for (index_t n : {1, 5, 70, 300})
    for (int info : {1, int(n), -1}) {
      const auto A = random_matrix<TypeParam>(this->random, n, n), B = random_matrix<TypeParam>(this->random, n, 3, 1);
      auto lu = factor_lu(this->q, A);
      lu.F(n - 1, n - 1) = TypeParam(0);
      for (Op op : all_ops)
        EXPECT_TRUE(same_bits(solve_lu(this->q, op, lu, B, info), B)) << name(op) << " n=" << n << " info=" << info;
      const auto X = random_matrix<TypeParam>(this->random, n, n, 1);
      EXPECT_TRUE(same_bits(this->inverse(lu, X, &info), X)) << "n=" << n << " info=" << info;
    }
}

TYPED_TEST(LuSolve, Inverts) {
  for (index_t n : {0, 1, 2, 3, 10, 50, 65, 130, 300})
    for (index_t pad : {0, 3}) {
      SCOPED_TRACE(::testing::Message() << "n=" << n << " pad=" << pad);
      const auto A = random_matrix<TypeParam>(this->random, n, n, pad);
      HostMatrix<TypeParam> given(n, n, pad);
      for (index_t j = 0; j < n; ++j)
        for (index_t i = 0; i < n; ++i) given(i, j) = canary<TypeParam>(i + j);  // X is not read
      const int info = 0;
      for (const int* told : {static_cast<const int*>(nullptr), &info}) {
        const auto X = this->inverse(factor_lu(this->q, A), given, told);
        EXPECT_LT(inverse_ratio(A, X), threshold);
        EXPECT_TRUE(same_frame(given, X));
      }
    }
}

// The determinant of P L U from whole numbers is known without any arithmetic that rounds.
TYPED_TEST(LuSolve, DeterminantOfAMatrixWithAKnownOne) {
  using T = TypeParam;
  for (index_t n : {1, 2, 3, 4, 5, 6, 7, 8}) {
    HostMatrix<Wide<T>> L(n, n), U(n, n);
    Wide<T> sign = 1;
    double log_abs = 0;
    for (index_t j = 0; j < n; ++j) {
      const Wide<T> unit = ComplexScalar<T> ? make_scalar<Wide<T>>(0, j % 2 ? 1 : -1) : Wide<T>(j % 3 ? -1 : 1);
      const double size = double(this->random.integer(1, 3));
      L(j, j) = 1, U(j, j) = unit * size;
      sign *= unit, log_abs += std::log(size);
      for (index_t i = j + 1; i < n; ++i) {
        L(i, j) = double(this->random.integer(-1, 1));
        U(j, i) = make_scalar<Wide<T>>(double(this->random.integer(-2, 2)), double(this->random.integer(-2, 2)));
      }
    }
    auto A = product(L, U);
    for (index_t k = 0; k + 1 < n; ++k) {
      const index_t other = this->random.integer(k, n - 1);
      if (other == k) continue;
      for (index_t j = 0; j < n; ++j) std::swap(A(k, j), A(other, j));
      sign = -sign;
    }
    SCOPED_TRACE(::testing::Message() << "n=" << n);
    const auto lu = factor_lu(this->q, narrow<T>(A, 1));
    EXPECT_EQ(lu.info, 0);
    const auto [found, log_found] = this->det(lu);
    const double tolerance = 1e4 * eps<T>;  // the smallest pivot may be a thousand times less than the entries
    EXPECT_LT(std::abs(widen(found) - sign), tolerance);
    EXPECT_LT(std::abs(std::abs(widen(found)) - 1), 30 * eps<T>);
    EXPECT_NEAR(double(log_found), log_abs, tolerance);
  }
}

TYPED_TEST(LuSolve, DeterminantFromTheFactorsThemselves) {
  using T = TypeParam;
  for (index_t n : {10, 65, 200, 300})
    for (double scale : {1e-6, 1.0, 1e6}) {  // det A itself would over- or underflow
      auto A = random_matrix<T>(this->random, n, n);
      for (auto& a : A.storage) a *= real_t<T>(scale);
      const auto lu = factor_lu(this->q, A);
      Wide<T> sign = 1;
      double log_abs = 0;
      for (index_t k = 0; k < n; ++k) {
        const auto u = widen(lu.F(k, k));
        sign *= (lu.pivots[k] == k + 1 ? 1.0 : -1.0) * u / std::abs(u);
        log_abs += std::log(std::abs(u));
      }
      const auto [found, log_found] = this->det(lu);
      EXPECT_LT(std::abs(widen(found) - sign), 30 * double(n) * eps<T>) << "n=" << n << " scale=" << scale;
      EXPECT_NEAR(double(log_found), log_abs, log_tolerance(lu.F)) << "n=" << n << " scale=" << scale;
    }
}

TYPED_TEST(LuSolve, DeterminantOfTheEmptyMatrixIsOne) {
  const auto [sign, log_abs] = this->det(factor_lu(this->q, HostMatrix<TypeParam>(0, 0)));
  EXPECT_EQ(sign, TypeParam(1));
  EXPECT_EQ(log_abs, 0);
}

TYPED_TEST(LuSolve, DeterminantOfASingularMatrixIsZero) {
  for (index_t n : {1, 5, 70})
    for (index_t k : {index_t(0), n - 1}) {
      auto A = random_matrix<TypeParam>(this->random, n, n);
      for (index_t i = 0; i < n; ++i) A(i, k) = TypeParam(0);
      const auto [sign, log_abs] = this->det(factor_lu(this->q, A));
      EXPECT_EQ(sign, TypeParam(0)) << "n=" << n << " k=" << k;
      EXPECT_EQ(log_abs, -inf<TypeParam>) << "n=" << n << " k=" << k;
    }
}

}  // namespace
}  // namespace trifactor::test
