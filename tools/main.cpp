// trifactor: solves, measures and shows what is there. Exit status 0 done, 1 bad matrix, 2 bad usage or input,
// 3 out of memory or device fault.
#include "commands.hpp"
#include "failure.hpp"

#include <fmt/core.h>
#include <commit.hpp>
#include <trifactor/error.hpp>
#include <trifactor/info.hpp>

#include <cstdio>
#include <exception>
#include <new>
#include <string>

namespace {

int fail(program::ExitStatus status, const std::string& message) {
  std::fflush(stdout);
  fmt::print(stderr, "trifactor: {}\n", message);
  return status;
}

template <class... Types>
bool is_one_of(const std::exception& e) {
  return (... || (dynamic_cast<const Types*>(&e) != nullptr));
}

/// What nobody foresaw counts as a missing resource, like OutOfMemory, DeviceFault and OutputError.
program::ExitStatus status_of(const std::exception& e) {
  if (is_one_of<program::MatrixError, trifactor::NotPositiveDefinite, trifactor::Singular>(e))
    return program::BadMatrix;
  if (is_one_of<program::InputError, trifactor::InvalidArgument>(e)) return program::BadInput;
  return program::NoResource;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace program;
  CLI::App app{"Cholesky and LU factorizations of dense and sparse matrices, on the CPU and on the GPU", "trifactor"};
  app.set_version_flag("--version", fmt::format("trifactor {} ({})", trifactor::version(), TRIFACTOR_COMMIT));
  app.require_subcommand(1);
  app.footer(
      "Exit status: 0 done; 1 not positive definite or singular; 2 bad usage or input; "
      "3 out of memory or device fault.");
  add_info(app);
  add_solve(app);
  add_bench(app);
  add_trace(app);
  add_analyze(app);
  add_generate(app);
  add_demo(app);
  try {
    app.parse(argc, argv);
    return Done;
  } catch (const CLI::Error& e) {
    if (e.get_exit_code() == 0) return app.exit(e);  // --help and --version
    return fail(BadInput, fmt::format("{}\nRun trifactor --help for the usage.", e.what()));
  } catch (const std::exception& e) {
    return fail(status_of(e), is_one_of<std::bad_alloc>(e) ? "out of memory" : e.what());
  }
}
