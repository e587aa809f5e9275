#include <sparse/separator.hpp>

#include <algorithm>

namespace trifactor::sparse {

namespace {
constexpr int separator = 2;

/// The heavier part may weigh so much of the whole.
constexpr double max_share = 0.6;

/// What a bisection costs: the weight of its separator, and a little for parts of different weight.
double cost_of(const index_t weight[3]) {
  const double whole = double(weight[0] + weight[1] + weight[2]), larger = double(std::max(weight[0], weight[1]));
  const double unbalance = std::max(0.0, larger / whole - 0.5);
  const double too_heavy = larger > max_share * whole ? whole * (1 + unbalance) : 0;
  return double(weight[separator]) * (1 + 0.5 * unbalance) + too_heavy;
}

/// A heap of nodes with the greatest key on top; keys of its nodes may grow.
class NodeHeap {
 public:
  explicit NodeHeap(index_t nodes) : place_(nodes) { std::fill_n(place_.data(), nodes, -1); }
  bool empty() const { return heap_.empty(); }
  bool holds(node_t v) const { return place_[v] >= 0; }
  void clear() {
    for (const Entry& e : heap_) place_[e.node] = -1;
    heap_.clear();
  }
  void insert(node_t v, std::int64_t key) {
    heap_.push_back({});
    rise(node_t(heap_.size()) - 1, {key, v});
  }
  void raise(node_t v, std::int64_t key) { rise(place_[v], {key, v}); }
  node_t pop() {
    const node_t v = heap_.front().node;
    place_[v] = -1;
    const Entry last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) sink(last);
    return v;
  }

 private:
  struct Entry {
    std::int64_t key;
    node_t node;
  };
  void put(node_t at, const Entry& e) { heap_[at] = e, place_[e.node] = at; }
  void rise(node_t at, const Entry& e) {
    for (; at > 0 && heap_[(at - 1) / 2].key < e.key; at = (at - 1) / 2) put(at, heap_[(at - 1) / 2]);
    put(at, e);
  }
  void sink(const Entry& e) {
    const node_t size = node_t(heap_.size());
    node_t at = 0;
    for (node_t child = 1; child < size; at = child, child = 2 * child + 1) {
      if (child + 1 < size && heap_[child + 1].key > heap_[child].key) ++child;
      if (heap_[child].key <= e.key) break;
      put(at, heap_[child]);
    }
    put(at, e);
  }
  std::vector<Entry> heap_;
  Array<node_t> place_;  // of each node, or -1
};

/// Moves nodes of the separator into one part. The neighbours that such a node has in the other part come into the
/// separator instead.
class Mover {
 public:
  /// For graphs of up to so many nodes.
  explicit Mover(index_t nodes) : beyond_(nodes), heap_(nodes) {}

  /// Best moves first, worse ones in hope of better, and back to the best state seen: until that gains nothing.
  void refine(const WeightedGraph& g, Bisection& b, int passes) {
    int to = b.weight[0] <= b.weight[1] ? 0 : 1;
    for (int pass = 0, vain = 0; pass < passes && vain < 2; ++pass, to = 1 - to)
      vain = improve(g, b, to) ? 0 : vain + 1;
  }

  /// All is in part 1, but what grows from `seed` until part 0 is as heavy.
  void grow(const WeightedGraph& g, Bisection& b, node_t seed) {
    std::fill_n(b.part.data(), g.nodes, 1);
    b.separator.clear();
    b.weight[0] = b.weight[separator] = 0, b.weight[1] = g.total;
    moves_.clear(), time_ = 0;
    node_t next = seed;  // where to begin when a component is used up
    while (b.weight[0] < b.weight[1]) {
      if (!heap_.empty()) {
        move(g, b, 0);
        continue;
      }
      while (b.part[next] != 1) next = next + 1 == g.nodes ? 0 : next + 1;
      enter(g, b, next, 1);
    }
    finish(b);
  }

 private:
  struct Move {
    node_t node;
    unsigned char from;
  };

