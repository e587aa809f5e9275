#include "residual.hpp"

#include "random_matrix.hpp"
#include "symmetry.hpp"

#include <cblas.h>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <limits>
#include <vector>

namespace program {
namespace {

constexpr index_t largest_multiplied_out = 1024;  // beyond this, n^3 on the host is too slow

template <class T>
constexpr double eps = std::numeric_limits<trifactor::real_t<T>>::epsilon() / 2;

/// C -= op(A) op(B)
template <class T>
void subtract_product(CBLAS_TRANSPOSE op_a, MatrixView<const T> A, CBLAS_TRANSPOSE op_b, MatrixView<const T> B,
                      MatrixView<T> C) {
  if (C.rows == 0 || C.cols == 0) return;
  const int m = int(C.rows), n = int(C.cols), k = int(op_a == CblasNoTrans ? A.cols : A.rows);
  const int lda = int(A.ld), ldb = int(B.ld), ldc = int(C.ld);
  const T minus = T(-1), one = T(1);
  if constexpr (std::same_as<T, float>)
    cblas_sgemm(CblasColMajor, op_a, op_b, m, n, k, minus, A.data, lda, B.data, ldb, one, C.data, ldc);
  else if constexpr (std::same_as<T, double>)
    cblas_dgemm(CblasColMajor, op_a, op_b, m, n, k, minus, A.data, lda, B.data, ldb, one, C.data, ldc);
  else if constexpr (std::same_as<T, std::complex<float>>)
    cblas_cgemm(CblasColMajor, op_a, op_b, m, n, k, &minus, A.data, lda, B.data, ldb, &one, C.data, ldc);
  else
    cblas_zgemm(CblasColMajor, op_a, op_b, m, n, k, &minus, A.data, lda, B.data, ldb, &one, C.data, ldc);
}

/// x = op(triangle of A) x
template <class T>
void multiply_triangle(CBLAS_UPLO uplo, CBLAS_TRANSPOSE op, CBLAS_DIAG diagonal, MatrixView<const T> A, T* x) {
  const int n = int(A.rows), ld = int(A.ld);
  if constexpr (std::same_as<T, float>)
    cblas_strmv(CblasColMajor, uplo, op, diagonal, n, A.data, ld, x, 1);
  else if constexpr (std::same_as<T, double>)
    cblas_dtrmv(CblasColMajor, uplo, op, diagonal, n, A.data, ld, x, 1);
  else if constexpr (std::same_as<T, std::complex<float>>)
    cblas_ctrmv(CblasColMajor, uplo, op, diagonal, n, A.data, ld, x, 1);
  else
    cblas_ztrmv(CblasColMajor, uplo, op, diagonal, n, A.data, ld, x, 1);
}

/// A matrix of our own with ld = max(rows, 1).
template <class T>
struct Owned {
  Owned(index_t rows, index_t cols)
      : values(std::size_t(rows * cols)), view{values.data(), rows, cols, std::max<index_t>(rows, 1)} {}
  explicit Owned(MatrixView<const T> A) : Owned(A.rows, A.cols) {
    for (index_t j = 0; j < A.cols; ++j) std::copy_n(A.data + j * A.ld, A.rows, view.data + j * view.ld);
  }
  std::vector<T> values;
  MatrixView<T> view;
};

/// Keeps one triangle of A; the diagonal is its own, or ones.
template <class T>
Owned<T> triangle(CBLAS_UPLO uplo, CBLAS_DIAG diagonal, MatrixView<const T> A) {
  Owned<T> L(A.rows, A.cols);
  for (index_t j = 0; j < A.cols; ++j) {
    const index_t first = uplo == CblasLower ? j : 0, last = uplo == CblasLower ? A.rows : j + 1;
    for (index_t i = first; i < last; ++i) L.view(i, j) = A(i, j);
    if (diagonal == CblasUnit) L.view(j, j) = T(1);
  }
  return L;
}

template <class T>
void exchange_rows(MatrixView<T> A, std::span<const int> pivots) {
  for (index_t j = 0; j < A.cols; ++j)
    for (std::size_t k = 0; k < pivots.size(); ++k)
      if (const index_t other = pivots[k] - 1; other != index_t(k)) std::swap(A(index_t(k), j), A(other, j));
}

/// residual / scale, where a residual of nothing is good at any scale.
double ratio(double residual, double scale) { return residual == 0 ? 0 : residual / scale; }

}  // namespace

template <Scalar T>
double norm1(MatrixView<const T> A) {
  double norm = 0;
  bool nan = false;
#pragma omp parallel for reduction(max : norm) reduction(|| : nan)
  for (index_t j = 0; j < A.cols; ++j) {
    double sum = 0;
    for (index_t i = 0; i < A.rows; ++i) sum += double(std::abs(A(i, j)));
    nan = nan || std::isnan(sum);
    norm = std::max(norm, sum);
  }
  return nan ? std::numeric_limits<double>::quiet_NaN() : norm;
}

template <Scalar T>
double solve_ratio(MatrixView<const T> A, MatrixView<const T> X, MatrixView<const T> B) {
  Owned<T> R(B);
  subtract_product<T>(CblasNoTrans, A, CblasNoTrans, X, R.view);  // B - A X
  return ratio(norm1<T>(R.view), norm1(A) * norm1(X) * eps<T>);
}

template <Scalar T>
double cholesky_ratio(Uplo uplo, MatrixView<const T> A, MatrixView<const T> factor) {
  const index_t n = A.rows;
  const bool lower = uplo == Uplo::Lower;
  const CBLAS_UPLO side = lower ? CblasLower : CblasUpper;
  const CBLAS_TRANSPOSE first = lower ? CblasConjTrans : CblasNoTrans, second = lower ? CblasNoTrans : CblasConjTrans;
  if (n <= largest_multiplied_out) {
    Owned<T> R(A);
    const Owned<T> L = triangle(side, CblasNonUnit, factor);
    subtract_product<T>(second, L.view, first, L.view, R.view);  // A - L L^H, or A - U^H U
    return ratio(norm1<T>(R.view), double(n) * norm1(A) * eps<T>);
  }
  Owned<T> v(n, 1);
  fill_random(v.view, 1);
  Owned<T> w(v.view);
  multiply_triangle(side, first, CblasNonUnit, factor, w.view.data);
  multiply_triangle(side, second, CblasNonUnit, factor, w.view.data);  // L L^H v
  subtract_product<T>(CblasNoTrans, A, CblasNoTrans, v.view, w.view);
  return ratio(norm1<T>(w.view), double(n) * norm1(A) * norm1<T>(v.view) * eps<T>);
}

template <Scalar T>
double cholesky_probe(Uplo uplo, MatrixView<const T> A, MatrixView<const T> factor) {
  using Wide = std::conditional_t<trifactor::ComplexScalar<T>, std::complex<double>, double>;
  const index_t n = A.rows;
  const auto L = [&](index_t i, index_t j) {  // i >= j
    return Wide(uplo == Uplo::Lower ? factor(i, j) : conjugate(factor(j, i)));
  };
  std::vector<Wide> v(static_cast<std::size_t>(n)), r(v.size(), Wide(0));
  double norm_A = 0, norm_v = 0, norm_r = 0;
  for (index_t j = 0; j < n; ++j) {
    v[std::size_t(j)] = random_scalar<Wide>(1, std::uint64_t(j));
    norm_v += std::abs(v[std::size_t(j)]);
  }
  for (index_t j = 0; j < n; ++j) {
    double column = 0;
    Wide w = 0;
    for (index_t i = 0; i < n; ++i) {
      r[std::size_t(i)] += Wide(A(i, j)) * v[std::size_t(j)];
      column += double(std::abs(A(i, j)));
    }
    for (index_t i = j; i < n; ++i) w += conjugate(L(i, j)) * v[std::size_t(i)];  // w = L^H v
    for (index_t i = j; i < n; ++i) r[std::size_t(i)] -= L(i, j) * w;             // r = A v - L w
    norm_A = std::max(norm_A, column);
  }
  for (const Wide& x : r) norm_r += std::abs(x);
  return ratio(norm_r, double(n) * norm_A * norm_v * eps<T>);
}

template <Scalar T>
double lu_ratio(MatrixView<const T> A, MatrixView<const T> factors, std::span<const int> pivots) {
  const index_t m = A.rows, n = A.cols;
  const index_t k = std::min(m, n);
  const MatrixView<const T> top{factors.data, k, k, factors.ld}, below{factors.data + k, m - k, k, factors.ld},
      right{factors.data + k * factors.ld, k, n - k, factors.ld};
  if (m == n && n <= largest_multiplied_out) {
    Owned<T> R(A);
    exchange_rows(R.view, pivots);
    const Owned<T> L = triangle(CblasLower, CblasUnit, factors), U = triangle(CblasUpper, CblasNonUnit, factors);
    subtract_product<T>(CblasNoTrans, L.view, CblasNoTrans, U.view, R.view);  // P A - L U
    return ratio(norm1<T>(R.view), double(n) * norm1(A) * eps<T>);
  }
  Owned<T> v(n, 1), r(m, 1);
  fill_random(v.view, 1);
  Owned<T> w(MatrixView<const T>{v.view.data, k, 1, n});
  multiply_triangle(CblasUpper, CblasNoTrans, CblasNonUnit, top, w.view.data);
  for (index_t j = k; j < n; ++j)
    for (index_t i = 0; i < k; ++i) w.view(i, 0) += right(i, j - k) * v.view(j, 0);  // U v
  subtract_product<T>(CblasNoTrans, A, CblasNoTrans, v.view, r.view);
  exchange_rows(r.view, pivots);
  for (index_t i = 0; i < m; ++i) r.view(i, 0) = -r.view(i, 0);                                                // P A v
  subtract_product<T>(CblasNoTrans, below, CblasNoTrans, w.view, MatrixView<T>{r.view.data + k, m - k, 1, m});  // - L2 U v
  multiply_triangle(CblasLower, CblasNoTrans, CblasUnit, top, w.view.data);
  for (index_t i = 0; i < k; ++i) r.view(i, 0) -= w.view(i, 0);  // - L1 U v
  return ratio(norm1<T>(r.view), double(std::max(m, n)) * norm1(A) * norm1<T>(v.view) * eps<T>);
}

#define TRIFACTOR_RESIDUALS(T)                                                                \
  template double norm1(MatrixView<const T>);                                                 \
  template double solve_ratio(MatrixView<const T>, MatrixView<const T>, MatrixView<const T>); \
  template double cholesky_ratio(Uplo, MatrixView<const T>, MatrixView<const T>);             \
  template double cholesky_probe(Uplo, MatrixView<const T>, MatrixView<const T>);             \
  template double lu_ratio(MatrixView<const T>, MatrixView<const T>, std::span<const int>);
TRIFACTOR_RESIDUALS(float)
TRIFACTOR_RESIDUALS(double)
TRIFACTOR_RESIDUALS(std::complex<float>)
TRIFACTOR_RESIDUALS(std::complex<double>)

}  // namespace program
