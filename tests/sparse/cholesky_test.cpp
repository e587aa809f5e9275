// SparseCholesky: generated matrices of every shape, failures at the exact column, and what a second factorization costs.
#include <sparse/matrices.hpp>
#include <support/device.hpp>
#include <support/ratios.hpp>
#include <trifactor/testing.hpp>

#include <thread>

namespace trifactor::test {
namespace {

constexpr Stored all_stored[] = {Stored::Lower, Stored::Upper, Stored::Full};
constexpr Ordering orderings[] = {Ordering::Natural, Ordering::Amd, Ordering::Metis};

template <class T>
class SparseCholeskyTest : public ::testing::Test {
 protected:
  Random random;
  Queue q = Queue::host();

  /// P^T L as a full matrix, whose product with its adjoint is A.
  HostMatrix<T> factor_of(const SparseCholesky<T>& F) {
    const auto L = F.lower();
    const auto& p = F.plan().permutation();
    const index_t n = F.plan().n();
    HostMatrix<T> G(n, n);
    for (index_t j = 0; j < n; ++j)
      for (index_t k = L.start[j]; k < L.start[j + 1]; ++k) G(p[L.index[k]], j) = L.values[k];
    return G;
  }
  /// |A + shift I - (P^T L) (P^T L)^H| / (n |A| eps)
  double factor_ratio(const SparseMatrix<T>& A, const SparseCholesky<T>& F, double shift = 0) {
    if (A.n == 0) return 0;
    const auto G = widen(factor_of(F));
    auto W = widen(A.full());
    for (index_t j = 0; j < A.n; ++j) W(j, j) = real(W(j, j)) + shift;
    return detail::ratio<T>(norm1(difference(product(G, transformed(Op::ConjTranspose, G)), W)), double(A.n), norm1(W));
  }
  void expect_right(const SparseMatrix<T>& A, const SparseCholesky<T>& F, double shift = 0) {
    EXPECT_EQ(F.info(), 0);
    EXPECT_LT(factor_ratio(A, F, shift), threshold);
  }
  /// |B - A X| / (|A| |X| eps), the worst column, from the entries alone.
  double residual_ratio(const SparseMatrix<T>& A, const HostMatrix<T>& X, const HostMatrix<T>& B) {
    return A.solve_ratio(X, B);
  }
  std::vector<SparseMatrix<T>> shapes() {
    std::vector<SparseMatrix<T>> all;
    for (index_t n : {0, 1, 2, 3, 10}) all.push_back(full_matrix<T>(random, n));
    for (index_t n : {1, 2, 50}) all.push_back(diagonal_matrix<T>(random, n));
    all.push_back(poisson2d<T>(random, 12));
    all.push_back(poisson3d<T>(random, 6));
    all.push_back(arrow<T>(random, 40, true));
    all.push_back(arrow<T>(random, 40, false));
    all.push_back(banded<T>(random, 60, 4));
    all.push_back(full_matrix<T>(random, 90));
    all.push_back(disconnected<T>(random, 5, 12));
    for (int k = 0; k < 6; ++k) all.push_back(random_pattern<T>(random, random.integer(5, 120), random.uniform(0.5, 4)));
    return all;
  }
};
TYPED_TEST_SUITE(SparseCholeskyTest, Scalars, ScalarNames);

TYPED_TEST(SparseCholeskyTest, FactorsAndSolvesEveryShape) {
  using T = TypeParam;
  for (const auto& A : this->shapes())
    for (Stored stored : all_stored)
      for (Ordering ordering : orderings) {
        SCOPED_TRACE(::testing::Message() << A.name << " n=" << A.n << " stored " << int(stored) << " ordering "
                                          << int(ordering));
        const auto given = A.stored(stored);
        SparseCholesky<T> F(this->q, analyze(given.pattern(), {.ordering = ordering}));
        EXPECT_EQ(F.info(), -1);
        F.factor(given.values);
        this->expect_right(A, F);
        for (index_t k : {1, 2, 7, 35}) {
          const auto B = random_matrix<T>(this->random, A.n, k, 2);
          auto X = B;
          F.solve(X.view());
          EXPECT_TRUE(same_frame(B, X)) << "wrote outside B";
          EXPECT_LT(A.solve_ratio(X, B), threshold) << k << " right-hand sides";
        }
      }
}

// Many fronts of many sizes: branches side by side, and BLAS inside the largest.
TYPED_TEST(SparseCholeskyTest, FactorsWithBranchesOnAnyNumberOfThreads) {
  using T = TypeParam;
  for (const auto& A : {poisson3d<T>(this->random, 14), poisson2d<T>(this->random, 60), banded<T>(this->random, 3000, 9),
                        disconnected<T>(this->random, 40, 60)})
    for (int threads : {1, 2, 3, 5}) {
      SCOPED_TRACE(::testing::Message() << A.name << " n=" << A.n << " threads=" << threads);
      Queue q = Queue::host(threads);
      const auto given = A.stored(Stored::Lower);
      SparseCholesky<T> F(q, analyze(given.pattern()));
      F.factor(given.values);
      for (index_t k : {1, 5, 40}) {
        const auto B = random_matrix<T>(this->random, A.n, k);
        auto X = B;
        F.solve(X.view());
        EXPECT_LT(A.solve_ratio(X, B), threshold) << k << " right-hand sides";
      }
    }
}

TYPED_TEST(SparseCholeskyTest, SolvesInParts) {
  using T = TypeParam;
  const auto A = poisson2d<T>(this->random, 9);
  const auto given = A.stored(Stored::Upper);
  SparseCholesky<T> F(this->q, analyze(given.pattern()));
  F.factor(given.values);
  const auto G = this->factor_of(F);  // P^T L
  const auto& p = F.plan().permutation();
  HostMatrix<T> L(A.n, A.n);
  for (index_t j = 0; j < A.n; ++j)
    for (index_t i = 0; i < A.n; ++i) L(i, j) = G(p[i], j);
  const auto B = random_matrix<T>(this->random, A.n, 3);

  auto X = B;
  F.solve(X.view(), SparsePart::Permute);
  for (index_t c = 0; c < 3; ++c)
    for (index_t i = 0; i < A.n; ++i) ASSERT_EQ(X(i, c), B(p[i], c));
  F.solve(X.view(), SparsePart::PermuteBack);
  EXPECT_TRUE(same_bits(X, B));
  F.solve(X.view(), SparsePart::Lower);
  EXPECT_LT(solve_ratio(Op::None, L, X, B), threshold);
  X = B;
  F.solve(X.view(), SparsePart::LowerAdjoint);
  EXPECT_LT(solve_ratio(Op::ConjTranspose, L, X, B), threshold);

  X = B;
  auto Y = B;
  for (SparsePart part : {SparsePart::Permute, SparsePart::Lower, SparsePart::LowerAdjoint, SparsePart::PermuteBack})
    F.solve(X.view(), part);
  F.solve(Y.view());
  EXPECT_TRUE(same_bits(X, Y));
}

TYPED_TEST(SparseCholeskyTest, ReportsTheColumnThatFails) {
  using T = TypeParam;
  const auto A = banded<T>(this->random, 40, 3);
  for (Ordering ordering : orderings)
    for (index_t bad = 0; bad < A.n; ++bad)
      for (const real_t<T> value : {real_t<T>(-1), real_t<T>(0), nan<T>, inf<T>}) {
        SCOPED_TRACE(::testing::Message() << "column " << bad << " value " << value << " ordering " << int(ordering));
        // No pivot before the one that is made bad suffers from it, and none after it is reached.
        auto given = A.stored(Stored::Lower);
        SparseCholesky<T> F(this->q, analyze(given.pattern(), {.ordering = ordering}));
        const T good = given.at(bad, bad);
        given.at(bad, bad) = T(value);
        EXPECT_EQ(F.try_factor(given.values), bad + 1);
        EXPECT_EQ(F.info(), bad + 1);
        try {
          F.factor(given.values);
          ADD_FAILURE() << "no exception";
        } catch (const NotPositiveDefinite& e) {
          EXPECT_EQ(e.order(), bad + 1);
        }
        EXPECT_THROW(F.log_det(), InvalidArgument);
        given.at(bad, bad) = good;
        F.factor(given.values);
        this->expect_right(A, F);
      }
}

TYPED_TEST(SparseCholeskyTest, ReportsTheSameColumnWithAnyNumberOfThreads) {
  using T = TypeParam;
  const auto A = poisson3d<T>(this->random, 12);
  auto given = A.stored(Stored::Lower);
  const auto plan = analyze(given.pattern());
  for (int k = 0; k < 20; ++k) {
    auto values = given;
    const index_t a = this->random.integer(0, A.n - 1), b = this->random.integer(0, A.n - 1);
    values.at(a, a) = T(-1), values.at(b, b) = T(nan<T>);
    index_t first = A.n;
    for (index_t j = A.n - 1; j >= 0; --j)
      if (plan->permutation()[j] == a || plan->permutation()[j] == b) first = plan->permutation()[j];
    for (int threads : {1, 2, 4}) {
      Queue q = Queue::host(threads);
      SparseCholesky<T> F(q, plan);
      EXPECT_EQ(F.try_factor(values.values), first + 1);
      EXPECT_EQ(F.try_factor(given.values), 0);
    }
  }
}

TYPED_TEST(SparseCholeskyTest, AddsAShift) {
  using T = TypeParam;
  const auto A = poisson2d<T>(this->random, 8);
  const auto given = A.stored(Stored::Full);
  SparseCholesky<T> F(this->q, analyze(given.pattern()));
  EXPECT_NE(F.try_factor(given.values, real_t<T>(-100)), 0);
  F.factor(given.values, real_t<T>(2.5));
  this->expect_right(A, F, 2.5);
  F.factor(given.values);
  this->expect_right(A, F);
}

TYPED_TEST(SparseCholeskyTest, RefactorsWithoutAllocatingAndTheSameBits) {
  using T = TypeParam;
  for (int threads : {1, 2, 3}) {
    Queue q = Queue::host(threads);
    const auto A = poisson3d<T>(this->random, 12), other = A.with_new_values(this->random);
    const auto first = A.stored(Stored::Lower), second = other.stored(Stored::Lower);
    SparseCholesky<T> F(q, analyze(first.pattern()));
    const auto B = random_matrix<T>(this->random, A.n, 1);
    auto X = B, Y = B;
    const index_t before = testing::allocation_count();
    F.factor(first.values);
    F.solve(X.view());
    EXPECT_EQ(testing::allocation_count(), before);
    const auto L = F.lower();
    F.factor(second.values);
    Y = B;
    F.solve(Y.view());
    EXPECT_LT(other.solve_ratio(Y, B), threshold);
    F.factor(first.values);
    Y = B;
    F.solve(Y.view());
    EXPECT_EQ(testing::allocation_count(), before);
    EXPECT_TRUE(same_bits(X, Y));
    EXPECT_EQ(L.values, F.lower().values);
  }
}

TYPED_TEST(SparseCholeskyTest, ManyThreadsShareAPlan) {
  using T = TypeParam;
  const auto A = poisson2d<T>(this->random, 30);
  const auto given = A.stored(Stored::Lower);
  const auto plan = analyze(given.pattern());
  std::vector<std::thread> threads;
  std::vector<double> ratios(4, nan<double>);
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      Random random(test_seed() + std::uint64_t(t));
      Queue q = Queue::host(1 + t % 2);
      SparseCholesky<T> F(q, plan);
      const auto mine = A.with_new_values(random);
      const auto B = random_matrix<T>(random, A.n, 2);
      for (int k = 0; k < 5; ++k) {
        F.factor(mine.stored(Stored::Lower).values);
        auto X = B;
        F.solve(X.view());
        ratios[t] = mine.solve_ratio(X, B);
      }
    });
  for (auto& thread : threads) thread.join();
  for (double ratio : ratios) EXPECT_LT(ratio, threshold);
}

