// Cholesky of matrices of order up to 16, several to a warp, with a row to a lane.
#pragma once

#include <cuda/device/pipeline.cuh>
#include <cuda/device/pivot_columns.cuh>
#include <cuda/device/pivot_block.cuh>

namespace trifactor::cuda {

/// Items of one size, with their window resolved on the host: what a warp computes before its first load is time that
/// nothing covers. By Items, 10,000 items of order 4 take 4.4 us in place of 4.2, and 1,000 of order 16 5.3 in place of
/// 5.1.
template <class T>
struct EqualItems {
  T* base;             // a strided batch
  T* const* pointers;  // or one of pointers, with the window at `offset`
  index_t stride, offset = 0;
  index_t row_stride, col_stride, count;
  int rows, cols;

  explicit EqualItems(const Items<T>& A)
      : base(A.base),
        pointers(A.pointers),
        stride(A.stride),
        row_stride(A.is_flipped ? A.ld : 1),
        col_stride(A.is_flipped ? 1 : A.ld),
        count(A.count),
        rows(int(A.rows)),
        cols(int(A.cols)) {
    if (rows > 0 && cols > 0) offset = A.row0 * row_stride + A.col0 * col_stride;
    if (!pointers) base += offset;
  }
};
/// A batch as kernels for items of up to 64 rows take it.
template <class T, bool ragged>
using SmallItems = std::conditional_t<ragged, Items<T>, EqualItems<T>>;

/// Whether there is an item b that is to be factored, see wanted. Without a branch.
template <class T>
__device__ __forceinline__ bool wanted_inside(const EqualItems<T>& A, index_t b, const int* info, bool resets) {
  bool own = b < A.count;
  if (!resets) own = own && info[b] == 0;
  return own;
}
/// Item b, or an empty one. by_rows: rows are contiguous, not columns.
template <class T>
__device__ __forceinline__ Tile<T> item_if(bool wanted, bool by_rows, const EqualItems<T>& A, index_t b) {
  T* data = A.base + b * A.stride;
  if (A.pointers) data = wanted ? A.pointers[b] + A.offset : nullptr;
  return {data, wanted ? A.rows : 0, wanted ? A.cols : 0, by_rows ? A.row_stride : 1, by_rows ? 1 : A.col_stride};
}
template <class T>
__device__ __forceinline__ Tile<T> item_if(bool wanted, bool by_rows, Items<T> A, index_t b) {
  A.is_flipped = by_rows;
  return wanted ? A.item(b) : Tile<T>{nullptr, 0, 0, 1, 1};
}

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
/// right-hand side, what each lane has of D^-1 M^-1 b, see factor_columns. scale: 1 / L(row, row).
template <class T>
struct SmallResult {
  int failed;
  T x;
  Real<T> scale;
};

/// Factors one item of order n by `width` lanes. by_rows: an upper triangle, whose rows are contiguous; it is stored from
/// the columns in shared memory, and above width 4, where a row is more than a sector, loaded through shared memory.
/// With `solves`, x is a lane's entry of a right-hand side. All lanes of a warp come here together, those without work
/// with n = 0.
template <bool careful, class T, int width, bool by_rows, bool solves>
__device__ __forceinline__ SmallResult<T> factor_small(const Tile<T>& given, int n, bool writes, T* scratch,
                                                       T x = T(0)) {
  constexpr bool through_shared = by_rows && width > 4;
  constexpr bool kept = by_rows || solves;
  using Scratch = ColumnScratch<T, width, kept>;
  const int lane = int(threadIdx.x % 32), row = lane % width;
  const Tile<T> A = afresh(given);
  T rows[1][width], (&a)[width] = rows[0];
  const auto rows_below = [](int c, int end) { return c < end ? (1u << end) - (1u << c) : 0; };  // a bit for each
  if constexpr (!through_shared) {
    const T* at = A.data + (by_rows ? row * A.row_stride : row);
    const int last = row < n ? row : -1;  // column
#pragma unroll
    for (int c = 0; c < width; ++c, at += by_rows ? 1 : A.col_stride) {
      a[c] = anything<T>();
      if (c <= last) a[c] = *at;
    }
  } else {
    constexpr int bytes = int(sizeof(T)), line = Scratch::step * bytes;
    const T* at = A.data + row;
    const unsigned to = shared_address(scratch + row), below = rows_below(row, n);
#pragma unroll
    for (int r = 0; r < width; ++r, at += A.row_stride)
      if (below >> r & 1) copy_async<bytes>(to + r * line, at);
    copy_commit();
    copy_wait<0>();
    __syncwarp();  // the triangle is there
    read_vectors<width>(scratch + row * Scratch::step, a);
    __syncwarp();  // and was read
  }
  // What is beyond the last row or column is garbage, and makes garbage only there.
  Real<T> scale = 0;
  const int role = careful && n == 0 ? width : row;  // lanes without work leave the columns that they have as they are
  const Real<T> pivot = factor_columns<careful, solves, kept, width>(rows, role, scratch, &x, &scale);
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
    const unsigned below = rows_below(row, writes ? n : 0);
    scratch[row * Scratch::step + row] = T(pivot);
    T v[width];
    read_vectors<width>(scratch + row * Scratch::step, v);
#pragma unroll
    for (int r = 0; r < width; ++r, to += out.row_stride)
      if (below >> r & 1) *to = v[r] * scale;
  }
  return {n < 0 ? -1 : failed, (x * scale) * scale, scale};
}
/// Apart, so that its registers are not held in the usual case.
template <class T, int width, bool by_rows, bool solves>
__device__ __noinline__ SmallResult<T> factor_small_carefully(Tile<T> A, int n, bool writes, T* scratch, T x) {
  __syncwarp();  // the first try has read its columns
  return factor_small<true, T, width, by_rows, solves>(A, n, writes, scratch, x);
}

}  // namespace trifactor::cuda
