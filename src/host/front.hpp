// Small fronts and narrow columns of large ones, where BLAS spends its time on calls, locks and packing. Column-major,
// one thread. Compiled once for each instruction set.
#pragma once

#include <core/scalar.hpp>

namespace trifactor::host {

/// The functions below, as compiled for one instruction set.
template <class T>
struct FrontKernels {
  /// The columns of a front: F (m, w), F11 = L11 L11^H, F21 := F21 L11^-H. What lies above the diagonal is overwritten.
  /// Returns 0, or the first column (from 1) whose pivot is not positive and finite.
  int (*columns)(int m, int w, T* F, index_t ld);
  /// B := B L^-H for the m rows of B and the lower triangle L (w, w).
  void (*divide)(int m, int w, const T* L, index_t ldl, T* B, index_t ldb);
  /// B := B L^-1
  void (*divide_backward)(int m, int w, const T* L, index_t ldl, T* B, index_t ldb);
  /// The lower triangle of U (n, n) := -A A^H, with k columns in A. What lies above the diagonal is overwritten in part.
  void (*update)(int n, int k, const T* A, index_t lda, T* U, index_t ldu);
  /// The same with U -= A A^H.
  void (*subtract_square)(int n, int k, const T* A, index_t lda, T* U, index_t ldu);
  /// C (m, n) -= A (m, k) B (n, k)^H
  void (*subtract_adjoint)(int m, int n, int k, const T* A, index_t lda, const T* B, index_t ldb, T* C, index_t ldc);
  /// C (m, n) -= A (m, k) B (k, n)
  void (*subtract)(int m, int n, int k, const T* A, index_t lda, const T* B, index_t ldb, T* C, index_t ldc);
  /// y -= conj(A) x for A (m, n)
  void (*subtract_columns)(index_t m, index_t n, const T* A, index_t lda, const T* x, T* y);
  /// y -= A^T x for A (m, n)
  void (*subtract_dots)(index_t m, index_t n, const T* A, index_t lda, const T* x, T* y);
};

namespace baseline { template <class T> const FrontKernels<T>& front_kernels(); }
namespace avx2 { template <class T> const FrontKernels<T>& front_kernels(); }
namespace avx512 { template <class T> const FrontKernels<T>& front_kernels(); }

/// Those of the widest instruction set that this CPU has.
template <class T> const FrontKernels<T>& front_kernels();

}  // namespace trifactor::host
