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

  /// Where the lists of a branch begin, and where those of the last one end. Backward strips begin with the last
  /// branch.
  struct Start {
    index_t subtree, forward, backward;
  };
  std::vector<Start> branch_start;
};

/// For each front the root of the small subtree that one block of threads solves with; -1: it is cut into strips.
std::vector<index_t> find_subtrees(const Plan&, const core::SolveLimits&);

/// Small subtrees are whole in a branch. `together`: all branches are solved with at once, in the order of the tree's levels; otherwise one after the other,
/// and every branch has a part of each list.
SolveLists make_solve_lists(const Plan&, const Levels&, const core::SolveLimits&, bool together);

}  // namespace trifactor::sparse
