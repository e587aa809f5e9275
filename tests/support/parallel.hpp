// Loops over items by several threads, where there is enough to do.
#pragma once

#include <trifactor/types.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

namespace trifactor::test {

/// f(i) for every i below count, in any order; `entries` says how much that is. f must not throw, nor use gtest's
/// macros.
template <class F>
void in_parallel(std::size_t count, index_t entries, const F& f) {
  constexpr index_t entries_each = 1 << 16;  // a thread is started in the time that some thousands take
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i; (i = next++) < count;) f(i);
  };
  const auto processors = index_t(std::thread::hardware_concurrency());
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
