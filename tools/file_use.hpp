// What a command reads and writes, looked at before it works.
#pragma once

#include <string>
#include <vector>

namespace program {

/// Throws InputError where an output would overwrite an input (or the tuning file), is a folder, or cannot be written,
/// and where two inputs are standard input. An output that is standard output sends everything else that is printed to
/// standard error. Empty names are none.
void check_file_use(const std::vector<std::string>& inputs, const std::vector<std::string>& outputs);

}  // namespace program
