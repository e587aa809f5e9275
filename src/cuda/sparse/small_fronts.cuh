// Small fronts of one level, factored in one launch: a block of threads for each.
#pragma once

#include <cuda/engine/engine.hpp>
#include <cuda/engine/launch.cuh>
#include <core/fronts.hpp>

namespace trifactor::cuda {

/// F, a front's columns, is factored in shared memory, column by column: what is left of the update matrix is a
/// product.
template <class T>
struct SmallFront {
  static constexpr int threads = 256, warps = threads / 32;
  static constexpr int max_rows = sizeof(T) > 8 ? 128 : 192, max_columns = sizeof(T) > 8 ? 32 : 64;
  static constexpr int edge = 4;  // rows and columns of a thread's tile of the update matrix

  int m, w, ld;
  T* F;  // (m, w) in shared memory

  __device__ static int lane() { return int(threadIdx.x) % 32; }
  __device__ static int warp() { return int(threadIdx.x) / 32; }

  /// f(row, column) for the lower trapezoid, neighbouring lanes in neighbouring rows.
  template <class G>
  __device__ void for_trapezoid(G g) const {
    for (int k = warp(); k < w; k += warps)
      for (int r = k + lane(); r < m; r += 32) g(r, k);
  }

  /// F = L, and returns 0 or the number of the first column, from 1 on, whose pivot is not positive and finite. Four
  /// columns at a time: these are factored by all threads, each its rows; then the others are updated.
  __device__ int factor() const {
    constexpr int nb = 4;
    for (int k0 = 0; k0 < w; k0 += nb) {
      const int end = min(k0 + nb, w);
      // Every thread factors the small triangle for itself, from what all see.
      T D[nb][nb];
      Real<T> scale[nb];
      int failed = 0;
#pragma unroll
      for (int j = 0; j < nb; ++j)
#pragma unroll
        for (int i = 0; i < nb; ++i) D[i][j] = i >= j && k0 + i < end ? F[(k0 + j) * ld + k0 + i] : T(i == j ? 1 : 0);
      __syncthreads();  // everyone has read the triangle
#pragma unroll
      for (int j = 0; j < nb; ++j) {
        Real<T> d = real(D[j][j]);
#pragma unroll
        for (int p = 0; p < j; ++p) d -= real(D[j][p] * core::conj(D[j][p]));
        if (!(d > 0) || !(d - d == 0)) failed = failed == 0 ? k0 + j + 1 : failed;
        const Real<T> root = sqrt(d);
        D[j][j] = T(root), scale[j] = Real<T>(1) / root;
#pragma unroll
        for (int i = j + 1; i < nb; ++i) {
          T e = D[i][j];
#pragma unroll
          for (int p = 0; p < j; ++p) e = minus_product(e, D[i][p], core::conj(D[j][p]));
          D[i][j] = e * scale[j];
        }
      }
      if (failed != 0) return failed;  // the same on all threads
      for (int r = k0 + int(threadIdx.x); r < m; r += threads) {
        T x[nb];
#pragma unroll
        for (int j = 0; j < nb; ++j) {
          if (k0 + j >= end) break;
          T e;
          if (r < end) {
            e = T(0);
#pragma unroll
            for (int i = 0; i < nb; ++i)
              if (r == k0 + i && i >= j) e = D[i][j];
            if (r < k0 + j) continue;
          } else {
            e = F[(k0 + j) * ld + r];
#pragma unroll
            for (int p = 0; p < j; ++p) e = minus_product(e, x[p], core::conj(D[j][p]));
            e = e * scale[j];
          }
          x[j] = e;
          F[(k0 + j) * ld + r] = e;
        }
      }
      __syncthreads();  // the columns are factored
      for (int k = end + warp(); k < w; k += warps) {
        T y[nb];
#pragma unroll
        for (int j = 0; j < nb; ++j) y[j] = k0 + j < end ? core::conj(F[(k0 + j) * ld + k]) : T(0);
        for (int r = k + lane(); r < m; r += 32) {
          T e = F[k * ld + r];
#pragma unroll
          for (int j = 0; j < nb; ++j)
            if (k0 + j < end) e = minus_product(e, F[(k0 + j) * ld + r], y[j]);
          F[k * ld + r] = e;
        }
      }
      __syncthreads();  // the next columns are up to date
    }
    return 0;
  }

