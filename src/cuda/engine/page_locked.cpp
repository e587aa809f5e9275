#include <cuda/engine/page_locked.hpp>

#include <core/memory.hpp>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <thread>
#include <vector>
#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace trifactor::cuda {

namespace {

#if defined(__linux__)

constexpr std::size_t large = std::size_t(16) << 20, huge_page = std::size_t(2) << 20;
constexpr unsigned max_threads = 16;

/// Makes the system back every page, by several threads.
void touch(char* data, std::size_t bytes) {
  const std::size_t page = std::size_t(sysconf(_SC_PAGESIZE));
  const std::size_t parts = std::clamp(std::thread::hardware_concurrency(), 1u, max_threads);
  const auto touch_part = [=](std::size_t part) {
    const std::size_t end = bytes * (part + 1) / parts;
    for (std::size_t i = bytes * part / parts; i < end; i += page) static_cast<volatile char*>(data)[i] = 0;
  };
  std::vector<std::thread> threads;
  std::size_t part = 1;
  try {
    threads.reserve(parts);
    for (; part < parts; ++part) threads.emplace_back(touch_part, part);
  } catch (const std::exception&) {  // no more threads, or no memory for them: the rest is this one's
  }
  touch_part(0);
  for (; part < parts; ++part) touch_part(part);
  for (std::thread& thread : threads) thread.join();
}

/// Null where the system has too little that is free at once, or the driver refuses: it may find a way of its own.
void* take_registered(std::size_t bytes) {
  const std::size_t rounded = (bytes + huge_page - 1) / huge_page * huge_page;
  const auto free_bytes = std::size_t(sysconf(_SC_AVPHYS_PAGES)) * std::size_t(sysconf(_SC_PAGESIZE));
  if (rounded < bytes || rounded > free_bytes) return nullptr;
  void* const data = std::aligned_alloc(huge_page, rounded);
  if (!data) return nullptr;
  madvise(data, rounded, MADV_HUGEPAGE);  // smaller pages take longer, but serve as well
  touch(static_cast<char*>(data), rounded);
  if (cudaHostRegister(data, rounded, cudaHostRegisterDefault) == cudaSuccess) return data;
  cudaGetLastError();
  std::free(data);
  return nullptr;
}

#else

constexpr std::size_t large = ~std::size_t(0);
void* take_registered(std::size_t) { return nullptr; }

#endif

}  // namespace

PageLocked::PageLocked(std::size_t bytes) {
  core::count_allocation("page-locked host", bytes);
  if (bytes >= large) data_ = take_registered(bytes);
  registered_ = data_ != nullptr;
  if (registered_) return;
  if (cudaMallocHost(&data_, std::max(bytes, std::size_t(1))) != cudaSuccess) {
    cudaGetLastError();
    core::throw_out_of_memory("page-locked host", bytes);
  }
}

PageLocked::~PageLocked() {
  if (!data_) return;
  if (registered_) {
    cudaHostUnregister(data_);
    std::free(data_);
  } else {
    cudaFreeHost(data_);
  }
}

}  // namespace trifactor::cuda
