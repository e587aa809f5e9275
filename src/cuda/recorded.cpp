// CudaEngine: calls that come again.
#include <cuda/recorded.hpp>

#include <cuda/check.hpp>
#include <cuda/engine.hpp>
#include <cuda/kernels.hpp>

namespace trifactor::cuda {

namespace {

cudaStream_t as_stream(void* s) { return static_cast<cudaStream_t>(s); }

}  // namespace

RecordedCall::~RecordedCall() { forget(); }
void RecordedCall::forget() noexcept {
  if (executable) cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(std::exchange(executable, nullptr)));
  if (graph) cudaGraphDestroy(static_cast<cudaGraph_t>(std::exchange(graph, nullptr)));
}

/// A call that came with the same addresses before is recorded with them; one of which only the addresses are new, with
/// its arguments moved, for all addresses to come.
void CudaEngine::replay(RecordedCall& here, const std::function<void()>& run, RecordedCall* anywhere,
                        const std::function<void()>& run_moved, MovedArguments* moved) {
  using enum RecordedCall::State;
  const void* scratch = arena().top();
  const auto enqueue_graph = [&](const RecordedCall& call) {
    check(cudaGraphLaunch(static_cast<cudaGraphExec_t>(call.executable), as_stream(stream_)), "cudaGraphLaunch");
    set_path(call.path.kind, call.path.detail);
    count_replay();
  };
  if (here.state == Recorded && here.scratch != scratch) here.state = Met;
  if (here.state == Recorded) return enqueue_graph(here);
  if (anywhere && here.state == New && anywhere->state == Met) {
    const auto with_copies = [&] {
      for (const bool last : {false, true}) {
        ArgumentCopies& copies = last ? moved->after : moved->before;
        if (last) run_moved();
        LaunchStep step = copy_arguments_step(copies);
        anywhere->copies[last] = copies.count > 0 ? enqueue_captured(stream_, step) : nullptr;
      }
    };
    anywhere->state = record(*anywhere, with_copies) ? Recorded : Refused;
  }
  if (anywhere && anywhere->state == Recorded) {
    for (const bool last : {false, true})
      if (anywhere->copies[last]) {
        LaunchStep step = copy_arguments_step(last ? moved->after : moved->before);
        set_arguments(anywhere->executable, anywhere->copies[last], step);
      }
    return enqueue_graph(*anywhere);
  }
  if (here.state == Met) {
    here.state = record(here, run) ? Recorded : Refused;
    here.scratch = scratch;
    if (here.state == Recorded) return enqueue_graph(here);
  }
  run();
  if (here.state == New) here.state = Met;
  if (anywhere && anywhere->state == New) anywhere->state = Met;
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
  if (!good) call.forget();
  return good;
}

}  // namespace trifactor::cuda
