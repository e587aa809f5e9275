// A ring of memory through which the parts of a factor pass, branch by branch.
#pragma once

#include <sparse/levels.hpp>

namespace trifactor::sparse {

/// Where the part of each branch lies while it is there, and whose place it takes.
struct Ring {
  static constexpr index_t alignment = 32;  // entries: a part lies as it would in the whole factor

  std::vector<index_t> at;
  std::vector<index_t> before;  // the last branch before it that shares memory with it; -1: none
  std::vector<index_t> after;   // the first branch after it that does; -1: none

  /// Entries that a part takes.
  static index_t room(const BranchLevels& branch) {
    const index_t begin = branch.factor_begin % alignment, size = branch.factor_end - branch.factor_begin;
    return core::ceil_div(begin + size, alignment) * alignment;
  }
  /// The least ring that all parts fit in, one at a time.
  static index_t least(const Levels& levels) {
    index_t entries = 0;
    for (const BranchLevels& branch : levels.branches) entries = std::max(entries, room(branch));
    return entries;
  }
  /// All of them at a time.
  static index_t all(const Levels& levels) {
    index_t entries = 0;
    for (const BranchLevels& branch : levels.branches) entries += room(branch);
    return entries;
  }
};

inline Ring make_ring(const Levels& levels, index_t entries) {
  Ring ring;
  const index_t count = index_t(levels.branches.size());
  std::vector<index_t> end;
  index_t next = 0;
  for (const BranchLevels& branch : levels.branches) {
    const index_t size = Ring::room(branch);
    if (next + size > entries) next = 0;
    ring.at.push_back(next + branch.factor_begin % Ring::alignment);
    end.push_back(next += size);
  }
  ring.before.assign(count, -1), ring.after.assign(count, -1);
  const auto begin = [&](index_t b) { return end[b] - Ring::room(levels.branches[b]); };
  const auto shared = [&](index_t a, index_t b) { return begin(a) < end[b] && begin(b) < end[a]; };
  for (index_t b = 0; b < count; ++b) {
    for (index_t a = b - 1; a >= 0 && ring.before[b] < 0; --a)
      if (shared(a, b)) ring.before[b] = a;
    for (index_t a = b + 1; a < count && ring.after[b] < 0; ++a)
      if (shared(a, b)) ring.after[b] = a;
  }
  return ring;
}

}  // namespace trifactor::sparse
