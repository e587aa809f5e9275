// Solves of batches with triangles of several tiles, whose right-hand sides lie in shared memory.
#include "triangle_solve.hpp"

#include <cuda/batched/trsm.cuh>

namespace trifactor::simt {
namespace {

template <class T>
class TrsmStrips : public testing::Test {};
TYPED_TEST_SUITE(TrsmStrips, Scalars, ScalarNames);

TYPED_TEST(TrsmStrips, Solve) {
  using T = TypeParam;
  std::mt19937_64 random{20261124};
  for (const auto& [n, columns] : {std::pair{33, 1}, {70, 8}, {64, 9}, {97, 3}, {100, 40}, {7, 2}}) {
    if (in_short && n != 70 && n != 64) continue;
    for (bool flipped : {false, true})
      for (bool conj_A : {false, true})
        check_triangle_solve<T>(
            {.n = n, .columns = columns, .count = 3, .flipped = flipped, .conj_A = conj_A, .unit = n == 64}, random,
            [](Shape shape, const Operand<T>& A, const Items<T>& X, const int* info) {
              cuda::launch_trsm_strips<T>(nullptr, shape, A, X, info);
            });
  }
}

}  // namespace
}  // namespace trifactor::simt
