// trifactor bench: reads what to measure, and measures row after row.
#include "bench.hpp"

#include "commands.hpp"
#include "failure.hpp"
#include "residual.hpp"
#include "scalars.hpp"

#include <fmt/core.h>
#include <trifactor/info.hpp>

#include <charconv>
#include <limits>
#include <random>

namespace program {
namespace {

constexpr index_t largest_size = std::numeric_limits<int>::max();

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (const char c : text)
    if (c == separator)
      parts.emplace_back();
    else
      parts.back() += c;
  return parts;
}

index_t parse_size(const char* option, const std::string& text) {
  index_t value = 0;
  const auto [past, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || past != text.data() + text.size() || value < 1 || value > largest_size)
    throw InputError(fmt::format("{}: '{}' is not a whole number in 1..{}", option, text, largest_size));
  return value;
}

/// "512,1024" or "100:500:100", or both: 8,16:64:16
std::vector<index_t> parse_sizes(const char* option, const std::string& text) {
  std::vector<index_t> sizes;
  for (const std::string& part : split(text, ',')) {
    const std::vector<std::string> range = split(part, ':');
    if (range.size() != 1 && range.size() != 3)
      throw InputError(fmt::format("{}: '{}' is neither a size nor a range first:last:step", option, part));
    const index_t first = parse_size(option, range[0]);
    const index_t last = range.size() == 1 ? first : parse_size(option, range[1]);
    const index_t step = range.size() == 1 ? 1 : parse_size(option, range[2]);
    if (last < first) throw InputError(fmt::format("{}: the range '{}' is empty", option, part));
    for (index_t n = first; n <= last; n += step) sizes.push_back(n);
  }
  return sizes;
}

/// The options as they were typed, before the defaults that depend on the machine and on each other.
struct Typed {
  BenchOptions options;
  std::string n, nrhs, scalars, kind, sizes;
  std::int64_t seed = -1;
};

bool has_gpu() {
  for (const auto& device : trifactor::devices())
    if (device.number >= 0) return true;
  return false;
}

BenchOptions complete(const Typed& typed) {
  BenchOptions o = typed.options;
  const bool batch = o.op == "batch";
  const char* const default_n = batch ? "8,16,32,64,128" : o.op == "solve" ? "1024,4096" : "512,1024,2048,4096";
  o.n = parse_sizes("--n", typed.n.empty() ? default_n : typed.n);
  if (!typed.nrhs.empty()) o.nrhs = parse_sizes("--rhs", typed.nrhs);
  o.scalars = typed.scalars.empty() ? std::vector{default_scalar()} : split(typed.scalars, ',');
  for (const std::string& scalar : o.scalars) with_scalar(scalar, [](auto) {});

  o.kind = !typed.kind.empty() ? typed.kind : typed.sizes == "uniform" ? "ragged" : "strided";
  o.sizes = !typed.sizes.empty() ? typed.sizes : o.kind == "ragged" ? "uniform" : "fixed";
  if (o.sizes == "uniform" && o.kind != "ragged")
    throw InputError(fmt::format("--sizes uniform needs --kind ragged, not {}", o.kind));
  if (o.device.empty()) o.device = has_gpu() ? "cuda" : "host";
  if (o.against.empty()) o.against = o.device == "cuda" ? "cusolver" : "lapack";
  if (o.against == "cusolver" && o.device != "cuda") throw InputError("--against cusolver needs --device cuda");
  o.seed = typed.seed >= 0 ? std::uint64_t(typed.seed) : std::random_device{}();
  return o;
}

/// The device's name, and how many threads a host queue has.
std::string machine_name(const Queue& queue) {
  for (const auto& device : trifactor::devices())
    if (device.number == queue.device())
      return queue.is_cuda() ? device.name : fmt::format("{}, {} threads", device.name, device.cores);
  return "unknown";
}

void bench(const BenchOptions& o) {
  Bench bench{.options = o, .queue = o.device == "cuda" ? Queue::cuda() : Queue::host(), .machine = {}};
  bench.machine = machine_name(bench.queue);
  using Columns = RowPrinter::Columns;
  RowPrinter printer(o.json, o.op == "solve"   ? Columns::Solve
                             : o.op != "batch" ? Columns::Dense
                             : o.is_ragged()   ? Columns::Ragged
                                               : Columns::Batch);
  std::string wrong;
  const auto take = [&](const Row& row) {
    printer.print(row);
    if (!(row.residual < good_ratio) && wrong.empty())
      wrong = fmt::format("{} {} n = {}: the residual ratio {:.3g} is not below {}, so this row is no result", row.op,
                          row.scalar, row.n, row.residual, good_ratio);
  };
  for (const std::string& scalar : o.scalars)
    with_scalar(scalar, [&]<class T>(std::type_identity<T>) {
      for (const index_t n : o.n) {
        if (o.op == "cholesky") take(bench_cholesky<T>(bench, n));
        if (o.op == "lu") take(bench_lu<T>(bench, n));
        if (o.op == "inverse") take(bench_inverse<T>(bench, n));
        if (o.op == "batch") take(bench_batch<T>(bench, n));
        if (o.op == "solve")
          for (const index_t nrhs : o.nrhs) take(bench_solve<T>(bench, n, nrhs));
      }
    });
  if (!wrong.empty()) throw MatrixError(wrong);
}

}  // namespace

