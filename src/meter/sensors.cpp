#include <meter/sensors.hpp>

#include <trifactor/measure.hpp>

#include <cstdlib>

namespace trifactor::meter {

const std::vector<Sensor>& machine_sensors() {
  static const std::vector<Sensor> sensors = [] {
    auto all = nvml_sensors();
    const char* const powercap = std::getenv("TRIFACTOR_POWERCAP");  // where /sys is mounted elsewhere, and for tests
    for (Sensor& sensor : powercap ? rapl_sensors(powercap) : rapl_sensors()) all.push_back(std::move(sensor));
    return all;
  }();
  return sensors;
}

EnergyInterval::EnergyInterval(std::span<const Sensor> sensors) : sensors_(sensors) {
  for (const Sensor& sensor : sensors) begin_.push_back(sensor.read());
}

std::optional<double> EnergyInterval::joules() const {
  double sum = 0;
  for (std::size_t i = 0; i < sensors_.size(); ++i) {
    const auto begin = begin_[i], end = sensors_[i].read();
    if (!begin || !end) return std::nullopt;
    const double counted = *end < *begin ? *end - *begin + sensors_[i].range : *end - *begin;
    if (!(counted > 0)) return std::nullopt;
    sum += counted;
  }
  if (sensors_.empty()) return std::nullopt;
  return sum;
}

}  // namespace trifactor::meter

namespace trifactor {

std::vector<std::string> energy_sensors() {
  std::vector<std::string> names;
  for (const meter::Sensor& sensor : meter::machine_sensors()) names.push_back(sensor.name);
  return names;
}

}  // namespace trifactor
