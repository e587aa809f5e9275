// Cholesky of a matrix of order up to 64 by one warp. The triangle lies in shared memory in tiles of 8 x 8, which the
// tensor cores take as they are; panels of eight columns are factored with a row to a lane.
#pragma once

#include <cuda/kernels/async.cuh>
#include <cuda/kernels/columns.cuh>
#include <cuda/kernels/resident.cuh>

namespace trifactor::cuda {

/// Tiles of 8 x 8 of a lower triangle, one row of tiles after the other. Within a tile a lane finds columns t and t + 4
/// side by side, as the tensor cores want them, and neither eight lanes with a row each nor two rows with four lanes
/// each meet a bank twice.
template <class T>
struct TileStore {
  static constexpr int vector = sizeof(T) < 16 ? 16 / int(sizeof(T)) : 1;  // entries that are loaded together
  __device__ static constexpr int tile(int i, int k) { return 64 * (i * (i + 1) / 2 + k); }
  /// Where entry (r, c) of a tile lies.
  __device__ static constexpr int place(int r, int c) {
    const int half = r / 4, low = r % 4, q = c % 4;
    if constexpr (sizeof(T) == 16)
      return 8 * r + (c ^ r);
    else if constexpr (sizeof(T) == 8)
      return 16 * low + 8 * half + 2 * (q ^ low) + c / 4;
    else
      return 32 * half + 4 * ((2 * low + 4 * half + ((q / 2) ^ half)) % 8) + 2 * (q % 2) + c / 4;
  }
  /// Entries of the tiles of a triangle of order n.
  static constexpr int size(int n) { return 32 * ceil_div(n, 8) * (ceil_div(n, 8) + 1); }
};

/// Where a lane meets a tile: row right_row() and columns t and t + 4, of the tile as either operand and of the
/// product.
template <class T>
struct TilePart {
  T v[2];
};
template <class T>
__device__ __forceinline__ TilePart<T> load_part(const T* at) {  // at: where column t lies
  if constexpr (sizeof(T) < 16) {
    const auto v = *reinterpret_cast<const EntryVector<T, 2>*>(at);
    return {{v.v[0], v.v[1]}};
  } else {
    const T* other = reinterpret_cast<const T*>(reinterpret_cast<std::uintptr_t>(at) ^ (4 * sizeof(T)));
    return {{*at, *other}};
  }
}
template <class T>
__device__ __forceinline__ void store_part(T* at, T v0, T v1) {
  if constexpr (sizeof(T) < 16) {
    *reinterpret_cast<EntryVector<T, 2>*>(at) = {{v0, v1}};
  } else {
    T* other = reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(at) ^ (4 * sizeof(T)));
    *at = v0, *other = v1;
  }
}

/// Eight columns of a lane's row in a tile: `row` is where its tile begins, r its row there.
template <class T>
__device__ __forceinline__ void read_row(const T* tile, int r, T (&a)[8]) {
  constexpr int V = TileStore<T>::vector;
#pragma unroll
  for (int q = 0; q < 8 / V; ++q) {
    // the vector that begins with column c
    const int c = sizeof(T) == 16 ? q : sizeof(T) == 8 ? q : 2 * q;
    const auto v = *reinterpret_cast<const EntryVector<T, V>*>(tile + TileStore<T>::place(r, c));
#pragma unroll
    for (int e = 0; e < V; ++e) a[c + e / 2 + e % 2 * 4] = v.v[e];
  }
}
template <class T>
__device__ __forceinline__ void write_row(T* tile, int r, const T (&a)[8]) {
  constexpr int V = TileStore<T>::vector;
#pragma unroll
  for (int q = 0; q < 8 / V; ++q) {
    const int c = sizeof(T) == 16 ? q : sizeof(T) == 8 ? q : 2 * q;
    EntryVector<T, V> v;
#pragma unroll
    for (int e = 0; e < V; ++e) v.v[e] = a[c + e / 2 + e % 2 * 4];
    *reinterpret_cast<EntryVector<T, V>*>(tile + TileStore<T>::place(r, c)) = v;
  }
}

