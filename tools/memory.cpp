#include "memory.hpp"

#include <fmt/core.h>
#include <trifactor/error.hpp>

#include <algorithm>
#include <fstream>
#include <limits>

namespace program {
namespace {

constexpr std::size_t unknown = std::numeric_limits<std::size_t>::max();

std::size_t kernel_estimate() {
  std::ifstream meminfo("/proc/meminfo");
  std::string key, unit;
  std::size_t kib = 0;
  while (meminfo >> key >> kib && std::getline(meminfo, unit))
    if (key == "MemAvailable:") return kib * 1024;
  return unknown;
}

std::size_t control_group_limit() {
  std::size_t limit = 0, used = 0;
  std::ifstream maximum("/sys/fs/cgroup/memory.max"), current("/sys/fs/cgroup/memory.current");
  if (!(maximum >> limit) || !(current >> used)) return unknown;  // "max" is no number: no limit
  std::ifstream statistics("/sys/fs/cgroup/memory.stat");         // cached files give way to data
  std::string key;
  for (std::size_t value = 0; statistics >> key >> value;)
    if (key == "inactive_file") used -= std::min(used, value);
  return limit - std::min(limit, used);
}

}  // namespace

std::size_t available_memory() { return std::min(kernel_estimate(), control_group_limit()); }

std::string readable_bytes(double bytes) {
  const char* const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  int unit = 0;
  for (; bytes >= 1024 && unit < 6; ++unit) bytes /= 1024;
  return unit == 0 ? fmt::format("{:.0f} bytes", bytes) : fmt::format("{:.1f} {}", bytes, units[unit]);
}

void require_memory(const char* what, double bytes) {
  const auto available = double(available_memory());
  if (bytes > available)
    throw trifactor::OutOfMemory(fmt::format("{} needs {} of memory, but {} are available", what, readable_bytes(bytes),
                                             readable_bytes(available)),
                                 bytes < double(unknown) ? std::size_t(bytes) : unknown);
}

}  // namespace program
