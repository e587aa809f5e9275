// Sparse LU with SuperLU's kernels for one scalar. The .cpp that includes this has included SuperLU's header of that
// scalar, of which a translation unit takes only one, and has defined
//   TRIFACTOR_SUPERLU_SCALAR      the scalar
//   TRIFACTOR_SUPERLU(name)       the kernel of that name for it
//
// The loop over panels of columns is that of Demmel, Eisenstat, Gilbert, Li and Liu, "A supernodal approach to sparse
// partial pivoting" (1999). SuperLU has it, too, but ends the process when memory runs out. The kernels that are called
// here take all their memory from the caller as long as there is enough, and end nothing.
#pragma once

#include <host/blas.hpp>
#include <host/blas_memory.hpp>
#include <host/sparse_lu.hpp>
#include <host/threads.hpp>
#include <trifactor/error.hpp>

#include <algorithm>
#include <limits>

namespace trifactor::host {

namespace {

using T = TRIFACTOR_SUPERLU_SCALAR;

static_assert(sizeof(int_t) == sizeof(int), "SuperLU with 32-bit indices, as distributions package it");

/// SuperLU's name of the scalar.
template <class N>
N scalar_of(int (*)(int, int, int, N*, N*, GlobalLU_t*, SuperLUStat_t*));
using Native = decltype(scalar_of(&TRIFACTOR_SUPERLU(snode_bmod)));
static_assert(sizeof(Native) == sizeof(T));
Native* native(T* p) { return reinterpret_cast<Native*>(p); }

constexpr int none = -1;  // SuperLU's EMPTY
constexpr index_t most_entries = std::numeric_limits<int>::max();

class Elimination {
 public:
  Elimination(const sparse::LuPlan& plan, T* values, double threshold, SparseLuFactors<T>& factors)
      : plan_(plan), values_(values), threshold_(Real<T>(threshold)), f_(factors), n_(int(plan.n)) {
    const index_t n = n_, w = panel_width_;
    dense_ = filled<T>(n * w, T(0));
    temporary_ = filled<T>(std::max(2 * n, index_t(std::max(sp_ienv(3), relaxed_) + sp_ienv(4)) * w), T(0));
    first_nonzero_ = filled<int>(n * w, none);
    panel_rows_ = filled<int>(n * w, none);
    marks_ = filled<int>(n * 3, none);
    segments_ = filled<int>(n, none);
    dfs_parent_ = filled<int>(n, none);
    dfs_place_ = filled<int>(n, none);
    pruned_ = filled<int>(n, 0);
    set_relaxed_ends();

    const index_t entries = std::max<index_t>(1, index_t(plan.row.size()));
    for (auto* buffer : {&f_.block_rows, &f_.above_rows}) reserve(*buffer, 0, entries);
    for (auto* buffer : {&f_.block, &f_.above}) reserve(*buffer, 0, std::min(most_entries, 2 * entries));
    std::fill_n(f_.row_place.data(), n, none);
    f_.supernode[0] = none;
    f_.first_column[0] = f_.block_rows_start[0] = f_.block_start[0] = f_.above_start[0] = 0;

    columns_.nnz = int(plan.row.size());
    columns_.nzval = values_;
    columns_.rowind = const_cast<int*>(plan.row.data());  // SuperLU reads them only
    columns_.colbeg = const_cast<int*>(plan.start.data());
    columns_.colend = columns_.colbeg + 1;
    matrix_.Stype = SLU_NCP, matrix_.Mtype = SLU_GE;
    matrix_.nrow = matrix_.ncol = n_;
    matrix_.Store = &columns_;
    counts_.ops = operations_;
  }

  /// The first column whose pivot is zero, or -1.
  index_t run() {
    for (int j = 0; j < n_;) {
      core::heed_interruption();
      int end = relaxed_end_[j] + 1;
      if (end == 0) {  // up to the next relaxed supernode
        const int last = std::min(n_, j + panel_width_);
        for (end = j + 1; end < last && relaxed_end_[end] == none;) ++end;
        if (const int failed = panel(j, end); failed != none) return failed;
      } else if (const int failed = relaxed_supernode(j, end); failed != none) {
        return failed;
      }
      j = end;
    }
    finish();
    return none;
  }

 private:
  template <class E>
  static Buffer<E> filled(index_t size, E value) {
    Buffer<E> buffer(size);
    std::fill_n(buffer.data(), size, value);
    return buffer;
  }

