// How many blocks a grid has.
#pragma once

#include <core/batch.hpp>

#include <type_traits>

namespace trifactor::cuda {

using namespace core;

/// Blocks of a grid that covers `count` items; kernels loop over items with the grid's size as their step.
inline unsigned grid_for(index_t count) { return unsigned(min(count, index_t(1) << 30)); }

/// Of one whose kernel does not loop. Beyond 2^31 - 1 blocks of items, more than a memory holds, the launch fails.
inline unsigned grid_of_all(index_t blocks) { return unsigned(min(blocks, index_t(1) << 31)); }

/// Blocks that keep a device busy, 16 for each multiprocessor of an H200: kernels that loop over their work get no
/// more.
inline constexpr index_t enough_blocks = 132 * 16;

/// Strips of columns that blocks share: one block takes all of an item where there are many items.
inline unsigned strips_for(index_t count, index_t strips) {
  return unsigned(max(index_t(1), min(strips, min(ceil_div(enough_blocks, count), index_t(65535)))));
}

/// f(the first of `sizes` that is at least n), as a std::integral_constant: a kernel for each size. Nothing if all are
/// less.
template <int... sizes, class F>
void with_least(index_t n, F f) {
  static_cast<void>(((n <= sizes && (f(std::integral_constant<int, sizes>{}), true)) || ...));
}

}  // namespace trifactor::cuda
