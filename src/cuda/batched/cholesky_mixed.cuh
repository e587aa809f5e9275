// Cholesky of ragged items of order up to 64 in one launch, each item in the way of its own size. Nothing is sorted: a
// chunk of 32 items belongs to 32 warps, and votes over the sizes tell each warp its items.
#pragma once

#include <cuda/batched/cholesky_lanes.cuh>
#include <cuda/batched/cholesky_warp.cuh>
#include <cuda/engine/launch.cuh>

namespace trifactor::cuda {

template <class T, int max_tiles>
struct MixedShape {
  static constexpr int small =
      max(max_tiles > 4 ? 0 : 2 * LanesShape<T, 16, true>::scratch, 4 * LanesShape<T, 8, true>::scratch);  // of a warp
  static constexpr int entries(int n) { return max(WarpShape<T, max_tiles>::entries(n), small); }
  static constexpr int early = 16;  // turns of each chunk that come first
};

/// Which items of a chunk are one turn's: large ones have a turn each, by the number of their tiles, the largest first,
/// then the smallest by fours. In kernels for up to 32 rows, those of 9 to 16 go by twos.
template <int max_tiles>
struct MixedTurn {
  static constexpr bool in_pairs = max_tiles == 4;
  unsigned lanes = 0;  // that have the items
  bool alone, paired;

  __device__ __forceinline__ MixedTurn(bool here, int n, int rank) {
    const unsigned below = (1u << threadIdx.x % 32) - 1;
    int turn = -1, taken = 0;  // whose the lane's item is; turns before
    const auto take = [&](bool own, int together) TF_INLINE_LAMBDA {
      const unsigned all = __ballot_sync(~0u, own);
      if (own) turn = taken + __popc(all & below) / together;
      taken += (__popc(all) + together - 1) / together;
      return rank < taken;
    };
    const bool pair = in_pairs && here && n > 8 && n <= 16, four = here && n <= 8;
#pragma unroll
    for (int tiles = max_tiles; tiles > (in_pairs ? 2 : 1); --tiles)
      alone = take(here && n > 8 * tiles - 8 && (tiles == max_tiles || n <= 8 * tiles), 1);
    paired = in_pairs && take(pair, 2);
    take(four, 4);
    lanes = __ballot_sync(~0u, turn == rank);
  }
};

/// Items of up to `width` rows that share a warp.
template <class T, int width, bool by_rows>
__device__ __forceinline__ void factor_together(const Chunk<T>& chunk, unsigned lanes, T* shared, int* info,
                                                index_t first, bool resets) {
  const int lane = int(threadIdx.x % 32), group = lane / width;
  unsigned rest = lanes;
#pragma unroll
  for (int before = 1; before < 32 / width; ++before)
    if (group >= before) rest &= rest - 1;
  const bool inside = rest != 0;
  const int from = __ffs(int(inside ? rest : lanes)) - 1;
  const Tile<T> a = chunk.item(from, by_rows);
  const bool own = chunk.wants(from, info, resets);
  const int failed = factor_side_by_side<T, width, by_rows>(a, inside && own ? int(a.rows) : 0,
                                                            shared + group * LanesShape<T, width, by_rows>::scratch);
  __syncwarp();  // everyone has read info
  if (inside && lane % width == 0) report(info, chunk.first + from, resets, first, own, failed);
}

/// Items of order up to `above`, which is 8 * max_tiles at most, of a ragged batch. A chunk is work for up to 32 turns
/// of one warp, see MixedTurn, grid (chunks, 32). The first `early` of each chunk, its largest items, come first, chunk
/// by chunk from the last one on; then the next ones of all chunks, and so on: what is left at the end is small and
/// fills the gaps.
template <class T, int max_tiles>
__global__ void __launch_bounds__(32, WarpShape<T, max_tiles>::blocks)
    cholesky_mixed_kernel(const __grid_constant__ Items<T> A, int above, int* info, index_t first, bool resets) {
  extern __shared__ __align__(128) unsigned char aligned[];
  T* const shared = reinterpret_cast<T*>(aligned);
  const unsigned place = blockIdx.y * gridDim.x + blockIdx.x, each = MixedShape<T, max_tiles>::early;
  const bool early = blockIdx.y < each, by_rows = A.is_flipped;
  const Chunk<T> chunk(A, index_t(gridDim.x - 1 - (early ? place / each : blockIdx.x)));
  const MixedTurn<max_tiles> turn(chunk.inside && chunk.own_rows <= above, chunk.n,
                                  int(early ? place % each : blockIdx.y));
  const auto together = [&]<int width>(std::integral_constant<int, width>) TF_INLINE_LAMBDA {
    if (by_rows)
      factor_together<T, width, true>(chunk, turn.lanes, shared, info, first, resets);
    else
      factor_together<T, width, false>(chunk, turn.lanes, shared, info, first, resets);
  };
  if (turn.lanes != 0 && turn.alone) {
    const int from = __ffs(int(turn.lanes)) - 1;
    T *const scratch = shared, *const store = scratch + WarpShape<T, max_tiles>::scratch;
    const Tile<T> a = chunk.item(from, by_rows);
    const bool own = chunk.wants(from, info, resets);
    const int failed = own ? factor_by_warp<max_tiles, false>(opaque(a), by_rows, store, scratch, {}) : 0;
    __syncwarp();  // everyone has read info
    if (threadIdx.x == 0) report(info, chunk.first + from, resets, first, own, failed);
  } else if (turn.lanes != 0 && turn.paired) {
    if constexpr (MixedTurn<max_tiles>::in_pairs) together(std::integral_constant<int, 16>{});
  } else if (turn.lanes != 0) {
    together(std::integral_constant<int, 8>{});
  }
  if (blockIdx.x == 0 && blockIdx.y == 0) wait_for_launch_before();
}

}  // namespace trifactor::cuda