  /// By the separator's loss of weight, and of equal ones the latest.
  std::int64_t key(const WeightedGraph& g, node_t v) {
    return std::int64_t(g.weight[v] - beyond_[v]) * (std::int64_t(1) << 32) + ++time_;
  }
  /// v leaves its part, into which nothing moves, for the separator.
  void enter(const WeightedGraph& g, Bisection& b, node_t v, int from) {
    const node_t weight = g.weight[v];
    b.part[v] = separator;
    b.weight[from] -= weight, b.weight[separator] += weight;
    moves_.push_back({v, (unsigned char)from});
    node_t beyond = 0;
    for (index_t k = g.start[v]; k < g.start[v + 1]; ++k) {
      const node_t u = g.neighbours[k];
      if (b.part[u] == from) {
        beyond += g.weight[u];
      } else if (b.part[u] == separator && heap_.holds(u)) {
        beyond_[u] -= weight;
        heap_.raise(u, key(g, u));
      }
    }
    beyond_[v] = beyond;
    heap_.insert(v, key(g, v));
  }
  void move(const WeightedGraph& g, Bisection& b, int to) {
    const node_t v = heap_.pop();
    b.part[v] = (unsigned char)to;
    b.weight[separator] -= g.weight[v], b.weight[to] += g.weight[v];
    moves_.push_back({v, separator});
    for (index_t k = g.start[v]; k < g.start[v + 1]; ++k)
      if (b.part[g.neighbours[k]] == 1 - to) enter(g, b, g.neighbours[k], 1 - to);
  }
  /// Moves into one part only: a separator of two layers then loses one of them, without steps between the layers.
  bool improve(const WeightedGraph& g, Bisection& b, int to) {
    moves_.clear(), time_ = 0;
    for (const node_t v : b.separator) {
      node_t beyond = 0;
      for (index_t k = g.start[v]; k < g.start[v + 1]; ++k)
        if (b.part[g.neighbours[k]] == 1 - to) beyond += g.weight[g.neighbours[k]];
      beyond_[v] = beyond;
      heap_.insert(v, key(g, v));
    }
    const double before = cost_of(b.weight);
    double best = before;
    std::size_t best_moves = 0;
    // Moves without gain: enough for the separator to pass over two layers, and to find that a step or a slope pays.
    const index_t patience = std::clamp<index_t>(2 * index_t(b.separator.size()), 15, 1500);
    for (index_t vain = 0; vain < patience && !heap_.empty(); ++vain) {
      move(g, b, to);
      const double cost = cost_of(b.weight);
      if (cost < best) best = cost, best_moves = moves_.size(), vain = -1;
      if (double(b.weight[to]) > (max_share + 0.05) * double(g.total)) break;
    }
    for (; moves_.size() > best_moves; moves_.pop_back()) {
      const auto [v, from] = moves_.back();
      b.weight[b.part[v]] -= g.weight[v], b.weight[from] += g.weight[v];
      b.part[v] = from;
    }
    finish(b);
    return best < before;
  }
  /// Lists the separator anew: what stayed in it, and what came into it.
  void finish(Bisection& b) {
    heap_.clear();
    std::size_t kept = 0;
    for (const node_t v : b.separator)
      if (b.part[v] == separator) b.separator[kept++] = v;
    b.separator.resize(kept);
    for (const auto& [v, from] : moves_)
      if (from != separator && b.part[v] == separator) b.separator.push_back(v);
  }

