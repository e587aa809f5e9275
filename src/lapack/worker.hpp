// One call's way to a queue of trifactor and back. libtrifactor is loaded when a call first needs it, and only its C
// functions are used: a program that makes no large call never sees it, nor the BLAS that it brings.
#pragma once

#include <trifactor.h>

namespace trifactor::lapack {

/// A matrix of the caller, in the host's memory.
struct HostMatrix {
  void* data;
  std::int64_t rows, cols, ld;
};

/// Which entries are copied. Lower and Upper are those of a square matrix, with the diagonal; nothing else is written.
enum class Part { Whole, Lower, Upper };

/// A queue and memory of its device. The caller's memory is only read until `fetch`, so that a call that fails before
/// it can be passed on.
class Worker {
 public:
  /// Null where calls are to be passed on: there is no GPU, or it has failed, or the user said so.
  static Worker* take();
  static void give_back(Worker*);

  bool on_cuda() const { return on_cuda_; }

  // Each returns false when it did not work.
  bool factor_cholesky(trifactor_scalar, trifactor_uplo, HostMatrix A, HostMatrix* X, int& info);
  bool solve_cholesky(trifactor_scalar, trifactor_uplo, HostMatrix L, HostMatrix X);
  bool invert_cholesky(trifactor_scalar, trifactor_uplo, HostMatrix L);
  bool factor_lu(trifactor_scalar, HostMatrix A, int* pivots, HostMatrix* X, int& info);
  bool solve_lu(trifactor_scalar, trifactor_op, HostMatrix LU, const int* pivots, HostMatrix X);
  bool invert_lu(trifactor_scalar, HostMatrix LU, const int* pivots);

 private:
  enum Slot { MatrixSlot, SecondSlot, PivotsSlot, InfoSlot, slots };
  struct Memory {
    void* data = nullptr;
    std::size_t bytes = 0;
  };

  Worker(trifactor_queue* queue, bool on_cuda) : queue_(queue), on_cuda_(on_cuda) {}
  bool works(trifactor_status);
  bool make_room(Slot, std::size_t bytes);
  trifactor_view view(trifactor_scalar, Slot, HostMatrix shape) const;
  bool send(trifactor_scalar, Slot, HostMatrix source, Part);
  bool send(Slot, const int* values, std::int64_t count);
  /// These end the program when they fail, since the caller's memory is then half written.
  void fetch(trifactor_scalar, Slot, HostMatrix target, Part);
  void fetch(Slot, int* values, std::int64_t count);
  void copy_back(const void* source, std::size_t source_ld, void* target, std::size_t target_ld, std::size_t rows,
                 std::size_t cols);
  void fetch_triangle(trifactor_scalar, Slot, HostMatrix target, Part, std::int64_t begin, std::int64_t end);
  bool complete();

  trifactor_queue* queue_;
  bool on_cuda_;
  Memory memory_[slots];
  Worker* rest_ = nullptr;
};

/// An address inside libtrifactor, which is loaded for it; null where it is not found.
const void* address_in_trifactor();

}  // namespace trifactor::lapack
