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

/// For each front: nanoseconds that the GPU takes for all fronts before it.
std::vector<double> time_on_gpu(const Plan& plan, const core::SparseTuning& tuning) {
  std::vector<index_t> depth(plan.fronts(), 0);
  index_t levels = 0;
  for (index_t s = plan.fronts() - 1; s >= 0; --s) {
    if (const index_t p = plan.parent[s]; p >= 0) depth[s] = depth[p] + 1;
    levels = std::max(levels, depth[s] + 1);
  }
  std::vector<index_t> widest(levels, 0);
  std::vector<double> before(1, 0.0);
  for (index_t s = 0; s < plan.fronts(); ++s) {
    index_t& columns = widest[depth[s]];
    double time = before.back() + (columns == 0 ? double(tuning.level_ns) : 0);
    const index_t more = std::max<index_t>(0, plan.col_count(s) - columns);
    columns += more;
    time += double(more * tuning.column_ns) + entries_of(plan, s) * double(tuning.entry_ps) / 1e3;
    before.push_back(time + front_flops(plan.row_count(s), plan.col_count(s)) / double(tuning.gpu_flops_per_ns));
  }
  return before;
}

/// Nanoseconds that the CPU takes for a front, and to hand it over.
double time_on_host(const Plan& plan, index_t s, const HostSpeed& host) {
  constexpr double efficiency = 0.5, entries_per_ns = 2;
  const double speed = efficiency * double(host.tuning.flops_per_ns) * host.threads;
  return front_cost(plan, s, host.tuning) / speed + entries_of(plan, s) / entries_per_ns;
}

}  // namespace

Branch choose_host_part(const Plan& plan, const std::vector<char>& in_subtree, const core::SparseTuning& gpu,
                        const HostSpeed& host) {
  constexpr double start_ns = 1e5;  // to wake the threads, and to copy values there and the factor back
  const index_t fronts = plan.fronts();
  const std::vector<double> gpu_time = time_on_gpu(plan, gpu);
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
    return start_ns + time[end] - time[begin] <= gpu_time[begin];
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
  constexpr double worth_it = 0.01;  // of the GPU's time
  const bool gains = gpu_time[end] - gpu_time[begin] >= worth_it * gpu_time[fronts];
  return gains || gpu.host_percent > 0 ? Branch{begin, end} : Branch{0, 0};
}

Plan plan_of_part(const Plan& plan, const Branch& part) {
  const auto starts = [&](const std::vector<index_t>& list, index_t zero) {
    std::vector<index_t> some(list.begin() + part.begin, list.begin() + part.end + 1);
    for (index_t& start : some) start -= zero;
    return some;
  };
  Plan result;
  result.n = plan.n, result.items = plan.items, result.permutation = plan.permutation;
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
