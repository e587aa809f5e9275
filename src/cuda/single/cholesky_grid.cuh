// Cholesky of one matrix in one launch: a persistent grid works off its tiles in dependency order.
//
// The matrix is cut into square tiles. Blocks draw tickets. The first one is the chain that bounds the time of all but
// large matrices: it factors diagonal tile k, solves tile (k+1, k) with it and updates diagonal tile k+1, all in shared
// memory. Another ticket is a tile, left-looking: the products of the tiles to its left are subtracted as soon as those are
// final; then it waits for the diagonal tile of its column, is solved with it and becomes final. Or it is a square of 2 x 2
// tiles, which needs half the traffic for each product: for large matrices, which have enough of them.
// A piece waits for pieces with earlier tickets, whose holders run, and for the chain. The chain waits only when all that it
// has factored is published, and then for tickets that need no more of it. So two blocks that run are enough.
#pragma once

#include <cuda/single/cholesky_chain.cuh>
#include <cuda/batched/items.cuh>
#include <cuda/single/tile_work.cuh>
#include <cuda/engine/launch.cuh>
#include <cuda/single/single.hpp>
#include <tile/order.hpp>

namespace trifactor::cuda {

using tile::Piece, tile::SquareOrder, tile::TileOrder, tile::TilePiece, tile::GroupOrder;

/// The left-looking part of a piece: columns [0, chunks * depth) pass through `stages` buffers of `size` entries each.
/// use(buffer, beside) multiplies and calls beside(step) `steps` times meanwhile. row_of(lane) names the tile rows that
/// are fetched: the columns of a chunk must be final in all of them.
template <int stages, int steps, class Fetch, class T, class Use, class RowOf>
__device__ void stream_columns(const Fetch& fetch, int chunks, T* shared, int size, Use use, RowOf row_of) {
  using Shape = GridShape<T>;
  constexpr int pieces = Fetch::pieces;
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
    const index_t offset = fetched * Fetch::chunk_step(fetch.g);
    use(buffer(c), [&](int step) {
      if constexpr (tensor<T>)
#pragma unroll
        for (int q = step * pieces / steps; q < (step + 1) * pieces / steps; ++q) fetch.piece(in_pieces, q, to, offset);
    });
    if (there) copy_commit(), ++fetched;
    else if (wanted) look(0);  // without waiting
  }
  __syncthreads();  // the buffers are free
}

/// The last tile to the left of those whose products are subtracted from `sum`: (i, last) and (j, last), or so many rows of
/// them from i_row and j_row on. Much waits for this one, so that all of it is fetched at once.
template <class T, bool down, int M>
__device__ __forceinline__ void subtract_last(const Grid<T, down>& g, GridProduct<T, M, down>& sum, int i_row, int j_row,
                                              int last, T* shared) {
  using Shape = GridShape<T>;
  constexpr int edge = Shape::edge, depth = Shape::depth;
  using Stage = Layout<down, (down ? M : edge) + Shape::template stage_pad<down>>;
  constexpr int block = Stage::pitch * (down ? edge : M);
  static_assert(2 * block <= Shape::shared_size);
  const int rank = int(threadIdx.x);
  if (rank < 32) wait_for_all(g.flags.final + (rank == 0 ? i_row : j_row) / edge, (last + 1) * Shape::shares);
  __syncthreads();  // it is final
  T *A = shared, *B = A + block;
  g.template fetch<edge, M>(A, Stage::pitch, i_row, last * edge);
  g.template fetch<edge, M>(B, Stage::pitch, j_row, last * edge);
  copy_commit();
  const auto nothing = [](int) {};
  if constexpr (M < edge) {
    GridProduct<T, M, down> other;  // two sums do not wait for each other
    other.clear();
    copy_wait<0>();
    __syncthreads();  // and here
    sum.template subtract<edge / 2>(A, B, Stage{}, nothing);
    other.template subtract<edge / 2>(A + Stage::at(0, edge / 2), B + Stage::at(0, edge / 2), Stage{}, nothing);
    sum.add(other);
  } else {
    copy_wait<0>();
    __syncthreads();  // and here
#pragma unroll 1
    for (int c = 0; c < edge; c += depth)
      sum.template subtract<depth>(A + Stage::at(0, c), B + Stage::at(0, c), Stage{}, nothing);
    __syncthreads();  // everyone is done with it
  }
}

