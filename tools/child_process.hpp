// Another program, run to its end.
#pragma once

#include "unfinished.hpp"

#include <filesystem>
#include <list>
#include <string>
#include <vector>

namespace program {

/// What `command` (a path and its arguments, no shell) wrote to its standard output; its errors go where ours go.
/// Throws OutputError when it cannot be started or does not end with status 0.
std::string output_of(const std::vector<std::string>& command);

/// Runs it with our standard streams, found by PATH where it has no slash, and returns its exit status, or 128 and the
/// number of the signal that ended it. Throws InputError when it cannot be started.
int status_of_child(const std::vector<std::string>& command);

/// The folder of this program.
std::filesystem::path program_folder();

/// An empty folder that vanishes with its files, also when a signal ends the program.
class TemporaryFolder {
 public:
  TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder();
  /// The path of a file that is to be made in it.
  std::string file(const char* name);

 private:
  std::filesystem::path path_;
  std::list<Unfinished> unfinished_;
};

}  // namespace program
