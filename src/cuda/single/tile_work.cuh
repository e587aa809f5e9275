// What one warp does to a tile of the persistent kernel that lies in shared memory: factor, solve, update.
#pragma once

#include <cuda/device/pivot_block.cuh>
#include <cuda/single/grid.cuh>

namespace trifactor::cuda {

/// What factor_block needs beside the block: the identity, with the pitch of a tile, and places to send things around.
template <class T>
struct FactorScratch {
  using Shape = GridShape<T>;
  static constexpr int width = is_complex<T> ? 4 : 8;  // of a panel; c32 at 512: 0.111 ms with 4, 0.132 with 8
  static constexpr int vector = vector_of<T>;
  static constexpr int pitch = width + vector;  // of rows on their way: neighbours lie in different banks
  static constexpr int below_size = (16 - width) * pitch, size = 16 * Shape::ld + below_size + width * pitch;
  T* unit;
  __device__ explicit FactorScratch(T* p) : unit(p) {}
  __device__ T* below() const { return unit + 16 * Shape::ld; }       // the rows below a panel, solved
  __device__ T* diagonal() const { return below() + below_size; }     // the diagonal block of the next panel
  __device__ T* column(int c) const { return below() + c % 2 * 20; }  // for the safe form
  static_assert(40 <= below_size);
  __device__ void fill() const {
    for (int t = int(threadIdx.x); t < 16 * Shape::ld; t += Shape::threads) unit[t] = T(t / Shape::ld == t % Shape::ld);
  }
};

/// y = 1 / sqrt(d) for a positive normal d, and what is left of a pivot, corner - |s|^2 / d, which does not wait for
/// all digits of y.
template <class R>
struct PivotRoot {
  R y, rough = R(0), rest = R(0);
  __device__ explicit PivotRoot(R d) {
    if constexpr (sizeof(R) == 4) {
      y = approximate_rsqrt(d);
    } else {
      rough = approximate_rsqrt(d);
      const R e = fma(-d * rough, rough, R(1));  // some 21 digits, binary; 1 / d = rough^2 (1 + rest)
      rest = fma(e, e, e);
      y = fma(fma(e, R(0.375), R(0.5)), rough * e, rough);
    }
  }
  template <class T>
  __device__ R next(R corner, T s) const {
    const T scaled = s * (sizeof(R) == 4 ? y : rough);
    const R square = real(scaled * conj(scaled));
    return sizeof(R) == 4 ? corner - square : (corner - square) - square * rest;
  }
};

/// Positive numbers in their order, as integers; any other number is larger than all that are finite.
__device__ inline unsigned order_of(float d) { return __float_as_uint(d); }
__device__ inline unsigned order_of(double d) { return unsigned(__double2hiint(d)); }

/// After panel p of factor_block: the lane's row a less the products of the panel's columns, and the next diagonal
/// block d.
template <class T, int width>
__device__ __forceinline__ void update_after_panel(T (&a)[16], T (&d)[width][width], int p, FactorScratch<T> scratch) {
  using Scratch = FactorScratch<T>;
  constexpr int V = Scratch::vector, pitch = Scratch::pitch;
  using Vector = EntryVector<T, V>;
  const int lane = int(threadIdx.x) % 32, row = lane % 16;
  const bool own = lane < 16;
  const auto send = [&](T* to, int first) {
#pragma unroll
    for (int c = 0; c < width; c += V) {
      Vector v;
#pragma unroll
      for (int e = 0; e < V; ++e) v.v[e] = a[(first + c + e) % 16];
      *reinterpret_cast<Vector*>(to + (row - p - width) * pitch + c) = v;
    }
  };
  if (own && row >= p + width) send(scratch.below(), p);
  __syncwarp();  // the rows below the panel are visible
#pragma unroll
  for (int q = p + width; q < 16; ++q)
#pragma unroll
    for (int c = 0; c < width; c += V) {
      const Vector v = *reinterpret_cast<const Vector*>(scratch.below() + (q - p - width) * pitch + c);
#pragma unroll
      for (int e = 0; e < V; ++e) a[q] = minus_product(a[q], a[p + c + e], conj(v.v[e]));
    }
  if (own && row >= p + width && row < p + 2 * width) send(scratch.diagonal(), p + width);
  __syncwarp();  // the next diagonal block is visible
#pragma unroll
  for (int q = 0; q < width; ++q)
#pragma unroll
    for (int c = 0; c <= q; c += V) {
      const Vector v = *reinterpret_cast<const Vector*>(scratch.diagonal() + q * pitch + c);
#pragma unroll
      for (int e = 0; e < V; ++e) d[q][c + e] = v.v[e];
    }
}

/// Factors the 16 x 16 block at D and its inverse by one warp. Lanes 0-15 hold a row of the block each; lanes 16-31
/// hold the rows of the identity below it, which the same column operations turn into L^-H. Columns are taken in
/// panels. Every lane factors the panel's diagonal block for itself, in registers, so that nothing is sent around
/// within a panel and the time is that of one reciprocal root after the other. The strict upper triangle of the rows is
/// carried along as garbage. Returns 0, or -1 where a pivot is outside [smallest, largest], and D is unchanged:
/// something may have overflowed.
template <class T>
__device__ __forceinline__ int factor_block(T* D, T* inverse, FactorScratch<T> scratch) {
  using Shape = GridShape<T>;
  using Scratch = FactorScratch<T>;
  using R = Real<T>;
  constexpr int width = Scratch::width, V = Scratch::vector;
  using Vector = EntryVector<T, V>;
  const int lane = int(threadIdx.x) % 32, row = lane % 16;
  const bool own = lane < 16;
  T a[16], d[width][width];  // this lane's row; the diagonal block of the panel
  const T* from = (own ? D : scratch.unit) + row;
#pragma unroll
  for (int c = 0; c < width; ++c)
#pragma unroll
    for (int q = c / V * V; q < width; q += V) {
      const Vector v = *reinterpret_cast<const Vector*>(D + c * Shape::ld + q);
#pragma unroll
      for (int e = 0; e < V; ++e) d[q + e][c] = v.v[e];
    }
#pragma unroll
  for (int c = 0; c < 16; ++c) a[c] = from[c * Shape::ld];
  constexpr R smallest = FastRange<R>::smallest, largest = FastRange<R>::largest;
  unsigned worst = 0;  // of the pivots, counted from the smallest that is allowed
#pragma unroll
  for (int p = 0; p < 16; p += width) {
#pragma unroll
    for (int c = 0; c < width; ++c) {
      const R pivot = real(d[c][c]);
      const PivotRoot<R> root(pivot);
      worst = max(worst, order_of(pivot) - order_of(smallest));
      if (c + 1 < width) {
        T& corner = d[(c + 1) % width][(c + 1) % width];
        corner = T(root.next(real(corner), d[(c + 1) % width][c]));
      }
#pragma unroll
      for (int q = c + 1; q < width; ++q) d[q][c] = d[q][c] * root.y;
#pragma unroll
      for (int q = c + 2; q < width; ++q)
#pragma unroll
        for (int r = c + 1; r <= q; ++r) d[q][r] = minus_product(d[q][r], d[q][c], conj(d[r][c]));
      a[p + c] = (lane == p + c ? T(pivot) : a[p + c]) * root.y;
#pragma unroll
      for (int q = c + 1; q < width; ++q) a[p + q] = minus_product(a[p + q], a[p + c], conj(d[q][c]));
    }
    if (p + width < 16) update_after_panel(a, d, p, scratch);
  }
  if (worst > order_of(largest) - order_of(smallest)) return -1;  // for all lanes alike
  T* to = (own ? D : inverse) + row;
#pragma unroll
  for (int c = 0; c < 16; ++c) to[c * Shape::ld] = conj_if(!own, a[c]);
  return 0;
}

/// The same, whatever the pivots are. Returns the first failed column + 1, or 0; what follows it is then garbage.
/// Apart, so that its registers are not held in the usual case.
template <class T>
__device__ __noinline__ int factor_block_safely(T* D, T* inverse, FactorScratch<T> scratch) {
  using Shape = GridShape<T>;
  using R = Real<T>;
  const int lane = int(threadIdx.x) % 32, row = lane % 16;
  const bool own = lane < 16;
  T a[16];
  const T* from = (own ? D : scratch.unit) + row;
#pragma unroll
  for (int c = 0; c < 16; ++c) a[c] = from[c * Shape::ld];
  int failed = 0;
#pragma unroll
  for (int c = 0; c < 16; ++c) {
    T* column = scratch.column(c);  // two places save a barrier
    if (own) column[row] = a[c];
    __syncwarp();  // the column is visible
    const R d = real(column[c]), y = reciprocal_sqrt(d);
    if (failed == 0 && !good_pivot(d)) failed = c + 1;
    a[c] = (lane == c ? T(d) : a[c]) * y;
#pragma unroll
    for (int q = c + 1; q < 16; ++q) a[q] = minus_product(a[q], a[c], conj(column[q] * y));
  }
  T* to = (own ? D : inverse) + row;
#pragma unroll
  for (int c = 0; c < 16; ++c) to[c * Shape::ld] = conj_if(!own, a[c]);
  return failed;
}

/// A block of 16 x 16 in the accumulators of one warp, which serve as the left operand of a next product as they are:
/// for that, entry f of the two neighbours in a row that a lane holds lies in column place(2 (lane % 4) + f) of 8, and
/// row place(lane / 4) of a right operand belongs to the lane. Any order serves that is the same for both; this one is
/// free of bank conflicts. In shared memory blocks are parts of tiles.
template <class T>
struct Block16 {
  static constexpr int ld = GridShape<T>::ld;
  using W = Wide<T>;
  TensorEntries<W> c[2];  // 8 columns each

