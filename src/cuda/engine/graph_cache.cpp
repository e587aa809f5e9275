// CudaEngine: calls that come again become graphs.
#include <cuda/engine/graph_cache.hpp>

#include <cuda/engine/check.hpp>
#include <cuda/engine/engine.hpp>
#include <cuda/entries/entries.hpp>

#include <cstdlib>
#include <string_view>

namespace trifactor::cuda {

namespace {

/// Its node in the graph that is being captured; null if there is nothing to copy.
void* enqueue_copies(void* stream, ArgumentCopies& copies) {
  LaunchStep step = copy_arguments_step(copies);
  return copies.count > 0 ? enqueue_captured(stream, step) : nullptr;
}
void set_copies(const CachedCall& call, int which, ArgumentCopies& copies) {
  LaunchStep step = copy_arguments_step(copies);
  if (call.copies[which]) set_arguments(call.executable, call.copies[which], step);
}

}  // namespace

std::shared_mutex& capture_mutex() {
  static std::shared_mutex mutex;
  return mutex;
}

bool graphs_allowed() {
  const char* const setting = std::getenv("TRIFACTOR_GRAPHS");
  return !setting || std::string_view(setting) != "off";
}

CachedCall::~CachedCall() { forget_graph(); }
void CachedCall::forget_graph() noexcept {
  if (executable) cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(std::exchange(executable, nullptr)));
  if (graph) cudaGraphDestroy(static_cast<cudaGraph_t>(std::exchange(graph, nullptr)));
}

/// A call that came with the same addresses before is captured with them; one of which only the addresses are new, with
/// its arguments staged, for all addresses to come. That graph takes the device a little longer, so that calls that
/// come often at the same addresses get their own nevertheless. Where there is no graph, launch by launch.
void CudaEngine::enqueue_call(CachedCall& direct, const std::function<void()>& run, CachedCall* indirect,
                              const std::function<void()>& run_staged, StagedArguments* staged) {
  constexpr index_t often = 3;
  const void* scratch = arena().top();
  const auto enqueue_graph = [&](const CachedCall& call) {
    check(cudaGraphLaunch(static_cast<cudaGraphExec_t>(call.executable), as_stream(stream_)), "cudaGraphLaunch");
    set_path(call.path.kind, call.path.detail);
    count_replay();
  };
  const index_t came_direct = direct.times++, came_indirect = indirect ? indirect->times++ : 0;
  if (direct.executable && direct.scratch != scratch) direct.forget_graph();
  if (direct.may_capture() && came_direct >= (indirect && indirect->executable ? often : 1)) {
    capture(direct, run);
    direct.scratch = scratch;
  }
  if (direct.executable) return enqueue_graph(direct);
  if (indirect && indirect->may_capture() && came_indirect > 0)
    capture(*indirect, [&] {
      indirect->copies[0] = enqueue_copies(stream_, staged->before);
      run_staged();
      indirect->copies[1] = enqueue_copies(stream_, staged->after);
    });
  if (!indirect || !indirect->executable) return run();
  set_copies(*indirect, 0, staged->before);
  set_copies(*indirect, 1, staged->after);
  enqueue_graph(*indirect);
}

/// Captures what run() launches, from a stream of its own: the caller's may be one that cannot be captured, or that
/// others use meanwhile. Where that fails there is no graph, and the lanes' streams are as before: what is wrong shows
/// when the call is launched.
void CudaEngine::capture(CachedCall& call, const std::function<void()>& run) {
  constexpr std::size_t max_nodes = 4096;  // where there are more, they take longer than the host needs for them
  const std::shared_lock others_wait(capture_mutex());
  ++call.attempts;
  void* const own = stream_;
  bool good = true, begun = false;
  try {
    if (!capture_stream_) {
      int priority = 0;
      check(cudaStreamGetPriority(as_stream(stream_), &priority), "cudaStreamGetPriority");
      cudaStream_t s = nullptr;
      check(cudaStreamCreateWithPriority(&s, cudaStreamNonBlocking, priority), "cudaStreamCreate");
      capture_stream_ = s;
    }
    use_stream(capture_stream_);
    check(cudaStreamBeginCapture(as_stream(capture_stream_), cudaStreamCaptureModeThreadLocal),
          "cudaStreamBeginCapture");
    begun = true;
    run();
  } catch (...) { good = false; }
  cudaGraph_t graph = nullptr;  // none where the capture was invalidated; the streams are out of it in any case
  if (begun) good = cudaStreamEndCapture(as_stream(capture_stream_), &graph) == cudaSuccess && good;
  call.graph = graph;
  use_stream(own);
  std::size_t nodes = 0;
  good = good && cudaGraphGetNodes(graph, nullptr, &nodes) == cudaSuccess;
  if (nodes > max_nodes) good = false, call.attempts = CachedCall::max_attempts;
  cudaGraphExec_t executable = nullptr;
  good = good && cudaGraphInstantiate(&executable, graph, cudaGraphInstantiateFlagUseNodePriority) == cudaSuccess;
  if (!good) {
    cudaGetLastError();  // it has no consequences
    return call.forget_graph();
  }
  call.executable = executable, call.path = path(), call.attempts = 0;
  if (!call.copies[0]) cudaGraphDestroy(static_cast<cudaGraph_t>(std::exchange(call.graph, nullptr)));
}

}  // namespace trifactor::cuda
