// Cholesky of many matrices, a ladder of bodies: several items to a warp, one to a warp with the whole factor in shared
// memory, one to a block from the left by block columns. Only the triangle is touched.
#pragma once

#include <cuda/batched/batched.hpp>
#include <cuda/batched/items.cuh>
#include <cuda/batched/ragged.cuh>
#include <cuda/engine/launch.cuh>
#include <cuda/batched/cholesky_left.cuh>
#include <cuda/batched/cholesky_warp.cuh>
#include <cuda/batched/cholesky_lanes.cuh>
#include <cuda/single/single.hpp>

#include <algorithm>

namespace trifactor::cuda {

/// The items of a block of one warp in turn, every gridDim.x-th. The last come first: those that were written last are
/// still in the cache.
class ItemTurn {
 public:
  __device__ explicit ItemTurn(index_t count) : end_(count) {}
  __device__ bool more() const { return at_ < end_; }
  __device__ index_t item() const { return end_ - 1 - at_; }
  /// All lanes come here when they are done with an item; they leave together.
  __device__ void next() {
    __syncwarp();
    at_ += gridDim.x;
  }

 private:
  index_t end_, at_ = blockIdx.x;
};

// ---- several items to a warp: a row to a lane ----

/// Factors one item for each `width` lanes of a warp, of order n, or 0 where there is none. Returns 0 or the failed
/// column + 1.
template <class T, int width, bool by_rows>
__device__ __forceinline__ int factor_side_by_side(const Tile<T>& a, int n, T* scratch) {
  const int failed = factor_small<false, T, width, by_rows, false>(a, n, true, scratch).failed;
  if (!__any_sync(~0u, failed < 0)) return failed;
  const auto again = factor_small_carefully<T, width, by_rows, false>(a, n, failed < 0, scratch, T(0));
  return failed < 0 ? again.failed : failed;
}

template <class T, int width, bool by_rows>
__global__ void __launch_bounds__(SmallShape<T, width, by_rows>::threads, SmallShape<T, width, by_rows>::blocks)
    cholesky_small_kernel(EqualItems<T> A, int* info, index_t first, bool resets) {
  using Shape = SmallShape<T, width, by_rows>;
  extern __shared__ __align__(16) unsigned char raw[];
  const int group = int(threadIdx.x / width);
  const index_t b = index_t(blockIdx.x) * Shape::items + group;
  const bool own = wanted_inside(A, b, info, resets);
  const Tile<T> a = item_if(own, by_rows, A, b);
  T* const scratch = reinterpret_cast<T*>(raw) + group * Shape::scratch;
  const int failed = factor_side_by_side<T, width, by_rows>(a, int(a.rows), scratch);
  if (b < A.count && threadIdx.x % width == 0) report(info, b, resets, first, own, failed);
}

// ---- an item to a warp, in tiles of 8 x 8 ----

template <class T, int most>
__global__ void __launch_bounds__(32, TilesShape<T, most>::blocks)
    cholesky_tiles_kernel(EqualItems<T> A, bool by_rows, int* info, index_t first, bool resets) {
  extern __shared__ __align__(128) unsigned char aligned[];
  T *const scratch = reinterpret_cast<T*>(aligned), *const store = scratch + TilesShape<T, most>::scratch;
  for (ItemTurn turn(A.count); turn.more();) {
    const index_t b = turn.item();
    const bool own = wanted_inside(A, b, info, resets);
    const int failed =
        own ? factor_tiles<most, false>(afresh(item_if(true, by_rows, A, b)), by_rows, store, scratch, {}) : 0;
    turn.next();  // everyone has read info, and shared memory is free again
    if (threadIdx.x == 0) report(info, b, resets, first, own, failed);
  }
}

// ---- items of different sizes up to 64, each in its own way ----

template <class T, int most>
struct MixedShape {
  static constexpr int small =
      max(most > 4 ? 0 : 2 * SmallShape<T, 16, true>::scratch, 4 * SmallShape<T, 8, true>::scratch);  // of a warp
  static constexpr int entries(int n) { return max(TilesShape<T, most>::entries(n), small); }
  // On a multiprocessor. Sizes up to 64 in single: 44.4 us with 18, 45.8 with 16.
  static constexpr int blocks = TilesShape<T, most>::blocks;
  // Turns of each chunk that come first. Sizes up to 32 in double: 21.4 us with 8, 21.6 with 16.
  static constexpr int early = most > 4 ? 16 : 8;
};

/// Which items of a chunk are one turn's: large ones have a turn each, by the number of their tiles, the largest first,
/// then the smallest by fours. In kernels for up to 32 rows, those of 9 to 16 go by twos, and they and the fours have
/// the last of the 32 turns: large items of all chunks come before them.
template <int most>
struct MixedTurn {
  static constexpr bool in_pairs = most == 4;
  unsigned lanes = 0;  // that have the items
  bool alone, paired;

