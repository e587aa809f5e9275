// What the expert forms have in common: checks, the tuning row of a batch, and their instances.
#pragma once

#include <api/check.hpp>
#include <api/queue_state.hpp>
#include <tuning/rows.hpp>

namespace trifactor::api {

template <class Tuning, class T>
Tuning tuning_for(const Queue& q, const Items<T>& A, std::string_view overrides) {
  return tuning::find<Tuning>(q.state()->machine(), core::scalar_name(std::remove_const_t<T>{}),
                              core::tuning_order(A), A.count, overrides);
}

/// An entry for each item of A.
template <class T, class Entry>
void check_each(const char* call, const char* what, ArrayView<Entry> array, const Items<T>& A) {
  if (A.count > 0) check_array(call, what, array, A.count, "the count of items");
}

/// The info that a call may read.
template <class T>
void check_read_info(const char* call, ArrayView<const int> info, const Items<T>& A) {
  if (info.data) check_array(call, "info", info, A.count, "the count of items");
}

}  // namespace trifactor::api

// instances(T, Batch) for every scalar and every kind of batch.
#define TRIFACTOR_INSTANTIATE_KINDS(instances, T) \
  instances(T, MatrixView) instances(T, StridedBatch) instances(T, PointerBatch) instances(T, RaggedBatch)
