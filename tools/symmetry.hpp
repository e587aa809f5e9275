// What is symmetric or hermitian, exactly and up to rounding; both triangles of a dense host matrix at once, tile by
// tile so that rows cost no more than columns.
#pragma once

#include <fmt/core.h>
#include <trifactor/sparse.hpp>
#include <trifactor/views.hpp>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <complex>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

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

/// What of a matrix was symmetric (hermitian) only up to rounding, and was evened out.
struct Asymmetry {
  index_t pairs = 0;            // of entries that became their mean
  double largest_pair = 0;      // |a_ij - conj(a_ji)|
  index_t diagonals = 0;        // entries of the diagonal that became real
  double largest_diagonal = 0;  // modulus of an imaginary part

  explicit operator bool() const { return pairs > 0 || diagonals > 0; }
  void add_pair(double difference) { ++pairs, largest_pair = std::max(largest_pair, difference); }
  void add_diagonal(double imaginary) { ++diagonals, largest_diagonal = std::max(largest_diagonal, imaginary); }

  /// "2 pairs of entries differ by rounding, by up to 1e-16: their mean is taken"
  std::string text() const {
    std::string text;
    if (pairs > 0)
      text = fmt::format("{} of entries {} by rounding, by up to {:.2g}: the mean is taken",
                         pairs == 1 ? "1 pair" : fmt::format("{} pairs", pairs), pairs == 1 ? "differs" : "differ",
                         largest_pair);
    if (diagonals > 0)
      text += fmt::format("{}imaginary parts of the diagonal are rounding in {}, up to {:.2g}: dropped",
                          text.empty() ? "" : "; ", diagonals == 1 ? "1 row" : fmt::format("{} rows", diagonals),
                          largest_diagonal);
    return text;
  }
};

/// Whether a equals the conjugate b of its mirror image up to rounding; of_row and of_column are the roots of the
/// moduli of the two entries on the diagonal.
template <class T>
bool agree(T a, T b, double of_row, double of_column) {
  if (same(a, b)) return true;
  const double tolerated = trifactor::hermitian_tolerance<T> * of_row * of_column;
  return std::isfinite(tolerated) && std::abs(a - b) <= tolerated;
}

/// Makes a diagonal entry real if its imaginary part is rounding; returns whether it is real then.
template <class T>
bool make_real([[maybe_unused]] T& a, [[maybe_unused]] Asymmetry& evened) {
  if constexpr (trifactor::ComplexScalar<T>) {
    const double root = std::sqrt(std::abs(a));
    if (std::imag(a) == 0) return true;
    if (!agree(a, std::conj(a), root, root)) return false;
    evened.add_diagonal(std::abs(std::imag(a)));
    a = std::real(a);
  }
  return true;
}

/// a, or its mean with the conjugate b of its mirror image.
template <class T>
T mean(T a, T b) {
  return same(a, b) ? a : a + (b - a) / 2.0;
}

constexpr index_t symmetry_tile = 64;

/// Calls visit(i, j) for every i > j of the column of tiles that begins with column j0.
template <class Visit>
void for_each_in_tiles(index_t n, index_t j0, const Visit& visit) {
  constexpr index_t tile = symmetry_tile;
  for (index_t i0 = j0; i0 < n; i0 += tile)
    for (index_t j = j0; j < std::min(j0 + tile, n); ++j)
      for (index_t i = std::max(i0, j + 1); i < std::min(i0 + tile, n); ++i) visit(i, j);
}

/// Calls visit(i, j) for every i > j, columns of tiles in parallel.
template <class Visit>
void for_each_below_diagonal(index_t n, const Visit& visit) {
#pragma omp parallel for schedule(dynamic)
  for (index_t j0 = 0; j0 < n; j0 += symmetry_tile) for_each_in_tiles(n, j0, visit);
}

/// The first entry on or below the diagonal, by columns, that is not the conjugate of its mirror image up to rounding;
/// nothing when A is symmetric (real) or hermitian (complex).
template <class T>
std::optional<std::pair<index_t, index_t>> find_asymmetry(MatrixView<const T> A) {
  const index_t n = A.rows, none = std::numeric_limits<index_t>::max();
  std::vector<double> root(static_cast<std::size_t>(n));
  for (index_t j = 0; j < n; ++j) root[std::size_t(j)] = std::sqrt(std::abs(A(j, j)));
  std::atomic<index_t> first = none;  // i + j n
  const auto compare = [&](index_t i, index_t j) {
    const index_t place = i + j * n;
    index_t before = first.load(std::memory_order_relaxed);
    if (place >= before || agree(A(i, j), conjugate(A(j, i)), root[std::size_t(i)], root[std::size_t(j)])) return;
    while (place < before && !first.compare_exchange_weak(before, place, std::memory_order_relaxed)) {}
  };
  for_each_below_diagonal(n, compare);
  for (index_t j = 0; j < n; ++j) compare(j, j);
  if (first == none) return std::nullopt;
  return std::pair{first.load() % n, first.load() / n};
}

/// Makes a matrix in which find_asymmetry found nothing equal to its mirror image.
template <class T>
void even_out(MatrixView<T> A, Asymmetry& evened) {
  index_t pairs = 0;
  double largest = 0;
#pragma omp parallel for schedule(dynamic) reduction(+ : pairs) reduction(max : largest)
  for (index_t j0 = 0; j0 < A.rows; j0 += symmetry_tile)
    for_each_in_tiles(A.rows, j0, [&](index_t i, index_t j) {
      const T a = A(i, j), b = conjugate(A(j, i));
      if (same(a, b)) return;
      A(i, j) = mean(a, b), A(j, i) = conjugate(mean(a, b));
      ++pairs, largest = std::max(largest, double(std::abs(a - b)));
    });
  evened.pairs += pairs, evened.largest_pair = std::max(evened.largest_pair, largest);
  for (index_t j = 0; j < A.rows; ++j) make_real(A(j, j), evened);
}

}  // namespace program
