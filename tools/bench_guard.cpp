// trifactor bench --preset guard: few rows that stand for every promise of README, to be compared from commit to
// commit.
#include "bench_typed.hpp"
#include "device.hpp"
#include "failure.hpp"
#include "scalars.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <span>

namespace program {
namespace {

/// What is measured, as it would be typed after `trifactor bench`, in this scalar.
struct GuardLine {
  const char *line, *scalar;
};

// 36 rows, of which the largest takes 120 ms.
constexpr GuardLine lines_on_cuda[] = {
    {"cholesky --n 512,2048,8192,24576", "f64"},
    {"cholesky --n 1024,4096,16384", "f32"},
    {"cholesky --n 2048", "c64"},
    {"cholesky --n 4096 --uplo upper", "f64"},
    {"solve --n 4096 --rhs 1,64,1024", "f64"},
    {"solve --n 4096 --rhs 1,64 --method lu", "f64"},
    {"inverse --n 4096", "f64"},
    {"lu --n 512,2048,8192", "f64"},
    {"lu --n 4096", "f32"},
    {"batch --n 4,16,64 --count 10000", "f64"},
    {"batch --n 32,100 --count 10000", "f32"},
    {"batch --n 256,512 --count 1000", "f64"},
    {"batch --n 128 --sizes 96 --count 1000", "f64"},
    {"batch --method lu --n 16,128 --count 1000", "f64"},
    {"batch --method factor-solve --n 32 --count 10000", "f64"},
    {"sparse --matrix elastic3d:30 --rhs 1,64", "f64"},
};

// 29 rows that two cores measure in half a minute.
constexpr GuardLine lines_on_host[] = {
    {"cholesky --n 128,512,768", "f64"},
    {"cholesky --n 512", "f32"},
    {"cholesky --n 256", "c64"},
    {"cholesky --n 512 --uplo upper", "f64"},
    {"solve --n 512 --rhs 1,64", "f64"},
    {"solve --n 512 --rhs 1,64 --method lu", "f64"},
    {"inverse --n 512", "f64"},
    {"lu --n 128,512", "f64"},
    {"lu --n 512", "f32"},
    {"batch --n 4,16,64 --count 500", "f64"},
    {"batch --n 32 --count 2000", "f32"},
    {"batch --n 128 --count 100", "f64"},
    {"batch --n 64 --sizes 48 --count 200", "f64"},
    {"batch --method lu --n 16,48 --count 200", "f64"},
    {"batch --method factor-solve --n 32 --count 1000", "f64"},
    {"sparse --matrix poisson3d:12 --rhs 1,16", "f64"},
};

constexpr double guard_cuda_seconds = 1, guard_host_seconds = 0.3;
constexpr std::int64_t guard_seed = 1;  // the same matrices every time

}  // namespace

void run_guard(const GuardOptions& o) {
  const std::string device = device_or_default(o.device);
  const bool cuda = device == "cuda";
  const bool has_cudss = cuda && !peer_program("cudss").empty();
  const std::vector<std::string> scalars = scalar_names();
  std::string wrong;
  bool any = false;
  for (const GuardLine& guard :
       cuda ? std::span<const GuardLine>(lines_on_cuda) : std::span<const GuardLine>(lines_on_host)) {
    const bool built = std::find(scalars.begin(), scalars.end(), guard.scalar) != scalars.end();
    if (!built) continue;
    any = true;
    if (!o.json) fmt::print("\nbench {} --scalar {}\n", guard.line, guard.scalar);
    try {
      run_bench_line(guard.line, [&](Typed& typed) {
        typed.scalars = guard.scalar;
        typed.seed = guard_seed;
        typed.part_of = "guard";
        typed.options.device = device;
        typed.options.seconds = o.seconds >= 0 ? o.seconds : cuda ? guard_cuda_seconds : guard_host_seconds;
        typed.options.json = o.json;
        if (typed.options.op == "sparse") typed.options.against = has_cudss ? "cudss" : "none";
      });
    } catch (const MatrixError& e) {
      if (wrong.empty()) wrong = e.what();
    }
  }
  if (!any) throw InputError("--preset guard: this build has none of f64, f32 and c64");
  if (!wrong.empty()) throw MatrixError(wrong);
}

}  // namespace program
