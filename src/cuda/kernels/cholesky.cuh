// Cholesky of many matrices, a ladder of bodies: several items to a warp, one to a warp with the whole factor in shared
// memory, one to a block from the left by block columns. Only the triangle is touched.
#pragma once

#include <cuda/kernels/chunk.cuh>
#include <cuda/kernels/launch.cuh>
#include <cuda/kernels/left.cuh>
#include <cuda/kernels/panels.cuh>
#include <cuda/kernels/rows.cuh>

namespace trifactor::cuda {

/// The items of a block of one warp in turn, every gridDim.x-th. The last come first: those that were written last are still in
/// the cache.
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

/// A stretch of a list of item numbers, the largest items first.
struct Stretch {
  const int* order = nullptr;   // null: there is no list, all items are taken
  const int* bounds = nullptr;  // order[bounds[0]] .. order[bounds[1] - 1]
  int* taken = nullptr;         // how many of them were handed out beyond one for each block
};
/// As ItemTurn, or the items of a stretch: whoever is done takes the next that nobody has.
class StretchTurn {
 public:
  __device__ StretchTurn(const Stretch& stretch, index_t count) : stretch_(stretch) {
    if (stretch.order)
      first_ = stretch.bounds[0], end_ = stretch.bounds[1];
    else
      end_ = count;
    at_ = first_ + blockIdx.x;
  }
  __device__ bool more() const { return at_ < end_; }
  __device__ index_t item() const { return stretch_.order ? index_t(stretch_.order[at_]) : end_ - 1 - at_; }
  /// All threads of the block come here when they are done with an item; they leave together.
  __device__ void next() {
    if (!stretch_.order) {
      __syncthreads();
      at_ += gridDim.x;
      return;
    }
    __shared__ int ticket[2];  // two, since a thread may be late to read the one before
    turn_ ^= 1;
    if (threadIdx.x == 0) ticket[turn_] = atomicAdd(stretch_.taken, 1);
    __syncthreads();
    at_ = first_ + gridDim.x + ticket[turn_];
  }

