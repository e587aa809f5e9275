// Cholesky of a matrix by one block, from the left by block columns. One warp factors diagonal tiles of 32 x 32 and,
// where the factor does not fit into shared memory, brings operands; the others hold a block column in registers.
#pragma once

#include <cuda/kernels/async.cuh>
#include <cuda/kernels/resident.cuh>

namespace trifactor::cuda {

/// Where a lane holds entries of a 16 x 8 tile: as LanePlace says, but with rows permuted as columns are, so that left
/// and right operands are read alike.
struct TilePlace {
  int g, t;
  __device__ TilePlace() : g(LanePlace().right_row()), t(int(threadIdx.x) % 4) {
    asm volatile("" : "+r"(g), "+r"(t));  // what is computed from them is not worth a register for long
  }
};

/// A 32 x 32 part of the factor that stays in shared memory. What a lane has of a tile of the tensor cores lies
/// together, 16 bytes of it, and the 16 bytes of the lanes follow each other: operands are read by vectors, nothing is
/// padded, and no banks meet.
template <class T>
struct KeptTile {
  static constexpr int edge = 32, size = edge * edge;
  static constexpr int vector = sizeof(T) < 16 ? 16 / int(sizeof(T)) : 1;
  /// From a lane's first entry to that of rows 8 `eight` and columns 4 `four` further down and right.
  __device__ static constexpr int offset(int eight, int four) {
    return vector == 4   ? (four / 2 * 2 + eight / 2) * 128 + eight % 2 * 2 + four % 2
           : vector == 2 ? (four / 2 * 4 + eight) * 64 + four % 2
                         : (four * 4 + eight) * 32;
  }
  /// Where a lane's entries begin.
  __device__ static int place(const TilePlace& of) {
    return vector * (of.g % 4 * 8 + of.g / 4 * 4 + (of.t ^ of.g % 4));
  }
};
/// One that is copied from global memory, by columns, which are shifted so that no two of the lanes that read an
/// operand meet in a bank.
template <class T>
struct CopiedTile {
  static constexpr int edge = 32, vector = 1;
  static constexpr int four = sizeof(T) == 8 ? 144 : sizeof(T) == 4 ? 160 : 136;  // entries of four columns
  static constexpr int size = edge / 4 * four;
  __device__ static constexpr int offset(int eight, int fours) { return fours * four + 8 * eight; }
  /// Of columns 0 to 3.
  __device__ static int column(int k) {
    return sizeof(T) == 8 ? 32 * k + (k & 1) * 2 + (k >> 1) * 8 : sizeof(T) == 4 ? 40 * k : 34 * k;
  }
  __device__ static int place(const TilePlace& of) { return column(of.t) + of.g; }
};
/// Tile u of the 16 rows of which the lane's entries begin at p, and back.
template <template <class> class Layout, class T>
__device__ __forceinline__ TensorEntries<T> get_tile(const T* p, int u) {
  constexpr int vector = Layout<T>::vector;
  TensorEntries<T> c;
#pragma unroll
  for (int e = 0; e < 4; e += vector) {
    const auto v = *reinterpret_cast<const EntryVector<T, vector>*>(p + Layout<T>::offset(e / 2, 2 * u + e % 2));
#pragma unroll
    for (int i = 0; i < vector; ++i) c.set(e + i, v.v[i]);
  }
  return c;
}
template <template <class> class Layout, class T>
__device__ __forceinline__ void put_tile(T* p, int u, const TensorEntries<T>& c) {
  constexpr int vector = Layout<T>::vector;
#pragma unroll
  for (int e = 0; e < 4; e += vector) {
    EntryVector<T, vector> v;
#pragma unroll
    for (int i = 0; i < vector; ++i) v.v[i] = c.get(e + i);
    *reinterpret_cast<EntryVector<T, vector>*>(p + Layout<T>::offset(e / 2, 2 * u + e % 2)) = v;
  }
}
/// Rows 8 j .. 8 j + 7 of the first eight columns as right operand.
template <template <class> class Layout, class T>
__device__ __forceinline__ RightPart<T> right_part(const T* p, int j) {
  if constexpr (Layout<T>::vector == 1) {
    return {{p[Layout<T>::offset(j, 0)], p[Layout<T>::offset(j, 1)]}};
  } else {
    constexpr int vector = Layout<T>::vector, eights = vector / 2;  // that one vector holds
    const auto v = *reinterpret_cast<const EntryVector<T, vector>*>(p + Layout<T>::offset(j / eights * eights, 0));
    return {{v.v[j % eights * 2], v.v[j % eights * 2 + 1]}};
  }
}

/// The shape of factor_left: 16 `strips` rows to each worker at once. `kept`: the factor stays in shared memory as far
/// as it is still needed, `half` x `half` tiles of it; otherwise it is read from global memory. The last `late` rows of
/// tiles of an item that is too large for that are read from global memory, too, until there is room.
template <class T, int warps_, int strips_, int blocks_, int half_, int wide_ = 1, int late_ = 0>
struct Left {
  static constexpr int warps = warps_, threads = 32 * warps, strips = strips_, nb = 32, tiles = nb / 8;
  static constexpr int blocks = blocks_;  // on a multiprocessor
  static constexpr int half = half_;
  static constexpr int wide = wide_;  // diagonal tiles of a block column: the more, the less is read from global memory
  static constexpr bool kept = half > 0;
  static constexpr int workers = warps - 1;
  // Products of doubles on the tensor cores hold up other arithmetic of doubles in their quarter of a multiprocessor
  // tenfold: workers that share a quarter with the warp that factors come last, and update where there is no other way.
  static constexpr bool apart = kept && sizeof(Real<T>) == 8;
  static constexpr int updaters = apart ? warps - (warps + 3) / 4 : workers;
  static constexpr int chunk = 16 * workers * strips;
  static constexpr int late = late_, first_late = late ? 2 * nb * half : 1 << 30;
  static constexpr int most = kept ? min((2 * half + late) * nb, chunk + nb) : 1 << 30;  // the largest order
  static constexpr int ahead = sizeof(T) * strips * wide <= 8 ? 4 : 2;  // steps of 8 columns that are loaded ahead
  // Steps of 8 columns that are unrolled; of more, so many doubles are loaded ahead that they are spilled.
  static constexpr int together = sizeof(Real<T>) == 8 ? 2 : 4;
  static constexpr int ring = 3 * wide;  // tiles of right operands that are on their way, or in use
  static constexpr int slabs = kept ? max(half * half, (2 * half + late) * late) : ring + wide - 1;
  static constexpr int pitch = nb + column_pad<T>;
  static constexpr int slab = kept ? KeptTile<T>::size : CopiedTile<T>::size;
  static constexpr int diagonals = kept ? 1 : wide;  // that are held at once
  static constexpr int entries =
      slabs * slab + (diagonals + 1) * nb * pitch + diagonals * (nb / 8) * Corner<T>::size + nb;
  static constexpr std::size_t bytes = entries * sizeof(T) + 16;
  /// Where tile (i, k) of the factor is kept; its place is taken by another when block row i is done.
  __device__ static int slot(int i, int k) {
    if (late > 0 && i >= 2 * half) return ((i - 2 * half) * (2 * half + late) + k) * KeptTile<T>::size;
    const int u = i < half ? k : k < half ? i - half : k - half, v = i < half ? i : k < half ? k : i - half;
    return (u * half + v) * KeptTile<T>::size;
  }
};

/// Which shapes take items of which order, and up to which the factor is kept. H200, 2026-11-15, ms for 10,000 items,
/// 1,000 from 300 on. Double at 128: three blocks of four warps 0.873, four 0.908. At 256: 12 warps with 168 registers
/// 3.93, 16 with 128 4.45. At 512: two blocks of six warps, block columns of 64, 2.70; of 32 2.81; one block of eight
/// warps with two strips each 2.95; two of five warps 2.93.
template <class T>
struct LeftShapes {
  static constexpr int most = 384;
  using Up128 = Left<T, 4, 2, 3, 2>;
  using Up256 = Left<T, 12, 2, 1, 4>;
  using Up384 = Left<T, 12, 2, 1, 5, 1, 2>;
  using Up512 = Up384;
  using Beyond = Left<T, 6, 1, 2, 0, 2>;
};
/// At 128: four blocks 0.522, five 0.574.
template <>
struct LeftShapes<float> {
  static constexpr int most = 512;
  using Up128 = Left<float, 4, 2, 4, 2>;
  using Up256 = Left<float, 8, 2, 2, 4>;
  using Up384 = Left<float, 12, 2, 1, 6>;
  using Up512 = Left<float, 16, 2, 1, 7, 1, 2>;
  using Beyond = Left<float, 8, 1, 2, 0, 2>;
};
template <>  // starting values, not measured
struct LeftShapes<Complex<float>> {
  static constexpr int most = 256;
  using Up128 = Left<Complex<float>, 4, 2, 3, 2>;
  using Up256 = Left<Complex<float>, 8, 1, 2, 0>;
  using Up384 = Up256;
  using Up512 = Up256;
  using Beyond = Up256;
};
template <>  // likewise
struct LeftShapes<Complex<double>> {
  static constexpr int most = 256;
  using Up128 = Left<Complex<double>, 8, 1, 1, 2>;
  using Up256 = Left<Complex<double>, 8, 1, 1, 0>;
  using Up384 = Up256;
  using Up512 = Up256;
  using Beyond = Up256;
};

/// The lower triangle of a block of eight that lies by columns, to every lane.
template <int pitch, class T>
__device__ __forceinline__ void read_block(const T* block, T (&l)[8][8]) {
  constexpr int vector = Corner<T>::vector;
#pragma unroll
  for (int c = 0; c < 8; ++c)
#pragma unroll
    for (int r = c / vector * vector; r < 8; r += vector) {
      const auto v = *reinterpret_cast<const EntryVector<T, vector>*>(block + c * pitch + r);
#pragma unroll
      for (int e = 0; e < vector; ++e)
        if (r + e >= c) l[r + e][c] = v.v[e];
    }
}

/// Factors a tile of order n up to 32 in shared memory by one warp, eight columns after the other, and inverts its
/// diagonal blocks of eight: V[b] = (its diagonal block b)^-H by rows. As in factor_corner every lane has the diagonal
/// block in registers and factors it for itself, and carries a row of the tile besides. Returns 0, the failed column +
/// 1, or, without `careful`, -1 when a pivot is not of a middling size: what the tile holds then is of no use.
template <bool careful, int pitch, class T>
__device__ __forceinline__ int factor_tile(T* L, int n, T* scales, T* V) {
  using R = Real<T>;
  constexpr int edge = 32, width = 8;
  const int row = int(threadIdx.x) % 32;
  R mine = R(1);
  if (n < edge) {  // the identity beyond the last row
    if (row >= n)
      for (int k = 0; k < edge; ++k) L[k * pitch + row] = T(k == row ? 1 : 0);
    __syncwarp();  // it is there
  }
#pragma unroll 1
  for (int k0 = 0; k0 < edge; k0 += width) {
    T* const panel = L + k0 * pitch;
    T a[1][width], l[width][width];
    R pivots[width];
    read_block<pitch>(panel + k0, l);
#pragma unroll
    for (int c = 0; c < width; ++c) a[0][c] = panel[c * pitch + row];
    eliminate_block<careful>(l, a, pivots);
#pragma unroll
    for (int c = 0; c < width; ++c) mine = row == k0 + c ? pivots[c] : mine;
    if (row / width == k0 / width) scales[row] = T(careful ? reciprocal_sqrt(mine) : pivot_scale(mine));
    __syncwarp();  // the scales are visible, and everyone has read the block
#pragma unroll
    for (int c = 0; c < width; ++c) {
      T v = a[0][c] * real(scales[k0 + c]);
      if constexpr (is_complex<T>)
        if (row == k0 + c) v = T(real(v));
      panel[c * pitch + row] = v;
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
  if (!careful && __any_sync(~0u, !middling(mine))) return -1;
  // Column k of the inverse of block b to a lane, by substitution.
  const int b = row / 8, k = row % 8;
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
  T* const out = V + b * Corner<T>::size + k * Corner<T>::pitch;
#pragma unroll
  for (int i = 0; i < 8; ++i) out[i] = conj(x[i]);
  return __ffs(int(__ballot_sync(~0u, !good_pivot(mine))));
}
/// The same of floats. A lane holds all that is left of its row, and updates it without the tensor cores: three
/// products in turn and a way through shared memory take longer. It carries a row of the identity, too, which becomes
/// one of an inverse, and computes all scales for itself. For other scalars there are not enough registers.
template <bool careful, int pitch>
__device__ __forceinline__ int factor_tile(float* L, int n, float*, float* V) {
  constexpr int edge = 32, width = 8;
  const int row = int(threadIdx.x) % 32;
  float rest[edge], mine = 1.0f;
  if (n < edge) {  // the identity beyond the last row
    if (row >= n)
      for (int k = 0; k < edge; ++k) L[k * pitch + row] = k == row ? 1.0f : 0.0f;
    __syncwarp();  // it is there
  }
#pragma unroll
  for (int k = 0; k < edge; ++k) rest[k] = L[k * pitch + row];
#pragma unroll 1
  for (int k0 = 0; k0 < edge; k0 += width) {
    float* const panel = L + k0 * pitch;
    float a[2][width], l[width][width], pivots[width];
    read_block<pitch>(panel + k0, l);
#pragma unroll
    for (int c = 0; c < width; ++c) a[0][c] = rest[c], a[1][c] = c == row % width ? 1.0f : 0.0f;
    eliminate_block<careful>(l, a, pivots);
#pragma unroll
    for (int c = 0; c < width; ++c) {
      mine = row == k0 + c ? pivots[c] : mine;
      const float scale = careful ? reciprocal_sqrt(pivots[c]) : pivot_scale(pivots[c]);
      a[0][c] *= scale, a[1][c] *= scale;
    }
    __syncwarp();  // everyone has read the block
#pragma unroll
    for (int c = 0; c < width; ++c) panel[c * pitch + row] = a[0][c];
    if (row < width) write_vectors(V + k0 / width * Corner<float>::size + row * Corner<float>::pitch, a[1]);
    __syncwarp();  // the panel is there
#pragma unroll
    for (int p = width; p < edge; p += width)
      if (k0 + p < edge) {
#pragma unroll
        for (int c = 0; c < width; ++c) {
          float v[width];
          read_vectors(panel + c * pitch + k0 + p, v);
#pragma unroll
          for (int r = 0; r < width; ++r) rest[p + r] -= a[0][c] * v[r];
        }
        if (p == width) {
#pragma unroll
          for (int c = 0; c < width; ++c) panel[(width + c) * pitch + row] = rest[width + c];
          __syncwarp();  // the next diagonal block is there
        }
      }
#pragma unroll
    for (int k = 0; k < edge - width; ++k) rest[k] = rest[k + width];
  }
  if (!careful && __any_sync(~0u, !middling(mine))) return -1;
  return __ffs(int(__ballot_sync(~0u, !good_pivot(mine))));
}
/// Apart, so that its registers are not held in the usual case.
template <class T, int pitch>
__device__ __noinline__ int factor_tile_carefully(T* L, int n, T* scales, T* V) {
  return factor_tile<true, pitch>(L, n, scales, V);
}

/// Brings tiles of the rows of A from r0 on to shared memory by one warp, one after the other from the left. Rows
/// beyond the last are copies of it: what comes of them is not used.
template <class T>
class TileCopy {
 public:
  __device__ __forceinline__ TileCopy(const Tile<T>& A, int r0) : down_(A.row_stride == 1) {
    const int lane = int(threadIdx.x) % 32;
    last_ = int(A.rows) - 1 - r0;
    from_ = &A(r0 + (down_ ? min(lane, last_) : 0), down_ ? 0 : lane);
    step_ = down_ ? A.col_stride : A.row_stride;
    at_ = down_ ? lane : lane / 4 * CopiedTile<T>::four + CopiedTile<T>::column(lane % 4);
  }
  /// Starts to copy the next tile.
  __device__ __forceinline__ void next(T* tile) {
    const unsigned to = shared_address(tile + at_);
    constexpr int edge = CopiedTile<T>::edge, at_once = 8;
    const T* p = from_;
    if (down_) {
#pragma unroll 1
      for (int k = 0; k < edge; k += at_once)
#pragma unroll
        for (int i = 0; i < at_once; ++i, p += step_) {
          const int column = (k + i) / 4 * CopiedTile<T>::four + CopiedTile<T>::column(i % 4);
          copy_async<int(sizeof(T))>(to + unsigned(column * int(sizeof(T))), p);
        }
      from_ = p;
    } else {
#pragma unroll 1
      for (int r = 0; r < edge; r += at_once)
#pragma unroll
        for (int i = 0; i < at_once; ++i) {
          copy_async<int(sizeof(T))>(to + unsigned((r + i) * int(sizeof(T))), p);
          if (r + i < last_) p += step_;
        }
      from_ += edge;
    }
  }

 private:
  const T* from_;
  index_t step_;
  bool down_;
  int last_, at_;
};

/// Asks for the lines of columns k0 .. k0 + 31, from row k0 on, ahead of their use; by one warp.
template <class T>
__device__ __forceinline__ void prefetch_columns(const Tile<T>& A, int k0) {
  const int lane = int(threadIdx.x) % 32, n = int(A.rows), line = 128 / int(sizeof(T));
  const auto fetch = [](const T* p) { asm volatile("prefetch.global.L2 [%0];" ::"l"(p)); };
  if (A.row_stride == 1) {
    if (k0 + lane < n)
#pragma unroll 1
      for (int r = k0; r < n + line; r += line) fetch(&A(min(r, n - 1), k0 + lane));
  } else {
#pragma unroll 1
    for (int r = k0 + lane; r < n; r += 32)
#pragma unroll 1
      for (int k = k0; k < min(r, k0 + 31) + line; k += line) fetch(&A(r, min(k, min(r, k0 + 31))));
  }
}

/// What the block of factor_left shares, found anew by every function so that all know it as shared memory.
template <class T, class Shape>
struct LeftShared {
  __device__ static T* tiles() {  // operands
    extern __shared__ __align__(16) unsigned char raw[];
    return reinterpret_cast<T*>(raw);
  }
  /// The diagonal tile at k0; of a wide block column there are several. (nb, nb)
  __device__ static T* diagonal(int k0) {
    return tiles() + Shape::slabs * Shape::slab + k0 / Shape::nb % Shape::diagonals * (Shape::nb * Shape::pitch);
  }
  __device__ static T* given() {  // it, before it is factored
    return diagonal(0) + Shape::diagonals * Shape::nb * Shape::pitch;
  }
  /// Of the diagonal blocks of the tile, likewise.
  __device__ static T* inverses(int k0) {
    return given() + Shape::nb * Shape::pitch + k0 / Shape::nb % Shape::diagonals * (Shape::nb / 8 * Corner<T>::size);
  }
  __device__ static T* scales() { return inverses(0) + Shape::diagonals * (Shape::nb / 8) * Corner<T>::size; }
  /// The second half of the first diagonal tiles of a wide block column, below the diagonal.
  __device__ static T* between() { return tiles() + Shape::ring * CopiedTile<T>::size; }
  /// Of the latest diagonal tile: 0, or the order of the minor that failed.
  __device__ static volatile int& status() { return *reinterpret_cast<volatile int*>(scales() + Shape::nb); }
};

/// Factors the diagonal tile at k0 by one warp, with care where it is wanted.
template <class T, class Shape>
__device__ __forceinline__ void factor_diagonal(int n, int k0) {
  using Shared = LeftShared<T, Shape>;
  constexpr int nb = Shape::nb, pitch = Shape::pitch;
  T* const L = Shared::diagonal(k0);
  const int order = min(nb, n - k0), lane = int(threadIdx.x) % 32;
  int failed = factor_tile<false, pitch>(L, order, Shared::scales(), Shared::inverses(k0));
  if (failed < 0) {
    for (int k = 0; k < nb; ++k) L[k * pitch + lane] = Shared::given()[k * pitch + lane];
    __syncwarp();  // it is as it was
    failed = factor_tile_carefully<T, pitch>(L, order, Shared::scales(), Shared::inverses(k0));
  }
  if (lane == 0) Shared::status() = failed > 0 ? k0 + failed : 0;
}
/// Writes the factored diagonal tile to A by one warp.
template <class T, class Shape>
__device__ __forceinline__ void write_diagonal(const Tile<T>& A, int k0) {
  constexpr int nb = Shape::nb, pitch = Shape::pitch, at_once = 8;
  const int order = min(nb, int(A.rows) - k0), lane = int(threadIdx.x) % 32;
  const bool down = A.row_stride == 1;
  T* p = &A(k0 + (down ? lane : 0), k0 + (down ? 0 : lane));
  const T* q = LeftShared<T, Shape>::diagonal(k0) + (down ? lane : lane * pitch);
  const index_t step = down ? A.col_stride : A.row_stride;
  const int begin = down ? 0 : lane, count = lane < order ? (down ? lane + 1 : order - lane) : 0,
            along = down ? pitch : 1;
#pragma unroll 1
  for (int t = 0; t < nb; t += at_once) {
    T v[at_once];
#pragma unroll
    for (int i = 0; i < at_once; ++i, q += along) v[i] = *q;
#pragma unroll
    for (int i = 0; i < at_once; ++i, p += step)
      if (unsigned(t + i - begin) < unsigned(count)) *p = v[i];
  }
}

/// c -= left right^H, 32 columns deep: c(s, j) are `count` tiles of `active` strips, left(u, v, s) columns 8 u .. 8 u +
/// 7 of the strips, and done(u, v) is called when these are not wanted any more; v is u modulo `together`, a constant.
template <template <class> class Layout, int active, int count, int together = 4, class T, class Entries, class LeftOf,
          class Done>
__device__ __forceinline__ void subtract_tile(Entries c, const T* right, LeftOf left, Done done) {
  constexpr int steps = Layout<T>::edge / 8, eight = Layout<T>::offset(0, 2);
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
#if TRIFACTOR_TENSOR
  if constexpr (std::is_same_v<T, float>) {
    float part[active][count][4];  // sums are cut off, not rounded, inside the tensor cores: they are added up outside
#pragma unroll
    for (int i = 0; i < active * count * 4; ++i) part[i / (4 * count)][i / 4 % count][i % 4] = 0;
    steps_of([&](int u, int v, const T* b) TF_INLINE_LAMBDA {
      unsigned high[active][2][2], low[active][2][2];
#pragma unroll
      for (int s = 0; s < active; ++s) {
        const LeftPart<T> all = left(u, v, s);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const TwoParts x(all.v[i / 2][i % 2]);
          high[s][i / 2][i % 2] = x.high, low[s][i / 2][i % 2] = x.low;
        }
      }
      done(u, v);
#pragma unroll
      for (int j = 0; j < count; ++j) {
        const RightPart<T> y = right_part<Layout>(b + j / 4 * Layout<T>::size, j % 4);
        const TwoParts y0(y.v[0]), y1(y.v[1]);
        const unsigned high_b[2] = {y0.high, y1.high}, low_b[2] = {y0.low, y1.low};
#pragma unroll
        for (int s = 0; s < active; ++s) {
          mma8_tf32(part[s][j], low[s], high_b);
          mma8_tf32(part[s][j], high[s], low_b);
          mma8_tf32(part[s][j], high[s], high_b);
        }
      }
    });
#pragma unroll
    for (int i = 0; i < active * count * 4; ++i)
      c(i / (4 * count), i / 4 % count).re[i % 4] -= part[i / (4 * count)][i / 4 % count][i % 4];
  } else
#endif
  {
    steps_of([&](int u, int v, const T* b) TF_INLINE_LAMBDA {
      LeftPart<T> all[active];
#pragma unroll
      for (int s = 0; s < active; ++s) all[s] = left(u, v, s);
#pragma unroll
      for (int j = 0; j < count; ++j) {
        const RightPart<T> y = right_part<Layout>(b + j / 4 * Layout<T>::size, j % 4);
#pragma unroll
        for (int s = 0; s < active; ++s) subtract_product(c(s, j), all[s], y);
      }
      done(u, v);
    });
  }
}

/// 16 rows of a block column in the registers of a warp.
template <class T>
struct Strip {
  static constexpr int tiles = 4;
  /// How far from the first entry of A a lane's rows meet column k0; not pointers, which would lose their address
  /// space. Rows beyond the last are copies of it when they are read.
  index_t at[2];
  __device__ __forceinline__ void find(const Tile<T>& A, int row, int k0, const TilePlace& place) {
#pragma unroll
    for (int h = 0; h < 2; ++h)
      at[h] = min(row + place.g + 8 * h, int(A.rows) - 1) * A.row_stride + (k0 + place.t) * A.col_stride;
  }
  /// c := what is in A, `on` entries from there; the identity outside of the triangle.
  __device__ __forceinline__ void load(TensorEntries<T> (&c)[tiles], const T* A, int n, int row, int k0, index_t half,
                                       index_t on, const TilePlace& place) const {
    if (k0 + 8 * tiles <= row) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const T* p = A + at[h] + on;
#pragma unroll
        for (int j = 0; j < 2 * tiles; ++j, p += half) c[j / 2].set(2 * h + j % 2, *p);
      }
    } else {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const T* p = A + at[h] + on;
        const int r = row + place.g + 8 * h;
#pragma unroll
        for (int j = 0; j < 2 * tiles; ++j, p += half) {
          const int column = k0 + 4 * j + place.t;
          T v = T(r == column ? 1 : 0);
          if (column <= r && r < n) v = *p;
          c[j / 2].set(2 * h + j % 2, v);
        }
      }
    }
  }
};
/// The rows of a strip that belong to the diagonal tile go to the warp that factors it.
template <class T, class Shape>
__device__ __forceinline__ void put_diagonal(const TensorEntries<T> (&c)[Shape::tiles], int k0, int row,
                                             const TilePlace& place) {
  using Shared = LeftShared<T, Shape>;
  const int at = place.t * Shape::pitch + row - k0 + place.g;
  T *const L = Shared::diagonal(k0) + at, *const given = Shared::given() + at;
#pragma unroll
  for (int i = 0; i < 4 * Shape::tiles; ++i) {
    const int to = (i / 4 * 8 + i % 2 * 4) * Shape::pitch + i / 2 % 2 * 8;
    L[to] = given[to] = c[i / 4].get(i % 4);
  }
}
/// Writes tiles of a strip to A, one after the other from column k0 on.
template <class T>
class StripWriter {
 public:
  __device__ __forceinline__ StripWriter(const Tile<T>& A, int row, int k0, const TilePlace& place)
      : A_(A.data), four_(4 * A.col_stride), left_(int(A.rows) - row - place.g) {
    at_[0] = (row + place.g) * A.row_stride + (k0 + place.t) * A.col_stride;
    at_[1] = at_[0] + 8 * A.row_stride;
  }
  __device__ __forceinline__ void next(const TensorEntries<T>& x) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      if (e / 2 * 8 < left_) A_[at_[e / 2]] = x.get(e);
      at_[e / 2] += four_;
    }
  }

 private:
  T* A_;
  index_t at_[2], four_;
  int left_;  // rows from the lane's first on
};
/// c := c L^-H for the diagonal tile L; to A, and to `kept` if wanted. Without a branch, which would keep apart what
/// can be done side by side.
template <class Shape, template <class> class Layout, class T>
__device__ __forceinline__ void solve_strip(TensorEntries<T> (&c)[Shape::tiles], const Tile<T>& A, int k0, int row,
                                            bool keeps, T* kept, const TilePlace& place) {
  using Shared = LeftShared<T, Shape>;
  constexpr int tiles = Shape::tiles, pitch = Shape::pitch;
  const T* const L = Shared::diagonal(k0) + place.t * pitch + place.g;
  const T* const inverses = Shared::inverses(k0) + place.t * Corner<T>::pitch + place.g;
  StripWriter<T> writer(A, row, k0, place);
#pragma unroll
  for (int p = 0; p < tiles; ++p) {
    const T* const V = inverses + p * Corner<T>::size;
    const RightPart<T> negative{{-conj(V[0]), -conj(V[4 * Corner<T>::pitch])}};
    const TensorEntries<T> x = c[p] = times_inverse(c[p], negative);
    writer.next(x);
    if (keeps) put_tile<Layout>(kept, p, x);
#pragma unroll
    for (int j = p + 1; j < tiles; ++j) {
      const T* const B = L + 8 * p * pitch + 8 * j;
      subtract_product(c[j], as_left(x), RightPart<T>{{B[0], B[4 * pitch]}});
    }
  }
}

