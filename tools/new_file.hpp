// A file that takes its name only when it is complete; until then, and after a failure, it is not there.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace program {

class NewFile {
 public:
  /// Written beside its place under another name; a pipe or a terminal keeps its name. Throws InputError.
  explicit NewFile(const std::string& path);
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  ~NewFile();

  /// Both throw OutputError.
  void append(std::string_view text);
  void finish();

 private:
  [[noreturn]] void fail();

  std::string shown_;
  std::filesystem::path target_, written_;
  int descriptor_ = -1;
};

}  // namespace program
