// What the condition of a matrix means for the digits of a solution.
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

namespace program {

/// The estimate of a factorization, rcond(), of a matrix whose numbers are `Real`.
template <class Real>
struct Condition {
  double rcond = 1;
  static constexpr double eps = std::numeric_limits<Real>::epsilon() / 2;

  static int digits() { return int(std::lround(-std::log10(eps))); }
  int trusted_digits() const { return rcond < eps ? 0 : std::max(0, digits() + int(std::floor(std::log10(rcond)))); }
  /// "3.2e+08  estimate, 1-norm: about 7 of 16 digits can be trusted"
  std::string text() const {
    return fmt::format("{:.1e}  estimate, 1-norm: about {} of {} digits can be trusted", 1 / rcond, trusted_digits(),
                       digits());
  }
  /// Empty where some digits are left.
  std::string warning() const {
    if (!(rcond < eps)) return {};
    return fmt::format(
        "A is singular to working precision (condition estimate {:.1e}): the solution may have no "
        "correct digit",
        1 / rcond);
  }
};

}  // namespace program
