// Cholesky of matrices of order up to 16, several to a warp, with a row to a lane.
#pragma once

#include <cuda/kernels/async.cuh>
#include <cuda/kernels/columns.cuh>
#include <cuda/kernels/resident.cuh>

namespace trifactor::cuda {

/// With `kept`, the columns of the factor stay in shared memory: an upper triangle is written from there, and a solve
/// reads them.
template <class T, int width, bool kept>
struct SmallShape {
  using Scratch = ColumnScratch<T, width, kept>;
  static constexpr int threads = 128, items = threads / width;
  static constexpr int scratch = Scratch::size;  // entries, for an item
  static constexpr std::size_t bytes = std::size_t(items) * scratch * sizeof(T);
  // On a multiprocessor.
  static constexpr int blocks = width < 16 ? 5 : sizeof(T) == 4 ? 8 : sizeof(T) == 8 ? 5 : 2;
  static constexpr int solve_blocks = width < 16 ? 5 : sizeof(T) == 4 ? 6 : sizeof(T) == 8 ? 4 : 2;
};

/// What becomes of a small item: 0, the failed column + 1, or -1 when it was not written since this wants care. With a
/// right-hand side, see factor_columns, what each lane has of it. scale: 1 / L(row, row).
template <class T>
struct SmallResult {
  int failed;
  T x;
  Real<T> scale;
};

/// Factors one item of order n by `width` lanes. by_rows: an upper triangle, neighbours in memory lie along a row. With
/// `solves`, x is a lane's entry of a right-hand side. All lanes of a warp come here together, those without work with
/// n = 0.
template <bool careful, class T, int width, bool by_rows, bool solves>
__device__ __forceinline__ SmallResult<T> factor_small(const Tile<T>& given, int n, bool writes, T* scratch,
                                                       T x = T(0)) {
  constexpr bool kept = by_rows || solves;
  using Scratch = ColumnScratch<T, width, kept>;
  const int lane = int(threadIdx.x % 32), row = lane % width;
  const Tile<T> A = afresh(given);
  T rows[1][width], (&a)[width] = rows[0];
  const T* at = A.data + row;
  if constexpr (!by_rows) {
    const int last = row < n ? row : -1;  // column
#pragma unroll
    for (int c = 0; c < width; ++c, at += A.col_stride) {
      a[c] = anything<T>();
      if (c <= last) a[c] = *at;
    }
  } else {  // by way of the places where the columns will be
    const unsigned to = shared_address(scratch + row);
#pragma unroll
    for (int r = 0; r < width; ++r, at += A.row_stride)
      if (row <= r && r < n) copy_async<int(sizeof(T))>(to + r * Scratch::step * int(sizeof(T)), at);
    copy_commit();
    copy_wait<0>();
    __syncwarp();  // the triangle is there
    read_vectors<width>(scratch + row * Scratch::step, a);
    __syncwarp();  // and was read
  }
  // What is beyond the last row or column is garbage, and makes garbage only there.
  Real<T> scale = 0;
  const int role = careful && n == 0 ? width : row;  // lanes without work leave the columns that they have as they are
  const Real<T> pivot = factor_columns<careful, solves, kept>(rows, role, scratch, &x, &scale);
  const bool counts = row < n;
  const unsigned group = ((1u << width) - 1) << (lane - row);
  if (!careful && (__ballot_sync(~0u, counts && !middling(pivot)) & group)) n = -1;
  const int failed = __ffs(int((__ballot_sync(~0u, counts && !good_pivot(pivot)) & group) >> (lane - row)));
  const Tile<T> out = afresh(given);
  T* to = out.data + row;
  if constexpr (!by_rows) {
    if constexpr (is_complex<T>)
#pragma unroll
      for (int c = 0; c < width; ++c)
        if (c == row) a[c] = T(real(a[c]));
    const int last = writes && row < n ? row : -1;
#pragma unroll
    for (int c = 0; c < width; ++c, to += out.col_stride)
      if (c <= last) *to = a[c];
  } else {
    T column[width];
    read_vectors<width>(scratch + row * Scratch::step, column);
    const int end = writes ? n : 0;
#pragma unroll
    for (int r = 0; r < width; ++r, to += out.row_stride)
      if (row <= r && r < end) *to = (row == r ? T(pivot) : column[r]) * scale;
  }
  return {n < 0 ? -1 : failed, x, scale};
}
/// Apart, so that its registers are not held in the usual case.
template <class T, int width, bool by_rows, bool solves>
__device__ __noinline__ SmallResult<T> factor_small_carefully(Tile<T> A, int n, bool writes, T* scratch, T x) {
  return factor_small<true, T, width, by_rows, solves>(A, n, writes, scratch, x);
}

}  // namespace trifactor::cuda
