// The interchanges of an LU factorization in the columns to the left of each panel, all at once in the end: every
// column is permuted in one pass.
#pragma once

#include <cuda/engine/engine.hpp>
#include <cuda/engine/launch.cuh>
#include <cuda/single/row_moves.cuh>
#include <cuda/single/single.hpp>

namespace trifactor::cuda {

inline constexpr int left_group = 256;  // interchanges that are looked at together, at most
inline constexpr int left_threads = 512;

/// Block g: which row goes to which by the interchanges [g * size, (g + 1) * size). sources[g * m + i] is where row i,
/// from the first of them on, comes from.
static __global__ void __launch_bounds__(left_threads)
    group_sources_kernel(const int* pivots, int m, int all, int size, int* sources) {
  __shared__ int partner[left_group];
  __shared__ RowMoves<left_group> moves;
  const int first = int(blockIdx.x) * size, steps = min(size, all - first);
  int* const s = sources + index_t(blockIdx.x) * m + first;
  for (int i = int(threadIdx.x); i < steps; i += left_threads) partner[i] = pivots[first + i] - 1 - first;
  for (int i = int(threadIdx.x); i < m - first; i += left_threads) s[i] = first + i;
  __syncthreads();  // the interchanges are there, and all rows stay where they are
  moves.find(partner, steps);
  for (int k = int(threadIdx.x); k < steps; k += left_threads) {
    s[k] = first + moves.from[k];
    if (moves.to[k] >= steps) s[moves.to[k]] = first + k;
  }
}

/// A thread to a row: where it comes from by all groups from one on, for those that begin a panel of nb columns. Left
/// in all_sources[p * m + row] for the panel to the left of panel p + 1.
static __global__ void __launch_bounds__(left_threads)
    compose_sources_kernel(const int* sources, int m, int groups, int size, int nb, int* all_sources) {
  const int i = int(blockIdx.x) * left_threads + int(threadIdx.x);
  if (i >= m) return;
  int row = i;
  for (int g = groups - 1; g * size >= nb; --g) {
    if (i < g * size) continue;
    row = sources[index_t(g) * m + row];
    if (g * size % nb == 0) all_sources[index_t(g * size / nb - 1) * m + i] = row;
  }
}

/// Blocks permute the rows of columns below their panels of nb columns, `columns` in all. A column goes through shared
/// memory, or, where it is too tall for that, through `room`, which has m entries for each block.
template <class T>
__global__ void __launch_bounds__(left_threads)
    permute_left_kernel(Tile<T> A, int nb, int columns, const int* all_sources, T* room) {
  extern __shared__ __align__(16) unsigned char left_memory[];
  const int m = int(A.rows);
  T* const column = room ? room + index_t(blockIdx.x) * m : reinterpret_cast<T*>(left_memory);
  for (int c = int(blockIdx.x); c < columns; c += int(gridDim.x)) {
    const int panel = c / nb, first = (panel + 1) * nb;
    T* const a = A.data + c * A.col_stride;
    const int* const source = all_sources + index_t(panel) * m;
#pragma unroll 4
    for (int i = first + int(threadIdx.x); i < m; i += left_threads) column[i - first] = a[i];
    __syncthreads();  // the column is there
#pragma unroll 4
    for (int i = first + int(threadIdx.x); i < m; i += left_threads) a[i] = column[source[i] - first];
    __syncthreads();  // it is read
  }
}

template <class T>
bool CudaEngine::lu_swap_left(Items<T> A, Pivots<const int> pivots, index_t nb) {
  constexpr index_t shared_limit = 200 << 10;  // bytes of a column
  const index_t m = A.rows, all = min(m, A.cols), size = min(nb, index_t(left_group));
  if (A.count != 1 || A.pointers || A.is_flipped || nb % size != 0) return false;
  const index_t groups = ceil_div(all, size), panels = ceil_div(all, nb) - 1, columns = panels * nb;
  if (panels == 0) return true;
  const index_t bytes = (m - nb) * index_t(sizeof(T));
  const bool shared = bytes <= shared_limit;
  const index_t blocks =
      shared ? columns : min(columns, index_t(multiprocessors_));  // few: their room stays in the cache
  auto room = arena().take<T>(shared ? 0 : blocks * m);
  auto sources = arena().take<int>(groups * m), all_sources = arena().take<int>(panels * m);
  if (arena().planning()) return true;
  const Traced traced(*this, "lu_swap_left", m, all);
  launch(stream_, group_sources_kernel, unsigned(groups), left_threads, 0, pivots.data, int(m), int(all), int(size),
         sources.data());
  launch(stream_, compose_sources_kernel, unsigned(ceil_div(m, index_t(left_threads))), left_threads, 0,
         static_cast<const int*>(sources.data()), int(m), int(groups), int(size), int(nb), all_sources.data());
  launch(stream_, permute_left_kernel<T>, unsigned(blocks), left_threads, std::size_t(shared ? bytes : 0), A.item(0),
         int(nb), int(columns), static_cast<const int*>(all_sources.data()), shared ? nullptr : room.data());
  return true;
}

}  // namespace trifactor::cuda

#define TRIFACTOR_INSTANTIATE_KERNELS(T) \
  template bool trifactor::cuda::CudaEngine::lu_swap_left<T>(Items<T>, Pivots<const int>, index_t);
