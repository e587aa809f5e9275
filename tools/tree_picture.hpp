// The tree of a sparse factorization as an SVG picture.
#pragma once

#include <trifactor/sparse.hpp>

#include <string>

namespace program {

/// Levels from the leaves at the bottom to the roots at the top: on the left how many fronts and operations each has, on
/// the right the fronts as circles, larger with more operations and darker with more columns. Of a large tree the
/// subtrees with the fewest operations are left out, and the picture says how many fronts that were.
std::string tree_picture(const trifactor::SparsePlan&, const std::string& title);

}  // namespace program
