// Products and norms in double precision, for making matrices and for judging results.
#pragma once

#include <support/host_matrix.hpp>

#include <cblas.h>

#include <cmath>

namespace trifactor::test {

template <Scalar T>
HostMatrix<Wide<T>> widen(const HostMatrix<T>& A) {
  HostMatrix<Wide<T>> W(A.rows, A.cols);
  for (index_t j = 0; j < A.cols; ++j)
    for (index_t i = 0; i < A.rows; ++i) W(i, j) = widen(A(i, j));
  return W;
}
template <Scalar T>
HostMatrix<T> narrow(const HostMatrix<Wide<T>>& W, index_t pad) {
  HostMatrix<T> A(W.rows, W.cols, pad);
  for (index_t j = 0; j < A.cols; ++j)
    for (index_t i = 0; i < A.rows; ++i) A(i, j) = narrow<T>(W(i, j));
  return A;
}

/// A^T or A^H as a matrix of its own.
template <Scalar T>
HostMatrix<T> transformed(Op op, const HostMatrix<T>& A) {
  if (op == Op::None) return A;
  HostMatrix<T> B(A.cols, A.rows);
  for (index_t j = 0; j < A.cols; ++j)
    for (index_t i = 0; i < A.rows; ++i) B(j, i) = op == Op::Transpose ? A(i, j) : conj(A(i, j));
  return B;
}

inline void gemm(index_t m, index_t n, index_t k, const double* A, index_t lda, const double* B, index_t ldb, double* C,
                 index_t ldc) {
  cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, int(m), int(n), int(k), 1.0, A, int(lda), B, int(ldb), 1.0, C,
              int(ldc));
}
inline void gemm(index_t m, index_t n, index_t k, const std::complex<double>* A, index_t lda,
                 const std::complex<double>* B, index_t ldb, std::complex<double>* C, index_t ldc) {
  const std::complex<double> one = 1;
  cblas_zgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, int(m), int(n), int(k), &one, A, int(lda), B, int(ldb), &one,
              C, int(ldc));
}

/// BLAS starts threads of its own for products beyond this cube, one product at a time; here callers have threads.
template <class W>
inline constexpr index_t one_thread_edge = ComplexScalar<W> ? 32 : 64;

/// A B. With `lower`, L L^H for a lower triangle A = L and B = L^H: computed on and below the diagonal, without L's
/// zeros, and mirrored.
template <class W>
HostMatrix<W> product(const HostMatrix<W>& A, const HostMatrix<W>& B, bool lower = false) {
  constexpr index_t small = 3;  // below, the loop is faster than the call
  constexpr index_t edge = one_thread_edge<W>;
  const index_t m = A.rows, n = B.cols;
  HostMatrix<W> C(m, n);
  if (m <= small && A.cols <= small) {
    for (index_t j = 0; j < n; ++j)
      for (index_t k = 0; k < A.cols; ++k)
        for (index_t i = 0; i < m; ++i) C(i, j) += A(i, k) * B(k, j);
    return C;
  }
  for (index_t j = 0; j < n; j += edge)
    for (index_t i = lower ? j : 0; i < m; i += edge)
      for (index_t k = 0; k < (lower ? std::min(j + edge, n) : A.cols); k += edge)
        gemm(std::min(edge, m - i), std::min(edge, n - j), std::min(edge, A.cols - k), &A(i, k), A.ld, &B(k, j), B.ld,
             &C(i, j), C.ld);
  for (index_t j = 0; lower && j < n; ++j)
    for (index_t i = j + 1; i < n; ++i) C(j, i) = conj(C(i, j));
  return C;
}

template <class W>
HostMatrix<W> difference(HostMatrix<W> A, const HostMatrix<W>& B) {
  for (index_t j = 0; j < A.cols; ++j)
    for (index_t i = 0; i < A.rows; ++i) A(i, j) -= B(i, j);
  return A;
}

/// |a|; std::abs guards against overflow in every case, and takes ten times as long for complex numbers.
inline double modulus(double a) { return std::abs(a); }
inline double modulus(std::complex<double> a) {
  const double square = a.real() * a.real() + a.imag() * a.imag();
  return square > 1e-250 && square < 1e250 ? std::sqrt(square) : std::abs(a);
}

/// The largest column sum of column j0, j0 + 1, ..., j1 - 1; NaN when an entry is NaN.
template <class W>
double norm1(const HostMatrix<W>& A, index_t j0, index_t j1) {
  double largest = 0;
  for (index_t j = j0; j < j1; ++j) {
    double sum = 0;
    for (index_t i = 0; i < A.rows; ++i) sum += modulus(A(i, j));
    if (std::isnan(sum)) return sum;
    largest = std::max(largest, sum);
  }
  return largest;
}
template <class W>
double norm1(const HostMatrix<W>& A) {
  return norm1(A, 0, A.cols);
}

}  // namespace trifactor::test
