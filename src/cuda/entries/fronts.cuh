// A sparse factorization by level: assembly of fronts, and the rows of fronts in solves.
#pragma once

#include <cuda/device/team.cuh>
#include <cuda/engine/engine.hpp>
#include <cuda/engine/launch.cuh>
#include <tile/fronts.hpp>

namespace trifactor::cuda {

inline constexpr unsigned front_threads = 256;

/// One warp for each column of small fronts.
template <class T>
__global__ void __launch_bounds__(128)
    assemble_warp_kernel(Fronts f, index_t begin, index_t end, const T* values, Real<T> shift, T* factor, T* updates,
                         const T* offloaded) {
  const index_t warps = blockDim.x / 32;
  for (index_t line = begin + blockIdx.x * warps + threadIdx.x / 32; line < end; line += gridDim.x * warps)
    tile::assemble(WarpTeam{}, f, line, values, shift, factor, updates, offloaded);
}
/// One block for each column of large ones.
template <class T>
__global__ void __launch_bounds__(256)
    assemble_block_kernel(Fronts f, index_t begin, index_t end, const T* values, Real<T> shift, T* factor, T* updates,
                          const T* offloaded) {
  for (index_t line = begin + blockIdx.x; line < end; line += gridDim.x)
    tile::assemble(BlockTeam{}, f, line, values, shift, factor, updates, offloaded);
}
template <class T>
void CudaEngine::assemble(const Fronts& f, index_t begin, index_t end, index_t rows, const T* values, Real<T> shift,
                          T* factor, T* updates, const T* offloaded) {
  if (arena().planning() || begin == end) return;
  const Traced traced(*this, "assemble", rows, end - begin);
  constexpr index_t max_warp_rows = 256;  // above, a block for each column
  if (rows <= max_warp_rows)
    launch(stream_, assemble_warp_kernel<T>, grid_for(ceil_div(end - begin, 4)), 128, 0, f, begin, end, values, shift,
           factor, updates, offloaded);
  else
    launch(stream_, assemble_block_kernel<T>, grid_for(end - begin), 256, 0, f, begin, end, values, shift, factor,
           updates, offloaded);
}

/// f(i, column) for rows begin .. end - 1: a thread for each row, a layer of the grid for each column.
template <class F>
__device__ void for_rows(index_t begin, index_t end, index_t columns, F f) {
  for (index_t c = blockIdx.y; c < columns; c += gridDim.y)
    for (index_t i = begin + index_t(blockIdx.x) * blockDim.x + threadIdx.x; i < end;
         i += index_t(gridDim.x) * blockDim.x)
      f(i, c);
}
inline dim3 row_grid(index_t rows, index_t columns) {
  return dim3(grid_for(ceil_div(rows, front_threads)), unsigned(min(columns, index_t(65535))));
}

template <class T>
__global__ void take_rows_kernel(Fronts f, Items<const T> B, bool permute, T* Z) {
  for_rows(0, f.n, B.cols, [&](index_t j, index_t c) {
    const Tile<const T> b = f.item_rows(B, f.item_of(int(j)));
    Z[f.line[j] + c * f.lines] = b(permute ? f.permutation[j] : j, c);
  });
}
template <class T>
void CudaEngine::take_rows(const Fronts& f, Items<const T> B, bool permute, T* Z) {
  if (arena().planning() || f.n == 0 || B.cols == 0) return;
  launch(stream_, take_rows_kernel<T>, row_grid(f.n, B.cols), front_threads, 0, f, B, permute, Z);
}

template <class T>
__global__ void give_rows_kernel(Fronts f, const T* Z, bool permute, const int* failed, Items<T> B) {
  for_rows(0, f.n, B.cols, [&](index_t j, index_t c) {
    const int item = f.item_of(int(j));
    if (failed[item] == 0) f.item_rows(B, item)(permute ? f.permutation[j] : j, c) = Z[f.line[j] + c * f.lines];
  });
}
template <class T>
void CudaEngine::give_rows(const Fronts& f, const T* Z, bool permute, const int* failed, Items<T> B) {
  if (arena().planning() || f.n == 0 || B.cols == 0) return;
  launch(stream_, give_rows_kernel<T>, row_grid(f.n, B.cols), front_threads, 0, f, Z, permute, failed, B);
}

template <class T>
__global__ void front_diagonal_kernel(Fronts f, const T* factor, T* out) {
  for_rows(0, f.n, 1, [&](index_t j, index_t) { out[j] = factor[tile::diagonal_at(f, j)]; });
}
template <class T>
void CudaEngine::diagonal(const Fronts& f, const T* factor, T* out) {
  if (arena().planning() || f.n == 0) return;
  launch(stream_, front_diagonal_kernel<T>, row_grid(f.n, 1), front_threads, 0, f, factor, out);
}

template <class T>
__global__ void residual_kernel(MatrixRows A, const T* values, Real<T> shift, const T* b, const T* x, T* r,
                                Real<T>* error) {
  for_rows(0, A.n, 1, [&](index_t i, index_t) { tile::residual(A, i, values, shift, b, x, r, error); });
}
template <class T>
void CudaEngine::residual(const MatrixRows& A, const T* values, Real<T> shift, const T* b, const T* x, T* r,
                          Real<T>* error) {
  if (arena().planning() || A.n == 0) return;
  launch(stream_, residual_kernel<T>, row_grid(A.n, 1), front_threads, 0, A, values, shift, b, x, r, error);
}

template <class T>
__global__ void add_kernel(index_t n, const T* r, T* x) {
  for_rows(0, n, 1, [&](index_t i, index_t) { x[i] += r[i]; });
}
template <class T>
void CudaEngine::add(index_t n, const T* r, T* x) {
  if (arena().planning() || n == 0) return;
  launch(stream_, add_kernel<T>, row_grid(n, 1), front_threads, 0, n, r, x);
}

}  // namespace trifactor::cuda

#define TRIFACTOR_INSTANTIATE_KERNELS(T)                                                                               \
  template void trifactor::cuda::CudaEngine::assemble<T>(const Fronts&, index_t, index_t, index_t, const T*, Real<T>,  \
                                                         T*, T*, const T*);                                            \
  template void trifactor::cuda::CudaEngine::take_rows<T>(const Fronts&, Items<const T>, bool, T*);                    \
  template void trifactor::cuda::CudaEngine::give_rows<T>(const Fronts&, const T*, bool, const int*, Items<T>);        \
  template void trifactor::cuda::CudaEngine::diagonal<T>(const Fronts&, const T*, T*);                                 \
  template void trifactor::cuda::CudaEngine::residual<T>(const MatrixRows&, const T*, Real<T>, const T*, const T*, T*, \
                                                         Real<T>*);                                                    \
  template void trifactor::cuda::CudaEngine::add<T>(index_t, const T*, T*);
