// A strip of a front in a solve: one block of threads multiplies its tiles with what other strips have solved, as they
// send it, and solves with the strip's diagonal block by its inverse.
#pragma once

#include <cuda/device/fragments.cuh>
#include <cuda/device/pipeline.cuh>
#include <cuda/device/product.cuh>
#include <cuda/single/inverted_diagonal.cuh>
#include <cuda/sparse/solve_vectors.cuh>

namespace trifactor::cuda {

/// How a block of threads shares a strip, and what it holds in shared memory. Up to 8 F right-hand sides. A tile is a
/// strip's rows (forward) or columns (backward) by `depth` of the others.
template <class T, int F>
struct StripShape {
  using Block = DiagonalShape<T>;
  static constexpr int edge = Block::edge, depth = 32, threads = 128;
  static constexpr int tall_ld = edge + 4, flat_ld = depth + 4;  // of tiles (edge, depth) and (depth, edge)
  static constexpr int tile_size = max(tall_ld * depth, flat_ld* edge);
  static constexpr int row_tiles = edge / 16, col_parts = threads / 32 / row_tiles;  // how the warps share a strip
  static constexpr int fragments = F / col_parts;                                    // of a warp, side by side
  static_assert(fragments > 0);
  static constexpr int side_ld = 8 * F + 4;
  static constexpr int own_per_thread = edge * 8 * F / threads, per_thread = depth * 8 * F / threads;
  static constexpr int children = 256;  // rows of children that the list in shared memory has room for

  struct Shared {
    T tiles[2][tile_size];    // one in use, the other on its way
    T X[2][depth * side_ld];  // what tiles are multiplied with. Columns beyond the right-hand sides stay zero, here
    T own[edge * side_ld];    // and here: the strip's own right-hand sides
    int child_start[edge + 1], child_line[children];  // of the strip's rows
    int ticket;
  };
  static constexpr int resident = int(min(std::size_t(4), (227u << 10) / (sizeof(Shared) + 1024)));  // blocks
};

template <class T, int F>
class StripSolve : StripShape<T, F> {
  using S = StripShape<T, F>;
  using Part = Fragment<T, S::fragments>;
  using M = Message<T>;
  using S::edge, S::depth, S::threads, S::tall_ld, S::flat_ld, S::row_tiles, S::side_ld;

 public:
  using Shared = typename S::Shared;

  __device__ StripSolve(const SolveVectors<T>& v_, const SolveStrip& strip_, const T* factor, const int* inexact,
                        Shared& s_)
      : v(v_), strip(strip_), shape(strip_.rows, strip_.columns), front(factor + strip_.factor_at), s(s_) {
    refines = strip.diagonal >= 0 && inexact[strip.diagonal] != 0;
  }

  __device__ void forward() const {
    const int w = strip.columns, across = (w + edge - 1) / edge;
    const bool diagonal = strip.number < across;
    const int r0 = diagonal ? strip.number * edge : w + (strip.number - across) * edge;
    const int rows = min(edge, (diagonal ? w : strip.rows) - r0), before = diagonal ? r0 : w;
    const auto columns = [&](int t) { return min(depth, before - t * depth); };
    solve<true>((before + depth - 1) / depth, diagonal,
                [&](int t, T* tile) { fetch<edge, depth>(tile, tall_ld, r0, t * depth, rows, columns(t)); },
                [&](int t, T* X) {
                  receive(X, columns(t), true, [&](int r, int c) { return v.z(strip.line + t * depth + r, c); });
                },
                [&](T* X) {
                  for_entries<S::own_per_thread>(edge, [&](int, int r, int c) {
                    const bool given = diagonal && r < rows && v.inside(c);
                    X[r * side_ld + c] = given ? core::conj(v.of_B(strip.first + r0 + r, c)) : T(0);
                  });
                  add_children(X, strip.line + r0, rows);
                });
    for_entries<S::own_per_thread>(rows, [&](int, int r, int c) {
      const index_t line = strip.line + r0 + r;
      const T y = core::conj(s.own[r * side_ld + c]);
      if (diagonal)
        v.solved_forward(strip.first + r0 + r, line, c, y);
      else
        M::store(v.z(line, c), y);
    });
    __syncthreads();  // everyone is done with the shared memory
  }

