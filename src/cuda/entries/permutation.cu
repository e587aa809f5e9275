// Kernels without a scalar: the permutation that interchanges make, results of retries, the first failure of fronts,
// staged arguments, and a pause.
#include <core/fronts.hpp>
#include <cuda/device/instructions.cuh>
#include <cuda/engine/launch.cuh>
#include <cuda/entries/entries.hpp>
#include <cuda/engine/engine.hpp>

namespace trifactor::cuda {

namespace {

constexpr int permutation_threads = 256, chunk = 1024;

/// Interchanges follow one another, so one thread walks them, in shared memory where the permutation fits. The others
/// bring the next interchanges to shared memory meanwhile: two chunks of them.
__global__ void permutation_kernel(const int* pivots, index_t k, int* p, index_t rows, bool in_shared) {
  extern __shared__ int shared[];
  __shared__ int chunks[2][chunk];
  int* work = in_shared ? shared : p;
  const auto bring = [&](index_t first, int from, int step) {
    for (int t = from; t < chunk && first + t < k; t += step) chunks[first / chunk % 2][t] = pivots[first + t] - 1;
  };
  for (index_t i = threadIdx.x; i < rows; i += blockDim.x) work[i] = int(i);
  bring(0, int(threadIdx.x), permutation_threads);
  __syncthreads();  // the identity and the first chunk are complete before rows move
  for (index_t first = 0; first < k; first += chunk) {
    const int* exchanged = chunks[first / chunk % 2];
    if (threadIdx.x == 0) {
      const int count = int(min(index_t(chunk), k - first));
      for (int i = 0; i < count; ++i) {
        const int a = work[first + i], b = work[exchanged[i]];
        work[first + i] = b, work[exchanged[i]] = a;
      }
    } else if (threadIdx.x >= 32) {
      bring(first + chunk, int(threadIdx.x) - 32, permutation_threads - 32);
    }
    __syncthreads();  // this chunk's interchanges are made, the next one is there
  }
  if (in_shared)
    for (index_t i = threadIdx.x; i < rows; i += blockDim.x) p[i] = work[i];
}

__global__ void take_retry_kernel(index_t count, const int* retry, int* info) {
  for (index_t b = index_t(blockIdx.x) * blockDim.x + threadIdx.x; b < count; b += index_t(gridDim.x) * blockDim.x)
    if (retry[b] != not_tried) info[b] = retry[b];
}

__global__ void copy_arguments_kernel(ArgumentCopies all) {
  const ArgumentCopy c = all.copy[blockIdx.y];
  for (index_t i = index_t(blockIdx.x) * blockDim.x + threadIdx.x; i < c.count; i += index_t(gridDim.x) * blockDim.x)
    if (c.step >= 0)
      static_cast<const char**>(c.to)[i] = static_cast<const char*>(c.from) + i * c.step;
    else
      static_cast<int*>(c.to)[i] = static_cast<const int*>(c.from)[i];
}

__global__ void pause_kernel(int nanoseconds) {
  for (const auto begin = global_time(); global_time() - begin < static_cast<unsigned long long>(nanoseconds);) {}
}

}  // namespace

void launch_pause(void* stream, int nanoseconds) { launch(stream, pause_kernel, 1, 1, 0, nanoseconds); }

LaunchStep copy_arguments_step(ArgumentCopies& all) {
  constexpr index_t threads = 256, max_blocks = 528;
  index_t longest = 1;
  for (int i = 0; i < all.count; ++i) longest = max(longest, all.copy[i].count);
  return {reinterpret_cast<const void*>(copy_arguments_kernel),
          {unsigned(min(ceil_div(longest, threads), max_blocks)), unsigned(all.count)},
          unsigned(threads),
          0,
          false,
          {&all}};
}

void CudaEngine::take_retry(index_t count, const int* retry, int* info) {
  constexpr unsigned threads = 256;
  if (arena().planning()) return;
  launch(stream_, take_retry_kernel, grid_for(ceil_div(count, threads)), threads, 0, count, retry, info);
}

void launch_permutation(void* stream, const int* pivots, index_t k, int* p, index_t rows) {
  const std::size_t bytes = std::size_t(rows) * sizeof(int), max_bytes = 160u << 10;
  const bool in_shared = bytes <= max_bytes;
  launch(stream, permutation_kernel, 1, permutation_threads, in_shared ? bytes : 0, pivots, k, p, rows, in_shared);
}

constexpr int failure_threads = 1024;

/// A front that failed may make those above it fail, whose columns come later.
__global__ void __launch_bounds__(failure_threads)
    first_failure_kernel(Fronts f, const int* info, int* first, int* copy) {
  const int none = int(f.n), rank = int(threadIdx.x);
  for (index_t item = rank; item < f.items; item += failure_threads) first[item] = none;
  __syncthreads();  // everyone sees that none has failed yet
#pragma unroll 4
  for (index_t t = rank; t < f.count; t += failure_threads)
    if (info[t] != 0) atomicMin(first + f.item_of(f.first[t]), f.first[t] + info[t] - 1);
  __syncthreads();  // all fronts are asked
  for (index_t item = rank; item < f.items; item += failure_threads) {
    const int column = __ldcg(first + item);  // atomics pass by the first-level cache
    const int failed = column == none ? 0 : f.permutation[column] + 1 - int(item * f.item_columns);
    first[item] = failed;
    if (copy) copy[item] = failed;
  }
}
void CudaEngine::first_failure(const Fronts& f, const int* info, int* first, int* copy) {
  if (arena().planning()) return;
  launch(stream_, first_failure_kernel, 1, failure_threads, 0, f, info, first, copy);
}

}  // namespace trifactor::cuda
