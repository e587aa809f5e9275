#include <sparse/entries.hpp>

#include <sparse/tasks.hpp>

#include <algorithm>
#include <utility>

namespace trifactor::sparse {

/// A counting sort. Ranges of entries have counters of their own, so that threads may count and place side by side.
Entries entries_by_front(const Plan& plan) {
  Entries by_front;
  const index_t entries = index_t(plan.target.size()), fronts = plan.fronts();
  // Every so many entries of the factor, the front that they lie in: a search begins there.
  const index_t stride = std::max<index_t>(1, plan.factor_entries / std::max<index_t>(1, plan.fronts()));
  std::vector<index_t> near;
  for (index_t s = 0; s < plan.fronts(); ++s)
    while (index_t(near.size()) * stride < plan.factor_start[s + 1]) near.push_back(s);
  near.push_back(std::max<index_t>(0, plan.fronts() - 1));
  const auto front_of = [&](index_t target) {
    const auto begin = plan.factor_start.begin();
    const index_t k = target / stride;
    return std::upper_bound(begin + near[k] + 1, begin + near[k + 1] + 1, target) - begin - 1;
  };
  constexpr index_t max_ranges = 64;
  const index_t ranges = std::clamp<index_t>(entries / (4 * fronts + 1), 1, max_ranges);  // counters stay few
  const index_t grain = entries / ranges + 1;
  Array<int> front(entries);
  std::vector<index_t> next(ranges * fronts, 0);  // of each front in a range: how many, then where the next one goes
  by_front.start.assign(fronts + 1, 0);
  with_threads(entries < 10 * worth_waking ? 1 : omp_get_max_threads(), [&] {
    for_ranges(entries, grain, [&](index_t r, index_t begin, index_t end) {
      for (index_t k = begin; k < end; ++k) {
        const index_t target = plan.target[k];
        front[k] = target == Plan::nowhere ? -1 : int(front_of(target < 0 ? ~target : target));
        if (front[k] >= 0) ++next[r * fronts + front[k]];
      }
    });
    index_t sum = 0;
    for (index_t s = 0; s < fronts; ++s) {
      by_front.start[s] = sum;
      for (index_t r = 0; r < ranges; ++r) sum += std::exchange(next[r * fronts + s], sum);
    }
    by_front.start[fronts] = sum;
    by_front.source.resize(sum);
    by_front.target.resize(sum);
    for_ranges(entries, grain, [&](index_t r, index_t begin, index_t end) {
      for (index_t k = begin; k < end; ++k) {
        if (front[k] < 0) continue;
        const index_t at = next[r * fronts + front[k]]++;
        by_front.source[at] = k, by_front.target[at] = plan.target[k];
      }
    });
  });
  return by_front;
}

}  // namespace trifactor::sparse
