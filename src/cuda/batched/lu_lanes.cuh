// LU of matrices of a few rows and columns, several to a warp, with a column to a lane: each lane interchanges its own
// entries, and the pivot is found in one lane. No votes, and no shared memory.
#pragma once

#include <cuda/batched/lu_panel.cuh>
#include <cuda/device/fragments.cuh>

namespace trifactor::cuda {

inline constexpr int lu_lanes_threads = 128;

/// A column of up to `width` entries, of 16 bytes at a time where it is full and aligned: then no sector is written in
/// parts.
template <class T, int width>
class LaneColumn {
 public:
  __device__ LaneColumn(const Tile<T>& A, int column)
      : data(A.data + column * A.col_stride),
        stride(A.row_stride),
        rows(column < int(A.cols) ? int(A.rows) : 0),
        aligned(rows == width && stride == 1 && reinterpret_cast<std::uintptr_t>(data) % 16 == 0) {}

  __device__ void load(T (&a)[width]) const {
    if (aligned) {
#pragma unroll
      for (int i = 0; i < width; ++i) a[i] = reinterpret_cast<const Vector*>(data)[i / together].v[i % together];
    } else {
#pragma unroll
      for (int i = 0; i < width; ++i) a[i] = i < rows ? data[i * stride] : T(0);
    }
  }
  __device__ void store(const T (&a)[width]) const {
    if (aligned) {
      write_vectors(data, a);
    } else {
#pragma unroll
      for (int i = 0; i < width; ++i)
        if (i < rows) data[i * stride] = a[i];
    }
  }

 private:
  static constexpr int together = vector_of<T>;
  using Vector = EntryVector<T, together>;
  T* const data;
  const index_t stride;
  const int rows;
  const bool aligned;
};

/// Matrices of up to `width` rows and columns.
template <class T, int width>
__global__ void __launch_bounds__(lu_lanes_threads)
    lu_lanes_kernel(Items<T> A, Pivots<int> pivots, int* info, bool resets) {
  const int own = int(threadIdx.x % width);  // column
  const index_t b = index_t(blockIdx.x) * (lu_lanes_threads / width) + threadIdx.x / width;
  const int before = b < A.count ? info_before(A, b, info, resets) : -1;
  Tile<T> matrix{nullptr, 0, 0, 1, 1};  // all lanes of a warp take part in shuffles
  if (before >= 0) matrix = A.item(b);
  const int steps = min(int(matrix.rows), int(matrix.cols));
  const LaneColumn<T, width> column(matrix, own);
  T a[width];
  column.load(a);
  int pivot_row = 0;
  bool is_zero = false;  // the pivot of the lane's own column
#pragma unroll
  for (int k = 0; k < width; ++k) {
    // In lane k; what others find is not used. Rows beyond the last are zero, and come after those that are there.
    PivotKey best = pivot_key(a[k]);
    T pivot = a[k];
    int p = k;
#pragma unroll
    for (int i = k + 1; i < width; ++i) {
      const PivotKey key = pivot_key(a[i]);
      if (key.is_above(best)) best = key, pivot = a[i], p = i;
    }
    T inverse = reciprocal(pivot);
    if (own == k) pivot_row = p;
    p = __shfl_sync(~0u, p, k, width);
#pragma unroll
    for (int i = k + 1; i < width; ++i) {
      const T x = a[i];
      if (p == i) a[i] = a[k], a[k] = x;
    }
    if (own == k && k < steps && !has_safe_reciprocal<Real<T>>(best.high)) {
      asm volatile("// seldom: a branch, not predicates");
      is_zero = pivot == T(0);
      if (is_zero) {
        inverse = T(1);  // the column is zero
      } else {
        T scaled = pivot;
#pragma unroll
        for (int i = k + 1; i < width; ++i) scaled = pivot, scale_pivot(a[i], scaled);
        inverse = reciprocal(scaled);
      }
    }
#pragma unroll
    for (int i = k + 1; i < width; ++i) {
      if (own == k) a[i] = a[i] * inverse;
      const T l = from_lane<width>(a[i], k);
      if (own > k) a[i] = minus_product(a[i], l, a[k]);
    }
  }
  column.store(a);
  if (own < steps) pivots.item(b)[own] = int(pivots.first) + pivot_row + 1;
  const unsigned zeros = __ballot_sync(~0u, is_zero) >> (threadIdx.x % 32 - own) & ((1u << width) - 1);
  if (own == 0 && b < A.count) note_info(info, b, before, __ffs(int(zeros)), pivots.first, resets);
}

}  // namespace trifactor::cuda
