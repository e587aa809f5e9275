// Cholesky of one matrix in one launch: a persistent grid works off its tiles in dependency order.
//
// The matrix is cut into square tiles. Block 0 owns the chain that bounds the time of all but large ones: it factors
// diagonal tile k, solves tile (k+1, k) with it and updates diagonal tile k+1, all in shared memory. The other blocks
// draw tickets. A ticket is a tile, left-looking: the products of the tiles to its left are subtracted as soon as those
// are final; then it waits for the diagonal tile of its column, is solved with it and becomes final. Or it is a square
// of 2 x 2 tiles, which needs half the traffic for each product: for large matrices, which have enough of them.
// Every wait is for a piece with an earlier ticket or for the chain, and the launch is cooperative, so that all blocks
// are resident: a hang is impossible.
#pragma once

#include <cuda/kernels/async.cuh>
#include <cuda/kernels/flags.cuh>
#include <cuda/kernels/launch.cuh>
#include <cuda/kernels/mma.cuh>

namespace trifactor::cuda {

/// What blocks tell each other, in global memory, zero at the start.
struct GridFlags {
  int* ticket;    // the next piece to be taken
  int* final;     // of each tile row: its tiles, from the left, that are final, in shares of 8 rows
  int* factored;  // of each tile column: 16-column blocks of its diagonal tile that are final, with their inverses
  int* handed;    // of each tile row: warps that have handed the last tile before the diagonal to the chain
  int* handed_diagonal;
};

template <class T>
struct GridShape {
  static constexpr int edge = is_complex<T> ? 32 : 64;  // of a tile
  static constexpr int blocks = edge / 16;              // a diagonal tile is factored in steps of 16 columns
  static constexpr int shares = edge / 8;               // a tile is solved in strips of 8 rows
  static constexpr int threads = 256, warps = threads / 32;
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

__device__ inline void copy_async_if(bool wanted, unsigned shared, const void* global) {  // 16 bytes, without a branch
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %2, 0; @p cp.async.cg.shared.global [%0], [%1], 16; }" ::"r"(shared),
               "l"(global), "r"(int(wanted))
               : "memory");
}
/// Waits until at most `pending` of the latest groups are under way; 0 to 4.
__device__ inline void copy_wait(int pending) {
  switch (pending) {
    case 0: asm volatile("cp.async.wait_group 0;" ::: "memory"); break;
    case 1: asm volatile("cp.async.wait_group 1;" ::: "memory"); break;
    case 2: asm volatile("cp.async.wait_group 2;" ::: "memory"); break;
    case 3: asm volatile("cp.async.wait_group 3;" ::: "memory"); break;
    default: asm volatile("cp.async.wait_group 4;" ::: "memory"); break;
  }
}

/// The matrix as the kernel sees it. `down`: columns are contiguous, not rows.
template <class T, bool down>
struct Grid {
  using Shape = GridShape<T>;
  static constexpr int edge = Shape::edge, ld = Shape::ld, depth = Shape::depth;

  T* A;
  index_t stride;  // between columns, or rows
  int n;
  bool aligned;  // every column, or row, starts at a multiple of 16 bytes
  bool squares;  // pieces are 2 x 2 tiles where they can be
  bool resets;   // info, to 0
  T* inverses;   // of each 16 x 16 diagonal block, (16, 16) without padding
  GridFlags flags;
  int* info;
  index_t first;

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

/// Columns [col, col + 16 B) of 8 N rows go to global memory, from fragments that hold them transposed. By one warp.
template <class T, bool down, int N, int B>
__device__ void store_strip(const Grid<T, down>& g, const Fragment<T, N> (&x)[B], int row, int col) {
  using F = Fragment<T, N>;
  const int r0 = row + F::lane_col();
  const index_t rs = down ? 1 : g.stride, cs = down ? g.stride : 1;
  T* p = g.at(r0, col + F::lane_row());
  if constexpr (tensor<T> && down && sizeof(T) == 8)  // two rows are 16 bytes
    if (g.aligned && row + 8 * N <= g.n) {
#pragma unroll
      for (int b = 0; b < B; ++b)
#pragma unroll
        for (int h = 0; h < 4; h += 2, p += 8 * cs)
#pragma unroll
          for (int s = 0; s < N; ++s)
            *reinterpret_cast<EntryVector<T, 2>*>(p + 8 * s) = {{x[b].get(s, h), x[b].get(s, h + 1)}};
      return;
    }
#pragma unroll
  for (int b = 0; b < B; ++b) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      T* q = p + (16 * b + F::down(e)) * cs + F::right(e) * rs;
#pragma unroll
      for (int s = 0; s < N; ++s)
        if (r0 + F::right(e) + 8 * s < g.n) q[8 * s * rs] = x[b].get(s, e);
    }
  }
}

