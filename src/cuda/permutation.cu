// The permutation that interchanges make.
#include <cuda/kernels/launch.cuh>

namespace trifactor::cuda {

namespace {

/// Interchanges follow one another, so one thread walks them, in shared memory where the permutation fits.
__global__ void permutation_kernel(const int* pivots, index_t k, int* p, index_t rows, bool in_shared) {
  extern __shared__ int shared[];
  int* work = in_shared ? shared : p;
  for (index_t i = threadIdx.x; i < rows; i += blockDim.x) work[i] = int(i);
  __syncthreads();   // the identity is complete before rows move
  if (threadIdx.x == 0)
    for (index_t i = 0; i < k; ++i) {
      const int t = work[i];
      work[i] = work[pivots[i] - 1], work[pivots[i] - 1] = t;
    }
  __syncthreads();   // all interchanges are made
  if (in_shared)
    for (index_t i = threadIdx.x; i < rows; i += blockDim.x) p[i] = work[i];
}

}  // namespace

void launch_permutation(void* stream, const int* pivots, index_t k, int* p, index_t rows) {
  const std::size_t bytes = std::size_t(rows) * sizeof(int), most = 160u << 10;
  const bool in_shared = bytes <= most;
  launch(stream, permutation_kernel, 1, 256, in_shared ? bytes : 0, pivots, k, p, rows, in_shared);
}

}  // namespace trifactor::cuda
