#include <core/no_device.hpp>

#include <core/printable.hpp>

namespace trifactor::core {

namespace {

/// "12.4"
std::string cuda_version(int number) {
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

}  // namespace

std::string explain(const DeviceSearch& s) {
  using Failure = DeviceSearch::Failure;
  const std::string none = "no NVIDIA GPU was found on this machine";
  if (s.driver_version == 0)
    return s.module_loaded ? "the NVIDIA driver's library libcuda.so.1 was not found, although the driver is loaded"
                           : none + " (no driver is installed)";
  if (s.failure == Failure::OldDriver)
    return "the NVIDIA driver is too old: it supports CUDA " + cuda_version(s.driver_version) +
           ", and trifactor was built with CUDA " + cuda_version(s.runtime_version);
  if (s.failure == Failure::Other) return "the NVIDIA GPU cannot be used: " + s.error;
  if (s.visible_devices)
    return "no NVIDIA GPU is visible: CUDA_VISIBLE_DEVICES is '" + printable(*s.visible_devices) + "'";
  return none + (s.module_loaded ? " (the driver lists none)" : " (the driver is not loaded)");
}

}  // namespace trifactor::core
