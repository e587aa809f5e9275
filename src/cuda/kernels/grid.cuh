// The matrix of the persistent kernel: cut into tiles, which travel between global memory, shared memory and registers.
#pragma once

#include <cuda/kernels/async.cuh>
#include <cuda/kernels/boxes.cuh>
#include <cuda/kernels/flags.cuh>
#include <cuda/kernels/message.cuh>
#include <cuda/kernels/mma.cuh>
#include <cuda/kernels.hpp>

namespace trifactor::cuda {

/// Nanoseconds, by a clock that all multiprocessors share.
__device__ inline unsigned long long global_time() {
  unsigned long long t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  return t;
}

/// What blocks tell each other, in global memory. Zero at the start, and left so.
struct GridFlags {
  int* ticket;    // the next piece to be taken
  int* finished;  // blocks that are
  int* final;     // of each tile row: its tiles, from the left, that are final, in shares of 8 rows
  int* factored;  // of each tile column: 16-column blocks of its diagonal tile that are final, with their inverses
};

template <class I>
TF_HD constexpr I grid_flag_count(I tiles) {
  return 2 + 2 * (tiles + 1);
}

template <class T>
struct GridShape {
  static constexpr int edge = is_complex<T> ? 32 : 64;  // of a tile
  static constexpr int blocks = edge / 16;              // a diagonal tile is factored in steps of 16 columns
  static constexpr int shares = edge / 8;               // a tile is solved in strips of 8 rows
  static constexpr int threads = 256, warps = threads / 32;
  // Up to so many tile rows the chain's tiles are made in quarters: 0.286 against 0.293 ms at n = 2048 (float), but 0.53
  // against 0.47 at 3000 (double), H200.
  static constexpr int quarters = 32;
  static constexpr int depth = 32;                      // columns that a stage of the left-looking products holds
  // Paddings let a warp read fragments without bank conflicts.
  static constexpr int pad = sizeof(T) == 4 ? 8 : sizeof(T) == 8 ? 4 : 2;
  static constexpr int ld = edge + pad, square_ld = 2 * edge + pad, inverse_ld = 20;
  static constexpr int tile_size = edge * ld, inverses_size = blocks * 16 * inverse_ld;
  static constexpr int shared_size = 2 * 2 * edge * (depth + 4) * 3;  // three stages of take_square
  static constexpr std::size_t bytes = (shared_size + inverses_size) * sizeof(T);
};

/// How the inverses of the 16 x 16 diagonal blocks of a tile lie in shared memory: for tensor cores by rows, side by
/// side, so that a block and its inverse are written alike; else each by columns.
template <class T>
struct InverseShape {
  using Shape = GridShape<T>;
  static constexpr int down = tensor<T> ? Shape::ld : 1, right = tensor<T> ? 1 : Shape::inverse_ld;
  static constexpr int slow = tensor<T> ? Shape::ld : Shape::inverse_ld;  // from one row, or column, to the next
  static constexpr int next = tensor<T> ? 16 : 16 * Shape::inverse_ld;    // from one inverse to the next
  static_assert(16 * Shape::ld <= Shape::inverses_size);
  __device__ static LeftOperand<T> operand(const T* inverses, int b) { return {inverses + b * next, down, right}; }
};

struct Nothing {};

/// The matrix as the kernel sees it. `down`: columns are contiguous, not rows.
template <class T, bool down>
struct Grid {
  using Shape = GridShape<T>;
  static constexpr int edge = Shape::edge, ld = Shape::ld, depth = Shape::depth;

  T* A;
  index_t stride;  // between columns, or rows
  int n;
  bool aligned;  // every column, or row, starts at a multiple of 16 bytes
  bool resets;   // info, to 0
  T* messages;   // tiles on their way to or from the chain
  T* inverses;   // of each 16 x 16 diagonal block, (16, 16) without padding
  GridFlags flags;
  int* info;
  index_t first;  // column of the caller's matrix that is column 0 here
  Mark* marks;    // of the chain's steps, and then of tickets; null unless somebody records
  int band;       // so many columns of squares are worked off together
  bool boxes;     // there is a tensor map
  std::conditional_t<boxed<T>, CUtensorMap, Nothing> map;

