// trifactor info: what is here, and which numbers were chosen.
#include "commands.hpp"
#include "printable.hpp"
#include "scalars.hpp"
#include "table.hpp"

#include <commit.hpp>
#include <nlohmann/json.hpp>
#include <trifactor/info.hpp>
#include <trifactor/measure.hpp>

namespace program {
namespace {

using nlohmann::ordered_json;

ordered_json null_if_empty(const std::string& text) { return text.empty() ? ordered_json() : ordered_json(text); }

/// Why a row does not count here: it was found elsewhere.
std::string why_ignored(const trifactor::TuningRow& row) {
  if (row.device.empty()) return {};
  if (row.version != trifactor::version()) return "found with version " + printable(row.version);
  for (const auto& device : trifactor::devices())
    if (device.name == row.device) return {};
  return "found on " + printable(row.device);
}

void print_json() {
  ordered_json devices = ordered_json::array(), rows = ordered_json::array();
  for (const auto& d : trifactor::devices())
    devices.push_back({{"name", d.name},
                       {"architecture", d.architecture},
                       {"number", d.number < 0 ? ordered_json() : ordered_json(d.number)},
                       {"cores", d.cores},
                       {"memory_bytes", d.memory_bytes},
                       {"free_bytes", d.free_bytes}});
  for (const auto& row : trifactor::tuning_rows())
    rows.push_back({{"row", row.text}, {"source", row.source}, {"ignored", null_if_empty(why_ignored(row))}});
  const std::string no_cuda = trifactor::why_no_cuda();
  const ordered_json all = {{"version", trifactor::version()},
                            {"commit", TRIFACTOR_COMMIT},
                            {"scalars", scalar_names()},
                            {"blas", trifactor::blas()},
                            {"devices", devices},
                            {"why_no_cuda", null_if_empty(no_cuda)},
                            {"energy_sensors", trifactor::energy_sensors()},
                            {"tuning_file", null_if_empty(trifactor::tuning_file().name)},
                            {"tuning", rows}};
  fmt::print("{}\n", json_text(all));
}

std::string joined(const std::vector<std::string>& words, const char* separator) {
  std::string all;
  for (const std::string& word : words) all += (all.empty() ? "" : separator) + word;
  return all;
}

std::string gibibytes(std::size_t bytes) { return fmt::format("{:.1f}", double(bytes) / double(1 << 30)); }

void print_text() {
  const std::vector<std::string> sensors = trifactor::energy_sensors();
  fmt::print("trifactor {} ({})\n", trifactor::version(), TRIFACTOR_COMMIT);
  fmt::print("scalars   {}\n", joined(scalar_names(), " "));
  fmt::print("BLAS      {}\n", trifactor::blas());
  fmt::print("energy    {}\n", sensors.empty() ? "no sensor that may be read" : joined(sensors, ", "));
  const trifactor::TuningFile file = trifactor::tuning_file();
  const bool off = file.name.empty() || !file.ignored.empty();
  fmt::print("tuning    {}{}\n", off ? "the built-in rows" : "rows of ",
             file.name.empty()      ? ""
             : file.ignored.empty() ? printable(file.name) + ", then the built-in ones"
                                    : "; " + printable(file.ignored));
  if (const std::string why = trifactor::why_no_cuda(); !why.empty()) fmt::print("CUDA      none: {}\n", why);

  std::vector<std::vector<std::string>> rows;
  for (const auto& d : trifactor::devices())
    rows.push_back({d.number < 0 ? "host" : fmt::format("cuda {}", d.number), d.architecture,
                    fmt::format("{}", d.cores), gibibytes(d.memory_bytes), gibibytes(d.free_bytes), d.name});
  fmt::print("\n");
  print_table({"device", "architecture", "cores", "memory GiB", "free GiB", "name"}, rows);

  rows.clear();
  for (const auto& row : trifactor::tuning_rows()) {
    const std::string why = why_ignored(row);
    rows.push_back({row.source, why.empty() ? row.text : fmt::format("(ignored, {}) {}", why, row.text)});
  }
  fmt::print("\nTuning rows, in the order in which they are tried:\n");
  print_table({"source", "row"}, rows);
}

}  // namespace

void info(bool json) { json ? print_json() : print_text(); }

}  // namespace program
