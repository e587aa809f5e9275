// Cholesky of a matrix that stays in a multiprocessor, by one or a few warps, in tiles of the tensor cores.
#pragma once

#include <cuda/device/pivot_columns.cuh>
#include <cuda/device/team.cuh>

namespace trifactor::cuda {

/// Whether item b is to be factored. With `resets`, info is not read but decided: -1 for an impossible item.
template <class T>
__device__ bool wanted(const Items<T>& A, index_t b, const int* info, bool resets) {
  return resets ? A.possible_square(b) : info[b] == 0;
}
/// What becomes of info[b], where the item was wanted or not: `failed` is the order of the minor that is not positive
/// definite, or 0.
__device__ inline void report(int* info, index_t b, bool resets, index_t first, bool was_wanted, int failed) {
  if (was_wanted && failed > 0)
    info[b] = int(first) + failed;
  else if (resets)
    info[b] = was_wanted ? 0 : -1;
}

/// A as it is, in global memory, but the compiler cannot compute addresses in it ahead of time and hold them in
/// registers.
template <class T>
__device__ __forceinline__ Tile<T> afresh(Tile<T> A) {
  asm volatile("" : "+l"(A.data), "+l"(A.row_stride), "+l"(A.col_stride));
  __builtin_assume(__isGlobal(A.data));
  return A;
}
template <class T>
__device__ __forceinline__ Tile<T, int> afresh(Tile<T, int> A) {
  return A;
}

/// Shared memory of a warp for a diagonal block and its inverse, both by rows.
template <class T>
struct Corner {
  static constexpr int width = 8,
                       vector = sizeof(T) < 16 ? 16 / int(sizeof(T)) : 1;  // entries that are loaded together
  static constexpr int pitch = width + vector;
  static constexpr int size = width * pitch;  // of each of the two
};

/// Eliminates the columns of a block of eight, of which every lane has the lower triangle l, for itself, so that no
/// column waits for another lane. The rows a go along: they are eliminated as rows below the block would be. Columns
/// stay unscaled.
template <bool careful, class T, int rows>
__device__ __forceinline__ void eliminate_block(T (&l)[8][8], T (&a)[rows][8], Real<T> (&pivots)[8]) {
  using R = Real<T>;
  constexpr int width = 8;
  R d = real(l[0][0]), y = careful ? R(1) : rough_reciprocal(d);
#pragma unroll
  for (int c = 0; c < width; ++c) {
    pivots[c] = d;
    const int k = c + 1 < width ? c + 1 : c;
    if constexpr (careful) {  // divided by sqrt(d) twice, since 1 / d may overflow
      const R scale = reciprocal_sqrt(d);
#pragma unroll
      for (int r = c + 1; r < width; ++r) l[r][c] = l[r][c] * scale;
#pragma unroll
      for (int q = c + 1; q < width; ++q) {
#pragma unroll
        for (int i = 0; i < rows; ++i) a[i][q] = minus_product(a[i][q], a[i][c] * scale, conj(l[q][c]));
#pragma unroll
        for (int r = q; r < width; ++r) l[r][q] = minus_product(l[r][q], l[r][c], conj(l[q][c]));
      }
      if (c + 1 < width) d = real(l[k][k]);
    } else {  // 1 / d = y (1 + p), and the products with y do not wait for p; the next pivot goes ahead of all
      const R p = reciprocal_correction(d, y), before = y;
      if (c + 1 < width) {
        // The square of a float overflows too soon to be computed first, as it is of a double to save time.
        const R sy = sizeof(R) == 4 ? real((l[k][c] * y) * conj(l[k][c])) : real(l[k][c] * conj(l[k][c])) * y;
        d = (real(l[k][k]) - sy) - sy * p;
        y = rough_reciprocal(d);
      }
#pragma unroll
      for (int i = 0; i < rows; ++i) {
        const T ay = a[i][c] * before, t = ay + ay * p;
#pragma unroll
        for (int q = c + 1; q < width; ++q) a[i][q] = minus_product(a[i][q], t, conj(l[q][c]));
      }
#pragma unroll
      for (int r = c + 2; r < width; ++r) {
        const T ly = l[r][c] * before, u = ly + ly * p;
#pragma unroll
        for (int q = c + 1; q <= r; ++q) l[r][q] = minus_product(l[r][q], u, conj(l[q][c]));
      }
    }
  }
}

/// The right operand that makes subtract_product subtract -A V.
template <class T>
__device__ __forceinline__ RightPart<T> negative_inverse(const T* V, const LanePlace& place) {
  RightPart<T> b;
#pragma unroll
  for (int s = 0; s < 2; ++s) b.v[s] = -conj(V[(4 * s + place.t) * Corner<T>::pitch + place.right_row()]);
  return b;
}
/// The tile c V.
template <class T>
__device__ __forceinline__ TensorEntries<T> times_inverse(const TensorEntries<T>& c, const RightPart<T>& negative) {
  TensorEntries<T> x;
#pragma unroll
  for (int e = 0; e < 4; ++e) x.set(e, T(0));
  subtract_product(x, as_left(c), negative);
  return x;
}

/// Which of a lane's entries of the tile at (r0, k0) lie in the lower triangle of order n. `below`: the tile does not
/// meet the diagonal.
template <bool below>
__device__ __forceinline__ bool inside(int e, int n, int r0, int k0, const LanePlace& place) {
  return r0 + place.row(e) < n && (below || k0 + place.col(e) <= r0 + place.row(e));
}
/// Entry e of the tile at (r0, k0).
template <class Matrix>
__device__ __forceinline__ auto* entry_of(const Matrix& A, int e, int r0, int k0, const LanePlace& place) {
  auto* p = &A(r0 + place.g, k0 + place.t);
  return p + (e / 2 ? 8 * A.row_stride : 0) + (e % 2 ? 4 * A.col_stride : 0);
}
/// Entries of a tile, from the lower triangle of A and, outside of it, of the identity.
template <bool below, class T, class Matrix>
__device__ __forceinline__ TensorEntries<T> load_tile(const Matrix& A, int n, int r0, int k0, const LanePlace& place) {
  TensorEntries<T> c;
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    T v = T(!below && r0 + place.row(e) == k0 + place.col(e) ? 1 : 0);
    if (inside<below>(e, n, r0, k0, place)) v = *entry_of(A, e, r0, k0, place);
    c.set(e, v);
  }
  return c;
}

/// Room between columns in shared memory, so that the tiles of a warp meet no bank twice.
template <class T>
inline constexpr int column_pad = 32 / int(sizeof(T));

/// The columns of a factor of order up to `most` in shared memory, sixteen at a time from their diagonal on.
template <class T, int most>
struct KeptFactor {
  static constexpr int pad = column_pad<T>, groups = most / 16;
  static constexpr int size = 16 * groups * (most + pad) - 128 * groups * (groups - 1);
  T* data;
  /// Entry (r, 8 p + c) is at panel(p)[c * pitch(p) + r].
  __device__ static int pitch(int p) { return most + pad - p / 2 * 16; }
  __device__ T* panel(int p) const {
    const int g = p / 2;
    return data + 16 * g * (most + pad) - 128 * g * (g - 1) + p % 2 * 8 * pitch(p) - 16 * g;
  }
  __device__ T& at(int p, int r, int c) const { return panel(p)[c * pitch(p) + r]; }
};

/// Branches that do the same to different registers must not become one that finds them in an array in memory.
template <int number>
__device__ __forceinline__ void kept_apart() {
  asm volatile("// branch %0" ::"n"(number));
}

}  // namespace trifactor::cuda
