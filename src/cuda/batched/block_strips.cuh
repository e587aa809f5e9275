// What the warps of a block that factors from the left work with: what they share, and strips of 16 rows of a block
// column in registers, on their way to and from memory.
#pragma once

#include <cuda/device/pipeline.cuh>
#include <cuda/device/triangle_io.cuh>
#include <cuda/batched/block_shapes.cuh>

namespace trifactor::cuda {

/// Tile u of the 16 rows of which the lane's entries begin at p, and back.
template <class Layout, class T>
__device__ __forceinline__ TensorEntries<T> get_tile(const T* p, int u) {
  constexpr int vector = Layout::vector;
  TensorEntries<T> c;
#pragma unroll
  for (int e = 0; e < 4; e += vector) {
    const auto v = *reinterpret_cast<const EntryVector<T, vector>*>(p + Layout::offset(e / 2, 2 * u + e % 2));
#pragma unroll
    for (int i = 0; i < vector; ++i) c.set(e + i, v.v[i]);
  }
  return c;
}
template <class Layout, class T>
__device__ __forceinline__ void put_tile(T* p, int u, const TensorEntries<T>& c) {
  constexpr int vector = Layout::vector;
#pragma unroll
  for (int e = 0; e < 4; e += vector) {
    EntryVector<T, vector> v;
#pragma unroll
    for (int i = 0; i < vector; ++i) v.v[i] = c.get(e + i);
    *reinterpret_cast<EntryVector<T, vector>*>(p + Layout::offset(e / 2, 2 * u + e % 2)) = v;
  }
}
/// Rows 8 j .. 8 j + 7 of the first eight columns as right operand.
template <class Layout, class T>
__device__ __forceinline__ RightPart<T> right_part(const T* p, int j) {
  if constexpr (Layout::vector == 1) {
    return {{p[Layout::offset(j, 0)], p[Layout::offset(j, 1)]}};
  } else {
    constexpr int vector = Layout::vector, eights = vector / 2;  // that one vector holds
    const auto v = *reinterpret_cast<const EntryVector<T, vector>*>(p + Layout::offset(j / eights * eights, 0));
    return {{v.v[j % eights * 2], v.v[j % eights * 2 + 1]}};
  }
}

/// What the warps of a block share. Every function asks for the addresses again, so that the compiler knows them as
/// shared memory.
template <class T, class Shape>
struct BlockShared {
  __device__ static T* tiles() {  // operands
    extern __shared__ __align__(16) unsigned char raw[];
    return reinterpret_cast<T*>(raw);
  }
  /// The diagonal tile at k0; of a wide block column there are several. (nb, nb)
  __device__ static T* diagonal(int k0) {
    return tiles() + Shape::slots * Shape::slot_size + k0 / Shape::nb % Shape::diagonals * (Shape::nb * Shape::pitch);
  }
  __device__ static T* original() {  // it, before it is factored
    return diagonal(0) + Shape::diagonals * Shape::nb * Shape::pitch;
  }
  /// Of the diagonal blocks of the tile, likewise.
  __device__ static T* inverses(int k0) {
    return original() + Shape::nb * Shape::pitch +
           k0 / Shape::nb % Shape::diagonals * (Shape::nb / 8 * PivotBlock<T>::size);
  }
  /// Of factor_tile.
  __device__ static T* scratch() { return inverses(0) + Shape::diagonals * (Shape::nb / 8) * PivotBlock<T>::size; }
  /// The second half of the first diagonal tiles of a wide block column, below the diagonal.
  __device__ static T* between() { return tiles() + Shape::ring * StreamedTile<T>::size; }
  /// Of the latest diagonal tile: 0, or the order of the minor that failed.
  __device__ static volatile int& status() { return *reinterpret_cast<volatile int*>(scratch() + Shape::nb); }
};

/// Factors the diagonal tile at k0 by one warp, in the safe form if a pivot is not in the fast range.
template <class T, class Shape>
__device__ __forceinline__ void factor_diagonal(const Tile<T>& A, int k0) {
  using Shared = BlockShared<T, Shape>;
  constexpr int nb = Shape::nb, pitch = Shape::pitch;
  T* const L = Shared::diagonal(k0);
  const int order = min(nb, int(A.rows) - k0), lane = int(threadIdx.x) % 32;
  int failed = factor_tile<false, pitch>(L, order, Shared::scratch(), Shared::inverses(k0));
  if (failed < 0) {
    __syncwarp();  // nobody reads it any more
    for (int k = 0; k < nb; ++k) L[k * pitch + lane] = Shared::original()[k * pitch + lane];
    __syncwarp();  // it is as it was
    failed = factor_tile_safely<pitch>(L, order, Shared::scratch(), Shared::inverses(k0));
  }
  if (lane == 0) Shared::status() = failed > 0 ? k0 + failed : 0;
}
/// c -= left right^H, 32 columns deep: c(s, j) are `count` tiles of `active` strips, left(u, v, s) columns 8 u .. 8 u +
/// 7 of the strips, and done(u, v) is called when these are not wanted any more; v is u modulo `together`, a constant.
template <class Layout, int active, int count, int together = 4, class T, class Entries, class LeftOf, class Done>
__device__ __forceinline__ void subtract_tile(Entries c, const T* right, LeftOf left, Done done) {
  constexpr int steps = Layout::edge / 8, eight = Layout::offset(0, 2);
  const auto steps_of = [&](auto f) TF_INLINE_LAMBDA {
    if constexpr (together == steps) {
#pragma unroll
      for (int u = 0; u < steps; ++u) f(u, u, right + u * eight);
    } else {
#pragma unroll 1
      for (int u = 0; u < steps; u += together)
#pragma unroll
        for (int v = 0; v < together; ++v) f(u + v, v, right + u * eight + v * eight);
    }
  };
  if constexpr (std::is_same_v<T, float>) {
    float part[active][count][4];  // sums are cut off, not rounded, inside the tensor cores: they are added up outside
#pragma unroll
    for (int i = 0; i < active * count * 4; ++i) part[i / (4 * count)][i / 4 % count][i % 4] = 0;
    steps_of([&](int u, int v, const T* b) TF_INLINE_LAMBDA {
      SplitLeft all[active];
#pragma unroll
      for (int s = 0; s < active; ++s) all[s] = SplitLeft(left(u, v, s));
      done(u, v);
#pragma unroll
      for (int j = 0; j < count; ++j) {
        const SplitRight y(right_part<Layout>(b + j / 4 * Layout::size, j % 4));
#pragma unroll
        for (int s = 0; s < active; ++s) mma(part[s][j], all[s], y);
      }
    });
#pragma unroll
    for (int i = 0; i < active * count * 4; ++i)
      c(i / (4 * count), i / 4 % count).re[i % 4] -= part[i / (4 * count)][i / 4 % count][i % 4];
  } else {
    steps_of([&](int u, int v, const T* b) TF_INLINE_LAMBDA {
      LeftPart<T> all[active];
#pragma unroll
      for (int s = 0; s < active; ++s) all[s] = left(u, v, s);
#pragma unroll
      for (int j = 0; j < count; ++j) {
        const RightPart<T> y = right_part<Layout>(b + j / 4 * Layout::size, j % 4);
#pragma unroll
        for (int s = 0; s < active; ++s) subtract_product(c(s, j), all[s], y);
      }
      done(u, v);
    });
  }
}

/// The rows of a strip that belong to the diagonal tile go to the warp that factors it.
template <class T, class Shape>
__device__ __forceinline__ void put_diagonal(const TensorEntries<T> (&c)[Shape::tiles], int k0, int row,
                                             const TilePlace& place) {
  using Shared = BlockShared<T, Shape>;
  const int at = place.t * Shape::pitch + row - k0 + place.g;
  T *const L = Shared::diagonal(k0) + at, *const original = Shared::original() + at;
#pragma unroll
  for (int i = 0; i < 4 * Shape::tiles; ++i) {
    const int to = (i / 4 * 8 + i % 2 * 4) * Shape::pitch + i / 2 % 2 * 8;
    L[to] = c[i / 4].get(i % 4);
    original[to] = c[i / 4].get(i % 4);
  }
}
/// c := c L^-H for the diagonal tile L; to A and, if `keeps_copy`, to shared memory at `copy`. Without a branch, which
/// would keep apart what can be done side by side.
template <class Shape, class Layout, class T>
__device__ __forceinline__ void solve_strip(TensorEntries<T> (&c)[Shape::tiles], const Tile<T>& A, int k0, int row,
                                            bool keeps_copy, T* copy, const TilePlace& place) {
  using Shared = BlockShared<T, Shape>;
  constexpr int tiles = Shape::tiles, pitch = Shape::pitch;
  const T* const L = Shared::diagonal(k0) + place.t * pitch + place.g;
  const T* const inverses = Shared::inverses(k0) + place.t * PivotBlock<T>::pitch + place.g;
  StripWriter<T> writer(A, row, k0, place);
#pragma unroll
  for (int p = 0; p < tiles; ++p) {
    const T* const V = inverses + p * PivotBlock<T>::size;
    const RightPart<T> negative{{-conj(V[0]), -conj(V[4 * PivotBlock<T>::pitch])}};
    const TensorEntries<T> x = c[p] = times_inverse(c[p], negative);
    writer.next(x);
    if (keeps_copy) put_tile<Layout>(copy, p, x);
#pragma unroll
    for (int j = p + 1; j < tiles; ++j) {
      const T* const B = L + 8 * p * pitch + 8 * j;
      subtract_product(c[j], as_left(x), RightPart<T>{{B[0], B[4 * pitch]}});
    }
  }
}

}  // namespace trifactor::cuda
