// Products of 128 x 128 entries in double, C -= A B^T. The copy engine (TMA) loads 128 rows and 16 columns of A and B
// at a time by a tensor map into a ring of stages; each warp waits for the stage that it reads next and signals what it
// has read. No thread computes addresses, and no barrier stops the block.
#pragma once

#include <cuda/device/copy_engine.cuh>
#include <cuda/device/instructions.cuh>
#include <cuda/device/pipeline.cuh>

namespace trifactor::cuda {

/// Whether a Grid of these scalars can have a tensor map.
template <class T>
inline constexpr bool has_tma = std::is_same_v<T, double>;

/// A ring of stages. A stage holds 128 rows and 16 columns of two strips. `column_major`: of the matrix.
template <bool column_major>
struct TmaRing {
  static constexpr int edge = 128, depth = 16, stages = 6,
                       ahead = 4;  // so many chunks are asked for before they are used
  static constexpr int strip = edge * depth * 8, stage = 2 * strip, group = 16 * depth * 8;  // bytes; group: of 16 rows
  static constexpr int bytes = stages * stage, barriers = 2 * stages;
  static constexpr int warps = 8;

  unsigned first, full, empty;  // shared memory: the stages, aligned to 1024 bytes, and their barriers
  unsigned used = 0;            // chunks since the start

  __device__ TmaRing(const void* stages_, const void* barriers_) {
    first = opaque(shared_address(stages_)), full = opaque(shared_address(barriers_));
    empty = full + 8 * stages;
    if (threadIdx.x == 0)
      for (int s = 0; s < stages; ++s) barrier_init(full + 8 * s, 1), barrier_init(empty + 8 * s, warps);
    fence_copy_engine();
  }
  /// Columns [col, col + depth) of the rows from `row` and from `other` on become chunk `chunk` of those after `used`.
  /// By one thread.
  __device__ void ask(const CUtensorMap* map, int row, int other, int col, int chunk) const {
    const unsigned number = used + chunk, turn = number / stages, s = number - turn * stages;
    if (turn > 0) barrier_wait(empty + 8 * s, (turn - 1) % 2);
    const unsigned to = first + s * stage, barrier = full + 8 * s;
    barrier_arrive_expecting(barrier, stage);
    if constexpr (column_major) {
      copy_box(to, map, 0, col, row / 16, barrier);
      copy_box(to + strip, map, 0, col, other / 16, barrier);
    } else {
      copy_box(to, map, col, row, barrier);
      copy_box(to + strip, map, col, other, barrier);
    }
  }
};

/// C, 128 x 128, in the registers of 256 threads: a warp holds 64 x 32 of it, in 4 x 4 fragments of 16 x 8.
/// In a stage, 16 bytes are at their place XOR the number of their 128 bytes, modulo 8: the copy engine's swizzle.
/// Which rows and columns a lane takes is chosen such that no two in a group read the same bank.
template <bool column_major>
struct TmaProduct {
  using Ring = TmaRing<column_major>;
  double c[4][4][4];

  /// Row g of 8 of a fragment whose operands lie by rows.
  __device__ static constexpr int spread(int g) { return g % 4 * 2 + g / 4; }
  __device__ static int first_row() {
    const int thread = this_thread(), g = thread % 32 / 4, warp = thread / 32;
    return warp % 2 * 64 + (column_major ? 2 * g : spread(g));
  }
  __device__ static int first_col() {
    const int thread = this_thread(), t = thread % 4, warp = thread / 32;
    return warp / 2 * 32 + (column_major ? 2 * t : spread(2 * t));
  }
  /// f(value, rows from the first, columns from the first) for every entry of this thread; two neighbours in a column
  /// in turn.
  template <class F>
  __device__ void visit(F f) {
#pragma unroll
    for (int j = 0; j < 4; ++j)
#pragma unroll
      for (int e = 0; e < 2; ++e)
#pragma unroll
        for (int i = 0; i < 4; ++i)
#pragma unroll
          for (int s = 0; s < 2; ++s)
            f(c[i][j][2 * s + e], 16 * i + s * (column_major ? 1 : 8), 8 * j + e * (column_major ? 1 : 2));
  }

