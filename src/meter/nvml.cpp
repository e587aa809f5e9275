#include <meter/sensors.hpp>

#include <dlfcn.h>

namespace trifactor::meter {

namespace {

/// The functions of NVML that are used, with prototypes of our own, so that no CUDA header is needed to build.
struct Nvml {
  using Device = struct DeviceHandle*;
  static constexpr int success = 0;

  int (*init)();
  int (*device_count)(unsigned*);
  int (*device)(unsigned, Device*);
  int (*device_name)(Device, char*, unsigned);
  int (*device_energy)(Device, unsigned long long* millijoules);

  /// False when the library, a function or the driver is missing. The library stays loaded: sensors read through it.
  bool load(const char* library) {
    void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!handle) return false;
    const auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, name));
      return function != nullptr;
    };
    return find(init, "nvmlInit_v2") && find(device_count, "nvmlDeviceGetCount_v2") &&
           find(device, "nvmlDeviceGetHandleByIndex_v2") && find(device_name, "nvmlDeviceGetName") &&
           find(device_energy, "nvmlDeviceGetTotalEnergyConsumption") && init() == success;
  }
};

}  // namespace

std::vector<Sensor> nvml_sensors(const char* library) {
  std::vector<Sensor> sensors;
  Nvml nvml;
  unsigned count = 0;
  if (!nvml.load(library) || nvml.device_count(&count) != Nvml::success) return sensors;
  for (unsigned i = 0; i < count; ++i) {
    Nvml::Device device = nullptr;
    char name[96] = "GPU";  // NVML's own limit
    if (nvml.device(i, &device) != Nvml::success) continue;
    nvml.device_name(device, name, sizeof name);
    const auto read = [energy = nvml.device_energy, device]() -> std::optional<double> {
      unsigned long long millijoules = 0;
      if (energy(device, &millijoules) != Nvml::success) return std::nullopt;
      return double(millijoules) * 1e-3;
    };
    if (read()) sensors.push_back({std::string("NVML ") + name, read});
  }
  return sensors;
}

}  // namespace trifactor::meter
