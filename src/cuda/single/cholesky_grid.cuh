// Cholesky of one matrix in one launch: a persistent grid works off its tiles in dependency order.
//
// The matrix is cut into square tiles. Blocks draw tickets. The first one is the chain that bounds the time of all but
// large matrices: it factors diagonal tile k, solves tile (k+1, k) with it and updates diagonal tile k+1, all in shared
// memory. Another ticket is a tile, left-looking: the products of the tiles to its left are subtracted as soon as those
// are final; then it waits for the diagonal tile of its column, is solved with it and becomes final. Or it is a macro
// tile of 2 x 2 tiles, which needs half the traffic for each product: for large matrices, which have enough of them.
// A piece waits for pieces with earlier tickets, whose holders run, and for the chain. The chain waits only when all
// that it has factored is published, and then for tickets that need no more of it. So two blocks that run are enough.
#pragma once

#include <cuda/engine/launch.cuh>
#include <cuda/single/cholesky_chain.cuh>
#include <cuda/single/cholesky_list.cuh>
#include <cuda/single/cholesky_macro_tile.cuh>
#include <cuda/single/cholesky_tile.cuh>

namespace trifactor::cuda {

using tile::MacroTileOrder;

/// Works off tickets from t on until there are none, in macro tiles.
template <class T, bool column_major>
__device__ __forceinline__ void take_macro_tiles(const Grid<T, column_major>& g, int t, T* shared, T* inverses) {
  __shared__ __align__(8) unsigned long long barriers[TmaRing<column_major>::barriers];
  TmaRing<column_major> ring(shared, barriers);
  if (g.uses_tma) __syncthreads();  // its barriers are there
  const int lane = t, tiles = g.tiles();
  MacroTileOrder order(tiles, g.band, int(gridDim.x) - 1);
  for (Piece piece; order.find(t, piece); t = draw(g.flags.ticket)) {
    const int edge = (piece.is_macro_tile ? 2 : 1) * GridShape<T>::edge;
    if (threadIdx.x == 0) g.mark_begin(tiles + t, lane, edge, piece.col * edge);
    if (!piece.is_macro_tile)
      take_tile(g, piece.row, piece.col, shared, inverses);
    else if constexpr (has_tma<T>)
      take_macro_tile_apart(g, piece, shared, inverses, ring);
    else
      take_macro_tile(g, piece, shared, inverses, ring);
    if (threadIdx.x == 0) g.mark_end(tiles + t);
    if (g.uses_tma) fence_copy_engine();  // it may write where this piece was
  }
}

/// The same in tiles.
template <class T, bool column_major>
__device__ __forceinline__ void take_tiles(const Grid<T, column_major>& g, int t, T* shared, T* inverses) {
  const int lane = t, tiles = g.tiles();
  for (TileOrder order(tiles); order.find(t); t = draw(g.flags.ticket)) {
    if (threadIdx.x == 0) g.mark_begin(tiles + t, lane, GridShape<T>::edge, order.j * GridShape<T>::edge);
    const auto [i, j] = order.tile(t);
    take_tile(g, i, j, shared, inverses);
    if (threadIdx.x == 0) g.mark_end(tiles + t);
  }
}

/// A kernel for macro tiles and one for tiles: each would lack the registers that the other needs.
template <class T, bool column_major, bool macro_tiles>
__global__ void __launch_bounds__(GridShape<T>::threads, 1)
    persistent_kernel(const __grid_constant__ Grid<T, column_major> g) {
  extern __shared__ __align__(1024) unsigned char raw[];  // alignment of TMA stages
  T *shared = reinterpret_cast<T*>(raw), *inverses = shared + GridShape<T>::shared_size;
  if (!g.resets && *g.info < 0) return;  // for all blocks alike: a failure is never negative
  const int ticket = draw(g.flags.ticket);
  if (ticket == 0)
    factor_chain(g, shared, inverses);
  else if constexpr (macro_tiles)
    take_macro_tiles(g, ticket, shared, inverses);
  else
    take_tiles(g, ticket, shared, inverses);
  __shared__ bool is_last;
  __syncthreads();  // this block is done with the flags
  if (threadIdx.x == 0) is_last = add_both(g.flags.finished, 1) == int(gridDim.x) - 1;
  __syncthreads();  // it is known whether all are
  if (is_last)
    for (int t = int(threadIdx.x); t < grid_flag_count(g.tiles()); t += GridShape<T>::threads) g.flags.ticket[t] = 0;
}

/// Ints that the flags of a matrix of order n take.
template <class T>
index_t persistent_flag_count(index_t n) {
  return grid_flag_count(ceil_div(n, GridShape<T>::edge));
}
/// Entries that the parts of diagonal tiles and messages take.
template <class T>
index_t persistent_entry_count(index_t n) {
  return ceil_div(n, GridShape<T>::edge) * Grid<T, true>::parts_size + Grid<T, true>::messages_size;
}
/// Tickets at most: the chain, and tiles.
template <class T>
index_t persistent_ticket_count(index_t n) {
  const index_t tiles = ceil_div(n, GridShape<T>::edge);
  return tiles * (tiles + 1) / 2;
}
/// Places for marks: the steps of the chain, and the tickets.
template <class T>
index_t persistent_mark_count(index_t n) {
  return ceil_div(n, GridShape<T>::edge) + persistent_ticket_count<T>(n);
}

template <class T>
void launch_persistent(void* stream, int multiprocessors, Items<T> A, int band, bool resets, int* info, index_t first,
                       T* entries, int* ints, Mark* marks) {
  const index_t tiles = ceil_div(A.rows, GridShape<T>::edge);
  const GridFlags flags = grid_flags(ints, tiles);
  T* parts = entries + Grid<T, true>::messages_size;
  const Tile<T> a = A.item(0);
  const auto blocks = unsigned(min(persistent_ticket_count<T>(A.rows), index_t(multiprocessors)));
  check(tiles <= 2 || blocks > 1 ? cudaSuccess : cudaErrorInvalidConfiguration, "a grid of two blocks");
  const bool column_major = a.row_stride == 1;
  const index_t stride = column_major ? a.col_stride : a.row_stride;
  const bool aligned = lines_aligned(a.data, stride);
  const auto go = [&]<bool is_column_major>(std::bool_constant<is_column_major>) {
    Grid<T, is_column_major> grid{a.data, stride, int(A.rows), aligned, resets, entries, parts,
                                  flags,  info,   first,       marks,   1,      false,   {}};
    if constexpr (has_tma<T>)
      grid.uses_tma = band > 0 && aligned && make_map<is_column_major>(grid.map, a.data, stride, A.rows);
    if (grid.uses_tma) grid.band = band;
    const auto kernel =
        band > 0 ? persistent_kernel<T, is_column_major, true> : persistent_kernel<T, is_column_major, false>;
    launch(stream, kernel, blocks, GridShape<T>::threads, GridShape<T>::bytes, grid);
  };
  column_major ? go(std::true_type{}) : go(std::false_type{});
}

}  // namespace trifactor::cuda

#define TRIFACTOR_INSTANTIATE_KERNELS(T)                                                                        \
  template trifactor::cuda::LaunchStep trifactor::cuda::persistent_list_step<T>(int, Items<T>&, LargeItems<T>&, \
                                                                                int*&);                         \
  template trifactor::index_t trifactor::cuda::persistent_flag_count<T>(index_t);                               \
  template trifactor::index_t trifactor::cuda::persistent_entry_count<T>(index_t);                              \
  template trifactor::index_t trifactor::cuda::persistent_mark_count<T>(index_t);                               \
  template void trifactor::cuda::launch_persistent<T>(void*, int, Items<T>, int, bool, int*, index_t, T*, int*, Mark*);
