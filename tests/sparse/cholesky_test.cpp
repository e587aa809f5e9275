// SparseCholesky: generated matrices of every shape, failures at the exact column, and what a second factorization
// costs.
#include <sparse/calls.hpp>
#include <support/ratios.hpp>
#include <trifactor/inspect.hpp>
#include <trifactor/testing.hpp>

#include <thread>

namespace trifactor::test {
namespace {

constexpr Stored all_stored[] = {Stored::Lower, Stored::Upper, Stored::Full};
constexpr Ordering orderings[] = {Ordering::Natural, Ordering::Amd, Ordering::Metis};

/// The queues that a property is to hold on: on the host, with any number of threads.
std::vector<Queue> queues(std::initializer_list<int> threads) {
  std::vector<Queue> all;
  if (on_cuda())
    all.push_back(test_queue());
  else
    for (int t : threads)
      if (!TRIFACTOR_TEST_SANITIZED || t != 2) all.push_back(Queue::host(t));
  return all;
}

/// Whether tuning rows for the host ask for the way that CUDA queues go.
bool by_level() {
  const char* rows = std::getenv("TRIFACTOR_TUNING");
  return on_cuda() || (rows && *rows);
}

template <class T>
class SparseCholeskyTest : public DeviceTest {
 protected:
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
    for (int k = 0; k < 6; ++k)
      all.push_back(random_pattern<T>(random, random.integer(5, 120), random.uniform(0.5, 4)));
    return all;
  }
};
TYPED_TEST_SUITE(SparseCholeskyTest, Scalars, ScalarNames);

TYPED_TEST(SparseCholeskyTest, FactorsAndSolvesEveryShape) {
  using T = TypeParam;
  for (const auto& A : this->shapes())
    for (Stored stored : all_stored)
      for (Ordering ordering : orderings) {
        SCOPED_TRACE(::testing::Message()
                     << A.name << " n=" << A.n << " stored " << int(stored) << " ordering " << int(ordering));
        const auto given = A.stored(stored);
        SparseCholesky<T> F(this->q, analyze(given.pattern(), {.ordering = ordering}));
        EXPECT_EQ(F.info(), -1);
        factor(this->q, F, given.values);
        this->expect_right(A, F);
        for (index_t k : {1, 2, 7, 35}) {
          const auto B = random_matrix<T>(this->random, A.n, k, 2);
          auto X = B;
          solve(this->q, F, X);
          EXPECT_TRUE(same_frame(B, X)) << "wrote outside B";
          EXPECT_LT(A.solve_ratio(X, B), threshold) << k << " right-hand sides";
        }
      }
}

// Many fronts of many sizes: branches side by side, and the largest in tiles.
TYPED_TEST(SparseCholeskyTest, FactorsWithBranchesOnAnyNumberOfThreads) {
  using T = TypeParam;
  for (const auto& A : {poisson3d<T>(this->random, 14), poisson2d<T>(this->random, 60),
                        banded<T>(this->random, 3000, 9), disconnected<T>(this->random, 40, 60)})
    for (Queue& q : queues({1, 2, 3, 5})) {
      SCOPED_TRACE(::testing::Message() << A.name << " n=" << A.n);
      const auto given = A.stored(Stored::Lower);
      SparseCholesky<T> F(q, analyze(given.pattern()));
      factor(q, F, given.values);
      for (index_t k : {1, 5, 40}) {
        const auto B = random_matrix<T>(this->random, A.n, k);
        auto X = B;
        solve(q, F, X);
        EXPECT_LT(A.solve_ratio(X, B), threshold) << k << " right-hand sides";
      }
    }
}

// Tiles of a few rows, no branch too small: every kind of task many times, more threads than cores.
TYPED_TEST(SparseCholeskyTest, ThreadsThatShareFrontsInTilesRepeatTheirBits) {
  using T = TypeParam;
  if (by_level()) GTEST_SKIP() << "of the host's own way";
  for (const auto& A : {poisson3d<T>(this->random, 8), full_matrix<T>(this->random, 60), banded<T>(this->random, 300, 9),
                        disconnected<T>(this->random, 6, 40), random_pattern<T>(this->random, 300, 3)})
    for (const int threads : {2, 6}) {
      SCOPED_TRACE(::testing::Message() << A.name << " n=" << A.n << " threads=" << threads);
      Queue q = Queue::host(threads);
      const auto given = A.stored(Stored::Lower);
      const auto plan = analyze(given.pattern());
      const SparseOptions options{.tuning = "tile_least=5 tile_most=7 branch_cost=1 team=1 most_updates=100 leaf=3"};
      SparseCholesky<T> F(q, plan, options);
      F.factor(given.values);
      this->expect_right(A, F);
      const auto first = F.lower().values;
      for (const index_t k : {1, 3, 33}) {
        const auto B = random_matrix<T>(this->random, A.n, k);
        auto X = B, Y = B;
        F.solve(X.view()), F.solve(Y.view());
        EXPECT_LT(A.solve_ratio(X, B), threshold) << k << " right-hand sides";
        EXPECT_TRUE(same_bits(X.storage, Y.storage)) << k << " right-hand sides";
      }
      F.factor(given.values);
      EXPECT_EQ(F.lower().values, first);
      // The first of two failures counts, whoever meets which first.
      const index_t n = A.n, early = plan->permutation()[n / 3], late = plan->permutation()[2 * n / 3];
      auto broken = A;
      for (index_t column : {early, late}) broken.lower[{column, column}] = T(-1);
      EXPECT_EQ(F.try_factor(broken.stored(Stored::Lower).values), early + 1);
      F.factor(given.values);
      EXPECT_EQ(F.lower().values, first);
    }
}

// Fronts of every size between one column and hundreds, also with diagonal blocks whose inverses are inexact, and every number
// of right-hand sides that goes another way.
TYPED_TEST(SparseCholeskyTest, SolvesWithLargeFrontsAndRepeatsTheBits) {
  using T = TypeParam;
  auto graded = full_matrix<T>(this->random, 200);  // rows and columns scaled apart
  for (auto& [place, value] : graded.lower)
    value = value * T(real_t<T>(std::pow(10.0, -double(place.first + place.second) / (sizeof(real_t<T>) == 8 ? 40 : 100))));
  for (const auto& A : {full_matrix<T>(this->random, 301), poisson3d<T>(this->random, 13), graded,
                        arrow<T>(this->random, 700, true), diagonal_matrix<T>(this->random, 3000)}) {
    SCOPED_TRACE(::testing::Message() << A.name << " n=" << A.n);
    const auto given = A.stored(Stored::Lower);
    SparseCholesky<T> F(this->q, analyze(given.pattern(), {.ordering = Ordering::Metis}));
    factor(this->q, F, given.values);
    for (index_t k : {1, 3, 8, 9, 17, 33, 64, 70}) {
      if (TRIFACTOR_TEST_SANITIZED && (k == 33 || k == 64)) continue;
      const auto B = random_matrix<T>(this->random, A.n, k, 1);
      auto X = B, Y = B;
      solve(this->q, F, X), solve(this->q, F, Y);
      EXPECT_TRUE(same_frame(B, X)) << "wrote outside B";
      EXPECT_LT(A.solve_ratio(X, B), threshold) << k << " right-hand sides";
      EXPECT_TRUE(same_bits(X.storage, Y.storage)) << k << " right-hand sides";
    }
  }
}

// Pivots whose squares or reciprocals are no normal numbers any more, all of them or between others.
TYPED_TEST(SparseCholeskyTest, TakesTinyAndHugePivots) {
  using T = TypeParam;
  using R = real_t<T>;
  const int far = sizeof(R) == 8 ? 600 : 104;  // binary digits
  for (const auto& A : {poisson3d<T>(this->random, 8), banded<T>(this->random, 200, 30), full_matrix<T>(this->random, 90)})
    for (const auto& [even, odd] : {std::pair{-far, -far}, {far, far}, {-far, 0}, {far, 0}}) {
      SCOPED_TRACE(::testing::Message() << A.name << " n=" << A.n << " scaled by 2^" << even << " and 2^" << odd);
      const auto power = [&](index_t i) { return std::ldexp(R(1), (i % 2 == 0 ? even : odd) / 2); };
      auto scaled = A;  // D A D
      for (auto& [place, value] : scaled.lower) value = value * T(power(place.first)) * T(power(place.second));
      const auto given = scaled.stored(Stored::Lower);
      SparseCholesky<T> F(this->q, analyze(given.pattern()));
      factor(this->q, F, given.values);
      const auto B = random_matrix<T>(this->random, A.n, 2);
      auto DB = B;
      for (index_t j = 0; j < 2; ++j)
        for (index_t i = 0; i < A.n; ++i) DB(i, j) = DB(i, j) * T(power(i));
      solve(this->q, F, DB);  // D^-1 A^-1 B
      for (index_t j = 0; j < 2; ++j)
        for (index_t i = 0; i < A.n; ++i) DB(i, j) = DB(i, j) * T(power(i));
      EXPECT_LT(A.solve_ratio(DB, B), threshold);
    }
}

// A wide front and its chain are the same columns of the same factor.
TYPED_TEST(SparseCholeskyTest, WideFrontsMayBeChains) {
  using T = TypeParam;
  for (const auto& A : {full_matrix<T>(this->random, this->random.integer(140, 330)), poisson3d<T>(this->random, 11)}) {
    const auto given = A.stored(Stored::Lower);
    const auto plan = analyze(given.pattern());
    SparseCholesky<T> whole(this->q, plan, {.tuning = "levels=1 widest=1000"});
    factor(this->q, whole, given.values);
    const auto L = whole.lower();
    const auto d = whole.diagonal();
    for (const char* widest : {"64", "100", "128"}) {
      SCOPED_TRACE(::testing::Message() << A.name << " n=" << A.n << " widest=" << widest);
      SparseCholesky<T> F(this->q, plan, {.tuning = std::string("levels=1 alone=8 widest=") + widest});
      EXPECT_LT(F.memory().factor, whole.memory().factor);
      factor(this->q, F, given.values);
      if (A.n < 1000 || widest == std::string("64")) this->expect_right(A, F);  // a second at such an order
      const auto chain = F.lower();
      EXPECT_EQ(chain.start, L.start);
      EXPECT_EQ(chain.index, L.index);
      const auto e = F.diagonal();
      ASSERT_EQ(e.size(), d.size());
      for (std::size_t j = 0; j < d.size(); ++j) EXPECT_NEAR(e[j] / d[j], 1, 1e4 * double(std::numeric_limits<real_t<T>>::epsilon()));
      for (const index_t k : {1, 9, 70}) {
        const auto B = random_matrix<T>(this->random, A.n, k);
        auto X = B;
        solve(this->q, F, X);
        EXPECT_LT(A.solve_ratio(X, B), threshold) << k << " right-hand sides";
      }
      auto wrong = given;
      const index_t bad = this->random.integer(0, A.n - 1);
      wrong.at(bad, bad) = T(-1);
      const DeviceArray<T> values(this->q, wrong.values);
      EXPECT_EQ(F.try_factor(std::span<const T>(values.data(), wrong.values.size())), bad + 1);
    }
  }
}

TYPED_TEST(SparseCholeskyTest, SolvesInParts) {
  using T = TypeParam;
  const auto A = poisson2d<T>(this->random, 9);
  const auto given = A.stored(Stored::Upper);
  SparseCholesky<T> F(this->q, analyze(given.pattern()));
  factor(this->q, F, given.values);
  const auto G = this->factor_of(F);  // P^T L
  const auto& p = F.plan().permutation();
  HostMatrix<T> L(A.n, A.n);
  for (index_t j = 0; j < A.n; ++j)
    for (index_t i = 0; i < A.n; ++i) L(i, j) = G(p[i], j);
  const auto B = random_matrix<T>(this->random, A.n, 3);

  auto X = B;
  solve(this->q, F, X, SparsePart::Permute);
  for (index_t c = 0; c < 3; ++c)
    for (index_t i = 0; i < A.n; ++i) ASSERT_EQ(X(i, c), B(p[i], c));
  solve(this->q, F, X, SparsePart::PermuteBack);
  EXPECT_TRUE(same_bits(X, B));
  solve(this->q, F, X, SparsePart::Lower);
  EXPECT_LT(solve_ratio(Op::None, L, X, B), threshold);
  X = B;
  solve(this->q, F, X, SparsePart::LowerAdjoint);
  EXPECT_LT(solve_ratio(Op::ConjTranspose, L, X, B), threshold);

  X = B;
  auto Y = B;
  for (SparsePart part : {SparsePart::Permute, SparsePart::Lower, SparsePart::LowerAdjoint, SparsePart::PermuteBack})
    solve(this->q, F, X, part);
  solve(this->q, F, Y);
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
        EXPECT_EQ(try_factor(this->q, F, given.values), bad + 1);
        EXPECT_EQ(F.info(), bad + 1);
        try {
          factor(this->q, F, given.values);
          ADD_FAILURE() << "no exception";
        } catch (const NotPositiveDefinite& e) { EXPECT_EQ(e.order(), bad + 1); }
        EXPECT_THROW(F.log_det(), InvalidArgument);
        given.at(bad, bad) = good;
        factor(this->q, F, given.values);
        this->expect_right(A, F);
      }
}

