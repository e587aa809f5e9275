// trifactor.LU: P A = L U of one matrix, of a batch or of a list, in the caller's kind of array.
#pragma once

#include "dense.hpp"

#include <atomic>

namespace trifactor::python {

class LU {
 public:
  /// transpose_in_place: a row-major A is factored as its transpose, whose L, U and p nobody may see; solve has
  /// Op::None.
  LU(const Matrices& A, bool overwrite_a, bool check, bool transpose_in_place = false);

  nb::object solve(nb::handle b, nb::handle trans, bool overwrite_b, nb::handle out) const;
  nb::object slogdet() const;
  nb::object inverse(nb::handle out) const;
  nb::object L() const { return part("unit_lower"); }
  nb::object U() const { return part("upper"); }
  nb::object row_permutation() const;
  nb::object info() const { return info_.reveal(LU_, LU_.batch); }
  const Matrices& matrices() const { return LU_; }

  /// Right-hand sides that are prepared already.
  void solve_prepared(Queue&, Op, Rhs&) const;
  void raise_if_singular(Queue&) const;

 private:
  nb::object part(const char* method) const;
  index_t pivot_stride() const { return std::min(operand_.rows, operand_.cols); }

  Matrices LU_;
  Operand operand_;
  Integers pivots_, info_;
  bool check_, transposed_ = false;
  mutable std::atomic<bool> known_good_{false};
};

void bind_lu(nb::module_&);

}  // namespace trifactor::python
