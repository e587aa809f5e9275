// Which kernel factors the items of a batch, and the launches. From small to large orders: several items to a warp
// (lanes), one to a warp (warp), one to a block in panels of 8 (panels) or in block columns of 32 with the factor in
// shared memory (resident) or read from global memory (streamed). Only one triangle is read or written.
#pragma once

#include <cuda/batched/batched.hpp>
#include <cuda/batched/cholesky_mixed.cuh>
#include <cuda/batched/cholesky_panels.cuh>
#include <cuda/batched/cholesky_resident.cuh>
#include <cuda/batched/cholesky_streamed.cuh>
#include <cuda/batched/ragged.cuh>
#include <cuda/engine/launch.cuh>
#include <cuda/single/single.hpp>

#include <algorithm>

namespace trifactor::cuda {

/// Work source: a ticketed slice of the size-sorted list, or, without a list, all items.
struct BlockWork {
  const int* order = nullptr;  // of ItemList; null: there is no list
  const int* bounds = nullptr;
  int* next = nullptr;  // these two from the slice on
};

/// Factors A by all threads of the block. Returns 0, or the order of the minor that is not positive definite. Shared
/// memory is free again after a barrier.
template <class T, class Shape>
__device__ __forceinline__ int factor_by_block(const Tile<T>& A) {
  if (A.rows == 0) return 0;
  if constexpr (Shape::in_panels)
    return A.row_stride == 1 ? factor_panels<false, Shape>(opaque(A)) : factor_panels<true, Shape>(opaque(A));
  else if constexpr (Shape::resident)
    return factor_resident<T, Shape>(A);
  else
    return factor_streamed<T, Shape>(A);
}

/// What a kernel holds across its loop over items is missing in the functions that factor them: scripts/list_spills.py
/// tells after a change here.
template <class T, class Shape>
__global__ void __launch_bounds__(Shape::threads, Shape::blocks)
    cholesky_block_kernel(Items<T> A, BlockWork work, int* info, index_t first, bool resets) {
  __shared__ int drawn[2];  // two, since a thread may be late to read the one before
  const bool listed = work.order;
  int b = int(A.count) - 1 - int(blockIdx.x), turn = 0;  // the item
  const auto draw = [&]() TF_INLINE_LAMBDA {
    turn ^= 1;
    if (listed && threadIdx.x == 0) {
      const int end = work.bounds[1], at = atomicAdd(work.next, 1);
      drawn[turn] = at < end ? work.order[at] : -1;
    }
    __syncthreads();  // it is drawn; everyone has read info, and shared memory is free again
    b = listed ? drawn[turn] : b - int(gridDim.x);
  };
  if (listed) let_next_start(), draw();
  while (b >= 0) {
    bool own;
    Tile<T> a;
    if (listed) {
      const StoredItem<T> item(A, b);
      own = item.possible, a = item.tile(A);
    } else {
      own = wanted(A, b, info, resets);
      if (own) a = A.item(b);
    }
    const int failed = own ? factor_by_block<T, Shape>(a) : -1, last = b;  // -1: `own` is not held in a register
    draw();
    if (threadIdx.x == 0) report(info, last, resets, first, failed >= 0, failed);
  }
  if (listed && blockIdx.x == 0) wait_for_launch_before();
}

// ---- the selection table ----

/// The same kernel for items up to a smaller order: they take less shared memory, so that more blocks fit on a
/// multiprocessor.
template <class Shape, int max_order_>
struct UpTo : Shape {
  static constexpr int max_order = max_order_;
};

template <class... Shapes>
struct ShapeList {};
/// Shapes of blocks, from small to large orders: an item takes the first whose max_order holds it. Beyond the last
/// resident one the factor is streamed. Evidence: H200, ms for 10,000 items (1,000 above 256), against the next
/// candidate.
template <class T>
struct BlockShapes;
template <>
struct BlockShapes<double> {
  using Panels = PanelShape<double, 4, 4, 144>;  // at 128 0.70, resident 0.83; at 144 1.06 and 1.07
  using Resident192 = BlockColumns<double, BlockShape{.warps = 6, .blocks_per_sm = 2, .resident_tiles = 3}>;
  using Resident224 =
      BlockColumns<double, BlockShape{.warps = 8, .blocks_per_sm = 2, .resident_tiles = 3, .late_rows = 1}>;
  using Resident256 = BlockColumns<double, BlockShape{.warps = 12, .resident_tiles = 4}>;
  using Resident384 = BlockColumns<double, BlockShape{.warps = 12, .resident_tiles = 5, .late_rows = 2}>;
  using Streamed =
      BlockColumns<double, BlockShape{.warps = 6, .blocks_per_sm = 2, .wide = 2}>;  // at 512 2.5, wide = 1 2.8
  using All = ShapeList<UpTo<Panels, 112>, UpTo<Panels, 128>, Panels,
                        Resident192,  // at 192 1.59, Resident224 1.87
                        Resident224,  // at 200 2.15, Resident256 2.61; at 224 2.54 and 2.94
                        Resident256,  // at 256 3.9, 16 warps 4.5
                        Resident384,  // at 384 1.08, Streamed 1.36
                        Streamed>;
};
template <>
struct BlockShapes<float> {
  using Panels = PanelShape<float, 3, 6, 112>;  // at 100 0.36, resident 0.43
  using Resident128 = BlockColumns<float, BlockShape{.warps = 4, .blocks_per_sm = 4, .resident_tiles = 2}>;
  using Resident256 = BlockColumns<float, BlockShape{.warps = 8, .blocks_per_sm = 2, .resident_tiles = 4}>;
  using Resident384 = BlockColumns<float, BlockShape{.warps = 12, .resident_tiles = 6}>;
  using Resident512 = BlockColumns<float, BlockShape{.warps = 16, .resident_tiles = 7, .late_rows = 2}>;
  using Streamed = BlockColumns<float, BlockShape{.warps = 8, .blocks_per_sm = 2, .wide = 2}>;
  using All = ShapeList<Panels, Resident128, Resident256, Resident384, Resident512, Streamed>;
};
template <class R>
struct BlockShapes<Complex<R>> {
  static constexpr int per_sm = sizeof(R) == 4 ? 3 : 2;
  using Panels = PanelShape<Complex<R>, 4, per_sm, 160>;  // 2,000 items, single: at 160 0.71, streamed 0.86
  using Streamed = BlockColumns<Complex<R>, BlockShape{.warps = 8, .blocks_per_sm = per_sm - 1}>;
  using All = ShapeList<UpTo<Panels, 112>, UpTo<Panels, 128>, Panels, Streamed>;
};

/// Largest order that a warp takes: 8 tiles of 8.
inline constexpr index_t warp_max_order = 64;
/// Largest order that several items to a warp may have.
inline constexpr index_t lanes_max_order = 16;
/// Largest order whose factor stays in shared memory.
template <class T>
index_t resident_max_order(const CholeskyTuning& tuning) {
  constexpr index_t fits = is_complex<T> ? 160 : sizeof(T) == 4 ? 512 : 384;
  return min(tuning.resident, fits);
}
enum class Method { Lanes, Warp, Block };
template <class T>
Method method_of(index_t n, const CholeskyTuning& tuning) {
  if (n <= min(tuning.small, lanes_max_order)) return Method::Lanes;
  return n <= min(resident_max_order<T>(tuning), warp_max_order) ? Method::Warp : Method::Block;
}

// ---- items of one size, and few ragged ones ----

/// One launch of blocks for all items: the first shape that holds the largest.
template <class T, class Go, class... Shapes>
const char* launch_blocks(const Items<T>& A, const CholeskyTuning& tuning, Go go, ShapeList<Shapes...>) {
  const char* name = nullptr;
  const auto try_shape = [&]<class Shape>(std::type_identity<Shape>) {
    const bool holds = !Shape::resident || A.rows <= min(index_t(Shape::max_order), resident_max_order<T>(tuning));
    if (name || !holds) return;
    go(cholesky_block_kernel<T, typename Shape::Kernel>, grid_for(A.count), Shape::threads, Shape::bytes_of(A.rows),
       BlockWork{});
    name = Shape::name;
  };
  (try_shape(std::type_identity<Shapes>{}), ...);
  return name;
}

/// Calls go(kernel, grid, bytes) for cholesky_mixed_kernel.
template <class T, class Go>
void with_mixed(const Items<T>& A, Go go) {
  const index_t n = min(A.rows, warp_max_order);
  with_least<32, 64>(n, [&]<int order>(std::integral_constant<int, order>) {
    constexpr int max_tiles = order / 8;
    const std::size_t bytes = sizeof(T) * MixedShape<T, max_tiles>::entries(int(n));
    go(cholesky_mixed_kernel<T, max_tiles>, dim3(unsigned(ceil_div(A.count, Chunk<T>::size)), Chunk<T>::size), bytes);
  });
}

/// One launch for all items. Returns the path.
template <class T>
const char* launch_one(void* stream, const Items<T>& A, int* info, index_t first, bool resets,
                       const CholeskyTuning& tuning) {
  const auto go = [&](auto kernel, dim3 grid, int threads, std::size_t bytes, auto... more) {
    launch(stream, kernel, grid, unsigned(threads), bytes, A, more..., info, first, resets);
  };
  const Method method = method_of<T>(A.rows, tuning);
  if (method == Method::Block) return launch_blocks(A, tuning, go, typename BlockShapes<T>::All{});
  if (A.ragged()) {
    with_mixed(A, [&](auto kernel, dim3 grid, std::size_t bytes) {
      go(kernel, grid, 32, bytes, std::numeric_limits<int>::max());
    });
    return "mixed";
  }
  const auto lanes = [&]<int width>(std::integral_constant<int, width>) {
    const auto with = [&]<bool by_rows>(std::bool_constant<by_rows>) {
      using Shape = LanesShape<T, width, by_rows>;
      go(cholesky_lanes_kernel<T, width, by_rows>, grid_of_all(ceil_div(A.count, Shape::items)), Shape::threads,
         Shape::bytes);
    };
    A.is_flipped ? with(std::true_type{}) : with(std::false_type{});
  };
  const auto warp = [&]<int order>(std::integral_constant<int, order>) {
    constexpr int max_tiles = order / 8;
    const std::size_t bytes = WarpShape<T, max_tiles>::entries(int(A.rows)) * sizeof(T);
    go(cholesky_warp_kernel<T, max_tiles>, grid_for(A.count), 32, bytes, A.is_flipped);
  };
  if (method == Method::Lanes) return with_least<4, 8, 16>(A.rows, lanes), "lanes";
  return with_least<32, 64>(A.rows, warp), "warp";
}

// ---- many ragged items: each by the kernel of its own size ----

template <class T>
index_t cholesky_list_size(const Items<T>& A, const CholeskyTuning& tuning) {
  const bool many = A.count * A.rows >= tuning.sorted && method_of<T>(A.rows, tuning) == Method::Block;
  const bool listed = A.ragged() && A.count <= std::numeric_limits<int>::max() &&
                      (many || A.rows > tuning.whole || whole_device_limit<T>(A.rows, tuning) > 0);
  return listed ? ItemList::ints(A.count) : 0;
}

/// All items of A, for persistent_list_step.
template <class T>
LargeItems<T> large_items(int multiprocessors, const Items<T>& A, const ListRoom<T>& room) {
  LargeItems<T> large;
  large.entries = room.entries, large.entries_each = persistent_entry_count<T>(A.rows);
  large.flags = room.flags + ItemList::flag_count, large.flags_each = int(persistent_flag_count<T>(A.rows));
  large.sets = room.sets;
  large.together = min(min(room.sets, multiprocessors - 1), int(LargeItems<T>::max_together));
  return large;
}

/// The whole device works on the largest items if they are few: fills the thresholds of the list.
template <class T>
void set_large_levels(ItemList& list, index_t max_order, int multiprocessors, const CholeskyTuning& tuning) {
  int levels = 0;
  const auto add = [&](index_t above, index_t at_most) {
    if (at_most > 0) list.above[levels] = int(above), list.at_most[levels++] = int(at_most);
  };
  for (const index_t above : {160, 256, 384, 512, 640, 768})
    if (above < min(tuning.whole, max_order)) add(above, whole_device_limit<T>(above + 1, tuning));
  // 40 of order 1025 to 1400 in double take 3.7 ms, with a block to each 7.6; 100 of them 8.9 and 9.2.
  if (tuning.whole < max_order) add(ItemList::cut(tuning.whole), 3 * multiprocessors / 4);
}

/// A launch that lists the items of more than 64 rows by size, one for each shape that may occur, from the largest on,
/// and one for the items of up to 64 rows. Each begins where the one before leaves multiprocessors free.
template <class T, class... Shapes>
void launch_listed(void* stream, int multiprocessors, Items<T> A, int* info, const CholeskyTuning& tuning,
                   const ListRoom<T>& room, ShapeList<Shapes...>) {
  index_t first = 0;  // a list is made of whole matrices alone
  bool resets = true;
  constexpr int shapes = int(sizeof...(Shapes));
  static_assert(shapes + 1 <= ItemList::slices);
  const index_t resident = min(min(A.rows, tuning.whole), resident_max_order<T>(tuning));
  int below = int(min(resident, warp_max_order)), steps = 0;
  // Slice 0 is for the whole device; slice r takes items of more than max_order[r + 1] rows, up to max_order[r]. A
  // shape that only allows more blocks gains nothing where all items run at once.
  index_t max_order[ItemList::slices + 1];
  std::fill_n(max_order, ItemList::slices + 1, index_t(below));
  max_order[0] = A.rows;
  const bool all_at_once = A.count <= 6 * multiprocessors;
  int r = shapes + 1;
  const auto limit = [&]<class Shape>(std::type_identity<Shape>) {
    --r;
    if (all_at_once && !std::is_same_v<Shape, typename Shape::Kernel>) return;
    max_order[r] = r == 1 ? A.rows : min(resident, index_t(Shape::max_order));
  };
  (limit(std::type_identity<Shapes>{}), ...);
  ItemList list(room.list, A.count, room.flags);
  std::fill_n(list.above, ItemList::levels, std::numeric_limits<int>::max());
  std::fill_n(list.at_most, ItemList::levels, -1);
  if (room.sets > 0) set_large_levels<T>(list, A.rows, multiprocessors, tuning);
  for (int i = 0; i < ItemList::slices; ++i)
    list.least[i] = max_order[i + 1] < A.rows ? int(max_order[i + 1]) + 1 : std::numeric_limits<int>::max();
  BlockWork work[ItemList::slices];
  LargeItems<T> large = large_items(multiprocessors, A, room);
  large.order = list.order, large.bounds = list.bounds;
  LaunchStep step[ItemList::slices + 2];
  step[steps++] = {reinterpret_cast<const void*>(list_items_kernel<T>),
                   {2 * unsigned(ceil_div(A.count, Chunk<T>::size)), 1},
                   32,
                   0,
                   false,
                   {&A, &list}};
  if (room.sets > 0) step[steps++] = persistent_list_step(multiprocessors, A, large, info);
  LaunchStep of_shape[shapes + 2] = {};  // by slice
  r = shapes + 1;
  const auto add = [&]<class Shape>(std::type_identity<Shape>) {
    --r;
    if (max_order[r] <= max_order[r + 1]) return;
    work[r] = {list.order, list.bounds + r, list.next + r};
    const unsigned grid = unsigned(min(A.count, index_t(multiprocessors) * Shape::blocks));
    const auto k = reinterpret_cast<const void*>(cholesky_block_kernel<T, typename Shape::Kernel>);
    of_shape[r] = {k,
                   {grid, 1},
                   Shape::threads,
                   Shape::bytes_of(max_order[r]),
                   granted(k),
                   {&A, &work[r], &info, &first, &resets}};
  };
  (add(std::type_identity<Shapes>{}), ...);
  for (r = 1; r <= shapes; ++r)
    if (of_shape[r].kernel) {
      step[steps] = of_shape[r];
      step[steps].overlaps &= steps > 1;  // the list must be complete
      ++steps;
    }
  with_mixed(A, [&](auto kernel, dim3 grid, std::size_t bytes) {
    const auto k = reinterpret_cast<const void*>(kernel);
    step[steps++] = {k, {grid.x, grid.y}, 32, bytes, granted(k) && steps > 1, {&A, &below, &info, &first, &resets}};
  });
  for (int i = 0; i < steps; ++i) enqueue(stream, step[i]);
}

template <class T>
const char* launch_cholesky(void* stream, int multiprocessors, Items<T> A, int* info, index_t first, bool resets,
                            const CholeskyTuning& tuning, const ListRoom<T>& room) {
  if (room.list) {
    launch_listed(stream, multiprocessors, A, info, tuning, room, typename BlockShapes<T>::All{});
    return "sorted";
  }
  if (room.sets > 0) {
    LargeItems<T> large = large_items(multiprocessors, A, room);
    LaunchStep step = persistent_list_step(multiprocessors, A, large, info);
    step.overlaps = false;
    enqueue(stream, step);
    return "persistent";
  }
  return launch_one(stream, A, info, first, resets, tuning);
}

}  // namespace trifactor::cuda

#define TRIFACTOR_INSTANTIATE_KERNELS(T)                                                                      \
  template trifactor::index_t trifactor::cuda::cholesky_list_size<T>(const Items<T>&, const CholeskyTuning&); \
  template const char* trifactor::cuda::launch_cholesky<T>(void*, int, Items<T>, int*, index_t, bool,         \
                                                           const CholeskyTuning&, const ListRoom<T>&);
