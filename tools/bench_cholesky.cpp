// Rows for the Cholesky factorization of one matrix: several modes and peers side by side.
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

constexpr CholeskyMode modes[] = {
    {"auto", Mode::Auto, ""},
    {"native", Mode::Native, ""},
    {"native-left", Mode::Native, "whole=0 persistent=0 looking=left"},
    {"native-right", Mode::Native, "whole=0 persistent=0 looking=right"},
    {.name = "persistent", .panels = Mode::Native, .tuning = "whole=0 persistent=2147483647", .needs_cuda = true},
    {.name = "hybrid", .panels = Mode::Hybrid, .tuning = "", .needs_cuda = true},
    {.name = "hybrid-left", .panels = Mode::Hybrid, .tuning = "looking=left", .needs_cuda = true},
    {.name = "hybrid-right", .panels = Mode::Hybrid, .tuning = "looking=right", .needs_cuda = true},
    {.name = "host", .panels = Mode::Auto, .tuning = "", .on_host = true},
    {.name = "lapack", .panels = Mode::Auto, .tuning = "", .on_host = true, .is_peer = true},
    {.name = "cusolver", .panels = Mode::Auto, .tuning = "", .needs_cuda = true, .is_peer = true},
};

/// One way to factor, with its own turn through the operands.
template <Scalar T>
struct Entrant {
  Entrant(Bench& bench, const std::string& name, Operands<T>& operands, index_t order)
      : mode(cholesky_mode(name)), turn(operands), n(order), pad(bench.options.pad) {
    const BenchOptions& o = bench.options;
    const Uplo uplo = o.triangle();
    if (mode.is_peer) {
      peer = make_peer<T>(bench, name);
      queue = &peer->queue();
      factor = peer->cholesky(uplo, n);
      return;
    }
    queue = mode.on_host ? &bench.host : &bench.queue;
    info = Buffer<int>(*queue, 1);
    tuning = joined_tuning(o.tuning, mode.tuning);
    const trifactor::CholeskyOptions options{.mode = mode.panels, .tuning = tuning};
    queue->reserve(trifactor::cholesky_scratch(*queue, uplo, square(operands.buffer(0), n, pad), options));
    factor = [q = queue, uplo, options, info = info.data()](MatrixView<T> A) {
      trifactor::cholesky(*q, uplo, A, info, options);
    };
  }

  MatrixView<T> matrix() const { return square(turn.data(), n, pad); }
  Contender contender() {
    return {[this] { factor(matrix()); }, [this] { turn.restore(); }, queue};
  }
  void check() {
    if (peer)
      peer->check();
    else
      require_success(fmt::format("cholesky --mode {}", mode.name), info);
  }
  /// The ratio of a factor that is made for it; A is empty where it was made on the device.
  double residual(Bench& bench, const Matrix<T>& A) {
    turn.restore();
    factor(matrix());
    check();
    if constexpr (TRIFACTOR_HAS_CUDA)
      if (A.rows() == 0) return cholesky_probe<T>(*queue, bench.options.triangle(), matrix(), bench.options.seed);
    const OnHost<T> L(*queue, bench.host, turn.data(), (n + pad) * n);
    return cholesky_ratio<T>(bench.options.triangle(), {A.data(), n, n, n + pad}, {L.data(), n, n, n + pad});
  }

  const CholeskyMode& mode;
  Turn<T> turn;
  index_t n, pad;
  Queue* queue = nullptr;
  std::unique_ptr<Peer<T>> peer;
  Buffer<int> info;
  std::string tuning;
  std::function<void(MatrixView<T>)> factor;
  trifactor::Measurement measured;
};

}  // namespace

const CholeskyMode& cholesky_mode(const std::string& name) {
  std::string known;
  for (const CholeskyMode& mode : modes) {
    if (name == mode.name) return mode;
    known += fmt::format("{}, ", mode.name);
  }
  throw InputError(fmt::format("--mode: '{}' is not one of {}all", name, known));
}

std::vector<std::string> all_cholesky_modes(bool cuda) {
  if (!cuda) return {"auto", "native-left", "native-right", "lapack"};
  return {"auto", "native-left", "native-right", "persistent", "hybrid", "lapack", "cusolver"};
}

