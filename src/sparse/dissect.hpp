// Nested dissection.
#pragma once

#include <sparse/graph.hpp>

namespace trifactor::sparse {

/// The order by nested dissection: the node that comes j-th. A separator comes after the two parts that it leaves,
/// which are cut likewise; small parts are ordered by minimum degree. weight: of each node, or null. The result is the
/// same for any number of threads; 0: those of the team that calls.
std::vector<node_t> dissect(const Graph& graph, const node_t* weight, int threads);

}  // namespace trifactor::sparse
