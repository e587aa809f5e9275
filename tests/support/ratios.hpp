// LAPACK's residual ratios in the 1-norm. A result is right when its ratio is below `threshold`; a NaN never is.
// Write EXPECT_LT(ratio, threshold): the comparison is false for NaN.
#pragma once

#include <support/wide.hpp>

namespace trifactor::test {

inline constexpr double threshold = 30;

namespace detail {
/// residual / (count * scale * eps), divided one after the other so that nothing over- or underflows.
template <class T>
double ratio(double residual, double count, double scale1, double scale2 = 1) {
  if (residual == 0) return 0;
  if (scale1 == 0 || scale2 == 0) return 1 / eps<T>;
  return residual / count / scale1 / scale2 / eps<T>;
}
}  // namespace detail

/// The triangle of F as a matrix with zeros elsewhere.
template <class T>
HostMatrix<Wide<T>> triangle(const HostMatrix<T>& F, Uplo uplo) {
  HostMatrix<Wide<T>> L(F.rows, F.cols);
  for (index_t j = 0; j < F.cols; ++j)
    for (index_t i = 0; i < F.rows; ++i)
      if (in_triangle(uplo, i, j)) L(i, j) = widen(F(i, j));
  return L;
}

/// |A - L L^H| / (n |A| eps), or with U^H U; the imaginary part of A's diagonal does not count.
template <class T>
double cholesky_ratio(const HostMatrix<T>& A, const HostMatrix<T>& F, Uplo uplo) {
  if (A.rows == 0) return 0;
  auto W = widen(A);
  for (index_t j = 0; j < A.cols; ++j) W(j, j) = real(W(j, j));
  const auto L = triangle(F, uplo);
  const auto LH = transformed(Op::ConjTranspose, L);
  const auto LLH = uplo == Uplo::Lower ? product(L, LH, true) : product(LH, L, true);
  return detail::ratio<T>(norm1(difference(LLH, W)), double(A.rows), norm1(W));
}

/// The same for the leading triangle of order n.
template <class T>
double cholesky_ratio(const HostMatrix<T>& A, const HostMatrix<T>& F, Uplo uplo, index_t n) {
  return cholesky_ratio(leading(A, n, n), leading(F, n, n), uplo);
}

/// The largest |A(i, j) - B(i, j)| in the triangle of the leading matrices of order n; NaN when an entry is NaN.
template <class T>
double triangle_difference(const HostMatrix<T>& A, const HostMatrix<T>& B, Uplo uplo, index_t n) {
  double largest = 0;
  for (index_t j = 0; j < n; ++j) {
    const auto [first, last] = triangle_rows(uplo, j, n);
    for (index_t i = first; i < last; ++i) {
      const double d = modulus(widen(A(i, j)) - widen(B(i, j)));
      if (!(d <= largest)) largest = d;
      if (std::isnan(d)) return d;
    }
  }
  return largest;
}

/// P A: the interchanges of pivots (1-based) applied to the rows of A.
template <class T>
HostMatrix<T> interchange(HostMatrix<T> A, const std::vector<int>& pivots) {
  for (index_t k = 0; k < index_t(pivots.size()); ++k)
    for (index_t j = 0; j < A.cols; ++j) std::swap(A(k, j), A(pivots[k] - 1, j));
  return A;
}

/// |P A - L U| / (n |A| eps)
template <class T>
double lu_ratio(const HostMatrix<T>& A, const HostMatrix<T>& F, const std::vector<int>& pivots) {
  const index_t m = A.rows, n = A.cols, k = std::min(m, n);
  if (k == 0) return 0;
  auto L = triangle(leading(F, m, k), Uplo::Lower);
  for (index_t j = 0; j < k; ++j) L(j, j) = 1;
  const auto U = triangle(leading(F, k, n), Uplo::Upper);
  const auto PA = interchange(widen(A), pivots);
  return detail::ratio<T>(norm1(difference(product(L, U), PA)), double(n), norm1(PA));
}

/// |B - op(A) X| / (|op(A)| |X| eps), the worst column.
template <class T>
double solve_ratio(Op op, const HostMatrix<T>& A, const HostMatrix<T>& X, const HostMatrix<T>& B) {
  if (A.rows == 0) return 0;
  const auto W = transformed(op, widen(A)), Y = widen(X);
  const auto R = difference(product(W, Y), widen(B));
  const double norm_A = norm1(W);
  double worst = 0;
  for (index_t j = 0; j < X.cols; ++j) {
    const double r = detail::ratio<T>(norm1(R, j, j + 1), 1, norm_A, norm1(Y, j, j + 1));
    if (std::isnan(r)) return r;
    worst = std::max(worst, r);
  }
  return worst;
}

/// |I - A X| / (n |A| |X| eps)
template <class T>
double inverse_ratio(const HostMatrix<T>& A, const HostMatrix<T>& X) {
  if (A.rows == 0) return 0;
  const auto W = widen(A), Y = widen(X);
  auto R = product(W, Y);
  for (index_t j = 0; j < R.cols; ++j) R(j, j) -= 1;
  return detail::ratio<T>(norm1(R), double(A.rows), norm1(W), norm1(Y));
}

/// How far the sum of the logarithms of F's diagonal may be off when it is made in T, one after the other.
template <class T>
double log_tolerance(const HostMatrix<T>& F) {
  double size = 1;
  for (index_t j = 0; j < F.cols; ++j) size += 2 * std::abs(std::log(std::abs(widen(F(j, j)))));
  return 10 * std::sqrt(double(F.cols + 1)) * size * eps<T>;
}

#define TRIFACTOR_TEST_INSTANCES(T)                                                                                  \
  TRIFACTOR_TEST_REFERENCE double cholesky_ratio(const HostMatrix<T>&, const HostMatrix<T>&, Uplo);                  \
  TRIFACTOR_TEST_REFERENCE double triangle_difference(const HostMatrix<T>&, const HostMatrix<T>&, Uplo, index_t);    \
  TRIFACTOR_TEST_REFERENCE double lu_ratio(const HostMatrix<T>&, const HostMatrix<T>&, const std::vector<int>&);     \
  TRIFACTOR_TEST_REFERENCE double solve_ratio(Op, const HostMatrix<T>&, const HostMatrix<T>&, const HostMatrix<T>&); \
  TRIFACTOR_TEST_REFERENCE double inverse_ratio(const HostMatrix<T>&, const HostMatrix<T>&);
TRIFACTOR_TEST_EACH_SCALAR(TRIFACTOR_TEST_INSTANCES)
#undef TRIFACTOR_TEST_INSTANCES

}  // namespace trifactor::test
