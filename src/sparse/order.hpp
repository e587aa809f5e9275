// Fill-reducing orderings of a graph, beside nested dissection (dissect.hpp).
#pragma once

#include <sparse/points.hpp>

namespace trifactor::sparse {

// All return the node that comes j-th.

/// Approximate minimum degree.
std::vector<node_t> amd_order(const Graph&);
std::vector<node_t> amd_order(const CompressedGraph&);
std::vector<node_t> natural_order(const Graph&);
/// Throws InvalidArgument unless every node is in it once.
std::vector<node_t> given_order(const Graph&, const std::vector<index_t>& permutation);

}  // namespace trifactor::sparse
