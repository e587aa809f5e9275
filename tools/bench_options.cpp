// The command line of trifactor bench: every operation has the options that count for it, and no others.
#include "bench_compare.hpp"
#include "bench_typed.hpp"
#include "commands.hpp"
#include "failure.hpp"
#include "usage.hpp"

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <trifactor/info.hpp>

#include <memory>

namespace program {
namespace {

CLI::Validator one_of(const Words& words) {
  return CLI::Validator([words](std::string& word) { return not_one_of(words, word); }, "");
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
      if (typed->change) typed->change(*typed);
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
        ->add_option("--mode", options_.mode,
                     op_ == "cholesky"
                         ? "a list of auto, native, hybrid, native-left, native-right, persistent, hybrid-left, "
                           "hybrid-right, host, cusolver, lapack; or all"
                         : "a list of auto, native, native-columns, native-rows, hybrid, host, cusolver, lapack; "
                           "or all")
        ->capture_default_str();
    return *this;
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

  BenchCommand& nb(const char* what) { return add("--nb", typed_.nb, what); }
  BenchCommand& sparse() {
    add("--matrix", typed_.matrices, fmt::format("files or FAMILY:SIZE as of generate [{}]", default_matrices));
    choose("--ordering", options_.ordering, "auto, metis, amd or natural", {"auto", "metis", "amd", "natural"});
    command_
        ->add_option("--against", options_.against,
                     "cholmod, cholmod-given (with our permutation), cudss or none [cholmod where it is built]")
        ->check(one_of({"cholmod", "cholmod-given", "cudss", "none"}));
    command_
        ->add_option(
            "--max-device-bytes", options_.max_device_bytes,
            "of the device's memory, such as 2e9: where the factor does not fit, it passes through [what is free]")
        ->check(CLI::Validator(not_a_byte_count, ""));
    choose("--mode", options_.mode, "auto, native, or hybrid: the CPU factors a part beside the GPU",
           {"auto", "native", "hybrid"});
    command_->add_option("--count", options_.sparse_count, "matrices of one pattern at once, beside as many one by one")
        ->check(CLI::Range(index_t(1), largest_size))
        ->capture_default_str();
    return *this;
  }
  BenchCommand& update() {
    command_->add_flag("--each", options_.each, "a row for each step instead of one for all of them");
    return nb("widths of a block column, as --n [64,128,256,512,1024]")
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
             "fixed, variable, crossover, schedule, ib or trsm, in place of --n, --kind, --sizes and --method");
  }

