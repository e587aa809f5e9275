// LAPACK's residual ratios of host matrices: below 30 a result is as good as its precision allows.
// eps is half of std::numeric_limits::epsilon(), norms are 1-norms.
#pragma once

#include <trifactor/views.hpp>

#include <span>

namespace program {

using trifactor::index_t;
using trifactor::MatrixView;
using trifactor::Scalar;
using trifactor::Uplo;

/// What a ratio has to stay below.
constexpr double good_ratio = 30;
/// The same for a solve with LU's factors of a large matrix: numbers grow in the elimination. LAPACK's own ratio is 15 at n = 6000
/// in complex double.
constexpr double good_lu_solve_ratio(index_t n) { return n < 3000 ? good_ratio : double(n) / 100; }

/// The larger one; NaN where one of them is.
constexpr double worst_of(double a, double b) { return a != a || a >= b ? a : b; }

template <Scalar T>
double norm1(MatrixView<const T> A);

/// |B - A X| / (|A| |X| eps)
template <Scalar T>
double solve_ratio(MatrixView<const T> A, MatrixView<const T> X, MatrixView<const T> B);

/// |A - L L^H| / (n |A| eps), or the same with U^H U; A holds both triangles. Large matrices are probed with a random
/// vector v instead: |A v - L (L^H v)| / (n |A| |v| eps).
template <Scalar T>
double cholesky_ratio(Uplo uplo, MatrixView<const T> A, MatrixView<const T> factor);

/// The same by probing, without BLAS and threads, for the items of a batch.
template <Scalar T>
double cholesky_probe(Uplo uplo, MatrixView<const T> A, MatrixView<const T> factor);

/// |P A - L U| / (max(m, n) |A| eps) with LAPACK's pivots; large matrices, and those that are not square, are probed.
template <Scalar T>
double lu_ratio(MatrixView<const T> A, MatrixView<const T> factors, std::span<const int> pivots);

}  // namespace program
