// tile::update, C -= op(A) op(B), on every team, scalar and layout.
#include "support.hpp"

#include <tile/update.hpp>

namespace trifactor::tile_test {
namespace {

using tile::Part;

template <class T>
class TileUpdate : public ::testing::Test {};
TYPED_TEST_SUITE(TileUpdate, Scalars, ScalarNames);

constexpr int product_sizes[] = {0, 1, 2, 3, 5, 8, 9, 17};

struct Conjugated {
  bool a, b;
};
constexpr Conjugated all_conjugations[] = {{false, false}, {true, false}, {false, true}, {true, true}};

template <class T>
Stored<T> random_matrix(int rows, int cols, Layout layout, unsigned seed) {
  Stored<T> A(rows, cols, layout);
  Random<T>(seed).fill(A);
  return A;
}

/// C of m x n; for Part::Lower the entries above the diagonal are canaries.
template <class T>
Stored<T> target(int m, int n, Layout layout, Part part) {
  Stored<T> C(m, n, layout);
  Random<T> random(3);
  for (int j = 0; j < n; ++j)
    for (int i = part == Part::Lower ? j : 0; i < m; ++i) C(i, j) = random();
  return C;
}

template <class T>
void subtract(int threads, core::Tile<const T> A, core::Tile<const T> B, Conjugated conj, core::Tile<T> C, Part part) {
  on_team(threads, [&](const auto& team) { tile::update(team, A, conj.a, B, conj.b, C, part); });
}
template <class T>
void subtract(int threads, const Stored<T>& A, const Stored<T>& B, Conjugated conj, Stored<T>& C, Part part) {
  subtract(threads, A.tile(), B.tile(), conj, C.tile(), part);
}

template <class T>
Wide factor_entry(bool conj, const Stored<T>& A, int i, int j) {
  return conj ? std::conj(wide(A(i, j))) : wide(A(i, j));
}

/// Whether C is before - op(A) op(B) as far as `written` says, up to LAPACK's limit on |error| / (k (|A| |B| + |C|)
/// eps).
template <class T, class F>
bool is_difference(const Stored<T>& C, const Stored<T>& before, const Stored<T>& A, const Stored<T>& B, Conjugated conj,
                   F written) {
  const int m = C.rows, n = C.cols, k = A.cols;
  const double error = norm1(m, n, [&](int i, int j) {
    if (!written(i, j)) return Wide(0);
    Wide rest = wide(C(i, j)) - wide(before(i, j));
    for (int p = 0; p < k; ++p) rest += factor_entry(conj.a, A, i, p) * factor_entry(conj.b, B, p, j);
    return rest;
  });
  const double size = norm1(m, k, [&](int i, int j) { return wide(A(i, j)); }) *
                          norm1(k, n, [&](int i, int j) { return wide(B(i, j)); }) +
                      norm1(m, n, [&](int i, int j) { return written(i, j) ? wide(before(i, j)) : 0; });
  return error <= ratio_limit * std::max(k, 1) * size * eps<T>;
}

TYPED_TEST(TileUpdate, SubtractsTheProductAndTouchesItsPartOnly) {
  using T = TypeParam;
  LayoutCycle layouts;
  for (const int m : product_sizes)
    for (const int n : product_sizes)
      for (const int k : product_sizes)
        for (const Conjugated conj : all_conjugations)
          for (const Part part : {Part::All, Part::Lower}) {
            const Case where{m, n, layouts.next(), 1, k};
            const auto A = random_matrix<T>(m, k, where.layout, 1), B = random_matrix<T>(k, n, layouts.next(), 2);
            const auto before = target<T>(m, n, layouts.next(), part);
            const auto written = [&](int i, int j) { return part == Part::All || i >= j; };
            auto C = before;
            subtract(1, A, B, conj, C, part);
            EXPECT_TRUE(C.same_but(before, written)) << where;
            EXPECT_TRUE(is_difference(C, before, A, B, conj, written)) << where;
          }
}

TYPED_TEST(TileUpdate, IsTheSameBitwiseForEveryTeamLayoutAndIndexType) {
  using T = TypeParam;
  const Conjugated conj{false, true};
  for (const int size : all_sizes)
    for (const Part part : {Part::All, Part::Lower}) {
      const int m = size, n = part == Part::All ? size / 2 + 1 : size, k = 9;
      const auto written = [&](int i, int j) { return part == Part::All || i >= j; };
      const auto A = random_matrix<T>(m, k, Layout::Packed, 1), B = random_matrix<T>(k, n, Layout::Packed, 2);
      auto serial = target<T>(m, n, Layout::Packed, part), by_int = serial;
      subtract(1, A, B, conj, serial, part);
      tile::update(tile::SerialTeam{}, A.int_tile(), conj.a, B.tile(), conj.b, by_int.int_tile(), part);
      EXPECT_TRUE(by_int.same(serial)) << m << " x " << n;
      for (const Layout layout : all_layouts)
        for (const int threads : all_teams) {
          auto C = target<T>(m, n, layout, part);
          subtract(threads, random_matrix<T>(m, k, layout, 1), random_matrix<T>(k, n, layout, 2), conj, C, part);
          EXPECT_TRUE(C.same_entries(serial, written)) << Case{m, n, layout, threads};
        }
    }
}

TYPED_TEST(TileUpdate, AnEmptyProductChangesNoValue) {
  using T = TypeParam;
  const auto A = random_matrix<T>(5, 0, Layout::Packed, 1), B = random_matrix<T>(0, 6, Layout::Packed, 2);
  const auto before = target<T>(5, 6, Layout::Padded, Part::All);
  for (const int threads : all_teams) {
    auto C = before;
    subtract(threads, A, B, {true, true}, C, Part::All);
    EXPECT_TRUE(C.same(before)) << "threads=" << threads;
  }
}

TYPED_TEST(TileUpdate, ANaNSpreadsAlongItsOwnRowOrColumnOnly) {
  using T = TypeParam;
  const int m = 7, n = 6, k = 5;
  const auto A = random_matrix<T>(m, k, Layout::Packed, 1), B = random_matrix<T>(k, n, Layout::Packed, 2);
  const auto before = target<T>(m, n, Layout::Packed, Part::All);
  auto good = before;
  subtract(1, A, B, {false, false}, good, Part::All);
  for (int at = 0; at < m; ++at) {
    auto bad_A = A;
    bad_A(at, k - 1) = T(nan_of<T>);
    auto C = before;
    subtract(2, bad_A, B, {false, false}, C, Part::All);
    EXPECT_TRUE(C.same_but(good, [&](int i, int) { return i == at; })) << "row " << at;
    for (int j = 0; j < n; ++j) EXPECT_TRUE(std::isnan(std::abs(wide(C(at, j))))) << at << ' ' << j;
  }
  for (int at = 0; at < n; ++at) {
    auto bad_B = B;
    bad_B(0, at) = T(nan_of<T>);
    auto C = before;
    subtract(2, A, bad_B, {false, false}, C, Part::All);
    EXPECT_TRUE(C.same_but(good, [&](int, int j) { return j == at; })) << "column " << at;
    for (int i = 0; i < m; ++i) EXPECT_TRUE(std::isnan(std::abs(wide(C(i, at))))) << i << ' ' << at;
  }
}

}  // namespace
}  // namespace trifactor::tile_test
