// Why no CUDA device can be used, in words for the user.
#pragma once

#include <optional>
#include <string>

namespace trifactor::core {

/// What the CUDA runtime and the machine told when devices were looked for in vain.
struct DeviceSearch {
  enum class Failure { OldDriver, NoDevice, Other };
  Failure failure = Failure::NoDevice;
  int driver_version = 0;                           // 12040 for CUDA 12.4; 0: the driver's library was not found
  int runtime_version = 0;                          // that this library was built with
  bool module_loaded = false;                       // the kernel has the driver
  std::optional<std::string> visible_devices = {};  // CUDA_VISIBLE_DEVICES
  std::string error = {};                           // CUDA's own words, for Other
};

std::string explain(const DeviceSearch&);

/// Where the library was built without CUDA.
inline constexpr const char* built_without_cuda = "trifactor was built without CUDA";

}  // namespace trifactor::core
