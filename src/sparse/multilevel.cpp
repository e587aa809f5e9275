#include <sparse/multilevel.hpp>

#include <algorithm>
#include <limits>
#include <numeric>

namespace trifactor::sparse {

namespace {

constexpr node_t nobody = -1;

/// Pairs of nodes. A link's key is its strength, then a random number that both ends agree on. A node chooses the
/// neighbour with the largest key; two that choose each other are matched, and the rest chooses again: the matching
/// that takes links by descending key, in any order of computation.
class Matching {
 public:
  Matching(const WeightedGraph& g, index_t max_weight, Match match, std::uint64_t seed)
      : g_(g),
        max_weight_(max_weight),
        seed_(seed),
        partner_(g.nodes),
        choice_(g.nodes),
        free_(g.nodes),
        random_(g.nodes),
        count_((g.nodes + node_grain - 1) / node_grain) {
    for_ranges(g.nodes, node_grain, [&](index_t r, index_t begin, index_t end) {
      count_[r] = end - begin;
      for (index_t u = begin; u < end; ++u) {
        partner_[u] = nobody, choice_[u] = free_[u] = node_t(u);
        random_[u] = std::uint32_t(spread(seed_ + std::uint64_t(u)) >> 32);
      }
    });
    constexpr int max_rounds = 8;
    if (match == Match::Greedy) match_in_ranges();
    index_t single = keep_free();
    for (int round = 0; round < max_rounds && single > 0; ++round) {
      if (g.strength)
        choose([&](index_t k) { return g.strength[k]; }, round == 0);
      else
        choose([](index_t) { return 1; }, round == 0);
      join();
      const index_t before = single;
      single = keep_free();
      if (20 * (before - single) < before) break;
    }
    if (10 * single > g.nodes) match_second_neighbours();
  }
  node_t partner(index_t u) const { return partner_[u] == nobody ? node_t(u) : partner_[u]; }

 private:
  /// f(u) for every node that has no partner yet.
  template <class F>
  void for_free(const F& f) {
    for_ranges(g_.nodes, node_grain, [&](index_t r, index_t begin, index_t) {
      for (index_t i = begin; i < begin + count_[r]; ++i) f(free_[i]);
    });
  }
  /// Drops those that have one from the lists, and returns how many are left.
  index_t keep_free() {
    for_ranges(g_.nodes, node_grain, [&](index_t r, index_t begin, index_t) {
      index_t kept = begin;
      for (index_t i = begin; i < begin + count_[r]; ++i)
        if (partner_[free_[i]] == nobody) free_[kept++] = free_[i];
      count_[r] = kept - begin;
    });
    return std::accumulate(count_.begin(), count_.end(), index_t(0));
  }
  /// Within each range: node after node takes the neighbour that it is linked to most strongly, of equal ones the
  /// lightest.
  void match_in_ranges() {
    const bool backwards = seed_ >> 33 & 1;
    for_ranges(g_.nodes, node_grain, [&](index_t, index_t begin, index_t end) {
      for (index_t i = begin; i < end; ++i) {
        const index_t u = backwards ? end - 1 - (i - begin) : i;
        if (partner_[u] != nobody) continue;
        node_t best = 0, lightest = 0, choice = nobody;
        for (index_t k = g_.start[u]; k < g_.start[u + 1]; ++k) {
          const node_t v = g_.neighbours[k], strength = g_.strength ? g_.strength[k] : 1;
          if (strength < best || (strength == best && g_.weight[v] >= lightest)) continue;
          const bool inside = v >= begin && v < end;
          if ((inside && partner_[v] != nobody) || index_t(g_.weight[u]) + g_.weight[v] > max_weight_) continue;
          best = strength, lightest = g_.weight[v], choice = v;
        }
        if (choice < begin || choice >= end) continue;  // none, or one of another range, which is chosen from later
        partner_[u] = choice, partner_[choice] = node_t(u);
      }
    });
  }
  template <class Strength>
  void choose(const Strength& strength, bool first) {
    for_free([&](node_t u) {
      if (choice_[u] == nobody) return;
      if (!first && partner_[choice_[u]] == nobody) return;  // it is free still, and nothing better has come
      std::uint64_t best = 0;
      node_t choice = nobody;
      for (index_t k = g_.start[u]; k < g_.start[u + 1]; ++k) {
        const node_t v = g_.neighbours[k];
        if (partner_[v] != nobody || index_t(g_.weight[u]) + g_.weight[v] > max_weight_) continue;
        const std::uint64_t key = std::uint64_t(strength(k)) << 32 | (random_[u] ^ random_[v]);
        if (key > best) best = key, choice = v;
      }
      choice_[u] = choice;
    });
  }
  void join() {
    for_free([&](node_t u) {
      const node_t v = choice_[u];
      if (v > u && choice_[v] == u) partner_[u] = v, partner_[v] = u;
    });
  }
  /// Pairs what is left over by a common neighbour, and what has none: leaves of stars and isolated nodes.
  void match_second_neighbours() {
    Array<node_t> waiting(g_.nodes + 1);
    std::fill_n(waiting.data(), g_.nodes + 1, nobody);
    for (node_t u = 0; u < g_.nodes; ++u) {
      if (partner_[u] != nobody) continue;
      const node_t by = g_.start[u] == g_.start[u + 1] ? g_.nodes : g_.neighbours[g_.start[u]];
      node_t& other = waiting[by];
      if (other == nobody || index_t(g_.weight[u]) + g_.weight[other] > max_weight_) {
        other = u;
      } else {
        partner_[u] = other, partner_[other] = u;
        other = nobody;
      }
    }
  }

