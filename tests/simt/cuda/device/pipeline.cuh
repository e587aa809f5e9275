// What src/cuda/device/pipeline.cuh says in PTX, on the machine of tests/simt.
#pragma once

#include <cuda_words.hpp>

#include <core/scalar.hpp>

namespace trifactor::cuda {

inline unsigned shared_address(const void* p) { return simt::shared_address(p); }

template <int bytes>
void copy_async(unsigned shared, const void* global, int inside = bytes) {
  simt::copy(shared, global, bytes, inside);
}
inline void copy_async_if(bool wanted, unsigned shared, const void* global) {
  if (wanted) simt::copy(shared, global, 16, 16);
}
inline void copy_commit() { simt::commit_copies(); }
inline void prefetch_l2(const void*) {}
inline void copy_wait_all() { simt::wait_for_copies(-1); }
template <int pending>
void copy_wait() {
  simt::wait_for_copies(pending);
}
inline void copy_wait(int pending) { simt::wait_for_copies(pending < 4 ? pending : 4); }

inline void barrier_init(unsigned barrier, int count) { simt::barrier_init(barrier, count); }
inline void barrier_end(unsigned) {}
inline void barrier_arrive(unsigned barrier) { simt::barrier_arrive(barrier, 0); }
inline void barrier_arrive_expecting(unsigned barrier, int bytes) { simt::barrier_arrive(barrier, bytes); }
inline void barrier_wait(unsigned barrier, int parity, simt::Where where = simt::Where::current()) {
  simt::barrier_wait(barrier, parity, where);
}

template <int number, int threads>
void sync_threads(simt::Where where = simt::Where::current()) {
  simt::sync_block(number, threads, where);
}
template <int number, int threads>
void arrive_threads(simt::Where where = simt::Where::current()) {
  simt::arrive_block(number, threads, where);
}

}  // namespace trifactor::cuda
