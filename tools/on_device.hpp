// Large test matrices where they are factored: made in a CUDA queue's memory, copied there, and their factors judged.
// Only for programs that are built with CUDA.
#pragma once

#include "random_entry.hpp"

#include <trifactor/queue.hpp>

namespace program {

using trifactor::MatrixView;

/// The matrix that fill_positive_definite makes on the host from this seed. Complete on return.
template <Scalar T>
void fill_positive_definite(trifactor::Queue&, MatrixView<T> A, std::uint64_t seed);

/// Copies within the memory of a CUDA queue, in the queue's order. Not complete on return.
void enqueue_copy(trifactor::Queue&, const void* from, void* to, std::size_t bytes);

/// |A v - L (L^H v)| / (n |A| |v| eps) for that matrix and a random vector v, or the same with U^H U.
template <Scalar T>
double cholesky_probe(trifactor::Queue&, trifactor::Uplo, MatrixView<T> factor, std::uint64_t seed);

}  // namespace program
