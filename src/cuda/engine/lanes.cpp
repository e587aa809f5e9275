// CudaEngine: its lanes, their memory, and copies.
#include <cuda/engine/cublas.hpp>
#include <cuda/engine/engine.hpp>
#include <cuda/engine/page_locked.hpp>

#include <mutex>

namespace trifactor::cuda {

namespace {

constexpr std::size_t blas_workspace_bytes = 32u << 20;  // what cuBLAS's documentation recommends for Hopper

cublasHandle_t as_blas(void* h) { return static_cast<cublasHandle_t>(h); }

void* allocate_device(std::size_t bytes) {
  count_allocation("device", bytes);
  void* p = nullptr;
  const cudaError_t status = cudaMalloc(&p, bytes);
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    throw_out_of_memory("device", bytes);
  }
  check(status, "cudaMalloc");
  return p;
}

MemorySource device_source(CudaEngine* engine) {
  return {[](void* e, std::size_t bytes) { return static_cast<CudaEngine*>(e)->allocate(bytes); },
          [](void* e, void* p) noexcept { static_cast<CudaEngine*>(e)->deallocate(p); }, engine};
}

MemorySource pinned_source() {
  return {[](void*, std::size_t bytes) { return allocate_page_locked(bytes); },
          [](void*, void* p) noexcept { cudaFreeHost(p); }, nullptr};
}

int checked_device(int device) {
  if (const std::string why = why_no_device(); !why.empty()) throw DeviceFault(why);
  int count = 0;
  check(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
  if (device < 0 || device >= count)
    throw DeviceFault("no CUDA device " + std::to_string(device) + ": this machine has " + std::to_string(count));
  return device;
}

}  // namespace

CudaEngine::CudaEngine(void* stream, bool borrowed, int device)
    : device_(checked_device(device)),
      main_(this),
      architecture_(architecture_of(device)),
      arena_(device_source(this)),
      pinned_(pinned_source()) {
  const auto scope = enter();
  check(cudaDeviceGetAttribute(&multiprocessors_, cudaDevAttrMultiProcessorCount, device), "cudaDeviceGetAttribute");
  try {
    open_lane(borrowed ? stream : new_stream(false), !borrowed);
    side_.reset(new CudaEngine(*this, Beside::Side));
  } catch (...) {
    close_lane();
    throw;
  }
}

CudaEngine::CudaEngine(CudaEngine& main, Beside beside)
    : device_(main.device_),
      multiprocessors_(main.multiprocessors_),
      main_(&main),
      lane_name_(beside == Beside::Side ? "side lane" : "background lane"),
      arena_(device_source(this)),
      pinned_(pinned_source()) {
  try {
    if (beside == Beside::Background) confined_ = ConfinedStream::create(device_);
    open_lane(confined_ ? confined_->stream() : new_stream(beside == Beside::Side), !confined_);
  } catch (...) {
    close_lane();
    throw;
  }
}

CudaEngine::~CudaEngine() {
  const DeviceScope scope(device_, std::nothrow);
  if (main_ == this) cudaStreamSynchronize(as_stream(stream_));
  side_.reset();
  background_.reset();
  close_lane();
}

/// `first`: its kernels go before those of other streams.
void* CudaEngine::new_stream(bool first) const {
  int lowest = 0, highest = 0;
  check(cudaDeviceGetStreamPriorityRange(&lowest, &highest), "cudaDeviceGetStreamPriorityRange");
  cudaStream_t s = nullptr;
  check(cudaStreamCreateWithPriority(&s, cudaStreamNonBlocking, first ? highest : lowest), "cudaStreamCreate");
  return s;
}

void CudaEngine::open_lane(void* stream, bool owned) {
  stream_ = stream, owns_stream_ = owned;
  cudaEvent_t e = nullptr;
  check(cudaEventCreateWithFlags(&e, cudaEventDisableTiming), "cudaEventCreate");
  event_ = e;
  blas_workspace_ = allocate_device(blas_workspace_bytes);
  flags_ = allocate_device(flag_count * sizeof(int));
  // Not on the default stream: that would invalidate captures of the caller's streams that wait for it.
  check(cudaMemsetAsync(flags_, 0, flag_count * sizeof(int), cudaStreamPerThread), "cudaMemsetAsync");
  check(cudaStreamSynchronize(cudaStreamPerThread), "cudaStreamSynchronize");
  cublasHandle_t h = nullptr;
  {
    const std::lock_guard no_capture(capture_mutex());  // it may synchronize the device, too
    check(CUBLAS(cublasCreate)(&h), "cublasCreate");
  }
  blas_ = h;
  use_stream(stream_);
}

void CudaEngine::use_stream(void* stream) {
  stream_ = stream;
  check(CUBLAS(cublasSetStream)(as_blas(blas_), as_stream(stream)), "cublasSetStream");
  check(CUBLAS(cublasSetWorkspace)(as_blas(blas_), blas_workspace_, blas_workspace_bytes),
        "cublasSetWorkspace");  // setting the stream resets it
}

void CudaEngine::close_lane() noexcept {
  if (capture_stream_) cudaStreamDestroy(as_stream(capture_stream_));
  if (blas_) {
    const std::lock_guard no_capture(capture_mutex());  // it synchronizes the device
    CUBLAS(cublasDestroy)(as_blas(blas_));
  }
  if (blas_workspace_) cudaFree(blas_workspace_);
  if (flags_) cudaFree(flags_);
  if (event_) cudaEventDestroy(as_event(event_));
  if (owns_stream_) cudaStreamDestroy(as_stream(stream_));
  blas_ = blas_workspace_ = flags_ = event_ = capture_stream_ = nullptr, owns_stream_ = false;
}

std::size_t CudaEngine::free_bytes() const {
  const auto scope = enter();
  std::size_t free = 0, all = 0;
  check(cudaMemGetInfo(&free, &all), "cudaMemGetInfo");
  return free;
}

bool CudaEngine::may_spare(std::size_t bytes) const {
  return main_->arena_.has_room(bytes) || (!capturing() && bytes <= free_bytes() / 2);
}

bool CudaEngine::capturing() const {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check(cudaStreamIsCapturing(as_stream(stream_), &status), "cudaStreamIsCapturing");
  return status != cudaStreamCaptureStatusNone;
}

void CudaEngine::sync() {
  const auto scope = enter();
  check(cudaStreamSynchronize(as_stream(stream_)), "a device fault surfaced at sync");
}

void* CudaEngine::allocate(std::size_t bytes) {
  const auto scope = enter();
  if (capturing())
    throw InvalidArgument(
        "this call needs " + std::to_string(bytes) +
        " bytes of scratch memory that the queue does not have, and nothing can be allocated under capture: "
        "reserve() what the *_scratch query says before the capture begins");
  return allocate_device(bytes);
}
void CudaEngine::deallocate(void* p) noexcept {
  const DeviceScope scope(device_, std::nothrow);
  cudaFree(p);
}
void CudaEngine::fill_zero(void* p, std::size_t bytes) {
  const auto scope = enter();
  check(cudaMemsetAsync(p, 0, bytes, as_stream(stream_)), "cudaMemsetAsync");
}
void CudaEngine::copy_columns(const void* source, std::size_t source_ld, void* target, std::size_t target_ld,
                              std::size_t rows, std::size_t cols) {
  const auto scope = enter();
  if (cols == 1 || (source_ld == rows && target_ld == rows))  // a single copy has no limit on its pitch
    check(cudaMemcpyAsync(target, source, rows * cols, cudaMemcpyDefault, as_stream(stream_)), "cudaMemcpyAsync");
  else
    check(cudaMemcpy2DAsync(target, target_ld, source, source_ld, rows, cols, cudaMemcpyDefault, as_stream(stream_)),
          "cudaMemcpy2DAsync");
}

void CudaEngine::fork() {
  mark();
  side_->wait_for_mark(*this);
}
void CudaEngine::join() {
  side_->mark();
  wait_for_mark(*side_);
}

CudaEngine& CudaEngine::background() {
  if (main_ == this && !background_ && !arena().planning() && !capturing())
    background_.reset(new CudaEngine(*this, Beside::Background));
  return background_ ? *background_ : *this;
}
void CudaEngine::mark() {
  if (!arena().planning()) check(cudaEventRecord(as_event(event_), as_stream(stream_)), "cudaEventRecord");
}
void CudaEngine::wait_for_mark(CudaEngine& lane) {
  if (arena().planning() || &lane == this) return;
  check(cudaStreamWaitEvent(as_stream(stream_), as_event(lane.event_)), "cudaStreamWaitEvent");
}

// A window of one matrix as stored: flipped views swap rows and columns.
template <class T>
void CudaEngine::download(Items<T> A, T* host) {
  if (arena().planning()) return;
  const Traced traced(*this, "download", A.rows, A.cols);
  const Tile<T> t = A.is_flipped ? A.flipped().item(0) : A.item(0);
  check(cudaMemcpy2DAsync(host, std::size_t(t.rows) * sizeof(T), t.data, std::size_t(t.col_stride) * sizeof(T),
                          std::size_t(t.rows) * sizeof(T), std::size_t(t.cols), cudaMemcpyDeviceToHost,
                          as_stream(stream_)),
        "copy of a panel to the host");
}
template <class T>
void CudaEngine::upload(Items<T> A, const T* host) {
  if (arena().planning()) return;
  const Traced traced(*this, "upload", A.rows, A.cols);
  const Tile<T> t = A.is_flipped ? A.flipped().item(0) : A.item(0);
  check(cudaMemcpy2DAsync(t.data, std::size_t(t.col_stride) * sizeof(T), host, std::size_t(t.rows) * sizeof(T),
                          std::size_t(t.rows) * sizeof(T), std::size_t(t.cols), cudaMemcpyHostToDevice,
                          as_stream(stream_)),
        "copy of a panel to the device");
}
void CudaEngine::upload(int* target, const int* host, index_t n) {
  if (arena().planning()) return;
  check(cudaMemcpyAsync(target, host, std::size_t(n) * sizeof(int), cudaMemcpyHostToDevice, as_stream(stream_)),
        "copy of pivots to the device");
}
void CudaEngine::wait_for_copies() {
  if (!arena().planning()) check(cudaStreamSynchronize(as_stream(stream_)), "copies of panels");
}

#define TRIFACTOR_INSTANTIATE(T)                       \
  template void CudaEngine::download<T>(Items<T>, T*); \
  template void CudaEngine::upload<T>(Items<T>, const T*);
TRIFACTOR_FOR_EACH_SCALAR(TRIFACTOR_INSTANTIATE)
#undef TRIFACTOR_INSTANTIATE

}  // namespace trifactor::cuda
