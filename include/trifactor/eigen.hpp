// Eigen's matrices as views, and EigenCholesky, which can stand where Eigen::SimplicialLLT or
// Eigen::CholmodSupernodalLLT stood. Needs Eigen 3.3 or later; no other header includes this one. docs/eigen.md has
// examples.
#pragma once

#include <trifactor/sparse.hpp>

#include <Eigen/Core>
#include <Eigen/SparseCore>

#include <complex>
#include <optional>

namespace trifactor {

/// A dense matrix, vector, Eigen::Ref, Eigen::Map or block of Eigen's, column-major and without an inner stride, as a
/// view; of const entries where it is const. Takes part in every call: cholesky(q, Uplo::Lower, view(A), info).
template <class M>
requires std::derived_from<std::remove_cvref_t<M>, Eigen::DenseBase<std::remove_cvref_t<M>>>
auto view(M&& A) {
  using D = std::remove_cvref_t<M>;
  static_assert(!D::IsRowMajor || D::IsVectorAtCompileTime,
                "trifactor's matrices are column-major; a row-major A is A^T");
  static_assert(D::InnerStrideAtCompileTime == 1, "the entries of a column must follow one another");
  using T = std::remove_pointer_t<decltype(A.data())>;
  const index_t rows = A.rows(), cols = A.cols();
  const index_t ld = !D::IsVectorAtCompileTime ? index_t(A.outerStride()) : cols == 1 ? rows : 1;
  return MatrixView<T>{A.data(), rows, cols, std::max<index_t>(ld, std::max<index_t>(rows, 1))};
}

/// Where the entries of a compressed sparse matrix are: a view, to be analysed. values_of(A) come in the same order.
/// Throws InvalidArgument when A is not compressed.
template <class T, int Options, SparseIndex I>
Pattern<I> pattern(const Eigen::SparseMatrix<T, Options, I>& A, Stored stored = Stored::Full) {
  if (!A.isCompressed()) throw InvalidArgument("pattern: A is not compressed: A.makeCompressed() makes it so");
  return {.rows = A.rows(),
          .cols = A.cols(),
          .start = A.outerIndexPtr(),
          .index = A.innerIndexPtr(),
          .compressed = Options & Eigen::RowMajorBit ? Compressed::Rows : Compressed::Columns,
          .stored = stored,
          .sorted = false};
}
template <class T, int Options, SparseIndex I>
std::span<const T> values_of(const Eigen::SparseMatrix<T, Options, I>& A) {
  return {A.valuePtr(), std::size_t(A.nonZeros())};
}

/// A sparse Cholesky factorization with the interface of Eigen's: compute, or analyzePattern once and factorize often;
/// solve; info. One triangle of A is read. Mistakes throw, as everywhere in trifactor; a matrix that is not positive
/// definite does not: info() is then Eigen::NumericalIssue, as Eigen has it, and failedColumn() says where.
template <class SparseMatrix, int UpLo = Eigen::Lower>
class EigenCholesky : public Eigen::SparseSolverBase<EigenCholesky<SparseMatrix, UpLo>> {
  using Base = Eigen::SparseSolverBase<EigenCholesky>;
  using Base::m_isInitialized;
  static_assert(UpLo == Eigen::Lower || UpLo == Eigen::Upper, "UpLo is Eigen::Lower or Eigen::Upper");

 public:
  using MatrixType = SparseMatrix;
  using Scalar = typename SparseMatrix::Scalar;
  using RealScalar = real_t<Scalar>;
  using StorageIndex = typename SparseMatrix::StorageIndex;
  using Permutation = Eigen::PermutationMatrix<Eigen::Dynamic, Eigen::Dynamic, StorageIndex>;
  enum { ColsAtCompileTime = Eigen::Dynamic, MaxColsAtCompileTime = Eigen::Dynamic };

  EigenCholesky() : EigenCholesky(Queue::host()) {}
  /// On this queue: Queue::cuda() factors and solves on the GPU. Matrices and vectors stay Eigen's, in the host's
  /// memory.
  explicit EigenCholesky(Queue queue) : queue_(std::move(queue)) {}
  explicit EigenCholesky(const SparseMatrix& A) : EigenCholesky() { compute(A); }

