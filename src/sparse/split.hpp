// Wide fronts as chains of narrower ones. A front is stored as a rectangle, with what lies above its diagonal; a chain leaves
// most of that out, and less of it has to be in memory at a time.
#pragma once

#include <sparse/plan.hpp>

#include <optional>

namespace trifactor::sparse {

/// Columns of each part of a front but the last, at most `widest`, which is at least 64. Parts differ little, and begin at
/// multiples of 64: blocks of that edge, which solves invert, stay what they are.
inline index_t part_width(index_t columns, index_t widest) {
  constexpr index_t edge = 64;
  if (columns <= widest) return columns;
  const auto ceil_div = [](index_t a, index_t b) { return (a + b - 1) / b; };
  const index_t parts = ceil_div(columns, widest / edge * edge);
  return ceil_div(ceil_div(columns, parts), edge) * edge;
}

/// A plan for the same columns in the same order, whose fronts are parts of those of another one. It has no levels and no
/// targets.
struct SplitPlan {
  Plan plan;
  std::vector<index_t> whole;  // of each front: the one that it is a part of
};

/// With chains in place of fronts of more than `widest` columns; nothing if there are none.
std::optional<SplitPlan> split_fronts(const Plan&, index_t widest, int threads);

}  // namespace trifactor::sparse
