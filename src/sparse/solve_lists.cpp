#include <sparse/solve_lists.hpp>

#include <algorithm>

namespace trifactor::sparse {

namespace {

/// Entries of a front in shared memory: its lines are padded to an odd length, which avoids bank conflicts.
index_t padded_entries(index_t rows, index_t columns) { return (rows | 1) * columns; }

/// For each front the root of the small subtree that it belongs to; -1: it is cut into strips.
std::vector<index_t> find_subtrees(const Plan& plan, const core::SolveLimits& limits) {
  const index_t fronts = plan.fronts();
  std::vector<index_t> entries(fronts, 0), root(fronts, -1);
  for (index_t s = 0; s < fronts; ++s) {
    const index_t m = plan.row_count(s), w = plan.col_count(s);
    entries[s] += m > limits.rows || w > limits.columns ? limits.entries + 1 : padded_entries(m, w);
    if (plan.parent[s] >= 0) entries[plan.parent[s]] += entries[s];
  }
  for (index_t s = fronts - 1; s >= 0; --s) {
    if (entries[s] > limits.entries) continue;
    const index_t p = plan.parent[s];
    root[s] = p >= 0 && root[p] >= 0 ? root[p] : s;
  }
  return root;
}

/// Neighbouring subtrees are one group while they are small.
std::vector<index_t> group_subtrees(const Plan& plan, const std::vector<index_t>& root, index_t entries) {
  std::vector<index_t> group(plan.fronts(), -1), size(plan.fronts(), 0);
  for (index_t s = 0; s < plan.fronts(); ++s)
    if (root[s] >= 0) size[root[s]] += padded_entries(plan.row_count(s), plan.col_count(s));
  index_t number = -1, filled = entries;
  for (index_t s = 0; s < plan.fronts(); ++s) {
    if (root[s] != s) continue;
    if (filled + size[s] > entries) ++number, filled = 0;
    filled += size[s], group[s] = number;
  }
  for (index_t s = 0; s < plan.fronts(); ++s)
    if (root[s] >= 0) group[s] = group[root[s]];
  return group;
}

void list_subtrees(const Levels& levels, const std::vector<index_t>& group, SolveLists& lists) {
  struct Member {
    index_t group, place, level;
  };
  std::vector<Member> members;
  for (std::size_t l = 0; l < levels.levels.size(); ++l)  // leaves first
    for (index_t g = levels.levels[l].begin; g < levels.levels[l].end; ++g)
      for (index_t t = levels.groups[g].begin; t < levels.groups[g].end; ++t)
        if (group[levels.front[t]] >= 0) members.push_back({group[levels.front[t]], t, index_t(l)});
  std::stable_sort(members.begin(), members.end(), [](auto& a, auto& b) { return a.group < b.group; });

  lists.subtree_fronts.resize(members.size());
  index_t at = 0;
  for (std::size_t k = 0; k < members.size(); ++k) {
    const index_t t = members[k].place, line = levels.line_start[t];
    if (k == 0 || members[k - 1].group != members[k].group) lists.subtree_start.push_back(int(k)), at = 0;
    lists.subtree_fronts[k] = {levels.factor_at[t],
                               levels.rows[t],
                               levels.columns[t],
                               int(line),
                               levels.first[t],
                               int(at),
                               0,
                               levels.child_start[line + levels.rows[t]] - levels.child_start[line]};
    at += padded_entries(levels.rows[t], levels.columns[t]);
  }
  lists.subtree_start.push_back(int(members.size()));
  for (std::size_t k = members.size(); k-- > 0;) {
    const bool last =
        k + 1 == members.size() || members[k + 1].group != members[k].group || members[k + 1].level != members[k].level;
    lists.subtree_fronts[k].level_end = last ? int(k + 1) : lists.subtree_fronts[k + 1].level_end;
  }
}

/// Strips by level. Within a level the fronts advance side by side: the n-th strips of all of them, then the next, so
/// that their chains of diagonal blocks run at the same time.
void list_strips(const Levels& levels, const std::vector<index_t>& root, index_t edge, SolveLists& lists) {
  struct Numbered {
    index_t place;
    int turn, number;
  };
  const auto collect = [&](const Level& level, bool forward) {
    std::vector<Numbered> strips;
    index_t fronts = 0;
    for (index_t g = level.begin; g < level.end; ++g)
      for (index_t t = levels.groups[g].begin; t < levels.groups[g].end; ++t) fronts += root[levels.front[t]] < 0;
    // One block for all rows of a narrow front saves messages. Starting values: H200, double, one right-hand side, with
    // and without it, shell2d:300 2.26 ms both, ex15 0.196 and 0.187.
    constexpr index_t many = 500;
    const index_t whole_rows = (fronts > many ? 8 : 2) * edge;
    const auto is_whole = [&](index_t t) { return levels.columns[t] <= edge && levels.below[t] <= whole_rows; };
    for (index_t g = level.begin; g < level.end; ++g)
      for (index_t t = levels.groups[g].begin; t < levels.groups[g].end; ++t) {
        if (root[levels.front[t]] >= 0) continue;
        const int across = int(core::ceil_div(index_t(levels.columns[t]), edge));
        const int down = int(core::ceil_div(index_t(levels.rows[t] - levels.columns[t]), edge));
        constexpr int after_diagonals = 1 << 30;
        for (int i = 0; i < across; ++i) strips.push_back({t, i, forward ? i : across - 1 - i});
        if (forward && !is_whole(t))
          for (int i = across; i < across + down; ++i) strips.push_back({t, after_diagonals, i});
      }
    std::stable_sort(strips.begin(), strips.end(), [](auto& a, auto& b) { return a.turn < b.turn; });
    auto& list = forward ? lists.forward : lists.backward;
    for (const auto [t, turn, number] : strips) {
      const int diagonal = forward ? -1 : int(list.size());
      list.push_back({levels.factor_at[t], levels.rows[t], levels.columns[t], levels.line_start[t], levels.first[t],
                      number, diagonal, is_whole(t)});
    }
  };
  for (auto level = levels.levels.rbegin(); level != levels.levels.rend(); ++level) collect(*level, false);
  for (const Level& level : levels.levels) collect(level, true);
  // Forward strips of a front's own columns have the same diagonal blocks.
  std::vector<int> diagonal_of_column(levels.line.size(), -1);
  for (const core::SolveStrip& strip : lists.backward)
    diagonal_of_column[strip.first + strip.number * edge] = strip.diagonal;
  for (core::SolveStrip& strip : lists.forward)
    if (const index_t column = strip.number * edge; column < strip.columns)
      strip.diagonal = diagonal_of_column[strip.first + column];
}

}  // namespace

SolveLists make_solve_lists(const Plan& plan, const Levels& levels, const core::SolveLimits& limits) {
  SolveLists lists;
  const std::vector<index_t> root = find_subtrees(plan, limits);
  constexpr index_t small = 4;  // of what a block has room for: blocks that are full take longest
  list_subtrees(levels, group_subtrees(plan, root, limits.entries / small), lists);
  list_strips(levels, root, limits.edge, lists);
  return lists;
}

}  // namespace trifactor::sparse