 private:
  Stretch stretch_;
  index_t first_ = 0, end_, at_;
  int turn_ = 0;
};

// ---- several items to a warp: a row to a lane ----

/// What a kernel need not ask when all items are of one size, a third of the instructions of a small item, and which
/// way they lie.
template <bool ragged, bool by_rows, class T>
__device__ __forceinline__ void assume(Items<T>& A) {
  A.is_flipped = by_rows;
  if constexpr (!ragged) A.item_rows = nullptr;
}

/// Factors one item for each `width` lanes of a warp, of order n, or 0 where there is none. Returns 0 or the failed
/// column + 1.
template <class T, int width, bool by_rows>
__device__ __forceinline__ int factor_side_by_side(const Tile<T>& a, int n, T* scratch) {
  const int failed = factor_small<false, T, width, by_rows, false>(a, n, true, scratch).failed;
  if (!__any_sync(~0u, failed < 0)) return failed;
  const auto again = factor_small_carefully<T, width, by_rows, false>(a, n, failed < 0, scratch, T(0));
  return failed < 0 ? again.failed : failed;
}

template <class T, int width, bool ragged, bool by_rows>
__global__ void __launch_bounds__(SmallShape<T, width, by_rows>::threads, SmallShape<T, width, by_rows>::blocks)
    cholesky_small_kernel(Items<T> A, int* info, index_t first, bool resets) {
  using Shape = SmallShape<T, width, by_rows>;
  assume<ragged, by_rows>(A);
  extern __shared__ __align__(16) unsigned char raw[];
  const int group = int(threadIdx.x / width);
  T* scratch = reinterpret_cast<T*>(raw) + group * Shape::scratch;
  for (index_t b0 = index_t(blockIdx.x) * Shape::items; b0 < A.count; b0 += index_t(gridDim.x) * Shape::items) {
    const index_t b = b0 + group;
    const bool inside = b < A.count, own = inside && wanted(A, b, info, resets);
    Tile<T> a{nullptr, 0, 0, 1, 1};
    if (own) a = A.item(b);
    const int failed = factor_side_by_side<T, width, by_rows>(a, int(a.rows), scratch);
    if (inside && threadIdx.x % width == 0) report(info, b, resets, first, own, failed);
    __syncwarp();  // scratch memory is free again
  }
}

// ---- an item to a warp, in tiles of 8 x 8 ----

template <class T, int most, bool ragged, bool by_rows>
__global__ void __launch_bounds__(32, TilesShape<T, most>::blocks)
    cholesky_tiles_kernel(Items<T> A, int* info, index_t first, bool resets) {
  assume<ragged, by_rows>(A);
  extern __shared__ __align__(128) unsigned char aligned[];
  T *const scratch = reinterpret_cast<T*>(aligned), *const store = scratch + TilesShape<T, most>::scratch;
  for (ItemTurn turn(A.count); turn.more();) {
    const index_t b = turn.item();
    const bool own = wanted(A, b, info, resets);
    const int failed = own ? factor_tiles<most, by_rows, false>(afresh(A.item(b)), store, scratch, {}) : 0;
    turn.next();  // everyone has read info, and shared memory is free again
    if (threadIdx.x == 0) report(info, b, resets, first, own, failed);
  }
}

// ---- items of different sizes up to 64, each in its own way ----

template <class T, int most, bool by_rows>
struct MixedShape {
  static constexpr int small =
      max(2 * SmallShape<T, 16, by_rows>::scratch, 4 * SmallShape<T, 8, by_rows>::scratch);  // of a warp
  static constexpr int entries(int n) { return max(TilesShape<T, most>::entries(n), small); }
  // On a multiprocessor. Sizes up to 64 in double: 74.6 us with 12, 76.3 with 8; up to 32: 22.4 with 20, 23.5 with 22.
  static constexpr int blocks = std::is_same_v<T, double> && most > 4 ? 12 : TilesShape<T, most>::blocks;
};

/// Items that share a warp, of a chunk: those of turn u of the ones in `mask`.
template <class T, int width, bool by_rows>
__device__ __forceinline__ void factor_together(const Chunk<T>& chunk, unsigned mask, int u, T* shared, int* info,
                                                index_t first, bool resets) {
  const int lane = int(threadIdx.x % 32), group = lane / width, k = u * (32 / width) + group;
  const bool inside = k < __popc(mask);
  const int from = set_bit(mask, inside ? k : 0);
  const Tile<T> a = chunk.template item<by_rows>(from);
  const bool own = chunk.wants(from, info, resets);
  const int failed = factor_side_by_side<T, width, by_rows>(a, inside && own ? int(a.rows) : 0,
                                                            shared + group * SmallShape<T, width, by_rows>::scratch);
  __syncwarp();  // everyone has read info
  if (inside && lane % width == 0) report(info, chunk.first + from, resets, first, own, failed);
}

/// Items of order up to `above`, which is 8 * most at most, of a ragged batch. A chunk is work for up to 32 blocks of
/// one warp, grid (chunks, 32), or 17 where no item has more than 16 rows: first items of more than 16 rows, the
/// largest first, then pairs of more than 8, then fours. The larger half of each chunk comes first, chunk by chunk from
/// the last one on as ItemTurn does it; what is left is small and fills the gaps at the end.
template <class T, int most, bool by_rows>
__global__ void __launch_bounds__(32, MixedShape<T, most, by_rows>::blocks)
    cholesky_mixed_kernel(Items<T> A, int above, int* info, index_t first, bool resets) {
  extern __shared__ __align__(128) unsigned char aligned[];
  T* const shared = reinterpret_cast<T*>(aligned);
  constexpr unsigned half = Chunk<T>::size / 2;
  const unsigned place = blockIdx.y * gridDim.x + blockIdx.x;
  const bool early = blockIdx.y < half;
  const int rank = int(early ? place % half : blockIdx.y);
  const Chunk<T> chunk(A, gridDim.x - 1 - (early ? place / half : blockIdx.x));
  const bool here = chunk.inside && chunk.own_rows <= above;
  const int n = chunk.n;
  const unsigned alone = __ballot_sync(~0u, here && n > 16), pairs = __ballot_sync(~0u, here && n > 8 && n <= 16),
                 fours = __ballot_sync(~0u, here && n <= 8);
  const int end = __popc(alone), end_of_pairs = end + ceil_div(__popc(pairs), 2),
            end_of_fours = end_of_pairs + ceil_div(__popc(fours), 4);
  if (rank < end) {
    const int from = chunk.template largest<(most > 4 ? 6 : 5), 3>(alone, rank);
    T *const scratch = shared, *const store = scratch + TilesShape<T, most>::scratch;
    const Tile<T> a = chunk.template item<by_rows>(from);
    const bool own = chunk.wants(from, info, resets);
    const int failed = own ? factor_tiles<most, by_rows, false>(afresh(a), store, scratch, {}) : 0;
    __syncwarp();  // everyone has read info
    if (threadIdx.x == 0) report(info, chunk.first + from, resets, first, own, failed);
  } else if (rank < end_of_pairs) {
    factor_together<T, 16, by_rows>(chunk, pairs, rank - end, shared, info, first, resets);
  } else if (rank < end_of_fours) {
    factor_together<T, 8, by_rows>(chunk, fours, rank - end_of_pairs, shared, info, first, resets);
  }
  if (place == 0) end_after_last();
}

// ---- from the left, a block column in registers ----

template <class T, class Shape>
__global__ void __launch_bounds__(Shape::threads, Shape::blocks)
    cholesky_left_kernel(Items<T> A, Stretch stretch, int* info, index_t first, bool resets) {
  if (stretch.order) let_next_start();
  for (StretchTurn turn(stretch, A.count); turn.more();) {
    const index_t b = turn.item();
    const bool own = wanted(A, b, info, resets);
    const int failed = own ? factor_left<T, Shape>(A.item(b)) : 0;
    turn.next();  // everyone has read info, and shared memory is free again
    if (threadIdx.x == 0) report(info, b, resets, first, own, failed);
  }
  if (stretch.order && blockIdx.x == 0) end_after_last();
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

/// Lists the numbers of items with at least `least` rows by size, the largest first, in `order`; bounds[r], bounds[r +
/// 1] is the stretch of rung r. Sizes are told apart by eights up to 512, and by 128 and less beyond. One block.
inline constexpr int sort_threads = 1024, sort_keys = 128, sorted_rungs = int(Rung::Resident64);
__device__ inline int sort_key(int n) {
  const int key = n <= 512 ? (n + 7) / 8 : 64 + (n - 512 + 127) / 128;
  return sort_keys - 1 - max(0, min(key, sort_keys - 1));
}
template <class T>
__global__ void __launch_bounds__(sort_threads)
    sort_items_kernel(Items<T> A, int least, int first_rung, int resident, int* order, int* bounds, int* taken) {
  __shared__ int places[sort_keys + 1];
  const int t = int(threadIdx.x), count = int(A.count);
  if (t <= sort_keys) places[t] = 0;
  if (t < sorted_rungs) taken[t] = 0;
  __syncthreads();  // nothing is counted yet
  for (int b = t; b < count; b += sort_threads)
    if (const int n = A.item_rows[b]; n >= least) atomicAdd(&places[sort_key(n)], 1);
  __syncthreads();  // all are counted
  if (t < 32) {     // exclusive sums, four keys a lane
    int own[sort_keys / 32], sum = 0;
    for (int i = 0; i < sort_keys / 32; ++i) own[i] = places[t * (sort_keys / 32) + i], sum += own[i];
    int before = sum;
    for (int step = 1; step < 32; step *= 2) {
      const int other = __shfl_up_sync(~0u, before, unsigned(step));
      if (t >= step) before += other;
    }
    if (t == 31) places[sort_keys] = before;  // all that are listed
    before -= sum;
    for (int i = 0; i < sort_keys / 32; ++i) places[t * (sort_keys / 32) + i] = before, before += own[i];
  }
  __syncthreads();  // places are where each size begins
  if (t <= sorted_rungs) {
    // the largest orders of the second rung and those after it
    const int most[] = {resident, min(resident, 256), min(resident, 128)};
    // impossible sizes may look too large for all rungs: the first that is launched takes them
    bounds[t] = t <= first_rung ? 0 : places[t == sorted_rungs ? sort_keys : sort_key(most[t - 1] / 8 * 8)];
  }
  __syncthreads();  // bounds are read before the places move on
  for (int b = t; b < count; b += sort_threads)
    if (const int n = A.item_rows[b]; n >= least) order[atomicAdd(&places[sort_key(n)], 1)] = b;
}

/// Launches one rung for all items.
template <class T>
void launch_rung(void* stream, Rung rung, const Items<T>& A, int* info, index_t first, bool resets) {
  const auto go = [&](auto kernel, int threads, int items, std::size_t bytes, auto... more) {
    launch(stream, kernel, grid_for(ceil_div(A.count, items)), unsigned(threads), bytes, A, more..., info, first,
           resets);
  };
  const auto small = [&]<int width>(std::integral_constant<int, width>) {
    using Shape = SmallShape<T, width, false>;
    const auto kernel = A.is_flipped ? A.ragged() ? cholesky_small_kernel<T, width, true, true>
                                                  : cholesky_small_kernel<T, width, false, true>
                        : A.ragged() ? cholesky_small_kernel<T, width, true, false>
                                     : cholesky_small_kernel<T, width, false, false>;
    go(kernel, Shape::threads, Shape::items, A.is_flipped ? SmallShape<T, width, true>::bytes : Shape::bytes);
  };
  const auto tiles = [&]<int most>(std::integral_constant<int, most>) {
    const std::size_t bytes = TilesShape<T, most>::entries(int(min(A.rows, index_t(8 * most)))) * sizeof(T);
    const auto kernel = A.is_flipped ? A.ragged() ? cholesky_tiles_kernel<T, most, true, true>
                                                  : cholesky_tiles_kernel<T, most, false, true>
                        : A.ragged() ? cholesky_tiles_kernel<T, most, true, false>
                                     : cholesky_tiles_kernel<T, most, false, false>;
    go(kernel, 32, 1, bytes);
  };
  const auto left = [&]<class Shape>(Shape) {
    go(cholesky_left_kernel<T, Shape>, Shape::threads, 1, Shape::bytes, Stretch{});
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

/// Launches cholesky_mixed_kernel for items of up to `above` rows. `overlaps`: it may begin before the launch before
/// ends.
template <class T>
void launch_mixed(void* stream, const Items<T>& A, int above, bool overlaps, int* info, index_t first, bool resets) {
  const auto go = [&]<int most>(std::integral_constant<int, most>) {
    const auto kernel = A.is_flipped ? cholesky_mixed_kernel<T, most, true> : cholesky_mixed_kernel<T, most, false>;
    // Pairs at least, or not. One more than half: 31 items in pairs and one beside them are 17 turns.
    const unsigned blocks = A.rows <= 16 ? Chunk<T>::size / 2 + 1 : Chunk<T>::size;
    const dim3 grid(unsigned(ceil_div(A.count, Chunk<T>::size)), blocks);
    const int n = int(min(A.rows, index_t(8 * most)));
    const std::size_t bytes =
        sizeof(T) * (A.is_flipped ? MixedShape<T, most, true>::entries(n) : MixedShape<T, most, false>::entries(n));
    if (overlaps)
      launch_after(stream, kernel, grid, 32, bytes, A, above, info, first, resets);
    else
      launch(stream, kernel, grid, 32, bytes, A, above, info, first, resets);
  };
  if (A.rows <= 32)
    go(std::integral_constant<int, 4>{});
  else
    go(std::integral_constant<int, 8>{});
}

template <class T>
index_t cholesky_list_size(const Items<T>& A, const CholeskyTuning& tuning) {
  const bool sorted = A.ragged() && A.count <= std::numeric_limits<int>::max() && A.count * A.rows >= tuning.sorted &&
                      rung_of<T>(A.rows, tuning) < Rung::Resident64;
  return sorted ? A.count + 2 * sorted_rungs + 1 : 0;
}

/// Ragged items, each on the rung of its own size: those above 64 are listed first; then comes a launch for each rung,
/// from the largest on, and one for all below. Each of these begins where the one before leaves room. 2,000 items of up
/// to 512 rows in double take 1.69 ms, 1.81 without Resident512.
template <class T>
void launch_sorted(void* stream, int multiprocessors, const Items<T>& A, int* info, index_t first, bool resets,
                   const CholeskyTuning& tuning, int* list) {
  const int first_rung = int(rung_of<T>(A.rows, tuning)), below = int(min(tuning.resident, index_t(64)));
  const index_t resident = resident_most<T>(tuning);
  int *const bounds = list + A.count, *const taken = bounds + sorted_rungs + 1;
  launch(stream, sort_items_kernel<T>, 1, sort_threads, 0, A, below + 1, first_rung, int(resident), list, bounds,
         taken);
  const auto left = [&]<class Shape>(Shape, Rung rung) {
    const int r = int(rung);
    if (r < first_rung) return;
    const auto kernel = cholesky_left_kernel<T, Shape>;
    const unsigned grid = unsigned(min(A.count, index_t(multiprocessors) * Shape::blocks));
    const Stretch stretch{list, bounds + r, taken + r};
    if (r == first_rung)  // the list must be complete
      launch(stream, kernel, grid, Shape::threads, Shape::bytes, A, stretch, info, first, resets);
    else
      launch_after(stream, kernel, grid, Shape::threads, Shape::bytes, A, stretch, info, first, resets);
  };
  left(typename LeftShapes<T>::Beyond{}, Rung::Blocked);
  if (resident > 256) left(typename LeftShapes<T>::Up512{}, Rung::Resident512);
  left(typename LeftShapes<T>::Up256{}, Rung::Resident256);
  left(typename LeftShapes<T>::Up128{}, Rung::Resident128);
  launch_mixed(stream, A, below, true, info, first, resets);
}

template <class T>
const char* launch_cholesky(void* stream, int multiprocessors, Items<T> A, int* info, index_t first, bool resets,
                            const CholeskyTuning& tuning, int* list) {
  static constexpr const char* names[] = {"block column", "resident 512", "resident 256", "resident 128",
                                          "resident 64",  "resident 32",  "small"};
  if (list) {
    launch_sorted(stream, multiprocessors, A, info, first, resets, tuning, list);
    return "sorted";
  }
  const Rung rung = rung_of<T>(A.rows, tuning);
  if (A.ragged() && rung >= Rung::Resident64 && A.rows > 8 && tuning.small >= 16) {
    launch_mixed(stream, A, std::numeric_limits<int>::max(), false, info, first, resets);
    return "mixed";
  }
  launch_rung(stream, rung, A, info, first, resets);
  return names[int(rung)];
}

}  // namespace trifactor::cuda

#define TRIFACTOR_INSTANTIATE_KERNELS(T)                                                                      \
  template trifactor::index_t trifactor::cuda::cholesky_list_size<T>(const Items<T>&, const CholeskyTuning&); \
  template const char* trifactor::cuda::launch_cholesky<T>(void*, int, Items<T>, int*, index_t, bool,         \
                                                           const CholeskyTuning&, int*);
