// The numeric phases of a sparse Cholesky factorization on the host. They are not written over the engine's operations:
// most fronts are smaller than what one operation costs in checks and thread counts, and which threads work where is
// the schedule's choice, above BLAS and inside it.
#pragma once

#include <core/scalar.hpp>
#include <core/tuning.hpp>
#include <sparse/schedule.hpp>

namespace trifactor::host {

using core::Real;

/// One plan, the schedule for it, and the memory of one factorization.
template <class T>
struct SparseData {
  const sparse::Plan& plan;
  const sparse::Schedule& schedule;
  const core::SparseTuning& tuning;
  T* factor;  // plan.factor_entries; above the diagonal of each front lies anything
};

/// Factors P (A + shift I) P^T = L L^H from the values in the order of the pattern. `work` has schedule.work_entries.
/// Returns the first column, as the plan numbers them, whose pivot is not positive and finite; -1 if there is none.
template <class T>
index_t sparse_factor(const SparseData<T>&, const T* values, Real<T> shift, T* work);

/// X := L^-1 X and X := L^-H X for k right-hand sides. X is given as X^H: a row of k numbers for each column of the
/// plan, so that what a front gathers from elsewhere is contiguous, and every product is one that BLAS has.
/// `scratch` has sparse_solve_scratch(schedule, n, k) entries.
template <class T>
void sparse_forward(const SparseData<T>&, index_t k, T* X, T* scratch);
template <class T>
void sparse_backward(const SparseData<T>&, index_t k, T* X, T* scratch);
index_t sparse_solve_scratch(const sparse::Schedule&, index_t n, index_t k);

/// r := b - (A + shift I) x and size := |b| + |A + shift I| |x|, all as the plan numbers them, vectors conjugated.
template <class T>
void sparse_residual(const SparseData<T>&, const T* values, Real<T> shift, const T* b, const T* x, T* r, Real<T>* size);

}  // namespace trifactor::host
