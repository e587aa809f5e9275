// The command line of trifactor bench: every operation has the options that count for it, and no others.
#include "bench.hpp"
#include "commands.hpp"
#include "failure.hpp"
#include "scalars.hpp"

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <trifactor/info.hpp>

#include <algorithm>
#include <charconv>
#include <limits>
#include <memory>
#include <random>

namespace program {
namespace {

constexpr const char* default_matrices = "poisson3d:20,elastic3d:10,shell2d:40";
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

using Words = std::vector<std::string>;

/// Empty for one of these words, else what is wrong with another.
std::string not_one_of(const Words& words, const std::string& word) {
  if (std::find(words.begin(), words.end(), word) != words.end()) return {};
  std::string all;
  for (const std::string& known : words) all += (all.empty() ? "" : ", ") + known;
  return fmt::format("'{}' is not one of {}", word, all);
}

void require_each_of(const char* option, const Words& given, const Words& words) {
  for (const std::string& word : given)
    if (const std::string wrong = not_one_of(words, word); !wrong.empty())
      throw InputError(fmt::format("{}: {}", option, wrong));
}

CLI::Validator one_of(const Words& words) {
  return CLI::Validator([words](std::string& word) { return not_one_of(words, word); }, "");
}

/// The options as they were typed, before the defaults that depend on the machine and on each other.
struct Typed {
  BenchOptions options;
  std::string n, m, nrhs, nb, leaf, ib, looking, forms, scalars, kind, sizes, matrices, preset;
  bool has_count = false;
  std::int64_t seed = -1;
};

/// Parts of a Cholesky factorization.
bool is_part(const std::string& op) { return op == "update" || op == "tile"; }

constexpr const char* default_rows = "1024,2048,4096,8192,16384";  // of panels

std::string default_sizes(const std::string& op, const std::string& device) {
  if (op == "batch") return "8,16,32,64,128";
  if (op == "solve") return "1024,4096";
  if (op == "tile") return "128,256,512,1024";
  if (op == "panel") return "256";
  if (op == "update") return device == "cuda" ? "10240" : "2048";
  if (op == "value") return "64,128,256,512,1024,2048,4096";
  if (op == "cholesky" && device == "cuda") return "512,1024,2048,4096,5001,10001";  // with odd leading dimensions
  return "512,1024,2048,4096";
}

/// CHOLMOD, on the host, is the peer of the sparse solver where that was built; cuDSS where it is asked for.
void complete_sparse(BenchOptions& o, const std::string& matrices) {
  o.matrices = split(matrices.empty() ? default_matrices : matrices, ',');
  const bool asked = !o.against.empty() && o.against != "none";
  if (asked && peer_program(o.against).empty()) {
    const bool cudss = o.against == "cudss";
    throw InputError(fmt::format("--against {}: trifactor_{} is not beside this program: install {} and build again, or "
                                 "take none",
                                 o.against, cudss ? "cudss" : "cholmod", cudss ? "cuDSS" : "libsuitesparse-dev"));
  }
  if (o.against.empty()) o.against = peer_program("cholmod").empty() ? "none" : "cholmod";
}

/// Cholesky takes a list of modes or all of them.
void complete_modes(BenchOptions& o) {
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
  if (o.op == "sparse") complete_sparse(o, typed.matrices);
  o.n = parse_sizes("--n", typed.n.empty() ? default_sizes(o.op, o.device) : typed.n);
  o.m = parse_sizes("--m", typed.m.empty() ? default_rows : typed.m);
  const index_t least = *std::min_element(o.m.begin(), o.m.end()), widest = *std::max_element(o.n.begin(), o.n.end());
  if (o.op == "panel" && least < widest)
    throw InputError(fmt::format("--m: {} must be at least as much as --n, which is {}", least, widest));
  if (!typed.nrhs.empty()) o.nrhs = parse_sizes("--rhs", typed.nrhs);
  o.nb = parse_sizes("--nb", typed.nb.empty() ? "64,128,256,512,1024" : typed.nb);
  if (!typed.leaf.empty()) o.leaf = parse_sizes("--leaf", typed.leaf);
  o.ib = parse_sizes("--ib", typed.ib.empty() ? "16,32,64" : typed.ib);
  o.forms = typed.forms.empty() ? std::vector<std::string>{"inclusive", "exclusive"} : split(typed.forms, ',');
  require_each_of("--form", o.forms, {"inclusive", "exclusive"});
  o.looking = typed.looking.empty() ? std::vector<std::string>{"left", "right"} : split(typed.looking, ',');
  require_each_of("--looking", o.looking, {"left", "right"});
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
  if (is_part(o.op) || o.op == "value") o.against = "none";  // they have no peer
  if (is_part(o.op)) o.mode = "native";
  if (o.against.empty()) o.against = o.device == "cuda" ? "cusolver" : "lapack";
  if (o.against == "cusolver" && o.device != "cuda") throw InputError("--against cusolver needs --device cuda");
  if (o.op == "cholesky") complete_modes(o);
  o.seed = typed.seed >= 0 ? std::uint64_t(typed.seed) : o.op == "sparse" ? 0 : std::random_device{}();
  return o;
}

/// An operation of bench and its options. One runs, so all store what was typed in the same place.
class BenchCommand {
 public:
  BenchCommand(CLI::App& bench, const std::shared_ptr<Typed>& typed, const std::string& op, const char* what)
      : typed_(*typed), options_(typed->options), op_(op), command_(bench.add_subcommand(op, what)) {
    command_->footer("");
    command_->callback([typed, op, command = command_] {
      typed->options.op = op;
      check_together(*typed, *command);
      typed->has_count = given(*command, "--count");
      run_bench(complete(*typed));
    });
  }

