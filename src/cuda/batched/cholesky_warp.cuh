// Cholesky of a matrix of order up to 64 by one warp. The tensor cores take the triangle's tiles (warp_tiles.cuh) as
// they are; panels of eight columns are factored with a row to a lane.
#pragma once

#include <cuda/batched/items.cuh>
#include <cuda/batched/warp_tiles.cuh>

namespace trifactor::cuda {

/// The rows of panel p of a matrix of order n that a lane has: lane, and 32 below where there are two. Those beyond the
/// last are copies of the last of the tiles.
template <class T, int each>
struct PanelRows {
  T* tile[each];
  int r[each];     // row of the tile
  bool own[each];  // not a copy
  bool inside;     // the first of them is a row of the matrix
  __device__ __forceinline__ PanelRows(T* store, int n, int p) {
    const int lane = int(threadIdx.x % 32), last = (n + 7) / 8 * 8 - 1;
#pragma unroll
    for (int e = 0; e < each; ++e) {
      const int row = 8 * p + 32 * e + lane, copied = min(row, last);
      own[e] = row <= last, r[e] = copied % 8;
      tile[e] = store + TileStore<T>::tile(copied / 8, p);
    }
    inside = lane >= 8 || 8 * p + lane < n;
  }
  __device__ __forceinline__ void read(T (&a)[each][8]) const {
#pragma unroll
    for (int e = 0; e < each; ++e) read_row(tile[e], r[e], a[e]);
    if (!inside)  // the identity goes on below
#pragma unroll
      for (int c = 0; c < 8; ++c) a[0][c] = T(c == r[0] ? 1 : 0);
  }
  __device__ __forceinline__ void write(const T (&a)[each][8]) const {
#pragma unroll
    for (int e = 0; e < each; ++e)
      if (own[e]) write_row(tile[e], r[e], a[e]);
  }
};

/// A right-hand side that is solved for beside the factorization: one more column, which the panels eliminate.
template <class T, int max_tiles>
struct RightSide {
  static constexpr int rows = 8 * max_tiles + 24;  // with those that lanes without a row touch
  static constexpr int size = rows + 8 * max_tiles;
  T* rhs;                                              // M^-1 b, where panels are done: see factor_columns
  __device__ T* scales() const { return rhs + rows; }  // 1 / L(j, j)

