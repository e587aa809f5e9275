// A file that takes its name only when it is complete; until then, and after a failure, the old one is there.
#pragma once

#include "unfinished.hpp"

#include <sys/stat.h>

#include <optional>
#include <string>
#include <string_view>

namespace program {

/// A new file is written beside its place and renamed. One that is there keeps its mode, its owner and its kind:
/// - one with a single name is replaced by a file of the same mode and owner;
/// - one with more names, and one whose folder or owner does not allow that, is filled in place once all of its new
///   content is stored elsewhere;
/// - a symbolic link stays, and what it points to is written or made;
/// - a pipe or a terminal is written as it is, and "-" is standard output.
/// A read-only file is refused, for root as well. A signal leaves nothing behind that has no name yet.
class NewFile {
 public:
  /// Throws InputError where it cannot be written.
  explicit NewFile(const std::string& path);
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  ~NewFile();

  /// Both throw OutputError.
  void append(std::string_view text);
  void finish();

  /// What the constructor would refuse, long before there is something to write.
  static void check(const std::string& path);

 private:
  struct Target {
    explicit Target(const std::string& path);
    std::string shown, path;  // path: behind all symbolic links
    bool exists = false;
    struct stat status = {};
    bool is_plain() const { return !exists || S_ISREG(status.st_mode); }
  };

  bool open_beside();
  void fill_in_place();
  void release();
  [[noreturn]] void fail();

  Target target_;
  int descriptor_ = -1;
  bool renames_ = false;  // else the target is filled from what was stored, or written as it is
  std::string partial_;   // the name until it is complete; empty where it has none
  std::optional<Unfinished> pending_;
};

}  // namespace program
