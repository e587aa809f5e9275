// Many matrices of one pattern as one: their trees side by side are a forest, every level of which is so many times as
// wide.
#pragma once

#include <sparse/plan.hpp>

namespace trifactor::sparse {

/// The plan of a block diagonal matrix with `count` blocks of the pattern of `one`. The columns, fronts, rows and
/// values of item i follow those of item i - 1, each in the order that they have in `one`. Throws InvalidArgument when
/// count is negative or there are not fewer than 2^31 columns in all, and std::bad_alloc.
Plan forest_of(const Plan& one, index_t count);

}  // namespace trifactor::sparse