  __device__ __forceinline__ MixedTurn(bool here, int n, int rank) {
    const unsigned below = (1u << threadIdx.x % 32) - 1;
    int turn = -1, taken = 0;  // whose the lane's item is; turns before
    const auto take = [&](bool own, int together) TF_INLINE_LAMBDA {
      const unsigned all = __ballot_sync(~0u, own);
      if (own) turn = taken + __popc(all & below) / together;
      taken += (__popc(all) + together - 1) / together;
      return rank < taken;
    };
    const bool pair = in_pairs && here && n > 8 && n <= 16, four = here && n <= 8;
#pragma unroll
    for (int tiles = most; tiles > (in_pairs ? 2 : 1); --tiles)
      alone = take(here && n > 8 * tiles - 8 && (tiles == most || n <= 8 * tiles), 1);
    if (in_pairs)
      taken =
          max(taken, 32 - (__popc(__ballot_sync(~0u, pair)) + 1) / 2 - (__popc(__ballot_sync(~0u, four)) + 3) / 4);
    paired = in_pairs && take(pair, 2);
    take(four, 4);
    lanes = __ballot_sync(~0u, turn == rank);
  }
};

/// Items of up to `width` rows that share a warp.
template <class T, int width, bool by_rows>
__device__ __forceinline__ void factor_together(const Chunk<T>& chunk, unsigned lanes, T* shared, int* info,
                                                index_t first, bool resets) {
  const int lane = int(threadIdx.x % 32), group = lane / width;
  unsigned rest = lanes;
#pragma unroll
  for (int before = 1; before < 32 / width; ++before)
    if (group >= before) rest &= rest - 1;
  const bool inside = rest != 0;
  const int from = __ffs(int(inside ? rest : lanes)) - 1;
  const Tile<T> a = chunk.item(from, by_rows);
  const bool own = chunk.wants(from, info, resets);
  const int failed = factor_side_by_side<T, width, by_rows>(a, inside && own ? int(a.rows) : 0,
                                                            shared + group * SmallShape<T, width, by_rows>::scratch);
  __syncwarp();  // everyone has read info
  if (inside && lane % width == 0) report(info, chunk.first + from, resets, first, own, failed);
}

/// Items of order up to `above`, which is 8 * most at most, of a ragged batch. A chunk is work for up to 32 turns of
/// one warp, see MixedTurn, grid (chunks, 32). The first `early` of each chunk, its largest items, come
/// first, chunk by chunk from the last one on as ItemTurn does it; then the next ones of all chunks, and so on: what is
/// left at the end is small and fills the gaps.
template <class T, int most>
__global__ void __launch_bounds__(32, MixedShape<T, most>::blocks)
    cholesky_mixed_kernel(const __grid_constant__ Items<T> A, int above, int* info, index_t first, bool resets) {
  extern __shared__ __align__(128) unsigned char aligned[];
  T* const shared = reinterpret_cast<T*>(aligned);
  const unsigned place = blockIdx.y * gridDim.x + blockIdx.x, each = MixedShape<T, most>::early;
  const bool early = blockIdx.y < each, by_rows = A.is_flipped;
  const Chunk<T> chunk(A, index_t(gridDim.x - 1 - (early ? place / each : blockIdx.x)));
  const MixedTurn<most> turn(chunk.inside && chunk.own_rows <= above, chunk.n,
                             int(early ? place % each : blockIdx.y));
  const auto together = [&]<int width>(std::integral_constant<int, width>) TF_INLINE_LAMBDA {
    if (by_rows)
      factor_together<T, width, true>(chunk, turn.lanes, shared, info, first, resets);
    else
      factor_together<T, width, false>(chunk, turn.lanes, shared, info, first, resets);
  };
  if (turn.lanes != 0 && turn.alone) {
    const int from = __ffs(int(turn.lanes)) - 1;
    T *const scratch = shared, *const store = scratch + TilesShape<T, most>::scratch;
    const Tile<T> a = chunk.item(from, by_rows);
    const bool own = chunk.wants(from, info, resets);
    const int failed = own ? factor_tiles<most, false>(afresh(a), by_rows, store, scratch, {}) : 0;
    __syncwarp();  // everyone has read info
    if (threadIdx.x == 0) report(info, chunk.first + from, resets, first, own, failed);
  } else if (turn.lanes != 0 && turn.paired) {
    if constexpr (MixedTurn<most>::in_pairs) together(std::integral_constant<int, 16>{});
  } else if (turn.lanes != 0) {
    together(std::integral_constant<int, 8>{});
  }
  if (blockIdx.x == 0 && blockIdx.y == 0) wait_for_launch_before();
}

// ---- from the left, a block column in registers ----

/// Work source: a ticketed slice of the size-sorted list, or, without a list, all items.
struct LeftWork {
  const int* order = nullptr;  // of ItemList; null: there is no list
  const int* bounds = nullptr;
  int* next = nullptr;  // these two from the rung on
};

template <class T, class Shape>
__global__ void __launch_bounds__(Shape::threads, Shape::blocks)
    cholesky_left_kernel(Items<T> A, LeftWork work, int* info, index_t first, bool resets) {
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
      const RaggedItem<T> item(A, b);
      own = item.possible, a = item.tile(A.is_flipped);
    } else {
      own = wanted(A, b, info, resets);
      if (own) a = A.item(b);
    }
    const int failed = own ? factor_by_block<T, Shape>(a) : 0, last = b;
    draw();
    if (threadIdx.x == 0) report(info, last, resets, first, own, failed);
  }
  if (listed && blockIdx.x == 0) wait_for_launch_before();
}

