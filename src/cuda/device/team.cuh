// Teams of CUDA threads.
#pragma once

#include <core/batch.hpp>
#include <tile/team.hpp>

namespace trifactor::cuda {

using namespace core;

struct WarpTeam {
  __device__ int rank() const { return int(threadIdx.x) % 32; }
  __device__ int size() const { return 32; }
  __device__ void sync() const { __syncwarp(); }
};

struct BlockTeam {
  __device__ int rank() const { return int(threadIdx.x); }
  __device__ int size() const { return int(blockDim.x); }
  __device__ void sync() const { __syncthreads(); }
};

}  // namespace trifactor::cuda
