// Teams of CUDA threads, and copies of tiles between global and shared memory.
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

/// target := source, or its lower triangle only. Neighbouring ranks touch neighbouring addresses of `global`, the one
/// of the two that lies in global memory. No sync inside.
template <class Team, class From, class To, class Global>
__device__ void copy_tile(const Team& team, const From& source, const To& target, const Global& global,
                          bool lower_only) {
  const int rows = int(source.rows), cols = int(source.cols);
  const int lane = team.rank() % 32, warp = team.rank() / 32, warps = (team.size() + 31) / 32;
  if (global.row_stride == 1) {
    for (int j = warp; j < cols; j += warps)
      for (int i = (lower_only ? j : 0) + lane; i < rows; i += 32) target(i, j) = source(i, j);
  } else {
    for (int i = warp; i < rows; i += warps)
      for (int j = lane; j < (lower_only ? min(i + 1, cols) : cols); j += 32) target(i, j) = source(i, j);
  }
}

/// A column-major tile in shared memory; one entry of padding keeps rows and columns free of bank conflicts.
template <class T>
__device__ Tile<T, int> shared_tile(T* data, int rows, int cols, int max_rows) {
  return {data, rows, cols, 1, max_rows + 1};
}

}  // namespace trifactor::cuda