/// The entries of a product at rows from `row` and columns from `col` on, from or to global memory.
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
/// Of the lower triangle of the matrix.
template <class T, bool down, int M>
__device__ void store_product(const Grid<T, down>& g, const Product<T, M, down>& sum, int row, int col) {
  const int r0 = row + sum.first_row(), c0 = col + sum.first_col();
  const index_t rs = down ? 1 : g.stride, cs = down ? g.stride : 1;
  T* p = g.at(r0, c0);
  if (row + M <= g.n && col + M <= row)
    sum.visit([&](int i, int e, int r, int c) { p[r * rs + c * cs] = sum.get(i, e); });
  else
    sum.visit([&](int i, int e, int r, int c) {
      if (r0 + r < g.n && c0 + c <= r0 + r) p[r * rs + c * cs] = sum.get(i, e);
    });
}

/// What factor_block needs beside the block: the identity, with the pitch of a tile, and places to send things around.
template <class T>
struct FactorScratch {
  using Shape = GridShape<T>;
  static constexpr int size = 16 * Shape::ld + 80;
  T* unit;
  __device__ explicit FactorScratch(T* p) : unit(p) {}
  __device__ T* column(int c) const { return unit + 16 * Shape::ld + c % 2 * 20; }
  __device__ T* pivots() const { return unit + 16 * Shape::ld + 40; }
  __device__ T* roots() const { return unit + 16 * Shape::ld + 60; }
  __device__ void fill() const {
    for (int t = int(threadIdx.x); t < 16 * Shape::ld; t += Shape::threads) unit[t] = T(t / Shape::ld == t % Shape::ld);
  }
};

/// Factors the 16 x 16 block at D and its inverse by one warp. Lanes 0-15 hold a row of the block each; lanes 16-31
/// hold the rows of the identity below it, which the same column operations turn into L^-H. Columns stay unscaled until
/// the end, so that the time is that of one reciprocal after the other: every lane computes the next pivot for itself
/// from what was sent around meanwhile. A single warp is bound by the number of its instructions, too: the strict upper
/// triangle is carried along as garbage. Returns the first failed column + 1, or 0; what follows it is then garbage.
/// Without `careful`, -1 where a pivot is not of a middling size, and D is as it was: squares and reciprocals may have
/// overflowed.
template <bool careful, class T>
__device__ __forceinline__ int factor_block(T* D, T* inverse, FactorScratch<T> scratch) {
  using Shape = GridShape<T>;
  using R = Real<T>;
  const int lane = int(threadIdx.x) % 32, row = lane % 16;
  const bool own = lane < 16;
  T a[16];
  const T* from = (own ? D : scratch.unit) + row;
#pragma unroll
  for (int c = 0; c < 16; ++c) a[c] = from[c * Shape::ld];
  // Column c before it is scaled goes around, with the diagonal entry of the next one; two places save a barrier.
  T column[16];
  T next = T(0);  // the entry of the column that the next pivot needs
  R corner = R(0);
  const auto send = [&](int c) {
    T* raw = scratch.column(c);
    if (own) raw[row] = a[c];
    if (c < 15 && lane == c + 1) raw[16] = a[c < 15 ? c + 1 : c];
    __syncwarp();  // the column is visible
#pragma unroll
    for (int q = c + 1; q < 16; ++q) column[q] = raw[q];
    if (c < 15) {
      corner = real(raw[16]);
      next = column[c < 15 ? c + 1 : c];
    }
  };
  R d = real(D[0]);  // the pivot
  R y = careful ? R(1) : rough_reciprocal(d);
  send(0);
#pragma unroll
  for (int c = 0; c < 16; ++c) {
    if (lane == 0) scratch.pivots()[c] = T(d);
    T t, before[16];
    if constexpr (careful) {  // a - t conj(s) with t and s divided by sqrt(d), since 1 / d may overflow
      const R scale = reciprocal_sqrt(d);
      t = a[c] * scale;
#pragma unroll
      for (int q = c + 1; q < 16; ++q) before[q] = column[q] * scale;
      if (c < 15) d = corner - real((next * scale) * conj(next * scale));
    } else {  // t divided by d: 1 / d = y (1 + p), and the products with y do not wait for p
      // |next|^2 / d; the square of a float overflows too soon to be computed first, as it is of a double to save time.
      const R sy = sizeof(R) == 4 ? real((next * y) * conj(next)) : real(next * conj(next)) * y;
      const R p = reciprocal_correction(d, y), rest = corner - sy;
      const T ay = a[c] * y;
      d = rest - sy * p;
      y = rough_reciprocal(d);  // of the next column: its latency passes while this column is sent around
      t = ay + ay * p;
#pragma unroll
      for (int q = c + 1; q < 16; ++q) before[q] = column[q];
    }
    if (c < 15) {
      // The two columns that are wanted at once come first.
#pragma unroll
      for (int q = c + 1; q < 16 && q < c + 3; ++q) a[q] = minus_product(a[q], t, conj(before[q]));
      send(c + 1);
    }
#pragma unroll
    for (int q = c + 3; q < 16; ++q) a[q] = minus_product(a[q], t, conj(before[q]));
  }
  __syncwarp();  // the pivots are visible; every lane judges one
  const R mine = real(scratch.pivots()[row]);
  constexpr R least = sizeof(R) == 4 ? R(1e-30) : R(1e-100), most = sizeof(R) == 4 ? R(1e37) : R(1e100);
  if (!careful && __any_sync(0xffffffffu, !(mine >= least && mine <= most))) return -1;
  const unsigned bad = __ballot_sync(0xffffffffu, !good_pivot(mine));
  const R root = careful ? reciprocal_sqrt(mine) : pivot_scale(mine);
  if (own) scratch.roots()[row] = T(root);
  __syncwarp();  // the scales are visible
  T* to = own ? D + row : inverse + row * InverseShape<T>::right;
  const int step = tensor<T> || own ? Shape::ld : InverseShape<T>::down;
#pragma unroll
  for (int c = 0; c < 16; ++c) {
    T v = a[c] * real(scratch.roots()[c]);
    if constexpr (is_complex<T>) v = own ? (c == row ? T(real(v)) : v) : conj(v);
    to[c * step] = v;
  }
  return __ffs(int(bad & 0xffffu));
}

