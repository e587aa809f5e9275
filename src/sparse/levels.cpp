#include <sparse/levels.hpp>

#include <sparse/entries.hpp>
#include <sparse/split.hpp>
#include <sparse/tasks.hpp>
#include <trifactor/error.hpp>

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace trifactor::sparse {

namespace {

constexpr index_t front_grain = 32;  // fronts that a thread takes at once
constexpr index_t most_counted = std::numeric_limits<int>::max() - 1;

void check_count(index_t count, const char* what) {
  if (count > most_counted)
    throw InvalidArgument("SparseCholesky: " + std::to_string(count) + " " + what + " are more than " +
                          std::to_string(most_counted) + ", which are counted in 32 bits");
}

/// 0 for numbers up to `unit`, 1 up to `factor` times that, and so on.
int bin(index_t size, index_t unit, index_t factor) {
  int b = 0;
  for (; size > unit; size = core::ceil_div(size, factor)) ++b;
  return b;
}

/// Sorts the fronts of each level by size and cuts them into groups.
void group_fronts(const Plan& plan, const Branch& branch, const core::SparseTuning& tuning, core::FrontLimits small,
                  Levels& levels) {
  struct Size {
    bool alone, batched;
    int columns, below;  // bins
    auto operator<=>(const Size&) const = default;
  };
  constexpr index_t unit = 16;  // smaller fronts are alike
  const auto is_small = [&](index_t s) { return small.hold(plan.row_count(s), plan.col_count(s)); };
  bool are_few = false;  // batched fronts of the level
  const auto size_of = [&](index_t s) -> Size {
    if (is_small(s)) return {};
    const index_t w = plan.col_count(s), below = plan.row_count(s) - w;
    const bool alone = w > tuning.alone || below > tuning.alone_below;
    if (!alone && are_few) return {false, true, 0, 0};
    return {alone, true, bin(w, unit, 2), bin(below, unit, tuning.alike)};
  };
  const index_t first_level = index_t(levels.levels.size());
  for (std::vector<index_t>& fronts : levels_of_branch(plan, branch)) {
    are_few = false;
    are_few = std::count_if(fronts.begin(), fronts.end(), [&](index_t s) {
                const Size size = size_of(s);
                return size.batched && !size.alone;
              }) <= tuning.few;
    std::stable_sort(fronts.begin(), fronts.end(), [&](index_t a, index_t b) { return size_of(a) < size_of(b); });
    Level level{index_t(levels.groups.size()), 0, 0};
    level.alone = level.begin;
    for (auto first = fronts.begin(); first != fronts.end();) {
      const Size size = size_of(*first);
      Group group{index_t(levels.front.size()), 0, 0, 0, 0, 0, !size.batched, size.alone};
      do {
        group.columns = std::max(group.columns, plan.col_count(*first));
        group.rows = std::max(group.rows, plan.row_count(*first));
        group.entries =
            std::max(group.entries, core::FrontLimits::entries_of(plan.row_count(*first), plan.col_count(*first)));
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
  levels.branches.push_back(
      {first_level, index_t(levels.levels.size()), plan.factor_start[branch.begin], plan.factor_start[branch.end]});
}

/// The given values by column of the factor, ascending by row; equal places stay in the order in which they are given.
void sort_entries(const Plan& plan, const Entries& entries, index_t widest, Levels& levels) {
  struct Entry {
    int column, row, source;
  };
  levels.entry_start.resize(plan.n + 1);
  levels.entry_row.resize(entries.source.size());
  levels.entry_source.resize(entries.source.size());
  for_ranges(plan.fronts(), front_grain, [&](index_t, index_t first_front, index_t last_front) {
    std::vector<Entry> given, sorted;  // of one front
    std::vector<index_t> next;
    for (index_t s = first_front; s < last_front; ++s) {
      given.clear();
      next.assign(plan.col_count(s) + 1, 0);
      const index_t m = plan.row_count(s), begin = entries.start[s], part = part_width(plan.col_count(s), widest);
      for (index_t k = begin; k < entries.start[s + 1]; ++k) {
        const index_t target = entries.target[k], source = entries.source[k];
        const index_t at = (target < 0 ? ~target : target) - plan.factor_start[s], column = at / m;
        const index_t above = column / part * part;  // rows of the front that are not in the part with this column
        given.push_back({int(column), int(at - column * m - above), int(target < 0 ? ~source : source)});
        ++next[given.back().column + 1];
      }
      std::partial_sum(next.begin(), next.end(), next.begin());
      for (index_t c = 0; c < plan.col_count(s); ++c) levels.entry_start[plan.first[s] + c] = begin + next[c];
      sorted.resize(given.size());
      for (const Entry& e : given) sorted[next[e.column]++] = e;
      const auto by_row = [](const Entry& a, const Entry& b) { return a.row < b.row; };
      for (index_t c = 0, first = 0; c < plan.col_count(s); first = next[c++])
        if (!std::is_sorted(sorted.begin() + first, sorted.begin() + next[c], by_row))
          std::stable_sort(sorted.begin() + first, sorted.begin() + next[c], by_row);
      for (std::size_t k = 0; k < sorted.size(); ++k)
        levels.entry_row[begin + index_t(k)] = sorted[k].row,
                                 levels.entry_source[begin + index_t(k)] = sorted[k].source;
    }
  });
  levels.entry_start[plan.n] = index_t(entries.source.size());
}

/// Sizes and places of the fronts; returns the place of each front of the plan.
std::vector<index_t> place_fronts(const Plan& plan, Levels& levels) {
  const index_t fronts = plan.fronts();
  std::vector<index_t> place(fronts);
  for (std::vector<int>* list :
       {&levels.columns, &levels.rows, &levels.below, &levels.update_ld, &levels.factor_ld, &levels.first})
    list->resize(fronts);
  levels.factor_at.resize(fronts);
  levels.update_at.assign(fronts, 0);
  levels.line_start.assign(fronts + 1, 0);
  for (index_t t = 0; t < fronts; ++t) {
    const index_t s = levels.front[t], m = plan.row_count(s), w = plan.col_count(s);
    place[s] = t;
    levels.columns[t] = int(w), levels.rows[t] = int(m), levels.below[t] = int(m - w);
    levels.update_ld[t] = int(core::UpdateShape::ld(std::max<index_t>(1, m - w)));
    levels.factor_ld[t] = int(core::FrontShape(m, w).ld);
    levels.first[t] = int(plan.first[s]);
    levels.line_start[t + 1] = levels.line_start[t] + int(m);
  }
  return place;
}

/// Where every front lies in the factor, in the order of the plan.
void place_factor(const Plan& plan, const std::vector<index_t>& place, Levels& levels) {
  index_t next = 0;
  for (std::size_t b = 0; b < levels.branches.size(); ++b) {
    levels.branches[b].factor_begin = next;
    for (index_t s = levels.cut.branches[b].begin; s < levels.cut.branches[b].end; ++s) {
      const core::FrontShape shape(plan.row_count(s), plan.col_count(s));
      if (shape.ld > plan.row_count(s) || shape.ld % core::line_alignment == 0) next = core::aligned(next);
      levels.factor_at[place[s]] = next;
      next += shape.ld * plan.col_count(s);
    }
    levels.branches[b].factor_end = next;
  }
  levels.factor_entries = next;
}

/// For each line its front and column, and the line of the parent; and back, the lines of children in the order of the
/// plan.
void list_lines(const Plan& plan, const std::vector<index_t>& place, Levels& levels) {
  const index_t fronts = plan.fronts(), lines = levels.lines();
  levels.permutation.assign(plan.permutation.begin(), plan.permutation.end());
  levels.line.resize(plan.n);
  for (auto* list : {&levels.line_front, &levels.parent_line, &levels.line_column}) list->resize(lines);
  levels.child_start.assign(lines + 1, 0);
  std::vector<index_t> first_child(fronts, -1), next_child(fronts, -1), children(fronts + 1, 0);  // rows, by place
  for (index_t s = fronts - 1; s >= 0; --s)
    if (const index_t p = plan.parent[s]; p >= 0) {
      next_child[s] = std::exchange(first_child[p], s);
      children[place[p] + 1] += plan.row_count(s) - plan.col_count(s);
    }
  std::partial_sum(children.begin(), children.end(), children.begin());
  levels.child_line.resize(children[fronts]);
  for_ranges(fronts, front_grain, [&](index_t, index_t begin, index_t end) {
    for (index_t t = begin; t < end; ++t) {
      const index_t s = levels.front[t], p = plan.parent[s], line = levels.line_start[t], rows = plan.row_start[s];
      for (index_t i = 0; i < levels.rows[t]; ++i) {
        const bool own = i < levels.columns[t];
        if (own) levels.line[plan.first[s] + i] = int(line + i);
        levels.line_front[line + i] = int(t);
        levels.line_column[line + i] = int(plan.rows[rows + i]);
        levels.parent_line[line + i] = own || p < 0 ? -1 : int(levels.line_start[place[p]] + plan.place[rows + i]);
      }
      const auto for_child_rows = [&](auto f) {  // f(row of this front, line of the child)
        for (index_t c = first_child[s]; c >= 0; c = next_child[c])
          for (index_t i = plan.col_count(c); i < plan.row_count(c); ++i)
            f(plan.place[plan.row_start[c] + i], levels.line_start[place[c]] + i);
      };
      int* count = levels.child_start.data() + line;  // first counts, then where each row's begin
      for_child_rows([&](index_t row, index_t) { ++count[row]; });
      int at = int(children[t]);
      for (index_t i = 0; i < levels.rows[t]; ++i) at += std::exchange(count[i], at);
      std::vector<int> next(count, count + levels.rows[t]);
      for_child_rows([&](index_t row, index_t child_line) { levels.child_line[next[row]++] = int(child_line); });
    }
  });
  levels.child_start[lines] = int(children[fronts]);
}

}  // namespace

core::UpdateShape update_shape(const core::SparseTuning& tuning, core::FrontLimits small) {
  return {core::aligned(std::max({tuning.alone_below, small.rows, index_t(1)}))};
}

Levels make_levels(const Plan& plan, const Plan& given, BranchCut cut, const core::SparseTuning& tuning,
                   core::FrontLimits small, int threads) {
  const index_t lines = index_t(plan.rows.size());
  check_count(lines, "rows of fronts");
  check_count(index_t(given.target.size()), "values");
  Levels levels;
  levels.cut = std::move(cut);
  for (const Branch& branch : levels.cut.branches) group_fronts(plan, branch, tuning, small, levels);
  const std::vector<index_t> place = place_fronts(plan, levels);
  place_factor(plan, place, levels);
  levels.update = update_shape(tuning, small);
  const UpdatePlaces& updates = levels.cut.updates;
  for (index_t s = 0; s < plan.fronts(); ++s) levels.update_at[place[s]] = updates.at[s];
  if (updates.offloaded_entries > 0) levels.offloaded_at.assign(plan.fronts(), -1);
  for (const auto* some : {&updates.offloaded, &updates.from_host})
    for (const Offloaded& update : *some) levels.offloaded_at[place[update.front]] = update.at;
  const Entries entries = entries_by_front(given);
  with_threads(lines < worth_waking ? 1 : threads, [&] {
    list_lines(plan, place, levels);
    sort_entries(given, entries, tuning.widest, levels);
  });
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
