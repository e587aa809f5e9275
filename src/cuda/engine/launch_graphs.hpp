// Launches that follow each other, enqueued as one graph: a third of the host's time that they take one by one.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace trifactor::cuda {

/// A launch of a kernel whose shared memory is granted. `overlaps`: blocks may begin as soon as every block of the
/// launch before has called let_next_start() or has ended; one block at least calls
/// wait_for_launch_before(), so that this launch ends after the one before.
struct LaunchStep {
  const void* kernel;
  unsigned grid[2];
  unsigned threads;
  std::size_t bytes;
  bool overlaps;
  void* arguments[6];  // where they lie, until the step is enqueued
};
void enqueue(void* stream, LaunchStep&);
/// Enqueues it on a stream that is being captured, and returns its node.
void* enqueue_captured(void* stream, LaunchStep&);
/// For the next time that the graph is enqueued; its step there is of the same kernel and grid.
void set_arguments(void* executable_graph, void* node, LaunchStep&);

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

}  // namespace trifactor::cuda
