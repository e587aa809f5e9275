#include <sparse/fronts.hpp>

#include <algorithm>

namespace trifactor::sparse {

namespace {

/// The children of every node of a forest, in the order in which they are to be visited.
struct Children {
  std::vector<node_t> start, list;

  explicit Children(const std::vector<node_t>& parent) : start(parent.size() + 2, 0), list(parent.size()) {
    for (const node_t p : parent)
      if (p >= 0) ++start[p + 2];
    for (std::size_t s = 2; s < start.size(); ++s) start[s] += start[s - 1];
    for (std::size_t s = 0; s < parent.size(); ++s)
      if (parent[s] >= 0) list[start[parent[s] + 1]++] = node_t(s);
    start.pop_back();
  }
  node_t* begin(index_t s) { return list.data() + start[s]; }
  node_t* end(index_t s) { return list.data() + start[s + 1]; }
};

/// Fronts while they grow. They are numbered like their last columns: children first.
struct Forest {
  std::vector<node_t> parent;
  std::vector<node_t> columns, below;  // columns, and rows below them
  std::vector<node_t> front_of;        // of each column of the tree

  node_t size() const { return node_t(parent.size()); }
  index_t update(index_t s) const { return index_t(below[s]) * below[s]; }  // entries of its update matrix
};

/// Fundamental supernodes: runs of columns, each the only child of the next, and each with the rows of the next and one
/// more.
Forest supernodes(const Tree& tree) {
  const node_t n = node_t(tree.parent.size());
  std::vector<node_t> children(n, 0);
  for (const node_t p : tree.parent)
    if (p >= 0) ++children[p];

  Forest f;
  f.front_of.resize(n);
  for (node_t j = 0; j < n; ++j) {
    const bool grows = j > 0 && tree.parent[j - 1] == j && children[j] == 1 && tree.count[j - 1] == tree.count[j] + 1;
    if (!grows) {
      f.columns.push_back(0);
      f.below.push_back(0);
    }
    ++f.columns.back();
    f.below.back() = tree.count[j] - 1;
    f.front_of[j] = node_t(f.columns.size()) - 1;
  }
  f.parent.assign(f.columns.size(), -1);
  for (node_t j = 0; j < n; ++j)
    if (tree.parent[j] >= 0 && f.front_of[tree.parent[j]] != f.front_of[j])
      f.parent[f.front_of[j]] = f.front_of[tree.parent[j]];
  return f;
}

/// Whether a front of so many columns may store so many zeros among its entries.
bool worthwhile(const core::SparseTuning& t, index_t columns, double zeros, double entries) {
  if (zeros == 0 || columns <= t.tiny) return true;
  const double percent = 100 * zeros / entries;
  return (columns <= t.narrow && percent <= double(t.narrow_zeros)) ||
         (columns <= t.medium && percent <= double(t.medium_zeros)) || percent <= double(t.wide_zeros);
}

/// Merges children into their parents where that stores few zeros: the products become wider, and there are fewer of
/// them. The rows of a child are among the columns and rows of its parent, so a merged front has the rows below of the
/// parent.
Forest amalgamate(Forest f, const core::SparseTuning& tuning) {
  Children children(f.parent);
  std::vector<node_t> into(f.size(), -1);
  std::vector<double> zeros(f.size(), 0);
  for (node_t s = 0; s < f.size(); ++s) {
    // Those with the most rows first: they bring the fewest zeros for a column.
    std::stable_sort(children.begin(s), children.end(s), [&](node_t a, node_t b) { return f.below[a] > f.below[b]; });
    for (const node_t* c = children.begin(s); c != children.end(s); ++c) {
      const double columns = double(f.columns[s]) + f.columns[*c];
      const double missing = double(f.columns[s]) + f.below[s] - f.below[*c];  // rows that the child's columns lack
      const double all_zeros = zeros[s] + zeros[*c] + f.columns[*c] * missing;
      const double entries = columns * (columns + 1) / 2 + columns * f.below[s];
      if (!worthwhile(tuning, index_t(columns), all_zeros, entries)) continue;
      into[*c] = s;
      f.columns[s] += f.columns[*c];
      zeros[s] = all_zeros;
    }
  }

  // What was merged gets the number of the front that it is in; the others keep their order.
  std::vector<node_t> number(f.size());
  Forest merged;
  for (node_t s = 0; s < f.size(); ++s)
    if (into[s] < 0) {
      number[s] = merged.size();
      merged.parent.push_back(f.parent[s]);
      merged.columns.push_back(f.columns[s]);
      merged.below.push_back(f.below[s]);
    }
  for (node_t s = f.size() - 1; s >= 0; --s)
    if (into[s] >= 0) number[s] = number[into[s]];
  for (node_t& parent : merged.parent)
    if (parent >= 0) parent = number[parent];
  merged.front_of.resize(f.front_of.size());
  for (std::size_t j = 0; j < f.front_of.size(); ++j) merged.front_of[j] = number[f.front_of[j]];
  return merged;
}

/// place[s] of front s in the postorder that keeps the fewest entries of update matrices at once. While a child is
/// worked on, the update matrices of its elder siblings wait; so the one that needs most beyond what it leaves goes
/// first (Liu).
std::vector<node_t> order_for_stack(const Forest& f) {
  Children children(f.parent);
  std::vector<index_t> peak(f.size());  // of the subtree, entries
  std::vector<node_t> size(f.size(), 1);
  for (node_t s = 0; s < f.size(); ++s) {
    const auto beyond = [&](node_t c) { return peak[c] - f.update(c); };
    std::stable_sort(children.begin(s), children.end(s), [&](node_t a, node_t b) { return beyond(a) > beyond(b); });
    index_t waiting = 0;
    for (const node_t* c = children.begin(s); c != children.end(s); ++c) {
      peak[s] = std::max(peak[s], waiting + peak[*c]);
      waiting += f.update(*c);
      size[s] += size[*c];
    }
    peak[s] = std::max(peak[s], waiting + f.update(s));
  }

  // From the roots down: a subtree is a range of places with its root at the end.
  std::vector<node_t> place(f.size());
  node_t end = f.size() - 1;
  for (node_t s = f.size() - 1; s >= 0; --s) {
    if (f.parent[s] < 0) place[s] = end, end -= size[s];
    node_t next = place[s] - 1;
    for (const node_t* c = children.end(s); c != children.begin(s);) {
      place[*--c] = next;
      next -= size[*c];
    }
  }
  return place;
}

/// The columns and fronts in their final order: everything but the rows.
Plan skeleton(const Tree& tree, const Forest& f) {
  const std::vector<node_t> place = order_for_stack(f);
  Plan plan;
  plan.n = index_t(tree.parent.size());
  const index_t fronts = index_t(f.parent.size());
  plan.parent.resize(fronts);
  plan.first.assign(fronts + 1, 0);
  plan.row_start.assign(fronts + 1, 0);
  plan.factor_start.assign(fronts + 1, 0);
  for (index_t s = 0; s < fronts; ++s) {
    plan.parent[place[s]] = f.parent[s] < 0 ? -1 : place[f.parent[s]];
    plan.first[place[s] + 1] = f.columns[s];
    plan.row_start[place[s] + 1] = index_t(f.columns[s]) + f.below[s];
  }
  for (index_t s = 0; s < fronts; ++s) {
    plan.factor_start[s + 1] = plan.factor_start[s] + plan.first[s + 1] * plan.row_start[s + 1];
    plan.first[s + 1] += plan.first[s];
    plan.row_start[s + 1] += plan.row_start[s];
  }
  plan.permutation.resize(plan.n);
  plan.inverse.resize(plan.n);
  std::vector<index_t> cursor(plan.first.begin(), plan.first.end() - 1);
  for (index_t j = 0; j < plan.n; ++j) {
    const index_t column = cursor[place[f.front_of[j]]]++;
    plan.permutation[column] = tree.permutation[j];
    plan.inverse[tree.permutation[j]] = column;
  }
  plan.factor_entries = plan.factor_start.back();
  plan.factor_nonzeros = tree.nonzeros;
  plan.flops = tree.flops;
  return plan;
}

/// Row i is in the fronts on the paths from its entries of A up to the front of column i. Taking rows in ascending
/// order leaves those of every front in ascending order.
void set_rows(const Graph& graph, const Tree& tree, Plan& plan) {
  const std::vector<Position> position = positions(plan);
  std::vector<node_t> seen(plan.parent.size(), -1);  // the last row that was put into a front
  std::vector<index_t> cursor(plan.parent.size());
  plan.rows.resize(plan.row_start.back());
  for (index_t s = 0; s < plan.fronts(); ++s) {
    cursor[s] = plan.row_start[s];
    for (index_t j = plan.first[s]; j < plan.first[s + 1]; ++j) plan.rows[cursor[s]++] = j;
  }
  std::vector<node_t> reached;  // the fronts that row i was put into
  for (index_t i = 0; i < plan.n; ++i) {
    const index_t node = plan.permutation[i], top = position[node].front;
    if (tree.follows[tree.inverse[node]]) {  // then row i - 1 is the same, and column i - 1 in the same front
      for (const node_t s : reached) plan.rows[cursor[s]++] = i;
      continue;
    }
    reached.clear();
    for (index_t e = graph.start[node]; e < graph.start[node + 1]; ++e) {
      const Position lower = position[graph.neighbours[e]];
      if (lower.column > i) continue;
      for (index_t s = lower.front; s != top && seen[s] != i; s = plan.parent[s]) {
        seen[s] = node_t(i);
        reached.push_back(node_t(s));
        plan.rows[cursor[s]++] = i;
      }
    }
  }
}

void set_places(Plan& plan) {
  const std::vector<node_t> parent(plan.parent.begin(), plan.parent.end());
  Children children(parent);
  plan.place.assign(plan.rows.size(), -1);
  std::vector<node_t> place(plan.n);  // of a row among those of front s
  for (index_t s = 0; s < plan.fronts(); ++s) {
    if (children.begin(s) == children.end(s)) continue;
    for (index_t k = plan.row_start[s]; k < plan.row_start[s + 1]; ++k)
      place[plan.rows[k]] = node_t(k - plan.row_start[s]);
    for (const node_t* c = children.begin(s); c != children.end(s); ++c)
      for (index_t k = plan.row_start[*c] + plan.col_count(*c); k < plan.row_start[*c + 1]; ++k)
        plan.place[k] = place[plan.rows[k]];
  }
}

void set_levels(Plan& plan) {
  std::vector<node_t> level(plan.parent.size(), 0);
  node_t levels = 0;
  for (index_t s = 0; s < plan.fronts(); ++s) {
    levels = std::max(levels, level[s] + 1);
    if (plan.parent[s] >= 0) level[plan.parent[s]] = std::max(level[plan.parent[s]], level[s] + 1);
  }
  plan.level_start.assign(levels + 1, 0);
  for (const node_t l : level) ++plan.level_start[l + 1];
  for (node_t l = 0; l < levels; ++l) plan.level_start[l + 1] += plan.level_start[l];
  plan.level_fronts.resize(plan.fronts());
  std::vector<index_t> cursor(plan.level_start.begin(), plan.level_start.end() - 1);
  for (index_t s = 0; s < plan.fronts(); ++s) plan.level_fronts[cursor[level[s]]++] = s;
}

/// A front's update matrix is allocated while those of its children are alive; they go when they have been added to it.
void set_stack(Plan& plan) {
  const auto update = [&](index_t s) {
    const index_t below = plan.row_count(s) - plan.col_count(s);
    return below * below;
  };
  std::vector<index_t> of_children(plan.parent.size(), 0);
  index_t alive = 0;
  for (index_t s = 0; s < plan.fronts(); ++s) {
    alive += update(s);
    plan.stack_entries = std::max(plan.stack_entries, alive);
    alive -= of_children[s];
    if (plan.parent[s] >= 0) of_children[plan.parent[s]] += update(s);
  }
}

}  // namespace

double front_flops(index_t rows, index_t columns) {
  const auto squares = [](double k) { return k * (k + 1) * (2 * k + 1) / 6; };  // 1 + 4 + ... + k^2
  return squares(double(rows)) - squares(double(rows - columns));
}

Plan make_fronts(const Graph& graph, const Tree& tree, const core::SparseTuning& tuning) {
  Plan plan = skeleton(tree, amalgamate(supernodes(tree), tuning));
  set_rows(graph, tree, plan);
  set_places(plan);
  set_levels(plan);
  set_stack(plan);
  for (index_t s = 0; s < plan.fronts(); ++s) plan.front_flops += front_flops(plan.row_count(s), plan.col_count(s));
  return plan;
}

}  // namespace trifactor::sparse