/// Tile (i, j). The two that the chain takes over, (i, i-1) and (i, i), are sent to it as they are before the solve, and
/// the latter before the update with the former; any other is solved and becomes final. `at_once`: a tile has more time than
/// the next one, so that the last tile to its left is fetched at once.
template <class T, bool down>
__device__ __forceinline__ void take_tile(const Grid<T, down>& g, int i, int j, bool at_once, T* shared, T* inverses) {
  using Shape = GridShape<T>;
  using G = Grid<T, down>;
  constexpr int edge = Shape::edge, depth = Shape::depth;
  using Stage = Layout<down, (down ? edge : depth) + Shape::template stage_pad<down>>;
  constexpr int block = Stage::pitch * (down ? depth : edge), stages = 6;
  static_assert(stages * 2 * block <= Shape::shared_size);
  const int rank = int(threadIdx.x), warp = rank / 32, tiles = i == j ? j - 1 : j;  // to the left that are subtracted here
  const int last = at_once && tiles > 0 ? 1 : 0;
  GridProduct<T, edge, down> sum;
  load_product<T, down, edge>(g, sum, i * edge, j * edge);
  const BlockFetch fetch(
      std::integer_sequence<int, 2, edge>{}, g, Stage::pitch, [&](int t) { return (t == 0 ? i : j) * edge; },
      [&](int t) { return t * block; });
  stream_columns<stages, depth / 4>(
      fetch, (tiles - last) * edge / depth, shared, 2 * block,
      [&](const T* S, auto beside) { sum.template subtract<depth>(S, S + block, Stage{}, beside); },
      [&](int lane) { return lane == 0 ? i : j; });
  if constexpr (!is_complex<T>)
    if (last > 0) subtract_last<T, down, edge>(g, sum, i * edge, j * edge, tiles - 1, shared);
  if (j >= i - 1) {
    const auto letter = i == j ? G::diagonal : G::last;
    if constexpr (tensor<T> && decltype(sum)::paired)
      sum.for_each_pair([&](int r, int c, T v, T below) { g.send(letter, i, r, c, v, below); });
    else
      sum.for_each([&](int r, int c, T v) { g.send(letter, i, r, c, v); });
    g.send_off(letter, i, 4);
    return;
  }
  T *X = shared, *L = X + Shape::tile_size;
  sum.for_each([&](int r, int c, T v) { X[c * Shape::ld + r] = v; });
  __syncthreads();  // X is complete
  Strip<T, 1> strip(X + 8 * warp % edge, Shape::ld);
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

/// Quarter q of tile (i, j), one of the two that the chain takes over: four blocks send it in a third of the time.
template <class T, bool down>
__device__ __forceinline__ void take_quarter(const Grid<T, down>& g, int i, int j, int q, T* shared) {
  using Shape = GridShape<T>;
  using G = Grid<T, down>;
  constexpr int edge = Shape::edge, depth = Shape::depth, half = edge / 2;
  using Stage = Layout<down, (down ? half : depth) + Shape::template stage_pad<down>>;
  constexpr int block = Stage::pitch * (down ? depth : half), stages = 6;
  static_assert(stages * 2 * block <= Shape::shared_size);
  const int row = q % 2 * half, col = q / 2 * half, last = (i == j ? j - 1 : j) - 1;
  GridProduct<T, half, down> sum;
  load_product<T, down, half>(g, sum, i * edge + row, j * edge + col);
  const BlockFetch fetch(
      std::integer_sequence<int, 2, half>{}, g, Stage::pitch, [&](int t) { return t == 0 ? i * edge + row : j * edge + col; },
      [&](int t) { return t * block; });
  stream_columns<stages, depth / 4>(
      fetch, last * edge / depth, shared, 2 * block,
      [&](const T* S, auto beside) { sum.template subtract<depth>(S, S + block, Stage{}, beside); },
      [&](int lane) { return lane == 0 ? i : j; });
  subtract_last<T, down, half>(g, sum, i * edge + row, j * edge + col, last, shared);
  const auto letter = i == j ? G::diagonal : G::last;
  sum.for_each([&](int r, int c, T v) { g.send(letter, i, row + r, col + c, v); });
  g.send_off(letter, i, 1);
}

/// The left-looking part of square (I, J), which becomes X, by columns: with products of tiles through buffers, or of boxes.
template <class T, bool down>
__device__ __forceinline__ void update_square(const Grid<T, down>& g, int I, int J, T* shared) {
  using Shape = GridShape<T>;
  constexpr int edge = Shape::edge, depth = Shape::depth, ld = Shape::square_ld;
  using Stage = Layout<down, down ? ld : depth + 4>;
  constexpr int block = Stage::pitch * (down ? depth : 2 * edge), half = edge * (down ? 1 : Stage::pitch), stages = 3;
  static_assert(stages * 2 * block <= Shape::shared_size);
  const int i = 2 * I, j = 2 * J;
  GridProduct<T, 2 * edge, down> sum;
  load_product<T, down, 2 * edge>(g, sum, i * edge, j * edge);
  const BlockFetch fetch(
      std::integer_sequence<int, 4, edge>{}, g, Stage::pitch, [&](int t) { return ((t < 2 ? i : j) + t % 2) * edge; },
      [&](int t) { return t / 2 * block + t % 2 * half; });
  stream_columns<stages, depth / 4>(
      fetch, j * edge / depth, shared, 2 * block,
      [&](const T* S, auto beside) { sum.template subtract<depth>(S, S + block, Stage{}, beside); },
      [&](int lane) { return lane < 2 ? min(i + lane, g.tiles() - 1) : j + lane % 2; });
  sum.for_each([&](int r, int c, T v) { shared[c * ld + r] = v; });
}
template <bool down>
__device__ __forceinline__ void update_square(const Grid<double, down>& g, const Piece& piece, double* shared,
                                              BoxRing<down>& ring) {
  using Shape = GridShape<double>;
  using Ring = BoxRing<down>;
  constexpr int edge = Shape::edge, ld = Shape::square_ld, in_tile = edge / Ring::depth;
  static_assert(2 * edge == Ring::edge && Ring::bytes <= Shape::shared_size * int(sizeof(double)));
  const int i = 2 * piece.row, j = 2 * piece.col, chunks = j * in_tile, thread = this_thread();
  const int period = 2 * in_tile * piece.period, start = 2 * in_tile * piece.start;
  int next = thread / 32, ready = 0;            // of this warp: its next chunk; so many tiles from the left are final in all rows
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
  BoxProduct<down> sum;
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
template <class T, bool down>
__device__ __forceinline__ void take_square(const Grid<T, down>& g, const Piece& piece, T* shared, T* inverses,
                                            BoxRing<down>& ring) {
  using Shape = GridShape<T>;
  using G = Grid<T, down>;
  constexpr int edge = Shape::edge, tile = Shape::tile_size, ld = Shape::square_ld;
  constexpr int strips = Shape::shares * 2 / Shape::warps;  // of 8 rows, to each warp
  static_assert(2 * edge * ld + 2 * tile <= Shape::shared_size);
  const int rank = int(threadIdx.x), warp = rank / 32, I = piece.row, J = piece.col, i = 2 * I, j = 2 * J;
  T* X = shared;  // (2 edge, 2 edge)
  if constexpr (boxed<T> && tensor<T>) {
    // The map of a matrix that lies by columns ends with the last 16 rows that are complete.
    if (g.boxes && (!down || g.n % 16 == 0 || (i + 2) * edge <= g.n)) update_square(g, piece, shared, ring);
    else update_square(g, I, J, shared);
  } else {
    update_square(g, I, J, shared);
  }
  T *L = X + 2 * edge * ld, *below = L + tile;  // a diagonal tile, and tile (j+1, j)
  T *left = X + 8 * strips * warp, *right = left + edge * ld;  // this warp's rows of both tile columns
  const int row = i * edge + 8 * strips * warp;
  const bool near = I == J + 1, upper = warp < Shape::warps / 2;  // upper: rows of tile row i
  const auto finish = [&](T* mine, int column) {
    Strip<T, strips> strip(mine, ld);
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
    for (int b = 0; b < Shape::blocks; ++b)
      g.send(G::last, i, 8 * strips * warp, 16 * b, x[b]);
  if (near) g.send_off(G::last, i, 4);
  if (rank == 0) wait_for(g.flags.factored + j + 1, Shape::blocks);
  __syncthreads();  // the second diagonal tile is final, the first is used
  g.fetch_parts(L, inverses, j + 1), copy_commit();
  copy_wait<0>();
  __syncthreads();  // it is here
  if (!near || !upper) finish(right, j + 1);
  __syncthreads();  // the right column is solved
  release(near ? 1 : 0);
}

/// Apart, so that its registers are not held elsewhere.
template <class T, bool down>
__device__ __noinline__ void take_square_apart(const Grid<T, down>& g, const Piece& piece, T* shared, T* inverses,
                                               BoxRing<down>& ring) {
  take_square(g, piece, shared, inverses, ring);
}

/// The next ticket.
__device__ inline int draw(int* tickets) {
  __shared__ int ticket;
  if (threadIdx.x == 0) ticket = atomicAdd(tickets, 1);
  __syncthreads();  // the ticket is drawn, and the last piece is done with shared memory
  const int t = ticket;
  __syncthreads();  // and read by all
  return t;
}

/// Works off tickets until there are none, in squares. Pieces have those from 1 on.
template <class T, bool down>
__device__ __forceinline__ void take_squares(const Grid<T, down>& g, int t, T* shared, T* inverses) {
  __shared__ __align__(8) unsigned long long barriers[BoxRing<down>::barriers];
  BoxRing<down> ring(shared, barriers);
  if (g.boxes) __syncthreads();  // its barriers are there
  const int lane = t, tiles = g.tiles();
  SquareOrder order(tiles, g.band, int(gridDim.x) - 1);
  for (Piece piece; order.find(t, piece); t = draw(g.flags.ticket)) {
    const int edge = (piece.square ? 2 : 1) * GridShape<T>::edge;
    if (threadIdx.x == 0) g.mark_begin(tiles + t, lane, edge, piece.col * edge);
    if (!piece.square) take_tile(g, piece.row, piece.col, false, shared, inverses);
    else if constexpr (boxed<T>) take_square_apart(g, piece, shared, inverses, ring);
    else take_square(g, piece, shared, inverses, ring);
    if (threadIdx.x == 0) g.mark_end(tiles + t);
    if (g.boxes) fence_copy_engine();  // it may write where this piece was
  }
}

template <class T>
__device__ TileOrder tile_order(int tiles) {
  return {tiles, !is_complex<T> && tiles <= GridShape<T>::quarters};
}

/// The piece of a ticket that `order` has found.
template <class T, bool down>
__device__ __forceinline__ void take_found(const Grid<T, down>& g, const TileOrder& order, int t, T* shared, T* inverses) {
  const TilePiece piece = order.piece(t);
  if (piece.quarter >= 0) {
    if constexpr (!is_complex<T>) take_quarter(g, piece.row, piece.col, piece.quarter, shared);
  } else {
    take_tile(g, piece.row, piece.col, order.quarters, shared, inverses);
  }
}

/// The same as take_squares, in tiles.
template <class T, bool down>
__device__ __forceinline__ void take_tiles(const Grid<T, down>& g, int t, T* shared, T* inverses) {
  const int lane = t, tiles = g.tiles();
  for (TileOrder order = tile_order<T>(tiles); order.find(t); t = draw(g.flags.ticket)) {
    if (threadIdx.x == 0) g.mark_begin(tiles + t, lane, GridShape<T>::edge, order.j * GridShape<T>::edge);
    take_found(g, order, t, shared, inverses);
    if (threadIdx.x == 0) g.mark_end(tiles + t);
  }
}

/// In squares or in tiles: a kernel for each, since registers that one needs for its pieces would be missing in the other.
template <class T, bool down, bool squares>
__global__ void __launch_bounds__(GridShape<T>::threads, 1) persistent_kernel(const __grid_constant__ Grid<T, down> g) {
  extern __shared__ __align__(1024) unsigned char raw[];  // as boxes want it
  T *shared = reinterpret_cast<T*>(raw), *inverses = shared + GridShape<T>::shared_size;
  if (!g.resets && *g.info < 0) return;  // for all blocks alike: a failure is never negative
  const int ticket = draw(g.flags.ticket);
  if (ticket == 0) factor_chain(g, shared, inverses);
  else if constexpr (squares) take_squares(g, ticket, shared, inverses);
  else take_tiles(g, ticket, shared, inverses);
  __shared__ bool is_last;
  __syncthreads();  // this block is done with the flags
  if (threadIdx.x == 0) is_last = add_both(g.flags.finished, 1) == int(gridDim.x) - 1;
  __syncthreads();  // it is known whether all are
  if (is_last)
    for (int t = int(threadIdx.x); t < grid_flag_count(g.tiles()); t += GridShape<T>::threads) g.flags.ticket[t] = 0;
}

/// What blocks know of an item of a list.
template <class T>
struct LargeItem {
  T* data;
  index_t ld;
  int number, n;
  bool possible;
  __device__ TileOrder order() const { return tile_order<T>((n + GridShape<T>::edge - 1) / GridShape<T>::edge); }
};

/// Decides how many items are worked on alike: a chain for each, and a block for their pieces; so one, if all blocks that start
/// would become chains. By one thread of the block with the first ticket.
__device__ inline void decide_together(const int* tickets, int* decided, int most) {
  constexpr int looks = 200;  // some 100 us; blocks of a launch start within two
  int look = 0;
  while (most > 1 && load_acquire(tickets) <= most && look < looks) __nanosleep(20), ++look;
  store_release(decided, look < looks ? most : 1);
}

/// The items of a list in tiles, some at a time: their chains, then column after column of each of them, so that blocks have
/// work in one while they would wait for the chain of another. The tickets of such a group follow those of the one before.
/// Flags and room of an item serve again, for one `sets` further on, when all its tickets are done.
template <class T, bool down>
__global__ void __launch_bounds__(GridShape<T>::threads, 1)
    persistent_list_kernel(Items<T> A, LargeItems<T> large, int* info) {
  extern __shared__ __align__(1024) unsigned char raw[];
  T *shared = reinterpret_cast<T*>(raw), *inverses = shared + GridShape<T>::shared_size;
  __shared__ bool is_last;
  __shared__ int together;
  __shared__ LargeItem<T> items[LargeItems<T>::max_together];
  wait_for_launch_before();  // the list is complete
  const int rank = int(threadIdx.x), begin = large.order ? large.bounds[0] : 0;
  const int end = large.order ? large.bounds[1] - begin : int(A.count);
  if (end == 0) return;
  let_next_start();
  int *const tickets = large.flags, *const finished = tickets + 1, *const decided = tickets + 2, *const done = tickets + 3;
  const auto count = [&](int* counter, int all) {  // whether this block is the last of so many
    __syncthreads();                               // it is done with what it waits for and tells
    if (rank == 0) is_last = add_both(counter, 1) == all - 1;
    __syncthreads();  // it is known
    return is_last;
  };
  int t = draw(tickets), before = 0;  // before: tickets of the groups before
  if (rank == 0) {
    if (t == 0) decide_together(tickets, decided, min(large.together, end));
    together = wait_for(decided, 1);
  }
  __syncthreads();  // it is decided
  for (int k = 0, members; k < end; k += members) {
    members = min(together, end - k);
    __syncthreads();  // everyone is done with the items before
    if (rank < members) {
      const int b = large.order ? large.order[begin + k + rank] : k + rank, set = (k + rank) % large.sets;
      if (A.ragged()) {
        const RaggedItem<T> item(A, b);
        items[rank] = {item.data, item.ld, b, item.n, item.possible};
      } else {
        const Tile<T> item = A.item(b);
        items[rank] = {item.data, down ? item.col_stride : item.row_stride, b, int(item.rows), true};
      }
      if (k + rank >= large.sets) wait_for(done + set, k + rank - large.sets + 1);
    }
    __syncthreads();  // the items are known, and nobody uses their flags any more
    int after = before;
    for (int m = 0; m < members; ++m) after += items[m].order().tickets();
    for (GroupOrder group(members, before); t < after; t = draw(tickets)) {
      group.find(t, [&](int m, int j) { return items[m].order().tickets(j); });
      const int m = group.member, j = group.column;
      const LargeItem<T> item = items[m];
      TileOrder order = item.order();
      const int set = (k + m) % large.sets, own = order.tickets();
      int* const ints = done + large.sets + set * large.flags_each;
      T* const room = large.entries + set * large.entries_each;
      const GridFlags flags{ints, ints + 1, ints + 2, ints + 3 + order.tiles, ints + 4 + 2 * order.tiles};
      const bool aligned = lines_aligned(item.data, item.ld);
      const Grid<T, down> g{item.data, item.ld,            item.n, aligned, true, room, room + Grid<T, down>::messages_size,
                            flags,     info + item.number, 0,      nullptr, 1,    false, {}};
      if (!item.possible) {
        if (rank == 0) info[item.number] = -1;
      } else if (j < 0) {
        factor_chain(g, shared, inverses);
      } else {
        order.j = j, order.before = group.before;
        take_found(g, order, t, shared, inverses);
      }
      if (count(flags.finished, own)) {
        for (int i = rank; i < large.flags_each; i += GridShape<T>::threads) ints[i] = 0;
        __syncthreads();  // they are zero
        if (rank == 0) store_release(done + set, k + m + 1);
      }
    }
    before = after;
  }
  if (count(finished, int(gridDim.x)))
    for (int i = rank; i < LargeItems<T>::counters + large.sets; i += GridShape<T>::threads) tickets[i] = 0;
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
/// Tickets at most: the chain, tiles, and six more for each row where two of them are cut in quarters.
template <class T>
index_t persistent_ticket_count(index_t n) {
  const index_t tiles = ceil_div(n, GridShape<T>::edge);
  return tiles * (tiles + 1) / 2 + 6 * tiles;
}
/// Places for marks: the steps of the chain, and the tickets.
template <class T>
index_t persistent_mark_count(index_t n) {
  return ceil_div(n, GridShape<T>::edge) + persistent_ticket_count<T>(n);
}

/// Makes the map by which the copy engine brings boxes of a matrix; false where it cannot. By columns, a box is 16 rows, 16
/// columns and 8 times as many rows; by rows, 16 columns and 128 rows.
template <bool down>
bool make_map(CUtensorMap& map, double* A, index_t stride, index_t n) {
  static const auto encode = [] {
    void* p = nullptr;
    cudaDriverEntryPointQueryResult found;
    if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &p, 12000, cudaEnableDefault, &found) != cudaSuccess)
      p = nullptr;
    return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(p);
  }();
  const auto count = [](index_t v) { return cuuint64_t(v); };
  const cuuint64_t sizes[] = {down ? 16 : count(n), count(n), count(n / 16)};
  const cuuint64_t strides[] = {count(stride) * sizeof(double), 128};
  const cuuint32_t box[] = {16, down ? 16 : 128, 8}, steps[] = {1, 1, 1};
  return encode && n >= 128 &&
         encode(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT64, down ? 3 : 2, A, sizes, strides, box, steps,
                CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

template <class T>
void launch_persistent(void* stream, int multiprocessors, Items<T> A, int band, bool resets, int* info, index_t first,
                       T* entries, int* ints, Mark* marks) {
  const index_t tiles = ceil_div(A.rows, GridShape<T>::edge);
  const GridFlags flags{ints, ints + 1, ints + 2, ints + 3 + tiles, ints + 4 + 2 * tiles};
  T* parts = entries + Grid<T, true>::messages_size;
  const Tile<T> a = A.item(0);
  const auto blocks = unsigned(min(persistent_ticket_count<T>(A.rows), index_t(multiprocessors)));
  check(tiles <= 2 || blocks > 1 ? cudaSuccess : cudaErrorInvalidConfiguration, "a grid of two blocks");
  const bool down = a.row_stride == 1;
  const index_t stride = down ? a.col_stride : a.row_stride;
  const bool aligned = lines_aligned(a.data, stride);
  const auto go = [&]<bool is_down>(std::bool_constant<is_down>) {
    Grid<T, is_down> grid{a.data, stride, int(A.rows), aligned, resets, entries, parts, flags, info, first, marks, 1, false, {}};
    if constexpr (boxed<T>) grid.boxes = band > 0 && aligned && make_map<is_down>(grid.map, a.data, stride, A.rows);
    if (grid.boxes) grid.band = band;
    const auto kernel = band > 0 ? persistent_kernel<T, is_down, true> : persistent_kernel<T, is_down, false>;
    launch(stream, kernel, blocks, GridShape<T>::threads, GridShape<T>::bytes, grid);
  };
  if (down) go(std::true_type{});
  else go(std::false_type{});
}

template <class T>
LaunchStep persistent_list_step(int multiprocessors, Items<T>& A, LargeItems<T>& large, int*& info) {
  const auto kernel =
      reinterpret_cast<const void*>(A.is_flipped ? persistent_list_kernel<T, false> : persistent_list_kernel<T, true>);
  return {kernel,
          {unsigned(multiprocessors), 1},
          GridShape<T>::threads,
          GridShape<T>::bytes,
          granted(kernel).overlaps,
          {&A, &large, &info}};
}

}  // namespace trifactor::cuda

#define TRIFACTOR_INSTANTIATE_KERNELS(T)                                         \
  template trifactor::cuda::LaunchStep trifactor::cuda::persistent_list_step<T>(int, Items<T>&, LargeItems<T>&, int*&); \
  template trifactor::index_t trifactor::cuda::persistent_flag_count<T>(index_t); \
  template trifactor::index_t trifactor::cuda::persistent_entry_count<T>(index_t); \
  template trifactor::index_t trifactor::cuda::persistent_mark_count<T>(index_t); \
  template void trifactor::cuda::launch_persistent<T>(void*, int, Items<T>, int, bool, int*, index_t, T*, int*, Mark*);
