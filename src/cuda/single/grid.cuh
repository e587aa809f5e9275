// The matrix of the persistent kernel: cut into tiles, which travel between global memory, shared memory and registers.
#pragma once

#include <cuda/device/pipeline.cuh>
#include <cuda/single/tma_ring.cuh>
#include <cuda/device/signals.cuh>
#include <cuda/device/product.cuh>
#include <cuda/single/single.hpp>

namespace trifactor::cuda {

/// What blocks tell each other, in global memory. Zero at the start, and left so.
struct GridFlags {
  int* ticket;    // the next piece to be taken
  int* finished;  // blocks that are
  int* final;     // of each tile row: its tiles, from the left, that are final, in shares of 8 rows
  int* factored;  // of each tile column: 16-column blocks of its diagonal tile that are final, with their inverses
  int* sent;      // of each tile row: whether its last tile, and its diagonal tile, went to the chain
};

template <class I>
TF_HD constexpr I grid_flag_count(I tiles) {
  return 2 + 4 * (tiles + 1);
}
template <class I>
TF_HD GridFlags grid_flags(int* ints, I tiles) {
  return {ints, ints + 1, ints + 2, ints + 3 + tiles, ints + 4 + 2 * tiles};
}

template <class T>
struct GridShape {
  static constexpr int edge = is_complex<T> ? 32 : 64;  // of a tile
  static constexpr int blocks = edge / 16;              // a diagonal tile is factored in steps of 16 columns
  static constexpr int shares = edge / 8;               // a tile is solved in strips of 8 rows
  static constexpr int threads = 256, warps = threads / 32;
  static constexpr int depth = 32;  // columns that a stage of the left-looking products holds
  // Paddings let a warp read fragments without bank conflicts.
  static constexpr int pad = sizeof(T) == 4 ? 8 : sizeof(T) == 8 ? 4 : 2;
  static constexpr int ld = edge + pad, macro_tile_ld = 2 * edge + pad;
  static constexpr int tile_size = edge * ld, inverses_size = 16 * ld;
  static constexpr int shared_size = 2 * 2 * edge * (depth + 4) * 3;  // three stages of take_macro_tile
  static constexpr std::size_t bytes = (shared_size + inverses_size) * sizeof(T);
};

/// How the inverses of the 16 x 16 diagonal blocks of a tile lie in shared memory: by rows, side by side, so that a
/// block and its inverse are written alike.
template <class T>
struct InverseShape {
  static constexpr int down = GridShape<T>::ld, right = 1;
  static constexpr int next = 16;  // from one inverse to the next
  __device__ static LeftOperand<Wide<T>> operand(const T* inverses, int b) {
    return {inverses + b * next, down, right};
  }
};

struct Nothing {};

/// The matrix as the kernel sees it. `column_major`: columns are contiguous, else rows.
template <class T, bool column_major>
struct Grid {
  using Shape = GridShape<T>;
  static constexpr int edge = Shape::edge, ld = Shape::ld, depth = Shape::depth;

  T* A;
  index_t stride;  // between columns, or rows
  int n;
  bool aligned;  // every column, or row, starts at a multiple of 16 bytes
  bool resets;   // info, to 0
  T* messages;   // tiles on their way to or from the chain
  T* parts;      // of the diagonal tiles, for those who solve with them
  GridFlags flags;
  int* info;
  index_t first;  // column of the caller's matrix that is column 0 here
  Mark* marks;    // of the chain's steps, and then of tickets; null unless somebody records
  int band;       // so many columns of macro tiles are worked off together
  bool uses_tma;  // there is a tensor map
  std::conditional_t<has_tma<T>, CUtensorMap, Nothing> map;

  /// By one thread of the block.
  __device__ void mark_begin(int place, int block, int of_edge, int column) const {
    if (marks) marks[place] = {global_time(), 0, block, of_edge, column};
  }
  __device__ void mark_end(int place) const {
    if (marks) marks[place].end = global_time();
  }
  __device__ int tiles() const { return (n + edge - 1) / edge; }
  __device__ T* at(int r, int c) const { return A + (column_major ? r + c * stride : c + r * stride); }