  /// Room for `needed` entries in all; keeps those that are there.
  template <class E>
  static void reserve(Buffer<E>& buffer, index_t there, index_t needed) {
    if (needed <= buffer.size()) return;
    if (needed > most_entries)
      throw OutOfMemory("SparseLu::factor: L and U have more than " + std::to_string(most_entries) +
                            " entries, which is what SuperLU counts to",
                        std::size_t(needed) * sizeof(E));
    Buffer<E> larger(std::min(most_entries, std::max(needed, buffer.size() + buffer.size() / 2)));
    std::copy_n(buffer.data(), there, larger.data());
    buffer.swap(larger);
  }

  /// What the kernels read and write. A buffer that grew has moved.
  GlobalLU_t* global() {
    g_.xsup = f_.first_column.data(), g_.supno = f_.supernode.data();
    g_.lsub = f_.block_rows.data(), g_.xlsub = f_.block_rows_start.data();
    g_.lusup = f_.block.data(), g_.xlusup = f_.block_start.data();
    g_.ucol = f_.above.data(), g_.usub = f_.above_rows.data(), g_.xusub = f_.above_start.data();
    g_.nzlmax = int(f_.block_rows.size()), g_.nzlumax = int(f_.block.size());
    g_.nzumax = int(std::min(f_.above.size(), f_.above_rows.size()));
    g_.n = n_;
    g_.MemModel = USER;
    return &g_;
  }
  static void require(index_t shortage) {
    if (shortage != 0) throw Error("SparseLu::factor: a kernel of SuperLU found too little room");
  }

  /// relaxed_end_[j]: the last column of a relaxed supernode that begins with column j, or none. It is a largest
  /// subtree of at most relaxed_ columns; every leaf of the tree is in one.
  void set_relaxed_ends() {
    relaxed_end_ = filled<int>(n_, none);
    std::vector<int> size(n_, 1);
    for (int j = 0; j < n_; ++j)
      if (const int p = plan_.parent[j]; p >= 0) size[p] += size[j];
    for (int j = 0; j < n_; ++j) {
      const int p = plan_.parent[j];
      if (size[j] <= relaxed_ && (p < 0 || size[p] > relaxed_)) relaxed_end_[j + 1 - size[j]] = j;
    }
  }

  /// The rows of the block that column j is in: known once the kernel has found the structure of column j.
  index_t block_rows_of(int j) const {
    const int first = f_.first_column[f_.supernode[j]];
    return f_.block_rows_start[first + 1] - f_.block_rows_start[first];
  }

  /// Columns j to end - 1 depend on no column before: one dense block. Returns the column whose pivot is zero, or none.
  int relaxed_supernode(int j, int end) {
    const int* const start = plan_.start.data();
    reserve(f_.block_rows, f_.block_rows_start[j],
            f_.block_rows_start[j] + 2 * index_t(n_) + 2);  // twice: one is pruned
    require(TRIFACTOR_SUPERLU(snode_dfs)(j, end - 1, plan_.row.data(), start, start + 1, pruned_.data(), marks_.data(),
                                         global()));
    reserve(f_.block, f_.block_start[j], f_.block_start[j] + block_rows_of(j) * (end - j));
    const int supernode = f_.supernode[j];
    T* const dense = dense_.data();
    for (int c = j; c < end; ++c) {
      f_.above_start[c + 1] = f_.above_start[j];
      for (int k = start[c]; k < start[c + 1]; ++k) dense[plan_.row[k]] = values_[k];
      TRIFACTOR_SUPERLU(snode_bmod)
      (c, supernode, j, native(dense), native(temporary_.data()), global(), &counts_);
      if (pivot(c) == none) return c;
    }
    return none;
  }

  /// Columns j to end - 1: updated by all supernodes before them together, then one after the other by each other.
  int panel(int j, int end) {
    int shared_segments = 0;
    TRIFACTOR_SUPERLU(panel_dfs)
    (n_, end - j, j, &matrix_, f_.row_place.data(), &shared_segments, native(dense_.data()), panel_rows_.data(),
     segments_.data(), first_nonzero_.data(), pruned_.data(), marks_.data(), dfs_parent_.data(), dfs_place_.data(),
     global());
    TRIFACTOR_SUPERLU(panel_bmod)
    (n_, end - j, j, shared_segments, native(dense_.data()), native(temporary_.data()), segments_.data(),
     first_nonzero_.data(), global(), &counts_);
    for (int c = j; c < end; ++c) {
      const index_t shift = index_t(c - j) * n_;
      int* const first_nonzero = first_nonzero_.data() + shift;
      Native* const dense = native(dense_.data() + shift);
      int segments = shared_segments;
      reserve(f_.block_rows, f_.block_rows_start[c], f_.block_rows_start[c] + 2 * index_t(n_) + 2);
      require(TRIFACTOR_SUPERLU(column_dfs)(n_, c, f_.row_place.data(), &segments, panel_rows_.data() + shift,
                                            segments_.data(), first_nonzero, pruned_.data(), marks_.data(),
                                            dfs_parent_.data(), dfs_place_.data(), global()));
      reserve(f_.block, f_.block_start[c], f_.block_start[c] + block_rows_of(c));
      require(TRIFACTOR_SUPERLU(column_bmod)(c, segments - shared_segments, dense, native(temporary_.data()),
                                             segments_.data() + shared_segments, first_nonzero, j, global(), &counts_));
      reserve(f_.above, f_.above_start[c], f_.above_start[c] + index_t(c));
      reserve(f_.above_rows, f_.above_start[c], f_.above_start[c] + index_t(c));
      require(TRIFACTOR_SUPERLU(copy_to_ucol)(c, segments, segments_.data(), first_nonzero, f_.row_place.data(), dense,
                                              global()));
      const int row = pivot(c);
      if (row == none) return c;
      TRIFACTOR_SUPERLU(pruneL)
      (c, f_.row_place.data(), row, segments, segments_.data(), first_nonzero, pruned_.data(), global());
      for (int s = 0; s < segments; ++s) first_nonzero[segments_.data()[s]] = none;
    }
    return none;
  }

