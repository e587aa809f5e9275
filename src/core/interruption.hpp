// Work on the host that ends early when its caller wants it to: trifactor/interrupt.hpp.
#pragma once

#include <trifactor/error.hpp>

#include <atomic>
#include <functional>

namespace trifactor::core {

/// What this thread's calls ask; null where nobody wants to be asked.
inline thread_local const std::function<bool()>* stop_question = nullptr;

[[noreturn]] inline void throw_interrupted() { throw Interrupted("interrupted: the caller asked to stop"); }

/// Where exceptions may leave: asks, if this is the thread that is asked.
inline void heed_interruption() {
  if (stop_question && (*stop_question)()) throw_interrupted();
}

/// Of one parallel region, made by the calling thread before its team starts.
class Interruption {
 public:
  /// By every thread between two pieces of work; only the calling thread asks.
  bool requested() noexcept {
    if (!question_) return false;
    if (stop_question == question_ && !requested_.load(std::memory_order_relaxed) && (*question_)())
      requested_.store(true, std::memory_order_relaxed);
    return requested_.load(std::memory_order_relaxed);
  }
  /// After the region, which exceptions must not leave.
  void throw_if_requested() const {
    if (requested_.load(std::memory_order_relaxed)) throw_interrupted();
  }

 private:
  const std::function<bool()>* const question_ = stop_question;
  std::atomic<bool> requested_{false};
};

}  // namespace trifactor::core