  __device__ void backward() const {
    const int w = strip.columns, c0 = strip.number * edge, cols = min(edge, w - c0);
    // The rows below, and the own columns behind the strip, are cut apart, each from its first row on. The last rows,
    // whose columns are solved first, come first.
    const int below = (strip.rows - w + depth - 1) / depth, behind = max(0, (w - c0 - edge + depth - 1) / depth);
    const auto first_row = [&](int t) {
      return t < below ? w + (below - 1 - t) * depth : c0 + edge + (below + behind - 1 - t) * depth;
    };
    const auto rows = [&](int t) { return min(depth, (t < below ? strip.rows : w) - first_row(t)); };
    solve<false>(
        below + behind, true,
        [&](int t, T* tile) { fetch<depth, edge>(tile, flat_ld, first_row(t), c0, rows(t), cols); },
        [&](int t, T* X) {
          const int r0 = first_row(t);
          receive(X, rows(t), false, [&](int r, int c) {
            return v.x(t < below ? v.fronts.column[strip.line + r0 + r] : strip.first + r0 + r, c);
          });
        },
        [&](T* X) {
          for_entries<S::own_per_thread>(edge, [&](int, int r, int c) {
            X[r * side_ld + c] = r < cols ? v.backward_side(strip.first + c0 + r, strip.line + c0 + r, c) : T(0);
          });
        });
    for_entries<S::own_per_thread>(
        cols, [&](int, int r, int c) { v.solved_backward(strip.first + c0 + r, c, s.own[r * side_ld + c]); });
    __syncthreads();  // everyone is done with the shared memory
  }

 private:
  const SolveVectors<T>& v;
  const SolveStrip strip;
  const FrontShape shape;
  const T* front;
  Shared& s;
  bool refines;  // the inverse of the diagonal block wants a step of refinement

  __device__ static int rank() { return int(threadIdx.x); }
  __device__ static int row0() { return rank() / 32 % row_tiles * 16; }
  __device__ static int col0() { return rank() / 32 / row_tiles * S::fragments * 8; }

  /// tile := so many rows and columns of the front from (r, c) on, zero beyond, without waiting.
  template <int tall, int wide, int width>
  __device__ void fetch_lines(T* tile, int ld, int r, int c, int rows, int cols) const {
    constexpr int line = tall / width, bytes = width * int(sizeof(T));
    const int fast = rank() % line * width;
    const T* from = front + c * shape.ld + r + fast;
#pragma unroll 8
    for (int slow = rank() / line; slow < wide; slow += threads / line) {
      const int inside = slow < cols ? max(0, min(width, rows - fast)) : 0;
      copy_async<bytes>(shared_address(tile + slow * ld + fast), inside > 0 ? from + slow * shape.ld : front,
                        inside * int(sizeof(T)));
    }
  }
  template <int tall, int wide>
  __device__ void fetch(T* tile, int ld, int r, int c, int rows, int cols) const {
    constexpr int width = vector_of<T>;
    if (r >= strip.columns) r += int(shape.gap);
    if ((strip.factor_at + r) % width == 0 && shape.ld % width == 0)
      fetch_lines<tall, wide, width>(tile, ld, r, c, rows, cols);
    else
      fetch_lines<tall, wide, 1>(tile, ld, r, c, rows, cols);
  }
  /// g(u, row, column) for this thread's entries of right-hand sides with so many rows; u counts them.
  template <int most, class G>
  __device__ __forceinline__ void for_entries(int rows, G g) const {
#pragma unroll
    for (int u = 0; u < most; ++u)
      if (const int e = rank() + u * threads; e < rows << v.shift) g(u, e >> v.shift, e & ((1 << v.shift) - 1));
  }

  /// X := the messages of so many rows, conjugated or not, zero beyond; from(row, c) is where they come from. All that
  /// are missing are asked for at once.
  template <class From>
  __device__ void receive(T* X, int rows, bool conjugated, From from) const {
    constexpr int most = S::per_thread;
    const T* place[most];
    T got[most];
    unsigned missing = 0;
    for_entries<most>(depth, [&](int u, int r, int c) TF_INLINE_LAMBDA {
      got[u] = T(0);
      if (r >= rows) return;
      place[u] = from(r, c);
      missing |= 1u << u;
    });
    while (true) {
#pragma unroll
      for (int u = 0; u < most; ++u)
        if (missing >> u & 1) got[u] = M::load(place[u]);
#pragma unroll
      for (int u = 0; u < most; ++u)
        if ((missing >> u & 1) && M::is_solved(got[u])) missing &= ~(1u << u);
      if (missing == 0) break;
      __nanosleep(20);
    }
    for_entries<most>(depth,
                      [&](int u, int r, int c) TF_INLINE_LAMBDA { X[r * side_ld + c] = conj_if(conjugated, got[u]); });
  }

