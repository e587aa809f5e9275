// The rules of a pattern, checked entry by entry.
#pragma once

#include <sparse/graph.hpp>
#include <trifactor/error.hpp>

#include <limits>

namespace trifactor::sparse {

inline std::string at(const char* array, index_t k) {
  return std::string("pattern.") + array + "[" + std::to_string(k) + "]";
}

/// Which entries are read: all of a triangle that is given alone, and the lower one of a full matrix.
template <class I>
struct Reader {
  const Pattern<I>& pattern;
  // An entry of the lower triangle has its index after (columns) or before (rows) its column or row.
  bool index_after = (pattern.stored == Stored::Upper) == (pattern.compressed == Compressed::Rows);

  bool in_triangle(index_t major, index_t index) const { return index_after ? index >= major : index <= major; }
};

template <class I>
void check_shape(const Pattern<I>& p) {
  if (p.rows < 0) refuse("pattern.rows", p.rows, "not be negative");
  if (p.rows != p.cols) refuse("pattern.cols", p.cols, "equal pattern.rows = " + std::to_string(p.rows));
  constexpr index_t max_rows = std::numeric_limits<node_t>::max() - 1;
  if (p.rows > max_rows) refuse("pattern.rows", p.rows, "be at most " + std::to_string(max_rows));
  if (p.rows == 0) return;
  if (!p.start) throw InvalidArgument("analyze: pattern.start is null");
  if (p.start[0] != 0) refuse(at("start", 0), p.start[0], "be 0");
  for (index_t j = 0; j < p.rows; ++j)
    if (p.start[j + 1] < p.start[j])
      refuse(at("start", j + 1), p.start[j + 1], "be at least " + at("start", j) + " = " + std::to_string(p.start[j]));
  if (p.start[p.rows] > 0 && !p.index) throw InvalidArgument("analyze: pattern.index is null");
}

struct PatternFacts {
  bool repeated = false;  // a place has more than one entry
  bool ascending = true;  // so are the indices of every column (row)
  index_t links = 0;      // entries that are read, without the diagonal
};

/// Checks the entries of columns (rows) begin to end - 1 of a pattern whose shape is good, and calls visit(index,
/// column or row) for those that are read.
template <class I, class Visit>
PatternFacts check_entries(const Pattern<I>& p, bool duplicates, index_t begin, index_t end, const Visit& visit) {
  const index_t n = p.rows;
  const Reader<I> reader{p};
  const char* const major = p.compressed == Compressed::Columns ? "column" : "row";
  const auto in_major = [&](index_t j) { return std::string(" in ") + major + " " + std::to_string(j); };

  PatternFacts facts;
  std::vector<node_t> seen;  // the last column (row) that had this index; made when one does not ascend
  for (index_t j = begin; j < end; ++j) {
    bool ascends = true;
    for (index_t k = index_t(p.start[j]) + 1; k < p.start[j + 1]; ++k) ascends = ascends && p.index[k - 1] <= p.index[k];
    facts.ascending = facts.ascending && ascends;
    if (!ascends && !p.sorted && seen.empty()) seen.assign(n, -1);
    for (index_t k = p.start[j]; k < p.start[j + 1]; ++k) {
      const index_t i = p.index[k];
      if (i < 0 || i >= n)
        refuse(at("index", k) + in_major(j), i, "be at least 0 and less than n = " + std::to_string(n));
      bool again = k > p.start[j] && p.index[k - 1] == p.index[k];
      if (!ascends && p.sorted && k > p.start[j] && p.index[k - 1] > p.index[k])
        refuse(at("index", k) + in_major(j), i,
               "not be less than the index before it, " + std::to_string(p.index[k - 1]) +
                   ", in a pattern that is promised to be sorted");
      if (!ascends && !p.sorted) {
        again = seen[i] == j;
        seen[i] = node_t(j);
      }
      if (again) {
        if (!duplicates)
          refuse(at("index", k) + in_major(j), i,
                 "not appear twice in a " + std::string(major) + " unless duplicates are asked for");
        facts.repeated = true;
      }
      if (!reader.in_triangle(j, i)) {
        if (p.stored == Stored::Full) continue;
        refuse(at("index", k) + in_major(j), i,
               std::string("lie in the ") + (p.stored == Stored::Lower ? "lower" : "upper") +
                   " triangle, which alone is promised");
      }
      facts.links += i != j;
      visit(i, j);
    }
  }
  return facts;
}
template <class I, class Visit>
PatternFacts check_entries(const Pattern<I>& p, bool duplicates, const Visit& visit) {
  return check_entries(p, duplicates, 0, p.rows, visit);
}

}  // namespace trifactor::sparse
