// Nested dissection and its parts, and an analysis with several threads.
#include <sparse/analyze.hpp>
#include <sparse/dissect.hpp>
#include <sparse/entries.hpp>
#include <sparse/leaf.hpp>
#include <sparse/order.hpp>
#include <sparse/separator.hpp>
#include <sparse/tree.hpp>
#include <trifactor/error.hpp>

#include <gtest/gtest.h>
#include <metis.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <thread>

namespace trifactor::sparse {
namespace {

Graph graph_by(node_t n, const std::vector<std::pair<node_t, node_t>>& links) {
  std::vector<std::set<node_t>> lists(n);
  for (const auto& [i, j] : links)
    if (i != j) lists[i].insert(j), lists[j].insert(i);
  Graph graph;
  graph.start.push_back(0);
  for (const auto& list : lists) {
    graph.neighbours.insert(graph.neighbours.end(), list.begin(), list.end());
    graph.start.push_back(index_t(graph.neighbours.size()));
  }
  return graph;
}

/// A grid of `side` points in each of `dimensions`; corners: also linked across faces and corners.
Graph grid(node_t side, int dimensions, bool corners) {
  const node_t layers = dimensions == 3 ? side : 1;
  std::vector<std::pair<node_t, node_t>> links;
  const auto at = [&](node_t x, node_t y, node_t z) { return x + side * (y + side * z); };
  for (node_t z = 0; z < layers; ++z)
    for (node_t y = 0; y < side; ++y)
      for (node_t x = 0; x < side; ++x)
        for (node_t step = 1; step < 27; ++step) {
          const node_t dx = step % 3, dy = step / 3 % 3, dz = step / 9;  // 0, 1, and 2 for -1
          const auto moved = [](node_t from, node_t d) { return from + (d == 2 ? -1 : d); };
          const node_t u = moved(x, dx), v = moved(y, dy), w = moved(z, dz);
          const bool inside = u >= 0 && v >= 0 && w >= 0 && u < side && v < side && w < layers;
          if (inside && (corners || (dx > 0) + (dy > 0) + (dz > 0) == 1)) links.emplace_back(at(x, y, z), at(u, v, w));
        }
  return graph_by(side * side * layers, links);
}

Graph path(node_t n) {
  std::vector<std::pair<node_t, node_t>> links;
  for (node_t i = 1; i < n; ++i) links.emplace_back(i - 1, i);
  return graph_by(n, links);
}
Graph star(node_t n) {
  std::vector<std::pair<node_t, node_t>> links;
  for (node_t i = 0; i < n; ++i) links.emplace_back(n / 2, i);
  return graph_by(n, links);
}
Graph complete(node_t n) {
  Graph graph;
  graph.start.push_back(0);
  for (node_t i = 0; i < n; ++i) {
    for (node_t j = 0; j < n; ++j)
      if (j != i) graph.neighbours.push_back(j);
    graph.start.push_back(index_t(graph.neighbours.size()));
  }
  return graph;
}
Graph tangle(node_t n, index_t links, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::pair<node_t, node_t>> list;
  for (index_t k = 0; k < links; ++k) list.emplace_back(node_t(random() % n), node_t(random() % n));
  return graph_by(n, list);
}
/// Two graphs beside each other, their nodes in turn.
Graph both(const Graph& a, const Graph& b) {
  const index_t n = std::max(a.nodes(), b.nodes());
  std::vector<std::pair<node_t, node_t>> links;
  for (const Graph* graph : {&a, &b})
    for (index_t i = 0; i < graph->nodes(); ++i)
      for (index_t k = graph->start[i]; k < graph->start[i + 1]; ++k)
        links.emplace_back(2 * i + (graph == &b), 2 * graph->neighbours[k] + (graph == &b));
  return graph_by(node_t(2 * n), links);
}

/// Every node as a point of so many columns.
CompressedGraph with_weights(Graph graph, std::vector<node_t> weight) {
  CompressedGraph c{std::move(graph), std::move(weight), {0}, {}};
  for (const node_t w : c.weight) c.member_start.push_back(c.member_start.back() + w);
  c.members.resize(c.member_start.back());
  std::iota(c.members.begin(), c.members.end(), 0);
  return c;
}
CompressedGraph with_weight(const Graph& graph, node_t weight) {
  return with_weights(graph, std::vector<node_t>(graph.nodes(), weight));
}

bool is_permutation_of(std::vector<node_t> order, index_t n) {
  std::sort(order.begin(), order.end());
  for (index_t i = 0; i < index_t(order.size()); ++i)
    if (order[i] != i) return false;
  return index_t(order.size()) == n;
}

WeightedGraph weighted(const CompressedGraph& c) {
  WeightedGraph g;
  g.nodes = node_t(c.points()), g.total = c.columns();
  g.start = Array<index_t>(g.nodes + 1), g.neighbours = Array<node_t>(c.graph.start.back());
  g.weight = Array<node_t>(g.nodes);
  std::copy(c.graph.start.begin(), c.graph.start.end(), g.start.data());
  std::copy(c.graph.neighbours.begin(), c.graph.neighbours.end(), g.neighbours.data());
  std::copy(c.weight.begin(), c.weight.end(), g.weight.data());
  return g;
}

std::vector<node_t> by_metis(CompressedGraph c) {
  std::vector<idx_t> start(c.graph.start.begin(), c.graph.start.end()), order(c.points()), place(c.points());
  idx_t n = idx_t(c.points()), options[METIS_NOPTIONS];
  METIS_SetDefaultOptions(options);
  options[METIS_OPTION_SEED] = 1;
  options[METIS_OPTION_COMPRESS] = 0;
  EXPECT_EQ(METIS_NodeND(&n, start.data(), c.graph.neighbours.data(), c.weight.data(), options, order.data(),
                         place.data()),
            METIS_OK);
  return order;
}

TEST(Dissection, IsTheSameForAnyNumberOfThreads) {
  for (const CompressedGraph& c : {with_weight(grid(22, 3, false), 1), with_weight(grid(19, 3, true), 3),
                                   with_weight(grid(90, 2, true), 6), with_weight(grid(35, 2, true), 2),
                                   with_weight(tangle(9000, 12000, 1), 1)}) {
    const std::vector<node_t> expected = dissect(c.graph, c.weight.data(), 1);
    EXPECT_TRUE(is_permutation_of(expected, c.points()));
    for (const int threads : {1, 2, 3, 8, 8}) {
      if (TRIFACTOR_TEST_SANITIZED && threads != 3) continue;
      EXPECT_EQ(dissect(c.graph, c.weight.data(), threads), expected) << threads;
    }
    if (TRIFACTOR_TEST_SANITIZED) continue;
    std::vector<std::vector<node_t>> found(3);
    std::vector<std::thread> callers;
    for (auto& order : found) callers.emplace_back([&] { order = dissect(c.graph, c.weight.data(), 2); });
    for (auto& caller : callers) caller.join();
    for (const auto& order : found) EXPECT_EQ(order, expected);
  }
}

TEST(Dissection, HasAboutTheFillOfMetis) {
  if (TRIFACTOR_TEST_SANITIZED) GTEST_SKIP() << "of quality";
  const std::pair<const char*, CompressedGraph> cases[] = {
      {"flat", with_weight(grid(60, 2, false), 1)},      {"flat, 100", with_weight(grid(100, 2, false), 1)},
      {"solid", with_weight(grid(14, 3, false), 1)},     {"solid, 24", with_weight(grid(24, 3, false), 1)},
      {"elastic", with_weight(grid(12, 3, true), 3)},    {"elastic, 17", with_weight(grid(17, 3, true), 3)},
      {"shell", with_weight(grid(40, 2, true), 6)},      {"shell, 90", with_weight(grid(90, 2, true), 6)},
      {"tangle", with_weight(tangle(3000, 4500, 2), 1)}, {"tangle, sparse", with_weight(tangle(9000, 10000, 3), 1)}};
  double sum = 0;
  for (const auto& [name, c] : cases) {
    const Tree ours = make_tree(c, dissect(c.graph, c.weight.data(), 2), 1), theirs = make_tree(c, by_metis(c), 1);
    const double ratio = double(ours.nonzeros) / double(theirs.nonzeros);
    EXPECT_LE(ratio, 1.10) << name;
    sum += std::log(ratio);
  }
  EXPECT_LE(std::exp(sum / double(std::size(cases))), 1.05);
}

TEST(Dissection, OfSimpleGraphsHasAsLittleFillAsPossible) {
  for (const node_t n : {0, 1, 2, 3, 149, 150, 151, 400, 7000})
    for (const node_t weight : {1, 3}) {
      const auto nonzeros = [&](const CompressedGraph& c, const char* name) {
        const std::vector<node_t> order = dissect(c.graph, c.weight.data(), 2);
        EXPECT_TRUE(is_permutation_of(order, n)) << name << ", " << n;
        return make_tree(c, order, 1).nonzeros;
      };
      const auto entries = [](const CompressedGraph& c) { return c.columns() + c.links_of_columns(); };
      const CompressedGraph none = with_weight(graph_by(n, {}), weight), tree = with_weight(star(n), weight),
                            chain = with_weight(path(n), weight);
      EXPECT_EQ(nonzeros(none, "no links"), entries(none));
      EXPECT_EQ(nonzeros(tree, "star"), entries(tree));
      EXPECT_LE(nonzeros(chain, "path"), 2 * entries(chain)) << "a part between two separators has fill";
    }
  for (const node_t n : {2, 100, 151, 600, 2500}) {  // the last one by AMD
    const CompressedGraph c = with_weight(complete(n), 1);
    const std::vector<node_t> order = dissect(c.graph, c.weight.data(), 2);
    EXPECT_TRUE(is_permutation_of(order, n));
  }
}

TEST(Dissection, TakesAnyGraph) {
  std::mt19937 random(5);
  Graph with_dense_rows = grid(80, 2, false);
  std::vector<std::pair<node_t, node_t>> links;
  for (index_t i = 0; i < with_dense_rows.nodes(); ++i) {
    for (index_t k = with_dense_rows.start[i]; k < with_dense_rows.start[i + 1]; ++k)
      links.emplace_back(i, with_dense_rows.neighbours[k]);
    links.emplace_back(i, 17), links.emplace_back(i, 4000);
  }
  with_dense_rows = graph_by(node_t(with_dense_rows.nodes()), links);
  const Graph graphs[] = {with_dense_rows,
                          both(grid(30, 2, false), path(500)),
                          both(both(star(700), complete(60)), both(tangle(900, 1500, 1), path(900))),
                          tangle(5000, 20000, 2),
                          tangle(6000, 3000, 3)};  // thousands of components
  for (const Graph& graph : graphs) {
    std::vector<node_t> weight(graph.nodes());
    for (node_t& w : weight) w = node_t(1 + random() % 5);
    weight[graph.nodes() / 2] = 100000;  // heavier than all others
    for (const bool heavy : {false, true}) {
      const CompressedGraph c = heavy ? with_weights(graph, weight) : with_weight(graph, 1);
      const std::vector<node_t> order = dissect(graph, c.weight.data(), 1);
      ASSERT_TRUE(is_permutation_of(order, graph.nodes()));
      EXPECT_EQ(dissect(graph, c.weight.data(), 3), order);
      const Tree ours = make_tree(c, order, 1), natural = make_tree(c, natural_order(graph), 1);
      EXPECT_LE(ours.nonzeros, natural.nonzeros);
    }
  }
  const Tree dense = make_tree(with_weight(with_dense_rows, 1), dissect(with_dense_rows, nullptr, 1), 1);
  const Tree plain = make_tree(with_weight(grid(80, 2, false), 1), dissect(grid(80, 2, false), nullptr, 1), 1);
  EXPECT_LE(dense.nonzeros, plain.nonzeros + 3 * 6400) << "two dense rows cost their own entries";
}

TEST(Separators, LeaveTwoPartsWithoutALink) {
  for (const Graph& graph : {grid(40, 2, false), grid(41, 2, true), grid(13, 3, false), grid(20, 3, true),
                             tangle(2000, 3000, 4), star(500), path(300), complete(80), both(path(200), path(90))})
    for (const std::uint64_t seed : {1, 2, 3, 4}) {
      const CompressedGraph c = with_weight(graph, node_t(seed));
      const Bisection b = bisect(weighted(c), spread(seed));
      index_t weight[3] = {0, 0, 0};
      for (index_t i = 0; i < graph.nodes(); ++i) {
        weight[b.part[i]] += c.weight[i];
        for (index_t k = graph.start[i]; k < graph.start[i + 1]; ++k)
          ASSERT_NE(b.part[i] + b.part[graph.neighbours[k]], 1) << "a link between the parts";
      }
      for (int p = 0; p < 3; ++p) ASSERT_EQ(weight[p], b.weight[p]);
      std::set<node_t> listed(b.separator.begin(), b.separator.end());
      EXPECT_EQ(listed.size(), b.separator.size());
      for (const node_t v : b.separator) EXPECT_EQ(b.part[v], 2);
      EXPECT_EQ(index_t(listed.size()) * index_t(seed), weight[2]);
    }
}

TEST(Separators, OfGridsAreLayers) {
  for (const node_t side : {20, 50, 100}) {
    const WeightedGraph g = weighted(with_weight(grid(side, 2, true), 2));
    const Bisection b = bisect(g, 7);
    EXPECT_LE(b.weight[2], 2 * side * 5 / 4) << side;
    EXPECT_LE(std::max(b.weight[0], b.weight[1]), g.total * 61 / 100);
  }
}

TEST(Coarsening, KeepsWeightsAndLinks) {
  for (const Graph& graph :
       {grid(70, 2, true), grid(20, 3, false), tangle(6000, 9000, 6), star(3000), graph_by(40, {})})
    for (const Match match : {Match::Greedy, Match::Mutual}) {
      WeightedGraph finer = weighted(with_weight(graph, 3));
      for (int level = 0; level < 3; ++level) {
        const Coarser coarser = coarsen(finer, 20, match, 11);
        const WeightedGraph& g = coarser.graph;
        if (level == 0) { EXPECT_LE(20 * g.nodes, 19 * finer.nodes); }
        EXPECT_EQ(g.total, finer.total);
        std::vector<index_t> weight(g.nodes, 0);
        for (node_t u = 0; u < finer.nodes; ++u) weight[coarser.of[u]] += finer.weight[u];
        std::map<std::pair<node_t, node_t>, index_t> strength;
        for (node_t u = 0; u < finer.nodes; ++u)
          for (index_t k = finer.start[u]; k < finer.start[u + 1]; ++k) {
            const node_t a = coarser.of[u], b = coarser.of[finer.neighbours[k]];
            if (a != b) strength[{a, b}] += finer.strength ? finer.strength[k] : 1;
          }
        for (node_t c = 0; c < g.nodes; ++c) {
          ASSERT_EQ(g.weight[c], weight[c]);
          EXPECT_LE(g.weight[c], 20);
          const auto [u, v] = coarser.two[c];
          ASSERT_TRUE(coarser.of[u] == c && coarser.of[v] == c);
          for (index_t k = g.start[c]; k < g.start[c + 1]; ++k) {
            const auto found = strength.find({c, g.neighbours[k]});
            ASSERT_TRUE(found != strength.end());
            ASSERT_EQ(g.strength[k], found->second);
            strength.erase(found);
          }
        }
        EXPECT_TRUE(strength.empty());
        finer = std::move(const_cast<WeightedGraph&>(g));
        if (finer.nodes < 1000) break;
      }
    }
}

TEST(Leaves, TakeANodeOfLeastDegreeNext) {
  std::mt19937 random(9);
  for (const bool equal : {true, false})
    for (const node_t count : {1, 2, 40, 130}) {
      const Graph graph = tangle(200, 500, unsigned(count));
      std::vector<node_t> weight(200), nodes(200), local(200, -1);
      for (node_t& w : weight) w = equal ? 3 : node_t(1 + random() % 4);
      std::iota(nodes.begin(), nodes.end(), 0);
      std::shuffle(nodes.begin(), nodes.end(), random);
      nodes.resize(count);
      std::set<node_t> left(nodes.begin(), nodes.end());
      LeafOrder().run(graph, weight.data(), nodes.data(), count, local.data());
      std::vector<std::set<node_t>> lists(200);
      for (index_t i = 0; i < 200; ++i)
        lists[i].insert(graph.neighbours.begin() + graph.start[i], graph.neighbours.begin() + graph.start[i + 1]);
      const auto degree = [&](node_t i) {
        index_t sum = 0;
        for (const node_t j : lists[i]) sum += weight[j];
        return sum;
      };
      for (const node_t pivot : nodes) {
        ASSERT_EQ(left.count(pivot), 1u);
        for (const node_t other : left) EXPECT_LE(degree(pivot), degree(other));
        left.erase(pivot);
        for (const node_t i : lists[pivot]) {
          lists[i].insert(lists[pivot].begin(), lists[pivot].end());
          lists[i].erase(i), lists[i].erase(pivot);
        }
      }
    }
}

/// The lower triangle of a matrix with so many unknowns on every node of a graph.
struct Lower {
  std::vector<std::int64_t> start{0}, index;

