// The subcommands of the program: what each is told, and the call that runs it. main.cpp, bench_options.cpp and
// tune.cpp read the command line.
#pragma once

#include "scalars.hpp"

#include <cstdint>
#include <string>

namespace CLI {
class App;
}

namespace program {

void info(bool json);

struct SolveOptions {
  std::string matrix, rhs, output;
  std::string method = "auto", device = "auto", ordering;  // ordering: empty where none was asked for
  double shift = 0;
  double max_device_bytes = 0;  // of sparse Cholesky; 0: what is free
  bool refine = false, json = false;
};
void solve(const SolveOptions&);

struct TraceOptions {
  std::string op, scalar = default_scalar(), uplo, mode = "auto", tuning, device, file = "trace.json";
  std::string matrix = "elastic3d:20", ordering = "metis";  // of sparse
  double max_device_bytes = 0;                              // likewise
  trifactor::index_t n = 8192;
  std::uint64_t seed = 1;
  bool json = false;
};
void trace(TraceOptions);

struct AnalyzeOptions {
  std::string matrix, ordering = "auto", picture;
  std::int64_t seed = 0;
  bool json = false;
};
void analyze(const AnalyzeOptions&);

struct GenerateOptions {
  std::string word, output;
  std::int64_t seed = 0;
  bool json = false;
};
void write_generated(const GenerateOptions&);

void demo(const std::string& device);

/// Each adds itself to the command line and runs once that has been read.
void add_bench(CLI::App&);
void add_power(CLI::App&, int& status);  // status: becomes that of the command which it runs
void add_tune(CLI::App&);

}  // namespace program