// ---- the factor stays in shared memory ----
// In turn, for each block column: its diagonal tile is factored, and the others update the next column with what was
// there before [it is factored] this column is solved [it is solved] and the next one is updated with it, the two
// strips of the next diagonal tile first, for which the factoring warp waits.

/// Barriers of some warps of a block: `threads` of them come. Since there are such, racecheck reports hazards in this file;
/// those that were looked at lie on two sides of a __syncthreads().
enum class Meeting { All, Diagonal, Workers };
template <Meeting at>
__device__ __forceinline__ void meet(int threads) {
  asm volatile("bar.sync %0, %1;" ::"n"(int(at)), "r"(threads) : "memory");
}
/// Who meets when a diagonal tile is there: the warp that factors it and two workers, with 16 rows each.
inline constexpr int diagonal_threads = 96;

template <class T, class Shape>
__device__ __noinline__ void kept_chain(Tile<T> given) {
  const Tile<T> A = afresh(given);
  const int n = int(A.rows);
  prefetch_columns(afresh(A), 0);
  for (int k0 = 0; k0 < n; k0 += Shape::nb) {
    if (k0 + Shape::nb < n) prefetch_columns(afresh(A), k0 + Shape::nb);
    meet<Meeting::Diagonal>(diagonal_threads);  // the diagonal tile is there
    factor_diagonal<T, Shape>(n, k0);
    __syncthreads();  // it is factored
    write_diagonal<T, Shape>(afresh(A), k0);
    if (LeftShared<T, Shape>::status() > 0) break;
    if (k0 + Shape::nb < n) __syncthreads();  // the block column is solved
  }
}