/// As factor_columns, for eight columns of `each` rows to a lane: lanes 0-7 have the diagonal block in a[0].
template <bool careful, class T, int each>
__device__ __forceinline__ Real<T> factor_panel(T (&a)[each][8], T* scratch) {
  using R = Real<T>;
  constexpr int width = 8;
  using Scratch = ColumnScratch<T, width>;
  constexpr int V = Scratch::vector;
  const int lane = int(threadIdx.x) % 32;
  const bool sends = lane < width;
  T column[width], next = T(0);  // the column that was sent, and its entry in the next pivot's row
  R corner = R(0), mine = R(1);
  const auto send = [&](auto constant) TF_INLINE_LAMBDA {
    constexpr int c = decltype(constant)::value;
    T* raw = scratch + c % 2 * Scratch::step;  // two places save a barrier
    if (sends) raw[lane] = a[0][c];
    if (c + 1 < width && lane == c + 1) raw[width] = a[0][c + 1 < width ? c + 1 : c];
    __syncwarp();  // the column is visible
#pragma unroll
    for (int q = (c + (c == 0 ? 0 : 1)) / V * V; q < width; q += V) {
      const auto v = *reinterpret_cast<const EntryVector<T, V>*>(raw + q);
#pragma unroll
      for (int e = 0; e < V; ++e) column[q + e] = v.v[e];
    }
    if (c + 1 < width) {
      corner = real(raw[width]);
      next = column[c + 1 < width ? c + 1 : c];
    }
  };
  send(std::integral_constant<int, 0>{});
  R d = real(column[0]);
  R y = careful ? R(1) : rough_reciprocal(d);
  for_constants<width>([&](auto constant) TF_INLINE_LAMBDA {
    constexpr int c = decltype(constant)::value;
    mine = c == lane ? d : mine;
    T before[width], t[each];
    if constexpr (careful) {  // divided by sqrt(d) twice, since 1 / d may overflow
      const R scale = reciprocal_sqrt(d);
#pragma unroll
      for (int i = 0; i < each; ++i) t[i] = a[i][c] * scale;
#pragma unroll
      for (int q = c + 1; q < width; ++q) before[q] = column[q] * scale;
      if (c + 1 < width) d = corner - real((next * scale) * conj(next * scale));
    } else {  // 1 / d = y (1 + p), and the products with y do not wait for p
      // The square of a float overflows too soon to be computed first, as it is of a double to save time.
      const R sy = sizeof(R) == 4 ? real((next * y) * conj(next)) : real(next * conj(next)) * y;
      const R p = reciprocal_correction(d, y), rest = corner - sy;
      T ay[each];
#pragma unroll
      for (int i = 0; i < each; ++i) ay[i] = a[i][c] * y;
      if (c + 1 < width) {
        d = rest - sy * p;
        y = rough_reciprocal(d);
      }
#pragma unroll
      for (int i = 0; i < each; ++i) t[i] = ay[i] + ay[i] * p;
#pragma unroll
      for (int q = c + 1; q < width; ++q) before[q] = column[q];
    }
    if (c + 1 < width) {
      // The two columns that are wanted at once come first.
#pragma unroll
      for (int q = c + 1; q < width && q < c + 3; ++q) a[0][q] = minus_product(a[0][q], t[0], conj(before[q]));
      send(std::integral_constant<int, (c + 1 < width ? c + 1 : c)>{});
    }
#pragma unroll
    for (int q = c + 3; q < width; ++q) a[0][q] = minus_product(a[0][q], t[0], conj(before[q]));
#pragma unroll
    for (int i = 1; i < each; ++i)
#pragma unroll
      for (int q = c + 1; q < width; ++q) a[i][q] = minus_product(a[i][q], t[i], conj(before[q]));
  });
  T* scales = scratch + 2 * Scratch::step;
  if (sends) scales[lane] = T(careful ? reciprocal_sqrt(mine) : pivot_scale(mine));
  __syncwarp();  // the scales are visible
#pragma unroll
  for (int c = 0; c < width; c += V) {
    const auto scale = *reinterpret_cast<const EntryVector<T, V>*>(scales + c);
#pragma unroll
    for (int i = 0; i < each; ++i)
#pragma unroll
      for (int e = 0; e < V; ++e) a[i][c + e] = a[i][c + e] * real(scale.v[e]);
  }
  return mine;
}

