// trifactor: solves, measures and shows what is there. Exit status 0 done, 1 bad matrix, 2 bad usage or input,
// 3 out of memory, device fault, or a result that could not be written.
#include "commands.hpp"
#include "failure.hpp"
#include "generate.hpp"
#include "input_file.hpp"
#include "printable.hpp"
#include "standard_streams.hpp"
#include "usage.hpp"

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <omp.h>
#include <commit.hpp>
#include <trifactor/error.hpp>
#include <trifactor/info.hpp>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <limits>
#include <new>
#include <sstream>
#include <string>
#include <system_error>

namespace program {
namespace {

void add_info(CLI::App& app, bool& json) {
  CLI::App* const command = app.add_subcommand("info", "show devices, memory, sensors, BLAS and tuning rows");
  command->add_flag("--json", json, "print one JSON object");
  command->callback([&] { info(json); });
}

void add_solve(CLI::App& app, SolveOptions& o) {
  CLI::App* const command = app.add_subcommand("solve", "solve A X = B from Matrix Market files");
  command
      ->add_option(
          "A", o.matrix,
          "the square matrix, a Matrix Market file of any form, perhaps compressed by gzip; - is standard input")
      ->required();
  command->add_option("--rhs", o.rhs, "the right-hand sides, a Matrix Market file [A times ones]")
      ->check(CLI::Validator(not_a_file_name, ""));
  command
      ->add_option(
          "--method", o.method,
          "auto: Cholesky where A is symmetric or hermitian with a positive diagonal and it succeeds, else LU; "
          "both sparse for a coordinate file of order 1000 or more with less than a tenth of all entries, else "
          "dense. sparse: sparse Cholesky; cholesky and lu: dense")
      ->check(CLI::IsMember({"auto", "sparse", "sparse-lu", "cholesky", "lu"}))
      ->capture_default_str();
  command->add_option("--device", o.device, "where to factor and solve")
      ->check(CLI::IsMember({"auto", "host", "cuda"}))
      ->capture_default_str();
  command
      ->add_option(
          "--ordering", o.ordering,
          "of the sparse solver: auto, metis (nested dissection), amd (minimum degree), natural, or, of sparse LU, "
          "colamd [auto]")
      ->check(CLI::IsMember({"auto", "metis", "amd", "natural", "colamd"}));
  command->add_option("--shift", o.shift, "solve with A + SHIFT I")->capture_default_str();
  command->add_flag("--refine", o.refine, "iterative refinement by the sparse solver");
  command
      ->add_option(
          "--max-device-bytes", o.max_device_bytes,
          "of a GPU's memory for sparse Cholesky, such as 2e9: where the factor does not fit, it passes through "
          "[what is free]")
      ->check(CLI::Validator(not_a_byte_count, ""));
  command->add_option("-o,--output", o.output, "write the solution as a Matrix Market array file; - is standard output")
      ->check(CLI::Validator(not_a_file_name, ""));
  command->add_flag("--json", o.json, "print one JSON object");
  command->callback([&] { solve(o); });
}

void add_trace(CLI::App& app, TraceOptions& o) {
  CLI::App* const command =
      app.add_subcommand("trace", "write the timeline of one factorization, to be opened at ui.perfetto.dev");
  command->add_option("op", o.op, "cholesky, lu or sparse")
      ->required()
      ->check(CLI::IsMember({"cholesky", "lu", "sparse"}));
  command->add_option("--matrix", o.matrix, "of sparse: a file or FAMILY:SIZE as of generate")->capture_default_str();
  command->add_option("--ordering", o.ordering, "of sparse: auto, metis, amd or natural")
      ->check(CLI::IsMember({"auto", "metis", "amd", "natural"}))
      ->capture_default_str();
  command->add_option("--max-device-bytes", o.max_device_bytes, "of sparse: see bench sparse")
      ->check(CLI::Validator(not_a_byte_count, ""));
  command->add_option("--n", o.n, "the order")
      ->check(CLI::Range(trifactor::index_t(1), trifactor::index_t(std::numeric_limits<int>::max())))
      ->capture_default_str();
  command->add_option("--scalar", o.scalar, "of f32,f64,c32,c64")->capture_default_str();
  command->add_option("--uplo", o.uplo, "the triangle, of cholesky: lower or upper [lower]")
      ->check(CLI::IsMember({"lower", "upper"}));
  command->add_option("--mode", o.mode, "where panels are factored, of sparse the last subtrees")
      ->check(CLI::IsMember({"auto", "native", "hybrid"}))
      ->capture_default_str();
  command->add_option("--device", o.device, "host or cuda [cuda where there is a GPU]")
      ->check(CLI::IsMember({"host", "cuda"}));
  command->add_option("--tuning", o.tuning, "overrides fields of the tuning row, such as \"nb=512 looking=left\"");
  command->add_option("-o,--output", o.file, "the file to write; - is standard output")
      ->check(CLI::Validator(not_a_file_name, ""))
      ->capture_default_str();
  command->add_option("--seed", o.seed, "of the random matrix")->capture_default_str();
  command->add_flag("--json", o.json, "print the summary as one JSON object");
  command->callback([&o, command] {
    for (const char* const option : {"--matrix", "--ordering", "--max-device-bytes"})
      if (o.op != "sparse" && given(*command, option))
        throw InputError(fmt::format("{} is of sparse: {} factors a random matrix of order --n", option, o.op));
    if (o.op == "sparse" && given(*command, "--n"))
      throw InputError("--n is of cholesky and lu: sparse factors --matrix");
    trace(o);
  });
}

void add_analyze(CLI::App& app, AnalyzeOptions& o) {
  CLI::App* const command = app.add_subcommand("analyze", "tell what a sparse Cholesky factorization will cost");
  command->add_option("A", o.matrix, "a symmetric or hermitian coordinate file, or FAMILY:SIZE as of generate")
      ->required();
  command->add_option("--ordering", o.ordering, "auto, metis (nested dissection), amd (minimum degree) or natural")
      ->check(CLI::IsMember({"auto", "metis", "amd", "natural"}))
      ->capture_default_str();
  command->add_option("--picture", o.picture, "draw the tree by level into this SVG file; - is standard output")
      ->check(CLI::Validator(not_a_file_name, ""));
  command->add_option("--seed", o.seed, "of a generated matrix")->check(CLI::NonNegativeNumber)->capture_default_str();
  command->add_flag("--json", o.json, "print one JSON object");
  command->callback([&o, command] {
    if (given(*command, "--seed") && !is_generated(o.matrix))
      throw InputError(fmt::format("--seed is of a generated matrix: {} is a file", shown_input(o.matrix)));
    analyze(o);
  });
}

void add_generate(CLI::App& app, GenerateOptions& o) {
  CLI::App* const command =
      app.add_subcommand("generate", "write a sparse positive definite matrix as a Matrix Market file");
  command->add_option("matrix", o.word, "FAMILY:SIZE, see below")->required();
  command->add_option("-o,--output", o.output, "the file to write; - is standard output")
      ->required()
      ->check(CLI::Validator(not_a_file_name, ""));
  command->add_option("--seed", o.seed, "of what is random")->check(CLI::NonNegativeNumber)->capture_default_str();
  command->add_flag("--json", o.json, "print one JSON object");
  command->footer("Families:\n" + generated_families());
  command->callback([&] { write_generated(o); });
}

void add_demo(CLI::App& app, std::string& device) {
  CLI::App* const command = app.add_subcommand("demo", "factor and solve a few systems, and show how that went");
  command->add_option("--device", device, "auto (the CPU and, side by side, the GPU where there is one), host or cuda")
      ->check(CLI::IsMember({"auto", "host", "cuda"}))
      ->capture_default_str();
  command->callback([&] { demo(device); });
}

int fail(ExitStatus status, const std::string& message) {
  flush_standard_output();
  std::fputs(fmt::format("trifactor: {}\n", printable_lines(message)).c_str(), stderr);
  return status;
}

template <class... Types>
bool is_one_of(const std::exception& e) {
  return (... || (dynamic_cast<const Types*>(&e) != nullptr));
}

/// What nobody foresaw counts as a missing resource, like OutOfMemory, DeviceFault and OutputError.
ExitStatus status_of(const std::exception& e) {
  if (is_one_of<MatrixError, trifactor::NotPositiveDefinite, trifactor::Singular>(e)) return BadMatrix;
  if (is_one_of<InputError, trifactor::InvalidArgument>(e)) return BadInput;
  return NoResource;
}

}  // namespace
}  // namespace program

