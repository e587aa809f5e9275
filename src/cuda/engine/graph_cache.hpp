// The graph cache: calls that are many launches and come again, at the same addresses or at others, are enqueued as one
// graph.
#pragma once

#include <core/batch.hpp>
#include <core/memory.hpp>
#include <core/path.hpp>
#include <core/tuning.hpp>

#include <algorithm>
#include <any>
#include <list>
#include <shared_mutex>
#include <tuple>

namespace trifactor::cuda {

using namespace core;

/// Held shared by who captures, and alone by who calls what synchronizes the device: that would invalidate every
/// capture of the process, whatever its mode. cublasDestroy does so.
std::shared_mutex& capture_mutex();

/// False where the environment says TRIFACTOR_GRAPHS=off: for programs in which another thread may call
/// cudaDeviceSynchronize during a capture, which ends the process inside the driver (seen with CUDA 13.0).
bool graphs_allowed();

/// What tells calls apart: the driver, by its type, and everything that its launches follow from.
template <class Run, class... A>
struct CallKey {
  std::tuple<A...> arguments;
  bool operator==(const CallKey&) const = default;
};

/// A call of a driver that launches one kernel after the other. It is launched so when it is new; when it comes again
/// the launches are captured. So calls that never come again do not pay for a graph.
struct CachedCall {
  static constexpr int max_attempts = 3;  // somebody else's device synchronization may spoil a capture

  explicit CachedCall(std::any call_key) : key(std::move(call_key)) {}
  CachedCall(const CachedCall&) = delete;
  ~CachedCall();
  void forget_graph() noexcept;
  /// Whether a capture is still worth trying.
  bool may_capture() const { return !executable && attempts < max_attempts; }

  std::any key;
  index_t times = 0;              // that it came
  int attempts = 0;               // to capture it, since the last that succeeded
  void* executable = nullptr;     // a cudaGraphExec_t once it is captured
  void* graph = nullptr;          // where arguments are staged: its cudaGraph_t
  void* copies[2] = {};           // and the nodes that copy them, before and after all others
  const void* scratch = nullptr;  // where the launches find scratch memory: elsewhere they are captured again
  core::Path path;
};

/// The calls that came last, those with staged arguments as calls of their own.
class GraphCache {
 public:
  /// Valid until max_calls others came: two finds in a row do not harm each other.
  template <class Key>
  CachedCall& find(const Key& key) {
    const auto known = std::find_if(calls_.begin(), calls_.end(), [&](const CachedCall& c) {
      const Key* k = std::any_cast<Key>(&c.key);
      return k && *k == key;
    });
    if (known != calls_.end()) {
      calls_.splice(calls_.begin(), calls_, known);
    } else {
      calls_.emplace_front(key);
      if (calls_.size() > max_calls) calls_.pop_back();  // a graph that still runs is freed when it is through
    }
    return calls_.front();
  }

 private:
  static constexpr std::size_t max_calls = 128;
  std::list<CachedCall> calls_;
};

/// A copy of `count` ints, or, where the step is not negative, the addresses of `count` items from `from` on.
struct ArgumentCopy {
  const void* from;
  void* to;
  index_t count, step;
};
struct ArgumentCopies {
  static constexpr int max_count = 12;  // of two ragged batches, pivots, info, and shifts
  ArgumentCopy copy[max_count];
  int count = 0;

  void add(const void* from, void* to, index_t size, index_t step = -1) { copy[count++] = {from, to, size, step}; }
};

/// The arguments of a call on batches as a graph can refer to them wherever the caller's data lie: addresses and sizes
/// of items, and arrays beside them, are copied to scratch memory before, and what was written to such arrays is copied
/// back after.
class StagedArguments {
 public:
  template <class... A>
  explicit StagedArguments(Arena& arena, const A&... arguments)
      : bytes_((can_stage(arguments) && ...) ? (bytes_of(arguments) + ... + 0) : 0),
        room_(arena.take<char>(bytes_)),
        next_(room_.data()) {}

  /// Strided items are told by their addresses then: up to this size operations do the same with both.
  static constexpr index_t strided_limit = 512;
  /// False where there is nothing to stage, too: the call with its own arguments is the only one then.
  bool possible() const { return bytes_ > 0; }

  template <class T>
  Items<T> operator()(const Items<T>& A) {
    Items<T> B = A;
    const auto to = take<T*>(A.count);
    if (A.pointers)
      before.add(A.pointers, to, ints<T*>(A.count));
    else
      before.add(A.base, to, A.count, A.stride * index_t(sizeof(T)));
    B.base = nullptr, B.pointers = to, B.stride = 0;
    if (!A.ragged()) return B;
    B.item_rows = staged(A.item_rows, A.count), B.item_cols = staged(A.item_cols, A.count);
    B.item_ld = staged(A.item_ld, A.count);
    return B;
  }
  template <class I>
  Array<I> operator()(const Array<I>& a) {
    if (!a.data) return a;
    I* const to = staged(a.data, a.size);
    if constexpr (!std::is_const_v<I>) after.add(to, a.data, ints<I>(a.size));
    return {to, a.size};
  }
  template <class V>
  const V& operator()(const V& v) {  // no address
    return v;
  }

  ArgumentCopies before, after;

 private:
  static constexpr index_t alignment = 256;
  template <class I>
  static constexpr index_t ints(index_t size) {
    return size * index_t(sizeof(I) / sizeof(int));
  }
  template <class I>
  static index_t room(index_t size) {
    return ceil_div(size * index_t(sizeof(I)), alignment) * alignment;
  }
  template <class T>
  static bool can_stage(const Items<T>& A) {
    return A.pointers || (A.count > 1 && max(A.stored_rows, A.stored_cols) <= strided_limit);
  }
  /// Not where strided items are worked on one by one.
  static bool can_stage(const CholeskyTuning& t) {
    return t.whole >= strided_limit || t.persistent == 0;
  }
  template <class V>
  static bool can_stage(const V&) {
    return true;
  }
  template <class T>
  static index_t bytes_of(const Items<T>& A) {
    return room<T*>(A.count) + (A.ragged() ? 3 * room<int>(A.count) : 0);
  }
  template <class I>
  static index_t bytes_of(const Array<I>& a) {
    return room<I>(a.size);  // of a null one too: a scratch query has no arrays
  }
  template <class V>
  static index_t bytes_of(const V&) {
    return 0;
  }
  template <class I>
  I* take(index_t size) {
    return reinterpret_cast<I*>(std::exchange(next_, next_ + room<I>(size)));
  }
  template <class I>
  I* staged(I* data, index_t size) {
    const auto to = take<std::remove_const_t<I>>(size);
    before.add(data, to, ints<I>(size));
    return to;
  }

  index_t bytes_;  // 0 where it is not possible
  Arena::Scratch<char> room_;
  char* next_;
};

}  // namespace trifactor::cuda
