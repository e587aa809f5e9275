// LU with partial pivoting, a row to a thread: the columns of a small matrix, or of a panel of a larger one, lie in
// registers. Rows stay with their threads, which only note the places that the interchanges give them; they are written
// there at the end. A step searches the column by votes, and hands the pivot row round through shared memory.
#pragma once

#include <cuda/kernels/interchange.cuh>
#include <cuda/kernels/launch.cuh>

namespace trifactor::cuda {

/// |a| as two words that compare as the moduli do, the high one first; a NaN beats every number.
struct PivotKey {
  unsigned high, low;
};
__device__ inline PivotKey pivot_key(float a) { return {__float_as_uint(a) & 0x7fffffffu, 0}; }
__device__ inline PivotKey pivot_key(double a) {
  return {unsigned(__double2hiint(a)) & 0x7fffffffu, unsigned(__double2loint(a))};
}
template <class R>
__device__ PivotKey pivot_key(Complex<R> a) {
  return pivot_key(abs1(a));
}

/// 1 / d, to the last digit or two, for a d whose reciprocal neither overflows nor underflows.
__device__ inline float reciprocal(float d) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(d));
  return fmaf(y, fmaf(-d, y, 1.0f), y);
}
__device__ inline double reciprocal(double d) {
  double y;
  asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(d));
  const double e = fma(-d, y, 1.0);  // some 20 digits, binary
  return fma(y, fma(e, e, e), y);
}
template <class R>
__device__ Complex<R> reciprocal(Complex<R> d) {  // Smith's, as operator/
  if (abs1(d.re) >= abs1(d.im)) {
    const R t = d.im * reciprocal(d.re), r = reciprocal(d.re + d.im * t);
    return {r, -t * r};
  }
  const R t = d.re * reciprocal(d.im), r = reciprocal(d.re * t + d.im);
  return {t * r, -r};
}
/// Whether |d| and its reciprocal are far from where numbers end, from the high word of its key.
template <class R>
__device__ bool is_moderate(unsigned high) {
  constexpr unsigned one = sizeof(R) == 8 ? 0x3ff00000u : 0x3f800000u, far = sizeof(R) == 8 ? 0x3e000000u : 0x32000000u;
  return high - (one - far) <= 2 * far;  // 2^-992 to 2^992, or 2^-100 to 2^100
}
/// Makes d moderate and leaves a / d as it is, for |a| <= |d| and a d that is not zero: both are scaled, which is exact
/// or does not matter.
template <class T>
__device__ void moderate(T& a, T& d) {
  using R = Real<T>;
  constexpr R far = sizeof(R) == 8 ? R(0x1p600) : R(0x1p60f);
  const R size = abs1(d), scale = size > 1 ? 1 / far : far;
  if (size == Limits<R>::infinity)
    a = a * R(0), d = T(1);
  else
    a = a * scale, d = d * scale;
}

/// The lanes of a warp in groups of so many neighbours. All lanes of the warp call together.
template <int lanes>
struct LaneGroup {
  __device__ static unsigned mask() {
    return lanes == 32 ? ~0u : ((1u << lanes % 32) - 1) << (threadIdx.x % 32 / lanes * lanes);
  }
  __device__ static unsigned largest(unsigned x) {
    if constexpr (lanes == 32) {
      return __reduce_max_sync(~0u, x);
    } else {
#pragma unroll
      for (int half = lanes / 2; half > 0; half /= 2) x = max(x, __shfl_xor_sync(~0u, x, half));
      return x;
    }
  }
  /// The lane of the group with the largest key, and among equals the one in the uppermost place; -1 where none of them
  /// is a candidate.
  template <bool two_words>
  __device__ static int best(bool candidate, PivotKey key, int place) {
    const unsigned group = mask(), self = 1u << threadIdx.x % 32;
    unsigned top = largest(candidate ? key.high : 0);
    unsigned tied = __ballot_sync(~0u, candidate && key.high == top) & group;
    const bool several = (tied & (tied - 1)) != 0;
    if (lanes == 32 ? several : __any_sync(~0u, several)) {
      if constexpr (two_words) {
        top = largest(tied & self ? key.low : 0);
        tied = __ballot_sync(~0u, (tied & self) && key.low == top) & group;
      }
      top = largest(tied & self ? ~unsigned(place) : 0);
      tied = __ballot_sync(~0u, (tied & self) && ~unsigned(place) == top) & group;
    }
    return __ffs(int(tied)) - 1;
  }
};

