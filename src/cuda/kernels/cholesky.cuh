// Cholesky of many matrices, a ladder of bodies: several items to a warp, one to a warp or a few warps with the whole
// factor in shared memory, one to a block from the left with one block column in registers. Only the triangle is
// touched.
#pragma once

#include <cuda/kernels/async.cuh>
#include <cuda/kernels/launch.cuh>
#include <cuda/kernels/panels.cuh>
#include <cuda/kernels/resident.cuh>
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

/// What a kernel need not ask when all items are of one size: a third of the instructions of a small item.
template <bool ragged, class T>
__device__ __forceinline__ void assume_ragged(Items<T>& A, Selection& selection) {
  if constexpr (!ragged) A.item_rows = nullptr, selection.order = nullptr;
}

template <class T, int width, bool ragged, bool by_rows>
__global__ void __launch_bounds__(SmallShape<T, width>::threads, SmallShape<T, width>::blocks)
    cholesky_small_kernel(Items<T> A, Selection selection, int* info, index_t first, bool resets) {
  using Shape = SmallShape<T, width>;
  assume_ragged<ragged>(A, selection);
  extern __shared__ __align__(16) unsigned char raw[];
  const int group = int(threadIdx.x) / width;
  T* scratch = reinterpret_cast<T*>(raw) + group * Shape::scratch;
  T* turned = reinterpret_cast<T*>(raw) + Shape::items * Shape::scratch + group * Shape::turned;
  const index_t begin = selection.order ? selection.bounds[0] : 0,
                end = selection.order ? selection.bounds[1] : A.count;
  for (index_t b0 = begin + index_t(blockIdx.x) * Shape::items; b0 < end; b0 += index_t(gridDim.x) * Shape::items) {
    const bool inside = b0 + group < end;
    const index_t b = inside && selection.order ? index_t(selection.order[b0 + group]) : b0 + group;
    const bool own = inside && wanted(A, b, info, resets);
    Tile<T> a{nullptr, 0, 0, 1, 1};
    if (own) a = A.item(b);
    const int n = int(a.rows);
    int failed = factor_small<false, T, width, by_rows, false>(a, n, true, scratch, turned).failed;
    if (__any_sync(~0u, failed < 0)) {
      const auto again = factor_small_carefully<T, width, by_rows, false>(a, n, failed < 0, scratch, turned, T(0));
      failed = failed < 0 ? again.failed : failed;
    }
    if (inside && int(threadIdx.x) % width == 0) report(info, b, resets, first, own, failed);
    __syncwarp();  // scratch memory is free again
  }
}

// ---- an item to a warp, in tiles of 8 x 8 ----

