// Threads inside the analysis. How work is cut depends on its size alone, so that results do not depend on the threads.
#pragma once

#include <core/interruption.hpp>
#include <trifactor/types.hpp>

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <memory>
#include <new>

namespace trifactor::sparse {

/// Ranges of nodes that threads share.
inline constexpr index_t node_grain = 4096;
/// From so many nodes on it pays to wake other threads.
inline constexpr index_t worth_waking = 5000;

/// Spreads the bits of a number (the finalizer of splitmix64).
constexpr std::uint64_t spread(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// Memory that is not cleared.
template <class T>
class Array {
 public:
  Array() = default;
  explicit Array(index_t size) : data_(std::make_unique_for_overwrite<T[]>(std::size_t(size))) {}
  T* data() const { return data_.get(); }
  T& operator[](index_t i) const { return data_[i]; }
  explicit operator bool() const { return bool(data_); }

 private:
  std::unique_ptr<T[]> data_;
};

/// Zeros. Pages that nobody touches cost nothing.
template <class T>
class Zeros {
 public:
  explicit Zeros(index_t size) : data_(static_cast<T*>(std::calloc(std::size_t(size), sizeof(T)))) {
    if (!data_) throw std::bad_alloc();
  }
  Zeros(const Zeros&) = delete;
  ~Zeros() { std::free(data_); }
  T& operator[](index_t i) const { return data_[i]; }

 private:
  T* const data_;
};

/// Keeps the first exception of tasks that run side by side, and skips those that begin after it. An interruption is one.
class Failure {
 public:
  template <class F>
  void guard(F&& f) noexcept {
    if (failed_.load(std::memory_order_relaxed)) return;
    try {
      core::heed_interruption();
      f();
    } catch (...) {
      if (!failed_.exchange(true)) first_ = std::current_exception();
    }
  }
  void rethrow() const {
    if (first_) std::rethrow_exception(first_);
  }

 private:
  std::atomic<bool> failed_ = false;
  std::exception_ptr first_;
};

/// f() with so many threads for the tasks and ranges inside it; 0: those of the team that calls. One thread that is in
/// another team has a team of its own: others would take tasks that count on being alone.
template <class F>
void with_threads(int threads, F f) {
  if (threads == 0 || (threads == 1 && !omp_in_parallel())) return f();
  Failure failure;
#pragma omp parallel num_threads(threads)
#pragma omp single
  failure.guard(f);
  failure.rethrow();
}

/// f(r, begin, end) for the r-th range of `grain` of n items, side by side.
template <class F>
void for_ranges(index_t n, index_t grain, const F& f) {
  const index_t ranges = (n + grain - 1) / grain;
  if (ranges <= 1) {
    if (n > 0) f(index_t(0), index_t(0), n);
    return;
  }
  Failure failure;
#pragma omp taskloop grainsize(1) default(none) shared(failure, f) firstprivate(ranges, grain, n)
  for (index_t r = 0; r < ranges; ++r)
    failure.guard([&] { f(r, r * grain, std::min(n, (r + 1) * grain)); });
  failure.rethrow();
}

}  // namespace trifactor::sparse
