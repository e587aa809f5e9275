// From the elimination tree to the tree of fronts.
#pragma once

#include <core/tuning.hpp>
#include <sparse/tree.hpp>

namespace trifactor::sparse {

/// Everything of a plan but its targets.
Plan make_fronts(const Graph&, const Tree&, const core::SparseTuning&);

/// Of the dense factorization of the first `columns` of `rows` columns, with the update of the rest.
double front_flops(index_t rows, index_t columns);

}  // namespace trifactor::sparse
