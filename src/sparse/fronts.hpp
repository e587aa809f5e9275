// From the elimination tree to the tree of fronts.
#pragma once

#include <core/tuning.hpp>
#include <sparse/plan.hpp>
#include <sparse/tree.hpp>

namespace trifactor::sparse {

/// Everything of a plan but its targets.
Plan make_fronts(const CompressedGraph&, const Tree&, const core::SparseTuning&, int threads);

/// Of the dense factorization of the first `columns` of `rows` columns, with the update of the rest.
double front_flops(index_t rows, index_t columns);

}  // namespace trifactor::sparse
