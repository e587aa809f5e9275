// trifactor.Cholesky: factors of one matrix, of a batch or of a list, in the caller's kind of array.
#pragma once

#include "dense.hpp"

#include <atomic>

namespace trifactor::python {

struct ShiftOptions {
  int tries = 0;
  double first = 0, growth = 10;
};

class Cholesky {
 public:
  Cholesky(const Matrices& A, bool lower, bool overwrite_a, bool check, const ShiftOptions& = {});

  nb::object solve(nb::handle b, bool overwrite_b, nb::handle out) const;
  nb::object log_det() const;
  nb::object inverse() const;
  /// The lower or the upper factor, with zeros in the other triangle.
  nb::object factor(bool lower);
  nb::object info() const { return info_.reveal(L_, L_.batch); }
  nb::object shift() const;
  bool lower() const { return lower_; }
  const Matrices& matrices() const { return L_; }

  /// The triangle of the memory as the library sees it.
  Uplo uplo() const { return lower_ != operand_.row_major ? Uplo::Lower : Uplo::Upper; }

 private:
  void clear_other_triangle();

  Matrices L_;
  Operand operand_;
  Integers info_;
  Integers shift_;  // bytes of doubles
  bool shifted_ = false;
  bool lower_, checked_;
  bool conj_ = false;               // the library sees a row-major complex matrix as its conjugate
  std::atomic<bool> clean_{false};  // the other triangle holds zeros
};

void bind_cholesky(nb::module_&);

}  // namespace trifactor::python
