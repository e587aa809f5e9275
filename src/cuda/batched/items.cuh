// Items of different sizes, 32 at a time: a lane has one of them, and votes tell which a warp takes, so that nothing
// needs to be sorted beforehand.
#pragma once

#include <cuda/device/pivot_block.cuh>

namespace trifactor::cuda {

/// Item b of a ragged batch, whose window is square and on the diagonal: what is known of it.
template <class T>
struct StoredItem {
  int own_rows;   // as they are stored, possible or not
  bool possible;  // as Items::possible_square
  T* data;        // where the item begins, not the window
  int n, ld;      // n: rows of the window, 0 where the sizes are impossible

  /// All loads at once, since everything else waits for them.
  __device__ __forceinline__ StoredItem(const Items<T>& A, index_t b) {
    own_rows = A.item_rows[b];
    const int own_cols = A.item_cols[b];
    ld = A.item_ld[b];
    data = A.pointers[b];
    // without branches, which would hold up a load; what is negative is too large
    possible = (unsigned(own_rows) <= unsigned(min(A.stored_rows, A.stored_cols))) & (own_rows == own_cols) &
               (ld >= max(own_rows, 1));
    n = possible ? max(0, min(int(A.rows), own_rows - int(A.row0))) : 0;
  }
};
/// Where the window of an item begins, if it has any rows; sizes are ints.
template <class T>
__device__ __forceinline__ T* window_of(const Items<T>& A, T* item, int ld) {
  return item + index_t(unsigned(A.row0)) * index_t(unsigned(ld) + 1u);
}

/// The same as Items::item.
template <class T>
struct RaggedItem : StoredItem<T> {
  using StoredItem<T>::n, StoredItem<T>::ld, StoredItem<T>::data;
  __device__ __forceinline__ RaggedItem(const Items<T>& A, index_t b) : StoredItem<T>(A, b) {
    // Two forms of the same, since what a kernel holds for its next item is missing where blocks factor this one. H200,
    // 10,000 upper triangles of doubles of order 160 and 192: 1.13 and 1.48 ms, and 1.22 and 1.56 with the second form;
    // with the first one, it is complex doubles above 160 that are spilled.
    if constexpr (!is_complex<T>)
      data = A.row0 > 0 && n > 0 ? data + A.row0 * (index_t(ld) + 1) : data;
    else
      data = window_of(A, data, ld);
  }
  __device__ __forceinline__ Tile<T> tile(bool by_rows) const {
    return {data, n, n, by_rows ? ld : 1, by_rows ? 1 : ld};
  }
};

/// Items `first` .. first + 31 of a ragged batch, one to each lane. All warps of a block may have the same.
template <class T>
struct Chunk : StoredItem<T> {
  using StoredItem<T>::n, StoredItem<T>::ld, StoredItem<T>::data, StoredItem<T>::possible;
  static constexpr int size = 32;
  const Items<T>& items;
  index_t first;
  bool inside;  // the lane's item is one of the batch

  __device__ __forceinline__ Chunk(const Items<T>& A, index_t i)
      : StoredItem<T>(A, min(size * i + int(threadIdx.x % size), A.count - 1)),
        items(A),
        first(size * i),
        inside(first + int(threadIdx.x % size) < A.count) {}
  __device__ __forceinline__ Tile<T> item(int lane, bool by_rows) const {
    T* const at = reinterpret_cast<T*>(__shfl_sync(~0u, reinterpret_cast<unsigned long long>(data), lane));
    const int rows = __shfl_sync(~0u, n, lane);
    const int stride = __shfl_sync(~0u, ld, lane);
    return {window_of(items, at, stride), rows, rows, by_rows ? stride : 1, by_rows ? 1 : stride};
  }
  /// Whether a lane's item is to be factored. Only the warp that factors it asks: info changes meanwhile, and must have
  /// no part in who takes what.
  __device__ __forceinline__ bool wants(int lane, const int* info, bool resets) const {
    const bool good = __shfl_sync(~0u, int(possible), lane);
    return resets ? good : good && info[first + lane] == 0;
  }
};

}  // namespace trifactor::cuda
