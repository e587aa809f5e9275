// LAPACK's operation counts. A complex multiplication counts 6, a complex addition 2.
#pragma once

#include <trifactor/types.hpp>

namespace program {

template <trifactor::Scalar T>
double flops(double multiplications, double additions) {
  return trifactor::ComplexScalar<T> ? 6 * multiplications + 2 * additions : multiplications + additions;
}

template <trifactor::Scalar T>
double cholesky_flops(double n) {
  return flops<T>(n * n * n / 6 + n * n / 2 + n / 3, n * n * n / 6 - n / 6);
}

template <trifactor::Scalar T>
double lu_flops(double n) {
  return flops<T>(n * n * n / 3 + 2 * n / 3, n * n * n / 3 - n * n / 2 + n / 6);
}
/// Of m x n: each row below n takes n^2 / 2 of either kind, and each column beyond m takes m^2 / 2.
template <trifactor::Scalar T>
double lu_flops(double m, double n) {
  if (m < n) return lu_flops<T>(m) + (n - m) * flops<T>(m * (m - 1) / 2, m * (m - 1) / 2);
  return lu_flops<T>(n) + (m - n) * flops<T>(n * (n + 1) / 2, n * (n - 1) / 2);
}

/// With either factorization.
template <trifactor::Scalar T>
double solve_flops(double n, double columns) {
  return flops<T>(n * n * columns, n * n * columns);
}

/// From the factor: LAPACK's potri, or getri.
template <trifactor::Scalar T>
double inverse_flops(bool by_cholesky, double n) {
  return by_cholesky ? flops<T>(n * n * n / 3 + n * n + 2 * n / 3, n * n * n / 3 - n * n / 2 + n / 6)
                     : flops<T>(2 * n * n * n / 3 + n * n / 2 + 5 * n / 6, 2 * n * n * n / 3 - 3 * n * n / 2 + 5 * n / 6);
}

}  // namespace program
