// tile::cholesky on every team, scalar and layout.
#include "support.hpp"

#include <tile/cholesky.hpp>

namespace trifactor::tile_test {
namespace {

template <class T>
class TileCholesky : public ::testing::Test {};
TYPED_TEST_SUITE(TileCholesky, Scalars, ScalarNames);

template <class T>
int factor(int threads, core::Tile<T> A) {
  return on_team(threads, [&](const auto& team) { return tile::cholesky(team, A); });
}
template <class T>
int factor(int threads, Stored<T>& A) {
  return factor(threads, A.tile());
}

/// Hermitian and positive definite, with imaginary off-diagonals; canaries above the diagonal.
template <class T>
Stored<T> positive_definite(int n, Layout layout = Layout::Packed) {
  Stored<T> B(n, n), A(n, n, layout);
  Random<T>(n + 1).fill(B);
  for (int j = 0; j < n; ++j)
    for (int i = j; i < n; ++i) {
      Wide sum = i == j ? 1 : 0;  // B B^H + 1
      for (int p = 0; p < n; ++p) sum += wide(B(i, p)) * std::conj(wide(B(j, p)));
      A(i, j) = narrow<T>(sum);
    }
  return A;
}

/// |A - L L^H| / (n |A| eps) of the leading triangles of order n.
template <class T>
double cholesky_ratio(int n, const Stored<T>& A, const Stored<T>& L) {
  if (n == 0) return 0;
  const auto lower_of_A = [&](int i, int j) { return i >= j ? wide(A(i, j)) : std::conj(wide(A(j, i))); };
  const double error = norm1(n, n, [&](int i, int j) {
    Wide rest = lower_of_A(i, j);
    for (int p = 0; p <= std::min(i, j); ++p) rest -= wide(L(i, p)) * std::conj(wide(L(j, p)));
    return rest;
  });
  return error / (n * norm1(n, n, lower_of_A) * eps<T>);
}

TYPED_TEST(TileCholesky, FactorsWithASmallResidualAndTouchesTheLowerTriangleOnly) {
  using T = TypeParam;
  for (const int n : all_sizes)
    for (const Layout layout : all_layouts) {
      const auto A = positive_definite<T>(n, layout);
      for (const int threads : all_teams) {
        const Case where{n, n, layout, threads};
        auto L = A;
        EXPECT_EQ(factor(threads, L), 0) << where;
        EXPECT_LT(cholesky_ratio(n, A, L), ratio_limit) << where;
        EXPECT_TRUE(L.same_but(A, on_or_below_diagonal)) << where;
        for (int j = 0; j < n; ++j) {
          EXPECT_GT(wide(L(j, j)).real(), 0) << where;
          EXPECT_EQ(wide(L(j, j)).imag(), 0) << where;
        }
      }
    }
}

TYPED_TEST(TileCholesky, IsTheSameBitwiseForEveryTeamLayoutAndIndexType) {
  using T = TypeParam;
  for (const int n : all_sizes) {
    auto serial = positive_definite<T>(n), by_int = serial;
    EXPECT_EQ(factor(1, serial), 0);
    EXPECT_EQ(tile::cholesky(tile::SerialTeam{}, by_int.int_tile()), 0);
    EXPECT_TRUE(by_int.same(serial)) << "n=" << n;
    for (const Layout layout : all_layouts)
      for (const int threads : all_teams) {
        auto L = positive_definite<T>(n, layout);
        EXPECT_EQ(factor(threads, L), 0);
        EXPECT_TRUE(L.same_entries(serial, on_or_below_diagonal)) << Case{n, n, layout, threads};
      }
  }
}

TYPED_TEST(TileCholesky, ReportsTheFailingOrderAndKeepsTheTriangleBeforeIt) {
  using T = TypeParam;
  LayoutCycle layouts;
  for (const int n : {1, 2, 3, 5, 8, 9, 10, 17, 33})
    for (int k = 0; k < n; ++k) {
      const Layout layout = layouts.next();
      auto A = positive_definite<T>(n, layout);
      A(k, k) = narrow<T>(-0.5);
      for (const int threads : all_teams) {
        const Case where{n, n, layout, threads, k};
        auto L = A;
        EXPECT_EQ(factor(threads, L), k + 1) << where;
        EXPECT_LT(cholesky_ratio(k, A, L), ratio_limit) << where;
        EXPECT_TRUE(L.same_but(A, on_or_below_diagonal)) << where;
      }
    }
}

TYPED_TEST(TileCholesky, TheTriangleBeforeTheFailureIsThatOfAMatrixThatDoesNotFail) {
  using T = TypeParam;
  for (const int n : {3, 9, 17}) {
    auto good = positive_definite<T>(n);
    EXPECT_EQ(factor(1, good), 0);
    for (int k = 0; k < n; ++k) {
      const Case where{n, n, Layout::Packed, 3, k};
      auto L = positive_definite<T>(n);
      L(k, k) = T(0);
      EXPECT_EQ(factor(3, L), k + 1) << where;
      EXPECT_TRUE(L.same_entries(good, [&](int i, int j) { return i < k && i >= j; })) << where;
    }
  }
}

TYPED_TEST(TileCholesky, APivotThatCancelsToExactlyZeroFails) {
  using T = TypeParam;
  const int n = 12;
  for (int k = 1; k < n; ++k) {
    Stored<T> A(n, n);
    for (int j = 0; j < n; ++j)
      for (int i = j; i < n; ++i) A(i, j) = T(i == j);
    A(k, k - 1) = narrow<T>(core::is_complex<T> ? Wide(0, 1) : Wide(1, 0));  // [1 .; i 1] is singular
    for (const int threads : all_teams) {
      auto L = A;
      EXPECT_EQ(factor(threads, L), k + 1) << "threads=" << threads;
    }
  }
}

TYPED_TEST(TileCholesky, PivotsThatAreNotPositiveAndFiniteFail) {
  using T = TypeParam;
  for (const auto bad : {nan_of<T>, inf_of<T>, -inf_of<T>, core::Real<T>(0), -core::Real<T>(0)})
    for (const int n : {1, 3, 8, 9, 17})
      for (int k = 0; k < n; ++k) {
        auto A = positive_definite<T>(n, Layout::Padded);
        A(k, k) = T(bad);
        for (const int threads : {1, 3}) {
          const Case where{n, n, Layout::Padded, threads, k};
          auto L = A;
          EXPECT_EQ(factor(threads, L), k + 1) << where;
          EXPECT_LT(cholesky_ratio(k, A, L), ratio_limit) << where;
          EXPECT_TRUE(L.same_but(A, on_or_below_diagonal)) << where;
        }
      }
}

TYPED_TEST(TileCholesky, ANaNOrInfBelowTheDiagonalFailsAtItsRow) {
  using T = TypeParam;
  for (const auto bad : {nan_of<T>, inf_of<T>, -inf_of<T>})
    for (const int n : {2, 9, 17})
      for (int i = 1; i < n; ++i)
        for (int j = 0; j < i; j += 3) {
          auto A = positive_definite<T>(n);
          A(i, j) = T(bad);
          for (const int threads : {1, 3}) {
            const Case where{n, n, Layout::Packed, threads, i};
            auto L = A;
            EXPECT_EQ(factor(threads, L), i + 1) << where;
            EXPECT_LT(cholesky_ratio(i, A, L), ratio_limit) << where;
          }
        }
}

TYPED_TEST(TileCholesky, IgnoresTheImaginaryPartOfTheDiagonal) {
  using T = TypeParam;
  if constexpr (core::is_complex<T>) {
    for (const int n : {1, 2, 8, 9, 17, 33})
      for (const auto imaginary : {core::Real<T>(-3), nan_of<T>}) {
        auto expected = positive_definite<T>(n), L = expected;
        for (int j = 0; j < n; ++j) L(j, j).im = imaginary;
        EXPECT_EQ(factor(1, expected), 0);
        EXPECT_EQ(factor(2, L), 0);
        EXPECT_TRUE(L.same(expected)) << "n=" << n;
      }
  }
}

TYPED_TEST(TileCholesky, ScalesToTheEndsOfTheRange) {
  using T = TypeParam;
  using R = core::Real<T>;
  const int even_exponents[] = {std::numeric_limits<R>::min_exponent * 3 / 4 / 2 * 2,
                                std::numeric_limits<R>::max_exponent * 3 / 4 / 2 * 2};
  for (const int exponent : even_exponents)
    for (const int n : {1, 9, 33}) {
      auto expected = positive_definite<T>(n), L = expected;
      const R scale = std::ldexp(R(1), exponent), root = std::ldexp(R(1), exponent / 2);
      for (int j = 0; j < n; ++j)
        for (int i = j; i < n; ++i) L(i, j) = L(i, j) * scale;
      EXPECT_EQ(factor(1, expected), 0);
      EXPECT_EQ(factor(2, L), 0);
      for (int j = 0; j < n; ++j)
        for (int i = j; i < n; ++i) expected(i, j) = expected(i, j) * root;
      EXPECT_TRUE(L.same_entries(expected, on_or_below_diagonal)) << "n=" << n << " exponent " << exponent;
    }
}

TYPED_TEST(TileCholesky, FactorsPositiveDenormals) {
  using T = TypeParam;
  using R = core::Real<T>;
  constexpr R tiny = std::numeric_limits<R>::denorm_min();
  Stored<T> A(3, 3);
  for (int j = 0; j < 3; ++j)
    for (int i = j; i < 3; ++i) A(i, j) = T(i == j ? tiny * R(16) : R(0));
  A(2, 0) = T(tiny * R(8));
  auto L = A;
  EXPECT_EQ(factor(2, L), 0);
  for (int j = 0; j < 3; ++j)
    for (int i = j; i < 3; ++i) {
      Wide product = 0;
      for (int p = 0; p <= j; ++p) product += wide(L(i, p)) * std::conj(wide(L(j, p)));
      EXPECT_LE(std::abs(product - wide(A(i, j))), 2 * double(tiny)) << i << ' ' << j;
    }
}

TYPED_TEST(TileCholesky, AnEmptyMatrixNeedsNoMemory) {
  for (const int threads : all_teams) EXPECT_EQ(factor(threads, core::Tile<TypeParam>{nullptr, 0, 0, 1, 1}), 0);
}

}  // namespace
}  // namespace trifactor::tile_test
