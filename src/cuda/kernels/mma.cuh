// Products of small matrices held in shared memory, C -= A B^H, with C in the registers of a warp or of a block.
// Matrices are column-major: entry (r, k) of A at A[k * lda + r]. double runs on the tensor cores where they take it.
#pragma once

#include <core/scalar.hpp>

namespace trifactor::cuda {

using namespace core;

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define TRIFACTOR_F64_MMA 1
/// c (16, 8) += a (16, 4) b (4, 8). Lane l holds a at rows l/4 and l/4 + 8 of column l%4, b at row l%4 of column l/4, and c
/// at rows l/4 and l/4 + 8 of columns 2 (l%4) and the next.
__device__ inline void mma_f64(double (&c)[4], double a0, double a1, double b) {
  asm("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
      : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
      : "d"(a0), "d"(a1), "d"(b));
}
#else
#define TRIFACTOR_F64_MMA 0
#endif
template <class T> inline constexpr bool f64_mma = TRIFACTOR_F64_MMA && std::is_same_v<T, double>;

/// 1 / sqrt(d) for a positive normal d, to the last digit or two, and garbage for any other. Shorter than rsqrt().
__device__ inline float pivot_scale(float d) { return rsqrtf(d); }
__device__ inline double pivot_scale(double d) {
  double y;
  asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(d));
  const double e = fma(-d * y, y, 1.0);              // one step of third order from some 22 digits, binary
  return fma(fma(e, 0.375, 0.5), y * e, y);
}

/// A 16 x 8 N matrix in the registers of one warp, laid out as N accumulators of mma_f64 side by side for every scalar.
template <class T, int N>
struct FragmentRow {
  T v[N][4];

  __device__ static int row(int e) { return int(threadIdx.x) % 32 / 4 + e / 2 * 8; }
  __device__ static int col(int e) { return int(threadIdx.x) % 4 * 2 + e % 2; }
  template <class F> __device__ void for_each(F f) {
#pragma unroll
    for (int s = 0; s < N; ++s)
#pragma unroll
      for (int e = 0; e < 4; ++e) f(row(e), 8 * s + col(e), v[s][e]);
  }
  __device__ void clear() { for_each([](int, int, T& x) { x = T(0); }); }

  /// this -= A B^H, A (16, depth), B (8 N, depth)
  template <int depth>
  __device__ void subtract_product(const T* A, int lda, const T* B, int ldb, std::integral_constant<int, depth>) {
    if constexpr (f64_mma<T>) {
#if TRIFACTOR_F64_MMA
      const int k = int(threadIdx.x) % 4, r = int(threadIdx.x) % 32 / 4;
      const double *a = A + k * lda + r, *b = B + k * ldb + r;
#pragma unroll 4
      for (int p = 0; p < depth; p += 4) {
        const double a0 = -a[p * lda], a1 = -a[p * lda + 8];
#pragma unroll
        for (int s = 0; s < N; ++s) mma_f64(v[s], a0, a1, b[p * ldb + 8 * s]);
      }
#endif
    } else {
#pragma unroll 4
      for (int p = 0; p < depth; ++p) {
        const T a0 = A[p * lda + row(0)], a1 = A[p * lda + row(2)];
#pragma unroll
        for (int s = 0; s < N; ++s) {
          const T b0 = conj(B[p * ldb + 8 * s + col(0)]), b1 = conj(B[p * ldb + 8 * s + col(1)]);
          v[s][0] = minus_product(v[s][0], a0, b0), v[s][1] = minus_product(v[s][1], a0, b1);
          v[s][2] = minus_product(v[s][2], a1, b0), v[s][3] = minus_product(v[s][3], a1, b1);
        }
      }
    }
  }
};

/// An edge x edge matrix in the registers of 256 threads.
template <class T, int edge>
struct Accumulator {
  static constexpr int reach = edge / 16;   // a thread holds reach x reach entries
  T v[reach][reach];                        // [column][row]

  /// float: neighbouring rows, so that four are one load. Others: 16 apart, so that lanes read neighbours.
  static constexpr bool contiguous = std::is_same_v<T, float>;
  static constexpr bool tensor = f64_mma<T>;

  __device__ static int row(int s, int r) {
    const int t = int(threadIdx.x);
    if constexpr (tensor) return t / 32 % 4 * 16 + t % 32 / 4 + r / 2 * 8;   // warp w: rows 16 (w%4), columns 32 (w/4), four fragments
    return contiguous ? t % 16 * reach + r : t % 16 + 16 * r;
  }
  __device__ static int col(int s, int r) {
    const int t = int(threadIdx.x);
    if constexpr (tensor) return t / 128 * 32 + s * 8 + t % 4 * 2 + r % 2;
    return contiguous ? t / 16 * reach + s : t / 16 + 16 * s;
  }
  template <class F> __device__ void for_each(F f) {
#pragma unroll
    for (int s = 0; s < reach; ++s)
#pragma unroll
      for (int r = 0; r < reach; ++r) f(row(s, r), col(s, r), v[s][r]);
  }

  /// this -= A B^H, both (edge, edge)
  __device__ void subtract_product(const T* A, const T* B, int ld) {
    if constexpr (tensor) {
#if TRIFACTOR_F64_MMA
      const int t = int(threadIdx.x), k = t % 4;
      const double* a = A + k * ld + row(0, 0);
      const double* b = B + k * ld + t / 128 * 32 + t % 32 / 4;
#pragma unroll 8
      for (int p = 0; p < edge; p += 4, a += 4 * ld, b += 4 * ld) {
        const double a0 = -a[0], a1 = -a[8];
#pragma unroll
        for (int s = 0; s < 4; ++s) mma_f64(v[s], a0, a1, b[8 * s]);
      }
#endif
    } else {
#pragma unroll 8
      for (int p = 0; p < edge; ++p) {
        T a[reach], b[reach];
        if constexpr (contiguous) {
          const float4 x = *reinterpret_cast<const float4*>(A + p * ld + row(0, 0)), y = *reinterpret_cast<const float4*>(B + p * ld + col(0, 0));
          a[0] = x.x, a[1] = x.y, a[2] = x.z, a[3] = x.w, b[0] = y.x, b[1] = y.y, b[2] = y.z, b[3] = y.w;
        } else {
#pragma unroll
          for (int r = 0; r < reach; ++r) a[r] = A[p * ld + row(0, r)], b[r] = conj(B[p * ld + col(r, 0)]);
        }
#pragma unroll
        for (int s = 0; s < reach; ++s)
#pragma unroll
          for (int r = 0; r < reach; ++r) v[s][r] = minus_product(v[s][r], a[r], b[s]);
      }
    }
  }
};

}  // namespace trifactor::cuda
