// The numeric phases of a sparse Cholesky factorization, level by level over an engine's operations: every line of the
// loops is one operation for all fronts of a group.
#pragma once

#include <core/sparse_engine.hpp>
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
  T *factor = nullptr, *updates = nullptr;
  T* Z = nullptr;  // (lines, right-hand sides)
  int* info = nullptr;
  // Of each front: its blocks, and their sizes for ragged batches. `side` says columns_at_once for all of them.
  T *const *F11 = nullptr, *const *F21 = nullptr, *const *U = nullptr, *const *Z1 = nullptr, *const *Z2 = nullptr;
  const int *below = nullptr, *rows = nullptr, *update_ld = nullptr, *line_ld = nullptr, *side = nullptr;
};

/// The blocks of a group, by name:   F = | F11 |  columns     U: update matrix     Z = | Z1 |  right-hand sides
///                                       | F21 |  below                                | Z2 |
template <class T>
class Blocks {
 public:
  Blocks(const LevelData<T>& data, const Group& group) : d_(data), g_(group) {}

  Items<T> F11() const {
    return g_.count() == 1 ? one_matrix(d_.factor + at(d_.levels.factor_at), g_.columns, g_.columns, height())
                           : ragged(d_.F11, g_.columns, g_.columns, d_.fronts.columns, d_.fronts.columns, d_.rows);
  }
  Items<T> F21() const {
    return g_.count() == 1
               ? one_matrix(d_.factor + at(d_.levels.factor_at) + g_.columns, g_.below, g_.columns, height())
               : ragged(d_.F21, g_.below, g_.columns, d_.below, d_.fronts.columns, d_.rows);
  }
  Items<T> U() const {
    return g_.count() == 1
               ? one_matrix(d_.updates + at(d_.levels.update_at), g_.below, g_.below, max(index_t(1), g_.below))
               : ragged(d_.U, g_.below, g_.below, d_.below, d_.below, d_.update_ld);
  }
  Items<T> Z1(index_t k) const {
    return g_.count() == 1 ? one_matrix(d_.Z + at(d_.levels.line_start), g_.columns, k, d_.levels.lines())
                           : sides(d_.Z1, g_.columns, k, d_.fronts.columns);
  }
  Items<T> Z2(index_t k) const {
    return g_.count() == 1 ? one_matrix(d_.Z + at(d_.levels.line_start) + g_.columns, g_.below, k, d_.levels.lines())
                           : sides(d_.Z2, g_.below, k, d_.below);
  }
  int* info() const { return d_.info + g_.begin; }

 private:
  index_t height() const { return g_.columns + g_.below; }
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

/// Factors P (A + shift I) P^T. info of a front becomes that of its columns; a front above one that failed holds
/// anything.
template <class T, SparseEngineFor<T> E>
void factor(E& e, const LevelData<T>& d, const T* values, Real<T> shift) {
  const Levels& l = d.levels;
  const auto assemble = [&](index_t begin, index_t end) {  // groups
    index_t rows = 0;
    for (index_t g = begin; g < end; ++g) rows = max(rows, l.groups[g].rows);
    e.assemble(d.fronts, l.first_line(begin), l.first_line(end), rows, values, shift, d.factor, d.updates);
  };
  for (const Level& level : l.levels) {
    for (index_t g = level.begin; g < level.alone; ++g) assemble(g, g + 1);  // as many threads as suit their size
    assemble(level.alone, level.end);
    for (index_t g = level.begin; g < level.end; ++g) {
      const Group& group = l.groups[g];
      if constexpr (FactorsSmallFrontsFor<E, T>)
        if (group.small) {
          e.factor_small_fronts(d.fronts, group.begin, group.end, {group.rows, group.columns}, d.factor, d.updates, d.info);
          continue;
        }
      const Blocks<T> block(d, group);
      const auto F11 = block.F11(), F21 = block.F21(), U = block.U();
      dense::cholesky(e, F11, block.info(), d.cholesky[g]);                         // F11 = L11 L11^H
      dense::trsm(e, lower, conjugate(F11), F21.flipped(), block.info(), d.solve);  // F21 := F21 L11^-H
      if (U.rows > 0) e.herk(F21, U, block.info());                                 // U -= F21 F21^H
    }
  }
}

/// Z := L^-1 Z, in the rows that are columns of the factor.
template <class T, SparseEngineFor<T> E>
void forward(E& e, const LevelData<T>& d, index_t k) {
  const Levels& l = d.levels;
  for (const Level& level : l.levels) {
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
template <class T, SparseEngineFor<T> E>
void backward(E& e, const LevelData<T>& d, index_t k) {
  const Levels& l = d.levels;
  for (auto level = l.levels.rbegin(); level != l.levels.rend(); ++level) {
    e.copy_parents(d.fronts, l.first_line(level->begin), l.first_line(level->end), k, d.Z);
    for (index_t g = level->begin; g < level->end; ++g) {
      const Blocks<T> block(d, l.groups[g]);
      const auto F11 = block.F11(), F21 = block.F21(), Z1 = block.Z1(k), Z2 = block.Z2(k);
      if (Z2.rows > 0) e.gemm(hermitian(F21), plain(Z2), Z1, nullptr);  // Z1 -= L21^H Z2
      dense::trsm(e, upper, hermitian(F11), Z1, nullptr, d.solve);      // Z1 := L11^-H Z1
    }
  }
}

}  // namespace trifactor::sparse
