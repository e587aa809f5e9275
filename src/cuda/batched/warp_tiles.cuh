// A triangle of order up to 64 in shared memory, in tiles of 8 x 8: how they lie, what a lane has of one, and how a
// warp brings them and writes them back.
#pragma once

#include <cuda/device/pipeline.cuh>
#include <cuda/device/pivot_columns.cuh>
#include <cuda/device/pivot_block.cuh>

namespace trifactor::cuda {

/// Of tile (i, k) of a lower triangle, one row of tiles after the other. Halved without a sign, which is an
/// instruction.
__device__ constexpr int tile_number(int i, int k) { return int(unsigned(i * (i + 1)) / 2) + k; }

/// Tiles of 8 x 8 of a lower triangle, one row of tiles after the other. A lane finds what the tensor cores want of a
/// tile without conflicts of banks, and so does one with a row of it, or with an entry of a row or column of tiles.
template <class T>
struct TileStore {
  static constexpr int vector = sizeof(T) < 16 ? 16 / int(sizeof(T)) : 1;        // entries that are loaded together
  static constexpr int pitch = sizeof(T) == 16 ? 64 : sizeof(T) == 8 ? 76 : 72;  // between tiles
  static constexpr int half = sizeof(T) == 8 ? 40 : 1;                           // between columns c and c + 4
  __device__ static constexpr int tile(int i, int k) { return pitch * tile_number(i, k); }
  /// Where entry (r, c) of a tile lies.
  __device__ static constexpr int place(int r, int c) {
    const unsigned high = unsigned(r) / 4, low = unsigned(r) % 4, q = unsigned(c) % 4, right = unsigned(c) / 4;
    if constexpr (sizeof(T) == 16)
      return 8 * r + (c ^ r);
    else if constexpr (sizeof(T) == 8)
      return int(half * right + 8 * low + 4 * high + (q ^ (low / 2 * 2)));
    else
      return int(32 * high + 4 * ((2 * low + 4 * high + ((q / 2) ^ high)) % 8) + 2 * (q % 2) + right);
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
  __device__ static constexpr int tile(int i, int k) { return pitch * tile_number(i, k); }
  __device__ static constexpr int place(int r, int c) {
    return 8 * r + (sizeof(T) == 4 ? 4 * (c / 4 ^ r / 4) + c % 4 : 2 * (c / 2 ^ r / 2) + c % 2);
  }
  __device__ static constexpr int column(int q, int e) { return vector * q + e; }
};
/// The same tiles of doubles where neighbours of a column lie together, so that two of them are brought at once. In odd
/// rows of tiles every two columns are exchanged: sixteen lanes with a row each meet different banks.
template <class T>
struct ColumnStore {
  static constexpr int pitch = 64, half = 32;
  __device__ static constexpr int tile(int i, int k) { return pitch * tile_number(i, k); }
  __device__ static constexpr int row_place(int r, int c) { return r ^ (c & 2); }
  __device__ static constexpr int column_place(int c, int i) { return 8 * (c ^ i % 2); }
  /// Of entry (r, c) of a tile in row i of tiles.
  __device__ static constexpr int place(int r, int c, int i) { return column_place(c, i) + row_place(r, c); }
  static constexpr int size(int n) { return pitch / 2 * ceil_div(n, 8) * (ceil_div(n, 8) + 1); }
};
/// Where tiles lie in kernels for `most` rows of them. `pairs`: two neighbours are moved at a time.
template <class T, int most, bool by_rows, bool pairs>
using TileLayout = std::conditional_t<!pairs || (by_rows && sizeof(T) == 8 && most <= 4), TileStore<T>,
                                      std::conditional_t<by_rows, PairStore<T>, ColumnStore<T>>>;

/// What a lane has of a tile, as either operand and of the product: row right_row() and columns t and t + 4. Of a
/// PairStore columns 2 t and 2 t + 1; of doubles every other lane has them the other way round, and rows likewise, so
/// that banks do not meet.
template <class T>
struct TilePart {
  T v[2];
};
template <class Store, class T>
struct PartPlace {
  static constexpr bool pairs = std::is_same_v<Store, PairStore<T>>, columns = std::is_same_v<Store, ColumnStore<T>>;
  int row, col;       // of the pair, or of the first entry
  bool turned;        // the pair is
  int first, second;  // places: of v[0], of a ColumnStore within its column; and from there to v[1]
  __device__ __forceinline__ PartPlace() {
    const LanePlace place;
    turned = pairs && sizeof(T) == 8 && place.t % 2;
    row = !pairs ? place.right_row() : sizeof(T) == 8 ? place.g ^ place.g / 2 % 2 : place.g;
    col = pairs ? 2 * place.t : place.t;
    if constexpr (columns)
      first = Store::row_place(row, col), second = Store::half;
    else
      first = Store::place(row, col + (turned ? 1 : 0)), second = turned ? -1 : 1;
  }
  /// From `first` to where v[0] lies in row i of tiles.
  __device__ __forceinline__ int in_row(int i) const {
    if constexpr (columns)
      return Store::column_place(col, i);
    else
      return 0;
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

/// Row r of a tile, which is in row i of tiles.
template <class Store, class T>
__device__ __forceinline__ void read_row(const T* tile, int r, [[maybe_unused]] int i, T (&a)[8]) {
  if constexpr (std::is_same_v<Store, ColumnStore<T>>) {
#pragma unroll
    for (int c = 0; c < 8; ++c) a[c] = tile[Store::place(r, c, i)];
  } else {
#pragma unroll
    for (int q = 0; q < 8 / Store::vector; ++q) {
      const auto v =
          *reinterpret_cast<const EntryVector<T, Store::vector>*>(tile + Store::place(r, Store::column(q, 0)));
#pragma unroll
      for (int e = 0; e < Store::vector; ++e) a[Store::column(q, e)] = v.v[e];
    }
  }
}
template <class Store, class T>
__device__ __forceinline__ void write_row(T* tile, int r, [[maybe_unused]] int i, const T (&a)[8]) {
  if constexpr (std::is_same_v<Store, ColumnStore<T>>) {
#pragma unroll
    for (int c = 0; c < 8; ++c) tile[Store::place(r, c, i)] = a[c];
  } else {
#pragma unroll
    for (int q = 0; q < 8 / Store::vector; ++q) {
      EntryVector<T, Store::vector> v;
#pragma unroll
      for (int e = 0; e < Store::vector; ++e) v.v[e] = a[Store::column(q, e)];
      *reinterpret_cast<EntryVector<T, Store::vector>*>(tile + Store::place(r, Store::column(q, 0))) = v;
    }
  }
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
  int col, row, across;  // of the first step; columns right of the diagonal of a tile
  int place[4];
  __device__ __forceinline__ RowWalk() {
    const int lane = int(threadIdx.x % 32);
    col = lane % 16, row = lane / 16 * 4, across = col - row;
#pragma unroll
    for (int h = 0; h < 4; ++h) place[h] = TileStore<T>::pitch * (col / 8) + TileStore<T>::place(row + h, col % 8);
  }
  /// Of A.
  __device__ __forceinline__ T* entry(const Tile<T>& A) const { return A.data + row * A.row_stride + col; }
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
    asm("" : "+r"(to[h]), "+l"(from[h]));  // not to be computed anew for each tile
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
  unsigned to[4];
#pragma unroll
  for (int h = 0; h < 4; ++h) {
    to[h] = shared_address(store + walk.place[h]);
    asm("" : "+r"(to[h]));  // not to be computed anew for each tile
  }
  const int n = int(A.rows), below = n - walk.row;
  const T* from = walk.entry(A);
#pragma unroll
  for (int i = 0; i < most; ++i)
    if (8 * i < n) {
#pragma unroll
      for (int h = 0; h < 4; ++h, from += A.row_stride)
#pragma unroll
        for (int k = 0; k <= i; k += 2)
          if (k < i || walk.col < 8) {
            const bool inside = 8 * i + h < below && (k + 1 < i || walk.across <= 8 * (i - k) + h);
            copy_async<bytes, 64>(to[h] + bytes * TileStore<T>::tile(i, k), from + 8 * k, inside ? bytes : 0);
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

/// The same where columns are contiguous and aligned, in the two groups of copy_triangle, of an even number of rows: a
/// copy of 16 bytes, or of none, is one instruction, and one of 8 bytes to 16 is seven. Above the diagonal the other
/// entry of a pair stays as it is.
template <int most>
__device__ __forceinline__ void copy_columns(const Tile<double>& A, double* store) {
  using Store = ColumnStore<double>;
  constexpr int bytes = int(sizeof(double));
  const int lane = int(threadIdx.x % 32), row = lane % 4 * 2, col = lane / 4, n = int(A.rows);
  unsigned to[2] = {shared_address(store + Store::place(row, col, 0)),
                    shared_address(store + Store::place(row, col, 1))};
  const double* from = A.data + col * A.col_stride + row;
  asm("" : "+r"(to[0]), "+r"(to[1]), "+l"(from));  // not to be computed anew for each tile
  const int below = n - row;
#pragma unroll
  for (int k = 0; k < most; ++k) {
    if (8 * k < n) {
#pragma unroll
      for (int i = k; i < most; ++i)
        if (8 * i < n) {
          const bool inside = 8 * i < below;
          const unsigned there = to[i % 2] + bytes * Store::tile(i, k);
          if (i > k || col != row + 1)
            copy_async<2 * bytes, 64>(there, from + 8 * i, inside && (i > k || col <= row) ? 2 * bytes : 0);
          else
            copy_async<bytes, 64>(there + bytes, from + 8 * i + 1, inside ? bytes : 0);
        }
      from += 8 * A.col_stride;
    }
    if (k == 0) copy_commit();
  }
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
/// Writes row i of tiles, two tiles at a time. to: where the lane's first entry of it goes.
template <int most, class T>
__device__ __forceinline__ void write_row_of_tiles(T* to, index_t ld, int n, const T* store, int i) {
  constexpr int together = 4;  // tiles
  const RowWalk<T> walk;
  const int below = n - walk.row - 8 * i, across = walk.across - 8 * i;
  const T* const from = store + TileStore<T>::tile(i, 0);
#pragma unroll
  for (int k0 = 0; k0 < most; k0 += together)
    if (k0 <= i) {
      T v[together / 2][4];
#pragma unroll
      for (int k = 0; k < together; k += 2)
#pragma unroll
        for (int h = 0; h < 4; ++h)
          if (k0 + k + walk.col / 8 <= i) v[k / 2][h] = from[TileStore<T>::pitch * (k0 + k) + walk.place[h]];
      T* at = to + 8 * k0;
#pragma unroll
      for (int h = 0; h < 4; ++h, at += ld)
#pragma unroll
        for (int k = 0; k < together; k += 2) {
          const int beyond = across + 8 * (k0 + k);
          if constexpr (is_complex<T>)
            if (beyond == h) v[k / 2][h] = T(real(v[k / 2][h]));
          if (h < below && beyond <= h) at[8 * k] = v[k / 2][h];
        }
    }
}

}  // namespace trifactor::cuda
