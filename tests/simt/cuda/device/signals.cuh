// What src/cuda/device/signals.cuh says in PTX, on the machine of tests/simt.
#pragma once

#include <cuda_words.hpp>

namespace trifactor::cuda {

inline int load_acquire(const int* p) {
  simt::may_switch();
  return std::atomic_ref<int>(*const_cast<int*>(p)).load(std::memory_order_acquire);
}
inline void store_release(int* p, int v) {
  simt::may_switch();
  simt::order_from(p);  // to those who load it relaxed and call order_after_value, too
  std::atomic_ref<int>(*p).store(v, std::memory_order_release);
}
inline void add_release(int* p, int v) {
  simt::may_switch();
  std::atomic_ref<int>(*p).fetch_add(v, std::memory_order_release);
}
inline int add_both(int* p, int v) {
  simt::may_switch();
  return std::atomic_ref<int>(*p).fetch_add(v, std::memory_order_acq_rel);
}
template <class Word>
Word load_relaxed(const Word* p) {
  simt::may_switch();
  return std::atomic_ref<Word>(*const_cast<Word*>(p)).load(std::memory_order_relaxed);
}
template <class Word>
void store_relaxed(Word* p, Word w) {
  simt::may_switch();
  simt::order_from(p);  // to those alone who call order_after_value
  std::atomic_ref<Word>(*p).store(w, std::memory_order_relaxed);
}
template <class Word>
void order_after_value(const Word* p) {
  simt::order_to(p);
}

inline int wait_for(const int* p, int wanted) {
  int v;
  while ((v = load_acquire(p)) < wanted) simt::pause();
  return v;
}
inline int wait_for_all(const int* of_lane, int wanted) {
  int least;
  while ((least = __reduce_min_sync(~0u, load_acquire(of_lane))) < wanted) simt::pause();
  return least;
}

}  // namespace trifactor::cuda
