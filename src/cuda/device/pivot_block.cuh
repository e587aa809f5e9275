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

/// Factors the block, of which the lower triangle is given, by one warp: L takes its place, V becomes L^-H. Every lane
/// has the whole block in registers and factors it for itself, so that no column waits for another lane; lanes 0-7
/// carry a row of the block besides, lanes 8-15 a row of the identity, which the same column operations turn into rows
/// of L and L^-H. Columns stay unscaled until the end: the time is that of one reciprocal after the other. Returns 0,
/// the failed column + 1, or, without `careful`, -1 and nothing is written when a pivot is not of a middling size:
/// squares and reciprocals may overflow.
template <bool careful, class T>
__device__ __forceinline__ int factor_corner(T* block, T* V, T* scales) {
  using R = Real<T>;
  using Shape = Corner<T>;
  constexpr int width = Shape::width, vector = Shape::vector;
  using Entries = EntryVector<T, vector>;
  const int lane = int(threadIdx.x) % 32, row = lane % 16;
  T a[1][width], l[width][width];
#pragma unroll
  for (int r = 0; r < width; ++r)
#pragma unroll
    for (int c = 0; c <= r; c += vector) {
      const auto v = *reinterpret_cast<const Entries*>(block + r * Shape::pitch + c);
#pragma unroll
      for (int e = 0; e < vector; ++e)
        if (c + e <= r) l[r][c + e] = v.v[e];
    }
#pragma unroll
  for (int c = 0; c < width; c += vector) {
    const auto v = *reinterpret_cast<const Entries*>(block + row % 8 * Shape::pitch + c);
#pragma unroll
    for (int e = 0; e < vector; ++e) a[0][c + e] = row < 8 ? v.v[e] : T(c + e == row - 8 ? 1 : 0);
  }
  R mine = R(1), pivots[width];
  eliminate_block<careful>(l, a, pivots);
#pragma unroll
  for (int c = 0; c < width; ++c) mine = lane == c ? pivots[c] : mine;
  if (!careful && __any_sync(~0u, !middling(mine))) return -1;
  if (lane < width) scales[lane] = T(careful ? reciprocal_sqrt(mine) : pivot_scale(mine));
  __syncwarp();  // the scales are visible, and everyone has read the block
  if (lane < 16) {
    T* to = (row < 8 ? block : V) + row % 8 * Shape::pitch;
#pragma unroll
    for (int c = 0; c < width; c += vector) {
      const auto scale = *reinterpret_cast<const Entries*>(scales + c);
      Entries v;
#pragma unroll
      for (int e = 0; e < vector; ++e) {
        v.v[e] = a[0][c + e] * real(scale.v[e]);
        if constexpr (is_complex<T>)
          if (c + e == row) v.v[e] = T(real(v.v[e]));
      }
      *reinterpret_cast<Entries*>(to + c) = v;
    }
  }
  return __ffs(int(__ballot_sync(~0u, !good_pivot(mine)) & 0xffu));
}
/// Apart, so that its registers are not held in the usual case.
template <class T>
__device__ __noinline__ int factor_corner_carefully(T* block, T* V, T* scales) {
  return factor_corner<true>(block, V, scales);
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

/// The shape of factor_resident: `strips` tiles of 16 rows to each of `warps` warps, dealt out in turn.
template <class T, int strips, int warps_>
struct Resident {
  static constexpr int warps = warps_, threads = 32 * warps, most = 16 * strips * warps;
  using Kept = KeptFactor<T, most>;
  static constexpr int corner = Corner<T>::size + Corner<T>::width;      // the diagonal block and its scales
  static constexpr int entries = Kept::size + corner + Corner<T>::size;  // of shared memory, with one inverse
  // More blocks on a multiprocessor are worth more than the last registers.
  static constexpr int registers = sizeof(T) == 4 ? 128 : sizeof(T) > 8 || most > 32 ? 255 : 168;
  static constexpr int blocks = 65536 / (threads * registers);
};

template <int warps>
__device__ __forceinline__ void team_sync() {
  if constexpr (warps == 1)
    __syncwarp();
  else
    __syncthreads();
}

/// Branches that do the same to different registers must not become one that finds them in an array in memory.
template <int number>
__device__ __forceinline__ void kept_apart() {
  asm volatile("// branch %0" ::"n"(number));
}

/// Factors A, which lies in global or in shared memory, from the left by panels of eight columns: the tiles of a panel
/// are in registers, the columns before it in shared memory as operands of its update, `kept`. The warp that has the
/// diagonal block factors it, and all multiply by its inverse. V_step: how far apart these inverses are left in V. The
/// code is short on purpose: unrolled over panels, with the whole triangle in registers, it waits for its own
/// instructions.
template <class T, int strips, int warps, class Matrix>
__device__ __forceinline__ int factor_resident(const Matrix& A, typename Resident<T, strips, warps>::Kept kept,
                                               T* corner, T* V, int V_step) {
  T* const scales = corner + Corner<T>::size;
  __shared__ int status;
  const int warp = warps == 1 ? 0 : int(threadIdx.x) / 32, n = int(A.rows);
  const LanePlace place;
  const auto strip = [&](int s) TF_INLINE_LAMBDA { return 16 * (warp + warps * s); };
  // Where a lane's rows begin in panel p. Rows beyond the last are copies of it when they are read: nobody uses what
  // comes of them, nor of columns beyond the last except in the diagonal block.
  decltype(A.data) at[strips][2], diagonal = &A(place.g, place.t);
  const auto half = 4 * A.col_stride;
#pragma unroll
  for (int s = 0; s < strips; ++s)
#pragma unroll
    for (int h = 0; h < 2; ++h) at[s][h] = &A(min(strip(s) + place.g + 8 * h, n - 1), place.t);
  TensorEntries<T> c[strips], next[strips];
  const auto load = [&](int p, decltype(half) ahead) TF_INLINE_LAMBDA {  // next := panel p, so far ahead of `at`
#pragma unroll
    for (int s = 0; s < strips; ++s) {
      if (strip(s) + 15 < 8 * p) continue;
      if (8 * p + 8 <= min(strip(s), n)) {
#pragma unroll
        for (int e = 0; e < 4; ++e) next[s].set(e, at[s][e / 2][ahead + (e % 2 ? half : 0)]);
      } else {  // some lie in the other triangle, or beyond the last column
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const int k = 8 * p + place.col(e);
          next[s].set(e, k < n && k <= strip(s) + place.row(e) ? at[s][e / 2][ahead + (e % 2 ? half : 0)] : T(0));
        }
      }
    }
  };
  if (n > 0) load(0, 0);
  for (int p = 0; 8 * p < n; ++p) {
#pragma unroll
    for (int s = 0; s < strips; ++s) c[s] = next[s];
    if (8 * (p + 1) < n) load(p + 1, 2 * half);
    // c -= L (rows, k) L (8 p.., k)^H for the panels k before this one
    TensorEntries<T> other[strips];  // a second sum: the products of one wait for each other
#pragma unroll
    for (int s = 0; s < strips; ++s)
#pragma unroll
      for (int e = 0; e < 4; ++e) other[s].set(e, T(0));
    const auto subtract = [&](int k, TensorEntries<T>(&to)[strips]) TF_INLINE_LAMBDA {
      const int pitch = kept.pitch(k);
      const T* const column = kept.panel(k) + place.t * pitch;
      RightPart<T> right;
#pragma unroll
      for (int f = 0; f < 2; ++f) right.v[f] = column[4 * f * pitch + 8 * p + place.right_row()];
#pragma unroll
      for (int s = 0; s < strips; ++s)
        if (strip(s) + 15 >= 8 * p && strip(s) < n) {
          LeftPart<T> left;
#pragma unroll
          for (int f = 0; f < 2; ++f)
#pragma unroll
            for (int h = 0; h < 2; ++h) left.v[f][h] = column[4 * f * pitch + strip(s) + place.g + 8 * h];
          subtract_product(to[s], left, right);
        }
    };
    int k = p % 2;
    if (k) subtract(0, c);
    for (; k < p; k += 2) subtract(k, c), subtract(k + 1, other);
#pragma unroll
    for (int s = 0; s < strips; ++s)
#pragma unroll
      for (int e = 0; e < 4; ++e) c[s].set(e, c[s].get(e) + other[s].get(e));
    T* const inverse = V + p * V_step;
    int failed = 0;
    if (warps == 1 || p / 2 % warps == warp) {
      for_constants<strips>([&](auto slot) TF_INLINE_LAMBDA {
        constexpr int s = decltype(slot)::value;
        if (p / 2 == warp + warps * s) {
#pragma unroll
          for (int f = 0; f < 2; ++f) {
            const bool inside = 8 * p + max(place.g, place.t + 4 * f) < n;
            const T v = p % 2 ? c[s].get(2 + f) : c[s].get(f);
            corner[place.g * Corner<T>::pitch + place.t + 4 * f] = inside ? v : T(place.g == place.t + 4 * f ? 1 : 0);
          }
          kept_apart<s>();
        }
      });
      __syncwarp();  // the diagonal block is there
      failed = factor_corner<false>(corner, inverse, scales);
      if (failed < 0) failed = factor_corner_carefully(corner, inverse, scales);
      __syncwarp();  // its factor and inverse are there
#pragma unroll
      for (int f = 0; f < 2; ++f)
        if (place.t + 4 * f <= place.g && 8 * p + place.g < n)
          diagonal[f ? half : 0] = corner[place.g * Corner<T>::pitch + place.t + 4 * f];
      if (warps > 1 && place.g == 0 && place.t == 0) status = failed;
    }
    if (warps > 1) {
      __syncthreads();  // the inverse is there
      failed = status;
    }
    const RightPart<T> negative = negative_inverse(inverse, place);
    T* const to = kept.panel(p) + place.t * kept.pitch(p) + place.g;
#pragma unroll
    for (int s = 0; s < strips; ++s)
      if (strip(s) + 8 > 8 * p && strip(s) < n) {
        const TensorEntries<T> x = times_inverse(c[s], negative);
        // Where the upper half is the diagonal block, which was written before, it is garbage that nobody reads.
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          to[e % 2 * 4 * kept.pitch(p) + strip(s) + e / 2 * 8] = x.get(e);
          if (strip(s) + place.row(e) < n && (e >= 2 || strip(s) > 8 * p)) at[s][e / 2][e % 2 ? half : 0] = x.get(e);
        }
      }
#pragma unroll
    for (int s = 0; s < strips; ++s) at[s][0] += 2 * half, at[s][1] += 2 * half;
    diagonal += 2 * half + 8 * A.row_stride;
    if (failed > 0) return 8 * p + failed;
    team_sync<warps>();  // the panel is complete
  }
  return 0;
}

}  // namespace trifactor::cuda
