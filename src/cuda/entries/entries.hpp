// The host side of the kernels in src/cuda/entries: each call enqueues its launches on a stream (a cudaStream_t) and
// checks them. Instantiated once for each scalar.
#pragma once

#include <core/engine.hpp>
#include <cuda/engine/launch_step.hpp>

namespace trifactor::cuda {

using namespace core;

// entries/entries.cuh
template <class T>
void launch_reset_info(void* stream, Items<T> A, bool square, int* info);
template <class T>
void launch_check_solve(void* stream, Items<const T> L, Items<T> X, const int* info, int* skip);
template <class T>
void launch_log_det(void* stream, Items<const T> L, Real<T>* out, const int* info);
template <class T>
void launch_set_identity(void* stream, Items<T> A, const int* info);
template <class T>
void launch_mirror_lower(void* stream, Items<T> A, const int* info);
template <class T>
void launch_column_norms(void* stream, Items<const T> A, NormOf of, double* norms);
template <class T>
void launch_save_lower(void* stream, Items<const T> A, T* saved, double* shifts);
template <class T>
void launch_shift_failed(void* stream, Items<T> A, const T* saved, Real<T> shift, const int* info, int* retry,
                         double* shifts);
/// Two matrices that both lie by columns, or both by rows; a larger `to` is the identity beyond `from`.
template <class T>
void launch_copy_lower(void* stream, Items<const T> from, Items<T> to);
template <class T>
void launch_copy_if_failed(void* stream, Items<T> X, const int* info, T* saved, bool back);

// entries/fronts.cuh: see SparseEngineFor
template <class T>
void launch_assemble(void* stream, const Fronts&, index_t begin, index_t end, index_t rows, const T* values,
                     Real<T> shift, T* factor, T* updates);
template <class T>
void launch_add_children(void* stream, const Fronts&, index_t begin, index_t end, index_t columns, T* Z);
template <class T>
void launch_copy_parents(void* stream, const Fronts&, index_t begin, index_t end, index_t columns, T* Z);
template <class T>
void launch_take_rows(void* stream, const Fronts&, Items<const T> B, bool permute, T* Z);
template <class T>
void launch_give_rows(void* stream, const Fronts&, const T* Z, bool permute, Items<T> B);
template <class T>
void launch_front_diagonal(void* stream, const Fronts&, const T* factor, T* out);
template <class T>
void launch_residual(void* stream, const MatrixRows&, const T* values, Real<T> shift, const T* b, const T* x, T* r,
                     Real<T>* error);
template <class T>
void launch_add(void* stream, index_t n, const T* r, T* x);

// permutation.cu
/// Keeps a stream busy for this long.
void launch_pause(void* stream, int nanoseconds);
struct ArgumentCopies;  // cuda/engine/graph_cache.hpp
/// The launch that makes these copies, whose list must stay where it is until the step is enqueued.
LaunchStep copy_arguments_step(ArgumentCopies&);
void launch_take_retry(void* stream, index_t count, const int* retry, int* info);
void launch_permutation(void* stream, const int* pivots, index_t k, int* p, index_t rows);

}  // namespace trifactor::cuda
