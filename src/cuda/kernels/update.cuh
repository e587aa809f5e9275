// C -= A B for every batch kind: one block for each item and each square of C.
#pragma once

#include <cuda/kernels/launch.cuh>
#include <cuda/kernels/team.cuh>

namespace trifactor::cuda {

/// 16 x 16 threads; each holds reach x reach entries of C, 16 apart, in registers.
template <class T>
struct UpdateShape {
  static constexpr int reach = is_complex<T> ? 2 : 4;
  static constexpr int edge = 16 * reach;   // of a square of C
  static constexpr int depth = 16;          // of the slices of A and B in shared memory
};

/// slice(p, i) := op(X(i0 + i, p0 + p)), zero outside X. Neighbouring threads read neighbouring addresses.
template <class T, int edge, int depth>
__device__ void load_slice(T (&slice)[depth][edge + 1], const Tile<const T>& X, bool conj, index_t i0, index_t p0) {
  for (int t = int(threadIdx.x); t < edge * depth; t += int(blockDim.x)) {
    const bool down = X.row_stride == 1;
    const int i = down ? t % edge : t / depth, p = down ? t / edge : t % depth;
    const bool inside = i0 + i < X.rows && p0 + p < X.cols;
    slice[p][i] = inside ? conj_if(conj, X(i0 + i, p0 + p)) : T(0);
  }
}

template <class T>
__global__ void __launch_bounds__(256)
    update_kernel(Items<const T> A, bool conj_a, Items<const T> B, bool conj_b, Items<T> C, bool lower_only, const int* info) {
  constexpr int reach = UpdateShape<T>::reach, edge = UpdateShape<T>::edge, depth = UpdateShape<T>::depth;
  __shared__ T a_slice[depth][edge + 1], b_slice[depth][edge + 1];
  const int tx = int(threadIdx.x) % 16, ty = int(threadIdx.x) / 16;
  for (index_t item = blockIdx.x; item < C.count; item += gridDim.x) {
    if (info && info[item] != 0) continue;
    const Tile<T> c = C.item(item);
    const Tile<const T> a = A.item(item), b = B.item(item).flipped();   // (m, k)   (n, k)
    for (index_t i0 = index_t(blockIdx.y) * edge; i0 < c.rows; i0 += index_t(gridDim.y) * edge)
      for (index_t j0 = index_t(blockIdx.z) * edge; j0 < c.cols; j0 += index_t(gridDim.z) * edge) {
        if (lower_only && j0 > i0 + edge - 1) continue;
        T sum[reach][reach] = {};
        for (index_t p0 = 0; p0 < a.cols; p0 += depth) {
          load_slice<T, edge, depth>(a_slice, a, conj_a, i0, p0);
          load_slice<T, edge, depth>(b_slice, b, conj_b, j0, p0);
          __syncthreads();   // the slices are complete
#pragma unroll
          for (int p = 0; p < depth; ++p) {
            T x[reach], y[reach];
#pragma unroll
            for (int r = 0; r < reach; ++r) x[r] = a_slice[p][tx + 16 * r], y[r] = b_slice[p][ty + 16 * r];
#pragma unroll
            for (int s = 0; s < reach; ++s)
#pragma unroll
              for (int r = 0; r < reach; ++r) sum[s][r] = minus_product(sum[s][r], x[r], y[s]);
          }
          __syncthreads();   // everyone is done with the slices before they are overwritten
        }
#pragma unroll
        for (int s = 0; s < reach; ++s)
#pragma unroll
          for (int r = 0; r < reach; ++r) {
            const index_t i = i0 + tx + 16 * r, j = j0 + ty + 16 * s;
            if (i < c.rows && j < c.cols && (!lower_only || i >= j)) c(i, j) += sum[s][r];
          }
      }
  }
}

template <class T>
void launch_update(void* stream, Operand<T> A, Operand<T> B, Items<T> C, bool lower_only, const int* info) {
  constexpr index_t edge = UpdateShape<T>::edge, most = 65535;
  const dim3 grid(grid_for(C.count), unsigned(min(ceil_div(C.rows, edge), most)), unsigned(min(ceil_div(C.cols, edge), most)));
  launch(stream, update_kernel<T>, grid, 256, 0, A.items, A.conj, B.items, B.conj, C, lower_only, info);
}

}  // namespace trifactor::cuda

#define TRIFACTOR_INSTANTIATE_KERNELS(T) \
  template void trifactor::cuda::launch_update<T>(void*, Operand<T>, Operand<T>, Items<T>, bool, const int*);
