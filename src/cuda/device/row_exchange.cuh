// Where a sequence of row interchanges takes rows from.
#pragma once

#include <core/batch.hpp>

namespace trifactor::cuda {

/// Which row the interchanges of rows first + i and partner[i], i < size, bring to row `to`; or what they bring there
/// when they are taken back.
__device__ inline int row_before(int to, const int* partner, int first, int size, bool backward) {
  int from = to;
#pragma unroll 8
  for (int i = 0; i < size; ++i) {  // back through the interchanges, the last one first
    const int x = backward ? i : size - 1 - i, here = first + x, there = partner[x];
    from = from == here ? there : from == there ? here : from;
  }
  return from;
}

}  // namespace trifactor::cuda
