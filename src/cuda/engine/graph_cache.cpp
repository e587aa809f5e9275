// CudaEngine: calls that come again.
#include <cuda/engine/graph_cache.hpp>

#include <cuda/engine/check.hpp>
#include <cuda/engine/engine.hpp>
#include <cuda/engine/kernels.hpp>

namespace trifactor::cuda {

namespace {

cudaStream_t as_stream(void* s) { return static_cast<cudaStream_t>(s); }

/// Its node in the graph that is being captured; null if there is nothing to copy.
void* enqueue_copies(void* stream, ArgumentCopies& copies) {
  LaunchStep step = copy_arguments_step(copies);
  return copies.count > 0 ? enqueue_captured(stream, step) : nullptr;
}
void set_copies(const RecordedCall& call, int which, ArgumentCopies& copies) {
  LaunchStep step = copy_arguments_step(copies);
  if (call.copies[which]) set_arguments(call.executable, call.copies[which], step);
}

}  // namespace

RecordedCall::~RecordedCall() { forget(); }
void RecordedCall::forget() noexcept {
  if (executable) cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(std::exchange(executable, nullptr)));
  if (graph) cudaGraphDestroy(static_cast<cudaGraph_t>(std::exchange(graph, nullptr)));
}

/// A call that came with the same addresses before is recorded with them; one of which only the addresses are new, with
/// its arguments moved, for all addresses to come. That graph takes the device a little longer, so that calls that come
/// often get their own nevertheless.
void CudaEngine::replay(RecordedCall& here, const std::function<void()>& run, RecordedCall* anywhere,
                        const std::function<void()>& run_moved, MovedArguments* moved) {
  using enum RecordedCall::State;
  constexpr index_t often = 3;
  const void* scratch = arena().top();
  const auto enqueue_graph = [&](const RecordedCall& call) {
    check(cudaGraphLaunch(static_cast<cudaGraphExec_t>(call.executable), as_stream(stream_)), "cudaGraphLaunch");
    set_path(call.path.kind, call.path.detail);
    count_replay();
  };
  const index_t came_here = here.times++, came_at_all = anywhere ? anywhere->times++ : 0;
  if (here.state == Recorded && here.scratch != scratch) here.state = Launched;
  if (here.state == Launched && came_here >= (anywhere && anywhere->state == Recorded ? often : 1)) {
    here.state = record(here, run) ? Recorded : Refused;
    here.scratch = scratch;
  }
  if (here.state == Recorded) return enqueue_graph(here);
  if (anywhere && anywhere->state == Launched && came_at_all > 0) {
    const auto with_copies = [&] {
      anywhere->copies[0] = enqueue_copies(stream_, moved->before);
      run_moved();
      anywhere->copies[1] = enqueue_copies(stream_, moved->after);
    };
    anywhere->state = record(*anywhere, with_copies) ? Recorded : Refused;
  }
  if (!anywhere || anywhere->state != Recorded) return run();
  set_copies(*anywhere, 0, moved->before);
  set_copies(*anywhere, 1, moved->after);
  enqueue_graph(*anywhere);
}

/// Captures what run() launches, from a stream of its own: the caller's may be one that cannot be captured, or that
/// others use meanwhile. False where there is no graph of it; what is wrong then shows when it is launched.
bool CudaEngine::record(RecordedCall& call, const std::function<void()>& run) {
  constexpr std::size_t most = 4096;  // launches; where there are more, they take longer than the host needs for them
  if (!recorder_) {
    int priority = 0;
    check(cudaStreamGetPriority(as_stream(stream_), &priority), "cudaStreamGetPriority");
    cudaStream_t s = nullptr;
    check(cudaStreamCreateWithPriority(&s, cudaStreamNonBlocking, priority), "cudaStreamCreate");
    recorder_ = s;
  }
  call.forget();
  void* const own = stream_;
  bool good = true;
  try {
    use_stream(recorder_);
    check(cudaStreamBeginCapture(as_stream(recorder_), cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    run();
  } catch (...) { good = false; }
  cudaGraph_t graph = nullptr;
  good = cudaStreamEndCapture(as_stream(recorder_), &graph) == cudaSuccess && good;
  use_stream(own);
  std::size_t launches = 0;
  good = good && cudaGraphGetNodes(graph, nullptr, &launches) == cudaSuccess && launches <= most;
  cudaGraphExec_t executable = nullptr;
  good = good && cudaGraphInstantiate(&executable, graph, cudaGraphInstantiateFlagUseNodePriority) == cudaSuccess;
  if (!good) cudaGetLastError();  // it was told
  call.graph = graph, call.executable = executable, call.path = path();
  if (!good)
    call.forget();
  else if (!call.copies[0])
    cudaGraphDestroy(static_cast<cudaGraph_t>(std::exchange(call.graph, nullptr)));
  return good;
}

}  // namespace trifactor::cuda
