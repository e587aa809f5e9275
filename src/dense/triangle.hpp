// Solves with one triangle, in the way that suits the engine and the number of right-hand sides.
#pragma once

#include <core/engine.hpp>

namespace trifactor::dense {

using namespace core;

/// Where to cut n in two: near the middle, at a multiple of `unit`. Wants n > unit.
inline index_t halve(index_t n, index_t unit) { return ceil_div(ceil_div(n, unit), 2) * unit; }

/// A block of an operand.
template <class T>
Operand<T> part(const Operand<T>& A, index_t i, index_t j, index_t m, index_t n) {
  return {A.items.block(i, j, m, n), A.conj};
}

/// B := A^-1 B, halved at multiples of `unit` until solve(first, A, B) takes the triangle, which begins at row and
/// column `first` of the one that was given: what is left over is products.
template <class T, EngineFor<T> E, class Solve>
void trsm_halved(E& e, bool lower, Operand<T> A, Items<T> B, const int* info, index_t unit, index_t limit, index_t first,
                 Solve solve) {
  const index_t n = A.items.rows;
  if (n == 0) return;
  if (n <= limit) return solve(first, A, B);
  const index_t k = halve(n, unit), rest = n - k;
  auto B1 = B.block(0, 0, k, B.cols), B2 = B.block(k, 0, rest, B.cols);
  const auto with_first = [&] { trsm_halved(e, lower, part(A, 0, 0, k, k), B1, info, unit, limit, first, solve); };
  const auto with_second = [&] {
    trsm_halved(e, lower, part(A, k, k, rest, rest), B2, info, unit, limit, first + k, solve);
  };
  if (lower) {
    with_first();                                           // B1 := A11^-1 B1
    e.gemm(part(A, k, 0, rest, k), plain(B1), B2, info);    // B2 -= A21 B1
    with_second();                                          // B2 := A22^-1 B2
  } else {
    with_second();                                          // B2 := A22^-1 B2
    e.gemm(part(A, 0, k, k, rest), plain(B2), B1, info);    // B1 -= A12 B2
    with_first();                                           // B1 := A11^-1 B1
  }
}

/// A triangle that is solved with, perhaps again and again: what the engine inverts of it, once, serves every solve
/// with it and with its conjugate transpose.
template <class T, EngineFor<T> E>
class Triangle {
 public:
  /// For right-hand sides in the shape of B, or blocks of their columns. Items whose info is not 0 are not solved for.
  Triangle(E& e, Shape shape, Operand<T> A, const Items<T>& B, const int* info, const SolveTuning& tuning)
      : e_(e), shape_(shape), A_(A), tuning_(tuning), in_sweep_(B.cols <= tuning.sweep_columns),
        edge_(in_sweep_ ? 0 : e.inverse_edge(A, B, tuning)),
        taken_(e.arena().template take<T>(edge_ > 0 ? e.inverses_size(A) : 0)), inverses_(taken_.data()) {
    if (edge_ > 0) e.invert_blocks(shape, A, taken_.data(), info);
  }
  /// With inverses of blocks of this edge that exist already.
  Triangle(E& e, Shape shape, Operand<T> A, const T* inverses, index_t edge, const SolveTuning& tuning)
      : e_(e), shape_(shape), A_(A), tuning_(tuning), in_sweep_(false), edge_(edge),
        taken_(e.arena().template take<T>(0)), inverses_(inverses) {}

  /// B := T^-1 B, for the triangle T of A from row and column `first` on: a multiple of 64.
  void solve(Items<T> B, const int* info, index_t first = 0) const { solve(shape_, A_, B, info, first); }
  /// B := T^-H B
  void solve_adjoint(Items<T> B, const int* info, index_t first = 0) const {
    solve({!shape_.lower, shape_.unit}, {A_.items.flipped(), !A_.conj}, B, info, first);
  }
  /// B := T^-H T^-1 B for the whole of it.
  void solve_both(Items<T> B, const int* info) const {
    path_ = "one launch";
    if (in_sweep_ && A_.items.rows > 0 && B.cols > 0 && e_.trsm_whole(shape_, A_, B, true, info, tuning_)) return;
    solve(B, info);
    solve_adjoint(B, info);
  }
  /// How the last solve went, for tests.
  const char* path() const { return path_; }

 private:
  void solve(Shape shape, const Operand<T>& whole, Items<T> B, const int* info, index_t first) const {
    const index_t n = whole.items.rows - first;
    const Operand<T> A = part(whole, first, first, n, n);
    if (n == 0 || B.cols == 0) return;
    path_ = "one launch";
    if (in_sweep_ && e_.trsm_whole(shape, A, B, false, info, tuning_)) return;
    if (edge_ > 0) {
      path_ = "inverted blocks";
      return trsm_halved(e_, shape.lower, A, B, info, width(), max(tuning_.halve, width()), first,
                         [&](index_t at, const Operand<T>& A11, Items<T> B1) { inverted(shape, A11, B1, info, at); });
    }
    path_ = "halved";
    const index_t limit = e_.trsm_limit(A, B);
    trsm_halved(e_, shape.lower, A, B, info, limit, limit, first,
                [&](index_t, const Operand<T>& A11, Items<T> B1) { e_.trsm(shape, A11, B1, info); });
  }

  /// Rows that are solved between two products.
  index_t width() const { return max(edge_, min(tuning_.nb, e_.inverted_limit()) / edge_ * edge_); }

  /// Right-looking: few rows are solved, and subtracted at once from all that is left, so that products are tall.
  void inverted(Shape shape, const Operand<T>& A, Items<T> B, const int* info, index_t first) const {
    const index_t n = A.items.rows, nb = width(), blocks = ceil_div(n, nb);
    for (index_t b = 0; b < blocks; ++b) {
      const index_t k = (shape.lower ? b : blocks - 1 - b) * nb, w = min(nb, n - k), k1 = k + w;
      auto B1 = B.block(k, 0, w, B.cols);
      const Inverses<T> inverses{inverses_, first + k};
      e_.trsm_inverted(shape, part(A, k, k, w, w), inverses, B1, info);                      // B1 := A11^-1 B1
      if (shape.lower)
        e_.gemm(part(A, k1, k, n - k1, w), plain(B1), B.block(k1, 0, n - k1, B.cols), info); // rest -= A21 B1
      else
        e_.gemm(part(A, 0, k, k, w), plain(B1), B.block(0, 0, k, B.cols), info);             // rest -= A01 B1
    }
  }

  E& e_;
  Shape shape_;
  Operand<T> A_;
  SolveTuning tuning_;
  bool in_sweep_;
  index_t edge_;                   // of the blocks that are inverted, 0: none are
  Arena::Scratch<T> taken_;
  const T* inverses_;
  mutable const char* path_ = "";
};

/// B := A^-1 B for the triangle `shape` of A.
template <class T, EngineFor<T> E>
void trsm(E& e, Shape shape, Operand<T> A, Items<T> B, const int* info, const SolveTuning& tuning = {}) {
  if (A.items.rows > 0 && B.cols > 0) Triangle<T, E>(e, shape, A, B, info, tuning).solve(B, info);
}

}  // namespace trifactor::dense
