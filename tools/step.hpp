// Steps of the work: timed, and shown on the terminal when they last.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <utility>

namespace program {

/// A step of the work, as long as it lives. Once it has lasted two seconds a line on stderr shows it, if that is a
/// terminal: its name, and the percentage and the time left where it is counted, else the time that it has taken. The
/// line goes when the step ends. A step within another is shown behind it. Steps begin and end in the main thread.
/// TRIFACTOR_PROGRESS_AFTER holds other seconds than two; tests set 0.
class Step {
 public:
  /// part: tells how far it is, from 0 to 1, when it is shown; in place of count().
  explicit Step(std::string name, std::function<double()> part = {});
  Step(const Step&) = delete;
  ~Step();

  void count(std::int64_t done, std::int64_t total) {
    total_.store(total, std::memory_order_relaxed);
    done_.store(done, std::memory_order_relaxed);
  }
  double seconds() const;
  /// "reading 40 %, 12 s left", or "analysing, 3 s"
  std::string text() const;

 private:
  std::string name_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::atomic<std::int64_t> done_ = 0, total_ = 0;  // total 0: not counted
  std::function<double()> part_;
  Step* outer_;  // the step around it
};

/// Whether steps that last are shown.
bool steps_are_shown();

/// Of the innermost step so much is done; from any thread that works on it. Cheap enough for every row of a matrix.
void count_step(std::int64_t done, std::int64_t total);

/// As long as it lives, no line of a step is on the terminal: for output that comes while a step goes on.
class StepsHidden {
 public:
  StepsHidden();
  StepsHidden(const StepsHidden&) = delete;
  ~StepsHidden();

 private:
  std::unique_lock<std::mutex> lock_;
};

/// Runs the work as a step and returns its seconds. part: see Step.
template <class Work>
double timed_step(const char* name, Work&& work, std::function<double()> part = {}) {
  const Step step(name, std::move(part));
  work();
  return step.seconds();
}

}  // namespace program
