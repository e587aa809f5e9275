// Launches that follow each other, enqueued as one graph: a third of the host's time that they take one by one, and for
// calls that come again with the same arguments the time of one launch.
#pragma once

#include <core/path.hpp>

#include <algorithm>
#include <any>
#include <cstddef>
#include <list>
#include <memory>
#include <span>
#include <tuple>
#include <vector>

namespace trifactor::cuda {

/// A launch of a kernel whose shared memory is granted. `overlaps`: blocks may begin as soon as every block of the
/// launch before has called let_next_start() or has ended; one block at least calls end_after_last(), so that this
/// launch ends after the one before.
struct LaunchStep {
  const void* kernel;
  unsigned grid[2];
  unsigned threads;
  std::size_t bytes;
  bool overlaps;
  void* arguments[6];  // where they lie, until the step is enqueued
};

/// Keeps a graph for every sequence of kernels that was enqueued; the next time only its arguments are set.
class LaunchGraphs {
 public:
  LaunchGraphs();
  LaunchGraphs(const LaunchGraphs&) = delete;
  ~LaunchGraphs();
  /// One by one where the stream is being captured.
  void enqueue(void* stream, std::span<LaunchStep> steps);

 private:
  struct Graph;
  std::vector<std::unique_ptr<Graph>> graphs_;
};

/// What tells calls apart: the driver, by its type, and everything that its launches follow from.
template <class Run, class... A>
struct CallKey {
  std::tuple<A...> arguments;
  bool operator==(const CallKey&) const = default;
};

/// A call of a driver that launches one kernel after the other. It is launched so when it is new; when it comes again
/// the launches are captured. So calls that never come again do not pay for a graph.
struct RecordedCall {
  enum class State { New, Met, Recorded, Refused };

  explicit RecordedCall(std::any call_key) : key(std::move(call_key)) {}
  RecordedCall(const RecordedCall&) = delete;
  ~RecordedCall();

  std::any key;
  State state = State::New;
  void* executable = nullptr;     // a cudaGraphExec_t where it is recorded
  const void* scratch = nullptr;  // where the launches find scratch memory: elsewhere they are captured again
  core::Path path;
};

/// The calls that came last.
class RecordedCalls {
 public:
  template <class Key>
  RecordedCall& find(const Key& key) {
    const auto known = std::find_if(calls_.begin(), calls_.end(), [&](const RecordedCall& c) {
      const Key* k = std::any_cast<Key>(&c.key);
      return k && *k == key;
    });
    if (known != calls_.end()) {
      calls_.splice(calls_.begin(), calls_, known);
    } else {
      calls_.emplace_front(key);
      if (calls_.size() > most) calls_.pop_back();  // a graph that still runs is freed when it is through
    }
    return calls_.front();
  }

 private:
  static constexpr std::size_t most = 64;
  std::list<RecordedCall> calls_;
};

}  // namespace trifactor::cuda
