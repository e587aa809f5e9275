// A small set of nodes that cuts a graph into two parts of similar weight.
#pragma once

#include <sparse/multilevel.hpp>

namespace trifactor::sparse {

/// Parts 0 and 1, with no link between them, and the separator, 2.
struct Bisection {
  Array<unsigned char> part;  // of each node
  index_t weight[3] = {0, 0, 0};
  std::vector<node_t> separator;
};

/// By multilevel bisection: coarsen, cut the coarsest graph by growing a part from several nodes, and go back to finer
/// graphs, moving nodes in and out of the separator on each (Fiduccia and Mattheyses).
Bisection bisect(const WeightedGraph&, std::uint64_t seed);

}  // namespace trifactor::sparse
