// The given values in the order in which a numeric phase takes them.
#pragma once

#include <sparse/plan.hpp>

namespace trifactor::sparse {

/// The given values by front, in their own order within one: value source[k] is added to factor[target[k]]; ~target[k]
/// where it is negative: conjugated. Those of front s are start[s] to start[s + 1] - 1.
struct Entries {
  std::vector<index_t> start;
  std::vector<index_t, Uncleared<index_t>> source, target;
};
Entries entries_by_front(const Plan&);

}  // namespace trifactor::sparse
