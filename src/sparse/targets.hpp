// Where the given entries go in the factor.
#pragma once

#include <sparse/plan.hpp>
#include <sparse/points.hpp>

namespace trifactor::sparse {

/// Fills plan.target for a checked pattern with these points.
template <SparseIndex I>
void set_targets(const Pattern<I>& pattern, const CompressedGraph& points, Plan& plan, int threads);

}  // namespace trifactor::sparse
