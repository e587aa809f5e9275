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
  const PatternFacts facts = check_entries(p, duplicates, [&](index_t i, index_t j) {
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
  if (facts.repeated) drop_duplicates(graph);
  if (!facts.ascending) return with_ascending_neighbours(graph);
  return graph;
}

template Graph graph_of(const Pattern<std::int32_t>&, bool);
template Graph graph_of(const Pattern<std::int64_t>&, bool);

}  // namespace trifactor::sparse
