// Solves with a triangle that fits in shared memory: one block for each item and each strip of right-hand sides, which
// lie in the registers of a lane each.
#pragma once

#include <cuda/batched/batched.hpp>
#include <cuda/device/row_exchange.cuh>
#include <cuda/engine/launch.cuh>
#include <cuda/device/mma.cuh>

namespace trifactor::cuda {

/// Shared memory of trsm_kernel: a triangle, and for each warp a square of right-hand sides on their way to the
/// lanes.
template <class T>
struct TrsmShape {
  static constexpr int edge = int(trsm_kernel_limit), pitch = edge + 1;
  static constexpr int vector = max(1, 16 / int(sizeof(T))), column = edge + vector;  // between columns of the triangle
  static constexpr int warps = sizeof(T) > 8 ? 2 : 4;
  static constexpr std::size_t bytes = sizeof(T) * (edge * column + warps * edge * pitch);
  using Vector = EntryVector<T, vector>;
};

/// v := L^-1 v for a lower triangle of order n in shared memory, whose diagonal is inverted. By one lane.
template <class T>
__device__ __forceinline__ void solve_column(const T* L, int n, bool unit, T (&v)[TrsmShape<T>::edge]) {
  using S = TrsmShape<T>;
#pragma unroll
  for (int k = 0; k < S::edge; ++k) {
    if (k >= n) break;
    if (!unit) v[k] = v[k] * L[k * S::column + k];
#pragma unroll
    for (int i = (k + 1) / S::vector * S::vector; i < S::edge; i += S::vector) {
      const auto l = *reinterpret_cast<const typename S::Vector*>(L + k * S::column + i);
#pragma unroll
      for (int e = 0; e < S::vector; ++e)
        if (i + e > k) v[i + e] = minus_product(v[i + e], l.v[e], v[k]);
    }
  }
}
/// The same with an upper triangle.
template <class T>
__device__ __forceinline__ void solve_upper_column(const T* U, int n, T (&v)[TrsmShape<T>::edge]) {
  using S = TrsmShape<T>;
#pragma unroll
  for (int k = S::edge - 1; k >= 0; --k) {
    if (k >= n) continue;
    v[k] = v[k] * U[k * S::column + k];
#pragma unroll
    for (int i = 0; i < k; i += S::vector) {
      const auto u = *reinterpret_cast<const typename S::Vector*>(U + k * S::column + i);
#pragma unroll
      for (int e = 0; e < S::vector; ++e)
        if (i + e < k) v[i + e] = minus_product(v[i + e], u.v[e], v[k]);
    }
  }
}

/// B := A^-1 B for triangles of order up to 32, a column of B to a lane. Where there are pivots, the rows of B are
/// exchanged first, also with those below the ones that are solved. An upper triangle is a lower one seen from its last
/// row. `both`: A holds the factors of LU, and B is solved with its unit lower triangle and then with the upper one.
template <class T, bool both>
__global__ void __launch_bounds__(32 * TrsmShape<T>::warps)
    trsm_kernel(Shape shape, Items<const T> A, bool conj, Items<T> B, Pivots<const int> pivots, const int* info) {
  using S = TrsmShape<T>;
  constexpr int edge = S::edge, threads = 32 * S::warps;
  extern __shared__ __align__(16) unsigned char raw[];
  __shared__ int partner[edge], source[2 * edge], target[edge];  // of the rows that are solved, and of those below
  T* L = reinterpret_cast<T*>(raw);                              // (edge, edge)
  const int rank = int(threadIdx.x), lane = rank % 32, warp = rank / 32;
  T* strip = L + edge * S::column + warp * edge * S::pitch;  // (edge, 32)
  for (index_t b = blockIdx.x; b < B.count; b += gridDim.x) {
    if (info && info[b] != 0) continue;
    const Tile<const T> a = A.item(b);
    const Tile<T> x = B.item(b);
    const int n = int(min(a.rows, a.cols));
    if (n == 0 || x.cols == 0) continue;
    const auto row = [&](int i) { return shape.lower ? i : n - 1 - i; };
    __syncthreads();  // nobody reads the triangle of the item before
    for (int t = rank; t < edge * edge; t += threads) {
      const bool down = a.row_stride == 1;
      const int i = down ? t % edge : t / edge, k = down ? t / edge : t % edge;
      T entry(0);
      if (i < n && (both ? k < n : k < i)) entry = conj_if(conj, a(row(i), row(k)));
      if (i < n && k == i && (both || !shape.unit)) entry = T(1) / conj_if(conj, a(row(i), row(i)));
      L[k * S::column + i] = entry;
    }
    const int exchanges = pivots.data ? int(pivots.size(b, n)) : 0;
    if (rank < exchanges) partner[rank] = pivots.item(b)[rank] - 1 - int(pivots.first);
    __syncthreads();  // the triangle and the interchanges are there
    if (rank < 2 * edge) {
      const bool top = rank < edge;
      const int to = top ? rank : rank - edge < exchanges ? partner[rank - edge] : 0;
      source[rank] = row_before(to, partner, 0, exchanges, false);
      if (!top) target[rank - edge] = to >= n ? to : -1;
    }
    __syncthreads();                        // the lists are there
    const bool staged = x.row_stride == 1;  // lanes read along columns, and exchange what they read
    for (index_t j0 = (index_t(blockIdx.y) * S::warps + warp) * 32; j0 < x.cols; j0 += index_t(gridDim.y) * threads) {
      const int cols = int(min(index_t(32), x.cols - j0));
      T v[edge];
      if (staged) {
        __syncwarp();                // the strip before is written
        constexpr int together = 4;  // columns whose entries are on their way at once
        for (int c0 = 0; c0 < cols; c0 += together) {
          T solved[together], below[together];
#pragma unroll
          for (int c = 0; c < together; ++c) {
            const T* p = &x(0, j0 + min(c0 + c, cols - 1));
            solved[c] = lane < n ? p[exchanges > 0 ? source[row(lane)] : row(lane)] : T(0);
            if (lane < exchanges && target[lane] >= 0) below[c] = p[source[edge + lane]];
          }
          __syncwarp();  // every row of these columns is read before one is written
#pragma unroll
          for (int c = 0; c < together; ++c) {
            if (c0 + c >= cols) break;
            strip[(c0 + c) * S::pitch + lane] = solved[c];
            if (lane < exchanges && target[lane] >= 0) x(target[lane], j0 + c0 + c) = below[c];
          }
        }
        __syncwarp();  // the strip is complete
      }
#pragma unroll
      for (int i = 0; i < edge; ++i)
        v[i] = lane >= cols || i >= n ? T(0) : staged ? strip[lane * S::pitch + i] : x(row(i), j0 + lane);
      solve_column<T>(L, n, shape.unit, v);
      if constexpr (both) solve_upper_column<T>(L, n, v);
      if (staged) {
#pragma unroll
        for (int i = 0; i < edge; ++i) strip[lane * S::pitch + i] = v[i];
        __syncwarp();  // the solution is there
        if (lane < n)
          for (int c = 0; c < cols; ++c) x(row(lane), j0 + c) = strip[c * S::pitch + lane];
      } else if (lane < cols) {
#pragma unroll
        for (int i = 0; i < edge; ++i)
          if (i < n) x(row(i), j0 + lane) = v[i];
      }
    }
  }
}

template <class T, bool both>
void launch_trsm(void* stream, Shape shape, Operand<T> A, Items<T> B, Pivots<const int> pivots, const int* info) {
  using S = TrsmShape<T>;
  const dim3 grid(grid_for(B.count), strips_for(B.count, ceil_div(B.cols, index_t(32 * S::warps))));
  launch(stream, trsm_kernel<T, both>, grid, 32 * S::warps, S::bytes, shape, A.items, A.conj, B, pivots, info);
}
template <class T>
void launch_trsm(void* stream, Shape shape, Operand<T> A, Items<T> B, Pivots<const int> pivots, const int* info) {
  launch_trsm<T, false>(stream, shape, A, B, pivots, info);
}
template <class T>
void launch_lu_solve(void* stream, Items<const T> LU, Pivots<const int> pivots, Items<T> B, const int* info) {
  launch_trsm<T, true>(stream, unit_lower, plain(LU), B, pivots, info);
}

}  // namespace trifactor::cuda

#define TRIFACTOR_INSTANTIATE_KERNELS(T)                                                                            \
  template void trifactor::cuda::launch_trsm<T>(void*, Shape, Operand<T>, Items<T>, Pivots<const int>, const int*); \
  template void trifactor::cuda::launch_lu_solve<T>(void*, Items<const T>, Pivots<const int>, Items<T>, const int*);
