// LU of a narrow panel by one block, row exchanges, and the determinant.
#pragma once

#include <cuda/kernels/launch.cuh>
#include <cuda/kernels/team.cuh>
#include <tile/lu.hpp>

namespace trifactor::cuda {

inline constexpr int lu_threads = 512, det_threads = 256;

template <class T>
__global__ void __launch_bounds__(lu_threads) lu_kernel(Items<T> A, int* pivots, int* info, index_t first) {
  __shared__ tile::PivotCandidate<Real<T>> candidates[lu_threads];
  const BlockTeam team;
  const int zero_at = tile::lu(team, A.item(0), pivots, first, candidates);
  if (zero_at != 0 && team.rank() == 0 && *info == 0) *info = int(first) + zero_at;
}

template <class T>
void launch_lu(void* stream, Items<T> A, int* pivots, int* info, index_t first) {
  launch(stream, lu_kernel<T>, 1, lu_threads, 0, A, pivots, info, first);
}

/// One thread for each column: a row of a column-major matrix is scattered anyway.
template <class T>
__global__ void swap_rows_kernel(Items<T> A, const int* pivots, index_t n, index_t offset, bool backward,
                                 const int* info) {
  if (info && *info != 0) return;
  const Tile<T> a = A.item(0);
  const index_t j = index_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (j >= a.cols) return;
  for (index_t s = 0; s < n; ++s) {
    const index_t i = backward ? n - 1 - s : s, p = pivots[i] - 1 - offset;
    if (p == i) continue;
    const T t = a(i, j);
    a(i, j) = a(p, j), a(p, j) = t;
  }
}

template <class T>
void launch_swap_rows(void* stream, Items<T> A, const int* pivots, index_t n, index_t offset, bool backward,
                      const int* info) {
  constexpr unsigned threads = 32;  // small blocks spread the scattered accesses over all multiprocessors
  launch(stream, swap_rows_kernel<T>, unsigned(ceil_div(A.cols, threads)), threads, 0, A, pivots, n, offset, backward,
         info);
}

inline constexpr int permute_threads = 256;

/// Y := the rows of A permuted, or A := Y.
template <class T>
__global__ void __launch_bounds__(permute_threads)
    permute_rows_kernel(Items<T> A, const int* p, bool backward, bool back, T* Y, const int* info) {
  if (info && *info != 0) return;
  const Tile<T> a = A.item(0);
  const index_t i = index_t(blockIdx.x) * permute_threads + threadIdx.x;
  if (i >= a.rows) return;
  const index_t from = back || backward ? i : p[i], to = !back && backward ? p[i] : i;
  for (index_t j = blockIdx.y; j < a.cols; j += gridDim.y) {
    if (back)
      a(i, j) = Y[i + j * a.rows];
    else
      Y[to + j * a.rows] = a(from, j);
  }
}

template <class T>
void launch_permute_rows(void* stream, Items<T> A, const int* p, bool backward, T* Y, const int* info) {
  const dim3 grid(unsigned(ceil_div(A.rows, permute_threads)), unsigned(min(A.cols, index_t(65535))));
  for (bool back : {false, true})
    launch(stream, permute_rows_kernel<T>, grid, permute_threads, 0, A, p, backward, back, Y, info);
}

template <class T>
__global__ void __launch_bounds__(det_threads)
    lu_det_kernel(Items<const T> LU, const int* pivots, T* sign, Real<T>* log_abs) {
  __shared__ T signs[det_threads];
  __shared__ Real<T> logs[det_threads];
  const Tile<const T> a = LU.item(0);
  const int rank = int(threadIdx.x);
  T s(1);
  Real<T> sum = 0;
  for (index_t k = rank; k < a.rows; k += det_threads) {
    const auto pivot = polar_log(a(k, k));
    s = s * pivot.phase, sum += pivot.log_modulus;
    if (pivots[k] != k + 1) s = -s;
  }
  signs[rank] = s, logs[rank] = sum;
  for (int half = det_threads / 2; half > 0; half /= 2) {  // the same tree in every run
    __syncthreads();                                       // the level above is written
    if (rank < half) signs[rank] = signs[rank] * signs[rank + half], logs[rank] += logs[rank + half];
  }
  if (rank == 0) *sign = signs[0], *log_abs = logs[0];
}

template <class T>
void launch_lu_det(void* stream, Items<const T> LU, const int* pivots, T* sign, Real<T>* log_abs) {
  launch(stream, lu_det_kernel<T>, 1, det_threads, 0, LU, pivots, sign, log_abs);
}

}  // namespace trifactor::cuda

#define TRIFACTOR_INSTANTIATE_KERNELS(T)                                                                               \
  template void trifactor::cuda::launch_lu<T>(void*, Items<T>, int*, int*, index_t);                                   \
  template void trifactor::cuda::launch_swap_rows<T>(void*, Items<T>, const int*, index_t, index_t, bool, const int*); \
  template void trifactor::cuda::launch_permute_rows<T>(void*, Items<T>, const int*, bool, T*, const int*);            \
  template void trifactor::cuda::launch_lu_det<T>(void*, Items<const T>, const int*, T*, Real<T>*);
