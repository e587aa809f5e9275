// Cholesky of a matrix of order up to 64 by one warp. The triangle lies in shared memory in tiles of 8 x 8, which the
// tensor cores take as they are; panels of eight columns are factored with a row to a lane.
#pragma once

#include <cuda/kernels/async.cuh>
#include <cuda/kernels/columns.cuh>
#include <cuda/kernels/launch.cuh>
#include <cuda/kernels/resident.cuh>

namespace trifactor::cuda {

/// Tiles of 8 x 8 of a lower triangle, one row of tiles after the other. A lane finds what the tensor cores want of a
/// tile without conflicts of banks, and so does one with a row of it, or with an entry of a row or column of tiles.
template <class T>
struct TileStore {
  static constexpr int vector = sizeof(T) < 16 ? 16 / int(sizeof(T)) : 1;        // entries that are loaded together
  static constexpr int pitch = sizeof(T) == 16 ? 64 : sizeof(T) == 8 ? 76 : 72;  // between tiles
  static constexpr int half = sizeof(T) == 8 ? 40 : 1;                           // between columns c and c + 4
  __device__ static constexpr int tile(int i, int k) { return pitch * (i * (i + 1) / 2 + k); }
  /// Where entry (r, c) of a tile lies.
  __device__ static constexpr int place(int r, int c) {
    const int high = r / 4, low = r % 4, q = c % 4;
    if constexpr (sizeof(T) == 16)
      return 8 * r + (c ^ r);
    else if constexpr (sizeof(T) == 8)
      return half * (c / 4) + 8 * low + 4 * high + (q ^ (low / 2 * 2));
    else
      return 32 * high + 4 * ((2 * low + 4 * high + ((q / 2) ^ high)) % 8) + 2 * (q % 2) + c / 4;
  }
  /// The column of entry e of vector q of a row.
  __device__ static constexpr int column(int q, int e) {
    return sizeof(T) == 4 ? 2 * q + e / 2 + e % 2 * 4 : vector * q + e;
  }
  /// Entries of the tiles of a triangle of order n.
  static constexpr int size(int n) { return pitch / 2 * ceil_div(n, 8) * (ceil_div(n, 8) + 1); }
};

/// The same tiles of an upper triangle, which is seen flipped, of real numbers: neighbours of a row lie together, so
/// that a lane writes two of them at once where they are its part of a tile.
template <class T>
struct PairStore {
  static constexpr int vector = 16 / int(sizeof(T)), pitch = 72;
  __device__ static constexpr int tile(int i, int k) { return pitch * (i * (i + 1) / 2 + k); }
  __device__ static constexpr int place(int r, int c) {
    return 8 * r + (sizeof(T) == 4 ? 4 * (c / 4 ^ r / 4) + c % 4 : 2 * (c / 2 ^ r / 2) + c % 2);
  }
  __device__ static constexpr int column(int q, int e) { return vector * q + e; }
};
/// Where tiles lie in kernels for `most` rows of them. `pairs`: an upper triangle of which two neighbours are moved at
/// a time.
template <class T, int most, bool pairs>
using TileLayout = std::conditional_t<pairs && (sizeof(T) == 4 || most > 4), PairStore<T>, TileStore<T>>;

/// What a lane has of a tile, as either operand and of the product: row right_row() and columns t and t + 4. Of a
/// PairStore columns 2 t and 2 t + 1; of doubles every other lane has them the other way round, and rows likewise, so
/// that banks do not meet.
template <class T>
struct TilePart {
  T v[2];
};
template <class Store, class T>
struct PartPlace {
  static constexpr bool pairs = std::is_same_v<Store, PairStore<T>>;
  int row, col;       // of the pair, or of the first entry
  bool turned;        // the pair is
  int first, second;  // places: of v[0], and from there to v[1]
  __device__ __forceinline__ PartPlace() {
    const LanePlace place;
    turned = pairs && sizeof(T) == 8 && place.t % 2;
    row = !pairs ? place.right_row() : sizeof(T) == 8 ? place.g ^ place.g / 2 % 2 : place.g;
    col = pairs ? 2 * place.t : place.t;
    first = Store::place(row, col + (turned ? 1 : 0)), second = turned ? -1 : 1;
  }
};
template <class Store, class T>
__device__ __forceinline__ T* second_of(T* at, int second) {
  if constexpr (std::is_same_v<Store, PairStore<std::remove_const_t<T>>>)
    return at + second;
  else if constexpr (sizeof(T) == 8)
    return at + Store::half;
  else
    return reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(at) ^ (4 * sizeof(T)));
}
/// at: where v[0] lies.
template <class Store, class T>
__device__ __forceinline__ TilePart<T> load_part(const T* at, int second) {
  if constexpr (sizeof(T) == 4) {
    const auto v = *reinterpret_cast<const EntryVector<T, 2>*>(at);
    return {{v.v[0], v.v[1]}};
  } else {
    return {{*at, *second_of<Store>(at, second)}};  // into registers that are side by side with those of another tile
  }
}
template <class Store, class T>
__device__ __forceinline__ void store_part(T* at, int second, T v0, T v1) {
  if constexpr (sizeof(T) == 4)
    *reinterpret_cast<EntryVector<T, 2>*>(at) = {{v0, v1}};
  else
    *at = v0, *second_of<Store>(at, second) = v1;
}

