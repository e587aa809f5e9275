// Blocked Cholesky: one loop for every scalar, triangle, batch kind and backend, and for native and hybrid panels.
#pragma once

#include <core/path.hpp>
#include <dense/panel.hpp>
#include <dense/triangle.hpp>

namespace trifactor::dense {

/// The diagonal tile from the left in steps of ib columns: the loop stands outside of the kernels.
template <class T, EngineFor<T> E>
void cholesky_steps(E& e, Items<T> A, int* info, index_t first, index_t ib) {
  for (index_t k = 0; k < A.rows; k += ib) {
    const index_t w = min(ib, A.rows - k), k1 = k + w, rest = A.rows - k1;
    auto A10 = A.block(k, 0, w, k), A11 = A.block(k, k, w, w);             // (w, k)     (w, w)
    auto A20 = A.block(k1, 0, rest, k), A21 = A.block(k1, k, rest, w);     // (rest, k)  (rest, w)
    e.herk(A10, A11, info);                                                // A11 -= A10 A10^H
    e.gemm(plain(A20), hermitian(A10), A21, info);                         // A21 -= A20 A10^H
    e.cholesky_tile(A11, info, first + k);                                 // A11 = L11 L11^H
    trsm(e, lower, conjugate(A11), A21.flipped(), info);                   // A21 := A21 L11^-H
  }
}

/// The diagonal tile, halved down to `leaf`; what is left is one operation, or steps of ib columns where ib > 0.
template <class T, EngineFor<T> E>
void cholesky_tile(E& e, Items<T> A, int* info, index_t first, index_t leaf, index_t ib) {
  const index_t n = A.rows;
  if (n <= leaf) return ib > 0 ? cholesky_steps(e, A, info, first, ib) : e.cholesky_tile(A, info, first);
  const index_t k = halve(n, leaf), rest = n - k;
  auto A11 = A.block(0, 0, k, k), A21 = A.block(k, 0, rest, k), A22 = A.block(k, k, rest, rest);
  cholesky_tile(e, A11, info, first, leaf, ib);              // A11 = L11 L11^H
  trsm(e, lower, conjugate(A11), A21.flipped(), info);       // A21 := A21 L11^-H
  e.herk(A21, A22, info);                                    // A22 -= A21 A21^H
  cholesky_tile(e, A22, info, first + k, leaf, ib);          // A22 = L22 L22^H
}

/// Factors the lower triangle of A; info was reset. The panel of the next step hides behind the update of this one.
template <class T, EngineFor<T> E, class Panel>
void cholesky_blocked(E& e, Items<T> A, int* info, const CholeskyTuning& tuning, Panel& panel) {
  const index_t n = A.rows, nb = tuning.nb, ib = tuning.tile == TileForm::Exclusive ? tuning.ib : 0;
  auto factor = [&](auto& engine, Items<T> tile, Pivots<int>, int* tile_info, index_t first) {
    cholesky_tile(engine, tile, tile_info, first, panel.leaf(tuning.leaf), ib);
  };
  if (tuning.looking == Looking::Left) {
    for (index_t k = 0; k < n; k += nb) {
      const index_t w = min(nb, n - k), k1 = k + w, rest = n - k1;
      auto A10 = A.block(k, 0, w, k), A11 = A.block(k, k, w, w);             // (w, k)     (w, w)
      auto A20 = A.block(k1, 0, rest, k), A21 = A.block(k1, k, rest, w);     // (rest, k)  (rest, w)
      e.herk(A10, A11, info);                                                // A11 -= A10 A10^H
      panel.begin(A11, {}, info, k, factor);
      e.gemm(plain(A20), hermitian(A10), A21, info);                         // A21 -= A20 A10^H
      panel.end(A11, {}, info, k, factor);                              // A11 = L11 L11^H
      trsm(e, lower, conjugate(A11), A21.flipped(), info);                   // A21 := A21 L11^-H
    }
    return;
  }
  auto next = A.block(0, 0, min(nb, n), min(nb, n));
  panel.begin(next, {}, info, 0, factor);
  panel.end(next, {}, info, 0, factor);
  for (index_t k = 0; k + nb < n; k += nb) {
    const index_t k1 = k + nb, rest = n - k1, w = min(nb, rest), k2 = k1 + w;
    auto A11 = next, A21 = A.block(k1, k, rest, nb);                         // (nb, nb)   (rest, nb)
    trsm(e, lower, conjugate(A11), A21.flipped(), info);                     // A21 := A21 L11^-H
    auto P = A.block(k1, k, w, nb), Q = A.block(k2, k, n - k2, nb);          // the rows of the next tile, and those below
    next = A.block(k1, k1, w, w);
    e.herk(P, next, info);                                                   // next -= P P^H
    panel.begin(next, {}, info, k1, factor);
    e.gemm(plain(Q), hermitian(P), A.block(k2, k1, n - k2, w), info);        // below next -= Q P^H
    e.herk(Q, A.block(k2, k2, n - k2, n - k2), info);                        // the rest -= Q Q^H
    panel.end(next, {}, info, k1, factor);                              // next = L L^H
  }
}

/// Factors the lower triangle of every item of A.
template <class T, EngineFor<T> E>
void cholesky(E& e, Items<T> A, int* info, const CholeskyTuning& tuning) {
  if (A.rows == 0 || A.count == 0) return e.reset_info(A, true, info);
  if (e.cholesky_whole(A, info, tuning)) return;
  const auto in_steps = [&e](Items<T> A, Array<int> info, const CholeskyTuning& tuning) {
    e.reset_info(A, true, info.data);
    set_path("blocked ", tuning.looking == Looking::Left ? "left" : "right");
    NativePanel<E> panel(e);
    cholesky_blocked(e, A, info.data, tuning, panel);
  };
  e.run_as_graph(in_steps, A, Array<int>{info, A.count}, tuning);
}

/// How failed items are tried again: shift * growth^t is added to the diagonal, relative to its largest entry.
struct ShiftTries {
  int tries = 0;
  double shift = 0, growth = 10;
  double* used = nullptr;   // the shift of every item

