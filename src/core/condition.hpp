// The reciprocal condition number in the one-norm: how near a matrix is to a singular one, from a few solves.
#pragma once

#include <core/scalar.hpp>

#include <algorithm>
#include <cmath>

namespace trifactor::core {

namespace condition {

template <class T>
double sum_of_moduli(index_t n, const T* x) {
  double sum = 0;
  for (index_t i = 0; i < n; ++i) sum += modulus(x[i]);
  return sum;
}

/// sign := x_i / |x_i|, 1 for zero. Whether any of them differs from what was there.
template <class T>
bool take_signs(index_t n, const T* x, T* sign) {
  bool differs = false;
  for (index_t i = 0; i < n; ++i) {
    T s = T(1);
    if constexpr (is_complex<T>) {
      if (const double m = modulus(x[i]); m > 0) s = T(Real<T>(double(x[i].re) / m), Real<T>(double(x[i].im) / m));
    } else {
      if (x[i] < 0) s = T(-1);
    }
    differs = differs || !(s == sign[i]);
    sign[i] = s;
  }
  return differs;
}

}  // namespace condition

/// A lower bound of |A^-1|_1 that is seldom below a third of it: Hager's ascent over the corners of the unit ball, with
/// Higham's last try, as in LAPACK's xLACN2. Four or five solves, twelve at most. solve(x) is x := A^-1 x,
/// solve_adjoint(x) is x := A^-H x; x and sign have n entries each, in host memory. Infinite where a solve gives what
/// is not finite.
template <class T, class Solve, class SolveAdjoint>
double inverse_norm1(index_t n, T* x, T* sign, Solve solve, SolveAdjoint solve_adjoint) {
  using namespace condition;
  constexpr double infinity = Limits<double>::infinity;
  constexpr int max_steps = 5;
  if (n == 0) return 0;
  std::fill_n(x, n, T(Real<T>(1.0 / double(n))));
  std::fill_n(sign, n, T(0));
  solve(x);
  double best = sum_of_moduli(n, x);
  if (!(best < infinity)) return infinity;
  if (n == 1) return best;

  index_t corner = -1;
  for (int step = 0; step < max_steps; ++step) {
    if (!take_signs(n, x, sign)) break;  // the ascent stands still
    std::copy_n(sign, n, x);
    solve_adjoint(x);
    index_t steepest = 0;
    for (index_t i = 0; i < n; ++i) {
      const double slope = modulus(x[i]);
      if (!(slope < infinity)) return infinity;
      if (slope > modulus(x[steepest])) steepest = i;
    }
    if (corner >= 0 && modulus(x[steepest]) <= modulus(x[corner])) break;  // a local maximum
    corner = steepest;
    std::fill_n(x, n, T(0));
    x[corner] = T(1);
    solve(x);
    const double norm = sum_of_moduli(n, x);
    if (!(norm < infinity)) return infinity;
    if (norm <= best) break;
    best = norm;
  }

  // Matrices that lead the ascent astray: growing entries of alternating signs.
  for (index_t i = 0; i < n; ++i) {
    const double entry = (1 + double(i) / double(n - 1)) / double(n);  // they sum up to 3 / 2
    x[i] = T(Real<T>(i % 2 == 0 ? entry : -entry));
  }
  solve(x);
  const double norm = sum_of_moduli(n, x) / 1.5;
  return norm < infinity ? std::max(best, norm) : infinity;
}

/// 1 / (|A| |A^-1|), at most 1, without overflow on the way; 0 where a norm is zero, infinite or not a number.
inline double reciprocal_condition(double norm, double inverse_norm) {
  const auto usable = [](double a) { return a > 0 && a < Limits<double>::infinity; };
  if (!usable(norm) || !usable(inverse_norm)) return 0;
  int exponent = 0, inverse_exponent = 0;
  const double product = std::frexp(norm, &exponent) * std::frexp(inverse_norm, &inverse_exponent);
  return std::min(1.0, std::ldexp(1 / product, -(exponent + inverse_exponent)));
}

}  // namespace trifactor::core
