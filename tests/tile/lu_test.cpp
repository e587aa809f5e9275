// tile::lu on every team, scalar, shape and layout.
#include "support.hpp"

#include <tile/lu.hpp>

#include <numeric>

namespace trifactor::tile_test {
namespace {

template <class T>
class TileLu : public ::testing::Test {};
TYPED_TEST_SUITE(TileLu, Scalars, ScalarNames);

constexpr int pivot_canary = -77;

struct Factored {
  int info;
  std::vector<int> pivots;  // min(m, n) of them
};

/// Factors A in place; pivots past the last, and candidates past the last rank, must not be written.
template <class T>
Factored lu_factor(int threads, core::Tile<T> A, index_t first = 0) {
  using Candidate = tile::PivotCandidate<core::Real<T>>;
  std::vector<int> pivots(std::min(A.rows, A.cols) + 1, pivot_canary);
  std::vector<Candidate> candidates(threads + 1, Candidate{-2, pivot_canary});
  const int info =
      on_team(threads, [&](const auto& team) { return tile::lu(team, A, pivots.data(), first, candidates.data()); });
  EXPECT_EQ(pivots.back(), pivot_canary);
  EXPECT_EQ(candidates.back().row, pivot_canary);
  pivots.pop_back();
  return {info, pivots};
}

template <class T>
Stored<T> random_matrix(int m, int n, Layout layout = Layout::Packed) {
  Stored<T> A(m, n, layout);
  Random<T>(100 * m + n).fill(A);
  return A;
}

/// Which row of A is row i of P A.
std::vector<int> rows_of(int m, const std::vector<int>& pivots) {
  std::vector<int> order(m);
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t k = 0; k < pivots.size(); ++k) std::swap(order[k], order.at(pivots[k] - 1));
  return order;
}

/// Entry (i, j) of P A - L U.
template <class T>
Wide residual(const std::vector<int>& order, const Stored<T>& A, const Stored<T>& LU, int i, int j) {
  Wide rest = wide(A(order[i], j));
  for (int p = 0; p <= std::min({i, j, LU.rows - 1, LU.cols - 1}); ++p)
    rest -= (p == i ? Wide(1) : wide(LU(i, p))) * wide(LU(p, j));
  return rest;
}

/// |P A - L U| / (n |A| eps)
template <class T>
double lu_ratio(const Stored<T>& A, const Stored<T>& LU, const std::vector<int>& pivots) {
  const int m = A.rows, n = A.cols;
  if (m == 0 || n == 0) return 0;
  const auto order = rows_of(m, pivots);
  const double error = norm1(m, n, [&](int i, int j) { return residual(order, A, LU, i, j); });
  const double size = norm1(m, n, [&](int i, int j) { return wide(A(i, j)); });
  return error == 0 ? 0 : error / (n * size * eps<T>);
}

/// Pivots of the textbook's elimination: the first row with the largest |re| + |im|.
template <class T>
std::vector<int> reference_pivots(const Stored<T>& A) {
  const int m = A.rows, n = A.cols;
  std::vector<std::vector<Wide>> rows(m, std::vector<Wide>(n));
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) rows[i][j] = wide(A(i, j));
  const auto size = [](Wide a) { return std::abs(a.real()) + std::abs(a.imag()); };
  std::vector<int> pivots;
  for (int k = 0; k < std::min(m, n); ++k) {
    int p = k;
    for (int i = k + 1; i < m; ++i)
      if (size(rows[i][k]) > size(rows[p][k])) p = i;
    pivots.push_back(p + 1);
    std::swap(rows[k], rows[p]);
    if (rows[k][k] == 0.0) continue;
    for (int i = k + 1; i < m; ++i) {
      const Wide l = rows[i][k] / rows[k][k];
      for (int j = k; j < n; ++j) rows[i][j] -= l * rows[k][j];
    }
  }
  return pivots;
}

struct Shape {
  int m, n;
};
std::vector<Shape> all_shapes() {
  std::vector<Shape> shapes;
  for (const int n : all_sizes) shapes.push_back({n, n});
  for (const int m : {0, 1, 2, 3, 5, 8, 17, 50})
    for (const int n : {0, 1, 2, 3, 5, 8, 17, 50})
      if (m != n) shapes.push_back({m, n});
  return shapes;
}

