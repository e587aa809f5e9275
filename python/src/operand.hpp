// Operand: arrays as the library takes them: one matrix, a strided batch, or a ragged one.
#pragma once

#include "array.hpp"

#include <trifactor/cholesky.hpp>
#include <trifactor/lu.hpp>

namespace trifactor::python {

/// How the matrices of the last two dimensions lie. Of row-major ones the library sees the transpose.
struct Layout {
  bool usable = false;  // column-major or row-major, batch at equal distances, aligned, ld within int
  bool row_major = false;
  index_t ld = 0, stride = 0;
};
Layout layout_of(const Array&);

struct Operand {
  enum class Form { One, Strided, Ragged };
  Form form = Form::One;
  bool row_major = false;
  index_t rows = 0, cols = 0, ld = 1, stride = 0, count = 1;  // as stored; of a ragged batch the largest
  void* data = nullptr;
  // Of a ragged batch, on the host; `lists` holds them in the device's memory.
  std::vector<void*> items;
  std::vector<int> item_rows, item_cols, item_ld;
  Array lists;
  std::byte* lists_data = nullptr;
};

/// Of an array whose layout is usable.
Operand operand_of(const Array&, const Layout&);
/// Of arrays with two dimensions whose layouts are usable and have one orientation. On a device the lists are copied
/// there.
Operand ragged_operand(const std::vector<Array>&, Queue&);

namespace views {

template <class T>
StridedBatch<T> strided_view(const Operand& A) {
  return {static_cast<T*>(A.data), A.rows, A.cols, A.ld, A.stride, A.count};
}

template <class T>
RaggedBatch<T> ragged_view(const Operand& A) {
  const auto count = std::size_t(A.count);
  if (!A.lists_data)
    return {reinterpret_cast<T* const*>(A.items.data()),
            A.item_rows.data(),
            A.item_cols.data(),
            A.item_ld.data(),
            A.count,
            A.rows,
            A.cols};
  const auto* sizes = reinterpret_cast<const int*>(A.lists_data + count * sizeof(void*));
  return {reinterpret_cast<T* const*>(A.lists_data), sizes, sizes + count, sizes + 2 * count, A.count, A.rows, A.cols};
}

}  // namespace views

/// f(view of A)
template <class T, class F>
void with_view(const Operand& A, F f) {
  switch (A.form) {
    case Operand::Form::One:
      return f(MatrixView<T>{static_cast<T*>(A.data), A.rows, A.cols, A.ld});
    case Operand::Form::Strided:
      return f(views::strided_view<T>(A));
    case Operand::Form::Ragged:
      return f(views::ragged_view<T>(A));
  }
}

/// f(view of A, view of X), both of one kind. One matrix A serves all items of a batch X: where these follow one
/// another they are the columns of one matrix.
template <class T, class F>
void with_views(const Operand& A, const Operand& X, F f) {
  if (A.form == Operand::Form::Ragged) return f(views::ragged_view<T>(A), views::ragged_view<T>(X));
  if (A.form == Operand::Form::Strided) return f(views::strided_view<T>(A), views::strided_view<T>(X));
  const MatrixView<T> one{static_cast<T*>(A.data), A.rows, A.cols, A.ld};
  auto* data = static_cast<T*>(X.data);
  if (X.form == Operand::Form::One) return f(one, MatrixView<T>{data, X.rows, X.cols, X.ld});
  if (X.stride == X.ld * X.cols) return f(one, MatrixView<T>{data, X.rows, X.cols * X.count, X.ld});
  for (index_t i = 0; i < X.count; ++i) f(one, MatrixView<T>{data + i * X.stride, X.rows, X.cols, X.ld});
}

}  // namespace trifactor::python
