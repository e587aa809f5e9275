// How the threads of one parallel region wait for each other. They spin for some microseconds and then give their core
// away again and again, so that more threads than cores make progress too.
#pragma once

#include <atomic>
#include <thread>

namespace trifactor::host {

/// Returns when ready() is true.
template <class Ready>
void wait_until(Ready ready) {
  constexpr int spins = 1000;
  for (int i = 0; !ready(); ++i) {
    if (i >= spins) {
      std::this_thread::yield();
    } else {
#if defined(__x86_64__)
      __builtin_ia32_pause();
#elif defined(__aarch64__)
      asm volatile("yield");
#endif
    }
  }
}

/// All threads of a team arrive before one goes on. What they wrote before is seen after it.
class Barrier {
 public:
  Barrier() = default;
  Barrier(const Barrier&) = delete;
  /// Before the first one arrives.
  void set_threads(int threads) { threads_ = threads; }

  void wait() {
    if (threads_ == 1) return;
    const unsigned turn = turn_.load(std::memory_order_relaxed);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) == threads_ - 1) {
      arrived_.store(0, std::memory_order_relaxed);
      turn_.store(turn + 1, std::memory_order_release);
    } else {
      wait_until([&] { return turn_.load(std::memory_order_acquire) != turn; });
    }
  }

 private:
  int threads_ = 1;
  std::atomic<int> arrived_{0};
  std::atomic<unsigned> turn_{0};
};

}  // namespace trifactor::host
