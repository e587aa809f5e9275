// trifactor bench compare: what became slower from one file of rows to another.
#pragma once

#include <string>

namespace program {

struct CompareOptions {
  std::string before, after;   // FILE, or FILE@COMMIT for the rows of that commit alone
  std::string by = "seconds";  // or ratio
  double tolerance = 0.03;     // a change below this is no change, however small the spreads are
  bool all = false, json = false;
};

/// Joins the rows of both by what was measured and prints those that changed. Throws MatrixError at the end where
/// something became slower, InputError where no row of one is in the other.
void compare_rows(const CompareOptions&);

}  // namespace program
