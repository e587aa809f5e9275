// What a block does for a ticket that is a tile, see cholesky_grid.cuh.
#pragma once

#include <cuda/single/tile_work.cuh>
#include <tile/order.hpp>

namespace trifactor::cuda {

using tile::TileOrder;

/// The left-looking part of a piece: columns [0, chunks * depth) pass through `stages` buffers of `size` entries each.
/// use(buffer, beside) multiplies and calls beside(step) meanwhile, for every four columns. row_of(lane) names the tile
/// rows that are fetched: the columns of a chunk must be final in all of them.
template <int stages, class Fetch, class T, class Use, class RowOf>
__device__ void stream_columns(const Fetch& fetch, int chunks, T* shared, int size, Use use, RowOf row_of) {
  using Shape = GridShape<T>;
  constexpr int pieces = Fetch::pieces, steps = Shape::depth / 4;
  __shared__ int seen[2];  // by warp 0; two places, so that all have read one before it is written again
  const int rank = int(threadIdx.x);
  int looks = 0, ready = 0, fetched = 0;  // ready: so many tiles from the left are final in every row
  const int* of_lane = fetch.g.flags.final + row_of(rank % 32);
  const auto look = [&](int wanted) {
    if (rank < 32) {
      const int least = wait_for_all(of_lane, wanted * Shape::shares) / Shape::shares;
      if (rank == 0) seen[looks % 2] = least;
    }
    __syncthreads();  // warp 0 has looked
    ready = seen[looks++ % 2];
  };
  const auto tile_of = [](int chunk) { return chunk * Shape::depth / Shape::edge; };
  const auto buffer = [&](int chunk) { return shared + chunk % stages * size; };
  for (int c = 0; c < chunks; ++c) {
    if (fetched == c && tile_of(c) >= ready) look(tile_of(c) + 1);
    const bool dry = fetched == c;  // nothing is on its way: all that is there is asked for
    while (dry && fetched < chunks && fetched < c + stages - 1 && tile_of(fetched) < ready)
      fetch.all(buffer(fetched), fetched), copy_commit(), ++fetched;
    copy_wait(fetched - 1 - c);
    __syncthreads();  // chunk c is there, and everyone is done with the one before
    const bool wanted = fetched < chunks && fetched < c + stages, there = wanted && tile_of(fetched) < ready;
    if (there && !fetch.simple) fetch.all(buffer(fetched), fetched);
    const bool in_pieces = there && fetch.simple;
    const unsigned to = fetch.own_place(buffer(fetched));
    const index_t offset = fetched * fetch.chunk_step();
    use(buffer(c), [&](int step) {
#pragma unroll
      for (int q = step * pieces / steps; q < (step + 1) * pieces / steps; ++q) fetch.piece(in_pieces, q, to, offset);
    });
    if (there)
      copy_commit(), ++fetched;
    else if (wanted)
      look(0);  // without waiting
  }
  __syncthreads();  // the buffers are free
}

/// Tile (i, j). The two that the chain takes over, (i, i-1) and (i, i), are sent to it as they are before the solve,
/// and the latter before the update with the former; any other is solved and becomes final.
template <class T, bool column_major>
__device__ __forceinline__ void take_tile(const Grid<T, column_major>& g, int i, int j, T* shared, T* inverses) {
  using Shape = GridShape<T>;
  using G = Grid<T, column_major>;
  constexpr int edge = Shape::edge, depth = Shape::depth;
  constexpr int pitch = column_major ? Shape::ld : depth + 4;
  constexpr int block = pitch * (column_major ? depth : edge), stages = 6;
  static_assert(stages * 2 * block <= Shape::shared_size);
  const int rank = int(threadIdx.x), warp = rank / 32,
            tiles = i == j ? j - 1 : j;  // to the left that are subtracted here
  GridProduct<T, edge, column_major> sum;
  load_product<T, column_major, edge>(g, sum, i * edge, j * edge);
  const BlockFetch fetch(
      std::integral_constant<int, 2>{}, g, pitch, [&](int t) { return (t == 0 ? i : j) * edge; },
      [&](int t) { return t * block; });
  stream_columns<stages>(
      fetch, tiles * edge / depth, shared, 2 * block,
      [&](const T* S, auto beside) { sum.template subtract<depth, pitch>(S, S + block, beside); },
      [&](int lane) { return lane == 0 ? i : j; });
  if (j >= i - 1) {
    const auto letter = i == j ? G::diagonal : G::last;
    if constexpr (decltype(sum)::paired)
      sum.for_each_pair([&](int r, int c, T v, T below) { g.send(letter, i, r, c, v, below); });
    else
      sum.for_each([&](int r, int c, T v) { g.send(letter, i, r, c, v); });
    g.send_off(letter, i);
    return;
  }
  T *X = shared, *L = X + Shape::tile_size;
  sum.for_each([&](int r, int c, T v) { X[c * Shape::ld + r] = v; });
  __syncthreads();  // X is complete
  RowStrip<T, 1> strip(X + 8 * warp % edge, Shape::ld);
  __shared__ int seen;
  int there = 0;  // parts of the diagonal tile
#pragma unroll
  for (int b = 0; b < Shape::blocks; ++b) {  // at the heels of the chain
    if (b >= there) {
      if (rank == 0) seen = wait_for(g.flags.factored + j, b + 1);
      __syncthreads();  // more parts are final
      there = seen;
#pragma unroll 1
      for (int p = b; p < there; ++p) g.fetch_part(L, inverses, j, p);
      copy_commit();
      copy_wait<0>();
      __syncthreads();  // they are here
    }
    if (warp >= Shape::shares) continue;
    strip.solve(b, L, inverses);
    store_fragment(g, strip.x[b], i * edge + 8 * warp, j * edge + 16 * b);
  }
  __syncthreads();  // it is solved
  if (rank == 0) add_release(g.flags.final + i, Shape::shares);
}

}  // namespace trifactor::cuda
