// Cholesky of an item by one block whose factor stays in shared memory as far as it is still needed: left-looking by
// block columns of 32. One warp factors diagonal tiles; the workers hold the block column in registers.
//
// For each block column: its diagonal tile is factored while the workers update the next column with what was there
// before [it is factored] this column is solved [it is solved] and the next one is updated with it, the two strips of
// the next diagonal tile first, for which the factoring warp waits.
#pragma once

#include <cuda/batched/block_strips.cuh>

namespace trifactor::cuda {

/// Where two workers, with 16 rows each, tell the warp that factors that the diagonal tile is there, and go on. In
/// shared memory, since racecheck takes bar.sync of three warps for no order at all, and reports pairs of accesses that
/// lie on two sides of a __syncthreads().
__device__ __forceinline__ unsigned diagonal_barrier() {
  __shared__ std::uint64_t barrier;
  return shared_address(&barrier);
}
/// Where the workers meet without the warp that factors.
template <class Shape>
__device__ __forceinline__ void meet_workers() {
  sync_threads<1, 32 * Shape::workers>();
}
inline constexpr int strip_pair_threads = 64;  // two workers, who have the next diagonal tile

/// ptxas allocates registers in an order that follows from the names of this function and the next: check a new name
/// with scripts/list_spills.py. With others, orders 193 to 224 in double take a fifth longer.
template <class T, class Shape>
__device__ __noinline__ void resident_chain_warp(Tile<T> given) {
  const Tile<T> A = opaque(given);
  const int n = int(A.rows);
  prefetch_columns(opaque(A), 0);
  for (int k0 = 0; k0 < n; k0 += Shape::nb) {
    if (k0 + Shape::nb < n) prefetch_columns(opaque(A), k0 + Shape::nb);
    barrier_wait(diagonal_barrier(), k0 / Shape::nb % 2);  // the diagonal tile is there
    factor_diagonal<T, Shape>(A, k0);
    __syncthreads();  // it is factored
    write_triangle<Shape::pitch>(opaque(A), k0, BlockShared<T, Shape>::diagonal(k0));
    if (BlockShared<T, Shape>::status() > 0) break;
    if (k0 + Shape::nb < n) __syncthreads();  // the block column is solved
  }
  if (threadIdx.x == 0) barrier_end(diagonal_barrier());
}

/// Which rows a worker updates and solves while the tile column of rows k1 .. is updated. A late strip, of rows that
/// are not in shared memory yet, is the last of its warp, and the only one where there are warps enough.
template <class Shape>
struct ResidentStep {
  int n, k1, worker, end_resident, solvers, first_with_late, keepers;
  bool has_late;

  __device__ __forceinline__ ResidentStep(int n_, int k1_, int worker_) : n(n_), k1(k1_), worker(worker_) {
    // As many warps update as give each quarter of the multiprocessor the same, and most of them several strips, which
    // share right operands.
    constexpr int strips = Shape::strips;
    const int rows = max(0, n - k1);
    end_resident = Shape::late && k1 < Shape::first_late ? min(n, Shape::first_late) : n;
    const int updaters = Shape::spares_quarter
                             ? rows <= 16 * strips * Shape::updaters ? Shape::updaters : Shape::workers
                         : Shape::late ? Shape::workers
                                       : min(Shape::workers, (rows + 64 * strips - 1) / (64 * strips) * 4);
    solvers = Shape::spares_quarter ? updaters : Shape::workers;
    const int late_strips = Shape::late ? (n - end_resident + 15) / 16 : 0;
    first_with_late = updaters - late_strips;
    keepers = end_resident - k1 <= 16 * strips * first_with_late ? first_with_late : updaters;
    has_late = Shape::late > 0 && worker >= first_with_late && worker < updaters;
  }
  /// The first row of the worker's strip s; n if there is none.
  __device__ __forceinline__ int row(int s) const {
    const int r = worker < keepers ? k1 + 16 * (worker + keepers * s) : n;
    if constexpr (Shape::late > 0)
      return s + 1 == Shape::strips && has_late ? end_resident + 16 * (worker - first_with_late)
             : r < end_resident                 ? r
                                                : n;
    return r;
  }
};

/// A worker: strips of 16 rows in registers, on their way between A, shared memory and the tensor cores.
template <class T, class Shape>
struct ResidentWorker {
  using Shared = BlockShared<T, Shape>;
  using Layout = ResidentTile<T>;
  using Step = ResidentStep<Shape>;
  static constexpr int nb = Shape::nb, tiles = Shape::tiles, strips = Shape::strips;
  using Tiles = TensorEntries<T>[tiles];
  using Strips = Tiles[strips];

