#include <sparse/schedule.hpp>

#include <core/scalar.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <tuple>
#include <trifactor/error.hpp>

namespace trifactor::sparse {

using core::ceil_div;

Tiles::Tiles(index_t rows, index_t columns, const core::SparseTuning& tuning) : m(rows), w(columns) {
  // Enough tiles for many threads, of whole registers, but large enough for BLAS.
  const index_t wanted = ceil_div(ceil_div(m, tuning.tiles_down), 32) * 32;
  edge = std::max(tuning.tile_least, std::min(tuning.tile_most, wanted));
  across = ceil_div(w, edge);
  down = across + ceil_div(m - w, edge);
}

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

/// The time of a front that threads share: their part of it, and what lies on its critical path. For each tile column
/// that is the factor of a diagonal tile, one tile below it and one update, which take edge^3 / 3, edge^3 and 2 edge^3.
double shared_cost(const Plan& plan, index_t s, int threads, const core::SparseTuning& tuning) {
  const Tiles tiles(plan.row_count(s), plan.col_count(s), tuning);
  const double edge = double(std::min(tiles.edge, tiles.w));
  const double speed = 1 + (threads - 1) * double(tuning.shared_speed) / 100;
  return front_cost(plan, s, tuning) / speed + double(tiles.across) * 10 / 3 * edge * edge * edge + double(tuning.task_cost);
}

/// When the last of the threads is done, if each takes the costliest branch that is left.
double time_of_branches(std::vector<double> costs, int threads) {
  std::sort(costs.begin(), costs.end(), std::greater<>());
  std::vector<double> busy(threads, 0.0);  // a heap, the earliest first
  for (const double cost : costs) {
    std::pop_heap(busy.begin(), busy.end(), std::greater<>());
    busy.back() += cost;
    std::push_heap(busy.begin(), busy.end(), std::greater<>());
  }
  return *std::max_element(busy.begin(), busy.end());
}

/// A way to cut the tree, and the time that branches and top take together.
struct Cut {
  double time = 0;
  std::vector<index_t> roots;  // of the branches, ascending
};

/// Of each front and all below it.
std::vector<double> subtree_costs(const Plan& plan, const core::SparseTuning& tuning) {
  std::vector<double> total(plan.fronts());
  for (index_t s = 0; s < plan.fronts(); ++s) {
    total[s] += front_cost(plan, s, tuning);
    if (plan.parent[s] != none) total[plan.parent[s]] += total[s];
  }
  return total;
}

/// The costliest branch gives up its root again and again: all cuts on the way that take less time than no cut, the
/// shortest first.
std::vector<Cut> cuts(const Plan& plan, const Relatives& tree, const std::vector<double>& total, int threads,
                      const core::SparseTuning& tuning) {
  const double least_cost = double(tuning.branch_cost);
  std::vector<index_t> roots = tree.roots;
  double top = 0, whole = 0;
  for (const index_t s : roots) whole += total[s];
  if (whole < least_cost) return {};
  std::vector<Cut> all;
  double best = whole;
  const index_t steps = 64 * threads;
  constexpr std::size_t many = 8;  // trees for each thread: cutting one cannot gain much
  const double ideal = whole / threads;
  for (index_t step = 0; step < steps && top < best; ++step) {
    std::vector<double> costs;
    for (const index_t s : roots) costs.push_back(total[s]);
    const double time = time_of_branches(costs, threads) + top;
    if (time < whole) all.push_back({time, roots});
    best = std::min(best, time);
    if (roots.empty() || (step == 0 && roots.size() >= many * std::size_t(threads) && time <= 1.1 * ideal)) break;
    const auto costliest = std::max_element(costs.begin(), costs.end()) - costs.begin();
    const index_t s = roots[costliest];
    if (total[s] < least_cost) break;  // such branches are worth no further cut
    roots.erase(roots.begin() + costliest);
    top += std::min(front_cost(plan, s, tuning), shared_cost(plan, s, threads, tuning));
    for (index_t c = tree.first_child[s]; c != none; c = tree.next_sibling[c]) roots.push_back(c);
  }
  std::stable_sort(all.begin(), all.end(), [](const Cut& a, const Cut& b) { return a.time < b.time; });
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
  std::vector<bool> waits(plan.fronts());
  index_t begin = 0;
  for (const Branch& b : schedule.branches) {
    schedule.update_at[b.end - 1] = begin;
    begin += update_size(plan, b.end - 1);
    waits[b.end - 1] = true;
  }
  schedule.region_start = begin;
  schedule.region_entries = 0;
  for (const Branch& b : schedule.branches) {
    Region region(plan, tree, schedule.update_at);
    for (index_t s = b.begin; s < b.end; ++s) region.pass(s, waits);
    region.settle(0);
    schedule.region_entries = std::max(schedule.region_entries, region.peak());
  }
  Region region(plan, tree, schedule.update_at);
  for (const index_t s : schedule.top) region.pass(s, waits);
  region.settle(begin);
  const index_t regions = std::min<index_t>(schedule.threads, index_t(schedule.branches.size()));
  schedule.work_entries = begin + std::max(regions * schedule.region_entries, region.peak());
}

/// Makes the subtrees with these roots the branches and places all update matrices.
void take_cut(const Plan& plan, const Relatives& tree, const std::vector<double>& total,
              const std::vector<index_t>& roots, Schedule& schedule) {
  schedule.branches.clear();
  schedule.top.clear();
  std::vector<index_t> order = roots;
  std::sort(order.begin(), order.end(),
            [&](index_t a, index_t b) { return total[a] != total[b] ? total[a] > total[b] : a < b; });
  std::vector<bool> in_branch(plan.fronts());
  for (const index_t s : order) {
    schedule.branches.push_back({tree.first_descendant[s], s + 1});
    std::fill(in_branch.begin() + tree.first_descendant[s], in_branch.begin() + s + 1, true);
  }
  for (index_t s = 0; s < plan.fronts(); ++s)
    if (!in_branch[s]) schedule.top.push_back(s);
  place_updates(plan, tree, schedule);
}

void find_nodes(const Plan& plan, const Relatives& tree, const core::SparseTuning& tuning, Schedule& schedule) {
  schedule.nodes = schedule.branches;
  schedule.node_of.assign(plan.fronts(), -1);
  for (std::size_t b = 0; b < schedule.branches.size(); ++b) schedule.node_of[schedule.branches[b].end - 1] = int(b);
  for (const index_t s : schedule.top) {
    bool alone = plan.row_count(s) * plan.col_count(s) <= tuning.team;
    for (index_t c = tree.first_child[s]; c != none; c = tree.next_sibling[c])
      alone = alone && schedule.node_of[c] >= 0;
    if (alone) {
      schedule.node_of[s] = int(schedule.nodes.size());
      schedule.nodes.push_back({s, s + 1});
    } else {
      schedule.shared.push_back(s);
    }
  }
  schedule.below_nodes.assign(1, 0);
  for (const Branch& node : schedule.nodes)
    schedule.below_nodes.push_back(schedule.below_nodes.back() + update_order(plan, node.end - 1));
}

/// So that those of neighbouring columns are found together.
void sort_entries_of_top(Schedule& schedule) {
  const auto place = [](index_t target) { return target < 0 ? ~target : target; };
  std::vector<std::pair<index_t, index_t>> some;  // target, source
  for (const index_t s : schedule.top) {
    const index_t begin = schedule.entries.start[s], end = schedule.entries.start[s + 1];
    some.clear();
    for (index_t k = begin; k < end; ++k) some.push_back({schedule.entries.target[k], schedule.entries.source[k]});
    std::sort(some.begin(), some.end(), [&](const auto& a, const auto& b) {
      return place(a.first) != place(b.first) ? place(a.first) < place(b.first) : a.second < b.second;
    });
    for (index_t k = begin; k < end; ++k)
      std::tie(schedule.entries.target[k], schedule.entries.source[k]) = some[k - begin];
  }
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

double front_cost(const Plan& plan, index_t s, const core::SparseTuning& tuning) {
  const double m = double(plan.row_count(s)), w = double(plan.col_count(s));
  return w * (m * m - w * m + w * w / 3) + double(tuning.entry_cost) * m * m + double(tuning.front_cost);
}

std::size_t Schedule::bytes() const {
  const auto size = [](const auto&... vectors) { return ((vectors.size() * sizeof(vectors[0])) + ...); };
  return size(branches, top, first_child, next_sibling, update_at, nodes, node_of, below_nodes, shared, run_start, runs,
              entries.start, entries.source, entries.target);
}

Schedule make_schedule(const Plan& plan, int threads, const core::SparseTuning& tuning) {
  for (index_t s = 0; s < plan.fronts(); ++s)
    if (plan.row_count(s) > std::numeric_limits<int>::max())
      throw InvalidArgument("SparseCholesky: a front of " + std::to_string(plan.row_count(s)) +
                            " rows is more than BLAS can count");
  Schedule schedule;
  schedule.threads = threads;
  Relatives tree(plan);
  const std::vector<double> total = subtree_costs(plan, tuning);
  double whole = 0;
  for (const index_t s : tree.roots) whole += total[s];
  // A thread that has less to do than so many branches that are worth a thread costs more than it gains. The more
  // threads share a front, the more they wait for each other: more than eight must have more to do each. Xeon with 16
  // cores, shell2d:60 with 8, 10, 12 and 16 threads: factor 8.7, 8.3, 11.2 and 10.4 ms, solve 1.0, 1.0, 1.6 and 1.5.
  constexpr double branches_each = 20, branches_each_of_many = 8.5, few = 8;
  const double branches = whole / double(std::max<index_t>(1, tuning.branch_cost));
  const double useful = std::min(branches / branches_each, std::max(few, std::sqrt(branches / branches_each_of_many)));
  threads = int(std::clamp(useful, 1.0, double(threads)));
  schedule.threads = threads;
  const index_t allowed = plan.factor_entries / 100 * tuning.most_updates;
  std::vector<index_t> thriftiest;  // roots
  index_t least = std::numeric_limits<index_t>::max();
  if (threads > 1)
    for (const Cut& cut : cuts(plan, tree, total, threads, tuning)) {
      take_cut(plan, tree, total, cut.roots, schedule);
      if (schedule.work_entries < least) least = schedule.work_entries, thriftiest = cut.roots;
      if (least <= allowed) break;
    }
  if (least == std::numeric_limits<index_t>::max()) schedule.threads = 1;
  if (least > allowed) take_cut(plan, tree, total, thriftiest, schedule);
  for (index_t s = 0; s < plan.fronts(); ++s)
    schedule.largest_rows = std::max(schedule.largest_rows, plan.row_count(s));
  find_runs(plan, schedule);
  schedule.entries = entries_by_front(plan);
  if (schedule.threads > 1) {
    sort_entries_of_top(schedule);
    find_nodes(plan, tree, tuning, schedule);
  }
  schedule.first_child = std::move(tree.first_child);
  schedule.next_sibling = std::move(tree.next_sibling);
  return schedule;
}

}  // namespace trifactor::sparse
