// LU with partial pivoting of float matrices of up to 128 rows that lie in the shared memory of a block. One warp
// factors a panel, with up to four rows to a lane, while the others still update the columns beyond it.
#pragma once

#include <cuda/batched/lu_panel.cuh>
#include <cuda/device/fragments.cuh>
#include <cuda/device/pipeline.cuh>

namespace trifactor::cuda {

/// A panel of 16 columns. Rows stay where they are in registers until the end; pivot rows are left in shared memory,
/// where the others read them, so that what becomes of their registers does not matter.
struct LuWarpPanel {
  static constexpr int width = 16, unit = 8;  // columns after which the halves of a row change places
  static constexpr int pitch = width + 4;     // between rows, by 16 bytes
  using Vector = EntryVector<float, 4>;
  static constexpr unsigned sign = 0x80000000u;
  struct Lists {
    alignas(16) float rows[width * pitch];  // the pivot rows, with all columns of the panel
    alignas(16) int place[width];           // where they stood
    alignas(16) int to[width];              // where the first rows go; -1: they are pivots
  };

  /// The row with the largest modulus in column s, and of equals the uppermost, always by two votes: a branch around
  /// the second costs more than the vote. `top`: the bits of the modulus, with the sign bit set.
  template <int R>
  __device__ __forceinline__ static int find_pivot(const float (&a)[R][width], const unsigned (&alive)[R],
                                                   const int (&place)[R], int s, unsigned& top) {
    unsigned key[R], upper = 0;
    top = 0;
#pragma unroll
    for (int i = 0; i < R; ++i) key[i] = (__float_as_uint(a[i][s]) | sign) & alive[i], top = max(top, key[i]);
    top = __reduce_max_sync(~0u, top);
#pragma unroll
    for (int i = 0; i < R; ++i) upper = max(upper, key[i] == top ? ~unsigned(place[i]) : 0);
    return int(~__reduce_max_sync(~0u, upper));
  }
  /// Columns begin .. end - 1 of the lane's rows -= l times those of the pivot row u.
  template <int R>
  __device__ __forceinline__ static void subtract(float (&a)[R][width], const float (&l)[R], const float* u, int begin,
                                                  int end) {
#pragma unroll
    for (int j = begin / 4 * 4; j < end; j += 4) {
      const Vector x = *reinterpret_cast<const Vector*>(u + j % unit);
#pragma unroll
      for (int v = 0; v < 4; ++v)
        if (j + v >= begin)
#pragma unroll
          for (int i = 0; i < R; ++i) a[i][j + v] = minus_product(a[i][j + v], l[i], x.v[v]);
    }
  }

  template <int R>
  __device__ __forceinline__ static void swap_halves(float (&a)[R][width]) {
#pragma unroll
    for (int i = 0; i < R; ++i)
#pragma unroll
      for (int j = 0; j < unit; ++j) {
        const float x = a[i][j];
        a[i][j] = a[i][j + unit], a[i][j + unit] = x;
      }
  }
  /// The rows that are no pivots go back to their places. `at`: the columns in the first registers begin there.
  template <int R>
  __device__ __forceinline__ static void store_rows(const float (&a)[R][width], const unsigned (&alive)[R],
                                                    const int (&place)[R], float* A, int P, int n, int at) {
    float* to = A + at * P;
#pragma unroll
    for (int j = 0; j < width; ++j, to += P) {
      if (j == unit) to -= 2 * at * P;
#pragma unroll
      for (int i = 0; i < R; ++i)
        if (alive[i] && (j < unit ? j + at : j - at) < n) to[place[i]] = a[i][j];
    }
  }

