// Instructions that C++ has no word for, and values that the compiler is not to compute again. Compute capability 8.0
// and above.
#pragma once

#include <core/scalar.hpp>

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#error "CMAKE_CUDA_ARCHITECTURES: trifactor wants compute capability 8.0 or above"
#endif

namespace trifactor::cuda {

using namespace core;

// Products of 16 x 4 by 4 x 8. Lane l holds a at rows l/4 and l/4 + 8 of column l%4, b at row l%4 of column l/4, and c
// at rows l/4 and l/4 + 8 of columns 2 (l%4) and the next.
__device__ inline void mma(double (&c)[4], double a0, double a1, double b) {  // c += a b
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
      : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
      : "d"(a0), "d"(a1), "d"(b));
#else
  asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
      : "+d"(c[0]), "+d"(c[1])
      : "d"(a0), "d"(b));
  asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
      : "+d"(c[2]), "+d"(c[3])
      : "d"(a1), "d"(b));
#endif
}
__device__ inline void mma_tf32(float (&c)[4], unsigned a0, unsigned a1, unsigned b) {
  asm("mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a0), "r"(a1), "r"(b));
}
/// The same for 8 columns of a and rows of b: [half][row of the lane] and [half].
__device__ inline void mma8_tf32(float (&c)[4], const unsigned (&a)[2][2], const unsigned (&b)[2]) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0][0]), "r"(a[0][1]), "r"(a[1][0]), "r"(a[1][1]), "r"(b[0]), "r"(b[1]));
}

/// c -= a b, 16 columns of a deep. Lane l holds a at rows l/4 and l/4 + 8 of columns l%4 + 4 h, and b at rows l%4 + 4 h
/// of column l/4; volatile, since the order is chosen so that loads hide behind products. Compute capability 9.0 and
/// above.
__device__ inline void mma16(double (&c)[4], const double (&a)[8], const double (&b)[4]) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7, %8, %9, %10, %11}, "
      "{%12, %13, %14, %15}, {%0, %1, %2, %3};"
      : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
      : "d"(-a[0]), "d"(-a[1]), "d"(-a[2]), "d"(-a[3]), "d"(-a[4]), "d"(-a[5]), "d"(-a[6]), "d"(-a[7]), "d"(b[0]),
        "d"(b[1]), "d"(b[2]), "d"(b[3]));
#endif
}

/// 1 / d, of a double some 20 bits; subnormal numbers are zeros.
__device__ inline float approximate_reciprocal(float d) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(d));
  return y;
}
__device__ inline double approximate_reciprocal(double d) {
  double y;
  asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(d));
  return y;
}
/// The same, not moved behind the next barrier.
__device__ inline float early_reciprocal(float d) {
  float y;
  asm volatile("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(d));
  return y;
}
__device__ inline double early_reciprocal(double d) {
  double y;
  asm volatile("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(d));
  return y;
}
/// 1 / sqrt(d), of a double some 21 bits; subnormal numbers are zeros.
__device__ inline float approximate_rsqrt(float d) {
  float y;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(d));
  return y;
}
__device__ inline double approximate_rsqrt(double d) {
  double y;
  asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(d));
  return y;
}

/// threadIdx.x, as a value of its own each time: what follows from it is computed where it is needed, not held in
/// registers that a product needs.
__device__ inline int this_thread() {
  int t;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(t));
  return t;
}
__device__ inline double load_shared(unsigned p) {
  double v;
  asm volatile("ld.shared.f64 %0, [%1];" : "=d"(v) : "r"(p));
  return v;
}
__device__ inline void load_shared(double& x, double& y, unsigned p) {
  asm volatile("ld.shared.v2.f64 {%0, %1}, [%2];" : "=d"(x), "=d"(y) : "r"(p));
}
/// The same number, of which the compiler knows nothing: it would find it out again and again.
__device__ inline unsigned opaque(unsigned x) {
  unsigned y;
  asm volatile("mov.u32 %0, %1;" : "=r"(y) : "r"(x));
  return y;
}

/// Anything, for an entry that nobody uses.
template <class T>
__device__ __forceinline__ T uninitialized() {
  T x;
  if constexpr (std::is_same_v<T, double>)
    asm("" : "=d"(x));
  else if constexpr (std::is_same_v<T, float>)
    asm("" : "=f"(x));
  else
    x = T(0);
  return x;
}

/// Nanoseconds, by a clock that all multiprocessors share.
__device__ inline unsigned long long global_time() {
  unsigned long long t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  return t;
}

}  // namespace trifactor::cuda