/// The rows of panel p of a matrix of order n that a lane has: lane, and 32 below. Those beyond the last are copies of
/// the last of the tiles.
template <class T, int each>
struct PanelRows {
  T* tile[each];
  int r[each];
  bool inside;  // the first of them is a row of the matrix
  __device__ __forceinline__ PanelRows(T* store, int n, int p) {
    const int lane = int(threadIdx.x) % 32, most = (n + 7) / 8 * 8 - 1;
#pragma unroll
    for (int i = 0; i < each; ++i) {
      const int row = min(8 * p + 32 * i + lane, most);
      tile[i] = store + TileStore<T>::tile(row / 8, p), r[i] = row % 8;
    }
    inside = min(8 * p + lane, most) < n;
  }
  __device__ __forceinline__ void read(T (&a)[each][8]) const {
#pragma unroll
    for (int i = 0; i < each; ++i) read_row(tile[i], r[i], a[i]);
    if (!inside)  // the identity goes on below
#pragma unroll
      for (int c = 0; c < 8; ++c) a[0][c] = T(c == r[0] ? 1 : 0);
  }
  __device__ __forceinline__ void write(const T (&a)[each][8]) const {
#pragma unroll
    for (int i = 0; i < each; ++i) write_row(tile[i], r[i], a[i]);
  }
};

/// Apart, so that its registers are not held in the usual case. Returns 0, or the failed column + 1.
template <class T, int each>
__device__ __noinline__ int factor_panel_carefully(T* store, int n, int p, T* scratch) {
  const PanelRows<T, each> rows(store, n, p);
  T a[each][8];
  rows.read(a);
  const Real<T> mine = factor_panel<true>(a, scratch);
  rows.write(a);
  __syncwarp();  // the panel is there
  return __ffs(int(__ballot_sync(~0u, !good_pivot(mine)) & 0xffu));
}

/// A tile's part as operand of subtract. Floats are cut in two for the tensor cores (see TwoParts).
template <class T>
struct TileOperand {
  T v[2];
  __device__ __forceinline__ explicit TileOperand(const TilePart<T>& x) : v{x.v[0], x.v[1]} {}
};
#if TRIFACTOR_TENSOR
template <>
struct TileOperand<float> {
  unsigned high[2], low[2];
  __device__ __forceinline__ explicit TileOperand(const TilePart<float>& x) {
#pragma unroll
    for (int s = 0; s < 2; ++s) {
      const TwoParts parts(x.v[s]);
      high[s] = parts.high, low[s] = parts.low;
    }
  }
};
#endif

/// Two tiles, one below the other, from which products are subtracted. Products that do not wait for each other go to
/// different sums: `rest`, of doubles, has every second column, and of floats minus the small parts of the products.
template <class T>
struct TilePair {
  TensorEntries<T> c, rest;
  __device__ __forceinline__ void start(const TilePart<T>& x, const TilePart<T>& y) {
    c.set(0, x.v[0]), c.set(1, x.v[1]), c.set(2, y.v[0]), c.set(3, y.v[1]);
#pragma unroll
    for (int e = 0; e < 4; ++e) rest.set(e, T(0));
  }
  /// this -= (x; y) b^H
  __device__ __forceinline__ void subtract(const TileOperand<T>& x, const TileOperand<T>& y, const TileOperand<T>& b) {
#if TRIFACTOR_TENSOR
    if constexpr (std::is_same_v<T, float>) {
      const unsigned high[2][2] = {{x.high[0], y.high[0]}, {x.high[1], y.high[1]}};
      const unsigned low[2][2] = {{x.low[0], y.low[0]}, {x.low[1], y.low[1]}};
      float part[4] = {0, 0, 0, 0};  // sums are cut off inside the tensor cores: the large ones are added up outside
      mma8_tf32(part, high, b.high);
      mma8_tf32(rest.re, low, b.high);
      mma8_tf32(rest.re, high, b.low);
#pragma unroll
      for (int e = 0; e < 4; ++e) c.re[e] -= part[e];
      return;
    } else if constexpr (std::is_same_v<T, double>) {
      mma(c.re, x.v[0], y.v[0], -b.v[0]);
      mma(rest.re, x.v[1], y.v[1], -b.v[1]);
      return;
    }
#endif
    if constexpr (!tensor<T> || is_complex<T>)
      subtract_product(c, LeftPart<T>{{{x.v[0], y.v[0]}, {x.v[1], y.v[1]}}}, RightPart<T>{{b.v[0], b.v[1]}});
  }
  /// Entry e, when all is subtracted.
  __device__ __forceinline__ T get(int e) const {
    if constexpr (!tensor<T> || is_complex<T>)
      return c.get(e);
    else
      return std::is_same_v<T, float> ? c.get(e) - rest.get(e) : c.get(e) + rest.get(e);
  }
};

