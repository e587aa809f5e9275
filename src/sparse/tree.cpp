#include <sparse/tree.hpp>

#include <sparse/tasks.hpp>

namespace trifactor::sparse {

namespace {

std::vector<node_t> inverse_of(const std::vector<node_t>& permutation) {
  std::vector<node_t> inverse(permutation.size());
  for (std::size_t j = 0; j < permutation.size(); ++j) inverse[permutation[j]] = node_t(j);
  return inverse;
}

/// The graph with node permutation[j] as node j: what reads it in that order then reads memory in order.
Graph permuted(const Graph& graph, const std::vector<node_t>& permutation, const std::vector<node_t>& inverse) {
  const index_t n = graph.nodes();
  Graph result;
  result.start.resize(n + 1);
  result.start[0] = 0;
  for (index_t j = 0; j < n; ++j) result.start[j + 1] = result.start[j] + graph.degree(permutation[j]);
  result.neighbours.resize(graph.neighbours.size());
  for_ranges(n, node_grain, [&](index_t, index_t begin, index_t end) {
    for (index_t j = begin; j < end; ++j) {
      const node_t* from = graph.neighbours.data() + graph.start[permutation[j]];
      for (index_t k = result.start[j]; k < result.start[j + 1]; ++k) result.neighbours[k] = inverse[*from++];
    }
  });
  return result;
}

/// parent[k] is the first row i > k of L in column k. Row i of L holds what lies on the paths from its entries of A up
/// to i: walking them, whatever has no parent yet gets i. `above` is a shortcut: an ancestor that walks have reached
/// already.
std::vector<node_t> parents(const Graph& graph) {
  const index_t n = graph.nodes();
  std::vector<node_t> parent(n, -1), above(n, -1);
  for (node_t i = 0; i < n; ++i)
    for (index_t e = graph.start[i]; e < graph.start[i + 1]; ++e) {
      node_t k = graph.neighbours[e];
      while (k < i) {
        const node_t next = above[k];
        above[k] = i;
        if (next < 0) {
          parent[k] = i;
          break;
        }
        k = next;
      }
    }
  return parent;
}

/// The root of the set that j is in; halves the paths it walks.
node_t find(std::vector<node_t>& up, node_t j) {
  while (up[j] != j) j = up[j] = up[up[j]];
  return j;
}

/// Counts without forming L (Gilbert, Ng and Peyton). Row i of L is a subtree of the tree, with i as its root, whose
/// leaves are entries of A; column j has an entry in row i if j is in that subtree. Write each row's weight on its
/// leaves, take it off the least common ancestor of neighbouring leaves, and off the parent of its root: the sum over
/// the columns below j and j itself is the weight for j in the subtree and 0 elsewhere. Summed over all rows it is the
/// count.
void set_counts(Tree& tree) {
  const Graph& graph = tree.graph;
  const node_t n = node_t(graph.nodes());
  std::vector<node_t> first(n);                             // of the nodes in the subtree below j
  std::vector<node_t> last_entry(n, -1), last_leaf(n, -1);  // of row i so far
  std::vector<node_t> up(n);  // sets of nodes that are done, each named by its topmost one
  for (node_t j = 0; j < n; ++j) first[j] = up[j] = j;
  for (node_t j = 0; j < n; ++j)
    if (tree.parent[j] >= 0 && first[j] < first[tree.parent[j]]) first[tree.parent[j]] = first[j];

  tree.count.assign(n, 0);
  for (node_t j = 0; j < n; ++j) {
    const node_t parent = tree.parent[j];
    if (first[j] == j) tree.count[j] += tree.weight[j];     // row j has its root as a leaf, unless one below is in it
    if (parent >= 0) tree.count[parent] -= tree.weight[j];  // row j ends at j
    for (index_t e = graph.start[j]; e < graph.start[j + 1]; ++e) {
      const node_t i = graph.neighbours[e];
      if (i <= j) continue;
      if (last_entry[i] < first[j]) {  // no entry of the row lies below j
        tree.count[j] += tree.weight[i];
        if (last_leaf[i] >= 0) tree.count[find(up, last_leaf[i])] -= tree.weight[i];
        last_leaf[i] = j;
      }
      last_entry[i] = j;
    }
    if (parent >= 0) up[j] = parent;
  }
  for (node_t j = 0; j < n; ++j) {
    if (tree.parent[j] >= 0) tree.count[tree.parent[j]] += tree.count[j];
    for (node_t c = tree.count[j]; c > tree.count[j] - tree.weight[j]; --c) {
      tree.nonzeros += c;
      tree.flops += double(c) * double(c);
    }
  }
}

}  // namespace

/// A subtree is a range that ends with its root: from the roots downwards, each
/// child takes its range off the end of what is left of the parent's.
std::vector<node_t> postorder(const std::vector<node_t>& parent) {
  const node_t n = node_t(parent.size());
  std::vector<node_t> size(n, 1), place(n), left(n);  // left: the end of what is left below j
  for (node_t j = 0; j < n; ++j)
    if (parent[j] >= 0) size[parent[j]] += size[j];
  node_t left_of_all = n - 1;
  for (node_t j = n - 1; j >= 0; --j) {
    node_t& end = parent[j] >= 0 ? left[parent[j]] : left_of_all;
    place[j] = end;
    left[j] = end - 1;
    end -= size[j];
  }
  return place;
}

Tree make_tree(const CompressedGraph& points, const std::vector<node_t>& order, int threads) {
  Tree tree;
  with_threads(points.points() < worth_waking ? 1 : threads, [&] {
    const Graph graph = permuted(points.graph, order, inverse_of(order));
    const std::vector<node_t> old_parent = parents(graph);
    const std::vector<node_t> place = postorder(old_parent);
    tree.permutation.resize(order.size());
    tree.parent.resize(order.size());
    tree.weight.resize(order.size());
    for (std::size_t j = 0; j < order.size(); ++j) {
      tree.permutation[place[j]] = order[j];
      tree.weight[place[j]] = points.weight[order[j]];
      tree.parent[place[j]] = old_parent[j] < 0 ? -1 : place[old_parent[j]];
    }
    tree.inverse = inverse_of(tree.permutation);
    tree.graph = permuted(graph, inverse_of(place), place);
    set_counts(tree);
  });
  return tree;
}

}  // namespace trifactor::sparse
