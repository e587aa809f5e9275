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

/// A B
template <class W>
HostMatrix<W> product(const HostMatrix<W>& A, const HostMatrix<W>& B) {
  HostMatrix<W> C(A.rows, B.cols);
  if (A.rows == 0 || B.cols == 0 || A.cols == 0) return C;
  constexpr index_t small = 3;  // below, the loop is faster than the call
  if (A.rows <= small && A.cols <= small) {
    for (index_t j = 0; j < B.cols; ++j)
      for (index_t k = 0; k < A.cols; ++k)
        for (index_t i = 0; i < A.rows; ++i) C(i, j) += A(i, k) * B(k, j);
  } else {
    gemm(A.rows, B.cols, A.cols, A.data(), A.ld, B.data(), B.ld, C.data(), C.ld);
  }
  return C;
}

template <class W>
HostMatrix<W> difference(HostMatrix<W> A, const HostMatrix<W>& B) {
  for (index_t j = 0; j < A.cols; ++j)
    for (index_t i = 0; i < A.rows; ++i) A(i, j) -= B(i, j);
  return A;
}

/// The largest column sum of column j0, j0 + 1, ..., j1 - 1; NaN when an entry is NaN.
template <class W>
double norm1(const HostMatrix<W>& A, index_t j0, index_t j1) {
  double largest = 0;
  for (index_t j = j0; j < j1; ++j) {
    double sum = 0;
    for (index_t i = 0; i < A.rows; ++i) sum += std::abs(A(i, j));
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