TYPED_TEST(SparseCholeskyTest, ReportsTheSameColumnWithAnyNumberOfThreads) {
  using T = TypeParam;
  const auto A = poisson3d<T>(this->random, 12);
  auto given = A.stored(Stored::Lower);
  const auto plan = analyze(given.pattern());
  for (int k = 0; k < (TRIFACTOR_TEST_SANITIZED ? 5 : 20); ++k) {
    auto values = given;
    const index_t a = this->random.integer(0, A.n - 1), b = this->random.integer(0, A.n - 1);
    values.at(a, a) = T(-1), values.at(b, b) = T(nan<T>);
    index_t first = A.n;
    for (index_t j = A.n - 1; j >= 0; --j)
      if (plan->permutation()[j] == a || plan->permutation()[j] == b) first = plan->permutation()[j];
    for (Queue& q : queues({1, 2, 4})) {
      SparseCholesky<T> F(q, plan);
      EXPECT_EQ(try_factor(q, F, values.values), first + 1);
      EXPECT_EQ(try_factor(q, F, given.values), 0);
    }
  }
}

TYPED_TEST(SparseCholeskyTest, AddsAShift) {
  using T = TypeParam;
  const auto A = poisson2d<T>(this->random, 8);
  const auto given = A.stored(Stored::Full);
  SparseCholesky<T> F(this->q, analyze(given.pattern()));
  EXPECT_NE(try_factor(this->q, F, given.values, real_t<T>(-100)), 0);
  factor(this->q, F, given.values, real_t<T>(2.5));
  this->expect_right(A, F, 2.5);
  factor(this->q, F, given.values);
  this->expect_right(A, F);
}

