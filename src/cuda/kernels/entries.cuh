// Operations of one pass over entries or items.
#pragma once

#include <cuda/kernels/launch.cuh>
#include <cuda/kernels/team.cuh>

namespace trifactor::cuda {

inline constexpr unsigned entry_threads = 256;

template <class T>
__global__ void reset_info_kernel(Items<T> A, bool square, int* info) {
  for (index_t b = index_t(blockIdx.x) * blockDim.x + threadIdx.x; b < A.count; b += index_t(gridDim.x) * blockDim.x)
    info[b] = A.possible(b) && !(square && A.ragged() && A.item_rows[b] != A.item_cols[b]) ? 0 : -1;
}
template <class T>
void launch_reset_info(void* stream, Items<T> A, bool square, int* info) {
  launch(stream, reset_info_kernel<T>, grid_for(ceil_div(A.count, entry_threads)), entry_threads, 0, A, square, info);
}

template <class T>
__global__ void check_solve_kernel(Items<const T> L, Items<T> X, const int* info, int* skip) {
  for (index_t b = index_t(blockIdx.x) * blockDim.x + threadIdx.x; b < X.count; b += index_t(gridDim.x) * blockDim.x) {
    const bool fits =
        L.possible(b) && X.possible(b) && L.item_rows[b] == L.item_cols[b] && L.item_rows[b] == X.item_rows[b];
    skip[b] = info && info[b] != 0 ? info[b] : fits ? 0 : -1;
  }
}
template <class T>
void launch_check_solve(void* stream, Items<const T> L, Items<T> X, const int* info, int* skip) {
  launch(stream, check_solve_kernel<T>, grid_for(ceil_div(X.count, entry_threads)), entry_threads, 0, L, X, info, skip);
}

/// One warp for each item; its lanes' sums are added in the same order in every run.
template <class T>
__global__ void log_det_kernel(Items<const T> L, Real<T>* out, const int* info) {
  const int lane = int(threadIdx.x) % 32;
  const index_t warps = blockDim.x / 32;
  for (index_t b = blockIdx.x * warps + threadIdx.x / 32; b < L.count; b += gridDim.x * warps) {
    Real<T> sum = (info && info[b] != 0) || !L.possible(b) ? Limits<Real<T>>::nan : Real<T>(0);
    if (sum == 0) {
      const Tile<const T> a = L.item(b);
      for (index_t k = lane; k < min(a.rows, a.cols); k += 32) sum += std::log(real(a(k, k)));
    }
    for (int half = 16; half > 0; half /= 2) sum += __shfl_down_sync(~0u, sum, unsigned(half));
    if (lane == 0) out[b] = 2 * sum;
  }
}
template <class T>
void launch_log_det(void* stream, Items<const T> L, Real<T>* out, const int* info) {
  launch(stream, log_det_kernel<T>, grid_for(ceil_div(L.count, entry_threads / 32)), entry_threads, 0, L, out, info);
}

/// f(i, j) for the entries of one matrix of which info does not say that it failed (or, with failed = true, that it
/// did).
template <class F>
__device__ void for_entries(index_t rows, index_t cols, F f) {
  for (index_t t = index_t(blockIdx.x) * blockDim.x + threadIdx.x; t < rows * cols;
       t += index_t(gridDim.x) * blockDim.x)
    f(t % rows, t / rows);
}
inline unsigned entry_grid(index_t rows, index_t cols) {
  constexpr index_t enough = 132 * 16;  // blocks; the kernels loop
  return unsigned(max(index_t(1), min(enough, ceil_div(rows * cols, index_t(entry_threads)))));
}

template <class T>
__global__ void set_identity_kernel(Items<T> A, const int* info) {
  if (info && *info != 0) return;
  const Tile<T> a = A.item(0);
  for_entries(a.rows, a.cols, [&](index_t i, index_t j) { a(i, j) = T(i == j ? 1 : 0); });
}
template <class T>
void launch_set_identity(void* stream, Items<T> A, const int* info) {
  launch(stream, set_identity_kernel<T>, entry_grid(A.rows, A.cols), entry_threads, 0, A, info);
}

/// One block for each square on or below the diagonal, transposed through shared memory.
template <class T>
__global__ void __launch_bounds__(256) mirror_lower_kernel(Items<T> A, const int* info) {
  constexpr int edge = 32;
  __shared__ T square[edge][edge + 1];
  if ((info && *info != 0) || blockIdx.y > blockIdx.x) return;
  const Tile<T> a = A.item(0);
  const index_t i0 = index_t(blockIdx.x) * edge, j0 = index_t(blockIdx.y) * edge;
  const int x = int(threadIdx.x) % edge, y = int(threadIdx.x) / edge;
  for (int j = y; j < edge; j += 8)
    if (i0 + x < a.rows && j0 + j < a.cols) square[j][x] = a(i0 + x, j0 + j);
  __syncthreads();  // the square is read before any of its mirror image is written
  for (int i = y; i < edge; i += 8)
    if (i0 + i < a.rows && j0 + x < a.cols && i0 + i > j0 + x) a(j0 + x, i0 + i) = conj(square[x][i]);
}
template <class T>
void launch_mirror_lower(void* stream, Items<T> A, const int* info) {
  const auto squares = unsigned(ceil_div(A.rows, 32));
  launch(stream, mirror_lower_kernel<T>, dim3(squares, squares), 256, 0, A, info);
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
void launch_copy_if_failed(void* stream, Items<T> X, const int* info, T* saved, bool back) {
  launch(stream, copy_if_failed_kernel<T>, entry_grid(X.rows, X.cols), entry_threads, 0, X, info, saved, back);
}

}  // namespace trifactor::cuda

#define TRIFACTOR_INSTANTIATE_KERNELS(T)                                                                   \
  template void trifactor::cuda::launch_reset_info<T>(void*, Items<T>, bool, int*);                        \
  template void trifactor::cuda::launch_check_solve<T>(void*, Items<const T>, Items<T>, const int*, int*); \
  template void trifactor::cuda::launch_log_det<T>(void*, Items<const T>, Real<T>*, const int*);           \
  template void trifactor::cuda::launch_set_identity<T>(void*, Items<T>, const int*);                      \
  template void trifactor::cuda::launch_mirror_lower<T>(void*, Items<T>, const int*);                      \
  template void trifactor::cuda::launch_copy_if_failed<T>(void*, Items<T>, const int*, T*, bool);
