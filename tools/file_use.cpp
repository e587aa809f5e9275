#include "file_use.hpp"

#include "failure.hpp"
#include "input_file.hpp"
#include "new_file.hpp"
#include "printable.hpp"
#include "standard_streams.hpp"

#include <fmt/core.h>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <utility>

namespace program {
namespace {

using Identity = std::pair<dev_t, ino_t>;

/// What is there under a name or number; nothing where nothing is, and for terminals and the like, which keep apart
/// what is read and written.
std::optional<Identity> identity_of(const std::string& path, int standard) {
  struct stat status = {};
  const int failed = path == "-" ? ::fstat(standard, &status) : ::stat(path.c_str(), &status);
  if (failed != 0 || S_ISCHR(status.st_mode)) return std::nullopt;
  return Identity{status.st_dev, status.st_ino};
}

void check_pair(const std::string& input, const std::string& output) {
  const auto read = identity_of(input, STDIN_FILENO), written = identity_of(output, STDOUT_FILENO);
  if (read && read == written)
    throw InputError(fmt::format("{}: the output would overwrite the input {}",
                                 output == "-" ? "standard output" : printable(output), shown_input(input)));
}

}  // namespace

void check_file_use(const std::vector<std::string>& inputs, const std::vector<std::string>& outputs) {
  if (std::count(inputs.begin(), inputs.end(), "-") > 1)
    throw InputError("standard input (-) can be only one of the files that are read");
  std::vector<std::string> read = inputs, written = outputs;
  if (const char* const tuning = std::getenv("TRIFACTOR_TUNING"); tuning && std::string(tuning) != "off")
    read.emplace_back(tuning);
  written.emplace_back("-");  // reports go there
  for (const std::string& output : written) {
    if (output.empty()) continue;
    for (const std::string& input : read)
      if (!input.empty()) check_pair(input, output);
  }
  for (const std::string& output : outputs) {
    if (output.empty()) continue;
    if (is_standard_output(output))
      keep_standard_output_for_data(output);
    else
      NewFile::check(output);
  }
}

}  // namespace program