/// Brings panel p up to date: L_ip := A_ip - sum over k < p of L_ik L_pk^H, for the rows of tiles i = p .. used - 1,
/// two at a time. part: where a lane meets the first tile. Without a branch, so that loads and products overlap.
template <int pairs, class T>
__device__ __forceinline__ void update_panel(T* part, int p, int used) {
  using Store = TileStore<T>;
  T* row[2 * pairs];  // of tiles; where the last is missing, the one before
#pragma unroll
  for (int i = 0; i < 2 * pairs; ++i) row[i] = part + Store::tile(i + 1 < 2 * pairs ? p + i : min(p + i, used - 1), 0);
  TilePair<T> c[pairs];
  TilePart<T> next[2 * pairs];
#pragma unroll
  for (int j = 0; j < pairs; ++j) c[j].start(load_part(row[2 * j] + 64 * p), load_part(row[2 * j + 1] + 64 * p));
#pragma unroll
  for (int i = 0; i < 2 * pairs; ++i) next[i] = load_part(row[i]);
#pragma unroll 1
  for (int k = 1; k <= p; ++k) {
    TilePart<T> now[2 * pairs];
#pragma unroll
    for (int i = 0; i < 2 * pairs; ++i) now[i] = next[i], next[i] = load_part(row[i] + 64 * k);
    const TileOperand<T> b(now[0]);
#pragma unroll
    for (int j = 0; j < pairs; ++j) c[j].subtract(TileOperand<T>(now[2 * j]), TileOperand<T>(now[2 * j + 1]), b);
  }
#pragma unroll
  for (int i = 0; i < 2 * pairs; ++i) store_part(row[i] + 64 * p, c[i / 2].get(i % 2 * 2), c[i / 2].get(i % 2 * 2 + 1));
}

/// Starts to copy the lower triangle of A, of order up to 8 * most, in two groups: the first panel, and the others.
/// What is missing of the last tiles, and the other triangle, becomes zero. by_rows: rows are contiguous.
template <bool by_rows, int most, class T>
__device__ __forceinline__ void copy_triangle(const Tile<T>& A, T* store) {
  const int lane = int(threadIdx.x) % 32, n = int(A.rows);
  const index_t ld = by_rows ? A.row_stride : A.col_stride;
  constexpr int bytes = int(sizeof(T));
  const int r = by_rows ? lane / 8 : lane % 8, c = by_rows ? lane % 8 : lane / 8;
  int row[2], col[2];
  unsigned to[2];
  const T* from[2];
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    row[h] = r + (by_rows ? 4 * h : 0), col[h] = c + (by_rows ? 0 : 4 * h);
    to[h] = shared_address(store + TileStore<T>::place(row[h], col[h]));
    from[h] = A.data + (by_rows ? row[h] * ld + col[h] : col[h] * ld + row[h]);
  }
#pragma unroll
  for (int k = 0; k < most; ++k) {
    if (8 * k < n) {
      const T* at[2] = {from[0], from[1]};
#pragma unroll
      for (int i = k; i < most; ++i)
        if (8 * i < n) {
#pragma unroll
          for (int h = 0; h < 2; ++h) {
            const bool inside = 8 * i + row[h] < n && (i > k || col[h] <= row[h]);
            copy_async<bytes>(to[h] + bytes * TileStore<T>::tile(i, k), at[h], inside ? bytes : 0);
            at[h] += by_rows ? 8 * ld : index_t(8);
          }
        }
#pragma unroll
      for (int h = 0; h < 2; ++h) from[h] += 8 * ld + 8;
    }
    if (k == 0) copy_commit();
  }
  copy_commit();
}

/// Shared memory and registers of factor_tiles with `most` rows of tiles.
template <class T, int most>
struct TilesShape {
  static constexpr int scratch = ceil_div(ColumnScratch<T, 8>::size, 32) * 32;
  static constexpr int entries(int n) { return scratch + TileStore<T>::size(n); }
  // On a multiprocessor. More of them are worth more than the last registers, but not more than what fits.
  static constexpr int blocks = sizeof(T) == 4 ? (most > 4 ? 16 : 24) : sizeof(T) == 8 ? (most > 4 ? 8 : 20) : 8;
};

