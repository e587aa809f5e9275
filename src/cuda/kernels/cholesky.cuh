// Cholesky of many matrices, a ladder of bodies: several items to a warp, one to a warp with the whole factor in shared
// memory, one to a block from the left by block columns. Only the triangle is touched.
#pragma once

#include <cuda/kernels/launch.cuh>
#include <cuda/kernels/left.cuh>
#include <cuda/kernels/panels.cuh>
#include <cuda/kernels/rows.cuh>

namespace trifactor::cuda {

/// Which items a launch takes: all of a batch, or a stretch of a list of their numbers, the largest items first.
struct Selection {
  const int* order = nullptr;   // null: all
  const int* bounds = nullptr;  // order[bounds[0]] .. order[bounds[1] - 1]
  int* taken = nullptr;         // how many of them were handed out beyond one for each block
};
/// The items of one block in turn: every gridDim.x-th, or, of a list, the next that nobody has. Without a list the last
/// come first: those that were written last are still in the cache.
template <int warps>
class ItemTurn {
 public:
  __device__ ItemTurn(const Selection& selection, index_t count) : selection_(selection) {
    if (selection.order)
      first_ = selection.bounds[0], end_ = selection.bounds[1];
    else
      end_ = count;
    at_ = first_ + blockIdx.x;
  }
  __device__ bool more() const { return at_ < end_; }
  __device__ index_t item() const { return selection_.order ? index_t(selection_.order[at_]) : end_ - 1 - at_; }
  /// All threads of the block come here when they are done with an item; they leave together.
  __device__ void next() {
    if (!selection_.order) {
      team_sync();
      at_ += gridDim.x;
      return;
    }
    __shared__ int ticket[2];  // two, since a thread may be late to read the one before
    turn_ ^= 1;
    if (threadIdx.x == 0) ticket[turn_] = atomicAdd(selection_.taken, 1);
    team_sync();
    at_ = first_ + gridDim.x + ticket[turn_];
  }

