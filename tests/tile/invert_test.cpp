// tile::invert_triangle for both triangles, on every team.
#include "support.hpp"

#include <tile/invert.hpp>

namespace trifactor::tile_test {
namespace {

template <class T>
class TileInvert : public ::testing::Test {};
TYPED_TEST_SUITE(TileInvert, Scalars, ScalarNames);

constexpr int all_edges[] = {16, 32, 64};

/// A triangle whose other half is zero, and its inverse in the same layout.
template <class T>
struct Inverted {
  int edge, ld;
  std::vector<T> D, V;
  T& d(int i, int j) { return D[i + j * ld]; }
  T v(int i, int j) const { return V[i + j * ld]; }

  Inverted(int edge, bool lower) : edge(edge), ld(edge + 4), D(edge * ld), V(edge * ld) {
    Random<T> random(edge + lower);
    for (int j = 0; j < edge; ++j)
      for (int i = 0; i < edge; ++i) {
        const Wide a = wide(random());
        if (lower ? i > j : i < j) d(i, j) = narrow<T>(a / 8.0);
        if (i == j) d(i, j) = narrow<T>(a + Wide(2, 1));
      }
  }
  void invert(int threads, bool lower) {
    on_team(threads, [&](const auto& team) {
      if (edge == 16) tile::invert_triangle<16>(team, lower, D.data(), V.data(), ld);
      if (edge == 32) tile::invert_triangle<32>(team, lower, D.data(), V.data(), ld);
      if (edge == 64) tile::invert_triangle<64>(team, lower, D.data(), V.data(), ld);
    });
  }
};

TYPED_TEST(TileInvert, InvertsBothTrianglesAndLeavesZerosBesideThem) {
  using T = TypeParam;
  for (const int edge : all_edges)
    for (const bool lower : {true, false})
      for (const int threads : all_teams) {
        const Case where{edge, edge, Layout::Padded, threads};
        Inverted<T> of(edge, lower);
        const auto D = of.D;
        of.invert(threads, lower);
        EXPECT_EQ(std::memcmp(D.data(), of.D.data(), D.size() * sizeof(T)), 0) << where;
        const double norms = norm1(edge, edge, [&](int i, int j) { return wide(of.d(i, j)); }) *
                             norm1(edge, edge, [&](int i, int j) { return wide(of.v(i, j)); });
        const double error = norm1(edge, edge, [&](int i, int j) {
          Wide sum = i == j ? -1 : 0;
          for (int k = 0; k < edge; ++k) sum += wide(of.d(i, k)) * wide(of.v(k, j));
          return sum;
        });
        EXPECT_LT(error / (norms * eps<T>), ratio_limit) << where << (lower ? " lower" : " upper");
        for (int j = 0; j < edge; ++j)
          for (int i = 0; i < edge + 4; ++i)
            if (i >= edge || (lower ? i < j : i > j)) {
              ASSERT_EQ(of.V[i + j * of.ld], T(0)) << where << " row " << i << " column " << j;
            }
      }
}

TYPED_TEST(TileInvert, BitsDoNotDependOnTheTeam) {
  using T = TypeParam;
  for (const bool lower : {true, false}) {
    Inverted<T> one(64, lower), five(64, lower);
    one.invert(1, lower), five.invert(5, lower);
    EXPECT_EQ(std::memcmp(one.V.data(), five.V.data(), one.V.size() * sizeof(T)), 0);
  }
}

TYPED_TEST(TileInvert, AZeroPivotSpoilsOnlyWhatDependsOnIt) {
  using T = TypeParam;
  for (const bool lower : {true, false})
    for (const int pivot : {3, 20, 40, 63}) {
      Inverted<T> of(64, lower), good(64, lower);
      of.d(pivot, pivot) = T(0);
      of.invert(3, lower), good.invert(3, lower);
      for (int j = 0; j < 64; ++j)
        for (int i = 0; i < 64; ++i)
          if (lower ? i < pivot || j > pivot : i > pivot || j < pivot) {
            ASSERT_TRUE(same_bits(of.v(i, j), good.v(i, j))) << pivot << ": row " << i << " column " << j;
          }
    }
}

}  // namespace
}  // namespace trifactor::tile_test
