#include <cuda/engine/cublas.hpp>

#include <dlfcn.h>

namespace trifactor::cuda {

void* cublas_function(const char* name) {
  static void* const library = [] {
    const std::string file = "libcublas.so." + std::to_string(CUBLAS_VER_MAJOR);
    void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) throw DeviceFault("cuBLAS cannot be loaded: " + std::string(dlerror()));
    return handle;
  }();
  void* function = dlsym(library, name);
  if (!function) throw DeviceFault("cuBLAS has no function " + std::string(name));
  return function;
}

}  // namespace trifactor::cuda
