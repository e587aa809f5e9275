// trifactor bench: measures row after row.
#include "bench.hpp"

#include "device.hpp"
#include "failure.hpp"
#include "file_use.hpp"
#include "residual.hpp"
#include "scalars.hpp"
#include "step.hpp"

#include <fmt/core.h>
#include <trifactor/info.hpp>

#include <algorithm>
#include <memory>
#include <utility>

namespace program {
namespace {

/// The device's name, and how many threads a host queue has.
std::string machine_name(const Queue& queue) {
  for (const auto& device : trifactor::devices())
    if (device.number == queue.device())
      return queue.is_cuda() ? device.name : fmt::format("{}, {} threads", device.name, device.cores);
  return "unknown";
}

/// Those of --leaf, or powers of two from 64 up to a tile that is not halved at all.
std::vector<index_t> leaves(const BenchOptions& o, index_t n) {
  if (!o.leaf.empty()) return o.leaf;
  std::vector<index_t> leaves;
  for (index_t leaf = 64; leaf < n; leaf *= 2) leaves.push_back(leaf);
  leaves.push_back(n);
  return leaves;
}

/// From which of the measured sizes on the device is faster, copies and all: the last one where it is not ends the
/// others.
void print_crossover(const std::string& scalar, const std::vector<Row>& rows) {
  const StepsHidden hidden;
  std::int64_t from = 0;  // 0: it is not
  for (const Row& row : rows)
    if (row.peer_seconds && *row.peer_seconds > row.seconds)
      from = from > 0 ? from : row.n;
    else
      from = 0;
  if (from > 0)
    fmt::print("{}: the device is faster from n = {} on: gpu_from={}\n", scalar, from, from);
  else
    fmt::print("{}: the device is not faster at the largest n\n", scalar);
}

constexpr double power_hertz = 50;

using Take = std::function<void(const Row&)>;
using Pieces = std::vector<std::function<void()>>;

/// Throws InputError where sizes were left out, as they do not fit together, until there is nothing to measure.
void require_pieces(const BenchOptions& o, const Pieces& pieces) {
  if (!pieces.empty()) return;
  if (o.op == "tile")
    throw InputError(fmt::format("--ib: {} leaves no steps: it must be less than --n and --leaf", o.ib.front()));
  if (o.op == "swap")
    throw InputError(fmt::format("--nb: {} leaves no pivots: it must be at most --m", o.nb.front()));
  throw InputError(fmt::format("--nb: {} leaves no update: it must be less than --n", o.nb.front()));
}

RowPrinter::Columns table_of(const BenchOptions& o) {
  using Columns = RowPrinter::Columns;
  if (o.op == "panel") return Columns::Panel;
  if (o.op == "swap") return Columns::Swap;
  if (o.op == "solve") return Columns::Solve;
  if (o.op == "update") return Columns::Update;
  if (o.op == "tile") return Columns::Tile;
  if (o.op == "sparse") return Columns::Sparse;
  if (o.op != "batch") return Columns::Dense;
  return o.is_ragged() ? Columns::Ragged : o.solves_batch() ? Columns::SolveBatch : Columns::Batch;
}

/// Adds what is measured with one tuning of a batch of order n.
template <Scalar T>
void add_batch_pieces(Bench& bench, std::string& tuning, index_t n, const Take& take, Pieces& pieces) {
  const BenchOptions& o = bench.options;
  for (const std::string& wanted : o.tunings) {
    const auto add = [&](auto measure) {
      pieces.push_back([&tuning, wanted, measure] {
        tuning = wanted;
        measure();
      });
    };
    if (o.solves_batch())
      for (const index_t nrhs : o.nrhs) add([=, &bench] { take(bench_solve_batch<T>(bench, n, nrhs)); });
    else
      add([=, &bench, &o] { take(o.method == "lu" ? bench_lu_batch<T>(bench, n) : bench_batch<T>(bench, n)); });
  }
}

/// Adds what is measured with one scalar, in its order; each piece gives one row or a few. `tuning` is that of the
/// options, which batches change.
template <Scalar T>
void add_pieces(Bench& bench, const std::vector<SparseSource>& sources, std::string& tuning, const Take& take,
                Pieces& pieces) {
  const BenchOptions& o = bench.options;
  const auto add = [&](std::function<void()> piece) { pieces.push_back(std::move(piece)); };
  for (const SparseSource& source : sources) add([=, &bench] { bench_sparse<T>(bench, source, take); });
  if (o.op == "sparse") return;
  const auto values = std::make_shared<std::vector<Row>>();
  for (const index_t n : o.n) {
    const auto add_factor = [&](index_t m) {
      add([=, &bench] {
        for (const Row& row : bench_factor<T>(bench, m, n)) take(row);
      });
    };
    if (o.op == "cholesky" || o.op == "lu") add_factor(n);
    if (o.op == "panel")
      for (const index_t m : o.m) add_factor(m);
    if (o.op == "swap")
      for (const index_t m : o.m)
        for (const index_t nb : o.nb)
          if (nb <= m) add([=, &bench] { take(bench_swap<T>(bench, m, n, nb)); });
    if (o.op == "update")
      for (const index_t nb : o.nb)
        if (nb < n) add([=, &bench] { bench_update<T>(bench, n, nb, take); });
    if (o.op == "tile")
      for (const index_t leaf : leaves(o, n))
        for (const std::string& form : o.forms) {
          const auto add_tile = [&](index_t ib) {
            add([=, &bench] { take(bench_tile<T>(bench, n, leaf, form, ib)); });
          };
          if (form == "inclusive") add_tile(0);
          for (const index_t ib : o.ib)  // steps as wide as what is left of the tile are no steps
            if (form == "exclusive" && ib < std::min(leaf, n)) add_tile(ib);
        }
    if (o.op == "value") add([=, &bench] { take(values->emplace_back(bench_value<T>(bench, n))); });
    if (o.op == "inverse") add([=, &bench] { take(bench_inverse<T>(bench, n)); });
    if (o.op == "batch") add_batch_pieces<T>(bench, tuning, n, take, pieces);
    if (o.op == "solve")
      for (const index_t nrhs : o.nrhs) add([=, &bench] { take(bench_solve<T>(bench, n, nrhs)); });
  }
  if (o.op == "value" && bench.queue.is_cuda() && !o.json) add([=] { print_crossover(scalar_name<T>, *values); });
}

}  // namespace

void run_bench(BenchOptions o) {
  require_device(o.device);
  check_file_use(o.matrices, {o.power});
  std::vector<SparseSource> sources;  // opened once: they may be pipes
  for (const std::string& matrix : o.matrices) sources.emplace_back(matrix, o.seed);
  Bench bench{
      .options = o, .queue = o.device == "cuda" ? Queue::cuda() : Queue::host(), .machine = {}, .copy_rate = {}};
  bench.machine = machine_name(bench.queue);
  std::size_t matrix_width = 0;
  for (const std::string& matrix : o.matrices) matrix_width = std::max(matrix_width, matrix.size());
  RowPrinter printer(o.json, table_of(o), matrix_width);
  std::string wrong;
  const Take take = [&](const Row& row) {
    printer.print(row);
    const double good = row.op == "solve" && row.method == "lu" ? good_lu_solve_ratio(row.n) : good_ratio;
    if (row.residual && !(*row.residual < good) && wrong.empty())
      wrong = fmt::format("{} {} {} n = {}: the residual ratio {:.3g} is not below {:.3g}, so this row is no result",
                          row.op, row.mode, row.scalar, row.n, *row.residual, good);
  };
  Pieces pieces;
  for (const std::string& scalar : o.scalars)
    with_scalar(scalar, [&]<class T>(std::type_identity<T>) { add_pieces<T>(bench, sources, o.tuning, take, pieces); });
  require_pieces(o, pieces);
  {
    Step step("bench " + o.op);
    if (!o.power.empty()) o.power_log = std::make_shared<PowerLog>(o.power, power_hertz);
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      step.count(std::int64_t(i), std::int64_t(pieces.size()));
      pieces[i]();
    }
    step.count(1, 1);
    if (o.power_log) o.power_log->finish();
  }
  if (!wrong.empty()) throw MatrixError(wrong);
}

