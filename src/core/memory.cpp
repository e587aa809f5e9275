#include <core/memory.hpp>
#include <core/path.hpp>
#include <trifactor/testing.hpp>

#include <atomic>
#include <cstdlib>
#include <string>
#include <sys/mman.h>

namespace trifactor {

namespace {
std::atomic<index_t> allocations{0};
std::atomic<std::size_t> bytes_allocated{0};
std::atomic<index_t> fail_at{0};   // the value of `allocations` that fails; 0: none
}  // namespace

namespace core {

void throw_out_of_memory(const char* where, std::size_t bytes) {
  throw OutOfMemory("out of memory: " + std::to_string(bytes) + " bytes of " + where + " memory were asked for", bytes);
}

namespace {
const OutOfMemory ran_out("out of memory: the host has no more", 0);   // copies share its words
}
void throw_out_of_memory() { throw OutOfMemory(ran_out); }

void count_allocation(const char* where, std::size_t bytes) {
  if (++allocations == fail_at) throw_out_of_memory(where, bytes);
  bytes_allocated += bytes;
}

void* allocate_host(std::size_t bytes) {
  count_allocation("host", bytes);
  constexpr std::size_t huge_page = std::size_t(2) << 20;
  const std::size_t alignment = bytes < 2 * huge_page ? 256 : huge_page;
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* p = rounded >= bytes ? std::aligned_alloc(alignment, rounded) : nullptr;
  if (!p) throw_out_of_memory("host", bytes);
  if (alignment == huge_page) madvise(p, rounded, MADV_HUGEPAGE);   // columns of large matrices lie in pages of their own otherwise
  return p;
}
void free_host(void* p) noexcept { std::free(p); }

MemorySource host_memory_source() {
  return {[](void*, std::size_t bytes) { return allocate_host(bytes); }, [](void*, void* p) noexcept { free_host(p); }, nullptr};
}

Arena::~Arena() {
  for (const Chunk& c : chunks_) source_.release(source_.context, c.data);
}

void Arena::reserve(std::size_t bytes) {
  if (bytes == 0 || (!chunks_.empty() && chunks_.front().bytes >= bytes)) return;
  chunks_.reserve(chunks_.size() + 1);
  auto* data = static_cast<char*>(source_.allocate(source_.context, bytes));
  chunks_.insert(chunks_.begin(), Chunk{data, bytes});
}

void* Arena::bump(std::size_t bytes) {
  bytes = rounded(bytes);
  if (planning_) {
    used_ += bytes;
    peak_ = used_ > peak_ ? used_ : peak_;
    return nullptr;
  }
  if (bytes == 0) return nullptr;
  std::size_t chunk = chunk_, used = used_;   // as they are, where there is no memory
  while (chunk < chunks_.size() && chunks_[chunk].bytes - used < bytes) ++chunk, used = 0;
  if (chunk == chunks_.size()) {
    chunks_.reserve(chunks_.size() + 1);
    chunks_.push_back({static_cast<char*>(source_.allocate(source_.context, bytes)), bytes});
  }
  chunk_ = chunk, used_ = used + bytes;
  return chunks_[chunk].data + used;
}

void* Arena::try_bump(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  try {
    return bump(bytes);
  } catch (const OutOfMemory&) {
    return nullptr;
  }
}

bool Arena::has_room(std::size_t bytes) const {
  for (std::size_t c = chunk_; c < chunks_.size(); ++c)
    if (chunks_[c].bytes - (c == chunk_ ? used_ : 0) >= rounded(bytes)) return true;
  return rounded(bytes) == 0;
}

namespace {
thread_local Path path_taken;
std::atomic<index_t> replays{0};
}  // namespace

void set_path(const char* kind, const char* detail) { path_taken = {kind, detail}; }
Path path() { return path_taken; }
void count_replay() { ++replays; }

}  // namespace core

namespace testing {
void fail_allocation(index_t k) { fail_at = k > 0 ? allocations + k : 0; }
index_t allocation_count() { return allocations; }
std::size_t allocated_bytes() { return bytes_allocated; }
std::string path_taken() { return std::string(core::path().kind) + core::path().detail; }
index_t replay_count() { return core::replays; }
}  // namespace testing

}  // namespace trifactor
