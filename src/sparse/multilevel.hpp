// Coarser versions of a graph: pairs of neighbours become one node.
#pragma once

#include <sparse/graph.hpp>
#include <sparse/tasks.hpp>

namespace trifactor::sparse {

/// A graph with weights. Its lists of neighbours are in no particular order.
struct WeightedGraph {
  node_t nodes = 0;
  Array<index_t> start;     // nodes + 1
  Array<node_t> neighbours;
  Array<node_t> weight;     // of each node
  Array<node_t> strength;   // of each entry of neighbours: how many links of the finest graph it stands for; none: 1
  index_t total = 0;         // weight

  index_t entries() const { return start[nodes]; }
};

/// A coarser graph, and where its nodes come from.
struct Coarser {
  WeightedGraph graph;
  Array<node_t> of;                      // for each node of the finer graph, the one it is in
  Array<std::pair<node_t, node_t>> two;  // for each node, the one or two (the same twice) that it is made of
};

/// How nodes find their partners. Greedy: one after the other, in the order of their numbers; keeps the shape of a
/// regular mesh. Mutual: two that choose each other, at random among links of the same strength.
enum class Match { Greedy, Mutual };

/// Joins pairs of nodes that are linked strongly; no pair is heavier than max_weight.
Coarser coarsen(const WeightedGraph&, index_t max_weight, Match match, std::uint64_t seed);

}  // namespace trifactor::sparse
