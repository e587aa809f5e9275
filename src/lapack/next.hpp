// The LAPACK that would have been called without this library.
#pragma once

#include <atomic>

namespace trifactor::lapack {

/// The function of one name that this library stands before, for each place that calls it.
class Next {
 public:
  explicit constexpr Next(const char* name) : name_(name) {}

  const char* name() const { return name_; }
  /// For the caller at this address: the function in its own library or in what that depends on, which is where the
  /// OpenBLAS inside a Python wheel is found; else the next one of the program; else that of libtrifactor, for 32-bit
  /// integers. Null where there is none.
  void* of(const void* caller);

 private:
  struct Found {
    const void* caller;
    void* function;
    Found* rest;
  };
  const char* name_;
  std::atomic<Found*> found_{nullptr};  // only ever grows: a program has few places that call
};

}  // namespace trifactor::lapack
