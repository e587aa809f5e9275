// Many row interchanges at once: which rows they move, and moving them.
#pragma once

#include <cuda/device/row_exchange.cuh>

namespace trifactor::cuda {

using namespace core;

/// A load that sees what other multiprocessors wrote in the same launch.
template <class T>
__device__ T load_l2(const T* p) {
  if constexpr (is_complex<T>) {
    using R = Real<T>;
    using V = std::conditional_t<sizeof(R) == 8, double2, float2>;
    const V v = __ldcg(reinterpret_cast<const V*>(p));
    return {v.x, v.y};
  } else {
    return __ldcg(p);
  }
}

/// The interchanges of rows 0, 1, ... with others, up to max_steps of them, as moves: row from[k] goes to row k, and
/// row k goes to row to[k], unless that is negative, or less than the number of interchanges: then it is another one's
/// from.
template <int max_steps>
struct RowMoves {
  static_assert(max_steps <= 256);
  int from[max_steps], to[max_steps];

  /// From interchanges of row k with row partner[k], by all threads of a block, which then wait for each other.
  __device__ void find(const int* partner, int steps) {
    for (int t = int(threadIdx.x); t < 2 * steps; t += int(blockDim.x)) {
      const bool forward = t >= steps;
      const int k = forward ? t - steps : t;
      (forward ? to : from)[k] = row_before(k, partner, 0, steps, forward);
    }
    __syncthreads();  // the lists are complete
  }

  /// Moves rows of the columns of A. A warp reads all of a column before it writes: columns go to `warps` warps, of
  /// which the caller's is number `warp`. Where `take` is given, rows that would go to row k go to take(entry, k,
  /// column).
  template <class T, class Take = std::nullptr_t>
  __device__ void apply(T* A, index_t ld, int steps, int warp, int warps, int columns, Take take = nullptr) const {
    constexpr int slots = 8;
    int parts = 1, shift = 0;  // of 32 rows
    while (32 * parts < steps) parts *= 2, ++shift;
    const int together = slots / parts, lane = int(threadIdx.x) % 32;
#pragma unroll 1
    for (int j = warp * together; j < columns; j += warps * together) {
      T above[slots], below[slots];
      const auto each = [&](auto move) {
#pragma unroll
        for (int s = 0; s < slots; ++s) {
          const int k = lane + 32 * (s & (parts - 1)), column = j + (s >> shift);
          if (k < steps && column < columns) move(column, k, s);
        }
      };
      each([&](int column, int k, int s) {
        const T* const a = A + column * ld;
        above[s] = load_l2(a + from[k]);
        if (to[k] >= steps) below[s] = load_l2(a + k);
      });
      __syncwarp();  // every row is read before one is written
      each([&](int column, int k, int s) {
        T* const a = A + column * ld;
        if constexpr (std::is_same_v<Take, std::nullptr_t>)
          a[k] = above[s];
        else
          take(above[s], k, column);
        if (to[k] >= steps) a[to[k]] = below[s];
      });
    }
  }
};

}  // namespace trifactor::cuda
