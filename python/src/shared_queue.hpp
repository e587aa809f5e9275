// Queues of sparse factors, which live longer than a call and may be used by any thread, one at a time.
#pragma once

#include <nanobind/nanobind.h>
#include <trifactor/queue.hpp>

#include <memory>
#include <mutex>
#include <optional>

namespace trifactor::python {

struct SharedQueue {
  Queue queue;
  std::mutex mutex;
  nanobind::object owner;  // of a borrowed stream
};

/// A host queue of its own for device -1. For a CUDA device the queue that all factors on one stream share, or the one
/// with a stream of its own where none is given.
std::shared_ptr<SharedQueue> shared_queue(int device, std::optional<std::uintptr_t> stream, nanobind::handle owner);

}  // namespace trifactor::python
