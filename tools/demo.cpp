// trifactor demo: a few systems, factored and solved on what is there, the CPU and the GPU side by side.
#include "commands.hpp"
#include "device.hpp"
#include "failure.hpp"
#include "flops.hpp"
#include "generate.hpp"
#include "random_matrix.hpp"
#include "residual.hpp"
#include "scalars.hpp"
#include "sparse_matrix.hpp"
#include "step.hpp"
#include "table.hpp"

#include <trifactor/trifactor.hpp>

#include <functional>
#include <memory>
#include <optional>

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

/// Where the rows of a system are computed.
struct Side {
  const char* device;
  Queue queue;
};

/// count systems of n equations with one right-hand side each, on the host.
struct Systems {
  Systems(index_t size, index_t how_many) : n(size), count(how_many), A(n * n * count), B(n * count) {
    fill_random<Real>({B.data(), n, count, n}, seed + 1);
  }

  MatrixView<Real> matrix(index_t i) const { return {A.data() + i * n * n, n, n, n}; }
  MatrixView<Real> sides(const Buffer<Real>& from, index_t i) const { return {from.data() + i * n, n, 1, n}; }

  index_t n, count;
  Buffer<Real> A, B;
};

/// The same in a queue's memory, twice: as they are given, and where calls work on them.
struct SystemsInQueue {
  SystemsInQueue(Queue& q, const Systems& systems)
      : given_A(q, systems.A),
        given_B(q, systems.B),
        A(q, systems.A.size()),
        B(q, systems.B.size()),
        pivots(q, systems.n),
        info(q, systems.count),
        queue(q),
        on_host(systems) {}

  void restore() {
    trifactor::copy(queue, given_A, queue, A);
    trifactor::copy(queue, given_B, queue, B);
  }
  /// The largest residual ratio of the solutions in B.
  double ratio() {
    Buffer<Real> X(B.size());
    B.to_host(X.data());
    double worst = 0;
    for (index_t i = 0; i < on_host.count; ++i) {
      const double r = solve_ratio<Real>(on_host.matrix(i), on_host.sides(X, i), on_host.sides(on_host.B, i));
      worst = worst_of(worst, r);
    }
    return worst;
  }

  Buffer<Real> given_A, given_B, A, B;
  Buffer<int> pivots, info;
  Queue& queue;
  const Systems& on_host;
};

class Demo {
 public:
  /// cores: of the host.
  Demo(std::vector<Side> sides, int cores)
      : sides_(std::move(sides)), table_(columns(sides_.size() > 1)), sizes_(choose_sizes(sides_, cores)) {}

  void run() {
    table_.heading();
    const std::function<void()> systems[] = {[&] { positive_definite(); }, [&] { general(); }, [&] { batch(); },
                                             [&] { sparse(); }};
    {
      Step step("demo");
      for (std::size_t i = 0; i < std::size(systems); ++i) {
        step.count(std::int64_t(i), std::int64_t(std::size(systems)));
        systems[i]();
      }
    }
    fmt::print("\n{}\n", note_);
    if (!(worst_ < good_ratio)) throw MatrixError(fmt::format("a residual ratio is not below {}", good_ratio));
  }

 private:
  struct Sizes {
    index_t large;  // the order of one matrix
    index_t cubes;  // of the sparse one, in each direction
  };

  /// What takes each side seconds at most: the CPU's cores decide wherever it is one of them.
  static Sizes choose_sizes(const std::vector<Side>& sides, int cores) {
    const bool cpu = !sides.front().queue.is_cuda(), gpu = sides.back().queue.is_cuda();
    if (!cpu) return {8192, 20};
    if (!gpu) return {1024, 10};
    constexpr int some_cores = 8;
    return cores >= some_cores ? Sizes{4096, 20} : Sizes{2048, 14};
  }

  static std::vector<Table::Column> columns(bool side_by_side) {
    std::vector<Table::Column> all = {{"what", 30, true}, {"size", 16},   {"scalar", 6, true},    {"device", 6, true},
                                      {"ms", 10},         {"Gflop/s", 9}, {"residual ratio", 14}, {"joules", 8}};
    if (side_by_side) all.insert(all.begin() + 6, {"times the CPU"});
    return all;
  }

  void positive_definite() {
    const index_t n = sizes_.large;
    const Systems systems(n, 1);
    fill_positive_definite(systems.matrix(0), seed);
    show_dense("SPD system, Cholesky", systems, cholesky_flops<Real>(double(n)), [n](SystemsInQueue& s) {
      const MatrixView<Real> A{s.A.data(), n, n, n};
      trifactor::cholesky(s.queue, Uplo::Lower, A, s.info);
      trifactor::cholesky_solve(s.queue, Uplo::Lower, A, s.B, s.info);
    });
  }

  void general() {
    const index_t n = sizes_.large;
    const Systems systems(n, 1);
    fill_random(systems.matrix(0), seed);
    show_dense("general system, LU", systems, lu_flops<Real>(double(n)), [n](SystemsInQueue& s) {
      const MatrixView<Real> A{s.A.data(), n, n, n};
      trifactor::lu(s.queue, A, s.pivots, s.info);
      trifactor::lu_solve(s.queue, trifactor::Op::None, A, s.pivots, s.B, s.info);
    });
  }

