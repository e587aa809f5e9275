// Copies that are complete on return, through page-locked memory where the host's is pageable.
#include <core/staged_copy.hpp>
#include <cuda/engine/check.hpp>
#include <cuda/engine/engine.hpp>

#include <omp.h>

#include <cstring>

namespace trifactor::cuda {

namespace {

using core::ByteColumns;

// Not measured.
constexpr std::size_t bytes_of_room = 4u << 20;
constexpr std::size_t worth_staging = 2 * bytes_of_room;
constexpr int most_threads = 8;

bool is_pageable(const void* p) {
  cudaPointerAttributes attributes{};
  if (cudaPointerGetAttributes(&attributes, p) != cudaSuccess) return cudaGetLastError(), false;
  return attributes.type == cudaMemoryTypeUnregistered;
}

/// Copies columns with as many threads as are worth it.
void copy_columns_on_host(const ByteColumns& from, const ByteColumns& to) {
  constexpr std::size_t bytes_per_thread = 512 << 10;  // below that, waking a thread costs more than it copies
  const int most = std::min(omp_get_max_threads(), most_threads);
  const int team = int(std::min<std::size_t>(std::size_t(most), from.bytes() / bytes_per_thread + 1));
  if (from.cols == 1) {
    const std::size_t part = (from.rows + std::size_t(team) - 1) / std::size_t(team);
#pragma omp parallel for num_threads(team)
    for (int t = 0; t < team; ++t) {
      const std::size_t begin = std::min(std::size_t(t) * part, from.rows), end = std::min(begin + part, from.rows);
      std::memcpy(to.data + begin, from.data + begin, end - begin);
    }
    return;
  }
#pragma omp parallel for num_threads(team)
  for (std::size_t j = 0; j < from.cols; ++j) std::memcpy(to.data + j * to.ld, from.data + j * from.ld, from.rows);
}

/// The engine's stream as core::staged_upload and staged_download know a device.
class StagedLane {
 public:
  StagedLane(void* stream, char* rooms) : stream_(as_stream(stream)), rooms_(rooms) {
    try {
      for (cudaEvent_t& e : events_) check(cudaEventCreateWithFlags(&e, cudaEventDisableTiming), "cudaEventCreate");
    } catch (...) {
      release();
      throw;
    }
  }
  StagedLane(const StagedLane&) = delete;
  ~StagedLane() {
    cudaStreamSynchronize(stream_);  // the rooms are given back
    release();
  }

  char* room(int k) const { return rooms_ + std::size_t(k) * bytes_of_room; }
  std::size_t room_bytes() const { return bytes_of_room; }
  void copy_on_host(const ByteColumns& from, const ByteColumns& to) { copy_columns_on_host(from, to); }
  void send(int k, const ByteColumns& from, const ByteColumns& to) { begin(k, from, to, cudaMemcpyHostToDevice); }
  void fetch(int k, const ByteColumns& from, const ByteColumns& to) { begin(k, from, to, cudaMemcpyDeviceToHost); }
  void wait(int k) { check(cudaEventSynchronize(events_[k]), "a staged copy"); }

 private:
  void release() noexcept {
    for (cudaEvent_t e : events_)
      if (e) cudaEventDestroy(e);
  }
  void begin(int k, const ByteColumns& from, const ByteColumns& to, cudaMemcpyKind kind) {
    if (from.cols == 1)
      check(cudaMemcpyAsync(to.data, from.data, from.rows, kind, stream_), "cudaMemcpyAsync");
    else
      check(cudaMemcpy2DAsync(to.data, to.ld, from.data, from.ld, from.rows, from.cols, kind, stream_),
            "cudaMemcpy2DAsync");
    check(cudaEventRecord(events_[k], stream_), "cudaEventRecord");
  }

  cudaStream_t stream_;
  char* rooms_;
  cudaEvent_t events_[2] = {};
};

}  // namespace

void CudaEngine::copy_columns_now(const void* source, std::size_t source_ld, void* target, std::size_t target_ld,
                                  std::size_t rows, std::size_t cols) {
  const auto scope = enter();
  if (rows * cols >= worth_staging) {
    const bool from_pageable = is_pageable(source), to_pageable = is_pageable(target);
    if (from_pageable != to_pageable) {
      const auto rooms = pinned().try_take<char>(index_t(2 * bytes_of_room));
      if (rooms.data()) {
        if (source_ld == rows && target_ld == rows) source_ld = target_ld = rows *= cols, cols = 1;
        StagedLane lane(stream_, rooms.data());
        const ByteColumns from{static_cast<char*>(const_cast<void*>(source)), source_ld, rows, cols};
        const ByteColumns to{static_cast<char*>(target), target_ld, rows, cols};
        if (from_pageable)
          core::staged_upload(lane, from, to);
        else
          core::staged_download(lane, from, to);
        return;
      }
    }
  }
  copy_columns(source, source_ld, target, target_ld, rows, cols);
  sync();
}

}  // namespace trifactor::cuda
