// Sensors that count joules. What is absent or may not be read is not a sensor.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace trifactor::meter {

struct Sensor {
  std::string name;
  std::function<std::optional<double>()> read;   // joules since some moment; nothing when it cannot be read
  double range = 0;                              // joules at which it starts again from 0; 0: it never does
};

/// The GPUs' own counters, through the driver's library, which is loaded at run time.
std::vector<Sensor> nvml_sensors(const char* library = "libnvidia-ml.so.1");

/// The CPU packages' counters, as the kernel's powercap folder shows them. Most kernels let only root read them.
std::vector<Sensor> rapl_sensors(const std::filesystem::path& powercap = "/sys/class/powercap");

/// Both, looked for once.
const std::vector<Sensor>& machine_sensors();

/// The joules that sensors count from its construction on.
class EnergyInterval {
 public:
  explicit EnergyInterval(std::span<const Sensor> sensors);

  /// The sum over all sensors so far. Nothing when there is none, or when one of them fails or has not moved: a part
  /// of the sum is not the sum. A counter that wraps may do so once.
  std::optional<double> joules() const;

 private:
  std::span<const Sensor> sensors_;
  std::vector<std::optional<double>> begin_;
};

}  // namespace trifactor::meter
