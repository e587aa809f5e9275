// Cholesky factorization A = L L^H (Lower) or A = U^H U (Upper) of symmetric and hermitian positive definite matrices.
#pragma once

#include <trifactor/options.hpp>
#include <trifactor/queue.hpp>

#include <vector>

namespace trifactor {

// Expert forms. The first argument says where and in which order; all memory, info included, is the queue's.
// They are asynchronous on CUDA queues and complete on return on host queues. A caller's mistake throws
// InvalidArgument before anything is enqueued. See views.hpp for one matrix and the kinds of batches, makers.hpp for how to make
// them: both views of a call are of one kind, with as many items. A Matrix passes as a view, a Buffer as a view of one column.
// info has an entry for each item (one for a single matrix); calls that factor write it, whatever it holds, and calls that follow
// read it, or take null for "all are good".

/// Factors every item of A, square, in place; the other triangle is neither read nor written. info[i] becomes 0, or the order k
/// of the first leading minor whose pivot is not positive and finite: the leading triangle of order k-1 is then valid,
/// the rest of that item's triangle unspecified. An impossible item of a ragged batch gets -1 and is left alone.
template <WritableBatch B>
TRIFACTOR_API void cholesky(Queue&, Uplo, B A, ArrayView<int> info, const CholeskyOptions& = {});

/// Factors every item of A and solves A X = B with it, in one pass where the items are small; X holds B on entry: as many rows as
/// A, any number of columns, in a ragged batch each item its own. X is left alone where the factorization fails; a ragged item whose
/// X does not fit gets info = -1.
template <WritableBatch B>
TRIFACTOR_API void cholesky_factor_solve(Queue&, Uplo, B A, std::type_identity_t<B> X, ArrayView<int> info,
                                         const CholeskyOptions& = {});

/// Solves A X = B with the factor of A; X holds B on entry. Items whose info is not 0 are skipped, and so are ragged ones that do not
/// fit.
template <WritableBatch B>
TRIFACTOR_API void cholesky_solve(Queue&, Uplo, const_batch_t<B> L, B X, ArrayView<const int> info = nullptr,
                                  const SolveOptions& = {});

/// log_det[i] = log det A of item i, from its factor; 0 for an item of order 0, NaN for items whose info is not 0 and for ragged ones
/// that are impossible or not square.
template <Batch B>
TRIFACTOR_API void cholesky_log_det(Queue&, Uplo, B L, ArrayView<real_t<value_t<B>>> log_det, ArrayView<const int> info = nullptr);

/// X = A^-1, both triangles, from the factor of A, which stays as it is. Items whose info is not 0 are skipped.
template <WritableBatch B>
TRIFACTOR_API void cholesky_inverse(Queue&, Uplo, const_batch_t<B> L, B X, ArrayView<const int> info = nullptr,
                                    const SolveOptions& = {});

// Scratch memory, in bytes, that the call of the same name takes from the queue: see Queue::reserve.
template <WritableBatch B>
TRIFACTOR_API std::size_t cholesky_scratch(const Queue&, Uplo, B A, const CholeskyOptions& = {});
template <WritableBatch B>
TRIFACTOR_API std::size_t cholesky_solve_scratch(const Queue&, Uplo, const_batch_t<B> L, B X,
                                                 const SolveOptions& = {});
template <WritableBatch B>
TRIFACTOR_API std::size_t cholesky_factor_solve_scratch(const Queue&, Uplo, B A, std::type_identity_t<B> X,
                                                        const CholeskyOptions& = {});
template <WritableBatch B>
TRIFACTOR_API std::size_t cholesky_inverse_scratch(const Queue&, Uplo, const_batch_t<B> L, B X,
                                                   const SolveOptions& = {});

// All of them with what has a view, a Matrix or a Buffer.

template <HasView M> requires WritableBatch<view_t<M>>
void cholesky(Queue& q, Uplo uplo, M& A, ArrayView<int> info, const CholeskyOptions& options = {}) {
  cholesky(q, uplo, A.view(), info, options);
}
template <HasView M> requires WritableBatch<view_t<M>>
void cholesky_factor_solve(Queue& q, Uplo uplo, M& A, std::type_identity_t<view_t<M>> X, ArrayView<int> info,
                           const CholeskyOptions& options = {}) {
  cholesky_factor_solve(q, uplo, A.view(), X, info, options);
}
template <HasView M> requires WritableBatch<view_t<M>>
void cholesky_solve(Queue& q, Uplo uplo, const_batch_t<view_t<M>> L, M& X, ArrayView<const int> info = nullptr,
                    const SolveOptions& options = {}) {
  cholesky_solve(q, uplo, L, X.view(), info, options);
}
template <HasView M>
void cholesky_log_det(Queue& q, Uplo uplo, M& L, ArrayView<real_t<value_t<view_t<M>>>> log_det,
                      ArrayView<const int> info = nullptr) {
  cholesky_log_det(q, uplo, L.view(), log_det, info);
}
template <HasView M> requires WritableBatch<view_t<M>>
void cholesky_inverse(Queue& q, Uplo uplo, const_batch_t<view_t<M>> L, M& X, ArrayView<const int> info = nullptr,
                      const SolveOptions& options = {}) {
  cholesky_inverse(q, uplo, L, X.view(), info, options);
}
template <HasView M> requires WritableBatch<view_t<M>>
std::size_t cholesky_scratch(const Queue& q, Uplo uplo, M& A, const CholeskyOptions& options = {}) {
  return cholesky_scratch(q, uplo, A.view(), options);
}
template <HasView M> requires WritableBatch<view_t<M>>
std::size_t cholesky_factor_solve_scratch(const Queue& q, Uplo uplo, M& A, std::type_identity_t<view_t<M>> X,
                                          const CholeskyOptions& options = {}) {
  return cholesky_factor_solve_scratch(q, uplo, A.view(), X, options);
}
template <HasView M> requires WritableBatch<view_t<M>>
std::size_t cholesky_solve_scratch(const Queue& q, Uplo uplo, const_batch_t<view_t<M>> L, M& X, const SolveOptions& options = {}) {
  return cholesky_solve_scratch(q, uplo, L, X.view(), options);
}
template <HasView M> requires WritableBatch<view_t<M>>
std::size_t cholesky_inverse_scratch(const Queue& q, Uplo uplo, const_batch_t<view_t<M>> L, M& X, const SolveOptions& options = {}) {
  return cholesky_inverse_scratch(q, uplo, L, X.view(), options);
}

// Value forms: no queue, host matrices in and out, complete on return, exceptions.

/// A factor that knows how to solve. Made by cholesky(A).
template <Scalar T>
class TRIFACTOR_API CholeskyFactor {
  static_assert(BuiltScalar<T>, "this build of the library does not hold the scalar: see TRIFACTOR_SCALARS");

