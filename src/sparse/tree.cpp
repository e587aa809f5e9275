#include <sparse/tree.hpp>

namespace trifactor::sparse {

namespace {

std::vector<node_t> inverse_of(const std::vector<node_t>& permutation) {
  std::vector<node_t> inverse(permutation.size());
  for (std::size_t j = 0; j < permutation.size(); ++j) inverse[permutation[j]] = node_t(j);
  return inverse;
}

/// follows[j]: nodes order[j] and order[j - 1], and their neighbours, are the same set.
std::vector<char> followers(const Graph& graph, const std::vector<node_t>& order) {
  std::vector<char> follows(order.size(), false);
  for (std::size_t j = 1; j < order.size(); ++j) {
    const node_t a = order[j - 1], b = order[j];
    if (graph.degree(a) != graph.degree(b)) continue;
    const node_t* of_a = graph.neighbours.data() + graph.start[a];
    const node_t* of_b = graph.neighbours.data() + graph.start[b];
    const node_t* const end = graph.neighbours.data() + graph.start[a + 1];
    bool other_seen = false;  // b among the neighbours of a; a among those of b then is the one left over
    for (;; ++of_a, ++of_b) {
      if (of_a != end && *of_a == b) ++of_a, other_seen = true;
      if (of_b != graph.neighbours.data() + graph.start[b + 1] && *of_b == a) ++of_b;
      if (of_a == end || *of_a != *of_b) break;
    }
    follows[j] = other_seen && of_a == end;
  }
  return follows;
}

/// parent[k] is the first row i > k of L in column k. Row i of L holds what lies on the paths from its entries of A up
/// to i: walking them, whatever has no parent yet gets i. `above` is a shortcut: an ancestor that walks have reached
/// already.
std::vector<node_t> parents(const Graph& graph, const std::vector<node_t>& permutation,
                            const std::vector<node_t>& inverse, const std::vector<char>& follows) {
  const index_t n = graph.nodes();
  std::vector<node_t> parent(n, -1), above(n, -1);
  for (node_t i = 0; i < n; ++i) {
    if (follows[i]) {  // its walks all meet in i - 1
      parent[i - 1] = above[i - 1] = i;
      continue;
    }
    const index_t node = permutation[i];
    for (index_t e = graph.start[node]; e < graph.start[node + 1]; ++e) {
      node_t k = inverse[graph.neighbours[e]];
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
  }
  return parent;
}

/// The root of the set that j is in; halves the paths it walks.
node_t find(std::vector<node_t>& up, node_t j) {
  while (up[j] != j) j = up[j] = up[up[j]];
  return j;
}

/// Counts without forming L (Gilbert, Ng and Peyton). Row i of L is a subtree of the tree, with i as its root, whose
/// leaves are entries of A; column j has an entry in row i if j is in that subtree. Write for each row +1 on its
/// leaves, -1 on the least common ancestor of neighbouring leaves, and -1 on the parent of its root: the sum over the
/// columns below j and j itself is 1 for j in the subtree and 0 elsewhere. Summed over all rows it is the count.
void set_counts(const Graph& graph, Tree& tree) {
  const node_t n = node_t(graph.nodes());
  std::vector<node_t> first(n);                             // of the columns in the subtree below j
  std::vector<node_t> last_entry(n, -1), last_leaf(n, -1);  // of row i so far
  std::vector<node_t> up(n);  // sets of columns that are done, each named by its topmost one
  for (node_t j = 0; j < n; ++j) first[j] = up[j] = j;
  for (node_t j = 0; j < n; ++j)
    if (tree.parent[j] >= 0 && first[j] < first[tree.parent[j]]) first[tree.parent[j]] = first[j];

  tree.count.assign(n, 0);
  for (node_t j = 0; j < n; ++j) {
    const node_t parent = tree.parent[j];
    if (first[j] == j) ++tree.count[j];     // row j has its root as its leaf, unless a column below is in it
    if (parent >= 0) --tree.count[parent];  // row j ends at j
    const index_t node = tree.permutation[j];
    for (index_t e = graph.start[node]; e < graph.start[node + 1] && !tree.follows[j]; ++e) {  // else no leaf
      const node_t i = tree.inverse[graph.neighbours[e]];
      if (i <= j) continue;
      if (last_entry[i] < first[j]) {  // no entry of the row lies below j
        ++tree.count[j];
        if (last_leaf[i] >= 0) --tree.count[find(up, last_leaf[i])];
        last_leaf[i] = j;
      }
      last_entry[i] = j;
    }
    if (parent >= 0) up[j] = parent;
  }
  for (node_t j = 0; j < n; ++j)
    if (tree.parent[j] >= 0) tree.count[tree.parent[j]] += tree.count[j];
  for (const node_t count : tree.count) {
    tree.nonzeros += count;
    tree.flops += double(count) * double(count);
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

Tree make_tree(const Graph& graph, const std::vector<node_t>& order) {
  const std::vector<char> old_follows = followers(graph, order);
  const std::vector<node_t> old_parent = parents(graph, order, inverse_of(order), old_follows);
  const std::vector<node_t> place = postorder(old_parent);
  Tree tree;
  tree.permutation.resize(order.size());
  tree.parent.resize(order.size());
  tree.follows.resize(order.size());
  for (std::size_t j = 0; j < order.size(); ++j) {
    tree.permutation[place[j]] = order[j];
    tree.follows[place[j]] = old_follows[j];
    tree.parent[place[j]] = old_parent[j] < 0 ? -1 : place[old_parent[j]];
  }
  tree.inverse = inverse_of(tree.permutation);
  set_counts(graph, tree);
  return tree;
}

}  // namespace trifactor::sparse
