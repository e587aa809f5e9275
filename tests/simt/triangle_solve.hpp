// Solves with triangles whose solution is known.
#pragma once

#include "support.hpp"

#include <core/engine.hpp>

namespace trifactor::simt {

struct TriangleSolve {
  int n, columns, count = 1;
  bool flipped = false;  // the transpose of the lower triangle
  bool conj_A = false, unit = false;
  bool twice = false;  // X := A^-H A^-1 X, else A^-1 X
};

/// Calls solve(shape, A, X, info) for `count` items, of which item 1 is to be left alone. Compared with B = A X, or
/// A A^H X, from a known X.
template <class T, class Solve>
void check_triangle_solve(const TriangleSolve& s, std::mt19937_64& random, const Solve& solve) {
  using R = Real<T>;
  SCOPED_TRACE(testing::Message() << "order " << s.n << ", " << s.columns << " right-hand sides, " << s.count
                                  << " items" << (s.flipped ? ", flipped" : "") << (s.conj_A ? ", conjugate" : "")
                                  << (s.twice ? ", twice" : "") << (s.unit ? ", unit" : "") << ", seed "
                                  << schedule().seed);
  const int n = s.n, ld = n + int(random() % 3), size = ld * n, size_x = ld * s.columns;
  std::vector<T> A(std::size_t(size * s.count)), X(std::size_t(size_x * s.count), T(-5)), B = X;
  for (T& a : A) a = random_number<T>(random) * T(R(1) / R(n));
  for (int b = 0; b < s.count; ++b) {
    const auto a = [&](int i, int j) -> T& { return A[std::size_t(b * size + i + j * ld)]; };
    const auto x = [&](std::vector<T>& v, int i, int j) -> T& { return v[std::size_t(b * size_x + i + j * ld)]; };
    for (int i = 0; i < n; ++i) a(i, i) = T(R(2)) + random_number<T>(random);
    const auto op = [&](int i, int j) {
      if (s.flipped ? i > j : i < j) return T(0);
      return conj_if(s.conj_A, s.unit && i == j ? T(1) : s.flipped ? a(j, i) : a(i, j));
    };
    for (int c = 0; c < s.columns; ++c) {
      std::vector<T> v(std::size_t(n), T(0)), w = v, y = v;
      for (int i = 0; i < n; ++i) v[std::size_t(i)] = x(X, i, c) = random_number<T>(random);
      if (s.twice) {  // w = op^H v
        for (int i = 0; i < n; ++i)
          for (int j = 0; j < n; ++j) w[std::size_t(i)] += conj(op(j, i)) * v[std::size_t(j)];
      } else {
        w = v;
      }
      for (int i = 0; i < n; ++i)
        for (int j = 0; j < n; ++j) y[std::size_t(i)] += op(i, j) * w[std::size_t(j)];
      for (int i = 0; i < n; ++i) x(B, i, c) = y[std::size_t(i)];
    }
  }
  std::vector<int> info(std::size_t(s.count), 0);
  if (s.count > 1) {
    info[1] = 3;
    std::copy_n(B.begin() + size_x, size_x, X.begin() + size_x);
  }
  Items<const T> items = items_of<const T>(A.data(), n, n, ld, s.count, size);
  if (s.flipped) items = items.flipped();
  solve(Shape{!s.flipped, s.unit}, Operand<T>{items, s.conj_A}, items_of(B.data(), n, s.columns, ld, s.count, size_x),
        info.data());
  Largest worst;
  for (std::size_t i = 0; i < B.size(); ++i) worst.add(modulus(B[i] - X[i]));
  EXPECT_LT(worst.value, tolerance<T>);
  ++schedule().seed;
}

}  // namespace trifactor::simt
