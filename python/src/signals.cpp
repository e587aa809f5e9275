#include "signals.hpp"

namespace trifactor::python {

namespace {

unsigned long main_thread = 0;
constexpr std::chrono::milliseconds interval{20};  // taking the lock may wait for 5 ms where other threads hold it

}  // namespace

void set_main_thread(unsigned long ident) { main_thread = ident; }

Signals::Signals() {
  if (PyThread_get_thread_ident() == main_thread) asked_.emplace([this] { return stop(); });
}

bool Signals::stop() noexcept {
  const auto now = std::chrono::steady_clock::now();
  const bool first = next_ == std::chrono::steady_clock::time_point{};
  if (!first && now < next_) return false;
  next_ = now + interval;
  if (first) return false;  // short calls never take the lock
  nanobind::gil_scoped_acquire acquire;
  if (PyErr_CheckSignals() == 0) return false;
  raised_ = std::make_exception_ptr(nanobind::python_error());
  return true;
}

}  // namespace trifactor::python
