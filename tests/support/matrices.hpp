// Matrices to test with, from a seed that is new in every run and can be given again: TRIFACTOR_TEST_SEED.
#pragma once

#include <support/parallel.hpp>
#include <support/wide.hpp>

#include <cstdlib>
#include <random>

namespace trifactor::test {

inline std::uint64_t test_seed() {
  static const std::uint64_t seed = [] {
    const char* given = std::getenv("TRIFACTOR_TEST_SEED");
    return given ? std::strtoull(given, nullptr, 10) : std::uint64_t(std::random_device{}());
  }();
  return seed;
}

/// splitmix64: small, fast where nothing is inlined, and the same numbers everywhere.
class Random {
 public:
  explicit Random(std::uint64_t seed = test_seed()) : state_(seed) {}

  std::uint64_t bits() {
    std::uint64_t x = state_ += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
  }
  double uniform() { return double(std::int64_t(bits())) * 0x1p-63; }  // in [-1, 1]
  double uniform(double low, double high) { return low + (high - low) * (uniform() + 1) / 2; }
  index_t integer(index_t low, index_t high) { return low + index_t(bits() % std::uint64_t(high - low + 1)); }
  template <class W>
  W wide() {
    const double re = uniform(), im = uniform();
    return make_scalar<W>(re, im);
  }