/// `width` columns in registers, the pivot search in units of `step` columns: the registers are rotated by so many
/// columns after each unit, so that the code is one unit long. A matrix belongs to `lanes` lanes of a warp, or to a
/// block.
template <class T, int width, int step, int lanes, bool is_block>
struct LuRows {
  static constexpr int vector = 16 / int(sizeof(T)) > 1 ? 16 / int(sizeof(T)) : 1;  // entries that are moved together
  static constexpr int pitch = width + vector;  // between rows in shared memory, so that groups use other banks
  static constexpr bool two_words = sizeof(Real<T>) == 8;
  static_assert(width % step == 0 && step % vector == 0);
  struct alignas(sizeof(T) * vector) Vector {
    T v[vector];
  };
  struct Candidate {
    PivotKey key;
    int place;
  };

  /// Factors A; pivots are counted from `first` on. Returns 0 or the first k + 1 whose pivot is zero. `rows` are two
  /// pivot rows in shared memory for each group, or for each warp of the block, `candidates` two for each such warp.
  __device__ static int factor(const Tile<T>& A, int* pivots, int first, T* rows, Candidate* candidates) {
    using Group = LaneGroup<lanes>;
    const int rank = int(threadIdx.x) % (is_block ? 1024 : lanes), lane = int(threadIdx.x) % 32;
    const int warp = int(threadIdx.x) / 32, warps = int(blockDim.x) / 32;
    const int m = int(A.rows), n = int(A.cols), steps = min(m, n);
    const int own = rank < m ? n : 0;  // columns that this thread has
    T a[width];
    const T* from = A.data + rank;
#pragma unroll
    for (int j = 0; j < width; ++j, from += A.col_stride) a[j] = j < own ? *from : T(0);
    int place = rank < m ? rank : -1;  // of the row; once it was a pivot, ~place
    int own_pivot = 0, zero_at = 0, at = 0;
#pragma unroll 1
    for (; is_block ? at < steps : __any_sync(~0u, at < steps); at += step) {
      const int left = n - at;  // columns from here on
#pragma unroll
      for (int s = 0; s < step; ++s) {
        const int k = at + s;
        if (is_block && k >= steps) break;
        const bool candidate = k < steps && place >= 0;
        const PivotKey key = pivot_key(a[s]);
        int best = Group::template best<two_words>(candidate, key, place);
        int p;  // the place of the pivot row
        T* row = rows + k % 2 * pitch;
        if constexpr (is_block) {
          row += 2 * warp * pitch;
          if (lane == max(best, 0)) candidates[k % 2 * 32 + warp] = {key, best < 0 ? -1 : place};
        } else {
          p = __shfl_sync(~0u, place, best < 0 ? lane : best);
        }
        if (lane == best) {
#pragma unroll
          for (int j = s / vector * vector; j < width; j += vector) {
            if (j >= step && j % step == 0 && j >= left) break;
            Vector x;
#pragma unroll
            for (int v = 0; v < vector; ++v) x.v[v] = a[j + v];
            reinterpret_cast<Vector*>(row)[j / vector] = x;
          }
        }
        if constexpr (is_block) {
          __syncthreads();  // every warp's candidate is there; those of the step before last are no longer read
          const Candidate c = lane < warps ? candidates[k % 2 * 32 + lane] : Candidate{{0, 0}, -1};
          best = LaneGroup<32>::template best<two_words>(c.place >= 0, c.key, c.place);
          p = __shfl_sync(~0u, c.place, best);
          row = rows + (2 * best + k % 2) * pitch;
        } else {
          __syncwarp();  // the pivot row is there; that of the step before last is no longer read
        }
        if (rank == k) own_pivot = p;
        const bool below = candidate && place != p;
        place = candidate && place == p ? ~k : place == k ? p : place;
        if (below || rank == 0) {
          T pivot = row[s], l = a[s];
          if (!is_moderate<Real<T>>(pivot_key(pivot).high)) {
            if (!(pivot == T(0))) {
              moderate(l, pivot);
            } else {
              if (zero_at == 0 && k < steps) zero_at = k + 1;
              pivot = T(1);  // l = 0, as is the column
            }
          }
          l = l * reciprocal(pivot);
          if (below) {
            a[s] = l;
#pragma unroll
            for (int j = s / vector * vector; j < width; j += vector) {
              if (j >= step && j % step == 0 && j >= left) break;
              const Vector u = reinterpret_cast<const Vector*>(row)[j / vector];
#pragma unroll
              for (int v = 0; v < vector; ++v)
                if (j + v > s) a[j + v] = minus_product(a[j + v], l, u.v[v]);
            }
          }
        }
      }
      rotate(a);
    }
#pragma unroll 1
    for (; step < width && at < width; at += step) rotate(a);  // all the way round
    if (rank < steps) pivots[rank] = first + own_pivot + 1;
    T* to = A.data + (place < 0 ? ~place : place);
    index_t stride = A.col_stride;
    asm volatile("" : "+l"(stride));  // its multiples are made again, instead of kept since the rows were read
#pragma unroll
    for (int j = 0; j < width; ++j, to += stride)
      if (j < own) *to = a[j];
    return zero_at;
  }

