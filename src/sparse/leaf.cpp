#include <sparse/leaf.hpp>

#include <algorithm>
#include <bit>

// The loop over the words of a row, for processors that count bits in one instruction. "arch=haswell" would be chosen
// on that one processor alone. Sanitizers run before the clones can be chosen.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define TRIFACTOR_BIT_CLONES __attribute__((target_clones("default", "popcnt")))
#else
#define TRIFACTOR_BIT_CLONES
#endif

namespace trifactor::sparse {

namespace {

/// row |= other, and how many bits it then has.
TRIFACTOR_BIT_CLONES index_t unite(std::uint64_t* __restrict row, const std::uint64_t* __restrict other,
                                   index_t words) {
  index_t count = 0;
  for (index_t w = 0; w < words; ++w) {
    row[w] |= other[w];
    count += __builtin_popcountll(row[w]);
  }
  return count;
}

/// f(b) for every bit b that is set.
template <class F>
void for_bits(const std::uint64_t* row, index_t words, const F& f) {
  for (index_t w = 0; w < words; ++w)
    for (std::uint64_t rest = row[w]; rest; rest &= rest - 1) f(node_t(64 * w + std::countr_zero(rest)));
}

}  // namespace

/// The column of a node of the border, a new one if need be.
node_t LeafOrder::border_column(node_t node) {
  const std::size_t mask = table_.size() - 1;
  std::size_t slot = (std::uint32_t(node) * 0x9e3779b9u >> 7) & mask;
  while (table_[slot] >= 0 && columns_[table_[slot]] != node) slot = (slot + 1) & mask;
  if (table_[slot] < 0) {
    table_[slot] = node_t(columns_.size());
    columns_.push_back(node);
  }
  return table_[slot];
}

void LeafOrder::set_columns(const Graph& graph, const node_t* nodes, node_t* local) {
  columns_.assign(nodes, nodes + count_);
  for (node_t i = 0; i < count_; ++i) local[nodes[i]] = i;
  std::size_t border = 0;
  const auto for_border = [&](const auto& f) {
    for (node_t i = 0; i < count_; ++i)
      for (index_t k = graph.start[nodes[i]]; k < graph.start[nodes[i] + 1]; ++k)
        if (local[graph.neighbours[k]] < 0) f(graph.neighbours[k]);
  };
  for_border([&](node_t) { ++border; });
  table_.assign(std::bit_ceil(2 * border + 1), -1);
  for_border([&](node_t node) { border_column(node); });
}

void LeafOrder::set_rows(const Graph& graph, const node_t* nodes, const node_t* local) {
  words_ = (index_t(columns_.size()) + bits - 1) / bits;
  rows_.assign(std::size_t(count_ * words_), 0);
  for (node_t i = 0; i < count_; ++i)
    for (index_t k = graph.start[nodes[i]]; k < graph.start[nodes[i] + 1]; ++k) {
      const node_t other = graph.neighbours[k], b = local[other] >= 0 ? local[other] : border_column(other);
      row(i)[b / bits] |= word_t(1) << b % bits;
    }
}

index_t LeafOrder::weighted_degree(node_t i) {
  index_t degree = 0;
  for_bits(row(i), words_, [&](node_t b) { degree += weight_[b]; });
  return degree;
}

/// The neighbours of the pivot become neighbours of each other.
void LeafOrder::eliminate(node_t pivot) {
  const auto clear = [](word_t* of, node_t b) { of[b / bits] &= ~(word_t(1) << b % bits); };
  for_bits(row(pivot), (index_t(count_) + bits - 1) / bits, [&](node_t i) {
    if (i >= count_) return;
    const index_t neighbours = unite(row(i), row(pivot), words_) - 2;  // all but the pivot and itself
    clear(row(i), pivot);
    clear(row(i), i);
    degree_[i] = equal_weights_ ? neighbours : weighted_degree(i);
  });
}

void LeafOrder::run(const Graph& graph, const node_t* weight, node_t* nodes, node_t count, node_t* local) {
  count_ = count;
  set_columns(graph, nodes, local);
  set_rows(graph, nodes, local);
  weight_.resize(columns_.size());
  for (std::size_t b = 0; b < columns_.size(); ++b) weight_[b] = weight ? weight[columns_[b]] : 1;
  equal_weights_ = std::all_of(weight_.begin(), weight_.end(), [&](node_t w) { return w == weight_[0]; });
  if (equal_weights_) std::fill(weight_.begin(), weight_.end(), 1);
  degree_.resize(count), left_.resize(count), order_.clear();
  for (node_t i = 0; i < count; ++i) left_[i] = i, degree_[i] = weighted_degree(i);
  while (!left_.empty()) {
    const auto least =
        std::min_element(left_.begin(), left_.end(), [&](node_t a, node_t b) { return degree_[a] < degree_[b]; });
    const node_t pivot = *least;
    *least = left_.back();
    left_.pop_back();
    order_.push_back(pivot);
    eliminate(pivot);
  }
  for (node_t i = 0; i < count; ++i) nodes[i] = columns_[order_[i]];
}

}  // namespace trifactor::sparse
