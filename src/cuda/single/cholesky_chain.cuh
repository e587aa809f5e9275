// The first block of the persistent grid: it factors one diagonal tile after the other, see cholesky_grid.cuh.
#pragma once

#include <cuda/single/tile_work.cuh>

namespace trifactor::cuda {

/// Part b of the factored diagonal tile k goes to global memory and is made known. By one warp.
template <class T, bool down>
__device__ void publish(const Grid<T, down>& g, const T* P, const T* inverses, int k, int b) {
  constexpr int width = 16 / int(sizeof(T)), each = 256 / (32 * width);  // of a block, for a lane
  using Few = EntryVector<T, width>;
  const int lane = int(threadIdx.x) % 32;
  T* to = g.part(k, b) + lane * width;
#pragma unroll 1
  for (int t = lane * width; t < g.part_size(b); t += 256, to += 256) {
    const T* from = g.part_place(P, inverses, b, t);
    const int step = 32 * width / 16 * (t < 256 ? InverseShape<T>::slow : GridShape<T>::ld);
    Few v[each];
#pragma unroll
    for (int q = 0; q < each; ++q) v[q] = *reinterpret_cast<const Few*>(from + q * step);
#pragma unroll
    for (int q = 0; q < each; ++q) *reinterpret_cast<Few*>(to + 32 * q * width) = v[q];
  }
  __syncwarp();  // all lanes have written
  if (lane == 0) store_release(g.flags.factored + k, b + 1);
}

/// Columns [16 b, 16 b + 16) of the factored diagonal tile k go to the matrix. By one warp.
template <class T, bool down>
__device__ void store_columns(const Grid<T, down>& g, const T* P, int k, int b) {
  using Shape = GridShape<T>;
  const int lane = int(threadIdx.x) % 32, first = k * Shape::edge;
  T v[16];
  if constexpr (down) {  // a row to a lane
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

/// The chain. Tiles in shared memory: P is (k, k), W is (k, k-1), X is (k+1, k), D is (k+1, k+1). Warp 0 factors P while
/// others update it, and receive D and X as soon as they have the time. Then four warps solve X. Warp 7 makes known what is
/// final. Nobody competes with warp 0 in its part of the multiprocessor, so that warp 4 stores at most.
/// The tickets that send X and D may come after tickets that wait for all of P. So the chain waits for no letter before all of
/// P is published: if X is missing when P is factored, one more turn of the loop publishes the rest of P and waits for X.
/// Instructions come from caches, too: what a step runs through takes 30 to 40 KB, and beyond that every one is waited for.
/// So there is one copy of each piece of code, and little is unrolled.
template <class T, bool down>
__device__ __forceinline__ void factor_chain(const Grid<T, down>& g, T* shared, T* inverses) {
  using Shape = GridShape<T>;
  using G = Grid<T, down>;
  constexpr int ld = Shape::ld, blocks = Shape::blocks, edge = Shape::edge, tile = Shape::tile_size;
  constexpr int strips = Shape::shares / 4;  // of X, to each of four warps
  constexpr bool in_rows = tensor<T> && !is_complex<T>;  // blocks are held as Block16
  static_assert(4 * tile + FactorScratch<T>::size <= Shape::shared_size);
  T *P = shared, *W = P + tile, *X = W + tile, *D = X + tile;
  const FactorScratch<T> scratch(D + tile);
  const int tiles = g.tiles(), rank = int(threadIdx.x), warp = rank / 32, lane = rank % 32;
  const int hand = warp < 4 ? warp - 1 : warp - 2;  // five warps that update: not 0, 4 and 7
  // The warp that stores P. Warp 7 has no time for it beside the factor of floats: 0.127 against 0.119 ms, n = 1024, upper.
  constexpr int storing = sizeof(T) == 4 ? 4 : 7;
  constexpr int diagonal_step = in_rows ? blocks - 2 : blocks;  // from here on, warps have the time to receive D
  __shared__ int factored;                                      // the last tile that warp 0 is done with
  const auto complete = [&](T* S, int k) {  // beyond the last column lies the identity
    const int r = g.n - k * edge + rank;
    if (r < edge) S[r * (ld + 1)] = T(1);
  };
  if (g.resets && rank == 0) *g.info = 0;
  if (rank == 0) factored = 0;
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
      T* B = P + 16 * b * (ld + 1);                 // block (b, b)
      const T* Z = P + 16 * (b - 1) * ld;           // column b-1, solved
      // Block (i, j) of P less the products of columns [16 first, 16 last) of W and of column b-1 of P.
      const auto update = [&](int i, int j, int first, int last) {
        UpdatedBlock<T> block(P + 16 * i + 16 * j * ld);
#pragma unroll 1
        for (const T* w = W + 16 * first * ld; w < W + 16 * last * ld; w += 16 * ld) block.subtract(w + 16 * i, w + 16 * j);
        if (b > 0) block.subtract(Z + 16 * i, Z + 16 * j);
        block.save();
      };
      if (b == end && warp < 4) {
        const int row = 8 * strips * warp;
        if (!more) {  // there is none
        } else if constexpr (in_rows) {
          solve_rows(g, X + row, P, inverses, (k + 1) * edge + row, k * edge);
        } else {
          Strip<T, strips> strip(X + row, ld);
          strip.solve(P, inverses);
          store_strip(g, strip.x, (k + 1) * edge + row, k * edge);
        }
      } else if (warp == 0 && b < blocks) {
        if constexpr (in_rows) {
          if (b > 0) update_with_own(B, z);
          else if (k > 0) update(0, 0, 0, blocks);
        } else {
          if (b > 0 || k > 0) update(b, b, 0, b == 0 ? blocks : 0);
        }
        __syncwarp();  // the block is up to date
        T* inverse = inverses + b * InverseShape<T>::next;
        int at = factor_block(B, inverse, scratch);
        if (at < 0) at = factor_block_carefully(B, inverse, scratch);
        if (at != 0 && failed == 0) failed = 16 * b + at;
        if (b == blocks - 1 && lane == 0) atomicExch(&factored, k);  // others look at it meanwhile
      } else if (warp == 4 || b > blocks) {
        if (storing == 4 && b > 0 && b <= blocks) store_columns(g, P, k, b - 1);
      } else if (warp == 7 && b > 0) {
        publish(g, P, inverses, k, b - 1);
        if (storing == 7) store_columns(g, P, k, b - 1);
      } else if (warp > 0 && (b > 0 || k > 0)) {
        // Tensor-core products by warp 4 would hold up the arithmetic of warp 0 tenfold. What W brings to columns that are
        // not wanted yet is subtracted later, in two parts; warp 7 has the time for two of the first.
        // Who does what: the row and column of a block, and the columns of W, [first, last). From the right, a digit for
        // each hand, the sixth for warp 7. A search for work in loops took longer than the work.
        constexpr bool small = blocks == 2;
        const unsigned rows = b == 0 ? (small ? 0x11 : 0x232211) : small ? 0 : b == 1 ? 0x33322 : b == 2 ? 0x33 : 0;
        const unsigned cols = b == 0 ? 0x201010 : b == 1 ? 0x32121 : 0x32;
        const unsigned firsts = b == 0 ? 0 : b == 1 ? 0x00220 : 0x22;
        const unsigned lasts = k == 0 ? 0 : b == 0 ? (small ? 0x22 : 0x244444) : b == 1 ? 0x22440 : 0x44;
        const auto digit = [&](unsigned digits) { return int(digits >> 4 * hand & 15); };
        int i = digit(rows), j = digit(cols);
        if (i > 0) {
#pragma unroll 1
          do {
            update(i++, j--, digit(firsts), digit(lasts));
          } while (warp == 7 && i < blocks);
        }
        const auto is_short = [&] { return b < blocks; };  // others wait for the barrier that ends this turn
        if (wants_D && b >= diagonal_step)
          wants_D = !g.template receive<64>(G::diagonal, k + 1, D, (hand - 3) * 32 + lane, is_short);
        if (wants_X && b >= blocks - 1)
          wants_X = !g.template receive<128>(G::last, k + 1, X, (hand - 1) * 32 + lane,
                                             [&] { return is_short() && atomicAdd(&factored, 0) == k; });
        if (receives && b >= blocks - 1) copy_wait_all();
      }
      // Block (b, b) is factored, the others are up to date; X and D are here; X is solved.
      if (b != blocks - 1) __syncthreads();
      else if (__syncthreads_or(wants_X)) end = blocks + 1;
      if (b == end && more && rank == 4 * 32) add_release(g.flags.final + k + 1, Shape::shares);  // tile (k+1, k)
      if (b >= blocks - 1) continue;
      if constexpr (in_rows) {
        if (warp < blocks - 1 - b) {
          T* at = B + 16 + 16 * warp;
          z = Block16<T>(at);
          z.solve(inverses + b * InverseShape<T>::next);
          z.save(at);
        }
      } else {
        if (warp < 2 * (blocks - 1 - b)) solve_block(B + 16 + 8 * warp, InverseShape<T>::operand(inverses, b));
      }
      __syncthreads();  // its columns are solved
    }
    if (failed != 0 && rank == 0 && *g.info == 0) *g.info = int(g.first + index_t(k) * edge) + failed;
    if (!more) break;
    complete(D, k + 1);
    if (g.n < (k + 2) * edge) __syncthreads();  // and complete
    T* t = P;
    P = D, D = t;
    t = W, W = X, X = t;
  }
  if (rank == 4 * 32) g.mark_end(tiles - 1);
}

}  // namespace trifactor::cuda
