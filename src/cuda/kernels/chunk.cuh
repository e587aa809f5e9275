// Items of different sizes, 32 at a time: a lane has one of them, and votes tell which a warp takes, so that nothing
// needs to be sorted beforehand.
#pragma once

#include <cuda/kernels/resident.cuh>

namespace trifactor::cuda {

/// The place of set bit k of the mask, from 0 on; anything where there are not so many.
__device__ __forceinline__ int set_bit(unsigned mask, int k) {
  int at = 0;
#pragma unroll
  for (int half = 16; half > 0; half /= 2) {
    const int below = __popc(mask & ((1u << half) - 1));
    if (k >= below) k -= below, at += half, mask >>= half;
  }
  return at;
}

/// Items `first` .. first + 31 of a ragged batch, one to each lane, seen through a square window on the diagonal. All
/// warps of a block may have the same.
template <class T>
struct Chunk {
  static constexpr int size = 32;
  index_t first;
  bool inside;    // the lane's item is one of the batch
  int own_rows;   // as they are stored, possible or not
  bool possible;  // as Items::possible_square
  T* data;
  int n, ld;  // n: 0 where the sizes are impossible

  /// As Items::item, but with all loads at once, since everything else waits for them.
  __device__ __forceinline__ Chunk(const Items<T>& A, index_t i) : first(size * i) {
    const index_t b = first + int(threadIdx.x % size), some = min(b, A.count - 1);
    own_rows = A.item_rows[some];
    const int own_cols = A.item_cols[some];
    ld = A.item_ld[some];
    data = A.pointers[some];
    inside = b < A.count;
    // without branches, which would hold up a load
    possible = (own_rows >= 0) & (own_rows == own_cols) & (own_rows <= int(min(A.stored_rows, A.stored_cols))) &
               (ld >= max(own_rows, 1));
    const int row0 = int(A.row0);
    n = possible ? max(0, min(int(A.rows), own_rows - row0)) : 0;
    if (row0 > 0 && n > 0) data += A.row0 * (ld + index_t(1));
  }
  template <bool by_rows>
  __device__ __forceinline__ Tile<T> item(int lane) const {
    T* const at = reinterpret_cast<T*>(__shfl_sync(~0u, reinterpret_cast<unsigned long long>(data), lane));
    const index_t rows = __shfl_sync(~0u, n, lane), stride = __shfl_sync(~0u, ld, lane);
    return {at, rows, rows, by_rows ? stride : 1, by_rows ? 1 : stride};
  }
  /// Whether a lane's item is to be factored. Only the warp that factors it asks: info changes meanwhile, and must have
  /// no part in who takes what.
  __device__ __forceinline__ bool wants(int lane, const int* info, bool resets) const {
    const bool good = __shfl_sync(~0u, int(possible), lane);
    return resets ? good : good && info[first + lane] == 0;
  }

  /// The lane with the r-th largest item, from 0 on, of those in `mask`, which are more than r. Orders are below
  /// 2^(high + 1), and those that differ only below bit `low` count as equal.
  template <int high, int low>
  __device__ __forceinline__ int largest(unsigned mask, int r) const {
#pragma unroll
    for (int bit = high; bit >= low; --bit) {
      const unsigned set = __ballot_sync(~0u, n >> bit & 1) & mask;
      const int count = __popc(set);
      if (r < count)
        mask = set;
      else
        mask &= ~set, r -= count;
    }
    return set_bit(mask, r);
  }
};

}  // namespace trifactor::cuda