 private:
  std::uint64_t state_;
};

template <Scalar T>
HostMatrix<T> random_matrix(Random& random, index_t m, index_t n, index_t pad = 0) {
  HostMatrix<T> A(m, n, pad);
  for (index_t j = 0; j < n; ++j)
    for (index_t i = 0; i < m; ++i) A(i, j) = narrow<T>(random.wide<Wide<T>>());
  return A;
}

/// Hermitian positive definite, well conditioned; both triangles, imaginary off the diagonal.
template <Scalar T>
HostMatrix<T> random_spd(Random& random, index_t n, index_t pad = 0) {
  HostMatrix<Wide<T>> A;
  if (n <= 100) {  // R R^H / n + 0.1 I
    const auto R = random_matrix<Wide<T>>(random, n, n);
    A = product(R, transformed(Op::ConjTranspose, R));
    for (index_t j = 0; j < n; ++j)
      for (index_t i = j; i < n; ++i) set_hermitian<Wide<T>>(A, i, j, A(i, j) / double(n));
    for (index_t j = 0; j < n; ++j) A(j, j) = real(A(j, j)) + 0.1;
  } else {  // cheaper: the eigenvalues of the random part lie within 1.7 sqrt(n)
    A = random_matrix<Wide<T>>(random, n, n);
    for (index_t j = 0; j < n; ++j) {
      A(j, j) = 2.5 * std::sqrt(double(n));
      for (index_t i = j + 1; i < n; ++i) set_hermitian<Wide<T>>(A, i, j, A(i, j));
    }
  }
  return narrow<T>(A, pad);
}

struct OrderAndPad {
  index_t order, pad = 0;
};
/// random_spd of each order, made side by side.
template <Scalar T>
std::vector<HostMatrix<T>> random_spd_items(Random& random, const std::vector<OrderAndPad>& shapes) {
  std::vector<Random> own;
  index_t entries = 0;
  for (const OrderAndPad& shape : shapes) own.emplace_back(random.bits()), entries += shape.order * shape.order;
  std::vector<HostMatrix<T>> items(shapes.size());
  in_parallel(items.size(), entries,
              [&](std::size_t i) { items[i] = random_spd<T>(own[i], shapes[i].order, shapes[i].pad); });
  return items;
}

/// A := (I - 2 v v^H) A for a random v of length 1.
template <class W>
void reflect_rows(Random& random, HostMatrix<W>& A) {
  std::vector<W> v(A.rows);
  double length = 0;
  for (W& x : v) x = random.wide<W>(), length += std::norm(x);
  for (W& x : v) x /= std::sqrt(length);
  for (index_t j = 0; j < A.cols; ++j) {
    W dot = 0;
    for (index_t i = 0; i < A.rows; ++i) dot += conj(v[i]) * A(i, j);
    for (index_t i = 0; i < A.rows; ++i) A(i, j) -= 2.0 * v[i] * dot;
  }
}

/// Numbers from 1 down to 1 / cond, each a fixed part of the one before.
inline std::vector<double> graded(index_t n, double cond) {
  std::vector<double> d(n, 1.0);
  for (index_t i = 0; i < n; ++i) d[i] = n > 1 ? std::pow(cond, -double(i) / double(n - 1)) : 1.0;
  return d;
}

/// One number and the others, which are all alike: a cluster.
inline std::vector<double> one_apart(index_t n, double one, double others) {
  std::vector<double> d(n, others);
  if (n > 0) d[0] = one;
  return d;
}

/// U diag(d) V^H with random unitary U and V, times scale.
template <Scalar T>
HostMatrix<T> with_singular_values(Random& random, const std::vector<double>& d, double scale = 1, index_t pad = 0) {
  const index_t n = index_t(d.size());
  HostMatrix<Wide<T>> A(n, n);
  for (index_t j = 0; j < n; ++j) A(j, j) = d[j];
  for (int side = 0; side < 2; ++side) {
    for (int k = 0; k < 3 && n > 1; ++k) reflect_rows(random, A);
    A = transformed(Op::ConjTranspose, A);
  }
  for (auto& x : A.storage) x *= scale;
  return narrow<T>(A, pad);
}

/// Q diag(d) Q^H with a random unitary Q, times scale: both triangles.
template <Scalar T>
HostMatrix<T> with_eigenvalues(Random& random, const std::vector<double>& d, double scale = 1, index_t pad = 0) {
  const index_t n = index_t(d.size());
  HostMatrix<Wide<T>> Q(n, n);
  for (index_t j = 0; j < n; ++j) Q(j, j) = 1;
  for (int k = 0; k < 3 && n > 1; ++k) reflect_rows(random, Q);
  auto D = Q;
  for (index_t j = 0; j < n; ++j)
    for (index_t i = 0; i < n; ++i) D(i, j) *= d[j];
  auto A = product(D, transformed(Op::ConjTranspose, Q));
  for (index_t j = 0; j < n; ++j) {
    A(j, j) = real(A(j, j)) * scale;
    for (index_t i = j + 1; i < n; ++i) set_hermitian<Wide<T>>(A, i, j, A(i, j) * scale);
  }
  return narrow<T>(A, pad);
}

/// The smallest and the largest scale at which LAPACK tests its routines.
template <Scalar T>
double tiny_scale() {
  return 0.25 * (double(std::numeric_limits<real_t<T>>::min()) / eps<T>);
}
template <Scalar T>
double huge_scale() {
  return 1 / tiny_scale<T>();
}

template <class T>
void zero_row_and_column(HostMatrix<T>& A, index_t k) {
  for (index_t i = 0; i < A.rows; ++i) A(i, k) = A(k, i) = T(0);
}

#define TRIFACTOR_TEST_INSTANCES(T)                                                                                  \
  TRIFACTOR_TEST_REFERENCE struct HostMatrix<T>;                                                                     \
  TRIFACTOR_TEST_REFERENCE bool same_outside_triangle(const HostMatrix<T>&, const HostMatrix<T>&, Uplo);             \
  TRIFACTOR_TEST_REFERENCE bool same_frame(const HostMatrix<T>&, const HostMatrix<T>&);                              \
  TRIFACTOR_TEST_REFERENCE HostMatrix<T> only_triangle(HostMatrix<T>, Uplo);                                         \
  TRIFACTOR_TEST_REFERENCE HostMatrix<T> leading(const HostMatrix<T>&, index_t, index_t);                            \
  TRIFACTOR_TEST_REFERENCE HostMatrix<Wide<T>> widen(const HostMatrix<T>&);                                          \
  TRIFACTOR_TEST_REFERENCE HostMatrix<T> narrow<T>(const HostMatrix<Wide<T>>&, index_t);                             \
  TRIFACTOR_TEST_REFERENCE HostMatrix<T> transformed(Op, const HostMatrix<T>&);                                      \
  TRIFACTOR_TEST_REFERENCE HostMatrix<T> random_matrix<T>(Random&, index_t, index_t, index_t);                       \
  TRIFACTOR_TEST_REFERENCE HostMatrix<T> random_spd<T>(Random&, index_t, index_t);                                   \
  TRIFACTOR_TEST_REFERENCE std::vector<HostMatrix<T>> random_spd_items<T>(Random&, const std::vector<OrderAndPad>&); \
  TRIFACTOR_TEST_REFERENCE HostMatrix<T> with_singular_values<T>(Random&, const std::vector<double>&, double,        \
                                                                 index_t);                                           \
  TRIFACTOR_TEST_REFERENCE HostMatrix<T> with_eigenvalues<T>(Random&, const std::vector<double>&, double, index_t);
TRIFACTOR_TEST_EACH_MATRIX(TRIFACTOR_TEST_INSTANCES)
#undef TRIFACTOR_TEST_INSTANCES
#define TRIFACTOR_TEST_INSTANCES(W)                                                                 \
  TRIFACTOR_TEST_REFERENCE HostMatrix<W> product(const HostMatrix<W>&, const HostMatrix<W>&, bool); \
  TRIFACTOR_TEST_REFERENCE HostMatrix<W> difference(HostMatrix<W>, const HostMatrix<W>&);           \
  TRIFACTOR_TEST_REFERENCE double norm1(const HostMatrix<W>&, index_t, index_t);
TRIFACTOR_TEST_EACH_WIDE(TRIFACTOR_TEST_INSTANCES)
#undef TRIFACTOR_TEST_INSTANCES

}  // namespace trifactor::test
