// Which items of a batch go side by side in SIMD lanes, and which threads take them.
#pragma once

#include <core/engine.hpp>
#include <host/threads.hpp>

#include <numeric>

namespace trifactor::host {

using namespace core;

/// The items of a batch whose info is 0 (info may be null: all of them), those of a ragged batch largest first, by a
/// counting sort, so that neighbours share a group.
class GroupedItems {
 public:
  /// Takes scratch memory. `listed`: the list is made, for a ragged batch or by info.
  template <class T>
  GroupedItems(Arena& arena, const Items<T>& A, bool listed)
      : list_(arena.take<index_t>(listed ? A.count : 0)), starts_(arena.take<index_t>(A.ragged() ? A.rows + 2 : 0)),
        listed_(listed) {}

  /// Items of a ragged batch of order above `small` are alone, and so are all of another batch if that is larger.
  template <class T>
  void sort(const Items<T>& A, const int* info, index_t small) {
    size = A.count, alone = 0;
    if (A.ragged()) {
      sort_by_order(A, info);
      while (alone < size && A.item(item(alone)).rows > small) ++alone;
      return;
    }
    if (listed_ && info) {
      size = 0;
      for (index_t b = 0; b < A.count; ++b)
        if (info[b] == 0) list_.data()[size++] = b;
    } else {
      listed_ = false;
    }
    if (A.rows > small) alone = size;
  }

  static constexpr index_t most_groups = 16, most_lanes = 32, most_neighbours = most_groups * most_lanes;

  index_t size = 0;    // items that take part
  index_t alone = 0;   // the first of them, each worked on by one thread
  index_t item(index_t k) const { return listed_ ? list_.data()[k] : k; }

  /// one(item) for those that are alone, then side_by_side(items, size, thread) for groups of neighbours, several groups
  /// of so many lanes at a time, since the next is fetched while one is worked on, but enough turns that all threads end
  /// together. work_each as in team_for.
  template <class One, class SideBySide>
  void for_each(int threads, index_t lanes, double work_each, One one, SideBySide side_by_side) const {
    const index_t group_size = lanes * max(index_t(1), min(most_groups, size / (lanes * threads * 8)));
    const index_t jobs = alone + ceil_div(size - alone, group_size);
    const int team = team_for(threads, double(size) * work_each);
    Interruption stop;
#pragma omp parallel num_threads(team)
    {
      index_t neighbours[most_neighbours];
#pragma omp for schedule(dynamic, 1)
      for (index_t job = 0; job < jobs; ++job) {
        if (stop.requested()) continue;
        if (job < alone) {
          one(item(job));
          continue;
        }
        const index_t first = alone + (job - alone) * group_size, group = min(group_size, size - first);
        if (!listed_) std::iota(neighbours, neighbours + group, first);
        side_by_side(listed_ ? list_.data() + first : neighbours, int(group), omp_get_thread_num());
      }
    }
    stop.throw_if_requested();
  }

 private:
  template <class T>
  void sort_by_order(const Items<T>& A, const int* info) {
    const index_t n = A.rows;
    index_t* const starts = starts_.data();
    std::fill(starts, starts + n + 2, index_t(0));
    for (index_t b = 0; b < A.count; ++b)
      if (!info || info[b] == 0) ++starts[n - A.item(b).rows + 1];
    std::partial_sum(starts, starts + n + 2, starts);
    size = starts[n + 1];
    for (index_t b = 0; b < A.count; ++b)
      if (!info || info[b] == 0) list_.data()[starts[n - A.item(b).rows]++] = b;
  }

  Arena::Scratch<index_t> list_, starts_;
  bool listed_;
};

/// So many bytes of scratch for each thread.
struct LaneScratch {
  LaneScratch(Arena& arena, std::size_t bytes, int threads)
      : each(index_t(bytes + 255) / 256 * 256), memory(arena.take<char>(each * threads)) {}
  char* of(int thread) const { return memory.data() + each * thread; }

  index_t each;
  Arena::Scratch<char> memory;
};

/// Larger items of a small batch are better one to a thread than side by side while some threads idle.
inline bool too_few_for_lanes(index_t n, index_t count, index_t lanes, int threads) {
  return count == 1 || (n > 32 && count < lanes * threads);
}

}  // namespace trifactor::host
