// The condition that an estimate is held against: by an explicit inverse, in double.
#pragma once

#include <support/wide.hpp>

#include <gtest/gtest.h>

namespace trifactor::test {

/// A^-1 by elimination of every column, with partial pivoting.
template <class W>
HostMatrix<W> inverted(HostMatrix<W> A) {
  const index_t n = A.rows;
  HostMatrix<W> X(n, n);
  for (index_t j = 0; j < n; ++j) X(j, j) = 1;
  for (index_t k = 0; k < n; ++k) {
    index_t pivot = k;
    for (index_t i = k + 1; i < n; ++i)
      if (std::abs(A(i, k)) > std::abs(A(pivot, k))) pivot = i;
    for (index_t j = 0; j < n; ++j) std::swap(A(k, j), A(pivot, j)), std::swap(X(k, j), X(pivot, j));
    for (index_t i = 0; i < n; ++i) {
      const W f = A(i, k) / A(k, k);
      if (i == k || f == W(0)) continue;
      for (index_t j = k; j < n; ++j) A(i, j) -= f * A(k, j);
      for (index_t j = 0; j < n; ++j) X(i, j) -= f * X(k, j);
    }
  }
  for (index_t j = 0; j < n; ++j)
    for (index_t i = 0; i < n; ++i) X(i, j) /= A(i, i);
  return X;
}

/// 1 / (|A| |A^-1|)
template <class T>
double true_rcond(const HostMatrix<T>& A) {
  const auto W = widen(A);
  return 1 / norm1(W) / norm1(inverted(W));
}

/// The estimate of |A^-1| is a lower bound, and a third of it at least; the factors that it comes from are rounded.
template <class T>
void expect_rcond(real_t<T> estimate, double truth, index_t n) {
  const double rounding = std::min(0.3, 30 * double(n) * eps<T> / truth);
  EXPECT_GE(double(estimate), truth * (1 - rounding));
  EXPECT_LE(double(estimate), 3 * truth * (1 + rounding));
}

/// 1 / (i + j + 1): positive definite, and nearer to singular than any other matrix of its size that comes up.
template <class T>
HostMatrix<T> hilbert(index_t n) {
  HostMatrix<T> A(n, n);
  for (index_t j = 0; j < n; ++j)
    for (index_t i = 0; i < n; ++i) A(i, j) = T(real_t<T>(1.0 / double(i + j + 1)));
  return A;
}

}  // namespace trifactor::test
