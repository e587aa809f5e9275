#include <sparse/branches.hpp>

#include <algorithm>
#include <deque>
#include <iterator>
#include <limits>
#include <map>
#include <utility>

namespace trifactor::sparse {

namespace {

constexpr index_t unlimited = std::numeric_limits<index_t>::max();

index_t entries_of_update(const Plan& plan, const core::UpdateShape& shape, index_t s) {
  return shape.entries(plan.row_count(s) - plan.col_count(s));
}
bool contains(const Branch& branch, index_t s) { return branch.begin <= s && s < branch.end; }
/// In the device's memory.
index_t entries_of_update(const Plan& plan, const BranchRules& rules, index_t s) {
  return contains(rules.host, s) ? 0 : entries_of_update(plan, rules.update, s);
}

/// For each subtree: the update matrices of two levels next to each other that are largest together.
std::vector<index_t> level_peaks(const Plan& plan, const BranchRules& rules) {
  const index_t fronts = plan.fronts();
  std::vector<index_t> peak(fronts, 0);
  std::vector<std::vector<index_t>> entries(fronts);  // of each subtree, by level, the root's last
  for (index_t s = 0; s < fronts; ++s) {
    std::vector<index_t>& own = entries[s];
    own.push_back(entries_of_update(plan, rules, s));
    for (std::size_t k = own.size(); k-- > 0;) peak[s] = std::max(peak[s], own[k] + (k > 0 ? own[k - 1] : 0));
    const index_t p = plan.parent[s];
    if (p < 0) continue;
    std::vector<index_t>& above = entries[p];
    if (above.size() < own.size()) above.swap(own);  // the roots' levels stand at the end of both
    for (std::size_t k = 1; k <= own.size(); ++k) above[above.size() - k] += own[own.size() - k];
    std::vector<index_t>().swap(own);
  }
  return peak;
}

/// Memory of which pieces are taken where they fit first.
class Space {
 public:
  index_t take(index_t size) {
    auto gap = free_.begin();
    while (gap->second < size) ++gap;
    const auto [at, length] = *gap;
    free_.erase(gap);
    if (length > size) free_[at + size] = length - size;
    return at;
  }
  void give(index_t at, index_t size) {
    auto next = free_.lower_bound(at);
    if (next->first == at + size) size += next->second, next = free_.erase(next);
    if (next != free_.begin())
      if (const auto before = std::prev(next); before->first + before->second == at) {
        before->second += size;
        return;
      }
    free_[at] = size;
  }
  /// Behind everything that is taken.
  index_t end() const { return std::prev(free_.end())->first; }

