// How a block of threads shares a strip of a front in a solve, and what it holds in shared memory.
#pragma once

#include <cuda/single/inverted_diagonal.cuh>

namespace trifactor::cuda {

/// Up to 8 F right-hand sides. A tile is a strip's rows (forward) or columns (backward) by `depth` of the others.
template <class T, int F>
struct StripShape {
  using Block = DiagonalShape<T>;
  static constexpr int edge = Block::edge, depth = 32, threads = 128;
  static constexpr int tall_ld = edge + 4, flat_ld = depth + 4;  // of tiles (edge, depth) and (depth, edge)
  static constexpr int tile_size = max(tall_ld * depth, flat_ld* edge);
  static constexpr int row_tiles = edge / 16, col_parts = threads / 32 / row_tiles;  // how the warps share a strip
  static constexpr int fragments = F / col_parts;                                    // of a warp, side by side
  static_assert(fragments > 0);
  static constexpr int side_ld = 8 * F + 4;
  static constexpr int own_per_thread = edge * 8 * F / threads, per_thread = depth * 8 * F / threads;
  static constexpr int children = 256;  // rows of children that the list in shared memory has room for

  struct Shared {
    T tiles[2][tile_size];    // one in use, the other on its way
    T X[2][depth * side_ld];  // what tiles are multiplied with. Columns beyond the right-hand sides stay zero, here
    T own[edge * side_ld];    // and here: the strip's own right-hand sides
    int child_start[edge + 1], child_line[children];  // of the strip's rows
    int ticket;
  };
  static constexpr int resident = int(min(std::size_t(4), (227u << 10) / (sizeof(Shared) + 1024)));  // blocks
};

}  // namespace trifactor::cuda
