// What src/cuda/engine/launch.cuh does with CUDA's runtime, on the machine of tests/simt: a launch is over when it
// returns.
#pragma once

#include <cuda_words.hpp>

#include <core/batch.hpp>
#include <cuda/engine/grid_sizes.hpp>
#include <cuda/engine/launch_step.hpp>

namespace trifactor::cuda {

using cudaError_t = int;
using cudaStream_t = void*;
inline constexpr cudaError_t cudaSuccess = 0, cudaErrorInvalidConfiguration = 9;
inline void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) simt::fail(what);
}
inline cudaError_t cudaMemsetAsync(void* p, int value, std::size_t bytes, cudaStream_t) {
  std::memset(p, value, bytes);
  return cudaSuccess;
}

template <class... P, class... A>
void launch(void*, void (*kernel)(P...), dim3 grid, unsigned threads, std::size_t, A... arguments) {
  simt::run({{grid.x, grid.y, grid.z}, threads, 1}, [&] { kernel(arguments...); });
}
template <class... P, class... A>
void launch_early(void*, void (*kernel)(P...), dim3 grid, unsigned threads, std::size_t, unsigned cluster,
                  A... arguments) {
  simt::run({{grid.x, grid.y, grid.z}, threads, cluster > 0 ? cluster : 1}, [&] { kernel(arguments...); });
}
template <class... P, class... A>
bool launch_together(void*, void (*kernel)(P...), unsigned blocks, unsigned threads, std::size_t, A... arguments) {
  simt::run({{blocks}, threads, blocks}, [&] { kernel(arguments...); });
  return true;
}
inline bool granted(const void*) { return false; }
inline int largest_cluster(const void*, unsigned, std::size_t) { return int(simt::schedule().largest_cluster); }
inline int largest_grid(const void*, unsigned, std::size_t) { return 132; }

inline void let_next_start() {}
inline void wait_for_launch_before() {}

}  // namespace trifactor::cuda