/// Apart, so that its registers are not held in the usual case.
template <class T>
__device__ __noinline__ int factor_block_carefully(T* D, T* inverse, FactorScratch<T> scratch) {
  return factor_block<true>(D, inverse, scratch);
}

/// X := X L^-H for 8 rows and 16 columns of X by one warp, with the inverse of L.
template <class T>
__device__ void solve_block(T* X, LeftOperand<T> inverse) {
  using Shape = GridShape<T>;
  Fragment<T, 1> f;  // transposed
  f.clear();
  f.template subtract<true>(inverse, X, Shape::ld);
  __syncwarp();  // everyone has read the block
  f.for_each([&](int c, int r, T v) { X[c * Shape::ld + r] = -v; });
}

/// C -= A B^H for blocks of 16 x 16, with A and B `depth` columns wide, by one warp.
template <class T, int depth>
__device__ void update_block(T* C, const T* A, const T* B) {
  constexpr int ld = GridShape<T>::ld;
  Fragment<T, 2> f;
  f.fill([&](int r, int c) { return C[c * ld + r]; });
  f.template subtract<depth, false>(A, ld, B, ld);
  f.for_each([&](int r, int c, T v) { C[c * ld + r] = v; });
}

/// 8 N rows of a tile X in the hands of one warp, to be solved: X := X L^-H with a diagonal tile L and the inverses of
/// its 16 x 16 diagonal blocks. X lies by columns in shared memory.
template <class T, int N>
struct Strip {
  using Shape = GridShape<T>;
  Fragment<T, N> x[Shape::blocks];  // X transposed
  T* X;
  int ldx;

  __device__ Strip(T* X_, int ldx_) : X(X_), ldx(ldx_) {
#pragma unroll
    for (int b = 0; b < Shape::blocks; ++b) x[b].fill([&](int c, int r) { return X[(16 * b + c) * ldx + r]; });
  }
  /// Solves columns [16 b, 16 b + 16), here and in X, and subtracts what they bring from those to the right.
  __device__ void solve(int b, const T* L, const T* inverses) {
    T* Xb = X + 16 * b * ldx;
    const LeftOperand<T> own = InverseShape<T>::operand(inverses, b);  // loaded ahead of the barriers
    const T* Lb = L + 16 * b * (Shape::ld + 1);
    const auto operand = [&](int i) { return LeftOperand<T>(Lb + 16 * min(i, Shape::blocks - 1 - b), 1, Shape::ld); };
    const LeftOperand<T> below[3] = {operand(1), operand(2), operand(3)};
    x[b].for_each([&](int c, int r, T v) { Xb[c * ldx + r] = v; });
    __syncwarp();  // the columns are up to date
    Fragment<T, N> f;
    f.clear();
    f.template subtract<true>(own, Xb, ldx);
    f.negate();
    x[b] = f;
    __syncwarp();  // everyone has read them
    f.for_each([&](int c, int r, T v) { Xb[c * ldx + r] = v; });
    __syncwarp();  // the solution is there
#pragma unroll
    for (int i = 1; i < Shape::blocks; ++i)
      if (b + i < Shape::blocks) x[b + i].template subtract<true>(below[i - 1], Xb, ldx);
  }
  __device__ void solve(const T* L, const T* inverses) {
#pragma unroll
    for (int b = 0; b < Shape::blocks; ++b) solve(b, L, inverses);
  }
};

