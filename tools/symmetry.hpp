// Both triangles of a square host matrix at once, tile by tile so that rows cost no more than columns.
#pragma once

#include <trifactor/views.hpp>

#include <algorithm>
#include <atomic>
#include <complex>
#include <limits>
#include <optional>
#include <utility>

namespace program {

using trifactor::index_t;
using trifactor::MatrixView;

template <class T>
T conjugate(T a) {
  if constexpr (trifactor::ComplexScalar<T>)
    return std::conj(a);
  else
    return a;
}

/// Equal, where one NaN is as good as another.
template <class T>
bool same(T a, T b) {
  return a == b || (a != a && b != b);
}

/// Calls visit(i, j) for every i > j, in tiles, columns of tiles in parallel.
template <class Visit>
void for_each_below_diagonal(index_t n, const Visit& visit) {
  constexpr index_t tile = 64;
#pragma omp parallel for schedule(dynamic)
  for (index_t j0 = 0; j0 < n; j0 += tile)
    for (index_t i0 = j0; i0 < n; i0 += tile)
      for (index_t j = j0; j < std::min(j0 + tile, n); ++j)
        for (index_t i = std::max(i0, j + 1); i < std::min(i0 + tile, n); ++i) visit(i, j);
}

/// The first entry on or below the diagonal, by columns, that is not the conjugate of its mirror image; nothing when A
/// is symmetric (real) or hermitian (complex).
template <class T>
std::optional<std::pair<index_t, index_t>> find_asymmetry(MatrixView<const T> A) {
  const index_t n = A.rows, none = std::numeric_limits<index_t>::max();
  std::atomic<index_t> first = none;  // i + j n
  const auto compare = [&](index_t i, index_t j) {
    const index_t place = i + j * n;
    index_t before = first.load(std::memory_order_relaxed);
    if (place >= before || same(A(i, j), conjugate(A(j, i)))) return;
    while (place < before && !first.compare_exchange_weak(before, place, std::memory_order_relaxed)) {}
  };
  for_each_below_diagonal(n, compare);
  for (index_t j = 0; j < n; ++j) compare(j, j);
  if (first == none) return std::nullopt;
  return std::pair{first.load() % n, first.load() / n};
}

}  // namespace program
