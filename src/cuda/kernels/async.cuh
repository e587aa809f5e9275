// Copies from global to shared memory that a thread starts and waits for later.
#pragma once

#include <core/scalar.hpp>

namespace trifactor::cuda {

/// Shared memory by its own 32-bit address.
__device__ inline unsigned shared_address(const void* p) { return unsigned(__cvta_generic_to_shared(p)); }

/// So many bytes, of which the first `inside` are copied and the others become zero.
template <int bytes>
__device__ inline void copy_async(unsigned shared, const void* global, int inside = bytes) {
  if constexpr (bytes == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(global), "r"(inside) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared), "l"(global), "n"(bytes), "r"(inside)
                 : "memory");
}
__device__ inline void copy_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int pending>
__device__ inline void copy_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

}  // namespace trifactor::cuda
