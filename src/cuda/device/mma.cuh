// Products on the tensor cores for the four scalars: operands, the split of floats into two TF32 parts, accumulators;
// and the scalar arithmetic of pivots.
#pragma once

#include <cuda/device/instructions.cuh>

namespace trifactor::cuda {

/// 16 rows of 8 columns as left operand: a lane has two rows of two columns, one of each half.
template <class T>
struct LeftPart {
  T v[2][2];  // [half][row]
};
/// 8 rows of 8 columns as right operand: a lane has a row of two columns, one of each half.
template <class T>
struct RightPart {
  T v[2];
};

/// float has more digits than the operands of the tensor cores: each is cut in two, and of the four products the least
/// is left out. Together they are as exact as one product of floats.
struct TwoParts {
  unsigned high, low;
  __device__ explicit TwoParts(float x) {
    high = (__float_as_uint(x) + 0x1000u) & 0xffffe000u;
    low = __float_as_uint(x - __uint_as_float(high));
  }
};
/// The operands of 8 columns, cut in two.
struct SplitRight {
  unsigned high[2], low[2];
  __device__ __forceinline__ explicit SplitRight(const RightPart<float>& b) {
#pragma unroll
    for (int s = 0; s < 2; ++s) {
      const TwoParts x(b.v[s]);
      high[s] = x.high, low[s] = x.low;
    }
  }
};
struct SplitLeft {
  unsigned high[2][2], low[2][2];
  SplitLeft() = default;
  __device__ __forceinline__ explicit SplitLeft(const LeftPart<float>& a) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const TwoParts x(a.v[i / 2][i % 2]);
      high[i / 2][i % 2] = x.high, low[i / 2][i % 2] = x.low;
    }
  }
  /// Two tiles, one below the other.
  __device__ __forceinline__ SplitLeft(const SplitRight& x, const SplitRight& y)
      : high{{x.high[0], y.high[0]}, {x.high[1], y.high[1]}}, low{{x.low[0], y.low[0]}, {x.low[1], y.low[1]}} {}
};
/// c += a b. Sums are cut off, not rounded, inside the tensor cores: add up long ones outside.
__device__ inline void mma(float (&c)[4], const SplitLeft& a, const SplitRight& b) {
  mma8_tf32(c, a.low, b.high);
  mma8_tf32(c, a.high, b.low);
  mma8_tf32(c, a.high, b.high);
}
__device__ inline void mma(float (&c)[4], float a0, float a1, float b) {
  const TwoParts x0(a0), x1(a1), y(b);
  mma_tf32(c, x0.low, x1.low, y.high);
  mma_tf32(c, x0.high, x1.high, y.low);
  mma_tf32(c, x0.high, x1.high, y.high);
}

/// 1 / sqrt(d) for a positive normal d, to the last digit or two, and garbage for any other. Shorter than rsqrt().
__device__ inline float pivot_scale(float d) { return rsqrtf(d); }
__device__ inline double pivot_scale(double d) {
  const double y = approximate_rsqrt(d);
  const double e = fma(-d * y, y, 1.0);  // one step of third order from some 22 digits, binary
  return fma(fma(e, 0.375, 0.5), y * e, y);
}
/// 1 / d = y (1 + p) with y = early_reciprocal(d), both for a positive normal d.
__device__ inline float reciprocal_correction(float d, float y) { return fmaf(-d, y, 1.0f); }
__device__ inline double reciprocal_correction(double d, double y) {
  const double e = fma(-d, y, 1.0);  // some 20 digits, binary
  return fma(e, e, e);
}

/// What products of T are made in where the time of a step counts. The tensor cores take float in parts only, and a
/// multiprocessor that multiplies such parts, however seldom, goes down to 1.66 to 1.81 GHz; with double it stays
/// at 1.98. H200, float: 0.121 against 0.129 ms at n = 1024.
template <class T>
using Wide = std::conditional_t<std::is_same_v<T, float>, double, T>;

/// 16 x 8 entries in the accumulators of one warp: four a lane.
template <class T>
struct TensorEntries {
  T re[4];
  __device__ T get(int e) const { return re[e]; }
  __device__ void set(int e, T v) { re[e] = v; }
};
template <class R>
struct TensorEntries<Complex<R>> {
  R re[4], im[4];
  __device__ Complex<R> get(int e) const { return {re[e], im[e]}; }
  __device__ void set(int e, Complex<R> v) { re[e] = v.re, im[e] = v.im; }
};

/// c -= a conj(b), or conj(a) b if `first`, four columns of a and b deep.
template <bool first, class R>
__device__ inline void tensor_subtract(TensorEntries<R>& c, R a0, R a1, R b) {
  mma(c.re, -a0, -a1, b);
}
template <bool first, class R>
__device__ inline void tensor_subtract(TensorEntries<Complex<R>>& c, Complex<R> a0, Complex<R> a1, Complex<R> b) {
  mma(c.re, -a0.re, -a1.re, b.re), mma(c.re, -a0.im, -a1.im, b.im);
  const R s = first ? b.re : -b.re, t = first ? -b.im : b.im;  // the imaginary part of the product, negated
  mma(c.im, a0.im, a1.im, s), mma(c.im, a0.re, a1.re, t);
}

/// V entries that are moved together.
template <class T, int V>
struct alignas(sizeof(T) * V) EntryVector {
  T v[V];
};
/// Those of one load of 16 bytes.
template <class T>
inline constexpr int vector_of = 16 / int(sizeof(T));

}  // namespace trifactor::cuda
