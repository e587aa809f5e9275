#include <sparse/split.hpp>

#include <sparse/tasks.hpp>

#include <numeric>

namespace trifactor::sparse {

namespace {

/// The fronts of the new plan, without their rows; returns the first part of each front.
std::vector<index_t> cut(const Plan& given, index_t widest, SplitPlan& split) {
  Plan& plan = split.plan;
  std::vector<index_t> first_part;
  plan.row_start.push_back(0), plan.factor_start.push_back(0);
  for (index_t s = 0; s < given.fronts(); ++s) {
    const index_t columns = given.col_count(s), width = part_width(columns, widest);
    first_part.push_back(index_t(split.whole.size()));
    for (index_t begin = 0; begin < columns; begin += width) {
      const index_t rows = given.row_count(s) - begin;
      split.whole.push_back(s);
      plan.first.push_back(given.first[s] + begin);
      plan.row_start.push_back(plan.row_start.back() + rows);
      plan.factor_start.push_back(plan.factor_start.back() + rows * std::min(width, columns - begin));
    }
  }
  plan.first.push_back(given.n);
  return first_part;
}

}  // namespace

std::optional<SplitPlan> split_fronts(const Plan& given, index_t widest, int threads) {
  index_t most = 0;
  for (index_t s = 0; s < given.fronts(); ++s) most = std::max(most, given.col_count(s));
  if (most <= widest) return std::nullopt;
  SplitPlan split;
  Plan& plan = split.plan;
  plan.n = given.n, plan.items = given.items, plan.permutation = given.permutation, plan.inverse = given.inverse;
  const std::vector<index_t> first_part = cut(given, widest, split);
  const index_t fronts = index_t(split.whole.size());
  plan.factor_entries = plan.factor_start.back();
  plan.parent.resize(fronts), plan.rows.resize(plan.row_start.back()), plan.place.resize(plan.row_start.back());
  constexpr index_t grain = 64;
  with_threads(given.n < worth_waking ? 1 : threads, [&] {
    for_ranges(fronts, grain, [&](index_t, index_t begin, index_t end) {
      for (index_t t = begin; t < end; ++t) {
        const index_t s = split.whole[t], above = plan.first[t] - given.first[s], columns = plan.col_count(t);
        const auto rows = plan.rows.begin() + plan.row_start[t], place = plan.place.begin() + plan.row_start[t];
        std::copy(given.rows.begin() + given.row_start[s] + above, given.rows.begin() + given.row_start[s + 1], rows);
        const bool last = t + 1 == fronts || split.whole[t + 1] != s;
        std::fill_n(place, columns, index_t(-1));
        if (last) {
          plan.parent[t] = given.parent[s] < 0 ? -1 : first_part[given.parent[s]];
          std::copy(given.place.begin() + given.row_start[s] + above + columns,
                    given.place.begin() + given.row_start[s + 1], place + columns);
        } else {
          plan.parent[t] = t + 1;
          std::iota(place + columns, place + plan.row_count(t), index_t(0));
        }
      }
    });
  });
  return split;
}

}  // namespace trifactor::sparse
