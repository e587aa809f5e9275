#include <sparse/targets.hpp>

#include <sparse/pattern_check.hpp>
#include <sparse/tasks.hpp>

#include <algorithm>

namespace trifactor::sparse {

namespace {

/// The points of a plan, numbered as in the compressed graph.
struct PointsOfPlan {
  std::vector<node_t> of_column;  // of the matrix
  std::vector<Position> at;       // of each point

  PointsOfPlan(const CompressedGraph& points, const Plan& plan) : of_column(plan.n), at(points.points()) {
    for_ranges(points.points(), node_grain, [&](index_t, index_t begin, index_t end) {
      for (index_t p = begin; p < end; ++p)
        for (node_t k = points.member_start[p]; k < points.member_start[p + 1]; ++k)
          of_column[points.members[k]] = node_t(p);
    });
    for_ranges(plan.fronts(), plan.fronts() / 256 + 1, [&](index_t, index_t begin, index_t end) {
      for (index_t s = begin; s < end; ++s)
        for (index_t j = plan.first[s]; j < plan.first[s + 1];) {
          const node_t p = of_column[plan.permutation[j]];
          at[p] = {node_t(j), node_t(s)};
          j += points.weight[p];
        }
    });
  }
};

/// What all entries of two points have in common: how far a row of the later point is moved among the rows of the
/// earlier one's front.
struct Pair {
  node_t with;  // the point that this holds for, counted from 1
  node_t row_shift;
};

/// The place of a row among those of front s, less its number.
node_t row_shift(const Plan& plan, index_t s, index_t row) {
  if (row < plan.first[s + 1]) return node_t(-plan.first[s]);  // its own columns come first
  const auto begin = plan.rows.begin() + plan.row_start[s], end = plan.rows.begin() + plan.row_start[s + 1];
  return node_t(std::lower_bound(begin + plan.col_count(s), end, row) - begin - row);
}

/// The entries of points `begin` to `end` - 1.
template <SparseIndex I>
void set_range(const Pattern<I>& p, const CompressedGraph& points, const PointsOfPlan& where, Plan& plan, index_t begin,
               index_t end) {
  const Reader<I> reader{p};
  const bool columns = p.compressed == Compressed::Columns;
  const Zeros<Pair> pair(points.points());  // by the point of the index
  for (index_t point = begin; point < end; ++point) {
    for (node_t m = points.member_start[point]; m < points.member_start[point + 1]; ++m) {
      const index_t major = points.members[m], a = plan.inverse[major];
      for (index_t k = p.start[major]; k < p.start[major + 1]; ++k) {
        const index_t index = p.index[k];
        if (!reader.in_triangle(major, index)) {
          plan.target[k] = Plan::nowhere;
          continue;
        }
        const index_t b = plan.inverse[index];
        const node_t other = where.of_column[index];
        const bool earlier = where.at[other].column < where.at[point].column;  // the other one's columns hold the entry
        const index_t s = where.at[earlier ? other : point].front;
        Pair& found = pair[other];
        if (found.with != node_t(point) + 1)
          found = {node_t(point) + 1, row_shift(plan, s, where.at[earlier ? point : other].column)};
        const index_t column = std::min(a, b), row = std::max(a, b);
        const index_t target =
            plan.factor_start[s] + (column - plan.first[s]) * plan.row_count(s) + row + found.row_shift;
        const bool upper_here = columns ? b < a : a < b;
        plan.target[k] = upper_here ? ~target : target;
      }
    }
  }
}

}  // namespace

template <SparseIndex I>
void set_targets(const Pattern<I>& p, const CompressedGraph& points, Plan& plan, int threads) {
  plan.target.resize(p.entries());
  with_threads(p.entries() < 10 * worth_waking ? 1 : threads, [&] {
    const PointsOfPlan where(points, plan);
    const index_t n = points.points();
    for_ranges(n, std::max<index_t>(256, n / 64 + 1),
               [&](index_t, index_t begin, index_t end) { set_range(p, points, where, plan, begin, end); });
  });
}

template void set_targets(const Pattern<std::int32_t>&, const CompressedGraph&, Plan&, int);
template void set_targets(const Pattern<std::int64_t>&, const CompressedGraph&, Plan&, int);

}  // namespace trifactor::sparse