  BenchCommand& n() {
    const std::string here = default_sizes(op_, "host"), there = default_sizes(op_, "cuda");
    return add("--n", typed_.n,
               fmt::format("sizes: 512,1024 or first:last:step [{}{}]", here,
                           here == there ? "" : fmt::format(" on host, {} on cuda", there)));
  }
  BenchCommand& m() { return add("--m", typed_.m, fmt::format("rows, as --n [{}]", default_rows)); }
  BenchCommand& pad() {
    command_->add_option("--pad", options_.pad, "the leading dimension is n and so much more")
        ->check(CLI::Range(0, 4096))
        ->capture_default_str();
    return *this;
  }
  BenchCommand& rhs(const char* what) { return add("--rhs", typed_.nrhs, what); }
  BenchCommand& uplo() { return choose("--uplo", options_.uplo, "the triangle: lower or upper", {"lower", "upper"}); }
  BenchCommand& method(const char* what, const Words& words) {
    return choose("--method", options_.method, what, words);
  }
  BenchCommand& modes() {
    command_
        ->add_option(
            "--mode", options_.mode,
            "a list of auto, native, hybrid, native-left, native-right, persistent, hybrid-left, hybrid-right, "
            "host, cusolver, lapack; or all")
        ->capture_default_str();
    return *this;
  }
  BenchCommand& mode() {
    return choose("--mode", options_.mode, "where panels are factored: auto, native or hybrid",
                  {"auto", "native", "hybrid"});
  }
  BenchCommand& against() {
    command_->add_option("--against", options_.against, "lapack, cusolver or none [lapack on host, cusolver on cuda]")
        ->check(one_of({"lapack", "cusolver", "none"}));
    return *this;
  }
  BenchCommand& tuning() {
    return add("--tuning", options_.tuning, "overrides fields of the tuning row, such as \"nb=128\"");
  }
  BenchCommand& energy() {
    command_
        ->add_option(
            "--energy", options_.energy,
            "seconds to watch the energy sensors for, for each row and side: 5 or more, since they count in steps")
        ->check(CLI::NonNegativeNumber)
        ->capture_default_str();
    return *this;
  }

  BenchCommand& sparse() {
    add("--matrix", typed_.matrices, fmt::format("files or FAMILY:SIZE as of generate [{}]", default_matrices));
    choose("--ordering", options_.ordering, "auto, metis, amd or natural", {"auto", "metis", "amd", "natural"});
    command_
        ->add_option("--against", options_.against,
                     "cholmod, cholmod-given (with our permutation), cudss or none [cholmod where it is built]")
        ->check(one_of({"cholmod", "cholmod-given", "cudss", "none"}));
    return *this;
  }
  BenchCommand& update() {
    command_->add_flag("--each", options_.each, "a row for each step instead of one for all of them");
    return add("--nb", typed_.nb, "widths of a block column, as --n [64,128,256,512,1024]")
        .add("--looking", typed_.looking, "of left,right [both]");
  }
  BenchCommand& tile() {
    return add("--leaf", typed_.leaf, "orders down to which it is halved, as --n [64, 128 ... n]")
        .add("--form", typed_.forms, "of inclusive (one operation), exclusive (steps of ib columns) [both]")
        .add("--ib", typed_.ib, "widths of such a step, as --n [16,32,64]");
  }
  BenchCommand& batch() {
    command_->add_option("--count", options_.count, "how many matrices")
        ->check(CLI::Range(index_t(1), largest_size))
        ->capture_default_str();
    command_->add_option("--kind", typed_.kind, "strided, pointers or ragged [strided]")
        ->check(one_of({"strided", "pointers", "ragged"}));
    return add("--sizes", typed_.sizes,
               "ragged: fixed (all n), uniform in 1..n, one-large (one of n among items of 16), or their mean: with "
               "384, uniform in 768 - n .. n [uniform]")
        .add("--preset", typed_.preset,
             "fixed, variable, crossover, schedule, ib, herk or trsm, in place of --n, --kind, --sizes and --method");
  }

