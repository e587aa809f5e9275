#include <cuda/engine/copy_lane.hpp>

#include <cuda/engine/check.hpp>
#include <cuda/engine/engine.hpp>

#include <memory>
#include <utility>

namespace trifactor::cuda {

CopyLane::CopyLane(CudaEngine& engine, index_t moments, const char* name) : engine_(engine), name_(name) {
  const auto scope = engine_.enter();
  try {
    cudaStream_t stream = nullptr;
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
    stream_ = stream;
    for (std::vector<void*>* events : {&work_, &copies_})
      for (index_t k = 0; k < moments; ++k) {
        cudaEvent_t event = nullptr;
        check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate");
        events->push_back(event);
      }
  } catch (...) {
    release();
    throw;
  }
}

CopyLane::~CopyLane() {
  const DeviceScope scope(engine_.device(), std::nothrow);
  release();
}

void CopyLane::release() noexcept {
  if (stream_) {
    cudaStreamSynchronize(as_stream(engine_.stream()));
    cudaStreamSynchronize(as_stream(stream_));
    cudaStreamDestroy(as_stream(stream_));
  }
  for (const std::vector<void*>* events : {&work_, &copies_})
    for (void* event : *events) cudaEventDestroy(as_event(event));
  memory_.clear();
}

void* CopyLane::allocate(std::size_t bytes) {
  memory_.push_back(page_locked(bytes));
  return memory_.back().get();
}

void CopyLane::copy(const char* name, const void* from, void* to, std::size_t bytes) {
  if (bytes == 0) return;
  const core::Traced traced(*this, name, index_t(bytes), 1);
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, as_stream(stream_)), "cudaMemcpyAsync");
}

void CopyLane::call(const char* name, std::function<void()> f) {
  const core::Traced traced(*this, name, 0, 1);
  auto held = std::make_unique<std::function<void()>>(std::move(f));
  const auto run = [](void* data) {
    const std::unique_ptr<std::function<void()>> taken(static_cast<std::function<void()>*>(data));
    (*taken)();
  };
  check(cudaLaunchHostFunc(as_stream(stream_), run, held.get()), "cudaLaunchHostFunc");
  held.release();
}

void CopyLane::work_is_at(index_t k) {
  check(cudaEventRecord(as_event(work_[k]), as_stream(engine_.stream())), "cudaEventRecord");
}
void CopyLane::copies_are_at(index_t k) {
  check(cudaEventRecord(as_event(copies_[k]), as_stream(stream_)), "cudaEventRecord");
}
void CopyLane::work_waits_for_copies(index_t k) {
  check(cudaStreamWaitEvent(as_stream(engine_.stream()), as_event(copies_[k]), 0), "cudaStreamWaitEvent");
}
void CopyLane::copies_wait_for_work(index_t k) {
  check(cudaStreamWaitEvent(as_stream(stream_), as_event(work_[k]), 0), "cudaStreamWaitEvent");
}
bool CopyLane::captured() const { return engine_.capturing(); }
void CopyLane::finish() { check(cudaStreamSynchronize(as_stream(stream_)), "copies between device and host"); }

core::Trace* CopyLane::trace() const { return engine_.trace(); }

core::Moment CopyLane::moment() const noexcept { return moment_on(stream_); }

}  // namespace trifactor::cuda