  const WeightedGraph& g_;
  const index_t max_weight_;
  const std::uint64_t seed_;
  Array<node_t> partner_, choice_;
  Array<node_t> free_;  // nodes without a partner: of each range, at its begin
  Array<std::uint32_t> random_;
  std::vector<index_t> count_;  // of those of each range
};

/// The lists of one range of nodes of the coarser graph.
struct Rows {
  Array<node_t> neighbours, strength;
  index_t entries = 0;
};

/// Numbers pairs by their first node.
void number_pairs(const WeightedGraph& g, const Matching& matching, Coarser& coarser) {
  const index_t ranges = (g.nodes + node_grain - 1) / node_grain;
  std::vector<node_t> first(ranges + 1, 0);
  for_ranges(g.nodes, node_grain, [&](index_t r, index_t begin, index_t end) {
    node_t count = 0;
    for (index_t u = begin; u < end; ++u) count += matching.partner(u) >= node_t(u);
    first[r + 1] = count;
  });
  for (index_t r = 0; r < ranges; ++r) first[r + 1] += first[r];
  coarser.graph.nodes = first[ranges];
  coarser.of = Array<node_t>(g.nodes);
  coarser.two = Array<std::pair<node_t, node_t>>(first[ranges]);
  coarser.graph.weight = Array<node_t>(first[ranges]);
  for_ranges(g.nodes, node_grain, [&](index_t r, index_t begin, index_t end) {
    node_t next = first[r];
    for (index_t u = begin; u < end; ++u) {
      const node_t v = matching.partner(u);
      if (v < node_t(u)) continue;
      coarser.of[u] = coarser.of[v] = next;
      coarser.two[next] = {node_t(u), v};
      coarser.graph.weight[next++] = g.weight[u] + (v == node_t(u) ? 0 : g.weight[v]);
    }
  });
}

Rows merged_rows(const WeightedGraph& g, const Coarser& coarser, index_t begin, index_t end) {
  const auto degree = [&](node_t u) { return g.start[u + 1] - g.start[u]; };
  index_t most = 0;
  for (index_t c = begin; c < end; ++c) {
    const auto [u, v] = coarser.two[c];
    most += degree(u) + (u == v ? 0 : degree(v));
  }
  Rows rows{Array<node_t>(most), Array<node_t>(most)};
  node_t *const list = rows.neighbours.data(), *const sums = rows.strength.data();
  const Zeros<index_t> place(coarser.graph.nodes);  // where a node was put last, counted from 1
  for (index_t c = begin; c < end; ++c) {
    index_t count = rows.entries;
    const auto add = [&](node_t u) {
      for (index_t k = g.start[u]; k < g.start[u + 1]; ++k) {
        const node_t other = coarser.of[g.neighbours[k]], strength = g.strength ? g.strength[k] : 1;
        if (other == node_t(c)) continue;
        const index_t at = place[other] - 1;
        if (at >= rows.entries) {
          sums[at] = node_t(std::min<index_t>(index_t(sums[at]) + strength, std::numeric_limits<node_t>::max()));
        } else {
          list[count] = other, sums[count] = strength;
          place[other] = ++count;
        }
      }
    };
    const auto [u, v] = coarser.two[c];
    add(u);
    if (v != u) add(v);
    rows.entries = count;
    coarser.graph.start[c + 1] = rows.entries;
  }
  return rows;
}

}  // namespace

Coarser coarsen(const WeightedGraph& g, index_t max_weight, Match match, std::uint64_t seed) {
  Coarser coarser;
  number_pairs(g, Matching(g, max_weight, match, seed), coarser);
  WeightedGraph& c = coarser.graph;
  c.total = g.total;
  c.start = Array<index_t>(c.nodes + 1);
  c.start[0] = 0;
  const index_t ranges = (c.nodes + node_grain - 1) / node_grain;
  std::vector<Rows> rows(ranges);
  for_ranges(c.nodes, node_grain,
             [&](index_t r, index_t begin, index_t end) { rows[r] = merged_rows(g, coarser, begin, end); });
  if (ranges <= 1) {
    if (ranges == 1) c.neighbours = std::move(rows[0].neighbours), c.strength = std::move(rows[0].strength);
    return coarser;
  }
  std::vector<index_t> first(ranges + 1, 0);
  for (index_t r = 0; r < ranges; ++r) first[r + 1] = first[r] + rows[r].entries;
  c.neighbours = Array<node_t>(first[ranges]), c.strength = Array<node_t>(first[ranges]);
  for_ranges(c.nodes, node_grain, [&](index_t r, index_t begin, index_t end) {
    std::copy_n(rows[r].neighbours.data(), rows[r].entries, c.neighbours.data() + first[r]);
    std::copy_n(rows[r].strength.data(), rows[r].entries, c.strength.data() + first[r]);
    for (index_t u = begin; u < end; ++u) c.start[u + 1] += first[r];
  });
  return coarser;
}

}  // namespace trifactor::sparse
