// What the library found on this machine, and which numbers it will use.
#pragma once

#include <trifactor/types.hpp>

#include <string>
#include <vector>

namespace trifactor {

struct DeviceInfo {
  std::string name;                // "NVIDIA H200", or the CPU's model
  std::string architecture;        // "sm_90", "x86_64"
  int number = -1;                 // the CUDA device's number, -1 for the host
  int cores = 0;                   // multiprocessors, or the threads a host queue uses
  std::size_t memory_bytes = 0, free_bytes = 0;
};

/// The host first, then every CUDA device that can be used.
TRIFACTOR_API std::vector<DeviceInfo> devices();
/// Why no CUDA device can be used, such as "no NVIDIA GPU was found on this machine (the driver is not loaded)"; also that
/// the library was built without CUDA, or that the driver is missing or too old. Empty where there is a device.
TRIFACTOR_API std::string why_no_cuda();
/// "OpenBLAS 0.3.21 ..., 2 threads".
TRIFACTOR_API std::string blas();

struct TuningRow {
  std::string text;                // as written: "sm_90 cholesky f64 n<=1024 : nb=128   # evidence"
  std::string source;              // "tuning/sm_90.txt:12", or the file that TRIFACTOR_TUNING names, with the line
  std::string device, version;     // that trifactor tune found it on and with, and counts for alone; empty: for all
};

/// The file whose rows are tried before those of the library: docs/tuning.md.
struct TuningFile {
  std::string name;                // empty where there is none
  std::string ignored;             // why none of its rows counts; empty where they do
};

/// Every row, in the order in which they are tried.
TRIFACTOR_API std::vector<TuningRow> tuning_rows();
TRIFACTOR_API TuningFile tuning_file();

TRIFACTOR_API const char* version();

}  // namespace trifactor