// ---- which body takes which items ----

/// The rungs of the ladder, from the largest items to the smallest. Items of one size, and a few ragged ones, take a
/// single rung; many ragged ones are spread over all.
enum class Rung { Blocked, Resident512, Resident256, Resident128, Resident64, Resident32, Small };

/// The largest order of which so much stays in a multiprocessor.
template <class T>
index_t resident_most(const CholeskyTuning& tuning) {
  return min(tuning.resident, index_t(LeftShapes<T>::most));
}
template <class T>
Rung rung_of(index_t n, const CholeskyTuning& tuning) {
  if (n <= min(tuning.small, index_t(16))) return Rung::Small;
  if (n > resident_most<T>(tuning)) return Rung::Blocked;
  return n <= 32    ? Rung::Resident32
         : n <= 64  ? Rung::Resident64
         : n <= 128 ? Rung::Resident128
         : n <= 256 ? Rung::Resident256
                    : Rung::Resident512;
}

/// Shapes that take the items of a list, from the largest on, a launch for each.
template <class... Shapes>
struct ShapeList {};
/// A shape for items that take less shared memory than its largest: more blocks fit on a multiprocessor.
template <class Shape, int most_>
struct UpTo : Shape {
  static constexpr int most = most_;
};
template <class Shape>
struct KernelOf {
  using type = Shape;
};
template <class Shape, int most>
struct KernelOf<UpTo<Shape, most>> {
  using type = Shape;
};
template <class T>
struct ListedShapes;
template <>
struct ListedShapes<double> {
  using S = LeftShapes<double>;
  using type = ShapeList<S::Beyond, S::Up512, S::Up256, S::Up224, S::Up192, S::Panels, UpTo<S::Panels, 128>,
                         UpTo<S::Panels, 112>>;
};
template <>
struct ListedShapes<float> {
  using S = LeftShapes<float>;
  using type = ShapeList<S::Beyond, S::Up512, S::Up384, S::Up256, S::Up128, S::Panels>;
};
template <class R>
struct ListedShapes<Complex<R>> {
  using S = LeftShapes<Complex<R>>;
  using P = typename S::Panels;
  using type = ShapeList<typename S::Beyond, P, UpTo<P, 128>, UpTo<P, 112>>;
};

