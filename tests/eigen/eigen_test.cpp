// Eigen's matrices as views, and EigenCholesky beside Eigen::SimplicialLLT.
#include <support/device.hpp>
#include <trifactor/eigen.hpp>
#include <trifactor/trifactor.hpp>

#include <Eigen/SparseCholesky>

namespace trifactor::test {
namespace {

constexpr int n = 60;

/// Hermitian positive definite, with both triangles or one.
template <class M>
M sparse_matrix(int uplo = 0, double corner = 6) {
  using T = typename M::Scalar;
  std::vector<Eigen::Triplet<T, typename M::StorageIndex>> entries;
  for (int j = 0; j < n; ++j) {
    entries.emplace_back(j, j, T(j == 17 ? corner : 6));
    for (const int i : {j + 1, j + 7}) {
      if (i >= n) continue;
      const T a = make_scalar<T>(real_t<T>(-1), real_t<T>(0.25) * real_t<T>(j % 3));
      if (uplo != Eigen::Upper) entries.emplace_back(i, j, a);
      if (uplo != Eigen::Lower) entries.emplace_back(j, i, conj(a));
    }
  }
  M A(n, n);
  A.setFromTriplets(entries.begin(), entries.end());
  return A;
}

/// With one triangle of `given` read, everything that Eigen's solvers offer.
template <class M, int uplo>
void expect_like_eigen(const M& given) {
  using T = typename M::Scalar;
  using Dense = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;
  const Dense A = sparse_matrix<M>(), B = Dense::Random(n, 3);
  const auto distance = [](const Dense& X, const Dense& Y) { return (X - Y).norm(); };
  EigenCholesky<M, uplo> F(test_queue());
  F.compute(given);
  ASSERT_EQ(F.info(), Eigen::Success);
  const Dense X = F.solve(B), L = F.matrixL();
  EXPECT_LT(distance(A * X, B), 1e3 * eps<T>);
  EXPECT_LT(distance(Dense(F.permutationP() * A) * F.permutationPinv(), L * L.adjoint()), 1e3 * eps<T>);
  real_t<T> log_det = 0;
  for (int i = 0; i < n; ++i) log_det += 2 * std::log(real(L(i, i)));
  EXPECT_NEAR(F.logDeterminant(), log_det, 1e4 * eps<T>);
  EXPECT_NEAR(F.determinant() / std::exp(log_det), 1, 1e4 * eps<T>);
  EXPECT_GT(F.factorization().rcond(), 0.01);
  F.setShift(real_t<T>(3), real_t<T>(2)).factorize(given);
  const Dense Y = F.solve(B);
  Dense shifted = A;
  shifted.diagonal() = T(2) * shifted.diagonal().eval() + Dense::Constant(n, 1, T(3));
  EXPECT_LT(distance(shifted * Y, B), 1e3 * eps<T>);
}

#if TRIFACTOR_HAS_C64
TEST(Eigen, CholeskyOfEitherTriangle) {
  using Columns = Eigen::SparseMatrix<std::complex<double>>;
  using Rows = Eigen::SparseMatrix<std::complex<double>, Eigen::RowMajor, std::int64_t>;
  for (const int stored : {0, int(Eigen::Lower)}) expect_like_eigen<Rows, Eigen::Lower>(sparse_matrix<Rows>(stored));
  for (const int stored : {0, int(Eigen::Upper)})
    expect_like_eigen<Columns, Eigen::Upper>(sparse_matrix<Columns>(stored));
}
#endif

#if TRIFACTOR_HAS_F64
TEST(Eigen, CholeskyStandsWhereEigensStood) {
  using M = Eigen::SparseMatrix<double>;
  const M A = sparse_matrix<M>();
  const Eigen::VectorXd b = Eigen::VectorXd::LinSpaced(n, 1, 2);
  const auto solved = [&]<class Solver>(Solver* solver) {
    solver->compute(A);
    EXPECT_EQ(solver->info(), Eigen::Success);
    const Eigen::VectorXd x = solver->solve(b);
    const M sparse = b.sparseView(), y = solver->solve(sparse);
    EXPECT_LT((Eigen::VectorXd(y) - x).norm(), 1e-13);
    return x;
  };
  Eigen::SimplicialLLT<M> theirs;
  EigenCholesky<M> ours;
  EXPECT_LT((solved(&ours) - solved(&theirs)).norm(), 1e-13);
  ours.setShift(1, 2), theirs.setShift(1, 2);
  EXPECT_LT((solved(&ours) - solved(&theirs)).norm(), 1e-13);
}
#endif

using Complex = std::complex<double>;
#if TRIFACTOR_HAS_C64
using Sparse = Eigen::SparseMatrix<Complex>;

TEST(Eigen, FailuresAreEigensAndMistakesAreOurs) {
  EigenCholesky<Sparse> F(test_queue());
  EXPECT_EQ(F.info(), Eigen::InvalidInput);
  EXPECT_THROW(F.factorize(sparse_matrix<Sparse>()), InvalidArgument);
  F.compute(sparse_matrix<Sparse>(0, -100));
  EXPECT_EQ(F.info(), Eigen::NumericalIssue);
  EXPECT_EQ(F.failedColumn(), 18);
  F.factorize(sparse_matrix<Sparse>());  // the same pattern
  EXPECT_EQ(F.info(), Eigen::Success);
  EXPECT_EQ(F.failedColumn(), 0);
  Sparse other = sparse_matrix<Sparse>();
  other.coeffRef(0, 30) = 1;  // no longer compressed, and one entry more
  EXPECT_THROW(pattern(other), InvalidArgument);
  EXPECT_THROW(F.factorize(other), InvalidArgument);
  EXPECT_EQ(F.compute(other).info(), Eigen::Success) << "a copy of it is compressed";
  Sparse moved = sparse_matrix<Sparse>();
  moved.coeffRef(1, 31) = 1;  // as many entries
  EXPECT_THROW(F.factorize(moved), InvalidArgument);
}

TEST(Eigen, NothingIsThereBeforeCompute) {
  EigenCholesky<Sparse> F(test_queue());
  for (int turn = 0; turn < 2; ++turn) {
    EXPECT_THROW(F.logDeterminant(), InvalidArgument);
    EXPECT_THROW(F.determinant(), InvalidArgument);
    EXPECT_THROW(F.matrixL(), InvalidArgument);
    EXPECT_THROW(F.permutationP(), InvalidArgument);
    EXPECT_THROW(F.factorization(), InvalidArgument);
    if (turn > 0) break;
    F.compute(sparse_matrix<Sparse>());
    EXPECT_THROW(F.analyzePattern(Sparse(3, 4)), InvalidArgument);
    EXPECT_EQ(F.info(), Eigen::InvalidInput) << "of the matrix before";
  }
}

TEST(Eigen, DenseMatricesAreViews) {
  Eigen::MatrixXcd A = Eigen::MatrixXcd::Random(9, 9), S = A * A.adjoint() + 9 * Eigen::MatrixXcd::Identity(9, 9);
  Eigen::MatrixXcd L = S, b = Eigen::MatrixXcd::Random(9, 2), x = b;
  Queue q = Queue::host();
  int info = -1;
  cholesky(q, Uplo::Lower, view(L), &info);
  cholesky_solve(q, Uplo::Lower, view(std::as_const(L)), view(x));
  EXPECT_EQ(info, 0);
  EXPECT_LT((S * x - b).norm(), 1e-12);

  const auto block = view(L.block(2, 3, 4, 5));
  EXPECT_EQ(&block(1, 2), &L(3, 5));
  EXPECT_EQ(block.ld, 9);
  Eigen::Ref<Eigen::MatrixXcd> ref = L.rightCols(4);
  EXPECT_EQ(&view(ref)(0, 0), &L(0, 5));
  const Eigen::VectorXcd v = Eigen::VectorXcd::Ones(7);
  static_assert(std::same_as<decltype(view(v)), MatrixView<const Complex>>);
  EXPECT_EQ(view(v).rows, 7);
  EXPECT_EQ(view(v).cols, 1);
  const Eigen::RowVectorXcd w = Eigen::RowVectorXcd::LinSpaced(4, 1, 4);
  EXPECT_EQ(&view(w)(0, 3), &w(3));
  EXPECT_EQ(view(Eigen::MatrixXcd(0, 3)).ld, 1);
  x = b;
  const Sparse sparse = sparse_matrix<Sparse>();
  EXPECT_TRUE(is_hermitian<Complex>(pattern(sparse), values_of(sparse)));
}
#endif

}  // namespace
}  // namespace trifactor::test