/// Columns [16 b, 16 b + 16) of the factored diagonal tile k and their inverse go to global memory and are made known.
/// By one warp.
template <class T, bool down>
__device__ void publish(const Grid<T, down>& g, const T* P, const T* inverses, int k, int b) {
  using Shape = GridShape<T>;
  using Inverse = InverseShape<T>;
  const int lane = int(threadIdx.x) % 32, first = k * Shape::edge;
  const T* from = inverses + b * Inverse::next + lane / 16 * Inverse::slow + lane % 16;
  T v[16];
#pragma unroll
  for (int t = 0; t < 8; ++t) v[t] = from[2 * t * Inverse::slow];
#pragma unroll
  for (int t = 0; t < 8; ++t) g.inverse(k, b)[lane + 32 * t] = v[t];
  if constexpr (down) {  // a row to a lane
    for (int r = 16 * b + lane; r < Shape::edge; r += 32) {
      T* to = g.at(first + r, first + 16 * b);
      const int columns = first + r < g.n ? r - 16 * b + 1 : 0;
#pragma unroll
      for (int t = 0; t < 16; ++t) v[t] = P[(16 * b + t) * Shape::ld + r];
#pragma unroll
      for (int t = 0; t < 16; ++t, to += g.stride)
        if (t < columns) *to = v[t];
    }
  } else {  // a column to a lane
    const int c = 16 * b + lane % 16;
    for (int r = 16 * b + lane / 16; r < Shape::edge; r += 16) {
      T* to = g.at(first + r, first + c);
#pragma unroll
      for (int t = 0; t < 8; ++t) v[t] = P[c * Shape::ld + min(r + 2 * t, Shape::edge - 1)];
#pragma unroll
      for (int t = 0; t < 8; ++t, to += 2 * g.stride)
        if (c <= r + 2 * t && r + 2 * t < Shape::edge && first + r + 2 * t < g.n) *to = v[t];
    }
  }
  __syncwarp();  // all lanes have written
  if (lane == 0) store_release(g.flags.factored + k, b + 1);
}

