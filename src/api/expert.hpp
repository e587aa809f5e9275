// What the expert forms have in common: checks, the tuning row of a batch, and their instances.
#pragma once

#include <api/check.hpp>
#include <api/queue_state.hpp>
#include <tuning/rows.hpp>

namespace trifactor::api {

template <class Tuning, class T>
Tuning tuning_for(const Queue& q, const Items<T>& A, std::string_view overrides) {
  return tuning::find<Tuning>(q.state()->architectures, core::scalar_name(std::remove_const_t<T>{}),
                              core::min(A.rows, A.cols), A.count, overrides);
}

/// The info that a call may read.
inline void check_read_info(const char* call, const int* info) {
  if (info) check_pointer(call, "info", info, sizeof(int));
}

}  // namespace trifactor::api

// instances(T, Batch) for every scalar and every kind of batch.
#define TRIFACTOR_INSTANTIATE_KINDS(instances, T) \
  instances(T, MatrixView) instances(T, StridedBatch) instances(T, PointerBatch) instances(T, RaggedBatch)
