// How kernels are launched: checked, with as much shared memory as they ask for.
#pragma once

#include <cuda/check.hpp>
#include <cuda/kernels.hpp>

namespace trifactor::cuda {

/// Blocks of a grid that covers `count` items; kernels loop over items with the grid's size as their step.
inline unsigned grid_for(index_t count) { return unsigned(min(count, index_t(1) << 30)); }

/// Strips of columns that blocks share: one block takes all of an item where there are many items.
inline unsigned strips_for(index_t count, index_t strips) {
  constexpr index_t enough = 132 * 16;  // blocks
  return unsigned(max(index_t(1), min(strips, min(ceil_div(enough, count), index_t(65535)))));
}

template <class... P, class... A>
void launch(void* stream, void (*kernel)(P...), dim3 grid, unsigned threads, std::size_t shared_bytes, A... arguments) {
  constexpr std::size_t always_granted = 48u << 10;
  if (shared_bytes > always_granted)
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, int(shared_bytes)), "shared memory for a kernel");
  kernel<<<grid, threads, shared_bytes, static_cast<cudaStream_t>(stream)>>>(arguments...);
  check(cudaGetLastError(), "kernel launch");
}

}  // namespace trifactor::cuda
