// Columns with the same entries as one point.
#pragma once

#include <sparse/graph.hpp>

namespace trifactor::sparse {

/// A graph with a node for every set of columns that are neighbours of each other and of the same others: the unknowns
/// of one point of a mesh. They may be eliminated one after the other at no loss.
struct CompressedGraph {
  Graph graph;
  std::vector<node_t> weight;        // how many columns a point has
  std::vector<node_t> member_start;  // points + 1, into members
  std::vector<node_t> members;

  index_t points() const { return graph.nodes(); }
  index_t columns() const { return index_t(members.size()); }
  bool equal_weights() const;
  /// Pairs of columns that are neighbours.
  index_t links_of_columns() const;
};

CompressedGraph compress(const Graph&);

/// The points of a pattern, which are numbered by their first columns. With an order of all columns, a point is a run
/// of neighbours in that order, and points are numbered in it. Throws InvalidArgument for the first rule that the
/// pattern breaks.
template <SparseIndex I>
CompressedGraph points_of(const Pattern<I>&, bool duplicates, int threads, const std::vector<node_t>* order = nullptr);

/// The graph of the columns.
Graph expand(const CompressedGraph&);

}  // namespace trifactor::sparse
