// The trailing update of LU in one launch: rows are exchanged, A12 := L11^-1 A12, A22 -= L21 A12. As three launches,
// each would read and write the columns again.
#pragma once

#include <cuda/batched/batched.hpp>
#include <cuda/device/row_exchange.cuh>
#include <cuda/engine/launch.cuh>
#include <cuda/device/fragments.cuh>

namespace trifactor::cuda {

/// A panel of up to `width_` columns; each block updates a strip of `cols_` columns to the right of it.
template <class T, int width_, int cols_>
struct LuStrip {
  static constexpr int width = width_, cols = cols_, tiles = cols / 8;
  static constexpr int warps = 4, threads = 32 * warps;
  static constexpr int blocks = 4;  // on a multiprocessor
  static constexpr int vector = vector_of<T>;
  static constexpr int pitch = width + vector;  // between columns of the rows that are solved
  static constexpr int line = 16 + vector;      // between rows of the triangles on the diagonal
  static constexpr std::size_t bytes = (std::size_t(pitch) * cols + std::size_t(width) * line) * sizeof(T);
  using Vector = EntryVector<T, vector>;
};

/// Where the interchanges of a panel take rows from, in shared memory.
template <class S>
struct LuExchanges {
  static constexpr int width = S::width;
  int partner[width];     // row i is exchanged with partner[i]
  int source[2 * width];  // what row i becomes, and what row partner[i] becomes
  int target[width];      // partner[i] where it lies below the rows that are solved, or -1

  /// source and target, of the first `size` interchanges; the others of `partner` are rows with themselves.
  __device__ __forceinline__ void list(int rank, int size, int solved) {
    for (int i = rank; i < 2 * width; i += S::threads) {
      const bool top = i < width;
      const int to = top ? i : partner[i - width];
      source[i] = row_before(to, partner, 0, width, false);
      if (!top) target[i - width] = i - width < size && to >= solved ? to : -1;
    }
  }
};

/// Left operands: rows i .. i + 15 that come before `end`, and columns k .. k + 15 of the panel.
template <class T>
struct PanelOperand {
  const Tile<const T>& l;
  int g, t;  // place of the lane in a fragment
  __device__ __forceinline__ void operator()(int i, int end, int k, LeftPart<T> (&x)[2]) const {
    const T* from = l.data + i + g + (k + 4 * t) * l.col_stride;
#pragma unroll
    for (int s = 0; s < 4; ++s, from += l.col_stride) {
      const bool in = k + 4 * t + s < int(l.cols);
      T(&to)[2] = x[s / 2].v[s % 2];
      to[0] = in && i + g < end ? from[0] : T(0), to[1] = in && i + g + 8 < end ? from[8] : T(0);
    }
  }
};
/// Right operands: rows k .. k + 15 and columns 8 q .. 8 q + 7 of the rows that are solved.
template <class T, class S>
struct SolvedOperand {
  const T* X;
  int g, t;
  __device__ __forceinline__ void operator()(int q, int k, RightPart<T> (&y)[2]) const {
    T v[4];
    read_vectors(X + (8 * q + g) * S::pitch + k + 4 * t, v);
#pragma unroll
    for (int s = 0; s < 4; ++s) y[s / 2].v[s % 2] = v[s];
  }
};

/// D := the triangles on the diagonal of the panel, of 16 x 16 each, by rows. Its part of one thread.
template <class T, class S>
__device__ __forceinline__ void copy_triangles(const Tile<const T>& l, int solved, T* D, int rank) {
  for (int e = rank; e < S::width * 16; e += S::threads) {
    const int i = e % S::width, c = i / 16 * 16 + e / S::width;
    D[i * S::line + e / S::width] = i < solved && c < i ? l.data[i + c * l.col_stride] : T(0);
  }
}
/// 16 entries of a column := D^-1 times them; D is unit lower triangular, by rows.
template <class T, class S>
__device__ __forceinline__ void solve_sixteen(T* column, const T* D) {
  using Vector = typename S::Vector;
  constexpr int vector = S::vector;
  T v[16];
  read_vectors(column, v);
#pragma unroll
  for (int i = 1; i < 16; ++i)
#pragma unroll
    for (int c = 0; c < i; c += vector) {
      const Vector y = *reinterpret_cast<const Vector*>(D + i * S::line + c);
#pragma unroll
      for (int e = 0; e < vector; ++e)
        if (c + e < i) v[i] = minus_product(v[i], y.v[e], v[c + e]);
    }
  write_vectors(column, v);
}
/// X := L11^-1 X, 16 rows at a time; D holds the triangles on the diagonal of L11. By all threads of the block.
template <class T, class S>
__device__ __forceinline__ void solve_strip_rows(const PanelOperand<T>& left, const SolvedOperand<T, S>& right,
                                                 int solved, T* X, const T* D, int rank, int warp) {
  constexpr int pitch = S::pitch;
  for (int k = 0; k < solved; k += 16) {
    LeftPart<T> x[2];
    const int first = k + 16 + 16 * warp;
    if (first < solved) left(first, solved, k, x);
    __syncthreads();  // these rows are up to date
    if (rank < S::cols) solve_sixteen<T, S>(X + rank * pitch + k, D + k * S::line);
    __syncthreads();  // and solved
#pragma unroll 1
    for (int i = first; i < solved; i += 16 * S::warps) {
      if (i != first) left(i, solved, k, x);
#pragma unroll 2
      for (int q = 0; q < S::tiles; ++q) {
        RightPart<T> y[2];
        TensorEntries<T> c;
        T* const C = X + (8 * q + 2 * right.t) * pitch + i + right.g;
        right(q, k, y);
#pragma unroll
        for (int e = 0; e < 4; ++e) c.re[e] = C[e % 2 * pitch + e / 2 * 8];
        subtract_sixteen(c, x, y);
#pragma unroll
        for (int e = 0; e < 4; ++e) C[e % 2 * pitch + e / 2 * 8] = c.re[e];
      }
    }
  }
}

/// 16 rows of the strip below the rows that are solved, in the registers of a warp.
template <class T, class S>
struct StripRows {
  bool rows[2];  // whether the lane's rows are inside
  int inside;    // columns, from the lane's first one on
  TensorEntries<T> c[S::tiles];

