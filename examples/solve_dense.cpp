// Solves a symmetric positive definite and a general system with the value forms: they choose the device, return when
// they are done, and throw when the matrix is not positive definite or singular.
#include <trifactor/trifactor.hpp>

#include <cmath>
#include <cstdio>
#include <vector>

int main() {
  const trifactor::index_t n = 200;
  trifactor::Matrix<double> A(n, n), B(n, n);   // zero at first
  for (trifactor::index_t i = 0; i < n; ++i) {
    A(i, i) = 4;
    if (i > 0) A(i, i - 1) = A(i - 1, i) = -1;
    B(i, i) = 1;
    B(i, (i + 1) % n) = 2;                      // larger than the diagonal: LU exchanges rows
  }
  const std::vector<double> b(n, 1.0);

  const auto L = trifactor::cholesky(A, {.uplo = trifactor::Uplo::Upper});   // reads the upper triangle
  const std::vector<double> x = L.solve(b);
  const std::vector<double> y = trifactor::lu(B).solve(b);

  const double first = std::abs(4 * x[0] - x[1] - 1), last = std::abs(y[n - 1] + 2 * y[0] - 1);
  std::printf("cholesky: residual of row 1 %.1e, log det A = %.6f\n", first, L.log_det());
  std::printf("lu:       residual of row %d %.1e\n", int(n), last);
  return first < 1e-12 && last < 1e-12 ? 0 : 1;
}