 private:
  __device__ static void rotate(T (&a)[width]) {
    if constexpr (step < width) {
      T done[step];
#pragma unroll
      for (int j = 0; j < step; ++j) done[j] = a[j];
#pragma unroll
      for (int j = 0; j + step < width; ++j) a[j] = a[j + step];
#pragma unroll
      for (int j = 0; j < step; ++j) a[width - step + j] = done[j];
    }
  }
};

/// Blocks that a multiprocessor holds at once, where a thread has room for a row and what else it needs.
template <class T>
constexpr int resident_blocks(int width, int threads) {
  const int registers = 65536 / (width * int(sizeof(T)) / 4 + 40);
  return max(1, registers / threads);
}

inline constexpr int lu_group_threads = 128;

/// What info[b] was, or becomes where the kernel resets it.
template <class T>
__device__ int info_before(const Items<T>& A, index_t b, const int* info, bool resets) {
  return resets ? (A.possible(b) ? 0 : -1) : info[b];
}
/// By one thread of an item.
__device__ inline void note_info(int* info, index_t b, int before, int zero_at, index_t first, bool resets) {
  if (before == 0 && zero_at != 0)
    info[b] = int(first) + zero_at;
  else if (resets)
    info[b] = before;
}

/// Matrices of up to `width` rows and columns, as many to a warp as there is room for.
template <class T, int width, int step>
__global__ void __launch_bounds__(lu_group_threads, resident_blocks<T>(width, lu_group_threads))
    lu_group_kernel(Items<T> A, Pivots<int> pivots, int* info, bool resets) {
  using Rows = LuRows<T, width, step, width, false>;
  constexpr int groups = lu_group_threads / width;
  __shared__ __align__(16) T rows[groups][2 * Rows::pitch];
  const int group = int(threadIdx.x) / width;
  const index_t turn = index_t(gridDim.x) * groups;
  for (index_t b = index_t(blockIdx.x) * groups; b < A.count; b += turn) {
    const index_t item = b + group;
    const int before = item < A.count ? info_before(A, item, info, resets) : -1;
    Tile<T> a{nullptr, 0, 0, 1, 1};  // groups without an item keep the others company
    if (before >= 0) a = A.item(item);
    __syncwarp();  // nobody reads the rows of the item before
    const int zero_at = Rows::factor(a, pivots.item(item), int(pivots.first), rows[group], nullptr);
    if (threadIdx.x % width == 0 && item < A.count) note_info(info, item, before, zero_at, pivots.first, resets);
  }
}

/// A matrix of up to `threads` rows and `width` columns to a block.
template <class T, int width, int step, int threads>
__global__ void __launch_bounds__(threads, resident_blocks<T>(width, threads))
    lu_block_kernel(Items<T> A, Pivots<int> pivots, int* info, bool resets) {
  using Rows = LuRows<T, width, step, 32, true>;
  __shared__ __align__(16) T rows[threads / 32][2 * Rows::pitch];
  __shared__ typename Rows::Candidate candidates[2 * 32];
  for (index_t b = blockIdx.x; b < A.count; b += gridDim.x) {
    const int before = info_before(A, b, info, resets);
    int zero_at = 0;
    __syncthreads();  // nobody reads the rows of the item before, and all have read info
    if (before >= 0) zero_at = Rows::factor(A.item(b), pivots.item(b), int(pivots.first), rows[0], candidates);
    if (threadIdx.x == 0) note_info(info, b, before, zero_at, pivots.first, resets);
  }
}

inline constexpr int lu_step = 8;  // columns; n = 20 in f64: 67 us with 8, 82 with 32; n = 32: 99 and 91

