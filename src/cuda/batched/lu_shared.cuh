// LU with partial pivoting of matrices of up to 128 rows that lie in the shared memory of a block, which bounds their
// columns (lu_resident_fits): panels in registers, a row to a thread, and updates on the tensor cores.
#pragma once

#include <cuda/batched/batched.hpp>
#include <cuda/device/pipeline.cuh>
#include <cuda/device/row_exchange.cuh>
#include <cuda/engine/launch.cuh>
#include <cuda/batched/lu_panel.cuh>
#include <cuda/batched/lu_warp.cuh>
#include <cuda/device/mma.cuh>

namespace trifactor::cuda {

inline constexpr int lu_resident_threads = 128;  // and as many rows

template <class T>
struct LuResident {
  static constexpr int width = 16;  // of a panel
  using Panel = LuRows<T, width, 8, 32, true>;
  static constexpr int warps = lu_resident_threads / 32;
  int m, n, P;
  T* M;  // (m, n), column-major with P between columns, in shared memory

  /// Rows of all columns but the panel's [k, k1) as its interchanges move them: to target[t] from source[t].
  __device__ void exchange(int k, int k1, const int* target, const int* source) const {
    const int lane = int(threadIdx.x % 32), warp = int(threadIdx.x / 32), others = n - (k1 - k);
    const int to = target[lane], from = source[lane];
    constexpr int together = 8;
    for (int j0 = warp; j0 < others; j0 += together * warps) {
      T x[together];
      T* column[together];
#pragma unroll
      for (int i = 0; i < together; ++i) {
        const int j = j0 + i * warps;
        column[i] = M + (j < k ? j : j + k1 - k) * P;
        if (j < others) x[i] = column[i][from];
      }
      __syncwarp();  // every row is read before one is written
#pragma unroll
      for (int i = 0; i < together; ++i)
        if (from != to && j0 + i * warps < others) column[i][to] = x[i];
    }
  }
  /// Rows k .. k + width - 1 of the columns from k1 on := L^-1 times them, a column to a thread. Rows beyond the last
  /// of the matrix are garbage, and make garbage only there.
  __device__ void solve(int k, int k1) const {
    for (int j = k1 + int(threadIdx.x); j < n; j += lu_resident_threads) {
      T x[width], *const column = M + j * P + k;
#pragma unroll
      for (int i = 0; i < width; ++i) x[i] = column[i];
#pragma unroll
      for (int c = 0; c + 1 < width; ++c) {
        const T* L = M + (k + c) * P + k;
#pragma unroll
        for (int i = c + 1; i < width; ++i) x[i] = minus_product(x[i], L[i], x[c]);
      }
#pragma unroll
      for (int i = 0; i < width; ++i) column[i] = x[i];
    }
  }
  /// What is right of and below the panel -= L U, a strip of sixteen rows to a warp.
  __device__ void update(int k, int k1) const {
    const int lane = int(threadIdx.x % 32), g = lane / 4, t = lane % 4, right = g / 2 + g % 2 * 4;
    for (int i = k1 + 16 * int(threadIdx.x / 32); i < m; i += 16 * warps) {
      T a[width / 4][2];
      const T* L = M + (k + t) * P + i + g;
#pragma unroll
      for (int s = 0; s < width / 4; ++s) a[s][0] = L[4 * s * P], a[s][1] = L[4 * s * P + 8];
#pragma unroll 2
      for (int j = k1; j < n; j += 8) {
        TensorEntries<T> c, part;
        // Columns are permuted: what a lane has of the product is in columns t and t + 4.
        T* const C = M + (j + t) * P + i + g;
        const T* U = M + (j + right) * P + k + t;
#pragma unroll
        for (int e = 0; e < 4; ++e) c.set(e, C[e % 2 * 4 * P + e / 2 * 8]), part.set(e, T(0));
        // Two sums, so that products do not wait for each other. In float, tensor cores truncate sums: they are added
        // outside.
        constexpr bool apart = sizeof(Real<T>) == 4;
#pragma unroll
        for (int s = 0; s < width / 4; ++s)
          tensor_subtract<false>(apart || s % 2 ? part : c, a[s][0], a[s][1], conj(U[4 * s]));
#pragma unroll
        for (int e = 0; e < 4; ++e) C[e % 2 * 4 * P + e / 2 * 8] = c.get(e) + part.get(e);
      }
    }
  }
};

template <class T>
__global__ void __launch_bounds__(lu_resident_threads, sizeof(T) > 8 ? 3 : 4)
    lu_resident_kernel(Items<T> A, Pivots<int> pivots, int* info, bool resets) {
  using Matrix = LuResident<T>;
  using Panel = typename Matrix::Panel;
  constexpr int width = Matrix::width;
  extern __shared__ __align__(128) unsigned char raw[];
  __shared__ __align__(16) T rows[Matrix::warps][2 * Panel::pitch];
  __shared__ typename Panel::Candidate candidates[2 * 32];
  __shared__ int partner[width], target[2 * width], source[2 * width];
  const int rank = int(threadIdx.x), lane = rank % 32, warp = rank / 32;
  for (index_t b = blockIdx.x; b < A.count; b += gridDim.x) {
    const int before = info_before(A, b, info, resets);
    int zero_at = 0;
    if (before >= 0) {
      const Tile<T> a = A.item(b);
      const int m = int(a.rows), n = int(a.cols), all = min(m, n), P = lu_resident_pitch<T>(m);
      const Matrix matrix{m, n, P, reinterpret_cast<T*>(raw)};
      __syncthreads();  // nobody reads the item before, and all have read info
      for (int j = warp; j < n; j += Matrix::warps)
        for (int i = lane; i < m; i += 32)
          copy_async<int(sizeof(T))>(shared_address(matrix.M + j * P + i), a.data + i + j * a.col_stride);
      copy_commit();
      copy_wait<0>();
      __syncthreads();  // the matrix is there
      for (int k = 0; k < all; k += width) {
        const int w = min(width, n - k), k1 = k + w, steps = min(w, m - k);
        const Tile<T, int> panel{matrix.M + k * P + k, m - k, w, 1, P};
        const int zero = Panel::factor(panel, partner, k, rows[0], candidates);
        if (zero != 0 && zero_at == 0) zero_at = k + zero;
        __syncthreads();  // the panel and its interchanges are there
        if (rank < steps) pivots.item(b)[k + rank] = int(pivots.first) + partner[rank];
        if (rank >= 32 && rank < 32 + 2 * width) {
          const int t = rank - 32, s = t % width, to = s >= steps ? k : t < width ? k + s : partner[s] - 1;
          target[t] = to, source[t] = s < steps ? row_before(to + 1, partner, k + 1, steps, false) - 1 : to;
        }
        __syncthreads();  // the lists are complete
        matrix.exchange(k, k1, target, source);
        if (k1 < n) {
          __syncthreads();  // all rows are in their places
          matrix.solve(k, k1);
          __syncthreads();  // the rows of U are there
          matrix.update(k, k1);
        }
        __syncthreads();  // the next panel is up to date
      }
      for (int j = warp; j < n; j += Matrix::warps)
        for (int i = lane; i < m; i += 32) a.data[i + j * a.col_stride] = matrix.M[j * P + i];
    }
    if (threadIdx.x == 0) note_info(info, b, before, zero_at, pivots.first, resets);
  }
}

template <class T>
void launch_lu_resident(void* stream, Items<T> A, Pivots<int> pivots, int* info, bool resets) {
  if constexpr (std::is_same_v<T, float>)
    launch(stream, lu_warp_kernel<T>, grid_for(A.count), LuWarp::threads, LuWarp::bytes(A.rows, A.cols), A, pivots,
           info, resets);
  else
    launch(stream, lu_resident_kernel<T>, grid_for(A.count), lu_resident_threads,
           std::size_t(lu_resident_bytes<T>(A.rows, A.cols)), A, pivots, info, resets);
}

}  // namespace trifactor::cuda

#define TRIFACTOR_INSTANTIATE_KERNELS(T) \
  template void trifactor::cuda::launch_lu_resident<T>(void*, Items<T>, Pivots<int>, int*, bool);