TYPED_TEST(SparseCholeskyTest, RefactorsWithoutAllocatingAndTheSameBits) {
  using T = TypeParam;
  for (Queue& q : queues({1, 2, 3})) {
    const auto A = poisson3d<T>(this->random, 12), other = A.with_new_values(this->random);
    const auto given = A.stored(Stored::Lower);
    const DeviceArray<T> first(q, given.values), second(q, other.stored(Stored::Lower).values);
    const auto span = [&](const DeviceArray<T>& values) {
      return std::span<const T>(values.data(), given.values.size());
    };
    SparseCholesky<T> F(q, analyze(given.pattern()));
    const auto B = random_matrix<T>(this->random, A.n, 1);
    DeviceMatrix<T> X(q, B), Y(q, B);
    const index_t before = testing::allocation_count();
    F.factor(span(first));
    EXPECT_EQ(testing::path_taken(), by_level() ? "levels" : "branches");
    F.solve(X.view());
    EXPECT_EQ(testing::allocation_count(), before);
    const auto L = F.lower();
    F.factor(span(second));
    F.solve(Y.view());
    EXPECT_LT(other.solve_ratio(Y.download(), B), threshold);
    F.factor(span(first));
    Y.upload(B);
    F.solve(Y.view());
    EXPECT_EQ(testing::allocation_count(), before);
    EXPECT_TRUE(same_bits(X.download(), Y.download()));
    EXPECT_EQ(L.values, F.lower().values);
  }
}

