// Loops over items by several threads, where there is enough to do.
#pragma once

#include <trifactor/types.hpp>

#include <cblas.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

namespace trifactor::test {

/// Whether several threads may call BLAS side by side, as references do: not if it was built without threads.
inline bool blas_bears_threads() { return openblas_get_parallel() != OPENBLAS_SEQUENTIAL; }

/// f(i) for every i below count, in any order; `entries` says how much that is. f must not throw, nor use gtest's
/// macros.
template <class F>
void in_parallel(std::size_t count, index_t entries, const F& f) {
  constexpr index_t entries_each = 1 << 16;  // a thread is started in the time that some thousands take
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i; (i = next++) < count;) f(i);
  };
  const index_t processors = blas_bears_threads() ? std::thread::hardware_concurrency() : 1;
  std::vector<std::thread> others(std::size_t(
      std::clamp(std::min({processors, index_t(count), entries / entries_each}) - 1, index_t(0), index_t(15))));
  for (auto& thread : others) thread = std::thread(work);
  work();
  for (auto& thread : others) thread.join();
}

/// f(i) for every i below count, in their order.
template <class F>
std::vector<double> values_in_parallel(std::size_t count, index_t entries, const F& f) {
  std::vector<double> values(count);
  in_parallel(count, entries, [&](std::size_t i) { values[i] = f(i); });
  return values;
}

}  // namespace trifactor::test
