// How far a long factorization is, for somebody who watches it.
#pragma once

#include <atomic>
#include <cmath>
#include <cstdint>

namespace trifactor::core {

/// Flops are counted while there are watchers.
inline std::atomic<int> flop_watchers = 0;
inline std::atomic<std::int64_t> flops_done = 0;

inline void count_flops(double flops) {
  flops_done.fetch_add(std::int64_t(std::ceil(flops)), std::memory_order_relaxed);
}

}  // namespace trifactor::core
