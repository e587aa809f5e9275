// The elimination tree of a graph in a given order, and how many entries each column of L has.
#pragma once

#include <sparse/graph.hpp>

namespace trifactor::sparse {

/// Columns are numbered in a postorder of the tree: the columns below j, and they alone, are the ones just before j.
struct Tree {
  std::vector<node_t> permutation;  // column j is this node of the graph
  std::vector<node_t> inverse;
  std::vector<node_t> parent;  // the row of the first entry below the diagonal of column j; -1 for a root
  std::vector<node_t> count;   // entries of column j of L, the diagonal's among them
  // Column j is a neighbour of column j - 1 and of the same others: rows j and j - 1 of L are equal but for their ends, and
  // so are their columns. Then j - 1 is the only child of j.
  std::vector<char> follows;
  index_t nonzeros = 0;        // their sum
  double flops = 0;  // the sum of their squares: one root, count - 1 quotients, (count - 1) count for the rest
};

/// `order` puts node order[j] at the j-th place; the postorder may change that without changing the fill.
Tree make_tree(const Graph&, const std::vector<node_t>& order);

/// place[j] of column j in a postorder of the tree that `parent` makes.
std::vector<node_t> postorder(const std::vector<node_t>& parent);

}  // namespace trifactor::sparse