TYPED_TEST(SparseCholeskyTest, KnowsItsDeterminantAndDiagonal) {
  using T = TypeParam;
  const auto A = random_pattern<T>(this->random, 60, 3);
  const auto given = A.stored(Stored::Lower);
  SparseCholesky<T> F(this->q, analyze(given.pattern()));
  F.factor(given.values);
  const auto L = F.lower();
  const auto d = F.diagonal();
  ASSERT_EQ(index_t(d.size()), A.n);
  double sum = 0, size = 1;
  for (index_t j = 0; j < A.n; ++j) {
    EXPECT_EQ(L.index[L.start[j]], j);
    EXPECT_EQ(L.values[L.start[j]], T(d[j]));
    sum += 2 * std::log(double(d[j])), size += std::abs(std::log(double(d[j])));
  }
  EXPECT_NEAR(double(F.log_det()), sum, 10 * size * eps<T>);
}

TYPED_TEST(SparseCholeskyTest, RefinesToWorkingAccuracy) {
  using T = TypeParam;
  const auto A = poisson2d<T>(this->random, 20);
  const auto given = A.stored(Stored::Full);
  SparseCholesky<T> F(this->q, analyze(given.pattern()));
  F.factor(given.values);
  const auto B = random_matrix<T>(this->random, A.n, 3, 1);
  auto X = B;
  const auto refined = F.solve_refined(given.values, X.view());
  EXPECT_LE(refined.backward_error, 8 * eps<T>);
  EXPECT_LT(A.solve_ratio(X, B), 10);
  EXPECT_TRUE(same_frame(B, X));
  // With the factor of a nearby matrix, refinement still solves with the one whose values are given.
  auto nearby = given;
  for (auto& v : nearby.values) v *= real_t<T>(1.01);
  F.factor(nearby.values);
  X = B;
  EXPECT_LE(F.solve_refined(given.values, X.view()).backward_error, 8 * eps<T>);
  EXPECT_LT(A.solve_ratio(X, B), 10);
}