  /// The thread's part in S := rows [row, row + edge) of columns [col, col + cols), zero outside the matrix, without
  /// waiting. In S the direction that is contiguous here is contiguous, with a pitch.
  template <int cols>
  __device__ void fetch(T* S, int pitch, int row, int col) const {
    if (aligned)
      fetch_by<cols, vector_of<T>>(S, pitch, row, col);
    else
      fetch_by<cols, 1>(S, pitch, row, col);
  }
  /// The same for tile (i, j), which lies in S by columns.
  __device__ void fetch_tile(T* S, int i, int j) const {
    if constexpr (column_major) {
      fetch<edge>(S, ld, i * edge, j * edge);
    } else {  // eight neighbours in a row to eight threads: few lines of memory, and few conflicts between banks
      constexpr int near = 8, rows = Shape::threads / near;
      const int rank = int(threadIdx.x), c = rank % near;
      const T* from = at(i * edge + rank / near, j * edge + c);
      unsigned to = shared_address(S + c * ld + rank / near);
#pragma unroll 1
      for (int r = rank / near; r < edge; r += rows, from += rows * stride, to += unsigned(rows * int(sizeof(T))))
#pragma unroll
        for (int t = 0; t < edge; t += near) {
          const bool inside = i * edge + r < n && j * edge + c + t < n;
          copy_async<sizeof(T)>(to + unsigned(t * ld * int(sizeof(T))), inside ? from + t : A,
                                inside ? int(sizeof(T)) : 0);
        }
    }
  }
  /// The last two tiles of row i go to the chain through places of their own, by columns whatever the triangle. A place
  /// serves again two rows further down: whoever writes there knows of a tile that the chain made final after it had
  /// read.
  enum Letter { last, diagonal, letters };
  static constexpr int letter_size = edge * edge, messages_size = 2 * letters * letter_size;
  __device__ T* message(Letter letter, int i) const { return messages + (2 * letter + i % 2) * letter_size; }
  __device__ int* sent(Letter letter, int i) const { return flags.sent + letters * i + letter; }
  /// The entry at row r and column c of the tile.
  __device__ void send(Letter letter, int i, int r, int c, T v) const { message(letter, i)[c * edge + r] = v; }
  /// The entries at rows r and r + 1; r is even.
  __device__ void send(Letter letter, int i, int r, int c, T v, T below) const {
    *reinterpret_cast<EntryVector<T, 2>*>(message(letter, i) + c * edge + r) = {{v, below}};
  }
  /// Columns [col, col + 16) of 8 N rows, from a fragment that holds them transposed. By one warp.
  template <class F>
  __device__ void send(Letter letter, int i, int row, int col, const F& x) const {
    x.for_each([&](int c, int r, auto v) { send(letter, i, row + r, col + c, T(v)); });
  }
  /// The tile is there. By all threads of the block that sent it.
  __device__ void send_off(Letter letter, int i) const {
    __syncthreads();  // all has been written
    if (threadIdx.x == 0) store_release(sent(letter, i), 1);
  }
  /// The part of one of `threads` threads, whole warps, in S := the tile. Waits until it has been sent, but not for the
  /// copy. False, and nothing is done, if it has not been sent when give_up() is true.
  template <int threads, class GiveUp>
  __device__ bool receive(Letter letter, int i, T* S, int rank, GiveUp give_up) const {
    constexpr int width = vector_of<T>;
    int there = 0;
    if (rank % 32 == 0)
      while ((there = load_acquire(sent(letter, i))) == 0 && !give_up()) __nanosleep(20);
    if (__shfl_sync(~0u, there, 0) == 0) return false;
    __syncwarp();  // what lane 0 has seen is visible to all
    const T* from = message(letter, i);
#pragma unroll 4
    for (int t = rank * width; t < letter_size; t += threads * width)
      copy_async<16>(shared_address(S + t / edge * ld + t % edge), from + t, 16);
    return true;
  }
  /// Part b of diagonal tile k: the inverse of block (b, b), as it lies in shared memory, and the blocks below it, by
  /// columns; 16 x 16 each and without padding, whatever the triangle.
  static constexpr int parts_size = Shape::blocks * (Shape::blocks + 1) / 2 * 256;
  __device__ static constexpr int part_size(int b) { return (Shape::blocks - b) * 256; }
  __device__ T* part(int k, int b) const {
    return parts + index_t(k) * parts_size + (b * Shape::blocks - b * (b - 1) / 2) * 256;
  }
  /// Where entry t of part b lies in shared memory, of a tile or among the inverses.
  template <class S>
  __device__ static S* part_place(S* L, S* inverses, int b, int t) {
    using Inverse = InverseShape<T>;
    const int block = t / 256, line = t % 256 / 16, e = t % 16;
    return block == 0 ? inverses + b * Inverse::next + line * Inverse::down + e
                      : L + (16 * b + line) * ld + 16 * (b + block) + e;
  }
  __device__ void fetch_part(T* L, T* inverses, int k, int b) const {
    constexpr int width = vector_of<T>;
    for (int t = int(threadIdx.x) * width; t < part_size(b); t += Shape::threads * width)
      copy_async<16>(shared_address(part_place(L, inverses, b, t)), part(k, b) + t, 16);
  }
  __device__ void fetch_parts(T* L, T* inverses, int k) const {
#pragma unroll 1
    for (int b = 0; b < Shape::blocks; ++b) fetch_part(L, inverses, k, b);
  }

