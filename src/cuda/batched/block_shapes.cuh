// The shapes of blocks that factor from the left: how many warps, which part of the factor stays in shared memory and
// how it lies there, and which orders take which.
#pragma once

#include <cuda/batched/diagonal_tile.cuh>
#include <cuda/device/pivot_block.cuh>
#include <cuda/batched/cholesky_block.cuh>

namespace trifactor::cuda {

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
  __device__ static int place() { return vector * (int(threadIdx.x) % 32); }
};
/// One that is copied from global memory, by columns, which are shifted so that no two of the lanes that read an
/// operand meet in a bank, and few of those that write a row.
template <class T>
struct CopiedTile {
  static constexpr int edge = 32, vector = 1;
  static constexpr int four = sizeof(T) == 8 ? 145 : sizeof(T) == 4 ? 161 : 137;  // entries of four columns
  static constexpr int eight = 2 * four;
  static constexpr int size = edge / 4 * four;
  /// From a lane's first entry to that of rows 8 `down` and columns 4 `fours` further.
  __device__ static constexpr int offset(int down, int fours) { return fours * four + 8 * down; }
  /// Of columns 0 to 7.
  __device__ static constexpr int column(int k) {
    const int c = k % 4;
    return k / 4 * four + (sizeof(T) == 8 ? 32 * c + (c & 1) * 2 + (c >> 1) * 8 : sizeof(T) == 4 ? 40 * c : 34 * c);
  }
  __device__ static int place(const TilePlace& of) { return column(of.t) + of.g; }
};

/// The shape of factor_left: 16 `strips` rows to each worker at once. `kept`: the factor stays in shared memory as far
/// as it is still needed, (`half` + `odd`) x `half` tiles of it; otherwise it is read from global memory. The last
/// `late` rows of tiles of an item that is too large for that are read from global memory, too, until there is room.
template <class T, int warps_, int strips_, int blocks_, int half_, int wide_ = 1, int late_ = 0, int odd_ = 0>
struct Left {
  static constexpr bool in_panels = false;
  static constexpr int warps = warps_, threads = 32 * warps, strips = strips_, nb = 32, tiles = nb / 8;
  static constexpr int blocks = blocks_;  // on a multiprocessor
  static constexpr int half = half_, odd = odd_;
  static constexpr int wide = wide_;  // diagonal tiles of a block column: the more, the less is read from global memory
  static constexpr bool kept = half > 0;
  static constexpr int workers = warps - 1;
  // Products of doubles on the tensor cores hold up other arithmetic of doubles in their quarter of a multiprocessor
  // tenfold: workers that share a quarter with the warp that factors come last, and update where there is no other way.
  static constexpr bool apart = kept && sizeof(Real<T>) == 8;
  static constexpr int updaters = apart ? warps - (warps + 3) / 4 : workers;
  static constexpr int more = odd;  // strips of a worker that wait until the block column before is solved
  static constexpr int chunk = 16 * workers * (strips + more);
  static constexpr int late = late_, first_late = late ? 2 * nb * half : 1 << 30;
  static_assert(late == 0 || odd == 0);
  static constexpr int most = kept ? min((2 * half + odd + late) * nb, chunk + nb) : 1 << 30;  // the largest order
  static constexpr int ahead = sizeof(T) * strips * wide <= 8 ? 4 : 2;  // steps of 8 columns that are loaded ahead
  // Steps of 8 columns that are unrolled; of four, so many doubles are loaded ahead that they are spilled. Where the
  // factor is not kept, two take 2.68 against 2.54 ms for 1,000 of order 512 in double, but in complex double 1.35
  // against 1.43 for 300 of order 384.
  static constexpr int together = sizeof(T) == (kept ? 8 : 16) ? 2 : 4;
  // Tiles of right operands that are on their way, or in use. The less shared memory, the more is left for the cache:
  // with six in place of four, doubles of order 512 take 2.54 in place of 2.51 ms, upper ones 2.64 in place of 2.59,
  // and at 639 2.59 in place of 2.51. Floats take 1 % more with four.
  static constexpr int ring = (sizeof(T) == 4 ? 3 : 2) * wide;
  static constexpr int slabs = kept ? max((half + odd) * half, (2 * half + late) * late) : ring + wide - 1;
  static constexpr int pitch = nb + column_pad<T>;
  // How a diagonal tile is factored: see factor_tile. H200, ms, with columns sent around and without: complex double at
  // 128 0.526 and 0.678 (2,000 items), at 256 0.75 and 0.86 (500); double at 200 1.35 and 1.42 (5,000), but at 300 0.62
  // and 0.61 (1,000), at 512 2.63 and 2.55.
  static constexpr bool sends = is_complex<T> || (kept && late_ == 0);
  static constexpr int slab = kept ? KeptTile<T>::size : CopiedTile<T>::size;
  static constexpr int diagonals = kept ? 1 : wide;  // that are held at once
  // Diagonal tiles as they were before they were factored. Where there is no room for one, it is in A.
  static constexpr int given = odd ? 0 : 1;
  static constexpr int entries =
      slabs * slab + (diagonals + given) * nb * pitch + diagonals * (nb / 8) * Corner<T>::size + nb;
  static constexpr std::size_t bytes = entries * sizeof(T) + 16;
  static constexpr std::size_t bytes_of(index_t) { return bytes; }
  /// Where tile (i, k) of the factor is kept; its place is taken by another when block row i is done.
  __device__ static int slot(int i, int k) {
    if (late > 0 && i >= 2 * half) return ((i - 2 * half) * (2 * half + late) + k) * KeptTile<T>::size;
    const int u = i < half ? k : k < half ? i - half : k - half, v = i < half ? i : k < half ? k : i - half - odd;
    return (u * half + v) * KeptTile<T>::size;
  }
};

