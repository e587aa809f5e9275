// LU of matrices, or of panels of larger ones, whose rows fit in the registers of threads; and their interchanges.
#pragma once

#include <cuda/batched/batched.hpp>
#include <cuda/device/row_exchange.cuh>
#include <cuda/engine/launch.cuh>
#include <cuda/batched/lu_lanes.cuh>
#include <cuda/batched/lu_panel.cuh>

#include <bit>

namespace trifactor::cuda {

/// Blocks that a multiprocessor holds at once, where a thread has room for a row and `others` registers.
template <class T>
constexpr int resident_blocks(int width, int threads, int others) {
  const int registers = 65536 / (width * int(sizeof(T)) / 4 + others);
  return max(1, registers / threads);
}

inline constexpr int lu_group_threads = 128;

/// The lanes of a matrix of up to `width` rows: a power of two.
template <int width>
inline constexpr int lu_lanes = int(std::bit_ceil(unsigned(width)));

/// Matrices of up to `width` rows and columns, as many to a warp as have room.
template <class T, int width, int step>
__global__ void __launch_bounds__(lu_group_threads, resident_blocks<T>(width, lu_group_threads, 40))
    lu_group_kernel(Items<T> A, Pivots<int> pivots, int* info, bool resets) {
  constexpr int lanes = lu_lanes<width>, groups = lu_group_threads / lanes;
  using Rows = LuRows<T, width, step, lanes, false>;
  __shared__ __align__(16) T rows[groups][2 * Rows::pitch];
  // A shuffle tells the compiler that it is the same for all of a warp.
  const int group = lanes == 32 ? __shfl_sync(~0u, int(threadIdx.x) / 32, 0) : int(threadIdx.x) / lanes;
  const index_t turn = index_t(gridDim.x) * groups;
  for (index_t b = index_t(blockIdx.x) * groups; b < A.count; b += turn) {
    const index_t item = b + group;
    const int before = item < A.count ? info_before(A, item, info, resets) : -1;
    Tile<T> a{nullptr, 0, 0, 1, 1};  // groups without an item take part in the votes of their warp
    if (before >= 0) a = A.item(item);
    __syncwarp();  // nobody reads the rows of the item before
    const int zero_at = Rows::factor(a, pivots.item(item), int(pivots.first), rows[group], nullptr);
    if (threadIdx.x % lanes == 0 && item < A.count) note_info(info, item, before, zero_at, pivots.first, resets);
  }
}

/// A matrix of up to `threads` rows and `width` columns to a block.
template <class T, int width, int step, int threads>
__global__ void __launch_bounds__(threads, resident_blocks<T>(width, threads, 32))
    lu_block_kernel(Items<T> A, Pivots<int> pivots, int* info, bool resets) {
  using Rows = LuRows<T, width, step, 32, true>;
  __shared__ __align__(16) T rows[threads / 32][2 * Rows::pitch];
  __shared__ typename Rows::Candidate candidates[2 * 32];
  for (index_t b = blockIdx.x; b < A.count; b += gridDim.x) {
    const int before = info_before(A, b, info, resets);
    int zero_at = 0;
    __syncthreads();  // nobody reads the rows of the item before, and all have read info
    if (before >= 0) zero_at = Rows::factor(A.item(b), pivots.item(b), int(pivots.first), rows[0], candidates);
    if (threadIdx.x == 0) note_info(info, b, before, zero_at, pivots.first, resets);
  }
}

inline constexpr int lu_step = 8;  // columns

/// Registers for a multiple of four columns. They stay in place, with code for each column, where that gains: n = 20
/// of f64 takes 36 us so and 40 in steps of 4, of f32 31 and 29 (10,000 items, H200).
template <class T, int width>
void launch_lu_group(void* stream, const Items<T>& A, const Pivots<int>& pivots, int* info, bool resets) {
  constexpr bool in_place = width <= 16 || std::is_same_v<T, double>;
  constexpr int step = in_place ? width : width % lu_step == 0 ? lu_step : 4;
  const index_t blocks = ceil_div(A.count, lu_group_threads / lu_lanes<width>);
  launch(stream, lu_group_kernel<T, width, step>, grid_for(blocks), lu_group_threads, 0, A, pivots, info, resets);
}
template <class T, int width, int threads>
void launch_lu_block(void* stream, const Items<T>& A, const Pivots<int>& pivots, int* info, bool resets) {
  launch(stream, lu_block_kernel<T, width, lu_step, threads>, grid_for(A.count), unsigned(ceil_div(A.rows, 32) * 32), 0,
         A, pivots, info, resets);
}

template <class T>
void launch_lu_rows(void* stream, Items<T> A, Pivots<int> pivots, int* info, bool resets) {
  const index_t edge = max(A.rows, A.cols);
  // Order 4 of f64 takes 3.65 us in lanes and 4.12 with a row to a lane; order 8 takes longer (10,000 items, H200).
  constexpr int lanes = 4;
  if (edge <= lanes)
    return launch(stream, lu_lanes_kernel<T, lanes>, grid_of_all(ceil_div(A.count, lu_lanes_threads / lanes)),
                  lu_lanes_threads, 0, A, pivots, info, resets);
  if (edge <= 32)
    return with_least<8, 12, 16, 20, 24, 28, 32>(
        edge, [&](auto width) { launch_lu_group<T, width.value>(stream, A, pivots, info, resets); });
  constexpr int narrow = int(lu_columns<T>(1024)), medium = int(lu_columns<T>(512)), wide = int(lu_columns<T>(128));
  if (A.cols <= narrow) return launch_lu_block<T, narrow, 1024>(stream, A, pivots, info, resets);
  if (A.cols <= medium) return launch_lu_block<T, medium, 512>(stream, A, pivots, info, resets);
  launch_lu_block<T, wide, 128>(stream, A, pivots, info, resets);
}

inline constexpr int swap_threads = 128, swap_columns = 32;

/// Interchanges in groups: which rows they move, and from where. A warp has a column to itself, and moves its rows with
/// coalesced accesses.
template <class T>
__global__ void __launch_bounds__(swap_threads)
    swap_rows_kernel(Items<T> A, Pivots<const int> pivots, index_t n, bool backward, const int* info) {
  constexpr int group = 64, moved = 2 * group / 32;
  __shared__ int partner[group], target[2 * group], source[2 * group];
  const int rank = int(threadIdx.x), lane = rank % 32, warp = rank / 32, warps = swap_threads / 32;
  for (index_t b = blockIdx.x; b < A.count; b += gridDim.x) {
    if (info && info[b] != 0) continue;
    const Tile<T> a = A.item(b);
    const int* p = pivots.item(b);
    const int all = int(pivots.size(b, n)), groups = (all + group - 1) / group;
    if (a.cols <= index_t(blockIdx.y) * swap_columns) continue;
    for (int g = 0; g < groups; ++g) {
      const int first = (backward ? groups - 1 - g : g) * group, size = min(group, all - first);
      __syncthreads();  // the lists of the group before are no longer read
      if (rank < size) partner[rank] = int(p[first + rank] - 1 - pivots.first);
      __syncthreads();  // the interchanges are there
      for (int t = rank; t < 2 * group; t += swap_threads) {
        const int s = t % group, to = s >= size ? 0 : t < group ? first + s : partner[s];
        target[t] = to, source[t] = s < size ? row_before(to, partner, first, size, backward) : to;
      }
      __syncthreads();  // the lists are complete
      for (index_t j0 = index_t(blockIdx.y) * swap_columns; j0 < a.cols; j0 += index_t(gridDim.y) * swap_columns)
        for (index_t j = j0 + warp; j < min(a.cols, j0 + swap_columns); j += warps) {
          T x[moved];
#pragma unroll
          for (int i = 0; i < moved; ++i) {
            const int t = lane + 32 * i;
            if (source[t] != target[t]) x[i] = a(source[t], j);
          }
          __syncwarp();  // every row is read before one is written
#pragma unroll
          for (int i = 0; i < moved; ++i) {
            const int t = lane + 32 * i;
            if (source[t] != target[t]) a(target[t], j) = x[i];
          }
        }
    }
  }
}

inline constexpr int permute_column_threads = 256;

/// All interchanges at once, of up to `max_rows` rows: a warp has a column to itself, and reads all of it before it
/// writes.
template <class T, int max_rows>
__global__ void __launch_bounds__(permute_column_threads)
    permute_columns_kernel(Items<T> A, Pivots<const int> pivots, index_t n, bool backward, const int* info) {
  constexpr int each = max_rows / 32, warps = permute_column_threads / 32;
  __shared__ int partner[max_rows];
  __shared__ short source[max_rows];
  const int rank = int(threadIdx.x), lane = rank % 32, warp = rank / 32;
  for (index_t b = blockIdx.x; b < A.count; b += gridDim.x) {
    if (info && info[b] != 0) continue;
    const Tile<T> a = A.item(b);
    const int rows = int(a.rows), all = int(pivots.size(b, n));
    __syncthreads();  // the lists of the item before are no longer read
    for (int i = rank; i < all; i += permute_column_threads) partner[i] = int(pivots.item(b)[i] - 1 - pivots.first);
    __syncthreads();  // the interchanges are there
    for (int i = rank; i < rows; i += permute_column_threads)
      source[i] = short(row_before(i, partner, 0, all, backward));
    __syncthreads();  // the list is complete
    for (index_t j = index_t(blockIdx.y) * warps + warp; j < a.cols; j += index_t(gridDim.y) * warps) {
      T x[each];
#pragma unroll
      for (int r = 0; r < each; ++r)
        if (lane + 32 * r < rows) x[r] = a(source[lane + 32 * r], j);
      __syncwarp();  // every row is read before one is written
#pragma unroll
      for (int r = 0; r < each; ++r)
        if (lane + 32 * r < rows) a(lane + 32 * r, j) = x[r];
    }
  }
}

template <class T>
void launch_swap_rows(void* stream, Items<T> A, Pivots<const int> pivots, index_t n, bool backward, const int* info) {
  constexpr index_t max_exchanges = 64, min_columns = 32, max_rows = 512;
  if (n > max_exchanges && A.cols >= min_columns && A.rows <= max_rows && n <= A.rows) {
    const dim3 grid(grid_for(A.count), strips_for(A.count, ceil_div(A.cols, index_t(permute_column_threads / 32))));
    const auto kernel =
        A.rows <= max_rows / 2 ? permute_columns_kernel<T, max_rows / 2> : permute_columns_kernel<T, max_rows>;
    return launch(stream, kernel, grid, permute_column_threads, 0, A, pivots, n, backward, info);
  }
  const dim3 grid(grid_for(A.count), strips_for(A.count, ceil_div(A.cols, index_t(swap_columns))));
  launch(stream, swap_rows_kernel<T>, grid, swap_threads, 0, A, pivots, n, backward, info);
}

}  // namespace trifactor::cuda

#define TRIFACTOR_INSTANTIATE_KERNELS(T)                                                      \
  template void trifactor::cuda::launch_lu_rows<T>(void*, Items<T>, Pivots<int>, int*, bool); \
  template void trifactor::cuda::launch_swap_rows<T>(void*, Items<T>, Pivots<const int>, index_t, bool, const int*);
