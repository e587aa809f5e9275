// Solves with one triangle, halved until the engine takes it whole: what is left over is products.
#pragma once

#include <core/engine.hpp>

namespace trifactor::dense {

using namespace core;

/// Where to cut n in two: near the middle, at a multiple of `unit`. Wants n > unit.
inline index_t halve(index_t n, index_t unit) { return ceil_div(ceil_div(n, unit), 2) * unit; }

/// B := A^-1 B for the triangle `shape` of A.
template <class T, EngineFor<T> E>
void trsm(E& e, Shape shape, Operand<T> A, Items<T> B, const int* info) {
  const index_t n = A.items.rows, limit = e.trsm_limit(A, B);
  if (n == 0 || B.cols == 0) return;
  if (n <= limit) return e.trsm(shape, A, B, info);
  const index_t k = halve(n, limit), rest = n - k;
  const auto part = [&](index_t i, index_t j, index_t m, index_t w) { return Operand<T>{A.items.block(i, j, m, w), A.conj}; };
  auto B1 = B.block(0, 0, k, B.cols), B2 = B.block(k, 0, rest, B.cols);
  if (shape.lower) {
    trsm(e, shape, part(0, 0, k, k), B1, info);           // B1 := A11^-1 B1
    e.gemm(part(k, 0, rest, k), plain(B1), B2, info);     // B2 -= A21 B1
    trsm(e, shape, part(k, k, rest, rest), B2, info);     // B2 := A22^-1 B2
  } else {
    trsm(e, shape, part(k, k, rest, rest), B2, info);     // B2 := A22^-1 B2
    e.gemm(part(0, k, k, rest), plain(B2), B1, info);     // B1 -= A12 B2
    trsm(e, shape, part(0, 0, k, k), B1, info);           // B1 := A11^-1 B1
  }
}

}  // namespace trifactor::dense