TYPED_TEST(TileLu, FactorsEveryShapeWithASmallResidualAndTheReferencePivots) {
  using T = TypeParam;
  LayoutCycle layouts;
  for (const auto [m, n] : all_shapes()) {
    const Layout layout = layouts.next();
    const auto A = random_matrix<T>(m, n, layout);
    for (const int threads : all_teams) {
      const Case where{m, n, layout, threads};
      auto LU = A;
      const auto [info, pivots] = lu_factor(threads, LU.tile());
      EXPECT_EQ(info, 0) << where;
      EXPECT_EQ(pivots, reference_pivots(A)) << where;
      EXPECT_LT(lu_ratio(A, LU, pivots), ratio_limit) << where;
      EXPECT_TRUE(LU.same_but(A, anywhere)) << where;
      for (int j = 0; j < n; ++j)
        for (int i = j + 1; i < m; ++i)
          EXPECT_LT(std::abs(wide(LU(i, j))), 1.5) << where;  // sqrt(2), as the largest |re| + |im| won
    }
  }
}

TYPED_TEST(TileLu, IsTheSameBitwiseForEveryTeamLayoutAndIndexType) {
  using T = TypeParam;
  for (const auto [m, n] : {Shape{1, 1}, {2, 2}, {8, 8}, {33, 9}, {9, 17}, {50, 50}}) {
    auto serial = random_matrix<T>(m, n), by_int = serial;
    const auto expected = lu_factor(1, serial.tile());
    std::vector<int> pivots(std::min(m, n));
    tile::PivotCandidate<core::Real<T>> candidate;
    EXPECT_EQ(tile::lu(tile::SerialTeam{}, by_int.int_tile(), pivots.data(), 0, &candidate), expected.info);
    EXPECT_EQ(pivots, expected.pivots);
    EXPECT_TRUE(by_int.same(serial)) << m << " x " << n;
    for (const Layout layout : all_layouts)
      for (const int threads : all_teams) {
        const Case where{m, n, layout, threads};
        auto LU = random_matrix<T>(m, n, layout);
        const auto result = lu_factor(threads, LU.tile());
        EXPECT_EQ(result.info, expected.info) << where;
        EXPECT_EQ(result.pivots, expected.pivots) << where;
        EXPECT_TRUE(LU.same_entries(serial, anywhere)) << where;
      }
  }
}

TYPED_TEST(TileLu, TheFirstOfEqualRowsWinsThePivotSearch) {
  using T = TypeParam;
  std::mt19937 generator(5);
  const Wide equal[] = {{1, 0}, {-1, 0}, {0, 1}, {-0.5, 0.5}, {0.5, 0.5}};  // equal in |re| + |im|
  const int kinds = core::is_complex<T> ? 5 : 2;
  for (const int m : {2, 3, 5, 9, 17, 33})
    for (int repeat = 0; repeat < 10; ++repeat) {
      Stored<T> A(m, 2, Layout::Padded);  // two columns: the arithmetic is exact
      for (int i = 0; i < m; ++i)
        for (int j = 0; j < 2; ++j) A(i, j) = narrow<T>(generator() % 4 == 0 ? Wide(0) : equal[generator() % kinds]);
      for (const int threads : all_teams) {
        auto LU = A;
        EXPECT_EQ(lu_factor(threads, LU.tile()).pivots, reference_pivots(A)) << "m=" << m << " threads=" << threads;
      }
    }
  Stored<T> ones(7, 3);
  for (int j = 0; j < 3; ++j)
    for (int i = 0; i < 7; ++i) ones(i, j) = T(1);
  for (const int threads : all_teams) {
    auto LU = ones;
    const auto [info, pivots] = lu_factor(threads, LU.tile());
    EXPECT_EQ(pivots, (std::vector{1, 2, 3})) << "threads=" << threads;
    EXPECT_EQ(info, 2);
  }
}