/// The chain. Tiles in shared memory: P is (k, k), X is (k+1, k), D is (k+1, k+1). Warp 0 factors while others update,
/// some fetch the next tiles and warp 7 makes known what is final. Nobody competes with warp 0 in its part of
/// the multiprocessor, so that warp 4 does next to nothing.
template <class T, bool down>
__device__ __forceinline__ void factor_chain(const Grid<T, down>& g, T* shared, T* inverses) {
  using Shape = GridShape<T>;
  constexpr int ld = Shape::ld, blocks = Shape::blocks, edge = Shape::edge, strips_each = edge / 32;
  static_assert(3 * Shape::tile_size + FactorScratch<T>::size <= Shape::shared_size);
  __shared__ int arrived[2];  // warps that have handed tile (k+1, k) over, as seen in step b, at b % 2
  T *P = shared, *X = P + Shape::tile_size, *D = X + Shape::tile_size;
  const FactorScratch<T> scratch(D + Shape::tile_size);
  const int tiles = g.tiles(), rank = int(threadIdx.x), warp = rank / 32, lane = rank % 32;
  const bool asks = warp == 2 || warp == 3 || warp == 5 || warp == 6;  // for X; warps 5 and 6 for D
  const auto complete = [&](T* S, int k) {  // beyond the last column lies the identity
    const int r = g.n - k * edge + rank;
    if (r < edge) S[r * (ld + 1)] = T(1);
  };
  if (g.resets && rank == 0) *g.info = 0;
  scratch.fill();
  g.fetch_tile(P, 0, 0);
  if (tiles > 1) g.fetch_tile(X, 1, 0);
  copy_commit();
  copy_wait<0>();
  __syncthreads();  // the first tiles are there
  complete(P, 0);
  __syncthreads();  // with the diagonal
  for (int k = 0; k < tiles; ++k) {
    const bool more = k + 1 < tiles;
    bool asked = k == 0 || !more;  // for tile (k+1, k)
    int failed = 0;
    for (int b = 0; b < blocks; ++b) {
      T* B = P + 16 * b * (ld + 1);  // block (b, b)
      T* Z = B - 16 * ld;            // (b, b-1), solved
      T* inverse = inverses + b * InverseShape<T>::next;
      const auto from_x = [&](int i, int j) {
        update_block<T, edge>(P + 16 * i + 16 * j * ld, X + 16 * i, X + 16 * j);
      };
      const auto from_z = [&](int i, int j) { update_block<T, 16>(B + 16 * i + 16 * j * ld, Z + 16 * i, Z + 16 * j); };
      const bool ask = b > 1 && !asked && arrived[(b + 1) % 2] == Shape::warps;  // the old one is free then
      asked = asked || ask;
      if (warp == 0) {
        if (b > 0) from_z(0, 0);
        else if (k > 0) from_x(0, 0);
        __syncwarp();  // the block is up to date
        int at = factor_block<false>(B, inverse, scratch);
        if (at < 0) at = factor_block_carefully(B, inverse, scratch);
        if (at != 0 && failed == 0) failed = 16 * b + at;
      } else if (warp == 4) {
        if (lane == 0 && b == 0 && k > 0) add_release(g.flags.final + k, Shape::shares);  // tile (k, k-1)
      } else {
        if (warp == 7 && b > 0) publish(g, P, inverses, k, b - 1);
        if (asks && ask) g.template fetch_tile<128>(X, k + 1, k, rank - (warp < 4 ? 2 : 3) * 32), copy_commit();
        // Not warp 4, which shares the part of the multiprocessor that warp 0 runs in: tensor-core products there would
        // hold up its arithmetic tenfold. Not warp 7, which waits for memory. What the old X brings to columns that are
        // not wanted yet is subtracted one step later.
        const int part = warp < 4 ? warp - 1 : warp - 2;
        if (part < 5)
          for (int i = 1, block = 0; i < blocks - b; ++i)
            for (int j = 0; j <= i; ++j) {
              const bool at_once = j == 0 || i == 1;
              if (b == 0 && k > 0 && at_once && block++ % 5 == part) from_x(i, j);
              if (b > 0 && block++ % 5 == part) {
                if (b == 1 && k > 0) from_x(i + 1, j + 1), __syncwarp();
                from_z(i, j);
              }
            }
        if (warp == 5 && lane == 0 && !asked) arrived[b % 2] = load_acquire(g.flags.handed + k + 1);
      }
      __syncthreads();  // block (b, b) is factored, the others are up to date
      const int strips = 2 * (blocks - 1 - b);
      if (strips == 0) break;
      if (warp < strips) solve_block(B + 16 + 8 * warp, InverseShape<T>::operand(inverses, b));
      __syncthreads();  // its columns are solved
    }
    if (failed != 0 && rank == 0 && *g.info == 0) *g.info = int(g.first + index_t(k) * edge) + failed;
    // Tiles may be waited for only when tile k is known: who hands them over may need it.
    const bool wait = !asked && arrived[(blocks + 1) % 2] != Shape::warps;
    if (wait || !more) {
      if (warp == 7) publish(g, P, inverses, k, blocks - 1);
      if (!more) break;
      if (warp == 0) wait_for_all(g.flags.handed + k + 1, Shape::warps);
      __syncthreads();  // tile (k+1, k) is there to be fetched
    }
    if (!asked) g.fetch_tile(X, k + 1, k), copy_commit();
    copy_wait<0>();
    __syncthreads();  // it is here
    if (warp == 7) {
      if (!wait) publish(g, P, inverses, k, blocks - 1);
    } else if (warp < 4) {
      const int row = 8 * strips_each * warp;
      Strip<T, strips_each> strip(X + row, ld);
      strip.solve(P, inverses);
      store_strip(g, strip.x, (k + 1) * edge + row, k * edge);
    } else if (asks) {
      if (k > 0) wait_for_all(g.flags.handed_diagonal + k + 1, Shape::warps);
      g.template fetch_tile<64>(D, k + 1, k + 1, rank - 5 * 32);
      copy_commit();
      copy_wait<0>();
    }
    __syncthreads();  // tile (k+1, k) is solved, tile (k+1, k+1) is here
    complete(D, k + 1);
    T* t = P;
    P = D, D = t;
    if (g.n < (k + 2) * edge) __syncthreads();  // and complete
  }
}

