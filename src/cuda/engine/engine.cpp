// CudaEngine: lanes, memory, and the operations that are one kernel.
#include <cuda/engine/engine.hpp>

#include <core/no_device.hpp>
#include <core/path.hpp>
#include <cuda/engine/cublas.hpp>
#include <cuda/engine/kernels.hpp>

#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace trifactor::cuda {

namespace {

constexpr index_t flag_count = 1 << 15;                  // enough for matrices of order 260,000, complex or not
constexpr std::size_t blas_workspace_bytes = 32u << 20;  // what cuBLAS's documentation recommends for Hopper

cudaStream_t as_stream(void* s) { return static_cast<cudaStream_t>(s); }
cudaEvent_t as_event(void* e) { return static_cast<cudaEvent_t>(e); }
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
  return {[](void*, std::size_t bytes) {
            count_allocation("page-locked host", bytes);
            void* p = nullptr;
            if (cudaMallocHost(&p, bytes) != cudaSuccess) {
              cudaGetLastError();
              throw_out_of_memory("page-locked host", bytes);
            }
            return p;
          },
          [](void*, void* p) noexcept { cudaFreeHost(p); }, nullptr};
}

std::string architecture_of(int device) {
  int major = 0, minor = 0;
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "cudaDeviceGetAttribute");
  check(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device), "cudaDeviceGetAttribute");
  return "sm_" + std::to_string(major) + std::to_string(minor);
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

std::string why_no_device() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess && count > 0) return "";
  cudaGetLastError();
  using Failure = core::DeviceSearch::Failure;
  core::DeviceSearch search;
  search.failure = status == cudaErrorInsufficientDriver                       ? Failure::OldDriver
                   : status == cudaSuccess || status == cudaErrorNoDevice ? Failure::NoDevice
                                                                          : Failure::Other;
  if (cudaDriverGetVersion(&search.driver_version) != cudaSuccess) cudaGetLastError();
  if (cudaRuntimeGetVersion(&search.runtime_version) != cudaSuccess) cudaGetLastError();
  std::error_code ignored;
  search.module_loaded = std::filesystem::exists("/proc/driver/nvidia/version", ignored);
  if (const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES")) search.visible_devices = visible;
  search.error = cudaGetErrorString(status);
  return explain(search);
}

std::vector<DeviceInfo> devices() {
  std::vector<DeviceInfo> all;
  if (!why_no_device().empty()) return all;
  int count = 0;
  check(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
  for (int d = 0; d < count; ++d) {
    const DeviceScope scope(d);
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, d), "cudaGetDeviceProperties");
    DeviceInfo info;
    info.name = properties.name, info.architecture = architecture_of(d), info.number = d;
    info.cores = properties.multiProcessorCount;
    check(cudaMemGetInfo(&info.free_bytes, &info.memory_bytes), "cudaMemGetInfo");
    all.push_back(std::move(info));
  }
  return all;
}

DeviceScope::DeviceScope(int device) : before_(device) {
  check(cudaGetDevice(&before_), "cudaGetDevice");
  if (before_ != device) check(cudaSetDevice(device), "cudaSetDevice");
}
DeviceScope::~DeviceScope() {
  int now = before_;
  if (cudaGetDevice(&now) == cudaSuccess && now != before_) cudaSetDevice(before_);
}

CudaEngine::CudaEngine(void* stream, bool borrowed, int device)
    : device_(checked_device(device)),
      main_(this),
      architecture_(architecture_of(device)),
      arena_(device_source(this)),
      pinned_(pinned_source()) {
  const auto scope = enter();
  check(cudaDeviceGetAttribute(&multiprocessors_, cudaDevAttrMultiProcessorCount, device), "cudaDeviceGetAttribute");
  try {
    open_lane(stream, borrowed);
    side_.reset(new CudaEngine(*this));
  } catch (...) {
    close_lane();
    throw;
  }
}

