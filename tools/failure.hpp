// How a command ends when it cannot do what was asked: one type for each exit status.
#pragma once

#include <stdexcept>

namespace program {

enum ExitStatus { Done = 0, BadMatrix = 1, BadInput = 2, NoResource = 3 };

/// Exit 1: the matrix, or a result about it, is no good; the message says at which row.
class MatrixError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Exit 2: bad usage or input; for a file the message starts with file:line.
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Exit 3: what was computed could not be stored.
class OutputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace program
