#include <sparse/analyze.hpp>

#include <sparse/dissect.hpp>
#include <sparse/fronts.hpp>
#include <sparse/order.hpp>
#include <sparse/pattern_check.hpp>
#include <sparse/targets.hpp>
#include <sparse/tasks.hpp>

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
Tree tree_by(Analysis& analysis, const CompressedGraph& points, Ordering ordering, int threads) {
  analysis.ordering = ordering;
  const std::vector<node_t> order = [&] {
    switch (ordering) {
      case Ordering::Metis:
        return timed(analysis, "metis", [&] { return dissect(points.graph, points.weight.data(), threads); });
      case Ordering::Amd:
        return timed(analysis, "amd", [&] { return amd_order(points); });
      default:  // points are numbered as they are to come
        return natural_order(points.graph);
    }
  }();
  return timed(analysis, "tree", [&] { return make_tree(points, order, threads); });
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

/// How much faster so many threads are than one.
double speed_of(int threads, const core::SparseTuning& tuning) {
  return 1 + (threads - 1) * double(tuning.shared_speed) / 100;
}

/// Whether nested dissection takes less time than it may save on all factorizations and solves by AMD's tree.
bool dissection_may_pay(const CompressedGraph& points, const Tree& amd, double factorizations,
                        const core::SparseTuning& tuning, int threads) {
  const double n = double(points.columns()), count = double(points.points());
  if (amd.nonzeros == points.columns() + points.links_of_columns()) return false;  // no fill at all
  const double unknowns = n / count, links = double(points.graph.start.back());
  const double largest = double(*std::max_element(amd.count.begin(), amd.count.end())) / unknowns;

  const double speed = speed_of(threads, tuning);
  const double dissection =
      (double(tuning.metis_node_ns) * count + double(tuning.metis_entry_ns) * links) * std::log2(count + 1) / speed +
      double(tuning.tree_ns) * links;
  const double factor =
      (amd.flops / double(tuning.flops_per_ns) + double(tuning.nonzero_ns) * double(amd.nonzeros)) / speed;
  return dissection < factorizations * possible_gain(count, largest, tuning) * factor;
}

/// Whether there are so many threads that dissection takes about as long as AMD, which has one, takes alone: a twelfth
/// of the time that dissection would take with one (a quarter to a 37th). Small graphs are not worth it.
bool worth_both_at_once(const CompressedGraph& points, const core::SparseTuning& tuning, int threads) {
  constexpr double amd_share = 1.0 / 12;
  constexpr index_t large = 20000;  // points
  return points.points() >= large && amd_share * speed_of(threads, tuning) >= 1;
}

/// Both trees, in half the time or less. Returns that of AMD and leaves the other in `dissected`.
Tree trees_at_once(Analysis& analysis, const CompressedGraph& points, int threads, Tree& dissected) {
  Analysis beside;
  Tree amd;
  Failure failure;
  with_threads(threads, [&] {
#pragma omp taskgroup
    {
#pragma omp task default(shared)
      failure.guard([&] { amd = tree_by(beside, points, Ordering::Amd, 0); });
      failure.guard([&] { dissected = tree_by(analysis, points, Ordering::Metis, 0); });
    }
  });
  failure.rethrow();
  analysis.steps.insert(analysis.steps.end(), beside.steps.begin(), beside.steps.end());
  return amd;
}

/// AMD takes little time and is good for small graphs and for those that stay sparse, nested dissection for large ones.
Tree tree_by_choice(Analysis& analysis, const CompressedGraph& points, double factorizations,
                    const core::SparseTuning& tuning, int threads) {
  Tree amd, dissected;
  if (worth_both_at_once(points, tuning, threads)) {
    amd = trees_at_once(analysis, points, threads, dissected);
  } else {
    amd = tree_by(analysis, points, Ordering::Amd, threads);
    if (!dissection_may_pay(points, amd, factorizations, tuning, threads)) return amd;
    dissected = tree_by(analysis, points, Ordering::Metis, threads);
  }
  const bool better = dissected.flops < amd.flops;
  analysis.ordering = better ? Ordering::Metis : Ordering::Amd;
  return better ? std::move(dissected) : std::move(amd);
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
  const bool kept = options.ordering == Ordering::Given || options.ordering == Ordering::Natural;
  const CompressedGraph points = timed(analysis, "graph", [&] {
    if (!kept) return points_of(pattern, options.duplicates, threads);
    check_shape(pattern);
    const Graph no_links{std::vector<index_t>(pattern.rows + 1, 0), {}};
    const std::vector<node_t> order =
        options.ordering == Ordering::Given ? given_order(no_links, options.permutation) : natural_order(no_links);
    return points_of(pattern, options.duplicates, threads, &order);
  });
  const Tree tree = options.ordering == Ordering::Auto
                        ? tree_by_choice(analysis, points, double(options.expected_factorizations), tuning, threads)
                        : tree_by(analysis, points, options.ordering, threads);
  analysis.plan = timed(analysis, "fronts", [&] { return make_fronts(points, tree, tuning, threads); });
  timed(analysis, "targets", [&] { return set_targets(pattern, points, analysis.plan, threads), 0; });
  return analysis;
}

template Analysis analyze(const Pattern<std::int32_t>&, const AnalyzeOptions&, const core::SparseTuning&, int);
template Analysis analyze(const Pattern<std::int64_t>&, const AnalyzeOptions&, const core::SparseTuning&, int);

}  // namespace trifactor::sparse
