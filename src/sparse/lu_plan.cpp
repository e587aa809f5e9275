#include <sparse/lu_plan.hpp>

#include <sparse/order.hpp>
#include <sparse/pattern_check.hpp>
#include <sparse/tree.hpp>

#include <colamd.h>

#include <chrono>

namespace trifactor::sparse {

namespace {

/// A by columns in its own order.
struct Columns {
  std::vector<int> start, row;
  std::vector<int> place;  // of each given entry

  index_t n() const { return index_t(start.size()) - 1; }
};

/// Entries by their index: entry source[k], of column (row) major[k], comes k-th.
struct Transposed {
  std::vector<int> start, major, source;
};

Transposed transpose(index_t n, const int* start, const int* index) {
  Transposed t;
  t.start.assign(n + 1, 0), t.major.resize(start[n]), t.source.resize(start[n]);
  for (int k = 0; k < start[n]; ++k) ++t.start[index[k] + 1];
  for (index_t i = 0; i < n; ++i) t.start[i + 1] += t.start[i];
  std::vector<int> next(t.start.begin(), t.start.end() - 1);
  for (index_t j = 0; j < n; ++j)
    for (int k = start[j]; k < start[j + 1]; ++k) {
      const int to = next[index[k]]++;
      t.major[to] = int(j), t.source[to] = k;
    }
  return t;
}

/// Keeps one place for entries that have the same row and column.
void merge_repeated(Columns& columns) {
  const index_t n = columns.n();
  std::vector<int> place_of_row(n, -1), place(columns.row.size());  // of row i in this column; of each entry
  int count = 0;
  for (index_t j = 0; j < n; ++j) {
    const int begin = columns.start[j], first = count;
    columns.start[j] = count;
    for (int k = begin; k < columns.start[j + 1]; ++k) {
      const int i = columns.row[k];
      if (place_of_row[i] < first) place_of_row[i] = count, columns.row[count++] = i;
      place[k] = place_of_row[i];
    }
  }
  columns.start[n] = count;
  columns.row.resize(count);
  for (int& k : columns.place) k = place[k];
}

template <SparseIndex I>
Columns columns_of(const Pattern<I>& p, bool duplicates) {
  if (p.stored != Stored::Full)
    throw InvalidArgument("analyze: pattern.stored must be Full: LU reads every entry of the matrix");
  check_shape(p);
  if (p.entries() > std::numeric_limits<int>::max())
    refuse("pattern.entries()", p.entries(), "be at most " + std::to_string(std::numeric_limits<int>::max()));
  const bool repeated = check_entries(p, duplicates, [](index_t, index_t) {}).repeated;
  const index_t n = p.rows;
  Columns columns;
  if (n == 0) {
    columns.start = {0};
    return columns;
  }
  columns.start.assign(p.start, p.start + n + 1);
  columns.row.assign(p.index, p.index + p.entries());
  columns.place.resize(columns.row.size());
  if (p.compressed == Compressed::Rows) {
    Transposed t = transpose(n, columns.start.data(), columns.row.data());
    for (std::size_t k = 0; k < t.source.size(); ++k) columns.place[t.source[k]] = int(k);
    columns.start = std::move(t.start), columns.row = std::move(t.major);
  } else {
    for (std::size_t k = 0; k < columns.place.size(); ++k) columns.place[k] = int(k);
  }
  if (repeated) merge_repeated(columns);
  return columns;
}

/// The graph of A + A^T.
Graph symmetric_graph(const Columns& columns) {
  const index_t n = columns.n();
  const Transposed rows = transpose(n, columns.start.data(), columns.row.data());
  Graph graph;
  graph.start.reserve(n + 1);
  graph.start.push_back(0);
  std::vector<int> seen(n, -1);
  for (index_t j = 0; j < n; ++j) {
    const auto take = [&](int i) {
      if (i != j && seen[i] != j) graph.neighbours.push_back(i);
      seen[i] = int(j);
    };
    for (int k = columns.start[j]; k < columns.start[j + 1]; ++k) take(columns.row[k]);
    for (int k = rows.start[j]; k < rows.start[j + 1]; ++k) take(rows.major[k]);
    graph.start.push_back(index_t(graph.neighbours.size()));
  }
  return graph;
}

/// COLAMD, in 64 bits: SuperLU brings a copy of the 32-bit one under the same name.
std::vector<node_t> colamd_order(const Columns& columns) {
  const auto n = SuiteSparse_long(columns.n()), entries = SuiteSparse_long(columns.row.size());
  std::vector<SuiteSparse_long> work(colamd_l_recommended(entries, n, n)),
      order(columns.start.begin(), columns.start.end());
  std::copy(columns.row.begin(), columns.row.end(), work.begin());
  SuiteSparse_long stats[COLAMD_STATS];
  if (!colamd_l(n, n, SuiteSparse_long(work.size()), work.data(), order.data(), nullptr, stats))
    throw Error("analyze: COLAMD failed with status " + std::to_string(stats[COLAMD_STATUS]));
  return {order.begin(), order.end() - 1};
}

/// The elimination tree of A^T A without forming it: the columns that share a row of A are joined one after the other.
std::vector<node_t> column_tree(const Columns& columns, const std::vector<node_t>& order) {
  const index_t n = columns.n();
  std::vector<node_t> parent(n, -1), above(n, -1);  // above: an ancestor that walks have reached already
  std::vector<node_t> last(n, -1);                  // of the columns so far that have an entry in row i
  for (node_t j = 0; j < n; ++j)
    for (int k = columns.start[order[j]]; k < columns.start[order[j] + 1]; ++k) {
      const int i = columns.row[k];
      for (node_t c = last[i]; c >= 0 && c < j;) {
        const node_t next = above[c];
        above[c] = j;
        if (next < 0) parent[c] = j;
        c = next;
      }
      last[i] = j;
    }
  return parent;
}

/// Puts columns, tree and places in the postorder of the tree.
void set_postorder(const Columns& columns, const std::vector<node_t>& order, LuPlan& plan) {
  const index_t n = columns.n();
  const std::vector<node_t> parent = column_tree(columns, order), to = postorder(parent);
  plan.n = n;
  plan.permutation.resize(n), plan.parent.resize(n);
  for (index_t j = 0; j < n; ++j) {
    plan.permutation[to[j]] = order[j];
    plan.parent[to[j]] = parent[j] < 0 ? -1 : to[parent[j]];
  }
  std::vector<int> moved(columns.row.size());
  plan.start.reserve(n + 1), plan.row.reserve(columns.row.size());
  plan.start.push_back(0);
  for (index_t j = 0; j < n; ++j) {
    const index_t column = plan.permutation[j];
    for (int k = columns.start[column]; k < columns.start[column + 1]; ++k) {
      moved[k] = int(plan.row.size());
      plan.row.push_back(columns.row[k]);
    }
    plan.start.push_back(int(plan.row.size()));
  }
  plan.place.reserve(columns.place.size());
  for (const int k : columns.place) plan.place.push_back(moved[k]);
}

}  // namespace

template <SparseIndex I>
LuPlan plan_lu(const Pattern<I>& pattern, const AnalyzeLuOptions& options) {
  if (options.ordering != LuOrdering::Given && !options.permutation.empty())
    refuse("the size of options.permutation", index_t(options.permutation.size()), "be 0 unless ordering is Given");
  LuPlan plan;
  const auto timed = [&](const char* name, auto run) {
    using clock = std::chrono::steady_clock;
    const auto begin = clock::now();
    auto result = run();
    plan.steps.push_back({name, std::chrono::duration<double>(clock::now() - begin).count()});
    return result;
  };
  const Columns columns = timed("columns", [&] { return columns_of(pattern, options.duplicates); });
  plan.ordering = options.ordering;
  const Graph no_edges{std::vector<index_t>(columns.n() + 1, 0), {}};
  const std::vector<node_t> order = [&] {
    switch (plan.ordering) {
      case LuOrdering::Amd: {
        const Graph graph = timed("graph", [&] { return symmetric_graph(columns); });
        return timed("amd", [&] { return amd_order(graph); });
      }
      case LuOrdering::Given:
        return timed("given", [&] { return given_order(no_edges, options.permutation); });
      case LuOrdering::Natural:
        return timed("natural", [&] { return natural_order(no_edges); });
      default:
        return timed("colamd", [&] { return colamd_order(columns); });
    }
  }();
  timed("tree", [&] { return set_postorder(columns, order, plan), 0; });
  return plan;
}

template LuPlan plan_lu(const Pattern<std::int32_t>&, const AnalyzeLuOptions&);
template LuPlan plan_lu(const Pattern<std::int64_t>&, const AnalyzeLuOptions&);

}  // namespace trifactor::sparse
