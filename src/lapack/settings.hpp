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
  /// Factorizations of smaller orders are passed on. At 256 an H200 takes 0.8, 0.4 and 0.8 of the time of 16 cores for
  /// dpotrf, dgetrf and dgesv, copies included; at 128 0.9, 0.4 and twice.
  std::int64_t min_order = 256;
  /// Solves with a factor that is there already are worth their copies from this order and so many right-hand sides on: at
  /// 512 and 256 they take 0.93 of the time, at 256 and 256 1.2 times as much.
  std::int64_t min_solve_order = 512, min_columns = 256;
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
