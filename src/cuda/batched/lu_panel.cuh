// LU with partial pivoting in registers, one row to a thread: of a small matrix, or of a panel of a larger one. Rows
// stay with their threads, which track where the interchanges move them, and are stored there at the end. A step finds
// the pivot by warp votes and broadcasts the pivot row through shared memory.
#pragma once

#include <core/batch.hpp>
#include <cuda/device/mma.cuh>

namespace trifactor::cuda {

/// |a| as two words that compare as the moduli do, the high one first; a NaN beats every number.
struct PivotKey {
  unsigned high, low;
  __device__ bool is_above(const PivotKey& k) const {
    return (std::uint64_t(high) << 32 | low) > (std::uint64_t(k.high) << 32 | k.low);
  }
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
  const float y = approximate_reciprocal(d);
  return fmaf(y, fmaf(-d, y, 1.0f), y);
}
__device__ inline double reciprocal(double d) {
  const double y = approximate_reciprocal(d);
  const double e = fma(-d, y, 1.0);  // about 20 bits
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
/// Whether neither |d| nor its reciprocal is near overflow or underflow, from the high word of d's key.
template <class R>
__device__ bool has_safe_reciprocal(unsigned high) {
  constexpr unsigned one = sizeof(R) == 8 ? 0x3ff00000u : 0x3f800000u, far = sizeof(R) == 8 ? 0x3e000000u : 0x32000000u;
  return high - (one - far) <= 2 * far;  // 2^-992 to 2^992, or 2^-100 to 2^100
}
/// Scales a and d, |a| <= |d|, d not zero, so that d has a safe reciprocal and a / d is the same: exact, or where a
/// underflows the quotient does not matter.
template <class T>
__device__ void scale_pivot(T& a, T& d) {
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
  /// The lane of the group with the largest key, and among equals the one in the uppermost place, as a mask of one bit,
  /// and the high word of its key; 0 where none of them is a candidate. Keys of others have a high word of 0.
  template <bool two_words>
  __device__ static unsigned best_mask(bool candidate, PivotKey key, int place, unsigned& top) {
    top = largest(key.high);
    const unsigned tied = __ballot_sync(~0u, candidate && key.high == top) & mask();
    const bool several = (tied & (tied - 1)) != 0;
    if (lanes == 32 ? several : __any_sync(~0u, several)) return best_of_tied<two_words>(tied, key, place);
    return tied;
  }
  /// The same among lanes whose keys have equal high words.
  template <bool two_words>
  __device__ static unsigned best_of_tied(unsigned tied, PivotKey key, int place) {
    const unsigned group = mask(), self = 1u << threadIdx.x % 32;
    if constexpr (two_words) {
      const unsigned low = largest(tied & self ? key.low : 0);
      tied = __ballot_sync(~0u, (tied & self) && key.low == low) & group;
    }
    const unsigned uppermost = largest(tied & self ? ~unsigned(place) : 0);
    return __ballot_sync(~0u, (tied & self) && ~unsigned(place) == uppermost) & group;
  }
};

/// `width` columns in registers. Registers are rotated by `step` columns after every `step` columns, so that the
/// unrolled code is that long only. With step = width nothing is rotated. A matrix belongs to `lanes` lanes of a warp,
/// or to a block.
template <class T, int width, int step, int lanes, bool is_block>
struct LuRows {
  static constexpr int vector = vector_of<T>;
  static constexpr bool two_words = sizeof(Real<T>) == 8;
  static_assert(width % step == 0 && step % vector == 0);
  using Vector = EntryVector<T, vector>;
  /// Behind the pivot row in shared memory: the pivot's reciprocal, and where the row stood.
  struct alignas(16) RowEnd {
    T inverse;
    int place;
  };
  static constexpr int pitch = width + int(sizeof(RowEnd) / sizeof(T));  // between rows in shared memory
  struct Candidate {
    PivotKey key;
    int place;
  };

  /// Factors A; pivots are counted from `first` on. Returns 0 or the first k + 1 whose pivot is zero. `rows` are two
  /// pivot rows in shared memory for each group, or for each warp of the block, `candidates` two for each such warp.
  template <class I>
  __device__ static int factor(const Tile<T, I>& A, int* pivots, int first, T* rows, Candidate* candidates) {
    using Group = LaneGroup<lanes>;
    constexpr bool one_matrix = is_block || lanes == 32;  // all lanes of a warp work on the same
    const int rank = int(threadIdx.x) % (is_block ? 1024 : lanes), lane = int(threadIdx.x) % 32;
    const int warp = int(threadIdx.x) / 32, warps = int(blockDim.x) / 32;
    const int m = int(A.rows), n = int(A.cols), steps = min(m, n);
    const int own = rank < m ? n : 0;  // columns that this thread has
    T a[width];
    load(A.data + rank, A.col_stride, own, a);
    int place = rank;                      // of the row; once it was a pivot, ~place
    unsigned alive = rank < m ? ~0u : 0u;  // until the row is a pivot
    int own_pivot = 0, zero_at = 0, at = 0;
#pragma unroll 1
    for (; one_matrix ? at < steps : __any_sync(~0u, at < steps); at += step) {
      const int left = n - at;  // columns from here on
#pragma unroll
      for (int s = 0; s < step; ++s) {
        const int k = at + s;
        if (one_matrix && k >= steps) break;
        const bool goes_on = one_matrix || k < steps;
        if (k == steps) alive = 0;
        PivotKey key = pivot_key(a[s]);
        key.high &= alive;
        T inverse = is_complex<T> ? T(0) : reciprocal(a[s]);  // while the lanes vote
        unsigned top;
        unsigned best = Group::template best_mask<two_words>(alive, key, place, top);
        T* row = rows + (is_block ? 2 * warp + k % 2 : k % 2) * pitch;
        if (best >> lane & 1) {
          give_row(a, s, left, row);
          *reinterpret_cast<RowEnd*>(row + width) = {is_complex<T> ? reciprocal(a[s]) : inverse, place};
          if (is_block) candidates[k % 2 * 32 + warp] = {key, place};
        }
        if constexpr (is_block) {
          if (best == 0 && lane == 0) candidates[k % 2 * 32 + warp] = {{0, 0}, -1};
          __syncthreads();  // every warp's candidate is there; those of the step before last are no longer read
          const Candidate c = lane < warps ? candidates[k % 2 * 32 + lane] : Candidate{{0, 0}, -1};
          const unsigned chosen = LaneGroup<32>::template best_mask<two_words>(c.place >= 0, c.key, c.place, top);
          row = rows + (2 * (__ffs(int(chosen)) - 1) + k % 2) * pitch;
          best = chosen >> warp & 1 ? best : 0;
        } else {
          __syncwarp();  // the pivot row is there; that of the step before last is no longer read
        }
        const RowEnd end = *reinterpret_cast<const RowEnd*>(row + width);
        T l = a[s];
        inverse = end.inverse;
        if (goes_on && !has_safe_reciprocal<Real<T>>(top)) {
          asm volatile("// seldom: a branch, not predicates");
          T pivot = row[s];
          if (pivot == T(0)) {
            if (zero_at == 0) zero_at = k + 1;
            inverse = T(1);  // l = 0, as is the column
          } else {
            scale_pivot(l, pivot);
            inverse = reciprocal(pivot);
          }
        }
        if (goes_on) {
          if (rank == k) own_pivot = end.place;
          if (place == k) place = end.place;
          if (best >> lane & 1) place = ~k, alive = 0;
        }
        if (alive) {
          l = l * inverse;
          a[s] = l;
          subtract_row(a, s, left, l, row);
        }
      }
      rotate(a);
    }
#pragma unroll 1
    for (; step < width && at < width; at += step) rotate(a);  // all the way round
    if (rank < steps) pivots[rank] = first + own_pivot + 1;
    store(a, A.data + (place < 0 ? ~place : place), A.col_stride, own);
    return zero_at;
  }

 private:
  /// A row, of which the thread has `own` entries.
  template <class I>
  __device__ __forceinline__ static void load(const T* from, I stride, int own, T (&a)[width]) {
#pragma unroll
    for (int j = 0; j < width; ++j, from += stride) a[j] = j < own ? *from : T(0);
  }
  template <class I>
  __device__ __forceinline__ static void store(const T (&a)[width], T* to, I stride, int own) {
    // Optimization barrier: addresses and predicates held since the rows were read would spill.
    if constexpr (sizeof(I) == 8)
      asm volatile("" : "+l"(stride));
    else
      asm volatile("" : "+r"(stride));
    asm volatile("" : "+r"(own));
#pragma unroll
    for (int j = 0; j < width; ++j, to += stride)
      if (j < own) *to = a[j];
  }
  /// The pivot row, from the column in register s on, to shared memory; `left` columns are in use.
  __device__ __forceinline__ static void give_row(const T (&a)[width], int s, int left, T* row) {
#pragma unroll
    for (int j = s / vector * vector; j < width; j += vector) {
      if (j >= step && j % step == 0 && j >= left) break;
      Vector x;
#pragma unroll
      for (int v = 0; v < vector; ++v) x.v[v] = a[j + v];
      reinterpret_cast<Vector*>(row)[j / vector] = x;
    }
  }
  /// The columns behind register s -= l times the pivot row.
  __device__ __forceinline__ static void subtract_row(T (&a)[width], int s, int left, T l, const T* row) {
#pragma unroll
    for (int j = s / vector * vector; j < width; j += vector) {
      if (j >= step && j % step == 0 && j >= left) break;
      const Vector u = reinterpret_cast<const Vector*>(row)[j / vector];
#pragma unroll
      for (int v = 0; v < vector; ++v)
        if (j + v > s) a[j + v] = minus_product(a[j + v], l, u.v[v]);
    }
  }
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

}  // namespace trifactor::cuda