  Array<node_t> beyond_;  // of a node in the separator: the weight of its neighbours in the part that shrinks
  NodeHeap heap_;         // the separator
  std::vector<Move> moves_;
  std::int64_t time_ = 0;
};

constexpr int max_passes = 8;
/// Graphs of up to so many nodes are cut directly.
constexpr node_t coarsest = 60;
/// Graphs of at least so many nodes are worth several attempts.
constexpr node_t many = 4000;
/// From so many nodes on one kind of matching does: the other costs a third of the time, and wins little.
constexpr node_t very_many = 100000;

template <class Attempt>
Bisection best_of(int attempts, const Attempt& attempt) {
  std::vector<Bisection> found(attempts);
  for_ranges(attempts, 1, [&](index_t a, index_t, index_t) { found[a] = attempt(a); });
  return std::move(*std::min_element(found.begin(), found.end(), [](const Bisection& x, const Bisection& y) {
    return cost_of(x.weight) < cost_of(y.weight);
  }));
}

Bisection cut_coarsest(const WeightedGraph& g, std::uint64_t seed) {
  const int attempts = g.nodes <= 2 * coarsest ? 5 : 2;
  Mover mover(g.nodes);
  Bisection best, next;
  for (int a = 0; a < attempts; ++a) {
    if (!next.part) next.part = Array<unsigned char>(g.nodes);
    mover.grow(g, next, node_t(spread(seed + std::uint64_t(a)) % std::uint64_t(g.nodes)));
    mover.refine(g, next, max_passes);
    if (!best.part || cost_of(next.weight) < cost_of(best.weight)) std::swap(best, next);
  }
  return best;
}

/// The bisection of a coarser graph on the finer one.
Bisection project(const WeightedGraph& finer, const Coarser& coarser, const Bisection& of) {
  Bisection b{Array<unsigned char>(finer.nodes), {of.weight[0], of.weight[1], of.weight[2]}, {}};
  for_ranges(finer.nodes, 4 * node_grain, [&](index_t, index_t begin, index_t end) {
    for (index_t u = begin; u < end; ++u) b.part[u] = of.part[coarser.of[u]];
  });
  b.separator.reserve(2 * of.separator.size());
  for (const node_t c : of.separator) {
    const auto [u, v] = coarser.two[c];
    b.separator.push_back(u);
    if (v != u) b.separator.push_back(v);
  }
  return b;
}

/// Coarsens to at most `least` nodes, cuts with `cut`, and refines on the way back.
template <class Cut>
Bisection multilevel(const WeightedGraph& g, node_t least, Match match, std::uint64_t seed, const Cut& cut) {
  std::vector<Coarser> levels;
  const auto graph = [&](std::size_t level) -> const WeightedGraph& {
    return level == 0 ? g : levels[level - 1].graph;
  };
  const index_t max_weight = std::max<index_t>(2, 3 * g.total / (2 * coarsest));
  while (graph(levels.size()).nodes > least) {
    const WeightedGraph& finer = graph(levels.size());
    Coarser coarser = coarsen(finer, max_weight, match, spread(seed + levels.size()));
    if (20 * index_t(coarser.graph.nodes) > 19 * index_t(finer.nodes)) break;
    levels.push_back(std::move(coarser));
  }
  Bisection b = cut(graph(levels.size()));
  Mover mover(levels.empty() ? 0 : g.nodes);
  for (; !levels.empty(); levels.pop_back()) {
    const WeightedGraph& finer = graph(levels.size() - 1);
    b = project(finer, levels.back(), b);
    mover.refine(finer, b, max_passes);
  }
  return b;
}

}  // namespace

Bisection bisect(const WeightedGraph& g, std::uint64_t seed) {
  const auto match = [](index_t attempt) { return attempt % 2 == 0 ? Match::Greedy : Match::Mutual; };
  const auto simple = [&](const WeightedGraph& of, index_t a, std::uint64_t s) {
    return multilevel(of, coarsest, match(a), s, [&](const WeightedGraph& last) { return cut_coarsest(last, s); });
  };
  if (g.nodes < many) return simple(g, index_t(seed >> 32), seed);
  // Both kinds of matching, and once more both from a coarser graph on, where they cost little.
  return best_of(g.nodes < very_many ? 2 : 1, [&](index_t a) {
    return multilevel(g, g.nodes / 12, match(a), spread(seed + 10 * a), [&](const WeightedGraph& coarser) {
      return best_of(2, [&](index_t b) { return simple(coarser, b, spread(seed + 10 * a + b + 1)); });
    });
  });
}

}  // namespace trifactor::sparse