/// Row r of a tile.
template <class Store, class T>
__device__ __forceinline__ void read_row(const T* tile, int r, T (&a)[8]) {
#pragma unroll
  for (int q = 0; q < 8 / Store::vector; ++q) {
    const auto v = *reinterpret_cast<const EntryVector<T, Store::vector>*>(tile + Store::place(r, Store::column(q, 0)));
#pragma unroll
    for (int e = 0; e < Store::vector; ++e) a[Store::column(q, e)] = v.v[e];
  }
}
template <class Store, class T>
__device__ __forceinline__ void write_row(T* tile, int r, const T (&a)[8]) {
#pragma unroll
  for (int q = 0; q < 8 / Store::vector; ++q) {
    EntryVector<T, Store::vector> v;
#pragma unroll
    for (int e = 0; e < Store::vector; ++e) v.v[e] = a[Store::column(q, e)];
    *reinterpret_cast<EntryVector<T, Store::vector>*>(tile + Store::place(r, Store::column(q, 0))) = v;
  }
}

/// The rows of panel p of a matrix of order n that a lane has: lane, and 32 below where there are two. Those beyond the
/// last are copies of the last of the tiles.
template <class Store, class T, int each>
struct PanelRows {
  T* tile[each];
  int r[each];
  bool own[each];  // not a copy
  bool inside;     // the first of them is a row of the matrix
  __device__ __forceinline__ PanelRows(T* store, int n, int p) {
    const int lane = int(threadIdx.x % 32), most = (n + 7) / 8 * 8 - 1;
#pragma unroll
    for (int i = 0; i < each; ++i) {
      const int row = min(8 * p + 32 * i + lane, most);
      own[i] = 8 * p + 32 * i + lane <= most;
      tile[i] = store + Store::tile(row / 8, p), r[i] = row % 8;
    }
    inside = lane >= 8 || 8 * p + lane < n;
  }
  template <int all>
  __device__ __forceinline__ void read(T (&a)[all][8]) const {
#pragma unroll
    for (int i = 0; i < each; ++i) read_row<Store>(tile[i], r[i], a[i]);
    if (!inside)  // the identity goes on below
#pragma unroll
      for (int c = 0; c < 8; ++c) a[0][c] = T(c == r[0] ? 1 : 0);
  }
  template <int all>
  __device__ __forceinline__ void write(const T (&a)[all][8]) const {
#pragma unroll
    for (int i = 0; i < each; ++i)
      if (own[i]) write_row<Store>(tile[i], r[i], a[i]);
  }
};

