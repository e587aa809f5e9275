// In which order and by which threads the host works through the fronts of a plan, and where every update matrix lies:
// all that a factorization would otherwise decide while it runs. Plain data, independent of scalar.
#pragma once

#include <core/tuning.hpp>
#include <sparse/entries.hpp>

#include <algorithm>

namespace trifactor::sparse {

/// Neighbouring rows below a front that are neighbours in its parent too.
struct Run {
  int place, length;  // the first one's place among the rows of the parent
};

/// A front of m rows and w columns in tiles: rows and columns are cut every `edge` up to w and every `edge` from w on.
struct Tiles {
  index_t m, w, edge;
  index_t across, down;  // tiles beside each other in the w columns, and below each other

  Tiles(index_t m, index_t w, const core::SparseTuning&);
  index_t begin(index_t i) const { return i < across ? i * edge : w + (i - across) * edge; }
  index_t end(index_t i) const { return i < across ? std::min(w, (i + 1) * edge) : std::min(m, begin(i) + edge); }

  // Tasks in the order in which they are taken: the columns of F are assembled, then its tiles are factored column by
  // column, then come the tiles of the update matrix.
  index_t tasks() const { return across + column_start(across) + (down - across) * (down - across + 1) / 2; }
  index_t column_start(index_t j) const { return j * down - j * (j - 1) / 2; }
  index_t assembly_task(index_t j) const { return j; }
  index_t tile_task(index_t i, index_t j) const { return across + column_start(j) + i - j; }
};

/// Threads take the branches by ticket, the costliest first, and each works through its branch alone. Then they take the
/// tiles of the fronts of `top`, in the order of these fronts.
///
/// An update matrix of order rows - columns is one square. Within a region, fronts at an even depth of the tree stack
/// theirs from the left end, those at an odd depth from the right end: a front takes its place beside its siblings at
/// one end while its children leave the other, so nothing ever moves. The work array begins with the update matrices of
/// the branches' roots, which wait for `top`. Then comes a region for each thread, large enough for every branch, in
/// which all other fronts of a branch lie. The region of `top` begins where those of the threads do: an update matrix of
/// `top` is written when all branches are done.
struct Schedule {
  int threads = 1;
  std::vector<Branch> branches;  // the costliest first
  std::vector<index_t> top;      // fronts, ascending

  std::vector<index_t> first_child, next_sibling;  // of each front, ascending; -1: none
  std::vector<index_t> update_at;  // inside a branch: in the region of its thread; otherwise in the work array
  index_t region_start = 0, region_entries = 0;    // of thread 0; of each thread
  index_t work_entries = 0;
  index_t largest_rows = 0;             // of a front

  // Solves take these nodes by ticket, each with one thread: the branches, and then fronts of `top` that are too small to
  // be shared, with all below them. What is left of `top` comes one after the other, with all threads on each front.
  std::vector<Branch> nodes;          // without branches: none
  std::vector<int> node_of;           // of each front that is the root of a node; otherwise -1
  std::vector<index_t> below_nodes;   // nodes + 1: sums of the rows below the roots
  std::vector<index_t> shared;        // fronts, ascending
  /// Whether the parent of a node is a node.
  bool has_parent(const Plan& plan, index_t node) const {
    const index_t parent = plan.parent[nodes[node].end - 1];
    return parent >= 0 && node_of[parent] >= 0;
  }

  std::vector<index_t> run_start;  // fronts + 1, into runs
  std::vector<Run> runs;

  Entries entries;  // those of a front of `top` are sorted by their places

  /// Of the arrays above.
  std::size_t bytes() const;
};

/// The time of a front in flops: its own, some for each entry that is moved, some for the calls.
double front_cost(const Plan&, index_t front, const core::SparseTuning&);

/// The schedule for so many threads. With one, or where more would gain nothing, threads is 1, everything is `top`, and
/// work_entries is the plan's stack_entries. Otherwise the fastest way counts that keeps within tuning.most_updates percent
/// of the factor, or else the one that takes least.
Schedule make_schedule(const Plan&, int threads, const core::SparseTuning& = {});

}  // namespace trifactor::sparse