trifactor::Mode BenchOptions::panels() const {
  return mode == "native"   ? trifactor::Mode::Native
         : mode == "hybrid" ? trifactor::Mode::Hybrid
                            : trifactor::Mode::Auto;
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
  row.n = n;
  row.seed = o.seed;
  return row;
}

void measure_row(const BenchOptions& o, Row& row, const Contender& ours, const Contender& peers) {
  std::vector<Contender> contenders = {ours};
  if (peers.run) contenders.push_back(peers);
  const auto measured = trifactor::measure(contenders, {.max_seconds = o.seconds, .energy_seconds = o.energy});
  row.seconds = measured[0].seconds;
  row.spread = measured[0].spread;
  row.runs = measured[0].runs;
  row.joules = measured[0].joules;
  if (!peers.run) return;
  row.peer_seconds = measured[1].seconds;
  row.peer_spread = measured[1].spread;
  row.peer_joules = measured[1].joules;
}

void add_bench(CLI::App& app) {
  auto typed = std::make_shared<Typed>();
  BenchOptions& o = typed->options;
  CLI::App* const command = app.add_subcommand("bench", "measure against LAPACK or cuSOLVER in the same run");
  command->add_option("op", o.op, "cholesky, lu, solve, inverse or batch (Cholesky of many small matrices)")
      ->required()
      ->check(CLI::IsMember({"cholesky", "lu", "solve", "inverse", "batch"}));
  command->add_option("--n", typed->n, "sizes: 512,1024 or first:last:step");
  command->add_option("--scalar", typed->scalars,
                      "of f32,f64,c32,c64 (c32 and c64 pair two floats and two doubles) [f64]");
  command->add_option("--uplo", o.uplo, "the triangle")
      ->check(CLI::IsMember({"lower", "upper"}))
      ->capture_default_str();
  command->add_option("--mode", o.mode, "where panels are factored")
      ->check(CLI::IsMember({"auto", "native", "hybrid"}))
      ->capture_default_str();
  command->add_option("--device", o.device, "host or cuda [cuda where there is a GPU]")
      ->check(CLI::IsMember({"host", "cuda"}));
  command->add_option("--against", o.against, "lapack, cusolver or none [lapack on host, cusolver on cuda]")
      ->check(CLI::IsMember({"lapack", "cusolver", "none"}));
  command->add_option("--method", o.method, "solve, inverse: which factor")
      ->check(CLI::IsMember({"cholesky", "lu"}))
      ->capture_default_str();
  command->add_option("--rhs", typed->nrhs, "solve: numbers of right-hand sides, as --n [1]");
  command->add_option("--count", o.count, "batch: how many matrices")
      ->check(CLI::Range(index_t(1), largest_size))
      ->capture_default_str();
  command->add_option("--kind", typed->kind, "batch: strided, pointers or ragged [strided]")
      ->check(CLI::IsMember({"strided", "pointers", "ragged"}));
  command->add_option("--sizes", typed->sizes, "ragged batch: fixed (all n) or uniform in 1..n [uniform]")
      ->check(CLI::IsMember({"fixed", "uniform"}));
  command->add_option("--tuning", o.tuning, "overrides fields of the tuning row, such as \"nb=128\"");
  command->add_option("--seconds", o.seconds, "time to spend on a row")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_option("--energy", o.energy, "seconds to watch the energy sensors for, for each row and side")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_option("--seed", typed->seed, "of the random matrices [another one every time]")
      ->check(CLI::NonNegativeNumber);
  command->add_flag("--json", o.json, "print one JSON object a line");
  command->callback([typed, command] {
    for (const auto& [option, op] : {std::pair{"--rhs", "solve"},
                                     {"--count", "batch"},
                                     {"--kind", "batch"},
                                     {"--sizes", "batch"}})
      if (command->count(option) > 0 && typed->options.op != op)
        throw InputError(fmt::format("{} belongs to bench {}, not to bench {}", option, op, typed->options.op));
    if (command->count("--method") > 0 && typed->options.op != "solve" && typed->options.op != "inverse")
      throw InputError(fmt::format("--method belongs to bench solve and bench inverse, not to bench {}", typed->options.op));
    bench(complete(*typed));
  });
}

}  // namespace program
