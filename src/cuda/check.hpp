// Every CUDA and cuBLAS call is checked here.
#pragma once

#include <core/memory.hpp>

#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include <string>

namespace trifactor::cuda {

inline void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  cudaGetLastError();   // a failure that was reported does not surface again at the next launch
  throw DeviceFault(std::string(what) + ": " + cudaGetErrorString(status));
}

inline void check(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS) throw DeviceFault(std::string(what) + ": " + cublasGetStatusString(status));
}

}  // namespace trifactor::cuda