/// A right-hand side that is solved for beside the factorization: one more column, which the panels eliminate.
template <class T, int most>
struct RightSide {
  static constexpr int rows = 8 * most + 24;  // with those that lanes without a row touch
  static constexpr int size = rows + 8 * most;
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
  __device__ __forceinline__ void backward(int n, const T* store, T (&x)[most / 4]) const {
    constexpr int each = most / 4;
    const int lane = int(threadIdx.x % 32);
    Real<T> scale[each];
#pragma unroll
    for (int i = 0; i < each; ++i) {
      scale[i] = real(scales()[lane + 32 * i]);
      x[i] = (rhs[lane + 32 * i] * scale[i]) * scale[i];
    }
    const auto rows = [&](auto constant, int p) TF_INLINE_LAMBDA {  // of tiles
      using Store = TileStore<T>;
      constexpr int last = decltype(constant)::value;  // which of a lane's entries the x are
      const T* tiles = store + Store::tile(p, lane / 8);
#pragma unroll
      for (int r = 7; r >= 0; --r) {
        const int c = 8 * p + r;
        const T known = from_lane<32>(x[last], c % 32);
#pragma unroll
        for (int i = 0; i <= last; ++i)
          if (i < last || lane + 32 * i < c)
            x[i] = minus_product(x[i], conj(tiles[4 * Store::pitch * i + Store::place(r, lane % 8)]) * scale[i], known);
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
template <class Store, int most, int each, bool solves, class T>
__device__ __noinline__ int factor_panel_carefully(T* store, int n, int p, T* scratch, RightSide<T, most> right) {
  const PanelRows<Store, T, each> rows(store, n, p);
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
/// two at a time. part, second: where a lane meets the first tile. Without a branch, so that loads and products
/// overlap. write(v, k) is called with the lane's part of each L_pk, which nobody changes any more.
template <class Store, int pairs, class T, class Write>
__device__ __forceinline__ void update_panel(T* part, int second, int p, int used, Write write) {
  T* row[2 * pairs];  // of tiles; where the last is missing, the one before
#pragma unroll
  for (int i = 0; i < 2 * pairs; ++i) row[i] = part + Store::tile(i + 1 < 2 * pairs ? p + i : min(p + i, used - 1), 0);
  TilePair<T> c[pairs];
  TilePart<T> next[2 * pairs];
#pragma unroll
  for (int j = 0; j < pairs; ++j)
    c[j].start(load_part<Store>(row[2 * j] + Store::pitch * p, second),
               load_part<Store>(row[2 * j + 1] + Store::pitch * p, second));
#pragma unroll
  for (int i = 0; i < 2 * pairs; ++i) next[i] = load_part<Store>(row[i], second);
  constexpr int unrolled = std::is_same_v<T, double> ? 2 : 1;
#pragma unroll unrolled
  for (int k = 1; k <= p; ++k) {
    TilePart<T> now[2 * pairs];
#pragma unroll
    for (int i = 0; i < 2 * pairs; ++i) now[i] = next[i], next[i] = load_part<Store>(row[i] + Store::pitch * k, second);
    write(now[0], k - 1);
    const TileOperand<T> b(now[0]);
#pragma unroll
    for (int j = 0; j < pairs; ++j) c[j].subtract(TileOperand<T>(now[2 * j]), TileOperand<T>(now[2 * j + 1]), b);
  }
#pragma unroll
  for (int i = 0; i < 2 * pairs; ++i)
    store_part<Store>(row[i] + Store::pitch * p, second, c[i / 2].get(i % 2 * 2), c[i / 2].get(i % 2 * 2 + 1));
}

/// Where a lane is when a warp goes through a tile of 8 x 8 in two steps, along contiguous memory: rows or columns.
/// Four of them a step, such that no bank is met more often than necessary.
template <class T, bool by_rows>
struct TileWalk {
  int row[2], col[2];
  __device__ __forceinline__ TileWalk() {
    const int lane = int(threadIdx.x % 32);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int along = lane % 8, spread = lane / 8 % 2 * 4 + lane / 16 + 2 * h;
      row[h] = by_rows ? spread : along;
      col[h] = by_rows ? along : sizeof(T) == 4 ? spread : lane / 8 + 4 * h;
    }
  }
};
/// The same for two tiles side by side in four steps, along rows.
template <class T>
struct RowWalk {
  int col, first, place[4];
  __device__ __forceinline__ RowWalk() {
    const int lane = int(threadIdx.x % 32);
    col = lane % 16, first = lane / 16 * 4;
#pragma unroll
    for (int h = 0; h < 4; ++h) place[h] = TileStore<T>::pitch * (col / 8) + TileStore<T>::place(row(h), col % 8);
  }
  __device__ __forceinline__ int row(int h) const { return first + h; }
  /// Columns beyond the diagonal, in tiles k and k + 1 of row i.
  __device__ __forceinline__ int beyond(int h, int i, int k) const { return col - row(h) - 8 * (i - k); }
};

/// Starts to copy the lower triangle of A, of order up to 8 * most, in two groups: the first panel, and the others; the
/// second is empty where rows are contiguous, since they come one row of tiles after the other. What is missing of the
/// last tiles, and the other triangle, becomes zero.
template <bool by_rows, int most, class T>
__device__ __forceinline__ void copy_triangle(const Tile<T>& A, T* store) {
  const int n = int(A.rows);
  const index_t ld = by_rows ? A.row_stride : A.col_stride;
  constexpr int bytes = int(sizeof(T));
  const TileWalk<T, by_rows> walk;
  unsigned to[2];
  const T* from[2];
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    to[h] = shared_address(store + TileStore<T>::place(walk.row[h], walk.col[h]));
    from[h] = A.data + (by_rows ? walk.row[h] * ld + walk.col[h] : walk.col[h] * ld + walk.row[h]);
  }
  // s: which row of tiles, or column of them, is contiguous; t: the tile in it
#pragma unroll
  for (int s = 0; s < most; ++s) {
    if (8 * s < n) {
#pragma unroll
      for (int t = by_rows ? 0 : s; t < (by_rows ? s + 1 : most); ++t) {
        const int i = by_rows ? s : t, k = by_rows ? t : s;
        if (8 * i < n)
#pragma unroll
          for (int h = 0; h < 2; ++h) {
            const bool inside = 8 * i + walk.row[h] < n && (i > k || walk.col[h] <= walk.row[h]);
            copy_async<bytes, 64>(to[h] + bytes * TileStore<T>::tile(i, k), from[h] + 8 * t, inside ? bytes : 0);
          }
      }
#pragma unroll
      for (int h = 0; h < 2; ++h) from[h] += 8 * ld;
    }
    if (!by_rows && s == 0) copy_commit();
  }
  copy_commit();
  if (by_rows) copy_commit();
}
/// The same where rows are contiguous, two tiles at a time.
template <int most, class T>
__device__ __forceinline__ void copy_rows(const Tile<T>& A, T* store) {
  constexpr int bytes = int(sizeof(T));
  const RowWalk<T> walk;
  const int n = int(A.rows);
  const unsigned to = shared_address(store);
  const T* from = A.data + walk.row(0) * A.row_stride + walk.col;
#pragma unroll
  for (int i = 0; i < most; ++i)
    if (8 * i < n) {
#pragma unroll
      for (int h = 0; h < 4; ++h, from += A.row_stride)
#pragma unroll
        for (int k = 0; k <= i; k += 2)
          if (k < i || walk.col < 8) {
            const bool inside = 8 * i + walk.row(h) < n && (k + 1 < i || walk.beyond(h, i, k) <= 0);
            copy_async<bytes, 64>(to + bytes * (TileStore<T>::tile(i, k) + walk.place[h]), from + 8 * k,
                                  inside ? bytes : 0);
          }
      from += 4 * A.row_stride;
    }
  copy_commit();
  copy_commit();
}

/// The same two entries at a time, where rows are aligned for that.
template <class Store, int most, class T>
__device__ __forceinline__ void copy_pairs(const Tile<T>& A, T* store) {
  constexpr int bytes = int(sizeof(T));
  // Of 49 to 64 rows of doubles the first-level cache holds less than it is asked for: they go past it. 125 against 144
  // us at order 64; but 36.0 through it against 36.6 at 32.
  constexpr bool cached = most <= 4;
  // Two rows a quarter of a warp, such that their banks differ.
  const int lane = int(threadIdx.x % 32), col = lane % 4 * 2, n = int(A.rows);
  const int row = std::is_same_v<Store, PairStore<T>> ? lane / 4 : lane / 4 % 2 * 4 + lane / 8;
  const int diagonal = max(0, min(2, row + 1 - col)) * bytes;
  const unsigned to = shared_address(store + Store::place(row, col));
  const T* from = A.data + row * A.row_stride + col;
#pragma unroll
  for (int i = 0; i < most; ++i)
    if (8 * i < n) {
      const bool inside = 8 * i + row < n;
#pragma unroll
      for (int k = 0; k <= i; ++k)
        copy_async<2 * bytes, 64, cached>(to + bytes * Store::tile(i, k), from + 8 * k,
                                          inside ? (k < i ? 2 * bytes : diagonal) : 0);
      from += 8 * A.row_stride;
    }
  copy_commit();
  copy_commit();
}

/// Writes the triangle, where rows are contiguous.
template <int most, class T>
__device__ __forceinline__ void write_rows(const Tile<T>& A, const T* store) {
  const TileWalk<T, true> walk;
  const int n = int(A.rows);
  T* at[2];
  const T* from[2];
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    at[h] = A.data + walk.row[h] * A.row_stride + walk.col[h];
    from[h] = store + TileStore<T>::place(walk.row[h], walk.col[h]);
  }
#pragma unroll
  for (int i = 0; i < most; ++i)
    if (8 * i < n) {
      T v[most][2];
#pragma unroll
      for (int k = 0; k <= i; ++k)
#pragma unroll
        for (int h = 0; h < 2; ++h) v[k][h] = from[h][TileStore<T>::tile(i, k)];
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const bool inside = 8 * i + walk.row[h] < n;
        if constexpr (is_complex<T>)
          if (walk.row[h] == walk.col[h]) v[i][h] = T(real(v[i][h]));
#pragma unroll
        for (int k = 0; k <= i; ++k)
          if (inside && (k < i || walk.col[h] <= walk.row[h])) at[h][8 * k] = v[k][h];
        at[h] += 8 * A.row_stride;
      }
    }
}
/// The same, of up to 32 rows, one row after the other.
template <class T>
__device__ __forceinline__ void write_each_row(const Tile<T>& A, const T* store) {
  using Store = TileStore<T>;
  const int col = int(threadIdx.x % 32), n = int(A.rows);
  int place[8];
#pragma unroll
  for (int r = 0; r < 8; ++r) place[r] = Store::pitch * (col / 8) + Store::place(r, col % 8);
  T* at = A.data + col;
#pragma unroll
  for (int i = 0; i < 4; ++i)
    if (8 * i < n) {
      T v[8];
#pragma unroll
      for (int r = 0; r < 8; ++r) {
        v[r] = anything<T>();
        if (col <= 8 * i + r) v[r] = store[Store::tile(i, 0) + place[r]];
      }
#pragma unroll
      for (int r = 0; r < 8; ++r, at += A.row_stride)
        if (8 * i + r < n && col <= 8 * i + r) *at = v[r];
    }
}
/// Only the tiles on the diagonal.
template <int most, class T>
__device__ __forceinline__ void write_diagonals(const Tile<T>& A, const T* store) {
  using Store = PairStore<T>;
  const int lane = int(threadIdx.x % 32), col = lane % 8, n = int(A.rows);
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int row = lane / 8 + 4 * h;
    T v[most], *at = A.data + row * A.row_stride + col;
#pragma unroll
    for (int i = 0; i < most; ++i)
      if (8 * i < n) v[i] = store[Store::tile(i, i) + Store::place(row, col)];
#pragma unroll
    for (int i = 0; i < most; ++i, at += 8 * A.row_stride + 8)
      if (8 * i + row < n && col <= row) *at = v[i];
  }
}
/// Writes row i of tiles, two tiles at a time.
template <int most, class T>
__device__ __forceinline__ void write_row_of_tiles(const Tile<T>& A, const T* store, int i) {
  constexpr int together = 4;  // tiles
  const RowWalk<T> walk;
  const int n = int(A.rows);
  T* const to = A.data + (8 * i + walk.row(0)) * A.row_stride + walk.col;
  const T* const from = store + TileStore<T>::tile(i, 0);
#pragma unroll
  for (int k0 = 0; k0 < most; k0 += together)
    if (k0 <= i) {
      T v[together / 2][4];
#pragma unroll
      for (int k = 0; k < together; k += 2)
#pragma unroll
        for (int h = 0; h < 4; ++h)
          if (walk.beyond(h, i, k0 + k) <= 0) v[k / 2][h] = from[TileStore<T>::pitch * (k0 + k) + walk.place[h]];
      T* at = to + 8 * k0;
#pragma unroll
      for (int h = 0; h < 4; ++h, at += A.row_stride)
#pragma unroll
        for (int k = 0; k < together; k += 2) {
          const int beyond = walk.beyond(h, i, k0 + k);
          if constexpr (is_complex<T>)
            if (beyond == 0) v[k / 2][h] = T(real(v[k / 2][h]));
          if (8 * i + walk.row(h) < n && beyond <= 0) at[8 * k] = v[k / 2][h];
        }
    }
}

