// Cholesky of a panel in one launch: a persistent grid works off its tiles in dependency order.
//
// The panel is cut into square tiles. Block 0 owns the chain that bounds the time: it factors diagonal tile k, solves
// tile (k+1, k) with it and updates diagonal tile k+1, all in shared memory. The other blocks take the remaining tiles
// by ticket, column by column, left-looking: a tile waits until the tiles to its left are final, subtracts their
// products, waits for the diagonal tile of its column, is solved with it and becomes final. Every wait is for a tile
// with an earlier ticket or for the chain, and the launch is cooperative, so that all blocks are resident: a hang is
// impossible.
#pragma once

#include <cuda/kernels/launch.cuh>
#include <cuda/kernels/mma.cuh>

namespace trifactor::cuda {

/// What blocks tell each other, in global memory, zero at the start.
struct PanelFlags {
  int* ticket;       // the next tile to be taken
  int* final_tiles;  // of each tile row: so many of its tiles, from the left, are final
  int* factored;     // of each tile column: 1 when its diagonal tile and the inverses in it are final
  int* sub_ready;    // of each tile column j: 1 when tile (j+1, j) lacks only the solve
  int* diag_ready;   // of each tile column j: 1 when tile (j, j) lacks only the update with tile (j, j-1)
};

template <class T>
struct PanelShape {
  static constexpr int edge = is_complex<T> ? 32 : 64;  // of a tile
  static constexpr int blocks = edge / 16;              // a diagonal tile is factored in steps of 16 columns
  static constexpr int ld = edge + 4;                   // of a tile in shared memory: fragments without bank conflicts
  static constexpr int inverse_ld = 20;
  static constexpr int tile_size = edge * ld, inverse_size = 16 * inverse_ld;
  static constexpr int compute_threads = 256, move_threads = 128;  // the latter move data for the chain
  static constexpr int threads = compute_threads + move_threads;
  static constexpr std::size_t bytes = (4 * tile_size + blocks * inverse_size) * sizeof(T);
};

__device__ inline int load_acquire(const int* p) {
  int v;
  asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}
__device__ inline void store_release(int* p, int v) {
  asm volatile("st.release.gpu.global.s32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}

/// Waits until *p >= wanted; what was written before that is then visible to the caller, and to those that a barrier
/// lets go on after it. One thread of a block waits at a time: more would only crowd the flag.
__device__ inline int wait_for(const int* p, int wanted) {
  int v;
  while ((v = load_acquire(p)) < wanted) __nanosleep(20);
  return v;
}

/// The compute warps of a block wait for each other, or the moving warps do; the others go on.
__device__ inline void compute_sync() { asm volatile("bar.sync 1, 256;" ::: "memory"); }
__device__ inline void move_sync() { asm volatile("bar.sync 2, 128;" ::: "memory"); }

/// Shared memory by its own 32-bit addresses.
__device__ inline unsigned shared_address(const void* p) { return unsigned(__cvta_generic_to_shared(p)); }
template <int bytes>
__device__ inline void copy_async(unsigned shared, const void* global, int inside = bytes) {  // the rest becomes zero
  if constexpr (bytes == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(global), "r"(inside) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared), "l"(global), "n"(bytes), "r"(inside)
                 : "memory");
}
template <class W>
__device__ inline W load_shared(unsigned p) {  // W: 4, 8 or 16 bytes
  unsigned long long bits[2];
  if constexpr (sizeof(W) == 4) {
    unsigned low;
    asm volatile("ld.shared.b32 %0, [%1];" : "=r"(low) : "r"(p) : "memory");
    bits[0] = low;
  } else if constexpr (sizeof(W) == 8) {
    asm volatile("ld.shared.b64 %0, [%1];" : "=l"(bits[0]) : "r"(p) : "memory");
  } else {
    asm volatile("ld.shared.v2.b64 {%0, %1}, [%2];" : "=l"(bits[0]), "=l"(bits[1]) : "r"(p) : "memory");
  }
  W v;
  memcpy(&v, bits, sizeof(W));
  return v;
}
__device__ inline void copy_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int pending>
__device__ inline void copy_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

/// `wide`: columns are contiguous and every one starts at a multiple of 16 bytes, so that entries move 16 bytes at a
/// time.
template <class T, bool wide>
struct Panel {
  using Shape = PanelShape<T>;
  static constexpr int edge = Shape::edge, ld = Shape::ld;

  Tile<T> A;    // (m, n), m >= n: n columns are factored
  T* inverses;  // of each 16 x 16 diagonal block, (16, 16) without padding
  PanelFlags flags;
  int* info;
  index_t first;

  __device__ int tile_rows() const { return int((A.rows + edge - 1) / edge); }
  __device__ int tile_cols() const { return int((A.cols + edge - 1) / edge); }

  __device__ int rows_in(int i) const { return int(min(index_t(edge), A.rows - index_t(i) * edge)); }
  __device__ int cols_in(int j) const { return int(min(index_t(edge), A.cols - index_t(j) * edge)); }

  /// The walk of one of `size` threads over a tile: neighbouring threads touch neighbouring addresses of global memory.
  /// Tiles of which only the lower triangle is wanted move entry by entry.
  template <int size, bool lower_only>
  struct Walk {
    static constexpr int width = wide && !lower_only ? 16 / int(sizeof(T)) : 1;  // entries moved together
    static constexpr int bytes = width * int(sizeof(T)), line = edge / width;
    static constexpr int steps = edge * line / size, batch = steps < 8 ? steps : 8, stride = size / line;
    struct alignas(bytes) Word {
      T entry[width];
    };

    bool down;                 // columns are contiguous, not rows
    int fast, slow;            // the first entry
    int most_fast, most_slow;  // where the panel ends
    T *origin, *global;
    index_t global_step;
    unsigned shared, shared_step;

    __device__ Walk(const Panel& p, const T* S, int i, int j, int rank) {
      origin = p.A.data;
      down = wide || p.A.row_stride == 1;
      fast = rank % line * width, slow = rank / line;
      const index_t across = down ? p.A.col_stride : p.A.row_stride;
      global = origin + index_t(i) * edge * p.A.row_stride + index_t(j) * edge * p.A.col_stride + fast + slow * across;
      global_step = across * stride;
      shared = shared_address(S) + unsigned(sizeof(T)) * unsigned(down ? fast + slow * ld : fast * ld + slow);
      shared_step = unsigned(sizeof(T)) * unsigned((down ? ld : 1) * stride);
      most_fast = down ? p.rows_in(i) : p.cols_in(j), most_slow = down ? p.cols_in(j) : p.rows_in(i);
    }
    __device__ bool whole() const { return most_fast == edge && most_slow == edge; }
    /// How many entries of step s are wanted and inside the panel.
    __device__ int inside(int s) const {
      const int at = slow + s * stride;
      if (at >= most_slow) return 0;
      return max(0, min(width, most_fast - fast));
    }
    __device__ bool wanted(int s) const {
      const int at = slow + s * stride;
      return !lower_only || (down ? at <= fast : fast <= at);
    }

    /// Shared memory := the tile, zero outside the panel, without waiting.
    __device__ void load() const {
      const T* g = global;
      unsigned at = shared;
      if (whole()) {
#pragma unroll 8
        for (int s = 0; s < steps; ++s, at += shared_step, g += global_step)
          if (wanted(s)) copy_async<bytes>(at, g);
      } else {
        for (int s = 0; s < steps; ++s, at += shared_step, g += global_step)
          if (wanted(s)) copy_async<bytes>(at, inside(s) > 0 ? g : origin, inside(s) * int(sizeof(T)));
      }
    }
    __device__ void store() const {
      T* g = global;
      unsigned at = shared;
      for (int s = 0; s < steps; s += batch) {
        Word v[batch];
#pragma unroll
        for (int t = 0; t < batch; ++t, at += shared_step) v[t] = load_shared<Word>(at);
#pragma unroll
        for (int t = 0; t < batch; ++t, g += global_step) {
          if (wanted(s + t) && inside(s + t) == width) *reinterpret_cast<Word*>(g) = v[t];
#pragma unroll
          for (int e = 0; e + 1 < width; ++e)
            if (e < inside(s + t) && inside(s + t) < width) g[e] = v[t].entry[e];
        }
      }
    }
  };
  /// S := tile (i, j), zero outside the panel, without waiting. Lower: the strict upper triangle is neither read nor
  /// set.
  template <int size, bool lower_only>
  __device__ void load_tile(const T* S, int i, int j, int rank) const {
    Walk<size, lower_only>(*this, S, i, j, rank).load();
  }
  template <int size, bool lower_only>
  __device__ void store_tile(const T* S, int i, int j, int rank) const {
    Walk<size, lower_only>(*this, S, i, j, rank).store();
  }
  __device__ T* global_inverse(int j, int b) const { return inverses + (index_t(j) * Shape::blocks + b) * 256; }
};

/// X := X L^-H for 16 rows and 16 columns of X by one warp, with the inverse of L.
template <class T>
__device__ void solve_block(T* X, const T* inverse) {
  using Shape = PanelShape<T>;
  FragmentRow<T, 2> f;
  f.clear();
  f.subtract_product(X, Shape::ld, inverse, Shape::inverse_ld, std::integral_constant<int, 16>{});
  __syncwarp();  // everyone has read the block
  f.for_each([&](int r, int c, T v) { X[c * Shape::ld + r] = -v; });
}

/// C -= A B^H for blocks of 16 x 16, with A and B `depth` columns wide, by one warp.
template <class T, int depth>
__device__ void update_block(T* C, const T* A, const T* B) {
  constexpr int ld = PanelShape<T>::ld;
  FragmentRow<T, 2> f;
  f.for_each([&](int r, int c, T& v) { v = C[c * ld + r]; });
  f.subtract_product(A, ld, B, ld, std::integral_constant<int, depth>{});
  f.for_each([&](int r, int c, T v) { C[c * ld + r] = v; });
}

/// X := X L^-H for 16 rows of X by one warp; L (edge, edge) lower with the inverses of its 16 x 16 diagonal blocks.
template <class T, int b = 0>
__device__ void solve_strip(T* X, const T* L, const T* inverses) {
  using Shape = PanelShape<T>;
  constexpr int ld = Shape::ld, rest = Shape::blocks - 1 - b;
  T* Xb = X + 16 * b * ld;  // (16, 16)
  solve_block(Xb, inverses + b * Shape::inverse_size);
  if constexpr (rest > 0) {
    __syncwarp();                // these columns are solved before they are subtracted
    FragmentRow<T, 2 * rest> f;  // (16, 16 rest)
    T* C = Xb + 16 * ld;
    f.for_each([&](int r, int c, T& v) { v = C[c * ld + r]; });
    f.subtract_product(Xb, ld, L + 16 * b * ld + 16 * (b + 1), ld, std::integral_constant<int, 16>{});
    f.for_each([&](int r, int c, T v) { C[c * ld + r] = v; });
    __syncwarp();  // the next columns are updated before they are read
    solve_strip<T, b + 1>(X, L, inverses);
  }
}

/// Factors the 16 x 16 block at D and its inverse by one warp. Lanes 0-15 hold a row of the block each; lanes 16-31
/// hold the rows of the identity below it, which the same column operations turn into L^-H. The time is that of one
/// reciprocal square root after the other: every lane computes the next pivot for itself from what was sent around
/// meanwhile. Returns the first failed column + 1; what follows it is then garbage. Without `careful`, -1: D is as it
/// was, since a pivot below the normal numbers needs care.
template <bool careful, class T>
__device__ __forceinline__ int factor_block(T* D, T* inverse) {
  using Shape = PanelShape<T>;
  using R = Real<T>;
  const int lane = int(threadIdx.x) % 32, row = lane % 16;
  const bool own = lane < 16;
  T a[16];
#pragma unroll
  for (int c = 0; c < 16; ++c) a[c] = own ? (c <= row ? D[c * Shape::ld + row] : T(0)) : T(c == row ? 1 : 0);
  R d = real(D[0]);
  int failed = 0;
  bool tiny = false;
#pragma unroll
  for (int c = 0; c < 16; ++c) {
    T* raw = inverse + c % 2 * 20;  // column c before it is scaled, and the next diagonal entry; two places that
    if (own) raw[row] = a[c];       // are not needed yet save a barrier
    if (c < 15 && lane == c + 1) raw[16] = a[c < 15 ? c + 1 : c];
    __syncwarp();  // the column is visible
    T column[16];
#pragma unroll
    for (int q = c + 1; q < 16; ++q) column[q] = raw[q];
    const R scale = careful ? reciprocal_sqrt(d) : pivot_scale(d);
    failed = failed == 0 && !good_pivot(d) ? c + 1 : failed;
    tiny = tiny || (d > R(0) && d < Limits<R>::smallest);
    // The rest: a - l conj(l_q), with l_q = column[q] scale. Scaling l twice instead saves a product for each q, but 1
    // / d overflows for the pivots that need care.
    const T l = a[c] * scale, t = careful ? l : l * scale;
    const auto right = [&](T x) { return conj(careful ? x * scale : x); };
    a[c] = own && row == c ? T(d * scale) : l;
    if (c < 15) {
      const T next = column[c < 15 ? c + 1 : c];
      d = real(minus_product(raw[16], careful ? next * scale : next * scale * scale, right(next)));
    }
#pragma unroll
    for (int q = c + 1; q < 16; ++q) a[q] = minus_product(a[q], t, right(column[q]));
  }
  if (!careful && tiny) return -1;
  __syncwarp();  // the last column is read before the inverse is written over it
#pragma unroll
  for (int c = 0; c < 16; ++c) {
    if (own && c <= row) D[c * Shape::ld + row] = a[c];
    if (!own) inverse[row * Shape::inverse_ld + c] = conj(a[c]);
  }
  return failed;
}

/// Apart, so that its registers are not held in the usual case.
template <class T>
__device__ __noinline__ int factor_block_carefully(T* D, T* inverse) {
  return factor_block<true>(D, inverse);
}

/// The warps that update while warp 0 factors: not those that share its part of the multiprocessor, where tensor-core
/// products would hold up its arithmetic tenfold. Calls f(n, of) on them.
template <class F>
__device__ void beside_the_factor(int warp, F f) {
  if (warp % 4 != 0) f(warp / 4 * 3 + warp % 4 - 1, 6);
}

/// The chain. P, X, D are tiles in shared memory: (k, k), (k+1, k), (k+1, k+1).
template <class T, bool wide>
__device__ void panel_chain(const Panel<T, wide>& panel, T* P, T* X, T* D, T* inverses) {
  using Shape = PanelShape<T>;
  constexpr int ld = Shape::ld, blocks = Shape::blocks, size = Shape::move_threads;
  const int columns = panel.tile_cols(), warp = int(threadIdx.x) / 32;
  const bool moves = threadIdx.x >= Shape::compute_threads;
  const int rank = int(threadIdx.x) - Shape::compute_threads;  // among those that move
  const auto load_diagonal = [&](T* S, int k) {
    panel.template load_tile<size, true>(S, k, k, rank);
    copy_commit();
    copy_wait<0>();
    if (panel.cols_in(k) < Shape::edge) {  // beyond the last column lies the identity
      move_sync();
      for (int r = panel.cols_in(k) + rank; r < Shape::edge; r += size)
        for (int c = 0; c <= r; ++c) S[c * ld + r] = T(c == r ? 1 : 0);
    }
  };
  if (moves) load_diagonal(P, 0);
  __syncthreads();  // tile (0, 0) is there
  for (int k = 0; k < columns; ++k) {
    const bool more = k + 1 < columns;
    if (moves) {
      if (k > 0) __syncthreads();  // the update with the old X is done
      if (more && k > 0) {
        if (rank == 0) wait_for(panel.flags.sub_ready + k, 1), wait_for(panel.flags.diag_ready + k + 1, 1);
        move_sync();  // the next tiles are there
      }
      if (more) {
        panel.template load_tile<size, false>(X, k + 1, k, rank);
        load_diagonal(D, k + 1);
      }
    } else {
      int failed = 0;
      for (int b = 0; b < blocks; ++b) {
        T* B = P + 16 * b * (ld + 1);  // block (b, b)
        if (warp == 0) {
          int at = factor_block<false>(B, inverses + b * Shape::inverse_size);
          if (at < 0) at = factor_block_carefully(B, inverses + b * Shape::inverse_size);
          if (at != 0 && failed == 0) failed = 16 * b + at;
        }
        if (b == 0 && k > 0)
          __syncthreads();  // the first block is factored, and the update with X is done
        else
          compute_sync();  // the block is factored, the update of the others is done
        const int below = blocks - 1 - b;
        if (warp < below) solve_block(B + 16 * (warp + 1), inverses + b * Shape::inverse_size);
        compute_sync();  // the columns are solved
        // Warp 0 updates the next diagonal block and goes on to factor it.
        const auto update = [&](int i, int j) {
          update_block<T, 16>(B + 16 * i + 16 * j * ld, B + 16 * i, B + 16 * j);
        };
        if (warp == 0 && below > 0) update(1, 1);
        beside_the_factor(warp, [&](int n, int of) {
          int block = 0;
          for (int i = 2; i <= below; ++i)
            for (int j = 1; j <= i; ++j, ++block)
              if (block % of == n) update(i, j);
        });
        __syncwarp();
      }
      if (failed != 0 && threadIdx.x == 0 && *panel.info == 0)
        *panel.info = int(panel.first + index_t(k) * Shape::edge) + failed;
    }
    __syncthreads();  // tile k is factored, tiles (k+1, k) and (k+1, k+1) are there
    if (moves) {
      panel.template store_tile<size, true>(P, k, k, rank);
      for (int t = rank; t < blocks * 256; t += size)
        panel.global_inverse(k, 0)[t] =
            inverses[t / 256 * Shape::inverse_size + t % 256 / 16 * Shape::inverse_ld + t % 16];
      move_sync();  // all of it is written
      if (rank == 0) store_release(panel.flags.factored + k, 1);
    } else if (more && warp < blocks) {
      solve_strip(X + 16 * warp, P, inverses);
    }
    if (!more) break;
    __syncthreads();  // tile (k+1, k) is final
    if (moves) {
      panel.template store_tile<size, false>(X, k + 1, k, rank);
      move_sync();  // all of it is written
      if (rank == 0) store_release(panel.flags.final_tiles + k + 1, k + 1);
    } else {
      // D -= X X^H. Warp 0 updates the first diagonal block and goes on to factor it.
      const auto update = [&](int i, int j) {
        update_block<T, Shape::edge>(D + 16 * i + 16 * j * ld, X + 16 * i, X + 16 * j);
      };
      if (warp == 0) update(0, 0);
      beside_the_factor(warp, [&](int n, int of) {
        int block = 0;
        for (int i = 1; i < blocks; ++i)
          for (int j = 0; j <= i; ++j, ++block)
            if (block % of == n) update(i, j);
      });
      __syncwarp();
    }
    T* t = P;
    P = D, D = t;
  }
}

/// One tile of a worker: (i, j) left-looking over p < j; solved with the diagonal tile of its column if `solve`.
template <class T, bool wide>
__device__ void panel_tile(const Panel<T, wide>& panel, int i, int j, bool solve, T* shared, T* inverses) {
  using Shape = PanelShape<T>;
  constexpr int edge = Shape::edge, size = Shape::tile_size;
  constexpr int threads = Shape::compute_threads;
  const int rank = int(threadIdx.x), warp = rank / 32;
  const index_t r0 = index_t(i) * edge, c0 = index_t(j) * edge;
  // A diagonal tile (j == i) comes here for the columns before the last one, as its row's other tiles do.
  const int depth = i == j ? j - 1 : j;
  T *left[2] = {shared, shared + size}, *right[2] = {shared + 2 * size, shared + 3 * size};
  Accumulator<T, edge> sum;
  sum.for_each([&](int r, int c, T& v) {
    v = r0 + r < panel.A.rows && c0 + c < panel.A.cols && (i != j || c <= r) ? panel.A(r0 + r, c0 + c) : T(0);
  });
  __shared__ int seen[2];    // by thread 0; two places, so that all have read one before it is written again
  int looks = 0, ready = 0;  // so many tiles of both rows are final
  typename Panel<T, wide>::template Walk<threads, false> left_walk(panel, left[0], i, 0, rank),
      right_walk(panel, right[0], j, 0, rank);
  const index_t next_column = index_t(edge) * panel.A.col_stride;
  const auto final_in_both = [&](int wanted) {
    const int* rows = panel.flags.final_tiles;
    int& place = seen[looks++ % 2];
    if (rank == 0) place = min(wait_for(rows + i, wanted), wait_for(rows + j, wanted));
    compute_sync();  // thread 0 has looked
    return place;
  };
  const auto fetch = [&](int p) {
    left_walk.load();
    if (i != j) right_walk.load();
    copy_commit();
    const unsigned other = p % 2 ? -unsigned(size * sizeof(T)) : unsigned(size * sizeof(T));  // the other buffer
    left_walk.global += next_column, left_walk.shared += other;
    right_walk.global += next_column, right_walk.shared += other;
  };
  for (int p = 0, fetched = 0; p < depth; ++p) {
    if (fetched == p) {  // column p was not final when it was looked at last
      ready = final_in_both(p + 1);
      fetch(p), ++fetched;
    }
    if (p + 1 < depth && ready <= p + 1) ready = final_in_both(0);  // a look without waiting
    if (p + 1 < depth && ready > p + 1) {
      fetch(p + 1), ++fetched;
      copy_wait<1>();
    } else {
      copy_wait<0>();
    }
    compute_sync();  // both tiles of column p are there
    sum.subtract_product(left[p % 2], i == j ? left[p % 2] : right[p % 2], Shape::ld);
    compute_sync();  // everyone is done with them before they are overwritten
  }
  if (!solve) {
    T* S = shared;
    sum.for_each([&](int r, int c, T& v) { S[c * Shape::ld + r] = v; });
    compute_sync();  // the tile is complete in shared memory
    if (i == j)
      panel.template store_tile<threads, true>(S, i, j, rank);
    else
      panel.template store_tile<threads, false>(S, i, j, rank);
    compute_sync();  // it is written, and the buffers are free
    if (rank == 0) store_release(i == j ? panel.flags.diag_ready + j : panel.flags.sub_ready + j, 1);
    return;
  }
  T *X = shared, *L = shared + size;
  sum.for_each([&](int r, int c, T& v) { X[c * Shape::ld + r] = v; });
  if (rank == 0) wait_for(panel.flags.factored + j, 1);
  compute_sync();  // the diagonal tile is there, and X is complete in shared memory

  panel.template load_tile<threads, true>(L, j, j, rank);
  copy_commit();
  for (int t = rank; t < Shape::blocks * 256; t += threads)
    inverses[t / 256 * Shape::inverse_size + t % 256 / 16 * Shape::inverse_ld + t % 16] = panel.global_inverse(j, 0)[t];
  copy_wait<0>();
  compute_sync();  // X, L and the inverses are there
  if (warp < Shape::blocks) solve_strip(X + 16 * warp, L, inverses);
  compute_sync();  // X is solved
  panel.template store_tile<threads, false>(X, i, j, rank);
  compute_sync();  // it is written, and the buffers are free
  if (rank == 0) store_release(panel.flags.final_tiles + i, j + 1);
}

template <class T, bool wide>
__global__ void __launch_bounds__(PanelShape<T>::threads, 1) panel_kernel(Panel<T, wide> panel) {
  using Shape = PanelShape<T>;
  extern __shared__ __align__(16) unsigned char raw[];
  __shared__ int ticket;
  T* shared = reinterpret_cast<T*>(raw);
  T* inverses = shared + 4 * Shape::tile_size;
  if (blockIdx.x == 0)
    return panel_chain(panel, shared, shared + Shape::tile_size, shared + 2 * Shape::tile_size, inverses);
  if (threadIdx.x >= Shape::compute_threads) return;
  const int rows = panel.tile_rows(), cols = panel.tile_cols();
  int j = 0, before = 0;  // tickets of the columns before j
  for (;;) {
    if (threadIdx.x == 0) ticket = atomicAdd(panel.flags.ticket, 1);
    compute_sync();  // the ticket is drawn
    const int t = ticket;
    compute_sync();  // and read by all
    // Column j: the two tiles that the chain takes over, (j+1, j) and (j+1, j+1), if there is something to subtract;
    // then the rows below them.
    const auto handed_over = [&](int c) { return c + 1 < cols ? 2 : 0; };
    const auto below = [&](int c) { return max(0, rows - c - 1 - (c + 1 < cols ? 1 : 0)); };
    while (j < cols && t >= before + handed_over(j) + below(j)) before += handed_over(j) + below(j), ++j;
    if (j >= cols) return;
    const int place = t - before;
    if (place < handed_over(j)) {
      if (j > 0) panel_tile(panel, j + 1, place == 0 ? j : j + 1, false, shared, inverses);
    } else {
      const int i = j + 1 + (j + 1 < cols ? 1 : 0) + place - handed_over(j);
      panel_tile(panel, i, j, true, shared, inverses);
    }
  }
}

/// Ints that the flags of an m x n panel take.
template <class T>
index_t panel_flag_count(index_t m, index_t n) {
  const index_t rows = ceil_div(m, PanelShape<T>::edge), cols = ceil_div(n, PanelShape<T>::edge);
  return 1 + rows + 3 * (cols + 1);
}
template <class T>
index_t panel_inverse_count(index_t n) {
  return ceil_div(n, PanelShape<T>::edge) * PanelShape<T>::blocks * 256;
}

template <class T, bool wide>
void launch_panel(cudaStream_t stream, unsigned blocks, Panel<T, wide> panel) {
  check(cudaFuncSetAttribute(panel_kernel<T, wide>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             int(PanelShape<T>::bytes)),
        "shared memory for a kernel");
  void* arguments[] = {&panel};
  check(cudaLaunchCooperativeKernel(panel_kernel<T, wide>, dim3(blocks), dim3(PanelShape<T>::threads), arguments,
                                    PanelShape<T>::bytes, stream),
        "cooperative launch");
}

template <class T>
void launch_panel(void* stream, int multiprocessors, Items<T> A, int* info, index_t first, T* inverses, int* ints) {
  const index_t rows = ceil_div(A.rows, PanelShape<T>::edge), cols = ceil_div(A.cols, PanelShape<T>::edge);
  const auto s = static_cast<cudaStream_t>(stream);
  check(cudaMemsetAsync(ints, 0, std::size_t(panel_flag_count<T>(A.rows, A.cols)) * sizeof(int), s), "cudaMemsetAsync");
  int* after_rows = ints + 1 + rows;
  const PanelFlags flags{ints, ints + 1, after_rows, after_rows + cols + 1, after_rows + 2 * (cols + 1)};
  const Tile<T> a = A.item(0);
  const index_t tiles = cols * rows - cols * (cols - 1) / 2;
  const auto blocks = unsigned(min(tiles, index_t(multiprocessors)));
  const bool wide = a.row_stride == 1 && reinterpret_cast<std::uintptr_t>(a.data) % 16 == 0 &&
                    std::size_t(a.col_stride) * sizeof(T) % 16 == 0;
  if (wide)
    launch_panel(s, blocks, Panel<T, true>{a, inverses, flags, info, first});
  else
    launch_panel(s, blocks, Panel<T, false>{a, inverses, flags, info, first});
}

}  // namespace trifactor::cuda

#define TRIFACTOR_INSTANTIATE_KERNELS(T)                                              \
  template trifactor::index_t trifactor::cuda::panel_flag_count<T>(index_t, index_t); \
  template trifactor::index_t trifactor::cuda::panel_inverse_count<T>(index_t);       \
  template void trifactor::cuda::launch_panel<T>(void*, int, Items<T>, int*, index_t, T*, int*);