/// Which shapes take items of which order, and up to which the factor is kept; Panels take them as far as they go.
/// H200, 2026-11-15 and 16, ms for 10,000 items, 1,000 from 300 on. Double at 128: in panels 0.698, from the left
/// 0.829; at 100 0.408 and 0.655; by three warps 0.744 and 0.414. From the left, two blocks of six warps: at 144 1.07,
/// upper 1.00, in panels 1.06 and 1.03; at 160 1.22 and 1.14, in panels 1.30 and 1.41; at 192 1.60 and 1.48, with the
/// shape for 224 1.85 and 1.81, of eight warps 1.82 and 1.73, one block of twelve 2.38 and 2.31; at 200 1.97 and 1.99,
/// of eight warps 2.10 and 2.13, one of twelve 2.60 and 2.54. At 256: 12 warps with 168 registers 3.93, 16 with
/// 128 4.45. At 512: two blocks of six warps, block columns of 64, 2.70; of 32 2.81; one block of eight warps with two
/// strips each 2.95; two of five warps 2.93.
template <class T>
struct LeftShapes {
  static constexpr int most = 384;
  using Panels = WidePanels<T, 4, 4, 144>;
  using Up192 = Left<T, 6, 2, 2, 3>;
  using Up224 = Left<T, 6, 2, 2, 3, 1, 0, 1>;
  using Up256 = Left<T, 12, 2, 1, 4>;
  using Up384 = Left<T, 12, 2, 1, 5, 1, 2>;
  using Up512 = Up384;
  using Beyond = Left<T, 6, 1, 2, 0, 2>;
};
/// At 112: in panels 0.411, from the left 0.448; at 100 0.362 and 0.432, by four warps 0.386; at 128 0.562 and 0.528,
/// from the left with five blocks 0.574.
template <>
struct LeftShapes<float> {
  static constexpr int most = 512;
  using Panels = WidePanels<float, 3, 6, 112>;
  using Up128 = Left<float, 4, 2, 4, 2>;
  using Up256 = Left<float, 8, 2, 2, 4>;
  using Up384 = Left<float, 12, 2, 1, 6>;
  using Up512 = Left<float, 16, 2, 1, 7, 1, 2>;
  using Beyond = Left<float, 8, 1, 2, 0, 2>;
};
/// 2,000 items. Single at 128: in panels 0.388, from the left 0.449, at 100 0.245 and 0.321, at 160 0.707 and 0.863.
/// Double at 128: 0.567 and 0.530, upper 0.526 and 0.523; at 100, where two blocks fit on a multiprocessor, 0.253 and
/// 0.451; at 160 (1,000) 0.477 and 0.535, by six warps 0.507.
template <class R>
struct LeftShapes<Complex<R>> {
  static constexpr bool single = sizeof(R) == 4;
  static constexpr int most = 256;
  using Panels = WidePanels<Complex<R>, 4, single ? 3 : 2, 160>;
  using Up256 = Left<Complex<R>, 8, 1, single ? 2 : 1, 0>;
  using Up384 = Up256;
  using Up512 = Up256;
  using Beyond = Up256;
};
}  // namespace trifactor::cuda
