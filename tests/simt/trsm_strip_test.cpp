// Solves of batches with triangles of several tiles, whose right-hand sides lie in shared memory.
#include "support.hpp"

#include <cuda/batched/trsm.cuh>

namespace trifactor::simt {
namespace {

template <class T>
class TrsmStrips : public testing::Test {
 protected:
  using R = Real<T>;
  std::mt19937_64 random{20261124};

  /// X := op(A)^-1 X for three items, of which item 1 is left alone; A is a lower triangle, or its transpose. Compared
  /// with B = op(A) X, from a known X.
  void check(int n, int columns, bool flipped, bool conj_A, bool unit) {
    SCOPED_TRACE(testing::Message() << "order " << n << ", " << columns << " right-hand sides"
                                    << (flipped ? ", flipped" : "") << (conj_A ? ", conjugate" : "")
                                    << (unit ? ", unit" : "") << ", seed " << schedule().seed);
    constexpr int count = 3;
    const int ld = n + int(random() % 3), size = ld * n, size_x = ld * columns;
    std::vector<T> A(std::size_t(size * count)), X(std::size_t(size_x * count), T(-5)), B = X;
    for (T& a : A) a = random_number<T>(random) * T(R(1) / R(n));
    for (int b = 0; b < count; ++b) {
      const auto a = [&](int i, int j) -> T& { return A[std::size_t(b * size + i + j * ld)]; };
      for (int i = 0; i < n; ++i) a(i, i) = T(R(2)) + random_number<T>(random);
      const auto op = [&](int i, int j) {
        if (flipped ? i > j : i < j) return T(0);
        return unit && i == j ? T(1) : conj_if(conj_A, flipped ? a(j, i) : a(i, j));
      };
      for (int c = 0; c < columns; ++c) {
        const auto at = [&](int i) { return std::size_t(b * size_x + i + c * ld); };
        for (int i = 0; i < n; ++i) X[at(i)] = random_number<T>(random);
        for (int i = 0; i < n; ++i) {
          T sum(0);
          for (int j = 0; j < n; ++j) sum = sum + op(i, j) * X[at(j)];
          B[at(i)] = sum;
        }
      }
    }
    std::vector<int> info{0, 3, 0};
    std::copy_n(B.begin() + size_x, size_x, X.begin() + size_x);
    Items<const T> items = items_of<const T>(A.data(), n, n, ld, count, size);
    if (flipped) items = items.flipped();
    cuda::launch_trsm_strips<T>(nullptr, {!flipped, unit}, {items, conj_A},
                                items_of(B.data(), n, columns, ld, count, size_x), info.data());
    Largest worst;
    for (std::size_t i = 0; i < B.size(); ++i) worst.add(modulus(B[i] - X[i]));
    EXPECT_LT(worst.value, tolerance<T>);
    ++schedule().seed;
  }
};
TYPED_TEST_SUITE(TrsmStrips, Scalars, ScalarNames);

TYPED_TEST(TrsmStrips, Solve) {
  for (const auto& [n, columns] : {std::pair{33, 1}, {70, 8}, {64, 9}, {97, 3}, {100, 40}, {7, 2}}) {
    if (in_short && n != 70 && n != 64) continue;
    for (bool flipped : {false, true})
      for (bool conj_A : {false, true}) this->check(n, columns, flipped, conj_A, n == 64);
  }
}

}  // namespace
}  // namespace trifactor::simt
