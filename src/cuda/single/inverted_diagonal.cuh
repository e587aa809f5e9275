// The inverse of a diagonal block of a triangle, in shared memory, and a bound of what multiplying with it loses.
#pragma once

#include <cuda/single/single.hpp>
#include <cuda/device/team.cuh>
#include <tile/invert.hpp>

namespace trifactor::cuda {

inline constexpr int invert_threads = 256;  // of a block that inverts a diagonal block

template <class T>
struct DiagonalShape {
  static constexpr int edge = int(inverse_edge<T>);
  static constexpr int ld = edge + 4;  // no bank conflicts for 8 rows and 4 columns of a warp's lanes, nor for 4 and 8
  static constexpr int size = edge * ld;
};

/// x from the lane whose number differs in the bits of `mask`.
template <class T>
__device__ T shuffle_xor(T x, int mask) {
  if constexpr (is_complex<T>)
    return {__shfl_xor_sync(~0u, x.re, mask), __shfl_xor_sync(~0u, x.im, mask)};
  else
    return __shfl_xor_sync(~0u, x, mask);
}
/// The sum over the four neighbours of which a lane is one, the same on all.
template <class T>
__device__ T sum_of_four(T x) {
  x = x + shuffle_xor(x, 1);
  return x + shuffle_xor(x, 2);
}

/// D := the diagonal block of A at (at, at), of which the triangle `shape` is read; beyond the last row the identity,
/// in the other triangle zeros. V := D^-1. Both (edge, edge) in shared memory, column-major. By all 256 threads of the
/// block; all is visible to all on return.
/// Returns whether the product V y may be far from what substitution gives: row sums of |D| |V|, which bound the growth
/// of the residual, exceed a limit.
template <class T>
__device__ bool invert_diagonal(Shape shape, const Tile<const T>& A, index_t at, T* D, T* V, Real<T>* row_sums) {
  constexpr int edge = DiagonalShape<T>::edge, ld = DiagonalShape<T>::ld;
  constexpr Real<T> limit = 256;  // the residual ratio that is promised is 30, and the bound is rarely attained
  const int rank = int(threadIdx.x);
  const bool down = A.row_stride == 1;
#pragma unroll 8
  for (int t = rank; t < edge * edge; t += invert_threads) {
    const int r = down ? t % edge : t / edge, k = down ? t / edge : t % edge;
    const bool inside = at + max(r, k) < A.rows && (shape.lower ? k <= r : k >= r);
    const bool stored = inside && !(shape.unit && r == k);
    D[k * ld + r] = stored ? A(at + r, at + k) : T(r == k ? 1 : 0);
    V[k * ld + r] = T(0);
  }
  __syncthreads();  // D is complete, and V is empty
  tile::invert_triangle<edge>(BlockTeam{}, shape.lower, D, V, ld);
  __syncthreads();  // V is complete
  const int row = rank / 4;
  const int begin = shape.lower ? 0 : row, end = shape.lower ? row + 1 : edge;  // of its columns
  Real<T> sum = 0, bound = 0;
  if (row < edge) {  // whole warps
    for (int k = begin + rank % 4; k < end; k += 4) sum += abs1(V[k * ld + row]);
    sum = sum_of_four(sum);
    if (rank % 4 == 0) row_sums[row] = sum;
  }
  __syncthreads();  // the row sums of |V| are there
  if (row < edge) {
    for (int k = begin + rank % 4; k < end; k += 4) bound += abs1(D[k * ld + row]) * row_sums[k];
    bound = sum_of_four(bound);
  }
  return __syncthreads_or(bound > limit) != 0;
}

}  // namespace trifactor::cuda
