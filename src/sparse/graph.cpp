#include <sparse/pattern_check.hpp>

namespace trifactor::sparse {

namespace {

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
  index_t count = 0;
  for (index_t i = 0; i < n; ++i) {
    const index_t begin = graph.start[i], end = graph.start[i + 1];
    graph.start[i] = count;
    for (index_t k = begin; k < end; ++k) {
      const node_t neighbour = graph.neighbours[k];
      if (seen[neighbour] == i) continue;
      seen[neighbour] = node_t(i);
      graph.neighbours[count++] = neighbour;
    }
  }
  graph.start[n] = count;
  graph.neighbours.resize(count);
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
  Graph graph;
  graph.start.assign(n + 1, 0);
  index_t* const degree = graph.start.data();
  const auto [repeated, ascending] = check_entries(p, duplicates, [&](index_t i, index_t j) {
    if (i != j) ++degree[i], ++degree[j];
  });

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
