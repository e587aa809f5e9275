// Solves with a triangle in one launch, whose blocks wait for the entries that others have solved.
#include "support.hpp"

#include <cuda/single/trsm_sweep.cuh>

namespace trifactor::simt {
namespace {

template <class T>
class TrsmSweep : public testing::Test {
 protected:
  using R = Real<T>;
  std::mt19937_64 random{20261123};

  /// X := A^-1 X, or A^-H A^-1 X, for `count` items, of which item 1 is left alone; A is a lower triangle, or its
  /// transpose. Compared with B = A X, or A A^H X, from a known X.
  void check(int n, int columns, int count, bool flipped, bool conj_A, bool twice, bool unit) {
    SCOPED_TRACE(testing::Message() << "order " << n << ", " << columns << " right-hand sides, " << count << " items"
                                    << (flipped ? ", flipped" : "") << (conj_A ? ", conjugate" : "")
                                    << (twice ? ", twice" : "") << ", seed " << schedule().seed);
    const int ld = n + int(random() % 3), size = ld * n, size_x = ld * columns;
    std::vector<T> A(std::size_t(size * count)), X(std::size_t(size_x * count), T(-5)), B = X;
    for (T& a : A) a = random_number<T>(random) * T(R(1) / R(n));
    const auto a = [&](int b, int i, int j) -> T& { return A[std::size_t(b * size + i + j * ld)]; };
    for (int b = 0; b < count; ++b) {
      const auto x = [&](std::vector<T>& v, int i, int j) -> T& { return v[std::size_t(b * size_x + i + j * ld)]; };
      for (int i = 0; i < n; ++i) a(b, i, i) = T(R(2)) + random_number<T>(random);
      // op(i, j): what is solved with; `flipped`: the transpose of the lower triangle
      const auto op = [&](int i, int j) {
        if (flipped ? i > j : i < j) return T(0);
        const T v = unit && i == j ? T(1) : flipped ? a(b, j, i) : a(b, i, j);
        return conj_if(conj_A, v);
      };
      for (int c = 0; c < columns; ++c) {
        std::vector<T> v(std::size_t(n), T(0)), w = v, y = v;
        for (int i = 0; i < n; ++i) v[std::size_t(i)] = x(X, i, c) = random_number<T>(random);
        if (twice) {  // w = op^H v
          for (int i = 0; i < n; ++i)
            for (int j = 0; j < n; ++j) w[std::size_t(i)] += conj(op(j, i)) * v[std::size_t(j)];
        } else {
          w = v;
        }
        for (int i = 0; i < n; ++i)
          for (int j = 0; j < n; ++j) y[std::size_t(i)] += op(i, j) * w[std::size_t(j)];
        for (int i = 0; i < n; ++i) x(B, i, c) = y[std::size_t(i)];
      }
    }
    std::vector<int> info(std::size_t(count), 0);
    if (count > 1) {
      info[1] = 3;
      std::copy_n(B.begin() + size_x, size_x, X.begin() + size_x);
    }
    Items<const T> items = items_of<const T>(A.data(), n, n, ld, count, size);
    if (flipped) items = items.flipped();
    const Items<T> right = items_of(B.data(), n, columns, ld, count, size_x);
    cuda::CudaEngine engine(6);
    EXPECT_TRUE(engine.trsm_whole<T>({!flipped, unit}, {items, conj_A}, right, twice, info.data(), {}));
    Largest worst;
    for (std::size_t i = 0; i < B.size(); ++i) worst.add(modulus(B[i] - X[i]));
    EXPECT_LT(worst.value, tolerance<T>);
    ++schedule().seed;
  }
};
TYPED_TEST_SUITE(TrsmSweep, Scalars, ScalarNames);

TYPED_TEST(TrsmSweep, Solves) {
  for (unsigned blocks : {1u, 2u, 6u}) {
    schedule().resident_blocks = blocks;
    if (in_short && blocks != 2) continue;
    this->check(200, 1, 1, false, false, true, false);
    this->check(150, 3, 1, true, true, true, false);
    this->check(130, 6, 3, blocks == 1, false, false, blocks == 2);
    if (!in_short) this->check(65, 2, 2, true, false, false, true);
  }
  schedule().resident_blocks = ~0u;
}

}  // namespace
}  // namespace trifactor::simt
