// Small fronts of one level, factored in one launch: a block of threads for each.
#pragma once

#include <core/fronts.hpp>
#include <cuda/device/pipeline.cuh>
#include <cuda/device/pivot_block.cuh>
#include <cuda/device/product.cuh>
#include <cuda/engine/engine.hpp>
#include <cuda/engine/launch.cuh>

namespace trifactor::cuda {

/// F, a front's columns, is factored in shared memory, eight columns after the other: every warp factors their diagonal
/// block for itself, with 24 rows below it, and the tensor cores subtract the product from the columns to the right.
/// What is left of the update matrix is a product, too.
template <class T>
struct SmallFront {
  static constexpr int threads = 256, warps = threads / 32;
  static constexpr int width = 8, rows_of_warp = 32 - width;
  static constexpr int max_rows = rows_of_warp * warps;
  static constexpr int max_entries = 115000 / int(max(sizeof(T), sizeof(double)));  // half of a multiprocessor
  static constexpr int blocks = sizeof(T) > 8 ? 1 : 2;  // to a multiprocessor, by their registers
  static constexpr int tile = 16;
  using Scratch = ColumnScratch<T, width>;
  using Work = Wide<T>;

  int m, w, ld;
  T* F;  // column-major in shared memory: see FrontLimits

  __device__ static int lane() { return int(threadIdx.x) % 32; }
  __device__ static int warp() { return int(threadIdx.x) / 32; }
  /// Columns as they lie there; those from w on are zero.
  __device__ int columns() const { return (w + width - 1) / width * width; }

  /// f(row, column) for the lower trapezoid, neighbouring lanes in neighbouring rows.
  template <class G>
  __device__ void for_trapezoid(G g) const {
    for (int k = warp(); k < w; k += warps)
      for (int r = k + lane(); r < m; r += 32) g(r, k);
  }

  /// F = L, and returns 0 or the number of the first column, from 1 on, whose pivot is not positive and finite.
  /// `scratch` is this warp's, `status` everybody's.
  __device__ int factor(T* scratch, int* status) const {
    for (int k0 = 0; k0 < w; k0 += width) {
      const int count = min(width, w - k0), first = k0 + count + warp() * rows_of_warp;
      const bool in_diagonal = lane() < width;
      const int row = in_diagonal ? k0 + lane() : first + lane() - width;
      const bool has_row = in_diagonal ? lane() < count : row < m;
      T a[1][width];
      if (warp() == 0 || first < m) factor_rows(a, k0, count, row, has_row, scratch, status);
      __syncthreads();  // everyone has read the diagonal block; and the status is there
      if (*status != 0) return *status;
      if (has_row && (!in_diagonal || warp() == 0))
#pragma unroll
        for (int c = 0; c < width; ++c)
          if (c < count && k0 + c <= row) F[(k0 + c) * ld + row] = k0 + c == row ? T(real(a[0][c])) : a[0][c];
      __syncthreads();  // the columns are factored
      subtract_from_right(k0);
      __syncthreads();  // the next columns are up to date
    }
    return 0;
  }

  /// U -= L21 L21^H, the lower triangle.
  __device__ void update(T* U, int below) const {
    const T* const L = F + w;
    const index_t ldu = UpdateShape::ld(below);
    const int tiles = (below + tile - 1) / tile, depth = columns();
    int i = warp(), j = 0;  // tile (i, j), of all with i >= j in turn
    while (true) {
      while (j < tiles && i >= tiles) ++j, i += j - tiles;
      if (j >= tiles) return;
      const auto inside = [&](int r, int k) { return tile * i + r < below && k + tile * j <= tile * i + r; };
      T* const to = U + tile * j * ldu + tile * i;
      Fragment<T, 2> before;
      before.fill([&](int r, int k) { return inside(r, k) ? to[k * ldu + r] : T(0); });
      Fragment<Work, 2> c;
      c.clear();
      const T *A = L + tile * i, *B = L + tile * j;
      int k = 0;
      for (; k + 16 <= depth; k += 16) c.template subtract<16, false>(A + k * ld, ld, B + k * ld, ld);
      if (k < depth) c.template subtract<8, false>(A + k * ld, ld, B + k * ld, ld);
#pragma unroll
      for (int s = 0; s < 2; ++s)
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const int r = c.row(e), q = 8 * s + c.col(e);
          if (inside(r, q)) to[q * ldu + r] = before.get(s, e) + T(c.get(s, e));
        }
      i += warps;
    }
  }

