// Launches of kernels in src/cuda/entries that are no operations of the engine: each enqueues on a stream (a
// cudaStream_t) and checks. The operations themselves are members of CudaEngine, beside their kernels.
#pragma once

#include <core/engine.hpp>
#include <cuda/engine/launch_step.hpp>

namespace trifactor::cuda {

using namespace core;

// entries/entries.cuh
/// Two matrices that both lie by columns, or both by rows; a larger `to` is the identity beyond `from`.
template <class T>
void launch_copy_lower(void* stream, Items<const T> from, Items<T> to);

// permutation.cu
/// Keeps a stream busy for this long.
void launch_pause(void* stream, int nanoseconds);
struct ArgumentCopies;  // cuda/engine/graph_cache.hpp
/// The launch that makes these copies, whose list must stay where it is until the step is enqueued.
LaunchStep copy_arguments_step(ArgumentCopies&);
void launch_permutation(void* stream, const int* pivots, index_t k, int* p, index_t rows);

}  // namespace trifactor::cuda
