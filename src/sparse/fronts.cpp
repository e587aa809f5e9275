#include <sparse/fronts.hpp>

#include <sparse/tasks.hpp>

#include <algorithm>
#include <numeric>

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
  std::vector<node_t> front_of;        // of each point of the tree

  node_t size() const { return node_t(parent.size()); }
  index_t update(index_t s) const { return index_t(below[s]) * below[s]; }  // entries of its update matrix
};

/// Fundamental supernodes: runs of points, each the only child of the next, and each with the rows of the next and its
/// own.
Forest supernodes(const Tree& tree) {
  const node_t n = node_t(tree.parent.size());
  std::vector<node_t> children(n, 0);
  for (const node_t p : tree.parent)
    if (p >= 0) ++children[p];

  Forest f;
  f.front_of.resize(n);
  for (node_t j = 0; j < n; ++j) {
    const bool grows =
        j > 0 && tree.parent[j - 1] == j && children[j] == 1 && tree.count[j - 1] == tree.count[j] + tree.weight[j - 1];
    if (!grows) {
      f.columns.push_back(0);
      f.below.push_back(0);
    }
    f.columns.back() += tree.weight[j];
    f.below.back() = tree.count[j] - tree.weight[j];
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

/// The columns and fronts in their final order: everything but the rows. at: of each point of the tree.
Plan skeleton(const CompressedGraph& points, const Tree& tree, const Forest& f, std::vector<Position>& at) {
  const std::vector<node_t> place = order_for_stack(f);
  Plan plan;
  plan.n = points.columns();
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
  for (index_t j = 0; j < points.points(); ++j) {
    index_t& column = cursor[place[f.front_of[j]]];
    at[j] = {node_t(column), place[f.front_of[j]]};
    const node_t point = tree.permutation[j];
    for (node_t k = points.member_start[point]; k < points.member_start[point + 1]; ++k) {
      plan.permutation[column] = points.members[k];
      plan.inverse[points.members[k]] = column++;
    }
  }
  plan.factor_entries = plan.factor_start.back();
  plan.factor_nonzeros = tree.nonzeros;
  plan.flops = tree.flops;
  return plan;
}

/// Trees of fronts that threads take side by side, none below another, and the fronts above them.
struct Subtrees {
  std::vector<node_t> first, root;  // of each tree, a range of fronts; in ascending order
  std::vector<node_t> from;         // of every front: itself, or the front above the tree that it is in; -1: none

  /// A tree may have a small share of all rows.
  explicit Subtrees(const Plan& plan) : from(plan.fronts()) {
    constexpr index_t shares = 64;
    const index_t limit = plan.row_start.back() / shares;
    std::vector<node_t> lowest(plan.fronts());  // the first front below s
    std::iota(lowest.begin(), lowest.end(), 0);
    std::iota(from.begin(), from.end(), 0);
    for (index_t s = 0; s < plan.fronts(); ++s)
      if (plan.parent[s] >= 0) lowest[plan.parent[s]] = std::min(lowest[plan.parent[s]], lowest[s]);
    const auto small = [&](index_t s) { return plan.row_start[s + 1] - plan.row_start[lowest[s]] <= limit; };
    for (index_t s = 0; s < plan.fronts(); ++s) {
      const index_t parent = plan.parent[s];
      if (!small(s) || (parent >= 0 && small(parent))) continue;
      first.push_back(lowest[s]), root.push_back(node_t(s));
      for (index_t t = lowest[s]; t <= s; ++t) from[t] = node_t(parent);
    }
  }
};

/// Row i is in the fronts on the paths from its entries of A up to the front of column i. Taking rows in ascending
/// order leaves those of every front in ascending order.
class RowFiller {
 public:
  RowFiller(const Tree& tree, const std::vector<Position>& at, Plan& plan)
      : tree_(tree),
        at_(at),
        plan_(plan),
        seen_(plan.fronts(), -1),
        cursor_(plan.fronts()),
        by_column_(tree.parent.size()) {
    plan.rows.resize(plan.row_start.back());
    std::vector<node_t> next(plan.fronts() + 1, 0);
    for (const Position& p : at) ++next[p.front + 1];
    std::partial_sum(next.begin(), next.end(), next.begin());
    first_point_ = next;
    for (std::size_t j = 0; j < at.size(); ++j) by_column_[next[at[j].front]++] = node_t(j);
  }

  void run() {
    const Subtrees trees(plan_);
    const index_t count = index_t(trees.root.size());
    for_ranges(count, count / 256 + 1, [&](index_t, index_t begin, index_t end) {
      for (index_t t = begin; t < end; ++t) fill_tree(trees.first[t], trees.root[t]);
    });
    for (index_t s = 0; s < plan_.fronts(); ++s) {
      if (trees.from[s] != node_t(s)) continue;
      own_rows(s);
      for_points(s, [&](node_t i) { for_lower(i, [&](node_t k) { walk(i, trees.from[at_[k].front], s); }); });
    }
  }

 private:
  template <class F>
  void for_points(index_t s, const F& f) const {
    for (node_t p = first_point_[s]; p < first_point_[s + 1]; ++p) f(by_column_[p]);
  }
  /// f(k) for the neighbours k of point i that come before it.
  template <class F>
  void for_lower(node_t i, const F& f) const {
    for (index_t e = tree_.graph.start[i]; e < tree_.graph.start[i + 1]; ++e)
      if (at_[tree_.graph.neighbours[e]].column < at_[i].column) f(tree_.graph.neighbours[e]);
  }
  void own_rows(index_t s) {
    cursor_[s] = plan_.row_start[s];
    for (index_t j = plan_.first[s]; j < plan_.first[s + 1]; ++j) plan_.rows[cursor_[s]++] = j;
  }
  /// Puts the rows of point i into the fronts from s up to the one below `top`.
  void walk(node_t i, index_t s, index_t top) {
    const node_t row = at_[i].column;
    for (; s != top && seen_[s] != row; s = plan_.parent[s]) {
      seen_[s] = row;
      for (node_t c = 0; c < tree_.weight[i]; ++c) plan_.rows[cursor_[s]++] = row + c;
    }
  }
  /// The fronts of a tree: rows of points within, then of those above.
  void fill_tree(index_t first, index_t root) {
    struct Link {
      node_t column, above, within;  // of a point above; that point, and its neighbour within
    };
    std::vector<Link> links;
    for (index_t s = first; s <= root; ++s) own_rows(s);
    for (index_t s = first; s <= root; ++s)
      for_points(s, [&](node_t i) {
        for_lower(i, [&](node_t k) { walk(i, at_[k].front, s); });
        for (index_t e = tree_.graph.start[i]; e < tree_.graph.start[i + 1]; ++e) {
          const node_t other = tree_.graph.neighbours[e];
          if (at_[other].front > root) links.push_back({at_[other].column, other, i});
        }
      });
    std::sort(links.begin(), links.end(), [](const Link& a, const Link& b) { return a.column < b.column; });
    for (const Link& link : links) walk(link.above, at_[link.within].front, plan_.parent[root]);
  }

  const Tree& tree_;
  const std::vector<Position>& at_;  // of each point of the tree
  Plan& plan_;
  std::vector<node_t> seen_;                     // the last row that was put into a front
  std::vector<index_t> cursor_;                  // where the next row of a front goes
  std::vector<node_t> by_column_, first_point_;  // points in the order of their columns; the first one of each front
};

/// Rows below of a front are among those of its parent; both ascend.
void set_places(Plan& plan) {
  plan.place.resize(plan.rows.size());
  for_ranges(plan.fronts(), plan.fronts() / 256 + 1, [&](index_t, index_t begin, index_t end) {
    for (index_t s = begin; s < end; ++s) {
      const index_t below = plan.row_start[s] + plan.col_count(s), parent = plan.parent[s];
      std::fill(plan.place.begin() + plan.row_start[s], plan.place.begin() + below, index_t(-1));
      if (parent < 0) continue;
      index_t at = plan.row_start[parent];
      for (index_t k = below; k < plan.row_start[s + 1]; ++k) {
        while (plan.rows[at] < plan.rows[k]) ++at;
        plan.place[k] = at - plan.row_start[parent];
      }
    }
  });
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

Plan make_fronts(const CompressedGraph& points, const Tree& tree, const core::SparseTuning& tuning, int threads) {
  std::vector<Position> at(points.points());
  Plan plan = skeleton(points, tree, amalgamate(supernodes(tree), tuning), at);
  with_threads(plan.row_start.back() < 4 * worth_waking ? 1 : threads, [&] {
    RowFiller(tree, at, plan).run();
    set_places(plan);
  });
  set_levels(plan);
  set_stack(plan);
  for (index_t s = 0; s < plan.fronts(); ++s) plan.front_flops += front_flops(plan.row_count(s), plan.col_count(s));
  return plan;
}

}  // namespace trifactor::sparse
