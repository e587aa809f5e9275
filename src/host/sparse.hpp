// The numeric phases of a sparse Cholesky factorization on the host. They are not written over the engine's operations:
// most fronts are smaller than what one operation costs in checks and thread counts, and which threads work where is
// the schedule's choice. BLAS is called by one thread at a time for its own tile, and never uses threads itself.
#pragma once

#include <core/scalar.hpp>
#include <core/tuning.hpp>
#include <sparse/schedule.hpp>

#include <atomic>
#include <memory>

namespace trifactor::host {

using core::Real;
using sparse::Tiles;

/// What the threads of one factorization tell each other. Nodes are the branches and, after them, the fronts of the top.
class Progress {
 public:
  Progress(const sparse::Plan&, const sparse::Schedule&, const core::SparseTuning&);
  void reset();

  index_t next_ticket() { return ticket_.fetch_add(1, std::memory_order_relaxed); }
  index_t task_start(index_t top) const { return task_start_[top]; }
  index_t node_of(index_t front) const { return node_of_[front]; }  // a branch's root, or a front of the top

  bool is_done(index_t task) const { return done_[task].load(std::memory_order_acquire) != 0; }
  void set_done(index_t task) { done_[task].store(1, std::memory_order_release); }
  bool is_complete(index_t node) const { return left_[node].load(std::memory_order_acquire) == 0; }
  void one_less(index_t node) { left_[node].fetch_sub(1, std::memory_order_acq_rel); }

  /// Columns as the plan numbers them; the first one of each item counts.
  void set_failed(index_t column);
  /// Whether a column of front s's item failed that comes before this one.
  bool failed_before(index_t s, index_t column) const {
    return failed_[plan_.item_of(plan_.first[s])].load(std::memory_order_acquire) < column;
  }
  /// -1: none.
  index_t failed(index_t item) const;
  /// As if all columns had failed: what is left of the work is skipped.
  void set_interrupted() {
    for (auto& column : failed_) column.store(-1);
  }

  std::size_t bytes() const;

 private:
  const sparse::Plan& plan_;
  const index_t branches_;
  std::vector<index_t> task_start_;  // fronts of the top + 1
  std::vector<int> node_of_;
  std::vector<std::atomic<unsigned char>> done_;  // of the top's tasks
  std::vector<std::atomic<int>> left_;            // tasks of each node
  std::atomic<index_t> ticket_;
  std::vector<std::atomic<index_t>> failed_;  // of each item
};

/// One plan, the schedule for it, and the memory of one factorization.
template <class T>
struct SparseData {
  const sparse::Plan& plan;
  const sparse::Schedule& schedule;
  const core::SparseTuning& tuning;
  T* factor;  // plan.factor_entries; above the diagonal of each front lies anything
};

/// Factors P (A + shift I) P^T = L L^H from the values in the order of the pattern. `work` has schedule.work_entries.
/// Progress tells of each item the first column, as the plan numbers them, whose pivot is not positive and finite.
template <class T>
void sparse_factor(const SparseData<T>&, const T* values, Real<T> shift, T* work, Progress&);

/// Memory of solves with up to k right-hand sides.
template <class T>
struct SolveScratch {
  T* entries;                        // solve_entries(schedule, k)
  int* places;                       // solve_places(schedule, n)
  std::atomic<unsigned char>* done;  // a flag for each of schedule.nodes
};
index_t solve_entries(const sparse::Schedule&, index_t k);
index_t solve_places(const sparse::Schedule&, index_t n);

/// X := L^-1 X and X := L^-H X for k right-hand sides. X is given as X^H: a row of k numbers for each column of the
/// plan, so that what a front gathers from elsewhere is contiguous.
template <class T>
void sparse_forward(const SparseData<T>&, index_t k, T* X, const SolveScratch<T>&);
template <class T>
void sparse_backward(const SparseData<T>&, index_t k, T* X, const SolveScratch<T>&);

/// r := b - (A + shift I) x and size := |b| + |A + shift I| |x|, all as the plan numbers them, vectors conjugated.
template <class T>
void sparse_residual(const SparseData<T>&, const T* values, Real<T> shift, const T* b, const T* x, T* r, Real<T>* size);

}  // namespace trifactor::host