template <class T, int most, bool ragged, bool by_rows>
__global__ void __launch_bounds__(32, TilesShape<T, most>::blocks)
    cholesky_tiles_kernel(Items<T> A, Selection selection, int* info, index_t first, bool resets) {
  assume_ragged<ragged>(A, selection);
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

// ---- the whole factor in shared memory, for several warps ----

template <class T, int strips, int warps>
__global__ void __launch_bounds__(32 * warps, Resident<T, strips, warps>::blocks)
    cholesky_resident_kernel(Items<T> A, Selection selection, int* info, index_t first, bool resets) {
  using Shape = Resident<T, strips, warps>;
  extern __shared__ __align__(16) unsigned char raw[];
  T* const shared = reinterpret_cast<T*>(raw);
  for (ItemTurn<warps> turn(selection, A.count); turn.more();) {
    const index_t b = turn.item();
    const bool own = wanted(A, b, info, resets);
    int failed = 0;
    if (own)
      failed =
          factor_resident<T, strips, warps>(afresh(A.item(b)), typename Shape::Kept{shared}, shared + Shape::Kept::size,
                                            shared + Shape::Kept::size + Shape::corner, 0);
    turn.next();  // everyone has read info, and shared memory is free again
    if (threadIdx.x == 0) report(info, b, resets, first, own, failed);
  }
}

// ---- from the left, a block column in registers ----

/// A block takes block columns of 32 and, within each, chunks of rows: `strips` tiles of 16 rows to a warp. A chunk
/// is updated with everything left of it, from global memory; one warp factors the diagonal tile; products with its
/// inverted diagonal blocks finish the rest.
template <class T, int warps_, int strips_>
struct Blocked {
  static constexpr int warps = warps_, threads = 32 * warps, strips = strips_, nb = 32;
  static constexpr int blocks = 16 / warps;                     // on a multiprocessor
  static constexpr int ahead = sizeof(T) < 8 ? 2 : 2 / strips;  // steps of 8 columns that are loaded ahead
  static constexpr int chunk = 16 * warps * strips;
  static constexpr int pitch = nb + column_pad<T>, slab = pitch * nb;  // nb x nb entries
  static constexpr int inverses = nb / 8 * Corner<T>::size;
  static constexpr int entries = 3 * slab + inverses + Resident<T, 2, 1>::entries;
};

/// Copies slabs of nb x nb entries of the rows of A from r0 on to shared memory, one after the other from the left,
/// rows permuted as right operands want them. Rows beyond the last are copies of it: what comes of them is not used.
template <class T, int nb, int pitch, int threads>
class SlabCopy {
 public:
  __device__ __forceinline__ SlabCopy(const Tile<T>& A, int r0) : step_(nb * A.col_stride), down_(A.row_stride == 1) {
#pragma unroll
    for (int t = 0; t < each; ++t) from_[t] = &A(min(index_t(r0 + row(t)), A.rows - 1), column(t));
  }
  /// Starts to copy the next slab.
  __device__ __forceinline__ void start(T* slab) {
#pragma unroll
    for (int t = 0; t < each; ++t) {
      const int r = row(t);
      copy_async<int(sizeof(T))>(shared_address(slab + column(t) * pitch + r / 8 * 8 + LanePlace::right_place(r % 8)),
                                 from_[t]);
      from_[t] += step_;
    }
    copy_commit();
  }

 private:
  static constexpr int each = nb * nb / threads;
  __device__ int row(int t) const { return down_ ? int(threadIdx.x) % nb : int(threadIdx.x) / nb + t * (threads / nb); }
  __device__ int column(int t) const {
    return down_ ? int(threadIdx.x) / nb + t * (threads / nb) : int(threadIdx.x) % nb;
  }
  const T* from_[each];
  index_t step_;
  bool down_;
};

/// Factors a tile of order up to 32 in shared memory by one warp; see factor_resident. Apart, so that its registers are
/// not held during the update.
template <class T, int pitch>
__device__ __noinline__ int factor_diagonal_tile(T* L11, int n, T* scratch, T* V) {
  using Shape = Resident<T, 2, 1>;
  return factor_resident<T, 2, 1>(Tile<T, int>{L11, n, n, 1, pitch}, typename Shape::Kept{scratch},
                                  scratch + Shape::Kept::size, V, Corner<T>::size);
}

template <class T, int warps, int strips>
__device__ __forceinline__ int factor_blocked(const Tile<T>& A, T* shared) {
  using Shape = Blocked<T, warps, strips>;
  constexpr int nb = Shape::nb, pitch = Shape::pitch, tiles = nb / 8;
  T* const L11 = shared + 2 * Shape::slab;  // (nb, nb) the diagonal tile
  T* const V = L11 + Shape::slab;           // the inverses of its diagonal blocks
  T* const scratch = V + Shape::inverses;
  __shared__ int failure;
  const int warp = int(threadIdx.x) / 32, n = int(A.rows);
  const LanePlace place;
  for (int k0 = 0; k0 < n; k0 += nb) {
    for (int r0 = k0; r0 < n; r0 += Shape::chunk) {
      TensorEntries<T> c[strips][tiles];
      const auto strip = [&](int s) { return r0 + 16 * (warp + Shape::warps * s); };
      SlabCopy<T, nb, pitch, Shape::threads> copy(A, k0);
      if (k0 > 0) copy.start(shared);
      // Where a lane's rows begin, and where they meet the block column. Rows beyond the last are copies of it when
      // they are read.
      const index_t half = 4 * A.col_stride;
      const T* from[strips][2];
      T* at[strips][2];
#pragma unroll
      for (int s = 0; s < strips; ++s)
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          from[s][h] = &A(min(strip(s) + place.g + 8 * h, n - 1), place.t);
          at[s][h] = const_cast<T*>(from[s][h]) + k0 * A.col_stride;
        }
#pragma unroll
      for (int s = 0; s < strips; ++s)
        if (k0 + nb <= min(strip(s), n)) {
#pragma unroll
          for (int h = 0; h < 2; ++h) {
            const T* p = at[s][h];
#pragma unroll
            for (int j = 0; j < 2 * tiles; ++j, p += half) c[s][j / 2].set(2 * h + j % 2, *p);
          }
        } else {
          const Tile<T> in = afresh(A);
#pragma unroll
          for (int j = 0; j < tiles; ++j) c[s][j] = load_tile<false, T>(in, n, strip(s), k0 + 8 * j, place);
        }
      LeftPart<T> left[Shape::ahead][strips];
      const auto read = [&](LeftPart<T>(&to)[strips]) TF_INLINE_LAMBDA {
#pragma unroll
        for (int s = 0; s < strips; ++s)
#pragma unroll
          for (int h = 0; h < 2; ++h) {
            to[s].v[0][h] = *from[s][h], to[s].v[1][h] = from[s][h][half];
            from[s][h] += 2 * half;
          }
      };
      if (k0 > 0)
#pragma unroll
        for (int g = 0; g < Shape::ahead; ++g) read(left[g]);
      for (int k = 0; k < k0; k += nb) {
        T* const slab = shared + k / nb % 2 * Shape::slab;
        if (k + nb < k0)
          copy.start(shared + (k / nb + 1) % 2 * Shape::slab);
        else
          copy_commit();
        copy_wait<1>();
        __syncthreads();  // this slab is complete
#pragma unroll
        for (int u = 0; u < nb; u += 8) {
          auto& now = left[u / 8 % Shape::ahead];
#pragma unroll
          for (int j = 0; j < tiles; ++j) {
            RightPart<T> right;
#pragma unroll
            for (int f = 0; f < 2; ++f) right.v[f] = slab[(u + 4 * f + place.t) * pitch + 8 * j + place.g];
#pragma unroll
            for (int s = 0; s < strips; ++s) subtract_product(c[s][j], now[s], right);
          }
          if (k + u + 8 * Shape::ahead < k0) read(now);
        }
        __syncthreads();  // everyone is done with this slab
      }
      const bool top = r0 == k0;
      if (top) {
        if (warp < 2)
#pragma unroll
          for (int j = 0; j < tiles; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e) L11[(8 * j + place.col(e)) * pitch + 16 * warp + place.row(e)] = c[0][j].get(e);
        __syncthreads();  // the diagonal tile is there
        if (warp == 0) {
          const int failed = factor_diagonal_tile<T, pitch>(L11, min(nb, n - k0), scratch, V);
          if (threadIdx.x == 0) failure = failed;
            // What this warp held of the tile is not wanted any more, and was not worth saving around the call.
#pragma unroll
          for (int j = 0; j < tiles; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e) c[0][j].set(e, T(0));
        }
        __syncthreads();  // it is factored
        const Tile<T> out = afresh(A);
        const bool down = out.row_stride == 1;
#pragma unroll
        for (int t = 0; t < nb * nb / Shape::threads; ++t) {
          const int u = int(threadIdx.x) + t * Shape::threads, r = down ? u % nb : u / nb, k = down ? u / nb : u % nb;
          if (k <= r && k0 + r < n) out(k0 + r, k0 + k) = L11[k * pitch + r];
        }
        if (failure > 0) return k0 + failure;
      }
#pragma unroll
      for (int s = 0; s < strips; ++s) {
        if (strip(s) < k0 + nb || strip(s) >= n) continue;
#pragma unroll
        for (int p = 0; p < tiles; ++p) {
          const TensorEntries<T> x = times_inverse(c[s][p], negative_inverse(V + p * Corner<T>::size, place));
#pragma unroll
          for (int h = 0; h < 2; ++h) {
            if (strip(s) + place.g + 8 * h < n) at[s][h][0] = x.get(2 * h), at[s][h][half] = x.get(2 * h + 1);
            at[s][h] += 2 * half;
          }
#pragma unroll
          for (int j = p + 1; j < tiles; ++j) {
            RightPart<T> right;
#pragma unroll
            for (int f = 0; f < 2; ++f) right.v[f] = L11[(8 * p + 4 * f + place.t) * pitch + 8 * j + place.right_row()];
            subtract_product(c[s][j], as_left(x), right);
          }
        }
      }
      __syncthreads();  // what was written is visible to all who read it from the left; the tile may be overwritten
    }
  }
  return 0;
}

