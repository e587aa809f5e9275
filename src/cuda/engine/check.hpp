// Every CUDA call is checked here; those of cuBLAS, whose headers no kernel needs to read, in cublas.hpp.
#pragma once

#include <core/memory.hpp>

#include <cuda_runtime_api.h>

#include <string>

namespace trifactor::cuda {

inline cudaStream_t as_stream(void* s) { return static_cast<cudaStream_t>(s); }
inline cudaEvent_t as_event(void* e) { return static_cast<cudaEvent_t>(e); }

inline void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // a failure that was reported does not surface again at the next launch
  throw DeviceFault(std::string(what) + ": " + cudaGetErrorString(status));
}

}  // namespace trifactor::cuda