  /// Factors A, (m, n) with P between columns and m <= 32 R. origin[p] becomes the row that ends in place p. Returns 0
  /// or the first k + 1 whose pivot is zero.
  template <int R>
  __device__ static int factor(float* A, int P, int m, int n, Lists& lists, unsigned char* origin) {
    const int lane = int(threadIdx.x) % 32, steps = min(m, n);
    float a[R][width];
    unsigned alive[R];  // all bits, until the row is a pivot
    int place[R];
#pragma unroll
    for (int i = 0; i < R; ++i) {
      const bool in = lane + 32 * i < m;
      place[i] = in ? lane + 32 * i : -1, alive[i] = in ? ~0u : 0;
    }
#pragma unroll
    for (int j = 0; j < width; ++j)
#pragma unroll
      for (int i = 0; i < R; ++i) a[i][j] = j < n && place[i] >= 0 ? A[j * P + lane + 32 * i] : 0.0f;
    int zero_at = 0, at = 0, own = 0;
#pragma unroll 1
    for (;;) {
      float* const near = lists.rows + at * (pitch + 1);        // of registers 0 .. 7
      float* const far = lists.rows + at * (pitch - 1) + unit;  // of the others
#pragma unroll
      for (int s = 0; s < unit; ++s) {
        const int k = at + s;
        if (k < steps) {  // a way out of the loop would copy all registers at every step
          unsigned top;
          const int p = find_pivot(a, alive, place, s, top);
          float r = reciprocal(__uint_as_float(top & ~sign));  // while the row is on its way
          float *const row = near + s * pitch, *const others = far + s * pitch;
#pragma unroll
          for (int i = 0; i < R; ++i) {
            const bool hit = place[i] == p;
            if (place[i] == k) place[i] = p;
            if (hit) {
#pragma unroll
              for (int j = 0; j < width; j += 4)
                *reinterpret_cast<Vector*>(j < unit ? row + j : others + j - unit) = {
                    {a[i][j], a[i][j + 1], a[i][j + 2], a[i][j + 3]}};
              alive[i] = 0, place[i] = k;
            }
          }
          if (lane == k) own = p;
          __syncwarp();  // the pivot row is there
          float pivot = row[s];
          if (has_safe_reciprocal<float>(top & ~sign)) {
            r = copysignf(r, pivot);
          } else if (pivot == 0.0f) {
            if (zero_at == 0) zero_at = k + 1;
            r = 1;  // l = 0, as is the column
          } else {
            float scale = 1;
            scale_pivot(scale, pivot);
            r = reciprocal(pivot);
#pragma unroll
            for (int i = 0; i < R; ++i) a[i][s] *= scale;
          }
          float l[R];
#pragma unroll
          for (int i = 0; i < R; ++i) a[i][s] = l[i] = a[i][s] * r;
          subtract(a, l, row, s + 1, unit);
          if (at == 0) subtract(a, l, others, unit, width);
        }
      }
      if (at + unit >= steps || at > 0) break;
      at = unit;
      swap_halves(a);
    }
    asm volatile("" : "+r"(P));  // optimization barrier: addresses held since the rows were read would spill
    if (lane < width) lists.place[lane] = own, lists.to[lane] = alive[0] ? place[0] : -1;
#pragma unroll
    for (int i = 0; i < R; ++i)
      if (place[i] >= 0) origin[place[i]] = (unsigned char)(lane + 32 * i);
    store_rows(a, alive, place, A, P, n, at);
    __syncwarp();  // all pivot rows are there
    for (int c = lane / width; c < n; c += 32 / width)
      if (lane % width < steps) A[lane % width + c * P] = lists.rows[lane % width * pitch + c];
    return zero_at;
  }
};

struct LuWarp {
  static constexpr int rows = 128, warps = 4, threads = 32 * warps, width = LuWarpPanel::width;
  using Lists = LuWarpPanel::Lists;
  using Vector = LuWarpPanel::Vector;
  int m, n, P;
  float* M;  // (m, n), column-major with P between columns, in shared memory

  /// Between columns: eight columns of four rows lie in different banks, and columns are 16 bytes apart.
  TF_HD static constexpr int pitch(int rows) { return rows + (12 - rows % 8) % 8; }
  /// Less than lu_resident_bytes, which tells whether a matrix fits. Up to 15 entries beyond the last are read.
  static constexpr std::size_t bytes(index_t rows, index_t cols) {
    return (std::size_t(pitch(int(rows))) * std::size_t(ceil_div(cols, index_t(8)) * 8) + 16) * sizeof(float);
  }

