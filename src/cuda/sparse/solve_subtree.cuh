// Small subtrees in a solve: one block of threads copies their fronts to shared memory and takes them level by level, a
// warp for each front and a few right-hand sides. No flags within: a barrier lies between levels.
#pragma once

#include <cuda/device/fragments.cuh>
#include <cuda/device/pipeline.cuh>
#include <cuda/single/inverted_diagonal.cuh>
#include <cuda/sparse/solve_vectors.cuh>

namespace trifactor::cuda {

/// `together` right-hand sides at a time by each warp.
template <class T, int together>
struct SubtreeSolve {
  using M = Message<T>;
  static constexpr int threads = 256, warps = threads / 32;
  static constexpr int max_rows = 160, max_columns = 64, slots = max_columns / 32;
  static constexpr int entries = (44 << 10) / int(max(sizeof(T), sizeof(double)));  // of all fronts of a block
  static constexpr int scratch = max_rows * together;                               // of a warp: its right-hand sides
  static constexpr std::size_t bytes = (entries + warps * scratch) * sizeof(T);
  static constexpr int resident = int(min(std::size_t(4), (227u << 10) / (bytes + 1024)));  // blocks

  const SolveVectors<T> v;
  const SolveLists& lists;
  const T* factor;
  T* tiles;

  __device__ static int lane() { return int(threadIdx.x) % 32; }
  __device__ static int warp() { return int(threadIdx.x) / 32; }
  __device__ T* own_scratch() const { return tiles + entries + warp() * scratch; }

  /// The lower trapezoids of all fronts, to shared memory.
  __device__ void load(int begin, int end) const {
    SolveFront next = lists.subtree_fronts[begin];
    for (int k = begin; k < end; ++k) {
      const SolveFront f = next;
      if (k + 1 < end) next = lists.subtree_fronts[k + 1];  // its loads are under way meanwhile
      for (int c = (warp() + k) % warps; c < f.columns; c += warps) {
        const FrontShape shape(f.rows, f.columns);
        const T* from = factor + f.factor_at + c * shape.ld;
        T* to = tiles + f.at + c * (f.rows | 1);
        for (int r = c + lane(); r < f.rows; r += 32)
          copy_async<int(sizeof(T))>(shared_address(to + r), from + (r < f.columns ? r : r + shape.gap));
      }
    }
    copy_wait_all();
    __syncthreads();  // the fronts are there
  }

  /// work(this with the item's B, front, first right-hand side) for all fronts of a level, by warps.
  template <class Work>
  __device__ void for_level(int begin, int end, Work work) const {
    const int parts = max(1, (1 << v.shift) / together), all = (end - begin) * parts;
    for (int i = warp(); i < all; i += warps) {
      const SolveFront& f = lists.subtree_fronts[begin + i / parts];
      const int item = v.fronts.item_of(f.first);
      if (v.failed[item] == 0) work(SubtreeSolve{v.of_item(item), lists, factor, tiles}, f, i % parts * together);
    }
    __syncthreads();  // what the next level reads is there
  }

  /// x := the front's right-hand sides, (rows, together): those of B in its own columns, and what its children left.
  __device__ void gather(const SolveFront& f, int column, int count, T* x) const {
    for (int r = lane(); r < f.rows; r += 32)
#pragma unroll
      for (int c = 0; c < together; ++c)
        x[r * together + c] =
            r < f.columns && c < count && v.inside(column + c) ? v.of_B(f.first + r, column + c) : T(0);
    if (f.children == 0) return;
    constexpr int at_once = 5;
    for (int r0 = lane(); r0 < f.rows; r0 += 32 * at_once) {
      int k[at_once], end[at_once], longest = 0;
#pragma unroll
      for (int u = 0; u < at_once; ++u) {
        const int r = r0 + 32 * u;
        k[u] = r < f.rows ? v.fronts.child_start[f.line + r] : 0;
        end[u] = r < f.rows ? v.fronts.child_start[f.line + r + 1] : 0;
        longest = max(longest, end[u] - k[u]);
      }
      for (int i = 0; i < longest; ++i) {
        T got[at_once][together];
#pragma unroll
        for (int u = 0; u < at_once; ++u)
          if (k[u] + i < end[u])
#pragma unroll
            for (int c = 0; c < together; ++c)
              if (c < count) got[u][c] = M::load(v.z(v.fronts.child_line[k[u] + i], column + c));
#pragma unroll
        for (int u = 0; u < at_once; ++u)
          if (k[u] + i < end[u])
#pragma unroll
            for (int c = 0; c < together; ++c)
              if (c < count) x[(r0 + 32 * u) * together + c] += got[u][c];  // of this block: it is there
      }
    }
  }

