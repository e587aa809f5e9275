// Ctrl-C during a call.
#pragma once

#include <nanobind/nanobind.h>
#include <trifactor/interrupt.hpp>

#include <chrono>
#include <exception>
#include <optional>

namespace trifactor::python {

/// While it lives, the library asks now and then whether a signal has come, and Python's handler runs. Only Python's
/// main thread has handlers run: in others this does nothing.
class Signals {
 public:
  Signals();
  Signals(const Signals&) = delete;

  /// After Interrupted: throws what the handler raised, KeyboardInterrupt where that is Python's own.
  [[noreturn]] void rethrow() const { std::rethrow_exception(raised_); }

 private:
  bool stop() noexcept;

  std::chrono::steady_clock::time_point next_{};
  std::exception_ptr raised_;
  std::optional<Interruptible> asked_;
};

/// Runs f without the interpreter's lock, so that other threads of Python run meanwhile. Ctrl-C ends it early.
template <class F>
decltype(auto) without_gil(F f) {
  Signals signals;
  try {
    nanobind::gil_scoped_release release;
    return f();
  } catch (const Interrupted&) { signals.rethrow(); }
}

/// At import, and in the child of a fork, whose only thread is the main one.
void set_main_thread(unsigned long ident);

}  // namespace trifactor::python