template <class T, class Shape>
__device__ __noinline__ void kept_work(Tile<T> given, int worker) {
  using Shared = LeftShared<T, Shape>;
  using std::integral_constant;
  constexpr int nb = Shape::nb, tiles = Shape::tiles, strips = Shape::strips;
  const Tile<T> A = afresh(given);
  const int n = int(A.rows);
  const TilePlace place;
  const int lane_place = KeptTile<T>::place(place);
  const index_t half = 4 * A.col_stride;
  // Where the lane has its part of 16 rows of tile column k.
  const auto kept = [&](int row, int k) TF_INLINE_LAMBDA {
    return Shared::tiles() + Shape::slot(row / nb, k) + row % nb / 16 * KeptTile<T>::offset(2, 0) + lane_place;
  };
  const auto park = [&](const TensorEntries<T>(&c)[tiles], int row, int k) TF_INLINE_LAMBDA {
    T* const to = kept(row, k);
#pragma unroll
    for (int u = 0; u < tiles; ++u) put_tile<KeptTile>(to, u, c[u]);
  };
  const auto load = [&](TensorEntries<T>(&c)[tiles], int row, int k0) TF_INLINE_LAMBDA {
    Strip<T> strip;
    strip.find(afresh(A), row, k0, place);
    strip.load(c, A.data, n, row, k0, half, 0, place);
  };
#pragma unroll 1
  for (int row = 16 * worker; row < min(n, Shape::first_late); row += 16 * Shape::workers) {
    TensorEntries<T> c[tiles];
    load(c, row, 0);
    if (row < nb)
      put_diagonal<T, Shape>(c, 0, row, place);
    else
      park(c, row, 0);
  }
  if (worker < 2) meet<Meeting::Diagonal>(diagonal_threads);  // the first diagonal tile is there
  for (int k0 = 0; k0 < n; k0 += nb) {
    const int k1 = k0 + nb;
    // As many warps update as give each quarter of the multiprocessor the same, and most of them several strips, which
    // share right operands.
    const int rows = max(0, n - k1), end_kept = Shape::late && k1 < Shape::first_late ? min(n, Shape::first_late) : n;
    const int updaters = Shape::apart  ? rows <= 16 * strips * Shape::updaters ? Shape::updaters : Shape::workers
                         : Shape::late ? Shape::workers
                                       : min(Shape::workers, (rows + 64 * strips - 1) / (64 * strips) * 4);
    const int solvers = Shape::apart ? updaters : Shape::workers;
    // A late strip is the last of its warp, and the only one where there are warps enough.
    const int late_strips = Shape::late ? (n - end_kept + 15) / 16 : 0, first_with_late = updaters - late_strips;
    const int keepers = end_kept - k1 <= 16 * strips * first_with_late ? first_with_late : updaters;
    const bool has_late = Shape::late > 0 && worker >= first_with_late && worker < updaters;
    const auto row = [&](int s) TF_INLINE_LAMBDA {
      const int r = worker < keepers ? k1 + 16 * (worker + keepers * s) : n;
      if constexpr (Shape::late > 0)
        return s + 1 == strips && has_late ? end_kept + 16 * (worker - first_with_late) : r < end_kept ? r : n;
      return r;
    };
    TensorEntries<T> c[strips][tiles];
    const auto right = [&](int k) TF_INLINE_LAMBDA { return Shared::tiles() + Shape::slot(k1 / nb, k) + lane_place; };
    // Strips first, first + 1, ... -= their products with tile column k
    const auto update = [&](auto from, auto count, int k) TF_INLINE_LAMBDA {
      constexpr int first = decltype(from)::value, active = decltype(count)::value;
      const T* P[active];
#pragma unroll
      for (int s = 0; s < active; ++s) P[s] = kept(row(first + s), k);
      subtract_tile<KeptTile, active, tiles, Shape::together>(
          [&](int s, int j) TF_INLINE_LAMBDA -> TensorEntries<T>& { return c[first + s][j]; }, right(k),
          [&](int u, int, int s) TF_INLINE_LAMBDA { return as_left(get_tile<KeptTile>(P[s], u)); }, [](int, int) {});
    };
    // The same for a late strip and tile columns begin .. end - 1, with what it is made of on its way.
    const auto update_late = [&](auto strip, int begin, int end) TF_INLINE_LAMBDA {
      constexpr int s = decltype(strip)::value, ahead = Shape::ahead;
      Strip<T> at;
      LeftPart<T> left[ahead];
      const auto read = [&](LeftPart<T>& to, bool more) TF_INLINE_LAMBDA {  // without a branch
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          to.v[i % 2][i / 2] = A.data[more ? at.at[i / 2] : 0];
          at.at[i / 2] += half;
        }
      };
      at.find(afresh(A), row(s), nb * begin, place);
#pragma unroll
      for (int g = 0; g < ahead; ++g) read(left[g], nb * begin + 8 * g < nb * end);
#pragma unroll 1
      for (int k = begin; k < end; ++k)
        subtract_tile<KeptTile, 1, tiles, Shape::together>(
            [&](int, int j) TF_INLINE_LAMBDA -> TensorEntries<T>& { return c[s][j]; }, right(k),
            [&](int, int v, int) TF_INLINE_LAMBDA -> const LeftPart<T>& { return left[v % ahead]; },
            [&](int u, int v) TF_INLINE_LAMBDA { read(left[v % ahead], nb * k + 8 * (u + ahead) < nb * end); });
    };
#pragma unroll
    for (int s = 0; s < strips; ++s)
      if (row(s) < n) load(c[s], row(s), k1);
    using First = integral_constant<int, 0>;
    using Last = integral_constant<int, strips - 1>;
    if (strips > 1 && row(strips - 1) < end_kept) {
#pragma unroll 1
      for (int k = 0; k < k0 / nb; ++k) update(First{}, integral_constant<int, strips>{}, k);
    } else if (row(0) < end_kept) {
#pragma unroll 1
      for (int k = 0; k < k0 / nb; ++k) update(First{}, integral_constant<int, 1>{}, k);
    }
    if constexpr (Shape::late > 0)
      if (has_late) update_late(Last{}, 0, k0 / nb);
    __syncthreads();  // the diagonal tile is factored, and nobody reads the tiles of its row any more
#pragma unroll 1
    for (int r = k1 + 16 * worker; r < n && worker < solvers; r += 16 * solvers) {
      TensorEntries<T> y[tiles];
      const bool late = Shape::late > 0 && r >= end_kept;
      T* const at = late ? Shared::tiles() : kept(r, k0 / nb);
      if (late)
        load(y, r, k0);
      else
#pragma unroll
        for (int u = 0; u < tiles; ++u) y[u] = get_tile<KeptTile>(static_cast<const T*>(at), u);
      solve_strip<Shape, KeptTile>(y, afresh(A), k0, r, !late, at, place);
    }
    if (Shared::status() > 0 || k1 >= n) break;
    __syncthreads();  // the block column is solved, and nobody wants its diagonal tile any more
    for_constants<strips>([&](auto constant) TF_INLINE_LAMBDA {
      constexpr int s = decltype(constant)::value;
      if (row(s) < end_kept) update(constant, integral_constant<int, 1>{}, k0 / nb);
      if (s == 0 && worker < 2) {
        if (row(0) < n) put_diagonal<T, Shape>(c[0], k1, row(0), place);
        meet<Meeting::Diagonal>(diagonal_threads);  // the next diagonal tile is there
      }
    });
    if constexpr (Shape::late > 0)
      if (has_late) update_late(Last{}, k0 / nb, k1 / nb);
    meet<Meeting::Workers>(32 * Shape::workers);  // nobody reads the tiles of its row any more
    const bool room = k1 + nb == Shape::first_late && n > Shape::first_late;  // for late rows: no other is wanted now
#pragma unroll
    for (int s = 0; s < strips; ++s)
      if (row(s) >= k1 + nb && row(s) < n) {
        if (Shape::late == 0 || row(s) < end_kept || room) {
          park(c[s], row(s), k1 / nb);
        } else {
          StripWriter<T> writer(afresh(A), row(s), k1, place);
#pragma unroll
          for (int u = 0; u < tiles; ++u) writer.next(c[s][u]);
        }
      }
    if constexpr (Shape::late > 0)
      if (room) {
        const int count = (n - Shape::first_late + 15) / 16;
#pragma unroll 1
        for (int i = worker; i < count * (k1 / nb); i += Shape::workers) {
          const int r = Shape::first_late + i % count * 16, k = i / count;
          TensorEntries<T> y[tiles];
          load(y, r, nb * k);
          park(y, r, k);
        }
        meet<Meeting::Workers>(32 * Shape::workers);  // the late rows are kept, too
      }
  }
}