 private:
  /// Rows of eight columns in registers, factored by one warp.
  __device__ void factor_rows(T (&a)[1][width], int k0, int count, int row, bool has_row, T* scratch,
                              int* status) const {
    const auto read = [&]() TF_INLINE_LAMBDA {
#pragma unroll
      for (int c = 0; c < width; ++c)
        a[0][c] = has_row && c < count ? F[(k0 + c) * ld + row] : T(lane() == c ? 1 : 0);
    };
    read();
    Real<T> mine = factor_columns<false>(a, lane(), scratch);
    if (__any_sync(~0u, !in_fast_range(mine))) {
      read();
      mine = factor_columns<true>(a, lane(), scratch);
    }
    const int failed = __ffs(int(__ballot_sync(~0u, !good_pivot(mine))));
    if (threadIdx.x == 0) *status = failed == 0 ? 0 : k0 + failed;
  }

  /// The columns right of eight -= L L^H, in tiles; the last ones may be eight columns only.
  __device__ void subtract_from_right(int k0) const {
    int start = warp();
    for (int k = k0 + width; k < w; k += tile, start = (start + 3) % warps)
      for (int r = k / tile * tile + tile * start; r < m; r += tile * warps)
        if (k + width < w)
          subtract_tile<2>(k0, r, k);
        else
          subtract_tile<1>(k0, r, k);
  }
  template <int eights>
  __device__ void subtract_tile(int k0, int r, int k) const {
    T* const to = F + k * ld + r;
    Fragment<Work, eights> c;
    c.fill([&](int i, int q) { return k + q < w ? Work(to[q * ld + i]) : Work(0); });
    c.template subtract<width, false>(F + k0 * ld + r, ld, F + k0 * ld + k, ld);
    c.for_each([&](int i, int q, Work v) {
      if (k + q < w) to[q * ld + i] = T(v);
    });
  }
};

template <class T>
__global__ void __launch_bounds__(SmallFront<T>::threads, SmallFront<T>::blocks)
    factor_small_fronts_kernel(Fronts f, int begin, T* factor, T* updates, int* info) {
  using Front = SmallFront<T>;
  extern __shared__ __align__(16) unsigned char raw[];
  __shared__ __align__(16) T scratch[Front::warps][Front::Scratch::size];
  __shared__ int status;
  const int t = begin + int(blockIdx.x), line = f.line_start[t], m = f.line_start[t + 1] - line, w = f.columns[t];
  const Front front{m, w, int(FrontLimits::column_stride(m)), reinterpret_cast<T*>(raw)};
  const FrontShape shape(m, w);
  T* A = factor + f.factor_at[t];
  const auto stored = [&](int r, int k) -> T& { return A[k * shape.ld + (r < w ? r : r + shape.gap)]; };
  front.for_trapezoid([&](int r, int k) {
    copy_async<sizeof(T)>(shared_address(front.F + k * front.ld + r), &stored(r, k));
  });
  for (int i = w * front.ld + int(threadIdx.x); i < front.columns() * front.ld; i += Front::threads) front.F[i] = T(0);
  copy_wait_all();
  __syncthreads();  // the front is there
  const int failed = front.factor(scratch[Front::warp()], &status);
  if (threadIdx.x == 0) info[t] = failed;
  if (failed != 0) return;
  front.for_trapezoid([&](int r, int k) { stored(r, k) = front.F[k * front.ld + r]; });
  front.update(updates + f.update_at[t], m - w);
}

template <class T>
FrontLimits CudaEngine::small_front_limits() const {
  return {SmallFront<T>::max_rows, SmallFront<T>::max_entries};
}

template <class T>
void CudaEngine::factor_small_fronts(const Fronts& f, index_t begin, index_t end, FrontLimits largest, T* factor,
                                     T* updates, int* info) {
  if (arena().planning() || begin == end) return;
  const Traced traced(*this, "factor_small_fronts", largest.rows, end - begin);
  const std::size_t bytes = std::size_t(largest.entries) * sizeof(T);
  launch(stream_, factor_small_fronts_kernel<T>, unsigned(end - begin), SmallFront<T>::threads, bytes, f, int(begin),
         factor, updates, info);
}

}  // namespace trifactor::cuda

#define TRIFACTOR_INSTANTIATE_KERNELS(T)                                                                              \
  template trifactor::core::FrontLimits trifactor::cuda::CudaEngine::small_front_limits<T>() const;                   \
  template void trifactor::cuda::CudaEngine::factor_small_fronts<T>(const Fronts&, index_t, index_t, FrontLimits, T*, \
                                                                    T*, int*);