  __device__ static int place(int v) { return v ^ (v >> 2); }
  __device__ static int row() { return int(threadIdx.x) % 32 / 4; }
  __device__ static int col(int f) { return place(int(threadIdx.x) % 4 * 2 + f); }
  /// f(tile, entry, row, column)
  template <class F>
  __device__ static void for_each(F f) {
    const int r = row(), at[2] = {col(0), col(1)};
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e) f(n, e, r + e / 2 * 8, 8 * n + at[e % 2]);
  }
  Block16() = default;
  __device__ explicit Block16(const T* from) {
    for_each([&](int n, int e, int r, int k) { c[n].set(e, W(from[k * ld + r])); });
  }
  __device__ void save(T* to) const {
    for_each([&](int n, int e, int r, int k) { to[k * ld + r] = T(c[n].get(e)); });
  }
  __device__ void clear() {
#pragma unroll
    for (int e = 0; e < 8; ++e) c[e / 4].set(e % 4, W(0));
  }
  __device__ void negate() {
#pragma unroll
    for (int e = 0; e < 8; ++e) c[e / 4].set(e % 4, -c[e / 4].get(e % 4));
  }
  /// As left operand, negated.
  struct Left {
    LeftPart<W> half[2];
    __device__ explicit Left(const Block16& x) : half{as_left(x.c[0]), as_left(x.c[1])} {
#pragma unroll
      for (int e = 0; e < 8; ++e) half[e / 4].v[e / 2 % 2][e % 2] = -half[e / 4].v[e / 2 % 2][e % 2];
    }
  };
  /// c, 8 columns of a block, -= a b^H, with entry (r, k) of b at B[r * down + k * right]; 8 halves columns count.
  template <int halves>
  __device__ static void subtract(TensorEntries<W>& c, const Left& a, const T* B, int down, int right) {
    const int r = place(row());
    const T* at[2] = {B + r * down + col(0) * right, B + r * down + col(1) * right};
    W b[halves][2];
#pragma unroll
    for (int h = 0; h < halves; ++h)
#pragma unroll
      for (int s = 0; s < 2; ++s) b[h][s] = W(at[s][8 * h * right]);
#pragma unroll
    for (int h = 0; h < halves; ++h)
#pragma unroll
      for (int s = 0; s < 2; ++s) mma(c.re, a.half[h].v[s][0], a.half[h].v[s][1], b[h][s]);
  }
  /// this -= a B^H, B a block in shared memory.
  __device__ void subtract(const Left& a, const T* B) {
    subtract<2>(c[0], a, B, 1, ld), subtract<2>(c[1], a, B + 8, 1, ld);
  }
  /// this := this L^-H, with the inverse of L.
  __device__ void solve(const T* inverse) {
    using Inverse = InverseShape<T>;
    const Left before(*this);
    clear();
    subtract<1>(c[0], before, inverse, Inverse::down, Inverse::right);
    subtract<2>(c[1], before, inverse + 8 * Inverse::down, Inverse::down, Inverse::right);
    negate();
  }
};

