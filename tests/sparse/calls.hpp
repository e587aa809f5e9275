// Calls of SparseCholesky and SparseCholeskyBatch with values and right-hand sides of the host, which are copied to the
// queue's memory.
#pragma once

#include <sparse/matrices.hpp>
#include <support/device.hpp>

namespace trifactor::test {

template <class T>
index_t try_factor(Queue& q, SparseCholesky<T>& F, const std::vector<T>& values, real_t<T> shift = 0) {
  const DeviceArray<T> on_device(q, values);
  return F.try_factor(std::span<const T>(on_device.data(), values.size()), shift);
}
template <class T>
void factor(Queue& q, SparseCholesky<T>& F, const std::vector<T>& values, real_t<T> shift = 0) {
  const DeviceArray<T> on_device(q, values);
  F.factor(std::span<const T>(on_device.data(), values.size()), shift);
}
template <class T>
void solve(Queue& q, const SparseCholesky<T>& F, HostMatrix<T>& X, SparsePart part = SparsePart::All) {
  const DeviceMatrix<T> on_device(q, X);
  F.solve(on_device.view(), part);
  X = on_device.download();
}
template <class T>
Refinement<T> solve_refined(Queue& q, const SparseCholesky<T>& F, const std::vector<T>& values, HostMatrix<T>& X) {
  const DeviceArray<T> values_there(q, values);
  const DeviceMatrix<T> on_device(q, X);
  const auto result = F.solve_refined(std::span<const T>(values_there.data(), values.size()), on_device.view());
  X = on_device.download();
  return result;
}

template <class T>
index_t factor(Queue& q, SparseCholeskyBatch<T>& F, const std::vector<T>& values, real_t<T> shift = 0) {
  const DeviceArray<T> there(q, values);
  return F.factor(std::span<const T>(there.data(), values.size()), shift);
}
template <class T>
void solve(Queue& q, const SparseCholeskyBatch<T>& F, std::vector<HostMatrix<T>>& X,
           SparsePart part = SparsePart::All) {
  const DeviceBatch<T> there(q, X);
  auto view = there.strided();
  if (X.empty()) view.rows = F.plan().n(), view.ld = std::max<index_t>(1, view.rows);
  F.solve(view, part);
  X = there.download();
}
}  // namespace trifactor::test
