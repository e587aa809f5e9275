// Batches by name: strided(data, 32, 32, {.count = 10000}). Data, items, rows, cols and ld are pointers into the queue's memory,
// or what passes as an ArrayView, such as a Buffer, which must then be large enough; of const data the batch can only be read.
// A value that breaks a rule throws InvalidArgument.
#pragma once

#include <trifactor/error.hpp>
#include <trifactor/views.hpp>

#include <optional>

namespace trifactor {

struct StridedLayout {
  std::optional<index_t> count = {};   // must be given
  std::optional<index_t> ld = {};      // max(rows, 1)
  std::optional<index_t> stride = {};  // ld * cols: items follow one another
};

struct PointersLayout {
  std::optional<index_t> count = {};   // must be given
  std::optional<index_t> ld = {};      // max(rows, 1)
};

struct SquareRaggedLayout {
  std::optional<index_t> count = {}, max_order = {};   // must be given; max_order may be larger than any item
  ArrayView<const int> ld = nullptr;                   // the orders
};

struct RaggedLayout {
  std::optional<index_t> count = {}, max_rows = {}, max_cols = {};   // must be given; may be larger than any item
  ArrayView<const int> ld = nullptr;                                 // the rows
};

namespace detail {

template <class A>
auto* entries_of(A&& array) {
  if constexpr (requires { array.data(); }) {
    using Entry = std::remove_pointer_t<decltype(array.data())>;
    using Const = std::conditional_t<std::is_const_v<std::remove_reference_t<A>>, const Entry, Entry>;
    return static_cast<Const*>(array.data());
  } else {
    return array;
  }
}
/// The type of an array's entries, const if they are only read.
template <class A>
using entry_t = std::remove_pointer_t<decltype(entries_of(std::declval<A>()))>;
/// Of an array of pointers, the type they point to.
template <class A>
using item_t = std::remove_pointer_t<std::remove_const_t<entry_t<A>>>;

// They throw, or fill in what was left out.
TRIFACTOR_API void complete(StridedLayout&, const void* data, index_t size, index_t rows, index_t cols, bool written);
TRIFACTOR_API void complete(PointersLayout&, ArrayView<const void* const> items, index_t rows, index_t cols);
TRIFACTOR_API void complete(RaggedLayout&, ArrayView<const void* const> items, ArrayView<const int> rows,
                            ArrayView<const int> cols);
TRIFACTOR_API RaggedLayout complete(const SquareRaggedLayout&, ArrayView<const void* const> items,
                                    ArrayView<const int> order);

template <class T>
ArrayView<const void* const> untyped(ArrayView<T* const> items) {
  ArrayView<const void* const> same(reinterpret_cast<const void* const*>(items.data));
  same.size = items.size;
  return same;
}

}  // namespace detail

/// layout.count matrices of one size at equal distances.
template <class A>
  requires Scalar<std::remove_const_t<detail::entry_t<A>>>
StridedBatch<detail::entry_t<A>> strided(A&& data, index_t rows, index_t cols, StridedLayout layout) {
  const ArrayView<detail::entry_t<A>> array(data);
  detail::complete(layout, array.data, array.size, rows, cols, !std::is_const_v<detail::entry_t<A>>);
  return {array.data, rows, cols, *layout.ld, *layout.stride, *layout.count};
}

/// layout.count matrices of one size, item i at items[i].
template <class A>
  requires Scalar<std::remove_const_t<detail::item_t<A>>>
PointerBatch<detail::item_t<A>> pointers(A&& items, index_t rows, index_t cols, PointersLayout layout) {
  const ArrayView<detail::item_t<A>* const> array(items);
  detail::complete(layout, detail::untyped(array), rows, cols);
  return {array.data, rows, cols, *layout.ld, *layout.count};
}

/// layout.count matrices, item i of rows[i] x cols[i] at items[i].
template <class A>
  requires Scalar<std::remove_const_t<detail::item_t<A>>>
RaggedBatch<detail::item_t<A>> ragged(A&& items, ArrayView<const int> rows, ArrayView<const int> cols, RaggedLayout layout) {
  const ArrayView<detail::item_t<A>* const> array(items);
  detail::complete(layout, detail::untyped(array), rows, cols);
  return {array.data, rows.data, cols.data, layout.ld.data, *layout.count, *layout.max_rows, *layout.max_cols};
}

/// layout.count square matrices, item i of order[i] x order[i] at items[i].
template <class A>
  requires Scalar<std::remove_const_t<detail::item_t<A>>>
RaggedBatch<detail::item_t<A>> ragged(A&& items, ArrayView<const int> order, const SquareRaggedLayout& layout) {
  const ArrayView<detail::item_t<A>* const> array(items);
  const RaggedLayout all = detail::complete(layout, detail::untyped(array), order);
  return {array.data, order.data, order.data, all.ld.data, *all.count, *all.max_rows, *all.max_cols};
}

}  // namespace trifactor