template <class T, int width>
void launch_lu_group(void* stream, const Items<T>& A, const Pivots<int>& pivots, int* info, bool resets) {
  const index_t blocks = ceil_div(A.count, lu_group_threads / width);
  launch(stream, lu_group_kernel<T, width, min(width, lu_step)>, grid_for(blocks), lu_group_threads, 0, A, pivots, info,
         resets);
}
template <class T, int width, int threads>
void launch_lu_block(void* stream, const Items<T>& A, const Pivots<int>& pivots, int* info, bool resets) {
  launch(stream, lu_block_kernel<T, width, lu_step, threads>, grid_for(A.count), unsigned(ceil_div(A.rows, 32) * 32), 0,
         A, pivots, info, resets);
}

template <class T>
void launch_lu_rows(void* stream, Items<T> A, Pivots<int> pivots, int* info, bool resets) {
  const index_t edge = max(A.rows, A.cols);
  if (edge <= 4) return launch_lu_group<T, 4>(stream, A, pivots, info, resets);
  if (edge <= 8) return launch_lu_group<T, 8>(stream, A, pivots, info, resets);
  if (edge <= 16) return launch_lu_group<T, 16>(stream, A, pivots, info, resets);
  if (edge <= 32) return launch_lu_group<T, 32>(stream, A, pivots, info, resets);
  constexpr int narrow = int(lu_columns<T>(1024)), medium = int(lu_columns<T>(512)), wide = int(lu_columns<T>(128));
  if (A.cols <= narrow) return launch_lu_block<T, narrow, 1024>(stream, A, pivots, info, resets);
  if (A.cols <= medium) return launch_lu_block<T, medium, 512>(stream, A, pivots, info, resets);
  launch_lu_block<T, wide, 128>(stream, A, pivots, info, resets);
}

inline constexpr int swap_threads = 128, swap_columns = 32;

/// Interchanges in groups: which rows they move, and from where. A warp has a column to itself, and moves its rows with
/// coalesced accesses.
template <class T>
__global__ void __launch_bounds__(swap_threads)
    swap_rows_kernel(Items<T> A, Pivots<const int> pivots, index_t n, bool backward, const int* info) {
  constexpr int group = 64, moved = 2 * group / 32;
  __shared__ int partner[group], target[2 * group], source[2 * group];
  const int rank = int(threadIdx.x), lane = rank % 32, warp = rank / 32, warps = swap_threads / 32;
  for (index_t b = blockIdx.x; b < A.count; b += gridDim.x) {
    if (info && info[b] != 0) continue;
    const Tile<T> a = A.item(b);
    const int* p = pivots.item(b);
    const int all = int(pivots.size(b, n)), groups = (all + group - 1) / group;
    if (a.cols <= index_t(blockIdx.y) * swap_columns) continue;
    for (int g = 0; g < groups; ++g) {
      const int first = (backward ? groups - 1 - g : g) * group, size = min(group, all - first);
      __syncthreads();  // the lists of the group before are no longer read
      if (rank < size) partner[rank] = int(p[first + rank] - 1 - pivots.first);
      __syncthreads();  // the interchanges are there
      for (int t = rank; t < 2 * group; t += swap_threads) {
        const int s = t % group, to = s >= size ? 0 : t < group ? first + s : partner[s];
        target[t] = to, source[t] = s < size ? row_before(to, partner, first, size, backward) : to;
      }
      __syncthreads();  // the lists are complete
      for (index_t j0 = index_t(blockIdx.y) * swap_columns; j0 < a.cols; j0 += index_t(gridDim.y) * swap_columns)
        for (index_t j = j0 + warp; j < min(a.cols, j0 + swap_columns); j += warps) {
          T x[moved];
#pragma unroll
          for (int i = 0; i < moved; ++i) {
            const int t = lane + 32 * i;
            if (source[t] != target[t]) x[i] = a(source[t], j);
          }
          __syncwarp();  // every row is read before one is written
#pragma unroll
          for (int i = 0; i < moved; ++i) {
            const int t = lane + 32 * i;
            if (source[t] != target[t]) a(target[t], j) = x[i];
          }
        }
    }
  }
}

template <class T>
void launch_swap_rows(void* stream, Items<T> A, Pivots<const int> pivots, index_t n, bool backward, const int* info) {
  const dim3 grid(grid_for(A.count), strips_for(A.count, ceil_div(A.cols, index_t(swap_columns))));
  launch(stream, swap_rows_kernel<T>, grid, swap_threads, 0, A, pivots, n, backward, info);
}

}  // namespace trifactor::cuda

#define TRIFACTOR_INSTANTIATE_KERNELS(T)                                                      \
  template void trifactor::cuda::launch_lu_rows<T>(void*, Items<T>, Pivots<int>, int*, bool); \
  template void trifactor::cuda::launch_swap_rows<T>(void*, Items<T>, Pivots<const int>, index_t, bool, const int*);
