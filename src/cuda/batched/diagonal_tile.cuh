// The factor of a diagonal tile of 32 x 32 in shared memory, by one warp.
#pragma once

#include <cuda/device/pivot_block.cuh>

namespace trifactor::cuda {

/// V[b] := (diagonal block b of a factored tile)^-H, with the reciprocals of its diagonal. By one warp, by
/// substitution: column k of the inverse of block b to a lane.
template <int pitch, class T>
__device__ __forceinline__ void invert_diagonal_blocks(const T* L, const T* scales, T* V) {
  const int b = int(threadIdx.x) % 32 / 8, k = int(threadIdx.x) % 8;
  const T* const block = L + 8 * b * (pitch + 1);
  T x[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) x[i] = T(i == k ? 1 : 0);
#pragma unroll
  for (int m = 0; m < 8; ++m) {
    x[m] = x[m] * real(scales[8 * b + m]);
#pragma unroll
    for (int i = m + 1; i < 8; ++i) x[i] = minus_product(x[i], x[m], block[m * pitch + i]);
  }
  T* const out = V + b * PivotBlock<T>::size + k * PivotBlock<T>::pitch;
#pragma unroll
  for (int i = 0; i < 8; ++i) out[i] = conj(x[i]);
}

/// Factors a tile of order n up to 32 in shared memory by one warp, eight columns after the other, and inverts its
/// diagonal blocks of eight: V[b] = (its diagonal block b)^-H by rows. A lane has a row of the tile; those of the
/// diagonal block send its columns around. Blocks of eight beyond n are left out: nothing lies below them. Returns 0,
/// the failed column + 1, or, without `safe`, -1 when a pivot is not in the fast range: what the tile holds then is of
/// no use.
template <bool safe, int pitch, class T>
__device__ __forceinline__ int factor_tile(T* L, int n, T* scratch, T* V) {
  using R = Real<T>;
  constexpr int edge = 32, width = 8;
  const int row = int(threadIdx.x) % 32;
  R mine = R(1), own_scale = R(1);
  if (n < edge) {  // the identity beyond the last row
    if (row >= n)
      for (int k = 0; k < edge; ++k) L[k * pitch + row] = T(k == row ? 1 : 0);
    __syncwarp();  // it is there
  }
#pragma unroll 1
  for (int k0 = 0; k0 < n; k0 += width) {
    T* const panel = L + k0 * pitch;
    T a[1][width];
#pragma unroll
    for (int c = 0; c < width; ++c) a[0][c] = panel[c * pitch + row];
    R scale;
    const R pivot = factor_columns<safe>(a, row >= k0 ? row - k0 : edge, scratch, static_cast<T*>(nullptr), &scale);
    if (row / width == k0 / width) mine = pivot, own_scale = scale;
#pragma unroll
    for (int c = 0; c < width; ++c) {
      if constexpr (is_complex<T>)
        if (row == k0 + c) a[0][c] = T(real(a[0][c]));
      panel[c * pitch + row] = a[0][c];
    }
    __syncwarp();             // the panel is there
    if (k0 + width < edge) {  // the next one -= what is left of it
      const TilePlace place;
      const bool upper = k0 + width < 16;  // whether rows 0 .. 15 take part
      TensorEntries<T> c[2];
      T* const next = panel + (width + place.t) * pitch + place.g;
#pragma unroll
      for (int i = 0; i < 8; ++i) c[i / 4].set(i % 4, next[i % 2 * 4 * pitch + i / 2 * 8]);
#pragma unroll 1
      for (int u = 0; u <= k0; u += width) {
        const T* const from = L + (u + place.t) * pitch + place.g;
        const RightPart<T> right{{from[k0 + width], from[4 * pitch + k0 + width]}};
        const auto left = [&](int r) TF_INLINE_LAMBDA {
          return LeftPart<T>{{{from[r], from[r + 8]}, {from[4 * pitch + r], from[4 * pitch + r + 8]}}};
        };
        if (upper) subtract_product(c[0], left(0), right);
        subtract_product(c[1], left(16), right);
      }
#pragma unroll
      for (int i = 0; i < 8; ++i)
        if (upper || i >= 4) next[i % 2 * 4 * pitch + i / 2 * 8] = c[i / 4].get(i % 4);
      __syncwarp();  // it is updated
    }
  }
  if (!safe && __any_sync(~0u, !in_fast_range(mine))) return -1;
  scratch[row] = T(own_scale);
  __syncwarp();  // all scales are there
  invert_diagonal_blocks<pitch>(L, scratch, V);
  return __ffs(int(__ballot_sync(~0u, !good_pivot(mine))));
}
/// The same of floats. A lane holds all that is left of its row, and updates it without the tensor cores: three
/// products in turn and a way through shared memory take longer. It carries a row of the identity, too, which becomes
/// one of an inverse. For other scalars there are not enough registers.
template <bool safe, int pitch>
__device__ __forceinline__ int factor_tile(float* L, int n, float* scratch, float* V) {
  constexpr int edge = 32, width = 8;
  const int row = int(threadIdx.x) % 32;
  float rest[edge], mine = 1.0f;
#pragma unroll
  for (int k = 0; k < edge; ++k) rest[k] = row < n ? L[k * pitch + row] : k == row ? 1.0f : 0.0f;
#pragma unroll 1
  for (int k0 = 0; k0 < n; k0 += width) {
    float* const panel = L + k0 * pitch;
    float a[2][width];
#pragma unroll
    for (int c = 0; c < width; ++c) a[0][c] = rest[c], a[1][c] = c == row % width ? 1.0f : 0.0f;
    const float pivot = factor_columns<safe>(a, row >= k0 ? row - k0 : edge, scratch);
    if (row / width == k0 / width) mine = pivot;
#pragma unroll
    for (int c = 0; c < width; ++c) panel[c * pitch + row] = a[0][c];
    if (row < width) write_vectors(V + k0 / width * PivotBlock<float>::size + row * PivotBlock<float>::pitch, a[1]);
    __syncwarp();  // the panel is there
#pragma unroll
    for (int p = width; p < edge; p += width)
      if (k0 + p < edge)
#pragma unroll
        for (int c = 0; c < width; ++c) {
          float v[width];
          read_vectors(panel + c * pitch + k0 + p, v);
#pragma unroll
          for (int r = 0; r < width; ++r) rest[p + r] -= a[0][c] * v[r];
        }
#pragma unroll
    for (int k = 0; k < edge - width; ++k) rest[k] = rest[k + width];
  }
  if (!safe && __any_sync(~0u, !in_fast_range(mine))) return -1;
  return __ffs(int(__ballot_sync(~0u, !good_pivot(mine))));
}
/// Apart, so that its registers are not held in the usual case.
template <int pitch, class T>
__device__ __noinline__ int factor_tile_safely(T* L, int n, T* scratch, T* V) {
  return factor_tile<true, pitch>(L, n, scratch, V);
}

}  // namespace trifactor::cuda
