// cuBLAS is loaded when a queue first needs it: its libraries take some 200 MB and 60 ms. Every call is checked here.
#pragma once

#include <cuda/engine/check.hpp>

#include <cublas_v2.h>

namespace trifactor::cuda {

/// A function of cuBLAS. Throws DeviceFault where the library or the function is missing.
void* cublas_function(const char* name);

#define TRIFACTOR_NAME_OF(f) #f
/// CUBLAS(cublasCreate)(&handle): looked up once for each place that calls it. cuBLAS's headers rename some functions
/// by macros, which are expanded before the name is taken.
#define CUBLAS(f) TRIFACTOR_CUBLAS_CALL(f)
#define TRIFACTOR_CUBLAS_CALL(f)                                                                        \
  ([] {                                                                                                 \
    static const auto function = reinterpret_cast<decltype(&f)>(cublas_function(TRIFACTOR_NAME_OF(f))); \
    return function;                                                                                    \
  }())

inline void check(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw DeviceFault(std::string(what) + ": " + CUBLAS(cublasGetStatusString)(status));
}

}  // namespace trifactor::cuda