  /// By one thread of the block.
  __device__ void mark_begin(int place, int block, int of_edge, int column) const {
    if (marks) marks[place] = {global_time(), 0, block, of_edge, column};
  }
  __device__ void mark_end(int place) const {
    if (marks) marks[place].end = global_time();
  }
  __device__ int tiles() const { return (n + edge - 1) / edge; }
  __device__ T* at(int r, int c) const { return A + (down ? r + c * stride : c + r * stride); }

  /// The part of one of `threads` threads in S := rows [row, row + edge) of columns [col, col + cols), zero outside the
  /// matrix, without waiting. In S the direction that is contiguous here is contiguous, with a pitch.
  template <int cols, int threads = Shape::threads>
  __device__ void fetch(T* S, int pitch, int row, int col, int rank = int(threadIdx.x)) const {
    if (aligned) fetch_by<cols, 16 / int(sizeof(T)), threads>(S, pitch, row, col, rank);
    else fetch_by<cols, 1, threads>(S, pitch, row, col, rank);
  }
  /// The same for columns [first, first + cols) of tile (i, j), which lies in S by columns.
  template <int cols, int threads = Shape::threads>
  __device__ void fetch_columns(T* S, int i, int j, int first, int rank = int(threadIdx.x)) const {
    if constexpr (down) {
      fetch<cols, threads>(S + first * ld, ld, i * edge, j * edge + first, rank);
    } else {  // four neighbours in memory to four threads
      constexpr int rows = min(threads / 4, edge), together = min(threads / rows, cols);
      for (int r = rank / 4 % rows; r < edge; r += rows) {
        const int row = i * edge + r;
#pragma unroll 4
        for (int c = first + rank % 4 + rank / (4 * rows) * 4; c < first + cols; c += together) {
          const bool inside = row < n && j * edge + c < n;
          copy_async<sizeof(T)>(shared_address(S + c * ld + r), inside ? at(row, j * edge + c) : A,
                                inside ? int(sizeof(T)) : 0);
        }
      }
    }
  }
  template <int threads = Shape::threads>
  __device__ void fetch_tile(T* S, int i, int j, int rank = int(threadIdx.x)) const {
    fetch_columns<edge, threads>(S, i, j, 0, rank);
  }
  /// The last two tiles of row i go to the chain without flags. The chain clears what it received. A place serves again two
  /// rows further down: whoever writes there knows of a tile that the chain made final after it had cleared.
  enum Letter { last, diagonal, letters };
  static constexpr int letter_size = edge * edge, messages_size = 2 * letters * letter_size;
  __device__ T* message(Letter letter, int i) const { return messages + (2 * letter + i % 2) * letter_size; }
  __device__ void clear_messages() const {
    for (int t = int(threadIdx.x); t < messages_size; t += Shape::threads) Message<T>::clear(messages + t);
  }
  /// The entry at row r and column c of the tile.
  __device__ void send(Letter letter, int i, int r, int c, T v) const {
    Message<T>::store(message(letter, i) + c * edge + r, v);
  }
  /// The entries at rows r and r + 1; r is even.
  __device__ void send(Letter letter, int i, int r, int c, T v, T below) const {
    Message<T>::store(message(letter, i) + c * edge + r, v, below);
  }
  /// Columns [col, col + 16) of 8 N rows, from a fragment that holds them transposed. By one warp.
  template <int N>
  __device__ void send(Letter letter, int i, int row, int col, const Fragment<T, N>& x) const {
    x.for_each([&](int c, int r, T v) { send(letter, i, row + r, col + c, v); });
  }
  /// The part of one of `threads` threads in S := the tile, which it waits for.
  template <int threads>
  __device__ void receive(Letter letter, int i, T* S, int rank) const {
    using M = Message<T>;
    constexpr int line = edge / M::together, step = threads / line, count = min(edge / step, 16);  // lines are columns
    T *from = message(letter, i) + rank * M::together, *to = S + rank / line * ld + rank % line * M::together;
#pragma unroll 1
    for (int c = 0; c < edge; c += count * step, from += count * step * edge, to += count * step * ld) {
      typename M::Few v[count];
      do {
#pragma unroll
        for (int q = 0; q < count; ++q) v[q] = M::load_few(from + q * step * edge);
      } while (!M::all_solved(v));
#pragma unroll
      for (int q = 0; q < count; ++q) {
        M::clear_few(from + q * step * edge);
        *reinterpret_cast<typename M::Few*>(to + q * step * ld) = v[q];
      }
    }
  }
  __device__ T* inverse(int k, int b) const { return inverses + (index_t(k) * Shape::blocks + b) * 256; }
  /// Inverses [first, first + count) of diagonal tile k.
  __device__ void fetch_inverses(T* S, int k, int first = 0, int count = Shape::blocks) const {
    using Inverse = InverseShape<T>;
    constexpr int width = 16 / int(sizeof(T));
    for (int t = int(threadIdx.x) * width; t < count * 256; t += Shape::threads * width)
      copy_async<16>(shared_address(S + (first + t / 256) * Inverse::next + t % 256 / 16 * Inverse::slow + t % 16),
                     inverse(k, first) + t, 16);
  }