int main(int argc, char** argv) {
  using namespace program;
  reserve_standard_streams();
  // Residuals call BLAS, which waits without end for threads that OpenMP does not give it.
  omp_set_dynamic(false);
  omp_set_num_threads(omp_get_max_active_levels() > 0 ? std::min(omp_get_max_threads(), omp_get_thread_limit()) : 1);
  CLI::App app{"Cholesky and LU factorizations of dense and sparse matrices, on the CPU and on the GPU", "trifactor"};
  app.set_version_flag("--version", fmt::format("trifactor {} ({})", trifactor::version(), TRIFACTOR_COMMIT));
  app.require_subcommand(1);
  app.footer(
      "Exit status: 0 done; 1 not positive definite or singular; 2 bad usage or input; "
      "3 out of memory, device fault, or a result that could not be written.");
  struct {
    bool json = false;
    SolveOptions solve;
    TraceOptions trace;
    AnalyzeOptions analyze;
    GenerateOptions generate;
    std::string device = "auto";
    int status = Done;
  } o;
  add_info(app, o.json);
  add_solve(app, o.solve);
  add_bench(app);
  add_tune(app);
  add_trace(app, o.trace);
  add_analyze(app, o.analyze);
  add_generate(app, o.generate);
  add_power(app, o.status);
  add_demo(app, o.device);
  try {
    try {
      app.parse(argc, argv);
    } catch (const CLI::Success& e) {  // --help and --version
      std::ostringstream text;
      app.exit(e, text, text);
      fmt::print("{}", text.str());
    }
    finish_standard_output();
    return o.status;
  } catch (const CLI::Error& e) { return fail(BadInput, usage_message(app, e)); } catch (const std::system_error& e) {
    return fail(NoResource, std::ferror(stdout) ? "standard output: writing failed: " + e.code().message() : e.what());
  } catch (const std::exception& e) {
    return fail(status_of(e), is_one_of<std::bad_alloc>(e) ? "out of memory" : e.what());
  }
}
