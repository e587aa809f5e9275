// Copies of the host engine, whose memory is the host's.
#pragma once

#include <core/memory.hpp>

#include <cstring>
#include <functional>
#include <vector>

namespace trifactor::host {

class HostEngine;

/// See core::CopiesBesideWork. Everything is complete on return, so nobody waits.
class CopyLane {
 public:
  CopyLane(HostEngine&, index_t, const char* = "") {}
  CopyLane(const CopyLane&) = delete;
  ~CopyLane() {
    for (void* p : memory_) core::free_host(p);
  }

  void* allocate(std::size_t bytes) {
    memory_.push_back(nullptr);
    return memory_.back() = core::allocate_host(bytes);
  }
  void copy(const char*, const void* from, void* to, std::size_t bytes) { std::memcpy(to, from, bytes); }
  void call(const char*, const std::function<void()>& f) { f(); }
  void work_is_at(index_t) {}
  void copies_are_at(index_t) {}
  void work_waits_for_copies(index_t) {}
  void copies_wait_for_work(index_t) {}
  bool captured() const { return false; }
  void finish() {}

 private:
  std::vector<void*> memory_;
};

}  // namespace trifactor::host
