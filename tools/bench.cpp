// trifactor bench: reads what to measure, and measures row after row.
#include "bench.hpp"

#include "commands.hpp"
#include "failure.hpp"
#include "residual.hpp"
#include "scalars.hpp"

#include <CLI/CLI.hpp>
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
  std::string n, nrhs, nb, leaf, ib, looking, forms, scalars, kind, sizes, matrices, preset;
  bool has_count = false;
  std::int64_t seed = -1;
};

/// Parts of a Cholesky factorization.
bool is_part(const std::string& op) { return op == "update" || op == "tile"; }

std::string default_sizes(const std::string& op, const std::string& device) {
  if (op == "batch") return "8,16,32,64,128";
  if (op == "solve") return "1024,4096";
  if (op == "tile") return "128,256,512,1024";
  if (op == "update") return device == "cuda" ? "10240" : "2048";
  if (op == "value") return "64,128,256,512,1024,2048,4096";
  return "512,1024,2048,4096";
}

/// CHOLMOD, on the host, is the peer of the sparse solver where that was built.
void complete_sparse(BenchOptions& o, const std::string& matrices) {
  o.matrices = split(matrices.empty() ? "poisson3d:20,elastic3d:10,shell2d:40" : matrices, ',');
  const bool asked = !o.against.empty() && o.against != "none";
  if (asked && o.against != "cholmod" && o.against != "cholmod-given")
    throw InputError(
        fmt::format("--against: '{}' is not one of cholmod, cholmod-given, none, which bench sparse has", o.against));
  if (asked && cholmod_program().empty())
    throw InputError(
        fmt::format("--against {}: trifactor_cholmod is not beside this program: install "
                    "libsuitesparse-dev and build again, or take none",
                    o.against));
  if (o.against.empty()) o.against = cholmod_program().empty() ? "none" : "cholmod";
}

/// Cholesky takes a list of modes or all of them, the others one.
void complete_modes(BenchOptions& o) {
  if (o.op != "cholesky") {
    if (o.mode != "auto" && o.mode != "native" && o.mode != "hybrid")
      throw InputError(
          fmt::format("--mode: '{}' is not one of auto, native, hybrid, which bench {} has", o.mode, o.op));
    return;
  }
  o.modes = o.mode == "all" ? all_cholesky_modes(o.device == "cuda") : split(o.mode, ',');
  for (std::size_t i = 0; i < o.modes.size(); ++i) {
    if (cholesky_mode(o.modes[i]).needs_cuda && o.device != "cuda")
      throw InputError(fmt::format("--mode: '{}' needs --device cuda", o.modes[i]));
    for (std::size_t j = 0; j < i; ++j)
      if (o.modes[i] == o.modes[j]) throw InputError(fmt::format("--mode: '{}' is named twice", o.modes[i]));
  }
}

/// A preset takes the place of what says which batches are measured.
void complete_preset(Typed& typed) {
  if (typed.preset.empty()) return;
  const BatchPreset& preset = batch_preset(typed.preset);
  typed.options.preset = typed.preset;
  typed.kind = preset.kind;
  typed.sizes = preset.sizes;
  typed.n = preset.n;
  typed.options.method = preset.method;
  if (typed.nrhs.empty()) typed.nrhs = preset.nrhs;
  if (!typed.has_count && preset.count > 0) typed.options.count = preset.count;
  for (const char* tuning : preset.tunings)
    typed.options.tunings.push_back(joined_tuning(typed.options.tuning, tuning));
}

