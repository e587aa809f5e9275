// Handles of plans, and what plans and factors share: values, options and memory, and compressed columns that are given to the caller.
#pragma once

#include <c/views.hpp>
#include <trifactor/sparse.hpp>
#include <trifactor/sparse_lu.hpp>

struct trifactor_plan {
  std::shared_ptr<const trifactor::SparsePlan> plan;
};
struct trifactor_lu_plan {
  std::shared_ptr<const trifactor::SparseLuPlan> plan;
};

namespace trifactor::c {

template <class T>
std::span<const T> values_of(const char* call, const void* values, int64_t count) {
  if (count < 0) fail(call, "count = " + std::to_string(count) + " must not be negative");
  if (count > 0) need(call, "values", static_cast<const T*>(values));
  return {static_cast<const T*>(values), std::size_t(count)};
}

inline trifactor_sparse_memory memory_report(const SparseMemory& m) {
  return {0, m.factor, m.updates, m.lists, m.vectors, m.scratch, m.values, m.total(), m.host};
}

inline SparseOptions sparse_options(const char* call, const trifactor_sparse_options* given) {
  const auto o = options_of(call, given);
  return {.max_device_bytes = o.max_device_bytes, .mode = mode_of(call, o.mode), .tuning = string_of(o.tuning)};
}

struct CompressedColumnsOf {
  trifactor_compressed_columns view;  // its owner not set
  std::shared_ptr<void> owner;
};
template <class T>
CompressedColumnsOf columns_of(trifactor_scalar scalar, CompressedColumns<T> columns) {
  auto owner = std::make_shared<CompressedColumns<T>>(std::move(columns));
  const auto& c = *owner;
  return {{scalar, c.pattern().cols, int64_t(c.index.size()), c.start.data(), c.index.data(), c.values.data(), nullptr},
          owner};
}
/// The caller's from here on: trifactor_compressed_columns_free gives it back.
void give(const char* call, CompressedColumnsOf, trifactor_compressed_columns* target);

}  // namespace trifactor::c
