#include <sparse/levels.hpp>

#include <sparse/entries.hpp>
#include <trifactor/error.hpp>

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace trifactor::sparse {

namespace {

constexpr index_t most_lines = std::numeric_limits<int>::max() - 1;

/// 0 for numbers up to `unit`, 1 up to twice that, and so on.
int bin(index_t size, index_t unit) {
  int b = 0;
  for (; size > unit; size = (size + 1) / 2) ++b;
  return b;
}

/// Fronts by level, each as late as its parent allows: the parent is always in the next level, so an update matrix
/// waits for no more than that.
std::vector<std::vector<index_t>> fronts_by_level(const Plan& plan) {
  std::vector<index_t> depth(plan.fronts(), 0);
  index_t levels = 0;
  for (index_t s = plan.fronts() - 1; s >= 0; --s) {
    if (plan.parent[s] >= 0) depth[s] = depth[plan.parent[s]] + 1;
    levels = std::max(levels, depth[s] + 1);
  }
  std::vector<std::vector<index_t>> fronts(levels);
  for (index_t s = 0; s < plan.fronts(); ++s) fronts[levels - 1 - depth[s]].push_back(s);
  return fronts;
}

/// Sorts the fronts of each level by size and cuts them into groups.
void group_fronts(const Plan& plan, const core::SparseTuning& tuning, Levels& levels) {
  struct Size {
    bool alone;
    int columns, below;  // bins
    auto operator<=>(const Size&) const = default;
  };
  constexpr index_t unit = 16;  // smaller fronts are alike
  const auto size_of = [&](index_t s) -> Size {
    const index_t w = plan.col_count(s), below = plan.row_count(s) - w;
    return {w > tuning.alone || below > tuning.alone_below, bin(w, unit), bin(below, unit)};
  };
  for (std::vector<index_t>& fronts : fronts_by_level(plan)) {
    std::stable_sort(fronts.begin(), fronts.end(), [&](index_t a, index_t b) { return size_of(a) < size_of(b); });
    Level level{index_t(levels.groups.size()), 0, 0};
    level.alone = level.begin;
    for (auto first = fronts.begin(); first != fronts.end();) {
      const Size size = size_of(*first);
      Group group{index_t(levels.front.size()), 0, 0, 0};
      do {
        group.columns = std::max(group.columns, plan.col_count(*first));
        group.below = std::max(group.below, plan.row_count(*first) - plan.col_count(*first));
        levels.front.push_back(*first++);
      } while (!size.alone && first != fronts.end() && size_of(*first) == size);
      group.end = index_t(levels.front.size());
      levels.groups.push_back(group);
      if (!size.alone) level.alone = index_t(levels.groups.size());
    }
    level.end = index_t(levels.groups.size());
    levels.levels.push_back(level);
  }
}

/// The update matrices of every other level lie at the left end of the array, those of the levels between at its right
/// end: one level reads what the other end holds.
void place_updates(Levels& levels) {
  const auto size = [&](index_t t) { return index_t(levels.below[t]) * levels.below[t]; };
  const auto for_fronts = [&](const Level& level, auto f) {
    for (index_t t = levels.groups[level.begin].begin; t < levels.groups[level.end - 1].end; ++t) f(t);
  };
  index_t used = 0, before = 0;
  for (const Level& level : levels.levels) {
    before = std::exchange(used, 0);
    for_fronts(level, [&](index_t t) { used += size(t); });
    levels.update_entries = std::max(levels.update_entries, before + used);
  }
  bool left = true;
  for (const Level& level : levels.levels) {
    index_t at = left ? 0 : levels.update_entries;
    for_fronts(level, [&](index_t t) {
      levels.update_at[t] = left ? at : at - size(t);
      at += left ? size(t) : -size(t);
    });
    left = !left;
  }
}

/// The given values by column of the factor, ascending by row; equal places stay in the order in which they are given.
void sort_entries(const Plan& plan, Levels& levels) {
  const Entries entries = entries_by_front(plan);
  struct Entry {
    int column, row;
    index_t source;
  };
  levels.entry_start.assign(plan.n + 1, 0);
  levels.entry_row.resize(entries.source.size());
  levels.entry_source.resize(entries.source.size());
  std::vector<Entry> given, sorted;  // of one front
  std::vector<index_t> next;
  for (index_t s = 0; s < plan.fronts(); ++s) {
    given.clear();
    next.assign(plan.col_count(s) + 1, 0);
    const index_t m = plan.row_count(s), begin = entries.start[s];
    for (index_t k = begin; k < entries.start[s + 1]; ++k) {
      const index_t target = entries.target[k], source = entries.source[k];
      const index_t at = (target < 0 ? ~target : target) - plan.factor_start[s];
      given.push_back({int(at / m), int(at % m), target < 0 ? ~source : source});
      ++next[given.back().column + 1];
    }
    std::partial_sum(next.begin(), next.end(), next.begin());
    for (index_t c = 0; c < plan.col_count(s); ++c) levels.entry_start[plan.first[s] + c] = begin + next[c];
    sorted.resize(given.size());
    for (const Entry& e : given) sorted[next[e.column]++] = e;
    for (index_t c = 0, first = 0; c < plan.col_count(s); first = next[c++])
      std::stable_sort(sorted.begin() + first, sorted.begin() + next[c],
                       [](auto& a, auto& b) { return a.row < b.row; });
    for (std::size_t k = 0; k < sorted.size(); ++k)
      levels.entry_row[begin + index_t(k)] = sorted[k].row, levels.entry_source[begin + index_t(k)] = sorted[k].source;
  }
  levels.entry_start[plan.n] = index_t(entries.source.size());
}

}  // namespace

Levels make_levels(const Plan& plan, const core::SparseTuning& tuning) {
  const index_t fronts = plan.fronts(), lines = index_t(plan.rows.size());
  if (lines > most_lines)
    throw InvalidArgument("SparseCholesky: " + std::to_string(lines) + " rows of fronts are more than " +
                          std::to_string(most_lines) + ", which are counted in 32 bits");
  Levels levels;
  group_fronts(plan, tuning, levels);
  std::vector<index_t> place(fronts);
  levels.line_start.push_back(0);
  levels.update_at.assign(fronts, 0);
  levels.permutation.assign(plan.permutation.begin(), plan.permutation.end());
  levels.line.resize(plan.n);
  for (index_t t = 0; t < fronts; ++t) {
    const index_t s = levels.front[t], m = plan.row_count(s), w = plan.col_count(s), start = levels.line_start.back();
    place[s] = t;
    levels.columns.push_back(int(w));
    levels.rows.push_back(int(m));
    levels.below.push_back(int(m - w));
    levels.update_ld.push_back(int(std::max<index_t>(1, m - w)));
    levels.first.push_back(int(plan.first[s]));
    levels.factor_at.push_back(plan.factor_start[s]);
    levels.line_start.push_back(int(start + m));
    for (index_t c = 0; c < w; ++c) levels.line[plan.first[s] + c] = int(start + c);
  }
  place_updates(levels);

  // For each line of a child, the line of the parent; and back, children in the order of the plan.
  levels.line_front.resize(lines);
  levels.parent_line.assign(lines, -1);
  levels.child_start.assign(lines + 1, 0);
  for (index_t t = 0; t < fronts; ++t) {
    const index_t s = levels.front[t], p = plan.parent[s];
    std::fill(levels.line_front.begin() + levels.line_start[t], levels.line_front.begin() + levels.line_start[t + 1],
              int(t));
    if (p < 0) continue;
    for (index_t i = levels.columns[t]; i < levels.rows[t]; ++i) {
      const index_t line = levels.line_start[place[p]] + plan.place[plan.row_start[s] + i];
      levels.parent_line[levels.line_start[t] + i] = int(line);
      ++levels.child_start[line + 1];
    }
  }
  std::partial_sum(levels.child_start.begin(), levels.child_start.end(), levels.child_start.begin());
  levels.child_line.resize(levels.child_start.back());
  std::vector<int> next(levels.child_start.begin(), levels.child_start.end() - 1);
  for (index_t s = 0; s < fronts; ++s)
    for (index_t i = levels.line_start[place[s]]; i < levels.line_start[place[s] + 1]; ++i)
      if (levels.parent_line[i] >= 0) levels.child_line[next[levels.parent_line[i]]++] = int(i);
  sort_entries(plan, levels);
  return levels;
}

MatrixRowLists rows_of_matrix(const Plan& plan) {
  const Entries entries = entries_by_front(plan);
  MatrixRowLists A;
  A.start.assign(plan.n + 1, 0);
  // Twice through all entries of both triangles: f(row, column, source, conjugated).
  const auto for_entries = [&](auto f) {
    for (index_t s = 0; s < plan.fronts(); ++s)
      for (index_t k = entries.start[s]; k < entries.start[s + 1]; ++k) {
        const bool conj = entries.target[k] < 0;
        const index_t at = (conj ? ~entries.target[k] : entries.target[k]) - plan.factor_start[s];
        const index_t j = plan.permutation[plan.first[s] + at / plan.row_count(s)];
        const index_t i = plan.permutation[plan.rows[plan.row_start[s] + at % plan.row_count(s)]];
        f(i, j, entries.source[k], conj);
        if (i != j) f(j, i, entries.source[k], !conj);
      }
  };
  for_entries([&](index_t i, index_t, index_t, bool) { ++A.start[i + 1]; });
  std::partial_sum(A.start.begin(), A.start.end(), A.start.begin());
  A.column.resize(A.start.back());
  A.source.resize(A.start.back());
  std::vector<index_t> next(A.start.begin(), A.start.end() - 1);
  for_entries([&](index_t i, index_t j, index_t source, bool conj) {
    const index_t at = next[i]++;
    A.column[at] = int(j), A.source[at] = conj ? ~source : source;
  });
  return A;
}

}  // namespace trifactor::sparse
