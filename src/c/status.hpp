// What every C function is made of: exceptions become a status and a message of the thread; arguments are checked.
#pragma once

#include <trifactor.h>
#include <trifactor/queue.hpp>

#include <cstring>
#include <string>

namespace trifactor::c {

/// The status of the exception that is being handled; its message and number become the thread's.
trifactor_status keep_exception() noexcept;

/// Runs f. No exception leaves.
template <class F>
trifactor_status guard(F&& f) noexcept {
  try {
    f();
    return TRIFACTOR_OK;
  } catch (...) { return keep_exception(); }
}

/// A text for the caller, kept in `room`; "" where there is no memory for it.
template <class F>
const char* text_of(std::string& room, F&& f) noexcept {
  return guard([&] { room = f(); }) == TRIFACTOR_OK ? room.c_str() : "";
}

[[noreturn]] void fail(const char* call, const std::string& text);

/// What a pointer points to. Throws when it is null.
template <class T>
T& need(const char* call, const char* name, T* pointer) {
  if (!pointer) fail(call, std::string(name) + " is null");
  return *pointer;
}

/// Throws unless 0 <= value < count; `words` says what the values are.
void check_word(const char* call, const char* name, int value, int count, const char* words);
Uplo uplo_of(const char* call, trifactor_uplo);
Op op_of(const char* call, trifactor_op);
Mode mode_of(const char* call, trifactor_mode);
Device device_of(const char* call, trifactor_device);

inline std::string string_of(const char* text) { return text ? text : ""; }

void check_struct(const char* call, const char* name, std::size_t size, std::size_t known);

/// A caller's options. One that was compiled with an older header has fewer fields: the rest is zero, the default.
template <class S>
S options_of(const char* call, const S* given) {
  S options{};
  if (given) {
    check_struct(call, "options.size", given->size, sizeof(S));
    std::memcpy(&options, given, given->size);
  }
  return options;
}

/// Writes as much of a report as the caller has room for, by its `size`.
template <class S>
void report(const char* call, const char* name, S* target, S report) {
  const std::size_t size = need(call, name, target).size;
  check_struct(call, "size of the report", size, sizeof(S));
  report.size = size;
  std::memcpy(target, &report, size);
}

template <std::size_t size>
void copy_text(char (&target)[size], const std::string& text) {
  std::strncpy(target, text.c_str(), size - 1);
}

}  // namespace trifactor::c

struct trifactor_queue {
  trifactor::Queue queue;
};
