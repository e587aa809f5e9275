#include <cuda/engine/page_locked.hpp>

#include <core/memory.hpp>
#include <cuda_runtime.h>

#include <algorithm>
#include <exception>
#include <thread>
#include <unistd.h>
#include <vector>

namespace trifactor::cuda {

namespace {

constexpr std::size_t large = std::size_t(16) << 20;
constexpr unsigned max_threads = 16;

std::size_t page_bytes() { return std::size_t(sysconf(_SC_PAGESIZE)); }

/// Makes the system back every page, by several threads.
void touch(char* data, std::size_t bytes) {
  const std::size_t page = page_bytes();
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
  if (bytes > std::size_t(sysconf(_SC_AVPHYS_PAGES)) * page_bytes()) return nullptr;
  void* const data = core::allocate_host(bytes);
  touch(static_cast<char*>(data), bytes);
  if (cudaHostRegister(data, bytes, cudaHostRegisterDefault) == cudaSuccess) return data;
  cudaGetLastError();
  core::free_host(data);
  return nullptr;
}

}  // namespace

void* allocate_page_locked(std::size_t bytes) {
  core::count_allocation("page-locked host", bytes);
  void* data = nullptr;
  if (cudaMallocHost(&data, std::max(bytes, std::size_t(1))) != cudaSuccess) {
    cudaGetLastError();
    core::throw_out_of_memory("page-locked host", bytes);
  }
  return data;
}

PageLocked page_locked(std::size_t bytes) {
  if (void* const data = bytes >= large ? take_registered(bytes) : nullptr)
    return {data, [](void* p) noexcept { cudaHostUnregister(p), core::free_host(p); }};
  return {allocate_page_locked(bytes), [](void* p) noexcept { cudaFreeHost(p); }};
}

}  // namespace trifactor::cuda
