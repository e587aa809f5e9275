#include <sparse/order.hpp>

#include <trifactor/error.hpp>

#include <amd.h>
#include <metis.h>

#include <algorithm>
#include <limits>
#include <mutex>
#include <numeric>

namespace trifactor::sparse {

namespace {

static_assert(sizeof(idx_t) == sizeof(node_t), "METIS with 32-bit indices, as distributions package it");

/// Spreads the bits of a node's number, so that sums of them tell sets apart (the finalizer of splitmix64).
std::uint64_t spread(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

[[noreturn]] void out_of_memory(const char* who, const Graph& graph) {
  throw OutOfMemory(std::string("analyze: ") + who + " ran out of memory for a graph of " +
                        std::to_string(graph.nodes()) + " nodes and " + std::to_string(graph.start.back()) + " entries",
                    std::size_t(graph.start.back()) * sizeof(node_t));
}

std::vector<node_t> dissect(const Graph& graph, std::vector<node_t> weight) {
  idx_t n = idx_t(graph.nodes());
  std::vector<node_t> order(n), place(n);
  if (graph.start.back() == 0) return natural_order(graph);  // METIS asks for an edge
  std::vector<idx_t> start(graph.start.begin(), graph.start.end());
  std::vector<idx_t> neighbours = graph.neighbours;  // METIS takes them without const
  idx_t options[METIS_NOPTIONS];
  METIS_SetDefaultOptions(options);
  options[METIS_OPTION_NUMBERING] = 0;
  options[METIS_OPTION_SEED] = 1;
  options[METIS_OPTION_COMPRESS] = 0;  // done already
  static std::mutex one_at_a_time;     // METIS draws from rand(), which threads share
  const std::lock_guard lock(one_at_a_time);
  const int status = METIS_NodeND(&n, start.data(), neighbours.data(), weight.empty() ? nullptr : weight.data(),
                                  options, order.data(), place.data());
  if (status == METIS_ERROR_MEMORY) out_of_memory("METIS", graph);
  if (status != METIS_OK) throw Error("analyze: METIS failed with status " + std::to_string(status));
  return order;
}

}  // namespace

CompressedGraph compress(const Graph& graph) {
  const index_t n = graph.nodes();
  // Equal sets have equal sums. Different ones with equal sums (of 64 bits) would cost fill, and no correctness.
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

bool metis_can(const Graph& graph) { return graph.start.back() <= std::numeric_limits<idx_t>::max(); }

std::vector<node_t> metis_order(const Graph& graph) {
  const CompressedGraph c = compress(graph);
  if (c.graph.nodes() == graph.nodes()) return dissect(graph, {});
  std::vector<node_t> order;
  order.reserve(graph.nodes());
  for (const node_t s : dissect(c.graph, c.weight))
    order.insert(order.end(), c.members.begin() + c.member_start[s], c.members.begin() + c.member_start[s + 1]);
  return order;
}

std::vector<node_t> amd_order(const Graph& graph) {
  const index_t n = graph.nodes();
  if (graph.start.back() == 0) return natural_order(graph);
  int status;
  std::vector<node_t> order(n);
  if (graph.start.back() < std::numeric_limits<node_t>::max() / 4) {  // AMD's workspace is 1.2 times the graph and 8 n
    const std::vector<int> start(graph.start.begin(), graph.start.end());
    status = ::amd_order(int(n), start.data(), graph.neighbours.data(), order.data(), nullptr, nullptr);
  } else {
    const std::vector<SuiteSparse_long> start(graph.start.begin(), graph.start.end());
    const std::vector<SuiteSparse_long> neighbours(graph.neighbours.begin(), graph.neighbours.end());
    std::vector<SuiteSparse_long> long_order(n);
    status = int(::amd_l_order(n, start.data(), neighbours.data(), long_order.data(), nullptr, nullptr));
    std::copy(long_order.begin(), long_order.end(), order.begin());
  }
  if (status == AMD_OUT_OF_MEMORY) out_of_memory("AMD", graph);
  if (status != AMD_OK && status != AMD_OK_BUT_JUMBLED)
    throw Error("analyze: AMD failed with status " + std::to_string(status));
  return order;
}

std::vector<node_t> natural_order(const Graph& graph) {
  std::vector<node_t> order(graph.nodes());
  std::iota(order.begin(), order.end(), 0);
  return order;
}

std::vector<node_t> given_order(const Graph& graph, const std::vector<index_t>& permutation) {
  const index_t n = graph.nodes();
  if (index_t(permutation.size()) != n)
    refuse("the size of options.permutation", index_t(permutation.size()), "equal n = " + std::to_string(n));
  std::vector<node_t> order(n), place(n, -1);
  for (index_t j = 0; j < n; ++j) {
    const index_t i = permutation[j];
    const auto what = [&] { return "options.permutation[" + std::to_string(j) + "]"; };
    if (i < 0 || i >= n) refuse(what(), i, "be at least 0 and less than n = " + std::to_string(n));
    if (place[i] >= 0) refuse(what(), i, "appear once, but is at " + std::to_string(place[i]) + " too");
    place[i] = node_t(j);
    order[j] = node_t(i);
  }
  return order;
}

}  // namespace trifactor::sparse
