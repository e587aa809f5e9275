// Copies from global to shared memory that a thread starts and waits for later; barriers of a block.
#pragma once

#include <core/scalar.hpp>

namespace trifactor::cuda {

/// Shared memory by its own 32-bit address.
__device__ inline unsigned shared_address(const void* p) { return unsigned(__cvta_generic_to_shared(p)); }

/// So many bytes, of which the first `inside` are copied and the others become zero. 16 bytes go past the first-level
/// cache.
template <int bytes>
__device__ inline void copy_async(unsigned shared, const void* global, int inside = bytes) {
#define TRIFACTOR_COPY(how) \
  asm volatile("cp.async." how " [%0], [%1], %2, %3;" ::"r"(shared), "l"(global), "n"(bytes), "r"(inside) : "memory")
  if constexpr (bytes == 16)
    TRIFACTOR_COPY("cg.shared.global");
  else
    TRIFACTOR_COPY("ca.shared.global");
#undef TRIFACTOR_COPY
}
__device__ inline void copy_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/// Brings a line of global memory to the second-level cache.
__device__ inline void prefetch_l2(const void* p) { asm volatile("prefetch.global.L2 [%0];" ::"l"(p)); }
/// Waits for all copies, committed or not.
__device__ inline void copy_wait_all() { asm volatile("cp.async.wait_all;" ::: "memory"); }
template <int pending>
__device__ inline void copy_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

/// 16 bytes, without a branch.
__device__ inline void copy_async_if(bool wanted, unsigned shared, const void* global) {
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %2, 0; @p cp.async.cg.shared.global [%0], [%1], 16; }" ::"r"(shared),
               "l"(global), "r"(int(wanted))
               : "memory");
}
/// Waits until at most `pending` of the latest groups are under way; 0 to 4.
__device__ inline void copy_wait(int pending) {
  switch (pending) {
    case 0:
      return copy_wait<0>();
    case 1:
      return copy_wait<1>();
    case 2:
      return copy_wait<2>();
    case 3:
      return copy_wait<3>();
    default:
      return copy_wait<4>();
  }
}

/// Barriers of the hardware, which a block names by number; 0 is that of __syncthreads. Whole warps sync, or only
/// arrive.
template <int number, int threads>
__device__ void sync_threads() {
  asm volatile("barrier.sync.aligned %0, %1;" ::"n"(number), "n"(threads) : "memory");
}
template <int number, int threads>
__device__ void arrive_threads() {
  asm volatile("barrier.arrive.aligned %0, %1;" ::"n"(number), "n"(threads) : "memory");
}

// Barriers in shared memory, named by their addresses there.
__device__ inline void barrier_init(unsigned barrier, int count) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}
/// By one thread, when nobody comes any more: the place is plain memory again.
__device__ inline void barrier_end(unsigned barrier) {
  asm volatile("mbarrier.inval.shared.b64 [%0];" ::"r"(barrier) : "memory");
}
__device__ inline void barrier_arrive(unsigned barrier) {
  asm volatile("{\n.reg .b64 state;\nmbarrier.arrive.shared.b64 state, [%0];\n}" ::"r"(barrier) : "memory");
}
/// Arrives at a barrier whose phase also ends only when so many bytes were sent to it, by other blocks or by the copy
/// engine. Compute capability 9.0 and above.
__device__ inline void barrier_arrive_expecting(unsigned barrier, int bytes) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
#endif
}
/// Waits for the end of a phase of this parity.
__device__ inline void barrier_wait(unsigned barrier, int parity) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define TRIFACTOR_BARRIER_WAIT "mbarrier.try_wait.parity.shared.b64"
#else
#define TRIFACTOR_BARRIER_WAIT "mbarrier.test_wait.parity.shared.b64"
#endif
  asm volatile("{\n.reg .pred p;\nagain:\n" TRIFACTOR_BARRIER_WAIT " p, [%0], %1;\n@!p bra again;\n}" ::"r"(barrier),
               "r"(parity)
               : "memory");
#undef TRIFACTOR_BARRIER_WAIT
}

}  // namespace trifactor::cuda
