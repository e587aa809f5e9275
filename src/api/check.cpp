#include <api/check.hpp>
#include <api/queue_state.hpp>

#include <limits>

namespace trifactor::api {

namespace {
constexpr index_t largest = std::numeric_limits<int>::max();  // LAPACK, pivots and info count in int
}

void fail(const char* call, const std::string& text) { throw InvalidArgument(std::string(call) + ": " + text); }

void fail(const char* call, const std::string& what, index_t value, const std::string& rule) {
  fail(call, what + " = " + std::to_string(value) + " must " + rule);
}

void check_size(const char* call, const std::string& what, index_t size) {
  if (size < 0) fail(call, what, size, "not be negative");
  if (size > largest) fail(call, what, size, "be at most " + std::to_string(largest));
}

void check_ld(const char* call, const std::string& name, index_t rows, index_t ld) {
  if (ld < core::max(rows, index_t(1)))
    fail(call, name + ".ld", ld,
         "be at least max(" + name + ".rows, 1) = " + std::to_string(core::max(rows, index_t(1))));
  if (ld > largest) fail(call, name + ".ld", ld, "be at most " + std::to_string(largest));
}

void check_pointer(const char* call, const std::string& what, const void* p, std::size_t alignment) {
  if (!p) fail(call, what + " is null");
  const auto address = reinterpret_cast<std::uintptr_t>(p);
  if (address % alignment != 0)
    fail(call, what + " = " + std::to_string(address) + " must be a multiple of " + std::to_string(alignment) +
                   ", the size of an element");
}

void check_values(const char* call, std::size_t values, std::size_t entries) {
  if (values != entries)
    fail(call, "values.size()", index_t(values), "equal the entries of the pattern, " + std::to_string(entries));
}

void check_hybrid(const char* call, const Queue& q, index_t count) {
  if (!q.is_cuda()) fail_hybrid_on_host(call);
  if (count != 1) fail(call, "A.count", count, "be 1 for mode = Hybrid");
  check_hybrid_not_captured(call, *q.state());
}
void fail_hybrid_on_host(const char* call) {
  fail(call, "mode = Hybrid must run on a CUDA queue; on a host queue everything runs on the CPU already");
}
void check_hybrid_not_captured(const char* call, const detail::QueueState& queue) {
#if TRIFACTOR_HAS_CUDA
  if (queue.cuda && queue.cuda->capturing())
    fail(call,
         "mode = Hybrid waits for the CPU, so its stream must not be under capture; Auto and Native may be captured");
#else
  (void)call, (void)queue;
#endif
}

}  // namespace trifactor::api