  /// X, conjugated, += what children left for the strip's rows from `line` on. Loads of many rows are under way at
  /// once.
  __device__ void add_children(T* X, index_t line, int rows) const {
    const int first = v.fronts.child_start[line], all = v.fronts.child_start[line + rows] - first;
    if (all == 0) return;
    for (int r = rank(); r <= rows; r += threads) s.child_start[r] = v.fronts.child_start[line + r] - first;
    for (int k = rank(); k < min(all, S::children); k += threads) s.child_line[k] = v.fronts.child_line[first + k];
    __syncthreads();  // the lists are there
    constexpr int at_once = min(S::own_per_thread, 8);
    const auto child = [&](int k) { return k < S::children ? s.child_line[k] : v.fronts.child_line[first + k]; };
    for (int u0 = 0; u0 < S::own_per_thread; u0 += at_once) {
      T sum[at_once], got[at_once];
      int k[at_once], end[at_once], longest = 0;
#pragma unroll
      for (int u = 0; u < at_once; ++u) {
        const int e = rank() + (u0 + u) * threads, r = e >> v.shift;
        k[u] = r < rows ? s.child_start[r] : 0, end[u] = r < rows ? s.child_start[r + 1] : 0;
        sum[u] = T(0), longest = max(longest, end[u] - k[u]);
      }
      for (int i = 0; i < longest; ++i) {
        const auto place = [&](int u) {
          return v.z(child(k[u] + i), (rank() + (u0 + u) * threads) & ((1 << v.shift) - 1));
        };
#pragma unroll
        for (int u = 0; u < at_once; ++u)
          if (k[u] + i < end[u]) got[u] = M::load(place(u));
#pragma unroll
        for (int u = 0; u < at_once; ++u)
          if (k[u] + i < end[u]) sum[u] = sum[u] + (M::is_solved(got[u]) ? got[u] : v.wait(place(u)));
      }
#pragma unroll
      for (int u = 0; u < at_once; ++u)
        if (const int e = rank() + (u0 + u) * threads; k[u] < end[u]) {
          T& x = X[(e >> v.shift) * side_ld + (e & ((1 << v.shift) - 1))];
          x = x + core::conj(sum[u]);
        }
    }
  }

  /// The strip's own right-hand sides, solved: own_side(X) gathers them while the first tiles are on their way; less
  /// the products with `count` tiles, fetch_tile(t, tile) and receive_side(t, X); then solved with the diagonal block,
  /// if there is one. They are in s.own in the end, conjugated if forward, for all to see.
  template <bool forward, class Fetch, class Receive, class Own>
  __device__ void solve(int count, bool diagonal, Fetch fetch_tile, Receive receive_side, Own own_side) const {
    const auto fetch_turn = [&](int t) {
      if (t < count) fetch_tile(t, s.tiles[t % 2]);
      copy_commit();  // perhaps of nothing, so that the number of groups is that of turns
    };
    fetch_turn(0);
    Part f;
    DiagonalBlock inverse;
    if (diagonal) inverse.template load<forward, true>(stored_block());
    own_side(s.own);
    __syncthreads();  // the own right-hand sides are there
    for_part(f, s.own, [](T& in, T& e) { e = conj_if(forward, in); });
    if (diagonal) inverse.template invert_pivots<forward>(stored_block());
    for (int t = 0; t < count; ++t) {
      receive_side(t, s.X[t % 2]);
      copy_wait<0>();
      __syncthreads();  // tile and right-hand sides t are there; those of t - 1 are read
      fetch_turn(t + 1);
      subtract<forward>(f, s.tiles[t % 2], s.X[t % 2]);
    }
    for_part(f, s.own, [](T& in, T& e) { in = conj_if(forward, e); });
    __syncthreads();  // the right-hand sides of the diagonal block are there
    if (diagonal) solve_diagonal<forward>(f, inverse);
  }

  /// f -= tile X, where X holds conjugates; backward f -= tile^H X.
  template <bool forward>
  __device__ static void subtract(Part& f, const T* tile, const T* X) {
    const auto into = [&](Part& to) TF_INLINE_LAMBDA {
      if constexpr (forward)
        to.template subtract<depth, false, false>(tile + row0(), tall_ld, X + col0(), side_ld);
      else
        to.template subtract<depth, true, true>(tile + row0() * flat_ld, flat_ld, X + col0(), side_ld);
    };
    if constexpr (sizeof(Real<T>) == 4) {  // sums of floats are cut off, not rounded, inside the tensor cores
      Part part;
      part.clear();
      into(part);
      f.add(part.c);
    } else {
      into(f);
    }
  }
  /// g(entry of X in shared memory, entry of f) for the warp's part.
  template <class G>
  __device__ static void for_part(Part& f, T* X, G g) {
    f.change([&](int r, int c, T& e) { g(X[(row0() + r) * side_ld + col0() + c], e); });
  }

