// Files that must not outlive the program: removed when a signal ends it.
#pragma once

#include <string>

namespace program {

/// While it exists, a signal that ends the program (SIGINT, SIGTERM, SIGHUP, SIGXFSZ ...) removes the file or the empty
/// folder first; later ones before earlier ones. The program then ends by that signal. Signals that are ignored stay
/// so.
class Unfinished {
 public:
  explicit Unfinished(const std::string& path);
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;
  ~Unfinished();

 private:
  int slot_;
};

}  // namespace program
