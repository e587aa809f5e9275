// A stream for copies beside an engine's own.
#pragma once

#include <core/trace.hpp>
#include <cuda/engine/page_locked.hpp>

#include <cstddef>
#include <vector>

namespace trifactor::cuda {

class CudaEngine;

/// See core::CopiesBesideWork. The engine outlives its lanes.
class CopyLane {
 public:
  CopyLane(CudaEngine&, index_t moments);
  CopyLane(const CopyLane&) = delete;
  ~CopyLane();

  void* allocate(std::size_t bytes);
  void copy(const char* name, const void* from, void* to, std::size_t bytes);
  void work_is_at(index_t k);
  void copies_are_at(index_t k);
  void work_waits_for_copies(index_t k);
  void copies_wait_for_work(index_t k);
  bool captured() const;
  void finish();

  core::Trace* trace() const;
  const char* lane() const { return "copies"; }
  core::Moment moment() const noexcept;

 private:
  void release() noexcept;

  CudaEngine& engine_;
  void* stream_ = nullptr;
  std::vector<void*> work_, copies_;  // events
  std::vector<PageLocked> memory_;
};

}  // namespace trifactor::cuda
