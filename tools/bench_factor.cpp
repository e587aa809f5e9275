// Rows for the Cholesky or LU factorization of one matrix: several modes and peers side by side.
#include "bench.hpp"
#include "failure.hpp"
#include "flops.hpp"
#include "random_matrix.hpp"
#include "residual.hpp"
#include "scalars.hpp"

#include <fmt/core.h>
#include <trifactor/trifactor.hpp>

#include <optional>

namespace program {
namespace {

using trifactor::Mode;

constexpr FactorMode modes[] = {
    {"auto", Mode::Auto},
    {"native", Mode::Native},
    {.name = "native-left",
     .panels = Mode::Native,
     .tuning = "whole=0 persistent=0 looking=left",
     .only_of = "cholesky"},
    {.name = "native-right",
     .panels = Mode::Native,
     .tuning = "whole=0 persistent=0 looking=right",
     .only_of = "cholesky"},
    {.name = "persistent",
     .panels = Mode::Native,
     .tuning = "whole=0 persistent=2147483647",
     .needs_cuda = true,
     .only_of = "cholesky"},
    {.name = "native-columns",
     .panels = Mode::Native,
     .tuning = "by_rows=2147483647",
     .needs_cuda = true,
     .only_of = "lu"},
    {.name = "native-rows", .panels = Mode::Native, .tuning = "by_rows=1", .needs_cuda = true, .only_of = "lu"},
    {.name = "hybrid", .panels = Mode::Hybrid, .needs_cuda = true},
    {.name = "hybrid-left",
     .panels = Mode::Hybrid,
     .tuning = "looking=left",
     .needs_cuda = true,
     .only_of = "cholesky"},
    {.name = "hybrid-right",
     .panels = Mode::Hybrid,
     .tuning = "looking=right",
     .needs_cuda = true,
     .only_of = "cholesky"},
    {.name = "host", .on_host = true},
    {.name = "lapack", .on_host = true, .is_peer = true},
    {.name = "cusolver", .needs_cuda = true, .is_peer = true},
};

/// One way to factor, with its own turn through the operands.
template <Scalar T>
struct Entrant {
  Entrant(Bench& bench, const std::string& name, Operands<T>& operands, index_t rows, index_t columns)
      : options(bench.options), mode(factor_mode(options.op, name)), turn(operands), m(rows), n(columns) {
    const Uplo uplo = options.triangle();
    if (mode.is_peer) {
      peer = make_peer<T>(bench, name);
      queue = &peer->queue();
      factor = options.factors_lu() ? peer->lu(m, n) : peer->cholesky(uplo, n);
      return;
    }
    queue = mode.on_host ? &bench.host : &bench.queue;
    info = Buffer<int>(*queue, 1);
    tuning = joined_tuning(options.tuning, mode.tuning);
    if (options.factors_lu()) {
      pivots = Buffer<int>(*queue, std::min(m, n));
      const trifactor::LuOptions how{.mode = mode.panels, .tuning = tuning};
      queue->reserve(trifactor::lu_scratch(*queue, matrix(), how));
      factor = [this, how](MatrixView<T> A) { trifactor::lu(*queue, A, pivots.data(), info.data(), how); };
    } else {
      const trifactor::CholeskyOptions how{.mode = mode.panels, .tuning = tuning};
      queue->reserve(trifactor::cholesky_scratch(*queue, uplo, matrix(), how));
      factor = [this, uplo, how](MatrixView<T> A) { trifactor::cholesky(*queue, uplo, A, info.data(), how); };
    }
  }
  Entrant(const Entrant&) = delete;

  MatrixView<T> matrix() const { return {turn.data(), m, n, m + options.pad}; }
  Contender contender() {
    return {[this] { factor(matrix()); }, [this] { turn.restore(); }, queue};
  }
  void check() {
    if (peer)
      peer->check();
    else
      require_success(fmt::format("{} --mode {}", options.op, mode.name), info);
  }
  /// The ratio of a factor that is made for it; A is empty where it was made on the device.
  double residual(Bench& bench, const Matrix<T>& A) {
    turn.restore();
    factor(matrix());
    check();
    const index_t ld = m + options.pad;
    if constexpr (TRIFACTOR_HAS_CUDA)
      if (A.rows() == 0) return cholesky_probe<T>(*queue, options.triangle(), matrix(), options.seed);
    const OnHost<T> factored(*queue, bench.host, turn.data(), ld * n);
    const MatrixView<const T> given{A.data(), m, n, ld}, result{factored.data(), m, n, ld};
    if (!options.factors_lu()) return cholesky_ratio<T>(options.triangle(), given, result);
    const std::vector<int> exchanged = peer ? peer->last_pivots() : pivots.to_host();
    return lu_ratio<T>(given, result, exchanged);
  }

