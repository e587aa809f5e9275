// Random test matrices: the same for the same seed, whatever the number of threads.
#pragma once

#include "random_entry.hpp"

#include <trifactor/queue.hpp>

#include <cstdint>

namespace program {

using trifactor::Matrix;
using trifactor::MatrixView;

template <Scalar T>
T random_scalar(std::uint64_t seed, std::uint64_t place) {
  using R = trifactor::real_t<T>;
  if constexpr (trifactor::ComplexScalar<T>)
    return T(R(random_number(seed, 2 * place)), R(random_number(seed, 2 * place + 1)));
  else
    return R(random_number(seed, place));
}

/// Entries in [-1, 1), in the complex plane's square for complex T.
template <Scalar T>
void fill_random(MatrixView<T> A, std::uint64_t seed) {
#pragma omp parallel for
  for (index_t j = 0; j < A.cols; ++j)
    for (index_t i = 0; i < A.rows; ++i) A(i, j) = random_scalar<T>(seed, std::uint64_t(i + j * A.rows));
}

template <Scalar T>
void fill_positive_definite_column(MatrixView<T> A, index_t j, std::uint64_t seed) {
  for (index_t i = 0; i < A.rows; ++i) {
    const auto [re, im] = positive_definite_entry<T>(A.rows, i, j, seed);
    if constexpr (trifactor::ComplexScalar<T>)
      A(i, j) = T(re, im);
    else
      A(i, j) = re;
  }
}

template <Scalar T>
void fill_positive_definite(MatrixView<T> A, std::uint64_t seed) {
#pragma omp parallel for
  for (index_t j = 0; j < A.cols; ++j) fill_positive_definite_column(A, j, seed);
}

}  // namespace program
