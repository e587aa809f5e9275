#include "operand.hpp"
#include "queues.hpp"
#include "signals.hpp"

#include <algorithm>
#include <limits>

namespace trifactor::python {

namespace {

constexpr index_t largest = std::numeric_limits<int>::max();  // BLAS takes no more

/// The distance between the matrices of a batch, or -1 where there is no single one.
index_t batch_stride(const Array& A, index_t extent) {
  index_t stride = -1, next = 0;
  for (int d = A.ndim() - 3; d >= 0; --d) {
    if (A.shape[d] == 1) continue;
    const index_t s = A.stride[std::size_t(d)];
    if (stride < 0) {
      if (s < extent) return -1;
      stride = s;
    } else if (s != next) {
      return -1;
    }
    next = s * A.shape[d];
  }
  return stride < 0 ? extent : stride;
}

}  // namespace

Layout layout_of(const Array& A) {
  const int n = A.ndim();
  const index_t rows = A.shape[n - 2], cols = A.shape[n - 1];
  const index_t row_stride = A.stride[std::size_t(n - 2)], col_stride = A.stride[std::size_t(n - 1)];
  Layout layout;
  if (A.shape.product() == 0) return {true, false, std::max<index_t>(rows, 1), rows * cols};
  if (!A.aligned()) return layout;
  index_t extent;
  if ((rows == 1 || row_stride == 1) && (cols == 1 || col_stride >= rows)) {
    layout.ld = cols == 1 ? rows : col_stride;
    extent = layout.ld * (cols - 1) + rows;
  } else if ((cols == 1 || col_stride == 1) && (rows == 1 || row_stride >= cols)) {
    layout.row_major = true;
    layout.ld = rows == 1 ? cols : row_stride;
    extent = layout.ld * (rows - 1) + cols;
  } else {
    return layout;
  }
  layout.stride = batch_stride(A, extent);
  layout.usable = layout.stride >= 0 && layout.ld <= largest;
  return layout;
}

Operand operand_of(const Array& A, const Layout& layout) {
  const int n = A.ndim();
  Operand o;
  o.row_major = layout.row_major;
  o.rows = A.shape[n - 2], o.cols = A.shape[n - 1];
  if (o.row_major) std::swap(o.rows, o.cols);
  o.ld = layout.ld, o.stride = layout.stride, o.data = A.data;
  o.count = A.shape.head(n - 2).product();
  if (n > 2 && o.count != 1) o.form = Operand::Form::Strided;
  return o;
}

Operand ragged_operand(const std::vector<Array>& arrays, Queue& q) {
  Operand o;
  o.form = Operand::Form::Ragged;
  o.count = index_t(arrays.size());
  const auto count = arrays.size();
  o.items.reserve(count), o.item_rows.reserve(count), o.item_cols.reserve(count), o.item_ld.reserve(count);
  for (const Array& A : arrays) {
    const Operand one = operand_of(A, layout_of(A));
    if (std::max(one.rows, one.cols) > largest)
      throw nb::value_error(("an item of the list has shape " + A.shape.text() + " but must have at most " +
                             std::to_string(largest) + " rows and columns")
                                .c_str());
    if (one.rows > 0 && one.cols > 0) o.row_major = o.row_major || one.row_major;
    o.items.push_back(one.data);
    o.item_rows.push_back(int(one.rows)), o.item_cols.push_back(int(one.cols)), o.item_ld.push_back(int(one.ld));
    o.rows = std::max(o.rows, one.rows), o.cols = std::max(o.cols, one.cols);
  }
  if (!q.is_cuda() || count == 0) return o;
  const std::size_t bytes = count * (sizeof(void*) + 3 * sizeof(int));
  std::vector<std::byte> packed(bytes);
  auto put = [at = packed.data()](const auto& list) mutable {
    at = std::copy_n(reinterpret_cast<const std::byte*>(list.data()), list.size() * sizeof(list[0]), at);
  };
  put(o.items), put(o.item_rows), put(o.item_cols), put(o.item_ld);
  o.lists = arrays[0].kind->empty(arrays[0], Dtype::I32, {index_t(bytes / sizeof(int) + 1)});
  o.lists_data = static_cast<std::byte*>(o.lists.data);
  without_gil([&] { copy_bytes(host_queue(), packed.data(), q, o.lists_data, bytes); });
  return o;
}

}  // namespace trifactor::python
