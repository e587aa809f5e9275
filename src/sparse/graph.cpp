#include <sparse/graph.hpp>

#include <trifactor/error.hpp>

#include <algorithm>
#include <limits>

namespace trifactor::sparse {

namespace {

std::string at(const char* array, index_t k) { return std::string("pattern.") + array + "[" + std::to_string(k) + "]"; }

/// Which entries are read: all of a triangle that is given alone, and the lower one of a full matrix.
template <class I>
struct Reader {
  const Pattern<I>& pattern;
  // An entry of the lower triangle has its index after (columns) or before (rows) its column or row.
  bool index_after = (pattern.stored == Stored::Upper) == (pattern.compressed == Compressed::Rows);

  bool in_triangle(index_t major, index_t index) const { return index_after ? index >= major : index <= major; }
};

template <class I>
void check_shape(const Pattern<I>& p) {
  if (p.rows < 0) refuse("pattern.rows", p.rows, "not be negative");
  if (p.rows != p.cols) refuse("pattern.cols", p.cols, "equal pattern.rows = " + std::to_string(p.rows));
  constexpr index_t most = std::numeric_limits<node_t>::max() - 1;
  if (p.rows > most) refuse("pattern.rows", p.rows, "be at most " + std::to_string(most));
  if (p.rows == 0) return;
  if (!p.start) throw InvalidArgument("analyze: pattern.start is null");
  if (p.start[0] != 0) refuse(at("start", 0), p.start[0], "be 0");
  for (index_t j = 0; j < p.rows; ++j)
    if (p.start[j + 1] < p.start[j])
      refuse(at("start", j + 1), p.start[j + 1], "be at least " + at("start", j) + " = " + std::to_string(p.start[j]));
  if (p.start[p.rows] > 0 && !p.index) throw InvalidArgument("analyze: pattern.index is null");
}

/// The same graph with ascending neighbours: taking nodes in order, each goes to the end of its neighbours' lists.
Graph with_ascending_neighbours(const Graph& graph) {
  Graph sorted{graph.start, std::vector<node_t>(graph.neighbours.size())};
  std::vector<index_t> cursor(graph.start.begin(), graph.start.end() - 1);
  for (index_t i = 0; i < graph.nodes(); ++i)
    for (index_t k = graph.start[i]; k < graph.start[i + 1]; ++k)
      sorted.neighbours[cursor[graph.neighbours[k]]++] = node_t(i);
  return sorted;
}

/// Keeps the first of equal neighbours.
void drop_duplicates(Graph& graph) {
  const index_t n = graph.nodes();
  std::vector<node_t> seen(n, -1);
  index_t kept = 0;
  for (index_t i = 0; i < n; ++i) {
    const index_t begin = graph.start[i], end = graph.start[i + 1];
    graph.start[i] = kept;
    for (index_t k = begin; k < end; ++k) {
      const node_t neighbour = graph.neighbours[k];
      if (seen[neighbour] == i) continue;
      seen[neighbour] = node_t(i);
      graph.neighbours[kept++] = neighbour;
    }
  }
  graph.start[n] = kept;
  graph.neighbours.resize(kept);
}

}  // namespace

void refuse(const std::string& what, index_t value, const std::string& rule) {
  throw InvalidArgument("analyze: " + what + " = " + std::to_string(value) + " must " + rule);
}

template <SparseIndex I>
Graph graph_of(const Pattern<I>& p, bool duplicates) {
  check_shape(p);
  const index_t n = p.rows;
  const Reader<I> reader{p};
  const char* const major = p.compressed == Compressed::Columns ? "column" : "row";
  const auto in_major = [&](index_t j) { return std::string(" in ") + major + " " + std::to_string(j); };

  Graph graph;
  graph.start.assign(n + 1, 0);
  index_t* const degree = graph.start.data();
  std::vector<node_t> seen(p.sorted ? 0 : n, -1);
  bool repeated = false, ascending = true;
  for (index_t j = 0; j < n; ++j) {
    for (index_t k = p.start[j]; k < p.start[j + 1]; ++k) {
      const index_t i = p.index[k];
      if (i < 0 || i >= n)
        refuse(at("index", k) + in_major(j), i, "be at least 0 and less than n = " + std::to_string(n));
      bool again = false;
      if (!p.sorted) {
        again = seen[i] == j;
        seen[i] = node_t(j);
        ascending = ascending && (k == p.start[j] || p.index[k - 1] <= p.index[k]);
      } else if (k > p.start[j]) {
        again = p.index[k - 1] == p.index[k];
        if (p.index[k - 1] > p.index[k])
          refuse(at("index", k) + in_major(j), i,
                 "not be less than the index before it, " + std::to_string(p.index[k - 1]) +
                     ", in a pattern that is promised to be sorted");
      }
      if (again) {
        if (!duplicates)
          refuse(at("index", k) + in_major(j), i,
                 "not appear twice in a " + std::string(major) + " unless duplicates are asked for");
        repeated = true;
      }
      if (!reader.in_triangle(j, i)) {
        if (p.stored == Stored::Full) continue;
        refuse(at("index", k) + in_major(j), i,
               std::string("lie in the ") + (p.stored == Stored::Lower ? "lower" : "upper") +
                   " triangle, which alone is promised");
      }
      if (i != j) ++degree[i], ++degree[j];
    }
  }

  // Counts become ends, and filling from the ends downwards leaves them as starts. Columns that ascend give neighbours
  // that do: those of a node that are greater come from one direction and the others from the other, both downwards.
  index_t sum = 0;
  for (index_t i = 0; i < n; ++i) degree[i] = sum += degree[i];
  degree[n] = sum;
  graph.neighbours.resize(sum);
  for (index_t j = n - 1; j >= 0; --j)
    for (index_t k = p.start[j + 1] - 1; k >= p.start[j]; --k) {
      const index_t i = p.index[k];
      if (i == j || !reader.in_triangle(j, i)) continue;
      graph.neighbours[--graph.start[i]] = node_t(j);
      graph.neighbours[--graph.start[j]] = node_t(i);
    }
  if (repeated) drop_duplicates(graph);
  if (!ascending) return with_ascending_neighbours(graph);
  return graph;
}

std::vector<Position> positions(const Plan& plan) {
  std::vector<Position> position(plan.n);
  for (index_t s = 0; s < plan.fronts(); ++s)
    for (index_t j = plan.first[s]; j < plan.first[s + 1]; ++j) position[plan.permutation[j]] = {node_t(j), node_t(s)};
  return position;
}

template <SparseIndex I>
void set_targets(const Pattern<I>& p, Plan& plan) {
  const Reader<I> reader{p};
  const bool columns = p.compressed == Compressed::Columns;
  const std::vector<Position> position = positions(plan);
  std::vector<node_t> place(plan.n);
  std::vector<index_t> cursor(plan.row_start.begin(), plan.row_start.end() - 1);

  // With a the new number of the pattern's column (or row) and b that of its index, an entry is in column min(a, b) of
  // L. Taking a in ascending order, nothing is searched for: where a is the column, `place` holds the rows of its
  // front; where a is the row, it comes after all earlier ones in the rows of every front, so that a cursor for each
  // moves on to it.
  plan.target.resize(p.entries());
  for (index_t s = 0; s < plan.fronts(); ++s) {
    for (index_t k = plan.row_start[s]; k < plan.row_start[s + 1]; ++k)
      place[plan.rows[k]] = node_t(k - plan.row_start[s]);
    for (index_t a = plan.first[s]; a < plan.first[s + 1]; ++a) {
      const index_t major = plan.permutation[a];
      for (index_t k = p.start[major]; k < p.start[major + 1]; ++k) {
        const index_t index = p.index[k];
        if (!reader.in_triangle(major, index)) {
          plan.target[k] = Plan::nowhere;
          continue;
        }
        const auto [b, t] = position[index];
        index_t target;
        if (b >= a) {
          target = plan.factor_start[s] + (a - plan.first[s]) * plan.row_count(s) + place[b];
        } else {
          while (plan.rows[cursor[t]] < a) ++cursor[t];
          target = plan.factor_start[t] + (b - plan.first[t]) * plan.row_count(t) + (cursor[t] - plan.row_start[t]);
        }
        const bool upper_here = columns ? b < a : a < b;
        plan.target[k] = upper_here ? ~target : target;
      }
    }
  }
}

template Graph graph_of(const Pattern<std::int32_t>&, bool);
template Graph graph_of(const Pattern<std::int64_t>&, bool);
template void set_targets(const Pattern<std::int32_t>&, Plan&);
template void set_targets(const Pattern<std::int64_t>&, Plan&);

}  // namespace trifactor::sparse
