#include <sparse/analyze.hpp>

#include <sparse/fronts.hpp>
#include <sparse/order.hpp>

#include <chrono>

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

/// AMD is good for small graphs and for those that stay sparse, nested dissection for large ones. Between them both are
/// tried, if AMD leaves so much work that METIS is worth its time.
Tree tree_by_choice(Analysis& analysis, const Graph& graph, const core::SparseTuning& tuning) {
  const index_t n = graph.nodes();
  if (n >= tuning.amd_to && metis_can(graph)) return tree_by(analysis, graph, Ordering::Metis, {});
  Tree amd = tree_by(analysis, graph, Ordering::Amd, {});
  const bool little_work = amd.flops <= double(tuning.both) * double(graph.start.back());
  if (n < tuning.metis_from || little_work || !metis_can(graph)) return amd;
  Tree metis = tree_by(analysis, graph, Ordering::Metis, {});
  if (metis.flops < amd.flops) return metis;
  analysis.ordering = Ordering::Amd;
  return amd;
}

Tree tree_of(Analysis& analysis, const Graph& graph, const AnalyzeOptions& options, const core::SparseTuning& tuning) {
  if (options.ordering == Ordering::Auto) return tree_by_choice(analysis, graph, tuning);
  if (options.ordering == Ordering::Metis && !metis_can(graph)) {
    analysis.note = "AMD instead of METIS, which counts in 32 bits: the graph has " +
                    std::to_string(graph.start.back()) + " entries";
    return tree_by(analysis, graph, Ordering::Amd, {});
  }
  return tree_by(analysis, graph, options.ordering, options.permutation);
}

}  // namespace

template <SparseIndex I>
Analysis analyze(const Pattern<I>& pattern, const AnalyzeOptions& options, const core::SparseTuning& tuning) {
  if (options.ordering != Ordering::Given && !options.permutation.empty())
    refuse("the size of options.permutation", index_t(options.permutation.size()), "be 0 unless ordering is Given");
  Analysis analysis;
  const Graph graph = timed(analysis, "graph", [&] { return graph_of(pattern, options.duplicates); });
  const Tree tree = tree_of(analysis, graph, options, tuning);
  analysis.plan = timed(analysis, "fronts", [&] { return make_fronts(graph, tree, tuning); });
  timed(analysis, "targets", [&] { return set_targets(pattern, analysis.plan), 0; });
  return analysis;
}

template Analysis analyze(const Pattern<std::int32_t>&, const AnalyzeOptions&, const core::SparseTuning&);
template Analysis analyze(const Pattern<std::int64_t>&, const AnalyzeOptions&, const core::SparseTuning&);

}  // namespace trifactor::sparse
