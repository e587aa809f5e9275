// What can go wrong, one type for each thing a caller can do about it.
#pragma once

#include <trifactor/types.hpp>

#include <stdexcept>
#include <string>

namespace trifactor {

/// The base of all of them.
class TRIFACTOR_API Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The caller's mistake: names the argument, its value and the rule. Nothing was enqueued or written.
class TRIFACTOR_API InvalidArgument : public Error {
 public:
  using Error::Error;
};

/// Memory ran out; bytes() were asked for, or 0 where that is not known.
class TRIFACTOR_API OutOfMemory : public Error {
 public:
  OutOfMemory(const std::string& what, std::size_t bytes) : Error(what), bytes_(bytes) {}
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  std::size_t bytes_;
};

/// The device or its driver reported a fault, at the call or at sync().
class TRIFACTOR_API DeviceFault : public Error {
 public:
  using Error::Error;
};

/// The caller asked for it: see interrupt.hpp. What the call was to write is unspecified, what it only read is as it was.
/// A sparse factor holds no factorization then (info() is -1) and can be used again.
class TRIFACTOR_API Interrupted : public Error {
 public:
  using Error::Error;
};

/// The leading minor of order() is not positive definite (value forms only; expert forms report through info).
class TRIFACTOR_API NotPositiveDefinite : public Error {
 public:
  explicit NotPositiveDefinite(index_t order);
  NotPositiveDefinite(index_t order, const std::string& what) : Error(what), order_(order) {}
  index_t order() const noexcept { return order_; }

 private:
  index_t order_;
};

/// The pivot of row() is exactly zero, so the matrix is singular (value forms only; of a sparse matrix it is a column).
class TRIFACTOR_API Singular : public Error {
 public:
  explicit Singular(index_t row);
  Singular(index_t row, const std::string& what) : Error(what), row_(row) {}
  index_t row() const noexcept { return row_; }

 private:
  index_t row_;
};

}  // namespace trifactor
