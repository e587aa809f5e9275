#include <sparse/order.hpp>

#include <trifactor/error.hpp>

#include <amd.h>

#include <algorithm>
#include <limits>
#include <numeric>

namespace trifactor::sparse {

namespace {

/// AMD asks for the graph, one more entry a node, and a fifth of elbow room.
index_t amd_workspace(const Graph& graph) { return graph.start.back() + graph.start.back() / 5 + graph.nodes(); }

/// AMD's inner routine, which takes a graph as it is here and consumes it; the outer one would make the graph once
/// more.
template <class Int, class Amd>
std::vector<node_t> minimum_degree(const Graph& graph, Amd amd) {
  const Int n = Int(graph.nodes());
  std::vector<Int> start(graph.start.begin(), graph.start.end() - 1), degree(n), work(amd_workspace(graph));
  for (Int i = 0; i < n; ++i) degree[i] = Int(graph.degree(i));
  std::copy(graph.neighbours.begin(), graph.neighbours.end(), work.begin());
  std::vector<Int> order(n), sizes(n), next(n), head(n), elements(n), bounds(n), marks(n);
  amd(n, start.data(), work.data(), degree.data(), Int(work.size()), Int(graph.start.back()), sizes.data(), next.data(),
      order.data(), head.data(), elements.data(), bounds.data(), marks.data(), nullptr, nullptr);
  return {order.begin(), order.end()};
}

}  // namespace

std::vector<node_t> amd_order(const Graph& graph) {
  if (graph.start.back() == 0) return natural_order(graph);
  const bool fits = amd_workspace(graph) <= std::numeric_limits<int>::max();
  return fits ? minimum_degree<int>(graph, ::amd_2) : minimum_degree<SuiteSparse_long>(graph, ::amd_l2);
}

/// With equal weights the graph of points has the same minimum degrees. Otherwise the points come in the order in which
/// AMD takes their first columns.
std::vector<node_t> amd_order(const CompressedGraph& c) {
  if (c.equal_weights()) return amd_order(c.graph);
  std::vector<node_t> point(c.columns()), order;
  for (index_t s = 0; s < c.points(); ++s)
    for (node_t k = c.member_start[s]; k < c.member_start[s + 1]; ++k) point[c.members[k]] = node_t(s);
  std::vector<char> taken(c.points(), false);
  order.reserve(c.points());
  for (const node_t i : amd_order(expand(c)))
    if (!taken[point[i]]) taken[point[i]] = true, order.push_back(point[i]);
  return order;
}

std::vector<node_t> natural_order(const Graph& graph) {
  std::vector<node_t> order(graph.nodes());
  std::iota(order.begin(), order.end(), 0);
  return order;
}

std::vector<node_t> given_order(const Graph& graph, const std::vector<index_t>& permutation) {
  const index_t n = graph.nodes();
  if (index_t(permutation.size()) != n)
    refuse("the size of options.permutation", index_t(permutation.size()), "equal n = " + std::to_string(n));
  std::vector<node_t> order(n), place(n, -1);
  for (index_t j = 0; j < n; ++j) {
    const index_t i = permutation[j];
    const auto what = [&] { return "options.permutation[" + std::to_string(j) + "]"; };
    if (i < 0 || i >= n) refuse(what(), i, "be at least 0 and less than n = " + std::to_string(n));
    if (place[i] >= 0) refuse(what(), i, "appear once, but is at " + std::to_string(place[i]) + " too");
    place[i] = node_t(j);
    order[j] = node_t(i);
  }
  return order;
}

}  // namespace trifactor::sparse
