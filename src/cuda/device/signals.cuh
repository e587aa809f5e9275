// Flags in global memory by which the blocks of one launch tell each other how far they are.
#pragma once

namespace trifactor::cuda {

__device__ inline int load_acquire(const int* p) {
  int v;
  asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}
__device__ inline void store_release(int* p, int v) {
  asm volatile("st.release.gpu.global.s32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}
__device__ inline void add_release(int* p, int v) {
  asm volatile("red.release.gpu.global.add.s32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}

/// Words that are loaded and stored whole, and order nothing else.
__device__ inline unsigned load_relaxed(const unsigned* p) {
  unsigned w;
  asm volatile("ld.relaxed.gpu.global.b32 %0, [%1];" : "=r"(w) : "l"(p) : "memory");
  return w;
}
__device__ inline unsigned long long load_relaxed(const unsigned long long* p) {
  unsigned long long w;
  asm volatile("ld.relaxed.gpu.global.b64 %0, [%1];" : "=l"(w) : "l"(p) : "memory");
  return w;
}
__device__ inline void store_relaxed(unsigned* p, unsigned w) {
  asm volatile("st.relaxed.gpu.global.b32 [%0], %1;" ::"l"(p), "r"(w) : "memory");
}
__device__ inline void store_relaxed(unsigned long long* p, unsigned long long w) {
  asm volatile("st.relaxed.gpu.global.b64 [%0], %1;" ::"l"(p), "l"(w) : "memory");
}
/// Says that what the word loaded from p was computed from has been read. No instruction: the value depends on it.
template <class Word>
__device__ void order_after_value(const Word*) {}

/// Releases and acquires; returns what was there.
__device__ inline int add_both(int* p, int v) {
  int before;
  asm volatile("atom.acq_rel.gpu.global.add.s32 %0, [%1], %2;" : "=r"(before) : "l"(p), "r"(v) : "memory");
  return before;
}

/// Waits until *p >= wanted; what was written before that is then visible to the caller, and to those that a barrier
/// lets go on after it. One thread of a block waits at a time: more would only crowd the flag.
__device__ inline int wait_for(const int* p, int wanted) {
  int v;
  while ((v = load_acquire(p)) < wanted) __nanosleep(20);
  return v;
}

/// The same by a whole warp for up to 32 flags, one a lane; returns the least of them.
__device__ inline int wait_for_all(const int* of_lane, int wanted) {
  int least;
  while ((least = __reduce_min_sync(0xffffffffu, load_acquire(of_lane))) < wanted) __nanosleep(20);
  return least;
}

}  // namespace trifactor::cuda
