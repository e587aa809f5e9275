#include <sparse/dissect.hpp>

#include <sparse/leaf.hpp>
#include <sparse/order.hpp>
#include <sparse/separator.hpp>

#include <cmath>

namespace trifactor::sparse {

namespace {

/// Parts of up to so many nodes are ordered by minimum degree. Smaller ones would cost more time; in larger ones more
/// fill comes about: 0.6 percent in the mean at 200, 3 percent at 400.
constexpr node_t leaf_nodes = 150;

/// Parts without a separator, such as complete graphs, of up to so many nodes are ordered as small ones are.
constexpr node_t max_leaf_nodes = 2000;

/// From so many nodes on it pays to wake other threads: a node takes some 5 microseconds.
constexpr index_t worth_sharing = 1000;

/// A part of the graph, and where it is.
struct Part {
  WeightedGraph graph;
  Array<node_t> node;       // the node of the whole graph that each node is
  node_t* order = nullptr;  // where its nodes are to be written
  std::uint64_t path = 1;   // from the whole graph down to it: 2 path + 0 or 1 for its own parts
};

/// The numbers that nodes of each part of a bisection get there.
struct Places {
  Array<node_t> place;  // of each node
  node_t count[3] = {0, 0, 0};

  explicit Places(const Bisection& b, index_t nodes) : place(nodes) {
    const index_t ranges = (nodes + node_grain - 1) / node_grain;
    std::vector<node_t> first(3 * (ranges + 1), 0);
    for_ranges(nodes, node_grain, [&](index_t r, index_t begin, index_t end) {
      for (index_t u = begin; u < end; ++u) ++first[3 * (r + 1) + b.part[u]];
    });
    for (index_t k = 3; k < 3 * (ranges + 1); ++k) first[k] += first[k - 3];
    for (int p = 0; p < 3; ++p) count[p] = first[3 * ranges + p];
    for_ranges(nodes, node_grain, [&](index_t r, index_t begin, index_t end) {
      for (index_t u = begin; u < end; ++u) place[u] = first[3 * r + b.part[u]]++;
    });
  }
};

/// The two parts of a part; the separator is written to its place in the order.
struct Halves {
  std::unique_ptr<Part> half[2];

  Halves(const Part& part, const Bisection& b, const Places& places) {
    const WeightedGraph& g = part.graph;
    node_t* const order[3] = {part.order, part.order + places.count[0], part.order + places.count[0] + places.count[1]};
    for (int p = 0; p < 2; ++p) {
      half[p] = std::make_unique<Part>();
      half[p]->order = order[p], half[p]->path = 2 * part.path + p;
      half[p]->node = Array<node_t>(places.count[p]);
      WeightedGraph& h = half[p]->graph;
      h.nodes = places.count[p], h.total = b.weight[p];
      h.weight = Array<node_t>(h.nodes), h.start = Array<index_t>(h.nodes + 1);
      h.start[0] = 0;
    }
    for_ranges(g.nodes, node_grain, [&](index_t, index_t begin, index_t end) {
      for (index_t u = begin; u < end; ++u) {
        const int p = b.part[u];
        const node_t to = places.place[u];
        if (p == 2) {
          order[2][to] = part.node[u];
          continue;
        }
        half[p]->node[to] = part.node[u], half[p]->graph.weight[to] = g.weight[u];
        index_t degree = 0;
        for (index_t k = g.start[u]; k < g.start[u + 1]; ++k) degree += b.part[g.neighbours[k]] == p;
        half[p]->graph.start[to + 1] = degree;
      }
    });
    for (auto& h : half) {
      for (node_t u = 0; u < h->graph.nodes; ++u) h->graph.start[u + 1] += h->graph.start[u];
      h->graph.neighbours = Array<node_t>(h->graph.entries());
    }
    for_ranges(g.nodes, node_grain, [&](index_t, index_t begin, index_t end) {
      for (index_t u = begin; u < end; ++u) {
        const int p = b.part[u];
        if (p == 2) continue;
        const WeightedGraph& h = half[p]->graph;
        index_t to = h.start[places.place[u]];
        for (index_t k = g.start[u]; k < g.start[u + 1]; ++k)
          if (b.part[g.neighbours[k]] == p) h.neighbours[to++] = places.place[g.neighbours[k]];
      }
    });
  }
};

class Dissection {
 public:
  Dissection(const Graph& graph, const node_t* weight) : graph_(graph), weight_(weight), local_(graph.nodes()) {
    for_ranges(graph.nodes(), 4 * node_grain,
               [&](index_t, index_t begin, index_t end) { std::fill(local_.data() + begin, local_.data() + end, -1); });
  }

