// What src/cuda/engine/launch.cuh does with CUDA's runtime, on the machine of tests/simt: a launch is over when it
// returns.
#pragma once

#include <cuda_words.hpp>

#include <core/batch.hpp>
#include <cuda/engine/grid_sizes.hpp>

namespace trifactor::cuda {

using namespace core;

template <class... P, class... A>
void launch(void*, void (*kernel)(P...), dim3 grid, unsigned threads, std::size_t, A... arguments) {
  simt::run({{grid.x, grid.y, grid.z}, threads, 1}, [&] { kernel(arguments...); });
}
template <class... P, class... A>
void launch_early(void*, void (*kernel)(P...), dim3 grid, unsigned threads, std::size_t, unsigned cluster,
                  A... arguments) {
  simt::run({{grid.x, grid.y, grid.z}, threads, cluster > 0 ? cluster : 1}, [&] { kernel(arguments...); });
}
inline int largest_cluster(const void*, unsigned, std::size_t) { return int(simt::schedule().largest_cluster); }

inline void let_next_start() {}
inline void wait_for_launch_before() {}

}  // namespace trifactor::cuda