  const BenchOptions& options;
  const FactorMode& mode;
  Turn<T> turn;
  index_t m, n;
  Queue* queue = nullptr;
  std::unique_ptr<Peer<T>> peer;
  Buffer<int> info, pivots;
  std::string tuning;
  std::function<void(MatrixView<T>)> factor;
  trifactor::Measurement measured;
};

/// A matrix to factor, in the queue's memory; A is the same on the host, or stays empty where it is made on the device.
template <Scalar T>
Operands<T> make_operands(Bench& bench, index_t m, index_t n, bool on_device, Matrix<T>& A) {
  const BenchOptions& o = bench.options;
  const index_t ld = m + o.pad;
  if constexpr (TRIFACTOR_HAS_CUDA)
    if (on_device) {
      Buffer<T> made(bench.queue, ld * n);
      fill_positive_definite(bench.queue, square(made.data(), n, o.pad), o.seed);
      return Operands<T>(bench.queue, std::move(made));
    }
  A = Matrix<T>(ld, n);
  if (o.factors_lu())
    fill_random(A.view(), o.seed);
  else
    fill_positive_definite(square(A.data(), n, o.pad), o.seed);
  return Operands<T>(bench.queue, A.data(), ld * n);
}

/// What was measured of an entrant, beside the peer's.
template <Scalar T>
Row factor_row(Bench& bench, const Entrant<T>& e, const Entrant<T>* peer) {
  const BenchOptions& o = bench.options;
  Row row = start_row(bench, scalar_name<T>, e.n);
  if (o.op == "panel") row.m = e.m;
  row.ld = e.m + o.pad;
  if (!o.factors_lu()) row.uplo = o.uplo;
  row.mode = e.mode.name;
  if (!e.queue->is_cuda()) row.device = "host";
  row.tuning = e.tuning.empty() ? std::nullopt : std::optional(e.tuning);
  row.flops = o.factors_lu() ? lu_flops<T>(double(e.m), double(e.n)) : cholesky_flops<T>(double(e.n));
  row.columns = double(std::min(e.m, e.n));
  row.seconds = e.measured.seconds;
  row.spread = e.measured.spread;
  row.runs = e.measured.runs;
  row.host_seconds = e.measured.host_seconds;
  row.joules = e.measured.joules, row.energy_seconds = e.measured.energy_seconds;
  if (peer && peer != &e) {
    row.peer = peer->mode.name;
    row.peer_seconds = peer->measured.seconds;
    row.peer_spread = peer->measured.spread;
    row.peer_joules = peer->measured.joules;
    row.peer_energy_seconds = peer->measured.energy_seconds;
  }
  return row;
}

}  // namespace

const FactorMode& factor_mode(const std::string& op, const std::string& name) {
  std::string known;
  for (const FactorMode& mode : modes) {
    if (mode.only_of && mode.only_of != std::string_view(op == "cholesky" ? "cholesky" : "lu")) continue;
    if (name == mode.name) return mode;
    known += fmt::format("{}, ", mode.name);
  }
  throw InputError(fmt::format("--mode: '{}' is not one of {}all", name, known));
}

std::vector<std::string> all_modes(const std::string& op, bool cuda) {
  if (op != "cholesky")
    return cuda ? std::vector<std::string>{"auto", "native-columns", "native-rows", "hybrid", "lapack", "cusolver"}
                : std::vector<std::string>{"auto", "lapack"};
  if (!cuda) return {"auto", "native-left", "native-right", "lapack"};
  return {"auto", "native-left", "native-right", "persistent", "hybrid", "lapack", "cusolver"};
}

template <Scalar T>
std::vector<Row> bench_factor(Bench& bench, index_t m, index_t n) {
  const BenchOptions& o = bench.options;
  std::vector<std::string> names = o.modes;
  const std::size_t shown = names.size();
  std::size_t peer = names.size();  // its place; it may be one of those that are shown
  if (o.against != "none") {
    peer = std::size_t(std::find(names.begin(), names.end(), o.against) - names.begin());
    if (peer == shown) names.push_back(o.against);
  }
  const auto apart = [&](const std::string& name) { return bench.queue.is_cuda() && factor_mode(o.op, name).on_host; };

  const bool both_memories = std::any_of(names.begin(), names.end(), apart);
  const bool on_device = bench.queue.is_cuda() && !both_memories && !o.factors_lu();
  if (!on_device) require_memory("this row", (both_memories ? 4.1 : 3.1) * double(m + o.pad) * double(n) * sizeof(T));
  Matrix<T> A;  // (m + pad, n): the matrix and what lies below it
  Operands<T> operands = make_operands<T>(bench, m, n, on_device, A);
  std::optional<Operands<T>> on_host;
  if (both_memories) on_host.emplace(bench.host, A.data(), (m + o.pad) * n);
  std::vector<std::unique_ptr<Entrant<T>>> entrants;
  for (const std::string& name : names)
    entrants.push_back(std::make_unique<Entrant<T>>(bench, name, apart(name) ? *on_host : operands, m, n));

  // In turn: those of one memory with the peer, then the others, so that the device does not cool down in between.
  for (const bool others : {false, true}) {
    std::vector<Contender> contenders;
    std::vector<Entrant<T>*> group;
    for (std::size_t i = 0; i < entrants.size(); ++i)
      if ((apart(names[i]) && i != peer) == others) {
        group.push_back(entrants[i].get());
        contenders.push_back(group.back()->contender());
      }
    if (group.empty()) continue;
    const double rows = double(group.size() - (peer < names.size() && !others && group.size() > 1 ? 1 : 0));
    const auto measured =
        measure_noted(o, fmt::format("{} {} n={} {}", o.op, scalar_name<T>, n, group.front()->mode.name), contenders,
                      {.min_runs = others ? 3 : 5, .max_seconds = o.seconds * rows, .energy_seconds = o.energy});
    for (std::size_t i = 0; i < group.size(); ++i) group[i]->measured = measured[i];
  }
  for (const auto& entrant : entrants) entrant->check();

  std::vector<Row> rows;
  for (std::size_t i = 0; i < shown; ++i) {
    rows.push_back(factor_row<T>(bench, *entrants[i], peer < names.size() ? entrants[peer].get() : nullptr));
    rows.back().residual = entrants[i]->residual(bench, A);
  }
  return rows;
}

#define TRIFACTOR_BENCH_FACTOR(T) template std::vector<Row> bench_factor<T>(Bench&, index_t, index_t);
TRIFACTOR_FOR_EACH_SCALAR(TRIFACTOR_BENCH_FACTOR)

}  // namespace program
