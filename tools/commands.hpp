// The subcommands of the program. Each adds itself to the command line and runs once that has been read.
#pragma once

#include <CLI/CLI.hpp>

namespace program {

void add_info(CLI::App&);
void add_solve(CLI::App&);
void add_bench(CLI::App&);
void add_trace(CLI::App&);
void add_analyze(CLI::App&);
void add_generate(CLI::App&);
void add_demo(CLI::App&);

}  // namespace program