 private:
  template <int cols, int width, int threads>
  __device__ void fetch_by(T* S, int pitch, int row, int col, int rank) const {
    constexpr int line = (down ? edge : cols) / width, step = threads / line, slow = down ? cols : edge;
    const int f = rank % line * width, s = rank / line;
    const T* from = at(row + (down ? f : s), col + (down ? s : f));
    unsigned to = shared_address(S + f + s * pitch);
    const index_t next = step * stride;
    if (row + edge <= n && col + cols <= n) {
#pragma unroll
      for (int t = 0; t < slow; t += step, from += next)
        copy_async<width * int(sizeof(T))>(to + unsigned(t * pitch * int(sizeof(T))), from, width * int(sizeof(T)));
    } else {
      const int fast_inside = min(width, max(0, n - (down ? row : col) - f));
      for (int t = 0; t < slow; t += step, from += next) {
        const int inside = (down ? col : row) + s + t < n ? fast_inside : 0;
        copy_async<width * int(sizeof(T))>(to + unsigned(t * pitch * int(sizeof(T))), inside > 0 ? from : A,
                                           inside * int(sizeof(T)));
      }
    }
  }
};

/// Blocks of edge rows and `depth` columns on their way to the stages of a product, `count` at a time: block t starts
/// at row row_of(t) of the matrix and lies at place_of(t) of a stage. A chunk is asked for in pieces, which a product
/// issues between its steps: all at once, they would hold up everyone.
template <int count, class T, bool down, class RowOf, class PlaceOf>
struct BlockFetch {
  using Shape = GridShape<T>;
  static constexpr int width = 16 / int(sizeof(T)), line = (down ? Shape::edge : Shape::depth) / width;
  static constexpr int step = Shape::threads / line, each = (down ? Shape::depth : Shape::edge) / step;
  static constexpr int pieces = count * each;

  const Grid<T, down>& g;
  int pitch;
  RowOf row_of;
  PlaceOf place_of;
  bool simple;  // aligned, inside the matrix, and between tensor-core products, which leave room for other instructions
  const T* from[count];

