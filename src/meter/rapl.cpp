#include <meter/sensors.hpp>

#include <algorithm>
#include <fstream>

namespace trifactor::meter {

namespace {

std::optional<double> read_microjoules(const std::filesystem::path& file) {
  double microjoules = 0;
  if (!(std::ifstream(file) >> microjoules)) return std::nullopt;
  return microjoules * 1e-6;
}

}  // namespace

std::vector<Sensor> rapl_sensors(const std::filesystem::path& powercap) {
  std::vector<Sensor> sensors;
  std::error_code error;
  std::filesystem::directory_iterator entry(powercap, error), end;
  for (; !error && entry != end; entry.increment(error)) {
    const auto zone = entry->path();
    // Packages only: cores (intel-rapl:0:0) are counted in them, they are counted in the platform (psys), and
    // intel-rapl-mmio shows them once more. Memory has no counter on every machine and is left out on all.
    const auto folder = zone.filename().string();
    if (!folder.starts_with("intel-rapl:") || std::count(folder.begin(), folder.end(), ':') != 1) continue;
    std::string name;
    if (!(std::ifstream(zone / "name") >> name) || !name.starts_with("package")) continue;

    const auto read = [file = zone / "energy_uj"] { return read_microjoules(file); };
    if (read()) sensors.push_back({"RAPL " + name, read, read_microjoules(zone / "max_energy_range_uj").value_or(0)});
  }
  std::sort(sensors.begin(), sensors.end(), [](const Sensor& a, const Sensor& b) { return a.name < b.name; });
  return sensors;
}

}  // namespace trifactor::meter
