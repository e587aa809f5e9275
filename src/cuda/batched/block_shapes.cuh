// Shapes of the blocks that factor an item by block columns of 32 (cholesky_resident.cuh, cholesky_streamed.cuh): how
// many warps there are, which part of the factor stays in shared memory, and its layout there.
#pragma once

#include <cuda/batched/diagonal_tile.cuh>
#include <cuda/device/pivot_block.cuh>

namespace trifactor::cuda {

/// Layout of a 32 x 32 tile of the factor that stays in shared memory: a lane's part of a fragment is contiguous, 16
/// bytes of it, and the lanes follow each other. Operands are vector loads without padding or bank conflicts.
template <class T>
struct ResidentTile {
  static constexpr int edge = 32, size = edge * edge;
  static constexpr int vector = sizeof(T) < 16 ? 16 / int(sizeof(T)) : 1;
  /// Offset from a lane's first entry to the one 8 `eight` rows down and 4 `four` columns right.
  __device__ static constexpr int offset(int eight, int four) {
    return vector == 4   ? (four / 2 * 2 + eight / 2) * 128 + eight % 2 * 2 + four % 2
           : vector == 2 ? (four / 2 * 4 + eight) * 64 + four % 2
                         : (four * 4 + eight) * 32;
  }
  /// Where a lane's entries begin.
  __device__ static int place() { return vector * (int(threadIdx.x) % 32); }
};
/// Layout of a 32 x 32 tile that is copied from global memory: by columns, shifted so that fragment loads are free of
/// bank conflicts and row-wise stores nearly so.
template <class T>
struct StreamedTile {
  static constexpr int edge = 32, vector = 1;
  static constexpr int four = sizeof(T) == 8 ? 145 : sizeof(T) == 4 ? 161 : 137;  // entries of four columns
  static constexpr int eight = 2 * four;
  static constexpr int size = edge / 4 * four;
  /// Offset from a lane's first entry to the one 8 `down` rows down and 4 `fours` columns right.
  __device__ static constexpr int offset(int down, int fours) { return fours * four + 8 * down; }
  /// Of columns 0 to 7.
  __device__ static constexpr int column(int k) {
    const int c = k % 4;
    return k / 4 * four + (sizeof(T) == 8 ? 32 * c + (c & 1) * 2 + (c >> 1) * 8 : sizeof(T) == 4 ? 40 * c : 34 * c);
  }
  __device__ static int place(const TilePlace& of) { return column(of.t) + of.g; }
};

/// What a shape is made of. Tiles are 32 x 32.
struct BlockShape {
  int warps;  // one factors diagonal tiles, the others are workers
  int blocks_per_sm = 1;
  int resident_tiles = 0;  // h: h x h tiles of the factor stay in shared memory, enough for 2 h rows of tiles; 0: none
  int late_rows = 0;       // rows of tiles beyond, which are read from global memory until there is room
  int wide = 1;            // diagonal tiles of a block column; the more, the less is read from global memory
};

/// What follows from a shape.
template <class T, BlockShape shape>
struct BlockColumns {
  static constexpr bool in_panels = false;
  static constexpr int warps = shape.warps, threads = 32 * warps, nb = 32, tiles = nb / 8;
  static constexpr int blocks = shape.blocks_per_sm;
  static constexpr int half = shape.resident_tiles, wide = shape.wide;
  static constexpr bool resident = half > 0;
  static constexpr int strips = resident ? 2 : 1;  // of 16 rows, that a worker holds at once
  static constexpr int workers = warps - 1;
  // FP64 tensor-core products slow down other FP64 arithmetic on the same quarter of a multiprocessor tenfold: workers
  // that share a quarter with the factoring warp come last, and update only if there is no other way.
  static constexpr bool spares_quarter = resident && sizeof(Real<T>) == 8;
  static constexpr int updaters = spares_quarter ? warps - (warps + 3) / 4 : workers;
  static constexpr int chunk = 16 * workers * strips;
  static constexpr int late = shape.late_rows, first_late = late ? 2 * nb * half : 1 << 30;
  static constexpr int max_order = resident ? min((2 * half + late) * nb, chunk + nb) : 1 << 30;
  static constexpr int ahead = sizeof(T) * strips * wide <= 8 ? 4 : 2;  // steps of 8 columns that are loaded ahead
  // Steps of 8 columns that are unrolled. With four, doubles of a resident factor spill.
  static constexpr int unrolled = sizeof(T) == (resident ? 8 : 16) ? 2 : 4;
  static constexpr int ring = (sizeof(T) == 4 ? 3 : 2) * wide;  // streamed: tiles of right operands in flight or in use
  static constexpr int slots = resident ? max(half * half, (2 * half + late) * late) : ring + wide - 1;
  static constexpr int pitch = nb + column_pad<T>;
  static constexpr int slot_size = resident ? ResidentTile<T>::size : StreamedTile<T>::size;
  static constexpr int diagonals = resident ? 1 : wide;  // diagonal tiles in shared memory
  static constexpr int entries =
      slots * slot_size + (diagonals + 1) * nb * pitch + diagonals * (nb / 8) * PivotBlock<T>::size + nb;
  static constexpr std::size_t bytes = entries * sizeof(T) + 16;
  static constexpr std::size_t bytes_of(index_t) { return bytes; }
  /// Where tile (i, k) of the factor is; its slot is free for another when block row i is done.
  __device__ static int slot(int i, int k) {
    if (late > 0 && i >= 2 * half) return ((i - 2 * half) * (2 * half + late) + k) * ResidentTile<T>::size;
    const int u = i < half ? k : k < half ? i - half : k - half, v = i < half ? i : k < half ? k : i - half;
    return (u * half + v) * ResidentTile<T>::size;
  }
};

}  // namespace trifactor::cuda