 private:
  __device__ static void team_sync() {
    if constexpr (warps == 1)
      __syncwarp();
    else
      __syncthreads();
  }
  Selection selection_;
  index_t first_ = 0, end_, at_;
  int turn_ = 0;
};

// ---- several items to a warp: a row to a lane ----

/// What a kernel need not ask when all items are of one size, a third of the instructions of a small item, and which way
/// they lie.
template <bool ragged, bool by_rows, class T>
__device__ __forceinline__ void assume(Items<T>& A, Selection& selection) {
  A.is_flipped = by_rows;
  if constexpr (!ragged) A.item_rows = nullptr, selection.order = nullptr;
}

template <class T, int width, bool ragged, bool by_rows>
__global__ void __launch_bounds__(SmallShape<T, width, by_rows>::threads, SmallShape<T, width, by_rows>::blocks)
    cholesky_small_kernel(Items<T> A, Selection selection, int* info, index_t first, bool resets) {
  using Shape = SmallShape<T, width, by_rows>;
  assume<ragged, by_rows>(A, selection);
  extern __shared__ __align__(16) unsigned char raw[];
  const int group = int(threadIdx.x / width);
  T* scratch = reinterpret_cast<T*>(raw) + group * Shape::scratch;
  const index_t begin = selection.order ? selection.bounds[0] : 0,
                end = selection.order ? selection.bounds[1] : A.count;
  for (index_t b0 = begin + index_t(blockIdx.x) * Shape::items; b0 < end; b0 += index_t(gridDim.x) * Shape::items) {
    const bool inside = b0 + group < end;
    const index_t b = inside && selection.order ? index_t(selection.order[b0 + group]) : b0 + group;
    const bool own = inside && wanted(A, b, info, resets);
    Tile<T> a{nullptr, 0, 0, 1, 1};
    if (own) a = A.item(b);
    const int n = int(a.rows);
    int failed = factor_small<false, T, width, by_rows, false>(a, n, true, scratch).failed;
    if (__any_sync(~0u, failed < 0)) {
      const auto again = factor_small_carefully<T, width, by_rows, false>(a, n, failed < 0, scratch, T(0));
      failed = failed < 0 ? again.failed : failed;
    }
    if (inside && threadIdx.x % width == 0) report(info, b, resets, first, own, failed);
    __syncwarp();  // scratch memory is free again
  }
}

// ---- an item to a warp, in tiles of 8 x 8 ----

template <class T, int most, bool ragged, bool by_rows>
__global__ void __launch_bounds__(32, TilesShape<T, most>::blocks)
    cholesky_tiles_kernel(Items<T> A, Selection selection, int* info, index_t first, bool resets) {
  assume<ragged, by_rows>(A, selection);
  extern __shared__ __align__(128) unsigned char aligned[];
  T *const scratch = reinterpret_cast<T*>(aligned), *const store = scratch + TilesShape<T, most>::scratch;
  for (ItemTurn<1> turn(selection, A.count); turn.more();) {
    const index_t b = turn.item();
    const bool own = wanted(A, b, info, resets);
    const int failed = own ? factor_tiles<most, by_rows, false>(afresh(A.item(b)), store, scratch, {}) : 0;
    turn.next();  // everyone has read info, and shared memory is free again
    if (threadIdx.x == 0) report(info, b, resets, first, own, failed);
  }
}

// ---- from the left, a block column in registers ----

template <class T, class Shape>
__global__ void __launch_bounds__(Shape::threads, Shape::blocks)
    cholesky_left_kernel(Items<T> A, Selection selection, int* info, index_t first, bool resets) {
  for (ItemTurn<Shape::warps> turn(selection, A.count); turn.more();) {
    const index_t b = turn.item();
    const bool own = wanted(A, b, info, resets);
    const int failed = own ? factor_left<T, Shape>(A.item(b)) : 0;
    turn.next();  // everyone has read info, and shared memory is free again
    if (threadIdx.x == 0) report(info, b, resets, first, own, failed);
  }
}

// ---- which body takes which items ----

/// The rungs of the ladder, from the largest items to the smallest. Items of one size, and ragged ones that are not
/// sorted, take a single rung; sorted ones are spread over all.
enum class Rung { Blocked, Resident256, Resident128, Resident64, Resident32, Small };
inline constexpr int sorted_rungs = 5;  // sorted items of order up to 16 go with those up to 32

inline Rung rung_of(index_t n, const CholeskyTuning& tuning) {
  if (n <= min(tuning.small, index_t(16))) return Rung::Small;
  const index_t resident = n <= tuning.resident ? n : 257;
  return resident <= 32    ? Rung::Resident32
         : resident <= 64  ? Rung::Resident64
         : resident <= 128 ? Rung::Resident128
         : resident <= 256 ? Rung::Resident256
                           : Rung::Blocked;
}

/// Sorts item numbers by size, the largest first, into `order`; bounds[r], bounds[r + 1] is the stretch of rung r of
/// the sorted ones. Sizes are told apart by eights up to 512, and by hundreds and less beyond. One block.
inline constexpr int sort_threads = 1024, sort_keys = 128;
__device__ inline int sort_key(int n) {
  const int key = n <= 512 ? (n + 7) / 8 : 64 + (n - 512 + 127) / 128;
  return sort_keys - 1 - max(0, min(key, sort_keys - 1));
}
template <class T>
__global__ void __launch_bounds__(sort_threads)
    sort_items_kernel(Items<T> A, int first_rung, int resident, int* order, int* bounds, int* taken) {
  __shared__ int places[sort_keys];
  const int t = int(threadIdx.x), count = int(A.count);
  if (t < sort_keys) places[t] = 0;
  if (t < sorted_rungs) taken[t] = 0;
  __syncthreads();  // nothing is counted yet
  for (int b = t; b < count; b += sort_threads) atomicAdd(&places[sort_key(A.item_rows[b])], 1);
  __syncthreads();  // all are counted
  if (t < 32) {     // exclusive sums, four keys a lane
    int own[sort_keys / 32], sum = 0;
    for (int i = 0; i < sort_keys / 32; ++i) own[i] = places[t * (sort_keys / 32) + i], sum += own[i];
    int before = sum;
    for (int step = 1; step < 32; step *= 2) {
      const int other = __shfl_up_sync(~0u, before, unsigned(step));
      if (t >= step) before += other;
    }
    before -= sum;
    for (int i = 0; i < sort_keys / 32; ++i) places[t * (sort_keys / 32) + i] = before, before += own[i];
  }
  __syncthreads();  // places are where each size begins
  if (t <= sorted_rungs) {
    // the largest orders of the rungs; those that are not used are empty
    const int most[] = {min(resident, 256), min(resident, 128), min(resident, 64), min(resident, 32)};
    // impossible sizes may look too large for all rungs: the first that is launched takes them
    bounds[t] = t <= first_rung ? 0 : t == sorted_rungs ? count : places[sort_key(most[t - 1] / 8 * 8)];
  }
  __syncthreads();  // bounds are read before the places move on
  for (int b = t; b < count; b += sort_threads) order[atomicAdd(&places[sort_key(A.item_rows[b])], 1)] = b;
}

/// Launches one rung. With a list, as many blocks as run at once.
template <class T>
void launch_rung(void* stream, int multiprocessors, Rung rung, const Items<T>& A, const Selection& selection, int* info,
                 index_t first, bool resets) {
  const auto go = [&](auto kernel, int threads, int items, std::size_t bytes, int blocks_at_once) {
    const index_t blocks = ceil_div(A.count, items);
    launch(stream, kernel, grid_for(selection.order ? min(blocks, index_t(multiprocessors) * blocks_at_once) : blocks),
           unsigned(threads), bytes, A, selection, info, first, resets);
  };
  const auto small = [&]<int width>(std::integral_constant<int, width>) {
    using Shape = SmallShape<T, width, false>;
    const auto kernel = A.is_flipped ? A.ragged() ? cholesky_small_kernel<T, width, true, true>
                                                  : cholesky_small_kernel<T, width, false, true>
                        : A.ragged() ? cholesky_small_kernel<T, width, true, false>
                                     : cholesky_small_kernel<T, width, false, false>;
    go(kernel, Shape::threads, Shape::items, A.is_flipped ? SmallShape<T, width, true>::bytes : Shape::bytes, 8);
  };
  constexpr std::size_t all_shared = 227u << 10, reserved = 1u << 10;  // of a multiprocessor, and by each block
  const auto tiles = [&]<int most>(std::integral_constant<int, most>) {
    using Shape = TilesShape<T, most>;
    const std::size_t bytes = Shape::entries(int(min(A.rows, index_t(8 * most)))) * sizeof(T);
    const auto kernel = A.is_flipped ? A.ragged() ? cholesky_tiles_kernel<T, most, true, true>
                                                  : cholesky_tiles_kernel<T, most, false, true>
                        : A.ragged() ? cholesky_tiles_kernel<T, most, true, false>
                                     : cholesky_tiles_kernel<T, most, false, false>;
    go(kernel, 32, 1, bytes, min(Shape::blocks, int(all_shared / (bytes + reserved))));
  };
  const auto left = [&]<class Shape>(Shape) {
    go(cholesky_left_kernel<T, Shape>, Shape::threads, 1, Shape::bytes, Shape::blocks);
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
      left(typename LeftShapes<T>::Up128{});
      break;
    case Rung::Resident256:
      left(typename LeftShapes<T>::Up256{});
      break;
    case Rung::Blocked:
      left(typename LeftShapes<T>::Beyond{});
  }
}

template <class T>
index_t cholesky_list_size(const Items<T>& A, const CholeskyTuning& tuning) {
  const bool sorted = A.ragged() && A.count >= tuning.sorted && A.count <= std::numeric_limits<int>::max() &&
                      rung_of(A.rows, tuning) < Rung::Resident32;
  return sorted ? A.count + 2 * sorted_rungs + 1 : 0;
}

template <class T>
const char* launch_cholesky(void* stream, int multiprocessors, Items<T> A, int* info, index_t first, bool resets,
                            const CholeskyTuning& tuning, int* list) {
  static constexpr const char* names[] = {"block column", "resident 256", "resident 128",
                                          "resident 64",  "resident 32",  "small"};
  const Rung rung = rung_of(A.rows, tuning);
  if (!list) {
    launch_rung(stream, multiprocessors, rung, A, {}, info, first, resets);
    return names[int(rung)];
  }
  int *const bounds = list + A.count, *const taken = bounds + sorted_rungs + 1;
  launch(stream, sort_items_kernel<T>, 1, sort_threads, 0, A, int(rung), int(min(tuning.resident, index_t(256))), list,
         bounds, taken);
  for (int r = int(rung); r < sorted_rungs; ++r)
    launch_rung(stream, multiprocessors, Rung(r), A, {list, bounds + r, taken + r}, info, first, resets);
  return "sorted";
}

}  // namespace trifactor::cuda

#define TRIFACTOR_INSTANTIATE_KERNELS(T)                                                                      \
  template trifactor::index_t trifactor::cuda::cholesky_list_size<T>(const Items<T>&, const CholeskyTuning&); \
  template const char* trifactor::cuda::launch_cholesky<T>(void*, int, Items<T>, int*, index_t, bool,         \
                                                           const CholeskyTuning&, int*);