  /// f(slot, row) for the rows of the front's own columns that this lane holds.
  template <class G>
  __device__ __forceinline__ static void for_own(int w, G g) {
#pragma unroll
    for (int i = 0; i < slots; ++i)
      if (const int r = 32 * i + lane(); r < w) g(i, r);
  }
  /// Entry r of the right-hand side in registers, to all lanes.
  __device__ static T entry(const T (&z)[slots][together], int r, int c) {
    T e = z[0][c];
#pragma unroll
    for (int i = 1; i < slots; ++i)
      if (r >= 32 * i) e = z[i][c];
    return from_lane<32>(e, r % 32);
  }

  /// z := side(row, c) in the front's own columns, and the reciprocals of their pivots.
  template <class Side>
  __device__ __forceinline__ static void load_own(const T* L, int ld, int w, T (&z)[slots][together],
                                                  Real<T> (&reciprocal)[slots], Side side) {
#pragma unroll
    for (int i = 0; i < slots; ++i) {
      const int r = 32 * i + lane();
      reciprocal[i] = r < w ? Real<T>(1) / real(L[r * ld + r]) : Real<T>(0);
#pragma unroll
      for (int c = 0; c < together; ++c) z[i][c] = r < w ? side(r, c) : T(0);
    }
  }
  /// Row k of z is solved, and its products are subtracted from the rows that are left.
  template <bool forward>
  __device__ __forceinline__ static void eliminate(const T* L, int ld, int w, int k, T (&z)[slots][together],
                                                   const Real<T> (&reciprocal)[slots]) {
#pragma unroll
    for (int i = 0; i < slots; ++i)
      if (k == 32 * i + lane())
#pragma unroll
        for (int c = 0; c < together; ++c) z[i][c] = z[i][c] * reciprocal[i];
    T y[together];
#pragma unroll
    for (int c = 0; c < together; ++c) y[c] = entry(z, k, c);
    for_own(w, [&](int i, int r) TF_INLINE_LAMBDA {
      if (forward ? r <= k : r >= k) return;
      const T l = forward ? L[k * ld + r] : core::conj(L[r * ld + k]);
#pragma unroll
      for (int c = 0; c < together; ++c) z[i][c] = minus_product(z[i][c], l, y[c]);
    });
  }

  __device__ void forward_front(const SolveFront& f, int column) const {
    const int w = f.columns, ld = f.rows | 1;
    const T* L = tiles + f.at;
    const int count = min(together, 1 << v.shift);
    T* y = own_scratch();  // (rows, together)
    __syncwarp();          // the scratch memory is free
    gather(f, column, count, y);
    __syncwarp();  // the right-hand sides are there
    T z[slots][together];
    Real<T> reciprocal[slots];
    load_own(L, ld, w, z, reciprocal, [&](int r, int c) TF_INLINE_LAMBDA { return y[r * together + c]; });
    for (int k = 0; k < w; ++k) eliminate<true>(L, ld, w, k, z, reciprocal);
    for_own(w, [&](int i, int r) TF_INLINE_LAMBDA {
#pragma unroll
      for (int c = 0; c < together; ++c) {
        y[r * together + c] = z[i][c];
        if (c < count) v.solved_forward(f.first + r, f.line + r, column + c, z[i][c]);
      }
    });
    __syncwarp();  // y is there
    for (int r = w + lane(); r < f.rows; r += 32) {
      T sum[together];
#pragma unroll
      for (int c = 0; c < together; ++c) sum[c] = y[r * together + c];
#pragma unroll 4
      for (int k = 0; k < w; ++k) {
        const T l = L[k * ld + r];
#pragma unroll
        for (int c = 0; c < together; ++c) sum[c] = minus_product(sum[c], l, y[k * together + c]);
      }
#pragma unroll
      for (int c = 0; c < together; ++c)
        if (c < count) M::store(v.z(f.line + r, column + c), sum[c]);
    }
  }

