// Queue, its memory, and copies between queues.
#include <api/check.hpp>
#include <api/queue_state.hpp>
#include <core/no_device.hpp>
#include <host/instruction_set.hpp>
#include <trifactor/measure.hpp>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>

namespace trifactor {

namespace {

using detail::QueueState;

#if TRIFACTOR_HAS_CUDA
std::shared_ptr<QueueState> cuda_state(void* stream, bool borrowed, int device) {
  auto state = std::make_shared<QueueState>(0);
  state->cuda = std::make_unique<cuda::CudaEngine>(stream, borrowed, device);
  state->architectures = {state->cuda->architecture(), "", "cuda", "any"};
  state->device_name = cuda::name_of(device);
  return state;
}
#else
std::shared_ptr<QueueState> cuda_state(void*, bool, int) {
  throw DeviceFault(core::built_without_cuda);
}
#endif

std::shared_ptr<QueueState> host_state(int threads) {
  auto state = std::make_shared<QueueState>(threads);
  std::ranges::copy(api::host_machine().chain, state->architectures.begin());
  state->device_name = api::host_name();
  return state;
}

}  // namespace

Queue::Queue(std::shared_ptr<QueueState> state) : state_(std::move(state)) {}
Queue::Queue(Queue&&) noexcept = default;
Queue& Queue::operator=(Queue&&) noexcept = default;
Queue::~Queue() = default;

Queue Queue::host(int threads) try {
  if (threads < 0) api::fail("Queue::host", "threads", threads, "not be negative");
  if (threads > host::max_threads)
    api::fail("Queue::host", "threads", threads, "be at most " + std::to_string(host::max_threads));
  return Queue(host_state(threads));
} TRIFACTOR_CATCH_BAD_ALLOC
Queue Queue::cuda(int device) try { return Queue(cuda_state(nullptr, false, device)); } TRIFACTOR_CATCH_BAD_ALLOC
Queue Queue::wrap_cuda_stream(void* stream, int device) try {
  return Queue(cuda_state(stream, true, device));
} TRIFACTOR_CATCH_BAD_ALLOC

void Queue::reserve(std::size_t bytes) try {
  api::on_engine(*this, [&](auto& e) { e.arena().reserve(bytes), e.background(); });   // which takes memory too
} TRIFACTOR_CATCH_BAD_ALLOC

#if TRIFACTOR_HAS_CUDA
void Queue::sync() {
  if (state_->cuda) state_->cuda->sync();
}
bool Queue::is_cuda() const noexcept { return state_->cuda != nullptr; }
int Queue::device() const noexcept { return state_->cuda ? state_->cuda->device() : -1; }
void* Queue::stream() const noexcept { return state_->cuda ? state_->cuda->stream() : nullptr; }
#else
void Queue::sync() {}
bool Queue::is_cuda() const noexcept { return false; }
int Queue::device() const noexcept { return -1; }
void* Queue::stream() const noexcept { return nullptr; }
#endif

double seconds_of([[maybe_unused]] Queue& q, const std::function<void()>& work) {
#if TRIFACTOR_HAS_CUDA
  if (q.is_cuda()) return q.state()->cuda->seconds_of(work);
#endif
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

void copy_bytes(Queue& from, const void* source, Queue& to, void* target, std::size_t bytes) {
  copy_columns(from, source, bytes, to, target, bytes, bytes, 1);
}

void copy_columns(Queue& from, const void* source, std::size_t source_ld, Queue& to, void* target,
                  std::size_t target_ld, std::size_t rows, std::size_t cols) try {
  if (rows == 0 || cols == 0) return;
  if (!source) api::fail("copy", "source is null");
  if (!target) api::fail("copy", "target is null");
  if (cols > 1 && source_ld < rows) api::fail("copy", "source.ld is less than source.rows");
  if (cols > 1 && target_ld < rows) api::fail("copy", "target.ld is less than target.rows");
  from.sync();
  detail::copy_now(*(to.is_cuda() ? to : from).state(), source, source_ld, target, target_ld, rows, cols);
} TRIFACTOR_CATCH_BAD_ALLOC

void api::enqueue_copy(QueueState& state, const void* source, void* target, std::size_t bytes) {
  if (bytes == 0) return;
#if TRIFACTOR_HAS_CUDA
  if (state.cuda) return state.cuda->copy_columns(source, bytes, target, bytes, bytes, 1);
#else
  (void)state;
#endif
  std::memcpy(target, source, bytes);
}

tuning::Machine api::host_machine() {
  static const std::array<std::string_view, 4> chain{host::instruction_set_name(), host_architecture(), "host", "any"};
  return {chain, host_name()};
}

void api::copy(QueueState& state, const void* source, void* target, std::size_t bytes) {
  detail::copy_now(state, source, target, bytes);
}

namespace detail {

std::shared_ptr<QueueState> host_memory() try {
  static const std::shared_ptr<QueueState> state = host_state(1);
  return state;
} TRIFACTOR_CATCH_BAD_ALLOC

#if TRIFACTOR_HAS_CUDA
void* allocate(QueueState& s, std::size_t bytes) {
  return s.cuda ? s.cuda->allocate(bytes) : core::allocate_host(bytes);
}
void deallocate(QueueState& s, void* p) noexcept { s.cuda ? s.cuda->deallocate(p) : core::free_host(p); }
void fill_zero(QueueState& s, void* p, std::size_t bytes) {
  if (s.cuda)
    s.cuda->fill_zero(p, bytes);
  else
    std::memset(p, 0, bytes);
}
bool on_host(const QueueState& s) noexcept { return !s.cuda; }
#else
void* allocate(QueueState&, std::size_t bytes) { return core::allocate_host(bytes); }
void deallocate(QueueState&, void* p) noexcept { core::free_host(p); }
void fill_zero(QueueState&, void* p, std::size_t bytes) { std::memset(p, 0, bytes); }
bool on_host(const QueueState&) noexcept { return true; }
#endif

void copy_now(QueueState& s, const void* source, void* target, std::size_t bytes) {
  copy_now(s, source, bytes, target, bytes, bytes, 1);
}

void copy_now([[maybe_unused]] QueueState& s, const void* source, std::size_t source_ld, void* target,
              std::size_t target_ld, std::size_t rows, std::size_t cols) try {
  if (rows == 0 || cols == 0) return;
  if (!source) api::fail("copy", "source is null");
#if TRIFACTOR_HAS_CUDA
  if (s.cuda) return s.cuda->copy_columns_now(source, source_ld, target, target_ld, rows, cols);
#endif
  for (std::size_t j = 0; j < cols; ++j)
    std::memcpy(static_cast<char*>(target) + j * target_ld, static_cast<const char*>(source) + j * source_ld, rows);
} TRIFACTOR_CATCH_BAD_ALLOC

void throw_not_on_host(const char* what) {
  throw InvalidArgument(std::string(what) + " reads host memory, but this memory is a CUDA device's: take it with to_host()");
}

void throw_out_of_memory() { core::throw_out_of_memory(); }

void check_view(const char* call, const char* name, index_t rows, index_t cols, index_t ld) {
  api::check_size(call, std::string(name) + ".rows", rows);
  api::check_size(call, std::string(name) + ".cols", cols);
  api::check_size(call, std::string(name) + ".ld", ld);
  if (rows > 0 && cols > 0) api::check_ld(call, name, rows, ld);
}

index_t checked_size(const char* what, index_t rows, index_t cols, std::size_t element) {
  if (rows < 0) api::fail(what, "rows", rows, "not be negative");
  if (cols < 0) api::fail(what, "cols", cols, "not be negative");
  const index_t largest = std::numeric_limits<index_t>::max() / index_t(element);
  if (cols > 0 && rows > largest / cols)
    api::fail(what, "rows", rows,
              "be at most " + std::to_string(largest / cols) + " for " + std::to_string(cols) + " columns");
  return rows * cols;
}

}  // namespace detail

NotPositiveDefinite::NotPositiveDefinite(index_t order)
    : Error("the matrix is not positive definite: its leading minor of order " + std::to_string(order) +
            " is not positive and finite"),
      order_(order) {}
Singular::Singular(index_t row)
    : Error("the matrix is singular: pivot " + std::to_string(row) + " is exactly zero"), row_(row) {}

}  // namespace trifactor
