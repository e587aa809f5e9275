#include "problem.hpp"

#include <algorithm>
#include <cmath>
#include <random>

namespace variants {

constexpr double max_residual = 30;  // as LAPACK's tests have it

std::vector<double> random_entries(int m, int n, std::uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::uniform_real_distribution<double> number(-1, 1);
  std::vector<double> A(std::size_t(m) * std::size_t(n));
  for (double& a : A) a = number(generator);
  return A;
}

static double norm1(const std::vector<double>& A, int m, int n) {
  double norm = 0;
  for (int j = 0; j < n; ++j) {
    double sum = 0;
    for (int i = 0; i < m; ++i) sum += std::abs(A[i + std::size_t(j) * m]);
    norm = sum <= norm ? norm : sum;  // NaN stays
  }
  return norm;
}

double residual_of(const Problem& p) {
  const int m = p.m, n = p.n;
  std::vector<double> LU = p.factors.to_host(), R = p.A, L(LU.size()), U(std::size_t(n) * n);
  std::vector<int> pivots = p.flags.to_host();
  pivots.resize(n);
  for (int j = 0; j < n; ++j)
    if (pivots[j] <= j || pivots[j] > m)
      throw ResultError("pivot " + std::to_string(j) + " is " + std::to_string(pivots[j]) + ": no row from " +
                        std::to_string(j + 1) + " to " + std::to_string(m));
  for (int j = 0; j < n; ++j) {
    const std::size_t column = std::size_t(j) * m;
    for (int i = j + 1; i < m; ++i)
      if (!(std::abs(LU[i + column]) <= 1))
        throw ResultError("|L| is above 1, or NaN, in row " + std::to_string(i) + ", column " + std::to_string(j));
    for (int i = 0; i < n; ++i) std::swap(R[i + column], R[pivots[i] - 1 + column]);
    std::copy(LU.begin() + column, LU.begin() + column + j + 1, U.begin() + std::size_t(j) * n);
    std::copy(LU.begin() + column + j, LU.begin() + column + m, L.begin() + column + j);
    L[j + column] = 1;
  }
  const OnDevice<double> l(L), u(U), r(R);
  const double one = 1, minus = -1;
  require("dgemm", cublasDgemm(p.device.blas, CUBLAS_OP_N, CUBLAS_OP_N, m, n, n, &minus, l.data(), m, u.data(), n, &one,
                               r.data(), m));
  p.device.wait();
  const double residual = norm1(r.to_host(), m, n);
  return residual == 0 ? 0 : residual / (m * norm1(p.A, m, n) * 0x1p-53);
}

void check_result(const Problem& p, double residual, int info) {
  if (const int found = p.flags.to_host().back(); found != info)
    throw ResultError("info is " + std::to_string(found) + ", but should be " + std::to_string(info));
  if (!(residual <= max_residual))
    throw ResultError("|P A - L U| / (m |A| eps) is " + std::to_string(residual) + ", above " +
                      std::to_string(max_residual));
}

std::vector<int> pivots_on_host(std::vector<double> A, int m, int n) {
  std::vector<int> pivots;
  const auto at = [&](int i, int j) -> double& { return A[i + std::size_t(j) * m]; };
  for (int j = 0; j < n; ++j) {
    int pivot = j;
    for (int i = j + 1; i < m; ++i)
      if (std::abs(at(i, j)) > std::abs(at(pivot, j))) pivot = i;
    pivots.push_back(pivot + 1);
    for (int c = 0; c < n; ++c) std::swap(at(j, c), at(pivot, c));
    for (int i = j + 1; i < m; ++i) at(i, j) /= at(j, j);
    for (int c = j + 1; c < n; ++c)
      for (int i = j + 1; i < m; ++i) at(i, c) -= at(i, j) * at(j, c);
  }
  return pivots;
}

}  // namespace variants
