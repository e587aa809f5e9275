// Cholesky of one matrix by the persistent grid: however blocks start and go on, all pieces are done, and right.
#include "support.hpp"

#include <cuda/single/cholesky_grid.cuh>

namespace trifactor::simt {
namespace {

/// Scratch memory is aligned to 16 bytes.
struct alignas(16) EntryLine {
  unsigned char bytes[16];
};

template <class T>
class CholeskyGrid : public testing::Test {
 protected:
  using R = Real<T>;
  std::mt19937_64 random{20261122};

  /// The lower triangle of a positive definite matrix of order n, and of its factor; what is above is garbage. `bad`:
  /// the minor of this order is not positive definite.
  struct Matrix {
    int n, ld;
    std::vector<T> A, L;
    T& a(int i, int j) { return A[std::size_t(i + j * ld)]; }
    T& l(int i, int j) { return L[std::size_t(i + j * ld)]; }
  };
  Matrix make(int n, int ld, int bad) {
    Matrix m{n, ld, std::vector<T>(std::size_t(ld * n), T(-9)), std::vector<T>(std::size_t(ld * n), T(-9))};
    for (int j = 0; j < n; ++j)
      for (int i = j; i < n; ++i) {
        const T x = random_number<T>(random);
        m.l(i, j) = i == j ? T(R(2) + real(x)) : T(R(1) / R(8)) * x;
      }
    for (int j = 0; j < n; ++j)
      for (int i = j; i < n; ++i) {
        T sum(0);
        for (int k = 0; k <= j; ++k) sum += m.l(i, k) * conj(m.l(j, k));
        m.a(i, j) = sum;
      }
    if (bad > 0) m.a(bad - 1, bad - 1) = T(-1);
    return m;
  }
  void check(int n, int ld, bool flipped, int band, int multiprocessors, int bad = 0) {
    SCOPED_TRACE(testing::Message() << "order " << n << ", ld " << ld << (flipped ? ", flipped" : "") << ", band "
                                    << band << ", " << multiprocessors << " blocks, seed " << schedule().seed);
    Matrix m = make(n, ld, bad);
    std::vector<T> F = m.A;
    if (flipped)
      for (int j = 0; j < n; ++j)
        for (int i = 0; i < n; ++i) F[std::size_t(j + i * ld)] = m.a(i, j);
    const auto flags = std::size_t(cuda::persistent_flag_count<T>(n));
    std::vector<EntryLine> entries(std::size_t(cuda::persistent_entry_count<T>(n)) * sizeof(T) / sizeof(EntryLine));
    T* const room = reinterpret_cast<T*>(entries.data());
    std::vector<int> ints(flags, 0);
    int info = 77;
    Items<T> items = items_of(F.data(), n, n, ld);
    if (flipped) items = items.flipped();
    cuda::launch_persistent<T>(nullptr, multiprocessors, items, band, true, &info, 0, room, ints.data(), nullptr);
    EXPECT_EQ(info, bad);
    EXPECT_EQ(ints, std::vector<int>(flags, 0));
    Largest worst;
    const int right = bad > 0 ? bad - 1 : n;  // of so many rows the triangle is valid
    for (int j = 0; j < n; ++j)
      for (int i = 0; i < n; ++i) {
        const T x = F[std::size_t(flipped ? j + i * ld : i + j * ld)];
        if (i < j) {
          EXPECT_EQ(modulus(x - m.a(i, j)), 0) << "wrote above the diagonal";
        } else if (i < right) {
          worst.add(modulus(x - m.l(i, j)));
        }
      }
    EXPECT_LT(worst.value, tolerance<T>);
    ++schedule().seed;
  }
};
TYPED_TEST_SUITE(CholeskyGrid, Scalars, ScalarNames);

TYPED_TEST(CholeskyGrid, Tiles) {
  constexpr int edge = cuda::GridShape<TypeParam>::edge;
  for (int n : {1, edge, edge + 1, 3 * edge - 5})
    for (bool flipped : {false, true}) {
      if (in_short && (n != 3 * edge - 5 || !flipped)) continue;
      this->check(n, n + (n % 2 == 1), flipped, 0, 132);
      if (!in_short) this->check(n, n + (n % 2 == 0), flipped, 0, 132);
    }
}
TYPED_TEST(CholeskyGrid, TwoBlocksAreEnough) {
  constexpr int edge = cuda::GridShape<TypeParam>::edge;
  for (unsigned blocks : {2u, 3u}) {
    if (in_short && blocks != 2) continue;
    schedule().resident_blocks = blocks;
    this->check(4 * edge, 4 * edge, false, 0, 132);
    if (!in_short) this->check(4 * edge, 4 * edge, true, 1, 132);
  }
  schedule().resident_blocks = ~0u;
}
TYPED_TEST(CholeskyGrid, MacroTiles) {
  constexpr int edge = cuda::GridShape<TypeParam>::edge;
  this->check(6 * edge, 6 * edge, false, 2, 4);
  if (in_short) return;
  this->check(6 * edge, 6 * edge, true, 1, 132);
  this->check(5 * edge + 6, 5 * edge + 7, false, 1, 132);
}
/// Some matrices at a time, in one launch: each flag and each place in the scratch memory serves several of them.
TYPED_TEST(CholeskyGrid, List) {
  using T = TypeParam;
  constexpr int edge = cuda::GridShape<T>::edge, count = 5, n = 2 * edge + 7, ld = n + 1, size = ld * n;
  for (unsigned blocks : {2u, 4u})
    for (int sets : {1, 3}) {
      if (in_short && (blocks != 2 || sets != 1)) continue;
      SCOPED_TRACE(testing::Message() << blocks << " blocks, " << sets << " sets, seed " << schedule().seed);
      schedule().resident_blocks = blocks;
      std::vector<T> F, L;
      for (int b = 0; b < count; ++b) {
        const auto m = this->make(n, ld, b == 3 ? edge + 2 : 0);
        F.insert(F.end(), m.A.begin(), m.A.end()), L.insert(L.end(), m.L.begin(), m.L.end());
      }
      const Items<T> items = items_of(F.data(), n, n, ld, count, size);
      cuda::LargeItems<T> large;
      large.entries_each = cuda::persistent_entry_count<T>(n),
      large.flags_each = int(cuda::persistent_flag_count<T>(n));
      large.sets = sets, large.together = min(sets, int(cuda::LargeItems<T>::max_together));
      std::vector<EntryLine> entries(std::size_t(sets * large.entries_each * index_t(sizeof(T))) / sizeof(EntryLine));
      std::vector<int> flags(std::size_t(cuda::LargeItems<T>::counters + sets * (1 + large.flags_each)), 0);
      std::vector<int> info(count, 77);
      large.entries = reinterpret_cast<T*>(entries.data()), large.flags = flags.data();
      cuda::launch(nullptr, cuda::persistent_list_kernel<T, true>, 4, cuda::GridShape<T>::threads, 0, items, large,
                   info.data());
      EXPECT_EQ(info, (std::vector<int>{0, 0, 0, edge + 2, 0}));
      EXPECT_EQ(flags, std::vector<int>(flags.size(), 0));
      Largest worst;
      for (int b = 0; b < count; ++b)
        for (int j = 0; j < n; ++j)
          for (int i = j; i < (b == 3 ? edge + 1 : n); ++i) {
            const auto at = std::size_t(b * size + i + j * ld);
            worst.add(modulus(F[at] - L[at]));
          }
      EXPECT_LT(worst.value, tolerance<T>);
      ++schedule().seed;
    }
  schedule().resident_blocks = ~0u;
}
TYPED_TEST(CholeskyGrid, StopsAtAMinorThatIsNotPositiveDefinite) {
  constexpr int edge = cuda::GridShape<TypeParam>::edge;
  if (in_short) GTEST_SKIP() << "goes the same ways";
  for (int bad : {1, 17, edge + 3, 2 * edge + 9}) this->check(2 * edge + 9, 2 * edge + 10, false, 0, 132, bad);
}

}  // namespace
}  // namespace trifactor::simt