  /// What every operation has.
  void shared() {
    add("--scalar", typed_.scalars, "of f32,f64,c32,c64 (c32 and c64 pair two floats and two doubles) [f64]");
    command_->add_option("--device", options_.device, "host or cuda [cuda where there is a GPU]")
        ->check(one_of({"host", "cuda"}));
    command_->add_option("--seconds", options_.seconds, "time to spend on a row")
        ->check(CLI::NonNegativeNumber)
        ->capture_default_str();
    command_
        ->add_option("--seed", typed_.seed,
                     op_ == "sparse" ? "of generated matrices [0]" : "of the random matrices [another one every time]")
        ->check(CLI::NonNegativeNumber);
    command_->add_flag("--json", options_.json, "print one JSON object a line");
  }

 private:
  static bool given(const CLI::App& command, const char* option) {
    const CLI::Option* const found = command.get_option_no_throw(option);
    return found && found->count() > 0;
  }

  /// Options that exclude each other.
  static void check_together(const Typed& typed, const CLI::App& command) {
    const BenchOptions& o = typed.options;
    if (given(command, "--preset"))
      for (const char* const option : {"--n", "--kind", "--sizes", "--method"})
        if (given(command, option))
          throw InputError(fmt::format("{} and --preset exclude each other: the preset says what is factored", option));
    if (o.op == "batch" && given(command, "--rhs") && !o.solves_batch() && typed.preset != "trsm")
      throw InputError("--rhs: bench batch has right-hand sides with --method solve and factor-solve alone");
    if (o.method == "lu" && given(command, "--uplo"))
      throw InputError(fmt::format("--uplo: bench {} --method lu has no triangle to choose", o.op));
  }

  BenchCommand& add(const char* name, std::string& value, const std::string& what) {
    command_->add_option(name, value, what);
    return *this;
  }
  BenchCommand& choose(const char* name, std::string& value, const char* what, const Words& words) {
    command_->add_option(name, value, what)->check(one_of(words))->capture_default_str();
    return *this;
  }

  Typed& typed_;
  BenchOptions& options_;
  std::string op_;
  CLI::App* command_;
};

}  // namespace

void add_bench(CLI::App& app) {
  CLI::App* const bench = app.add_subcommand("bench", "measure against LAPACK, cuSOLVER or CHOLMOD in the same run");
  bench->require_subcommand(1);
  bench->footer("Each has options of its own: trifactor bench cholesky --help");
  const auto typed = std::make_shared<Typed>();
  const auto operation = [&](const char* op, const char* what) { return BenchCommand(*bench, typed, op, what); };
  operation("cholesky", "Cholesky of one matrix, several ways side by side")
      .n()
      .pad()
      .uplo()
      .modes()
      .against()
      .tuning()
      .energy()
      .shared();
  operation("lu", "LU of one matrix").n().mode().against().tuning().energy().shared();
  operation("panel", "LU of tall matrices").m().n().against().tuning().energy().shared();
  operation("solve", "solves with one factor")
      .n()
      .rhs("numbers of right-hand sides, as --n [1]")
      .method("which factor: cholesky or lu", {"cholesky", "lu"})
      .uplo()
      .against()
      .tuning()
      .energy()
      .shared();
  operation("inverse", "the inverse from a factor")
      .n()
      .method("which factor: cholesky or lu", {"cholesky", "lu"})
      .uplo()
      .against()
      .tuning()
      .energy()
      .shared();
  operation("batch", "Cholesky, LU and solves of many small matrices")
      .n()
      .batch()
      .method("cholesky, lu, solve (with Cholesky factors) or factor-solve (both in one call)",
              {"cholesky", "lu", "solve", "factor-solve"})
      .rhs("--method solve, factor-solve: numbers of right-hand sides, as --n [1]")
      .uplo()
      .against()
      .tuning()
      .energy()
      .shared();
  operation("sparse", "the phases of a sparse Cholesky factorization")
      .sparse()
      .rhs("numbers of right-hand sides, as --n [1]")
      .tuning()
      .shared();
  operation("value", "data on the host: on the device with all copies, against the host").n().uplo().energy().shared();
  operation("update", "the updates of a Cholesky factorization alone").n().update().uplo().tuning().energy().shared();
  operation("tile", "the diagonal tile of a Cholesky factorization alone").n().tile().uplo().tuning().energy().shared();
}

}  // namespace program
