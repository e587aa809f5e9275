// Ending a long call early: on Ctrl-C, or when its result is no longer wanted.
#pragma once

#include <trifactor/error.hpp>

#include <functional>

namespace trifactor {

/// While it lives, calls that this thread makes on host queues ask stop() between the items of a batch, between the
/// fronts of a sparse Cholesky factorization, the panels of a sparse LU factorization and blocks of right-hand sides of
/// a sparse solve; so does an analysis between pieces of nested dissection. Once it returns true they throw
/// Interrupted. stop() runs in this thread, often: it must be quick, and must not throw. One dense matrix is one item:
/// LAPACK cannot be asked to stop, nor can AMD and COLAMD. Work on a CUDA queue is enqueued in one go and does not ask.
/// Of several in one thread the innermost counts.
class TRIFACTOR_API Interruptible {
 public:
  explicit Interruptible(std::function<bool()> stop);
  Interruptible(const Interruptible&) = delete;
  ~Interruptible();

 private:
  std::function<bool()> stop_;
  const std::function<bool()>* outer_;
};

}  // namespace trifactor
