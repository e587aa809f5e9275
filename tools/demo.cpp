// trifactor demo: three systems, factored and solved on what is there.
#include "commands.hpp"
#include "device.hpp"
#include "failure.hpp"
#include "flops.hpp"
#include "random_matrix.hpp"
#include "residual.hpp"
#include "scalars.hpp"
#include "table.hpp"

#include <trifactor/trifactor.hpp>

#include <functional>

namespace program {
namespace {

using trifactor::Buffer;
using trifactor::Queue;

#if TRIFACTOR_HAS_F64
using Real = double;
#elif TRIFACTOR_HAS_F32
using Real = float;
#elif TRIFACTOR_HAS_C64
using Real = std::complex<double>;
#else
using Real = std::complex<float>;
#endif

constexpr std::uint64_t seed = 2024;
constexpr index_t small = 32, many = 10000;

/// count systems of n equations with one right-hand side each: on the host, and twice on the queue's device.
struct Systems {
  Systems(Queue& q, index_t size, index_t how_many)
      : n(size),
        count(how_many),
        A(n * n * count),
        B(n * count),
        X(n * count),
        pristine_A(q, n * n * count),
        pristine_B(q, n * count),
        work_A(q, n * n * count),
        work_B(q, n * count),
        pivots(q, n),
        info(q, count),
        queue(q) {}

  MatrixView<Real> matrix(index_t i) const { return {A.data() + i * n * n, n, n, n}; }
  MatrixView<Real> sides(const Buffer<Real>& from, index_t i) const { return {from.data() + i * n, n, 1, n}; }

  void upload() {
    Queue host = Queue::host();
    fill_random<Real>({B.data(), n, count, n}, seed + 1);
    trifactor::copy(host, static_cast<const Real*>(A.data()), queue, pristine_A.data(), A.size());
    trifactor::copy(host, static_cast<const Real*>(B.data()), queue, pristine_B.data(), B.size());
  }
  void restore() {
    trifactor::copy(queue, static_cast<const Real*>(pristine_A.data()), queue, work_A.data(), work_A.size());
    trifactor::copy(queue, static_cast<const Real*>(pristine_B.data()), queue, work_B.data(), work_B.size());
  }
  /// The largest residual ratio of the solutions in work_B.
  double ratio() {
    Queue host = Queue::host();
    trifactor::copy(queue, static_cast<const Real*>(work_B.data()), host, X.data(), X.size());
    double worst = 0;
    for (index_t i = 0; i < count; ++i) {
      const double r = solve_ratio<Real>(matrix(i), sides(X, i), sides(B, i));
      worst = r <= worst ? worst : r;  // NaN stays
    }
    return worst;
  }

  index_t n, count;
  Buffer<Real> A, B, X;
  Buffer<Real> pristine_A, pristine_B, work_A, work_B;
  Buffer<int> pivots, info;
  Queue& queue;
};

class Demo {
 public:
  explicit Demo(const std::string& device)
      : device_(device),
        queue_(device == "cuda" ? Queue::cuda() : Queue::host()),
        table_({{"what", 30, true},
                {"size", 16},
                {"scalar", 6, true},
                {"device", 6, true},
                {"ms", 10},
                {"Gflop/s", 9},
                {"residual ratio", 14},
                {"joules", 8}}) {}

  void run() {
    const index_t large = queue_.is_cuda() ? 8192 : 1024;
    table_.heading();
    positive_definite(large);
    general(large);
    batch();
    if (!(worst_ < good_ratio)) throw MatrixError(fmt::format("a residual ratio is not below {}", good_ratio));
  }

 private:
  void positive_definite(index_t n) {
    Systems s(queue_, n, 1);
    fill_positive_definite(s.matrix(0), seed);
    const MatrixView<Real> A{s.work_A.data(), n, n, n}, X{s.work_B.data(), n, 1, n};
    show("SPD system, Cholesky", s, cholesky_flops<Real>(double(n)), [&] {
      trifactor::cholesky(queue_, Uplo::Lower, A, s.info.data());
      trifactor::cholesky_solve(queue_, Uplo::Lower, A, X, s.info.data());
    });
  }

  void general(index_t n) {
    Systems s(queue_, n, 1);
    fill_random(s.matrix(0), seed);
    const MatrixView<Real> A{s.work_A.data(), n, n, n}, X{s.work_B.data(), n, 1, n};
    show("general system, LU", s, lu_flops<Real>(double(n)), [&] {
      trifactor::lu(queue_, A, s.pivots.data(), s.info.data());
      trifactor::lu_solve(queue_, trifactor::Op::None, A, s.pivots.data(), X, s.info.data());
    });
  }

  void batch() {
    Systems s(queue_, small, many);
    for (index_t i = 0; i < many; ++i)
      for (index_t j = 0; j < small; ++j) fill_positive_definite_column(s.matrix(i), j, seed + std::uint64_t(i));
    const trifactor::StridedBatch<Real> A{s.work_A.data(), small, small, small, small * small, many};
    const trifactor::StridedBatch<Real> X{s.work_B.data(), small, 1, small, small, many};
    show("batch of SPD systems, Cholesky", s, cholesky_flops<Real>(double(small)) * double(many), [&] {
      trifactor::cholesky(queue_, Uplo::Lower, A, s.info.data());
      trifactor::cholesky_solve(queue_, Uplo::Lower, A, X, s.info.data());
    });
  }

  void show(const char* what, Systems& s, double factor_flops, const std::function<void()>& work) {
    s.upload();
    const trifactor::Contender contender{work, [&] { s.restore(); }, &queue_};
    const auto m = trifactor::measure(contender, {.min_runs = 3, .max_seconds = 1, .energy_seconds = 0.5});
    s.restore(), work(), queue_.sync();
    const double ratio = s.ratio(), flops = factor_flops + solve_flops<Real>(double(s.n), 1) * double(s.count);
    worst_ = ratio <= worst_ ? worst_ : ratio;
    const std::string n = fmt::format("{} x {}", s.n, s.n);
    table_.row({what, s.count == 1 ? n : fmt::format("{} of {}", s.count, n), scalar_name<Real>, device_,
                fmt::format("{:.3f}", m.seconds * 1e3), fmt::format("{:.2f}", flops / m.seconds * 1e-9),
                fmt::format("{:.3g}", ratio), m.joules ? fmt::format("{:.3g}", *m.joules) : "-"});
  }

  std::string device_;
  Queue queue_;
  Table table_;
  double worst_ = 0;
};

}  // namespace

void demo(const std::string& device) {
  require_device(device);
  std::string gpu;
  for (const auto& d : trifactor::devices()) {
    if (d.number < 0 && device == "host") fmt::print("{}, {} threads, {}\n", d.name, d.cores, trifactor::blas());
    if (d.number == 0) gpu = d.name;
  }
  if (device == "cuda") fmt::print("{}\n", gpu);
  fmt::print("Each row factors and solves; a residual ratio below {} is as good as the precision allows.\n\n",
             good_ratio);
  Demo(device).run();
  if (device == "host" && !gpu.empty()) fmt::print("\nThe same on the {}: trifactor demo --device cuda\n", gpu);
}

}  // namespace program
