// The plan of a sparse LU factorization, as plain arrays.
#pragma once

#include <sparse/graph.hpp>
#include <trifactor/sparse_lu.hpp>

namespace trifactor::sparse {

/// The matrix A Q by columns, in a postorder of the elimination tree of (A Q)^T (A Q), which bounds what a column of L
/// and U depends on whatever the pivots are.
struct LuPlan {
  index_t n = 0;
  std::vector<index_t> permutation;  // column j of A Q is this column of A
  std::vector<node_t> parent;        // of column j in the tree; -1 for a root
  std::vector<int> start;            // n + 1: column j holds places start[j] to start[j + 1] - 1,
  std::vector<int> row;              // in these rows of A; none twice in a column
  std::vector<int> place;            // of each given entry; those of the same place are added up
  LuOrdering ordering = LuOrdering::Natural;
  std::vector<SparsePlan::Step> steps;
};

/// Throws InvalidArgument "analyze: what = value must rule".
template <SparseIndex I>
LuPlan plan_lu(const Pattern<I>&, const AnalyzeLuOptions&);

}  // namespace trifactor::sparse
