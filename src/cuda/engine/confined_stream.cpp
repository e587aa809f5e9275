// Green contexts of the driver: a part of the multiprocessors with streams of its own.
#include <cuda/engine/confined_stream.hpp>

#include <cuda/engine/check.hpp>
#include <cuda/engine/graph_cache.hpp>

#include <cuda.h>

#include <mutex>

namespace trifactor::cuda {

namespace {

constexpr unsigned free_multiprocessors = 16;
constexpr unsigned least_multiprocessors = 96;  // of a device that can spare them

/// A function of the driver, which this library is not linked to; null where it has none of that name.
template <class F>
F driver_function(const char* name) {
  constexpr unsigned version = 12040;  // the first that has green contexts
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
  if (cudaGetDriverEntryPointByVersion(name, &function, version, cudaEnableDefault, &found) != cudaSuccess ||
      found != cudaDriverEntryPointSuccess) {
    cudaGetLastError();  // it has no consequences
    return nullptr;
  }
  return reinterpret_cast<F>(function);
}

/// What is left of the device without a part on which a cluster fits; false if it cannot be divided.
bool find_rest(int device, CUdevResource& rest) {
  const auto resource = driver_function<decltype(&cuDeviceGetDevResource)>("cuDeviceGetDevResource");
  const auto split = driver_function<decltype(&cuDevSmResourceSplitByCount)>("cuDevSmResourceSplitByCount");
  CUdevResource all{}, part{};
  unsigned parts = 1;
  return resource && split && resource(device, &all, CU_DEV_RESOURCE_TYPE_SM) == CUDA_SUCCESS &&
         all.sm.smCount >= least_multiprocessors &&
         split(&part, &parts, &all, &rest, CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE,
               free_multiprocessors) == CUDA_SUCCESS &&
         parts == 1;
}

}  // namespace

std::unique_ptr<ConfinedStream> ConfinedStream::create(int device) {
  const auto describe = driver_function<decltype(&cuDevResourceGenerateDesc)>("cuDevResourceGenerateDesc");
  const auto make = driver_function<decltype(&cuGreenCtxCreate)>("cuGreenCtxCreate");
  const auto make_stream = driver_function<decltype(&cuGreenCtxStreamCreate)>("cuGreenCtxStreamCreate");
  CUdevResource rest{};
  if (!describe || !make || !make_stream || !find_rest(device, rest)) return nullptr;
  int lowest = 0, highest = 0;
  check(cudaDeviceGetStreamPriorityRange(&lowest, &highest), "cudaDeviceGetStreamPriorityRange");
  std::unique_ptr<ConfinedStream> made(new ConfinedStream);
  const std::lock_guard no_capture(capture_mutex());  // it may synchronize the device
  CUdevResourceDesc description = nullptr;
  CUgreenCtx context = nullptr;
  CUstream stream = nullptr;
  if (describe(&description, &rest, 1) != CUDA_SUCCESS ||
      make(&context, description, device, CU_GREEN_CTX_DEFAULT_STREAM) != CUDA_SUCCESS)
    return nullptr;
  made->context_ = context;
  if (make_stream(&stream, context, CU_STREAM_NON_BLOCKING, lowest) != CUDA_SUCCESS) return nullptr;
  made->stream_ = stream;
  return made;
}

ConfinedStream::~ConfinedStream() {
  const std::lock_guard no_capture(capture_mutex());
  if (stream_) cudaStreamDestroy(as_stream(stream_));
  if (const auto destroy = driver_function<decltype(&cuGreenCtxDestroy)>("cuGreenCtxDestroy"); context_ && destroy)
    destroy(static_cast<CUgreenCtx>(context_));
}

}  // namespace trifactor::cuda