/// What is allocated is what was predicted, to the byte.
TYPED_TEST(SparseCholeskyTest, TakesTheMemoryThatItPredicted) {
  using T = TypeParam;
  for (const auto& A : this->shapes())
    for (Queue& q : queues({1, 2, 4})) {
      SCOPED_TRACE(::testing::Message() << A.name << " n=" << A.n);
      const auto given = A.stored(Stored::Lower);
      const auto plan = analyze(given.pattern());
      const SparseMemory predicted = SparseCholesky<T>::memory(q, *plan);
      const std::size_t before = testing::allocated_bytes();
      SparseCholesky<T> F(q, plan);
      const std::size_t taken = testing::allocated_bytes() - before;
      EXPECT_EQ(F.memory().total(), predicted.total());
      factor(q, F, given.values);
      EXPECT_EQ(F.memory().total(), predicted.total());
      // The host's lists are vectors, which are not counted.
      EXPECT_EQ(taken, predicted.total() - (testing::path_taken() == "branches" ? predicted.lists : 0));
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
      Queue q = on_cuda() ? test_queue() : Queue::host(1 + t % 2);
      SparseCholesky<T> F(q, plan);
      const auto mine = A.with_new_values(random);
      const auto B = random_matrix<T>(random, A.n, 2);
      for (int k = 0; k < 5; ++k) {
        factor(q, F, mine.stored(Stored::Lower).values);
        auto X = B;
        solve(q, F, X);
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
  factor(this->q, F, given.values);
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
  factor(this->q, F, given.values);
  const auto B = random_matrix<T>(this->random, A.n, 3, 1);
  auto X = B;
  const auto refined = solve_refined(this->q, F, given.values, X);
  EXPECT_LE(refined.backward_error, 8 * eps<T>);
  EXPECT_LT(A.solve_ratio(X, B), 10);
  EXPECT_TRUE(same_frame(B, X));
  // With the factor of a nearby matrix, refinement still solves with the one whose values are given.
  auto nearby = given;
  for (auto& v : nearby.values) v *= real_t<T>(1.01);
  factor(this->q, F, nearby.values);
  X = B;
  EXPECT_LE(solve_refined(this->q, F, given.values, X).backward_error, 8 * eps<T>);
  EXPECT_LT(A.solve_ratio(X, B), 10);
}

/// Whichever entries of the solution the NaN does not reach.
TYPED_TEST(SparseCholeskyTest, RefinementNeverCallsANaNSmall) {
  using T = TypeParam;
  const auto A = disconnected<T>(this->random, 6, 30);
  const auto given = A.stored(Stored::Lower);
  SparseCholesky<T> F(this->q, analyze(given.pattern()));
  factor(this->q, F, given.values);
  for (const index_t row : {index_t(0), A.n / 2, A.n - 1}) {
    auto X = random_matrix<T>(this->random, A.n, 1);
    X(row, 0) = std::numeric_limits<real_t<T>>::quiet_NaN();
    const auto refined = solve_refined(this->q, F, given.values, X);
    EXPECT_FALSE(refined.backward_error < 1) << "NaN in row " << row;
    EXPECT_TRUE(std::isnan(std::abs(X(row, 0))));
  }
}

TYPED_TEST(SparseCholeskyTest, AFullMatrixIsRecognisedByItsValues) {
  using T = TypeParam;
  for (const auto& A : this->shapes()) {
    auto full = A.stored(Stored::Full);
    const auto hermitian = [&] { return is_hermitian<T>(full.pattern(), full.values); };
    EXPECT_TRUE(hermitian()) << A.name << " n=" << A.n;
    for (index_t j = 0; j < A.n; ++j)
      for (index_t k = full.start[j]; k < full.start[j + 1]; ++k) {
        const T before = full.values[k];
        full.values[k] += T(1);
        EXPECT_EQ(hermitian(), full.index[k] == j);
        full.values[k] = before;
        k += this->random.integer(0, 40);
      }
  }
  StoredMatrix<T> A{2, Stored::Full, {0, 1, 2}, {1, 1}, {T(1), T(2)}};
  EXPECT_FALSE(is_hermitian<T>(A.pattern(), A.values)) << "the mirror image is not stored";
  A = {1, Stored::Full, {0, 2}, {0, 0}, {T(1), T(2)}};
  EXPECT_TRUE(is_hermitian<T>(A.pattern(), A.values));
  EXPECT_THROW(is_hermitian<T>(A.pattern(), std::span(A.values).first(1)), InvalidArgument);
  A.index[1] = 7;
  const auto message = [](auto call) {
    try {
      call();
    } catch (const InvalidArgument& e) { return std::string(e.what()); }
    return std::string("no error");
  };
  const std::string rule = ": pattern.index[1] in column 0 = 7 must be at least 0 and less than n = 1";
  EXPECT_EQ(message([&] { is_hermitian<T>(A.pattern(), A.values); }), "is_hermitian" + rule);
  EXPECT_EQ(message([&] { hermitian_part<T>(A.pattern(), A.values); }), "hermitian_part" + rule);
}

TYPED_TEST(SparseCholeskyTest, AMatrixIsHermitianUpToRounding) {
  using T = TypeParam;
  const auto A = poisson2d<T>(this->random, 5);
  const real_t<T> unit = std::numeric_limits<real_t<T>>::epsilon();
  for (const index_t i : {1, 5}) {
    auto full = A.stored(Stored::Full);
    const auto before = full.values;
    const auto hermitian = [&](auto... tolerance) {
      return is_hermitian<T>(full.pattern(), full.values, tolerance...);
    };
    const real_t<T> size = std::sqrt(std::abs(full.at(0, 0))) * std::sqrt(std::abs(full.at(i, i)));
    full.at(i, 0) += T(8 * unit * size);
    EXPECT_TRUE(hermitian());
    EXPECT_FALSE(hermitian(0));
    const auto mean = hermitian_part<T>(full.pattern(), full.values);
    EXPECT_TRUE(is_hermitian<T>(mean.pattern(), mean.values, 0));
    const auto lower = A.stored(Stored::Lower);
    EXPECT_EQ(mean.start, lower.start);
    EXPECT_EQ(mean.index, lower.index);
    for (std::size_t k = 0; k < lower.values.size(); ++k)
      EXPECT_LE(std::abs(mean.values[k] - lower.values[k]), 5 * unit * size) << k;
    EXPECT_NE(mean.values[i == 1 ? 1 : 2], lower.values[i == 1 ? 1 : 2]);
    full.at(i, 0) += T(12 * unit * size);
    EXPECT_FALSE(hermitian());
    EXPECT_TRUE(hermitian(32 * unit));
    EXPECT_THROW(hermitian(real_t<T>(-1)), InvalidArgument);
    EXPECT_THROW(hermitian(std::numeric_limits<real_t<T>>::quiet_NaN()), InvalidArgument);
    if constexpr (ComplexScalar<T>) {
      full.values = before;
      full.at(3, 3) += T(0, unit);
      EXPECT_TRUE(hermitian());
      EXPECT_FALSE(hermitian(0));
      EXPECT_EQ(hermitian_part<T>(full.pattern(), full.values).values, A.stored(Stored::Lower).values);
      full.at(3, 3) += T(0, real_t<T>(0.1));
      EXPECT_FALSE(hermitian());
    }
  }
}

TYPED_TEST(SparseCholeskyTest, TheHermitianPartHoldsWhatEitherSideStores) {
  using T = TypeParam;
  // [1 4 .; . 2+3 6; 2 . 7], whose middle entry comes in two parts
  StoredMatrix<T> A{3, Stored::Full, {0, 2, 5, 7}, {0, 2, 1, 0, 1, 1, 2}, {T(1), T(2), T(2), T(4), T(3), T(6), T(7)}};
  for (const auto compressed : {Compressed::Columns, Compressed::Rows}) {
    auto pattern = A.pattern();
    pattern.compressed = compressed;
    const auto H = hermitian_part<T>(pattern, A.values);
    EXPECT_EQ(H.start, (std::vector<index_t>{0, 3, 5, 6}));
    EXPECT_EQ(H.index, (std::vector<index_t>{0, 1, 2, 1, 2, 2}));
    EXPECT_EQ(H.values, (std::vector<T>{T(1), T(2), T(1), T(5), T(3), T(7)}));
    EXPECT_THROW(hermitian_part<T>(pattern, std::span<const T>(A.values).first(1)), InvalidArgument);
  }
  for (const auto& M : this->shapes())
    for (const auto stored : {Stored::Lower, Stored::Upper}) {
      const auto given = M.stored(stored), lower = M.stored(Stored::Lower);
      const auto H = hermitian_part<T>(given.pattern(), given.values);
      EXPECT_EQ(H.index, lower.index);
      EXPECT_EQ(H.values, lower.values);
    }
}

TYPED_TEST(SparseCholeskyTest, TellsAWatcherHowFarItIs) {
  using T = TypeParam;
  if (by_level()) GTEST_SKIP() << "fronts are counted on the host, where branches are factored";
  const auto A = poisson2d<T>(this->random, 30).stored(Stored::Lower);
  const auto plan = analyze(A.pattern());
  for (auto& q : queues({1, 3})) {
    SparseCholesky<T> F(q, plan);
    factor(q, F, A.values);  // not watched
    const inspect::FlopCounter flops;
    EXPECT_EQ(flops.done(), 0);
    factor(q, F, A.values);
    EXPECT_GE(flops.done(), plan->front_flops());
    EXPECT_LE(flops.done(), 1.5 * plan->front_flops());  // a part of a small front is rounded up
  }
}

TYPED_TEST(SparseCholeskyTest, AsynchronousFactorizationsReportOnTheDevice) {
  using T = TypeParam;
  const auto A = poisson3d<T>(this->random, 7);
  const auto plan = analyze(A.stored(Stored::Lower).pattern());
  for (const char* tuning : {"", "levels=1", "levels=1 alone=8 alone_below=16"}) {
    SparseCholesky<T> F(this->q, plan, {.tuning = tuning});
    DeviceArray<int> info(this->q, std::vector<int>{77});
    const auto B = random_matrix<T>(this->random, A.n, 3);
    for (int turn = 0; turn < 3; ++turn) {
      const auto now = A.with_new_values(this->random);
      auto given = now.stored(Stored::Lower);
      const DeviceArray<T> good(this->q, given.values);
      const index_t bad = this->random.integer(0, A.n - 1);
      given.at(bad, bad) = T(-1);
      const DeviceArray<T> wrong(this->q, given.values);
      const DeviceMatrix<T> X(this->q, B), Y(this->q, B);
      F.factor_async(std::span<const T>(good.data(), given.values.size()), info.data());
      EXPECT_EQ(F.info(), -1);
      F.solve(X.view());
      EXPECT_EQ(info.download()[0], 0);
      EXPECT_LT(now.solve_ratio(X.download(), B), threshold);
      EXPECT_GT(F.log_det(), -1e300);
      EXPECT_EQ(F.info(), 0);
      F.factor_async(std::span<const T>(wrong.data(), given.values.size()), info.data());
      F.solve(Y.view());
      EXPECT_EQ(info.download()[0], bad + 1);
      EXPECT_TRUE(same_bits(Y.download(), B)) << "a failed factorization leaves B";
      EXPECT_THROW(F.log_det(), InvalidArgument);
      EXPECT_EQ(F.info(), bad + 1);
    }
    EXPECT_THROW(F.factor_async({}, info.data()), InvalidArgument);
    EXPECT_THROW(F.factor_async(std::span<const T>(static_cast<const T*>(nullptr), plan->entries()), nullptr),
                 InvalidArgument);
  }
}

TYPED_TEST(SparseCholeskyTest, RefusesWhatDoesNotFit) {
  using T = TypeParam;
  const auto A = banded<T>(this->random, 10, 2);
  const auto given = A.stored(Stored::Lower);
  SparseCholesky<T> F(this->q, analyze(given.pattern()));
  auto X = random_matrix<T>(this->random, 10, 1);
  EXPECT_THROW(solve(this->q, F, X), InvalidArgument) << "nothing factored";
  for (const real_t<T> shift : {std::numeric_limits<real_t<T>>::quiet_NaN(), std::numeric_limits<real_t<T>>::infinity()})
    EXPECT_THROW(F.factor(std::span<const T>(given.values), shift), InvalidArgument);
  EXPECT_THROW(F.factor(std::span(given.values).first(3)), InvalidArgument);
  factor(this->q, F, given.values);
  auto Y = random_matrix<T>(this->random, 9, 1);
  EXPECT_THROW(F.solve(Y.view()), InvalidArgument);
  EXPECT_THROW(F.solve(std::vector<T>(11)), InvalidArgument);
  EXPECT_THROW(SparseCholesky<T>(this->q, nullptr), InvalidArgument);
  auto moved = std::move(F);
  solve(this->q, moved, X);
}

TYPED_TEST(SparseCholeskyTest, ByLevelNothingIsAllocatedAfterPlanning) {
  using T = TypeParam;
  for (const auto& A : this->shapes()) {
    const auto given = A.stored(Stored::Lower);
    const auto plan = analyze(given.pattern());
    for (const char* tuning : {"levels=1", "levels=1 alone=8 alone_below=8 widest=64"}) {
      SCOPED_TRACE(A.name + " " + tuning + " n=" + std::to_string(A.n));
      Queue q = test_queue();  // with nothing reserved
      SparseCholesky<T> F(q, plan, {.tuning = tuning});
      EXPECT_EQ(F.memory().total(), SparseCholesky<T>::memory(q, *plan, {.tuning = tuning}).total());
      const DeviceArray<T> values(q, given.values), x(q, std::vector<T>(A.n, T(1)));
      const index_t before = testing::allocation_count();
      F.factor(std::span<const T>(values.data(), given.values.size()));
      F.solve(MatrixView<T>{x.data(), A.n, 1, std::max<index_t>(1, A.n)});
      EXPECT_EQ(testing::allocation_count(), before);
    }
  }
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
      factor(this->q, F, given.values);
      solve(this->q, F, X);
      F.rcond();
      testing::fail_allocation(0);
      break;
    } catch (const OutOfMemory&) { testing::fail_allocation(0); }
  }
}

}  // namespace
}  // namespace trifactor::test