  __device__ int factor(int k, Lists& lists, unsigned char* origin) const {
    const int left = m - k, w = min(width, n - k);
    float* const A = M + k * P + k;
    if (left > 96) return LuWarpPanel::factor<4>(A, P, left, w, lists, origin);
    if (left > 64) return LuWarpPanel::factor<3>(A, P, left, w, lists, origin);
    // factor<1> for the last 32 rows overflows the instruction cache: 5 % slower at n = 100, 6 % at 128 (H200).
    return LuWarpPanel::factor<2>(A, P, left, w, lists, origin);
  }
  /// Rows of the columns from k1 on as the panel [k, k1) exchanges them, the first ones := L^-1 times them; a column to
  /// a thread.
  __device__ void row_block(int k, int k1, const Lists& lists, const unsigned char* origin) const {
    const int steps = min(width, m - k);
#pragma unroll 1
    for (int j = k1 + int(threadIdx.x); j < n; j += threads) {
      asm volatile("" ::: "memory");  // optimization barrier: loop invariants held in registers would spill
      float x[width], top[width], *const column = M + j * P + k;
      if (steps == width) {
        read_vectors(column, top);
      } else {
#pragma unroll
        for (int i = 0; i < width; ++i) top[i] = i < steps ? column[i] : 0.0f;
      }
#pragma unroll
      for (int i = 0; i < width; ++i) x[i] = i < steps ? column[origin[i]] : 0.0f;
#pragma unroll
      for (int i = 0; i < width; ++i)
        if (lists.to[i] >= 0) column[lists.to[i]] = top[i];
#pragma unroll
      for (int i = 1; i < width; ++i)
#pragma unroll
        for (int c = 0; c < i; c += 4) {
          const Vector l = *reinterpret_cast<const Vector*>(lists.rows + i * LuWarpPanel::pitch + c);
#pragma unroll
          for (int e = 0; e < 4; ++e)
            if (c + e < i) x[i] = minus_product(x[i], l.v[e], x[c + e]);
        }
      if (steps == width) {
        write_vectors(column, x);
      } else {
#pragma unroll
        for (int i = 0; i < width; ++i)
          if (i < steps) column[i] = x[i];
      }
    }
  }
  /// Columns j0 to j1 below the panel [k, k1) -= L U, 16 x 8 tiles entries at a time, by one of so many warps.
  template <int tiles>
  __device__ void update(int k, int k1, int j0, int j1, int self, int all) const {
    const int lane = int(threadIdx.x % 32), g = lane / 4, t = lane % 4;
    const int strips = (m - k1 + 15) / 16, groups = (j1 - j0 + 8 * tiles - 1) / (8 * tiles);
    for (int task = self; task < strips * groups; task += all) {
      const int i = k1 + task % strips * 16, j = j0 + task / strips * 8 * tiles;
      const bool inside[2] = {i + g < m, i + g + 8 < m};
      // The order of the columns of L is free: lane t has columns 4 t to 4 t + 3, which are one load of U.
      LeftPart<float> a[2];
      const float* L = M + (k + 4 * t) * P + i + g;
#pragma unroll
      for (int s = 0; s < 4; ++s) a[s / 2].v[s % 2][0] = L[s * P], a[s / 2].v[s % 2][1] = L[s * P + 8];
      TensorEntries<float> c[tiles];
#pragma unroll
      for (int q = 0; q < tiles; ++q) {
        if (j + 8 * q >= j1) break;
        const float* C = M + (j + 8 * q + 2 * t) * P + i + g;
#pragma unroll
        for (int e = 0; e < 4; ++e) c[q].re[e] = C[e % 2 * P + e / 2 * 8];
      }
#pragma unroll
      for (int q = 0; q < tiles; ++q) {
        if (j + 8 * q >= j1) break;
        const Vector u = *reinterpret_cast<const Vector*>(M + (j + 8 * q + g) * P + k + 4 * t);
        const RightPart<float> b[2] = {{{u.v[0], u.v[1]}}, {{u.v[2], u.v[3]}}};
        subtract_sixteen(c[q], a, b);
      }
#pragma unroll
      for (int q = 0; q < tiles; ++q) {
        if (j + 8 * q >= j1) break;
        float* C = M + (j + 8 * q + 2 * t) * P + i + g;
#pragma unroll
        for (int e = 0; e < 4; ++e)
          if (inside[e / 2]) C[e % 2 * P + e / 2 * 8] = c[q].re[e];
      }
    }
  }
};

/// T is float.
template <class T>
__global__ void __launch_bounds__(LuWarp::threads, 4)
    lu_warp_kernel(Items<T> A, Pivots<int> pivots, int* info, bool resets) {
  constexpr int width = LuWarp::width, warps = LuWarp::warps, each = LuWarp::rows / 32;
  extern __shared__ __align__(128) unsigned char raw[];
  __shared__ LuWarp::Lists lists;
  __shared__ unsigned char origin[LuWarp::rows / width][LuWarp::rows];
  __shared__ int zero;
  const int rank = int(threadIdx.x), lane = rank % 32, warp = rank / 32;
  for (index_t b = blockIdx.x; b < A.count; b += gridDim.x) {
    const int before = info_before(A, b, info, resets);
    if (before >= 0) {
      const Tile<T> a = A.item(b);
      const int m = int(a.rows), n = int(a.cols), all = min(m, n), P = LuWarp::pitch(m);
      const LuWarp matrix{m, n, P, reinterpret_cast<float*>(raw)};
      __syncthreads();  // nobody reads the item before, and all have read info
      if (rank == 0) zero = 0;
      const auto fetch = [&](int j0, int j1) {
        for (int j = j0 + warp; j < j1; j += warps)
          for (int i = lane; i < m; i += 32)
            copy_async<4>(shared_address(matrix.M + j * P + i), a.data + i + j * a.col_stride);
        copy_commit();
      };
      fetch(0, min(n, width)), fetch(min(n, width), n);
      copy_wait<1>();
      __syncthreads();  // the first panel is there
      for (int k = 0; k < all; k += width) {
        const int k1 = min(k + width, n), k2 = min(k1 + width, n);
        // The factoring warp changes with the item and the step, so that all four schedulers of the multiprocessor get
        // one.
        const int self = (warp + int(b) + k / width) % warps;
        if (self == 0) {
          const int at = matrix.factor(k, lists, origin[k / width]);
          if (at != 0 && lane == 0 && zero == 0) zero = k + at;
          if (lane < min(width, all - k)) pivots.item(b)[k + lane] = int(pivots.first) + k + lists.place[lane] + 1;
        } else if (k > 0) {
          matrix.update<4>(k - width, k, k1, n, self - 1, warps - 1);
        }
        if (k == 0) copy_wait<0>();
        __syncthreads();  // the panel, and all columns beyond it are there
        if (k1 >= n) break;
        matrix.row_block(k, k1, lists, origin[k / width]);
        __syncthreads();  // the rows of U are there
        if (k1 >= m) break;
        matrix.update<2>(k, k1, k1, k1 < all ? k2 : n, warp, warps);
        __syncthreads();  // the next panel is up to date
      }
      // Rows of L are where their panels left them: later interchanges are made on the way out.
      int from[each];
#pragma unroll
      for (int q = 0; q < each; ++q) from[q] = lane + 32 * q;
      for (int k = (all - 1) / width * width; k >= 0; k -= width) {
        const int last = k + width >= all ? n : k + width;
        for (int j = k + warp; j < last; j += warps)
#pragma unroll
          for (int q = 0; q < each; ++q)
            if (lane + 32 * q < m) a.data[lane + 32 * q + j * a.col_stride] = matrix.M[j * P + from[q]];
#pragma unroll
        for (int q = 0; q < each; ++q)
          if (from[q] >= k && lane + 32 * q < m) from[q] = k + origin[k / width][from[q] - k];
      }
    }
    if (rank == 0) note_info(info, b, before, before >= 0 ? zero : 0, pivots.first, resets);
  }
}

}  // namespace trifactor::cuda