/// Factors A from the left by panels of eight columns; on return the factor is in the store, too. Returns 0 or the
/// failed column + 1. By one warp; `most` tiles of 8 rows. scratch: ColumnScratch<T, 8>::size entries.
template <int most, class T>
__device__ __forceinline__ int factor_tiles(const Tile<T>& A, bool by_rows, T* store, T* scratch) {
  using Store = TileStore<T>;
  const int lane = int(threadIdx.x) % 32, n = int(A.rows), used = (n + 7) / 8;
  const LanePlace place;
  if (by_rows)
    copy_triangle<true, most>(A, store);
  else
    copy_triangle<false, most>(A, store);
  T* const part = store + Store::place(place.right_row(), place.t);
  const index_t ld = by_rows ? A.row_stride : A.col_stride;
  // Where a lane begins to write a panel: an entry of its row, or, by rows, one of the tile's entries in turn.
  T* out = A.data + (by_rows ? lane / 8 * ld + lane % 8 : index_t(lane));
  int failed = 0;
  const auto step = [&](auto constant, int p) TF_INLINE_LAMBDA {
    constexpr int each = decltype(constant)::value;
    if (p > 0) {
      const int pairs = (used - p + 1) / 2;
      if constexpr (each == 2) {
        if (pairs == 4)
          update_panel<4>(part, p, used);
        else
          update_panel<3>(part, p, used);
      } else {
        if (pairs == 2)
          update_panel<2>(part, p, used);
        else
          update_panel<1>(part, p, used);
      }
    }
    __syncwarp();  // the panel is up to date
    const PanelRows<T, each> rows(store, n, p);
    T a[each][8];
    rows.read(a);
    const Real<T> mine = factor_panel<false>(a, scratch);
    failed = 0;
    if (__any_sync(~0u, !middling(mine))) {
      failed = factor_panel_carefully<T, each>(store, n, p, scratch);
      rows.read(a);
    } else {
      rows.write(a);
    }
    if constexpr (is_complex<T>) {
#pragma unroll
      for (int c = 0; c < 8; ++c)
        if (c == lane) a[0][c] = T(real(a[0][c]));
    }
    const Tile<T> global = afresh(Tile<T>{out, 0, 0, ld, 1});
    T* at = global.data;
    if (!by_rows) {
#pragma unroll
      for (int c = 0; c < 8; ++c) {
        if (c <= lane && 8 * p + lane < n) at[0] = a[0][c];
        if (each == 2 && 8 * p + 32 + lane < n) at[32] = a[each - 1][c];
        at += ld;
      }
      __syncwarp();  // the panel is complete
    } else {
      __syncwarp();  // the panel is complete
      constexpr int most_here = each == 2 ? most : 4;
      T v[most_here][2];
#pragma unroll
      for (int i = 0; i < most_here; ++i)
#pragma unroll
        for (int h = 0; h < 2; ++h)
          v[i][h] = store[Store::tile(min(p + i, used - 1), p) + Store::place(lane / 8 + 4 * h, lane % 8)];
#pragma unroll
      for (int i = 0; i < most_here; ++i)
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          const int r = lane / 8 + 4 * h, c = lane % 8;
          if constexpr (is_complex<T>)
            if (i == 0 && c == r) v[i][h] = T(real(v[i][h]));
          if (8 * (p + i) + r < n && (i > 0 || c <= r)) *at = v[i][h];
          at += 4 * ld;
        }
    }
    out += 8 * ld + 8;
  };
  int p = 0;
  copy_wait<1>();
  if constexpr (most > 4)
    for (; used - p > 4; ++p) {
      if (p == 1) copy_wait<0>(), __syncwarp();  // everything is there
      step(std::integral_constant<int, 2>{}, p);
      if (failed) return 8 * p + failed;
    }
  for (; p < used; ++p) {
    if (p == 1) copy_wait<0>(), __syncwarp();  // everything is there
    step(std::integral_constant<int, 1>{}, p);
    if (failed) break;
  }
  if (used <= 1) copy_wait<0>();
  return failed ? 8 * p + failed : 0;
}

}  // namespace trifactor::cuda
