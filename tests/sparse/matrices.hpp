// Sparse hermitian positive definite matrices to test with.
#pragma once

#include <support/matrices.hpp>
#include <trifactor/sparse.hpp>

#include <map>

namespace trifactor::test {

/// Compressed columns of one or both triangles.
template <Scalar T>
struct StoredMatrix {
  index_t n = 0;
  Stored stored = Stored::Lower;
  std::vector<std::int64_t> start, index;
  std::vector<T> values;

  Pattern<std::int64_t> pattern() const {
    return {.rows = n, .cols = n, .start = start.data(), .index = index.data(), .stored = stored};
  }
  T& at(index_t i, index_t j) {
    for (index_t k = start[j]; k < start[j + 1]; ++k)
      if (index[k] == i) return values[k];
    throw std::out_of_range("no such entry");
  }
};

template <Scalar T>
struct SparseMatrix {
  std::string name;
  index_t n = 0;
  std::map<std::pair<index_t, index_t>, T> lower;  // by (column, row)

  /// Entry (i, j) and its mirror image. The diagonal follows in dominate().
  void add(Random& random, index_t i, index_t j) {
    if (i != j) lower[{std::min(i, j), std::max(i, j)}] = narrow<T>(random.wide<Wide<T>>());
  }
  /// A diagonal that outweighs every row a little.
  void dominate() {
    std::vector<double> sums(n, 0.1);
    for (const auto& [place, value] : lower)
      if (place.first != place.second) sums[place.first] += std::abs(value), sums[place.second] += std::abs(value);
    for (index_t j = 0; j < n; ++j) lower[{j, j}] = T(real_t<T>(sums[j] * 1.01));
  }
  SparseMatrix with_new_values(Random& random) const {
    SparseMatrix A = *this;
    for (auto& [place, value] : A.lower) value = narrow<T>(random.wide<Wide<T>>());
    A.dominate();
    return A;
  }
  StoredMatrix<T> stored(Stored how) const {
    std::map<std::pair<index_t, index_t>, T> entries;
    for (const auto& [place, value] : lower) {
      if (how != Stored::Upper) entries[place] = value;
      if (how != Stored::Lower) entries[{place.second, place.first}] = conj(value);
    }
    StoredMatrix<T> A{n, how, std::vector<std::int64_t>(n + 1), {}, {}};
    for (const auto& [place, value] : entries) {
      ++A.start[place.first + 1];
      A.index.push_back(place.second), A.values.push_back(value);
    }
    for (index_t j = 0; j < n; ++j) A.start[j + 1] += A.start[j];
    return A;
  }
  HostMatrix<T> full() const {
    HostMatrix<T> A(n, n);
    for (const auto& [place, value] : lower) {
      A(place.second, place.first) = value;
      A(place.first, place.second) = conj(value);
    }
    return A;
  }
  /// |B - A X| / (|A| |X| eps), the worst column.
  double solve_ratio(const HostMatrix<T>& X, const HostMatrix<T>& B) const {
    struct Entry {
      index_t i, j;
      Wide<T> value;
    };
    std::vector<Entry> entries;  // a walk through the map for every column is slow
    std::vector<double> sums(n, 0.0);
    for (const auto& [place, value] : lower) {
      entries.push_back({place.second, place.first, widen(value)});
      sums[place.first] += std::abs(value);
      if (place.first != place.second) sums[place.second] += std::abs(value);
    }
    const double norm = n > 0 ? *std::max_element(sums.begin(), sums.end()) : 1;
    double worst = 0;
    for (index_t c = 0; c < X.cols; ++c) {
      std::vector<Wide<T>> r(n), x(n);
      double size = 0, residual = 0;
      for (index_t i = 0; i < n; ++i) r[i] = widen(B(i, c)), x[i] = widen(X(i, c)), size += std::abs(x[i]);
      for (const auto& [i, j, value] : entries) {
        r[i] -= value * x[j];
        if (i != j) r[j] -= conj(value) * x[i];
      }
      for (index_t i = 0; i < n; ++i) residual += std::abs(r[i]);
      const double ratio = residual == 0 ? 0 : residual / norm / size / eps<T>;
      if (!(ratio <= worst)) worst = ratio;
    }
    return worst;
  }
};

#define TRIFACTOR_TEST_INSTANCES(T) TRIFACTOR_TEST_REFERENCE struct SparseMatrix<T>;
TRIFACTOR_TEST_EACH_SCALAR(TRIFACTOR_TEST_INSTANCES)
#undef TRIFACTOR_TEST_INSTANCES

namespace detail {
/// The neighbours in a grid of m^d points.
template <Scalar T>
SparseMatrix<T> grid(Random& random, const char* name, index_t m, int d) {
  SparseMatrix<T> A{name, 1, {}};
  for (int k = 0; k < d; ++k) A.n *= m;
  for (index_t i = 0; i < A.n; ++i)
    for (index_t k = 0, stride = 1; k < d; ++k, stride *= m)
      if (i / stride % m + 1 < m) A.add(random, i, i + stride);
  A.dominate();
  return A;
}
}  // namespace detail

template <Scalar T>
SparseMatrix<T> poisson2d(Random& random, index_t m) {
  return detail::grid<T>(random, "poisson2d", m, 2);
}
template <Scalar T>
SparseMatrix<T> poisson3d(Random& random, index_t m) {
  return detail::grid<T>(random, "poisson3d", m, 3);
}
template <Scalar T>
SparseMatrix<T> banded(Random& random, index_t n, index_t width) {
  SparseMatrix<T> A{"banded", n, {}};
  for (index_t j = 0; j < n; ++j)
    for (index_t i = j + 1; i < std::min(n, j + width + 1); ++i) A.add(random, i, j);
  A.dominate();
  return A;
}
template <Scalar T>
SparseMatrix<T> full_matrix(Random& random, index_t n) {
  auto A = banded<T>(random, n, n);
  A.name = "full";
  return A;
}
template <Scalar T>
SparseMatrix<T> diagonal_matrix(Random& random, index_t n) {
  auto A = banded<T>(random, n, 0);
  A.name = "diagonal";
  return A;
}
/// A full last, or first, row.
template <Scalar T>
SparseMatrix<T> arrow(Random& random, index_t n, bool last) {
  SparseMatrix<T> A{"arrow", n, {}};
  for (index_t j = 0; j < n; ++j) A.add(random, j, last ? n - 1 : 0);
  A.dominate();
  return A;
}
/// About `degree` random entries a column.
template <Scalar T>
SparseMatrix<T> random_pattern(Random& random, index_t n, double degree) {
  SparseMatrix<T> A{"random", n, {}};
  for (index_t k = 0; k < index_t(degree * double(n)); ++k)
    A.add(random, random.integer(0, n - 1), random.integer(0, n - 1));
  A.dominate();
  return A;
}
/// Components of random patterns, mixed up.
template <Scalar T>
SparseMatrix<T> disconnected(Random& random, index_t components, index_t each) {
  SparseMatrix<T> A{"disconnected", components * each, {}};
  for (index_t k = 0; k < 2 * A.n; ++k) {
    const index_t c = random.integer(0, components - 1);
    A.add(random, c + components * random.integer(0, each - 1), c + components * random.integer(0, each - 1));
  }
  A.dominate();
  return A;
}

}  // namespace trifactor::test
