#include <sparse/analyze.hpp>

#include <sparse/fronts.hpp>
#include <sparse/order.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>

namespace trifactor::sparse {

namespace {

/// Runs a step and writes down how long it took.
template <class Run>
auto timed(Analysis& analysis, const char* name, Run run) {
  using clock = std::chrono::steady_clock;
  const auto begin = clock::now();
  auto result = run();
  analysis.steps.push_back({name, std::chrono::duration<double>(clock::now() - begin).count()});
  return result;
}

/// The tree in one certain order.
Tree tree_by(Analysis& analysis, const Graph& graph, Ordering ordering, const std::vector<index_t>& given) {
  analysis.ordering = ordering;
  const std::vector<node_t> order = [&] {
    switch (ordering) {
      case Ordering::Metis:
        return timed(analysis, "metis", [&] { return metis_order(graph); });
      case Ordering::Amd:
        return timed(analysis, "amd", [&] { return amd_order(graph); });
      case Ordering::Given:
        return timed(analysis, "given", [&] { return given_order(graph, given); });
      default:
        return timed(analysis, "natural", [&] { return natural_order(graph); });
    }
  }();
  return timed(analysis, "tree", [&] { return make_tree(graph, order); });
}

/// The share of AMD's work that nested dissection may save, from the largest column of L, measured in points of a mesh.
/// METIS cuts a mesh in a solid body of N points so that it has 1.45 N^2/3 (1.1 to 1.5 in poisson3d:15 to 50 and
/// elastic3d:8 to 30); with AMD it has 1.6 to 2.7 N^2/3, and needs 1.1 to 3.5 times the flops, which go with its
/// square. Below, a mesh is flat: 1.5 to 2.8 N^1/2 with either, and the flops are 0.8 to 1.6 times. Above is no mesh
/// but a random graph (2.8 to 4.7 N^2/3), which has no small separators: METIS needs 1.2 to 1.5 times the flops.
double possible_gain(double points, double largest, const core::SparseTuning& tuning) {
  constexpr double of_dissection = 1.65, of_no_mesh = 3;  // the first with a margin: METIS's own time is an estimate
  const double any = double(tuning.metis_gain) / 100, face = std::pow(points, 2.0 / 3);
  if (largest <= of_dissection * face || largest > of_no_mesh * face) return any;
  const double ratio = of_dissection * face / largest;
  return std::max(any, 1 - ratio * ratio);
}

/// Whether METIS takes less time than it may save on all factorizations and solves by AMD's tree.
bool metis_may_pay(const Graph& graph, const Tree& amd, double factorizations, const core::SparseTuning& tuning,
                   int threads) {
  const double n = double(graph.nodes()), entries = double(graph.start.back());
  if (double(amd.nonzeros) == n + entries / 2) return false;  // no fill at all
  // METIS sees columns with the same entries, the unknowns of a point, as one; AMD leaves them neighbours.
  const double points = n - double(std::count(amd.follows.begin(), amd.follows.end(), char(true)));
  const double unknowns = n / points;
  const double links = points * std::max(0.0, entries / n - (unknowns - 1)) / unknowns;
  const double largest = double(*std::max_element(amd.count.begin(), amd.count.end())) / unknowns;

  const double metis =
      (double(tuning.metis_node_ns) * points + double(tuning.metis_entry_ns) * links) * std::log2(points + 1) +
      double(tuning.tree_ns) * entries;
  const double speed = 1 + (threads - 1) * double(tuning.shared_speed) / 100;
  const double factor =
      (amd.flops / double(tuning.flops_per_ns) + double(tuning.nonzero_ns) * double(amd.nonzeros)) / speed;
  return metis < factorizations * possible_gain(points, largest, tuning) * factor;
}

/// AMD takes little time and is good for small graphs and for those that stay sparse, nested dissection for large ones.
Tree tree_by_choice(Analysis& analysis, const Graph& graph, double factorizations, const core::SparseTuning& tuning,
                    int threads) {
  Tree amd = tree_by(analysis, graph, Ordering::Amd, {});
  if (!metis_can(graph) || !metis_may_pay(graph, amd, factorizations, tuning, threads)) return amd;
  Tree metis = tree_by(analysis, graph, Ordering::Metis, {});
  if (metis.flops < amd.flops) return metis;
  analysis.ordering = Ordering::Amd;
  return amd;
}

Tree tree_of(Analysis& analysis, const Graph& graph, const AnalyzeOptions& options, const core::SparseTuning& tuning,
             int threads) {
  if (options.ordering == Ordering::Auto)
    return tree_by_choice(analysis, graph, double(options.expected_factorizations), tuning, threads);
  if (options.ordering == Ordering::Metis && !metis_can(graph)) {
    analysis.note = "AMD instead of METIS, which counts in 32 bits: the graph has " +
                    std::to_string(graph.start.back()) + " entries";
    return tree_by(analysis, graph, Ordering::Amd, {});
  }
  return tree_by(analysis, graph, options.ordering, options.permutation);
}

}  // namespace

template <SparseIndex I>
Analysis analyze(const Pattern<I>& pattern, const AnalyzeOptions& options, const core::SparseTuning& tuning,
                 int threads) {
  if (options.ordering != Ordering::Given && !options.permutation.empty())
    refuse("the size of options.permutation", index_t(options.permutation.size()), "be 0 unless ordering is Given");
  if (options.expected_factorizations < 1)
    refuse("options.expected_factorizations", options.expected_factorizations, "be at least 1");
  Analysis analysis;
  const Graph graph = timed(analysis, "graph", [&] { return graph_of(pattern, options.duplicates); });
  const Tree tree = tree_of(analysis, graph, options, tuning, threads);
  analysis.plan = timed(analysis, "fronts", [&] { return make_fronts(graph, tree, tuning); });
  timed(analysis, "targets", [&] { return set_targets(pattern, analysis.plan), 0; });
  return analysis;
}

template Analysis analyze(const Pattern<std::int32_t>&, const AnalyzeOptions&, const core::SparseTuning&, int);
template Analysis analyze(const Pattern<std::int64_t>&, const AnalyzeOptions&, const core::SparseTuning&, int);

}  // namespace trifactor::sparse