  /// this -= A B^T, of `chunks` chunks. ask(n, all), by the first lane of each warp, asks for those of its chunks that
  /// come before n, or for fewer unless `all`.
  template <class Ask>
  __device__ __forceinline__ void subtract(Ring& in_memory, int chunks, Ask ask) {
    const Ring ring = in_memory;  // in registers: 0.947 of the tensor cores in place of 0.917
    constexpr int group = Ring::group;
    const int thread = this_thread(), lane = thread % 32, warp = thread / 32, t = lane % 4, g = lane / 4;
    const unsigned rows = warp % 2 * 4 * group, cols = Ring::strip + warp / 2 * 2 * group;
    // By columns: column 2 t + s, of 16 rows. By rows: row spread(g), columns t + 4 h.
    unsigned a[column_major ? 2 : 4], b[4];
#pragma unroll
    for (int h = 0; h < 4; ++h) {
      if constexpr (column_major) {
        const int col = 2 * t + h % 2;
        if (h < 2) a[h] = rows + unsigned(col * 128 + (g ^ col) * 16);
        b[h] = cols + unsigned(col * 128 + ((g / 2 + h / 2 * 4) ^ col) * 16 + g % 2 * 8);
      } else {
        const int row = spread(g), place = row * 128 + ((2 * h + t / 2) ^ row) * 16 + t % 2 * 8;
        a[h] = rows + unsigned(place), b[h] = cols + unsigned(place);
      }
    }
    double x[2][8], y[4][4];
    const auto left = [&](unsigned S, int i) {
#pragma unroll
      for (int h = 0; h < 4; ++h) {
        double(&to)[8] = x[i % 2];
        if constexpr (column_major) {
          load_shared(to[2 * h], to[2 * h + 1], S + a[h % 2] + unsigned(i * group + h / 2 * 1024));
        } else {
          to[2 * h] = load_shared(S + a[h] + unsigned(i * group));
          to[2 * h + 1] = load_shared(S + a[h] + unsigned(i * group + 1024));
        }
      }
    };
    const auto right = [&](unsigned S, int j) {
#pragma unroll
      for (int h = 0; h < 4; ++h)
        y[j][h] = column_major ? load_shared(S + b[j % 2 * 2 + h % 2] + unsigned(j / 2 * group + h / 2 * 1024))
                               : load_shared(S + b[h] + unsigned(j * 1024));
    };
    const auto multiply = [&](int i, int j) { mma16(c[i][j], x[i % 2], y[j]); };
    unsigned s = ring.used % Ring::stages, parity = ring.used / Ring::stages % 2;
    barrier_wait(ring.full + 8 * s, parity);
    unsigned S = ring.first + s * Ring::stage;
    left(S, 0), right(S, 0), right(S, 1), right(S, 2);
#pragma unroll 1
    for (int n = 0; n < chunks; ++n) {  // operands are loaded two products after the last that used their registers
      multiply(0, 0);
      right(S, 3);
      multiply(0, 1);
      left(S, 1);
      multiply(0, 2), multiply(0, 3);
      if (lane == 0) ask(n + Ring::ahead + 1, false);
      multiply(1, 0), multiply(1, 1);
      left(S, 2);
      multiply(1, 2), multiply(1, 3), multiply(2, 0), multiply(2, 1);
      left(S, 3);
      multiply(2, 2), multiply(2, 3);
      const unsigned read = ring.empty + 8 * s;
      if (++s == Ring::stages) s = 0, parity ^= 1;
      if (n + 1 < chunks) {
        if (lane == 0) ask(n + 2, true);
        barrier_wait(ring.full + 8 * s, parity);
      }
      S = ring.first + s * Ring::stage;  // after the last chunk, what is read here is not used
      multiply(3, 0), multiply(3, 1);
      left(S, 0), right(S, 0);
      __syncwarp();  // all lanes have read the stage: its entries have been multiplied
      if (lane == 0) barrier_arrive(read);
      multiply(3, 2);
      right(S, 1);
      multiply(3, 3);
      right(S, 2);
    }
    in_memory.used += chunks;
  }
};

}  // namespace trifactor::cuda
