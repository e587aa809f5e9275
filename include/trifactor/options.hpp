// What a caller may choose in the calls of dense matrices: cholesky(A, {.uplo = Uplo::Upper, .tuning = "nb=128"}).
#pragma once

#include <trifactor/views.hpp>

#include <string>

namespace trifactor {

/// Of the expert forms.
///
/// With shift_tries > 0, items that are not positive definite are factored again, with a shift on the diagonal:
/// shift_first * shift_growth^t in try t = 0, 1, ..., times the modulus of the largest diagonal entry. The tries are
/// part of the call: on a CUDA queue they are enqueued, only failed items do work in them, and the host is not asked.
/// They keep a copy of all triangles in scratch memory, of a ragged batch with room for its largest item in place of
/// each.
struct CholeskyOptions {
  Mode mode = Mode::Auto;
  std::string tuning = {};   // overrides fields of the tuning row, such as "nb=128 looking=left"
  int shift_tries = 0;       // 0: off; at most 100
  double shift_first = 0;    // finite and not negative; 0: the square root of the scalar's epsilon
  double shift_growth = 10;  // finite and at least 1
  /// In the queue's memory, an entry for each item, may be null: what was added to the diagonal of each item at last; 0
  /// where the first factorization was good or the item impossible. The info of an item is that of its last try.
  ArrayView<double> shift_used = nullptr;
};

/// Of the value form. CholeskyFactor::shift() is what was added to the diagonal at last.
struct CholeskyValueOptions {
  Uplo uplo = Uplo::Lower;  // the triangle of A that is read
  Device device = Device::Auto;
  Mode mode = Mode::Auto;
  std::string tuning = {};  // these four as in CholeskyOptions
  int shift_tries = 0;
  double shift_first = 0;
  double shift_growth = 10;
};

struct LuOptions {
  Mode mode = Mode::Auto;
  std::string tuning = {};  // overrides fields of the tuning row, such as "nb=128"
};

/// Of the value form.
struct LuValueOptions {
  Device device = Device::Auto;
  Mode mode = Mode::Auto;
  std::string tuning = {};  // as in LuOptions
};

/// Of solves with a factor and of inverses from it.
struct SolveOptions {
  std::string tuning = {};  // overrides fields of the tuning row, such as "sweep_columns=4"
};

}  // namespace trifactor
