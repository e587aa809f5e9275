// Every cuBLAS call is checked here.
#pragma once

#include <cuda/check.hpp>

#include <cublas_v2.h>

namespace trifactor::cuda {

inline void check(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS) throw DeviceFault(std::string(what) + ": " + cublasGetStatusString(status));
}

}  // namespace trifactor::cuda
