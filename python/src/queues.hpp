// Queues of this thread, kept from call to call: making one takes far longer than a small solve.
#pragma once

#include <nanobind/nanobind.h>
#include <trifactor/queue.hpp>

namespace trifactor::python {

Queue& host_queue();
/// A queue on the caller's stream. `owner` is kept as long as the queue is, so that the stream lives.
Queue& stream_queue(int device, void* stream, nanobind::handle owner);
/// A queue with a stream of its own.
Queue& own_queue(int device);
/// A host queue that this thread does not share with its other calls.
Queue new_host_queue();
/// In the child of a fork: threads of the parent's OpenMP and its CUDA are not there. Queues of the parent are left
/// alone, and one thread works on the host.
void leave_parents_queues();
/// Until all work of a queue is done, without the interpreter's lock.
void wait_for(Queue&);
/// Drops this thread's queues and their memory. Needs the interpreter.
void release_queues();

}  // namespace trifactor::python
