#include <sparse/solve_lists.hpp>

#include <algorithm>

namespace trifactor::sparse {

namespace {

/// Entries of a front in shared memory: its lines are padded to an odd length, which avoids bank conflicts.
index_t padded_entries(index_t rows, index_t columns) { return (rows | 1) * columns; }

/// Neighbouring subtrees of a branch are one group while they are small. Returns the group of each front and, in
/// `start`, the first group of each branch.
std::vector<index_t> group_subtrees(const Plan& plan, const std::vector<Branch>& branches,
                                    const std::vector<index_t>& root, index_t entries, std::vector<index_t>& start) {
  std::vector<index_t> group(plan.fronts(), -1), size(plan.fronts(), 0);
  for (index_t s = 0; s < plan.fronts(); ++s)
    if (root[s] >= 0) size[root[s]] += padded_entries(plan.row_count(s), plan.col_count(s));
  index_t number = -1;
  for (const Branch& branch : branches) {
    start.push_back(number + 1);
    index_t filled = entries;
    for (index_t s = branch.begin; s < branch.end; ++s) {
      if (root[s] != s) continue;
      if (filled + size[s] > entries) ++number, filled = 0;
      filled += size[s], group[s] = number;
    }
  }
  start.push_back(number + 1);
  for (index_t s = 0; s < plan.fronts(); ++s)
    if (root[s] >= 0) group[s] = group[root[s]];
  return group;
}

/// The fronts that are solved with at about the same time, leaves first.
using Waves = std::vector<std::vector<index_t>>;

void list_subtrees(const Levels& levels, const Waves& waves, const std::vector<index_t>& place,
                   const std::vector<index_t>& group, SolveLists& lists) {
  struct Member {
    index_t group, place, level;
  };
  std::vector<Member> members;
  for (std::size_t l = 0; l < waves.size(); ++l)
    for (const index_t s : waves[l])
      if (group[s] >= 0) members.push_back({group[s], place[s], index_t(l)});
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

/// Within a wave the fronts advance side by side: the n-th strips of all of them, then the next, so that their chains
/// of diagonal blocks run at the same time.
void list_strips(const Levels& levels, const std::vector<index_t>& wave, const std::vector<index_t>& place,
                 const std::vector<index_t>& root, index_t edge, bool forward, std::vector<core::SolveStrip>& list) {
  struct Numbered {
    index_t place;
    int turn, number;
  };
  std::vector<Numbered> strips;
  for (const index_t s : wave) {
    if (root[s] >= 0) continue;
    const index_t t = place[s];
    const int across = int(core::ceil_div(index_t(levels.columns[t]), edge));
    const int down = int(core::ceil_div(index_t(levels.below[t]), edge));
    constexpr int after_diagonals = 1 << 30;
    for (int i = 0; i < across; ++i) strips.push_back({t, i, forward ? i : across - 1 - i});
    if (forward)
      for (int i = across; i < across + down; ++i) strips.push_back({t, after_diagonals, i});
  }
  std::stable_sort(strips.begin(), strips.end(), [](auto& a, auto& b) { return a.turn < b.turn; });
  for (const auto [t, turn, number] : strips)
    list.push_back({levels.factor_at[t], levels.rows[t], levels.columns[t], levels.line_start[t], levels.first[t],
                    number, forward ? -1 : int(list.size())});
}

/// Forward strips of a front's own columns have the diagonal blocks of the backward ones.
void number_diagonals(index_t edge, index_t n, SolveLists& lists) {
  std::vector<int> diagonal_of_column(n, -1);
  for (const core::SolveStrip& strip : lists.backward)
    diagonal_of_column[strip.first + strip.number * edge] = strip.diagonal;
  for (core::SolveStrip& strip : lists.forward)
    if (const index_t column = strip.number * edge; column < strip.columns)
      strip.diagonal = diagonal_of_column[strip.first + column];
}

}  // namespace

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

SolveLists make_solve_lists(const Plan& plan, const Levels& levels, const core::SolveLimits& limits, bool together) {
  SolveLists lists;
  std::vector<Branch> branches{{0, plan.fronts()}};
  if (!together) branches = levels.cut.branches;
  std::vector<index_t> place(plan.fronts());
  for (std::size_t t = 0; t < levels.front.size(); ++t) place[levels.front[t]] = index_t(t);
  Waves waves;
  std::vector<std::size_t> first_wave;  // of each branch
  for (const Branch& branch : branches) {
    first_wave.push_back(waves.size());
    for (std::vector<index_t>& wave : levels_of_branch(plan, branch)) {
      std::sort(wave.begin(), wave.end(), [&](index_t a, index_t b) { return place[a] < place[b]; });
      waves.push_back(std::move(wave));
    }
  }
  first_wave.push_back(waves.size());

  const std::vector<index_t> root = find_subtrees(plan, limits);
  constexpr index_t small = 4;  // of what a block has room for: blocks that are full take longest
  std::vector<index_t> first_group;
  list_subtrees(levels, waves, place, group_subtrees(plan, branches, root, limits.entries / small, first_group), lists);
  lists.branch_start.resize(branches.size() + 1);
  const auto list_waves = [&](std::size_t b, bool forward) {
    for (std::size_t k = first_wave[b]; k < first_wave[b + 1]; ++k) {
      const std::size_t wave = forward ? k : first_wave[b] + first_wave[b + 1] - 1 - k;
      list_strips(levels, waves[wave], place, root, limits.edge, forward, forward ? lists.forward : lists.backward);
    }
  };
  for (std::size_t b = 0; b < branches.size(); ++b) {
    lists.branch_start[b].subtree = first_group[b];
    lists.branch_start[b].forward = index_t(lists.forward.size());
    list_waves(b, true);
  }
  lists.branch_start.back() = {first_group.back(), index_t(lists.forward.size()), 0};
  for (std::size_t b = branches.size(); b-- > 0;) {
    lists.branch_start[b].backward = index_t(lists.backward.size());
    list_waves(b, false);
  }
  number_diagonals(limits.edge, plan.n, lists);
  return lists;
}

}  // namespace trifactor::sparse
