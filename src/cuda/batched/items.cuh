// Which matrix is item b of a batch, and what becomes of its info: items of one size, ragged items, and ragged items 32
// at a time, one to a lane.
#pragma once

#include <core/batch.hpp>

namespace trifactor::cuda {

using namespace core;

/// Optimization barrier: A, in global memory, but the compiler cannot hoist address arithmetic, which would spill
/// registers.
template <class T>
__device__ __forceinline__ Tile<T> opaque(Tile<T> A) {
  asm volatile("" : "+l"(A.data), "+l"(A.row_stride), "+l"(A.col_stride));
  __builtin_assume(__isGlobal(A.data));
  return A;
}

/// Whether item b is to be factored. With `resets`, info is not read but decided: -1 for an impossible item.
template <class T>
__device__ bool wanted(const Items<T>& A, index_t b, const int* info, bool resets) {
  return resets ? A.possible_square(b) : info[b] == 0;
}
/// What becomes of info[b], where the item was wanted or not: `failed` is the order of the minor that is not positive
/// definite, or 0.
__device__ inline void report(int* info, index_t b, bool resets, index_t first, bool was_wanted, int failed) {
  if (was_wanted && failed > 0)
    info[b] = int(first) + failed;
  else if (resets)
    info[b] = was_wanted ? 0 : -1;
}

/// Whether there is an item b of a batch of one size that is to be factored, see wanted. Without a branch.
template <class T>
__device__ __forceinline__ bool wanted_inside(const Items<T>& A, index_t b, const int* info, bool resets) {
  bool own = b < A.count;
  if (!resets) own = own && info[b] == 0;
  return own;
}
/// Item b, or an empty one. by_rows: rows are contiguous, not columns.
template <class T>
__device__ __forceinline__ Tile<T> item_if(bool wanted, bool by_rows, Items<T> A, index_t b) {
  A.is_flipped = by_rows;
  return wanted ? A.item(b) : Tile<T>{nullptr, 0, 0, 1, 1};
}

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
  /// Where the window begins in an item, if it has any rows; sizes are ints.
  __device__ __forceinline__ static T* window(const Items<T>& A, T* item, int item_ld) {
    return item + index_t(unsigned(A.row0)) * index_t(unsigned(item_ld) + 1u);
  }
  /// The same as Items::item.
  __device__ __forceinline__ Tile<T> tile(const Items<T>& A) const {
    return {window(A, data, ld), n, n, A.is_flipped ? ld : 1, A.is_flipped ? 1 : ld};
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
    return {StoredItem<T>::window(items, at, stride), rows, rows, by_rows ? stride : 1, by_rows ? 1 : stride};
  }
  /// Whether a lane's item is to be factored. Only the warp that factors it asks: info changes meanwhile, and must have
  /// no part in who takes what.
  __device__ __forceinline__ bool wants(int lane, const int* info, bool resets) const {
    const bool good = __shfl_sync(~0u, int(possible), lane);
    return resets ? good : good && info[first + lane] == 0;
  }
};

}  // namespace trifactor::cuda
