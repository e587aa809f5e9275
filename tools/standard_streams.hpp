// Standard input, output and error of the program.
#pragma once

#include <string>

namespace program {

/// To be called first: where one of them is closed, its number would go to the next file that is opened.
void reserve_standard_streams();

/// Whether a path is standard output: "-", or the name of the pipe or file that it is.
bool is_standard_output(const std::string& path);

/// From here on standard output, under this name, takes data: whatever is printed goes to standard error.
void keep_standard_output_for_data(const std::string& path);
/// Where data goes that is meant for standard output.
int standard_output_for_data();

/// Sends on what was printed. A failure is remembered.
void flush_standard_output();
/// The same, and throws OutputError when something that was printed could not be written: for work whose only result is
/// what it prints.
void require_standard_output();
/// The same, and closes it: to be called last.
void finish_standard_output();

}  // namespace program
