// A stream for copies beside an engine's own.
#pragma once

#include <core/trace.hpp>
#include <cuda/engine/page_locked.hpp>

#include <cstddef>
#include <functional>
#include <vector>

namespace trifactor::cuda {

class CudaEngine;

/// An event on the stream; none where it cannot be recorded.
core::Moment moment_on(void* stream) noexcept;

/// See core::CopiesBesideWork. The engine outlives its lanes.
class CopyLane {
 public:
  CopyLane(CudaEngine&, index_t moments, const char* name = "copies");
  CopyLane(const CopyLane&) = delete;
  ~CopyLane();

  void* allocate(std::size_t bytes);
  void copy(const char* name, const void* from, void* to, std::size_t bytes);
  void call(const char* name, std::function<void()> f);
  void work_is_at(index_t k);
  void copies_are_at(index_t k);
  void work_waits_for_copies(index_t k);
  void copies_wait_for_work(index_t k);
  bool captured() const;
  void finish();

  core::Trace* trace() const;
  const char* lane() const { return name_; }
  core::Moment moment() const noexcept;

 private:
  void release() noexcept;

  CudaEngine& engine_;
  const char* const name_;
  void* stream_ = nullptr;
  std::vector<void*> work_, copies_;  // events
  std::vector<PageLocked> memory_;
};

}  // namespace trifactor::cuda
