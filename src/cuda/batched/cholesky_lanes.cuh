// Cholesky of matrices of order up to 16, several to a warp, with a row to a lane.
#pragma once

#include <cuda/batched/items.cuh>
#include <cuda/device/pivot_block.cuh>
#include <cuda/device/triangle_io.cuh>

namespace trifactor::cuda {

/// With `keeps_columns`, the columns of the factor stay in shared memory: an upper triangle is written from there, and
/// a solve reads them.
template <class T, int width, bool keeps_columns>
struct LanesShape {
  using Scratch = ColumnScratch<T, width, keeps_columns>;
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
struct LanesResult {
  int failed;
  T x;
  Real<T> scale;
};

/// Factors one item of order n by `width` lanes. by_rows: an upper triangle, whose rows are contiguous; it is stored
/// from the columns in shared memory, and above width 4, where a row is more than a sector, loaded through shared
/// memory. With `solves`, x is a lane's entry of a right-hand side. All lanes of a warp come here together, those
/// without work with n = 0.
template <bool safe, class T, int width, bool by_rows, bool solves>
__device__ __forceinline__ LanesResult<T> factor_lanes(const Tile<T>& given, int n, bool writes, T* scratch,
                                                       T x = T(0)) {
  constexpr bool through_shared = by_rows && width > 4;
  constexpr bool keeps_columns = by_rows || solves;
  using Scratch = ColumnScratch<T, width, keeps_columns>;
  const int lane = int(threadIdx.x % 32), row = lane % width;
  const Tile<T> A = opaque(given);
  T rows[1][width], (&a)[width] = rows[0];
  const auto rows_below = [](int c, int end) { return c < end ? (1u << end) - (1u << c) : 0; };  // a bit for each
  if constexpr (!through_shared) {
    load_lane_row<by_rows>(A, row, n, a);
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
  const int role = safe && n == 0 ? width : row;  // lanes without work leave the columns that they have as they are
  const Real<T> pivot = factor_columns<safe, solves, keeps_columns, width>(rows, role, scratch, &x, &scale);
  const bool counts = row < n;
  const unsigned group = ((1u << width) - 1) << (lane - row);
  if (!safe && (__ballot_sync(~0u, counts && !in_fast_range(pivot)) & group)) n = -1;
  const int failed = __ffs(int((__ballot_sync(~0u, counts && !good_pivot(pivot)) & group) >> (lane - row)));
  const Tile<T> out = opaque(given);
  if constexpr (!by_rows) {
    if constexpr (is_complex<T>)
#pragma unroll
      for (int c = 0; c < width; ++c)
        if (c == row) a[c] = T(real(a[c]));
    store_lane_row(out, row, writes ? n : 0, a);
  } else {
    T* to = out.data + row;
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
__device__ __noinline__ LanesResult<T> factor_lanes_safely(Tile<T> A, int n, bool writes, T* scratch, T x) {
  __syncwarp();  // the first try has read its columns
  return factor_lanes<true, T, width, by_rows, solves>(A, n, writes, scratch, x);
}

/// Factors one item for each `width` lanes of a warp, of order n, or 0 where there is none. Returns 0 or the failed
/// column + 1.
template <class T, int width, bool by_rows>
__device__ __forceinline__ int factor_side_by_side(const Tile<T>& a, int n, T* scratch) {
  const int failed = factor_lanes<false, T, width, by_rows, false>(a, n, true, scratch).failed;
  if (!__any_sync(~0u, failed < 0)) return failed;
  const auto again = factor_lanes_safely<T, width, by_rows, false>(a, n, failed < 0, scratch, T(0));
  return failed < 0 ? again.failed : failed;
}

template <class T, int width, bool by_rows>
__global__ void __launch_bounds__(LanesShape<T, width, by_rows>::threads, LanesShape<T, width, by_rows>::blocks)
    cholesky_lanes_kernel(Items<T> A, int* info, index_t first, bool resets) {
  using Shape = LanesShape<T, width, by_rows>;
  extern __shared__ __align__(16) unsigned char raw[];
  const int group = int(threadIdx.x / width);
  const index_t b = index_t(blockIdx.x) * Shape::items + group;
  const bool own = wanted_inside(A, b, info, resets);
  const Tile<T> a = item_if(own, by_rows, A, b);
  T* const scratch = reinterpret_cast<T*>(raw) + group * Shape::scratch;
  const int failed = factor_side_by_side<T, width, by_rows>(a, int(a.rows), scratch);
  if (b < A.count && threadIdx.x % width == 0) report(info, b, resets, first, own, failed);
}

}  // namespace trifactor::cuda