/// Launches one rung for all items; ragged ones are too large for a warp, or several to one.
template <class T>
void launch_rung(void* stream, Rung rung, const Items<T>& A, int* info, index_t first, bool resets) {
  const auto go = [&](auto kernel, const auto& items, dim3 grid, int threads, SharedMemory shared, auto... more) {
    launch(stream, kernel, grid, unsigned(threads), shared, items, more..., info, first, resets);
  };
  const auto small = [&]<int width>(std::integral_constant<int, width>) {
    const auto with = [&]<bool by_rows>(std::bool_constant<by_rows>) {
      using Shape = SmallShape<T, width, by_rows>;
      go(cholesky_small_kernel<T, width, by_rows>, EqualItems<T>(A), grid_of_all(ceil_div(A.count, Shape::items)),
         Shape::threads, Shape::bytes);
    };
    A.is_flipped ? with(std::true_type{}) : with(std::false_type{});
  };
  const auto tiles = [&]<int most>(std::integral_constant<int, most>) {
    const std::size_t bytes = TilesShape<T, most>::entries(int(min(A.rows, index_t(8 * most)))) * sizeof(T);
    go(cholesky_tiles_kernel<T, most>, EqualItems<T>(A), grid_for(A.count), 32, tiles_memory<T, most>(bytes),
       A.is_flipped);
  };
  const auto left = [&]<class Shape>(Shape) {
    go(cholesky_left_kernel<T, Shape>, A, grid_for(A.count), Shape::threads, Shape::bytes_of(A.rows), LeftWork{});
  };
  using std::integral_constant;
  switch (rung) {
    case Rung::Small:
      if (A.rows <= 4)
        small(integral_constant<int, 4>{});
      else if (A.rows <= 8)
        small(integral_constant<int, 8>{});
      else
        small(integral_constant<int, 16>{});
      break;
    case Rung::Resident32:
      tiles(integral_constant<int, 4>{});
      break;
    case Rung::Resident64:
      tiles(integral_constant<int, 8>{});
      break;
    case Rung::Resident128:
    case Rung::Resident256:
      if (A.rows <= LeftShapes<T>::Panels::most)
        left(typename LeftShapes<T>::Panels{});
      else if constexpr (LeftShapes<T>::Panels::most < 128)
        rung == Rung::Resident128 ? left(typename LeftShapes<T>::Up128{}) : left(typename LeftShapes<T>::Up256{});
      else if constexpr (requires { typename LeftShapes<T>::Up192; })
        A.rows <= LeftShapes<T>::Up192::most   ? left(typename LeftShapes<T>::Up192{})
        : A.rows <= LeftShapes<T>::Up224::most ? left(typename LeftShapes<T>::Up224{})
                                               : left(typename LeftShapes<T>::Up256{});
      else
        left(typename LeftShapes<T>::Up256{});
      break;
    case Rung::Resident512:
      if (A.rows <= LeftShapes<T>::Up384::most)
        left(typename LeftShapes<T>::Up384{});
      else
        left(typename LeftShapes<T>::Up512{});
      break;
    case Rung::Blocked:
      left(typename LeftShapes<T>::Beyond{});
  }
}

/// Calls go(kernel, grid, bytes) for cholesky_mixed_kernel.
template <class T, class Go>
void with_mixed(const Items<T>& A, Go go) {
  const auto with = [&]<int most>(std::integral_constant<int, most>) {
    const std::size_t bytes = sizeof(T) * MixedShape<T, most>::entries(int(min(A.rows, index_t(8 * most))));
    go(cholesky_mixed_kernel<T, most>, dim3(unsigned(ceil_div(A.count, Chunk<T>::size)), Chunk<T>::size), bytes);
  };
  if (A.rows <= 32)
    with(std::integral_constant<int, 4>{});
  else
    with(std::integral_constant<int, 8>{});
}