TYPED_TEST(SparseCholeskyTest, RefusesWhatDoesNotFit) {
  using T = TypeParam;
  const auto A = banded<T>(this->random, 10, 2);
  const auto given = A.stored(Stored::Lower);
  SparseCholesky<T> F(this->q, analyze(given.pattern()));
  auto X = random_matrix<T>(this->random, 10, 1);
  EXPECT_THROW(F.solve(X.view()), InvalidArgument) << "nothing factored";
  EXPECT_THROW(F.factor(std::span(given.values).first(3)), InvalidArgument);
  F.factor(given.values);
  auto Y = random_matrix<T>(this->random, 9, 1);
  EXPECT_THROW(F.solve(Y.view()), InvalidArgument);
  EXPECT_THROW(F.solve(std::vector<T>(11)), InvalidArgument);
  EXPECT_THROW(SparseCholesky<T>(this->q, nullptr), InvalidArgument);
  auto moved = std::move(F);
  moved.solve(X.view());
}

TYPED_TEST(SparseCholeskyTest, SurvivesEveryAllocationThatFails) {
  using T = TypeParam;
  const auto A = poisson2d<T>(this->random, 10);
  const auto given = A.stored(Stored::Lower);
  const auto plan = analyze(given.pattern());
  for (index_t k = 1;; ++k) {
    ASSERT_LT(k, 100);
    testing::fail_allocation(k);
    try {
      SparseCholesky<T> F(this->q, plan);
      auto X = random_matrix<T>(this->random, A.n, 5);
      F.factor(given.values);
      F.solve(X.view());
      testing::fail_allocation(0);
      break;
    } catch (const OutOfMemory&) {
      testing::fail_allocation(0);
    }
  }
}

}  // namespace
}  // namespace trifactor::test
