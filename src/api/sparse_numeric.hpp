// The two ways through the numeric phases of a sparse factorization, behind one interface.
#pragma once

#include <api/queue_state.hpp>
#include <core/batch.hpp>
#include <core/tuning.hpp>
#include <sparse/plan.hpp>
#include <trifactor/sparse.hpp>

#include <algorithm>
#include <limits>

namespace trifactor::api {

/// The memory and the numeric phases of one SparseCholesky, or of a batch: the plan says how many items it has. Pointers are in the queue's memory; all calls but failed,
/// diagonal and copy_factor are enqueued.
template <class T>
class SparseNumeric {
 public:
  virtual ~SparseNumeric() = default;

  /// What allocate() will take, and what is taken now.
  virtual SparseMemory memory() const = 0;
  virtual void allocate() = 0;

  /// info, unless that is null, becomes what failed() will tell.
  virtual void factor(const T* values, core::Real<T> shift, int* info) = 0;
  /// Of the last factorization, to the host's memory: for each item the first column of A, counted from 1, whose pivot is
  /// not positive and finite; 0 if there is none.
  virtual void failed(int* items) = 0;
  /// Leaves items of B as they are whose factorization failed.
  virtual void solve(core::Items<T> B, SparsePart) = 0;

  /// One right-hand side of one matrix, with `values` and a shift of their own: x, and how good it is.
  struct Refined {
    int steps = 0;
    core::Real<T> error = std::numeric_limits<core::Real<T>>::infinity();
  };
  virtual Refined refine(const T* values, core::Real<T> shift, MatrixView<T> column) = 0;

  /// To the host's memory: the diagonal of the factor, and all of it as the plan stores it.
  virtual void diagonal(T* out) = 0;
  virtual void copy_factor(T* out) = 0;
};

/// By branches of the tree, with the host's own routines.
template <class T>
std::unique_ptr<SparseNumeric<T>> sparse_by_branches(std::shared_ptr<detail::QueueState>, const sparse::Plan&,
                                                     const core::SparseTuning&);
/// Level by level, with the operations of the queue's engine, in at most max_device_bytes of its memory, 0: what is free.
/// Hybrid: threads of the host take a part. `name`: of the class, for messages.
template <class T>
std::unique_ptr<SparseNumeric<T>> sparse_by_level(const char* name, std::shared_ptr<detail::QueueState>,
                                                  const sparse::Plan&, const core::SparseTuning&, const SparseOptions&);

/// Iterative refinement: step() solves with the residual, adds that to x and returns the error of the new x; keep()
/// keeps x as the best so far.
template <class T, class Step, class Keep>
typename SparseNumeric<T>::Refined refined(Step step, Keep keep) {
  using R = core::Real<T>;
  constexpr int most_steps = 10;
  typename SparseNumeric<T>::Refined best;
  for (;; ++best.steps) {  // x is zero at first, so the first step is the solve itself
    const R next = step();
    const bool much_better = next < best.error / 2;
    if (next < best.error) best.error = next, keep();
    if (!much_better || next <= std::numeric_limits<R>::epsilon() / 2 || best.steps == most_steps) return best;
  }
}

/// The same in host memory: x := A^-1 b. solve() replaces r by A^-1 r; residual(x, size) makes r = b - A x, and size[i],
/// what its entry i is judged by.
template <class T, class Solve, class Residual>
typename SparseNumeric<T>::Refined refined_on_host(index_t n, const T* b, T* r, T* x, Solve solve, Residual residual) {
  using R = core::Real<T>;
  Buffer<T> best(n);
  Buffer<R> size(n);
  std::copy_n(b, n, r);
  std::fill_n(x, n, T(0));
  const auto step = [&] {
    solve();
    for (index_t i = 0; i < n; ++i) x[i] += r[i];
    residual(static_cast<const T*>(x), size.data());
    R error = 0;
    for (index_t i = 0; i < n; ++i)
      error = core::max_or_nan(error, size.data()[i] == 0 ? R(0) : core::abs1(r[i]) / size.data()[i]);
    return error;
  };
  const auto result = refined<T>(step, [&] { std::copy_n(x, n, best.data()); });
  if (result.error < std::numeric_limits<R>::infinity()) std::copy_n(best.data(), n, x);
  return result;
}

}  // namespace trifactor::api
