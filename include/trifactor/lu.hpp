// LU factorization with partial pivoting, P A = L U, of general matrices of any shape.
#pragma once

#include <trifactor/options.hpp>
#include <trifactor/queue.hpp>

#include <vector>

namespace trifactor {

// Expert forms: see cholesky.hpp for what they have in common.

/// Factors every item of A (m x n, any shape) in place. pivots has room for count * min(m, n) of them, in the queue's memory. Item i
/// has its own at pivots + i * min(m, n), for a ragged batch i * min(max_rows, max_cols): pivots[k] is LAPACK's 1-based row that was
/// exchanged with row k + 1, and a ragged item has as many as its own sizes allow. info[i] becomes 0, or the first k whose pivot is
/// exactly zero; the factorization is complete either way. A NaN wins the pivot search. An impossible item of a ragged batch gets -1
/// and is left alone.
template <WritableBatch B>
TRIFACTOR_API void lu(Queue&, B A, ArrayView<int> pivots, ArrayView<int> info, const LuOptions& = {});

/// Factors every item of a batch of square matrices and solves A X = B with it; X holds B on entry, any number of columns, in a
/// ragged batch each item its own. X is left alone where a pivot is zero; a ragged item that is not square or whose X does not fit
/// gets info = -1.
template <WritableBatch B>
TRIFACTOR_API void lu_factor_solve(Queue&, B A, ArrayView<int> pivots, std::type_identity_t<B> X, ArrayView<int> info,
                                   const LuOptions& = {});

/// Solves A X = B, A^T X = B or A^H X = B with the factors of a square A; X holds B on entry. Items whose info is not 0 are
/// skipped.
template <WritableBatch B>
TRIFACTOR_API void lu_solve(Queue&, Op, const_batch_t<B> LU, ArrayView<const int> pivots, B X,
                            ArrayView<const int> info = nullptr,
                            const SolveOptions& = {});

/// X = A^-1 from the factors of a square A, which stay as they are. Items whose info is not 0 are skipped.
template <WritableBatch B>
TRIFACTOR_API void lu_inverse(Queue&, const_batch_t<B> LU, ArrayView<const int> pivots, B X,
                            ArrayView<const int> info = nullptr,
                              const SolveOptions& = {});

/// det A = sign[i] * exp(log_abs[i]) of every item, square; the sign has modulus 1, or is 0 for a singular matrix
/// (log_abs = -inf). NaN for items of a ragged batch that are impossible or not square.
template <Batch B>
TRIFACTOR_API void lu_det(Queue&, B LU, ArrayView<const int> pivots, ArrayView<value_t<B>> sign,
                          ArrayView<real_t<value_t<B>>> log_abs);

/// p[i], i < rows: which row of A stands in row i of P A (0-based), from k interchanges.
TRIFACTOR_API void lu_row_permutation(Queue&, ArrayView<const int> pivots, index_t k, ArrayView<int> p, index_t rows);

template <WritableBatch B>
TRIFACTOR_API std::size_t lu_scratch(const Queue&, B A, const LuOptions& = {});
template <WritableBatch B>
TRIFACTOR_API std::size_t lu_factor_solve_scratch(const Queue&, B A, std::type_identity_t<B> X, const LuOptions& = {});
template <WritableBatch B>
TRIFACTOR_API std::size_t lu_solve_scratch(const Queue&, Op, const_batch_t<B> LU, B X, const SolveOptions& = {});
template <WritableBatch B>
TRIFACTOR_API std::size_t lu_inverse_scratch(const Queue&, const_batch_t<B> LU, B X, const SolveOptions& = {});

// All of them with what has a view, a Matrix or a Buffer.

template <HasView M> requires WritableBatch<view_t<M>>
void lu(Queue& q, M& A, ArrayView<int> pivots, ArrayView<int> info, const LuOptions& options = {}) {
  lu(q, A.view(), pivots, info, options);
}
template <HasView M> requires WritableBatch<view_t<M>>
void lu_factor_solve(Queue& q, M& A, ArrayView<int> pivots, std::type_identity_t<view_t<M>> X, ArrayView<int> info,
                     const LuOptions& options = {}) {
  lu_factor_solve(q, A.view(), pivots, X, info, options);
}
template <HasView M> requires WritableBatch<view_t<M>>
void lu_solve(Queue& q, Op op, const_batch_t<view_t<M>> LU, ArrayView<const int> pivots, M& X,
              ArrayView<const int> info = nullptr, const SolveOptions& options = {}) {
  lu_solve(q, op, LU, pivots, X.view(), info, options);
}
template <HasView M> requires WritableBatch<view_t<M>>
void lu_inverse(Queue& q, const_batch_t<view_t<M>> LU, ArrayView<const int> pivots, M& X,
                ArrayView<const int> info = nullptr, const SolveOptions& options = {}) {
  lu_inverse(q, LU, pivots, X.view(), info, options);
}
template <HasView M>
void lu_det(Queue& q, M& LU, ArrayView<const int> pivots, ArrayView<value_t<view_t<M>>> sign,
            ArrayView<real_t<value_t<view_t<M>>>> log_abs) {
  lu_det(q, LU.view(), pivots, sign, log_abs);
}
template <HasView M> requires WritableBatch<view_t<M>>
std::size_t lu_scratch(const Queue& q, M& A, const LuOptions& options = {}) {
  return lu_scratch(q, A.view(), options);
}
template <HasView M> requires WritableBatch<view_t<M>>
std::size_t lu_factor_solve_scratch(const Queue& q, M& A, std::type_identity_t<view_t<M>> X, const LuOptions& options = {}) {
  return lu_factor_solve_scratch(q, A.view(), X, options);
}
template <HasView M> requires WritableBatch<view_t<M>>
std::size_t lu_solve_scratch(const Queue& q, Op op, const_batch_t<view_t<M>> LU, M& X, const SolveOptions& options = {}) {
  return lu_solve_scratch(q, op, LU, X.view(), options);
}
template <HasView M> requires WritableBatch<view_t<M>>
std::size_t lu_inverse_scratch(const Queue& q, const_batch_t<view_t<M>> LU, M& X, const SolveOptions& options = {}) {
  return lu_inverse_scratch(q, LU, X.view(), options);
}

// Value forms: no queue, host matrices in and out, complete on return, exceptions.

template <Scalar T>
struct Determinant {
  T sign;               // modulus 1, or 0 for a singular matrix
  real_t<T> log_abs;    // det A = sign * exp(log_abs)
};

/// Factors that know how to solve. Made by lu(A).
template <Scalar T>
class TRIFACTOR_API LuFactor {
  static_assert(BuiltScalar<T>, "this build of the library does not hold the scalar: see TRIFACTOR_SCALARS");