trifactor::Mode BenchOptions::panels() const {
  return mode_named(mode);
}

Row start_row(const Bench& bench, const char* scalar, index_t n) {
  const BenchOptions& o = bench.options;
  Row row;
  row.op = o.op;
  row.scalar = scalar;
  row.device = o.device;
  row.machine = bench.machine;
  row.mode = o.mode;
  if (!o.tuning.empty()) row.tuning = o.tuning;
  if (!o.preset.empty()) row.preset = o.preset;
  row.n = n;
  row.seed = o.seed;
  return row;
}

std::vector<trifactor::Measurement> measure_noted(const BenchOptions& o, const std::string& what,
                                                  std::span<const Contender> contenders,
                                                  const trifactor::MeasureOptions& how) {
  const double begin = o.power_log ? o.power_log->seconds() : 0;
  auto measured = trifactor::measure(contenders, how);
  if (o.power_log) o.power_log->note(what, begin);
  return measured;
}

void measure_row(const BenchOptions& o, Row& row, const Contender& ours, const Contender& peers) {
  std::vector<Contender> contenders = {ours};
  if (peers.run) contenders.push_back(peers);
  // On a device a call becomes a graph of its own when it comes for the fourth time, and two buffers take turns.
  const int warmups = o.op == "batch" && ours.queue ? 8 : 1;
  const auto measured = measure_noted(o, fmt::format("{} {} n={}", row.op, row.scalar, row.n), contenders,
                                      {.warmups = warmups, .max_seconds = o.seconds, .energy_seconds = o.energy});
  row.seconds = measured[0].seconds;
  row.spread = measured[0].spread;
  row.runs = measured[0].runs;
  row.host_seconds = measured[0].host_seconds;
  row.joules = measured[0].joules, row.energy_seconds = measured[0].energy_seconds;
  if (!peers.run) return;
  row.peer_seconds = measured[1].seconds;
  row.peer_spread = measured[1].spread;
  row.peer_joules = measured[1].joules, row.peer_energy_seconds = measured[1].energy_seconds;
}

void require_success(const std::string& what, const Buffer<int>& info) {
  const std::vector<int> on_host = info.to_host();
  for (std::size_t i = 0; i < on_host.size(); ++i)
    if (const int code = on_host[i]; code != 0)
      throw MatrixError(
          fmt::format("{} failed{} with info = {}", what, info.size() > 1 ? fmt::format(" at item {}", i) : "", code));
}

}  // namespace program