  template <int each>
  __device__ __forceinline__ void read(int p, T (&b)[each]) const {
#pragma unroll
    for (int i = 0; i < each; ++i) b[i] = rhs[8 * p + 32 * i + int(threadIdx.x % 32)];
  }
  template <int each>
  __device__ __forceinline__ void write(int p, const T (&b)[each], Real<T> scale) const {
    const int lane = int(threadIdx.x % 32);
#pragma unroll
    for (int i = 0; i < each; ++i) rhs[8 * p + 32 * i + lane] = b[i];
    if (lane < 8) scales()[8 * p + lane] = T(scale);
  }
  /// M^H x = D^-1 M^-1 b, when all panels are done, from the last entry on; a lane has entries lane and lane + 32. What
  /// is beyond n is zero.
  __device__ __forceinline__ void backward(int n, const T* store, T (&x)[max_tiles / 4]) const {
    constexpr int each = max_tiles / 4;
    const unsigned lane = threadIdx.x % 32;
    Real<T> scale[each];
#pragma unroll
    for (int i = 0; i < each; ++i) {
      scale[i] = real(scales()[lane + 32 * i]);
      x[i] = (rhs[lane + 32 * i] * scale[i]) * scale[i];
    }
    const auto rows = [&](auto constant, int p) TF_INLINE_LAMBDA {  // of tiles
      using Store = TileStore<T>;
      constexpr int last = decltype(constant)::value;  // which of a lane's entries the x are
      T l[each][8];  // all at once, and from a tile that there is: branches around each load cost more
#pragma unroll
      for (int i = 0; i <= last; ++i) {
        const T* const tile = store + Store::tile(p, min(int(lane / 8) + 4 * i, p));
#pragma unroll
        for (int r = 0; r < 8; ++r) l[i][r] = conj(tile[Store::place(r, int(lane % 8))]) * scale[i];
      }
      const int first = int(8u * unsigned(p) % 32), before = int(lane) - first;  // rows in the lanes
#pragma unroll
      for (int r = 7; r >= 0; --r) {
        const T known = from_lane<32>(x[last], first + r);
#pragma unroll
        for (int i = 0; i <= last; ++i)
          if (i < last || before < r) x[i] = minus_product(x[i], l[i][r], known);
      }
    };
    int p = (n - 1) / 8;
    if constexpr (each > 1)
#pragma unroll 1
      for (; p >= 4; --p) rows(std::integral_constant<int, each - 1>{}, p);
#pragma unroll 1
    for (; p >= 0; --p) rows(std::integral_constant<int, 0>{}, p);
  }
};

/// Apart, so that its registers are not held in the usual case. Returns 0, or the failed column + 1.
template <int max_tiles, int each, bool solves, class T>
__device__ __noinline__ int factor_panel_safely(T* store, int n, int p, T* scratch, RightSide<T, max_tiles> right) {
  const PanelRows<T, each> rows(store, n, p);
  T a[each][8], b[each];
  Real<T> scale;
  rows.read(a);
  if constexpr (solves) right.read(p, b);
  const Real<T> mine = factor_columns<true, solves>(a, int(threadIdx.x % 32), scratch, b, &scale);
  rows.write(a);
  if constexpr (solves) right.write(p, b, scale);
  __syncwarp();  // the panel is there
  return __ffs(int(__ballot_sync(~0u, !good_pivot(mine)) & 0xffu));
}

/// A tile's part as operand of subtract.
template <class T>
using TileOperand = std::conditional_t<std::is_same_v<T, float>, SplitRight, RightPart<T>>;

/// Two tiles, one below the other, from which products are subtracted. Products that do not wait for each other go to
/// different sums: `rest`, of doubles, has every second column, and of floats minus the small parts of the products.
template <class T>
struct TilePair {
  TensorEntries<T> c, rest;
  __device__ __forceinline__ void start(const RightPart<T>& x, const RightPart<T>& y) {
    c.set(0, x.v[0]), c.set(1, x.v[1]), c.set(2, y.v[0]), c.set(3, y.v[1]);
#pragma unroll
    for (int e = 0; e < 4; ++e) rest.set(e, T(0));
  }
  /// this -= (x; y) b^H
  __device__ __forceinline__ void subtract(const TileOperand<T>& x, const TileOperand<T>& y, const TileOperand<T>& b) {
    if constexpr (is_complex<T>) {
      subtract_product(c, LeftPart<T>{{{x.v[0], y.v[0]}, {x.v[1], y.v[1]}}}, b);
    } else if constexpr (std::is_same_v<T, float>) {
      const SplitLeft a(x, y);
      float part[4] = {0, 0, 0, 0};  // sums are cut off inside the tensor cores: the large ones are added up outside
      mma8_tf32(part, a.high, b.high);
      mma8_tf32(rest.re, a.low, b.high);
      mma8_tf32(rest.re, a.high, b.low);
#pragma unroll
      for (int e = 0; e < 4; ++e) c.re[e] -= part[e];
    } else {
      mma(c.re, x.v[0], y.v[0], -b.v[0]);
      mma(rest.re, x.v[1], y.v[1], -b.v[1]);
    }
  }
  /// Entry e, when all is subtracted.
  __device__ __forceinline__ T get(int e) const {
    if constexpr (is_complex<T>)
      return c.get(e);
    else
      return std::is_same_v<T, float> ? c.get(e) - rest.get(e) : c.get(e) + rest.get(e);
  }
};

/// Updates panel p: L_ip := A_ip - sum over k < p of L_ik L_pk^H, for the rows of tiles i = p .. used - 1, two at a
/// time. Without a branch, so that loads and products overlap.
template <int pairs, class T>
__device__ __forceinline__ void update_panel(T* store, const TilePart<T>& part, int p, int used) {
  using Store = TileStore<T>;
  T* row[2 * pairs];  // of tiles; where the last is missing, the one before
#pragma unroll
  for (int e = 0; e < 2 * pairs; ++e) row[e] = store + Store::tile(e + 1 < 2 * pairs ? p + e : min(p + e, used - 1), 0);
  TilePair<T> c[pairs];
  RightPart<T> next[2 * pairs];
#pragma unroll
  for (int j = 0; j < pairs; ++j)
    c[j].start(part.load(row[2 * j] + Store::pitch * p), part.load(row[2 * j + 1] + Store::pitch * p));
#pragma unroll
  for (int i = 0; i < 2 * pairs; ++i) next[i] = part.load(row[i]);
  constexpr int unrolled = std::is_same_v<T, double> ? 2 : 1;
#pragma unroll unrolled
  for (int k = 1; k <= p; ++k) {
    RightPart<T> now[2 * pairs];
#pragma unroll
    for (int i = 0; i < 2 * pairs; ++i) now[i] = next[i], next[i] = part.load(row[i] + Store::pitch * k);
    TileOperand<T> b(now[0]);
    if constexpr (std::is_same_v<T, float>)  // optimization barrier: not recomputed for each pair
      asm("" : "+r"(b.high[0]), "+r"(b.high[1]), "+r"(b.low[0]), "+r"(b.low[1]));
#pragma unroll
    for (int j = 0; j < pairs; ++j) c[j].subtract(TileOperand<T>(now[2 * j]), TileOperand<T>(now[2 * j + 1]), b);
  }
#pragma unroll
  for (int i = 0; i < 2 * pairs; ++i)
    part.store(row[i] + Store::pitch * p, c[i / 2].get(i % 2 * 2), c[i / 2].get(i % 2 * 2 + 1));
}

/// Shared memory and registers of factor_by_warp with `max_tiles` rows of tiles.
template <class T, int max_tiles>
struct WarpShape {
  static constexpr int scratch = ceil_div(ColumnScratch<T, 8>::size, 32) * 32;
  static constexpr int entries(int n) { return scratch + TileStore<T>::size(n); }
  static constexpr int right = ceil_div(RightSide<T, max_tiles>::size, 32) * 32;  // entries, for a right-hand side
  // On a multiprocessor, as many as were fastest.
  static constexpr int blocks = sizeof(T) == 4   ? (max_tiles > 4 ? 16 : 24)
                                : sizeof(T) == 8 ? (max_tiles > 4 ? 12 : 20)
                                                 : 8;
};

/// Factors A from the left by panels of eight columns, by one warp; `max_tiles` rows of tiles. Returns 0 or the failed
/// column + 1. by_rows: rows are contiguous, not columns. scratch: ColumnScratch<T, 8>::size entries. With `solves`,
/// leaves what RightSide::backward wants.
template <int max_tiles, bool solves, class T>
__device__ __forceinline__ int factor_by_warp(const Tile<T>& A, bool by_rows, T* store, T* scratch,
                                              RightSide<T, max_tiles> right) {
  const int lane = int(threadIdx.x % 32), n = int(A.rows), used = (n + 7) / 8;
  if (by_rows)
    copy_triangle<TileStore<T>, true, max_tiles>(A, store);
  else
    copy_triangle<TileStore<T>, false, max_tiles>(A, store);
  const TilePart<T> part;
  const index_t ld = A.col_stride;
  T* out = A.data + lane;  // where columns are contiguous: the lane's entry of the first column of a panel
  int failed = 0;
  const auto step = [&](auto constant, int p) TF_INLINE_LAMBDA {
    constexpr int each = decltype(constant)::value;
    if (p > 0) {
      using std::integral_constant;
      const auto update = [&](auto pairs)
                              TF_INLINE_LAMBDA { update_panel<decltype(pairs)::value>(store, part, p, used); };
      const int left = (used - p + 1) / 2;  // pairs of tiles
      if constexpr (each == 2)
        left == 4 ? update(integral_constant<int, 4>{}) : update(integral_constant<int, 3>{});
      else
        left == 2 ? update(integral_constant<int, 2>{}) : update(integral_constant<int, 1>{});
    }
    __syncwarp();  // the panel is up to date
    const PanelRows<T, each> rows(store, n, p);
    T a[each][8], b[each];
    Real<T> scale;
    rows.read(a);
    if constexpr (solves) right.read(p, b);
    const Real<T> mine = factor_columns<false, solves>(a, lane, scratch, b, &scale);
    failed = 0;
    if (__any_sync(~0u, !in_fast_range(mine))) {
      failed = factor_panel_safely<max_tiles, each, solves>(store, n, p, scratch, right);
      rows.read(a);
    } else {
      rows.write(a);
      if constexpr (solves) right.write(p, b, scale);
    }
    if (!by_rows) {
      T* at = opaque(Tile<T>{out, 0, 0, 1, ld}).data;
#pragma unroll
      for (int c = 0; c < 8; ++c) {
        if constexpr (is_complex<T>)
          if (c == lane) a[0][c] = T(real(a[0][c]));
        if (c <= lane && 8 * p + lane < n) at[0] = a[0][c];
        if (each == 2 && 8 * p + 32 + lane < n) at[32] = a[each == 2][c];
        at += ld;
      }
      out += 8 * ld + 8;
    }
    __syncwarp();  // the panel is complete
  };
  int p = 0;
  copy_wait<1>();
  if constexpr (max_tiles > 4)
    for (; used - p > 4 && !failed; ++p) {
      if (p == 1) copy_wait<0>(), __syncwarp();  // everything is there
      step(std::integral_constant<int, 2>{}, p);
    }
  for (; p < used && !failed; ++p) {
    if (p == 1) copy_wait<0>(), __syncwarp();  // everything is there
    step(std::integral_constant<int, 1>{}, p);
  }
  copy_wait<0>();  // nothing is under way, even if the first panel failed
  if (by_rows) {
    __syncwarp();  // all of it is visible
    write_triangle_rows<TileStore<T>, max_tiles>(opaque(A), store);
  }
  return failed ? 8 * (p - 1) + failed : 0;
}

template <class T, int max_tiles>
__global__ void __launch_bounds__(32, WarpShape<T, max_tiles>::blocks)
    cholesky_warp_kernel(Items<T> A, bool by_rows, int* info, index_t first, bool resets) {
  extern __shared__ __align__(128) unsigned char aligned[];
  T *const scratch = reinterpret_cast<T*>(aligned), *const store = scratch + WarpShape<T, max_tiles>::scratch;
  for (index_t at = blockIdx.x; at < A.count; at += gridDim.x) {
    const index_t b = A.count - 1 - at;  // what was written last is still in the cache
    const bool own = wanted_inside(A, b, info, resets);
    const int failed =
        own ? factor_by_warp<max_tiles, false>(opaque(item_if(true, by_rows, A, b)), by_rows, store, scratch, {}) : 0;
    __syncwarp();  // everyone has read info, and shared memory is free again
    if (threadIdx.x == 0) report(info, b, resets, first, own, failed);
  }
}

}  // namespace trifactor::cuda