/// Shared memory and registers of factor_tiles with `most` rows of tiles.
template <class T, int most>
struct TilesShape {
  static constexpr int scratch = ceil_div(ColumnScratch<T, 8>::size, 32) * 32;
  static constexpr int entries(int n) { return scratch + TileStore<T>::size(n); }
  static constexpr int right = ceil_div(RightSide<T, most>::size, 32) * 32;  // entries, for a right-hand side
  // On a multiprocessor, as many as were fastest.
  static constexpr int blocks = sizeof(T) == 4 ? (most > 4 ? 16 : 24) : sizeof(T) == 8 ? (most > 4 ? 12 : 20) : 8;
};

/// In the other scalars that gains nothing.
template <class T, int most>
SharedMemory tiles_memory(std::size_t bytes) {
  return std::is_same_v<T, double> ? beside_cache(TilesShape<T, most>::blocks, bytes) : SharedMemory(bytes);
}

/// Factors A from the left by panels of eight columns. Returns 0 or the failed column + 1. By one warp; `most` rows of
/// tiles. scratch: ColumnScratch<T, 8>::size entries. With `solves`, what RightSide::backward wants is left.
template <int most, bool by_rows, bool solves, bool pairs = false, class T>
__device__ __forceinline__ int factor_tiles(const Tile<T>& A, T* store, T* scratch, RightSide<T, most> right) {
  using Store = TileLayout<T, most, pairs>;
  constexpr bool writes_parts = std::is_same_v<Store, PairStore<T>>;
  const int lane = int(threadIdx.x % 32), n = int(A.rows), used = (n + 7) / 8;
  // Above 32, rows of tiles are written as soon as they are complete, and two tiles go together: 0.141 against 0.146 ms
  // at order 64 in double, 0.092 against 0.097 in single; but 0.040 against 0.038 at order 32 in double.
  constexpr bool two_tiles = by_rows && !pairs && most > 4;
  if constexpr (pairs)
    copy_pairs<Store, most>(A, store);
  else if constexpr (two_tiles)
    copy_rows<most>(A, store);
  else
    copy_triangle<by_rows, most>(A, store);
  const PartPlace<Store, T> place;
  T* const part = store + place.first;
  const index_t ld = A.col_stride;
  T* out = A.data + lane;  // where columns are contiguous: a lane's entry of the first of a panel
  int failed = 0;
  const auto step = [&](auto constant, int p) TF_INLINE_LAMBDA {
    constexpr int each = decltype(constant)::value;
    if (p > 0) {
      [[maybe_unused]] T* to = nullptr;  // where the lane's part of row p of tiles goes
      [[maybe_unused]] bool inside = false;
      if constexpr (writes_parts) {
        const Tile<T> written = afresh(A);
        to = written.data + (8 * p + place.row) * written.row_stride + place.col, inside = 8 * p + place.row < n;
      }
      const auto write = [&](const TilePart<T>& x, int k) TF_INLINE_LAMBDA {
        if constexpr (writes_parts) {
          const bool turned = place.turned;
          const EntryVector<T, 2> v{{turned ? x.v[1] : x.v[0], turned ? x.v[0] : x.v[1]}};
          if (inside) *reinterpret_cast<EntryVector<T, 2>*>(to + 8 * k) = v;
        }
      };
      const auto update = [&](auto constant) TF_INLINE_LAMBDA {
        update_panel<Store, decltype(constant)::value>(part, place.second, p, used, write);
      };
      using std::integral_constant;
      const int left = (used - p + 1) / 2;  // pairs of tiles
      if constexpr (each == 2)
        left == 4 ? update(integral_constant<int, 4>{}) : update(integral_constant<int, 3>{});
      else
        left == 2 ? update(integral_constant<int, 2>{}) : update(integral_constant<int, 1>{});
    }
    __syncwarp();  // the panel is up to date
    const PanelRows<Store, T, each> rows(store, n, p);
    T a[each][8], b[each];
    Real<T> scale;
    rows.read(a);
    if constexpr (solves) right.read(p, b);
    const Real<T> mine = factor_columns<false, solves>(a, lane, scratch, b, &scale);
    failed = 0;
    if (__any_sync(~0u, !middling(mine))) {
      failed = factor_panel_carefully<Store, most, each, solves>(store, n, p, scratch, right);
      if constexpr (!by_rows) rows.read(a);
    } else {
      rows.write(a);
      if constexpr (solves) right.write(p, b, scale);
    }
    if constexpr (!by_rows) {
      T* at = afresh(Tile<T>{out, 0, 0, 1, ld}).data;
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
    if constexpr (two_tiles) write_row_of_tiles<most>(afresh(A), store, p);
  };
  int p = 0;
  copy_wait<1>();
  if constexpr (most > 4)
    for (; used - p > 4 && !failed; ++p) {
      if (p == 1) copy_wait<0>(), __syncwarp();  // everything is there
      step(std::integral_constant<int, 2>{}, p);
    }
  for (; p < used && !failed; ++p) {
    if (p == 1) copy_wait<0>(), __syncwarp();  // everything is there
    step(std::integral_constant<int, 1>{}, p);
  }
  copy_wait<0>();  // nothing is under way, even if the first panel failed
  if constexpr (by_rows && !two_tiles) {
    __syncwarp();  // all of it is visible
    if constexpr (writes_parts)
      write_diagonals<most>(afresh(A), store);
    else if constexpr (std::is_same_v<T, double>)
      write_each_row(afresh(A), store);
    else
      write_rows<most>(afresh(A), store);
  }
  return failed ? 8 * (p - 1) + failed : 0;
}

}  // namespace trifactor::cuda
