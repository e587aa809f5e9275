#include <host/blas_memory.hpp>

#include <core/memory.hpp>
#include <host/blas.hpp>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <pthread.h>
#include <sys/mman.h>
#include <vector>

// OpenBLAS's own pool of buffers: what is given back stays in it. A build may hide these.
extern "C" void* blas_memory_alloc(int) __attribute__((weak));
extern "C" void blas_memory_free(void*) __attribute__((weak));

namespace trifactor::host {

namespace {

constexpr std::size_t buffer_bytes = std::size_t(128) << 20;  // the largest of all processors, and untouched at first

std::atomic<int> active_callers{0};
// That were seen to fit: buffers of callers, stacks of threads, and buffers of threads inside BLAS.
std::atomic<int> ready_callers{0}, ready_threads{1}, ready_inside{1};
std::mutex making_ready;

std::size_t stack_bytes() {
  pthread_attr_t attributes;
  std::size_t bytes = 0;
  if (pthread_attr_init(&attributes) != 0) return bytes;
  pthread_attr_getstacksize(&attributes, &bytes);
  pthread_attr_destroy(&attributes);
  return bytes;
}

/// Whether so many pieces fit in the address space side by side.
bool fits(int pieces, std::size_t bytes) {
  std::vector<void*> taken;
  taken.reserve(std::size_t(pieces));
  bool all = true;
  for (int i = 0; i < pieces && all; ++i) {
    void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    all = p != MAP_FAILED;
    if (all) taken.push_back(p);
  }
  for (void* p : taken) munmap(p, bytes);
  return all;
}

void make_ready(int callers, int active, int threads) {
  const blas::Turn turn;
  const std::lock_guard lock(making_ready);
  const int new_callers = std::max(0, active - ready_callers), new_threads = std::max(0, threads - ready_threads);
  const int inside = std::max(int(ready_inside), openblas_get_num_threads());
  const int new_inside = callers > 0 && !blas::sequential() ? std::max(0, threads - inside) : 0;
  const int others = active - callers;  // may hold buffers that are ready
  const int buffers = new_callers > 0 ? new_callers + others + new_inside : new_inside;
  const std::size_t piece = buffer_bytes + (std::size_t(1) << 20);  // with what the system adds
  if (!fits(buffers, piece) || !fits(new_threads, stack_bytes()))
    core::throw_out_of_memory("BLAS", std::size_t(buffers) * piece + std::size_t(new_threads) * stack_bytes());
  if (new_callers > 0 && blas_memory_alloc && blas_memory_free) {
    std::vector<void*> taken(static_cast<std::size_t>(active));
    for (void*& p : taken) p = blas_memory_alloc(0);
    for (void* p : taken) blas_memory_free(p);
  }
  ready_callers += new_callers, ready_threads += new_threads;
  if (callers > 0) ready_inside = std::max(int(ready_inside), threads);
}

}  // namespace

BlasCallers::BlasCallers(int threads, index_t count) : callers_(int(std::min(index_t(threads), count))) {
  const int active = active_callers += callers_;
  if (active <= ready_callers && threads <= ready_threads && (callers_ == 0 || threads <= ready_inside)) return;
  try {
    make_ready(callers_, active, threads);
  } catch (...) {
    active_callers -= callers_;
    throw;
  }
}

BlasCallers::~BlasCallers() { active_callers -= callers_; }

}  // namespace trifactor::host
