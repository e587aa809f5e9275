// Cholesky of a matrix whose triangle lies in the registers of one or a few warps, as tiles of the tensor cores.
#pragma once

#include <cuda/kernels/columns.cuh>
#include <cuda/kernels/team.cuh>

namespace trifactor::cuda {

/// Whether item b is to be factored. With `resets`, info is not read but decided: -1 for an impossible item.
template <class T>
__device__ bool wanted(const Items<T>& A, index_t b, const int* info, bool resets) {
  return resets ? A.possible(b) && !(A.ragged() && A.item_rows[b] != A.item_cols[b]) : info[b] == 0;
}
/// What becomes of info[b]: `failed` is the order of the minor that is not positive definite, or 0.
__device__ inline void report(int* info, index_t b, bool resets, index_t first, int failed) {
  if (failed > 0) info[b] = int(first) + failed;
  else if (resets) info[b] = 0;
}

/// A as it is, in global memory, but the compiler cannot compute addresses in it ahead of time and hold them in registers.
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
  static constexpr int width = 8;
  static constexpr int pitch = width + ColumnScratch<T, width>::vector;
  static constexpr int size = width * pitch;  // of each of the two
  static constexpr int scratch = ColumnScratch<T, width>::size;
};

/// Factors the block, of which the lower triangle is given: L takes its place, V becomes L^-H. Lanes 0-7 hold a row of the
/// block each, lanes 8-15 the rows of the identity below it, which the same column operations turn into L^-H. Returns 0, the
/// failed column + 1, or -1 without having written when this wants care.
template <bool careful, class T>
__device__ __forceinline__ int factor_corner(T* block, T* V, T* scratch) {
  using Shape = Corner<T>;
  constexpr int vector = ColumnScratch<T, Shape::width>::vector;
  using Entries = EntryVector<T, vector>;
  const int lane = int(threadIdx.x) % 32, row = lane % 16;
  T a[Shape::width];
#pragma unroll
  for (int c = 0; c < Shape::width; c += vector) {
    const auto v = *reinterpret_cast<const Entries*>(block + row % 8 * Shape::pitch + c);
#pragma unroll
    for (int e = 0; e < vector; ++e) a[c + e] = row < 8 ? v.v[e] : T(c + e == row - 8 ? 1 : 0);
  }
  const Real<T> pivot = factor_columns<careful, T, Shape::width>(a, row, lane < 8, scratch);
  if (!careful && __any_sync(~0u, !middling(pivot))) return -1;
  if constexpr (is_complex<T>)
#pragma unroll
    for (int c = 0; c < Shape::width; ++c)
      if (c == row) a[c] = T(real(a[c]));
  if (lane < 16) {
    T* to = (row < 8 ? block : V) + row % 8 * Shape::pitch;
#pragma unroll
    for (int c = 0; c < Shape::width; c += vector) {
      Entries v;
#pragma unroll
      for (int e = 0; e < vector; ++e) v.v[e] = a[c + e];
      *reinterpret_cast<Entries*>(to + c) = v;
    }
  }
  return __ffs(int(__ballot_sync(~0u, !good_pivot(pivot)) & 0xffu));
}
template <class T>
__device__ __noinline__ int factor_corner_carefully(T* block, T* V, T* scratch) {
  return factor_corner<true>(block, V, scratch);
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

/// Which of a lane's entries of the tile at (r0, k0) lie in the lower triangle of order n. `below`: the tile does not meet the
/// diagonal.
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
template <bool below, class T, class Matrix>
__device__ __forceinline__ void store_tile(const TensorEntries<T>& c, const Matrix& A, int n, int r0, int k0,
                                           const LanePlace& place) {
#pragma unroll
  for (int e = 0; e < 4; ++e)
    if (inside<below>(e, n, r0, k0, place)) *entry_of(A, e, r0, k0, place) = c.get(e);
}

/// A panel in shared memory, entry (r, c) at [c * pitch + r]: a warp's tiles and rows meet no bank twice.
template <class T, int rows>
inline constexpr int panel_pitch = (rows + 31) / 32 * 32 + 32 / int(sizeof(T));

/// 16 x 8 tiles in the registers of `warps` warps, tile columns dealt out in turn: the triangle of a matrix of order up to
/// 16 `strips`. The warp that owns a tile column factors its diagonal block, multiplies the tiles below by the inverse, and
/// leaves them in shared memory as the operands of everyone's update.
template <class T, int strips, int warps_>
struct Resident {
  static constexpr int warps = warps_, threads = 32 * warps, most = 16 * strips;
  static constexpr int columns = (2 * strips + warps - 1) / warps;  // tile columns of a warp
  static constexpr int pitch = panel_pitch<T, most>, panel = 8 * pitch;
  static constexpr int entries = 2 * panel + 2 * Corner<T>::size + Corner<T>::scratch;  // of shared memory
  static constexpr int tiles() {
    int all = 0;
    for (int q = 0; q < columns; ++q) all += strips - warps * q / 2;
    return all;
  }
  /// Blocks that share a multiprocessor: what the tiles and some 80 registers beside them leave room for.
  static constexpr int registers = min(255, 80 + tiles() * int(sizeof(T)));
  static constexpr int blocks = 65536 / (threads * ((registers + 7) / 8 * 8));
  /// The first strip of a warp's tile column q that is not above the diagonal.
  TF_HD static constexpr int top(int q) { return warps * q / 2; }
};

template <int warps>
__device__ __forceinline__ void team_sync() {
  if constexpr (warps == 1) __syncwarp();
  else __syncthreads();
}

/// Lambdas that index registers must become part of the function that holds them.
#define TF_INLINE_LAMBDA __attribute__((always_inline))

/// Branches that do the same to different registers must not become one that finds them in an array in memory.
template <int number>
__device__ __forceinline__ void kept_apart() {
  asm volatile("// branch %0" ::"n"(number));
}

/// A factor of order up to `most` in shared memory, panel after panel of eight columns, each from its diagonal on.
template <class T, int most>
struct KeptFactor {
  static constexpr int pad = 32 / int(sizeof(T));
  TF_HD static constexpr int start(int p) { return 8 * p * (most + pad) - 32 * p * (p - 1); }
  static constexpr int size = 8 * (most / 8) * (most + pad) - 32 * (most / 8) * (most / 8 - 1);
  T* data;
  /// Entry (r, 8 p + c)
  __device__ T& at(int p, int r, int c) const { return data[start(p) + c * (most + pad - 8 * p) + r - 8 * p]; }
};

/// Factors A, in global or in shared memory. V_step: how far apart the inverses of the diagonal blocks are left in V. With
/// `keeps`, the factor goes into `kept` as well.
template <class T, int strips, int warps, bool keeps = false, class Matrix>
__device__ __forceinline__ int factor_resident(const Matrix& A, T* shared, T* V, int V_step,
                                               KeptFactor<T, 16 * strips> kept = {nullptr}) {
  using Shape = Resident<T, strips, warps>;
  constexpr int pitch = Shape::pitch;
  T* const corner = shared + 2 * Shape::panel;
  T* const scratch = corner + Corner<T>::size;
  __shared__ int status[2];  // of the panel that was factored last, and of the one before
  const int warp = warps == 1 ? 0 : int(threadIdx.x) / 32, n = int(A.rows);
  const LanePlace place;
  TensorEntries<T> c[Shape::columns][strips];
  {
    const Matrix in = afresh(A);
    for_constants<Shape::columns>([&](auto column) TF_INLINE_LAMBDA {
      constexpr int q = decltype(column)::value, top = Shape::top(q);
      for_constants<strips - top>([&](auto strip) TF_INLINE_LAMBDA {
        constexpr int i = top + decltype(strip)::value;
        constexpr bool below = 8 * (warps * q + warps) <= 16 * i;
        c[q][i] = load_tile<below, T>(in, n, 16 * i, 8 * (warps * q + warp), place);
      });
    });
  }
  const auto left_part = [&](const T* Q, int i) TF_INLINE_LAMBDA {
    LeftPart<T> left;
#pragma unroll
    for (int s = 0; s < 2; ++s)
#pragma unroll
      for (int h = 0; h < 2; ++h) left.v[s][h] = Q[(4 * s + place.t) * pitch + 16 * i + place.g + 8 * h];
    return left;
  };
  const auto right_part = [&](const T* Q, int j) TF_INLINE_LAMBDA {
    RightPart<T> right;
#pragma unroll
    for (int s = 0; s < 2; ++s) right.v[s] = Q[(4 * s + place.t) * pitch + 8 * j + place.right_row()];
    return right;
  };
  // Writes panel p out and updates what lies right of the next one.
  const auto finish_panel = [&](auto constant, const T* Q, bool last) TF_INLINE_LAMBDA {
    constexpr int p = decltype(constant)::value;
    RightPart<T> right[Shape::columns];
#pragma unroll
    for (int q = 0; q < Shape::columns; ++q)
      if (warps * q + warps - 1 > p + 1) right[q] = right_part(Q, warps * q + warp);
    const Matrix out = afresh(A);
    for_constants<strips>([&](auto strip) TF_INLINE_LAMBDA {
      constexpr int i = decltype(strip)::value;
      if constexpr (2 * i + 1 > p) {
        if (16 * i >= n) return;
        const LeftPart<T> left = left_part(Q, i);
        if (i % warps == warp) {
          TensorEntries<T> x;
#pragma unroll
          for (int e = 0; e < 4; ++e) x.set(e, left.v[e % 2][e / 2]);
          if constexpr (2 * i > p) {
            store_tile<true>(x, out, n, 16 * i, 8 * p, place);
          } else {  // the upper half is the diagonal block, which was written before
#pragma unroll
            for (int e = 2; e < 4; ++e)
              if (inside<true>(e, n, 16 * i, 8 * p, place)) *entry_of(out, e, 16 * i, 8 * p, place) = x.get(e);
          }
          if constexpr (keeps)
#pragma unroll
            for (int e = 2 * i > p ? 0 : 2; e < 4; ++e) kept.at(p, 16 * i + place.row(e), place.col(e)) = x.get(e);
        }
        if (!last)
#pragma unroll
          for (int q = 0; q < Shape::columns; ++q)
            if (i >= Shape::top(q) && warps * q + warps - 1 > p + 1) {
              const int j = warps * q + warp;
              if ((warps * q > p + 1 || j > p + 1) && (warps * q + warps - 1 <= 2 * i + 1 || j <= 2 * i + 1))
                subtract_product(c[q][i], left, right[q]);
            }
      }
    });
  };
  // Panel p is known to the compiler wherever registers are indexed by it.
  const auto with_panel = [&](int p, auto f) TF_INLINE_LAMBDA {
    for_constants<2 * strips + 1>([&](auto constant) TF_INLINE_LAMBDA {
      if (p == decltype(constant)::value) {
        f(constant);
        kept_apart<decltype(constant)::value>();
      }
    });
  };
  int failed = 0;
  for (int p = 0;; ++p) {  // panel p is factored, then the update with panel p - 1 is completed
    team_sync<warps>();    // panel p - 1 is complete, and nobody reads the one before
    if (warps > 1 && p > 0) failed = status[(p - 1) % 2];
    const int before = failed;  // of panel p - 1
    const bool last = 8 * p >= n || before > 0, own = !last && warp == p % warps;
    T *const Q = shared + p % 2 * Shape::panel, *const R = shared + (p + 1) % 2 * Shape::panel;  // this one, the one before
    if (own) {  // the next panel goes ahead of the rest of the update
      with_panel(p, [&](auto constant) TF_INLINE_LAMBDA {
        constexpr int P = decltype(constant)::value, q = P / warps;
        if constexpr (P < 2 * strips) {
        if constexpr (P > 0) {
          const RightPart<T> right = right_part(R, P);
#pragma unroll
          for (int i = P / 2; i < strips; ++i)
            if (16 * i < n) subtract_product(c[q][i], left_part(R, i), right);
        }
#pragma unroll
        for (int f = 0; f < 2; ++f) corner[place.g * Corner<T>::pitch + place.t + 4 * f] = c[q][P / 2].get(P % 2 * 2 + f);
        }
      });
      T* const inverse = V + p * V_step;
      __syncwarp();  // the diagonal block is there
      failed = factor_corner<false>(corner, inverse, scratch);
      if (failed < 0) failed = factor_corner_carefully(corner, inverse, scratch);
      __syncwarp();  // its factor and inverse are there
      if (warps > 1 && int(threadIdx.x) % 32 == 0) status[p % 2] = failed;
      const Matrix out = afresh(A);
#pragma unroll
      for (int f = 0; f < 2; ++f) {
        const int r = place.g, k = place.t + 4 * f;
        if (k <= r && 8 * p + r < n) out(8 * p + r, 8 * p + k) = corner[r * Corner<T>::pitch + k];
        if (keeps && k <= r) kept.at(p, 8 * p + r, k) = corner[r * Corner<T>::pitch + k];
      }
    }
    with_panel(p, [&](auto constant) TF_INLINE_LAMBDA {
      constexpr int P = decltype(constant)::value;
      if constexpr (P < 2 * strips)
        if (own) {
          const RightPart<T> negative = negative_inverse(V + P * V_step, place);
#pragma unroll
          for (int i = (P + 1) / 2; i < strips; ++i)
            if (16 * i < n) {
              const TensorEntries<T> x = times_inverse(c[P / warps][i], negative);
#pragma unroll
              for (int e = 0; e < 4; ++e) Q[place.col(e) * pitch + 16 * i + place.row(e)] = x.get(e);
            }
        }
      if constexpr (P > 0) finish_panel(std::integral_constant<int, P - 1>{}, R, last);
    });
    if (last) return before > 0 ? 8 * (p - 1) + before : 0;
  }
}

}  // namespace trifactor::cuda
