// A list of the large items of a ragged batch by size, made on the device.
#pragma once

#include <cuda/batched/items.cuh>
#include <cuda/device/signals.cuh>
#include <cuda/engine/launch.cuh>

namespace trifactor::cuda {

/// Numbers of items in `order`, the largest items first. Sizes are told apart by eights up to 512, and by 128 and less
/// beyond. `flags` are zero before and after.
struct ItemList {
  static constexpr int keys = 128, slices = 9;  // at most
  int* order;
  int* ranks;   // of an item, among those of its key
  int* bounds;  // slice r takes order[bounds[r]] .. order[bounds[r + 1] - 1]
  int* next;    // of slice r: the place that is handed out next
  int* flags;
  int least[slices];  // rows of the items of a slice, unless they are of slice 0
  // Slice 0 takes the items of more than above[i] rows if they are no more than at_most[i], for the first such i.
  static constexpr int levels = 8;
  int above[levels], at_most[levels];

  static constexpr index_t ints(index_t count) { return 2 * count + 2 * slices + 1; }
  static constexpr index_t flag_count = keys + 3;
  ItemList(int* room, index_t count, int* zeros)
      : order(room), ranks(room + count), bounds(ranks + count), next(bounds + slices + 1), flags(zeros) {}

  /// The largest order up to n that has another key than the next one.
  static constexpr index_t cut(index_t n) {
    return n <= 512 ? n / 8 * 8 : 512 + min(n - 512, index_t(62 * 128)) / 128 * 128;
  }
  __device__ static int key(int n) {
    const int k = n <= 512 ? (n + 7) / 8 : 64 + (n - 512 + 127) / 128;
    return keys - 1 - max(0, min(k, keys - 1));
  }
  __device__ int* ticket() const { return flags + keys; }
  __device__ int* counted() const { return flags + keys + 1; }
  __device__ int* placed() const { return flags + keys + 2; }
};

/// Makes the list, by two blocks of one warp for each chunk: the first counts the items that have their place in the
/// list, the second puts them there. Tickets tell who does what: all that one waits for have begun.
template <class T>
__global__ void __launch_bounds__(32) list_items_kernel(Items<T> A, ItemList list) {
  let_next_start();  // the next launch may begin: persistent_list_kernel waits for the list itself
  const int chunks = int(gridDim.x / 2), lane = int(threadIdx.x);
  const int ticket = __shfl_sync(~0u, lane == 0 ? atomicAdd(list.ticket(), 1) : 0, 0);
  const bool counts = ticket < chunks;
  const index_t b = index_t(Chunk<T>::size) * (counts ? ticket : ticket - chunks) + lane;
  const int n = b < A.count ? A.item_rows[b] : 0;
  const bool here = n >= list.least[ItemList::slices - 1];
  const int key = ItemList::key(n);
  if (counts) {
    if (here) list.ranks[b] = atomicAdd(list.flags + key, 1);
    __syncwarp();  // all of them are counted
    if (lane == 0) add_release(list.counted(), 1);
    return;
  }
  if (lane == 0) wait_for(list.counted(), chunks);
  __syncwarp();  // all items are counted
  constexpr int own_keys = ItemList::keys / 32;
  int before[own_keys], sum = 0;  // items with keys before each of the lane's
  for (int i = 0; i < own_keys; ++i) before[i] = sum, sum += __ldcg(list.flags + own_keys * lane + i);
  int end = sum;
  for (int step = 1; step < 32; step *= 2) {
    const int other = __shfl_up_sync(~0u, end, unsigned(step));
    if (lane >= step) end += other;
  }
  const auto begin = [&](int k) {  // of a key, for each lane another
    int place = 0;
    for (int i = 0; i < own_keys; ++i) {
      const int there = __shfl_sync(~0u, end - sum + before[i], k / own_keys);
      if (k % own_keys == i) place = there;
    }
    return place;
  };
  const int place = begin(key), all = __shfl_sync(~0u, end, 31);
  if (here) list.order[place + list.ranks[b]] = int(b);
  if (ticket == chunks) {
    const int level = min(lane, ItemList::levels - 1), larger = begin(ItemList::key(list.above[level]));
    const unsigned levels_met = __ballot_sync(~0u, larger <= list.at_most[level]);
    const int first = levels_met ? __shfl_sync(~0u, larger, __ffs(int(levels_met)) - 1) : 0;  // items of slice 0
    // Impossible sizes may look too large for all slices: the first takes them.
    int bound = max(first, begin(ItemList::key(list.least[min(max(lane - 1, 0), ItemList::slices - 1)] / 8 * 8)));
    if (lane == 0) bound = 0;
    if (lane == 1) bound = first;
    if (lane == ItemList::slices) bound = all;
    if (lane <= ItemList::slices) list.bounds[lane] = bound;
    if (lane < ItemList::slices) list.next[lane] = bound;
  }
  __syncwarp();  // nobody reads the flags any more
  const bool last = __shfl_sync(~0u, lane == 0 && add_both(list.placed(), 1) == chunks - 1, 0);
  if (!last) return;
  __syncwarp();  // that all others are done, as lane 0 has seen, is seen by all lanes
  for (int i = lane; i < int(ItemList::flag_count); i += 32) list.flags[i] = 0;
}

}  // namespace trifactor::cuda
