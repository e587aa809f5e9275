// The work of a solve in one launch: small subtrees, and strips of all other fronts, in the order in which blocks of
// threads take them.
#pragma once

#include <sparse/levels.hpp>

namespace trifactor::sparse {

/// What core::SolveLists points to, by the same names.
struct SolveLists {
  std::vector<int> subtree_start;
  std::vector<core::SolveFront> subtree_fronts;
  std::vector<core::SolveStrip> forward, backward;
};

SolveLists make_solve_lists(const Plan&, const Levels&, const core::SolveLimits&);

}  // namespace trifactor::sparse
