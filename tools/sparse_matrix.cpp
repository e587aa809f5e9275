#include "sparse_matrix.hpp"

#include "residual.hpp"
#include "scalars.hpp"
#include "symmetry.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace program {
namespace {

/// Calls visit(i, j, a) for every stored entry.
template <class Matrix, class Visit>
void for_each_entry(const Matrix& A, const Visit& visit) {
  for (index_t j = 0; j < A.n; ++j)
    for (index_t k = A.start[std::size_t(j)]; k < A.start[std::size_t(j + 1)]; ++k)
      visit(A.row[std::size_t(k)], j, A.value[std::size_t(k)]);
}

template <class T, class Sparse>
double ratio_of_solution(const Sparse& A, MatrixView<const T> X, MatrixView<const T> B) {
  constexpr double eps = std::numeric_limits<trifactor::real_t<T>>::epsilon() / 2;
  Matrix<T> R = product(A, X);
  const MatrixView<T> r = R.view();
  for (index_t j = 0; j < B.cols; ++j)
    for (index_t i = 0; i < B.rows; ++i) r(i, j) = B(i, j) - r(i, j);
  const double residual = norm1<T>(r);
  return residual == 0 ? 0 : residual / (norm1(A) * norm1(X) * eps);
}

/// A NaN wins.
double largest_of(const std::vector<double>& sums) {
  double norm = 0;
  for (const double sum : sums) {
    if (std::isnan(sum)) return sum;
    norm = std::max(norm, sum);
  }
  return norm;
}

}  // namespace

template <Scalar T>
Matrix<T> product(const SparseMatrix<T>& A, MatrixView<const T> X) {
  Matrix<T> Y(A.n, X.cols);
  const MatrixView<T> y = Y.view();
#pragma omp parallel for
  for (index_t c = 0; c < X.cols; ++c)
    for_each_entry(A, [&](index_t i, index_t j, T a) {
      y(i, c) += a * X(j, c);
      if (i != j) y(j, c) += conjugate(a) * X(i, c);
    });
  return Y;
}

template <Scalar T>
double norm1(const SparseMatrix<T>& A) {
  std::vector<double> sums(std::size_t(A.n), 0);
  for_each_entry(A, [&](index_t i, index_t j, T a) {
    sums[std::size_t(j)] += std::abs(a);
    if (i != j) sums[std::size_t(i)] += std::abs(a);
  });
  return largest_of(sums);
}

template <Scalar T>
Matrix<T> product(const GeneralMatrix<T>& A, MatrixView<const T> X) {
  Matrix<T> Y(A.n, X.cols);
  const MatrixView<T> y = Y.view();
#pragma omp parallel for
  for (index_t c = 0; c < X.cols; ++c) for_each_entry(A, [&](index_t i, index_t j, T a) { y(i, c) += a * X(j, c); });
  return Y;
}

template <Scalar T>
double norm1(const GeneralMatrix<T>& A) {
  std::vector<double> sums(std::size_t(A.n), 0);
  for_each_entry(A, [&](index_t, index_t j, T a) { sums[std::size_t(j)] += std::abs(a); });
  return largest_of(sums);
}

template <Scalar T>
double solve_ratio(const SparseMatrix<T>& A, MatrixView<const T> X, MatrixView<const T> B) {
  return ratio_of_solution(A, X, B);
}
template <Scalar T>
double solve_ratio(const GeneralMatrix<T>& A, MatrixView<const T> X, MatrixView<const T> B) {
  return ratio_of_solution(A, X, B);
}

template <Scalar T>
std::optional<index_t> find_not_positive(const SparseMatrix<T>& A) {
  for (index_t j = 0; j < A.n; ++j) {
    const index_t k = A.start[std::size_t(j)];  // the diagonal comes first
    const bool stored = k < A.start[std::size_t(j + 1)] && A.row[std::size_t(k)] == j;
    if (!stored || !(std::real(A.value[std::size_t(k)]) > 0)) return j;
  }
  return std::nullopt;
}

template <Scalar T>
void shift_diagonal(SparseMatrix<T>& A, double shift) {
  SparseMatrix<T> shifted;
  shifted.n = A.n, shifted.evened = A.evened;
  shifted.row.reserve(A.row.size() + std::size_t(A.n)), shifted.value.reserve(A.value.size() + std::size_t(A.n));
  for (index_t j = 0; j < A.n; ++j) {
    auto k = std::size_t(A.start[std::size_t(j)]);
    const auto end = std::size_t(A.start[std::size_t(j + 1)]);
    const bool stored = k < end && A.row[k] == j;  // the diagonal comes first
    shifted.row.push_back(j), shifted.value.push_back((stored ? A.value[k++] : T(0)) + T(trifactor::real_t<T>(shift)));
    for (; k < end; ++k) shifted.row.push_back(A.row[k]), shifted.value.push_back(A.value[k]);
    shifted.start.push_back(index_t(shifted.row.size()));
  }
  A = std::move(shifted);
}

#define INSTANTIATE(T)                                                                               \
  template Matrix<T> product<T>(const SparseMatrix<T>&, MatrixView<const T>);                        \
  template Matrix<T> product<T>(const GeneralMatrix<T>&, MatrixView<const T>);                       \
  template double norm1<T>(const GeneralMatrix<T>&);                                                 \
  template double solve_ratio<T>(const GeneralMatrix<T>&, MatrixView<const T>, MatrixView<const T>); \
  template double norm1<T>(const SparseMatrix<T>&);                                                  \
  template double solve_ratio<T>(const SparseMatrix<T>&, MatrixView<const T>, MatrixView<const T>);  \
  template std::optional<index_t> find_not_positive<T>(const SparseMatrix<T>&);                      \
  template void shift_diagonal<T>(SparseMatrix<T>&, double);
TRIFACTOR_FOR_EACH_SCALAR(INSTANTIATE)
#undef INSTANTIATE

}  // namespace program
