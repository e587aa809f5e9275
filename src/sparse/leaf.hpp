// Minimum degree for small parts of a graph.
#pragma once

#include <sparse/graph.hpp>

namespace trifactor::sparse {

/// Orders some hundred nodes by minimum degree. Their other neighbours, the border, come later: they count for the
/// degree and are not ordered. An object keeps its memory from one call to the next.
class LeafOrder {
 public:
  /// Sorts `count` nodes of `graph`. weight: of every node of the graph, or null. local: -1 for every node of the
  /// graph; that of these nodes is changed, and no other is one's neighbour with another value.
  void run(const Graph& graph, const node_t* weight, node_t* nodes, node_t count, node_t* local);

 private:
  using word_t = std::uint64_t;
  static constexpr int bits = 64;

  word_t* row(node_t i) { return &rows_[std::size_t(i * words_)]; }
  node_t border_column(node_t node);
  void set_columns(const Graph& graph, const node_t* nodes, node_t* local);
  void set_rows(const Graph& graph, const node_t* nodes, const node_t* local);
  index_t weighted_degree(node_t i);
  void eliminate(node_t pivot);

  node_t count_ = 0;
  index_t words_ = 0;            // of a row
  bool equal_weights_ = true;
  std::vector<node_t> columns_;  // the node of each bit: those to be ordered, then the border
  std::vector<node_t> table_;    // of the border: columns by their nodes, with open addressing
  std::vector<node_t> weight_;   // of each bit
  std::vector<word_t> rows_;     // neighbours of every node to be ordered, a bit each
  std::vector<index_t> degree_;
  std::vector<node_t> left_, order_;
};

}  // namespace trifactor::sparse
