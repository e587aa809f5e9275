// How an operation on views becomes one BLAS call on stored, column-major matrices; both engines use it.
// BLAS knows no product with a conjugated but not transposed matrix: such a form is not `possible`.
#pragma once

#include <core/engine.hpp>

namespace trifactor::core {

enum class BlasOp { None, Transpose, ConjTranspose };

struct StoredOp {
  BlasOp op = BlasOp::None;
  bool possible = true;
};

template <class T>
StoredOp stored_op(bool transposed, bool conj) {
  if (!transposed) return {BlasOp::None, !(conj && is_complex<T>)};
  return {conj && is_complex<T> ? BlasOp::ConjTranspose : BlasOp::Transpose, true};
}

/// C -= A B. Where C is stored flipped, C^T -= B^T A^T is computed instead: `swapped`.
struct GemmForm {
  bool swapped;
  StoredOp a, b;   // of the matrices as stored
  bool possible() const { return a.possible && b.possible; }
};
template <class T>
GemmForm gemm_form(const Operand<T>& A, const Operand<T>& B, const Items<T>& C) {
  const bool s = C.is_flipped;
  return {s, stored_op<T>(A.items.is_flipped != s, A.conj), stored_op<T>(B.items.is_flipped != s, B.conj)};
}

/// B := A^-1 B. Where B is stored flipped, B^T := B^T A^-T is computed instead: not `left`.
struct TrsmForm {
  bool left, stored_lower;
  StoredOp a;
};
template <class T>
TrsmForm trsm_form(Shape shape, const Operand<T>& A, const Items<T>& B) {
  const bool left = !B.is_flipped;
  return {left, shape.lower != A.items.is_flipped, stored_op<T>(A.items.is_flipped == left, A.conj)};
}

/// C -= A A^H on the lower triangle: of stored matrices C -= S S^H (lower), or C^T -= S^H S (upper) where both are flipped.
template <class T>
bool herk_possible(const Items<const T>& A, const Items<T>& C) { return A.is_flipped == C.is_flipped; }

/// The leading dimension of a tile as stored.
template <class T> index_t stored_ld(const Tile<T>& t, bool flipped) { return flipped ? t.row_stride : t.col_stride; }

}  // namespace trifactor::core
