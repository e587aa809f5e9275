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
  HostMatrix(HostMatrix&&) noexcept = default;
  HostMatrix& operator=(HostMatrix&&) noexcept = default;
  HostMatrix(const HostMatrix&);  // compiled with what tests share, optimized
  HostMatrix& operator=(const HostMatrix&);
  HostMatrix(index_t m, index_t n, index_t pad = 0)
      : rows(m), cols(n), ld(std::max<index_t>(m, 1) + pad), frame(ld % 2 ? 7 : 64), storage(2 * frame + ld * n) {
    const auto guard = [&](index_t first, index_t last) {
      for (index_t s = first; s < last; ++s) storage[s] = canary<T>(s);
    };
    guard(0, frame), guard(frame + ld * n, size());
    for (index_t j = 0; j < n && ld > m; ++j) guard(frame + j * ld + m, frame + (j + 1) * ld);
  }

  T& operator()(index_t i, index_t j) { return storage[frame + i + j * ld]; }
  const T& operator()(index_t i, index_t j) const { return storage[frame + i + j * ld]; }
  T* data() { return storage.data() + frame; }
  const T* data() const { return storage.data() + frame; }
  index_t size() const { return index_t(storage.size()); }
  /// The same without storage.
  HostMatrix shape() const {
    HostMatrix other;
    other.rows = rows, other.cols = cols, other.ld = ld, other.frame = frame;
    return other;
  }
  MatrixView<T> view() { return {data(), rows, cols, ld}; }
  MatrixView<const T> view() const { return {data(), rows, cols, ld}; }
};

template <Scalar T>
HostMatrix<T>::HostMatrix(const HostMatrix&) = default;
template <Scalar T>
HostMatrix<T>& HostMatrix<T>::operator=(const HostMatrix&) = default;

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

/// Whether the storages of matrices of the same shape are equal but for rows [first, last) = skipped(j) of column j.
template <class T, class Skipped>
bool same_but_for(const HostMatrix<T>& a, const HostMatrix<T>& b, const Skipped& skipped) {
  if (a.size() != b.size()) return false;
  index_t begin = 0;  // of what is to be compared next
  const auto same_until = [&](index_t end) {
    return end <= begin || std::memcmp(&a.storage[begin], &b.storage[begin], std::size_t(end - begin) * sizeof(T)) == 0;
  };
  for (index_t j = 0; j < a.cols; ++j) {
    const auto [first, last] = skipped(j);
    if (!same_until(a.frame + j * a.ld + first)) return false;
    begin = a.frame + j * a.ld + last;
  }
  return same_until(a.size());
}
/// Whether the storages differ in the triangle at most.
template <class T>
bool same_outside_triangle(const HostMatrix<T>& a, const HostMatrix<T>& b, Uplo uplo) {
  return same_but_for(a, b, [&](index_t j) { return triangle_rows(uplo, j, a.rows); });
}
/// Whether the storages differ in the entries at most.
template <class T>
bool same_frame(const HostMatrix<T>& a, const HostMatrix<T>& b) {
  return same_but_for(a, b, [&](index_t) { return std::pair<index_t, index_t>(0, a.rows); });
}

/// A with a canary in every place of the strict triangle opposite to uplo.
template <class T>
HostMatrix<T> only_triangle(HostMatrix<T> A, Uplo uplo) {
  for (index_t j = 0; j < A.cols; ++j) {
    const auto [first, last] = triangle_rows(uplo, j, A.rows);
    for (index_t i = 0; i < first; ++i) A(i, j) = canary<T>(i + 3 * j);
    for (index_t i = last; i < A.rows; ++i) A(i, j) = canary<T>(i + 3 * j);
  }
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