BenchOptions complete(Typed typed) {
  complete_preset(typed);
  BenchOptions o = typed.options;
  if (o.tunings.empty()) o.tunings = {o.tuning};
  if (o.device.empty()) o.device = trifactor::why_no_cuda().empty() ? "cuda" : "host";
  if (o.op == "sparse")
    complete_sparse(o, typed.matrices);
  else if (o.against.starts_with("cholmod"))
    throw InputError(fmt::format("--against {} belongs to bench sparse, not to bench {}", o.against, o.op));
  o.n = parse_sizes("--n", typed.n.empty() ? default_sizes(o.op, o.device) : typed.n);
  if (!typed.nrhs.empty()) o.nrhs = parse_sizes("--rhs", typed.nrhs);
  o.nb = parse_sizes("--nb", typed.nb.empty() ? "64,128,256,512,1024" : typed.nb);
  if (!typed.leaf.empty()) o.leaf = parse_sizes("--leaf", typed.leaf);
  o.ib = parse_sizes("--ib", typed.ib.empty() ? "16,32,64" : typed.ib);
  o.forms = typed.forms.empty() ? std::vector<std::string>{"inclusive", "exclusive"} : split(typed.forms, ',');
  for (const std::string& form : o.forms)
    if (form != "inclusive" && form != "exclusive")
      throw InputError(fmt::format("--form: '{}' is not one of inclusive, exclusive", form));
  o.looking = typed.looking.empty() ? std::vector<std::string>{"left", "right"} : split(typed.looking, ',');
  for (const std::string& looking : o.looking)
    if (looking != "left" && looking != "right")
      throw InputError(fmt::format("--looking: '{}' is not one of left, right", looking));
  o.scalars = typed.scalars.empty() ? std::vector{default_scalar()} : split(typed.scalars, ',');
  for (const std::string& scalar : o.scalars) with_scalar(scalar, [](auto) {});

  o.kind = !typed.kind.empty() ? typed.kind : !typed.sizes.empty() && typed.sizes != "fixed" ? "ragged" : "strided";
  o.sizes = !typed.sizes.empty() ? typed.sizes : o.kind == "ragged" ? "uniform" : "fixed";
  if (o.sizes != "fixed" && o.kind != "ragged")
    throw InputError(fmt::format("--sizes {} needs --kind ragged, not {}", o.sizes, o.kind));
  if (o.sizes != "fixed" && o.sizes != "uniform" && o.sizes != "one-large") {
    if (o.sizes.find_first_not_of("0123456789") != std::string::npos)
      throw InputError(
          fmt::format("--sizes: '{}' is not one of fixed, uniform, one-large, nor a number, the mean", o.sizes));
    o.mean = parse_size("--sizes", o.sizes);
    for (const index_t n : o.n)
      if (n < o.mean || n >= 2 * o.mean)
        throw InputError(
            fmt::format("--n: {} must be in {}..{} where --sizes {} is the mean", n, o.mean, 2 * o.mean - 1, o.mean));
  }
  if (is_part(o.op) || o.op == "value") {
    if (!o.against.empty() && o.against != "none")
      throw InputError(fmt::format("--against {}: bench {} has no peer, so it must be none", o.against, o.op));
    o.against = "none";
    if (is_part(o.op)) o.mode = "native";
  }
  if (o.against.empty()) o.against = o.device == "cuda" ? "cusolver" : "lapack";
  if (o.against == "cusolver" && o.device != "cuda") throw InputError("--against cusolver needs --device cuda");
  complete_modes(o);
  o.seed = typed.seed >= 0 ? std::uint64_t(typed.seed) : o.op == "sparse" ? 0 : std::random_device{}();
  return o;
}

/// The device's name, and how many threads a host queue has.
std::string machine_name(const Queue& queue) {
  for (const auto& device : trifactor::devices())
    if (device.number == queue.device())
      return queue.is_cuda() ? device.name : fmt::format("{}, {} threads", device.name, device.cores);
  return "unknown";
}

/// Those of --nb that leave something to update.
std::vector<index_t> block_widths(const BenchOptions& o, index_t n) {
  std::vector<index_t> widths;
  for (const index_t nb : o.nb)
    if (nb < n) widths.push_back(nb);
  if (widths.empty())
    throw InputError(
        fmt::format("--nb: {} leaves no update of a matrix of order {}: it must be less than that", o.nb.front(), n));
  return widths;
}

