// The undirected graph of a symmetric pattern, and the checks of a pattern on the way there.
#pragma once

#include <trifactor/sparse.hpp>

#include <string>
#include <vector>

namespace trifactor::sparse {

/// Numbers of columns. Counts of entries are index_t.
using node_t = std::int32_t;

/// Node i and the neighbours[start[i]] to neighbours[start[i + 1] - 1] that it shares an entry with: ascending, and
/// without itself.
struct Graph {
  std::vector<index_t> start;
  std::vector<node_t> neighbours;

  index_t nodes() const { return index_t(start.size()) - 1; }
  index_t degree(index_t i) const { return start[i + 1] - start[i]; }
};

/// Throws InvalidArgument "analyze: what = value must rule".
[[noreturn]] void refuse(const std::string& what, index_t value, const std::string& rule);

/// The graph of a pattern. Throws InvalidArgument for the first rule that the pattern breaks.
template <SparseIndex I>
Graph graph_of(const Pattern<I>& pattern, bool duplicates);

/// Where a point is in a plan: its first column, and its front.
struct Position {
  node_t column, front;
};

}  // namespace trifactor::sparse
