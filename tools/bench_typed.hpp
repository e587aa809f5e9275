// What was typed for trifactor bench, and the options that follow from it.
#pragma once

#include "bench.hpp"

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace program {

using Words = std::vector<std::string>;

constexpr const char* default_matrices = "poisson3d:20,elastic3d:10,shell2d:40";
constexpr const char* default_rows = "1024,2048,4096,8192,16384";  // of panels
constexpr index_t largest_size = std::numeric_limits<int>::max();

/// The options as they were typed, before the defaults that depend on the machine and on each other.
struct Typed {
  BenchOptions options;
  std::string n, m, nrhs, nb, leaf, ib, looking, forms, scalars, kind, sizes, matrices, preset;
  bool has_count = false;
  std::int64_t seed = -1;
  std::string part_of;                      // the preset of bench that this is a part of
  std::function<void(Typed&)> change = {};  // what a preset changes before it runs
};

/// Of --n.
std::string default_sizes(const std::string& op, const std::string& device);

/// Empty for one of these words, else what is wrong with another.
std::string not_one_of(const Words& words, const std::string& word);

/// Throws InputError for a value that cannot be read, and for two that exclude each other.
BenchOptions complete(Typed typed);

/// Runs "cholesky --n 512", as typed after `trifactor bench`, with that change.
void run_bench_line(const std::string& line, const std::function<void(Typed&)>& change);

struct GuardOptions {
  std::string preset, device;
  double seconds = -1;  // below 0: not typed
  bool json = false;
};
/// The rows that stand for README's tables: every line of the preset in turn. Throws the first MatrixError at the end.
void run_guard(const GuardOptions&);

}  // namespace program
