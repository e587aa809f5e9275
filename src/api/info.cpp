// What the library found on this machine.
#include <api/queue_state.hpp>
#include <core/no_device.hpp>
#include <trifactor/info.hpp>

#include <fstream>
#include <sys/utsname.h>
#include <unistd.h>

namespace trifactor {

namespace {

std::string processor_name(const std::string& architecture) {
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);)
    if (const std::size_t colon = line.find(": "); line.starts_with("model name") && colon != std::string::npos)
      return line.substr(colon + 2);
  return architecture + " processor";
}

DeviceInfo host_info() {
  DeviceInfo host;
  host.architecture = std::string(api::host_architecture());
  host.name = api::host_name();
  host.cores = host::HostEngine(0).threads();
  const auto page = std::size_t(sysconf(_SC_PAGESIZE));
  host.memory_bytes = page * std::size_t(sysconf(_SC_PHYS_PAGES));
  host.free_bytes = page * std::size_t(sysconf(_SC_AVPHYS_PAGES));
  return host;
}

}  // namespace

std::string_view api::host_architecture() {
  static const std::string machine = [] {
    utsname names{};
    return std::string(uname(&names) == 0 ? names.machine : "unknown");
  }();
  return machine;
}

const std::string& api::host_name() {
  static const std::string name = processor_name(std::string(host_architecture()));
  return name;
}

std::vector<DeviceInfo> devices() try {
  std::vector<DeviceInfo> all{host_info()};
#if TRIFACTOR_HAS_CUDA
  for (auto& device : cuda::devices()) all.push_back(std::move(device));
#endif
  return all;
} TRIFACTOR_CATCH_BAD_ALLOC

#if TRIFACTOR_HAS_CUDA
std::string why_no_cuda() try { return cuda::why_no_device(); } TRIFACTOR_CATCH_BAD_ALLOC
#else
std::string why_no_cuda() try { return core::built_without_cuda; } TRIFACTOR_CATCH_BAD_ALLOC
#endif

std::string blas() try {
  return host::blas_name() + ", " + std::to_string(host::HostEngine(0).threads()) + " threads";
} TRIFACTOR_CATCH_BAD_ALLOC

const char* version() { return TRIFACTOR_VERSION; }

}  // namespace trifactor