/// The left-looking part of a piece: columns [0, chunks * depth) pass through `stages` buffers of `size` entries each.
/// use(buffer, beside) multiplies and calls beside(step) `steps` times meanwhile. row_of(lane) names the tile rows that
/// are fetched: the columns of a chunk must be final in all of them.
template <int stages, int steps, class Fetch, class T, class Use, class RowOf>
__device__ void stream_columns(const Fetch& fetch, int chunks, T* shared, int size, Use use, RowOf row_of) {
  using Shape = GridShape<T>;
  constexpr int pieces = Fetch::pieces;
  __shared__ int seen[2];  // by warp 0; two places, so that all have read one before it is written again
  const int rank = int(threadIdx.x);
  int looks = 0, ready = 0, fetched = 0;  // ready: so many tiles from the left are final in every row
  const int* of_lane = fetch.g.flags.final + row_of(rank % 32);
  const auto look = [&](int wanted) {
    if (rank < 32) {
      const int least = wait_for_all(of_lane, wanted * Shape::shares) / Shape::shares;
      if (rank == 0) seen[looks % 2] = least;
    }
    __syncthreads();  // warp 0 has looked
    ready = seen[looks++ % 2];
  };
  const auto tile_of = [](int chunk) { return chunk * Shape::depth / Shape::edge; };
  const auto buffer = [&](int chunk) { return shared + chunk % stages * size; };
  for (int c = 0; c < chunks; ++c) {
    if (fetched == c && tile_of(c) >= ready) look(tile_of(c) + 1);
    while (fetched < chunks && fetched < c + stages - 1 && (fetched == c || c == 0) && tile_of(fetched) < ready)
      fetch.all(buffer(fetched), fetched), copy_commit(), ++fetched;
    copy_wait(fetched - 1 - c);
    __syncthreads();  // chunk c is there, and everyone is done with the one before
    const bool wanted = fetched < chunks && fetched < c + stages, there = wanted && tile_of(fetched) < ready;
    if (there && !fetch.simple) fetch.all(buffer(fetched), fetched);
    const bool in_pieces = there && fetch.simple;
    const unsigned to = fetch.own_place(buffer(fetched));
    const index_t offset = fetched * Fetch::chunk_step(fetch.g);
    use(buffer(c), [&](int step) {
      if constexpr (tensor<T>)
#pragma unroll
        for (int q = step * pieces / steps; q < (step + 1) * pieces / steps; ++q) fetch.piece(in_pieces, q, to, offset);
    });
    if (there) copy_commit(), ++fetched;
    else if (wanted) look(0);  // without waiting
  }
  __syncthreads();  // the buffers are free
}

/// Tile (i, j). The two that the chain takes over, (i, i-1) and (i, i), are handed to it as they are before the solve,
/// and the latter before the update with the former; any other is solved and becomes final.
template <class T, bool down>
__device__ __forceinline__ void take_tile(const Grid<T, down>& g, int i, int j, T* shared, T* inverses) {
  using Shape = GridShape<T>;
  constexpr int edge = Shape::edge, depth = Shape::depth;
  using Stage = Layout<down, down ? Shape::ld : depth + 4>;
  constexpr int block = Stage::pitch * (down ? depth : edge), stages = 6;
  static_assert(stages * 2 * block <= Shape::shared_size);
  const int rank = int(threadIdx.x), warp = rank / 32;
  Product<T, edge, down> sum;
  load_product<T, down, edge>(g, sum, i * edge, j * edge);
  const BlockFetch fetch(
      std::integral_constant<int, 2>{}, g, Stage::pitch, [&](int t) { return (t == 0 ? i : j) * edge; },
      [&](int t) { return t * block; });
  stream_columns<stages, depth / 4>(
      fetch, (i == j ? j - 1 : j) * edge / depth, shared, 2 * block,
      [&](const T* S, auto beside) { sum.template subtract<depth>(S, S + block, Stage{}, beside); },
      [&](int lane) { return lane == 0 ? i : j; });
  if (j >= i - 1) {
    store_product(g, sum, i * edge, j * edge);
    __syncwarp();  // all lanes have written
    if (rank % 32 == 0) add_release((i == j ? g.flags.handed_diagonal : g.flags.handed) + i, 1);
    return;
  }
  T *X = shared, *L = X + Shape::tile_size;
  sum.for_each([&](int r, int c, T v) { X[c * Shape::ld + r] = v; });
  __syncthreads();  // X is complete
  Strip<T, 1> strip(X + 8 * warp % edge, Shape::ld);
#pragma unroll
  for (int b = 0; b < Shape::blocks; ++b) {  // at the heels of the chain
    if (rank == 0) wait_for(g.flags.factored + j, b + 1);
    __syncthreads();  // columns of the diagonal tile are final
    g.template fetch_columns<16>(L, j, j, 16 * b), g.fetch_inverses(inverses, j, b, 1), copy_commit();
    copy_wait<0>();
    __syncthreads();  // they are here
    if (warp < Shape::shares) strip.solve(b, L, inverses);
  }
  if (warp < Shape::shares) store_strip(g, strip.x, i * edge + 8 * warp, j * edge);
  __syncthreads();  // it is solved
  if (rank == 0) add_release(g.flags.final + i, Shape::shares);
}