  /// Exchanges the pivot's row of column j to the diagonal and divides what is below by the pivot. Returns that row of
  /// A, or none when every candidate is zero. A NaN wins.
  int pivot(int j) {
    const int first = f_.first_column[f_.supernode[j]], above = j - first;
    const int begin = f_.block_rows_start[first], rows = f_.block_rows_start[first + 1] - begin;
    int* const row = f_.block_rows.data() + begin;
    T* const block = f_.block.data() + f_.block_start[first];
    T* const column = f_.block.data() + f_.block_start[j];
    int best = none, diagonal = none;
    Real<T> largest = 0;
    for (int i = above; i < rows; ++i) {
      const Real<T> size = core::abs1(column[i]);
      if (!(size <= largest) && largest == largest) largest = size, best = i;
      if (row[i] == plan_.permutation[j]) diagonal = i;
    }
    if (best == none) return none;
    if (diagonal != none && core::abs1(column[diagonal]) >= threshold_ * largest && !(column[diagonal] == T(0)))
      best = diagonal;
    const int chosen = row[best];
    f_.row_place[chosen] = j;
    if (best != above) {
      std::swap(row[best], row[above]);
      for (int c = 0; c <= above; ++c) std::swap(block[best + index_t(c) * rows], block[above + index_t(c) * rows]);
    }
    const T value = column[above];
    const Real<T> size = core::abs1(value);
    constexpr Real<T> smallest = core::Limits<Real<T>>::smallest;
    if (size >= smallest && size <= 1 / smallest) {
      const T reciprocal = T(1) / value;
      for (int i = above + 1; i < rows; ++i) column[i] = column[i] * reciprocal;
    } else {
      for (int i = above + 1; i < rows; ++i) column[i] = column[i] / value;
    }
    return chosen;
  }

  /// Rows of A become rows of P A, and lists that only pruning needed go.
  void finish() {
    fixupL(n_, f_.row_place.data(), global());
    f_.supernodes = n_ == 0 ? 0 : f_.supernode[n_] + 1;
    f_.nonzeros = f_.above_start[n_] + f_.block_start[n_];
  }

  const sparse::LuPlan& plan_;
  T* const values_;
  const Real<T> threshold_;
  SparseLuFactors<T>& f_;
  const int n_;
  /// As wide as SuperLU's int offsets in a panel allow.
  const int panel_width_ = std::max(1, std::min(sp_ienv(1), std::numeric_limits<int>::max() / std::max(1, n_)));
  const int relaxed_ = std::max(1, std::min(sp_ienv(2), sp_ienv(3)));

  Buffer<T> dense_, temporary_;             // a panel, and what updates are computed in
  Buffer<int> first_nonzero_, panel_rows_;  // a column for each column of the panel
  Buffer<int> marks_, segments_, dfs_parent_, dfs_place_, pruned_;
  Buffer<int> relaxed_end_;
  GlobalLU_t g_ = {};
  NCPformat columns_ = {};
  SuperMatrix matrix_ = {};
  SuperLUStat_t counts_ = {};
  flops_t operations_[NPHASES] = {};
};

}  // namespace

index_t superlu_factor(const sparse::LuPlan& plan, T* values, double threshold, SparseLuFactors<T>& factors) {
  const BlasCallers callers(1, 1);
  const ThreadScope serial(1, true);  // blocks are small, and the kernels call products with vectors only
  const blas::Turn turn;              // SuperLU calls BLAS itself
  return Elimination(plan, values, threshold, factors).run();
}

}  // namespace trifactor::host
