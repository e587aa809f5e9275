// Solves with a triangle in one launch, whose blocks wait for the entries that others have solved.
#include "triangle_solve.hpp"

#include <cuda/single/trsm_sweep.cuh>

namespace trifactor::simt {
namespace {

template <class T>
class TrsmSweep : public testing::Test {
 protected:
  std::mt19937_64 random{20261123};

  void check(const TriangleSolve& problem) {
    check_triangle_solve<T>(problem, random, [&](Shape shape, const Operand<T>& A, const Items<T>& X, const int* info) {
      cuda::CudaEngine engine(6);
      EXPECT_TRUE(engine.trsm_whole<T>(shape, A, X, problem.twice, info, {}));
    });
  }
};
TYPED_TEST_SUITE(TrsmSweep, Scalars, ScalarNames);

TYPED_TEST(TrsmSweep, Solves) {
  for (unsigned blocks : {1u, 2u, 6u}) {
    schedule().resident_blocks = blocks;
    if (in_short && blocks != 2) continue;
    this->check({.n = 200, .columns = 1, .twice = true});
    this->check({.n = 150, .columns = 3, .flipped = true, .conj_A = true, .twice = true});
    this->check({.n = 130, .columns = 6, .count = 3, .flipped = blocks == 1, .unit = blocks == 2});
    if (!in_short) this->check({.n = 65, .columns = 2, .count = 2, .flipped = true, .unit = true});
  }
  schedule().resident_blocks = ~0u;
}

}  // namespace
}  // namespace trifactor::simt
