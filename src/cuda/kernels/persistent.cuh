// Cholesky of one matrix in one launch: a persistent grid works off its tiles in dependency order.
//
// The matrix is cut into square tiles. Block 0 owns the chain that bounds the time of all but large ones: it factors
// diagonal tile k, solves tile (k+1, k) with it and updates diagonal tile k+1, all in shared memory. The other blocks
// draw tickets. A ticket is a tile, left-looking: the products of the tiles to its left are subtracted as soon as those
// are final; then it waits for the diagonal tile of its column, is solved with it and becomes final. Or it is a square
// of 2 x 2 tiles, which needs half the traffic for each product: for large matrices, which have enough of them.
// Every wait is for a piece with an earlier ticket or for the chain, and the launch is cooperative, so that all blocks
// are resident: a hang is impossible.
#pragma once

#include <cuda/kernels/grid_tile.cuh>
#include <cuda/kernels/launch.cuh>

namespace trifactor::cuda {

/// Columns [16 b, 16 b + 16) of the factored diagonal tile k and their inverse go to global memory and are made known.
/// By one warp.
template <class T, bool down>
__device__ void publish(const Grid<T, down>& g, const T* P, const T* inverses, int k, int b) {
  using Shape = GridShape<T>;
  using Inverse = InverseShape<T>;
  const int lane = int(threadIdx.x) % 32, first = k * Shape::edge;
  const T* from = inverses + b * Inverse::next + lane / 16 * Inverse::slow + lane % 16;
  T v[16];
#pragma unroll
  for (int t = 0; t < 8; ++t) v[t] = from[2 * t * Inverse::slow];
#pragma unroll
  for (int t = 0; t < 8; ++t) g.inverse(k, b)[lane + 32 * t] = v[t];
  if constexpr (down) {  // a row to a lane
    for (int r = 16 * b + lane; r < Shape::edge; r += 32) {
      T* to = g.at(first + r, first + 16 * b);
      const int columns = first + r < g.n ? r - 16 * b + 1 : 0;
#pragma unroll
      for (int t = 0; t < 16; ++t) v[t] = P[(16 * b + t) * Shape::ld + r];
#pragma unroll
      for (int t = 0; t < 16; ++t, to += g.stride)
        if (t < columns) *to = v[t];
    }
  } else {  // a column to a lane
    const int c = 16 * b + lane % 16;
    for (int r = 16 * b + lane / 16; r < Shape::edge; r += 16) {
      T* to = g.at(first + r, first + c);
#pragma unroll
      for (int t = 0; t < 8; ++t) v[t] = P[c * Shape::ld + min(r + 2 * t, Shape::edge - 1)];
#pragma unroll
      for (int t = 0; t < 8; ++t, to += 2 * g.stride)
        if (c <= r + 2 * t && r + 2 * t < Shape::edge && first + r + 2 * t < g.n) *to = v[t];
    }
  }
  __syncwarp();  // all lanes have written
  if (lane == 0) store_release(g.flags.factored + k, b + 1);
}

/// The chain. Tiles in shared memory: P is (k, k), W is (k, k-1), X is (k+1, k), D is (k+1, k+1). Warp 0 factors P while
/// others update it, and receive X in the last step of that. Then four warps solve X while two receive D. Warp 7 makes
/// known what is final. Nobody competes with warp 0 in its part of the multiprocessor, so that warp 4 does next to
/// nothing. What the chain waits for depends on diagonal tiles before k only, which are known.
template <class T, bool down>
__device__ __forceinline__ void factor_chain(const Grid<T, down>& g, T* shared, T* inverses) {
  using Shape = GridShape<T>;
  using G = Grid<T, down>;
  constexpr int ld = Shape::ld, blocks = Shape::blocks, edge = Shape::edge, tile = Shape::tile_size;
  constexpr int strips = Shape::shares / 4;  // of X, to each of four warps
  static_assert(4 * tile + FactorScratch<T>::size <= Shape::shared_size);
  T *P = shared, *W = P + tile, *X = W + tile, *D = X + tile;
  const FactorScratch<T> scratch(D + tile);
  const int tiles = g.tiles(), rank = int(threadIdx.x), warp = rank / 32, lane = rank % 32;
  const int hand = warp < 4 ? warp - 1 : warp - 2;  // of those that update: not warps 0, 4 and 7
  const auto complete = [&](T* S, int k) {          // beyond the last column lies the identity
    const int r = g.n - k * edge + rank;
    if (r < edge) S[r * (ld + 1)] = T(1);
  };
  if (g.resets && rank == 0) *g.info = 0;
  g.clear_messages();
  scratch.fill();
  g.fetch_tile(P, 0, 0);
  if (tiles > 1) g.fetch_tile(X, 1, 0), g.fetch_tile(D, 1, 1);
  copy_commit();
  copy_wait<0>();
  __syncthreads();  // the first tiles are there
  complete(P, 0);
  __syncthreads();  // with the diagonal
#pragma unroll 1
  for (int k = 0; k < tiles; ++k) {
    const bool more = k + 1 < tiles;
    int failed = 0;
    if (rank == 4 * 32) {
      if (k > 0) g.mark_end(k - 1);
      g.mark_begin(k, edge, k * edge);
    }
#pragma unroll 1
    for (int b = 0; b < blocks; ++b) {
      T* B = P + 16 * b * (ld + 1);  // block (b, b)
      T* Z = B - 16 * ld;            // (b, b-1), solved
      const auto from_w = [&](int i, int j) {
        update_block<T, edge>(P + 16 * i + 16 * j * ld, W + 16 * i, W + 16 * j);
      };
      const auto from_z = [&](int i, int j) { update_block<T, 16>(B + 16 * i + 16 * j * ld, Z + 16 * i, Z + 16 * j); };
      if (warp == 0) {
        if (b > 0) from_z(0, 0);
        else if (k > 0) from_w(0, 0);
        __syncwarp();  // the block is up to date
        T* inverse = inverses + b * InverseShape<T>::next;
        int at = factor_block<false>(B, inverse, scratch);
        if (at < 0) at = factor_block_carefully(B, inverse, scratch);
        if (at != 0 && failed == 0) failed = 16 * b + at;
      } else if (warp == 4) {
        if (b == 0 && k > 0 && lane == 0) add_release(g.flags.final + k, Shape::shares);  // tile (k, k-1)
      } else if (warp == 7) {
        if (b > 0) publish(g, P, inverses, k, b - 1);
      } else if (b > 0 || k > 0) {
        // Tensor-core products by warp 4 would hold up the arithmetic of warp 0 tenfold. What W brings to columns that are
        // not wanted yet is subtracted one step later.
        int turn = hand;
#pragma unroll 1
        for (int i = 1; i < blocks - b; ++i)
#pragma unroll 1
          for (int j = 0; j <= i; ++j) {
            if (b == 0 && i + j > 3) continue;
            if (turn-- > 0) continue;
            turn = 4;
            if (b == 0) from_w(i, j);
            if (b == 1 && k > 0 && i + j > 1) from_w(i + 1, j + 1), __syncwarp();
            if (b > 0) from_z(i, j);
          }
        if (b == blocks - 1 && k > 0 && more && hand > 0)
          g.template receive<128>(G::last, k + 1, X, (hand - 1) * 32 + lane);
      }
      __syncthreads();  // block (b, b) is factored, the others are up to date; in the end, X is here
      const int below = 2 * (blocks - 1 - b);
      if (below == 0) break;
      if (warp < below) solve_block(B + 16 + 8 * warp, InverseShape<T>::operand(inverses, b));
      __syncthreads();  // its columns are solved
    }
    if (failed != 0 && rank == 0 && *g.info == 0) *g.info = int(g.first + index_t(k) * edge) + failed;
    if (warp == 7) publish(g, P, inverses, k, blocks - 1);
    if (!more) break;
    if (warp < 4) {
      const int row = 8 * strips * warp;
      Strip<T, strips> strip(X + row, ld);
      strip.solve(P, inverses);
      store_strip(g, strip.x, (k + 1) * edge + row, k * edge);
    } else if (k > 0 && (warp == 5 || warp == 6)) {
      g.template receive<64>(G::diagonal, k + 1, D, rank - 5 * 32);
    }
    __syncthreads();  // tile (k+1, k) is solved, tile (k+1, k+1) is here
    complete(D, k + 1);
    if (g.n < (k + 2) * edge) __syncthreads();  // and complete
    T* t = P;
    P = D, D = t;
    t = W, W = X, X = t;
  }
  if (rank == 4 * 32) g.mark_end(tiles - 1);
}

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
    while (fetched < chunks && fetched < c + stages - 1 && (fetched == c || c == 0) && tile_of(fetched) < ready)
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

/// Tile (i, j). The two that the chain takes over, (i, i-1) and (i, i), are sent to it as they are before the solve, and
/// the latter before the update with the former; any other is solved and becomes final.
template <class T, bool down>
__device__ __forceinline__ void take_tile(const Grid<T, down>& g, int i, int j, T* shared, T* inverses) {
  using Shape = GridShape<T>;
  using G = Grid<T, down>;
  constexpr int edge = Shape::edge, depth = Shape::depth;
  using Stage = Layout<down, down ? Shape::ld : depth + 4>;
  constexpr int block = Stage::pitch * (down ? depth : edge), stages = 6;
  static_assert(stages * 2 * block <= Shape::shared_size);
  const int rank = int(threadIdx.x), warp = rank / 32;
  Product<T, edge, down> sum;
  load_product<T, down, edge>(g, sum, i * edge, j * edge);
  const BlockFetch fetch(
      std::integral_constant<int, 2>{}, g, Stage::pitch, [&](int t) { return (t == 0 ? i : j) * edge; },
      [&](int t) { return t * block; });
  stream_columns<stages, depth / 4>(
      fetch, (i == j ? j - 1 : j) * edge / depth, shared, 2 * block,
      [&](const T* S, auto beside) { sum.template subtract<depth>(S, S + block, Stage{}, beside); },
      [&](int lane) { return lane == 0 ? i : j; });
  if (j >= i - 1)
    return sum.for_each([&](int r, int c, T v) { g.send(i == j ? G::diagonal : G::last, i, r, c, v); });
  T *X = shared, *L = X + Shape::tile_size;
  sum.for_each([&](int r, int c, T v) { X[c * Shape::ld + r] = v; });
  __syncthreads();  // X is complete
  Strip<T, 1> strip(X + 8 * warp % edge, Shape::ld);
#pragma unroll
  for (int b = 0; b < Shape::blocks; ++b) {  // at the heels of the chain
    if (rank == 0) wait_for(g.flags.factored + j, b + 1);
    __syncthreads();  // columns of the diagonal tile are final
    g.template fetch_columns<16>(L, j, j, 16 * b), g.fetch_inverses(inverses, j, b, 1), copy_commit();
    copy_wait<0>();
    __syncthreads();  // they are here
    if (warp < Shape::shares) strip.solve(b, L, inverses);
  }
  if (warp < Shape::shares) store_strip(g, strip.x, i * edge + 8 * warp, j * edge);
  __syncthreads();  // it is solved
  if (rank == 0) add_release(g.flags.final + i, Shape::shares);
}

/// Tiles (2 I, 2 J) to (2 I + 1, 2 J + 1). Next to the diagonal, the one that the chain takes over is handed to it.
template <class T, bool down>
__device__ __forceinline__ void take_square(const Grid<T, down>& g, int I, int J, T* shared, T* inverses) {
  using Shape = GridShape<T>;
  using G = Grid<T, down>;
  constexpr int edge = Shape::edge, depth = Shape::depth, tile = Shape::tile_size, ld = Shape::square_ld;
  using Stage = Layout<down, down ? ld : depth + 4>;
  constexpr int block = Stage::pitch * (down ? depth : 2 * edge), half = edge * (down ? 1 : Stage::pitch), stages = 3;
  constexpr int strips = Shape::shares * 2 / Shape::warps;  // of 8 rows, to each warp
  static_assert(stages * 2 * block <= Shape::shared_size && 2 * edge * ld + 2 * tile <= Shape::shared_size);
  const int rank = int(threadIdx.x), warp = rank / 32, i = 2 * I, j = 2 * J;
  T* X = shared;  // (2 edge, 2 edge)
  {
    Product<T, 2 * edge, down> sum;
    load_product<T, down, 2 * edge>(g, sum, i * edge, j * edge);
    const BlockFetch fetch(
        std::integral_constant<int, 4>{}, g, Stage::pitch, [&](int t) { return ((t < 2 ? i : j) + t % 2) * edge; },
        [&](int t) { return t / 2 * block + t % 2 * half; });
    stream_columns<stages, depth / 4>(
        fetch, j * edge / depth, shared, 2 * block,
        [&](const T* S, auto beside) { sum.template subtract<depth>(S, S + block, Stage{}, beside); },
        [&](int lane) { return lane < 2 ? min(i + lane, g.tiles() - 1) : j + lane % 2; });
    sum.for_each([&](int r, int c, T v) { X[c * ld + r] = v; });
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
  g.fetch_tile(L, j, j), g.fetch_inverses(inverses, j), copy_commit();
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
  if (rank == 0) wait_for(g.flags.factored + j + 1, Shape::blocks);
  __syncthreads();  // the second diagonal tile is final, the first is used
  g.fetch_tile(L, j + 1, j + 1), g.fetch_inverses(inverses, j + 1), copy_commit();
  copy_wait<0>();
  __syncthreads();  // it is here
  if (!near || !upper) finish(right, j + 1);
  __syncthreads();  // the right column is solved
  release(near ? 1 : 0);
}

/// Draws tickets until there are none.
template <class T, bool down>
__device__ __forceinline__ void take_pieces(const Grid<T, down>& g, T* shared, T* inverses) {
  __shared__ int ticket;
  // Column j, of tiles or of squares: first what leads to the next diagonal tiles, then what lies below. Of tiles these
  // are (j+2, j), (j+2, j+1), (j+2, j+2); of squares the one next to the diagonal and the tiles of the next one on it.
  const int tiles = g.tiles(), width = g.squares ? 2 : 1, columns = (tiles + width - 1) / width;
  const auto leading = [&](int j) {
    const int rows = tiles - (width * j + 2);
    return rows <= 0 ? 0 : width == 1 ? 3 : rows == 1 ? 2 : 4;
  };
  const auto below = [&](int j) { return max(0, columns - j - (width == 1 ? 3 : 2)); };
  int j = 0, before = 0;  // tickets of the columns before j
  for (bool first = true;; first = false) {
    if (threadIdx.x == 0) {
      if (!first) g.mark_end(tiles + ticket);
      ticket = atomicAdd(g.flags.ticket, 1);
    }
    __syncthreads();  // the ticket is drawn, and the last piece is done with shared memory
    const int t = ticket;
    __syncthreads();  // and read by all
    while (j < columns && t >= before + leading(j) + below(j)) before += leading(j) + below(j), ++j;
    if (j >= columns) return;
    const int place = t - before, lower = place - leading(j);
    if (threadIdx.x == 0) g.mark_begin(tiles + t, width * GridShape<T>::edge, width * j * GridShape<T>::edge);
    if (g.squares && (place == 0 || lower >= 0)) {
      take_square(g, place == 0 ? j + 1 : j + 2 + lower, j, shared, inverses);
    } else {
      const int next = width * j + 2;  // the row of the next diagonal tile
      const int row = g.squares ? next + place / 2 : next + (lower < 0 ? 0 : 1 + lower);
      const int col = g.squares ? next + place / 3 : j + (lower < 0 ? place : 0);
      take_tile(g, row, col, shared, inverses);
    }
  }
}

template <class T, bool down>
__global__ void __launch_bounds__(GridShape<T>::threads, 1) persistent_kernel(const __grid_constant__ Grid<T, down> g) {
  extern __shared__ __align__(16) unsigned char raw[];
  T *shared = reinterpret_cast<T*>(raw), *inverses = shared + GridShape<T>::shared_size;
  if (!g.resets && *g.info < 0) return;  // for all blocks alike: a failure is never negative
  if (blockIdx.x == 0) factor_chain(g, shared, inverses);
  else take_pieces(g, shared, inverses);
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
/// Places for marks: the steps of the chain, and a ticket for each tile at most.
template <class T>
index_t persistent_mark_count(index_t n) {
  const index_t tiles = ceil_div(n, GridShape<T>::edge);
  return tiles + tiles * (tiles + 1) / 2;
}
/// Entries that the inverses and messages take.
template <class T>
index_t persistent_entry_count(index_t n) {
  return ceil_div(n, GridShape<T>::edge) * GridShape<T>::blocks * 256 + Grid<T, true>::messages_size;
}

template <class T, bool down>
void launch_persistent(cudaStream_t stream, unsigned blocks, Grid<T, down> grid) {
  check(cudaFuncSetAttribute(persistent_kernel<T, down>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             int(GridShape<T>::bytes)),
        "shared memory for a kernel");
  void* arguments[] = {&grid};
  check(cudaLaunchCooperativeKernel(persistent_kernel<T, down>, dim3(blocks), dim3(GridShape<T>::threads), arguments,
                                    GridShape<T>::bytes, stream),
        "cooperative launch");
}

template <class T>
void launch_persistent(void* stream, int multiprocessors, Items<T> A, bool squares, bool resets, int* info,
                       index_t first, T* entries, int* ints, Mark* marks) {
  const index_t tiles = ceil_div(A.rows, GridShape<T>::edge);
  const auto s = static_cast<cudaStream_t>(stream);
  const GridFlags flags{ints, ints + 1, ints + 2, ints + 3 + tiles};
  T* inverses = entries + Grid<T, true>::messages_size;
  const Tile<T> a = A.item(0);
  const auto blocks = unsigned(min(tiles * (tiles + 1) / 2, index_t(multiprocessors)));
  const bool down = a.row_stride == 1;
  const index_t stride = down ? a.col_stride : a.row_stride;
  const bool aligned = reinterpret_cast<std::uintptr_t>(a.data) % 16 == 0 && std::size_t(stride) * sizeof(T) % 16 == 0;
  const auto go = [&]<bool is_down>(std::bool_constant<is_down>) {
    launch_persistent(s, blocks, Grid<T, is_down>{a.data, stride, int(A.rows), aligned, squares, resets, entries, inverses,
                                                  flags, info, first, marks});
  };
  if (down) go(std::true_type{});
  else go(std::false_type{});
}

}  // namespace trifactor::cuda

#define TRIFACTOR_INSTANTIATE_KERNELS(T)                                         \
  template trifactor::index_t trifactor::cuda::persistent_flag_count<T>(index_t); \
  template trifactor::index_t trifactor::cuda::persistent_entry_count<T>(index_t); \
  template trifactor::index_t trifactor::cuda::persistent_mark_count<T>(index_t); \
  template void trifactor::cuda::launch_persistent<T>(void*, int, Items<T>, bool, bool, int*, index_t, T*, int*, Mark*);