 public:
  LuFactor(MatrixView<const T> A, const LuValueOptions& = {});
  LuFactor(LuFactor&&) noexcept;
  LuFactor& operator=(LuFactor&&) noexcept;
  ~LuFactor();

  /// 0, or the first k whose pivot is exactly zero.
  index_t singular_at() const noexcept;
  /// Solve and inverse throw Singular when singular_at() is not 0, InvalidArgument when A is not square.
  Matrix<T> solve(MatrixView<const T> B, Op = Op::None) const;
  std::vector<T> solve(const std::vector<T>& b, Op = Op::None) const;
  std::vector<T> solve(std::initializer_list<T> b, Op op = Op::None) const { return solve(std::vector<T>(b), op); }
  Matrix<T> inverse() const;
  /// The estimate of CholeskyFactor::rcond; 0 for a singular matrix and one with NaN. Throws InvalidArgument when A is not square.
  real_t<T> rcond() const;
  Determinant<T> det() const;
  /// L below the diagonal (ones not stored), U on and above it.
  Matrix<T> factors() const;
  /// Row i of P A is row row_permutation()[i] of A.
  std::vector<int> row_permutation() const;
  Device device() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

template <Scalar T>
LuFactor<T> lu(const Matrix<T>& A, const LuValueOptions& options = {}) { return {A.view(), options}; }
template <class T>
LuFactor<std::remove_const_t<T>> lu(MatrixView<T> A, const LuValueOptions& options = {}) { return {A, options}; }

}  // namespace trifactor
