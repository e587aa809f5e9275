// The rules of batches that are made by name.
#include <api/check.hpp>
#include <core/memory.hpp>
#include <trifactor/makers.hpp>

namespace trifactor::detail {

namespace {

using api::fail;

index_t given(const char* call, const char* what, const std::optional<index_t>& value) {
  if (!value) fail(call, std::string(what) + " must be given, as in {." + what + " = 100}");
  return *value;
}

void check_count(const char* call, const std::optional<index_t>& count) {
  if (given(call, "count", count) < 0) fail(call, "count", *count, "not be negative");
}

index_t checked_ld(const char* call, const std::optional<index_t>& ld, index_t rows) {
  const index_t least = std::max<index_t>(rows, 1);
  if (!ld) return least;
  api::check_size(call, "ld", *ld);
  if (*ld < least) fail(call, "ld", *ld, "be at least max(rows, 1) = " + std::to_string(least));
  return *ld;
}

template <class T>
void check_entries(const char* call, const char* what, ArrayView<T> array, index_t count) {
  if (count > 0) api::check_array(call, what, array, count, "count");
}

}  // namespace

void complete(StridedLayout& layout, const void* data, index_t size, index_t rows, index_t cols, bool written) try {
  const char* const call = "strided";
  api::check_size(call, "rows", rows);
  api::check_size(call, "cols", cols);
  check_count(call, layout.count);
  layout.ld = checked_ld(call, layout.ld, rows);
  if (!layout.stride) layout.stride = *layout.ld * cols;
  const index_t count = *layout.count, stride = *layout.stride;
  if (stride < 0) fail(call, "stride", stride, "not be negative");
  if (count == 0 || rows == 0 || cols == 0) return;

  const index_t extent = *layout.ld * (cols - 1) + rows;
  if (written && count > 1 && stride < extent)
    fail(call, "stride", stride,
         "be at least ld * (cols - 1) + rows = " + std::to_string(extent) + ", so that items do not overlap");
  if (!data) fail(call, "data is null");
  if (size >= 0 && (size < extent || (stride > 0 && (size - extent) / stride < count - 1)))
    fail(call, "data.size", size,
         "hold count = " + std::to_string(count) + " items of " + std::to_string(extent) + " entries, " +
             std::to_string(stride) + " apart");
} TRIFACTOR_CATCH_BAD_ALLOC

void complete(PointersLayout& layout, ArrayView<const void* const> items, index_t rows, index_t cols) try {
  const char* const call = "pointers";
  api::check_size(call, "rows", rows);
  api::check_size(call, "cols", cols);
  check_count(call, layout.count);
  layout.ld = checked_ld(call, layout.ld, rows);
  if (rows > 0 && cols > 0) check_entries(call, "items", items, *layout.count);
} TRIFACTOR_CATCH_BAD_ALLOC

void complete(RaggedLayout& layout, ArrayView<const void* const> items, ArrayView<const int> rows,
              ArrayView<const int> cols) try {
  const char* const call = "ragged";
  check_count(call, layout.count);
  api::check_size(call, "max_rows", given(call, "max_rows", layout.max_rows));
  api::check_size(call, "max_cols", given(call, "max_cols", layout.max_cols));
  if (!layout.ld.data) layout.ld = rows;
  check_entries(call, "items", items, *layout.count);
  check_entries(call, "rows", rows, *layout.count);
  check_entries(call, "cols", cols, *layout.count);
  check_entries(call, "ld", layout.ld, *layout.count);
} TRIFACTOR_CATCH_BAD_ALLOC

RaggedLayout complete(const SquareRaggedLayout& square, ArrayView<const void* const> items,
                      ArrayView<const int> order) try {
  const char* const call = "ragged";
  check_count(call, square.count);
  const index_t largest = given(call, "max_order", square.max_order);
  api::check_size(call, "max_order", largest);
  check_entries(call, "order", order, *square.count);
  RaggedLayout layout{.count = square.count, .max_rows = largest, .max_cols = largest, .ld = square.ld};
  complete(layout, items, order, order);
  return layout;
} TRIFACTOR_CATCH_BAD_ALLOC

}  // namespace trifactor::detail
