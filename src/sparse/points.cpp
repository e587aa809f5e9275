#include <sparse/points.hpp>

#include <sparse/pattern_check.hpp>
#include <sparse/tasks.hpp>

#include <numeric>

namespace trifactor::sparse {

namespace {

/// Ranges of columns that threads share. Each may need an array of its own for all columns: few.
index_t column_grain(index_t n) { return std::max<index_t>(1024, n / 64 + 1); }

/// x += by, where others may do so too.
template <class T>
T add_shared(T& x, T by, bool shared) {
  if (shared) return std::atomic_ref<T>(x).fetch_add(by, std::memory_order_relaxed);
  return std::exchange(x, T(x + by));
}

/// Checks a pattern. sums[i] becomes a number that columns with the same neighbours, themselves included, have in
/// common.
template <SparseIndex I>
PatternFacts check_and_sum(const Pattern<I>& p, bool duplicates, bool shared, std::vector<std::uint64_t>& sums) {
  const index_t n = p.rows, grain = column_grain(n);
  sums.resize(n);
  for_ranges(n, grain, [&](index_t, index_t begin, index_t end) {
    for (index_t i = begin; i < end; ++i) sums[i] = spread(std::uint64_t(i));
  });
  const index_t ranges = (n + grain - 1) / grain;
  std::vector<PatternFacts> facts(ranges);
  std::vector<std::exception_ptr> errors(ranges);  // the one that comes first in the pattern counts
  for_ranges(n, grain, [&](index_t r, index_t begin, index_t end) {
    try {
      index_t column = begin;
      std::uint64_t of_column = spread(std::uint64_t(begin)), sum = 0;
      facts[r] = check_entries(p, duplicates, begin, end, [&](index_t i, index_t j) {
        if (i == j) return;
        if (j != column) {
          add_shared(sums[column], sum, shared);
          column = j, of_column = spread(std::uint64_t(j)), sum = 0;
        }
        sum += spread(std::uint64_t(i));
        add_shared(sums[i], of_column, shared);
      });
      add_shared(sums[column], sum, shared);
    } catch (...) { errors[r] = std::current_exception(); }
  });
  PatternFacts all;
  for (index_t r = 0; r < ranges; ++r) {
    if (errors[r]) std::rethrow_exception(errors[r]);
    all.repeated = all.repeated || facts[r].repeated;
    all.links += facts[r].links;
  }
  return all;
}

/// f(index, column or row) for all entries beside the diagonal that are read, of columns begin to end - 1.
template <SparseIndex I, class F>
void for_entries(const Pattern<I>& p, index_t begin, index_t end, const F& f) {
  const Reader<I> reader{p};
  for (index_t j = begin; j < end; ++j)
    for (index_t k = p.start[j]; k < p.start[j + 1]; ++k)
      if (p.index[k] != I(j) && reader.in_triangle(j, p.index[k])) f(index_t(p.index[k]), j);
}

/// The first column with the same neighbours, for each: it is a neighbour itself.
template <SparseIndex I>
std::vector<node_t> leaders_of(const Pattern<I>& p, const std::vector<std::uint64_t>& sums) {
  std::vector<node_t> leader(p.rows);
  std::iota(leader.begin(), leader.end(), 0);
  for_ranges(p.rows, column_grain(p.rows), [&](index_t, index_t begin, index_t end) {
    for_entries(p, begin, end, [&](index_t i, index_t j) {
      if (sums[i] != sums[j]) return;
      std::atomic_ref<node_t> of_larger(leader[std::max(i, j)]);
      const node_t smaller = node_t(std::min(i, j));
      node_t now = of_larger.load(std::memory_order_relaxed);
      while (smaller < now && !of_larger.compare_exchange_weak(now, smaller, std::memory_order_relaxed)) {}
    });
  });
  return leader;
}

/// Points that are runs in an order: the first column of a run leads it.
void cut_into_runs(const std::vector<node_t>& order, std::vector<node_t>& leader) {
  const std::vector<node_t> set = leader;
  for (std::size_t j = 0; j < order.size(); ++j)
    leader[order[j]] = j > 0 && set[order[j]] == set[order[j - 1]] ? leader[order[j - 1]] : order[j];
}

/// Numbers points in the order in which their leaders come, and returns the point of each column.
std::vector<node_t> set_members(const std::vector<node_t>& leader, const std::vector<node_t>* order,
                                CompressedGraph& c) {
  const index_t n = index_t(leader.size());
  const auto column = [&](index_t j) { return order ? (*order)[j] : node_t(j); };
  std::vector<node_t> point(n);
  for (index_t j = 0; j < n; ++j) {
    const node_t i = column(j);
    if (leader[i] == i) {
      point[i] = node_t(c.weight.size());
      c.weight.push_back(1);
    } else {
      point[i] = point[leader[i]];
      ++c.weight[point[i]];
    }
  }
  c.member_start.assign(c.weight.size() + 1, 0);
  std::partial_sum(c.weight.begin(), c.weight.end(), c.member_start.begin() + 1);
  c.members.resize(n);
  std::vector<node_t> cursor(c.member_start.begin(), c.member_start.end() - 1);
  for (index_t j = 0; j < n; ++j) c.members[cursor[point[column(j)]]++] = column(j);
  return point;
}

/// Points are linked where their leaders are: one pattern entry for each link.
template <SparseIndex I>
void set_links(const Pattern<I>& p, const std::vector<node_t>& leader, const std::vector<node_t>& point, bool shared,
               Graph& graph, index_t points) {
  const index_t grain = column_grain(p.rows);
  const auto for_links = [&](const auto& f) {
    for_ranges(p.rows, grain, [&](index_t, index_t begin, index_t end) {
      for (index_t j = begin; j < end; ++j)
        if (leader[j] == node_t(j)) f(j);
    });
  };
  const auto for_others = [&](index_t j, const auto& f) {
    for_entries(p, j, j + 1, [&](index_t i, index_t) {
      if (leader[i] == node_t(i)) f(point[i]);
    });
  };
  graph.start.assign(points + 1, 0);
  for_links([&](index_t j) {
    index_t count = 0;
    for_others(j, [&](node_t other) { ++count, add_shared<index_t>(graph.start[other + 1], 1, shared); });
    add_shared(graph.start[point[j] + 1], count, shared);
  });
  std::partial_sum(graph.start.begin(), graph.start.end(), graph.start.begin());
  graph.neighbours.resize(graph.start.back());
  std::vector<index_t> cursor(graph.start.begin(), graph.start.end() - 1);
  for_links([&](index_t j) {
    index_t count = 0;
    for_others(j, [&](node_t) { ++count; });
    index_t own = add_shared(cursor[point[j]], count, shared);
    for_others(j, [&](node_t other) {
      graph.neighbours[own++] = other;
      graph.neighbours[add_shared<index_t>(cursor[other], 1, shared)] = point[j];
    });
  });
  for_ranges(points, node_grain, [&](index_t, index_t begin, index_t end) {
    for (index_t s = begin; s < end; ++s) {
      const auto from = graph.neighbours.begin() + graph.start[s], to = graph.neighbours.begin() + graph.start[s + 1];
      if (!std::is_sorted(from, to)) std::sort(from, to);
    }
  });
}

/// Every column as a point of its own.
CompressedGraph single_points(Graph graph, const std::vector<node_t>* order) {
  const index_t n = graph.nodes();
  CompressedGraph c;
  std::vector<node_t> leader(n);
  std::iota(leader.begin(), leader.end(), 0);
  const std::vector<node_t> point = set_members(leader, order, c);
  if (order) {
    Graph renumbered;
    renumbered.start.push_back(0);
    renumbered.neighbours.reserve(graph.neighbours.size());
    for (const node_t i : *order) {
      for (index_t k = graph.start[i]; k < graph.start[i + 1]; ++k)
        renumbered.neighbours.push_back(point[graph.neighbours[k]]);
      std::sort(renumbered.neighbours.begin() + renumbered.start.back(), renumbered.neighbours.end());
      renumbered.start.push_back(index_t(renumbered.neighbours.size()));
    }
    graph = std::move(renumbered);
  }
  c.graph = std::move(graph);
  return c;
}

}  // namespace

index_t CompressedGraph::links_of_columns() const {
  index_t links = 0;
  for (index_t s = 0; s < points(); ++s) {
    links += index_t(weight[s]) * (weight[s] - 1);
    for (index_t k = graph.start[s]; k < graph.start[s + 1]; ++k)
      links += index_t(weight[s]) * weight[graph.neighbours[k]];
  }
  return links / 2;
}

bool CompressedGraph::equal_weights() const {
  return std::all_of(weight.begin(), weight.end(), [&](node_t w) { return w == weight[0]; });
}

CompressedGraph compress(const Graph& graph) {
  const index_t n = graph.nodes();
  // Equal sets have equal sums.
  std::vector<std::uint64_t> sum(n);
  for (index_t i = 0; i < n; ++i) {
    sum[i] = spread(std::uint64_t(i));
    for (index_t k = graph.start[i]; k < graph.start[i + 1]; ++k) sum[i] += spread(std::uint64_t(graph.neighbours[k]));
  }
  // The earliest node of its set stands for it. Nodes of a set are neighbours, so only those need to be asked.
  CompressedGraph c;
  std::vector<node_t> set_of(n, -1);
  for (index_t i = 0; i < n; ++i) {
    if (set_of[i] >= 0) continue;
    const node_t set = node_t(c.weight.size());
    c.weight.push_back(1);
    set_of[i] = set;
    for (index_t k = graph.start[i]; k < graph.start[i + 1]; ++k) {
      const node_t j = graph.neighbours[k];
      if (set_of[j] < 0 && sum[j] == sum[i]) set_of[j] = set, ++c.weight[set];
    }
  }
  const index_t sets = index_t(c.weight.size());
  c.member_start.assign(sets + 1, 0);
  for (index_t s = 0; s < sets; ++s) c.member_start[s + 1] = c.member_start[s] + c.weight[s];
  c.members.resize(n);
  std::vector<node_t> cursor(c.member_start.begin(), c.member_start.end() - 1);
  for (index_t i = 0; i < n; ++i) c.members[cursor[set_of[i]]++] = node_t(i);

  if (sets == n) {
    c.graph = graph;
    return c;
  }
  std::vector<node_t> seen(sets, -1);
  c.graph.start.reserve(sets + 1);
  c.graph.start.push_back(0);
  for (index_t s = 0; s < sets; ++s) {
    const node_t i = c.members[c.member_start[s]];
    seen[s] = node_t(s);
    for (index_t k = graph.start[i]; k < graph.start[i + 1]; ++k) {
      const node_t other = set_of[graph.neighbours[k]];
      if (seen[other] == s) continue;
      seen[other] = node_t(s);
      c.graph.neighbours.push_back(other);
    }
    c.graph.start.push_back(index_t(c.graph.neighbours.size()));
  }
  return c;
}

template <SparseIndex I>
CompressedGraph points_of(const Pattern<I>& p, bool duplicates, int threads, const std::vector<node_t>* order) {
  check_shape(p);
  const bool shared = threads > 1 && p.entries() >= 10 * worth_waking;
  CompressedGraph c;
  bool repeated = false;
  index_t links = 0;
  with_threads(shared ? threads : 1, [&] {
    std::vector<std::uint64_t> sums;
    const PatternFacts facts = check_and_sum(p, duplicates, shared, sums);
    repeated = facts.repeated, links = facts.links;
    if (repeated) return;
    std::vector<node_t> leader = leaders_of(p, sums);
    if (order) cut_into_runs(*order, leader);
    const std::vector<node_t> point = set_members(leader, order, c);
    set_links(p, leader, point, shared, c.graph, index_t(c.weight.size()));
  });
  if (!repeated && c.links_of_columns() == links) return c;
  Graph graph = graph_of(p, duplicates);
  return order ? single_points(std::move(graph), order) : compress(graph);
}

Graph expand(const CompressedGraph& c) {
  std::vector<node_t> point(c.columns());
  for (index_t s = 0; s < c.points(); ++s)
    for (node_t k = c.member_start[s]; k < c.member_start[s + 1]; ++k) point[c.members[k]] = node_t(s);
  Graph graph;
  graph.start.reserve(c.columns() + 1);
  graph.start.push_back(0);
  for (index_t i = 0; i < c.columns(); ++i) {
    const auto add = [&](node_t s) {
      for (node_t k = c.member_start[s]; k < c.member_start[s + 1]; ++k)
        if (c.members[k] != node_t(i)) graph.neighbours.push_back(c.members[k]);
    };
    add(point[i]);
    for (index_t k = c.graph.start[point[i]]; k < c.graph.start[point[i] + 1]; ++k) add(c.graph.neighbours[k]);
    std::sort(graph.neighbours.begin() + graph.start.back(), graph.neighbours.end());
    graph.start.push_back(index_t(graph.neighbours.size()));
  }
  return graph;
}

template CompressedGraph points_of(const Pattern<std::int32_t>&, bool, int, const std::vector<node_t>*);
template CompressedGraph points_of(const Pattern<std::int64_t>&, bool, int, const std::vector<node_t>*);

}  // namespace trifactor::sparse
