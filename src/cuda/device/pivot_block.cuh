// The small diagonal block of every batched Cholesky factorization, in registers: a row to a lane, with columns sent
// through shared memory. There is a fast form for pivots in_fast_range, and a safe one for all others.
#pragma once

#include <cuda/device/fragments.cuh>

namespace trifactor::cuda {

template <class R>
struct FastRange {
  static constexpr R smallest = sizeof(R) == 4 ? R(1e-30) : R(1e-100), largest = sizeof(R) == 4 ? R(1e37) : R(1e100);
};
template <class R>
__device__ inline bool in_fast_range(R d) {
  return d >= FastRange<R>::smallest && d <= FastRange<R>::largest;
}

/// Shared memory of one diagonal block: the columns on their way, each with a diagonal entry, and the scales. Two
/// columns at a time are enough, unless all of them stay.
template <class T, int width, bool keeps_columns = false>
struct ColumnScratch {
  static constexpr int vector = vector_of<T>;
  static constexpr int columns = keeps_columns ? width : 2;
  // Lanes with a row each are in different banks, and so are groups of lanes; two of these may be 64 bytes apart.
  static constexpr int step = width + (vector > 1 ? vector : width > 4 ? 1 : 2);
  static constexpr int used = columns * step + width;
  static constexpr int size = used + (used * int(sizeof(T)) % (width > 8 ? 128 : 64) == 0 ? vector : 0);
};

/// Factors `width` columns. Each lane holds `each` rows of them: a[0] is row `row`, of the diagonal block, which it
/// sends to the others through `scratch`, or, with row >= width, one further down, as all others are. `group` lanes
/// with the same scratch work on the same matrix.
///
/// Columns stay unscaled until the end, and every lane computes the next pivot for itself from what was sent around
/// meanwhile, so that the time is that of one reciprocal after the other. The entries right of the diagonal may have
/// any value. Returns the lane's own pivot; on return a holds L, with garbage from the first bad pivot on.
/// Without `safe` pivots must be in the fast range (see in_fast_range): squares and reciprocals may overflow.
///
/// With `solves`, b has the rows' entries of a right-hand side, a column more that is eliminated. In the diagonal block
/// it becomes M^-1 b, where L = M D^(1/2) and the diagonal of M is 1. `own_scale` becomes 1 / L(row, row).
/// With `keeps_columns`, what is below the diagonal of column c stays at scratch + c * step, unscaled.
template <bool safe, bool solves = false, bool keeps_columns = false, int group = 32, class T, int width, int each>
__device__ __forceinline__ Real<T> factor_columns(T (&a)[each][width], int row, T* scratch, T* b = nullptr,
                                                  Real<T>* own_scale = nullptr) {
  using R = Real<T>;
  using Scratch = ColumnScratch<T, width, keeps_columns>;
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
    // Lanes whose row is done need not read, which gains 4 % at order 16, and nothing where columns stay.
    if (width <= 8 || keeps_columns || row > c || c == 0)
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
  R y = safe ? R(1) : early_reciprocal(d);
  const auto eliminate = [&](auto constant) TF_INLINE_LAMBDA {
    constexpr int c = decltype(constant)::value;
    mine = c == row ? d : mine;
    T before[width], t[each];
    if constexpr (safe) {  // divided by sqrt(d) twice, since 1 / d may overflow
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
        y = early_reciprocal(d);
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
  const R scale = safe ? reciprocal_sqrt(mine) : pivot_scale(mine);
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

/// An inverted diagonal block in shared memory, by rows.
template <class T>
struct PivotBlock {
  static constexpr int width = 8, pitch = width + vector_of<T>;
  static constexpr int size = width * pitch;
};

/// The right operand that makes subtract_product subtract -A V, for an inverse V in shared memory, by rows.
template <class T>
__device__ __forceinline__ RightPart<T> negative_inverse(const T* V, const LanePlace& place) {
  RightPart<T> b;
#pragma unroll
  for (int s = 0; s < 2; ++s) b.v[s] = -conj(V[(4 * s + place.t) * PivotBlock<T>::pitch + place.right_row()]);
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

}  // namespace trifactor::cuda
