// BLAS and LAPACK under one name for all four scalars, with the signs and scalings that the engine needs.
// Column-major; sizes fit an int (api checks that).
#pragma once

#include <core/scalar.hpp>

#include <cblas.h>
#include <lapacke.h>

#include <mutex>

namespace trifactor::host::blas {

using core::Complex;
using c32 = Complex<float>;
using c64 = Complex<double>;

template <class R>
lapack_complex_float* lapack(Complex<R>* p) requires std::same_as<R, float> {
  return reinterpret_cast<lapack_complex_float*>(p);
}
template <class R>
lapack_complex_double* lapack(Complex<R>* p) requires std::same_as<R, double> {
  return reinterpret_cast<lapack_complex_double*>(p);
}

/// Whether OpenBLAS was built without threads.
inline bool sequential() {
  static const bool answer = openblas_get_parallel() == OPENBLAS_SEQUENTIAL;
  return answer;
}

/// Sequential OpenBLAS gives several callers the same buffer, unless it was built with locks, which it does not tell. So its
/// calls take turns. Within one turn there may be others.
class Turn {
 public:
  Turn() {
    if (sequential()) lock_ = std::unique_lock(calling_);
  }

 private:
  static inline std::recursive_mutex calling_;
  std::unique_lock<std::recursive_mutex> lock_;
};
template <class F, class... Args>
auto in_turn(F f, Args... args) {
  const Turn turn;
  return f(args...);
}

inline constexpr c32 minus_one_c32{-1}, one_c32{1};
inline constexpr c64 minus_one_c64{-1}, one_c64{1};

// C -= op(A) op(B)
inline void gemm(CBLAS_TRANSPOSE a, CBLAS_TRANSPOSE b, int m, int n, int k, const float* A, int lda, const float* B,
                 int ldb, float* C, int ldc) {
  in_turn(cblas_sgemm, CblasColMajor, a, b, m, n, k, -1, A, lda, B, ldb, 1, C, ldc);
}
inline void gemm(CBLAS_TRANSPOSE a, CBLAS_TRANSPOSE b, int m, int n, int k, const double* A, int lda, const double* B,
                 int ldb, double* C, int ldc) {
  in_turn(cblas_dgemm, CblasColMajor, a, b, m, n, k, -1, A, lda, B, ldb, 1, C, ldc);
}
inline void gemm(CBLAS_TRANSPOSE a, CBLAS_TRANSPOSE b, int m, int n, int k, const c32* A, int lda, const c32* B,
                 int ldb, c32* C, int ldc) {
  in_turn(cblas_cgemm, CblasColMajor, a, b, m, n, k, &minus_one_c32, A, lda, B, ldb, &one_c32, C, ldc);
}
inline void gemm(CBLAS_TRANSPOSE a, CBLAS_TRANSPOSE b, int m, int n, int k, const c64* A, int lda, const c64* B,
                 int ldb, c64* C, int ldc) {
  in_turn(cblas_zgemm, CblasColMajor, a, b, m, n, k, &minus_one_c64, A, lda, B, ldb, &one_c64, C, ldc);
}

// C = beta C - A A^H (CblasNoTrans) or C = beta C - A^H A, one triangle
inline void herk(CBLAS_UPLO uplo, CBLAS_TRANSPOSE a, int n, int k, const float* A, int lda, float* C, int ldc,
                 float beta = 1) {
  in_turn(cblas_ssyrk, CblasColMajor, uplo, a, n, k, -1, A, lda, beta, C, ldc);
}
inline void herk(CBLAS_UPLO uplo, CBLAS_TRANSPOSE a, int n, int k, const double* A, int lda, double* C, int ldc,
                 double beta = 1) {
  in_turn(cblas_dsyrk, CblasColMajor, uplo, a, n, k, -1, A, lda, beta, C, ldc);
}
inline void herk(CBLAS_UPLO uplo, CBLAS_TRANSPOSE a, int n, int k, const c32* A, int lda, c32* C, int ldc,
                 float beta = 1) {
  in_turn(cblas_cherk, CblasColMajor, uplo, a, n, k, -1, A, lda, beta, C, ldc);
}
inline void herk(CBLAS_UPLO uplo, CBLAS_TRANSPOSE a, int n, int k, const c64* A, int lda, c64* C, int ldc,
                 double beta = 1) {
  in_turn(cblas_zherk, CblasColMajor, uplo, a, n, k, -1, A, lda, beta, C, ldc);
}

// B := op(A)^-1 B (CblasLeft) or B op(A)^-1
inline void trsm(CBLAS_SIDE side, CBLAS_UPLO uplo, CBLAS_TRANSPOSE a, CBLAS_DIAG diag, int m, int n, const float* A,
                 int lda, float* B, int ldb) {
  in_turn(cblas_strsm, CblasColMajor, side, uplo, a, diag, m, n, 1, A, lda, B, ldb);
}
inline void trsm(CBLAS_SIDE side, CBLAS_UPLO uplo, CBLAS_TRANSPOSE a, CBLAS_DIAG diag, int m, int n, const double* A,
                 int lda, double* B, int ldb) {
  in_turn(cblas_dtrsm, CblasColMajor, side, uplo, a, diag, m, n, 1, A, lda, B, ldb);
}
inline void trsm(CBLAS_SIDE side, CBLAS_UPLO uplo, CBLAS_TRANSPOSE a, CBLAS_DIAG diag, int m, int n, const c32* A,
                 int lda, c32* B, int ldb) {
  in_turn(cblas_ctrsm, CblasColMajor, side, uplo, a, diag, m, n, &one_c32, A, lda, B, ldb);
}
inline void trsm(CBLAS_SIDE side, CBLAS_UPLO uplo, CBLAS_TRANSPOSE a, CBLAS_DIAG diag, int m, int n, const c64* A,
                 int lda, c64* B, int ldb) {
  in_turn(cblas_ztrsm, CblasColMajor, side, uplo, a, diag, m, n, &one_c64, A, lda, B, ldb);
}

// LAPACK's own info is returned.
inline int potrf(char uplo, int n, float* A, int lda) {
  return in_turn(LAPACKE_spotrf_work, LAPACK_COL_MAJOR, uplo, n, A, lda);
}
inline int potrf(char uplo, int n, double* A, int lda) {
  return in_turn(LAPACKE_dpotrf_work, LAPACK_COL_MAJOR, uplo, n, A, lda);
}
inline int potrf(char uplo, int n, c32* A, int lda) {
  return in_turn(LAPACKE_cpotrf_work, LAPACK_COL_MAJOR, uplo, n, lapack(A), lda);
}
inline int potrf(char uplo, int n, c64* A, int lda) {
  return in_turn(LAPACKE_zpotrf_work, LAPACK_COL_MAJOR, uplo, n, lapack(A), lda);
}

inline int getrf(int m, int n, float* A, int lda, int* pivots) {
  return in_turn(LAPACKE_sgetrf_work, LAPACK_COL_MAJOR, m, n, A, lda, pivots);
}
inline int getrf(int m, int n, double* A, int lda, int* pivots) {
  return in_turn(LAPACKE_dgetrf_work, LAPACK_COL_MAJOR, m, n, A, lda, pivots);
}
inline int getrf(int m, int n, c32* A, int lda, int* pivots) {
  return in_turn(LAPACKE_cgetrf_work, LAPACK_COL_MAJOR, m, n, lapack(A), lda, pivots);
}
inline int getrf(int m, int n, c64* A, int lda, int* pivots) {
  return in_turn(LAPACKE_zgetrf_work, LAPACK_COL_MAJOR, m, n, lapack(A), lda, pivots);
}

}  // namespace trifactor::host::blas
