#include <sparse/schedule.hpp>

#include <algorithm>
#include <limits>
#include <numeric>
#include <trifactor/error.hpp>

namespace trifactor::sparse {

namespace {

constexpr index_t none = -1;

struct Relatives {
  std::vector<index_t> first_child, next_sibling, depth, first_descendant;
  std::vector<index_t> roots;

  explicit Relatives(const Plan& plan)
      : first_child(plan.fronts(), none),
        next_sibling(plan.fronts(), none),
        depth(plan.fronts(), 0),
        first_descendant(plan.fronts()) {
    const index_t n = plan.fronts();
    std::iota(first_descendant.begin(), first_descendant.end(), index_t(0));
    for (index_t s = n - 1; s >= 0; --s) {
      const index_t p = plan.parent[s];
      if (p == none) {
        roots.push_back(s);
      } else {
        next_sibling[s] = first_child[p], first_child[p] = s;
        depth[s] = depth[p] + 1;
      }
    }
    for (index_t s = 0; s < n; ++s)
      if (const index_t p = plan.parent[s]; p != none)
        first_descendant[p] = std::min(first_descendant[p], first_descendant[s]);
  }
};

index_t update_order(const Plan& plan, index_t s) { return plan.row_count(s) - plan.col_count(s); }
index_t update_size(const Plan& plan, index_t s) { return update_order(plan, s) * update_order(plan, s); }

/// The time of a front in flops: its own, some for each entry that is moved, some for the calls.
double cost(const Plan& plan, index_t s, const core::SparseTuning& tuning) {
  const double m = double(plan.row_count(s)), w = double(plan.col_count(s));
  return w * (m * m - w * m + w * w / 3) + double(tuning.entry_cost) * m * m + double(tuning.front_cost);
}

/// Branches dealt out to threads, the costliest first, each to the thread with the least so far.
struct Deal {
  std::vector<int> thread;  // of each branch
  double longest = 0;
};
Deal deal_out(const std::vector<double>& costs, int threads) {
  std::vector<index_t> order(costs.size());
  std::iota(order.begin(), order.end(), index_t(0));
  std::stable_sort(order.begin(), order.end(), [&](index_t a, index_t b) { return costs[a] > costs[b]; });
  std::vector<double> load(threads, 0.0);
  Deal deal{std::vector<int>(costs.size()), 0};
  for (const index_t b : order) {
    const auto least = std::min_element(load.begin(), load.end());
    *least += costs[b];
    deal.thread[b] = int(least - load.begin());
  }
  deal.longest = *std::max_element(load.begin(), load.end());
  return deal;
}

/// A way to cut the tree, and the time that branches and top take together.
struct Cut {
  double time = 0;
  std::vector<index_t> roots;  // of the branches, ascending
};

/// The costliest branch gives up its root again and again: all cuts on the way that take less time than no cut, the
/// shortest first.
std::vector<Cut> cuts(const Plan& plan, const Relatives& tree, int threads, const core::SparseTuning& tuning) {
  const double least_cost = double(tuning.branch_cost), shared_speed = double(tuning.shared_speed) / 100;
  std::vector<double> total(plan.fronts());
  for (index_t s = 0; s < plan.fronts(); ++s) {
    total[s] += cost(plan, s, tuning);
    if (plan.parent[s] != none) total[plan.parent[s]] += total[s];
  }
  std::vector<index_t> roots = tree.roots;
  double top = 0, whole = 0;
  for (const index_t s : roots) whole += total[s];
  if (whole < least_cost) return {};
  std::vector<Cut> all;
  const index_t steps = 64 * threads;
  for (index_t step = 0; step < steps && !roots.empty(); ++step) {
    std::vector<double> costs;
    for (const index_t s : roots) costs.push_back(total[s]);
    const double time = deal_out(costs, threads).longest + top;
    if (time < whole) all.push_back({time, roots});
    const auto costliest = std::max_element(costs.begin(), costs.end()) - costs.begin();
    const index_t s = roots[costliest];
    if (total[s] < least_cost) break;  // such branches are worth no further cut
    roots.erase(roots.begin() + costliest);
    const double own = cost(plan, s, tuning);
    top += own < least_cost ? own : own / (1 + (threads - 1) * shared_speed);
    for (index_t c = tree.first_child[s]; c != none; c = tree.next_sibling[c]) roots.push_back(c);
  }
  std::stable_sort(all.begin(), all.end(), [](const Cut& a, const Cut& b) { return a.time < b.time; });
  for (Cut& cut : all) std::sort(cut.roots.begin(), cut.roots.end());
  return all;
}

/// Where update matrices lie in one region, found by going through its fronts once.
class Region {
 public:
  Region(const Plan& plan, const Relatives& tree, std::vector<index_t>& at) : plan_(plan), tree_(tree), at_(at) {}

  /// A front whose update matrix lies in this region, or elsewhere. Its children leave unless they lie elsewhere.
  void pass(index_t s, const std::vector<bool>& elsewhere) {
    if (!elsewhere[s]) push(s);
    for (index_t c = tree_.first_child[s]; c != none; c = tree_.next_sibling[c])
      if (!elsewhere[c]) used_[tree_.depth[c] % 2] -= update_size(plan_, c);
  }
  index_t peak() const { return peak_; }
  /// Once all fronts have passed: offsets become places in the work array.
  void settle(index_t begin) {
    for (const index_t s : passed_)
      at_[s] = tree_.depth[s] % 2 == 0 ? begin + at_[s] : begin + peak_ - at_[s] - update_size(plan_, s);
  }