CudaEngine::CudaEngine(CudaEngine& main)
    : device_(main.device_),
      multiprocessors_(main.multiprocessors_),
      main_(&main),
      arena_(device_source(this)),
      pinned_(pinned_source()) {
  try {
    open_lane(nullptr, false);
  } catch (...) {
    close_lane();
    throw;
  }
}

CudaEngine::~CudaEngine() {
  const int device = device_;
  int before = device;
  cudaGetDevice(&before);
  cudaSetDevice(device);
  if (main_ == this) cudaStreamSynchronize(as_stream(stream_));
  side_.reset();
  close_lane();
  cudaSetDevice(before);
}

void CudaEngine::open_lane(void* borrowed_stream, bool borrowed) {
  if (borrowed) {
    stream_ = borrowed_stream;
  } else {
    int lowest = 0, highest = 0;
    check(cudaDeviceGetStreamPriorityRange(&lowest, &highest), "cudaDeviceGetStreamPriorityRange");
    cudaStream_t s = nullptr;  // panels on the side lane go first
    check(cudaStreamCreateWithPriority(&s, cudaStreamNonBlocking, main_ == this ? lowest : highest),
          "cudaStreamCreate");
    stream_ = s, owns_stream_ = true;
  }
  cudaEvent_t e = nullptr;
  check(cudaEventCreateWithFlags(&e, cudaEventDisableTiming), "cudaEventCreate");
  event_ = e;
  blas_workspace_ = allocate_device(blas_workspace_bytes);
  flags_ = allocate_device(flag_count * sizeof(int));
  check(cudaMemset(flags_, 0, flag_count * sizeof(int)), "cudaMemset");
  check(cudaStreamSynchronize(cudaStreamLegacy), "cudaStreamSynchronize");  // other streams do not wait for that one
  cublasHandle_t h = nullptr;
  check(CUBLAS(cublasCreate)(&h), "cublasCreate");
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
  if (recorder_) cudaStreamDestroy(as_stream(recorder_));
  if (blas_) CUBLAS(cublasDestroy)(as_blas(blas_));
  if (blas_workspace_) cudaFree(blas_workspace_);
  if (flags_) cudaFree(flags_);
  if (event_) cudaEventDestroy(as_event(event_));
  if (owns_stream_) cudaStreamDestroy(as_stream(stream_));
  blas_ = blas_workspace_ = flags_ = event_ = recorder_ = nullptr, owns_stream_ = false;
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
  int before = device_;
  cudaGetDevice(&before);
  cudaSetDevice(device_);
  cudaFree(p);
  cudaSetDevice(before);
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
  if (arena().planning()) return;
  check(cudaEventRecord(as_event(event_), as_stream(stream_)), "cudaEventRecord");
  check(cudaStreamWaitEvent(as_stream(side_->stream_), as_event(event_)), "cudaStreamWaitEvent");
}
void CudaEngine::join() {
  if (arena().planning()) return;
  check(cudaEventRecord(as_event(side_->event_), as_stream(side_->stream_)), "cudaEventRecord");
  check(cudaStreamWaitEvent(as_stream(stream_), as_event(side_->event_)), "cudaStreamWaitEvent");
}

template <class T>
void CudaEngine::reset_info(Items<T> A, bool square, int* info) {
  if (arena().planning() || A.count == 0) return;
  const Traced traced(*this, "reset_info", A.count, 1);
  launch_reset_info(stream_, A, square, info);
}
template <class T>
void CudaEngine::check_solve(Items<const T> L, Items<T> X, const int* info, int* skip) {
  if (!arena().planning()) launch_check_solve(stream_, L, X, info, skip);
}
template <class T>
void CudaEngine::take_remaining(Items<T> A, index_t k, index_t nb, int* info, const Remaining<T>& rest) {
  if (!arena().planning()) launch_take_remaining(stream_, A, k, nb, info, rest);
}
namespace {
template <class T>
bool one_strided(const Items<T>& A) {
  return A.count == 1 && !A.pointers;
}
}  // namespace

