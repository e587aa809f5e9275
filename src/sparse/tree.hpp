// The elimination tree of points in a given order, and how many entries each column of L has.
#pragma once

#include <sparse/points.hpp>

namespace trifactor::sparse {

/// Points are numbered in a postorder of the tree: the points below j, and they alone, are the ones just before j.
struct Tree {
  std::vector<node_t> permutation;  // point j is this node of the graph
  std::vector<node_t> inverse;
  Graph graph;                 // of the points by their numbers here; neighbours in no particular order
  std::vector<node_t> parent;  // the point of the first row below point j in its columns of L; -1 for a root
  std::vector<node_t> weight;  // columns of point j
  std::vector<node_t> count;   // entries of the first column of point j in L, the diagonal's among them
  index_t nonzeros = 0;        // of L
  double flops = 0;  // the sum of the squares of all columns' entries: one root, count - 1 quotients, (count - 1) count
                     // for the rest
};

/// `order` puts node order[j] at the j-th place; the postorder may change that without changing the fill.
Tree make_tree(const CompressedGraph&, const std::vector<node_t>& order, int threads);

/// place[j] of node j in a postorder of the tree that `parent` makes.
std::vector<node_t> postorder(const std::vector<node_t>& parent);

}  // namespace trifactor::sparse