/// The block at C -= z z^H. The right operand is z as it is, so that columns of C lie in their own order.
template <class T>
__device__ void update_with_own(T* C, const Block16<T>& z) {
  constexpr int ld = GridShape<T>::ld;
  const int lane = int(threadIdx.x) % 32;
  T* at = C + lane % 4 * 2 * ld + lane / 4;
  const typename Block16<T>::Left left(z);
  T before[2][4];
#pragma unroll
  for (int e = 0; e < 8; ++e) before[e / 4][e % 4] = at[(e / 4 * 8 + e % 2) * ld + e % 4 / 2 * 8];
#pragma unroll
  for (int n = 0; n < 2; ++n) {
    Wide<T> sum[4] = {0, 0, 0, 0}, other[4] = {0, 0, 0, 0};
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const auto& a = left.half[h].v;
      mma(sum, a[0][0], a[0][1], a[0][n]);
      mma(other, a[1][0], a[1][1], a[1][n]);
    }
#pragma unroll
    for (int e = 0; e < 4; ++e) at[(8 * n + e % 2) * ld + e / 2 * 8] = T(before[n][e] - (sum[e] + other[e]));
  }
}

/// Whether warps hold blocks by rows, as Block16.
template <class T>
inline constexpr bool in_block_rows = !is_complex<T>;

