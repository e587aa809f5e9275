// What one warp does to a tile of the persistent kernel that lies in shared memory: factor, solve, update.
#pragma once

#include <cuda/kernels/grid.cuh>

namespace trifactor::cuda {

/// What factor_block needs beside the block: the identity, with the pitch of a tile, and places to send things around.
template <class T>
struct FactorScratch {
  using Shape = GridShape<T>;
  static constexpr int size = 16 * Shape::ld + 80;
  T* unit;
  __device__ explicit FactorScratch(T* p) : unit(p) {}
  __device__ T* column(int c) const { return unit + 16 * Shape::ld + c % 2 * 20; }
  __device__ T* pivots() const { return unit + 16 * Shape::ld + 40; }
  __device__ T* roots() const { return unit + 16 * Shape::ld + 60; }
  __device__ void fill() const {
    for (int t = int(threadIdx.x); t < 16 * Shape::ld; t += Shape::threads) unit[t] = T(t / Shape::ld == t % Shape::ld);
  }
};

/// Factors the 16 x 16 block at D and its inverse by one warp. Lanes 0-15 hold a row of the block each; lanes 16-31
/// hold the rows of the identity below it, which the same column operations turn into L^-H. Columns stay unscaled until
/// the end, so that the time is that of one reciprocal after the other: every lane computes the next pivot for itself
/// from what was sent around meanwhile. A single warp is bound by the number of its instructions, too: the strict upper
/// triangle is carried along as garbage. Returns the first failed column + 1, or 0; what follows it is then garbage.
/// Without `careful`, -1 where a pivot is not of a middling size, and D is as it was: squares and reciprocals may have
/// overflowed.
template <bool careful, class T>
__device__ __forceinline__ int factor_block(T* D, T* inverse, FactorScratch<T> scratch) {
  using Shape = GridShape<T>;
  using R = Real<T>;
  const int lane = int(threadIdx.x) % 32, row = lane % 16;
  const bool own = lane < 16;
  T a[16];
  const T* from = (own ? D : scratch.unit) + row;
#pragma unroll
  for (int c = 0; c < 16; ++c) a[c] = from[c * Shape::ld];
  // Column c before it is scaled goes around, with the diagonal entry of the next one; two places save a barrier.
  T column[16];
  T next = T(0);  // the entry of the column that the next pivot needs
  R corner = R(0);
  const auto send = [&](int c) {
    T* raw = scratch.column(c);
    if (own) raw[row] = a[c];
    if (c < 15 && lane == c + 1) raw[16] = a[c < 15 ? c + 1 : c];
    __syncwarp();  // the column is visible
#pragma unroll
    for (int q = c + 1; q < 16; ++q) column[q] = raw[q];
    if (c < 15) {
      corner = real(raw[16]);
      next = column[c < 15 ? c + 1 : c];
    }
  };
  R d = real(D[0]);  // the pivot
  R y = careful ? R(1) : rough_reciprocal(d);
  send(0);
#pragma unroll
  for (int c = 0; c < 16; ++c) {
    if (lane == 0) scratch.pivots()[c] = T(d);
    T t, before[16];
    if constexpr (careful) {  // a - t conj(s) with t and s divided by sqrt(d), since 1 / d may overflow
      const R scale = reciprocal_sqrt(d);
      t = a[c] * scale;
#pragma unroll
      for (int q = c + 1; q < 16; ++q) before[q] = column[q] * scale;
      if (c < 15) d = corner - real((next * scale) * conj(next * scale));
    } else {  // t divided by d: 1 / d = y (1 + p), and the products with y do not wait for p
      // |next|^2 / d; the square of a float overflows too soon to be computed first, as it is of a double to save time.
      const R sy = sizeof(R) == 4 ? real((next * y) * conj(next)) : real(next * conj(next)) * y;
      const R p = reciprocal_correction(d, y), rest = corner - sy;
      const T ay = a[c] * y;
      d = rest - sy * p;
      y = rough_reciprocal(d);  // of the next column: its latency passes while this column is sent around
      t = ay + ay * p;
#pragma unroll
      for (int q = c + 1; q < 16; ++q) before[q] = column[q];
    }
    if (c < 15) {
      // The two columns that are wanted at once come first.
#pragma unroll
      for (int q = c + 1; q < 16 && q < c + 3; ++q) a[q] = minus_product(a[q], t, conj(before[q]));
      send(c + 1);
    }
#pragma unroll
    for (int q = c + 3; q < 16; ++q) a[q] = minus_product(a[q], t, conj(before[q]));
  }
  __syncwarp();  // the pivots are visible; every lane judges one
  const R mine = real(scratch.pivots()[row]);
  constexpr R least = sizeof(R) == 4 ? R(1e-30) : R(1e-100), most = sizeof(R) == 4 ? R(1e37) : R(1e100);
  if (!careful && __any_sync(0xffffffffu, !(mine >= least && mine <= most))) return -1;
  const unsigned bad = __ballot_sync(0xffffffffu, !good_pivot(mine));
  const R root = careful ? reciprocal_sqrt(mine) : pivot_scale(mine);
  if (own) scratch.roots()[row] = T(root);
  __syncwarp();  // the scales are visible
  T* to = own ? D + row : inverse + row * InverseShape<T>::right;
  const int step = tensor<T> || own ? Shape::ld : InverseShape<T>::down;
#pragma unroll
  for (int c = 0; c < 16; ++c) {
    T v = a[c] * real(scratch.roots()[c]);
    if constexpr (is_complex<T>) v = own ? (c == row ? T(real(v)) : v) : conj(v);
    to[c * step] = v;
  }
  return __ffs(int(bad & 0xffffu));
}

/// Apart, so that its registers are not held in the usual case.
template <class T>
__device__ __noinline__ int factor_block_carefully(T* D, T* inverse, FactorScratch<T> scratch) {
  return factor_block<true>(D, inverse, scratch);
}

/// X := X L^-H for 8 rows and 16 columns of X by one warp, with the inverse of L.
template <class T>
__device__ void solve_block(T* X, LeftOperand<T> inverse) {
  using Shape = GridShape<T>;
  Fragment<T, 1> f;  // transposed
  f.clear();
  f.template subtract<true>(inverse, X, Shape::ld);
  __syncwarp();  // everyone has read the block
  f.for_each([&](int c, int r, T v) { X[c * Shape::ld + r] = -v; });
}

/// C -= A B^H for blocks of 16 x 16, with A and B `depth` columns wide, by one warp.
template <class T, int depth>
__device__ void update_block(T* C, const T* A, const T* B) {
  constexpr int ld = GridShape<T>::ld;
  Fragment<T, 2> f;
  f.fill([&](int r, int c) { return C[c * ld + r]; });
  f.template subtract<depth, false>(A, ld, B, ld);
  f.for_each([&](int r, int c, T v) { C[c * ld + r] = v; });
}

/// 8 N rows of a tile X in the hands of one warp, to be solved: X := X L^-H with a diagonal tile L and the inverses of
/// its 16 x 16 diagonal blocks. X lies by columns in shared memory.
template <class T, int N>
struct Strip {
  using Shape = GridShape<T>;
  Fragment<T, N> x[Shape::blocks];  // X transposed
  T* X;
  int ldx;