  const Tile<T> A;
  const int n = int(A.rows);
  const TilePlace place{};
  const int lane_place = Layout::place();
  const index_t half = 4 * A.col_stride;

  /// Where the lane has its part of 16 rows of tile column k.
  __device__ __forceinline__ T* place_of(int row, int k) const {
    return Shared::tiles() + Shape::slot(row / nb, k) + row % nb / 16 * Layout::offset(2, 0) + lane_place;
  }
  __device__ __forceinline__ void park(const Tiles& c, int row, int k) const {
    T* const to = place_of(row, k);
#pragma unroll
    for (int u = 0; u < tiles; ++u) put_tile<Layout>(to, u, c[u]);
  }
  __device__ __forceinline__ void load(Tiles& c, int row, int k0) const {
    Strip<T> strip;
    strip.find(opaque(A), row, k0, place);
    strip.load(c, A.data, n, row, k0, half, 0, place);
  }
  /// The tiles of the diagonal tile's row, as right operands.
  __device__ __forceinline__ const T* right(const Step& step, int k) const {
    return Shared::tiles() + Shape::slot(step.k1 / nb, k) + lane_place;
  }
  /// `active` strips from `first` on -= their products with tile column k
  template <int first, int active>
  __device__ __forceinline__ void update(Strips& c, const Step& step, int k) const {
    const T* P[active];
#pragma unroll
    for (int s = 0; s < active; ++s) P[s] = place_of(step.row(first + s), k);
    subtract_tile<Layout, active, tiles, Shape::unrolled>(
        [&](int s, int j) TF_INLINE_LAMBDA -> TensorEntries<T>& { return c[first + s][j]; }, right(step, k),
        [&](int u, int, int s) TF_INLINE_LAMBDA { return as_left(get_tile<Layout>(P[s], u)); }, [](int, int) {});
  }
  /// The same for the last strip, a late one, and tile columns begin .. end - 1, with what it is made of on its way.
  __device__ __forceinline__ void update_late(Strips& c, const Step& step, int begin, int end) const {
    constexpr int s = strips - 1, ahead = Shape::ahead;
    const auto entries = [&](int, int j) TF_INLINE_LAMBDA -> TensorEntries<T>& { return c[s][j]; };
    Strip<T> at;
    LeftPart<T> left[ahead];
    const auto read = [&](LeftPart<T>& to, bool more) TF_INLINE_LAMBDA { at.next(to, A.data, half, more, true); };
    at.find(opaque(A), step.row(s), nb * begin, place);
#pragma unroll
    for (int g = 0; g < ahead; ++g) read(left[g], nb * begin + 8 * g < nb * end);
#pragma unroll 1
    for (int k = begin; k < end; ++k)
      subtract_tile<Layout, 1, tiles, Shape::unrolled>(
          entries, right(step, k),
          [&](int, int v, int) TF_INLINE_LAMBDA -> const LeftPart<T>& { return left[v % ahead]; },
          [&](int u, int v) TF_INLINE_LAMBDA { read(left[v % ahead], nb * k + 8 * (u + ahead) < nb * end); });
  }
  /// The first block column: to the warp that factors, and to shared memory.
  __device__ __forceinline__ void load_first(int worker) const {
#pragma unroll 1
    for (int row = 16 * worker; row < min(n, Shape::first_late); row += 16 * Shape::workers) {
      Tiles c;
      load(c, row, 0);
      if (row < nb)
        put_diagonal<T, Shape>(c, 0, row, place);
      else
        park(c, row, 0);
    }
  }
  /// The strips of block column k0 below its diagonal tile are solved with it.
  __device__ __forceinline__ void solve(const Step& step, int k0) const {
#pragma unroll 1
    for (int r = step.k1 + 16 * step.worker; r < n && step.worker < step.solvers; r += 16 * step.solvers) {
      Tiles y;
      const bool late = Shape::late > 0 && r >= step.end_resident;
      T* const at = late ? Shared::tiles() : place_of(r, k0 / nb);
      if (late)
        load(y, r, k0);
      else
#pragma unroll
        for (int u = 0; u < tiles; ++u) y[u] = get_tile<Layout>(static_cast<const T*>(at), u);
      solve_strip<Shape, Layout>(y, opaque(A), k0, r, !late, at, place);
    }
  }
  /// The late rows of `columns` tile columns go to shared memory.
  __device__ __forceinline__ void park_late_rows(int worker, int columns) const {
    const int count = (n - Shape::first_late + 15) / 16;
#pragma unroll 1
    for (int i = worker; i < count * columns; i += Shape::workers) {
      const int r = Shape::first_late + i % count * 16, k = i / count;
      Tiles y;
      load(y, r, nb * k);
      park(y, r, k);
    }
  }
};

template <class T, class Shape>
__device__ __noinline__ void resident_worker_warp(Tile<T> given, int worker) {
  using Shared = BlockShared<T, Shape>;
  constexpr int nb = Shape::nb, tiles = Shape::tiles, strips = Shape::strips;
  const ResidentWorker<T, Shape> work{opaque(given)};
  const Tile<T>& A = work.A;
  const int n = work.n;
  work.load_first(worker);
  if (worker < 2) barrier_arrive(diagonal_barrier());  // the first diagonal tile is there
  for (int k0 = 0; k0 < n; k0 += nb) {
    const int k1 = k0 + nb;
    const ResidentStep<Shape> step(n, k1, worker);
    TensorEntries<T> c[strips][tiles];
#pragma unroll
    for (int s = 0; s < strips; ++s)
      if (step.row(s) < n) work.load(c[s], step.row(s), k1);
    if (step.row(strips - 1) < step.end_resident) {
#pragma unroll 1
      for (int k = 0; k < k0 / nb; ++k) work.template update<0, strips>(c, step, k);
    } else if (step.row(0) < step.end_resident) {
#pragma unroll 1
      for (int k = 0; k < k0 / nb; ++k) work.template update<0, 1>(c, step, k);
    }
    if constexpr (Shape::late > 0)
      if (step.has_late) work.update_late(c, step, 0, k0 / nb);
    __syncthreads();  // the diagonal tile is factored, and nobody reads the tiles of its row any more
    work.solve(step, k0);
    if (k1 >= n) break;
    const bool failed = Shared::status() > 0;
    if (!failed) {
      __syncthreads();  // the block column is solved, and nobody wants its diagonal tile any more
      for_constants<strips>([&](auto constant) TF_INLINE_LAMBDA {
        constexpr int s = decltype(constant)::value;
        if (step.row(s) < step.end_resident) work.template update<s, 1>(c, step, k0 / nb);
        if (s == 0 && worker < 2) {
          if (step.row(0) < n) put_diagonal<T, Shape>(c[0], k1, step.row(0), work.place);
          barrier_arrive(diagonal_barrier());  // the next diagonal tile is there
        }
      });
      if constexpr (Shape::late > 0)
        if (step.has_late) work.update_late(c, step, k0 / nb, k1 / nb);
    }
    if (failed) break;
    meet_workers<Shape>();  // nobody reads the tiles of its row any more
    const bool room = k1 + nb == Shape::first_late && n > Shape::first_late;  // for late rows: no other is wanted now
#pragma unroll
    for (int s = 0; s < strips; ++s)
      if (step.row(s) >= k1 + nb && step.row(s) < n) {
        if (Shape::late == 0 || step.row(s) < step.end_resident || room) {
          work.park(c[s], step.row(s), k1 / nb);
        } else {
          StripWriter<T> writer(opaque(A), step.row(s), k1, work.place);
#pragma unroll
          for (int u = 0; u < tiles; ++u) writer.next(c[s][u]);
        }
      }
    if constexpr (Shape::late > 0)
      if (room) {
        work.park_late_rows(worker, k1 / nb);
        meet_workers<Shape>();  // the late rows are there, too
      }
  }
}

/// Factors A by all threads of the block; see factor_by_block.
template <class T, class Shape>
__device__ __forceinline__ int factor_resident(const Tile<T>& A) {
  using Shared = BlockShared<T, Shape>;
  const int warp = __shfl_sync(~0u, int(threadIdx.x) / 32, 0);
  const int worker = !Shape::spares_quarter ? warp - 1
                     : warp % 4             ? warp - warp / 4 - 1
                                            : Shape::updaters + warp / 4 - 1;
  if (threadIdx.x == 0) {
    Shared::status() = 0;
    barrier_init(diagonal_barrier(), strip_pair_threads);
  }
  __syncthreads();  // nothing has failed yet
  if (warp > 0)
    resident_worker_warp<T, Shape>(A, worker);
  else
    resident_chain_warp<T, Shape>(A);
  return Shared::status();
}

}  // namespace trifactor::cuda