/// Tiles (2 I, 2 J) to (2 I + 1, 2 J + 1). Next to the diagonal, the one that the chain takes over is handed to it.
template <class T, bool down>
__device__ __forceinline__ void take_square(const Grid<T, down>& g, int I, int J, T* shared, T* inverses) {
  using Shape = GridShape<T>;
  constexpr int edge = Shape::edge, depth = Shape::depth, tile = Shape::tile_size, ld = Shape::square_ld;
  using Stage = Layout<down, down ? ld : depth + 4>;
  constexpr int block = Stage::pitch * (down ? depth : 2 * edge), half = edge * (down ? 1 : Stage::pitch), stages = 3;
  constexpr int strips = Shape::shares * 2 / Shape::warps;  // of 8 rows, to each warp
  static_assert(stages * 2 * block <= Shape::shared_size && 2 * edge * ld + 2 * tile <= Shape::shared_size);
  const int rank = int(threadIdx.x), warp = rank / 32, i = 2 * I, j = 2 * J;
  T* X = shared;  // (2 edge, 2 edge)
  {
    Product<T, 2 * edge, down> sum;
    load_product<T, down, 2 * edge>(g, sum, i * edge, j * edge);
    const BlockFetch fetch(
        std::integral_constant<int, 4>{}, g, Stage::pitch, [&](int t) { return ((t < 2 ? i : j) + t % 2) * edge; },
        [&](int t) { return t / 2 * block + t % 2 * half; });
    stream_columns<stages, depth / 4>(
        fetch, j * edge / depth, shared, 2 * block,
        [&](const T* S, auto beside) { sum.template subtract<depth>(S, S + block, Stage{}, beside); },
        [&](int lane) { return lane < 2 ? min(i + lane, g.tiles() - 1) : j + lane % 2; });
    sum.for_each([&](int r, int c, T v) { X[c * ld + r] = v; });
  }
  T *L = X + 2 * edge * ld, *below = L + tile;  // a diagonal tile, and tile (j+1, j)
  T *left = X + 8 * strips * warp, *right = left + edge * ld;  // this warp's rows of both tile columns
  const int row = i * edge + 8 * strips * warp;
  const bool near = I == J + 1, upper = warp < Shape::warps / 2;  // upper: rows of tile row i
  const auto finish = [&](T* mine, int column) {
    Strip<T, strips> strip(mine, ld);
    strip.solve(L, inverses);
    store_strip(g, strip.x, row, column * edge);
  };
  if (rank == 0) wait_for(g.flags.factored + j, Shape::blocks);
  __syncthreads();  // the diagonal tile is final, and X is complete
  g.fetch_tile(L, j, j), g.fetch_inverses(inverses, j), copy_commit();
  copy_wait<0>();
  __syncthreads();  // it is here
  finish(left, j);
  if (rank == 0) wait_for(g.flags.final + j + 1, (j + 1) * Shape::shares);
  __syncthreads();  // the left column is solved, and tile (j+1, j) is final
  g.fetch_tile(below, j + 1, j), copy_commit();
  const auto release = [&](int first) {  // the tiles of a column, of rows that may not exist, too
    if (warp == Shape::warps - 1 && rank % 32 >= first && rank % 32 < 2)
      add_release(g.flags.final + i + rank % 32, Shape::shares);
  };
  copy_wait<0>();
  __syncthreads();  // it is here
  release(0);
  Fragment<T, strips> x[Shape::blocks];  // the right column, less what the left one brings
#pragma unroll
  for (int b = 0; b < Shape::blocks; ++b) {
    x[b].fill([&](int c, int r) { return right[(16 * b + c) * ld + r]; });
    x[b].template subtract<edge, true>(below + 16 * b, Shape::ld, left, ld);
    x[b].for_each([&](int c, int r, T v) { right[(16 * b + c) * ld + r] = v; });
  }
  if (near && upper) {  // tile (i, i-1) is handed to the chain
    store_strip(g, x, row, (j + 1) * edge);
    __syncwarp();  // all lanes have written
    if (rank % 32 == 0) add_release(g.flags.handed + i, 2);
  }
  if (rank == 0) wait_for(g.flags.factored + j + 1, Shape::blocks);
  __syncthreads();  // the second diagonal tile is final, the first is used
  g.fetch_tile(L, j + 1, j + 1), g.fetch_inverses(inverses, j + 1), copy_commit();
  copy_wait<0>();
  __syncthreads();  // it is here
  if (!near || !upper) finish(right, j + 1);
  __syncthreads();  // the right column is solved
  release(near ? 1 : 0);
}