  EigenCholesky& compute(const SparseMatrix& A) {
    analyzePattern(A);
    return factorize(A);
  }
  /// For all matrices with the entries of A in the same places.
  void analyzePattern(const SparseMatrix& A, const AnalyzeOptions& options = {}) {
    SparseMatrix copy;
    const SparseMatrix& given = compressed(A, copy);
    plan_.reset(), factor_.reset();
    info_ = Eigen::InvalidInput, m_isInitialized = false;
    Pattern<StorageIndex> p = pattern(given);
    if (UpLo == Eigen::Upper)  // the lower triangle of A^T
      p.compressed = p.compressed == Compressed::Rows ? Compressed::Columns : Compressed::Rows;
    const auto plan = analyze(p, options);
    start_ = Indices::Map(given.outerIndexPtr(), given.outerSize() + 1);
    index_ = Indices::Map(given.innerIndexPtr(), given.nonZeros());
    factor_.emplace(queue_, plan);
    plan_ = plan, info_ = Eigen::Success;
  }
  EigenCholesky& factorize(const SparseMatrix& A) {
    if (!plan_) throw InvalidArgument("EigenCholesky::factorize: analyzePattern must come first");
    if (A.rows() != plan_->n() || A.cols() != plan_->n() || A.nonZeros() != plan_->entries())
      throw InvalidArgument("EigenCholesky::factorize: A is not the matrix that was analysed: it is " +
                            std::to_string(A.rows()) + " x " + std::to_string(A.cols()) + " with " +
                            std::to_string(A.nonZeros()) + " entries, not of order " + std::to_string(plan_->n()) +
                            " with " + std::to_string(plan_->entries()));
    SparseMatrix copy;
    const SparseMatrix& given = compressed(A, copy);
    if ((start_ != Indices::Map(given.outerIndexPtr(), start_.size())).any() ||
        (index_ != Indices::Map(given.innerIndexPtr(), index_.size())).any())
      throw InvalidArgument("EigenCholesky::factorize: A has entries in other places than the matrix that was analysed");
    values_ = Values::Map(given.valuePtr(), given.nonZeros());
    for (Eigen::Index j = 0; j < given.outerSize() && scale_ != RealScalar(1); ++j)
      for (auto k = start_[j]; k < start_[j + 1]; ++k)
        if (index_[k] == StorageIndex(j)) values_[k] *= scale_;
    if constexpr (ComplexScalar<Scalar> && UpLo == Eigen::Upper) values_ = values_.conjugate().eval();  // A^T is not A
    const std::span<const Scalar> values(values_.data(), std::size_t(values_.size()));
    if (queue_.is_cuda())
      factor_->try_factor(Buffer<Scalar>(queue_, values), shift_);
    else
      factor_->try_factor(values, shift_);
    info_ = factor_->info() == 0 ? Eigen::Success : Eigen::NumericalIssue;
    m_isInitialized = true;
    return *this;
  }

  Eigen::ComputationInfo info() const { return info_; }
  /// 0, or the column that was not positive definite, counted from 1.
  index_t failedColumn() const { return factor_ ? std::max<index_t>(factor_->info(), 0) : 0; }
  Eigen::Index rows() const { return plan_ ? plan_->n() : 0; }
  Eigen::Index cols() const { return rows(); }

  /// From now on the diagonal is offset + scale * that of A, as in Eigen.
  EigenCholesky& setShift(const RealScalar& offset, const RealScalar& scale = 1) {
    shift_ = offset, scale_ = scale;
    return *this;
  }
  RealScalar determinant() const { return std::exp(logDeterminant()); }
  RealScalar logDeterminant() const { return factorization().log_det(); }
  /// L with P A P^-1 = L L^H.
  SparseMatrix matrixL() const {
    const CompressedColumns<Scalar> L = factorization().lower();
    std::vector<Eigen::Triplet<Scalar, StorageIndex>> entries;
    for (index_t j = 0; j < plan_->n(); ++j)
      for (index_t k = L.start[std::size_t(j)]; k < L.start[std::size_t(j) + 1]; ++k)
        entries.emplace_back(StorageIndex(L.index[std::size_t(k)]), StorageIndex(j), L.values[std::size_t(k)]);
    SparseMatrix matrix(rows(), rows());
    matrix.setFromTriplets(entries.begin(), entries.end());
    return matrix;
  }
  Permutation permutationP() const { return permutationPinv().inverse(); }
  Permutation permutationPinv() const {
    factorization();
    Permutation P(rows());
    for (index_t j = 0; j < plan_->n(); ++j) P.indices()[j] = StorageIndex(plan_->permutation()[std::size_t(j)]);
    return P;
  }
  /// The factorization beneath: rcond(), memory(), solve_refined() and the rest.
  const SparseCholesky<Scalar>& factorization() const {
    if (!factor_) throw InvalidArgument("EigenCholesky: compute or analyzePattern must come first");
    return *factor_;
  }

  /// What solve(b) comes to, for Eigen.
  template <class B, class X>
  void _solve_impl(const Eigen::MatrixBase<B>& b, Eigen::MatrixBase<X>& x) const {
    using Dense = Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic>;
    Dense solution = b;
    if (queue_.is_cuda()) {
      Matrix<Scalar> on_device(queue_, MatrixView<const Scalar>(view(solution)));
      factorization().solve(on_device);
      const Matrix<Scalar> result = on_device.to_host();
      solution = Dense::Map(result.data(), solution.rows(), solution.cols());
    } else {
      factorization().solve(view(solution));
    }
    x = solution;
  }
  using Base::_solve_impl;

 private:
  using Values = Eigen::Array<Scalar, Eigen::Dynamic, 1>;
  using Indices = Eigen::Array<StorageIndex, Eigen::Dynamic, 1>;

  /// A, or a compressed copy of it.
  static const SparseMatrix& compressed(const SparseMatrix& A, SparseMatrix& copy) {
    if (A.isCompressed()) return A;
    copy = A;
    copy.makeCompressed();
    return copy;
  }

  mutable Queue queue_;
  std::shared_ptr<const SparsePlan> plan_;
  std::optional<SparseCholesky<Scalar>> factor_;
  Indices start_, index_;  // of the matrix that was analysed
  Values values_;
  RealScalar shift_ = 0, scale_ = 1;
  Eigen::ComputationInfo info_ = Eigen::InvalidInput;
};

}  // namespace trifactor
