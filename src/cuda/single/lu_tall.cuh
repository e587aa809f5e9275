// LU of a panel of one matrix that is too tall for the blocks that run at once: a launch of many blocks for each column.
#pragma once

#include <cuda/device/signals.cuh>
#include <cuda/engine/launch.cuh>
#include <cuda/single/lu_messages.cuh>
#include <cuda/single/single.hpp>

namespace trifactor::cuda {

inline constexpr int tall_threads = 256, tall_warps = tall_threads / 32;

/// The best candidate of a block, to all threads of its first warp.
template <class T>
__device__ PivotCandidate best_of_block(PivotCandidate mine) {
  constexpr bool two_words = sizeof(Real<T>) == 8;
  __shared__ PivotCandidate of_warps[tall_warps];
  const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
  const unsigned best = best_lane_mask<two_words>(mine);
  if (best == 0 ? lane == 0 : (best >> lane & 1) != 0) of_warps[warp] = best == 0 ? no_candidate : mine;
  __syncthreads();  // all warps have their candidates
  if (warp != 0) return no_candidate;
  mine = lane < tall_warps ? of_warps[lane] : no_candidate;
  const unsigned winner = best_lane_mask<two_words>(mine);
  if (winner == 0) return no_candidate;
  return of_warps[__ffs(int(winner)) - 1];
}

/// Divides column k - 1 by its pivot, which is in row k - 1, updates the columns to its right, and finds the pivot of
/// column k. The last block to arrive makes that interchange, in `left` columns to the left too. The first launch, with
/// k = 0, finds a pivot and does nothing else; the last one finds none.
template <class T>
__global__ void __launch_bounds__(tall_threads)
    lu_column_kernel(Tile<T> A, int k, int left, int* flags, Pivots<int> pivots, int* info) {
  __shared__ bool is_last;
  __shared__ int pivot_row;
  let_next_start();
  wait_for_launch_before();
  if (*info < 0) return;
  int* const arrived = flags;
  auto* const candidates = reinterpret_cast<PivotCandidate*>(flags) + 1;  // one for each block
  const index_t ld = A.col_stride;
  const int m = int(A.rows), n = int(A.cols), rank = int(threadIdx.x);
  const T* const upper = A.data + (k - 1) + (k - 1) * ld;  // row k - 1 from its pivot on
  const T d = k > 0 ? *upper : T(1);
  const PivotKey key_of_d = pivot_key(d);
  const Quotient<T> divide(d, reciprocal(d), key_of_d.high);
  PivotCandidate best = no_candidate;
  for (int row = k + int(blockIdx.x) * tall_threads + rank; row < m; row += int(gridDim.x) * tall_threads) {
    T* const a = A.data + row;
    if (k > 0) {
      const T l = divide(a[(k - 1) * ld]);
      a[(k - 1) * ld] = l;
#pragma unroll 8
      for (int j = k; j < n; ++j) a[j * ld] = minus_product(a[j * ld], l, upper[(j - k + 1) * ld]);
    }
    if (k < n) {
      const PivotKey key = pivot_key(a[k * ld]);
      if (beats(key, row, best.key, best.place)) best = {key, row, row};
    }
  }
  if (k >= min(m, n)) return;
  best = best_of_block<T>(best);
  if (rank == 0) {
    candidates[blockIdx.x] = best;
    is_last = add_both(arrived, 1) == int(gridDim.x) - 1;
  }
  __syncthreads();  // it is known who comes last
  if (!is_last) return;
  best = no_candidate;
  for (int b = rank; b < int(gridDim.x); b += tall_threads) {
    const PivotCandidate c = candidates[b];
    if (beats(c.key, c.place, best.key, best.place)) best = c;
    candidates[b] = {};
  }
  best = best_of_block<T>(best);
  if (rank == 0) {
    pivot_row = best.row;
    pivots.data[k] = int(pivots.first) + best.row + 1;
    if (load_l2(A.data + best.row + k * ld) == T(0) && *info == 0) *info = int(pivots.first) + k + 1;
    *arrived = 0;
  }
  __syncthreads();  // the pivot is known
  for (int j = rank - left; j < n; j += tall_threads) {
    T* const column = A.data + j * ld;
    const T above = load_l2(column + k), below = load_l2(column + pivot_row);
    column[k] = below, column[pivot_row] = above;
  }
}

template <class T>
void launch_lu_tall(void* stream, Items<T> A, index_t left, Pivots<int> pivots, int* flags, int* info) {
  const unsigned blocks = unsigned(min(ceil_div(A.rows, tall_threads), lu_tall_blocks));
  for (index_t k = 0; k <= min(A.rows, A.cols); ++k)
    launch_early(stream, lu_column_kernel<T>, blocks, tall_threads, 0, 0, A.item(0), int(k), int(left), flags, pivots,
                 info);
}

}  // namespace trifactor::cuda

#define TRIFACTOR_INSTANTIATE_KERNELS(T) \
  template void trifactor::cuda::launch_lu_tall<T>(void*, Items<T>, trifactor::index_t, Pivots<int>, int*, int*);
