// What the engines of a queue do and when, operation by operation. An engine has a pointer to a Trace, null unless
// somebody records, and the three functions that Traced asks for: trace(), lane() and moment().
#pragma once

#include <trifactor/types.hpp>

#include <chrono>
#include <vector>

namespace trifactor::core {

/// A moment in a lane's order: a time on the host, on a stream an event, whose time is known once the stream got there.
struct Moment {
  double seconds = 0;
  void* event = nullptr;
};

/// One operation: what it writes is (rows, cols), a product's inner extent is depth.
struct Span {
  const char* lane;
  const char* name;
  index_t rows, cols, depth;
  Moment begin, end;
};

class Trace {
 public:
  /// Seconds since its construction, on the host's clock.
  double now() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  std::vector<Span> spans;  // as enqueued

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

/// An operation of an engine, from here to the end of the scope.
template <class E>
class Traced {
 public:
  Traced(E& e, const char* name, index_t rows, index_t cols, index_t depth = 0) : e_(e), trace_(e.trace()) {
    if (!trace_) return;
    span_ = trace_->spans.size();
    trace_->spans.push_back({e.lane(), name, rows, cols, depth, e.moment(), {}});
  }
  Traced(const Traced&) = delete;
  ~Traced() {
    if (trace_) trace_->spans[span_].end = e_.moment();
  }

 private:
  E& e_;
  Trace* trace_;
  std::size_t span_ = 0;
};

/// A track for what consists of many operations of an engine, such as a level of a tree.
template <class E>
struct Track {
  E& engine;
  const char* name;
  Trace* trace() const { return engine.trace(); }
  const char* lane() const { return name; }
  Moment moment() const noexcept { return engine.moment(); }
};

}  // namespace trifactor::core
