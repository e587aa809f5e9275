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
  asm volatile("bar.sync 1, %0;" ::"n"(32 * Shape::workers) : "memory");
}
inline constexpr int strip_pair_threads = 64;  // two workers, who have the next diagonal tile

/// ptxas allocates registers in an order that follows from the names of this function and the next: check a new name with
/// scripts/list_spills.py. With others, orders 193 to 224 in double take a fifth longer.
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
    write_diagonal<T, Shape>(opaque(A), k0);
    if (BlockShared<T, Shape>::status() > 0) break;
    if (k0 + Shape::nb < n) __syncthreads();  // the block column is solved
  }
  if (threadIdx.x == 0) {
    barrier_end(diagonal_barrier());
    if constexpr (Shape::original == 0) barrier_end(original_barrier());
  }
}

template <class T, class Shape>
__device__ __noinline__ void resident_worker_warp(Tile<T> given, int worker) {
  using Shared = BlockShared<T, Shape>;
  using Layout = ResidentTile<T>;
  using std::integral_constant;
  constexpr int nb = Shape::nb, tiles = Shape::tiles, strips = Shape::strips;
  const Tile<T> A = opaque(given);
  const int n = int(A.rows);
  const TilePlace place;
  const int lane_place = Layout::place();
  const index_t half = 4 * A.col_stride;
  // Where the lane has its part of 16 rows of tile column k.
  const auto place_of = [&](int row, int k) TF_INLINE_LAMBDA {
    return Shared::tiles() + Shape::slot(row / nb, k) + row % nb / 16 * Layout::offset(2, 0) + lane_place;
  };
  const auto park = [&](const TensorEntries<T>(&c)[tiles], int row, int k) TF_INLINE_LAMBDA {
    T* const to = place_of(row, k);
#pragma unroll
    for (int u = 0; u < tiles; ++u) put_tile<Layout>(to, u, c[u]);
  };
  const auto load = [&](TensorEntries<T>(&c)[tiles], int row, int k0) TF_INLINE_LAMBDA {
    Strip<T> strip;
    strip.find(opaque(A), row, k0, place);
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
  if (worker < 2) barrier_arrive(diagonal_barrier());  // the first diagonal tile is there
  for (int k0 = 0; k0 < n; k0 += nb) {
    const int k1 = k0 + nb;
    // As many warps update as give each quarter of the multiprocessor the same, and most of them several strips, which
    // share right operands.
    const int rows = max(0, n - k1),
              end_resident = Shape::late && k1 < Shape::first_late ? min(n, Shape::first_late) : n;
    const int updaters = Shape::spares_quarter
                             ? rows <= 16 * strips * Shape::updaters ? Shape::updaters : Shape::workers
                         : Shape::late ? Shape::workers
                                       : min(Shape::workers, (rows + 64 * strips - 1) / (64 * strips) * 4);
    const int solvers = Shape::spares_quarter ? updaters : Shape::workers;
    // A late strip is the last of its warp, and the only one where there are warps enough.
    const int late_strips = Shape::late ? (n - end_resident + 15) / 16 : 0, first_with_late = updaters - late_strips;
    const int keepers = end_resident - k1 <= 16 * strips * first_with_late ? first_with_late : updaters;
    const bool has_late = Shape::late > 0 && worker >= first_with_late && worker < updaters;
    const auto row = [&](int s) TF_INLINE_LAMBDA {
      const int r = worker < keepers ? k1 + 16 * (worker + keepers * s) : n;
      if constexpr (Shape::late > 0)
        return s + 1 == strips && has_late ? end_resident + 16 * (worker - first_with_late) : r < end_resident ? r : n;
      return r;
    };
    TensorEntries<T> c[strips + Shape::delayed][tiles];
    const auto right = [&](int k) TF_INLINE_LAMBDA { return Shared::tiles() + Shape::slot(k1 / nb, k) + lane_place; };
    // Strips first, first + 1, ... -= their products with tile column k
    const auto update = [&](auto from, auto count, int k) TF_INLINE_LAMBDA {
      constexpr int first = decltype(from)::value, active = decltype(count)::value;
      const T* P[active];
#pragma unroll
      for (int s = 0; s < active; ++s) P[s] = place_of(row(first + s), k);
      subtract_tile<Layout, active, tiles, Shape::unrolled>(
          [&](int s, int j) TF_INLINE_LAMBDA -> TensorEntries<T>& { return c[first + s][j]; }, right(k),
          [&](int u, int, int s) TF_INLINE_LAMBDA { return as_left(get_tile<Layout>(P[s], u)); }, [](int, int) {});
    };
    // The same for a late strip and tile columns begin .. end - 1, with what it is made of on its way.
    const auto update_late = [&](auto strip, int begin, int end) TF_INLINE_LAMBDA {
      constexpr int s = decltype(strip)::value;
      const auto entries = [&](int, int j) TF_INLINE_LAMBDA -> TensorEntries<T>& { return c[s][j]; };
      constexpr int ahead = Shape::ahead;
      Strip<T> at;
      LeftPart<T> left[ahead];
      const auto read = [&](LeftPart<T>& to, bool more) TF_INLINE_LAMBDA { at.next(to, A.data, half, more, true); };
      at.find(opaque(A), row(s), nb * begin, place);
#pragma unroll
      for (int g = 0; g < ahead; ++g) read(left[g], nb * begin + 8 * g < nb * end);
#pragma unroll 1
      for (int k = begin; k < end; ++k)
        subtract_tile<Layout, 1, tiles, Shape::unrolled>(
            entries, right(k), [&](int, int v, int) TF_INLINE_LAMBDA -> const LeftPart<T>& { return left[v % ahead]; },
            [&](int u, int v) TF_INLINE_LAMBDA { read(left[v % ahead], nb * k + 8 * (u + ahead) < nb * end); });
    };
#pragma unroll
    for (int s = 0; s < strips; ++s)
      if (row(s) < n) load(c[s], row(s), k1);
    using First = integral_constant<int, 0>;
    using Last = integral_constant<int, strips - 1>;
    if (strips > 1 && row(strips - 1) < end_resident) {
#pragma unroll 1
      for (int k = 0; k < k0 / nb; ++k) update(First{}, integral_constant<int, strips>{}, k);
    } else if (row(0) < end_resident) {
#pragma unroll 1
      for (int k = 0; k < k0 / nb; ++k) update(First{}, integral_constant<int, 1>{}, k);
    }
    if constexpr (Shape::late > 0)
      if (has_late) update_late(Last{}, 0, k0 / nb);
    __syncthreads();  // the diagonal tile is factored, and nobody reads the tiles of its row any more
#pragma unroll 1
    for (int r = k1 + 16 * worker; r < n && worker < solvers; r += 16 * solvers) {
      TensorEntries<T> y[tiles];
      const bool late = Shape::late > 0 && r >= end_resident;
      T* const at = late ? Shared::tiles() : place_of(r, k0 / nb);
      if (late)
        load(y, r, k0);
      else
#pragma unroll
        for (int u = 0; u < tiles; ++u) y[u] = get_tile<Layout>(static_cast<const T*>(at), u);
      solve_strip<Shape, Layout>(y, opaque(A), k0, r, !late, at, place);
    }
    if (k1 >= n) break;
    const bool failed = Shared::status() > 0;
    if (!failed) {
      __syncthreads();  // the block column is solved, and nobody wants its diagonal tile any more
      for_constants<strips>([&](auto constant) TF_INLINE_LAMBDA {
        constexpr int s = decltype(constant)::value;
        if (row(s) < end_resident) update(constant, integral_constant<int, 1>{}, k0 / nb);
        if (s == 0 && worker < 2) {
          if (row(0) < n) put_diagonal<T, Shape>(c[0], k1, row(0), place);
          barrier_arrive(diagonal_barrier());  // the next diagonal tile is there
          if constexpr (Shape::original == 0) {
            if (row(0) < n) put_original<T, Shape>(c[0], opaque(A), k1, row(0), place);
            barrier_arrive(original_barrier());  // and in A
          }
        }
      });
      if constexpr (Shape::late > 0)
        if (has_late) update_late(Last{}, k0 / nb, k1 / nb);
    }
    if (failed) break;
    if constexpr (Shape::delayed > 0)
      if (row(strips) < n) {
        load(c[strips], row(strips), k1);
#pragma unroll 1
        for (int k = 0; k < k1 / nb; ++k) update(integral_constant<int, strips>{}, integral_constant<int, 1>{}, k);
      }
    meet_workers<Shape>();  // nobody reads the tiles of its row any more
    const bool room = k1 + nb == Shape::first_late && n > Shape::first_late;  // for late rows: no other is wanted now
#pragma unroll
    for (int s = 0; s < strips + Shape::delayed; ++s)
      if (row(s) >= k1 + nb && row(s) < n) {
        if (Shape::late == 0 || row(s) < end_resident || room) {
          park(c[s], row(s), k1 / nb);
        } else {
          StripWriter<T> writer(opaque(A), row(s), k1, place);
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
        meet_workers<Shape>();  // the late rows are kept, too
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
    if constexpr (Shape::original == 0) barrier_init(original_barrier(), strip_pair_threads);
  }
  __syncthreads();  // nothing has failed yet
  if (warp > 0)
    resident_worker_warp<T, Shape>(A, worker);
  else
    resident_chain_warp<T, Shape>(A);
  return Shared::status();
}

}  // namespace trifactor::cuda