 private:
  template <int cols, int width>
  __device__ void fetch_by(T* S, int pitch, int row, int col) const {
    constexpr int line = (column_major ? edge : cols) / width, step = Shape::threads / line;
    constexpr int slow = column_major ? cols : edge;
    const int rank = int(threadIdx.x), f = rank % line * width, s = rank / line;
    const T* from = at(row + (column_major ? f : s), col + (column_major ? s : f));
    unsigned to = shared_address(S + f + s * pitch);
    const index_t next = step * stride;
    if (row + edge <= n && col + cols <= n) {
#pragma unroll
      for (int t = 0; t < slow; t += step, from += next)
        copy_async<width* int(sizeof(T))>(to + unsigned(t * pitch * int(sizeof(T))), from, width * int(sizeof(T)));
    } else {
      const int fast_inside = min(width, max(0, n - (column_major ? row : col) - f));
      for (int t = 0; t < slow; t += step, from += next) {
        const int inside = (column_major ? col : row) + s + t < n ? fast_inside : 0;
        copy_async<width* int(sizeof(T))>(to + unsigned(t * pitch * int(sizeof(T))), inside > 0 ? from : A,
                                          inside * int(sizeof(T)));
      }
    }
  }
};

/// The next ticket.
__device__ inline int draw(int* tickets) {
  __shared__ int ticket;
  if (threadIdx.x == 0) ticket = atomicAdd(tickets, 1);
  __syncthreads();  // the ticket is drawn, and the last piece is done with shared memory
  const int t = ticket;
  __syncthreads();  // and read by all
  return t;
}

/// Blocks of `edge` rows and `depth` columns on their way to the stages of a product, `count` at a time: block t starts
/// at row row_of(t) of the matrix and lies at place_of(t) of a stage. A chunk is asked for in pieces, which a product
/// issues between its steps: all at once, they would hold up everyone.
template <int count, class T, bool column_major, class RowOf, class PlaceOf>
struct BlockFetch {
  using Shape = GridShape<T>;
  static constexpr int rows = Shape::edge;
  static constexpr int width = vector_of<T>, line = (column_major ? rows : Shape::depth) / width;
  static constexpr int step = Shape::threads / line, each = (column_major ? Shape::depth : rows) / step;
  static constexpr int pieces = count * each;

  const Grid<T, column_major>& g;
  int pitch;
  RowOf row_of;
  PlaceOf place_of;
  bool simple;  // aligned and inside the matrix
  const T* from[count];