 public:
  /// Throws NotPositiveDefinite.
  CholeskyFactor(MatrixView<const T> A, const CholeskyValueOptions& = {});
  CholeskyFactor(CholeskyFactor&&) noexcept;
  CholeskyFactor& operator=(CholeskyFactor&&) noexcept;
  ~CholeskyFactor();

  Matrix<T> solve(MatrixView<const T> B) const;
  std::vector<T> solve(const std::vector<T>& b) const;
  std::vector<T> solve(std::initializer_list<T> b) const { return solve(std::vector<T>(b)); }
  real_t<T> log_det() const;
  Matrix<T> inverse() const;
  /// An estimate of 1 / (|A| |A^-1|), one-norms: 1 at best, and solutions lose about -log10 of it of their digits. Never below the
  /// true value but for rounding, and seldom above three times it. A few solves with one right-hand side; 0 where they overflow.
  real_t<T> rcond() const;
  /// The factor itself, with zeros in the other triangle.
  Matrix<T> factor() const;
  /// What was added to the diagonal of A: 0, unless shift_tries allowed it and the first factorization failed.
  double shift() const noexcept;
  Uplo uplo() const noexcept;
  /// Where the factor lives: Host or Cuda.
  Device device() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// cholesky(A).solve(b)
template <Scalar T>
CholeskyFactor<T> cholesky(const Matrix<T>& A, const CholeskyValueOptions& options = {}) { return {A.view(), options}; }
template <class T>
CholeskyFactor<std::remove_const_t<T>> cholesky(MatrixView<T> A, const CholeskyValueOptions& options = {}) { return {A, options}; }

}  // namespace trifactor
