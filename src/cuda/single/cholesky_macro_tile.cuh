// What a block does for a ticket that is a macro tile of 2 x 2 tiles, see cholesky_grid.cuh.
#pragma once

#include <cuda/single/cholesky_tile.cuh>

namespace trifactor::cuda {

using tile::Piece;

/// The left-looking part of macro tile (I, J), which becomes X in shared memory, column-major. Operands come by
/// cp.async, or by TMA.
template <class T, bool column_major>
__device__ __forceinline__ void update_macro_tile(const Grid<T, column_major>& g, int I, int J, T* shared) {
  using Shape = GridShape<T>;
  constexpr int edge = Shape::edge, depth = Shape::depth, ld = Shape::macro_tile_ld;
  constexpr int pitch = column_major ? ld : depth + 4, stages = 3;
  constexpr int block = pitch * (column_major ? depth : 2 * edge), half = edge * (column_major ? 1 : pitch);
  static_assert(stages * 2 * block <= Shape::shared_size);
  const int i = 2 * I, j = 2 * J;
  GridProduct<T, 2 * edge, column_major> sum;
  load_product<T, column_major, 2 * edge>(g, sum, i * edge, j * edge);
  const BlockFetch fetch(
      std::integral_constant<int, 4>{}, g, pitch, [&](int t) { return ((t < 2 ? i : j) + t % 2) * edge; },
      [&](int t) { return t / 2 * block + t % 2 * half; });
  stream_columns<stages>(
      fetch, j * edge / depth, shared, 2 * block,
      [&](const T* S, auto beside) { sum.template subtract<depth, pitch>(S, S + block, beside); },
      [&](int lane) { return lane < 2 ? min(i + lane, g.tiles() - 1) : j + lane % 2; });
  sum.for_each([&](int r, int c, T v) { shared[c * ld + r] = v; });
}
template <bool column_major>
__device__ __forceinline__ void update_macro_tile(const Grid<double, column_major>& g, const Piece& piece,
                                                  double* shared, TmaRing<column_major>& ring) {
  using Shape = GridShape<double>;
  using Ring = TmaRing<column_major>;
  constexpr int edge = Shape::edge, ld = Shape::macro_tile_ld, in_tile = edge / Ring::depth;
  static_assert(2 * edge == Ring::edge && Ring::bytes <= Shape::shared_size * int(sizeof(double)));
  const int i = 2 * piece.row, j = 2 * piece.col, chunks = j * in_tile, thread = this_thread();
  const int period = 2 * in_tile * piece.period, start = 2 * in_tile * piece.start;
  int next = thread / 32, ready = 0;  // of this warp: its next chunk; so many tiles from the left are final in all rows
  const auto ask = [&](int before, bool all) {  // the warps take turns, of more chunks than can be wanted at a time
    if (next >= min(before, chunks)) return;
    const int at = next >= period ? next : next + start < period ? next + start : next + start - period;
    while (at / in_tile >= ready) {
      const auto final = [&](int row) { return load_acquire(g.flags.final + min(row, g.tiles() - 1)); };
      ready = min(min(final(i), final(i + 1)), min(final(j), final(j + 1))) / Shape::shares;
      fence_copy_engine();  // what was written before these flags is visible to it
      if (at / in_tile >= ready && !all) return;
    }
    ring.ask(&g.map, i * edge, j * edge, at * Ring::depth, next);
    next += Shape::warps;
  };
  static_assert(Ring::ahead < Shape::warps);
  const bool leads = thread % 32 == 0;
  if (leads) ask(Ring::ahead, false);
  TmaProduct<column_major> sum;
  load_product(g, sum, i * edge, j * edge);
  if (chunks > 0) {
    if (leads) ask(1, true);
    sum.subtract(ring, chunks, ask);
  }
  __syncthreads();  // the stages are free
  double* X = shared + sum.first_col() * ld + sum.first_row();
  sum.visit([&](double& v, int r, int c) { X[c * ld + r] = v; });
}

/// Tiles (2 I, 2 J) to (2 I + 1, 2 J + 1). Next to the diagonal, the one that the chain takes over is handed to it.
template <class T, bool column_major>
__device__ __forceinline__ void take_macro_tile(const Grid<T, column_major>& g, const Piece& piece, T* shared,
                                                T* inverses, TmaRing<column_major>& ring) {
  using Shape = GridShape<T>;
  using G = Grid<T, column_major>;
  constexpr int edge = Shape::edge, tile = Shape::tile_size, ld = Shape::macro_tile_ld;
  constexpr int strips = Shape::shares * 2 / Shape::warps;  // of 8 rows, to each warp
  static_assert(2 * edge * ld + 2 * tile <= Shape::shared_size);
  const int rank = int(threadIdx.x), warp = rank / 32, I = piece.row, J = piece.col, i = 2 * I, j = 2 * J;
  T* X = shared;  // (2 edge, 2 edge)
  if constexpr (has_tma<T> && copies_boxes) {
    // The map of a matrix that lies by columns ends with the last 16 rows that are complete.
    if (g.uses_tma && (!column_major || g.n % 16 == 0 || (i + 2) * edge <= g.n))
      update_macro_tile(g, piece, shared, ring);
    else
      update_macro_tile(g, I, J, shared);
  } else {
    update_macro_tile(g, I, J, shared);
  }
  T *L = X + 2 * edge * ld, *below = L + tile;                 // a diagonal tile, and tile (j+1, j)
  T *left = X + 8 * strips * warp, *right = left + edge * ld;  // this warp's rows of both tile columns
  const int row = i * edge + 8 * strips * warp;
  const bool near = I == J + 1, upper = warp < Shape::warps / 2;  // upper: rows of tile row i
  const auto finish = [&](T* mine, int column) {
    RowStrip<T, strips> strip(mine, ld);
    strip.solve(L, inverses);
    store_strip(g, strip.x, row, column * edge);
  };
  if (rank == 0) wait_for(g.flags.factored + j, Shape::blocks);
  __syncthreads();  // the diagonal tile is final, and X is complete
  g.fetch_parts(L, inverses, j), copy_commit();
  copy_wait<0>();
  __syncthreads();  // it is here
  finish(left, j);
  if (rank == 0) wait_for(g.flags.final + j + 1, (j + 1) * Shape::shares);
  __syncthreads();  // the left column is solved, and tile (j+1, j) is final
  g.fetch_tile(below, j + 1, j), copy_commit();
  const auto release = [&](int first) {  // the tiles of a column, of rows that may not exist, too
    if (warp == Shape::warps - 1 && rank % 32 >= first && rank % 32 < 2)
      add_release(g.flags.final + i + rank % 32, Shape::shares);
  };
  copy_wait<0>();
  __syncthreads();  // it is here
  release(0);
  Fragment<T, strips> x[Shape::blocks];  // the right column, less what the left one brings
#pragma unroll
  for (int b = 0; b < Shape::blocks; ++b) {
    x[b].fill([&](int c, int r) { return right[(16 * b + c) * ld + r]; });
    x[b].template subtract<edge, true>(below + 16 * b, Shape::ld, left, ld);
    x[b].for_each([&](int c, int r, T v) { right[(16 * b + c) * ld + r] = v; });
  }
  if (near && upper)  // tile (i, i-1) goes to the chain
#pragma unroll
    for (int b = 0; b < Shape::blocks; ++b) g.send(G::last, i, 8 * strips * warp, 16 * b, x[b]);
  if (near) g.send_off(G::last, i);
  if (rank == 0) wait_for(g.flags.factored + j + 1, Shape::blocks);
  __syncthreads();  // the second diagonal tile is final, the first is used
  g.fetch_parts(L, inverses, j + 1), copy_commit();
  copy_wait<0>();
  __syncthreads();  // it is here
  if (!near || !upper) finish(right, j + 1);
  __syncthreads();  // the right column is solved
  release(near ? 1 : 0);
}

/// Not inlined, so that its registers are not held elsewhere.
template <class T, bool column_major>
__device__ __noinline__ void take_macro_tile_apart(const Grid<T, column_major>& g, const Piece& piece, T* shared,
                                                   T* inverses, TmaRing<column_major>& ring) {
  take_macro_tile(g, piece, shared, inverses, ring);
}

}  // namespace trifactor::cuda
