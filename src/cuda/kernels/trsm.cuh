// Solves with a triangle that fits in shared memory: one block for each item and each strip of right-hand sides.
#pragma once

#include <cuda/kernels/launch.cuh>
#include <cuda/kernels/team.cuh>
#include <tile/trsm.hpp>

namespace trifactor::cuda {

template <class T>
__global__ void __launch_bounds__(128)
    trsm_kernel(Shape shape, Items<const T> A, bool conj, Items<T> B, const int* info, int most, int strip) {
  extern __shared__ __align__(16) unsigned char raw[];
  T* shared = reinterpret_cast<T*>(raw);
  const BlockTeam team;
  for (index_t b = blockIdx.x; b < B.count; b += gridDim.x) {
    if (info && info[b] != 0) continue;
    const Tile<T> all = B.item(b);
    const Tile<const T> a = A.item(b);
    const index_t n = a.rows;
    for (index_t j = index_t(blockIdx.y) * strip; j < all.cols; j += index_t(gridDim.y) * strip) {
      const Tile<T> x = all.block(0, j, n, min(index_t(strip), all.cols - j));                  // (n, strip)
      const auto triangle = shared_tile(shared, int(n), int(n), most);                          // (n, n)
      const auto X = shared_tile(shared + (most + 1) * most, int(n), int(x.cols), most);        // (n, strip)
      if (shape.lower) copy_tile(team, a, triangle, a, true);
      else copy_tile(team, a.flipped(), triangle.flipped(), a.flipped(), true);
      copy_tile(team, x, X, x, false);
      team.sync();   // both are complete in shared memory
      tile::trsm(team, shape.lower, shape.unit, Tile<const T, int>(triangle), conj, X);
      copy_tile(team, X, x, x, false);
      team.sync();   // the strip is written before the next one overwrites it
    }
  }
}

template <class T>
void launch_trsm(void* stream, Shape shape, Operand<T> A, Items<T> B, const int* info) {
  const int most = int(A.items.rows), strip = int(min(B.cols, index_t(32)));
  const std::size_t bytes = std::size_t(most + 1) * std::size_t(most + strip) * sizeof(T);
  const dim3 grid(grid_for(B.count), unsigned(min(ceil_div(B.cols, strip), index_t(65535))));
  launch(stream, trsm_kernel<T>, grid, 128, bytes, shape, A.items, A.conj, B, info, most, strip);
}

}  // namespace trifactor::cuda

#define TRIFACTOR_INSTANTIATE_KERNELS(T) \
  template void trifactor::cuda::launch_trsm<T>(void*, Shape, Operand<T>, Items<T>, const int*);
