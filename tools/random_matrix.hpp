// Random test matrices: the same for the same seed, whatever the number of threads.
#pragma once

#include <trifactor/queue.hpp>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace program {

using trifactor::index_t;
using trifactor::Matrix;
using trifactor::MatrixView;
using trifactor::Scalar;

/// A number in [-1, 1) that looks random and depends only on the seed and the place (splitmix64's finisher).
inline double random_number(std::uint64_t seed, std::uint64_t place) {
  std::uint64_t z = seed + (place + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return double(std::int64_t(z ^ (z >> 31)) >> 11) * 0x1p-52;
}

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

/// One column of a hermitian positive definite matrix: random entries, n added to the diagonal. A complex matrix has
/// imaginary parts everywhere but on the diagonal.
template <Scalar T>
void fill_positive_definite_column(MatrixView<T> A, index_t j, std::uint64_t seed) {
  const index_t n = A.rows;
  for (index_t i = 0; i < n; ++i) {
    const auto [large, small] = std::pair{std::max(i, j), std::min(i, j)};
    T a = random_scalar<T>(seed, std::uint64_t(large + small * n));
    if constexpr (trifactor::ComplexScalar<T>)
      if (i < j) a = std::conj(a);
    A(i, j) = i == j ? T(std::real(a) + trifactor::real_t<T>(n)) : a;
  }
}

template <Scalar T>
void fill_positive_definite(MatrixView<T> A, std::uint64_t seed) {
#pragma omp parallel for
  for (index_t j = 0; j < A.cols; ++j) fill_positive_definite_column(A, j, seed);
}

}  // namespace program
