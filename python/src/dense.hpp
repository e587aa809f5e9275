// What the calls of dense matrices share: from arguments to operands, and from results to the caller's kind of array.
#pragma once

#include "operand.hpp"
#include "signals.hpp"

#include <optional>

namespace trifactor::python {

/// The matrices of a call: an array of shape (..., m, n), or a list of arrays of shape (m, n), each of its own size.
struct Matrices {
  std::vector<Array> arrays;
  bool ragged = false;
  Dtype dtype = Dtype::F64;
  Shape batch;  // (...), or (how many,)

  const Array& first() const { return arrays[0]; }
  const Kind& kind() const { return *first().kind; }
  Queue& queue() const { return kind().queue(first().device); }
  index_t rows() const { return first().shape[first().ndim() - 2]; }
  index_t cols() const { return first().shape[first().ndim() - 1]; }
  index_t count() const { return ragged ? index_t(arrays.size()) : batch.product(); }
};
/// TypeError or ValueError that name `what`.
Matrices look_at_matrices(nb::handle A, const char* what, bool square);
void check_square(const Matrices&, const char* what);

enum class Orientation { Kept, Columns };
/// Memory for results that start as A: A itself where it may be overwritten and lies well, or a copy. A row-major A
/// that is overwritten stays row-major unless must_be_columns. `batch`: a copy is spread to it.
struct Wanted {
  Dtype dtype;
  Orientation copies = Orientation::Kept;
  bool overwrite = false, must_be_columns = false;
  bool scratch = false;  // the caller will not see it: a copy may be of another kind
};
Matrices working_copy(const Matrices& A, const Wanted&, const Shape* batch = nullptr);
Operand operand_of(const Matrices&, Queue&);
/// Turns into null what shares memory with another place, or with one of the others: nothing may be written there.
void leave_shared(std::vector<const Array*>& places, const std::vector<const Array*>& others);
std::vector<const Array*> pointers_to(const std::vector<Array>&);
/// Memory for results that lie as A does, or row-major; `nan`: with NaN for all entries.
Matrices results_like(const Matrices& A, bool row_major, bool nan);
/// Whether the arrays of two Matrices are the same memory.
bool same_memory(const Matrices&, const Matrices&);

/// Integers in the queue's memory: info, pivots.
struct Integers {
  std::vector<int> host;
  Array device;
  bool on_device = false;
  index_t size = 0;

  Integers() = default;
  Integers(const Matrices& like, index_t size);
  int* data() { return on_device ? static_cast<int*>(device.data) : host.data(); }
  ArrayView<int> view() { return data(); }
  ArrayView<const int> view() const { return on_device ? static_cast<const int*>(device.data) : host.data(); }
  std::vector<int> fetch(Queue&) const;
  /// As an array of the caller's kind.
  nb::object reveal(const Matrices& like, const Shape&) const;
};

/// Right-hand sides on their way to solutions.
struct Rhs {
  std::vector<Array> X;
  std::vector<Array> out;  // where the caller wants them, if not in X
  bool ragged = false;
  Shape batch;
  Operand operand;  // column-major

  /// The caller's object, when the work is enqueued.
  nb::object finish(const Matrices& A, Queue&, bool conj);
};
struct RhsOptions {
  bool overwrite = false, conj = false;
  nb::handle out = {};
  bool promote = false;  // b may have any dtype: it is turned into A's
};
/// b as it is given: one array, or one for each item of a ragged batch.
std::vector<Array> look_at_rhs(nb::handle b, const Matrices& A);
/// The dtype that holds A and all of b.
Dtype common_dtype(const Matrices& A, const std::vector<Array>& b);
/// The batch of the solutions.
Shape batch_of_rhs(const std::vector<Array>& b, const Matrices& A);
/// b of shape (n,), (..., n) where that is A's batch, or (..., n, k).
Rhs prepare_rhs(const std::vector<Array>& b, const Matrices& A, Queue&, const RhsOptions&);
/// ValueError where out is given for a list.
void check_out(nb::handle out, const Matrices& A);
/// An array for results that the caller gave, or nothing for None. TypeError or ValueError unless it is an array that
/// can be written as it lies, of that shape and dtype.
std::optional<Array> look_at_out(nb::handle out, const Array& like, const Shape&, Dtype);
/// ValueError where right-hand sides are a larger batch than the factor is.
void check_batch(const Rhs&, const Operand& factor, const Matrices& A);

/// The entries of an array with as many dimensions as the batch has, or a scalar of NumPy's.
nb::object reveal_values(const Array& values, const Matrices& A, Queue&);

[[noreturn]] void raise_value_error(const std::string&);
[[noreturn]] void raise_type_error(const std::string&);
/// Raises the class of trifactor/_errors.py for the first item whose info is not 0, if there is one.
void raise_failure(const char* error, const std::vector<int>& info, const Matrices& A);

}  // namespace trifactor::python