 private:
  void push(index_t s) {
    index_t& used = used_[tree_.depth[s] % 2];
    at_[s] = used;
    used += update_size(plan_, s);
    peak_ = std::max(peak_, used_[0] + used_[1]);
    passed_.push_back(s);
  }
  const Plan& plan_;
  const Relatives& tree_;
  std::vector<index_t>& at_;
  std::vector<index_t> passed_;
  index_t used_[2] = {0, 0}, peak_ = 0;
};

void place_updates(const Plan& plan, const Relatives& tree, Schedule& schedule) {
  schedule.update_at.resize(plan.fronts());
  index_t begin = 0;
  std::vector<bool> waits(plan.fronts());
  for (const Branch& b : schedule.branches) {
    schedule.update_at[b.end - 1] = begin;
    begin += update_size(plan, b.end - 1);
    waits[b.end - 1] = true;
  }
  index_t end = begin;
  for (int t = 0; t < schedule.threads; ++t) {
    Region region(plan, tree, schedule.update_at);
    for (index_t k = schedule.branch_start[t]; k < schedule.branch_start[t + 1]; ++k)
      for (index_t s = schedule.branches[k].begin; s < schedule.branches[k].end; ++s) region.pass(s, waits);
    region.settle(end);
    end += region.peak();
  }
  Region region(plan, tree, schedule.update_at);
  for (const index_t s : schedule.top) region.pass(s, waits);
  region.settle(begin);
  schedule.work_entries = std::max(end, begin + region.peak());
}

/// Deals the branches with these roots out to the threads and places all update matrices.
void take_cut(const Plan& plan, const Relatives& tree, const std::vector<index_t>& roots,
              const core::SparseTuning& tuning, Schedule& schedule) {
  const int threads = schedule.threads;
  schedule.branches.clear();
  schedule.top.clear();
  std::vector<double> costs;
  for (const index_t s : roots) {
    double sum = 0;
    for (index_t d = tree.first_descendant[s]; d <= s; ++d) sum += cost(plan, d, tuning);
    costs.push_back(sum);
  }
  schedule.branch_start.assign(threads + 1, 0);
  std::vector<bool> in_branch(plan.fronts());
  const Deal deal = deal_out(costs, threads);
  for (int t = 0; t < threads; ++t) {
    for (std::size_t b = 0; b < roots.size(); ++b)
      if (deal.thread[b] == t) schedule.branches.push_back({tree.first_descendant[roots[b]], roots[b] + 1});
    schedule.branch_start[t + 1] = index_t(schedule.branches.size());
  }
  for (const Branch& b : schedule.branches) std::fill(in_branch.begin() + b.begin, in_branch.begin() + b.end, true);
  for (index_t s = 0; s < plan.fronts(); ++s)
    if (!in_branch[s]) schedule.top.push_back(s);
  place_updates(plan, tree, schedule);
}

void find_runs(const Plan& plan, Schedule& schedule) {
  schedule.run_start.push_back(0);
  for (index_t s = 0; s < plan.fronts(); ++s) {
    const index_t first = plan.row_start[s] + plan.col_count(s);
    for (index_t i = first; i < plan.row_start[s + 1] && plan.parent[s] != none; ++i) {
      if (i > first && plan.place[i] == plan.place[i - 1] + 1)
        ++schedule.runs.back().length;
      else
        schedule.runs.push_back({int(plan.place[i]), 1});
    }
    schedule.run_start.push_back(index_t(schedule.runs.size()));
  }
}

}  // namespace

std::size_t Schedule::bytes() const {
  const auto size = [](const auto&... vectors) { return ((vectors.size() * sizeof(vectors[0])) + ...); };
  return size(branches, branch_start, top, first_child, next_sibling, update_at, run_start, runs, entries.start,
              entries.source, entries.target);
}

Schedule make_schedule(const Plan& plan, int threads, const core::SparseTuning& tuning) {
  for (index_t s = 0; s < plan.fronts(); ++s)
    if (plan.row_count(s) > std::numeric_limits<int>::max())
      throw InvalidArgument("SparseCholesky: a front of " + std::to_string(plan.row_count(s)) +
                            " rows is more than BLAS can count");
  Schedule schedule;
  schedule.threads = threads;
  Relatives tree(plan);
  const index_t most = plan.factor_entries / 100 * tuning.most_updates;
  std::vector<index_t> thriftiest;  // roots
  index_t least = std::numeric_limits<index_t>::max();
  if (threads > 1)
    for (const Cut& cut : cuts(plan, tree, threads, tuning)) {
      take_cut(plan, tree, cut.roots, tuning, schedule);
      if (schedule.work_entries < least) least = schedule.work_entries, thriftiest = cut.roots;
      if (least <= most) break;
    }
  if (least > most) take_cut(plan, tree, thriftiest, tuning, schedule);
  for (index_t s = 0; s < plan.fronts(); ++s)
    schedule.largest_rows = std::max(schedule.largest_rows, plan.row_count(s));
  find_runs(plan, schedule);
  schedule.entries = entries_by_front(plan);
  schedule.first_child = std::move(tree.first_child);
  schedule.next_sibling = std::move(tree.next_sibling);
  return schedule;
}

}  // namespace trifactor::sparse
