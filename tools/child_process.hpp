// Another program, run to its end.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace program {

/// What `command` (a path and its arguments, no shell) wrote to its standard output; its errors go where ours go.
/// Throws OutputError when it cannot be started or does not end with status 0.
std::string output_of(const std::vector<std::string>& command);

/// The folder of this program.
std::filesystem::path program_folder();

/// An empty folder that vanishes with its content.
class TemporaryFolder {
 public:
  TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder();
  std::string file(const char* name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace program
