// Solves of a batch, one block for each item and each strip of right-hand sides: with a triangle that fits in shared
// memory, a right-hand side in the registers of a lane (trsm_kernel), or with a larger one whose tiles stream through
// shared memory, where the strip stays (trsm_strip_kernel).
#pragma once

#include <cuda/batched/batched.hpp>
#include <cuda/device/row_exchange.cuh>
#include <cuda/engine/launch.cuh>
#include <cuda/device/mma.cuh>
#include <cuda/device/pipeline.cuh>
#include <cuda/device/product.cuh>

namespace trifactor::cuda {

/// Shared memory of trsm_kernel: a triangle, and for each warp a square of right-hand sides on their way to the
/// lanes.
template <class T>
struct TrsmShape {
  static constexpr int edge = int(trsm_kernel_limit), pitch = edge + 1;
  static constexpr int vector = vector_of<T>, column = edge + vector;  // between columns of the triangle
  static constexpr int warps = sizeof(T) > 8 ? 2 : 4;
  static constexpr std::size_t bytes = sizeof(T) * (edge * column + warps * edge * pitch);
  using Vector = EntryVector<T, vector>;
};

/// v := L^-1 v, or conj(L)^-1 v, for a lower triangle of order n in shared memory, with so much between columns, whose
/// diagonal is inverted. By one lane.
template <int column, bool conjugates = false, class T>
__device__ __forceinline__ void solve_column(const T* L, int n, bool unit, T (&v)[TrsmShape<T>::edge]) {
  using S = TrsmShape<T>;
#pragma unroll
  for (int k = 0; k < S::edge; ++k) {
    if (k >= n) break;
    if (!unit) v[k] = v[k] * conj_if(conjugates, L[k * column + k]);
#pragma unroll
    for (int i = (k + 1) / S::vector * S::vector; i < S::edge; i += S::vector) {
      const auto l = *reinterpret_cast<const typename S::Vector*>(L + k * column + i);
#pragma unroll
      for (int e = 0; e < S::vector; ++e)
        if (i + e > k) v[i + e] = minus_product(v[i + e], conj_if(conjugates, l.v[e]), v[k]);
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
      solve_column<S::column>(L, n, shape.unit, v);
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

/// Shared memory of trsm_strip_kernel: tiles of the triangle on their way, and a strip of 32 right-hand sides, or of 8,
/// by rows. Of a wide strip a warp has 16 x 16 of a tile, of a narrow one 16 x 8, and half of the depth of a product.
template <class T, int columns_>
struct TrsmStrip {
  static constexpr int edge = TrsmShape<T>::edge, columns = columns_;
  static constexpr int pitch = edge + 4, line = columns + 4;  // tiles are read without bank conflicts
  static constexpr bool halves = columns == trsm_narrow_strip;
  static constexpr int stages = halves && sizeof(T) == 16 ? 2 : 3, tile = edge * pitch, threads = 128;
  using Wide = InDouble<T>;                                                        // floats are added up in double
  static constexpr std::size_t sums = halves ? edge * columns * sizeof(Wide) : 0;  // of the second halves
  static constexpr std::size_t bytes(index_t rows) {
    return sums + sizeof(T) * std::size_t(stages * tile + ceil_div(rows, index_t(edge)) * edge * line);
  }
};

/// B := A^-1 B for triangles of several tiles. A block has a strip of right-hand sides in shared memory, from where
/// every row of tiles is multiplied with what is solved; one warp then solves with the diagonal tile. Products are
/// conj(A) times the strip, so without `conj` the strip holds conj(B), and what is solved is conj(A) conj(X) = conj(B).
template <class T, int columns>
__global__ void __launch_bounds__(TrsmStrip<T, columns>::threads)
    trsm_strip_kernel(Shape shape, Items<const T> A, bool conj, Items<T> B, const int* info) {
  using S = TrsmStrip<T, columns>;
  using W = typename S::Wide;
  using Sum = Fragment<W, S::halves ? 1 : 2>;
  constexpr int edge = S::edge, pitch = S::pitch, line = S::line, threads = S::threads;
  extern __shared__ __align__(16) unsigned char raw[];
  W* const second_sums = reinterpret_cast<W*>(raw);  // (edge, columns)
  T* const ring = reinterpret_cast<T*>(raw + S::sums);
  T* const X = ring + S::stages * S::tile;  // (n, columns) by rows
  const int rank = int(threadIdx.x), lane = rank % 32, warp = rank / 32;
  // Of this warp's part of a tile, and of the depth.
  const int r0 = warp % 2 * 16, c0 = S::halves ? 0 : warp / 2 * 16, k0 = S::halves ? warp / 2 * 16 : 0;
  for (index_t b = blockIdx.x; b < B.count; b += gridDim.x) {
    if (info && info[b] != 0) continue;
    const Tile<const T> a = A.item(b);
    const Tile<T> x = B.item(b);
    const int n = int(min(a.rows, a.cols)), blocks = (n + edge - 1) / edge;
    const auto row = [&](int i) { return shape.lower ? i : n - 1 - i; };  // an upper triangle from its last row
    for (index_t j0 = index_t(blockIdx.y) * columns; n > 0 && j0 < x.cols; j0 += index_t(gridDim.y) * columns) {
      const int cols = int(min(index_t(columns), x.cols - j0));
      // Neighbouring threads take neighbours in memory.
      const auto for_entries = [&](int rows, auto constant, bool down, auto f) {  // f(row, column) of (rows, width)
        constexpr int width = decltype(constant)::value;
        for (int t = rank; t < rows * width; t += threads) f(down ? t % rows : t / width, down ? t / rows : t % width);
      };
      constexpr std::integral_constant<int, edge> tile_width;
      constexpr std::integral_constant<int, columns> strip_width;
      const auto fetch_tile = [&](int t, int i, int k) {  // the t-th, which is tile (i, k)
        T* const to = ring + t % S::stages * S::tile;
        for_entries(edge, tile_width, a.row_stride == 1, [&](int r, int c) {
          const int ri = i * edge + r, ck = k * edge + c;
          const bool in = ri < n && ck < n;
          copy_async<int(sizeof(T))>(shared_address(to + c * pitch + r), &a(in ? row(ri) : 0, in ? row(ck) : 0),
                                     in ? int(sizeof(T)) : 0);
        });
      };
      int fetched = 0, fetch_i = 0, fetch_k = 0;
      const auto fetch_next = [&] {  // row by row, the diagonal tile last
        if (fetch_i < blocks) fetch_tile(fetched, fetch_i, fetch_k);
        copy_commit();
        ++fetched;
        if (++fetch_k > fetch_i) ++fetch_i, fetch_k = 0;
      };
      int taken = 0;
      const auto take_tile = [&] {
        copy_wait<S::stages - 2>();
        __syncthreads();  // all of the next tile is there, and everyone is done with the one before
        fetch_next();
        return ring + taken++ % S::stages * S::tile;
      };
      __syncthreads();  // nobody reads the strip before
      for_entries(blocks * edge, strip_width, x.row_stride == 1, [&](int r, int c) {
        const bool in = r < n && c < cols;
        copy_async<int(sizeof(T))>(shared_address(X + r * line + c), &x(in ? row(r) : 0, j0 + (in ? c : 0)),
                                   in ? int(sizeof(T)) : 0);
      });
      for (int s = 0; s < S::stages - 1; ++s) fetch_next();  // the strip comes with the first of them
      for (int i = 0; i < blocks; ++i) {
        T* const Xi = X + i * edge * line;
        if (i > 0) {
          Sum sum;
          for (int k = 0; k < i; ++k) {
            const T* const tile = take_tile();
            if (k == 0)
              sum.fill([&](int r, int c) { return k0 > 0 ? W(0) : W(conj_if(!conj, Xi[(r0 + r) * line + c0 + c])); });
            sum.template subtract<S::halves ? edge / 2 : edge, true>(tile + k0 * pitch + r0, pitch,
                                                                     X + (k * edge + k0) * line + c0, line);
          }
          if constexpr (S::halves) {
            if (k0 > 0) sum.for_each([&](int r, int c, W v) { second_sums[(r0 + r) * columns + c] = v; });
            __syncthreads();  // the sums of the second halves are there
            if (k0 == 0) sum.change([&](int r, int c, W& v) { v = v + second_sums[(r0 + r) * columns + c]; });
          }
          if (k0 == 0) sum.for_each([&](int r, int c, W v) { Xi[(r0 + r) * line + c0 + c] = T(v); });
        }
        T* const tile = take_tile();
        if (warp == 0) {
          T v[edge];
          const int left = min(edge, n - i * edge);
          if (!shape.unit && lane < left) tile[lane * pitch + lane] = T(1) / tile[lane * pitch + lane];
          __syncwarp();
          if (lane < columns) {
#pragma unroll
            for (int r = 0; r < edge; ++r) v[r] = conj_if(i == 0 && !conj, Xi[r * line + lane]);
            solve_column<pitch, true>(tile, left, shape.unit, v);
#pragma unroll
            for (int r = 0; r < edge; ++r) Xi[r * line + lane] = v[r];
          }
        }
      }
      copy_wait<0>();
      __syncthreads();  // the solution is there
      for_entries(n, strip_width, x.row_stride == 1, [&](int r, int c) {
        if (c < cols) x(row(r), j0 + c) = conj_if(!conj, X[r * line + c]);
      });
    }
  }
}

template <class T>
void launch_trsm_strips(void* stream, Shape shape, Operand<T> A, Items<T> B, const int* info) {
  const auto in_strips_of = [&]<int columns>() {
    using S = TrsmStrip<T, columns>;
    const dim3 grid(grid_for(B.count), strips_for(B.count, ceil_div(B.cols, index_t(columns))));
    launch(stream, trsm_strip_kernel<T, columns>, grid, S::threads, S::bytes(B.rows), shape, A.items, A.conj, B, info);
  };
  constexpr int narrow = int(trsm_narrow_strip), wide = TrsmShape<T>::edge;
  B.cols <= narrow ? in_strips_of.template operator()<narrow>() : in_strips_of.template operator()<wide>();
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
  template void trifactor::cuda::launch_trsm_strips<T>(void*, Shape, Operand<T>, Items<T>, const int*);             \
  template void trifactor::cuda::launch_lu_solve<T>(void*, Items<const T>, Pivots<const int>, Items<T>, const int*);