  __device__ Strip(T* X_, int ldx_) : X(X_), ldx(ldx_) {
#pragma unroll
    for (int b = 0; b < Shape::blocks; ++b) x[b].fill([&](int c, int r) { return X[(16 * b + c) * ldx + r]; });
  }
  /// Solves columns [16 b, 16 b + 16), here and in X, and subtracts what they bring from those to the right.
  __device__ void solve(int b, const T* L, const T* inverses) {
    T* Xb = X + 16 * b * ldx;
    const LeftOperand<T> own = InverseShape<T>::operand(inverses, b);  // loaded ahead of the barriers
    const T* Lb = L + 16 * b * (Shape::ld + 1);
    const auto operand = [&](int i) { return LeftOperand<T>(Lb + 16 * min(i, Shape::blocks - 1 - b), 1, Shape::ld); };
    const LeftOperand<T> below[3] = {operand(1), operand(2), operand(3)};
    x[b].for_each([&](int c, int r, T v) { Xb[c * ldx + r] = v; });
    __syncwarp();  // the columns are up to date
    Fragment<T, N> f;
    f.clear();
    f.template subtract<true>(own, Xb, ldx);
    f.negate();
    x[b] = f;
    __syncwarp();  // everyone has read them
    f.for_each([&](int c, int r, T v) { Xb[c * ldx + r] = v; });
    __syncwarp();  // the solution is there
#pragma unroll
    for (int i = 1; i < Shape::blocks; ++i)
      if (b + i < Shape::blocks) x[b + i].template subtract<true>(below[i - 1], Xb, ldx);
  }
  __device__ void solve(const T* L, const T* inverses) {
#pragma unroll
    for (int b = 0; b < Shape::blocks; ++b) solve(b, L, inverses);
  }
};

}  // namespace trifactor::cuda