// ---- the factor is read from global memory ----

template <class T, class Shape>
__device__ __noinline__ void streamed_chain(Tile<T> given) {
  using Shared = LeftShared<T, Shape>;
  const Tile<T> A = afresh(given);
  constexpr int nb = Shape::nb, width = nb * Shape::wide;
  const int n = int(A.rows);
  for (int k = 0; k < min(width, n); k += nb) prefetch_columns(A, k);
  for (int k0 = 0; k0 < n; k0 += width) {
    for (int k = k0 + width; k < min(k0 + 2 * width, n); k += nb) prefetch_columns(A, k);
    for (int r0 = k0; r0 < n; r0 += Shape::chunk) {
      TileCopy<T> first(A, k0), second(A, min(k0 + (Shape::wide - 1) * nb, n - 1));
      int to = 0;
      const auto fetch = [&](int k) TF_INLINE_LAMBDA {
        if (k < k0) {
          first.next(Shared::tiles() + to);
          if constexpr (Shape::wide > 1) second.next(Shared::tiles() + to + CopiedTile<T>::size);
        }
        copy_commit();
        to = to == (Shape::ring - Shape::wide) * CopiedTile<T>::size ? 0 : to + Shape::wide * CopiedTile<T>::size;
      };
      fetch(0), fetch(nb);
      for (int k = 0; k < k0; k += nb) {
        copy_wait<1>();
        __syncthreads();  // the tiles are there; nobody reads those before
        fetch(k + 2 * nb);
      }
      if (r0 == k0)
        for (int k = k0; k < min(k0 + width, n); k += nb) {
          __syncthreads();  // the diagonal tile is there
          factor_diagonal<T, Shape>(n, k);
          __syncthreads();  // it is factored
          if (Shared::status() > 0) break;
          if (k + nb < min(k0 + width, n)) __syncthreads();  // what is left of the next one is there
        }
      __syncthreads();  // what was written is visible to all who read it from the left
    }
    for (int k = k0; k < min(k0 + width, n) && (Shared::status() == 0 || Shared::status() > k); k += nb)
      write_diagonal<T, Shape>(A, k);  // while the others go on
    if (Shared::status() > 0) break;
  }
}

