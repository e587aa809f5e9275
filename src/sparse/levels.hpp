// The fronts of a plan by level: what is factored together, where every update matrix lies, and the lists by which
// fronts are assembled. Plain data, independent of scalar; an engine gets a copy of the lists in its own memory.
#pragma once

#include <core/fronts.hpp>
#include <core/tuning.hpp>
#include <sparse/branches.hpp>

namespace trifactor::sparse {

/// Neighbouring fronts of one level, all small ones, or alike in size: a ragged batch, or one large front.
struct Group {
  index_t begin, end;      // in the order of Levels::front
  index_t columns, below;  // of the largest
  index_t rows, entries;   // likewise; entries as core::FrontLimits counts them
  bool small;              // within the limits that make_levels was given
  bool alone;              // one front, as one matrix
  index_t count() const { return end - begin; }
};

/// The groups of one level: batches, then fronts that are alone. Children lie in the level before, or in earlier branches.
struct Level {
  index_t begin, alone, end;
};

/// The levels of one branch, and its part of the factor.
struct BranchLevels {
  index_t begin, end;
  index_t factor_begin, factor_end;
};

struct Levels {
  BranchCut cut;                       // as make_levels was given it
  std::vector<BranchLevels> branches;  // the same, by level
  std::vector<Level> levels;
  std::vector<Group> groups;
  std::vector<index_t> front;  // the plan's number of the front at each place
  core::UpdateShape update;
  index_t factor_entries = 0;  // with padding, which the plan's factor does not have

  // What core::Fronts points to, by the same names; for each front in its place here.
  std::vector<int> columns, line_start, first;
  std::vector<index_t> factor_at, update_at, offloaded_at;
  template <class V>
  using Filled = std::vector<V, Uncleared<V>>;  // by all threads
  Filled<int> line_front, parent_line, child_line, line_column;
  std::vector<int> child_start, line, permutation;
  Filled<index_t> entry_start;
  Filled<int> entry_row, entry_source;
  // The sizes that ragged batches read besides.
  std::vector<int> below, rows, factor_ld, update_ld;

  index_t lines() const { return line_start.back(); }
  /// The first line of a group; behind the last one, all lines.
  index_t first_line(index_t group) const {
    return group < index_t(groups.size()) ? line_start[groups[group].begin] : lines();
  }
};

/// `given` is the plan that targets belong to; fronts of the other one may be parts of its fronts (split_fronts, with the
/// tuning's limit). Throws InvalidArgument when there are more rows in all fronts, or values, than an int can count. The result
/// does not depend on the number of threads. Fronts within the limits of `small` are one group of their level.
Levels make_levels(const Plan&, const Plan& given, BranchCut, const core::SparseTuning&, core::FrontLimits small,
                   int threads);

/// How update matrices are stored: those of batches and of small fronts are full squares.
core::UpdateShape update_shape(const core::SparseTuning&, core::FrontLimits small);

/// The matrix by rows, both triangles, in its own numbering.
struct MatrixRowLists {
  std::vector<index_t> start;
  std::vector<int> column;
  std::vector<index_t> source;
};
MatrixRowLists rows_of_matrix(const Plan&);

}  // namespace trifactor::sparse
