// How kernels are launched: checked, and with as much shared memory as they ask for. How those that overlap, see
// LaunchStep, let each other begin.
#pragma once

#include <core/batch.hpp>
#include <cuda/engine/check.hpp>
#include <cuda/engine/grid_sizes.hpp>
#include <cuda/engine/launch_step.hpp>

#include <tuple>
#include <vector>

namespace trifactor::cuda {

/// ask(device) for this kernel and the current device: asked once by each thread that launches it, since asking costs
/// the host a microsecond and more.
template <class Ask>
int asked_once(const void* kernel, const Ask& ask) {
  struct Known {
    const void* kernel;
    int device, answer;
  };
  thread_local std::vector<Known> all_known;
  int device = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  for (const Known& k : all_known)
    if (k.kernel == kernel && k.device == device) return k.answer;
  all_known.push_back({kernel, device, ask(device)});
  return all_known.back().answer;
}

/// From here on the kernel may have all the shared memory there is. Returns whether it is written and compiled for a
/// device on which launches may overlap.
inline bool granted(const void* kernel) {
  return asked_once(kernel, [&](int device) {
    cudaFuncAttributes attributes{};
    check(cudaFuncGetAttributes(&attributes, kernel), "attributes of a kernel");
    int bytes = 0;
    check(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device), "cudaDeviceGetAttribute");
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               bytes - int(attributes.sharedSizeBytes)),
          "shared memory for a kernel");
    return attributes.binaryVersion >= 90 && attributes.ptxVersion >= 90;
  });
}

template <class... P, class... A>
void launch(void* stream, void (*kernel)(P...), dim3 grid, unsigned threads, std::size_t bytes, A... arguments) {
  constexpr std::size_t always_granted = 16u << 10;  // beside 32 KB that a kernel may have declared
  if (bytes > always_granted) granted(reinterpret_cast<const void*>(kernel));
  kernel<<<grid, threads, bytes, static_cast<cudaStream_t>(stream)>>>(arguments...);
  check(cudaGetLastError(), "kernel launch");
}

/// How many blocks a cluster of this kernel may have on the current device; 0: there are no clusters.
inline int largest_cluster(const void* kernel, unsigned threads, std::size_t bytes) {
  return asked_once(kernel, [&](int) {
    int blocks = 0;
    if (!granted(kernel)) return blocks;
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1), "clusters of 16 blocks");
    cudaLaunchConfig_t config{};
    config.gridDim = 16, config.blockDim = threads, config.dynamicSmemBytes = bytes;
    check(cudaOccupancyMaxPotentialClusterSize(&blocks, kernel, &config), "cudaOccupancyMaxPotentialClusterSize");
    return blocks;
  });
}

/// How many blocks of this kernel the device runs at once; 0: it has no clusters, for which the kernel is written too.
inline int largest_grid(const void* kernel, unsigned threads, std::size_t bytes) {
  return asked_once(kernel, [&](int device) {
    int multiprocessors = 0, each = 0, together = 0;
    check(cudaDeviceGetAttribute(&together, cudaDevAttrCooperativeLaunch, device), "cudaDeviceGetAttribute");
    if (!granted(kernel) || together == 0) return 0;
    check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device), "cudaDeviceGetAttribute");
    check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel, int(threads), bytes), "blocks of a kernel");
    return multiprocessors * each;
  });
}

/// A launch whose blocks all run at once, up to largest_grid of them: it starts whole or not at all. False, and nothing
/// is enqueued, where the stream has a part of the device alone that is too small.
template <class... P, class... A>
bool launch_together(void* stream, void (*kernel)(P...), unsigned blocks, unsigned threads, std::size_t bytes,
                     A... arguments) {
  const auto k = reinterpret_cast<const void*>(kernel);
  granted(k);
  std::tuple<P...> values(arguments...);
  const cudaError_t launched = std::apply(
      [&](auto&... v) {
        void* all[] = {&v...};
        return cudaLaunchCooperativeKernel(k, blocks, threads, all, bytes, static_cast<cudaStream_t>(stream));
      },
      values);
  if (launched != cudaErrorCooperativeLaunchTooLarge) return check(launched, "kernel launch"), true;
  cudaGetLastError();  // it is not to surface later
  return false;
}

/// A launch that may begin when all blocks of the launch before have called let_next_start(), where the device has
/// that. All its threads call wait_for_launch_before() before they read or write memory. `cluster`: so many blocks are
/// one, 0 or up to largest_cluster.
template <class... P, class... A>
void launch_early(void* stream, void (*kernel)(P...), dim3 grid, unsigned threads, std::size_t bytes, unsigned cluster,
                  A... arguments) {
  const auto k = reinterpret_cast<const void*>(kernel);
  std::tuple<P...> values(arguments...);
  std::apply(
      [&](auto&... v) {
        LaunchStep step{k, {grid.x, grid.y}, threads, bytes, granted(k), {&v...}, cluster};
        enqueue(stream, step);
      },
      values);
}

/// What the next launch reads without waiting must be in memory before.
__device__ inline void let_next_start() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
/// Waits until the launch before has ended, and what it wrote can be read.
__device__ inline void wait_for_launch_before() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

}  // namespace trifactor::cuda
