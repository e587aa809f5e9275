// The numeric phases of a sparse Cholesky factorization, level by level over an engine's operations: every line of the
// loops is one operation for all fronts of a group.
#pragma once

#include <core/sparse_engine.hpp>
#include <core/trace.hpp>
#include <dense/cholesky.hpp>
#include <dense/triangle.hpp>
#include <sparse/levels.hpp>

namespace trifactor::sparse {

using namespace core;

/// One factorization in the memory of an engine.
template <class T>
struct LevelData {
  const Levels& levels;                         // in the host's memory
  const std::vector<CholeskyTuning>& cholesky;  // for each group
  SolveTuning solve;
  index_t columns_at_once = 0;  // right-hand sides

  // In the engine's memory.
  Fronts fronts = {};
  T* factor = nullptr;  // where the first entry of the plan's factor is, or would be
  T* updates = nullptr;
  const T* offloaded = nullptr;  // update matrices, in the host's memory
  T* Z = nullptr;  // (lines, right-hand sides)
  int* info = nullptr;
  // Of each front: its blocks, and their sizes for ragged batches. `side` says columns_at_once for all of them.
  T *const *F11 = nullptr, *const *F21 = nullptr, *const *U = nullptr, *const *Z1 = nullptr, *const *Z2 = nullptr;
  const int *below = nullptr, *factor_ld = nullptr, *update_ld = nullptr, *line_ld = nullptr, *side = nullptr;
};

/// The blocks of a group, by name:   F = | F11 |  columns     U: update matrix     Z = | Z1 |  right-hand sides
///                                       | F21 |  below                                | Z2 |
template <class T>
class Blocks {
 public:
  Blocks(const LevelData<T>& data, const Group& group) : d_(data), g_(group) {}

  Items<T> F11() const {
    return g_.alone ? one_matrix(d_.factor + at(d_.levels.factor_at), g_.columns, g_.columns, shape().ld)
                    : ragged(d_.F11, g_.columns, g_.columns, d_.fronts.columns, d_.fronts.columns, d_.factor_ld);
  }
  Items<T> F21() const {
    return g_.alone ? one_matrix(d_.factor + at(d_.levels.factor_at) + g_.columns + shape().gap, g_.below, g_.columns,
                                 shape().ld)
                    : ragged(d_.F21, g_.below, g_.columns, d_.below, d_.fronts.columns, d_.factor_ld);
  }
  /// Columns j to k - 1 of the update matrix, from row j on: all of it, or a block column as it is stored.
  Items<T> U(index_t j, index_t k) const {
    const index_t rows = g_.below - j;
    return g_.alone ? one_matrix(d_.updates + at(d_.levels.update_at) + d_.levels.update.column(g_.below, j) + j, rows,
                                 k - j, max(line_alignment, UpdateShape::ld(g_.below) - j))
                    : ragged(d_.U, rows, rows, d_.below, d_.below, d_.update_ld);
  }
  Items<T> Z1(index_t k) const {
    return g_.alone ? one_matrix(d_.Z + at(d_.levels.line_start), g_.columns, k, d_.levels.lines())
                    : sides(d_.Z1, g_.columns, k, d_.fronts.columns);
  }
  Items<T> Z2(index_t k) const {
    return g_.alone ? one_matrix(d_.Z + at(d_.levels.line_start) + g_.columns, g_.below, k, d_.levels.lines())
                    : sides(d_.Z2, g_.below, k, d_.below);
  }
  int* info() const { return d_.info + g_.begin; }

 private:
  FrontShape shape() const { return {g_.columns + g_.below, g_.columns}; }
  template <class V>
  index_t at(const std::vector<V>& starts) const {
    return starts[g_.begin];
  }
  Items<T> ragged(T* const* blocks, index_t rows, index_t cols, const int* item_rows, const int* item_cols,
                  const int* item_ld) const {
    Items<T> A;
    A.pointers = blocks + g_.begin;
    A.item_rows = item_rows + g_.begin, A.item_cols = item_cols + g_.begin, A.item_ld = item_ld + g_.begin;
    A.stored_rows = A.rows = rows, A.stored_cols = A.cols = cols, A.count = g_.count();
    return A;
  }
  Items<T> sides(T* const* blocks, index_t rows, index_t k, const int* item_rows) const {
    auto Z = ragged(blocks, rows, d_.columns_at_once, item_rows, d_.side, d_.line_ld);
    return Z.block(0, 0, rows, k);
  }

