// Cholesky of a matrix of order up to 160 by a few warps, from the left by panels of eight columns. As by one warp
// (cholesky_warp.cuh), the triangle lies in shared memory in tiles of 8 x 8; one warp factors diagonal blocks, and the
// tiles below are spread over all and multiplied by the inverse.
#pragma once

#include <cuda/batched/cholesky_warp.cuh>

namespace trifactor::cuda {

/// The shape of factor_panels, for orders up to `max_order_`.
template <class T, int warps_, int blocks_, int max_order_>
struct PanelShape {
  using Kernel = PanelShape;
  static constexpr const char* name = "panels";
  static constexpr bool in_panels = true, resident = true;
  static constexpr int warps = warps_, threads = 32 * warps, blocks = blocks_, max_order = max_order_;
  static constexpr int each =
      ceil_div(max_order / 16 - 1, warps - 1);  // pairs of tiles to a warp: the first has but one
  static constexpr int ahead = 4;               // panels that are on their way
  static constexpr int inverse = ceil_div(PivotBlock<T>::size, 32) * 32;
  static constexpr int scratch = inverse + ceil_div(ColumnScratch<T, 8>::size, 32) * 32;
  static constexpr std::size_t bytes_of(index_t n) {
    return (scratch + TileStore<T>::size(int(min(n, index_t(max_order))))) * sizeof(T);
  }
};
/// `pairs` pairs of tiles of panel p in registers: rows p + 2 (first + j step) of tiles and the next; where the last is
/// missing, the one before once more.
template <int pairs, class T>
class PanelPairs {
 public:
  __device__ __forceinline__ PanelPairs(T* store, const TilePart<T>& part, int p, int used, int first, int step)
      : part_(part), panel_(TileStore<T>::pitch * p), right_(store + TileStore<T>::tile(p, 0)) {
#pragma unroll
    for (int i = 0; i < 2 * pairs; ++i)
      row_[i] = store + TileStore<T>::tile(min(p + 2 * (first + i / 2 * step) + i % 2, used - 1), 0);
#pragma unroll
    for (int j = 0; j < pairs; ++j) c_[j].start(part.load(row_[2 * j] + panel_), part.load(row_[2 * j + 1] + panel_));
  }
  /// L_ip -= L_ik L_pk^H
  __device__ __forceinline__ void subtract(int k) {
    const int at = TileStore<T>::pitch * k;
    RightPart<T> x[2 * pairs];
    const TileOperand<T> b(part_.load(right_ + at));
#pragma unroll
    for (int i = 0; i < 2 * pairs; ++i) x[i] = part_.load(row_[i] + at);
#pragma unroll
    for (int j = 0; j < pairs; ++j) c_[j].subtract(TileOperand<T>(x[2 * j]), TileOperand<T>(x[2 * j + 1]), b);
  }
  /// All of them back to their places.
  __device__ __forceinline__ void store() const {
#pragma unroll
    for (int i = 0; i < 2 * pairs; ++i)
      part_.store(row_[i] + panel_, c_[i / 2].get(i % 2 * 2), c_[i / 2].get(i % 2 * 2 + 1));
  }
  /// The diagonal block alone, which is the first tile of the first pair.
  __device__ __forceinline__ void store_diagonal() const { part_.store(right_ + panel_, c_[0].get(0), c_[0].get(1)); }
  /// Multiplies all by the inverse of the diagonal block; to shared memory and, where columns are contiguous, to A, in
  /// which the lane's part of the first tile of column p is at `out`. The diagonal block itself is left out.
  template <bool by_rows>
  __device__ __forceinline__ void solve(T* out, index_t ld, int left, const RightPart<T>& negative, int p, int used,
                                        int first, int step) {
#pragma unroll
    for (int j = 0; j < pairs; ++j) {
      TensorEntries<T> c;
#pragma unroll
      for (int e = 0; e < 4; ++e) c.set(e, c_[j].get(e));
      c = times_inverse(c, negative);
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int i = p + 2 * (first + j * step) + h;
        if (i == p || i >= used) continue;
        part_.store(row_[2 * j + h] + panel_, c.get(2 * h), c.get(2 * h + 1));
        if constexpr (!by_rows)
          if (8 * i < left) out[8 * i] = c.get(2 * h), out[8 * i + 4 * ld] = c.get(2 * h + 1);
      }
    }
  }

 private:
  TilePart<T> part_;
  int panel_;
  T *row_[2 * pairs], *right_;
  TilePair<T> c_[pairs];
};

