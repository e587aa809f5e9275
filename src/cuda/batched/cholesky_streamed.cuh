// Cholesky of an item by one block whose factor does not fit into shared memory: left-looking by block columns, with
// the factor read from global memory. The first warp brings right operands and factors diagonal tiles.
#pragma once

#include <cuda/batched/block_strips.cuh>

namespace trifactor::cuda {

template <class T, class Shape>
__device__ __noinline__ void streamed_chain(Tile<T> given) {
  using Shared = BlockShared<T, Shape>;
  using Copied = StreamedTile<T>;
  const Tile<T> A = opaque(given);
  constexpr int nb = Shape::nb, width = nb * Shape::wide;
  static_assert(Shape::wide <= 2);
  const int n = int(A.rows);
  for (int k = 0; k < min(width, n); k += nb) prefetch_columns(A, k);
  for (int k0 = 0; k0 < n; k0 += width) {
    for (int k = k0 + width; k < min(k0 + 2 * width, n); k += nb) prefetch_columns(A, k);
    for (int r0 = k0; r0 < n; r0 += Shape::chunk) {
      TileCopy<Copied, T> first(A, k0), second(A, min(k0 + (Shape::wide - 1) * nb, n - 1));
      int to = 0;
      const auto fetch = [&](int k) TF_INLINE_LAMBDA {
        if (k < k0) {
          first.next(Shared::tiles() + to);
          if constexpr (Shape::wide > 1) second.next(Shared::tiles() + to + Copied::size);
        }
        copy_commit();
        to = to == (Shape::ring - Shape::wide) * Copied::size ? 0 : to + Shape::wide * Copied::size;
      };
      constexpr int ahead = Shape::ring / Shape::wide - 1;  // tiles
#pragma unroll
      for (int k = 0; k < ahead; ++k) fetch(k * nb);
      for (int k = 0; k < k0; k += nb) {
        copy_wait<ahead - 1>();
        __syncthreads();  // the tiles are there; nobody reads those before
        fetch(k + ahead * nb);
      }
      if (r0 == k0)
        for (int k = k0; k < min(k0 + width, n); k += nb) {
          __syncthreads();  // the diagonal tile is there
          factor_diagonal<T, Shape>(A, k);
          __syncthreads();  // it is factored
          if (Shared::status() > 0) break;
          if (k + nb < min(k0 + width, n)) __syncthreads();  // what is left of the next one is there
        }
      __syncthreads();  // what was written is visible to all who read it from the left
    }
    for (int k = k0; k < min(k0 + width, n) && (Shared::status() == 0 || Shared::status() > k); k += nb)
      write_triangle<Shape::pitch>(A, k, BlockShared<T, Shape>::diagonal(k));  // while the others go on
    if (Shared::status() > 0) break;
  }
}

/// A worker's strip of a chunk of rows is solved with the diagonal tiles at k0, of which those of the first rows are
/// sent to the warp that factors, and written to A. row: the first of the strip.
template <class T, class Shape>
__device__ __forceinline__ void solve_chunk(TensorEntries<T> (&c)[Shape::wide][Shape::tiles], const Tile<T>& A, int k0,
                                            int r0, int row, const TilePlace& place) {
  using Shared = BlockShared<T, Shape>;
  using Copied = StreamedTile<T>;
  constexpr int nb = Shape::nb, tiles = Shape::tiles, wide = Shape::wide;
  const int n = int(A.rows), lane_place = Copied::place(place);
#pragma unroll
  for (int w = 0; w < wide; ++w) {
    const int k = k0 + w * nb;
    if (k >= n) break;
    if (r0 == k0) {
      if (row < n && row >= k && row < k + nb) put_diagonal<T, Shape>(c[w], k, row, place);
      __syncthreads();  // the diagonal tile is there
      __syncthreads();  // it is factored
    }
    const bool below = row >= k + nb && row < n;
    if (below)
      solve_strip<Shape, Copied>(c[w], opaque(A), k, row, w + 1 < wide && row < k + 2 * nb,
                                 Shared::between() + lane_place + (row - k - nb), place);
    if (Shared::status() > 0 && Shared::status() <= k + nb) break;  // the columns before the failed one are solved
    if (w + 1 < wide && k + nb < n) {
      if (r0 == k0) __syncthreads();  // what is left of the next diagonal tile is there
      if (below)
        subtract_tile<Copied, 1, tiles>(
            [&](int, int j) TF_INLINE_LAMBDA -> TensorEntries<T>& { return c[w + 1 < wide ? w + 1 : w][j]; },
            Shared::between() + lane_place, [&](int, int v, int) TF_INLINE_LAMBDA { return as_left(c[w][v]); },
            [](int, int) {});
    }
  }
}

template <class T, class Shape>
__device__ __noinline__ void streamed_work(Tile<T> given, int worker) {
  using Shared = BlockShared<T, Shape>;
  using Copied = StreamedTile<T>;
  const Tile<T> A = opaque(given);
  constexpr int nb = Shape::nb, tiles = Shape::tiles, ahead = Shape::ahead, wide = Shape::wide;
  const int n = int(A.rows);
  const TilePlace place;
  const int lane_place = Copied::place(place);
  const index_t half = 4 * A.col_stride;
  for (int k0 = 0; k0 < n; k0 += nb * wide) {
    for (int r0 = k0; r0 < n; r0 += Shape::chunk) {
      TensorEntries<T> c[wide][tiles];
      Strip<T> strip;
      LeftPart<T> left[ahead];
      const int row = r0 + 16 * worker;
      const auto read = [&](LeftPart<T>& to, bool more) TF_INLINE_LAMBDA { strip.next(to, A.data, half, more, more); };
      if (row < n) {
        strip.find(A, row, 0, place);
        if (k0 > 0)
#pragma unroll
          for (int g = 0; g < ahead; ++g) read(left[g], true);
#pragma unroll
        for (int w = 0; w < wide; ++w)
          if (row >= k0 + w * nb)
            strip.load(c[w], A.data, n, row, k0 + w * nb, half, (max(0, k0 - 8 * ahead) + w * nb) * A.col_stride,
                       place);
      }
      int turn = 0;
      for (int k = 0; k < k0; k += nb) {
        __syncthreads();  // the tiles are there
        const T* const B = Shared::tiles() + turn + lane_place;
        turn = turn == (Shape::ring - wide) * Copied::size ? 0 : turn + wide * Copied::size;
        if (row < n)
          subtract_tile<Copied, 1, wide * tiles, Shape::unrolled>(
              [&](int, int j) TF_INLINE_LAMBDA -> TensorEntries<T>& { return c[j / tiles][j % tiles]; }, B,
              [&](int, int v, int) TF_INLINE_LAMBDA -> const LeftPart<T>& { return left[v % ahead]; },
              [&](int u, int v) TF_INLINE_LAMBDA { read(left[v % ahead], k + 8 * (u + ahead) < k0); });
      }
      solve_chunk<T, Shape>(c, A, k0, r0, row, place);
      __syncthreads();  // what was written is visible to all who read it from the left
    }
    if (Shared::status() > 0) break;
  }
}

/// Factors A by all threads of the block; see factor_by_block.
template <class T, class Shape>
__device__ __forceinline__ int factor_streamed(const Tile<T>& A) {
  using Shared = BlockShared<T, Shape>;
  const int warp = __shfl_sync(~0u, int(threadIdx.x) / 32, 0);
  if (threadIdx.x == 0) Shared::status() = 0;
  __syncthreads();  // nothing has failed yet
  if (warp > 0)
    streamed_work<T, Shape>(A, warp - 1);
  else
    streamed_chain<T, Shape>(A);
  return Shared::status();
}

}  // namespace trifactor::cuda