  __device__ BlockFetch(std::integral_constant<int, count>, const Grid<T, column_major>& grid, int pitch_,
                        RowOf from_row, PlaceOf places)
      : g(grid), pitch(pitch_), row_of(from_row), place_of(places), simple(grid.aligned) {
    const int f = int(threadIdx.x) % line * width, s = int(threadIdx.x) / line;
#pragma unroll
    for (int t = 0; t < count; ++t) {
      simple = simple && row_of(t) + rows <= g.n;
      from[t] = g.at(row_of(t) + (column_major ? f : s), column_major ? s : f);
    }
  }
  /// Piece q of a chunk, whose own place in the stage starts at `to`.
  __device__ void piece(bool wanted, int q, unsigned to, index_t chunk_offset) const {
    const int t = q / each, part = q % each;
    copy_async_if(wanted, to + unsigned((place_of(t) + part * step * pitch) * int(sizeof(T))),
                  from[t] + chunk_offset + part * (step * g.stride));
  }
  __device__ index_t chunk_step() const { return column_major ? Shape::depth * g.stride : Shape::depth; }
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
template <class T, bool column_major, class S, int N>
__device__ void store_fragment(const Grid<T, column_major>& g, const Fragment<S, N>& x, int row, int col) {
  using F = Fragment<S, N>;
  const int r0 = row + F::lane_col();
  const index_t rs = column_major ? 1 : g.stride, cs = column_major ? g.stride : 1;
  T* p = g.at(r0, col + F::lane_row());
  if constexpr (column_major && sizeof(T) == 8)  // two rows are 16 bytes
    if (g.aligned && row + 8 * N <= g.n) {
#pragma unroll
      for (int h = 0; h < 4; h += 2, p += 8 * cs)
#pragma unroll
        for (int s = 0; s < N; ++s)
          *reinterpret_cast<EntryVector<T, 2>*>(p + 8 * s) = {{T(x.get(s, h)), T(x.get(s, h + 1))}};
      return;
    }
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    T* q = p + F::down(e) * cs + F::right(e) * rs;
#pragma unroll
    for (int s = 0; s < N; ++s)
      if (r0 + F::right(e) + 8 * s < g.n) q[8 * s * rs] = T(x.get(s, e));
  }
}
template <class T, bool column_major, class S, int N, int B>
__device__ void store_strip(const Grid<T, column_major>& g, const Fragment<S, N> (&x)[B], int row, int col) {
#pragma unroll
  for (int b = 0; b < B; ++b) store_fragment(g, x[b], row, col + 16 * b);
}

/// A product of tiles, or of macro tiles, which want throughput.
template <class T, int M, bool column_major>
using GridProduct = Product<T, M, column_major, std::conditional_t<M == 128, T, Wide<T>>>;

/// The entries of a product at rows from `row` and columns from `col` on, from global memory.
template <class T, bool column_major, int M>
__device__ void load_product(const Grid<T, column_major>& g, GridProduct<T, M, column_major>& sum, int row, int col) {
  const int r0 = row + sum.first_row(), c0 = col + sum.first_col();
  const index_t rs = column_major ? 1 : g.stride, cs = column_major ? g.stride : 1;
  const T* p = g.at(r0, c0);
  if (row + M <= g.n && col + M <= g.n)
    sum.visit([&](int i, int e, int r, int c) { sum.set(i, e, p[r * rs + c * cs]); });
  else
    sum.visit(
        [&](int i, int e, int r, int c) { sum.set(i, e, r0 + r < g.n && c0 + c < g.n ? p[r * rs + c * cs] : T(0)); });
}

/// The same for a macro tile, which lies left of the diagonal.
template <bool column_major>
__device__ void load_product(const Grid<double, column_major>& g, TmaProduct<column_major>& sum, int row, int col) {
  const int r0 = row + sum.first_row(), c0 = col + sum.first_col();
  const index_t rs = column_major ? 1 : g.stride, cs = column_major ? g.stride : 1;
  const double* p = g.at(r0, c0);
  if (row + TmaRing<column_major>::edge <= g.n)
    sum.visit([&](double& v, int r, int c) { v = p[r * rs + c * cs]; });
  else
    sum.visit([&](double& v, int r, int c) { v = r0 + r < g.n ? p[r * rs + c * cs] : 0.0; });
}

}  // namespace trifactor::cuda
