// Solves and interchanges of one item of a batch.
#pragma once

#include <core/blas_form.hpp>
#include <host/blas.hpp>
#include <host/threads.hpp>
#include <tile/trsm.hpp>

namespace trifactor::host {

inline CBLAS_TRANSPOSE cblas(core::BlasOp op) {
  return op == core::BlasOp::None ? CblasNoTrans : op == core::BlasOp::Transpose ? CblasTrans : CblasConjTrans;
}

/// OpenBLAS solves with the reciprocals of the diagonal, and those of subnormal numbers overflow.
template <class T>
bool has_safe_diagonal(const core::Tile<const T>& A) {
  using R = core::Real<T>;
  bool safe = true;
  for (index_t k = 0; k < core::min(A.rows, A.cols); ++k) {
    const R size = core::abs1(A(k, k));
    safe &= size >= 2 * core::Limits<R>::smallest || size == R(0) || size != size;
  }
  return safe;
}

/// Item b: B := A^-1 B
template <class T>
void trsm_item(core::Shape shape, const core::Operand<T>& A, const core::Items<T>& B, index_t b) {
  const core::TrsmForm form = core::trsm_form(shape, A, B);
  const auto a = A.items.item(b);
  const auto x = B.item(b);
  if (x.rows == 0 || x.cols == 0) return;
  if (!form.a.possible || !(shape.unit || has_safe_diagonal(a)))
    return tile::trsm(alone, shape.lower, shape.unit, a, A.conj, x);
  blas::trsm(form.left ? CblasLeft : CblasRight, form.stored_lower ? CblasLower : CblasUpper, cblas(form.a.op),
             shape.unit ? CblasUnit : CblasNonUnit, int(form.left ? x.rows : x.cols), int(form.left ? x.cols : x.rows),
             a.data, int(core::stored_ld(a, A.items.is_flipped)), x.data, int(core::stored_ld(x, B.is_flipped)));
}

/// Makes so many interchanges in column j, or takes them back. `first`: what row 0 of A counts as.
template <class T>
void exchange(const core::Tile<T>& A, index_t j, const int* partner, index_t count, index_t first, bool backward) {
  for (index_t s = 0; s < count; ++s) {
    const index_t i = backward ? count - 1 - s : s, p = partner[i] - 1 - first;
    const T t = A(i, j);
    A(i, j) = A(p, j), A(p, j) = t;
  }
}

}  // namespace trifactor::host
