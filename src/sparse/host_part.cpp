#include <sparse/host_part.hpp>

#include <sparse/fronts.hpp>
#include <sparse/schedule.hpp>

#include <algorithm>
#include <utility>

namespace trifactor::sparse {

namespace {

double entries_of(const Plan& plan, index_t s) {
  const double rows = double(plan.row_count(s)), below = rows - double(plan.col_count(s));
  return rows * double(plan.col_count(s)) + below * below / 2;  // factor and update matrix
}

/// Nanoseconds that the GPU takes: for all fronts before each one, level by level, and for the front by itself.
struct TimeOnGpu {
  std::vector<double> before, alone;
};
TimeOnGpu time_on_gpu(const Plan& plan, const core::SparseTuning& tuning) {
  std::vector<index_t> depth(plan.fronts(), 0);
  index_t levels = 0;
  for (index_t s = plan.fronts() - 1; s >= 0; --s) {
    if (const index_t p = plan.parent[s]; p >= 0) depth[s] = depth[p] + 1;
    levels = std::max(levels, depth[s] + 1);
  }
  std::vector<index_t> widest(levels, 0);
  TimeOnGpu time{{0.0}, {}};
  for (index_t s = 0; s < plan.fronts(); ++s) {
    const index_t columns = plan.col_count(s), below = plan.row_count(s) - columns;
    const double work = entries_of(plan, s) * double(tuning.entry_ps) / 1e3 +
                        front_flops(plan.row_count(s), columns) / double(tuning.gpu_flops_per_ns);
    const double by_itself = work + double(columns * tuning.column_ns);
    time.alone.push_back(by_itself + double(tuning.level_ns));
    // Fronts of a batch share what their level takes.
    index_t& shared = widest[depth[s]];
    const double first_of_level = shared == 0 ? double(tuning.level_ns) : 0;
    const index_t more = std::max<index_t>(0, columns - shared);
    const bool alone = columns > tuning.alone || below > tuning.alone_below;
    shared = std::max(shared, alone ? 1 : columns);
    time.before.push_back(time.before.back() + first_of_level +
                          (alone ? by_itself : work + double(more * tuning.column_ns)));
  }
  return time;
}

/// Nanoseconds that the CPU takes for a front, and to hand it over.
double time_on_host(const Plan& plan, index_t s, const HostSpeed& host) {
  constexpr double efficiency = 0.2, entries_per_ns = 2;
  const double speed = efficiency * double(host.tuning.flops_per_ns) * host.threads;
  return front_cost(plan, s, host.tuning) / speed + entries_of(plan, s) / entries_per_ns;
}

}  // namespace

Branch choose_host_part(const Plan& plan, const std::vector<char>& in_subtree, const core::SparseTuning& gpu,
                        const HostSpeed& host) {
  constexpr double start_ns = 1e5;  // to wake the threads, and to copy values there and the factor back
  const index_t fronts = plan.fronts();
  const TimeOnGpu gpu_time = time_on_gpu(plan, gpu);
  std::vector<index_t> first(fronts);                             // front of the subtree
  std::vector<double> flops(fronts + 1, 0), time(fronts + 1, 0);  // of all fronts before one
  for (index_t s = 0; s < fronts; ++s) {
    first[s] = s;
    flops[s + 1] = flops[s] + front_flops(plan.row_count(s), plan.col_count(s));
    time[s + 1] = time[s] + time_on_host(plan, s, host);
  }
  for (index_t s = 0; s < fronts; ++s)
    if (const index_t p = plan.parent[s]; p >= 0) first[p] = std::min(first[p], first[s]);
  const auto fits = [&](index_t begin, index_t end) {
    if (gpu.host_percent > 0) return flops[end] - flops[begin] <= flops[fronts] * double(gpu.host_percent) / 100;
    return start_ns + time[end] - time[begin] <= gpu_time.before[begin];
  };
  const auto may_end_at = [&](index_t s) {  // a subtree, with front s
    return in_subtree.empty() || plan.parent[s] < 0 || !in_subtree[plan.parent[s]];
  };
  // Down from the last root to the largest subtree that fits, and then subtrees before it.
  index_t end = fronts;
  while (end > 0 && !(may_end_at(end - 1) && fits(first[end - 1], end))) {
    if (first[end - 1] == end - 1) return {0, 0};  // a leaf
    --end;                                         // its last child
  }
  index_t begin = end;
  while (begin > 0 && may_end_at(begin - 1) && fits(first[begin - 1], end)) begin = first[begin - 1];
  if (gpu.host_percent > 0) return {begin, end};
  // The fronts above come one by one, which without a part of the CPU are in levels with others.
  double together = start_ns + gpu_time.before[begin];
  for (index_t s = end; s < fronts; ++s) together += gpu_time.alone[s];
  return together < gpu_time.before[fronts] ? Branch{begin, end} : Branch{0, 0};
}

Plan plan_of_part(const Plan& plan, const Branch& part) {
  const auto starts = [&](const std::vector<index_t>& list, index_t zero) {
    std::vector<index_t> some(list.begin() + part.begin, list.begin() + part.end + 1);
    for (index_t& start : some) start -= zero;
    return some;
  };
  Plan result;
  result.n = plan.n, result.items = plan.items;
  result.first = starts(plan.first, 0);
  const index_t first_row = plan.row_start[part.begin], first_entry = plan.factor_start[part.begin];
  result.row_start = starts(plan.row_start, first_row);
  result.factor_start = starts(plan.factor_start, first_entry);
  result.factor_entries = result.factor_start.back();
  const auto rows = [&](const std::vector<index_t>& list) {
    return std::vector<index_t>(list.begin() + first_row, list.begin() + plan.row_start[part.end]);
  };
  result.rows = rows(plan.rows), result.place = rows(plan.place);
  for (index_t s = part.begin; s < part.end; ++s) {
    const bool inside = plan.parent[s] >= 0 && plan.parent[s] < part.end;
    result.parent.push_back(inside ? plan.parent[s] - part.begin : -1);
  }
  result.target = plan.target;
  for (index_t& target : result.target) {
    if (target == Plan::nowhere) continue;
    const index_t at = (target < 0 ? ~target : target) - first_entry;
    if (at < 0 || at >= result.factor_entries)
      target = Plan::nowhere;
    else
      target = target < 0 ? ~at : at;
  }
  return result;
}

}  // namespace trifactor::sparse
