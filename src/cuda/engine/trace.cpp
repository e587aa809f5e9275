// CudaEngine: the times of its operations, by an event before and one after each, and what blocks of the persistent
// grid do inside of them, by the device's clock.
#include <cuda/engine/check.hpp>
#include <cuda/engine/engine.hpp>
#include <cuda/entries/entries.hpp>
#include <cuda/single/single.hpp>

#include <exception>

namespace trifactor::cuda {

namespace {

constexpr int pause_ns = 100'000;  // longer than the host needs to enqueue a call

/// An event's time in seconds after `start`; -1 where it was not recorded.
double seconds_between(void* start, void* event) {
  float milliseconds = 0;
  if (event && cudaEventElapsedTime(&milliseconds, as_event(start), as_event(event)) == cudaSuccess)
    return double(milliseconds) * 1e-3;
  cudaGetLastError();
  return -1;
}

/// The blocks of the persistent grid that have tracks of their own: the chain and some of the others.
constexpr const char* block_lanes[] = {"chain",    "worker 1", "worker 2", "worker 3", "worker 4",
                                       "worker 5", "worker 6", "worker 7", "worker 8"};

}  // namespace

void* CudaEngine::take_marks(index_t count) {
  if (capturing()) return nullptr;
  void* marks = nullptr;
  const auto bytes = std::size_t(count) * sizeof(Mark);
  check(cudaMalloc(&marks, bytes), "memory for a trace");
  main_->marked_.push_back({trace()->spans.size(), marks, count});
  check(cudaMemsetAsync(marks, 0, bytes, as_stream(stream_)), "cudaMemsetAsync");
  return marks;
}

/// The device's clock and the events' have no common beginning: the first mark is laid where the operation begins.
void CudaEngine::add_marks(Trace& trace, const MarkedSpan& marked) {
  std::vector<Mark> marks(static_cast<std::size_t>(marked.count));
  check(cudaMemcpy(marks.data(), marked.marks, marks.size() * sizeof(Mark), cudaMemcpyDeviceToHost), "copy of a trace");
  unsigned long long start = std::numeric_limits<unsigned long long>::max();
  for (const Mark& m : marks)
    if (m.begin > 0) start = std::min(start, m.begin);
  const double begin = trace.spans[marked.span].begin.seconds;
  const auto moment = [&](unsigned long long time) { return Moment{begin + double(time - start) * 1e-9, nullptr}; };
  for (const Mark& m : marks)
    if (m.begin > 0 && m.end >= m.begin && m.block < int(std::size(block_lanes)))
      trace.spans.push_back({block_lanes[m.block], m.block == 0 ? "diagonal tile" : "tile", m.edge, m.edge, m.depth,
                             moment(m.begin), moment(m.end)});
}

Moment moment_on(void* stream) noexcept {
  cudaEvent_t event = nullptr;
  if (cudaEventCreate(&event) != cudaSuccess) return {};
  if (cudaEventRecord(event, as_stream(stream)) == cudaSuccess) return {0, event};
  cudaEventDestroy(event);
  return {};
}
Moment CudaEngine::moment() const noexcept { return moment_on(stream_); }

double CudaEngine::seconds_of(const std::function<void()>& work) {
  const auto scope = enter();
  sync();
  launch_pause(stream_, pause_ns);
  const Moment begin = moment();
  std::exception_ptr thrown;
  try {
    work();
  } catch (...) { thrown = std::current_exception(); }
  const Moment end = moment();
  const cudaError_t status = cudaStreamSynchronize(as_stream(stream_));
  const double seconds = begin.event && end.event ? seconds_between(begin.event, end.event) : -1;
  for (const Moment& m : {begin, end})
    if (m.event) cudaEventDestroy(as_event(m.event));
  if (thrown) std::rethrow_exception(thrown);
  check(status, "a device fault surfaced while work was timed");
  if (seconds < 0) throw DeviceFault("no event can be recorded on this stream, so nothing can be timed");
  return seconds;
}

void CudaEngine::start_trace(Trace& trace) {
  const auto scope = enter();
  sync();
  trace_start_ = moment();  // the stream is idle, so this event and the host's clock are read together
  if (!trace_start_.event) throw DeviceFault("no event can be recorded on this stream, so nothing can be traced");
  sync();
  trace_start_.seconds = trace.now();
  trace_ = &trace;
}

void CudaEngine::finish_trace() {
  if (!trace_) return;
  const auto scope = enter();
  Trace& trace = *std::exchange(trace_, nullptr);
  const cudaError_t main_lane = cudaStreamSynchronize(as_stream(stream_));
  cudaError_t others = cudaStreamSynchronize(as_stream(side_->stream_));
  if (background_ && others == cudaSuccess) others = cudaStreamSynchronize(as_stream(background_->stream_));
  for (Span& span : trace.spans)
    for (Moment* m : {&span.begin, &span.end}) {
      if (!m->event) continue;
      const double seconds = seconds_between(trace_start_.event, m->event);
      cudaEventDestroy(as_event(m->event));
      *m = {seconds < 0 ? -1 : trace_start_.seconds + seconds, nullptr};
    }
  cudaEventDestroy(as_event(trace_start_.event));
  trace_start_ = {};
  std::exception_ptr thrown;  // there may be no memory for the marks; all of theirs is given back nevertheless
  for (const MarkedSpan& marked : std::exchange(marked_, {})) {
    try {
      if (main_lane == cudaSuccess && others == cudaSuccess && !thrown) add_marks(trace, marked);
    } catch (...) { thrown = std::current_exception(); }
    cudaFree(marked.marks);
  }
  if (thrown) std::rethrow_exception(thrown);
  check(main_lane, "a device fault surfaced at the end of a trace");
  check(others, "a device fault surfaced at the end of a trace");
}

}  // namespace trifactor::cuda
