// Panels of LU by clusters of blocks: the kernel's own code, in small shapes and in those of the library. A plain loop
// that rounds alike says what must come out, to the last bit.
#include "support.hpp"

#include <cuda/single/lu_team.cuh>

namespace trifactor::simt {

namespace {

/// A panel with columns to its left and a frame around both.
template <class T>
struct Panel {
  int m, n, left, ld;
  std::vector<T> entries;
  std::vector<int> pivots;
  int info = 0;

  Panel(int m_, int n_, int left_)
      : m(m_), n(n_), left(left_), ld(m + 3), entries(std::size_t(ld * (left + n + 1)), T(-7)) {
    pivots.assign(std::size_t(min(m, n)), -1);
  }
  T* data() { return entries.data() + 1 + left * ld; }
  T& operator()(int i, int j) { return data()[i + j * ld]; }
};

using cuda::PanelTeam;
constexpr int first = 5;  // the row of the whole matrix where the panel begins

template <class T>
void factor_by_loop(Panel<T>& A) {
  for (int k = 0; k < min(A.m, A.n); ++k) {
    int p = k;
    for (int i = k + 1; i < A.m; ++i)
      if (cuda::beats(cuda::pivot_key(A(i, k)), i, cuda::pivot_key(A(p, k)), p)) p = i;
    A.pivots[std::size_t(k)] = first + p + 1;
    for (int j = -A.left; j < A.n; ++j) std::swap(A(k, j), A(p, j));
    const T d = A(k, k);
    if (d == T(0) && A.info == 0) A.info = first + k + 1;
    const cuda::Quotient<T> divide(d, cuda::reciprocal(d), cuda::pivot_key(d).high);
    for (int i = k + 1; i < A.m; ++i) {
      const T l = A(i, k) = divide(A(i, k));
      for (int j = k + 1; j < A.n; ++j) A(i, j) = minus_product(A(i, j), l, A(k, j));
    }
  }
}
template <class T, class S>
void factor_by_kernel(Panel<T>& A) {
  const int blocks = int(ceil_div(A.m, S::block_rows));
  const Items<T> items = items_of(A.data(), A.m, A.n, A.ld);
  const Pivots<int> pivots{.data = A.pivots.data(), .first = first};
  run({{unsigned(blocks)}, S::all_threads, unsigned(blocks)},
      [&] { cuda::lu_panel_kernel<T, S>(items, A.left, blocks, pivots, &A.info); });
}
template <class T, class S>
void factor_by_grid(Panel<T>& A) {
  const unsigned blocks = unsigned(ceil_div(A.m, S::block_rows));
  static cuda::GridMemory<T, S> messages{};
  // All blocks run at once, as those of a cluster do.
  run({{blocks}, S::all_threads, blocks}, [&] {
    cuda::lu_grid_panel_kernel<T, S>(Tile<T>{A.data(), A.m, A.n, 1, A.ld}, A.left, A.pivots.data(), first, &A.info,
                                     &messages);
  });
  const auto* const words = reinterpret_cast<const int*>(&messages);
  EXPECT_EQ(std::count(words, words + sizeof messages / sizeof(int), 0), std::ptrdiff_t(sizeof messages / sizeof(int)));
}
template <class T>
void factor_by_call(Panel<T>& A) {
  const Items<T> items = items_of(A.data(), A.m, A.n, A.ld);
  cuda::launch_lu_panel<T>(nullptr, items, A.left, {.data = A.pivots.data(), .first = first}, &A.info, nullptr);
}

enum class Kind { random, ties, near_ties, zeros, scaled, nan, inf, all_zero };
constexpr Kind kinds[] = {Kind::random, Kind::ties, Kind::near_ties, Kind::zeros,
                          Kind::scaled, Kind::nan,  Kind::inf,       Kind::all_zero};

template <class T>
void fill(Panel<T>& A, Kind kind, std::mt19937_64& random) {
  using R = Real<T>;
  std::uniform_real_distribution<R> uniform(-1, 1);
  const auto some = [&](int n) { return int(random() % unsigned(n)); };
  for (int j = -A.left; j < A.n; ++j)
    for (int i = 0; i < A.m; ++i) {
      R re = uniform(random), im = uniform(random);
      if (kind == Kind::ties) re = R(some(3) - 1), im = R(some(3) - 1);
      // keys whose upper bits are the same
      if (kind == Kind::near_ties)
        re = (some(2) ? 1 : -1) * (1 + R(some(4)) * std::numeric_limits<R>::epsilon()), im = 0;
      if (kind == Kind::scaled) {
        const int range = sizeof(R) == 8 ? 1060 : 140;
        re = std::ldexp(re, some(2 * range) - range), im = std::ldexp(im, some(2 * range) - range);
      }
      if (kind == Kind::all_zero) re = im = 0;
      A(i, j) = entry<T>(re, im);
    }
  if (kind == Kind::zeros && A.n > 2) {
    const int column = some(A.n), row = some(A.m);
    for (int i = 0; i < A.m; ++i) A(i, column) = T(0), A(i, A.n - 1) = A(i, 0);
    for (int j = 0; j < A.n; ++j) A(row, j) = T(0);
  }
  if (kind == Kind::nan) A(some(A.m), some(A.n)) = entry<T>(Limits<R>::nan, 0);
  if (kind == Kind::inf) A(some(A.m), some(A.n)) = entry<T>(Limits<R>::infinity, 0);
}

template <class T, class F>
void compare(int m, int n, int left, Kind kind, std::mt19937_64& random, const F& factor) {
  SCOPED_TRACE(testing::Message() << m << " x " << n << ", " << left << " columns to the left, kind " << int(kind)
                                  << ", seed " << schedule().seed);
  Panel<T> A(m, n, left);
  fill(A, kind, random);
  Panel<T> expected = A;
  factor_by_loop(expected);
  factor(A);
  EXPECT_EQ(A.pivots, expected.pivots);
  EXPECT_EQ(A.info, expected.info);
  EXPECT_TRUE(same_numbers(A.entries, expected.entries));
  ++schedule().seed;
}

/// Few threads to a block, so that clusters are small too.
template <class T, int rows, int width, bool in_registers, PanelTeam team>
void small_shape() {
  using S = cuda::LuPanelShape<64, rows, width, in_registers, team>;
  const auto factor = [](Panel<T>& A) {
    if constexpr (S::is_grid)
      factor_by_grid<T, S>(A);
    else
      factor_by_kernel<T, S>(A);
  };
  std::mt19937_64 random(20261119);
  const int largest = S::one_block ? S::block_rows : 3 * S::block_rows;
  for (int m : {1, 2, 7, 31, 33, 64, 100, 128, 129, 200, 257, 384}) {
    if (m > largest) break;
    if (in_short && m != 33 && m != 384) continue;
    for (Kind kind : kinds) {
      if (in_short && kind != Kind::ties) continue;
      const int n = 1 + int(random() % width);
      compare<T>(m, n, int(random() % 5), kind, random, factor);
    }
    compare<T>(m, width, 0, Kind::random, random, factor);
  }
}

template <class T>
class LuPanel : public testing::Test {};
using PanelScalars = std::conditional_t<TRIFACTOR_TEST_ALL, AllScalars, TwoScalars>;
TYPED_TEST_SUITE(LuPanel, PanelScalars, ScalarNames);

TYPED_TEST(LuPanel, OneBlock) {
  small_shape<TypeParam, 1, 32, true, PanelTeam::block>();
  small_shape<TypeParam, 2, 32, true, PanelTeam::block>();
}
TYPED_TEST(LuPanel, OneBlockWithFourRowsToAThread) { small_shape<TypeParam, 4, 32, true, PanelTeam::block>(); }
TYPED_TEST(LuPanel, Cluster) {
  small_shape<TypeParam, 1, 32, true, PanelTeam::cluster>();
  small_shape<TypeParam, 2, 32, true, PanelTeam::cluster>();
}
TYPED_TEST(LuPanel, ClusterWithColumnsInSharedMemory) {
  small_shape<TypeParam, 2, 32, false, PanelTeam::cluster>();
  small_shape<TypeParam, 4, 16, false, PanelTeam::cluster>();
  small_shape<TypeParam, 8, 8, false, PanelTeam::cluster>();
}
TYPED_TEST(LuPanel, Grid) {
  small_shape<TypeParam, 2, 32, false, PanelTeam::grid>();
  small_shape<TypeParam, 4, 16, false, PanelTeam::grid>();
  small_shape<TypeParam, 8, 8, false, PanelTeam::grid>();
}
// A lane of a clerk reads the candidates of several blocks.
TYPED_TEST(LuPanel, GridOfMoreBlocksThanAWarpHasLanes) {
  using S = cuda::LuPanelShape<32, 1, 32, false, PanelTeam::grid>;
  if (in_short && is_complex<TypeParam>) GTEST_SKIP() << "takes long";
  std::mt19937_64 random(20261121);
  for (Kind kind : kinds)
    if (!in_short || kind == Kind::ties)
      compare<TypeParam>(1100, in_short ? 9 : 32, 2, kind, random, factor_by_grid<TypeParam, S>);
}
TYPED_TEST(LuPanel, ShapesOfTheLibrary) {
  std::mt19937_64 random(20261120);
  for (int m : {40, 500, 1100})
    for (Kind kind : {Kind::random, Kind::ties, Kind::nan}) {
      if (in_short && (m != 500 || kind != Kind::ties)) continue;
      compare<TypeParam>(m, 32, 2, kind, random, factor_by_call<TypeParam>);
    }
}

}  // namespace
}  // namespace trifactor::simt
