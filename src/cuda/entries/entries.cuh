// Operations of one pass over entries or items.
#pragma once

#include <cuda/engine/engine.hpp>
#include <cuda/engine/launch.cuh>
#include <cuda/entries/entries.hpp>

namespace trifactor::cuda {

inline constexpr unsigned entry_threads = 256;

template <class T>
__global__ void reset_info_kernel(Items<T> A, bool square, int* info) {
  for (index_t b = index_t(blockIdx.x) * blockDim.x + threadIdx.x; b < A.count; b += index_t(gridDim.x) * blockDim.x)
    info[b] = (square ? A.possible_square(b) : A.possible(b)) ? 0 : -1;
}
template <class T>
void CudaEngine::reset_info(Items<T> A, bool square, int* info) {
  if (arena().planning() || A.count == 0) return;
  const Traced traced(*this, "reset_info", A.count, 1);
  launch(stream_, reset_info_kernel<T>, grid_for(ceil_div(A.count, entry_threads)), entry_threads, 0, A, square, info);
}

template <class T>
__global__ void check_solve_kernel(Items<const T> L, Items<T> X, const int* info, int* skip) {
  for (index_t b = index_t(blockIdx.x) * blockDim.x + threadIdx.x; b < X.count; b += index_t(gridDim.x) * blockDim.x) {
    const bool fits = L.possible_square(b) && X.possible(b) && L.item_rows[b] == X.item_rows[b];
    skip[b] = !fits ? -1 : info ? info[b] : 0;
  }
}
template <class T>
void CudaEngine::check_solve(Items<const T> L, Items<T> X, const int* info, int* skip) {
  if (arena().planning()) return;
  launch(stream_, check_solve_kernel<T>, grid_for(ceil_div(X.count, entry_threads)), entry_threads, 0, L, X, info,
         skip);
}

/// One warp for each item; its lanes' sums are added in the same order in every run.
template <class T>
__global__ void log_det_kernel(Items<const T> L, Real<T>* out, const int* info) {
  const int lane = int(threadIdx.x) % 32;
  const index_t warps = blockDim.x / 32;
  for (index_t b = blockIdx.x * warps + threadIdx.x / 32; b < L.count; b += gridDim.x * warps) {
    Real<T> sum = (info && info[b] != 0) || !L.possible_square(b) ? Limits<Real<T>>::nan : Real<T>(0);
    if (sum == 0) {
      const Tile<const T> a = L.item(b);
      for (index_t k = lane; k < min(a.rows, a.cols); k += 32) sum += std::log(real(a(k, k)));
    }
    for (int half = 16; half > 0; half /= 2) sum += __shfl_down_sync(~0u, sum, unsigned(half));
    if (lane == 0) out[b] = 2 * sum;
  }
}
template <class T>
void CudaEngine::log_det(Items<const T> L, Real<T>* out, const int* info) {
  if (arena().planning()) return;
  launch(stream_, log_det_kernel<T>, grid_for(ceil_div(L.count, entry_threads / 32)), entry_threads, 0, L, out, info);
}

/// f(i, j) for the entries of one matrix, shared by the blocks with equal blockIdx.y.
template <class F>
__device__ void for_entries(index_t rows, index_t cols, F f) {
  for (index_t t = index_t(blockIdx.x) * blockDim.x + threadIdx.x; t < rows * cols;
       t += index_t(gridDim.x) * blockDim.x)
    f(t % rows, t / rows);
}
/// f(b, tile) for every item whose info is 0, of those that fall to blockIdx.y.
template <class T, class F>
__device__ void for_grid_items(const Items<T>& A, const int* info, F f) {
  for (index_t b = blockIdx.y; b < A.count; b += gridDim.y)
    if (!info || info[b] == 0) f(b, A.item(b));
}
inline dim3 entry_grid(index_t rows, index_t cols, index_t count = 1) {
  const index_t items = min(count, index_t(65535));
  const index_t each = min(ceil_div(enough_blocks, items), ceil_div(rows * cols, index_t(entry_threads)));
  return {unsigned(max(index_t(1), each)), unsigned(items)};
}

template <class T>
__global__ void set_identity_kernel(Items<T> A, const int* info) {
  for_grid_items(A, info, [&](index_t, const Tile<T>& a) {
    for_entries(a.rows, a.cols, [&](index_t i, index_t j) { a(i, j) = T(i == j ? 1 : 0); });
  });
}
template <class T>
void CudaEngine::set_identity(Items<T> A, const int* info) {
  if (arena().planning()) return;
  launch(stream_, set_identity_kernel<T>, entry_grid(A.rows, A.cols, A.count), entry_threads, 0, A, info);
}

/// One block for each tile on or below the diagonal, transposed through shared memory.
template <class T>
__global__ void __launch_bounds__(256) mirror_lower_kernel(Items<T> A, const int* info) {
  constexpr int edge = 32;
  __shared__ T tile[edge][edge + 1];
  if (blockIdx.y > blockIdx.x) return;
  const index_t i0 = index_t(blockIdx.x) * edge, j0 = index_t(blockIdx.y) * edge;
  const int x = int(threadIdx.x) % edge, y = int(threadIdx.x) / edge;
  for (index_t b = blockIdx.z; b < A.count; b += gridDim.z) {
    if (info && info[b] != 0) continue;
    const Tile<T> a = A.item(b);
    for (int j = y; j < edge; j += 8)
      if (i0 + x < a.rows && j0 + j < a.cols) tile[j][x] = a(i0 + x, j0 + j);
    __syncthreads();  // the tile is read before any of its mirror image is written
    for (int i = y; i < edge; i += 8)
      if (i0 + i < a.rows && j0 + x < a.cols && i0 + i > j0 + x) a(j0 + x, i0 + i) = conj(tile[x][i]);
    __syncthreads();  // and written before the next item's tile takes its place
  }
}
template <class T>
void CudaEngine::mirror_lower(Items<T> A, const int* info) {
  if (arena().planning()) return;
  const auto tiles = unsigned(ceil_div(A.rows, 32));
  const dim3 grid(tiles, tiles, unsigned(min(A.count, index_t(65535))));
  launch(stream_, mirror_lower_kernel<T>, grid, 256, 0, A, info);
}

/// A block for each square of 32 x 32, which is read along the lines of `from` and written along those of `to`.
template <class T>
__global__ void __launch_bounds__(256) copy_matrix_kernel(Tile<const T> from, Tile<T> to) {
  constexpr int edge = 32;
  __shared__ T square[edge][edge + 1];
  const index_t i0 = index_t(blockIdx.x) * edge, j0 = index_t(blockIdx.y) * edge;
  const int x = int(threadIdx.x) % edge, y = int(threadIdx.x) / edge;
  const auto each = [&](index_t row_stride, auto f) {
    const bool down = row_stride == 1;
#pragma unroll
    for (int t = y; t < edge; t += 8) {
      const int i = down ? x : t, j = down ? t : x;
      if (i0 + i < from.rows && j0 + j < from.cols) f(i, j);
    }
  };
  each(from.row_stride, [&](int i, int j) { square[j][i] = from(i0 + i, j0 + j); });
  __syncthreads();  // the square is there
  each(to.row_stride, [&](int i, int j) { to(i0 + i, j0 + j) = square[j][i]; });
}
template <class T>
void CudaEngine::copy_matrix(Items<const T> from, Items<T> to) {
  if (arena().planning() || to.rows == 0 || to.cols == 0) return;
  const Traced traced(*this, "copy_matrix", to.rows, to.cols);
  constexpr index_t max_columns = index_t(65535) * 32;  // of a launch: a grid is no higher
  for (index_t j = 0; j < to.cols; j += max_columns) {
    const index_t cols = min(max_columns, to.cols - j);
    const dim3 grid(unsigned(ceil_div(to.rows, 32)), unsigned(ceil_div(cols, 32)));
    launch(stream_, copy_matrix_kernel<T>, grid, 256, 0, from.block(0, j, from.rows, cols).item(0),
           to.block(0, j, to.rows, cols).item(0));
  }
}

/// A block for each 32 columns. What a hermitian matrix has on the other side of its diagonal are rows of the triangle
/// that is given: lanes take neighbouring rows of one column. Sums are added in the same order in every run.
template <class T>
__global__ void __launch_bounds__(entry_threads) column_norms_kernel(Items<const T> A, NormOf of, double* norms) {
  constexpr int edge = 32, warps = entry_threads / 32;
  __shared__ double in_rows[warps][edge];
  const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
  const Tile<const T> a = A.item(0);
  const bool general = of == NormOf::General, lower = of == NormOf::HermitianLower;
  for (index_t j0 = index_t(blockIdx.x) * edge; j0 < a.cols; j0 += index_t(gridDim.x) * edge) {
    const index_t j1 = min(a.cols, j0 + edge), row = j0 + lane;
    double sum = 0;
    if (!general && row < j1)
      for (index_t k = (lower ? 0 : j0 + 1) + warp; k < (lower ? j1 : a.cols); k += warps)
        if (lower ? k < row : k > row) sum += modulus(a(row, k));
    in_rows[warp][lane] = sum;
    __syncthreads();  // the sums of all warps are there
    for (index_t j = j0 + warp; j < j1; j += warps) {
      const index_t begin = general ? 0 : lower ? j + 1 : 0, end = general || lower ? a.rows : j;
      sum = lane < warps ? in_rows[lane][j - j0] : 0;
      if (!general && lane == 0) sum += modulus(real(a(j, j)));
      for (index_t i = begin + lane; i < end; i += 32) sum += modulus(a(i, j));
      for (int half = 16; half > 0; half /= 2) sum += __shfl_down_sync(~0u, sum, unsigned(half));
      if (lane == 0) norms[j] = sum;
    }
    __syncthreads();  // and read before those of the next columns take their place
  }
}
template <class T>
void CudaEngine::column_norms(Items<const T> A, NormOf of, double* norms) {
  if (arena().planning() || A.cols == 0) return;
  launch(stream_, column_norms_kernel<T>, grid_for(ceil_div(A.cols, 32)), entry_threads, 0, A, of, norms);
}

/// The place of entry (i, j) in a packed lower triangle of order n.
__device__ inline index_t packed_index(index_t n, index_t i, index_t j) { return j * n - j * (j - 1) / 2 + i - j; }

template <class T>
__global__ void save_lower_kernel(Items<const T> A, T* saved, double* shifts) {
  for (index_t b = blockIdx.y; b < A.count; b += gridDim.y) {
    if (shifts && blockIdx.x == 0 && threadIdx.x == 0) shifts[b] = 0;
    if (!A.possible_square(b)) continue;
    const Tile<const T> a = A.item(b);
    T* k = saved + b * lower_size(A);
    for_entries(a.rows, a.cols, [&](index_t i, index_t j) {
      if (i >= j) k[packed_index(a.rows, i, j)] = a(i, j);
    });
  }
}
template <class T>
void CudaEngine::save_lower(Items<const T> A, T* saved, double* shifts) {
  if (arena().planning()) return;
  launch(stream_, save_lower_kernel<T>, entry_grid(A.rows, A.cols, A.count), entry_threads, 0, A, saved, shifts);
}

/// A block to an item: most items do not fail.
template <class T>
__global__ void __launch_bounds__(entry_threads)
    shift_failed_kernel(Items<T> A, const T* saved, Real<T> shift, const int* info, int* retry, double* shifts) {
  __shared__ Real<T> largest[entry_threads];
  const int rank = int(threadIdx.x);
  for (index_t b = blockIdx.x; b < A.count; b += gridDim.x) {
    const bool failed = info[b] > 0;
    if (rank == 0) retry[b] = failed ? 0 : not_tried;
    if (!failed) continue;
    const Tile<T> a = A.item(b);
    const index_t n = a.rows;
    const T* k = saved + b * lower_size(A);
    Real<T> mine = 0;
    for (index_t j = rank; j < n; j += entry_threads) mine = max(mine, abs1(real(k[packed_index(n, j, j)])));
    largest[rank] = mine;
    for (int half = entry_threads / 2; half > 0; half /= 2) {
      __syncthreads();  // the level above is written
      if (rank < half) largest[rank] = max(largest[rank], largest[rank + half]);
    }
    __syncthreads();  // the largest of all is known
    const Real<T> own_shift = shift * shift_scale(largest[0]);
    if (rank == 0 && shifts) shifts[b] = double(own_shift);
    for (index_t t = rank; t < n * n; t += entry_threads) {
      const index_t i = t % n, j = t / n;
      if (i < j) continue;
      const T x = k[packed_index(n, i, j)];
      a(i, j) = i == j ? x + T(own_shift) : x;
    }
    __syncthreads();  // everyone has read the largest
  }
}
template <class T>
void CudaEngine::shift_failed(Items<T> A, const T* saved, Real<T> shift, const int* info, int* retry, double* shifts) {
  if (arena().planning()) return;
  launch(stream_, shift_failed_kernel<T>, grid_for(A.count), entry_threads, 0, A, saved, shift, info, retry, shifts);
}

/// The lower triangle of `to` becomes that of `from`, or, where `to` is the larger one, of the identity. Line by line
/// as it lies: columns, or, where those are contiguous, rows. A line begins at a multiple of 32 entries, so that a warp
/// meets whole sectors where lines are aligned.
template <class T>
__global__ void __launch_bounds__(entry_threads) copy_lower_kernel(Tile<const T> from, Tile<T> to) {
  constexpr int at_once = 4;
  const bool by_columns = from.row_stride == 1;
  const index_t from_line = by_columns ? from.col_stride : from.row_stride;
  const index_t to_line = by_columns ? to.col_stride : to.row_stride;
  const int given = int(from.rows), n = int(to.rows);
  for (int line = int(blockIdx.x); line < n; line += int(gridDim.x)) {
    const T* source = from.data + line * from_line;
    T* target = to.data + line * to_line;
    const int begin = by_columns ? line : 0, end = by_columns ? n : line + 1;
    const int copied = line < given ? min(end, given) : 0;  // what lies beyond is the identity
    for (int first = begin / 32 * 32 + int(threadIdx.x); first < end; first += at_once * entry_threads) {
      T v[at_once];
#pragma unroll
      for (int t = 0; t < at_once; ++t) {
        const int f = first + t * entry_threads;
        v[t] = T(f == line);
        if (begin <= f && f < copied) v[t] = source[f];
      }
#pragma unroll
      for (int t = 0; t < at_once; ++t)
        if (const int f = first + t * entry_threads; begin <= f && f < end) target[f] = v[t];
    }
  }
}
template <class T>
void launch_copy_lower(void* stream, Items<const T> from, Items<T> to) {
  launch(stream, copy_lower_kernel<T>, entry_grid(to.rows, entry_threads), entry_threads, 0, from.item(0), to.item(0));
}

/// saved := X, or back again, if the factorization had failed.
template <class T>
__global__ void copy_if_failed_kernel(Items<T> X, const int* info, T* saved, bool back) {
  if (*info == 0) return;
  const Tile<T> x = X.item(0);
  for_entries(x.rows, x.cols, [&](index_t i, index_t j) {
    if (back)
      x(i, j) = saved[i + j * x.rows];
    else
      saved[i + j * x.rows] = x(i, j);
  });
}
template <class T>
void CudaEngine::save(Items<T> X, const int* info, T* saved) {
  if (arena().planning() || saved_size(X, info) == 0) return;
  launch(stream_, copy_if_failed_kernel<T>, entry_grid(X.rows, X.cols), entry_threads, 0, X, info, saved, false);
}
template <class T>
void CudaEngine::restore(Items<T> X, const int* info, T* saved) {
  if (arena().planning() || saved_size(X, info) == 0) return;
  launch(stream_, copy_if_failed_kernel<T>, entry_grid(X.rows, X.cols), entry_threads, 0, X, info, saved, true);
}

}  // namespace trifactor::cuda

