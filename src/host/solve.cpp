// HostEngine: solves with the factors of many matrices, side by side in SIMD lanes or one item after the other.
#include <core/path.hpp>
#include <host/blas_memory.hpp>
#include <host/engine.hpp>
#include <host/groups.hpp>
#include <host/interleaved.hpp>
#include <host/item_solves.hpp>

#include <optional>

namespace trifactor::host {

namespace {

/// one(item) or, for small items, side_by_side(items, size, scratch) solves for X with the factors. Both triangles are
/// used while an item is in cache. False for a single matrix, which the driver solves with.
template <class T, class One, class SideBySide>
bool solve_items(HostEngine& e, const char* name, const Items<const T>& factors, const Items<T>& X, const int* info,
                 const SolveTuning& tuning, One one, SideBySide side_by_side) {
  const index_t n = factors.rows, lanes = interleaved<T>().lanes;
  if (X.count == 1 || X.is_flipped) return false;
  const bool in_lanes = X.cols <= tuning.fused && !too_few_for_lanes(n, X.count, lanes, e.threads());
  const index_t limit = in_lanes ? tuning.interleaved : 0, small = factors.ragged() || n <= limit ? min(limit, n) : 0;
  set_path(small == n ? "interleaved" : small > 0 ? "item by item, interleaved" : "item by item");
  const LaneScratch scratch(e.arena(), small > 0 ? interleaved<T>().scratch(small, X.cols) : 0, e.threads());
  GroupedItems items(e.arena(), factors, factors.ragged() || info);
  if (e.arena().planning()) return true;
  const Traced traced(e, name, n, X.cols);
  items.sort(factors, info, small);
  const BlasCallers callers(e.threads(), items.alone);
  std::optional<ThreadScope> scope;
  if (items.alone > 0) scope.emplace(e.threads(), true);
  items.for_each(e.threads(), lanes, double(n) * double(n) * double(1 + X.cols), one,
                 [&](const index_t* group, int size, int thread) { side_by_side(group, size, scratch.of(thread)); });
  return true;
}

}  // namespace

template <class T>
bool HostEngine::cholesky_solved_whole(Items<const T> L, bool flipped, Items<T> X, const int* info,
                                       const SolveTuning& tuning) {
  const Operand<T> first{L, flipped}, second{L.flipped(), !flipped};
  return solve_items(
      *this, "cholesky_solved_whole", L, X, info, tuning,
      [&](index_t b) {
        trsm_item(lower, first, X, b);   // X := L^-1 X or conj(L)^-1 X
        trsm_item(upper, second, X, b);  // X := L^-H X or L^-T X
      },
      [&](const index_t* items, int size, void* scratch) {
        interleaved<T>().cholesky_solve(L, flipped, X, items, size, scratch);
      });
}

template <class T>
bool HostEngine::lu_solved_whole(Op op, Items<const T> LU, Pivots<const int> pivots, Items<T> X, const int* info,
                                 const SolveTuning& tuning) {
  const auto swap = [&](index_t b, bool backward) {
    const auto x = X.item(b);
    for (index_t j = 0; j < x.cols; ++j) exchange(x, j, pivots.item(b), pivots.size(b, LU.rows), 0, backward);
  };
  return solve_items(
      *this, "lu_solved_whole", LU, X, info, tuning,
      [&](index_t b) {
        if (op == Op::None) {
          swap(b, false);                          // X := P X
          trsm_item(unit_lower, plain(LU), X, b);  // X := L^-1 X
          trsm_item(upper, plain(LU), X, b);       // X := U^-1 X
        } else {
          const auto LUt = op == Op::Transpose ? transpose(LU) : hermitian(LU);
          trsm_item(lower, LUt, X, b);       // X := U^-T X or U^-H X
          trsm_item(unit_upper, LUt, X, b);  // X := L^-T X or L^-H X
          swap(b, true);                     // X := P^T X
        }
      },
      [&](const index_t* items, int size, void* scratch) {
        interleaved<T>().lu_solve(LU, pivots, op, X, items, size, scratch);
      });
}

#define TRIFACTOR_INSTANTIATE(T)                                                                                      \
  template bool HostEngine::cholesky_solved_whole<T>(Items<const T>, bool, Items<T>, const int*, const SolveTuning&); \
  template bool HostEngine::lu_solved_whole<T>(Op, Items<const T>, Pivots<const int>, Items<T>, const int*,           \
                                               const SolveTuning&);
TRIFACTOR_FOR_EACH_SCALAR(TRIFACTOR_INSTANTIATE)
#undef TRIFACTOR_INSTANTIATE

}  // namespace trifactor::host
