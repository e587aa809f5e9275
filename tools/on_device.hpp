// Large test matrices where they are factored: made in a CUDA queue's memory, and their factors judged there. Only for
// programs that are built with CUDA.
#pragma once

#include "random_entry.hpp"

#include <trifactor/queue.hpp>

namespace program {

using trifactor::MatrixView;

/// The matrix that fill_positive_definite makes on the host from this seed. Complete on return.
template <Scalar T>
void fill_positive_definite(trifactor::Queue&, MatrixView<T> A, std::uint64_t seed);

/// |A v - L (L^H v)| / (n |A| |v| eps) for that matrix and a random vector v, or the same with U^H U.
template <Scalar T>
double cholesky_probe(trifactor::Queue&, trifactor::Uplo, MatrixView<T> factor, std::uint64_t seed);

}  // namespace program
