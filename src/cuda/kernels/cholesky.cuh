// Cholesky of tiles that fit in shared memory: several items to a block with a warp each, or one item to a block.
#pragma once

#include <cuda/kernels/launch.cuh>
#include <cuda/kernels/team.cuh>
#include <tile/cholesky.hpp>

namespace trifactor::cuda {

/// One item by one team, staged through `shared`. Only the lower triangle is read and written.
template <class Team, class T>
__device__ void cholesky_item(const Team& team, const Items<T>& A, index_t b, int* info, index_t first, T* shared,
                              int most) {
  if (info[b] != 0) return;
  const Tile<T> a = A.item(b);
  const int n = int(a.rows);
  const auto S = shared_tile(shared, n, n, most);  // (n, n)
  copy_tile(team, a, S, a, true);
  team.sync();  // the tile is complete in shared memory
  const int failed = tile::cholesky(team, S);
  copy_tile(team, S, a, a, true);
  if (failed != 0 && team.rank() == 0) info[b] = int(first) + failed;
  team.sync();  // the tile is written before the next item overwrites it
}

template <class T>
__global__ void __launch_bounds__(128) cholesky_warp_kernel(Items<T> A, int* info, index_t first, int most) {
  extern __shared__ __align__(16) unsigned char raw[];
  const int warps = int(blockDim.x) / 32, warp = int(threadIdx.x) / 32;
  T* shared = reinterpret_cast<T*>(raw) + warp * (most + 1) * most;
  for (index_t b = index_t(blockIdx.x) * warps + warp; b < A.count; b += index_t(gridDim.x) * warps)
    cholesky_item(WarpTeam{}, A, b, info, first, shared, most);
}

template <class T>
__global__ void __launch_bounds__(256) cholesky_block_kernel(Items<T> A, int* info, index_t first, int most) {
  extern __shared__ __align__(16) unsigned char raw[];
  for (index_t b = blockIdx.x; b < A.count; b += gridDim.x)
    cholesky_item(BlockTeam{}, A, b, info, first, reinterpret_cast<T*>(raw), most);
}

template <class T>
void launch_cholesky(void* stream, Items<T> A, int* info, index_t first) {
  const int most = int(A.rows);
  const std::size_t bytes = std::size_t(most + 1) * std::size_t(most) * sizeof(T);
  if (most <= 32) {
    constexpr int warps = 4;
    launch(stream, cholesky_warp_kernel<T>, grid_for(ceil_div(A.count, warps)), 32 * warps, warps * bytes, A, info,
           first, most);
  } else {
    launch(stream, cholesky_block_kernel<T>, grid_for(A.count), most <= 64 ? 128 : 256, bytes, A, info, first, most);
  }
}

}  // namespace trifactor::cuda

#define TRIFACTOR_INSTANTIATE_KERNELS(T) \
  template void trifactor::cuda::launch_cholesky<T>(void*, Items<T>, int*, index_t);