  const LevelData<T>& d_;
  const Group& g_;
};

/// U -= F21 F21^H, the lower triangle. Of one large front a block column at a time, with what lies above the diagonal
/// in it: one product is faster than a hermitian update and a product.
template <class T, SparseEngineFor<T> E>
void update(E& e, const LevelData<T>& d, const Group& group) {
  const Blocks<T> block(d, group);
  const auto F21 = block.F21();
  if (!group.alone) {
    if (group.below > 0) e.herk(F21, block.U(0, group.below), block.info());
    return;
  }
  for (index_t j = 0; j < group.below; j += d.levels.update.block) {
    const index_t k = min(j + d.levels.update.block, group.below);
    e.gemm(plain(F21.block(j, 0, group.below - j, group.columns)), hermitian(F21.block(j, 0, k - j, group.columns)),
           block.U(j, k), block.info());
  }
}

/// Factors the fronts of one branch of P (A + shift I) P^T, after all branches before it. info of a front becomes that
/// of its columns; a front above one that failed holds anything.
template <class T, SparseEngineFor<T> E>
void factor(E& e, const LevelData<T>& d, const BranchLevels& branch, const T* values, Real<T> shift) {
  const Levels& l = d.levels;
  Track<E> branches{e, "branches"};
  const Traced traced_branch(branches, "branch", branch.factor_end - branch.factor_begin, branch.end - branch.begin);
  const auto assemble = [&](index_t begin, index_t end) {  // groups
    index_t rows = 0;
    for (index_t g = begin; g < end; ++g) rows = max(rows, l.groups[g].rows);
    e.assemble(d.fronts, l.first_line(begin), l.first_line(end), rows, values, shift, d.factor, d.updates,
               d.offloaded);
  };
  Track<E> levels{e, "levels"};
  for (index_t number = branch.begin; number < branch.end; ++number) {
    const Level& level = l.levels[number];
    const Traced traced(levels, "level", l.groups[level.end - 1].end - l.groups[level.begin].begin,
                        level.end - level.begin);
    for (index_t g = level.begin; g < level.alone; ++g) assemble(g, g + 1);  // as many threads as suit their size
    assemble(level.alone, level.end);
    for (index_t g = level.begin; g < level.end; ++g) {
      const Group& group = l.groups[g];
      if constexpr (FactorsSmallFrontsFor<E, T>)
        if (group.small) {
          e.factor_small_fronts(d.fronts, group.begin, group.end, {group.rows, group.entries}, d.factor, d.updates,
                                d.info);
          continue;
        }
      const Blocks<T> block(d, group);
      const auto F11 = block.F11(), F21 = block.F21();
      dense::cholesky(e, F11, block.info(), d.cholesky[g]);                         // F11 = L11 L11^H
      dense::trsm(e, lower, conjugate(F11), F21.flipped(), block.info(), d.solve);  // F21 := F21 L11^-H
      update(e, d, group);                                                          // U -= F21 F21^H
    }
  }
}

/// Z := L^-1 Z, in the rows that are columns of the fronts of one branch.
template <class T, SolvesByLevelFor<T> E>
void forward(E& e, const LevelData<T>& d, const BranchLevels& branch, index_t k) {
  const Levels& l = d.levels;
  for (index_t number = branch.begin; number < branch.end; ++number) {
    const Level& level = l.levels[number];
    e.add_children(d.fronts, l.first_line(level.begin), l.first_line(level.end), k, d.Z);
    for (index_t g = level.begin; g < level.end; ++g) {
      const Blocks<T> block(d, l.groups[g]);
      const auto F11 = block.F11(), F21 = block.F21(), Z1 = block.Z1(k), Z2 = block.Z2(k);
      dense::trsm(e, lower, plain(F11), Z1, nullptr, d.solve);      // Z1 := L11^-1 Z1
      if (Z2.rows > 0) e.gemm(plain(F21), plain(Z1), Z2, nullptr);  // Z2 -= L21 Z1
    }
  }
}

/// Z := L^-H Z, likewise.
template <class T, SolvesByLevelFor<T> E>
void backward(E& e, const LevelData<T>& d, const BranchLevels& branch, index_t k) {
  const Levels& l = d.levels;
  for (index_t number = branch.end; number-- > branch.begin;) {
    const Level& level = l.levels[number];
    e.copy_parents(d.fronts, l.first_line(level.begin), l.first_line(level.end), k, d.Z);
    for (index_t g = level.begin; g < level.end; ++g) {
      const Blocks<T> block(d, l.groups[g]);
      const auto F11 = block.F11(), F21 = block.F21(), Z1 = block.Z1(k), Z2 = block.Z2(k);
      if (Z2.rows > 0) e.gemm(hermitian(F21), plain(Z2), Z1, nullptr);  // Z1 -= L21^H Z2
      dense::trsm(e, upper, hermitian(F11), Z1, nullptr, d.solve);      // Z1 := L11^-H Z1
    }
  }
}

}  // namespace trifactor::sparse