  __device__ __forceinline__ void load(const T* C, index_t ld) {
#pragma unroll
    for (int q = 0; q < S::tiles; ++q, C += 8 * ld)
#pragma unroll
      for (int e = 0; e < 4; ++e) c[q].re[e] = rows[e / 2] && 8 * q + e % 2 < inside ? C[e % 2 * ld + e / 2 * 8] : T(0);
  }
  /// this -= x times rows k .. k + 15 that are solved.
  __device__ __forceinline__ void subtract(const LeftPart<T> (&x)[2], const SolvedOperand<T, S>& right, int k) {
#pragma unroll
    for (int q = 0; q < S::tiles; ++q) {
      RightPart<T> y[2];
      right(q, k, y);
      subtract_sixteen(c[q], x, y);
    }
  }
  __device__ __forceinline__ void store(T* C, index_t ld) const {
#pragma unroll
    for (int q = 0; q < S::tiles; ++q, C += 8 * ld)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        if (rows[e / 2] && 8 * q + e % 2 < inside) C[e % 2 * ld + e / 2 * 8] = c[q].re[e];
  }
};

/// The panel L is (m, w), A (m, any). A := P A; its first w rows := L^-1 times them; the others -= L times those.
template <class T, class S>
__global__ void __launch_bounds__(S::threads, S::blocks)
    lu_trailing_update_kernel(Items<const T> L, Pivots<const int> pivots, Items<T> A, const int* info, int strips) {
  constexpr int width = S::width, cols = S::cols, warps = S::warps;
  extern __shared__ __align__(16) unsigned char strip_memory[];
  __shared__ LuExchanges<S> lists;
  T* const X = reinterpret_cast<T*>(strip_memory);  // (width, cols), the rows that are solved
  T* const D = X + S::pitch * cols;                 // (width, 16) by rows, the triangles on the diagonal
  const int rank = int(threadIdx.x), lane = rank % 32, warp = rank / 32, g = lane / 4, t = lane % 4;
  const int strip = int(blockIdx.x) % strips;
  for (index_t b = blockIdx.x / strips; b < A.count; b += gridDim.x / strips) {
    if (info && info[b] != 0) continue;
    const Tile<const T> l = L.item(b);
    const Tile<T> whole = A.item(b);
    const int m = int(l.rows), w = int(l.cols), solved = min(m, w);
    if (solved == 0) continue;
    const int exchanges = int(pivots.size(b, solved));
    for (int j0 = strip * cols; j0 < int(whole.cols); j0 += strips * cols) {
      const int wide = min(cols, int(whole.cols) - j0);
      const index_t ld = whole.col_stride;
      T* const a = whole.data + j0 * ld;
      __syncthreads();  // nobody reads the strip before
      for (int i = rank; i < width; i += S::threads)
        lists.partner[i] = i < exchanges ? pivots.item(b)[i] - 1 - int(pivots.first) : i;
      copy_triangles<T, S>(l, solved, D, rank);
      __syncthreads();  // the interchanges and the triangles are there
      lists.list(rank, exchanges, solved);
      __syncthreads();  // the lists are there
      constexpr int each = width / 32, together = width > 64 ? 2 : 4;
#pragma unroll 1
      for (int c0 = warp * together; c0 < cols; c0 += warps * together) {
        T above[together][each], below[together][each];
#pragma unroll
        for (int c = 0; c < together; ++c) {
          const T* from = a + (c0 + c) * ld;
          const bool in = c0 + c < wide;
#pragma unroll
          for (int r = 0; r < each; ++r) {
            const int i = lane + 32 * r;
            above[c][r] = in && i < solved ? from[lists.source[i]] : T(0);
            if (in && lists.target[i] >= 0) below[c][r] = from[lists.source[width + i]];
          }
        }
        __syncwarp();  // every row is read before one is written
#pragma unroll
        for (int c = 0; c < together; ++c) {
          T* to = a + (c0 + c) * ld;
#pragma unroll
          for (int r = 0; r < each; ++r) {
            const int i = lane + 32 * r;
            X[(c0 + c) * S::pitch + i] = above[c][r];
            if (c0 + c < wide && lists.target[i] >= 0) to[lists.target[i]] = below[c][r];
          }
        }
      }
      const PanelOperand<T> left{l, g, t};
      const SolvedOperand<T, S> right{X, g, t};
      solve_strip_rows<T, S>(left, right, solved, X, D, rank, warp);
      for (int c = warp; c < wide; c += warps) {
        const T* const column = X + c * S::pitch;
        T* const to = a + c * ld;
#pragma unroll
        for (int i = 0; i < width; i += 32)
          if (lane + i < solved) to[lane + i] = column[lane + i];
      }
#pragma unroll 1
      for (int i = solved + 16 * warp; i < m; i += 16 * warps) {
        // The rows below. What was exchanged into them was written by this block, before a barrier.
        LeftPart<T> x[2], next[2];
        left(i, m, 0, x);
        StripRows<T, S> sum{{i + g < m, i + g + 8 < m}, wide - 2 * t};
        sum.load(a + i + g + 2 * t * ld, ld);
#pragma unroll 1
        for (int k = 0; k < w; k += 32) {
          left(i, m, k + 16, next);
          sum.subtract(x, right, k);
          if (k + 16 >= w) break;
          left(i, m, k + 32, x);
          sum.subtract(next, right, k + 16);
        }
        index_t stride = ld;
        asm volatile("" : "+l"(stride));  // optimization barrier: addresses held in registers would spill
        sum.store(a + i + g + 2 * t * stride, stride);
      }
    }
  }
}

/// Strips of an item are neighbours in the grid: the panel that they read is still in the cache.
template <class T, class S>
void launch_lu_strips(void* stream, const Items<const T>& L, const Pivots<const int>& pivots, const Items<T>& A,
                      const int* info) {
  constexpr index_t max_blocks = 1 << 30;
  const index_t strips = min(ceil_div(A.cols, index_t(S::cols)), max_blocks);
  const dim3 grid(unsigned(strips * min(A.count, max_blocks / strips)));
  launch(stream, lu_trailing_update_kernel<T, S>, grid, S::threads, S::bytes, L, pivots, A, info, int(strips));
}
template <class T>
void launch_lu_trailing_update(void* stream, Items<const T> L, Pivots<const int> pivots, Items<T> A, const int* info) {
  if constexpr (!is_complex<T>) {
    // The strips that all blocks work on must fit in the L2 cache between exchange and update.
    // H200, n = 512: f64 4.85 ms with 32 columns, 6.00 with 64; f32 3.00 with 64, 3.69 with 32.
    constexpr int wide = sizeof(T) == 8 ? 32 : 64;
    with_least<32, 64, int(lu_trailing_limit)>(L.cols, [&](auto width) {
      if (A.cols <= 32)
        launch_lu_strips<T, LuStrip<T, width.value, 32>>(stream, L, pivots, A, info);
      else
        launch_lu_strips<T, LuStrip<T, width.value, wide>>(stream, L, pivots, A, info);
    });
  }
}

}  // namespace trifactor::cuda

#define TRIFACTOR_INSTANTIATE_KERNELS(T)                                                                          \
  template void trifactor::cuda::launch_lu_trailing_update<T>(void*, Items<const T>, Pivots<const int>, Items<T>, \
                                                              const int*);
