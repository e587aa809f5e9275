// LU of narrow panels of any height, a block to each, interchanges and permutations of rows, and the determinant.
#pragma once

#include <cuda/engine/launch.cuh>
#include <cuda/single/row_moves.cuh>
#include <cuda/single/single.hpp>
#include <cuda/device/team.cuh>
#include <tile/lu.hpp>

namespace trifactor::cuda {

inline constexpr int lu_threads = 512, det_threads = 256;

/// A panel with too many rows for registers.
template <class T>
__global__ void __launch_bounds__(lu_threads) lu_kernel(Items<T> A, Pivots<int> pivots, int* info) {
  __shared__ tile::PivotCandidate<Real<T>> candidates[lu_threads];
  const BlockTeam team;
  for (index_t b = blockIdx.x; b < A.count; b += gridDim.x) {
    if (info[b] < 0) continue;
    team.sync();  // all have read info, and are done with the candidates of the item before
    const int zero_at = tile::lu(team, A.item(b), pivots.item(b), pivots.first, candidates);
    if (zero_at != 0 && team.rank() == 0 && info[b] == 0) info[b] = int(pivots.first) + zero_at;
  }
}

template <class T>
void launch_lu(void* stream, Items<T> A, Pivots<int> pivots, int* info) {
  launch(stream, lu_kernel<T>, grid_for(A.count), lu_threads, 0, A, pivots, info);
}

inline constexpr int exchange_threads = 256, line_threads = 512, max_exchanges = 256;

/// The interchanges as moves, by all threads of a block.
__device__ inline void find_moves_of_pivots(RowMoves<max_exchanges>& moves, const int* pivots, int first, int steps) {
  __shared__ int partner[max_exchanges];
  for (int i = int(threadIdx.x); i < steps; i += int(blockDim.x)) partner[i] = pivots[i] - 1 - first;
  __syncthreads();  // the interchanges are there
  moves.find(partner, steps);
}

/// Interchanges of one matrix that lies by columns, up to max_exchanges of them.
template <class T>
__global__ void __launch_bounds__(exchange_threads)
    exchange_rows_kernel(Tile<T> A, const int* pivots, int first, int steps, const int* info) {
  __shared__ RowMoves<max_exchanges> moves;
  if (info && *info != 0) return;
  find_moves_of_pivots(moves, pivots, first, steps);
  constexpr int warps = exchange_threads / 32;
  moves.apply(A.data, A.col_stride, steps, int(blockIdx.x) * warps + int(threadIdx.x) / 32, int(gridDim.x) * warps,
              int(A.cols));
}

/// Of one that lies by rows. A block has 32 columns at a time, a warp some of the rows that move.
template <class T>
__global__ void __launch_bounds__(line_threads)
    exchange_lines_kernel(Tile<T> A, const int* pivots, int first, int steps, const int* info) {
  __shared__ RowMoves<max_exchanges> moves;
  if (info && *info != 0) return;
  find_moves_of_pivots(moves, pivots, first, steps);
  constexpr int warps = line_threads / 32, slots = max_exchanges / warps;
  const int warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32;
  for (index_t j0 = index_t(blockIdx.x) * 32; j0 < A.cols; j0 += index_t(gridDim.x) * 32) {
    T* const a = A.data + j0 + lane;
    T above[slots], below[slots];
    const auto each = [&](auto move) {
#pragma unroll
      for (int s = 0; s < slots; ++s) {
        const int k = warp + warps * s;
        if (k < steps && j0 + lane < A.cols) move(k, s);
      }
    };
    each([&](int k, int s) {
      above[s] = a[moves.from[k] * A.row_stride];
      if (moves.to[k] >= steps) below[s] = a[k * A.row_stride];
    });
    __syncthreads();  // every row is read before one is written
    each([&](int k, int s) {
      a[k * A.row_stride] = above[s];
      if (moves.to[k] >= steps) a[moves.to[k] * A.row_stride] = below[s];
    });
  }
}

template <class T>
void launch_exchange_rows(void* stream, Items<T> A, Pivots<const int> pivots, index_t n, const int* info) {
  const Tile<T> a = A.item(0);
  const bool by_rows = A.is_flipped;
  const unsigned blocks = unsigned(min(ceil_div(a.cols, by_rows ? 32 : exchange_threads / 32), enough_blocks / 4));
  for (index_t k = 0; k < n; k += max_exchanges)
    launch(stream, by_rows ? exchange_lines_kernel<T> : exchange_rows_kernel<T>, blocks,
           by_rows ? line_threads : exchange_threads, 0, a.block(k, 0, a.rows - k, a.cols), pivots.data + k,
           int(pivots.first + k), int(min(n - k, index_t(max_exchanges))), info);
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
    lu_det_kernel(Items<const T> LU, Pivots<const int> pivots, T* sign, Real<T>* log_abs) {
  __shared__ T signs[det_threads];
  __shared__ Real<T> logs[det_threads];
  const int rank = int(threadIdx.x), size = int(blockDim.x);
  for (index_t b = blockIdx.x; b < LU.count; b += gridDim.x) {
    const bool possible = LU.possible_square(b);
    T s(1);
    Real<T> sum = 0;
    if (possible) {
      const Tile<const T> a = LU.item(b);
      const int* exchanged = pivots.item(b);
      for (index_t k = rank; k < a.rows; k += size) {
        const auto pivot = polar_log(a(k, k));
        s = s * pivot.phase, sum += pivot.log_modulus;
        if (exchanged[k] != k + 1) s = -s;
      }
    }
    signs[rank] = s, logs[rank] = sum;
    for (int half = size / 2; half > 0; half /= 2) {  // the same tree in every run
      __syncthreads();                                // the level above is written
      if (rank < half) signs[rank] = signs[rank] * signs[rank + half], logs[rank] += logs[rank + half];
    }
    if (rank == 0) {
      sign[b] = possible ? signs[0] : T(Limits<Real<T>>::nan);
      log_abs[b] = possible ? logs[0] : Limits<Real<T>>::nan;
    }
    __syncthreads();  // the sums are read before the next item's are written
  }
}

template <class T>
void launch_lu_det(void* stream, Items<const T> LU, Pivots<const int> pivots, T* sign, Real<T>* log_abs) {
  launch(stream, lu_det_kernel<T>, grid_for(LU.count), LU.rows <= 32 ? 32 : det_threads, 0, LU, pivots, sign, log_abs);
}

}  // namespace trifactor::cuda

#define TRIFACTOR_INSTANTIATE_KERNELS(T)                                                                           \
  template void trifactor::cuda::launch_lu<T>(void*, Items<T>, Pivots<int>, int*);                                 \
  template void trifactor::cuda::launch_exchange_rows<T>(void*, Items<T>, Pivots<const int>, index_t, const int*); \
  template void trifactor::cuda::launch_permute_rows<T>(void*, Items<T>, const int*, bool, T*, const int*);        \
  template void trifactor::cuda::launch_lu_det<T>(void*, Items<const T>, Pivots<const int>, T*, Real<T>*);