#define TRIFACTOR_INSTANTIATE_KERNELS(T)                                                                              \
  template void trifactor::cuda::CudaEngine::reset_info<T>(Items<T>, bool, int*);                                     \
  template void trifactor::cuda::CudaEngine::check_solve<T>(Items<const T>, Items<T>, const int*, int*);              \
  template void trifactor::cuda::CudaEngine::log_det<T>(Items<const T>, Real<T>*, const int*);                        \
  template void trifactor::cuda::CudaEngine::set_identity<T>(Items<T>, const int*);                                   \
  template void trifactor::cuda::CudaEngine::mirror_lower<T>(Items<T>, const int*);                                   \
  template void trifactor::cuda::CudaEngine::copy_matrix<T>(Items<const T>, Items<T>);                                \
  template void trifactor::cuda::CudaEngine::column_norms<T>(Items<const T>, NormOf, double*);                        \
  template void trifactor::cuda::CudaEngine::save_lower<T>(Items<const T>, T*, double*);                              \
  template void trifactor::cuda::CudaEngine::shift_failed<T>(Items<T>, const T*, Real<T>, const int*, int*, double*); \
  template void trifactor::cuda::CudaEngine::save<T>(Items<T>, const int*, T*);                                       \
  template void trifactor::cuda::CudaEngine::restore<T>(Items<T>, const int*, T*);                                    \
  template void trifactor::cuda::launch_copy_lower<T>(void*, Items<const T>, Items<T>);