  bool operator==(const ShiftTries&) const = default;
  ShiftTries without_used() const { return {tries, shift, growth, nullptr}; }
};

/// Factors every item of A, and those that fail again with a growing shift: each try is enqueued, and does nothing where
/// no item is left.
template <class T, EngineFor<T> E>
void cholesky(E& e, Items<T> A, int* info, const CholeskyTuning& tuning, const ShiftTries& shifts) {
  if (shifts.tries == 0 || A.count == 0) return cholesky(e, A, info, tuning);
  const auto all_tries = [&e](Items<T> A, Array<int> infos, const CholeskyTuning& tuning, ShiftTries shifts,
                              Array<double> used) {
    int* const info = infos.data;
    auto saved = e.arena().template take<T>(saturated_product(A.count, lower_size(A)));
    auto retry = e.arena().template take<int>(A.count);
    e.save_lower(Items<const T>(A), saved.data(), used.data);
    cholesky(e, A, info, tuning);
    if (A.rows == 0) return;
    double shift = shifts.shift;
    for (int t = 0; t < shifts.tries; ++t, shift *= shifts.growth) {
      e.shift_failed(A, static_cast<const T*>(saved.data()), Real<T>(shift), info, retry.data(), used.data);
      e.cholesky_tile(A, retry.data(), 0);
      e.take_retry(A.count, retry.data(), info);
    }
  };
  e.run_as_graph(all_tries, A, Array<int>{info, A.count}, tuning, shifts.without_used(),
             Array<double>{shifts.used, A.count});   // an address that is not in an Array would be part of the graph
}

/// The same for one matrix, with the diagonal tiles on the host.
template <class T, OffloadEngineFor<T> E, EngineFor<T> H>
void cholesky_hybrid(E& e, H& host, Items<T> A, int* info, const CholeskyTuning& tuning) {
  e.reset_info(A, true, info);
  if (A.rows == 0) return;
  set_path("blocked ", tuning.looking == Looking::Left ? "left hybrid" : "right hybrid");
  const index_t w = min(tuning.nb, A.rows);
  HybridPanel<E, H, T> panel(e, host, w * w, 0);
  CholeskyTuning on_host = tuning;
  on_host.tile = TileForm::Inclusive;   // a tile is one LAPACK call
  cholesky_blocked(e, A, info, on_host, panel);
}

}  // namespace trifactor::dense