/// Factors a diagonal block of eight, of which `left` rows are inside the matrix, and inverts it: V by rows. By one
/// warp. Returns 0 or the failed column + 1.
template <class T>
__device__ __forceinline__ int factor_panel_diagonal(T* diagonal, int left, T* scratch, T* V) {
  // Lanes 0 to 7 have a row of it, all others one of the identity, which becomes one of the inverse.
  T a[1][8];
  const int lane = int(threadIdx.x % 32), row = lane % 8;
  const auto read = [&]() TF_INLINE_LAMBDA {
    read_row(diagonal, row, a[0]);
    if (lane >= 8 || row >= left)
#pragma unroll
      for (int c = 0; c < 8; ++c) a[0][c] = T(c == row ? 1 : 0);
  };
  read();
  Real<T> mine = factor_columns<false>(a, lane, scratch);
  if (__any_sync(~0u, !in_fast_range(mine))) {
    read();
    mine = factor_columns<true>(a, lane, scratch);
  }
  const int failed = __ffs(int(__ballot_sync(~0u, !good_pivot(mine)) & 0xffu));
  if (lane < 8)
    write_row(diagonal, row, a[0]);
  else if (lane < 16)
    write_vectors(V + row * PivotBlock<T>::pitch, a[0]);
  return failed;
}

/// Factors A by all threads of the block. Returns 0, or the order of the minor that is not positive definite. Shared
/// memory is free again after a barrier. In turn, for each panel: it is updated with those before, and the first warp
/// factors its diagonal block [the inverse is there] all others are multiplied by it [it is complete]. The last warp
/// updates the tiles that the first one wants next with all but the last panel, so that this is all that is left to it.
template <bool by_rows, class Shape, class T>
__device__ __forceinline__ int factor_panels(const Tile<T>& A) {
  using Store = TileStore<T>;
  extern __shared__ __align__(16) unsigned char raw[];
  __shared__ int status;
  constexpr int warps = Shape::warps, ahead = Shape::ahead;
  const int warp = __shfl_sync(~0u, int(threadIdx.x) / 32, 0), lane = int(threadIdx.x % 32);
  const int n = int(A.rows), used = (n + 7) / 8;
  T* const V = reinterpret_cast<T*>(raw);  // the inverse, by rows
  T *const scratch = V + Shape::inverse, *const store = V + Shape::scratch;
  const PanelCopy<Store, by_rows, T> copy(A, store);
  for (int k = 0; k < ahead; ++k) copy.start(k, warp, warps);
  copy_wait<ahead - 2>();
  __syncthreads();  // the first two panels are there
  const TilePart<T> part;
  const LanePlace place;
  const index_t ld = A.col_stride;
  const int left = n - place.right_row();              // rows from the lane's first on
  T* out = A.data + place.right_row() + place.t * ld;  // the lane's part of a panel
  int failed = 0, p = 0;
#pragma unroll 1
  for (; p < used; ++p, out += 8 * ld) {
    if (warp == 0) {
      PanelPairs<1, T> tiles(store, part, p, used, 0, 0);
      if (p > 0) tiles.subtract(p - 1);
      tiles.store_diagonal();
      __syncwarp();  // the diagonal block is there
      failed = factor_panel_diagonal(store + Store::tile(p, p), n - 8 * p, scratch, V);
      if (lane == 0) status = failed;
      __syncthreads();  // the inverse is there
      tiles.template solve<by_rows>(out, ld, left, negative_inverse(V, LanePlace()), p, used, 0, 0);
      copy_wait<0>();
    } else {
      copy.start(p + ahead, warp - 1, warps - 1);
      if (by_rows && warp == warps - 2 && p > 0) write_tile_row<Store>(opaque(A), store, p - 1);
      if (warp == warps - 1 && p > 0 && p + 1 < used) {
        PanelPairs<1, T> next(store, part, p + 1, used, 0, 0);
#pragma unroll 2
        for (int k = 0; k < p; ++k) next.subtract(k);
        next.store();
      }
      const int more = (used - p + 1) / 2 - warp, mine = more > 0 ? ceil_div(more, warps - 1) : 0;
      if (mine == 0) __syncthreads();  // as below
      for_constants<Shape::each>([&](auto constant) TF_INLINE_LAMBDA {
        constexpr int count = decltype(constant)::value + 1;
        if (mine == count) {
          PanelPairs<count, T> tiles(store, part, p, used, warp, warps - 1);
#pragma unroll 1
          for (int k = 0; k < p; ++k) tiles.subtract(k);
          __syncthreads();  // the inverse is there
          tiles.template solve<by_rows>(out, ld, left, negative_inverse(V, LanePlace()), p, used, warp, warps - 1);
          distinct_branch<count>();
        }
      });
      if (!by_rows && warp == 1) write_diagonal_tile<Store>(opaque(A), store + Store::tile(p, p), p);
      failed = status;
      copy_wait<ahead - 2>();
    }
    __syncthreads();  // the panel is complete, and the one after the next is there
    if (failed) break;
  }
  copy_wait<0>();  // nothing is under way, even if a panel failed
  if constexpr (by_rows)
    if (warp == warps - 2) write_tile_row<Store>(opaque(A), store, min(p, used - 1));
  return failed ? 8 * p + failed : 0;
}

}  // namespace trifactor::cuda
