#include <support/held.hpp>

#include <cuda_runtime.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>

namespace trifactor::test {
namespace {

constexpr unsigned long long seconds = 20;

void check(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(std::string("HeldMultiprocessors: ") + cudaGetErrorString(error));
}

int attribute(cudaDeviceAttr which) {
  int device = 0, value = 0;
  check(cudaGetDevice(&device));
  check(cudaDeviceGetAttribute(&value, which, device));
  return value;
}

__device__ unsigned long long nanoseconds() {
  unsigned long long t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  return t;
}

enum Place { released, expired_early, holding };  // in the flags; from the last one on, one for each block

__global__ void hold(volatile int* flags) {
  const unsigned long long end = nanoseconds() + seconds * 1'000'000'000;
  flags[holding + blockIdx.x] = 1;
  __threadfence_system();  // the host sees it
  while (!flags[released]) {
    if (nanoseconds() > end) {
      flags[expired_early] = 1;
      return;
    }
    __nanosleep(10'000);
  }
}

}  // namespace

HeldMultiprocessors::HeldMultiprocessors(int count) {
  const int shared = attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);  // a second block does not fit beside one
  const int places = holding + count;
  void *flags = nullptr, *device_flags = nullptr;
  cudaStream_t stream = nullptr;
  check(cudaHostAlloc(&flags, std::size_t(places) * sizeof(int), cudaHostAllocMapped));
  flags_ = static_cast<int*>(flags);
  for (int f = 0; f < places; ++f) flags_[f] = 0;
  check(cudaHostGetDevicePointer(&device_flags, flags, 0));
  check(cudaFuncSetAttribute(hold, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  stream_ = stream;
  check(cudaDeviceSynchronize());
  if (count == 0) return;
  hold<<<unsigned(count), 32, std::size_t(shared), stream>>>(static_cast<int*>(device_flags));
  check(cudaGetLastError());
  const auto late = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  for (int b = 0; b < count; ++b)
    while (!flags_[holding + b]) {
      if (std::chrono::steady_clock::now() > late) {
        flags_[released] = 1;
        throw std::runtime_error("HeldMultiprocessors: not all blocks started");
      }
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
}

HeldMultiprocessors::~HeldMultiprocessors() {
  flags_[released] = 1;
  cudaStreamSynchronize(static_cast<cudaStream_t>(stream_));
  cudaStreamDestroy(static_cast<cudaStream_t>(stream_));
  cudaFreeHost(const_cast<int*>(flags_));
}

bool HeldMultiprocessors::expired() const { return flags_[expired_early] != 0; }

int HeldMultiprocessors::available() { return attribute(cudaDevAttrMultiProcessorCount); }

}  // namespace trifactor::test