  /// The diagonal block in memory: its triangle D, and above its diagonal its inverse V below the diagonal, transposed.
  struct StoredBlock {
    const T* data;
    index_t ld;
    int size;

    /// Entry (r, k) of D or of V with pivots that are yet to be inverted; backward, of the transpose.
    template <bool forward, bool inverse>
    __device__ T entry(int r, int k) const {
      if ((forward ? k > r : k < r) || max(r, k) >= size) return T(0);
      const bool down = forward != inverse;  // as the block is stored, or transposed
      return data[(down ? k : r) * ld + (down ? r : k)];
    }
  };

  /// The rows of the diagonal block that belong to a warp, in registers as operands of the tensor cores, so that they
  /// are there before they are needed: D or V, backward the transposes.
  struct DiagonalBlock {
    T a[row_tiles][4][2];  // of each 16 x 16 part: rows lane / 4 + 8 h, columns lane % 4 + 4 p

    /// g(part, p, h, row, column) for the entries of the triangle.
    template <bool forward, class G>
    __device__ static __forceinline__ void for_each(G g) {
      const int lane = rank() % 32, q = row0() / 16;
#pragma unroll
      for (int part = 0; part < row_tiles; ++part)
        if (forward ? part <= q : part >= q)
#pragma unroll
          for (int p = 0; p < 4; ++p)
#pragma unroll
            for (int h = 0; h < 2; ++h) g(part, p, h, row0() + lane / 4 + 8 * h, 16 * part + lane % 4 + 4 * p);
    }
    template <bool forward, bool inverse>
    __device__ __forceinline__ void load(const StoredBlock& block) {
      for_each<forward>([&](int part, int p, int h, int r, int k)
                            TF_INLINE_LAMBDA { a[part][p][h] = block.template entry<forward, inverse>(r, k); });
    }
    template <bool forward>
    __device__ __forceinline__ void invert_pivots(const StoredBlock& block) {
      for_each<forward>([&](int part, int p, int h, int r, int k) TF_INLINE_LAMBDA {
        if (r == k && r < block.size) a[part][p][h] = T(Real<T>(1) / real(a[part][p][h]));
      });
    }
    /// f -= this X, where X holds conjugates if forward.
    template <bool forward>
    __device__ __forceinline__ void subtract(Part& f, const T* X) const {
      const int lane = rank() % 32, q = row0() / 16;
      Part other;  // a second sum: the products of one wait for each other
      other.clear();
      const T* x = X + col0() + lane % 4 * side_ld + lane / 4;
#pragma unroll
      for (int part = 0; part < row_tiles; ++part)
        if (forward ? part <= q : part >= q)
#pragma unroll
          for (int p = 0; p < 4; ++p)
#pragma unroll
            for (int i = 0; i < S::fragments; ++i) {
              auto& to = p % 2 == 0 ? f.c[i] : other.c[i];
              tensor_subtract<!forward>(to, a[part][p][0], a[part][p][1], x[(16 * part + 4 * p) * side_ld + 8 * i]);
            }
      f.add(other.c);
    }
  };

  __device__ StoredBlock stored_block() const {
    const int at = strip.number * edge;
    return {front + at * shape.ld + at, shape.ld, min(edge, strip.columns - at)};
  }

  /// own := x
  template <bool forward>
  __device__ __forceinline__ static void store(Part& x, T* own) {
    __syncthreads();  // what was there is read
    for_part(x, own, [](T& in, T& e) { in = conj_if(forward, e); });
    __syncthreads();  // it is there
  }
  /// s.own := V Y or V^H Y, Y in s.own on entry and, as a fragment, in f; s.own holds conjugates if forward.
  template <bool forward>
  __device__ void solve_diagonal(Part& f, const DiagonalBlock& inverse) const {
    Part x;
    x.clear();
    inverse.template subtract<forward>(x, s.own);
    x.negate();
    store<forward>(x, s.own);
    if (refines) refine<forward>(stored_block(), f, x, s.own);
  }
  /// own := X + V (Y - D X), with X in own too. Seldom: not inlined, so that its registers are not held elsewhere.
  template <bool forward>
  __device__ __noinline__ static void refine(StoredBlock block, Part Y, Part X, T* own) {
    DiagonalBlock factor;
    factor.template load<forward, false>(block);
    factor.template subtract<forward>(Y, own);  // the residual
    store<forward>(Y, own);
    factor.template load<forward, true>(block);
    factor.template invert_pivots<forward>(block);
    Part step;
    step.clear();
    factor.template subtract<forward>(step, own);
    step.negate();
    X.add(step.c);
    store<forward>(X, own);
  }
};

}  // namespace trifactor::cuda
