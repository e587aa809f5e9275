// The CUDA devices of this machine, and why there is none.
#include <core/no_device.hpp>
#include <cuda/engine/check.hpp>
#include <cuda/engine/engine.hpp>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <system_error>

namespace trifactor::cuda {

std::string architecture_of(int device) {
  int major = 0, minor = 0;
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "cudaDeviceGetAttribute");
  check(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device), "cudaDeviceGetAttribute");
  return "sm_" + std::to_string(major) + std::to_string(minor);
}

std::string name_of(int device) {
  static std::mutex mutex;
  static std::map<int, std::string> names;  // asked for once: every queue wants one
  const std::lock_guard lock(mutex);
  std::string& name = names[device];
  if (name.empty()) {
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
    name = properties.name;
  }
  return name;
}

std::string why_no_device() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess && count > 0) return "";
  cudaGetLastError();
  using Failure = core::DeviceSearch::Failure;
  core::DeviceSearch search;
  search.failure = status == cudaErrorInsufficientDriver                  ? Failure::OldDriver
                   : status == cudaSuccess || status == cudaErrorNoDevice ? Failure::NoDevice
                                                                          : Failure::Other;
  if (cudaDriverGetVersion(&search.driver_version) != cudaSuccess) cudaGetLastError();
  if (cudaRuntimeGetVersion(&search.runtime_version) != cudaSuccess) cudaGetLastError();
  std::error_code ignored;
  search.module_loaded = std::filesystem::exists("/proc/driver/nvidia/version", ignored);
  if (const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES")) search.visible_devices = visible;
  search.error = cudaGetErrorString(status);
  return explain(search);
}

std::vector<DeviceInfo> devices() {
  std::vector<DeviceInfo> all;
  if (!why_no_device().empty()) return all;
  int count = 0;
  check(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
  for (int d = 0; d < count; ++d) {
    const DeviceScope scope(d);
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, d), "cudaGetDeviceProperties");
    DeviceInfo info;
    info.name = properties.name, info.architecture = architecture_of(d), info.number = d;
    info.cores = properties.multiProcessorCount;
    check(cudaMemGetInfo(&info.free_bytes, &info.memory_bytes), "cudaMemGetInfo");
    all.push_back(std::move(info));
  }
  return all;
}

DeviceScope::DeviceScope(int device) : before_(device) {
  check(cudaGetDevice(&before_), "cudaGetDevice");
  if (before_ != device) check(cudaSetDevice(device), "cudaSetDevice");
}
DeviceScope::DeviceScope(int device, std::nothrow_t) noexcept : before_(device) {
  if (cudaGetDevice(&before_) == cudaSuccess && before_ != device) cudaSetDevice(device);
}
DeviceScope::~DeviceScope() {
  int now = before_;
  if (cudaGetDevice(&now) == cudaSuccess && now != before_) cudaSetDevice(before_);
}

}  // namespace trifactor::cuda
