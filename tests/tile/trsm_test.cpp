// tile::trsm for every triangle, on every team, scalar and layout.
#include "support.hpp"

#include <tile/trsm.hpp>

namespace trifactor::tile_test {
namespace {

template <class T>
class TileTrsm : public ::testing::Test {};
TYPED_TEST_SUITE(TileTrsm, Scalars, ScalarNames);

struct Triangle {
  bool lower, unit, conj;
};
constexpr Triangle all_triangles[] = {{false, false, false}, {false, false, true}, {false, true, false},
                                      {false, true, true},   {true, false, false}, {true, false, true},
                                      {true, true, false},   {true, true, true}};
std::ostream& operator<<(std::ostream& out, const Triangle& t) {
  return out << (t.lower ? "lower" : "upper") << (t.unit ? " unit" : "") << (t.conj ? " conj" : "");
}

constexpr int all_columns[] = {0, 1, 3, 17};

/// B := op(A)^-1 B
template <class T>
void solve(int threads, const Triangle& t, core::Tile<const T> A, core::Tile<T> B) {
  on_team(threads, [&](const auto& team) { tile::trsm(team, t.lower, t.unit, A, t.conj, B); });
}
template <class T>
void solve(int threads, const Triangle& t, const Stored<T>& A, Stored<T>& B) {
  solve(threads, t, A.tile(), B.tile());
}

/// The stored entries of a well-conditioned triangle; canaries everywhere else, also on a diagonal of ones.
template <class T>
Stored<T> triangle(int n, const Triangle& t, Layout layout = Layout::Packed) {
  Stored<T> A(n, n, layout);
  Random<T> random(n + 1);
  for (int j = 0; j < n; ++j)
    for (int i = 0; i < n; ++i) {
      const Wide a = wide(random());
      if (i == j && !t.unit) A(i, j) = narrow<T>(a + Wide(2, 1));
      if (t.lower ? i > j : i < j) A(i, j) = narrow<T>(a / double(n));
    }
  return A;
}

template <class T>
Stored<T> right_hand_sides(int rows, int cols, Layout layout = Layout::Packed) {
  Stored<T> B(rows, cols, layout);
  Random<T>(rows + cols).fill(B);
  return B;
}

/// Entry (i, j) of op(A), zeros and ones included.
template <class T>
Wide entry(const Triangle& t, const Stored<T>& A, int i, int j) {
  if (i == j && t.unit) return 1;
  if (i != j && t.lower != (i > j)) return 0;
  return t.conj ? std::conj(wide(A(i, j))) : wide(A(i, j));
}

/// max |B - op(A) X| / (|A| |X| eps) over the columns, or of B - X op(A) over the rows.
template <class T>
double solve_ratio(bool right, const Triangle& t, const Stored<T>& A, const Stored<T>& B, const Stored<T>& X) {
  const int n = A.rows, vectors = right ? B.rows : B.cols;
  const double norm = norm1(n, n, [&](int i, int j) { return right ? entry(t, A, j, i) : entry(t, A, i, j); });
  double largest = 0;
  for (int c = 0; n > 0 && c < vectors; ++c) {
    double error = 0, size = 0;
    for (int i = 0; i < n; ++i) {
      Wide rest = right ? wide(B(c, i)) : wide(B(i, c));
      for (int p = 0; p < n; ++p) rest -= right ? wide(X(c, p)) * entry(t, A, p, i) : entry(t, A, i, p) * wide(X(p, c));
      error += std::abs(rest), size += std::abs(right ? wide(X(c, i)) : wide(X(i, c)));
    }
    const double ratio = error / (norm * size * eps<T>);
    if (!(ratio <= largest)) largest = ratio;
  }
  return largest;
}

TYPED_TEST(TileTrsm, SolvesWithEveryTriangleAndReadsNothingElse) {
  using T = TypeParam;
  LayoutCycle layouts;
  for (const int n : all_sizes)
    for (const Triangle& t : all_triangles)
      for (const int columns : all_columns) {
        const Layout layout_A = layouts.next(), layout_B = n % 2 ? layout_A : layouts.next();
        const Case where{n, columns, layout_B, 1};
        const auto A = triangle<T>(n, t, layout_A);
        const auto B = right_hand_sides<T>(n, columns, layout_B);
        auto X = B;
        solve(1, t, A, X);
        EXPECT_LT(solve_ratio(false, t, A, B, X), ratio_limit) << t << ' ' << where;
        EXPECT_TRUE(X.same_but(B, anywhere)) << t << ' ' << where;
        EXPECT_TRUE(A.same(triangle<T>(n, t, layout_A))) << t << ' ' << where;
      }
}

TYPED_TEST(TileTrsm, SolvesFromTheRightByFlippingBothViews) {
  using T = TypeParam;
  LayoutCycle layouts;
  for (const int n : all_sizes)
    for (const Triangle& t : all_triangles)
      for (const int rows : all_columns) {
        const Case where{rows, n, layouts.next(), n % 3 == 0 ? 2 : 1};
        const auto A = triangle<T>(n, t, where.layout);
        const auto B = right_hand_sides<T>(rows, n, where.layout);
        auto X = B;  // X op(A) = B, that is op(A)^T X^T = B^T
        solve(where.threads, {!t.lower, t.unit, t.conj}, A.tile().flipped(), X.tile().flipped());
        EXPECT_LT(solve_ratio(true, t, A, B, X), ratio_limit) << t << ' ' << where;
        EXPECT_TRUE(X.same_but(B, anywhere)) << t << ' ' << where;
      }
}

TYPED_TEST(TileTrsm, SolvesWithTheConjugateTransposeFromTheRight) {
  using T = TypeParam;
  for (const int n : {1, 5, 8, 17, 33}) {
    const auto L = triangle<T>(n, {true, false, false});
    const auto B = right_hand_sides<T>(7, n, Layout::Padded);
    auto X = B;  // X L^H = B, that is conj(L) X^T = B^T
    solve(3, {true, false, true}, L.tile(), X.tile().flipped());
    Stored<T> L_H(n, n);
    for (int j = 0; j < n; ++j)
      for (int i = 0; i <= j; ++i) L_H(i, j) = core::conj(L(j, i));
    EXPECT_LT(solve_ratio(true, {false, false, false}, L_H, B, X), ratio_limit) << "n=" << n;
  }
}

TYPED_TEST(TileTrsm, IsTheSameBitwiseForEveryTeamLayoutAndIndexType) {
  using T = TypeParam;
  LayoutCycle layouts;
  for (const int n : {0, 1, 7, 8, 9, 17, 50})
    for (const Triangle& t : all_triangles)
      for (const int columns : all_columns) {
        const auto A = triangle<T>(n, t);
        auto serial = right_hand_sides<T>(n, columns), by_int = serial;
        solve(1, t, A, serial);
        tile::trsm(tile::SerialTeam{}, t.lower, t.unit, A.int_tile(), t.conj, by_int.tile());
        EXPECT_TRUE(by_int.same(serial)) << t << " n=" << n;
        for (const int threads : all_teams) {
          const Layout layout = layouts.next();
          auto X = right_hand_sides<T>(n, columns, layout);
          solve(threads, t, triangle<T>(n, t, layout), X);
          EXPECT_TRUE(X.same_entries(serial, anywhere)) << t << ' ' << Case{n, columns, layout, threads};
        }
      }
}

TYPED_TEST(TileTrsm, ColumnsWithNaNOrInfLeaveTheirNeighboursAlone) {
  using T = TypeParam;
  const int n = 17, columns = 5;
  for (const Triangle& t : all_triangles)
    for (const auto bad : {nan_of<T>, inf_of<T>}) {
      const auto A = triangle<T>(n, t);
      const auto B = right_hand_sides<T>(n, columns);
      auto good = B;
      solve(1, t, A, good);
      for (int c = 0; c < columns; ++c) {
        auto X = B;
        X(n / 2, c) = T(bad);
        solve(2, t, A, X);
        EXPECT_TRUE(X.same_but(good, [&](int, int j) { return j == c; })) << t << " column " << c;
        for (int i = 0; i < n; ++i) {
          const bool reached = t.lower ? i >= n / 2 : i <= n / 2;
          EXPECT_EQ(std::isfinite(std::abs(wide(X(i, c)))), !reached) << t << " row " << i;
        }
      }
    }
}

TYPED_TEST(TileTrsm, AZeroOnTheDiagonalSpoilsTheRowsFromThereOn) {
  using T = TypeParam;
  const int n = 10;
  for (const bool lower : {true, false})
    for (int k = 0; k < n; ++k) {
      const Triangle t{lower, false, false};
      auto A = triangle<T>(n, t);
      A(k, k) = T(0);
      auto X = right_hand_sides<T>(n, 1);
      solve(2, t, A, X);
      for (int i = 0; i < n; ++i)
        EXPECT_EQ(std::isfinite(std::abs(wide(X(i, 0)))), lower ? i < k : i > k) << t << " k=" << k << " row " << i;
    }
}

TYPED_TEST(TileTrsm, AnEmptyTriangleNeedsNoMemory) {
  using T = TypeParam;
  for (const int threads : all_teams)
    for (const Triangle& t : all_triangles)
      solve(threads, t, core::Tile<const T>{nullptr, 0, 0, 1, 1}, core::Tile<T>{nullptr, 0, 3, 1, 1});
}

}  // namespace
}  // namespace trifactor::tile_test
