// Memory that is counted, can be told to fail, and releases itself; and the arena that scratch comes from.
#pragma once

#include <trifactor/error.hpp>

#include <cstdint>
#include <limits>
#include <new>
#include <utility>
#include <vector>

namespace trifactor::core {

/// Counts one allocation of the library; throws OutOfMemory when a test asked for this one to fail.
void count_allocation(const char* where, std::size_t bytes);
/// Throws OutOfMemory that says how many bytes were asked for, and where.
[[noreturn]] void throw_out_of_memory(const char* where, std::size_t bytes);

/// Throws OutOfMemory without a number, and without taking memory to say so.
[[noreturn]] void throw_out_of_memory();

/// a * b, neither negative, or the largest index_t where that overflows: take() then finds no memory.
inline index_t saturated_product(index_t a, index_t b) {
  index_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<index_t>::max() : product;
}
/// Throws OutOfMemory where they would be more bytes than an address space has.
template <class T>
std::size_t scratch_bytes(index_t entries) {
  if (entries > std::numeric_limits<index_t>::max() / 2 / index_t(sizeof(T)))
    throw_out_of_memory("scratch", std::numeric_limits<std::size_t>::max());
  return std::size_t(entries) * sizeof(T);
}

/// Host memory, aligned to 256 bytes.
void* allocate_host(std::size_t bytes);
void free_host(void*) noexcept;

/// Where an arena's chunks come from.
struct MemorySource {
  void* (*allocate)(void* context, std::size_t bytes);   // throws OutOfMemory
  void (*release)(void* context, void*) noexcept;
  void* context;
};
MemorySource host_memory_source();

/// Scratch memory with the discipline of a stack: what was taken last is given back first. Chunks never move, so
/// captured graphs stay valid; a call that fits into what was reserved does not allocate.
class Arena {
 public:
  explicit Arena(MemorySource source) : source_(source) {}
  Arena(const Arena&) = delete;
  ~Arena();

  /// Afterwards, calls whose takes add up to at most this much do not allocate.
  void reserve(std::size_t bytes);

  /// While planning, take() hands out no memory and only counts: the peak is a call's scratch size.
  void start_planning() { planning_ = true, used_ = peak_ = 0; }
  std::size_t stop_planning() { planning_ = false; used_ = 0; return peak_; }
  bool planning() const { return planning_; }
  /// Where the next piece would lie. Calls that begin at the same place take the same pieces.
  const void* top() const { return chunk_ < chunks_.size() ? chunks_[chunk_].data + used_ : nullptr; }

  /// Whether take() of so many bytes would not allocate.
  bool has_room(std::size_t bytes) const;

  /// A piece of an arena, given back at the end of its scope.
  template <class T>
  class Scratch {
   public:
    Scratch(Arena& arena, index_t size) : arena_(arena), mark_(arena.mark()), data_(static_cast<T*>(arena.bump(scratch_bytes<T>(size)))) {}
    Scratch(Arena& arena, index_t size, std::nothrow_t)
        : arena_(arena), mark_(arena.mark()), data_(static_cast<T*>(arena.try_bump(scratch_bytes<T>(size)))) {}
    Scratch(const Scratch&) = delete;
    ~Scratch() { arena_.rewind(mark_); }
    T* data() const { return data_; }

   private:
    Arena& arena_;
    std::pair<std::size_t, std::size_t> mark_;
    T* data_;
  };
  template <class T> Scratch<T> take(index_t size) { return Scratch<T>(*this, size); }
  /// The same, but data() is null where memory runs out, or nothing is asked for.
  template <class T> Scratch<T> try_take(index_t size) { return Scratch<T>(*this, size, std::nothrow); }

 private:
  static constexpr std::size_t alignment = 256;
  struct Chunk { char* data; std::size_t bytes; };

  std::pair<std::size_t, std::size_t> mark() const { return {chunk_, used_}; }
  void rewind(std::pair<std::size_t, std::size_t> m) { chunk_ = m.first, used_ = m.second; }
  void* bump(std::size_t bytes);
  void* try_bump(std::size_t bytes);
  static std::size_t rounded(std::size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

  MemorySource source_;
  std::vector<Chunk> chunks_;       // in use order; what reserve() made comes first
  std::size_t chunk_ = 0, used_ = 0, peak_ = 0;
  bool planning_ = false;
};

}  // namespace trifactor::core

// Ends the body of a public function that begins with `try`: what the standard library could not allocate is OutOfMemory too.
#define TRIFACTOR_CATCH_BAD_ALLOC \
  catch (const std::bad_alloc&) { ::trifactor::core::throw_out_of_memory(); }