  void start(std::unique_ptr<Part> part) noexcept {
    failure_.guard([&] { run(std::move(part)); });
  }
  void finish() const { failure_.rethrow(); }

  std::unique_ptr<Part> whole(node_t* order) const {
    auto part = std::make_unique<Part>();
    const node_t n = node_t(graph_.nodes());
    WeightedGraph& g = part->graph;
    g.nodes = n, part->order = order;
    g.start = Array<index_t>(n + 1), g.neighbours = Array<node_t>(graph_.start.back());
    g.weight = Array<node_t>(n), part->node = Array<node_t>(n);
    g.start[n] = graph_.start[n];
    std::atomic<index_t> total = 0;
    for_ranges(n, node_grain, [&](index_t, index_t begin, index_t end) {
      index_t sum = 0;
      for (index_t u = begin; u < end; ++u) {
        part->node[u] = node_t(u), g.start[u] = graph_.start[u];
        sum += g.weight[u] = weight_ ? weight_[u] : 1;
      }
      std::copy(graph_.neighbours.begin() + graph_.start[begin], graph_.neighbours.begin() + graph_.start[end],
                g.neighbours.data() + graph_.start[begin]);
      total += sum;
    });
    g.total = total;
    return part;
  }
  /// Nodes with very many neighbours come last: they would be in all separators. The bound is AMD's.
  std::unique_ptr<Part> without_dense_nodes(std::unique_ptr<Part> part) const {
    const WeightedGraph& g = part->graph;
    const double bound = std::max(16.0, 10 * std::sqrt(double(g.nodes)));
    Bisection b{Array<unsigned char>(g.nodes), {g.total, 0, 0}, {}};
    std::atomic<bool> any = false;
    for_ranges(g.nodes, node_grain, [&](index_t, index_t begin, index_t end) {
      for (index_t u = begin; u < end; ++u) {
        const bool dense = double(g.start[u + 1] - g.start[u]) > bound;
        b.part[u] = dense ? 2 : 0;
        if (dense) any = true;
      }
    });
    if (!any) return part;
    for (node_t u = 0; u < g.nodes; ++u)
      if (b.part[u] == 2) b.weight[0] -= g.weight[u];
    return std::move(Halves(*part, b, Places(b, g.nodes)).half[0]);
  }

 private:
  /// Cuts a part, leaves one of the two to another task, and goes on with the other.
  void run(std::unique_ptr<Part> part) {
    while (part->graph.nodes > leaf_nodes && part->graph.entries() > 0) {
      const Bisection b = bisect(part->graph, spread(part->path));
      const Places places(b, part->graph.nodes);
      // Where hardly anything is cut off, going on would take a time that grows with the square of the nodes.
      if (std::max(places.count[0], places.count[1]) > index_t(part->graph.nodes) * 49 / 50) break;
      Halves halves(*part, b, places);
      part = std::move(halves.half[0]);
      spawn(std::move(halves.half[1]));
    }
    order_leaf(*part);
  }
  void spawn(std::unique_ptr<Part> part) {
    Part* const raw = part.release();
#pragma omp task default(none) firstprivate(raw)
    {
      std::unique_ptr<Part> owned(raw);
      start(std::move(owned));
    }
  }
  void order_leaf(const Part& part) {
    const WeightedGraph& g = part.graph;
    std::copy_n(part.node.data(), g.nodes, part.order);
    if (g.entries() == 0) return;
    if (g.nodes <= max_leaf_nodes) {
      LeafOrder().run(graph_, weight_, part.order, g.nodes, local_.data());
      return;
    }
    const std::vector<node_t> order = amd_order(
        {{g.start.data(), g.start.data() + g.nodes + 1}, {g.neighbours.data(), g.neighbours.data() + g.entries()}});
    for (node_t j = 0; j < g.nodes; ++j) part.order[j] = part.node[order[j]];
  }

  const Graph& graph_;
  const node_t* const weight_;
  Array<node_t> local_;  // of nodes in leaves: their numbers there; else -1
  Failure failure_;
};

}  // namespace

std::vector<node_t> dissect(const Graph& graph, const node_t* weight, int threads) {
  std::vector<node_t> order(graph.nodes());
  with_threads(graph.nodes() < worth_sharing ? 1 : threads, [&] {
    Dissection dissection(graph, weight);
    std::unique_ptr<Part> part = dissection.without_dense_nodes(dissection.whole(order.data()));
#pragma omp taskgroup
    dissection.start(std::move(part));
    dissection.finish();
  });
  return order;
}

}  // namespace trifactor::sparse