/// Those of --leaf, or powers of two from 64 up to a tile that is not halved at all.
std::vector<index_t> leaves(const BenchOptions& o, index_t n) {
  if (!o.leaf.empty()) return o.leaf;
  std::vector<index_t> leaves;
  for (index_t leaf = 64; leaf < n; leaf *= 2) leaves.push_back(leaf);
  leaves.push_back(n);
  return leaves;
}

/// The forms of a tile that differ: steps as wide as what is left of it are no steps.
template <Scalar T>
void bench_tiles(Bench& bench, index_t n, index_t leaf, const std::function<void(const Row&)>& take) {
  for (const std::string& form : bench.options.forms) {
    if (form == "inclusive") take(bench_tile<T>(bench, n, leaf, form, 0));
    for (const index_t ib : bench.options.ib)
      if (form == "exclusive" && ib < std::min(leaf, n)) take(bench_tile<T>(bench, n, leaf, form, ib));
  }
}

/// From which of the measured sizes on the device is faster, copies and all: the last one where it is not ends the
/// others.
void print_crossover(const std::string& scalar, const std::vector<Row>& rows) {
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

void bench(BenchOptions o) {
  Bench bench{
      .options = o, .queue = o.device == "cuda" ? Queue::cuda() : Queue::host(), .machine = {}, .copy_rate = {}};
  bench.machine = machine_name(bench.queue);
  using Columns = RowPrinter::Columns;
  RowPrinter printer(o.json, o.op == "solve"       ? Columns::Solve
                             : o.op == "update"    ? Columns::Update
                             : o.op == "tile"      ? Columns::Tile
                             : o.op == "sparse"    ? Columns::Sparse
                             : o.op != "batch"     ? Columns::Dense
                             : o.is_ragged()       ? Columns::Ragged
                             : o.solves_batch()    ? Columns::SolveBatch
                                                   : Columns::Batch);
  std::string wrong;
  const auto take = [&](const Row& row) {
    printer.print(row);
    if (row.residual && !(*row.residual < good_ratio) && wrong.empty())
      wrong = fmt::format("{} {} {} n = {}: the residual ratio {:.3g} is not below {}, so this row is no result",
                          row.op, row.mode, row.scalar, row.n, *row.residual, good_ratio);
  };
  for (const std::string& scalar : o.scalars)
    with_scalar(scalar, [&]<class T>(std::type_identity<T>) {
      for (const std::string& matrix : o.matrices) bench_sparse<T>(bench, matrix, take);
      if (o.op == "sparse") return;
      std::vector<Row> values;
      for (const index_t n : o.n) {
        if (o.op == "cholesky")
          for (const Row& row : bench_cholesky<T>(bench, n)) take(row);
        if (o.op == "update")
          for (const index_t nb : block_widths(o, n)) bench_update<T>(bench, n, nb, take);
        if (o.op == "tile")
          for (const index_t leaf : leaves(o, n)) bench_tiles<T>(bench, n, leaf, take);
        if (o.op == "value") take(values.emplace_back(bench_value<T>(bench, n)));
        if (o.op == "lu") take(bench_lu<T>(bench, n));
        if (o.op == "inverse") take(bench_inverse<T>(bench, n));
        if (o.op == "batch")
          for (const std::string& tuning : o.tunings) {
            o.tuning = tuning;
            if (o.solves_batch())
              for (const index_t nrhs : o.nrhs) take(bench_solve_batch<T>(bench, n, nrhs));
            else
              take(o.method == "lu" ? bench_lu_batch<T>(bench, n) : bench_batch<T>(bench, n));
          }
        if (o.op == "solve")
          for (const index_t nrhs : o.nrhs) take(bench_solve<T>(bench, n, nrhs));
      }
      if (o.op == "value" && bench.queue.is_cuda() && !o.json) print_crossover(scalar, values);
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
  if (!o.preset.empty()) row.preset = o.preset;
  row.n = n;
  row.seed = o.seed;
  return row;
}

void measure_row(const BenchOptions& o, Row& row, const Contender& ours, const Contender& peers) {
  std::vector<Contender> contenders = {ours};
  if (peers.run) contenders.push_back(peers);
  // On a device a call becomes a graph of its own when it comes for the fourth time, and two buffers take turns.
  const int warmups = o.op == "batch" && ours.queue ? 8 : 1;
  const auto measured =
      trifactor::measure(contenders, {.warmups = warmups, .max_seconds = o.seconds, .energy_seconds = o.energy});
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

void require_success(Queue& queue, Queue& host, const std::string& what, const Buffer<int>& info) {
  const OnHost<int> on_host(queue, host, info.data(), info.size());
  for (index_t i = 0; i < info.size(); ++i)
    if (const int code = on_host.data()[i]; code != 0)
      throw MatrixError(
          fmt::format("{} failed{} with info = {}", what, info.size() > 1 ? fmt::format(" at item {}", i) : "", code));
}

void add_bench(CLI::App& app) {
  auto typed = std::make_shared<Typed>();
  BenchOptions& o = typed->options;
  CLI::App* const command = app.add_subcommand("bench", "measure against LAPACK, cuSOLVER or CHOLMOD in the same run");
  command
      ->add_option("op", o.op,
                   "cholesky, lu, solve, inverse, batch (Cholesky of many small matrices), sparse (Cholesky), value "
                   "(data on the "
                   "host: device with copies against host), update or tile (parts of Cholesky)")
      ->required()
      ->check(CLI::IsMember({"cholesky", "lu", "solve", "inverse", "batch", "sparse", "value", "update", "tile"}));
  command->add_option("--n", typed->n, "sizes: 512,1024 or first:last:step");
  command->add_option("--scalar", typed->scalars,
                      "of f32,f64,c32,c64 (c32 and c64 pair two floats and two doubles) [f64]");
  command->add_option("--uplo", o.uplo, "the triangle")
      ->check(CLI::IsMember({"lower", "upper"}))
      ->capture_default_str();
  command
      ->add_option("--mode", o.mode,
                   "auto, native or hybrid: where panels are factored. cholesky: a list, also of native-left, "
                   "native-right, persistent, hybrid-left, hybrid-right, host, cusolver, lapack; or all")
      ->capture_default_str();
  command->add_option("--device", o.device, "host or cuda [cuda where there is a GPU]")
      ->check(CLI::IsMember({"host", "cuda"}));
  command
      ->add_option("--against", o.against,
                   "lapack, cusolver or none [lapack on host, cusolver on cuda]; sparse: cholmod, "
                   "cholmod-given (with our permutation) or none [cholmod where it is built]")
      ->check(CLI::IsMember({"lapack", "cusolver", "cholmod", "cholmod-given", "none"}));
  command->add_option("--matrix", typed->matrices,
                      "sparse: files or FAMILY:SIZE as of generate [poisson3d:20,elastic3d:10,shell2d:40]");
  command->add_option("--ordering", o.ordering, "sparse: auto, metis, amd or natural")
      ->check(CLI::IsMember({"auto", "metis", "amd", "natural"}))
      ->capture_default_str();
  command->add_option("--method", o.method, "solve, inverse, batch: which factor; batch: solve, with Cholesky factors, or factor-solve, both in one "
                      "call")
      ->check(CLI::IsMember({"cholesky", "lu", "solve", "factor-solve"}))
      ->capture_default_str();
  command->add_option("--rhs", typed->nrhs,
                      "solve, batch --method solve: numbers of right-hand sides, as --n; sparse: one of them [1]");
  command->add_option("--nb", typed->nb, "update: widths of a block column, as --n [64,128,256,512,1024]");
  command->add_option("--looking", typed->looking, "update: of left,right [both]");
  command->add_flag("--each", o.each, "update: a row for each step instead of one for all of them");
  command->add_option("--leaf", typed->leaf, "tile: orders down to which it is halved, as --n [64, 128 ... n]");
  command->add_option("--form", typed->forms,
                      "tile: of inclusive (one operation), exclusive (steps of ib columns) [both]");
  command->add_option("--ib", typed->ib, "tile: widths of such a step, as --n [16,32,64]");
  command->add_option("--count", o.count, "batch: how many matrices")
      ->check(CLI::Range(index_t(1), largest_size))
      ->capture_default_str();
  command->add_option("--kind", typed->kind, "batch: strided, pointers or ragged [strided]")
      ->check(CLI::IsMember({"strided", "pointers", "ragged"}));
  command->add_option(
      "--sizes", typed->sizes,
      "ragged batch: fixed (all n), uniform in 1..n, one-large (one of n among items of 16), or their mean: "
      "with 384, uniform in 768 - n .. n [uniform]");
  command->add_option(
      "--preset", typed->preset,
      "batch: fixed, variable, crossover, schedule, ib, herk or trsm, in place of --n, --kind, --sizes and "
      "--method");
  command->add_option("--tuning", o.tuning, "overrides fields of the tuning row, such as \"nb=128\"");
  command->add_option("--seconds", o.seconds, "time to spend on a row")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command
      ->add_option(
          "--energy", o.energy,
          "seconds to watch the energy sensors for, for each row and side: 5 or more, since they count in steps")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_option("--seed", typed->seed, "of the random matrices [another one every time]")
      ->check(CLI::NonNegativeNumber);
  command->add_flag("--json", o.json, "print one JSON object a line");
  command->callback([typed, command] {
    for (const auto& [option, op] : {std::pair{"--nb", "update"},
                                     {"--matrix", "sparse"},
                                     {"--ordering", "sparse"},
                                     {"--looking", "update"},
                                     {"--each", "update"},
                                     {"--leaf", "tile"},
                                     {"--form", "tile"},
                                     {"--ib", "tile"},
                                     {"--count", "batch"},
                                     {"--kind", "batch"},
                                     {"--preset", "batch"},
                                     {"--sizes", "batch"}})
      if (command->count(option) > 0 && typed->options.op != op)
        throw InputError(fmt::format("{} belongs to bench {}, not to bench {}", option, op, typed->options.op));
    typed->has_count = command->count("--count") > 0;
    const BenchOptions& options = typed->options;
    const bool solves = options.solves_batch() || typed->preset == "trsm";
    if (command->count("--rhs") > 0 && options.op != "solve" && options.op != "sparse" &&
        !(options.op == "batch" && solves))
      throw InputError(fmt::format(
          "--rhs belongs to bench solve, bench sparse and bench batch --method solve, not to bench {}", options.op));
    if (options.solves_batch() && options.op != "batch")
      throw InputError(fmt::format("--method {} belongs to bench batch, not to bench {}", options.method, options.op));
    for (const char* const option : {"--n", "--uplo", "--mode", "--energy"})
      if (command->count(option) > 0 && typed->options.op == "sparse")
        throw InputError(fmt::format("{} does not belong to bench sparse; --matrix says what is factored", option));
    for (const char* const option : {"--n", "--kind", "--sizes", "--method"})
      if (command->count(option) > 0 && command->count("--preset") > 0)
        throw InputError(fmt::format("{} and --preset exclude each other: the preset says what is factored", option));
    if (command->count("--mode") > 0 && is_part(typed->options.op))
      throw InputError(fmt::format("--mode: bench {} has no modes; --tuning forces its path", typed->options.op));
    if (command->count("--method") > 0 && typed->options.op != "solve" && typed->options.op != "inverse" &&
        typed->options.op != "batch")
      throw InputError(
          fmt::format("--method belongs to bench solve, inverse and batch, not to bench {}", typed->options.op));
    bench(complete(*typed));
  });
}

}  // namespace program
