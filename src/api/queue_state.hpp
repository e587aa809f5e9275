// What a Queue holds, and the one place that switches on the backend.
#pragma once

#include <core/memory.hpp>
#include <host/engine.hpp>
#include <trifactor/queue.hpp>
#include <tuning/rows.hpp>

#if TRIFACTOR_HAS_CUDA
#include <cuda/engine/engine.hpp>
#endif

#include <array>
#include <memory>
#include <string_view>

namespace trifactor::detail {

struct QueueState {
  explicit QueueState(int host_threads) : host(host_threads) {}

  host::HostEngine host;                       // of a CUDA queue: where hybrid panels run
#if TRIFACTOR_HAS_CUDA
  std::unique_ptr<cuda::CudaEngine> cuda;      // null for a host queue
#endif
  std::array<std::string_view, 4> architectures{"", "", "", "any"};   // for tuning rows, most specific first
  std::string device_name;                     // likewise

  tuning::Machine machine() const { return {architectures, device_name}; }
};

}  // namespace trifactor::detail

namespace trifactor::api {

/// f(engine) on the queue's engine.
template <class F>
decltype(auto) on_engine(detail::QueueState& state, F&& f) {
#if TRIFACTOR_HAS_CUDA
  if (state.cuda) {
    const auto device = state.cuda->enter();   // the CUDA device of this queue, while f runs
    return f(*state.cuda);
  }
#endif
  return f(state.host);
}
template <class F>
decltype(auto) on_engine(const Queue& q, F&& f) {
  return on_engine(*q.state(), std::forward<F>(f));
}

/// The scratch memory that f(engine) takes, found by running f without doing its work.
template <class F>
std::size_t plan(detail::QueueState& state, F&& f) {
  return on_engine(state, [&](auto& e) {
    struct Planning {
      core::Arena& arena;
      explicit Planning(core::Arena& a) : arena(a) { arena.start_planning(); }
      ~Planning() { arena.stop_planning(); }
    } planning(e.arena());
    f(e);
    return e.arena().stop_planning();
  });
}
template <class F>
std::size_t plan(const Queue& q, F&& f) {
  return plan(*q.state(), std::forward<F>(f));
}

/// Copies bytes between the queue's memory and the host's, or within the queue's, after all its earlier work; complete on
/// return.
void copy(detail::QueueState&, const void* source, void* target, std::size_t bytes);
/// The same within the queue's memory, but only enqueued.
void enqueue_copy(detail::QueueState&, const void* source, void* target, std::size_t bytes);

/// The host's processor as tuning rows name it: "x86_64", "aarch64".
std::string_view host_architecture();
/// And its model, where the system tells it: "Intel(R) Xeon(R) Platinum 8480C".
const std::string& host_name();
/// Both, for tuning rows.
tuning::Machine host_machine();

}  // namespace trifactor::api