TYPED_TEST(TileLu, ThePivotIsTheLargestInRePlusIm) {
  using T = TypeParam;
  if constexpr (core::is_complex<T>) {
    for (const int threads : all_teams) {
      Stored<T> A(3, 1);
      A(0, 0) = T(-1, 0), A(1, 0) = T(core::Real<T>(-0.75), core::Real<T>(0.5)),
           A(2, 0) = T(0, core::Real<T>(1.125));  // 1, 1.25, 1.125
      EXPECT_EQ(lu_factor(threads, A.tile()).pivots, std::vector{2}) << "threads=" << threads;
    }
  }
}

TYPED_TEST(TileLu, PivotsAreCountedFromTheGivenRow) {
  using T = TypeParam;
  for (const int threads : {1, 3}) {
    auto A = random_matrix<T>(17, 5), B = A;
    auto expected = lu_factor(threads, A.tile()).pivots;
    for (int& p : expected) p += 1000;
    EXPECT_EQ(lu_factor(threads, B.tile(), 1000).pivots, expected);
    EXPECT_TRUE(A.same(B));
  }
}

TYPED_TEST(TileLu, ANaNWinsThePivotSearchAndTheUpperNaNWinsAmongTwo) {
  using T = TypeParam;
  const int m = 9, n = 4;
  std::vector<T> nans = {T(nan_of<T>), T(-nan_of<T>)};
  if constexpr (core::is_complex<T>) nans.push_back(T(1, nan_of<T>));
  for (const T nan : nans)
    for (const int threads : all_teams)
      for (int at = 0; at < m; ++at)
        for (int other = at; other < m; ++other) {
          auto A = random_matrix<T>(m, n, Layout::Padded);
          A((at + 1) % m, 0) = T(inf_of<T>);
          A(at, 0) = A(other, 0) = nan;
          const auto before = A;
          const auto [info, pivots] = lu_factor(threads, A.tile());
          EXPECT_EQ(pivots[0], at + 1) << "other=" << other << " threads=" << threads;
          EXPECT_EQ(info, 0);
          EXPECT_TRUE(A.same_but(before, anywhere));
          for (int k = 0; k < n; ++k) EXPECT_TRUE(pivots[k] > k && pivots[k] <= m) << pivots[k];
          EXPECT_TRUE(std::isnan(std::abs(wide(A(m - 1, n - 1))))) << "a NaN does not hide";
        }
}

TYPED_TEST(TileLu, ANaNInALaterColumnLeavesTheEarlierPivotsAlone) {
  using T = TypeParam;
  const auto A = random_matrix<T>(10, 5);
  const auto good = reference_pivots(A);
  const auto order = rows_of(10, good);
  for (int at = 5; at < 10; ++at) {
    auto LU = A;
    LU(order[at], 2) = T(nan_of<T>);  // a row that no pivot of the good matrix takes
    const auto pivots = lu_factor(3, LU.tile()).pivots;
    EXPECT_EQ(pivots[0], good[0]);
    EXPECT_EQ(pivots[1], good[1]);
    EXPECT_TRUE(std::isnan(std::abs(wide(LU(2, 2)))));
  }
}

TYPED_TEST(TileLu, AnInfWinsAgainstFiniteNumbers) {
  using T = TypeParam;
  for (const int threads : all_teams)
    for (int at = 0; at < 9; ++at) {
      auto A = random_matrix<T>(9, 3);
      A(at, 0) = T(-inf_of<T>);
      EXPECT_EQ(lu_factor(threads, A.tile()).pivots[0], at + 1) << "threads=" << threads;
    }
}