template <Scalar T>
std::vector<Row> bench_cholesky(Bench& bench, index_t n) {
  const BenchOptions& o = bench.options;
  std::vector<std::string> names = o.modes;
  const std::size_t shown = names.size();
  std::size_t peer = names.size();  // its place; it may be one of those that are shown
  if (o.against != "none") {
    peer = std::size_t(std::find(names.begin(), names.end(), o.against) - names.begin());
    if (peer == shown) names.push_back(o.against);
  }
  const auto apart = [&](const std::string& name) { return bench.queue.is_cuda() && cholesky_mode(name).on_host; };

  const bool both_memories = std::any_of(names.begin(), names.end(), apart);
  const bool on_device = bench.queue.is_cuda() && !both_memories;
  if (!on_device) require_copies<T>(both_memories ? 4.1 : 3.1, n);
  const index_t size = (n + o.pad) * n;
  Matrix<T> A;  // (n + pad, n): the matrix and what lies below it
  Operands<T> operands = [&] {
    if constexpr (TRIFACTOR_HAS_CUDA)
      if (on_device) {
        Buffer<T> made(bench.queue, size);
        fill_positive_definite(bench.queue, square(made.data(), n, o.pad), o.seed);
        return Operands<T>(bench.queue, std::move(made));
      }
    A = Matrix<T>(n + o.pad, n);
    fill_positive_definite(square(A.data(), n, o.pad), o.seed);
    return Operands<T>(bench.queue, A.data(), size);
  }();
  std::optional<Operands<T>> on_host;
  if (both_memories) on_host.emplace(bench.host, A.data(), size);
  std::vector<std::unique_ptr<Entrant<T>>> entrants;
  for (const std::string& name : names)
    entrants.push_back(std::make_unique<Entrant<T>>(bench, name, apart(name) ? *on_host : operands, n));

  // In turn: those of one memory with the peer, then the others, so that the device does not cool down in between.
  for (const bool others : {false, true}) {
    std::vector<Contender> contenders;
    std::vector<Entrant<T>*> group;
    for (std::size_t i = 0; i < entrants.size(); ++i)
      if ((apart(names[i]) && i != peer) == others) {
        group.push_back(entrants[i].get());
        contenders.push_back(group.back()->contender());
      }
    const double rows = double(group.size() - (peer < names.size() && !others && group.size() > 1 ? 1 : 0));
    const auto measured = trifactor::measure(
        contenders, {.min_runs = others ? 3 : 5, .max_seconds = o.seconds * rows, .energy_seconds = o.energy});
    for (std::size_t i = 0; i < group.size(); ++i) group[i]->measured = measured[i];
  }
  for (const auto& entrant : entrants) entrant->check();

  std::vector<Row> rows;
  for (std::size_t i = 0; i < shown; ++i) {
    Entrant<T>& e = *entrants[i];
    Row row = start_row(bench, scalar_name<T>, n);
    row.ld = n + o.pad;
    row.uplo = o.uplo;
    row.mode = e.mode.name;
    if (!e.queue->is_cuda()) row.device = "host";
    row.tuning = e.tuning.empty() ? std::nullopt : std::optional(e.tuning);
    row.flops = cholesky_flops<T>(double(n));
    row.columns = double(n);
    row.seconds = e.measured.seconds;
    row.spread = e.measured.spread;
    row.runs = e.measured.runs;
    row.host_seconds = e.measured.host_seconds;
    row.joules = e.measured.joules, row.energy_seconds = e.measured.energy_seconds;
    if (peer < names.size() && peer != i) {
      row.peer = names[peer];
      row.peer_seconds = entrants[peer]->measured.seconds;
      row.peer_spread = entrants[peer]->measured.spread;
      row.peer_joules = entrants[peer]->measured.joules;
      row.peer_energy_seconds = entrants[peer]->measured.energy_seconds;
    }
    row.residual = e.residual(bench, A);
    rows.push_back(row);
  }
  return rows;
}

#define TRIFACTOR_BENCH_CHOLESKY(T) template std::vector<Row> bench_cholesky<T>(Bench&, index_t);
TRIFACTOR_FOR_EACH_SCALAR(TRIFACTOR_BENCH_CHOLESKY)

}  // namespace program