template <class T, bool down>
__global__ void __launch_bounds__(GridShape<T>::threads, 1) persistent_kernel(const __grid_constant__ Grid<T, down> g) {
  using Shape = GridShape<T>;
  extern __shared__ __align__(16) unsigned char raw[];
  __shared__ int ticket;
  T *shared = reinterpret_cast<T*>(raw), *inverses = shared + Shape::shared_size;
  if (blockIdx.x == 0) return factor_chain(g, shared, inverses);
  // Column j, of tiles or of squares: first what leads to the next diagonal tiles, then what lies below. Of tiles these
  // are (j+2, j), (j+2, j+1), (j+2, j+2); of squares the one next to the diagonal and the tiles of the next one on it.
  const int tiles = g.tiles(), width = g.squares ? 2 : 1, columns = (tiles + width - 1) / width;
  const auto leading = [&](int j) {
    const int rows = tiles - (width * j + 2);
    return rows <= 0 ? 0 : width == 1 ? 3 : rows == 1 ? 2 : 4;
  };
  const auto below = [&](int j) { return max(0, columns - j - (width == 1 ? 3 : 2)); };
  int j = 0, before = 0;  // tickets of the columns before j
  for (;;) {
    if (threadIdx.x == 0) ticket = atomicAdd(g.flags.ticket, 1);
    __syncthreads();  // the ticket is drawn, and the last piece is done with shared memory
    const int t = ticket;
    __syncthreads();  // and read by all
    while (j < columns && t >= before + leading(j) + below(j)) before += leading(j) + below(j), ++j;
    if (j >= columns) return;
    const int place = t - before, lower = place - leading(j);
    if (g.squares && (place == 0 || lower >= 0)) {
      take_square(g, place == 0 ? j + 1 : j + 2 + lower, j, shared, inverses);
    } else {
      const int next = width * j + 2;  // the row of the next diagonal tile
      const int row = g.squares ? next + place / 2 : next + (lower < 0 ? 0 : 1 + lower);
      const int col = g.squares ? next + place / 3 : j + (lower < 0 ? place : 0);
      take_tile(g, row, col, shared, inverses);
    }
  }
}

/// Ints that the flags of a matrix of order n take.
template <class T>
index_t persistent_flag_count(index_t n) {
  return 1 + 4 * (ceil_div(n, GridShape<T>::edge) + 1);
}
template <class T>
index_t persistent_inverse_count(index_t n) {
  return ceil_div(n, GridShape<T>::edge) * GridShape<T>::blocks * 256;
}

template <class T, bool down>
void launch_persistent(cudaStream_t stream, unsigned blocks, Grid<T, down> grid) {
  check(cudaFuncSetAttribute(persistent_kernel<T, down>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             int(GridShape<T>::bytes)),
        "shared memory for a kernel");
  void* arguments[] = {&grid};
  check(cudaLaunchCooperativeKernel(persistent_kernel<T, down>, dim3(blocks), dim3(GridShape<T>::threads), arguments,
                                    GridShape<T>::bytes, stream),
        "cooperative launch");
}

template <class T>
void launch_persistent(void* stream, int multiprocessors, Items<T> A, bool squares, bool resets, int* info,
                       index_t first, T* inverses, int* ints) {
  const index_t tiles = ceil_div(A.rows, GridShape<T>::edge);
  const auto s = static_cast<cudaStream_t>(stream);
  check(cudaMemsetAsync(ints, 0, std::size_t(persistent_flag_count<T>(A.rows)) * sizeof(int), s), "cudaMemsetAsync");
  const index_t each = tiles + 1;
  int* after = ints + 1;
  const GridFlags flags{ints, after, after + each, after + 2 * each, after + 3 * each};
  const Tile<T> a = A.item(0);
  const auto blocks = unsigned(min(tiles * (tiles + 1) / 2, index_t(multiprocessors)));
  const bool down = a.row_stride == 1;
  const index_t stride = down ? a.col_stride : a.row_stride;
  const bool aligned = reinterpret_cast<std::uintptr_t>(a.data) % 16 == 0 && std::size_t(stride) * sizeof(T) % 16 == 0;
  if (down)
    launch_persistent(
        s, blocks, Grid<T, true>{a.data, stride, int(A.rows), aligned, squares, resets, inverses, flags, info, first});
  else
    launch_persistent(
        s, blocks, Grid<T, false>{a.data, stride, int(A.rows), aligned, squares, resets, inverses, flags, info, first});
}

}  // namespace trifactor::cuda

#define TRIFACTOR_INSTANTIATE_KERNELS(T)                                         \
  template trifactor::index_t trifactor::cuda::persistent_flag_count<T>(index_t); \
  template trifactor::index_t trifactor::cuda::persistent_inverse_count<T>(index_t); \
  template void trifactor::cuda::launch_persistent<T>(void*, int, Items<T>, bool, bool, int*, index_t, T*, int*);
