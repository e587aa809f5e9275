// Products of batches: C -= op(A) op(B), or the lower triangle of it.
#include "support.hpp"

#include <core/engine.hpp>
#include <cuda/batched/gemm.cuh>

namespace trifactor::simt {
namespace {

/// Of an operand: by rows, conjugate.
struct How {
  bool flipped, conj;
};

template <class T>
class Gemm : public testing::Test {
 protected:
  std::mt19937_64 random{20261125};

  /// Three items of random numbers, of which item 1 is to be left alone.
  struct Matrices {
    int m, n, ld, size;
    std::vector<T> entries;
    Matrices(std::mt19937_64& random, int rows, int columns, int pad)
        : m(rows), n(columns), ld(rows + pad), size(ld * columns), entries(std::size_t(3 * size)) {
      for (T& x : entries) x = random_number<T>(random);
    }
    T& operator()(int b, int i, int j) { return entries[std::size_t(b * size + i + j * ld)]; }
    template <class U>
    Items<U> items() {
      return items_of<U>(entries.data(), m, n, ld, 3, size);
    }
  };

  void check(int m, int n, int k, How a, How b, bool lower_only, int pad) {
    SCOPED_TRACE(testing::Message() << m << " x " << n << " x " << k << (a.flipped ? ", A flipped" : "")
                                    << (a.conj ? ", A conjugate" : "") << (b.flipped ? ", B flipped" : "")
                                    << (b.conj ? ", B conjugate" : "") << (lower_only ? ", lower" : "") << ", seed "
                                    << schedule().seed);
    Matrices A(random, a.flipped ? k : m, a.flipped ? m : k, pad), B(random, b.flipped ? n : k, b.flipped ? k : n, pad);
    Matrices C(random, m, n, pad), expected = C;
    for (int item : {0, 2})
      for (int j = 0; j < n; ++j)
        for (int i = lower_only ? j : 0; i < m; ++i)
          for (int p = 0; p < k; ++p)
            expected(item, i, j) =
                minus_product(expected(item, i, j), conj_if(a.conj, a.flipped ? A(item, p, i) : A(item, i, p)),
                              conj_if(b.conj, b.flipped ? B(item, j, p) : B(item, p, j)));
    const auto operand = [](Matrices& X, How how) {
      const Items<const T> items = X.template items<const T>();
      return Operand<T>{how.flipped ? items.flipped() : items, how.conj};
    };
    const std::vector<int> info{0, 1, 0};
    cuda::launch_update<T>(nullptr, operand(A, a), operand(B, b), C.template items<T>(), lower_only, info.data());
    Largest worst;
    for (std::size_t i = 0; i < C.entries.size(); ++i) worst.add(modulus(C.entries[i] - expected.entries[i]));
    EXPECT_LT(worst.value, tolerance<T>);
    ++schedule().seed;
  }
};
TYPED_TEST_SUITE(Gemm, Scalars, ScalarNames);

TYPED_TEST(Gemm, Multiplies) {
  constexpr How plain{false, false}, hermitian{true, true}, conjugate{false, true}, transposed{true, false};
  this->check(70, 65, 33, plain, hermitian, false, 1);
  this->check(130, 130, 16, plain, hermitian, true, 2);
  if (in_short) return;
  this->check(64, 64, 40, plain, plain, false, 0);
  this->check(5, 129, 7, transposed, conjugate, false, 0);
  this->check(66, 3, 20, conjugate, transposed, false, 2);
}

}  // namespace
}  // namespace trifactor::simt
