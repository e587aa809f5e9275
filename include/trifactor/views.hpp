// Views of arrays, of matrices and of batches of matrices. They own nothing; the memory is the queue's; storage is column-major. Sizes,
// leading dimensions and strides count entries; rows, cols and count may be 0, ld is at least max(rows, 1), and none of rows, cols
// and ld is above 2^31 - 1. Data is aligned to its scalar, 16 bytes for complex double, and may be null where there are no entries.
// Items that a call writes must not overlap each other, nor what it reads. makers.hpp makes batches of what a caller has.
#pragma once

#include <trifactor/types.hpp>

#include <algorithm>
#include <type_traits>
#include <utility>

namespace trifactor {

namespace detail {
/// Containers of T, const ones only where T is const.
template <class A, class T>
concept ArrayOf = (std::is_const_v<T> || !std::is_const_v<std::remove_reference_t<A>>)&&requires(A& array) {
  { array.data() } -> std::convertible_to<T*>;
  { array.size() } -> std::convertible_to<index_t>;
};
}  // namespace detail

/// Entries of an array that a call reads or writes. A Buffer, a std::vector (on host queues) or another container passes as one,
/// and calls check that it is large enough; so does a pointer, whose size is not known, and null where a call may do without.
template <class T>
struct ArrayView {
  T* data = nullptr;
  index_t size = -1;  // -1: not known

  ArrayView() = default;
  ArrayView(T* pointer) : data(pointer) {}
  template <detail::ArrayOf<T> A>
  ArrayView(A&& array) : data(array.data()), size(index_t(array.size())) {}
  template <class U> requires(!std::is_const_v<U> && std::same_as<const U, T>)
  ArrayView(const ArrayView<U>& other) : data(other.data), size(other.size) {}
};

/// One matrix: entry (i, j) at data[i + j * ld].
template <class T>
struct MatrixView {
  T* data = nullptr;
  index_t rows = 0, cols = 0, ld = 0;

  T& operator()(index_t i, index_t j) const { return data[i + j * ld]; }   // host memory only
  MatrixView block(index_t i, index_t j, index_t m, index_t n) const { return {data + i + j * ld, m, n, ld}; }
  operator MatrixView<const T>() const requires(!std::is_const_v<T>) { return {data, rows, cols, ld}; }
};

/// count matrices of one size, item i at data + i * stride. stride is at least ld * (cols - 1) + rows where items are written;
/// items that are only read may overlap: with stride 0 all solves share one factor.
template <class T>
struct StridedBatch {
  T* data = nullptr;
  index_t rows = 0, cols = 0, ld = 0, stride = 0, count = 0;

  operator StridedBatch<const T>() const requires(!std::is_const_v<T>) { return {data, rows, cols, ld, stride, count}; }
};

/// count matrices of one size, item i at data[i], in any order and anywhere in the queue's memory, where the array of pointers is
/// too. It is what cuSOLVER's potrfBatched takes.
template <class T>
struct PointerBatch {
  T* const* data = nullptr;
  index_t rows = 0, cols = 0, ld = 0, count = 0;

  operator PointerBatch<const T>() const requires(!std::is_const_v<T>) { return {data, rows, cols, ld, count}; }
};

/// count matrices of different sizes, item i of rows[i] x cols[i] at data[i]. All four arrays are in the queue's memory and never
/// read by the host on a CUDA queue, so the caller states the largest sizes: max_rows and max_cols may be larger than any item, but
/// time and scratch memory go with them. An item that breaks them, or has ld < rows, gets info = -1 and is left alone. For square
/// items, rows, cols and ld may be one array.
template <class T>
struct RaggedBatch {
  T* const* data = nullptr;
  const int* rows = nullptr;
  const int* cols = nullptr;
  const int* ld = nullptr;
  index_t count = 0, max_rows = 0, max_cols = 0;

  operator RaggedBatch<const T>() const requires(!std::is_const_v<T>) {
    return {data, rows, cols, ld, count, max_rows, max_cols};
  }
};

namespace detail {
template <class B> struct BatchTraits { static constexpr bool is_batch = false; };
template <class U, template <class> class View> struct BatchOf {
  static constexpr bool is_batch = Scalar<std::remove_const_t<U>>;
  static constexpr bool is_writable = !std::is_const_v<U>;
  using value_type = std::remove_const_t<U>;
  using const_type = View<const value_type>;
};
template <class T> struct BatchTraits<MatrixView<T>> : BatchOf<T, MatrixView> {};
template <class T> struct BatchTraits<StridedBatch<T>> : BatchOf<T, StridedBatch> {};
template <class T> struct BatchTraits<PointerBatch<T>> : BatchOf<T, PointerBatch> {};
template <class T> struct BatchTraits<RaggedBatch<T>> : BatchOf<T, RaggedBatch> {};
}  // namespace detail

/// Any of the four views above, of a scalar that was built; a MatrixView is a batch of one.
template <class B>
concept Batch = detail::BatchTraits<B>::is_batch && BuiltScalar<typename detail::BatchTraits<B>::value_type>;

/// One whose items may be written: not a view of const entries, as a const Matrix gives.
template <class B>
concept WritableBatch = Batch<B> && detail::BatchTraits<B>::is_writable;

/// What is no view but has one, of its own entries: Matrix, and Buffer as one column. It passes where a view does.
template <class M>
concept HasView = requires(M& owner) { requires Batch<decltype(owner.view())>; };
template <HasView M> using view_t = decltype(std::declval<M&>().view());

template <Batch B> using value_t = typename detail::BatchTraits<B>::value_type;

/// The same batch, read only. It stands in a non-deduced context, so a view of T passes where a view of const T is read.
template <Batch B> using const_batch_t = typename detail::BatchTraits<B>::const_type;

}  // namespace trifactor
