// Matrices for tests of plans and of what is made from them.
#pragma once

#include <sparse/matrices.hpp>

namespace trifactor::test {

inline std::vector<SparseMatrix<double>> plan_matrices(Random& random) {
  return {poisson3d<double>(random, 9),         poisson2d<double>(random, 40),  banded<double>(random, 2000, 8),
          disconnected<double>(random, 30, 50), full_matrix<double>(random, 1), full_matrix<double>(random, 0),
          full_matrix<double>(random, 200)};
}

}  // namespace trifactor::test
