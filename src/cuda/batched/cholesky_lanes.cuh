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
/// Item b, or an empty one. by_rows: neighbours in memory lie along a row.
template <bool by_rows, class T>
__device__ __forceinline__ Tile<T> item_if(bool wanted, const EqualItems<T>& A, index_t b) {
  T* data = A.base + b * A.stride;
  if (A.pointers) data = wanted ? A.pointers[b] + A.offset : nullptr;
  return {data, wanted ? A.rows : 0, wanted ? A.cols : 0, by_rows ? A.row_stride : 1, by_rows ? 1 : A.col_stride};
}
template <bool by_rows, class T>
__device__ __forceinline__ Tile<T> item_if(bool wanted, Items<T> A, index_t b) {
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

/// When an upper triangle is turned by way of shared memory. Otherwise it is moved as it lies, each lane its row: where
/// rows are short, that meets few lines of memory.
enum class Turned { Both, Written, Never };
template <int width>
inline constexpr Turned usually_turned = width <= 4 ? Turned::Written : Turned::Both;
/// Of items of one size. H200, 10,000 items in double without the launch, lower, upper turned both ways and when
/// written: 2.64, 2.89, 2.68 us at order 5, 2.89, 3.12, 2.97 at 6, 3.26, 3.43, 3.27 at 7; but 3.40, 3.57, 3.78 at 8. In
/// complex single, 100,000 at 5, 6 and 7: 19, 23, 28, then 20, 22, 29, when written 17, 21, 24, never 17, 22, 27. In
/// complex double, 10,000 at 1 to 8, us:
///   lower    1.7  1.7  1.9  2.2  3.3  3.7  4.0  4.1
///   both     1.9  1.9  2.1  2.3  3.8  4.0  4.3  4.3
///   written  1.8  1.8  2.0  2.2  3.5  3.9  4.4
///   never    1.7  1.7  1.9  2.4  3.4  4.2  5.7
template <class T, int width>
Turned turned(index_t ld) {
  constexpr bool large = sizeof(T) == 16;
  if (ld > (large ? 6 : 7)) return usually_turned<width>;
  return large && (ld < 4 || ld == 5) ? Turned::Never : Turned::Written;
}

/// What becomes of a small item: 0, the failed column + 1, or -1 when it was not written since this wants care. With a
/// right-hand side, what each lane has of D^-1 M^-1 b, see factor_columns. scale: 1 / L(row, row).
template <class T>
struct SmallResult {
  int failed;
  T x;
  Real<T> scale;
};

/// Factors one item of order n by `width` lanes. by_rows: an upper triangle, neighbours in memory lie along a row. With
/// `solves`, x is a lane's entry of a right-hand side. All lanes of a warp come here together, those without work with
/// n = 0; no item has more than `most` rows.
template <bool careful, class T, int width, bool by_rows, bool solves, Turned way = usually_turned<width>>
__device__ __forceinline__ SmallResult<T> factor_small(const Tile<T>& given, int n, bool writes, T* scratch, T x = T(0),
                                                       int most = width) {
  constexpr bool turned_in = by_rows && way == Turned::Both, turned_out = by_rows && way != Turned::Never;
  constexpr bool kept = turned_out || solves;
  using Scratch = ColumnScratch<T, width, kept>;
  const int lane = int(threadIdx.x % 32), row = lane % width;
  const Tile<T> A = afresh(given);
  T rows[1][width], (&a)[width] = rows[0];
  const T* at = A.data + row;
  // Of an upper triangle the first half of the rows has half of the columns: two of them go together. Not where doubles
  // of order 8 are fetched: 5.79 in place of 5.63 us.
  constexpr int half = max(width / 2, 2), steps = half / 2;
  constexpr int top = turned_in ? half : 0, top_in = width > 8 || sizeof(T) == 4 ? top : 0;
  const int column = row % half, lower = row / half * steps;                                     // there
  const auto rows_below = [](int c, int end) { return c < end ? (1u << end) - (1u << c) : 0; };  // a bit for each
  if constexpr (!turned_in) {
    const int last = row < n ? row : -1;  // column
    if constexpr (by_rows) at = A.data + row * A.row_stride;
#pragma unroll
    for (int c = 0; c < width; ++c, at += by_rows ? 1 : A.col_stride) {
      a[c] = anything<T>();
      if (c <= last) a[c] = *at;
    }
  } else {  // by way of the places where the columns will be
    constexpr int bytes = int(sizeof(T)), line = Scratch::step * bytes;
    const unsigned to = shared_address(scratch + row), below = rows_below(row, n);
    if constexpr (top_in > 0) {
      const T* from = A.data + lower * A.row_stride + column;
      const unsigned there = shared_address(scratch + lower * Scratch::step + column);
#pragma unroll
      for (int r = 0; r < steps; ++r, from += A.row_stride)
        if (rows_below(column, n) >> lower >> r & 1) copy_async<bytes>(there + r * line, from);
      at += top_in * A.row_stride;
    }
#pragma unroll
    for (int r = top_in; r < width; ++r, at += A.row_stride)
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
  // Order 5: 0.15 us less in double, 0.1 in single; but order 8 takes 0.03 more in single where it is turned.
  constexpr int few = width == 8 && !careful && !turned_in ? 5 : 0;
  const Real<T> pivot = factor_columns<careful, solves, kept, width, few>(rows, role, scratch, &x, &scale, most);
  const bool counts = row < n;
  const unsigned group = ((1u << width) - 1) << (lane - row);
  if (!careful && (__ballot_sync(~0u, counts && !middling(pivot)) & group)) n = -1;
  const int failed = __ffs(int((__ballot_sync(~0u, counts && !good_pivot(pivot)) & group) >> (lane - row)));
  const Tile<T> out = afresh(given);
  T* to = out.data + (by_rows && !turned_out ? row * out.row_stride : row);
  if constexpr (!turned_out) {
    if constexpr (is_complex<T>)
#pragma unroll
      for (int c = 0; c < width; ++c)
        if (c == row) a[c] = T(real(a[c]));
    const int last = writes && row < n ? row : -1;
#pragma unroll
    for (int c = 0; c < width; ++c, to += by_rows ? 1 : out.col_stride)
      if (c <= last) *to = a[c];
  } else {
    const int end = writes ? n : 0;
    scratch[row * Scratch::step + row] = T(pivot);
    if constexpr (top > 0) {
      __syncwarp();  // the pivots are there
      T v[steps];
      read_vectors<steps>(scratch + column * Scratch::step + lower, v);
      const Real<T> its_scale = __shfl_sync(~0u, scale, column, width);
      T* there = out.data + lower * out.row_stride + column;
#pragma unroll
      for (int r = 0; r < steps; ++r, there += out.row_stride)
        if (rows_below(column, end) >> lower >> r & 1) *there = v[r] * its_scale;
      to += top * out.row_stride;
    }
    T v[width - top];
    read_vectors<width - top>(scratch + row * Scratch::step + top, v);
#pragma unroll
    for (int r = top; r < width; ++r, to += out.row_stride)
      if (rows_below(row, end) >> r & 1) *to = v[r - top] * scale;
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
