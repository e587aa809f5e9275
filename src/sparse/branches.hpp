// Branches: the order in which fronts are factored level by level, so that few update matrices are alive at once and a
// part of the factor at a time is enough.
#pragma once

#include <core/fronts.hpp>
#include <sparse/plan.hpp>

#include <optional>

namespace trifactor::sparse {

/// What branches have to heed besides: how update matrices are stored, and which fronts belong to small subtrees, whose
/// parts are not separated: solves take them as a whole.
struct BranchRules {
  core::UpdateShape update;
  std::vector<char> in_subtree;  // of each front; empty: none
  Branch host = {0, 0};          // whole subtrees that the CPU factors: branches of their own
};

/// For a branch of several fronts: entries of update matrices that are alive at once, with those of earlier branches
/// unless these may be offloaded, and of its part of the factor.
struct BranchLimits {
  index_t updates, factor;
  bool offloads = false;
};

/// The fewest branches within the limits.
std::vector<Branch> cut_into_branches(const Plan&, const BranchRules&, const BranchLimits&);

/// The fronts of each level of a branch. A parent is in the level after its last children, so an update matrix waits
/// for no more than that level.
std::vector<std::vector<index_t>> levels_of_branch(const Plan&, const Branch&);

/// An update matrix that is copied to an array in the host's memory at the end of its branch: its parent reads it there.
struct Offloaded {
  index_t front, at, entries;
};

/// Where every update matrix lies, in an array of so many entries.
struct UpdatePlaces {
  std::vector<index_t> at;  // of each front
  index_t entries = 0;
  std::vector<Offloaded> offloaded;  // ascending
  index_t offloaded_entries = 0;     // of their array
  std::vector<index_t> waits_for;    // of each branch: the last one whose copies it needs; -1: none. Empty: all -1
  std::vector<Offloaded> from_host;  // likewise in that array, written by the CPU; they and all below them have no other place

  index_t copied_entries() const {
    index_t sum = 0;
    for (const Offloaded& update : offloaded) sum += update.entries;
    return sum;
  }
};
/// The update matrices that a parent takes last are offloaded, until all others take no more than `entries` at once, but for gaps
/// between them.
UpdatePlaces place_updates(const Plan&, const BranchRules&, const std::vector<Branch>&, index_t entries);

struct BranchCut {
  std::vector<Branch> branches;
  UpdatePlaces updates;
  Branch host = {0, 0};  // as in BranchRules

  bool on_host(index_t branch) const {
    return host.begin <= branches[branch].begin && branches[branch].begin < host.end;
  }
};
/// The largest branches with which factor and update matrices take at most so many percent, or entries, more than they
/// must.
BranchCut cut_in_memory(const Plan&, const BranchRules&, index_t percent, index_t spare);
/// Branches for a factor that is elsewhere, of which a part lies in what the update matrices leave of `entries`;
/// nothing if that is too little. With `offloads` update matrices may be offloaded.
std::optional<BranchCut> cut_for_streaming(const Plan&, const BranchRules&, index_t entries, bool offloads);
/// Every front is a branch, but for small subtrees, and all update matrices that other branches read are offloaded: the
/// least memory, and slow.
BranchCut cut_one_by_one(const Plan&, const BranchRules&);

}  // namespace trifactor::sparse