  void batch() {
    const Systems systems(small, many);
    for (index_t i = 0; i < many; ++i)
      for (index_t j = 0; j < small; ++j) fill_positive_definite_column(systems.matrix(i), j, seed + std::uint64_t(i));
    const double flops = cholesky_flops<Real>(double(small)) * double(many);
    show_dense("batch of SPD systems, Cholesky", systems, flops, [](SystemsInQueue& s) {
      const auto A = trifactor::strided(s.A, small, small, {.count = many});
      const auto X = trifactor::strided(s.B, small, 1, {.count = many});
      trifactor::cholesky(s.queue, Uplo::Lower, A, s.info);
      trifactor::cholesky_solve(s.queue, Uplo::Lower, A, X, s.info);
    });
  }

  void sparse() {
    const std::string word = fmt::format("elastic3d:{}", sizes_.cubes);
    SparseMatrix<Real> A;
    timed_step("generating", [&] { A = converted<Real>(generate(word)); });
    std::shared_ptr<const trifactor::SparsePlan> plan;
    const double analyzed = timed_step("analysing", [&] { plan = trifactor::analyze(A.pattern()); });
    note_ = fmt::format(
        "The sparse system is that of 'trifactor generate {}'. Its pattern was analysed once, in {:.3f} s: {} entries "
        "in A, {} in L.",
        word, analyzed, A.entries(), plan->factor_nonzeros());
    Matrix<Real> B(A.n, 1);
    fill_random(B.view(), seed + 1);
    Queue host = Queue::host();
    const double solve = 2 * double(plan->factor_nonzeros());  // multiplications, and as many additions
    const double flops = plan->flops() * (trifactor::ComplexScalar<Real> ? 4 : 1) + program::flops<Real>(solve, solve);
    std::optional<double> first;
    for (Side& side : sides_) {
      const InQueue<Real> values(side.queue, A.value.data(), A.entries());
      trifactor::SparseCholesky<Real> L(side.queue, plan);
      Matrix<Real> there(side.queue, A.n, 1);
      const auto restore = [&] { trifactor::copy(host, B, side.queue, there); };
      const auto work = [&] {
        L.factor(values.values());
        L.solve(there);
        side.queue.sync();
      };
      const auto m = measured({work, restore});
      restore(), work();  // sensors are read while work repeats on its own results
      const double ratio = solve_ratio<Real>(A, there.to_host(), B);
      show("sparse SPD system, Cholesky", fmt::format("{} x {}", A.n, A.n), side, m, flops, ratio, first);
    }
  }

  static trifactor::Measurement measured(const trifactor::Contender& work) {
    return trifactor::measure(work, {.min_runs = 3, .max_seconds = 0.5, .energy_seconds = 0.5});
  }

  void show_dense(const char* what, const Systems& systems, double factor_flops,
                  const std::function<void(SystemsInQueue&)>& solve) {
    const std::string n = fmt::format("{} x {}", systems.n, systems.n);
    const double flops = factor_flops + solve_flops<Real>(double(systems.n), 1) * double(systems.count);
    std::optional<double> first;
    for (Side& side : sides_) {
      SystemsInQueue s(side.queue, systems);
      const auto m = measured({[&] { solve(s); }, [&] { s.restore(); }, &side.queue});
      s.restore(), solve(s), side.queue.sync();
      show(what, systems.count == 1 ? n : fmt::format("{} of {}", systems.count, n), side, m, flops, s.ratio(), first);
    }
  }

  /// A row. first: the seconds of the first side, once they are known.
  void show(const char* what, const std::string& size, const Side& side, const trifactor::Measurement& m, double flops,
            double ratio, std::optional<double>& first) {
    if (!first) first = m.seconds;
    worst_ = worst_of(worst_, ratio);
    std::vector<std::string> cells = {what,
                                      size,
                                      scalar_name<Real>,
                                      side.device,
                                      fmt::format("{:.3f}", m.seconds * 1e3),
                                      fmt::format("{:.2f}", flops / m.seconds * 1e-9),
                                      fmt::format("{:.3g}", ratio),
                                      m.joules ? fmt::format("{:.3g}", *m.joules) : "-"};
    if (sides_.size() > 1) cells.insert(cells.begin() + 6, fmt::format("{:.1f}", *first / m.seconds));
    const StepsHidden hidden;
    table_.row(cells);
  }

  std::vector<Side> sides_;  // the CPU first, where it is one of them
  Table table_;
  Sizes sizes_;
  std::string note_;
  double worst_ = 0;
};

}  // namespace

void demo(const std::string& device) {
  require_device(device);
  const std::string why_no_gpu = trifactor::why_no_cuda();
  const bool cpu = device != "cuda", gpu = device != "host" && why_no_gpu.empty();
  int cores = 0;
  for (const auto& d : trifactor::devices()) {
    if (d.number < 0) cores = d.cores;
    if (d.number < 0 && cpu) fmt::print("CPU: {}, {} threads, {}\n", d.name, d.cores, trifactor::blas());
    if (d.number == 0 && gpu) fmt::print("GPU: {}\n", d.name);
  }
  if (device == "auto" && !gpu) fmt::print("Only the CPU is used: {}.\n", why_no_gpu);
  fmt::print("Each row factors and solves; a residual ratio below {} is as good as the precision allows.\n\n",
             good_ratio);
  std::vector<Side> sides;
  if (cpu) sides.push_back({"host", Queue::host()});
  if (gpu) sides.push_back({"cuda", Queue::cuda()});
  Demo(std::move(sides), cores).run();
}

}  // namespace program
