// What the analysis of a sparse matrix leaves to the numeric phases: plain data, independent of scalar and backend.
#pragma once

#include <trifactor/types.hpp>

#include <algorithm>
#include <memory>
#include <vector>

namespace trifactor::sparse {

/// For vectors that are not cleared when they are made: many threads fill them.
template <class T>
struct Uncleared : std::allocator<T> {
  template <class U>
  struct rebind {
    using other = Uncleared<U>;
  };
  template <class U>
  void construct(U* at) {
    ::new (static_cast<void*>(at)) U;
  }
  template <class U, class... Args>
  void construct(U* at, Args&&... args) {
    ::new (static_cast<void*>(at)) U(std::forward<Args>(args)...);
  }
};

/// The factor L of P A P^T, cut into fronts. Columns are numbered in a postorder of the elimination tree, after the
/// fill-reducing permutation. A front is a supernode: neighbouring columns that share their rows below.
struct Plan {
  index_t n = 0;
  // One matrix, or so many of one pattern along the diagonal of a larger one, item after item: see forest_of.
  index_t items = 1;
  index_t item_columns() const { return items == 1 ? n : n / std::max<index_t>(1, items); }
  index_t item_of(index_t column) const { return items == 1 ? 0 : column / item_columns(); }

  std::vector<index_t> permutation;  // column j here is column permutation[j] of the matrix
  std::vector<index_t> inverse;      // of the permutation

  index_t fronts() const { return index_t(parent.size()); }
  std::vector<index_t> first;      // fronts + 1: front s owns columns [first[s], first[s + 1])
  std::vector<index_t> parent;     // of each front, a later one; -1 for a root
  std::vector<index_t> row_start;  // fronts + 1, into rows
  std::vector<index_t> rows;       // of each front, ascending: its own columns, then the rows below them
  std::vector<index_t> place;      // parallel to rows: for a row below, its place among the rows of the parent; else -1
  std::vector<index_t> factor_start;  // fronts + 1: front s is (rows, columns) column-major without padding from here on

  index_t row_count(index_t s) const { return row_start[s + 1] - row_start[s]; }
  index_t col_count(index_t s) const { return first[s + 1] - first[s]; }

  // Levels: fronts whose children all lie in earlier levels.
  std::vector<index_t> level_start;   // levels + 1, into level_fronts
  std::vector<index_t> level_fronts;

  // Where the values that are given go: entry k is added to factor[target[k]]; ~target[k] where it is negative: the
  // same, conjugated, since the entry lies in the upper triangle here; ignored: `nowhere`.
  static constexpr index_t nowhere = index_t(1) << 62;
  std::vector<index_t, Uncleared<index_t>> target;

  index_t factor_entries = 0;   // factor_start.back()
  // Most entries of update matrices, (rows - columns)^2 each, alive at once when fronts are taken in ascending order: a
  // front's is allocated while its children's are alive, and they are freed when they have been added to it.
  index_t stack_entries = 0;
  index_t factor_nonzeros = 0;  // of L without what amalgamation added
  double flops = 0;             // of the factorization, multiplications and additions, real arithmetic
  double front_flops = 0;       // the same with what amalgamation added

  /// Of the arrays.
  std::size_t bytes() const {
    std::size_t entries = target.size();
    for (const auto* array : {&permutation, &inverse, &first, &parent, &row_start, &rows, &place, &factor_start,
                              &level_start, &level_fronts})
      entries += array->size();
    return entries * sizeof(index_t);
  }
};

/// Neighbouring fronts, `begin` to `end` - 1, that are factored together: a subtree, whose root is the last one, several of
/// them, or one front whose children are in earlier branches. Their part of the factor is one piece.
struct Branch {
  index_t begin, end;
};

}  // namespace trifactor::sparse
