// A matrix on the host inside a frame of canaries, which shows every entry that was written where nothing may be.
#pragma once

#include <support/scalars.hpp>
#include <trifactor/views.hpp>

#include <cstring>
#include <vector>

namespace trifactor::test {

/// NaN where a stray read would spread, a number that depends on the place where a stray write would hide.
template <Scalar T>
T canary(index_t place) {
  return place % 2 ? T(nan<T>) : T(real_t<T>(1000 + place % 97));
}

/// Column-major; entry (i, j) stands `frame` entries further in the storage than in a bare matrix. What is not an
/// entry is a canary: the frame before and after, and the ld - rows places below each column. An odd ld has an odd
/// frame, so that data is met both well aligned and aligned to one scalar only.
template <Scalar T>
struct HostMatrix {
  index_t rows = 0, cols = 0, ld = 1, frame = 0;
  std::vector<T> storage;

  HostMatrix() = default;
  HostMatrix(index_t m, index_t n, index_t pad = 0)
      : rows(m), cols(n), ld(std::max<index_t>(m, 1) + pad), frame(ld % 2 ? 7 : 64), storage(2 * frame + ld * n) {
    for (index_t s = 0; s < index_t(storage.size()); ++s) storage[s] = canary<T>(s);
    for (index_t j = 0; j < n; ++j) std::fill_n(&storage[frame + j * ld], m, T(0));
  }

  T& operator()(index_t i, index_t j) { return storage[frame + i + j * ld]; }
  const T& operator()(index_t i, index_t j) const { return storage[frame + i + j * ld]; }
  T* data() { return storage.data() + frame; }
  const T* data() const { return storage.data() + frame; }
  index_t size() const { return index_t(storage.size()); }
  MatrixView<T> view() { return {data(), rows, cols, ld}; }
  MatrixView<const T> view() const { return {data(), rows, cols, ld}; }
};

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}
/// The entries and all canaries.
template <class T>
bool same_bits(const HostMatrix<T>& a, const HostMatrix<T>& b) {
  return same_bits(a.storage, b.storage);
}

inline bool in_triangle(Uplo uplo, index_t i, index_t j) { return uplo == Uplo::Lower ? i >= j : i <= j; }

/// Rows [first, last) of column j that lie in the triangle.
inline std::pair<index_t, index_t> triangle_rows(Uplo uplo, index_t j, index_t rows) {
  if (uplo == Uplo::Lower) return {std::min(j, rows), rows};
  return {0, std::min(j + 1, rows)};
}

/// Whether the storages differ in the triangle at most.
template <class T>
bool same_outside_triangle(const HostMatrix<T>& a, HostMatrix<T> b, Uplo uplo) {
  for (index_t j = 0; j < a.cols; ++j) {
    const auto [first, last] = triangle_rows(uplo, j, a.rows);
    std::memcpy(b.data() + first + j * b.ld, a.data() + first + j * a.ld, std::size_t(last - first) * sizeof(T));
  }
  return same_bits(a, b);
}
/// Whether the storages differ in the entries at most.
template <class T>
bool same_frame(const HostMatrix<T>& a, HostMatrix<T> b) {
  for (index_t j = 0; j < a.cols; ++j)
    std::memcpy(b.data() + j * b.ld, a.data() + j * a.ld, std::size_t(a.rows) * sizeof(T));
  return same_bits(a, b);
}

/// A with a canary in every place of the strict triangle opposite to uplo.
template <class T>
HostMatrix<T> only_triangle(HostMatrix<T> A, Uplo uplo) {
  for (index_t j = 0; j < A.cols; ++j)
    for (index_t i = 0; i < A.rows; ++i)
      if (!in_triangle(uplo, i, j)) A(i, j) = canary<T>(i + 3 * j);
  return A;
}

/// Sets entry (i, j), i >= j, of the hermitian matrix that both triangles hold.
template <class T>
void set_hermitian(HostMatrix<T>& A, index_t i, index_t j, T value) {
  A(i, j) = value;
  if (i != j) A(j, i) = conj(value);
}

template <class T>
HostMatrix<T> leading(const HostMatrix<T>& A, index_t m, index_t n) {
  HostMatrix<T> B(m, n);
  for (index_t j = 0; j < n; ++j) std::copy_n(&A(0, j), m, &B(0, j));
  return B;
}

}  // namespace trifactor::test
