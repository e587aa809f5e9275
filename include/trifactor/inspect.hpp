// Looking inside: what the engine of a queue does and when, and parts of a factorization alone. For this project's own
// program and tests; not installed.
#pragma once

#include <trifactor/queue.hpp>

#include <memory>
#include <string>
#include <vector>

namespace trifactor::inspect {

/// One operation of an engine.
struct Operation {
  std::string lane;             // "main lane" and "side lane" of a CUDA queue; "CPU"; "chain" and "worker 1" inside a kernel
  std::string name;             // "gemm"
  index_t rows, cols, depth;    // of what it writes; the inner extent of a product, or 0
  double begin, end;            // seconds since the recording began
};

/// The operations of a queue's engine and, for hybrid panels, of its CPU, from here on. On CUDA an event stands before
/// and after each operation: none waits for anything because of that, but each takes a microsecond or two longer. Inside
/// the persistent kernel, the chain and eight other blocks note when they begin and end a piece.
class TRIFACTOR_API Recording {
 public:
  explicit Recording(Queue&);
  Recording(const Recording&) = delete;
  ~Recording();

  /// Waits for the queue, ends the recording and returns its operations in the order of their beginnings.
  std::vector<Operation> finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// As long as it lives, sparse Cholesky factorizations on host queues count their flops, as SparsePlan::front_flops does,
/// front by front. Counters that live at the same time share one count.
class TRIFACTOR_API FlopCounter {
 public:
  FlopCounter();
  FlopCounter(const FlopCounter&) = delete;
  ~FlopCounter();

  /// Since the first of those counters was made; from any thread.
  double done() const noexcept;
};

/// The updates of those steps of a blocked Cholesky factorization that begin at a column in first .. last-1, with the
/// engine's operations as the driver calls them, and nothing between them. They read the factor from L and update C, so
/// a repetition has the same work to do. `tuning` is that of CholeskyOptions: nb and looking count.
template <Scalar T>
TRIFACTOR_API void cholesky_updates(Queue&, Uplo, std::type_identity_t<MatrixView<const T>> L, MatrixView<T> C,
                                    index_t first, index_t last, const std::string& tuning = {});

}  // namespace trifactor::inspect
