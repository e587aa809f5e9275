// OpenBLAS packs operands into buffers of its own, and waits without end for one that it cannot get. So they are asked
// for here first.
#pragma once

#include <trifactor/types.hpp>

namespace trifactor::host {

/// For the length of its scope the threads call BLAS side by side, each for one of `count` items, or work together
/// inside it for a single one. Throws OutOfMemory where the buffers and stacks for them do not fit in the address space
/// that is left.
class BlasCallers {
 public:
  BlasCallers(int threads, index_t count);
  BlasCallers(const BlasCallers&) = delete;
  ~BlasCallers();

 private:
  int callers_;
};

}  // namespace trifactor::host
