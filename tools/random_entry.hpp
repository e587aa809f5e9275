// The entries of random test matrices, the same on the host and on a device.
#pragma once

#include <trifactor/types.hpp>

#include <cstdint>

#ifdef __CUDACC__
#define PROGRAM_ON_BOTH __host__ __device__
#else
#define PROGRAM_ON_BOTH
#endif

namespace program {

using trifactor::index_t;
using trifactor::Scalar;

/// A number in [-1, 1) that looks random and depends only on the seed and the place (splitmix64's finisher).
PROGRAM_ON_BOTH inline double random_number(std::uint64_t seed, std::uint64_t place) {
  std::uint64_t z = seed + (place + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return double(std::int64_t(z ^ (z >> 31)) >> 11) * 0x1p-52;
}

template <class R>
struct Parts {
  R re, im;
};

/// Entry (i, j) of a hermitian positive definite matrix of order n: random entries, n added to the diagonal, 2 n of a
/// complex matrix, whose entries may have a modulus above 1. It has imaginary parts everywhere but on the diagonal.
template <Scalar T>
PROGRAM_ON_BOTH Parts<trifactor::real_t<T>> positive_definite_entry(index_t n, index_t i, index_t j,
                                                                    std::uint64_t seed) {
  using R = trifactor::real_t<T>;
  const auto place = std::uint64_t(i > j ? i + j * n : j + i * n);
  constexpr bool has_two = trifactor::ComplexScalar<T>;
  const R re = R(random_number(seed, has_two ? 2 * place : place));
  if (i == j) return {re + R(has_two ? 2 * n : n), R(0)};
  if (!has_two) return {re, R(0)};
  const R im = R(random_number(seed, 2 * place + 1));
  return {re, i < j ? -im : im};
}

}  // namespace program
