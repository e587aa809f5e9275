#include <sparse/entries.hpp>

#include <algorithm>
#include <numeric>

namespace trifactor::sparse {

/// A counting sort.
Entries entries_by_front(const Plan& plan) {
  Entries by_front;
  const index_t entries = index_t(plan.target.size());
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
  std::vector<int> front(entries);
  by_front.start.assign(plan.fronts() + 1, 0);
  for (index_t k = 0; k < entries; ++k) {
    const index_t target = plan.target[k];
    front[k] = target == Plan::nowhere ? -1 : int(front_of(target < 0 ? ~target : target));
    if (front[k] >= 0) ++by_front.start[front[k] + 1];
  }
  std::partial_sum(by_front.start.begin(), by_front.start.end(), by_front.start.begin());
  by_front.source.resize(by_front.start.back());
  by_front.target.resize(by_front.start.back());
  std::vector<index_t> next(by_front.start.begin(), by_front.start.end() - 1);
  for (index_t k = 0; k < entries; ++k) {
    if (front[k] < 0) continue;
    const index_t at = next[front[k]]++;
    by_front.source[at] = k, by_front.target[at] = plan.target[k];
  }
  return by_front;
}

}  // namespace trifactor::sparse
