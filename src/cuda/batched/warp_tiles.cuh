// A triangle of order up to 64 in shared memory, in tiles of 8 x 8: the layout, a lane's part of a tile, and how a warp
// loads and stores the triangle.
#pragma once

#include <cuda/device/pipeline.cuh>
#include <cuda/device/pivot_block.cuh>

namespace trifactor::cuda {

/// Number of tile (i, k) of a lower triangle, counted by rows of tiles. Unsigned, so that the division is one shift.
__device__ constexpr int tile_number(int i, int k) { return int(unsigned(i * (i + 1)) / 2) + k; }

/// Tiles of 8 x 8 of a lower triangle, by rows of tiles. Free of bank conflicts for the tensor cores' fragments, for a
/// row to a lane, and for walks along a row or column of tiles.
template <class T>
struct TileStore {
  static constexpr int vector = sizeof(T) < 16 ? 16 / int(sizeof(T)) : 1;        // entries of one load
  static constexpr int pitch = sizeof(T) == 16 ? 64 : sizeof(T) == 8 ? 76 : 72;  // between tiles
  static constexpr int half = sizeof(T) == 8 ? 40 : 1;                           // between columns c and c + 4
  __device__ static constexpr int tile(int i, int k) { return pitch * tile_number(i, k); }
  /// Offset of entry (r, c) in a tile.
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

/// Offset of v[0] of the lane's part in a tile, which is a RightPart as either operand and of the product.
template <class T>
__device__ __forceinline__ int part_place() {
  const LanePlace place;
  return TileStore<T>::place(place.right_row(), place.t);
}
template <class T>
__device__ __forceinline__ T* second_of(T* at) {
  if constexpr (sizeof(T) == 8)
    return at + TileStore<std::remove_const_t<T>>::half;
  else
    return reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(at) ^ (4 * sizeof(T)));
}
/// at: where v[0] lies.
template <class T>
__device__ __forceinline__ RightPart<T> load_part(const T* at) {
  if constexpr (sizeof(T) == 4) {
    const auto v = *reinterpret_cast<const EntryVector<T, 2>*>(at);
    return {{v.v[0], v.v[1]}};
  } else {
    return {{*at, *second_of(at)}};  // doubles of two tiles become register pairs side by side
  }
}
template <class T>
__device__ __forceinline__ void store_part(T* at, T v0, T v1) {
  if constexpr (sizeof(T) == 4)
    *reinterpret_cast<EntryVector<T, 2>*>(at) = {{v0, v1}};
  else
    *at = v0, *second_of(at) = v1;
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

/// Positions of a lane when a warp walks a tile of 8 x 8 in two steps along contiguous memory: rows or columns. Four of
/// them a step, in the order with the fewest bank conflicts.
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

/// Starts to copy the lower triangle of A, of order up to 8 * max_tiles, in two groups: the first panel, and the rest;
/// the second group is empty where rows are contiguous, since those come by rows of tiles. The other triangle, and what
/// is missing of the last tiles, becomes zero.
template <bool by_rows, int max_tiles, class T>
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
    asm("" : "+r"(to[h]), "+l"(from[h]));  // optimization barrier: not recomputed for each tile
  }
  // s: which row of tiles, or column of them, is contiguous; t: the tile in it
#pragma unroll
  for (int s = 0; s < max_tiles; ++s) {
    if (8 * s < n) {
#pragma unroll
      for (int t = by_rows ? 0 : s; t < (by_rows ? s + 1 : max_tiles); ++t) {
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

/// Stores the triangle where rows are contiguous.
template <int max_tiles, class T>
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
  for (int i = 0; i < max_tiles; ++i)
    if (8 * i < n) {
      T v[max_tiles][2];
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

}  // namespace trifactor::cuda