 private:
  std::map<index_t, index_t> free_{{0, unlimited / 2}};  // where gaps begin, and their size; the last has no end
};

/// The largest of so many numbers.
template <class F>
index_t largest_of(index_t count, F number) {
  index_t largest = 0;
  for (index_t k = 0; k < count; ++k) largest = std::max(largest, number(k));
  return largest;
}
index_t largest_front(const Plan& plan) {
  return largest_of(plan.fronts(), [&](index_t s) { return plan.factor_start[s + 1] - plan.factor_start[s]; });
}
index_t largest_update(const Plan& plan, const BranchRules& rules) {
  return largest_of(plan.fronts(), [&](index_t s) { return entries_of_update(plan, rules, s); });
}

/// Entries of the update matrix of each front, and of those of its children together.
struct UpdateSizes {
  std::vector<index_t> own, of_children;
};
UpdateSizes update_sizes(const Plan& plan, const BranchRules& rules) {
  UpdateSizes sizes{std::vector<index_t>(plan.fronts()), std::vector<index_t>(plan.fronts(), 0)};
  for (index_t s = 0; s < plan.fronts(); ++s) {
    sizes.own[s] = entries_of_update(plan, rules, s);
    if (const index_t p = plan.parent[s]; p >= 0) sizes.of_children[p] += sizes.own[s];
  }
  return sizes;
}

/// Alive at once when fronts are taken one by one.
index_t least_updates(const Plan& plan, const BranchRules& rules) {
  const UpdateSizes sizes = update_sizes(plan, rules);
  index_t alive = 0, most = 0;
  for (index_t s = 0; s < plan.fronts(); ++s) {
    most = std::max(most, alive += sizes.own[s]);
    alive -= sizes.of_children[s];
  }
  return most;
}

BranchCut cut(const Plan& plan, const BranchRules& rules, const BranchLimits& limits, index_t updates = unlimited) {
  BranchCut result{cut_into_branches(plan, rules, limits), {}, rules.host};
  result.updates = place_updates(plan, rules, result.branches, updates);
  return result;
}

/// Of each front whether its update matrix is offloaded, so that at most so many entries of others are alive at once.
std::vector<char> choose_offloaded(const Plan& plan, const std::vector<index_t>& size,
                                   const std::vector<Branch>& branches, index_t entries) {
  std::vector<char> chosen(plan.fronts(), 0);
  if (entries == unlimited) return chosen;
  std::deque<index_t> waiting;  // fronts of earlier branches that no parent has taken yet: the last is taken first
  index_t alive = 0;            // entries of these
  for (const Branch& branch : branches) {
    std::vector<index_t> taken(branch.end - branch.begin, 0);  // of each front: entries of its children in the branch
    for (index_t s = branch.begin; s < branch.end; ++s)
      if (const index_t p = plan.parent[s]; p >= 0 && p < branch.end) taken[p - branch.begin] += size[s];
    index_t peak = 0, own = 0;
    for (const std::vector<index_t>& level : levels_of_branch(plan, branch)) {
      for (const index_t s : level) own += size[s];
      peak = std::max(peak, own);
      for (const index_t s : level) own -= taken[s - branch.begin];
    }
    for (; !waiting.empty() && alive + peak > entries; waiting.pop_front())
      chosen[waiting.front()] = 1, alive -= size[waiting.front()];
    for (; !waiting.empty() && plan.parent[waiting.back()] < branch.end; waiting.pop_back())
      alive -= size[waiting.back()];
    for (index_t s = branch.begin; s < branch.end; ++s)
      if (size[s] > 0 && plan.parent[s] >= branch.end) waiting.push_back(s), alive += size[s];
  }
  return chosen;
}

/// A branch reads what earlier ones have offloaded, and writes where their update matrices were. Copies are made in the
/// order of branches, and a branch starts after the one before: what that waited for is complete.
void find_waits(const Plan& plan, const std::vector<index_t>& size, const std::vector<Branch>& branches,
                UpdatePlaces& places) {
  struct Copy {
    index_t branch, begin, end;
  };
  std::vector<Copy> copies;  // that nobody has waited for yet
  std::vector<index_t> waits_of_parent(plan.fronts(), -1);
  index_t complete = -1;
  auto next = places.offloaded.begin();
  for (index_t b = 0; b < index_t(branches.size()); ++b) {
    index_t last = -1;
    for (index_t s = branches[b].begin; s < branches[b].end; ++s) {
      last = std::max(last, waits_of_parent[s]);
      for (const Copy& copy : copies)
        if (places.at[s] < copy.end && copy.begin < places.at[s] + size[s]) last = std::max(last, copy.branch);
    }
    places.waits_for.push_back(last > complete ? last : -1);
    complete = std::max(complete, last);
    std::erase_if(copies, [&](const Copy& copy) { return copy.branch <= complete; });
    for (; next != places.offloaded.end() && next->front < branches[b].end; ++next) {
      const index_t at = places.at[next->front];
      copies.push_back({b, at, at + next->entries});
      waits_of_parent[plan.parent[next->front]] = b;
    }
  }
}

/// Smaller and smaller limits for update matrices, from this one on: try_limit returns whether to end.
template <class Try>
void for_limits(index_t limit, index_t least, Try try_limit) {
  for (; limit > least / 32; limit -= limit / 8 + 1)
    if (try_limit(limit)) return;
}

/// The places of update matrices that are on their way to the host are taken where more than `room` entries would be
/// needed otherwise: whoever takes one has to wait.
UpdatePlaces place_beside_copies(const Plan& plan, const BranchRules& rules, const std::vector<Branch>& branches,
                                 index_t entries, index_t room) {
  constexpr index_t alignment = 32;  // entries
  const auto aligned = [](index_t size) { return core::ceil_div(size, alignment) * alignment; };
  const index_t fronts = plan.fronts();
  UpdatePlaces places;
  places.at.assign(fronts, 0);
  std::vector<index_t> size(fronts), first_child(fronts, -1), next_child(fronts, -1);
  std::vector<char> odd(fronts, 0);  // depth
  for (index_t s = fronts - 1; s >= 0; --s) {
    size[s] = aligned(entries_of_update(plan, rules, s));
    if (const index_t p = plan.parent[s]; p >= 0) next_child[s] = std::exchange(first_child[p], s), odd[s] = !odd[p];
  }
  const std::vector<char> offloaded = choose_offloaded(plan, size, branches, entries);
  std::vector<index_t> host_at(fronts, 0);
  // Fronts at an even depth have one end of the array, those at an odd depth the other: what is alive at one end is
  // nearly a stack.
  Space ends[2], on_host;
  std::deque<index_t> copied;  // fronts whose update matrices are on their way, the oldest first
  for (index_t s = rules.host.begin; s < rules.host.end; ++s)
    if (const index_t of_root = aligned(entries_of_update(plan, rules.update, s));
        of_root > 0 && plan.parent[s] >= rules.host.end)
      places.from_host.push_back({s, on_host.take(of_root), of_root});  // at any time, so nobody else has the place
  places.offloaded_entries = on_host.end();
  const auto give = [&](index_t s) {
    if (size[s] > 0) ends[int(odd[s])].give(places.at[s], size[s]);
  };
  const auto take = [&](index_t s) {
    if (size[s] == 0) return;
    places.at[s] = ends[int(odd[s])].take(size[s]);
    for (; !copied.empty() && ends[0].end() + ends[1].end() > room; copied.pop_front()) {
      give(s), give(copied.front());
      places.at[s] = ends[int(odd[s])].take(size[s]);
    }
  };
  for (const Branch& branch : branches) {
    for (const std::vector<index_t>& level : levels_of_branch(plan, branch)) {
      for (const index_t s : level) take(s);
      places.entries = std::max(places.entries, ends[0].end() + ends[1].end());
      for (const index_t s : level)
        for (index_t c = first_child[s]; c >= 0; c = next_child[c])
          if (offloaded[c])
            on_host.give(host_at[c], size[c]);
          else
            give(c);
    }
    for (index_t s = branch.begin; s < branch.end; ++s)
      if (offloaded[s]) {
        host_at[s] = on_host.take(size[s]);
        places.offloaded.push_back({s, host_at[s], size[s]});
        places.offloaded_entries = std::max(places.offloaded_entries, on_host.end());
        copied.push_back(s);
      }
  }
  for (index_t s = 0; s < fronts; ++s)
    if (odd[s] && size[s] > 0) places.at[s] = places.entries - places.at[s] - size[s];
  if (!places.offloaded.empty()) find_waits(plan, size, branches, places);
  return places;
}

}  // namespace

std::vector<Branch> cut_into_branches(const Plan& plan, const BranchRules& rules, const BranchLimits& limits) {
  const index_t fronts = plan.fronts();
  const std::vector<index_t> peak = level_peaks(plan, rules);
  const UpdateSizes updates = update_sizes(plan, rules);
  std::vector<index_t> first(fronts);  // front of the subtree
  for (index_t s = 0; s < fronts; ++s) first[s] = s;
  for (index_t s = 0; s < fronts; ++s)
    if (const index_t p = plan.parent[s]; p >= 0) first[p] = std::min(first[p], first[s]);
  const auto factor_entries = [&](index_t begin, index_t end) {
    return plan.factor_start[end] - plan.factor_start[begin];
  };
  std::vector<Branch> branches;
  index_t alive = 0;      // update matrices of the branches so far that no front has taken yet
  index_t in_branch = 0;  // what was alive when the last branch began, and the peaks of its subtrees
  bool open = false;      // the last branch may grow
  const auto before = [&] { return limits.offloads ? 0 : alive; };
  const auto fits = [&](index_t s) {
    return (before() + peak[s] <= limits.updates && factor_entries(first[s], s + 1) <= limits.factor) ||
           (!rules.in_subtree.empty() && rules.in_subtree[s]);
  };
  const auto separates = [](index_t edge, index_t a, index_t b) { return a < edge && edge <= b; };
  const auto together = [&](index_t a, index_t b) {  // both the CPU's or neither
    return !separates(rules.host.begin, a, b) && !separates(rules.host.end, a, b);
  };
  for (index_t s = 0; s < fronts;) {
    open = open && together(s - 1, s);
    if (first[s] < s || !fits(s)) {  // its children are in earlier branches
      branches.push_back({s, s + 1}), open = false;
      alive += updates.own[s] - updates.of_children[s], ++s;
      continue;
    }
    index_t root = s;  // of the largest subtree that begins with s and fits
    for (index_t p = plan.parent[s]; p >= 0 && first[p] == s && fits(p) && together(s, p); p = plan.parent[p]) root = p;
    if (open &&
        (in_branch + peak[root] > limits.updates || factor_entries(branches.back().begin, root + 1) > limits.factor))
      open = false;
    if (!open) branches.push_back({s, s}), in_branch = before(), open = true;
    branches.back().end = root + 1, in_branch += peak[root], alive += updates.own[root], s = root + 1;
  }
  return branches;
}

std::vector<std::vector<index_t>> levels_of_branch(const Plan& plan, const Branch& branch) {
  std::vector<index_t> depth(branch.end - branch.begin, 0);
  index_t levels = 0;
  for (index_t s = branch.end - 1; s >= branch.begin; --s) {
    const index_t p = plan.parent[s];
    if (p >= 0 && p < branch.end) depth[s - branch.begin] = depth[p - branch.begin] + 1;
    levels = std::max(levels, depth[s - branch.begin] + 1);
  }
  std::vector<std::vector<index_t>> fronts(levels);
  for (index_t s = branch.begin; s < branch.end; ++s) fronts[levels - 1 - depth[s - branch.begin]].push_back(s);
  return fronts;
}

UpdatePlaces place_updates(const Plan& plan, const BranchRules& rules, const std::vector<Branch>& branches,
                           index_t entries) {
  UpdatePlaces places = place_beside_copies(plan, rules, branches, entries, entries);
  if (places.offloaded.empty() || places.entries <= entries + entries / 8) return places;
  UpdatePlaces denser = place_beside_copies(plan, rules, branches, entries, 0);
  return denser.entries < places.entries ? denser : places;
}

BranchCut cut_in_memory(const Plan& plan, const BranchRules& rules, index_t percent, index_t spare) {
  BranchCut best = cut(plan, rules, {unlimited, unlimited});
  const index_t least = least_updates(plan, rules);
  const index_t wanted = least + std::max(spare, (least + plan.factor_entries) * percent / 100);
  for_limits(wanted, least, [&](index_t limit) {
    if (best.updates.entries <= wanted) return true;
    if (BranchCut next = cut(plan, rules, {limit, unlimited}); next.updates.entries < best.updates.entries)
      best = std::move(next);
    return false;
  });
  return best;
}

std::optional<BranchCut> cut_for_streaming(const Plan& plan, const BranchRules& rules, index_t entries, bool offloads) {
  const index_t front = largest_front(plan);
  const index_t least = offloads ? largest_update(plan, rules) : least_updates(plan, rules);
  std::optional<BranchCut> found;
  if (entries < least + front) return found;
  // Large branches are fast, but leave less room for the factor. Copies of update matrices cost more than that.
  const index_t most = std::max(least, offloads ? entries / 5 * 3 : entries / 2);
  for_limits(most, least, [&](index_t limit) {
    // A branch is computed, one is copied, one waits.
    const BranchLimits limits{offloads ? limit / 2 : limit, (entries - limit) / 3, offloads};
    BranchCut next = cut(plan, rules, limits, offloads ? limit : unlimited);
    if (found && next.updates.copied_entries() > found->updates.copied_entries()) return true;
    if (next.updates.entries <= std::min(most + most / 8, entries - front)) found = std::move(next);
    return found && !offloads;  // else less memory may do with the same copies
  });
  return found;
}

BranchCut cut_one_by_one(const Plan& plan, const BranchRules& rules) { return cut(plan, rules, {0, 0}, 0); }

}  // namespace trifactor::sparse
