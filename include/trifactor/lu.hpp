// LU factorization with partial pivoting, P A = L U, of one general matrix of any shape.
#pragma once

#include <trifactor/queue.hpp>

#include <vector>

namespace trifactor {

/// A batch of one; lu() on larger batches does not exist yet.
template <class B>
concept SingleMatrix = Batch<B> && std::same_as<B, MatrixView<value_t<B>>>;

// Expert forms: see cholesky.hpp for what they have in common.

/// Factors A (m x n) in place. pivots[k], k < min(m, n), is LAPACK's 1-based row that was exchanged with row k + 1.
/// *info becomes 0, or the first k whose pivot is exactly zero; the factorization is complete either way.
/// A NaN wins the pivot search.
template <Batch B> requires SingleMatrix<B>
TRIFACTOR_API void lu(Queue&, B A, int* pivots, int* info, const LuOptions& = {});

/// Solves A X = B, A^T X = B or A^H X = B with the factors of a square A; X holds B on entry. Skipped when *info is not 0.
template <Batch B> requires SingleMatrix<B>
TRIFACTOR_API void lu_solve(Queue&, Op, const_batch_t<B> LU, const int* pivots, B X, const int* info = nullptr,
                            const SolveOptions& = {});

/// X = A^-1 from the factors of a square A; skipped when *info is not 0.
template <Scalar T>
TRIFACTOR_API void lu_inverse(Queue&, std::type_identity_t<MatrixView<const T>> LU, const int* pivots, MatrixView<T> X,
                              const int* info = nullptr, const SolveOptions& = {});

/// det A = sign * exp(log_abs) of a square A; sign has modulus 1, or is 0 for a singular matrix (log_abs = -inf).
template <Scalar T>
TRIFACTOR_API void lu_det(Queue&, std::type_identity_t<MatrixView<const T>> LU, const int* pivots, T* sign, real_t<T>* log_abs);

/// p[i], i < rows: which row of A stands in row i of P A (0-based), from k interchanges.
TRIFACTOR_API void permutation(Queue&, const int* pivots, index_t k, int* p, index_t rows);

template <Batch B> requires SingleMatrix<B>
TRIFACTOR_API std::size_t lu_scratch(const Queue&, B A, const LuOptions& = {});
template <Batch B> requires SingleMatrix<B>
TRIFACTOR_API std::size_t lu_solve_scratch(const Queue&, Op, const_batch_t<B> LU, B X,
                                           const SolveOptions& = {});   // and of lu_inverse

// Value forms: no queue, host matrices in and out, complete on return, exceptions.

struct LuValueOptions {
  Device device = Device::Auto;
  LuOptions options = {};
};

template <Scalar T>
struct Determinant {
  T sign;               // modulus 1, or 0 for a singular matrix
  real_t<T> log_abs;    // det A = sign * exp(log_abs)
};

/// Factors that know how to solve. Made by lu(A).
template <Scalar T>
class TRIFACTOR_API LuFactor {
 public:
  LuFactor(MatrixView<const T> A, const LuValueOptions& = {});
  LuFactor(LuFactor&&) noexcept;
  LuFactor& operator=(LuFactor&&) noexcept;
  ~LuFactor();

  /// 0, or the first k whose pivot is exactly zero.
  index_t singular_at() const noexcept;
  /// Solve and inverse throw Singular when singular_at() is not 0, InvalidArgument when A is not square.
  Matrix<T> solve(MatrixView<const T> B, Op = Op::None) const;
  Matrix<T> solve(const Matrix<T>& B, Op op = Op::None) const { return solve(B.view(), op); }
  std::vector<T> solve(const std::vector<T>& b, Op = Op::None) const;
  Matrix<T> inverse() const;
  Determinant<T> det() const;
  /// L below the diagonal (ones not stored), U on and above it.
  Matrix<T> factors() const;
  /// Row i of P A is row permutation()[i] of A.
  std::vector<int> permutation() const;
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
