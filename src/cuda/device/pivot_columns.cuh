// The core of every batched factorization: a warp factors the first columns of a matrix whose rows its lanes hold.
#pragma once

#include <cuda/device/mma.cuh>

#include <utility>

namespace trifactor::cuda {

/// Shared memory of one diagonal block: the columns on their way, each with a diagonal entry, and the scales. Two
/// columns at a time are enough, unless they are kept.
template <class T, int width, bool kept = false>
struct ColumnScratch {
  static constexpr int vector = sizeof(T) < 16 ? 16 / int(sizeof(T)) : 1;  // entries that are loaded together
  static constexpr int columns = kept ? width : 2;
  // Lanes with a row each are in different banks, and so are groups of lanes; two of these may be 64 bytes apart.
  static constexpr int step = width + (vector > 1 ? vector : width > 4 ? 1 : 2);
  static constexpr int used = columns * step + width;
  static constexpr int size = used + (used * int(sizeof(T)) % (width > 8 ? 128 : 64) == 0 ? vector : 0);
};

/// Lambdas that index registers must become part of the function that holds them.
#define TF_INLINE_LAMBDA __attribute__((always_inline))

/// f(0), f(1), ... f(count - 1), each a constant: arrays that it indexes stay in registers.
template <class F, int... i>
__device__ __forceinline__ void for_sequence(F f, std::integer_sequence<int, i...>) {
  (f(std::integral_constant<int, i>{}), ...);
}
template <int count, class F>
__device__ __forceinline__ void for_constants(F f) {
  for_sequence(f, std::make_integer_sequence<int, count>{});
}

/// x of lane l of the `group` lanes that work together.
template <int group, class T>
__device__ __forceinline__ T from_lane(T x, int l) {
  if constexpr (is_complex<T>)
    return T(__shfl_sync(~0u, x.re, l, group), __shfl_sync(~0u, x.im, l, group));
  else
    return __shfl_sync(~0u, x, l, group);
}

/// Factors `width` columns. Each lane holds `each` rows of them: a[0] is row `row`, of the diagonal block, which it
/// sends to the others through `scratch`, or, with row >= width, one further down, as all others are. `group` lanes
/// with the same scratch work on the same matrix.
///
/// Columns stay unscaled until the end, and every lane computes the next pivot for itself from what was sent around
/// meanwhile, so that the time is that of one reciprocal after the other. The entries right of the diagonal may be
/// anything. Returns the lane's own pivot; on return a holds L, with garbage from the first bad pivot on.
/// Without `careful` pivots must be of a middling size (see middling): squares and reciprocals may overflow.
///
/// With `solves`, b has the rows' entries of a right-hand side, a column more that is eliminated. In the diagonal block
/// it becomes M^-1 b, where L = M D^(1/2) and the diagonal of M is 1. `own_scale` becomes 1 / L(row, row).
/// With `kept`, what is below the diagonal of column c stays at scratch + c * step, unscaled.
template <bool careful, bool solves = false, bool kept = false, int group = 32, class T, int width, int each>
__device__ __forceinline__ Real<T> factor_columns(T (&a)[each][width], int row, T* scratch, T* b = nullptr,
                                                  Real<T>* own_scale = nullptr) {
  using R = Real<T>;
  using Scratch = ColumnScratch<T, width, kept>;
  constexpr int V = Scratch::vector;
  T column[width], next = T(0);  // the column that was sent, and its entry in the next pivot's row
  T above = T(0);                // the right-hand side in the pivot's row
  R corner = R(0), mine = R(1);
  const auto send = [&](auto constant) TF_INLINE_LAMBDA {
    constexpr int c = decltype(constant)::value, k = c + 1 < width ? c + 1 : c;
    T* raw = scratch + c % Scratch::columns * Scratch::step;  // two places save a barrier
    // The next diagonal entry, as it is so far, takes the place of the pivot, which is known; the first is not.
    constexpr int corner_at = c == 0 ? width : c;
    if (row < width && (c == 0 || row > c)) raw[row] = a[0][c];
    if (c + 1 < width && row == k) raw[corner_at] = a[0][k];
    __syncwarp();  // the column is visible
    // Lanes whose row is done need not read, which gains 4 % at order 16, and nothing where columns are kept.
    if (width <= 8 || kept || row > c || c == 0)
#pragma unroll
      for (int q = (c == 0 ? 0 : k) / V * V; q < width; q += V) {
        const auto v = *reinterpret_cast<const EntryVector<T, V>*>(raw + q);
#pragma unroll
        for (int e = 0; e < V; ++e) column[q + e] = v.v[e];
      }
    if (c + 1 < width) {
      corner = real(c > 0 && k % V ? column[c] : raw[corner_at]);
      next = column[k];
    }
    if constexpr (solves) above = from_lane<group>(b[0], c);  // shared memory would be busy twice for it
  };
  send(std::integral_constant<int, 0>{});
  R d = real(column[0]);
  R y = careful ? R(1) : rough_reciprocal(d);
  const auto eliminate = [&](auto constant) TF_INLINE_LAMBDA {
    constexpr int c = decltype(constant)::value;
    mine = c == row ? d : mine;
    T before[width], t[each];
    if constexpr (careful) {  // divided by sqrt(d) twice, since 1 / d may overflow
      const R scale = reciprocal_sqrt(d);
#pragma unroll
      for (int i = 0; i < each; ++i) t[i] = a[i][c] * scale;
#pragma unroll
      for (int q = c + 1; q < width; ++q) before[q] = column[q] * scale;
      if (c + 1 < width) d = corner - real((next * scale) * conj(next * scale));
      if constexpr (solves) above = above * scale;
    } else {  // 1 / d = y (1 + p), and the products with y do not wait for p
      // The square of a float overflows too soon to be computed first, as it is of a double to save time.
      const R sy = sizeof(R) == 4 ? real((next * y) * conj(next)) : real(next * conj(next)) * y;
      const R p = reciprocal_correction(d, y), rest = corner - sy;
      T ay[each];
#pragma unroll
      for (int i = 0; i < each; ++i) ay[i] = a[i][c] * y;
      if (c + 1 < width) {
        d = rest - sy * p;
        y = rough_reciprocal(d);
      }
#pragma unroll
      for (int i = 0; i < each; ++i) t[i] = ay[i] + ay[i] * p;
#pragma unroll
      for (int q = c + 1; q < width; ++q) before[q] = column[q];
    }
    if constexpr (solves) {
      if (row > c) b[0] = minus_product(b[0], t[0], above);
#pragma unroll
      for (int i = 1; i < each; ++i) b[i] = minus_product(b[i], t[i], above);
    }
    if (c + 1 < width) {
      // The two columns that are wanted at once come first.
#pragma unroll
      for (int q = c + 1; q < width && q < c + 3; ++q) a[0][q] = minus_product(a[0][q], t[0], conj(before[q]));
      send(std::integral_constant<int, (c + 1 < width ? c + 1 : c)>{});
    }
#pragma unroll
    for (int q = c + 3; q < width; ++q) a[0][q] = minus_product(a[0][q], t[0], conj(before[q]));
#pragma unroll
    for (int i = 1; i < each; ++i)
#pragma unroll
      for (int q = c + 1; q < width; ++q) a[i][q] = minus_product(a[i][q], t[i], conj(before[q]));
  };
  for_constants<width>(eliminate);
  T* scales = scratch + Scratch::columns * Scratch::step;
  const R scale = careful ? reciprocal_sqrt(mine) : pivot_scale(mine);
  if (row < width) scales[row] = T(scale);
  if (own_scale) *own_scale = scale;
  __syncwarp();  // the scales are visible
#pragma unroll
  for (int c = 0; c < width; c += V) {
    const auto all = *reinterpret_cast<const EntryVector<T, V>*>(scales + c);
#pragma unroll
    for (int i = 0; i < each; ++i)
#pragma unroll
      for (int e = 0; e < V; ++e) a[i][c + e] = a[i][c + e] * real(all.v[e]);
  }
  return mine;
}

/// Anything, for an entry that nobody uses.
template <class T>
__device__ __forceinline__ T anything() {
  T x;
  if constexpr (std::is_same_v<T, double>)
    asm("" : "=d"(x));
  else if constexpr (std::is_same_v<T, float>)
    asm("" : "=f"(x));
  else
    x = T(0);
  return x;
}

/// `count` neighbours in shared memory, on a boundary of 16 bytes, or of all of them if they are fewer.
template <int count, class T>
__device__ __forceinline__ void read_vectors(const T* from, T (&a)[count]) {
  constexpr int V = sizeof(T) < 16 ? min(16 / int(sizeof(T)), count) : 1;
#pragma unroll
  for (int c = 0; c < count; c += V) {
    const auto v = *reinterpret_cast<const EntryVector<T, V>*>(from + c);
#pragma unroll
    for (int e = 0; e < V; ++e) a[c + e] = v.v[e];
  }
}
template <int count, class T>
__device__ __forceinline__ void write_vectors(T* to, const T (&a)[count]) {
  constexpr int V = sizeof(T) < 16 ? 16 / int(sizeof(T)) : 1;
#pragma unroll
  for (int c = 0; c < count; c += V) {
    EntryVector<T, V> v;
#pragma unroll
    for (int e = 0; e < V; ++e) v.v[e] = a[c + e];
    *reinterpret_cast<EntryVector<T, V>*>(to + c) = v;
  }
}

template <class R>
__device__ inline bool middling(R d) {
  constexpr R least = sizeof(R) == 4 ? R(1e-30) : R(1e-100), most = sizeof(R) == 4 ? R(1e37) : R(1e100);
  return d >= least && d <= most;
}

/// Where a lane holds entries of a 16 x 8 tile on the tensor cores: rows lane / 4 + 8 h and columns lane % 4 + 4 f for
/// entry 2 h + f. The columns of the product are permuted for that: four lanes touch four neighbours whether memory
/// runs along rows or along columns.
struct LanePlace {
  int g, t;
  __device__ LanePlace() : g(int(threadIdx.x % 32 / 4)), t(int(threadIdx.x % 4)) {
    asm volatile("" : "+r"(g), "+r"(t));  // what is computed from them is not worth a register for long
  }
  __device__ int row(int e) const { return g + e / 2 * 8; }
  __device__ int col(int e) const { return t + e % 2 * 4; }
  __device__ int right_row() const { return int(unsigned(g) / 2 + unsigned(g) % 2 * 4); }
};

/// 16 rows of 8 columns as left operand: entry (g + 8 h, t + 4 s).
template <class T>
struct LeftPart {
  T v[2][2];  // [s][h]
};
/// 8 rows of 8 columns as right operand: entry (right_row, t + 4 s).
template <class T>
struct RightPart {
  T v[2];
};

/// A tile as left operand: its lanes already hold what they need.
template <class T>
__device__ __forceinline__ LeftPart<T> as_left(const TensorEntries<T>& c) {
  return {{{c.get(0), c.get(2)}, {c.get(1), c.get(3)}}};
}

/// c -= a b^H
template <class T>
__device__ __forceinline__ void subtract_product(TensorEntries<T>& c, const LeftPart<T>& a, const RightPart<T>& b) {
  if constexpr (!tensor<T>) {
    const int lane = int(threadIdx.x % 32), t = lane % 4;
    const auto from = [](T x, int l) {
      if constexpr (is_complex<T>)
        return T(__shfl_sync(~0u, x.re, l), __shfl_sync(~0u, x.im, l));
      else
        return __shfl_sync(~0u, x, l);
    };
#pragma unroll
    for (int s = 0; s < 2; ++s)
      for (int k = 0; k < 4; ++k) {
        const T y[2] = {from(b.v[s], 8 * t + k), from(b.v[s], 8 * t + 4 + k)};
        const T z[2] = {from(a.v[s][0], lane - t + k), from(a.v[s][1], lane - t + k)};
#pragma unroll
        for (int e = 0; e < 4; ++e) c.set(e, minus_product(c.get(e), z[e / 2], conj(y[e % 2])));
      }
  } else if constexpr (std::is_same_v<T, float>) {
#if TRIFACTOR_TENSOR
    unsigned high_a[2][2], low_a[2][2], high_b[2], low_b[2];
#pragma unroll
    for (int s = 0; s < 2; ++s) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const TwoParts x(a.v[s][h]);
        high_a[s][h] = x.high, low_a[s][h] = x.low;
      }
      const TwoParts x(-b.v[s]);
      high_b[s] = x.high, low_b[s] = x.low;
    }
    float part[4] = {0, 0, 0, 0};  // sums are cut off, not rounded, inside the tensor cores: they are added up outside
    mma8_tf32(part, low_a, high_b);
    mma8_tf32(part, high_a, low_b);
    mma8_tf32(part, high_a, high_b);
#pragma unroll
    for (int e = 0; e < 4; ++e) c.re[e] += part[e];
#endif
  } else if constexpr (std::is_same_v<T, double>) {
#pragma unroll
    for (int s = 0; s < 2; ++s) mma(c.re, a.v[s][0], a.v[s][1], -b.v[s]);
  } else {
    constexpr bool rounded = sizeof(Real<T>) == 4;  // as above
    TensorEntries<T> part;
#pragma unroll
    for (int e = 0; e < 4; ++e) part.set(e, rounded ? T(0) : c.get(e));
#pragma unroll
    for (int s = 0; s < 2; ++s) tensor_subtract<false>(part, a.v[s][0], a.v[s][1], b.v[s]);
#pragma unroll
    for (int e = 0; e < 4; ++e) c.set(e, rounded ? c.get(e) + part.get(e) : part.get(e));
  }
}

}  // namespace trifactor::cuda
