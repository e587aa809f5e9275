// Looking inside: what the engine of a queue does and when, and parts of a factorization alone. For this project's own
// program and tests; not installed.
#pragma once

#include <trifactor/info.hpp>
#include <trifactor/queue.hpp>

#include <functional>
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

/// Makes the first k row interchanges in A, with the engine's operation that LU calls beside a panel. LAPACK's pivots,
/// in the queue's memory: row i goes with row pivots[i] - 1, for i = 0 .. k-1.
template <Scalar T>
TRIFACTOR_API void swap_rows(Queue&, MatrixView<T> A, ArrayView<const int> pivots, index_t k);

/// Which tuning serves calls of one kind best, on the machine of a queue.
struct TuningDecision {
  std::string row;              // "sm_90 cholesky f64" of the row, before its conditions
  std::string settings;         // "nb=512 leaf=64": all that a row must say
  std::string changed;          // "nb=512": what is not as in the row in force; empty where that is best
  double before = 0, seconds = 0, spread = 0;   // medians of the row in force and of the settings, measured in turn
  int candidates = 0, runs = 0;
  bool gains = false;           // by more than the spread and 1 %
};

/// Searches the fields of an operation ("cholesky", "lu", "solve", "value" or "sparse") that can matter for calls of
/// order n and count items: src/tuning/search.hpp. seconds(tuning) is one run with such a tuning of the call's options;
/// stop() is asked before each. Throws InvalidArgument for another operation.
TRIFACTOR_API TuningDecision search_tuning(const Queue&, const std::string& operation, const std::string& scalar,
                                           index_t n, index_t count,
                                           const std::function<double(const std::string& tuning)>& seconds,
                                           const std::function<bool()>& stop);

/// Where the library looks for tuning rows by itself; empty where there is no home folder.
TRIFACTOR_API std::string home_tuning_file();
/// The rows of a tuning file. Throws InvalidArgument with file, line and rule.
TRIFACTOR_API std::vector<TuningRow> read_tuning_file(const std::string& name);

}  // namespace trifactor::inspect
