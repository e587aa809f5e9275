// The fronts of a plan by level: what is factored together, where every update matrix lies, and the lists by which
// fronts are assembled. Plain data, independent of scalar; an engine gets a copy of the lists in its own memory.
#pragma once

#include <core/fronts.hpp>
#include <core/tuning.hpp>
#include <sparse/plan.hpp>

namespace trifactor::sparse {

/// Neighbouring fronts of one level, alike in size: a ragged batch, or one large front.
struct Group {
  index_t begin, end;      // in the order of Levels::front
  index_t columns, below;  // of the largest
  index_t count() const { return end - begin; }
};

/// The groups of one level: batches, then fronts that are alone. Children lie in the level before.
struct Level {
  index_t begin, alone, end;
};

struct Levels {
  std::vector<Level> levels;
  std::vector<Group> groups;
  std::vector<index_t> front;  // the plan's number of the front at each place
  index_t update_entries = 0;  // of the array that all update matrices lie in

  // What core::Fronts points to, by the same names; for each front in its place here.
  std::vector<int> columns, line_start, first;
  std::vector<index_t> factor_at, update_at;
  std::vector<int> line_front, parent_line, child_start, child_line;
  std::vector<int> line, permutation;
  std::vector<index_t> entry_start;
  std::vector<int> entry_row;
  std::vector<index_t> entry_source;
  // The sizes that ragged batches read besides.
  std::vector<int> below, rows, update_ld;

  index_t lines() const { return line_start.back(); }
  /// The first line of a group; behind the last one, all lines.
  index_t first_line(index_t group) const {
    return group < index_t(groups.size()) ? line_start[groups[group].begin] : lines();
  }
};

/// Throws InvalidArgument when there are more rows in all fronts than an int can count.
Levels make_levels(const Plan&, const core::SparseTuning&);

/// The matrix by rows, both triangles, in its own numbering.
struct MatrixRowLists {
  std::vector<index_t> start;
  std::vector<int> column;
  std::vector<index_t> source;
};
MatrixRowLists rows_of_matrix(const Plan&);

}  // namespace trifactor::sparse