  __device__ BlockFetch(std::integral_constant<int, count>, const Grid<T, down>& grid, int pitch_, RowOf rows,
                        PlaceOf places)
      : g(grid), pitch(pitch_), row_of(rows), place_of(places), simple(tensor<T> && grid.aligned) {
    const int f = int(threadIdx.x) % line * width, s = int(threadIdx.x) / line;
#pragma unroll
    for (int t = 0; t < count; ++t) {
      simple = simple && row_of(t) + Shape::edge <= g.n;
      from[t] = g.at(row_of(t) + (down ? f : s), down ? s : f);
    }
  }
  /// Piece q of a chunk, whose own place in the stage starts at `to`.
  __device__ void piece(bool wanted, int q, unsigned to, index_t chunk_offset) const {
    const int t = q / each, part = q % each;
    copy_async_if(wanted, to + unsigned((place_of(t) + part * step * pitch) * int(sizeof(T))),
                  from[t] + chunk_offset + part * (step * g.stride));
  }
  __device__ static index_t chunk_step(const Grid<T, down>& g) { return down ? Shape::depth * g.stride : Shape::depth; }
  __device__ unsigned own_place(const T* stage) const {
    return shared_address(stage + int(threadIdx.x) % line * width + int(threadIdx.x) / line * pitch);
  }
  __device__ void all(T* stage, int chunk) const {
#pragma unroll
    for (int t = 0; t < count; ++t)
      g.template fetch<Shape::depth>(stage + place_of(t), pitch, row_of(t), chunk * Shape::depth);
  }
};

/// Columns [col, col + 16) of 8 N rows go to global memory, from a fragment that holds them transposed. By one warp.
template <class T, bool down, int N>
__device__ void store_fragment(const Grid<T, down>& g, const Fragment<T, N>& x, int row, int col) {
  using F = Fragment<T, N>;
  const int r0 = row + F::lane_col();
  const index_t rs = down ? 1 : g.stride, cs = down ? g.stride : 1;
  T* p = g.at(r0, col + F::lane_row());
  if constexpr (tensor<T> && down && sizeof(T) == 8)  // two rows are 16 bytes
    if (g.aligned && row + 8 * N <= g.n) {
#pragma unroll
      for (int h = 0; h < 4; h += 2, p += 8 * cs)
#pragma unroll
        for (int s = 0; s < N; ++s)
          *reinterpret_cast<EntryVector<T, 2>*>(p + 8 * s) = {{x.get(s, h), x.get(s, h + 1)}};
      return;
    }
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    T* q = p + F::down(e) * cs + F::right(e) * rs;
#pragma unroll
    for (int s = 0; s < N; ++s)
      if (r0 + F::right(e) + 8 * s < g.n) q[8 * s * rs] = x.get(s, e);
  }
}
template <class T, bool down, int N, int B>
__device__ void store_strip(const Grid<T, down>& g, const Fragment<T, N> (&x)[B], int row, int col) {
#pragma unroll
  for (int b = 0; b < B; ++b) store_fragment(g, x[b], row, col + 16 * b);
}

/// The entries of a product at rows from `row` and columns from `col` on, from global memory.
template <class T, bool down, int M>
__device__ void load_product(const Grid<T, down>& g, Product<T, M, down>& sum, int row, int col) {
  const int r0 = row + sum.first_row(), c0 = col + sum.first_col();
  const index_t rs = down ? 1 : g.stride, cs = down ? g.stride : 1;
  const T* p = g.at(r0, c0);
  if (row + M <= g.n && col + M <= g.n)
    sum.visit([&](int i, int e, int r, int c) { sum.set(i, e, p[r * rs + c * cs]); });
  else
    sum.visit([&](int i, int e, int r, int c) {
      sum.set(i, e, r0 + r < g.n && c0 + c < g.n ? p[r * rs + c * cs] : T(0));
    });
}

/// The same for a square of boxes, which lies left of the diagonal.
template <bool down>
__device__ void load_product(const Grid<double, down>& g, BoxProduct<down>& sum, int row, int col) {
  const int r0 = row + sum.first_row(), c0 = col + sum.first_col();
  const index_t rs = down ? 1 : g.stride, cs = down ? g.stride : 1;
  const double* p = g.at(r0, c0);
  if (row + BoxRing<down>::edge <= g.n)
    sum.visit([&](double& v, int r, int c) { v = p[r * rs + c * cs]; });
  else
    sum.visit([&](double& v, int r, int c) { v = r0 + r < g.n ? p[r * rs + c * cs] : 0.0; });
}

}  // namespace trifactor::cuda