  /// Adds up over lanes that hold the same columns: groups of 2^k >= w lanes, or all 32.
  __device__ static void subtract_below(T (&z)[slots][together], const T* L, int ld, int w, int rows, const T* x) {
    int width = 32;
    while (width / 2 >= w) width /= 2;
    const int k = lane() % width, groups = 32 / width;
#pragma unroll
    for (int i = 0; i < slots; ++i) {
      if (32 * i >= w) break;
      T sum[together];
#pragma unroll
      for (int c = 0; c < together; ++c) sum[c] = T(0);
      if (32 * i + k < w)
#pragma unroll 4
        for (int r = w + lane() / width; r < rows; r += groups) {
          const T l = core::conj(L[(32 * i + k) * ld + r]);
#pragma unroll
          for (int c = 0; c < together; ++c) sum[c] = minus_product(sum[c], l, x[(r - w) * together + c]);
        }
      for (int mask = width; mask < 32; mask *= 2)
#pragma unroll
        for (int c = 0; c < together; ++c) sum[c] = sum[c] + shuffle_xor(sum[c], mask);
#pragma unroll
      for (int c = 0; c < together; ++c) z[i][c] = z[i][c] + sum[c];
    }
  }

  __device__ void backward_front(const SolveFront& f, int column) const {
    const int w = f.columns, ld = f.rows | 1;
    const T* L = tiles + f.at;
    const int count = min(together, 1 << v.shift);
    T* x = own_scratch();  // (rows - w, together)
    __syncwarp();          // the scratch memory is free
    for (int r = w + lane(); r < f.rows; r += 32) {
      const int j = v.fronts.column[f.line + r];
#pragma unroll
      for (int c = 0; c < together; ++c) x[(r - w) * together + c] = c < count ? v.wait(v.x(j, column + c)) : T(0);
    }
    T z[slots][together];
    Real<T> reciprocal[slots];
    load_own(L, ld, w, z, reciprocal, [&](int r, int c) TF_INLINE_LAMBDA {
      return c < count ? v.backward_side(f.first + r, f.line + r, column + c) : T(0);
    });
    __syncwarp();  // x is there
    subtract_below(z, L, ld, w, f.rows, x);
    for (int k = w - 1; k >= 0; --k) eliminate<false>(L, ld, w, k, z, reciprocal);
    for_own(w, [&](int i, int r) TF_INLINE_LAMBDA {
#pragma unroll
      for (int c = 0; c < together; ++c)
        if (c < count) v.solved_backward(f.first + r, column + c, z[i][c]);
    });
  }

  __device__ void forward(int begin, int end) const {
    load(begin, end);
    for (int level = begin; level < end;) {
      const int next = lists.subtree_fronts[level].level_end;
      for_level(level, next, [](const auto& s, const SolveFront& f, int column) { s.forward_front(f, column); });
      level = next;
    }
  }
  __device__ void backward(int begin, int end) const {
    load(begin, end);
    for (int level = end; level > begin;) {  // levels are found from their last front
      int first = level - 1;
      while (first > begin && lists.subtree_fronts[first - 1].level_end == level) --first;
      for_level(first, level, [](const auto& s, const SolveFront& f, int column) { s.backward_front(f, column); });
      level = first;
    }
  }
};

/// A block for each group of subtrees and of right-hand sides.
template <class T, int together>
__global__ void __launch_bounds__(SubtreeSolve<T, together>::threads, SubtreeSolve<T, together>::resident)
    solve_subtrees_kernel(SolveVectors<T> vectors, SolveLists lists, const T* factor, bool forward) {
  extern __shared__ __align__(16) unsigned char raw[];
  const SolveVectors<T> v = vectors.of_group(blockIdx.y);
  const SubtreeSolve<T, together> subtrees{v, lists, factor, reinterpret_cast<T*>(raw)};
  const int begin = lists.subtree_start[blockIdx.x], end = lists.subtree_start[blockIdx.x + 1];
  forward ? subtrees.forward(begin, end) : subtrees.backward(begin, end);
}

}  // namespace trifactor::cuda
