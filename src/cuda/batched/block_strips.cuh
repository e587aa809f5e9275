// What the warps of a block that factors an item by block columns of 32 (cholesky_resident.cuh, cholesky_streamed.cuh)
// work with: its shape, which says how many they are and which part of the factor stays in shared memory; what they
// share; and strips of 16 rows of a block column in registers, on their way to and from memory.
#pragma once

#include <cuda/batched/diagonal_tile.cuh>
#include <cuda/device/pipeline.cuh>
#include <cuda/device/pivot_block.cuh>
#include <cuda/device/triangle_io.cuh>

namespace trifactor::cuda {

/// Layout of a 32 x 32 tile of the factor that stays in shared memory: a lane's part of a fragment is contiguous, 16
/// bytes of it, and the lanes follow each other. Operands are vector loads without padding or bank conflicts.
template <class T>
struct ResidentTile {
  static constexpr int edge = 32, size = edge * edge;
  static constexpr int vector = vector_of<T>;
  /// Offset from a lane's first entry to the one 8 `eight` rows down and 4 `four` columns right.
  __device__ static constexpr int offset(int eight, int four) {
    return vector == 4 ? (four / 2 * 2 + eight / 2) * 128 + eight % 2 * 2 + four % 2
                       : (four / 2 * 4 + eight) * 64 + four % 2;
  }
  /// Where a lane's entries begin.
  __device__ static int place() { return vector * (int(threadIdx.x) % 32); }
};
/// Layout of a 32 x 32 tile that is copied from global memory: by columns, shifted so that fragment loads are free of
/// bank conflicts and row-wise stores nearly so.
template <class T>
struct StreamedTile {
  static constexpr int edge = 32, vector = 1;
  static constexpr int four = sizeof(T) == 8 ? 145 : sizeof(T) == 4 ? 161 : 137;  // entries of four columns
  static constexpr int eight = 2 * four;
  static constexpr int size = edge / 4 * four;
  /// Offset from a lane's first entry to the one 8 `down` rows down and 4 `fours` columns right.
  __device__ static constexpr int offset(int down, int fours) { return fours * four + 8 * down; }
  /// Of columns 0 to 7.
  __device__ static constexpr int column(int k) {
    const int c = k % 4;
    return k / 4 * four + (sizeof(T) == 8 ? 32 * c + (c & 1) * 2 + (c >> 1) * 8 : sizeof(T) == 4 ? 40 * c : 34 * c);
  }
  __device__ static int place(const TilePlace& of) { return column(of.t) + of.g; }
};

/// What a shape is made of. Tiles are 32 x 32.
struct BlockShape {
  int warps;  // one factors diagonal tiles, the others are workers
  int blocks_per_sm = 1;
  int resident_tiles = 0;  // h: h x h tiles of the factor stay in shared memory, enough for 2 h rows of tiles; 0: none
  int late_rows = 0;       // rows of tiles beyond, which are read from global memory until there is room
  int wide = 1;            // diagonal tiles of a block column; the more, the less is read from global memory
};

/// What follows from a shape.
template <class T, BlockShape shape>
struct BlockColumns {
  using Kernel = BlockColumns;
  static constexpr bool in_panels = false;
  static constexpr int warps = shape.warps, threads = 32 * warps, nb = 32, tiles = nb / 8;
  static constexpr int blocks = shape.blocks_per_sm;
  static constexpr int half = shape.resident_tiles, wide = shape.wide;
  static constexpr bool resident = half > 0;
  static constexpr const char* name = resident ? "resident" : "streamed";
  static constexpr int strips = resident ? 2 : 1;  // of 16 rows, that a worker holds at once
  static constexpr int workers = warps - 1;
  // FP64 tensor-core products slow down other FP64 arithmetic on the same quarter of a multiprocessor tenfold: workers
  // that share a quarter with the factoring warp come last, and update only if there is no other way.
  static constexpr bool spares_quarter = resident && sizeof(Real<T>) == 8;
  static constexpr int updaters = spares_quarter ? warps - (warps + 3) / 4 : workers;
  static constexpr int chunk = 16 * workers * strips;
  static constexpr int late = shape.late_rows, first_late = late ? 2 * nb * half : 1 << 30;
  static constexpr int max_order = resident ? min((2 * half + late) * nb, chunk + nb) : 1 << 30;
  static constexpr int ahead = sizeof(T) * strips * wide <= 8 ? 4 : 2;  // steps of 8 columns that are loaded ahead
  // Steps of 8 columns that are unrolled. With four, doubles of a resident factor spill.
  static constexpr int unrolled = sizeof(T) == (resident ? 8 : 16) ? 2 : 4;
  static constexpr int ring = (sizeof(T) == 4 ? 3 : 2) * wide;  // streamed: tiles of right operands in flight or in use
  static constexpr int slots = resident ? max(half * half, (2 * half + late) * late) : ring + wide - 1;
  static constexpr int pitch = nb + column_pad<T>;
  static constexpr int slot_size = resident ? ResidentTile<T>::size : StreamedTile<T>::size;
  static constexpr int diagonals = resident ? 1 : wide;  // diagonal tiles in shared memory
  static constexpr int entries =
      slots * slot_size + (diagonals + 1) * nb * pitch + diagonals * (nb / 8) * PivotBlock<T>::size + nb;
  static constexpr std::size_t bytes_of(index_t) { return entries * sizeof(T) + 16; }
  /// Where tile (i, k) of the factor is; its slot is free for another when block row i is done.
  __device__ static int slot(int i, int k) {
    if (late > 0 && i >= 2 * half) return ((i - 2 * half) * (2 * half + late) + k) * ResidentTile<T>::size;
    const int u = i < half ? k : k < half ? i - half : k - half, v = i < half ? i : k < half ? k : i - half;
    return (u * half + v) * ResidentTile<T>::size;
  }
};

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
  /// The inverses of the diagonal blocks of the tile at k0.
  __device__ static T* inverses(int k0) {
    return original() + Shape::nb * Shape::pitch +
           k0 / Shape::nb % Shape::diagonals * (Shape::nb / 8 * PivotBlock<T>::size);
  }
  /// Of factor_tile.
  __device__ static T* scratch() { return inverses(0) + Shape::diagonals * (Shape::nb / 8) * PivotBlock<T>::size; }
  /// Of a block column of two tiles, the solved tile below the first diagonal tile: its product is subtracted from the
  /// second diagonal tile and from the rows below.
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
