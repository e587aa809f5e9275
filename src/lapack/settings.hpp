// What the user chose by environment variables, what was done, and whether this process is a fork's child.
#pragma once

#include <atomic>
#include <cstdint>

namespace trifactor::lapack {

/// Auto: on the GPU where there is one.
enum class Where { Auto, Off, Host, Cuda };

struct Settings {
  Where where = Where::Auto;
  bool verbose = false;
  /// Calls of smaller orders are passed on. The value form with all its copies was 2.5 times as fast as 16 cores at
  /// order 256 on an H200 (tuning/sm_90.txt); this is one step above it.
  std::int64_t min_order = 512;
  /// Solves with a factor that is there already are worth their copies from so many right-hand sides on: an estimate
  /// from 20 GB/s of copies and 200 Gflop/s of a host.
  std::int64_t min_columns = 256;
  /// Columns that are copied at a time; 0: of a triangle 512, otherwise all.
  std::int64_t chunk = 0;
};

/// TRIFACTOR_LAPACK=off|host|cuda|verbose, also two of them with a comma, TRIFACTOR_LAPACK_MIN=order and
/// TRIFACTOR_LAPACK_CHUNK=columns, read when they are first asked for. What is not understood is named on standard
/// error.
const Settings& settings();

/// Whether fork() has made this process: threads and the GPU are the parent's.
bool in_forked_child();

enum class Place { Cuda, Host, PassedOn };
/// Counts a call of order n; with `verbose`, a line at exit tells the counts.
void count_call(Place, std::int64_t n, double seconds);

/// One line on standard error.
void say(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace trifactor::lapack