  /// What every operation has.
  void shared() {
    command_->add_option("--power", options_.power, "write the watts of CPU and GPU over time: NAME.csv, or JSON lines")
        ->check(CLI::Validator(not_a_file_name, ""));
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
  /// Options that exclude each other.
  static void check_together(const Typed& typed, const CLI::App& command) {
    const BenchOptions& o = typed.options;
    if (given(command, "--preset"))
      for (const char* const option : {"--n", "--kind", "--sizes", "--method"})
        if (given(command, option))
          throw InputError(fmt::format("{} and --preset exclude each other: the preset says what is factored", option));
    if (o.op == "batch" && given(command, "--rhs") && !o.solves_batch() && typed.preset != "trsm")
      throw InputError("--rhs: bench batch has right-hand sides with --method solve and factor-solve alone");
    if (o.sparse_count > 1 && given(command, "--against"))
      throw InputError("--against and --count exclude each other: the peer is one matrix at a time");
    if (o.op == "inverse" && o.method == "lu" && given(command, "--against") && o.against != "none")
      throw InputError(fmt::format("--against {}: bench inverse --method lu has no peer", o.against));
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

void add_operations(CLI::App& bench, const std::shared_ptr<Typed>& typed) {
  const auto operation = [&](const char* op, const char* what) { return BenchCommand(bench, typed, op, what); };
  operation("cholesky", "Cholesky of one matrix, several ways side by side")
      .n()
      .pad()
      .uplo()
      .modes()
      .against()
      .tuning()
      .energy()
      .shared();
  operation("lu", "LU of one matrix, several ways side by side").n().pad().modes().against().tuning().energy().shared();
  operation("panel", "LU of matrices that are tall or wide").m().n().modes().against().tuning().energy().shared();
  operation("swap", "the row interchanges of LU alone: the pivots of nb columns, made in n columns of m rows")
      .m()
      .n()
      .nb("columns whose pivots are made, as --n [256]")
      .against()
      .energy()
      .shared();
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
      .energy()
      .shared();
  operation("value", "data on the host: on the device with all copies, against the host").n().uplo().energy().shared();
  operation("update", "the updates of a Cholesky factorization alone").n().update().uplo().tuning().energy().shared();
  operation("tile", "the diagonal tile of a Cholesky factorization alone").n().tile().uplo().tuning().energy().shared();
}

void add_compare(CLI::App& bench) {
  CLI::App* const command = bench.add_subcommand("compare", "what became slower from one file of rows to another");
  command->footer(
      "Rows are joined by what was measured, machine included. Slower: by more than the spreads of both rows "
      "together,\n"
      "and more than the tolerance. Exit status 1 where a row became slower, 0 where none did.");
  const auto o = std::make_shared<CompareOptions>();
  command->add_option("OLD", o->before, "rows of bench --json; FILE@COMMIT takes those of one commit")->required();
  command->add_option("NEW", o->after, "the same, measured later")->required();
  command->add_option("--by", o->by, "what counts: seconds, or ratio (to the peer of the same run)")
      ->check(one_of({"seconds", "ratio"}))
      ->capture_default_str();
  command->add_option("--tolerance", o->tolerance, "a change of less than this part is none")
      ->check(CLI::Range(0.0, 10.0))
      ->capture_default_str();
  command->add_flag("--all", o->all, "print the rows that are the same, too");
  command->add_flag("--json", o->json, "print one JSON object a line");
  command->callback([o] { compare_rows(*o); });
}

}  // namespace

void run_bench_line(const std::string& line, const std::function<void(Typed&)>& change) {
  CLI::App app;
  const auto typed = std::make_shared<Typed>();
  typed->change = change;
  add_operations(app, typed);
  app.parse(line);
}

void add_bench(CLI::App& app) {
  CLI::App* const bench = app.add_subcommand("bench", "measure against LAPACK, cuSOLVER or CHOLMOD in the same run");
  bench->require_subcommand(0, 1);
  bench->footer("Each has options of its own: trifactor bench cholesky --help");
  add_operations(*bench, std::make_shared<Typed>());
  add_compare(*bench);
  const auto guard = std::make_shared<GuardOptions>();
  bench
      ->add_option("--preset", guard->preset,
                   "in place of an operation: guard, some 30 rows that stand for README's tables")
      ->check(one_of({"guard"}));
  bench->add_option("--device", guard->device, "of the preset: host or cuda [cuda where there is a GPU]")
      ->check(one_of({"host", "cuda"}));
  bench->add_option("--seconds", guard->seconds, "of the preset: time to spend on a row [1 on cuda, 0.3 on host]")
      ->check(CLI::NonNegativeNumber);
  bench->add_flag("--json", guard->json, "of the preset: print one JSON object a line");
  bench->parse_complete_callback([bench] {
    if (!bench->get_subcommands().empty())
      for (const CLI::Option* const option : bench->get_options())
        if (option->count() > 0 && option->get_name() != "--help")
          throw InputError(fmt::format("bench has no option {} beside an operation: it comes after the operation",
                                       option->get_name()));
  });
  bench->callback([bench, guard] {
    if (!bench->get_subcommands().empty()) return;
    if (guard->preset.empty()) throw CLI::RequiredError("an operation");
    run_guard(*guard);
  });
}

}  // namespace program
