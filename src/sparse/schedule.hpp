// In which order and by which threads the host works through the fronts of a plan, and where every update matrix lies:
// all that a factorization would otherwise decide while it runs. Plain data, independent of scalar.
#pragma once

#include <core/tuning.hpp>
#include <sparse/entries.hpp>

namespace trifactor::sparse {

/// A subtree: neighbouring fronts, since they are numbered in postorder.
struct Branch {
  index_t begin, end;  // fronts; the root is the last one
};

/// Neighbouring rows below a front that are neighbours in its parent too.
struct Run {
  int place, length;  // the first one's place among the rows of the parent
};

/// Thread t works through the branches [branch_start[t], branch_start[t + 1]) with serial BLAS; then all threads
/// together, inside BLAS, through the fronts of `top`, one after the other.
///
/// An update matrix of order rows - columns is one square from update_at[front] on in an array of work_entries. Within
/// a region, fronts at an even depth of the tree stack theirs from the left end, those at an odd depth from the right
/// end: a front takes its place beside its siblings at one end while its children leave the other, so nothing ever
/// moves. First come the update matrices of the branches' roots, which wait for `top`; then a region for each thread.
/// The region of `top` begins where those of the threads do, since they are empty by then.
struct Schedule {
  int threads = 1;
  std::vector<Branch> branches;
  std::vector<index_t> branch_start;  // threads + 1
  std::vector<index_t> top;           // fronts, ascending

  std::vector<index_t> first_child, next_sibling;  // of each front, ascending; -1: none
  std::vector<index_t> update_at;
  index_t work_entries = 0;
  index_t largest_rows = 0;  // of a front

  std::vector<index_t> run_start;  // fronts + 1, into runs
  std::vector<Run> runs;

  Entries entries;

  /// Of the arrays above.
  std::size_t bytes() const;
};

/// The schedule for so many threads. With one, everything is `top` and work_entries is the plan's stack_entries. With
/// more, the fastest way counts that keeps within tuning.most_updates percent of the factor, or else the one that takes
/// least.
Schedule make_schedule(const Plan&, int threads, const core::SparseTuning& = {});

}  // namespace trifactor::sparse