template <class T>
index_t cholesky_list_size(const Items<T>& A, const CholeskyTuning& tuning) {
  const bool many = A.count * A.rows >= tuning.sorted && rung_of<T>(A.rows, tuning) < Rung::Resident64;
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

/// Ragged items, each on the rung of its own size: a launch that lists those of more than 64 rows, one for each rung
/// that there may be, from the largest on, and one for the items of up to 64 rows. Each begins where the one before
/// leaves room. All of the device works on the largest of them if they are few.
template <class T, class... Shapes>
void launch_listed(void* stream, int multiprocessors, Items<T> A, int* info, index_t first, bool resets,
                   const CholeskyTuning& tuning, const ListRoom<T>& room, ShapeList<Shapes...>) {
  static_assert(sizeof...(Shapes) + 1 <= ItemList::rungs);
  const index_t resident = min(min(A.rows, tuning.whole), resident_most<T>(tuning));
  int below = int(min(resident, index_t(64))), r = 0, steps = 0;
  index_t most[ItemList::rungs + 1] = {A.rows};  // of each rung: the largest order
  // Then a rung that only brings more blocks gains nothing, and the host pays for its launch.
  const bool all_at_once = A.count <= 6 * multiprocessors;
  const auto most_of = [&]<class Shape>(std::type_identity<Shape>) {
    if (all_at_once && !std::is_same_v<Shape, typename KernelOf<Shape>::type>) return index_t(below);
    return Shape::kept ? min(resident, index_t(Shape::most)) : A.rows;
  };
  ((most[++r] = most_of(std::type_identity<Shapes>{})), ...);
  while (r < ItemList::rungs) most[++r] = below;
  ItemList list(room.list, A.count, room.flags);
  std::fill_n(list.above, ItemList::levels, std::numeric_limits<int>::max());
  std::fill_n(list.most, ItemList::levels, -1);
  if (room.sets > 0) {
    int levels = 0;
    const auto add = [&](index_t above, index_t few) {
      if (few > 0) list.above[levels] = int(above), list.most[levels++] = int(few);
    };
    for (const index_t above : {160, 256, 384, 512, 640, 768})
      if (above < min(tuning.whole, A.rows)) add(above, whole_device_limit<T>(above + 1, tuning));
    // 40 of order 1025 to 1400 in double take 3.7 ms, with a block to each 7.6; 100 of them 8.9 and 9.2.
    if (tuning.whole < A.rows) add(ItemList::cut(tuning.whole), 3 * multiprocessors / 4);
  }
  for (int i = 0; i < ItemList::rungs; ++i)
    list.least[i] = most[i + 1] < A.rows ? int(most[i + 1]) + 1 : std::numeric_limits<int>::max();
  LeftWork work[ItemList::rungs];
  LargeItems<T> large = large_items(multiprocessors, A, room);
  large.order = list.order, large.bounds = list.bounds;
  LaunchStep step[ItemList::rungs + 2];
  step[steps++] = {reinterpret_cast<const void*>(list_items_kernel<T>),
                   {2 * unsigned(ceil_div(A.count, Chunk<T>::size)), 1},
                   32,
                   0,
                   false,
                   {&A, &list}};
  if (room.sets > 0) step[steps++] = persistent_list_step(multiprocessors, A, large, info);
  r = 1;
  const auto add = [&]<class Shape>(std::type_identity<Shape>) {
    if (most[r] > most[r + 1]) {
      work[r] = {list.order, list.bounds + r, list.next + r};
      const unsigned grid = unsigned(min(A.count, index_t(multiprocessors) * Shape::blocks));
      const auto k = reinterpret_cast<const void*>(cholesky_left_kernel<T, typename KernelOf<Shape>::type>);
      const bool overlaps = granted(k).overlaps && steps > 1;  // the list must be complete
      step[steps++] = {
          k, {grid, 1}, Shape::threads, Shape::bytes_of(most[r]), overlaps, {&A, &work[r], &info, &first, &resets}};
    }
    ++r;
  };
  (add(std::type_identity<Shapes>{}), ...);
  with_mixed(A, [&](auto kernel, dim3 grid, std::size_t bytes) {
    const auto k = reinterpret_cast<const void*>(kernel);
    step[steps++] = {
        k, {grid.x, grid.y}, 32, bytes, granted(k).overlaps && steps > 1, {&A, &below, &info, &first, &resets}};
  });
  for (int i = 0; i < steps; ++i) enqueue(stream, step[i]);
}

template <class T>
const char* launch_cholesky(void* stream, int multiprocessors, Items<T> A, int* info, index_t first, bool resets,
                            const CholeskyTuning& tuning, const ListRoom<T>& room) {
  static constexpr const char* names[] = {"block column", "resident 512", "resident 256", "resident 128",
                                          "resident 64",  "resident 32",  "small"};
  if (room.list) {
    launch_listed(stream, multiprocessors, A, info, first, resets, tuning, room, typename ListedShapes<T>::type{});
    return "sorted";
  }
  if (room.sets > 0) {
    LargeItems<T> large = large_items(multiprocessors, A, room);
    LaunchStep step = persistent_list_step(multiprocessors, A, large, info);
    step.overlaps = false;
    enqueue(stream, step);
    return "persistent";
  }
  const Rung rung = rung_of<T>(A.rows, tuning);
  if (A.ragged() && rung >= Rung::Resident64) {
    with_mixed(A, [&](auto kernel, dim3 grid, std::size_t bytes) {
      const SharedMemory shared = tiles_memory<T, 8>(bytes);
      launch(stream, kernel, grid, 32, shared, A, std::numeric_limits<int>::max(), info, first, resets);
    });
    return "mixed";
  }
  launch_rung(stream, rung, A, info, first, resets);
  return names[int(rung)];
}

}  // namespace trifactor::cuda

#define TRIFACTOR_INSTANTIATE_KERNELS(T)                                                                      \
  template trifactor::index_t trifactor::cuda::cholesky_list_size<T>(const Items<T>&, const CholeskyTuning&); \
  template const char* trifactor::cuda::launch_cholesky<T>(void*, int, Items<T>, int*, index_t, bool,         \
                                                           const CholeskyTuning&, const ListRoom<T>&);
