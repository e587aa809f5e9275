// Blocks of a cluster: barriers, and messages to each other's shared memory. Compute capability 9.0 and above.
#pragma once

#include <cuda/device/pipeline.cuh>

namespace trifactor::cuda {

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
#define TRIFACTOR_HAS_CLUSTERS 1
#else
#define TRIFACTOR_HAS_CLUSTERS 0
#endif

#if TRIFACTOR_HAS_CLUSTERS
__device__ inline int cluster_rank() {
  int rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
/// Waits for all threads of the cluster; what they wrote before, in shared or global memory, can be read after.
__device__ inline void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}
/// The same in two parts, for what other threads do not read or write: between them they may run on. What the caller
/// initialized as barriers before can be used after, once it has called announce_barriers().
__device__ inline void cluster_arrive() { asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory"); }
__device__ inline void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }
__device__ inline void announce_barriers() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
/// The address of another block's twin of a place in this block's shared memory.
__device__ inline unsigned shared_address_of(unsigned address, int block) {
  unsigned there;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(block));
  return there;
}
/// A number in another block's shared memory.
__device__ inline int load_shared_of(unsigned address) {
  int x;
  asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(x) : "r"(address) : "memory");
  return x;
}
/// Reading a message: four bytes of this block's shared memory; and 16 of it, without a branch.
__device__ inline void load_shared(unsigned& x, unsigned address) {
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(x) : "r"(address) : "memory");
}
__device__ inline void load_shared_if(bool wanted, ulonglong2& x, unsigned address) {
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %3, 0; @p ld.shared.v2.b64 {%0, %1}, [%2]; }"
               : "+l"(x.x), "+l"(x.y)
               : "r"(address), "r"(int(wanted))
               : "memory");
}
/// Writing one: 16 bytes, without a branch.
__device__ inline void store_shared_if(bool wanted, unsigned address, const ulonglong2& x) {
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %0, 0; @p st.shared.v2.b64 [%1], {%2, %3}; }" ::"r"(int(wanted)),
               "r"(address), "l"(x.x), "l"(x.y)
               : "memory");
}
/// Says that what all lanes have read before they voted was read. No instruction: what is sent depends on the vote.
__device__ inline void order_after_vote() { asm volatile("" ::: "memory"); }
/// Sends 16 bytes to another block's shared memory. Its barrier there counts the bytes.
__device__ inline void send_async(unsigned address, const ulonglong2& x, unsigned barrier) {
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b64 [%0], {%1, %2}, [%3];" ::"r"(address),
               "l"(x.x), "l"(x.y), "r"(barrier)
               : "memory");
}
/// The same, without a branch.
__device__ inline void send_async_if(bool wanted, unsigned address, const ulonglong2& x, unsigned barrier) {
  asm volatile(
      "{ .reg .pred p; setp.ne.b32 p, %4, 0;"
      " @p st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b64 [%0], {%1, %2}, [%3]; }" ::"r"(address),
      "l"(x.x), "l"(x.y), "r"(barrier), "r"(int(wanted))
      : "memory");
}
#endif

}  // namespace trifactor::cuda