  /// U -= L21 L21^H, the lower triangle; by tiles of edge x edge entries, whose rows lie apart so that loads are
  /// neighbours.
  __device__ void update(T* U, int below) const {
    const int across = (below + edge - 1) / edge;  // rows of a tile are `across` apart
    const T* L = F + w;
    for (int t = int(threadIdx.x); t < across * across; t += threads) {
      const int i0 = t % across, j0 = t / across;
      const int above = j0 * edge / across;  // so many rows of the tile lie above the diagonal, whatever i0 is
      T c[edge][edge];
#pragma unroll
      for (int i = 0; i < edge; ++i)
#pragma unroll
        for (int j = 0; j < edge; ++j) c[i][j] = T(0);
      for (int k = 0; k < w; ++k) {
        T x[edge], y[edge];
#pragma unroll
        for (int i = 0; i < edge; ++i) {
          x[i] = i0 + i * across < below ? L[k * ld + i0 + i * across] : T(0);
          y[i] = j0 * edge + i < below ? core::conj(L[k * ld + j0 * edge + i]) : T(0);
        }
#pragma unroll
        for (int i = 0; i < edge; ++i)
#pragma unroll
          for (int j = 0; j < edge; ++j)
            if (i >= above) c[i][j] = minus_product(c[i][j], x[i], y[j]);
      }
#pragma unroll
      for (int i = 0; i < edge; ++i)
#pragma unroll
        for (int j = 0; j < edge; ++j) {
          const int r = i0 + i * across, k = j0 * edge + j;
          if (r < below && k <= r) U[k * UpdateShape::ld(below) + r] += c[i][j];
        }
    }
  }
};

template <class T>
__global__ void __launch_bounds__(SmallFront<T>::threads)
    factor_small_fronts_kernel(Fronts f, int begin, T* factor, T* updates, int* info) {
  extern __shared__ __align__(16) unsigned char raw[];
  const int t = begin + int(blockIdx.x), line = f.line_start[t], m = f.line_start[t + 1] - line, w = f.columns[t];
  const SmallFront<T> front{m, w, m | 1, reinterpret_cast<T*>(raw)};
  const FrontShape shape(m, w);
  T* A = factor + f.factor_at[t];
  const auto stored = [&](int r, int k) -> T& { return A[k * shape.ld + (r < w ? r : r + shape.gap)]; };
  front.for_trapezoid([&](int r, int k) { front.F[k * front.ld + r] = stored(r, k); });
  __syncthreads();  // the front is there
  const int failed = front.factor();
  if (threadIdx.x == 0) info[t] = failed;
  if (failed != 0) return;
  front.for_trapezoid([&](int r, int k) { stored(r, k) = front.F[k * front.ld + r]; });
  front.update(updates + f.update_at[t], m - w);
}

template <class T>
FrontLimits CudaEngine::small_front_limits() const {
  return {SmallFront<T>::max_rows, SmallFront<T>::max_columns};
}

template <class T>
void CudaEngine::factor_small_fronts(const Fronts& f, index_t begin, index_t end, FrontLimits largest, T* factor,
                                     T* updates, int* info) {
  if (arena().planning() || begin == end) return;
  const Traced traced(*this, "factor_small_fronts", largest.rows, largest.columns, end - begin);
  const std::size_t bytes = std::size_t((largest.rows | 1) * largest.columns) * sizeof(T);
  launch(stream_, factor_small_fronts_kernel<T>, unsigned(end - begin), SmallFront<T>::threads, bytes, f, int(begin),
         factor, updates, info);
}

}  // namespace trifactor::cuda

#define TRIFACTOR_INSTANTIATE_KERNELS(T)                                                                              \
  template trifactor::core::FrontLimits trifactor::cuda::CudaEngine::small_front_limits<T>() const;                   \
  template void trifactor::cuda::CudaEngine::factor_small_fronts<T>(const Fronts&, index_t, index_t, FrontLimits, T*, \
                                                                    T*, int*);
