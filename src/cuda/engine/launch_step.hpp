// A launch as data, for those that overlap and those whose arguments a graph gets again.
#pragma once

#include <cstddef>

namespace trifactor::cuda {

/// A launch of a kernel whose shared memory is granted. `overlaps` (programmatic dependent launch): blocks may begin as
/// soon as every block of the launch before has called let_next_start() or has ended; one block at least calls
/// wait_for_launch_before(), so that this launch ends after the one before.
struct LaunchStep {
  const void* kernel;
  unsigned grid[2];
  unsigned threads;
  std::size_t bytes;
  bool overlaps;
  void* arguments[6];    // where they lie, until the step is enqueued
  unsigned cluster = 0;  // so many blocks are one cluster; 0: there are none
};
void enqueue(void* stream, LaunchStep&);
/// Enqueues it on a stream that is being captured, and returns its node.
void* enqueue_captured(void* stream, LaunchStep&);
/// For the next time that the graph is enqueued; its step there is of the same kernel.
void set_arguments(void* executable_graph, void* node, LaunchStep&);

}  // namespace trifactor::cuda
