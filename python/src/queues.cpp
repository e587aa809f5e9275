#include "queues.hpp"
#include "signals.hpp"

#include <omp.h>

#include <atomic>
#include <list>
#include <optional>

namespace trifactor::python {

namespace {

namespace nb = nanobind;

constexpr std::size_t max_stream_queues = 8;  // of a thread; each takes some 70 MB of the device's memory

int drop_reference(void* object) {
  Py_DECREF(static_cast<PyObject*>(object));
  return 0;
}

struct StreamQueue {
  int device;
  void* stream;  // null with own = true: the queue's own
  bool own;
  Queue queue;
  PyObject* owner;
};

/// A thread may end without the interpreter's lock: owners of streams are dropped later, by the main thread.
struct ThreadQueues {
  std::optional<Queue> host;
  std::list<StreamQueue> streams;  // the last used first

  ThreadQueues() = default;
  ThreadQueues(ThreadQueues&&) = default;
  ~ThreadQueues() {
    while (!streams.empty()) {
      PyObject* owner = streams.back().owner;
      streams.pop_back();  // the queue goes before the stream does
      if (owner) Py_AddPendingCall(drop_reference, owner);
    }
  }
};

std::atomic<int> host_threads{0};  // as many as OpenMP offers

ThreadQueues& queues() {
  thread_local ThreadQueues mine;
  return mine;
}

Queue& find(int device, void* stream, bool own, nb::handle owner) {
  auto& all = queues().streams;
  for (auto s = all.begin(); s != all.end(); ++s) {
    if (s->device != device || s->stream != stream || s->own != own) continue;
    if (s != all.begin()) all.splice(all.begin(), all, s);
    return all.front().queue;
  }
  Queue made = own ? Queue::cuda(device) : Queue::wrap_cuda_stream(stream, device);
  all.push_front({device, stream, own, std::move(made), owner.inc_ref().ptr()});
  if (all.size() > max_stream_queues) {
    PyObject* last = all.back().owner;
    all.pop_back();
    Py_XDECREF(last);
  }
  return all.front().queue;
}

}  // namespace

Queue& host_queue() {
  auto& host = queues().host;
  if (!host) host.emplace(new_host_queue());
  return *host;
}

Queue& stream_queue(int device, void* stream, nb::handle owner) { return find(device, stream, false, owner); }
Queue& own_queue(int device) { return find(device, nullptr, true, nb::handle()); }

Queue new_host_queue() { return Queue::host(host_threads); }

void leave_parents_queues() {
  new ThreadQueues(std::move(queues()));  // never destroyed
  queues().host.reset(), queues().streams.clear();
  host_threads = 1;
  omp_set_num_threads(1);  // for what asks OpenMP, such as the analysis of sparse matrices
  set_main_thread(PyThread_get_thread_ident());
}

void wait_for(Queue& q) {
  without_gil([&] { q.sync(); });
}

void release_queues() {
  auto& mine = queues();
  mine.host.reset();
  while (!mine.streams.empty()) {
    PyObject* owner = mine.streams.back().owner;
    mine.streams.pop_back();
    Py_XDECREF(owner);
  }
}

}  // namespace trifactor::python
