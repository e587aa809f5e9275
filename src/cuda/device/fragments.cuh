// Tiles of 16 x 8 in the registers of a warp, as operands and accumulators of the tensor cores, for all scalars; and
// what keeps arrays in registers.
#pragma once

#include <cuda/device/mma.cuh>

#include <utility>

namespace trifactor::cuda {

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

/// Branches that do the same to different registers must not become one that finds them in an array in memory.
template <int number>
__device__ __forceinline__ void distinct_branch() {
  asm volatile("// branch %0" ::"n"(number));
}

/// x of lane l of the `group` lanes that work together.
template <int group, class T>
__device__ __forceinline__ T from_lane(T x, int l) {
  if constexpr (is_complex<T>)
    return T(__shfl_sync(~0u, x.re, l, group), __shfl_sync(~0u, x.im, l, group));
  else
    return __shfl_sync(~0u, x, l, group);
}

/// `count` neighbours in shared memory, on a boundary of 16 bytes, or of all of them if they are fewer.
template <int count, class T>
__device__ __forceinline__ void read_vectors(const T* from, T (&a)[count]) {
  constexpr int V = min(vector_of<T>, count);
#pragma unroll
  for (int c = 0; c < count; c += V) {
    const auto v = *reinterpret_cast<const EntryVector<T, V>*>(from + c);
#pragma unroll
    for (int e = 0; e < V; ++e) a[c + e] = v.v[e];
  }
}
template <int count, class T>
__device__ __forceinline__ void write_vectors(T* to, const T (&a)[count]) {
  constexpr int V = vector_of<T>;
#pragma unroll
  for (int c = 0; c < count; c += V) {
    EntryVector<T, V> v;
#pragma unroll
    for (int e = 0; e < V; ++e) v.v[e] = a[c + e];
    *reinterpret_cast<EntryVector<T, V>*>(to + c) = v;
  }
}

/// Where a lane holds entries of a 16 x 8 tile on the tensor cores: rows lane / 4 + 8 h and columns lane % 4 + 4 f for
/// entry 2 h + f. The columns of the product are permuted for that: four lanes touch four neighbours whether memory
/// runs along rows or along columns. A LeftPart has entries (row(2 h), col(s)), a RightPart (right_row(), col(s)).
struct LanePlace {
  int g, t;
  __device__ LanePlace() : g(int(threadIdx.x % 32 / 4)), t(int(threadIdx.x % 4)) {
    asm volatile("" : "+r"(g), "+r"(t));  // what is computed from them is not worth a register for long
  }
  __device__ int row(int e) const { return g + e / 2 * 8; }
  __device__ int col(int e) const { return t + e % 2 * 4; }
  __device__ int right_row() const { return int(unsigned(g) / 2 + unsigned(g) % 2 * 4); }
};

/// Where a lane holds entries of a 16 x 8 tile: in rows g and g + 8, columns t and t + 4. Rows are permuted as columns
/// are, so that left and right operands are read alike.
struct TilePlace {
  int g, t;
  __device__ TilePlace() : g(LanePlace().right_row()), t(int(threadIdx.x) % 4) {
    asm volatile("" : "+r"(g), "+r"(t));  // what is computed from them is not worth a register for long
  }
};

/// A tile as left operand: its lanes already hold what they need.
template <class T>
__device__ __forceinline__ LeftPart<T> as_left(const TensorEntries<T>& c) {
  return {{{c.get(0), c.get(2)}, {c.get(1), c.get(3)}}};
}

/// c -= a b^H
template <class T>
__device__ __forceinline__ void subtract_product(TensorEntries<T>& c, const LeftPart<T>& a, const RightPart<T>& b) {
  if constexpr (std::is_same_v<T, float>) {
    float part[4] = {0, 0, 0, 0};
    mma(part, SplitLeft(a), SplitRight(RightPart<float>{{-b.v[0], -b.v[1]}}));
#pragma unroll
    for (int e = 0; e < 4; ++e) c.re[e] += part[e];
  } else if constexpr (std::is_same_v<T, double>) {
#pragma unroll
    for (int s = 0; s < 2; ++s) mma(c.re, a.v[s][0], a.v[s][1], -b.v[s]);
  } else {
    constexpr bool rounded = sizeof(Real<T>) == 4;  // sums of floats are cut off inside the tensor cores
    TensorEntries<T> part;
#pragma unroll
    for (int e = 0; e < 4; ++e) part.set(e, rounded ? T(0) : c.get(e));
#pragma unroll
    for (int s = 0; s < 2; ++s) tensor_subtract<false>(part, a.v[s][0], a.v[s][1], b.v[s]);
#pragma unroll
    for (int e = 0; e < 4; ++e) c.set(e, rounded ? c.get(e) + part.get(e) : part.get(e));
  }
}

/// c -= a b^T, 16 columns deep, for real scalars: negates a, and adds floats up in one sum.
template <class T>
__device__ __forceinline__ void subtract_sixteen(TensorEntries<T>& c, const LeftPart<T> (&a)[2],
                                                 const RightPart<T> (&b)[2]) {
  if constexpr (std::is_same_v<T, float>) {
    float part[4] = {0, 0, 0, 0};
#pragma unroll
    for (int s = 0; s < 2; ++s)
      mma(part, SplitLeft({{{-a[s].v[0][0], -a[s].v[0][1]}, {-a[s].v[1][0], -a[s].v[1][1]}}}), SplitRight(b[s]));
#pragma unroll
    for (int e = 0; e < 4; ++e) c.re[e] += part[e];
  } else {
#pragma unroll
    for (int s = 0; s < 4; ++s) mma(c.re, -a[s / 2].v[s % 2][0], -a[s / 2].v[s % 2][1], b[s / 2].v[s % 2]);
  }
}

/// Room between columns in shared memory, so that the tiles of a warp meet no bank twice.
template <class T>
inline constexpr int column_pad = 32 / int(sizeof(T));

}  // namespace trifactor::cuda
