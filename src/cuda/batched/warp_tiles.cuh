// A triangle in shared memory, in tiles of 8 x 8: the layout, and a lane's part of a tile.
#pragma once

#include <cuda/device/pivot_block.cuh>
#include <cuda/device/triangle_io.cuh>

namespace trifactor::cuda {

/// Number of tile (i, k) of a lower triangle, counted by rows of tiles. Unsigned, so that the division is one shift.
__device__ constexpr int tile_number(int i, int k) { return int(unsigned(i * (i + 1)) / 2) + k; }

/// Tiles of 8 x 8 of a lower triangle, by rows of tiles. Free of bank conflicts for the tensor cores' fragments and for
/// a row to a lane.
template <class T>
struct TileStore {
  static constexpr int vector = vector_of<T>;
  static constexpr int pitch = 64;  // between tiles
  __device__ static constexpr int tile(int i, int k) { return pitch * tile_number(i, k); }
  /// Offset of entry (r, c) in a tile.
  __device__ static constexpr int place(int r, int c) {
    const unsigned high = unsigned(r) / 4, low = unsigned(r) % 4, q = unsigned(c) % 4, right = unsigned(c) / 4;
    if constexpr (sizeof(T) == 16)
      return 8 * r + (c ^ r);
    else if constexpr (sizeof(T) == 8)
      return int(32 * right + 8 * (low ^ right) + 4 * high + (q ^ (low / 2 * 2)));
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

/// Where a lane meets a tile of the tensor cores, row right_row() and columns t and t + 4: a RightPart, as either
/// operand and of the product.
template <class T>
struct TilePart {
  int first, second;
  __device__ __forceinline__ TilePart() {
    const LanePlace place;
    first = TileStore<T>::place(place.right_row(), place.t),
    second = TileStore<T>::place(place.right_row(), place.t + 4);
  }
  __device__ __forceinline__ RightPart<T> load(const T* tile) const {
    if constexpr (sizeof(T) == 4) {
      const auto v = *reinterpret_cast<const EntryVector<T, 2>*>(tile + first);
      return {{v.v[0], v.v[1]}};
    } else {
      return {{tile[first], tile[second]}};
    }
  }
  __device__ __forceinline__ void store(T* tile, T v0, T v1) const {
    if constexpr (sizeof(T) == 4)
      *reinterpret_cast<EntryVector<T, 2>*>(tile + first) = {{v0, v1}};
    else
      tile[first] = v0, tile[second] = v1;
  }
};

/// Row r of a tile.
template <class T>
__device__ __forceinline__ void read_row(const T* tile, int r, T (&a)[8]) {
  using Store = TileStore<T>;
#pragma unroll
  for (int q = 0; q < 8 / Store::vector; ++q) {
    const auto v = *reinterpret_cast<const EntryVector<T, Store::vector>*>(tile + Store::place(r, Store::column(q, 0)));
#pragma unroll
    for (int e = 0; e < Store::vector; ++e) a[Store::column(q, e)] = v.v[e];
  }
}
template <class T>
__device__ __forceinline__ void write_row(T* tile, int r, const T (&a)[8]) {
  using Store = TileStore<T>;
#pragma unroll
  for (int q = 0; q < 8 / Store::vector; ++q) {
    EntryVector<T, Store::vector> v;
#pragma unroll
    for (int e = 0; e < Store::vector; ++e) v.v[e] = a[Store::column(q, e)];
    *reinterpret_cast<EntryVector<T, Store::vector>*>(tile + Store::place(r, Store::column(q, 0))) = v;
  }
}

}  // namespace trifactor::cuda