template <class T, int warps, int strips>
__global__ void __launch_bounds__(32 * warps, Blocked<T, warps, strips>::blocks)
    cholesky_blocked_kernel(Items<T> A, Selection selection, int* info, index_t first, bool resets) {
  extern __shared__ __align__(16) unsigned char raw[];
  for (ItemTurn<warps> turn(selection, A.count); turn.more();) {
    const index_t b = turn.item();
    const bool own = wanted(A, b, info, resets);
    const int failed = own ? factor_blocked<T, warps, strips>(A.item(b), reinterpret_cast<T*>(raw)) : 0;
    turn.next();  // everyone has read info, and shared memory is free again
    if (threadIdx.x == 0) report(info, b, resets, first, own, failed);
  }
}

// ---- which body takes which items ----

/// The rungs of the ladder, from the largest items to the smallest. Items of one size, and ragged ones that are not
/// sorted, take a single rung; sorted ones are spread over all.
enum class Rung { Blocked, Resident128, Resident64, Resident32, Small };
inline constexpr int sorted_rungs = 4;  // sorted items of order up to 16 go with those up to 32

inline Rung rung_of(index_t n, const CholeskyTuning& tuning) {
  if (n <= min(tuning.small, index_t(16))) return Rung::Small;
  const index_t resident = n <= tuning.resident ? n : 129;
  return resident <= 32    ? Rung::Resident32
         : resident <= 64  ? Rung::Resident64
         : resident <= 128 ? Rung::Resident128
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
    const int most[] = {min(resident, 128), min(resident, 64), min(resident, 32)};
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
    using Shape = SmallShape<T, width>;
    const auto kernel = A.is_flipped ? A.ragged() ? cholesky_small_kernel<T, width, true, true>
                                                  : cholesky_small_kernel<T, width, false, true>
                        : A.ragged() ? cholesky_small_kernel<T, width, true, false>
                                     : cholesky_small_kernel<T, width, false, false>;
    go(kernel, Shape::threads, Shape::items, std::size_t(Shape::items) * (Shape::scratch + Shape::turned) * sizeof(T),
       8);
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
  const auto resident = [&]<int strips, int warps>(std::integral_constant<int, strips>,
                                                   std::integral_constant<int, warps>) {
    using Shape = Resident<T, strips, warps>;
    constexpr std::size_t bytes = Shape::entries * sizeof(T);
    go(cholesky_resident_kernel<T, strips, warps>, Shape::threads, 1, bytes,
       min(Shape::blocks, int(all_shared / (bytes + reserved))));
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
      resident(integral_constant<int, 2>{}, integral_constant<int, 4>{});
      break;
    case Rung::Blocked: {
      using Shape = Blocked<T, 4, 1>;
      go(cholesky_blocked_kernel<T, Shape::warps, Shape::strips>, Shape::threads, 1, Shape::entries * sizeof(T),
         Shape::blocks);
    }
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
  static constexpr const char* names[] = {"block column", "resident 128", "resident 64", "resident 32", "small"};
  const Rung rung = rung_of(A.rows, tuning);
  if (!list) {
    launch_rung(stream, multiprocessors, rung, A, {}, info, first, resets);
    return names[int(rung)];
  }
  int *const bounds = list + A.count, *const taken = bounds + sorted_rungs + 1;
  launch(stream, sort_items_kernel<T>, 1, sort_threads, 0, A, int(rung), int(min(tuning.resident, index_t(128))), list,
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
