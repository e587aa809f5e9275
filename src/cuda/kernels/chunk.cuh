// Items of different sizes, 32 at a time: a lane has one of them, and votes tell which a warp takes, so that nothing
// needs to be sorted beforehand.
#pragma once

#include <cuda/kernels/resident.cuh>

namespace trifactor::cuda {

/// Item b of a ragged batch, seen through a square window on the diagonal.
template <class T>
struct RaggedItem {
  int own_rows;   // as they are stored, possible or not
  bool possible;  // as Items::possible_square
  T* data;
  int n, ld;  // n: 0 where the sizes are impossible

  /// As Items::item, but with all loads at once, since everything else waits for them.
  __device__ __forceinline__ RaggedItem(const Items<T>& A, index_t b) {
    own_rows = A.item_rows[b];
    const int own_cols = A.item_cols[b];
    ld = A.item_ld[b];
    data = A.pointers[b];
    // without branches, which would hold up a load
    possible = (own_rows >= 0) & (own_rows == own_cols) & (own_rows <= int(min(A.stored_rows, A.stored_cols))) &
               (ld >= max(own_rows, 1));
    const int row0 = int(A.row0);
    n = possible ? max(0, min(int(A.rows), own_rows - row0)) : 0;
    if (row0 > 0 && n > 0) data += A.row0 * (ld + index_t(1));
  }
  __device__ __forceinline__ Tile<T> tile(bool by_rows) const {
    return {data, n, n, by_rows ? ld : 1, by_rows ? 1 : ld};
  }
};

/// Items `first` .. first + 31 of a ragged batch, one to each lane. All warps of a block may have the same.
template <class T>
struct Chunk : RaggedItem<T> {
  using RaggedItem<T>::n, RaggedItem<T>::ld, RaggedItem<T>::data, RaggedItem<T>::possible;
  static constexpr int size = 32;
  index_t first;
  bool inside;  // the lane's item is one of the batch

  __device__ __forceinline__ Chunk(const Items<T>& A, index_t i)
      : RaggedItem<T>(A, min(size * i + int(threadIdx.x % size), A.count - 1)),
        first(size * i),
        inside(first + int(threadIdx.x % size) < A.count) {}
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
};

}  // namespace trifactor::cuda