TYPED_TEST(TileLu, AnExactZeroPivotIsReportedAndTheFactorizationGoesOn) {
  using T = TypeParam;
  LayoutCycle layouts;
  for (const auto [m, n] : {Shape{1, 1}, {5, 5}, {9, 9}, {17, 6}, {6, 17}})
    for (int zero = 0; zero < std::min(m, n); ++zero)
      for (const int threads : all_teams) {
        const Case where{m, n, layouts.next(), threads, zero};
        auto A = random_matrix<T>(m, n, where.layout);
        const int second = std::min(zero + 2, n - 1);  // the first of two zero columns is reported
        for (int i = 0; i < m; ++i) A(i, zero) = A(i, second) = i % 2 ? -T(0) : T(0);
        auto LU = A;
        const auto [info, pivots] = lu_factor(threads, LU.tile());
        EXPECT_EQ(info, zero + 1) << where;
        EXPECT_EQ(pivots, reference_pivots(A)) << where;
        EXPECT_LT(lu_ratio(A, LU, pivots), ratio_limit) << where;
        EXPECT_TRUE(LU.same_but(A, anywhere)) << where;
      }
}

TYPED_TEST(TileLu, AZeroMatrixStaysAsItIs) {
  using T = TypeParam;
  Stored<T> zero(5, 4, Layout::Padded);
  for (int j = 0; j < 4; ++j)
    for (int i = 0; i < 5; ++i) zero(i, j) = T(0);
  for (const int threads : all_teams) {
    auto LU = zero;
    const auto [info, pivots] = lu_factor(threads, LU.tile());
    EXPECT_EQ(info, 1);
    EXPECT_EQ(pivots, (std::vector{1, 2, 3, 4}));
    EXPECT_TRUE(LU.same(zero));
  }
}

TYPED_TEST(TileLu, ADenormalPivotDoesNotOverflow) {
  using T = TypeParam;
  using R = core::Real<T>;
  constexpr R tiny = std::numeric_limits<R>::denorm_min(), smallest = std::numeric_limits<R>::min();
  std::vector<T> units = {T(1), -T(1)};
  if constexpr (core::is_complex<T>) units.insert(units.end(), {T(0, 1), T(1, 1)});
  const int m = 8;
  for (const R scale : {tiny, tiny * 1024, smallest / m, smallest / m * 2, smallest, smallest * 4})
    for (const T unit : units)
      for (const int threads : all_teams) {
        Stored<T> A(m, 2);
        for (int i = 0; i < m; ++i) A(i, 0) = unit * (scale * R(i + 1)), A(i, 1) = T(R(i == 0));
        const auto [info, pivots] = lu_factor(threads, A.tile());
        EXPECT_EQ(info, 0) << scale << " threads=" << threads;
        EXPECT_EQ(pivots, (std::vector{m, m})) << scale << " threads=" << threads;
        for (int i = 1; i < m; ++i) {  // rows 0, m-1 and 1 changed places
          const double expected = (i == 1 ? 1.0 : i == m - 1 ? 2.0 : i + 1.0) / m;
          EXPECT_LE(std::abs(wide(A(i, 0)) - expected), 8 * eps<T>) << scale << " row " << i << " threads=" << threads;
        }
      }
}

TYPED_TEST(TileLu, AMatrixOfDenormalsIsFactoredToTheLastBit) {
  using T = TypeParam;
  using R = core::Real<T>;
  constexpr R tiny = std::numeric_limits<R>::denorm_min();
  for (const int n : {1, 3, 9})
    for (const int threads : {1, 3}) {
      auto A = random_matrix<T>(n, n);
      for (int j = 0; j < n; ++j)
        for (int i = 0; i < n; ++i) A(i, j) = A(i, j) * R(4096) * tiny;
      auto LU = A;
      const auto pivots = lu_factor(threads, LU.tile()).pivots;
      const auto order = rows_of(n, pivots);
      for (int j = 0; j < n; ++j)
        for (int i = 0; i < n; ++i)
          EXPECT_LE(std::abs(residual(order, A, LU, i, j)), 8 * n * double(tiny))
              << '(' << i << ", " << j << ") of n=" << n;
    }
}

TYPED_TEST(TileLu, AnEmptyMatrixNeedsNoMemory) {
  for (const int threads : all_teams)
    for (const auto [m, n] : {Shape{0, 0}, {0, 3}, {3, 0}})
      EXPECT_EQ(lu_factor(threads, core::Tile<TypeParam>{nullptr, m, n, 1, 1}).info, 0) << m << " x " << n;
}

}  // namespace
}  // namespace trifactor::tile_test