  Lower(const Graph& graph, index_t unknowns) {
    for (index_t i = 0; i < graph.nodes() * unknowns; ++i) {
      const index_t node = i / unknowns;
      for (index_t j = i; j < (node + 1) * unknowns; ++j) index.push_back(j);
      for (index_t k = graph.start[node]; k < graph.start[node + 1]; ++k)
        for (index_t m = 0; m < unknowns && graph.neighbours[k] > node; ++m)
          index.push_back(graph.neighbours[k] * unknowns + m);
      start.push_back(std::int64_t(index.size()));
    }
  }
  Pattern<std::int64_t> pattern() const {
    const index_t n = index_t(start.size()) - 1;
    return {.rows = n, .cols = n, .start = start.data(), .index = index.data()};
  }
};

TEST(Threads, MakeTheSamePlan) {
  const std::pair<Graph, index_t> cases[] = {
      {grid(20, 3, false), 1}, {grid(18, 3, true), 3}, {grid(75, 2, true), 6}, {grid(14, 3, true), 3}};
  for (const auto& [graph, unknowns] : cases) {
    if (TRIFACTOR_TEST_SANITIZED && unknowns == 3) continue;
    const Lower lower(graph, unknowns);
    std::vector<index_t> given(lower.start.size() - 1);
    std::iota(given.rbegin(), given.rend(), 0);
    for (const Ordering ordering : {Ordering::Metis, Ordering::Amd, Ordering::Natural, Ordering::Given}) {
      AnalyzeOptions options{.ordering = ordering};
      if (ordering == Ordering::Given) options.permutation = given;
      const Plan one = analyze(lower.pattern(), options, {}, 1).plan;
      for (const int threads : {2, 8}) {
        if (TRIFACTOR_TEST_SANITIZED && threads == 2) continue;
        const Plan many = analyze(lower.pattern(), options, {}, threads).plan;
        EXPECT_EQ(many.permutation, one.permutation);
        EXPECT_EQ(many.rows, one.rows);
        EXPECT_EQ(many.place, one.place);
        EXPECT_EQ(many.target, one.target);
        EXPECT_EQ(many.level_fronts, one.level_fronts);
        EXPECT_EQ(many.flops, one.flops);
      }
    }
  }
}

TEST(Threads, OfACallerAreLeftAlone) {
  const Lower small(grid(60, 2, false), 1), large(grid(TRIFACTOR_TEST_SANITIZED ? 14 : 18, 3, true), 3);
  for (const Lower* lower : {&small, &large}) {
    const Plan expected = analyze(lower->pattern(), {.ordering = Ordering::Metis}, {}, 1).plan;
    std::vector<Plan> found(6);
#pragma omp parallel for num_threads(3) schedule(dynamic, 1)
    for (int k = 0; k < 6; ++k) found[k] = analyze(lower->pattern(), {.ordering = Ordering::Metis}, {}, 1 + k % 3).plan;
    for (const Plan& plan : found) EXPECT_EQ(plan.rows, expected.rows);
  }
}

TEST(Threads, RunBothOrderingsAtOnceWhereThereAreMany) {
  const Lower lower(grid(29, 3, false), 1);
  core::SparseTuning tuning;
  tuning.shared_speed = 1000;  // as if two threads were eleven times as fast as one
  const Analysis at_once = analyze(lower.pattern(), {}, tuning, 3);
  const Analysis metis = analyze(lower.pattern(), {.ordering = Ordering::Metis}, tuning, 1);
  EXPECT_EQ(at_once.ordering, Ordering::Metis);
  EXPECT_EQ(at_once.plan.rows, metis.plan.rows);
  std::set<std::string> names;
  for (const auto& step : at_once.steps) names.insert(step.name);
  EXPECT_EQ(names, (std::set<std::string>{"graph", "amd", "metis", "tree", "fronts", "targets"}));
}

TEST(Threads, SortEntriesByFront) {
  const Lower lower(grid(18, 3, true), 3);
  const Plan plan = analyze(lower.pattern(), {.ordering = Ordering::Metis}, {}, 2).plan;
  const Entries by_front = entries_by_front(plan);
  ASSERT_EQ(by_front.start.back(), index_t(lower.index.size()));
  for (index_t s = 0; s < plan.fronts(); ++s)
    for (index_t k = by_front.start[s]; k < by_front.start[s + 1]; ++k) {
      const index_t target = by_front.target[k], at = target < 0 ? ~target : target;
      ASSERT_EQ(target, plan.target[by_front.source[k]]);
      ASSERT_TRUE(at >= plan.factor_start[s] && at < plan.factor_start[s + 1]);
      ASSERT_TRUE(k == by_front.start[s] || by_front.source[k - 1] < by_front.source[k]);
    }
}

TEST(Threads, NameTheFirstErrorOfAPattern) {
  Lower lower(grid(25, 3, true), 2);
  const index_t late = index_t(lower.index.size()) - 1, early = late / 3;
  lower.index[late] = -5, lower.index[early] = 1 << 30;
  for (const int threads : {1, 2, 8}) try {
      analyze(lower.pattern(), {}, {}, threads);
      FAIL();
    } catch (const InvalidArgument& error) {
      EXPECT_NE(std::string(error.what()).find("index[" + std::to_string(early) + "]"), std::string::npos)
          << error.what();
    }
}

TEST(Points, AreFoundInEveryFormOfThePattern) {
  const std::pair<Graph, index_t> cases[] = {{grid(9, 2, true), 3}, {grid(30, 3, false), 2}, {tangle(300, 500, 8), 1}};
  for (const auto& [graph, unknowns] : cases) {
    const Lower lower(graph, unknowns);
    Pattern<std::int64_t> pattern = lower.pattern();
    const CompressedGraph expected = compress(graph_of(pattern, false));
    for (const int threads : {1, 4})
      for (const bool rows : {false, true}) {
        pattern.compressed = rows ? Compressed::Rows : Compressed::Columns;
        pattern.stored = rows ? Stored::Upper : Stored::Lower;
        const CompressedGraph c = points_of(pattern, false, threads);
        EXPECT_EQ(c.members, expected.members);
        EXPECT_EQ(c.weight, expected.weight);
        EXPECT_EQ(c.graph.start, expected.graph.start);
        EXPECT_EQ(c.graph.neighbours, expected.graph.neighbours);
        EXPECT_EQ(c.links_of_columns(), index_t(lower.index.size()) - pattern.rows);
      }
    const Graph columns = expand(expected), direct = graph_of(lower.pattern(), false);
    EXPECT_EQ(columns.start, direct.start);
    EXPECT_EQ(columns.neighbours, direct.neighbours);
  }
}

}  // namespace
}  // namespace trifactor::sparse
