// Every CUDA call is checked here; those of cuBLAS, whose headers no kernel needs to read, in cublas.hpp.
#pragma once

#include <core/memory.hpp>

#include <cuda_runtime_api.h>

#include <string>

namespace trifactor::cuda {

inline void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  cudaGetLastError();   // a failure that was reported does not surface again at the next launch
  throw DeviceFault(std::string(what) + ": " + cudaGetErrorString(status));
}

}  // namespace trifactor::cuda
