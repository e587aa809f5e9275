// The first block of the persistent grid: it factors one diagonal tile after the other, see cholesky_grid.cuh.
#pragma once

#include <cuda/single/tile_work.cuh>

namespace trifactor::cuda {

/// Part b of the factored diagonal tile k goes to global memory and is made known. By one warp.
template <class T, bool column_major>
__device__ void publish(const Grid<T, column_major>& g, const T* P, const T* inverses, int k, int b) {
  constexpr int width = vector_of<T>, each = 256 / (32 * width);  // of a block, for a lane
  using Vector = EntryVector<T, width>;
  const int lane = int(threadIdx.x) % 32;
  T* to = g.part(k, b) + lane * width;
#pragma unroll 1
  for (int t = lane * width; t < g.part_size(b); t += 256, to += 256) {
    const T* from = g.part_place(P, inverses, b, t);
    Vector v[each];
#pragma unroll
    for (int q = 0; q < each; ++q)
      v[q] = *reinterpret_cast<const Vector*>(from + q * (32 * width / 16 * GridShape<T>::ld));
#pragma unroll
    for (int q = 0; q < each; ++q) *reinterpret_cast<Vector*>(to + 32 * q * width) = v[q];
  }
  __syncwarp();  // all lanes have written
  if (lane == 0) store_release(g.flags.factored + k, b + 1);
}

/// Columns [16 b, 16 b + 16) of the factored diagonal tile k go to the matrix. By one warp.
template <class T, bool column_major>
__device__ void store_columns(const Grid<T, column_major>& g, const T* P, int k, int b) {
  using Shape = GridShape<T>;
  const int lane = int(threadIdx.x) % 32, first = k * Shape::edge;
  T v[16];
  if constexpr (column_major) {  // a row to a lane
#pragma unroll 1
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
#pragma unroll 1
    for (int r = 16 * b + lane / 16; r < Shape::edge; r += 16) {
      T* to = g.at(first + r, first + c);
#pragma unroll
      for (int t = 0; t < 8; ++t) v[t] = P[c * Shape::ld + min(r + 2 * t, Shape::edge - 1)];
#pragma unroll
      for (int t = 0; t < 8; ++t, to += 2 * g.stride)
        if (c <= r + 2 * t && r + 2 * t < Shape::edge && first + r + 2 * t < g.n) *to = v[t];
    }
  }
}

/// Block (i, j) of P less the products of block columns [first, last) of W and, for b > 0, of block column b-1 of P. By
/// one warp.
template <class T>
__device__ __forceinline__ void update_block(T* P, const T* W, int b, int i, int j, int first, int last) {
  constexpr int ld = GridShape<T>::ld;
  const T* Z = P + 16 * (b - 1) * ld;  // column b-1, solved
  UpdatedBlock<T> block(P + 16 * i + 16 * j * ld);
#pragma unroll 1
  for (const T* w = W + 16 * first * ld; w < W + 16 * last * ld; w += 16 * ld) block.subtract(w + 16 * i, w + 16 * j);
  if (b > 0) block.subtract(Z + 16 * i, Z + 16 * j);
  block.save();
}

/// Block (b, b) of diagonal tile k: brought up to date, factored and inverted. z is block (b, b-1), solved, if warps
/// keep it. Returns the first failed column + 1, or 0. By warp 0.
template <class T>
__device__ __forceinline__ int factor_diagonal_block(T* P, const T* W, T* inverses, FactorScratch<T> scratch, int k,
                                                     int b, Block16<T>& z) {
  constexpr int blocks = GridShape<T>::blocks;
  T* B = P + 16 * b * (GridShape<T>::ld + 1);
  if constexpr (in_block_rows<T>) {
    if (b > 0)
      update_with_own(B, z);
    else if (k > 0)
      update_block(P, W, b, 0, 0, 0, blocks);
  } else {
    if (b > 0 || k > 0) update_block(P, W, b, b, b, 0, b == 0 ? blocks : 0);
  }
  __syncwarp();  // the block is up to date
  T* inverse = inverses + b * InverseShape<T>::next;
  const int at = factor_block(B, inverse, scratch);
  return at < 0 ? factor_block_safely(B, inverse, scratch) : at;
}

/// What a warp updates while block (b, b) is factored: block (row, col), with block columns [first, last) of W; none if
/// row is 0. What W brings to columns that are not needed yet is subtracted later, in two parts. From the right, a
/// hexadecimal digit for each updating warp, the sixth for warp 7, which has the time for two blocks of the first
/// column. A search for work in loops took longer than the work.
struct ChainUpdate {
  int row, col, first, last;
  template <class T>
  __device__ static ChainUpdate of(int k, int b, int updater) {
    constexpr bool small = GridShape<T>::blocks == 2;
    const unsigned rows = b == 0 ? (small ? 0x11 : 0x232211) : small ? 0 : b == 1 ? 0x33322 : b == 2 ? 0x33 : 0;
    const unsigned cols = b == 0 ? 0x201010 : b == 1 ? 0x32121 : 0x32;
    const unsigned firsts = b == 0 ? 0 : b == 1 ? 0x00220 : 0x22;
    const unsigned lasts = k == 0 ? 0 : b == 0 ? (small ? 0x22 : 0x244444) : b == 1 ? 0x22440 : 0x44;
    const auto digit = [&](unsigned digits) { return int(digits >> 4 * updater & 15); };
    return {digit(rows), digit(cols), digit(firsts), digit(lasts)};
  }
};

/// 16 rows of tile X = (k+1, k), by one warp: X := X L^-H as a RowStrip does, but in registers. What is solved goes to
/// X in shared memory and to global memory, at rows from `row` and columns from `col` on.
template <class T, bool column_major>
__device__ __forceinline__ void solve_rows(const Grid<T, column_major>& g, T* X, const T* L, const T* inverses, int row,
                                           int col) {
  using Block = Block16<T>;
  constexpr int blocks = GridShape<T>::blocks, ld = GridShape<T>::ld;
  Block x[blocks];  // the first is the next to be solved
#pragma unroll
  for (int b = 0; b < blocks; ++b) x[b] = Block(X + 16 * b * ld);
  const index_t rs = column_major ? 1 : g.stride, cs = column_major ? g.stride : 1;
  T* to[2] = {g.at(row + Block::row(), col + Block::col(0)), g.at(row + Block::row(), col + Block::col(1))};
  const bool inside[2] = {row + Block::row() < g.n, row + Block::row() + 8 < g.n};
  // More code would push out that of the factor.
#pragma unroll 1
  for (int b = 0; b < blocks; ++b) {
    x[0].solve(inverses + b * InverseShape<T>::next);
    x[0].save(X + 16 * b * ld);
    const typename Block::Left left(x[0]);
#pragma unroll
    for (int e = 0; e < 8; ++e)
      if (inside[e % 4 / 2]) to[e % 2][e / 4 * 8 * cs + e % 4 / 2 * 8 * rs] = T(x[0].c[e / 4].get(e % 4));
    to[0] += 16 * cs, to[1] += 16 * cs;
#pragma unroll
    for (int j = 1; j < blocks; ++j) {
      if (b + j < blocks) x[j].subtract(left, L + 16 * b * ld + 16 * (b + j));
      x[j - 1] = x[j];
    }
  }
}

/// A quarter of the rows of X = (k+1, k) := X P^-H, to the matrix and in place. By one of warps 0 to 3.
template <class T, bool column_major>
__device__ __forceinline__ void solve_quarter(const Grid<T, column_major>& g, T* X, const T* P, const T* inverses,
                                              int k) {
  using Shape = GridShape<T>;
  constexpr int strips = Shape::shares / 4;  // of 8 rows
  const int row = 8 * strips * (int(threadIdx.x) / 32);
  if constexpr (in_block_rows<T>) {
    solve_rows(g, X + row, P, inverses, (k + 1) * Shape::edge + row, k * Shape::edge);
  } else {
    RowStrip<T, strips> strip(X + row, Shape::ld);
    strip.solve(P, inverses);
    store_strip(g, strip.x, (k + 1) * Shape::edge + row, k * Shape::edge);
  }
}

/// The blocks below block (b, b), which is factored: solved in place. Each of them by a warp, which keeps it in z, or
/// by two.
template <class T>
__device__ __forceinline__ void solve_below(T* P, const T* inverses, int b, Block16<T>& z) {
  constexpr int blocks = GridShape<T>::blocks;
  const int warp = int(threadIdx.x) / 32;
  T* B = P + 16 * b * (GridShape<T>::ld + 1);  // block (b, b)
  if constexpr (in_block_rows<T>) {
    if (warp < blocks - 1 - b) {
      T* at = B + 16 + 16 * warp;
      z = Block16<T>(at);
      z.solve(inverses + b * InverseShape<T>::next);
      z.save(at);
    }
  } else {
    if (warp < 2 * (blocks - 1 - b)) solve_block(B + 16 + 8 * warp, InverseShape<T>::operand(inverses, b));
  }
}

/// Makes the entries of diagonal tile k beyond the end of the matrix those of the identity.
template <class T, bool column_major>
__device__ __forceinline__ void pad_diagonal(const Grid<T, column_major>& g, T* S, int k) {
  const int r = g.n - k * GridShape<T>::edge + int(threadIdx.x);
  if (r < GridShape<T>::edge) S[r * (GridShape<T>::ld + 1)] = T(1);
}

/// The chain. Tiles in shared memory: P is (k, k), W is (k, k-1), X is (k+1, k), D is (k+1, k+1). Warp 0 factors P
/// while others update it, and receive D and X as soon as they have the time. Then four warps solve X. Warp 7 makes
/// known what is final. Warp 4 shares a scheduler with warp 0, so it stores at most: tensor-core products there would
/// slow warp 0 down tenfold. The tickets that send X and D may come after tickets that wait for all of P. So the chain
/// waits for no letter before all of P is published: if X is missing when P is factored, one more turn of the loop
/// publishes the rest of P and waits for X. Instructions come from caches, too: what a step runs through takes 30 to 40
/// KB, and beyond that every one is waited for. So there is one copy of each piece of code, and little is unrolled.
template <class T, bool column_major>
__device__ __forceinline__ void factor_chain(const Grid<T, column_major>& g, T* shared, T* inverses) {
  using Shape = GridShape<T>;
  using G = Grid<T, column_major>;
  constexpr int blocks = Shape::blocks, edge = Shape::edge, tile = Shape::tile_size;
  static_assert(4 * tile + FactorScratch<T>::size <= Shape::shared_size);
  T *P = shared, *W = P + tile, *X = W + tile, *D = X + tile;
  const FactorScratch<T> scratch(D + tile);
  const int tiles = g.tiles(), rank = int(threadIdx.x), warp = rank / 32, lane = rank % 32;
  const int updater = warp < 4 ? warp - 1 : warp - 2;  // five warps that update: not 0, 4 and 7
  // Warp 7 has no time to store P beside the factor of floats: 0.127 against 0.119 ms, n = 1024, upper.
  constexpr int storing = sizeof(T) == 4 ? 4 : 7;
  constexpr int diagonal_step = in_block_rows<T> ? blocks - 2 : blocks;  // from which on warps can receive D
  __shared__ int factored;                                               // the last tile that warp 0 is done with
  if (g.resets && rank == 0) *g.info = 0;
  if (rank == 0) factored = 0;
  scratch.fill();
  g.fetch_tile(P, 0, 0);
  if (tiles > 1) g.fetch_tile(X, 1, 0), g.fetch_tile(D, 1, 1);
  copy_commit();
  copy_wait<0>();
  __syncthreads();  // the first tiles are there
  pad_diagonal(g, P, 0);
  __syncthreads();  // with the diagonal
#pragma unroll 1
  for (int k = 0; k < tiles; ++k) {
    const bool more = k + 1 < tiles, receives = k > 0 && more;
    bool wants_D = receives && (warp == 5 || warp == 6), wants_X = wants_D || (receives && (warp == 2 || warp == 3));
    int failed = 0;
    Block16<T> z;  // of warp 0: block (b, b-1), solved
    z.clear();
    if (rank == 4 * 32) {
      if (k > 0) g.mark_end(k - 1);
      g.mark_begin(k, 0, edge, k * edge);
    }
#pragma unroll 1
    for (int b = 0, end = blocks; b <= end; ++b) {  // in the end, X is solved
      if (b == end && warp < 4) {
        if (more) solve_quarter(g, X, P, inverses, k);
      } else if (warp == 0 && b < blocks) {
        const int at = factor_diagonal_block(P, W, inverses, scratch, k, b, z);
        if (at != 0 && failed == 0) failed = 16 * b + at;
        if (b == blocks - 1 && lane == 0) atomicExch(&factored, k);  // others look at it meanwhile
      } else if (warp == 4 || b > blocks) {
        if (storing == 4 && b > 0 && b <= blocks) store_columns(g, P, k, b - 1);
      } else if (warp == 7 && b > 0) {
        publish(g, P, inverses, k, b - 1);
        if (storing == 7) store_columns(g, P, k, b - 1);
      } else if (warp > 0 && (b > 0 || k > 0)) {
        if (auto [i, j, first, last] = ChainUpdate::of<T>(k, b, updater); i > 0) {
#pragma unroll 1
          do { update_block(P, W, b, i++, j--, first, last); } while (warp == 7 && i < blocks);
        }
        const auto is_short = [&] { return b < blocks; };  // others wait for the barrier that ends this turn
        if (wants_D && b >= diagonal_step)
          wants_D = !g.template receive<64>(G::diagonal, k + 1, D, (updater - 3) * 32 + lane, is_short);
        if (wants_X && b >= blocks - 1)
          wants_X = !g.template receive<128>(G::last, k + 1, X, (updater - 1) * 32 + lane,
                                             [&] { return is_short() && atomicAdd(&factored, 0) == k; });
        if (receives && b >= blocks - 1) copy_wait_all();
      }
      // Block (b, b) is factored, the others are up to date; X and D are here; X is solved.
      if (b != blocks - 1)
        __syncthreads();
      else if (__syncthreads_or(wants_X))
        end = blocks + 1;
      if (b == end && more && rank == 4 * 32) add_release(g.flags.final + k + 1, Shape::shares);  // tile (k+1, k)
      if (b >= blocks - 1) continue;
      solve_below(P, inverses, b, z);
      __syncthreads();  // its columns are solved
    }
    if (failed != 0 && rank == 0 && *g.info == 0) *g.info = int(g.first + index_t(k) * edge) + failed;
    if (!more) break;
    pad_diagonal(g, D, k + 1);
    if (g.n < (k + 2) * edge) __syncthreads();  // and complete
    T *const used = P, *const solved = X;
    P = D, D = used, X = W, W = solved;
  }
  if (rank == 4 * 32) g.mark_end(tiles - 1);
}

}  // namespace trifactor::cuda
