// Fill-reducing orderings of a graph.
#pragma once

#include <sparse/graph.hpp>

namespace trifactor::sparse {

// All return the node that comes j-th.

/// Nested dissection by METIS, of the graph with equal columns merged. The same for the same graph, whichever thread
/// asks.
std::vector<node_t> metis_order(const Graph&);
/// METIS counts in 32 bits.
bool metis_can(const Graph&);
/// Approximate minimum degree.
std::vector<node_t> amd_order(const Graph&);
std::vector<node_t> natural_order(const Graph&);
/// Throws InvalidArgument unless every node is in it once.
std::vector<node_t> given_order(const Graph&, const std::vector<index_t>& permutation);

/// A graph with a node for every set of nodes that are neighbours of each other and of the same others: the unknowns of
/// one point of a mesh. They may be eliminated one after the other at no loss.
struct CompressedGraph {
  Graph graph;
  std::vector<node_t> weight;        // how many nodes a set has
  std::vector<node_t> member_start;  // sets + 1, into members
  std::vector<node_t> members;
};
CompressedGraph compress(const Graph&);

}  // namespace trifactor::sparse