template <class T>
index_t CudaEngine::tile_limit(const Items<T>&) const {
  return std::numeric_limits<int>::max();
}

template <class T>
bool CudaEngine::cholesky_whole(Items<T> A, int* info, const CholeskyTuning& tuning) {
  // Few large items are worked on several at a time, as far as there are flags. A matrix alone, and strided ones of which
  // each fills the device, have a kernel of their own.
  const index_t list_size = cholesky_list_size(A, tuning), few = few_items<T>(A.rows, tuning);
  const bool alone = !A.pointers && (A.count == 1 || A.rows >= tuning.squares);
  const bool large = multiprocessors_ > 1 && (list_size > 0 ? few > 0 : !alone && A.count <= few);
  const index_t most_sets = (flag_count - 256) / (1 + persistent_flag_count<T>(A.rows));
  const index_t sets = large ? min(index_t(8), most_sets) : 0;
  if (A.rows <= tuning.whole || sets > 0) {
    auto list = arena().take<int>(list_size);
    auto entries = arena().take<T>(sets > 0 ? sets * persistent_entry_count<T>(A.rows) : 0);
    if (arena().planning()) return true;
    const auto run = [&] {
      const Traced traced(*this, "cholesky_whole", A.rows, A.cols);
      set_path(launch_cholesky(stream_, multiprocessors_, A, info, 0, true, tuning,
                               {list.data(), static_cast<int*>(flags_), &graphs_, entries.data(), int(sets)}));
    };
    if (list_size > 0)
      replayed_here(run, A, info, tuning);  // several launches
    else
      run();
    return true;
  }
  if (!alone || A.rows > tuning.persistent || persistent_flag_count<T>(A.rows) > flag_count) return false;
  const auto one = [&](index_t b) {
    cholesky_persistent(A.one(b), A.rows < tuning.squares ? 0 : int(min(tuning.band, A.rows)), true, info + b, 0);
  };
  set_path("persistent");
  if (A.count == 1) return one(0), true;
  replayed_here(
      [&] {
        for (index_t b = 0; b < A.count; ++b) one(b);
      },
      A, info, tuning);  // one after the other: each fills the device
  return true;
}
template <class T>
bool CudaEngine::cholesky_solve_whole(Items<T> A, bool flipped, Items<T> B, int* info, const CholeskyTuning& tuning) {
  if (A.rows > min(tuning.whole, cholesky_solve_limit) || B.cols > min(tuning.fused, index_t(1))) return false;
  if (arena().planning()) return true;
  const Traced traced(*this, "cholesky_solve_whole", A.rows, B.cols);
  set_path("one launch");
  launch_factor_and_solve(stream_, A, flipped, B, info);
  return true;
}
template <class T>
bool CudaEngine::cholesky_solved_whole(Items<const T> L, bool flipped, Items<T> X, const int* info,
                                       const SolveTuning& tuning) {
  if (one_strided(L) || L.rows > cholesky_solve_limit || X.cols > tuning.fused) return false;
  if (arena().planning()) return true;
  const Traced traced(*this, "cholesky_solved_whole", L.rows, X.cols);
  set_path("one launch");
  launch_cholesky_solve(stream_, L, flipped, X, info);
  return true;
}
template <class T>
void CudaEngine::cholesky_tile(Items<T> A, int* info, index_t first) {
  constexpr index_t one_block = 64;  // from here on, one matrix is faster on several multiprocessors
  if (one_strided(A) && A.rows > one_block) return cholesky_persistent(A, 0, false, info, first);
  if (arena().planning()) return;
  const Traced traced(*this, "cholesky_tile", A.rows, A.cols);
  launch_cholesky(stream_, multiprocessors_, A, info, first, false, CholeskyTuning{}, {});
}
template <class T>
void CudaEngine::cholesky_persistent(Items<T> A, int band, bool resets, int* info, index_t first) {
  auto entries = arena().take<T>(persistent_entry_count<T>(A.rows));
  if (arena().planning()) return;
  const auto marks = static_cast<Mark*>(trace() ? take_marks(persistent_mark_count<T>(A.rows)) : nullptr);
  const Traced traced(*this, "cholesky_persistent", A.rows, A.cols);
  launch_persistent(stream_, multiprocessors_, A, band, resets, info, first, entries.data(), static_cast<int*>(flags_),
                    marks);
}
template <class T>
bool CudaEngine::lu_whole(Items<T> A, Pivots<int> pivots, int* info, const LuTuning& tuning) {
  if (min(A.rows, A.cols) > tuning.whole) return false;
  const bool in_registers =
      A.cols <= lu_columns<T>(A.rows) && (one_strided(A) || !lu_resident_better<T>(A.rows, A.cols));
  if (!in_registers && (one_strided(A) || !lu_resident_fits<T>(A.rows, A.cols))) return false;
  set_path(!in_registers ? "resident" : max(A.rows, A.cols) <= 32 ? "warp" : "block");
  if (arena().planning()) return true;
  const Traced traced(*this, "lu_whole", A.rows, A.cols);
  if (in_registers)
    launch_lu_rows(stream_, A, pivots, info, true);
  else
    launch_lu_resident(stream_, A, pivots, info, true);
  return true;
}
template <class T>
void CudaEngine::lu_tile(Items<T> A, Pivots<int> pivots, int* info) {
  if (arena().planning()) return;
  const Traced traced(*this, "lu_tile", A.rows, A.cols);
  if (A.cols <= lu_columns<T>(A.rows))
    launch_lu_rows(stream_, A, pivots, info, false);
  else
    launch_lu(stream_, A, pivots, info);
}
template <class T>
index_t CudaEngine::lu_tile_limit(const Items<T>& A) const {
  const index_t in_registers = lu_columns<T>(A.rows);
  return in_registers > 0 ? in_registers : std::numeric_limits<int>::max();
}
template <class T>
void CudaEngine::swap_rows(Items<T> A, Pivots<const int> pivots, index_t n, bool backward, const int* info) {
  constexpr index_t one_by_one = 128;        // a panel's exchanges; those of a whole matrix become a permutation first
  constexpr index_t most = index_t(1) << 22;  // entries that are permuted at once
  if (A.cols == 0 || n == 0 || A.count == 0) return;
  if (n <= one_by_one || n != A.rows || pivots.first != 0 || main_ != this || !one_strided(A)) {
    if (!arena().planning()) launch_swap_rows(stream_, A, pivots, n, backward, info);
    return;
  }
  const index_t columns = min(A.cols, max(index_t(1), most / n));
  auto p = arena().take<int>(n);
  auto permuted = arena().take<T>(n * columns);
  if (arena().planning()) return;
  launch_permutation(stream_, pivots.data, n, p.data(), n);
  for (index_t j = 0; j < A.cols; j += columns)
    launch_permute_rows(stream_, A.block(0, j, n, min(columns, A.cols - j)), p.data(), backward, permuted.data(), info);
}
template <class T>
void CudaEngine::log_det(Items<const T> L, Real<T>* out, const int* info) {
  if (!arena().planning()) launch_log_det<T>(stream_, L, out, info);
}
template <class T>
void CudaEngine::lu_det(Items<const T> LU, Pivots<const int> pivots, T* sign, Real<T>* log_abs) {
  if (!arena().planning()) launch_lu_det<T>(stream_, LU, pivots, sign, log_abs);
}
void CudaEngine::row_permutation(const int* pivots, index_t k, int* p, index_t rows) {
  if (!arena().planning()) launch_permutation(stream_, pivots, k, p, rows);
}
template <class T>
void CudaEngine::set_identity(Items<T> A, const int* info) {
  if (!arena().planning()) launch_set_identity(stream_, A, info);
}
template <class T>
void CudaEngine::mirror_lower(Items<T> A, const int* info) {
  if (!arena().planning()) launch_mirror_lower(stream_, A, info);
}
template <class T>
void CudaEngine::column_norms(Items<const T> A, NormOf of, double* norms) {
  if (!arena().planning() && A.cols > 0) launch_column_norms(stream_, A, of, norms);
}
template <class T>
void CudaEngine::keep_lower(Items<const T> A, T* kept, double* shifts) {
  if (!arena().planning()) launch_keep_lower(stream_, A, kept, shifts);
}
template <class T>
void CudaEngine::shift_failed(Items<T> A, const T* kept, Real<T> shift, const int* info, int* retry, double* shifts) {
  if (!arena().planning()) launch_shift_failed(stream_, A, kept, shift, info, retry, shifts);
}
void CudaEngine::take_retry(index_t count, const int* retry, int* info) {
  if (!arena().planning()) launch_take_retry(stream_, count, retry, info);
}
template <class T>
void CudaEngine::keep(Items<T> X, const int* info, T* saved) {
  if (!arena().planning() && kept_size(X, info) > 0) launch_copy_if_failed(stream_, X, info, saved, false);
}
template <class T>
void CudaEngine::restore(Items<T> X, const int* info, T* saved) {
  if (!arena().planning() && kept_size(X, info) > 0) launch_copy_if_failed(stream_, X, info, saved, true);
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
void CudaEngine::download_wait() {
  if (!arena().planning()) check(cudaStreamSynchronize(as_stream(stream_)), "copy of a panel to the host");
}

#define TRIFACTOR_INSTANTIATE(T)                                                                    \
  template void CudaEngine::reset_info<T>(Items<T>, bool, int*);                                    \
  template void CudaEngine::check_solve<T>(Items<const T>, Items<T>, const int*, int*);             \
  template void CudaEngine::take_remaining<T>(Items<T>, index_t, index_t, int*, const Remaining<T>&); \
  template bool CudaEngine::cholesky_whole<T>(Items<T>, int*, const CholeskyTuning&);               \
  template bool CudaEngine::cholesky_solve_whole<T>(Items<T>, bool, Items<T>, int*, const CholeskyTuning&); \
  template bool CudaEngine::cholesky_solved_whole<T>(Items<const T>, bool, Items<T>, const int*, const SolveTuning&); \
  template void CudaEngine::cholesky_tile<T>(Items<T>, int*, index_t);                              \
  template index_t CudaEngine::tile_limit<T>(const Items<T>&) const;                                \
  template bool CudaEngine::lu_whole<T>(Items<T>, Pivots<int>, int*, const LuTuning&);              \
  template void CudaEngine::lu_tile<T>(Items<T>, Pivots<int>, int*);                                \
  template index_t CudaEngine::lu_tile_limit<T>(const Items<T>&) const;                             \
  template void CudaEngine::swap_rows<T>(Items<T>, Pivots<const int>, index_t, bool, const int*);   \
  template void CudaEngine::log_det<T>(Items<const T>, Real<T>*, const int*);                       \
  template void CudaEngine::lu_det<T>(Items<const T>, Pivots<const int>, T*, Real<T>*);             \
  template void CudaEngine::set_identity<T>(Items<T>, const int*);                                  \
  template void CudaEngine::mirror_lower<T>(Items<T>, const int*);                                  \
  template void CudaEngine::column_norms<T>(Items<const T>, NormOf, double*);                       \
  template void CudaEngine::keep_lower<T>(Items<const T>, T*, double*);                             \
  template void CudaEngine::shift_failed<T>(Items<T>, const T*, Real<T>, const int*, int*, double*); \
  template void CudaEngine::keep<T>(Items<T>, const int*, T*);                                      \
  template void CudaEngine::restore<T>(Items<T>, const int*, T*);                                   \
  template void CudaEngine::download<T>(Items<T>, T*);                                              \
  template void CudaEngine::upload<T>(Items<T>, const T*);
TRIFACTOR_FOR_EACH_SCALAR(TRIFACTOR_INSTANTIATE)

}  // namespace trifactor::cuda