template <class T, class Shape>
__device__ __noinline__ void streamed_work(Tile<T> given, int worker) {
  using Shared = LeftShared<T, Shape>;
  const Tile<T> A = afresh(given);
  constexpr int nb = Shape::nb, tiles = Shape::tiles, strips = Shape::strips, ahead = Shape::ahead, wide = Shape::wide;
  const int n = int(A.rows);
  const TilePlace place;
  const int lane_place = CopiedTile<T>::place(place);
  const index_t half = 4 * A.col_stride;
  for (int k0 = 0; k0 < n; k0 += nb * wide) {
    for (int r0 = k0; r0 < n; r0 += Shape::chunk) {
      TensorEntries<T> c[wide][strips][tiles];
      Strip<T> strip[strips];
      LeftPart<T> left[ahead][strips];
      const auto row = [&](int s) TF_INLINE_LAMBDA { return r0 + 16 * (worker + Shape::workers * s); };
      const auto read = [&](LeftPart<T>(&to)[strips], bool more) TF_INLINE_LAMBDA {  // without a branch
        const index_t step = more ? half : 0;
#pragma unroll
        for (int s = 0; s < strips; ++s)
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            to[s].v[i % 2][i / 2] = A.data[more ? strip[s].at[i / 2] : 0];
            strip[s].at[i / 2] += step;
          }
      };
      const bool any = row(0) < n;
      if (any) {
#pragma unroll
        for (int s = 0; s < strips; ++s) strip[s].find(A, row(s), 0, place);
        if (k0 > 0)
#pragma unroll
          for (int g = 0; g < ahead; ++g) read(left[g], true);
#pragma unroll
        for (int w = 0; w < wide; ++w)
#pragma unroll
          for (int s = 0; s < strips; ++s)
            if (row(s) < n && row(s) >= k0 + w * nb)
              strip[s].load(c[w][s], A.data, n, row(s), k0 + w * nb, half,
                            (max(0, k0 - 8 * ahead) + w * nb) * A.col_stride, place);
      }
      int turn = 0;
      for (int k = 0; k < k0; k += nb) {
        __syncthreads();  // the tiles are there
        const T* const B = Shared::tiles() + turn + lane_place;
        turn = turn == (Shape::ring - wide) * CopiedTile<T>::size ? 0 : turn + wide * CopiedTile<T>::size;
        const auto update = [&](auto count) TF_INLINE_LAMBDA {
          subtract_tile<CopiedTile, decltype(count)::value, wide * tiles>(
              [&](int s, int j) TF_INLINE_LAMBDA -> TensorEntries<T>& { return c[j / tiles][s][j % tiles]; }, B,
              [&](int, int v, int s) TF_INLINE_LAMBDA -> const LeftPart<T>& { return left[v % ahead][s]; },
              [&](int u, int v) TF_INLINE_LAMBDA { read(left[v % ahead], k + 8 * (u + ahead) < k0); });
        };
        if (strips > 1 && row(strips - 1) < n)
          update(std::integral_constant<int, strips>{});
        else if (any)
          update(std::integral_constant<int, 1>{});
      }
#pragma unroll
      for (int w = 0; w < wide; ++w) {
        const int k = k0 + w * nb;
        if (k >= n) break;
        if (r0 == k0) {
          if (any && row(0) >= k && row(0) < k + nb) put_diagonal<T, Shape>(c[w][0], k, row(0), place);
          __syncthreads();  // the diagonal tile is there
          __syncthreads();  // it is factored
        }
#pragma unroll
        for (int s = 0; s < strips; ++s)
          if (row(s) >= k + nb && row(s) < n)
            solve_strip<Shape, CopiedTile>(c[w][s], afresh(A), k, row(s), w + 1 < wide && row(s) < k + 2 * nb,
                                           Shared::between() + lane_place + (row(s) - k - nb), place);
        if (Shared::status() > 0 && Shared::status() <= k + nb) break;  // the columns before the failed one are solved
        if (w + 1 < wide && k + nb < n) {
          if (r0 == k0) __syncthreads();  // what is left of the next diagonal tile is there
#pragma unroll
          for (int s = 0; s < strips; ++s)
            if (row(s) >= k + nb && row(s) < n)
              subtract_tile<CopiedTile, 1, tiles>(
                  [&](int, int j) TF_INLINE_LAMBDA -> TensorEntries<T>& { return c[w + 1 < wide ? w + 1 : w][s][j]; },
                  Shared::between() + lane_place, [&](int, int v, int) TF_INLINE_LAMBDA { return as_left(c[w][s][v]); },
                  [](int, int) {});
        }
      }
      __syncthreads();  // what was written is visible to all who read it from the left
    }
    if (Shared::status() > 0) break;
  }
}

/// Factors A by all threads of the block. Returns 0, or the order of the minor that is not positive definite. Shared
/// memory is free again after a barrier.
template <class T, class Shape>
__device__ __forceinline__ int factor_left(const Tile<T>& A) {
  using Shared = LeftShared<T, Shape>;
  if (A.rows == 0) return 0;
  const int warp = __shfl_sync(~0u, int(threadIdx.x) / 32, 0);
  const int worker = !Shape::apart ? warp - 1 : warp % 4 ? warp - warp / 4 - 1 : Shape::updaters + warp / 4 - 1;
  if (threadIdx.x == 0) Shared::status() = 0;
  __syncthreads();  // nothing has failed yet
  if constexpr (Shape::kept) {
    if (warp > 0)
      kept_work<T, Shape>(A, worker);
    else
      kept_chain<T, Shape>(A);
  } else {
    if (warp > 0)
      streamed_work<T, Shape>(A, worker);
    else
      streamed_chain<T, Shape>(A);
  }
  return Shared::status();
}

}  // namespace trifactor::cuda
