// Cholesky of a list of large matrices in one launch: the persistent grid of cholesky_grid.cuh, in tiles.
#pragma once

#include <cuda/batched/items.cuh>
#include <cuda/engine/launch.cuh>
#include <cuda/single/cholesky_chain.cuh>
#include <cuda/single/cholesky_tile.cuh>
#include <cuda/single/single.hpp>

namespace trifactor::cuda {

using tile::GroupOrder;

/// What blocks know of an item of a list.
template <class T>
struct LargeItem {
  T* data;
  index_t ld;
  int number, n;
  bool possible;
  __device__ TileOrder order() const { return TileOrder((n + GridShape<T>::edge - 1) / GridShape<T>::edge); }
};

template <class T, bool column_major>
__device__ __forceinline__ Grid<T, column_major> grid_of(const LargeItem<T>& item, int* flags, T* entries, int* info) {
  using G = Grid<T, column_major>;
  return {.A = item.data,
          .stride = item.ld,
          .n = item.n,
          .aligned = lines_aligned(item.data, item.ld),
          .resets = true,
          .messages = entries,
          .parts = entries + G::messages_size,
          .flags = grid_flags(flags, item.order().tiles),
          .info = info + item.number,
          .first = 0,
          .marks = nullptr,
          .band = 1,
          .uses_tma = false,
          .map = {}};
}

/// Decides how many items are worked on alike: a chain for each, and a block for their pieces; so one, if all blocks
/// that start would become chains. By one thread of the block with the first ticket.
__device__ inline void decide_together(const int* tickets, int* decided, int max_together) {
  constexpr int looks = 200;  // some 100 us; blocks of a launch start within two
  int look = 0;
  while (max_together > 1 && load_acquire(tickets) <= max_together && look < looks) __nanosleep(20), ++look;
  store_release(decided, look < looks ? max_together : 1);
}

/// The items of a list in tiles, some at a time: their chains, then column after column of each of them, so that blocks
/// have work in one while they would wait for the chain of another. The tickets of such a group follow those of the one
/// before. Flags and room of an item serve again, for one `sets` further on, when all its tickets are done.
template <class T, bool column_major>
__global__ void __launch_bounds__(GridShape<T>::threads, 1)
    persistent_list_kernel(Items<T> A, LargeItems<T> large, int* info) {
  extern __shared__ __align__(1024) unsigned char raw[];
  T *shared = reinterpret_cast<T*>(raw), *inverses = shared + GridShape<T>::shared_size;
  __shared__ bool is_last;
  __shared__ int together;
  __shared__ LargeItem<T> items[LargeItems<T>::max_together];
  wait_for_launch_before();  // the list is complete
  const int rank = int(threadIdx.x), begin = large.order ? large.bounds[0] : 0;
  const int end = large.order ? large.bounds[1] - begin : int(A.count);
  if (end == 0) return;
  let_next_start();
  int *const tickets = large.flags, *const finished = tickets + 1, *const decided = tickets + 2;
  int* const done = tickets + LargeItems<T>::counters;
  const auto count = [&](int* counter, int all) {  // whether this block is the last of so many
    __syncthreads();                               // it is done with what it waits for and tells
    if (rank == 0) is_last = add_both(counter, 1) == all - 1;
    __syncthreads();  // it is known
    return is_last;
  };
  int t = draw(tickets), before = 0;  // before: tickets of the groups before
  if (rank == 0) {
    if (t == 0) decide_together(tickets, decided, min(large.together, end));
    together = wait_for(decided, 1);
  }
  __syncthreads();  // it is decided
  for (int k = 0, members; k < end; k += members) {
    members = min(together, end - k);
    __syncthreads();  // everyone is done with the items before
    if (rank < members) {
      const int b = large.order ? large.order[begin + k + rank] : k + rank, set = (k + rank) % large.sets;
      if (A.ragged()) {
        const StoredItem<T> item(A, b);
        items[rank] = {item.tile(A).data, item.ld, b, item.n, item.possible};
      } else {
        const Tile<T> item = A.item(b);
        items[rank] = {item.data, column_major ? item.col_stride : item.row_stride, b, int(item.rows), true};
      }
      if (k + rank >= large.sets) wait_for(done + set, k + rank - large.sets + 1);
    }
    __syncthreads();  // the items are known, and nobody uses their flags any more
    int after = before;
    for (int m = 0; m < members; ++m) after += items[m].order().tickets();
    for (GroupOrder group(members, before); t < after; t = draw(tickets)) {
      group.find(t, [&](int m, int j) { return items[m].order().tickets(j); });
      const int m = group.member, j = group.column;
      const LargeItem<T> item = items[m];
      TileOrder order = item.order();
      const int set = (k + m) % large.sets, own = order.tickets();
      int* const ints = done + large.sets + set * large.flags_each;
      const auto g = grid_of<T, column_major>(item, ints, large.entries + set * large.entries_each, info);
      if (!item.possible) {
        if (rank == 0) info[item.number] = -1;
      } else if (j < 0) {
        factor_chain(g, shared, inverses);
      } else {
        order.j = j, order.before = group.before;
        const auto [row, col] = order.tile(t);
        take_tile(g, row, col, shared, inverses);
      }
      if (count(g.flags.finished, own)) {
        for (int i = rank; i < large.flags_each; i += GridShape<T>::threads) ints[i] = 0;
        __syncthreads();  // they are zero
        if (rank == 0) store_release(done + set, k + m + 1);
      }
    }
    before = after;
  }
  if (count(finished, int(gridDim.x)))
    for (int i = rank; i < LargeItems<T>::counters + large.sets; i += GridShape<T>::threads) tickets[i] = 0;
}

template <class T>
LaunchStep persistent_list_step(int multiprocessors, Items<T>& A, LargeItems<T>& large, int*& info) {
  const auto kernel =
      reinterpret_cast<const void*>(A.is_flipped ? persistent_list_kernel<T, false> : persistent_list_kernel<T, true>);
  return {kernel,
          {unsigned(multiprocessors), 1},
          GridShape<T>::threads,
          GridShape<T>::bytes,
          granted(kernel),
          {&A, &large, &info}};
}

}  // namespace trifactor::cuda
