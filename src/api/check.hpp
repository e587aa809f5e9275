// Checks of a caller's arguments, and the way from public views to Items. What fails throws before anything is
// enqueued.
#pragma once

#include <core/batch.hpp>
#include <trifactor/error.hpp>
#include <trifactor/queue.hpp>

#include <string>

namespace trifactor::api {

using core::inner_t;
using core::Items;

/// Throws InvalidArgument "call: what = value must rule".
[[noreturn]] void fail(const char* call, const std::string& what, index_t value, const std::string& rule);
[[noreturn]] void fail(const char* call, const std::string& text);

void check_size(const char* call, const std::string& what, index_t size);
void check_ld(const char* call, const std::string& name, index_t rows, index_t ld);
void check_pointer(const char* call, const std::string& what, const void* p, std::size_t alignment);

/// An array that a call reads or writes `needed` entries of; `rule` says what that number is.
template <class T>
void check_array(const char* call, const std::string& what, ArrayView<T> array, index_t needed, const std::string& rule) {
  check_pointer(call, what, array.data, sizeof(T));
  if (array.size >= 0 && array.size < needed)
    fail(call, what + ".size", array.size, "be at least " + rule + " = " + std::to_string(needed));
}

/// Runs check, which says "analyze: ..." of a bad pattern, and names this call instead.
template <class Check>
auto checked_as(const char* call, const Check& check) {
  try {
    return check();
  } catch (const InvalidArgument& e) {
    throw InvalidArgument(call + std::string(e.what()).substr(std::string("analyze").size()));
  }
}

/// Of a sparse matrix: one for each entry of its pattern.
void check_values(const char* call, std::size_t values, std::size_t entries);

/// The descriptor of a batch that was checked. `name` is the argument's, for messages. Items that are written must not
/// overlap; those that are only read may.
template <class T>
Items<inner_t<T>> items(const char* call, const char* name, MatrixView<T> A) {
  check_size(call, std::string(name) + ".rows", A.rows);
  check_size(call, std::string(name) + ".cols", A.cols);
  check_ld(call, name, A.rows, A.ld);
  if (A.rows > 0 && A.cols > 0) check_pointer(call, std::string(name) + ".data", A.data, sizeof(T));
  return core::one_matrix(reinterpret_cast<inner_t<T>*>(A.data), A.rows, A.cols, A.ld);
}

template <class T>
Items<inner_t<T>> items(const char* call, const char* name, StridedBatch<T> A) {
  if (A.count < 0) fail(call, std::string(name) + ".count", A.count, "not be negative");
  auto a = items(call, name, MatrixView<T>{A.count ? A.data : nullptr, A.count ? A.rows : 0, A.cols, A.ld});
  check_size(call, std::string(name) + ".rows", A.rows);
  check_ld(call, name, A.rows, A.ld);
  const index_t extent = A.rows > 0 && A.cols > 0 ? A.ld * (A.cols - 1) + A.rows : 0;
  if (A.stride < 0) fail(call, std::string(name) + ".stride", A.stride, "not be negative");
  if (!std::is_const_v<T> && A.count > 1 && A.stride < extent)
    fail(call, std::string(name) + ".stride", A.stride,
         "be at least ld * (cols - 1) + rows = " + std::to_string(extent) + ", so that items do not overlap");
  a.stride = A.stride, a.count = A.count;
  a.stored_rows = a.rows = A.rows, a.stored_cols = a.cols = A.cols;
  return a;
}

template <class T>
Items<inner_t<T>> items(const char* call, const char* name, PointerBatch<T> A) {
  if (A.count < 0) fail(call, std::string(name) + ".count", A.count, "not be negative");
  check_size(call, std::string(name) + ".rows", A.rows);
  check_size(call, std::string(name) + ".cols", A.cols);
  check_ld(call, name, A.rows, A.ld);
  if (A.count > 0 && A.rows > 0 && A.cols > 0) check_pointer(call, std::string(name) + ".data", A.data, sizeof(void*));
  Items<inner_t<T>> a;
  a.pointers = reinterpret_cast<inner_t<T>* const*>(A.data);
  a.ld = A.ld, a.count = A.count;
  a.stored_rows = a.rows = A.rows, a.stored_cols = a.cols = A.cols;
  return a;
}

template <class T>
Items<inner_t<T>> items(const char* call, const char* name, RaggedBatch<T> A) {
  if (A.count < 0) fail(call, std::string(name) + ".count", A.count, "not be negative");
  check_size(call, std::string(name) + ".max_rows", A.max_rows);
  check_size(call, std::string(name) + ".max_cols", A.max_cols);
  if (A.count > 0) {
    check_pointer(call, std::string(name) + ".data", A.data, sizeof(void*));
    check_pointer(call, std::string(name) + ".rows", A.rows, sizeof(int));
    check_pointer(call, std::string(name) + ".cols", A.cols, sizeof(int));
    check_pointer(call, std::string(name) + ".ld", A.ld, sizeof(int));
  }
  Items<inner_t<T>> a;
  a.pointers = reinterpret_cast<inner_t<T>* const*>(A.data);
  a.item_rows = A.rows, a.item_cols = A.cols, a.item_ld = A.ld;
  a.count = A.count;
  a.stored_rows = a.rows = A.max_rows, a.stored_cols = a.cols = A.max_cols;
  return a;
}

/// Mode::Hybrid takes one matrix on a CUDA queue that is not being captured.
void check_hybrid(const char* call, const Queue& q, index_t count);
[[noreturn]] void fail_hybrid_on_host(const char* call);
void check_hybrid_not_captured(const char* call, const detail::QueueState&);

template <class T>
void check_square(const char* call, const char* name, const Items<T>& A) {
  if (A.rows != A.cols)
    fail(call,
         std::string(name) + " is " + std::to_string(A.rows) + " x " + std::to_string(A.cols) + " but must be square");
}

/// A factor L of A and the right-hand sides X belong together. `name` and `other` are their names, for messages.
template <class T>
void check_fit(const char* call, const char* name, const Items<const T>& L, const Items<T>& X,
               const std::string& other = "X") {
  check_square(call, name, L);
  if (L.rows != X.rows)
    fail(call, other + ".rows", X.rows, "equal " + std::string(name) + ".rows = " + std::to_string(L.rows));
  if (L.count != X.count)
    fail(call, other + ".count", X.count, "equal " + std::string(name) + ".count = " + std::to_string(L.count));
}

}  // namespace trifactor::api
