// A step of the work: timed, and named on the terminal when it lasts.
#pragma once

#include <fmt/core.h>

#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>

namespace program {

/// Names a step on stderr once it has lasted two seconds; silent when stderr is no terminal.
class Patience {
 public:
  explicit Patience(const char* step) {
    if (!::isatty(STDERR_FILENO)) return;
    watch_ = std::jthread([this, step](std::stop_token stop) {
      std::unique_lock lock(mutex_);
      if (!wake_.wait_for(lock, stop, std::chrono::seconds(2), [&] { return stop.stop_requested(); }))
        fmt::print(stderr, "trifactor: {} ...\n", step);
    });
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::jthread watch_;
};

/// Runs the work and returns its seconds.
template <class Work>
double timed_step(const char* name, Work&& work) {
  const Patience patience(name);
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace program