/// A block of 16 x 16 of a tile in the hands of one warp, from which products are subtracted.
template <class T>
struct UpdatedBlock {
  static constexpr int ld = GridShape<T>::ld;
  T* C;
  std::conditional_t<in_block_rows<T>, Block16<T>, Fragment<T, 2>> c;
  __device__ explicit UpdatedBlock(T* C_) : C(C_) {
    if constexpr (in_block_rows<T>)
      c = Block16<T>(C);
    else
      c.fill([&](int r, int k) { return C[k * ld + r]; });
  }
  /// C -= A B^H, with A and B 16 columns wide.
  __device__ void subtract(const T* A, const T* B) {
    if constexpr (in_block_rows<T>)
      c.subtract(typename Block16<T>::Left(Block16<T>(A)), B);
    else
      c.template subtract<16, false>(A, ld, B, ld);
  }
  __device__ void save() const {
    if constexpr (in_block_rows<T>)
      c.save(C);
    else
      c.for_each([&](int r, int k, T v) { C[k * ld + r] = v; });
  }
};

/// X := X L^-H for 8 rows and 16 columns of X by one warp, with the inverse of L.
template <class T>
__device__ void solve_block(T* X, LeftOperand<Wide<T>> inverse) {
  using Shape = GridShape<T>;
  Fragment<Wide<T>, 1> f;  // transposed
  f.clear();
  f.subtract(inverse, X, Shape::ld);
  __syncwarp();  // everyone has read the block
  f.for_each([&](int c, int r, Wide<T> v) { X[c * Shape::ld + r] = T(-v); });
}

/// 8 N rows of a tile X in the hands of one warp, to be solved: X := X L^-H with a diagonal tile L and the inverses of
/// its 16 x 16 diagonal blocks. X lies by columns in shared memory.
template <class T, int N>
struct RowStrip {
  using Shape = GridShape<T>;
  using W = Wide<T>;
  Fragment<W, N> x[Shape::blocks];  // X transposed
  T* X;
  int ldx;

  __device__ RowStrip(T* X_, int ldx_) : X(X_), ldx(ldx_) {
#pragma unroll
    for (int b = 0; b < Shape::blocks; ++b) x[b].fill([&](int c, int r) { return W(X[(16 * b + c) * ldx + r]); });
  }
  /// Solves columns [16 b, 16 b + 16), here and in X, and subtracts what they bring from those to the right.
  __device__ void solve(int b, const T* L, const T* inverses) {
    T* Xb = X + 16 * b * ldx;
    const LeftOperand<W> own = InverseShape<T>::operand(inverses, b);  // loaded ahead of the barriers
    const T* Lb = L + 16 * b * (Shape::ld + 1);
    const auto operand = [&](int i) { return LeftOperand<W>(Lb + 16 * min(i, Shape::blocks - 1 - b), 1, Shape::ld); };
    const LeftOperand<W> below[3] = {operand(1), operand(2), operand(3)};
    x[b].for_each([&](int c, int r, W v) { Xb[c * ldx + r] = T(v); });
    __syncwarp();  // the columns are up to date
    Fragment<W, N> f;
    f.clear();
    f.subtract(own, Xb, ldx);
    f.negate();
    x[b] = f;
    __syncwarp();  // everyone has read them
    f.for_each([&](int c, int r, W v) { Xb[c * ldx + r] = T(v); });
    __syncwarp();  // the solution is there
#pragma unroll
    for (int i = 1; i < Shape::blocks; ++i)
      if (b + i < Shape::blocks) x[b + i].subtract(below[i - 1], Xb, ldx);
  }
  __device__ void solve(const T* L, const T* inverses) {
#pragma unroll
    for (int b = 0; b < Shape::blocks; ++b) solve(b, L, inverses);
  }
};

}  // namespace trifactor::cuda
