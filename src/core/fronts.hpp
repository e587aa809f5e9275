// Fronts: the lists of a sparse factorization by level as engines read them, in the engine's memory.
#pragma once

#include <core/batch.hpp>

namespace trifactor::core {

/// Lines of fronts and update matrices begin at multiples of so many entries, 16 bytes in every scalar. H200, double: a
/// product of 6000 x 6000 x 3000 runs at 55 Tflop/s, with lines at odd places at 37.
inline constexpr index_t line_alignment = 4;
TF_HD index_t aligned(index_t entries) { return (entries + line_alignment - 1) / line_alignment * line_alignment; }

/// How a front of so many rows and columns is stored, column-major: row i is at i, from row `columns` on at i + gap.
struct FrontShape {
  index_t ld, gap;

  TF_HD FrontShape(index_t rows, index_t columns) : ld(rows), gap(0) {
    constexpr index_t tiny = 64;  // these are stored without padding
    if (rows > tiny) ld = aligned(columns) + aligned(rows - columns), gap = aligned(columns) - columns;
  }
};

/// How the lower triangle of an update matrix is stored: by block columns, each without the rows above its first one. A
/// matrix of up to `block` columns is a full square.
struct UpdateShape {
  index_t block = line_alignment;  // a multiple of it

  TF_HD static index_t ld(index_t order) { return aligned(order); }  // of the first block column
  /// Row i of column c, i >= c, is at this place + i.
  TF_HD index_t column(index_t order, index_t c) const {
    const index_t b = c / block, first = b * block;
    return first * ld(order) - block * block * (b * (b - 1) / 2) + (c - first) * (ld(order) - first) - first;
  }
  TF_HD index_t entries(index_t order) const {
    const index_t b = order / block, left = order - b * block;
    return b * block * ld(order) - block * block * (b * (b - 1) / 2) + left * (ld(order) - b * block);
  }
};

/// The dense blocks of a sparse factor, in the order in which they are factored. Front t has `columns[t]` columns of
/// the factor and all its rows: its own columns first, then the rows below them. Its rows are *lines* line_start[t] to
/// line_start[t + 1] - 1 in a numbering of the rows of all fronts. A line is also a column of the front's square: the
/// first ones are columns of the factor, the others columns of the update matrix.
struct Fronts {
  index_t count = 0, lines = 0, n = 0;
  index_t items = 1, item_columns = 0;  // equal matrices that the columns belong to, item after item: n in all
  UpdateShape update;
  // Of each front.
  const int* columns = nullptr;
  const int* line_start = nullptr;     // count + 1
  const int* first = nullptr;          // its first column in the factor's own numbering
  const index_t* factor_at = nullptr;  // (rows, columns): see FrontShape
  const index_t* update_at = nullptr;  // its update matrix, of order rows - columns: see UpdateShape
  const index_t* offloaded_at = nullptr;  // where its parent finds that on the host; -1: where it is. Null: all -1
  // Of each line.
  const int* front = nullptr;        // that it belongs to
  const int* parent_line = nullptr;  // of a row below: the line of the parent that is the same row; else -1
  const int* child_start = nullptr;  // lines + 1, into child_line: the lines of children that are the same row
  const int* child_line = nullptr;
  const int* column = nullptr;  // of the factor that is the same row
  // Of each column of the factor.
  const int* line = nullptr;              // of its front
  const int* permutation = nullptr;       // its number in the matrix
  const index_t* entry_start = nullptr;   // n + 1: the given values in it, ascending by row
  const int* entry_row = nullptr;         // among the rows of its front
  const int* entry_source = nullptr;      // the number of the value; ~ of it: conjugated

  TF_HD index_t rows(index_t t) const { return line_start[t + 1] - line_start[t]; }
  TF_HD int item_of(int column) const { return items == 1 ? 0 : column / int(item_columns); }
  /// Where the right-hand sides of an item are: their row 0 would be that of the first item, as the permutation counts.
  template <class T>
  TF_HD Tile<T> item_rows(const Items<T>& B, int item) const {
    Tile<T> b = B.item(0);
    b.data += item * (B.stride - item_columns);
    return b;
  }
};

/// Fronts that one block of threads factors in shared memory: at most so many rows, and entries as they lie there.
/// Columns come in eights, and lie 4 more than a multiple of 16 apart, so that a warp reads tiles without bank conflicts.
/// The last tile of rows may reach beyond the last column.
struct FrontLimits {
  index_t rows = 0, entries = 0;

  TF_HD static index_t column_stride(index_t rows) { return ceil_div(rows, index_t(16)) * 16 + 4; }
  TF_HD static index_t entries_of(index_t rows, index_t columns) {
    return column_stride(rows) * (ceil_div(columns, index_t(8)) * 8) + 16;
  }
  bool hold(index_t front_rows, index_t columns) const {
    return front_rows <= rows && entries_of(front_rows, columns) <= entries;
  }
};

// Solves in one launch: what blocks of threads take one after the other.

/// Rows of a front (forward) or columns (backward) for one block: `number` counts strips of the front. Forward, those
/// of its own columns come first, then those of the rows below; both are cut every `edge` from their beginning.
struct SolveStrip {
  index_t factor_at;  // of the front
  int rows, columns, line, first;
  int number;
  int diagonal;  // number of the diagonal block, as backward strips are counted; -1 for rows below
};

/// A front of a small subtree. One block solves with all fronts of a group of subtrees from shared memory.
struct SolveFront {
  index_t factor_at;
  int rows, columns, line, first;
  int at;         // its place in shared memory, (rows | 1, columns)
  int level_end;  // where the fronts of the next level begin in the list
  int children;   // rows of children that are rows of it
};

/// Strips are in an order in which every strip comes after all those that it waits for. Forward, subtrees come before
/// all strips; backward, after them.
struct SolveLists {
  int subtree_groups = 0, forward_strips = 0, backward_strips = 0;
  const int* subtree_start = nullptr;          // groups + 1, into subtree_fronts: what one block takes
  const SolveFront* subtree_fronts = nullptr;  // of each group, leaves first
  const SolveStrip *forward = nullptr, *backward = nullptr;
};

/// What a call with such lists does of a solve: with which triangles it works, and which of them the whole solve has.
/// The first call of a solve clears the vectors.
struct SolveSteps {
  bool forward, backward;
  bool solve_forward, solve_backward;
  bool first = true;
};

/// The largest group of subtrees that one block takes: entries of its fronts, and rows and columns of each; and how
/// strips are cut.
struct SolveLimits {
  index_t entries, rows, columns, edge;
};

/// The matrix by rows, both triangles, in its own numbering: for residuals.
struct MatrixRows {
  index_t n = 0;
  const index_t* start = nullptr;  // n + 1
  const int* column = nullptr;
  const index_t* source = nullptr;  // the number of the value; ~ of it: conjugated
};

}  // namespace trifactor::core
