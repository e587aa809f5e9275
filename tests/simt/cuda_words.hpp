// The words of CUDA C++ that kernels use, for the machine in machine.hpp. Included before any kernel.
#pragma once

#include "machine.hpp"

#include <atomic>
#include <bit>
#include <climits>
#include <cmath>
#include <cstring>

#define __device__
#define __host__
#define __global__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __noinline__  // libstdc++ has it as the name of an attribute, which may be empty
#define __grid_constant__
#define __shared__ constinit thread_local  // a block is an operating-system thread
#define __builtin_assume(...) ((void)0)

#define threadIdx (::trifactor::simt::thread_index())
#define blockIdx (::trifactor::simt::block_index())
#define blockDim (::trifactor::simt::block_size())
#define gridDim (::trifactor::simt::grid_size())

struct double2 {
  double x, y;
};
struct float2 {
  float x, y;
};
struct ulonglong2 {
  unsigned long long x, y;
};
struct dim3 {
  unsigned x, y, z;
  dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

#define TRIFACTOR_WHERE ::trifactor::simt::Where where = ::trifactor::simt::Where::current()

inline void __syncthreads(TRIFACTOR_WHERE) { trifactor::simt::sync_block(0, int(blockDim.x), where); }
inline int __syncthreads_or(int x, TRIFACTOR_WHERE) {
  thread_local int some;
  __syncthreads(where);  // all have read the last one
  if (threadIdx.x == 0) some = 0;
  __syncthreads(where);
  if (x) std::atomic_ref(some).store(1, std::memory_order_relaxed);
  __syncthreads(where);
  return std::atomic_ref(some).load(std::memory_order_relaxed);
}
inline void __syncwarp(TRIFACTOR_WHERE) { trifactor::simt::sync_warp(where); }

namespace trifactor::simt {
/// What all lanes of the warp have.
template <class T>
struct OfLanes {
  T all[32];
  OfLanes(T own, Where where) { gather(&own, sizeof(T), all, where); }
  T operator[](int l) const { return all[l]; }
};
}  // namespace trifactor::simt

template <class T>
T __shfl_sync(unsigned, T x, int from, int width = 32, TRIFACTOR_WHERE) {
  const int lane = int(trifactor::simt::lane());
  return trifactor::simt::OfLanes<T>(x, where)[lane / width * width + (from & (width - 1))];
}
template <class T>
T __shfl_xor_sync(unsigned, T x, int mask, TRIFACTOR_WHERE) {
  return trifactor::simt::OfLanes<T>(x, where)[int(trifactor::simt::lane()) ^ mask];
}
template <class T>
T __shfl_down_sync(unsigned, T x, int by, TRIFACTOR_WHERE) {
  const int lane = int(trifactor::simt::lane());
  return trifactor::simt::OfLanes<T>(x, where)[lane + by < 32 ? lane + by : lane];
}
template <class T>
T __shfl_up_sync(unsigned, T x, int by, TRIFACTOR_WHERE) {
  const int lane = int(trifactor::simt::lane());
  return trifactor::simt::OfLanes<T>(x, where)[lane >= by ? lane - by : lane];
}
inline unsigned __ballot_sync(unsigned, bool x, TRIFACTOR_WHERE) {
  const trifactor::simt::OfLanes<bool> votes(x, where);
  unsigned bits = 0;
  for (int l = 0; l < 32; ++l) bits |= unsigned(votes[l]) << l;
  return bits;
}
inline bool __any_sync(unsigned mask, bool x, TRIFACTOR_WHERE) { return __ballot_sync(mask, x, where) != 0; }
inline bool __all_sync(unsigned mask, bool x, TRIFACTOR_WHERE) { return !__any_sync(mask, !x, where); }
inline unsigned __reduce_max_sync(unsigned, unsigned x, TRIFACTOR_WHERE) {
  const trifactor::simt::OfLanes<unsigned> all(x, where);
  for (int l = 0; l < 32; ++l) x = all[l] > x ? all[l] : x;
  return x;
}
inline unsigned __reduce_or_sync(unsigned, unsigned x, TRIFACTOR_WHERE) {
  const trifactor::simt::OfLanes<unsigned> all(x, where);
  for (int l = 0; l < 32; ++l) x |= all[l];
  return x;
}
inline int __reduce_min_sync(unsigned, int x, TRIFACTOR_WHERE) {
  const trifactor::simt::OfLanes<int> all(x, where);
  for (int l = 0; l < 32; ++l) x = all[l] < x ? all[l] : x;
  return x;
}

inline int __ffs(int x) { return x == 0 ? 0 : std::countr_zero(unsigned(x)) + 1; }
inline int __clz(int x) { return std::countl_zero(unsigned(x)); }
inline int __popc(unsigned x) { return std::popcount(x); }
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline int __double2hiint(double x) { return int(std::bit_cast<std::uint64_t>(x) >> 32); }
inline int __double2loint(double x) { return int(unsigned(std::bit_cast<std::uint64_t>(x))); }
inline double __hiloint2double(int high, int low) {
  return std::bit_cast<double>(std::uint64_t(unsigned(high)) << 32 | unsigned(low));
}
inline float rsqrtf(float x) { return 1 / std::sqrt(x); }
template <class T>
bool __isGlobal(const T*) {
  return true;
}
template <class T>
T __ldcg(const T* p) {
  return *p;
}
inline void __nanosleep(unsigned, TRIFACTOR_WHERE) { trifactor::simt::pause(where); }

template <class T>
T atomicAdd(T* p, T by) {
  trifactor::simt::may_switch();
  return std::atomic_ref<T>(*p).fetch_add(by, std::memory_order_relaxed);
}
template <class T>
T atomicExch(T* p, T x) {
  trifactor::simt::may_switch();
  return std::atomic_ref<T>(*p).exchange(x, std::memory_order_relaxed);
}
