// SparseLu: matrices of every shape in every form and order, failures at the exact column, and memory that runs out.
#include <support/condition.hpp>
#include <support/device.hpp>
#include <support/ratios.hpp>
#include <trifactor/info.hpp>
#include <trifactor/testing.hpp>
#include <trifactor/trifactor.hpp>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>

namespace trifactor::test {
namespace {

constexpr Op ops[] = {Op::None, Op::Transpose, Op::ConjTranspose};
constexpr LuOrdering orderings[] = {LuOrdering::Colamd, LuOrdering::Amd, LuOrdering::Natural};

template <class T, class I>
struct Compact {
  index_t n = 0;
  Compressed compressed = Compressed::Columns;
  std::vector<I> start, index;
  std::vector<T> values;

  Pattern<I> pattern() const {
    return {.rows = n,
            .cols = n,
            .start = start.data(),
            .index = index.data(),
            .compressed = compressed,
            .stored = Stored::Full};
  }
};

template <class T>
struct General {
  std::string name;
  index_t n = 0;
  std::map<std::pair<index_t, index_t>, T> entries = {};  // by (column, row)

  void add(Random& random, index_t i, index_t j) { entries[{j, i}] = narrow<T>(random.wide<Wide<T>>()); }
  General with_new_values(Random& random) const {
    General A = *this;
    for (auto& [place, value] : A.entries) value = narrow<T>(random.wide<Wide<T>>());
    return A;
  }
  template <class I = std::int64_t>
  Compact<T, I> compact(Compressed how = Compressed::Columns) const {
    std::map<std::pair<index_t, index_t>, T> sorted;
    for (const auto& [place, value] : entries)
      sorted[how == Compressed::Columns ? place : std::pair{place.second, place.first}] = value;
    Compact<T, I> A{n, how, std::vector<I>(n + 1), {}, {}};
    for (const auto& [place, value] : sorted) {
      ++A.start[place.first + 1];
      A.index.push_back(I(place.second)), A.values.push_back(value);
    }
    for (index_t j = 0; j < n; ++j) A.start[j + 1] += A.start[j];
    return A;
  }
  HostMatrix<T> full() const {
    HostMatrix<T> A(n, n);
    for (const auto& [place, value] : entries) A(place.second, place.first) = value;
    return A;
  }
};

/// A permuted diagonal makes it regular; `degree` more entries a column.
template <class T>
General<T> random_general(Random& random, index_t n, double degree) {
  General<T> A{"random", n};
  for (index_t k = 0; k < index_t(degree * double(n)); ++k)
    A.add(random, random.integer(0, n - 1), random.integer(0, n - 1));
  const index_t shift = n > 0 ? random.integer(0, n - 1) : 0;
  for (index_t j = 0; j < n; ++j) A.entries[{j, (j + shift) % n}] = T(real_t<T>(random.uniform(1, 2)));
  return A;
}
/// The 5-point Laplacian on an m x m grid minus k2: symmetric, indefinite.
template <class T>
General<T> helmholtz(index_t m, double k2) {
  General<T> A{"helmholtz", m * m};
  for (index_t j = 0; j < A.n; ++j) {
    A.entries[{j, j}] = T(real_t<T>(4 - k2));
    if (j % m + 1 < m) A.entries[{j, j + 1}] = A.entries[{j + 1, j}] = T(-1);
    if (j + m < A.n) A.entries[{j, j + m}] = A.entries[{j + m, j}] = T(-1);
  }
  return A;
}
/// With `diagonal` on its diagonal, if that is not 0: a random triangle may be singular for a float.
template <class T>
General<T> banded(Random& random, index_t n, index_t below, index_t above, double diagonal = 0) {
  General<T> A{"banded", n};
  for (index_t j = 0; j < n; ++j)
    for (index_t i = std::max<index_t>(0, j - above); i <= std::min(n - 1, j + below); ++i) A.add(random, i, j);
  for (index_t j = 0; j < n && diagonal != 0; ++j) A.entries[{j, j}] = T(real_t<T>(diagonal));
  return A;
}
template <class T>
General<T> full_general(Random& random, index_t n) {
  auto A = banded<T>(random, n, n, n);
  A.name = "full";
  return A;
}

template <class T>
class SparseLuTest : public ::testing::Test {
 protected:
  std::vector<General<T>> shapes() {
    std::vector<General<T>> all;
    for (index_t n : {0, 1, 2, 3, 5, 10, 50}) {
      all.push_back(full_general<T>(random, n));
      all.push_back(random_general<T>(random, n, 2));
    }
    all.push_back(random_general<T>(random, 50, 0));  // a permutation, scaled
    all.push_back(banded<T>(random, 120, 1, 1, 1.5));
    all.push_back(banded<T>(random, 120, 3, 1, 3));
    all.push_back(banded<T>(random, 120, 0, 2, 1.5));  // a triangle
    all.push_back(helmholtz<T>(15, 1.3));
    all.push_back(full_general<T>(random, 110));  // more than one panel, and the widest supernode
    all.push_back(random_general<T>(random, 220, 3));
    return all;
  }
  template <class I>
  SparseLu<T> factored(const Compact<T, I>& A, const AnalyzeLuOptions& analysis = {}, const SparseLuOptions& o = {}) {
    SparseLu<T> F(q, analyze_lu(A.pattern(), analysis), o);
    F.factor(A.values);
    return F;
  }
  void expect_solves(const General<T>& A, const SparseLu<T>& F, double limit = threshold) {
    const auto full = A.full();
    for (Op op : ops)
      for (index_t k : {1, 18}) {
        const auto B = random_matrix<T>(random, A.n, k, 2);
        auto X = B;
        F.solve(X.view(), op);
        EXPECT_LT(solve_ratio(op, full, X, B), limit) << A.name << " n=" << A.n << " op " << int(op) << " k=" << k;
      }
  }

  Queue q = Queue::host();
  Random random;
};
TYPED_TEST_SUITE(SparseLuTest, AllScalars, ScalarNames);

TYPED_TEST(SparseLuTest, FactorsAndSolvesEveryShape) {
  using T = TypeParam;
  for (const auto& A : this->shapes()) {
    for (LuOrdering ordering : orderings) {
      SCOPED_TRACE(::testing::Message() << A.name << " n=" << A.n << " ordering " << int(ordering));
      const auto given = A.compact();
      // Random matrices pivot anywhere: a low threshold would cost digits that are not the subject here.
      const auto F = this->factored(given, {.ordering = ordering}, {.pivot_threshold = 1});
      EXPECT_EQ(F.info(), 0);
      EXPECT_EQ(F.plan().ordering(), ordering);
      EXPECT_EQ(testing::path_taken(), "superlu");
      EXPECT_GE(F.factor_nonzeros(), A.n);
      EXPECT_GT(F.memory().total() + 1, std::size_t(F.factor_nonzeros()) * sizeof(T));
      this->expect_solves(A, F);
    }
  }
}

TYPED_TEST(SparseLuTest, TakesRowsAndColumnsInBothIndexTypes) {
  using T = TypeParam;
  const auto A = random_general<T>(this->random, 70, 3);
  for (Compressed how : {Compressed::Columns, Compressed::Rows}) {
    this->expect_solves(A, this->factored(A.template compact<std::int32_t>(how)));
    this->expect_solves(A, this->factored(A.template compact<std::int64_t>(how)));
  }
}

TYPED_TEST(SparseLuTest, AddsUpDuplicatesWhenAsked) {
  using T = TypeParam;
  auto A = random_general<T>(this->random, 40, 2);
  for (Compressed how : {Compressed::Columns, Compressed::Rows}) {
    const auto once = A.template compact<std::int64_t>(how);
    Compact<T, std::int64_t> twice{A.n, how, {0}, {}, {}};
    for (index_t j = 0; j < A.n; ++j) {  // each entry as 3 a and, behind all others, -2 a
      for (const int factor : {3, -2})
        for (index_t k = once.start[j]; k < once.start[j + 1]; ++k)
          twice.index.push_back(once.index[k]), twice.values.push_back(T(real_t<T>(factor)) * once.values[k]);
      twice.start.push_back(index_t(twice.index.size()));
    }
    this->expect_solves(A, this->factored(twice, {.duplicates = true}));
    EXPECT_THROW(analyze_lu(twice.pattern()), InvalidArgument);
  }
}

TYPED_TEST(SparseLuTest, FactorsOtherValuesOfThePattern) {
  using T = TypeParam;
  auto A = random_general<T>(this->random, 200, 3);
  auto F = this->factored(A.compact());
  for (int round = 0; round < 3; ++round) {
    A = A.with_new_values(this->random);
    F.factor(A.compact().values);
    this->expect_solves(A, F, 300);  // no longer dominated by a permutation: conditions vary
  }
  // The same values again take no memory for the factors beyond what is there.
  const auto bytes = F.memory().total();
  F.factor(A.compact().values);
  EXPECT_EQ(F.memory().total(), bytes);
}

TYPED_TEST(SparseLuTest, RefinesToTheBackwardErrorOfTheScalar) {
  using T = TypeParam;
  const auto A = helmholtz<T>(12, 1.7);
  const auto given = A.compact();
  for (Op op : ops) {
    const auto F = this->factored(given, {.ordering = LuOrdering::Amd}, {.pivot_threshold = 0.001});
    const auto B = random_matrix<T>(this->random, A.n, 3);
    auto X = B;
    const auto result = F.solve_refined(given.values, X.view(), op);
    EXPECT_LE(result.backward_error, 4 * std::numeric_limits<real_t<T>>::epsilon());
    EXPECT_LE(result.steps, 10);
    EXPECT_LT(solve_ratio(op, A.full(), X, B), threshold);
  }
  // A factor of a nearby matrix serves.
  auto near = given;
  near.values[0] *= T(real_t<T>(1.01));
  const auto F = this->factored(near);
  const auto B = random_matrix<T>(this->random, A.n, 1);
  auto X = B;
  EXPECT_LE(F.solve_refined(given.values, X.view()).backward_error, 4 * std::numeric_limits<real_t<T>>::epsilon());
  EXPECT_LT(solve_ratio(Op::None, A.full(), X, B), threshold);
}

TYPED_TEST(SparseLuTest, DeterminantIsThatOfDenseLu) {
  using T = TypeParam;
  for (const auto& A : this->shapes()) {
    if (A.n == 0 || A.n > 60) continue;
    Matrix<T> dense(A.n, A.n);
    for (const auto& [place, value] : A.entries) dense(place.second, place.first) = value;
    const auto expected = lu(dense, {.device = Device::Host}).det();
    for (LuOrdering ordering : orderings) {
      const auto det = this->factored(A.compact(), {.ordering = ordering}).det();
      const double tolerance = 1000 * double(A.n) * eps<T>;
      EXPECT_NEAR(det.log_abs, expected.log_abs, tolerance * (1 + std::abs(expected.log_abs))) << A.name << A.n;
      EXPECT_LT(std::abs(det.sign - expected.sign), 100 * tolerance) << A.name << A.n;
    }
  }
  Compact<T, std::int64_t> empty{0, Compressed::Columns, {0}, {}, {}};
  EXPECT_EQ(this->factored(empty).det().sign, T(1));
}

TYPED_TEST(SparseLuTest, NormIsThatOfTheMatrixBeforeScaling) {
  using T = TypeParam;
  auto A = random_general<T>(this->random, 30, 2);
  for (auto& [place, value] : A.entries) value *= T(real_t<T>(1000));
  EXPECT_NEAR(this->factored(A.compact()).norm1(), norm1(widen(A.full())), 1e-4 * norm1(widen(A.full())));
}

TYPED_TEST(SparseLuTest, ConditionIsNearThatOfAnExplicitInverse) {
  using T = TypeParam;
  Random fixed(20);  // a third of the truth is likely, not certain: always the same matrices
  for (index_t n : {1, 2, 3, 5, 10, 50})
    for (bool scaled : {false, true}) {
      SCOPED_TRACE(::testing::Message() << "n=" << n << " scaled " << scaled);
      auto A = random_general<T>(fixed, n, 3);
      for (auto& [place, value] : A.entries)
        if (scaled && place.second % 2 == 0) value *= real_t<T>(1e-10);
      const auto F = this->factored(A.compact());
      expect_rcond<T>(F.rcond(), true_rcond(A.full()), n);
    }
  General<T> identity{"identity", 5};
  for (index_t j = 0; j < 5; ++j) identity.entries[{j, j}] = T(real_t<T>(1e-18));
  EXPECT_NEAR(double(this->factored(identity.compact()).rcond()), 1, 10 * eps<T>);
  General<T> hilbert60{"Hilbert", 60};
  const auto H = hilbert<T>(60);
  for (index_t j = 0; j < 60; ++j)
    for (index_t i = 0; i < 60; ++i) hilbert60.entries[{j, i}] = H(i, j);
  EXPECT_LT(double(this->factored(hilbert60.compact()).rcond()), eps<T>);
  EXPECT_EQ(this->factored(General<T>{"empty", 0}.compact()).rcond(), 1);
}

// Scaling by powers of 2 rounds nothing: rows that come scaled so give the same solution to the bit.
TYPED_TEST(SparseLuTest, EquilibratesBadlyScaledRows) {
  using T = TypeParam;
  const auto A = random_general<T>(this->random, 60, 3);
  const auto power = [](index_t i) { return T(std::ldexp(real_t<T>(1), int(i * 7 % 40) - 20)); };
  auto scaled = A;
  for (auto& [place, value] : scaled.entries) value *= power(place.second);
  const auto B = random_matrix<T>(this->random, A.n, 1);
  auto X = B, Y = B;
  for (index_t i = 0; i < A.n; ++i) Y(i, 0) *= power(i);
  this->factored(A.compact()).solve(X.view());
  this->factored(scaled.compact()).solve(Y.view());
  EXPECT_LT(solve_ratio(Op::None, A.full(), X, B), threshold);
  EXPECT_TRUE(same_bits(X, Y));
  this->expect_solves(A, this->factored(A.compact(), {}, {.equilibrate = false}));
}

/// A row's scale alone would make its small entry zero.
TYPED_TEST(SparseLuTest, EntriesOfVeryDifferentSizeAreScaledOnce) {
  using T = TypeParam;
  const auto power = [](int exponent) { return T(std::ldexp(real_t<T>(1), exponent)); };
  const int large = std::numeric_limits<real_t<T>>::max_exponent * 2 / 3;
  const General<T> A{"graded", 2, {{{0, 0}, power(large)}, {{0, 1}, power(large)}, {{1, 0}, power(-large)}}};
  SparseLu<T> F(this->q, analyze_lu(A.compact().pattern()));
  ASSERT_EQ(F.try_factor(A.compact().values), 0);
  const auto x = F.solve(std::vector<T>{power(0) + power(0), power(0)});   // x0 = 1 / large, x1 = large
  EXPECT_EQ(x[0], power(-large));
  EXPECT_EQ(x[1], power(large));
}

TYPED_TEST(SparseLuTest, PivotThresholdKeepsTheDiagonal) {
  using T = TypeParam;
  const auto A = helmholtz<T>(14, 0.3);
  const auto given = A.compact();
  const auto diagonal = this->factored(given, {.ordering = LuOrdering::Amd}, {.pivot_threshold = 0.01});
  const auto partial = this->factored(given, {.ordering = LuOrdering::Amd}, {.pivot_threshold = 1});
  EXPECT_LT(diagonal.factor_nonzeros(), partial.factor_nonzeros());
  for (const double bad : {-0.1, 1.5, std::numeric_limits<double>::quiet_NaN()})
    EXPECT_THROW(this->factored(given, {}, {.pivot_threshold = bad}), InvalidArgument);
}

TYPED_TEST(SparseLuTest, FollowsAGivenOrder) {
  using T = TypeParam;
  const auto A = banded<T>(this->random, 5, 2, 2);
  const std::vector<index_t> order{4, 2, 0, 3, 1};
  const auto F = this->factored(A.compact(), {.ordering = LuOrdering::Given, .permutation = order});
  this->expect_solves(A, F);
  EXPECT_EQ(F.plan().ordering(), LuOrdering::Given);
  auto sorted = F.plan().column_permutation();
  EXPECT_EQ(sorted, order);  // a full matrix of order 5: the tree is a path in this order
  EXPECT_NE(F.plan().text().find("given"), std::string::npos);
}

// The columns of a singular matrix, in its own numbering.

TYPED_TEST(SparseLuTest, ReportsTheColumnThatFails) {
  using T = TypeParam;
  for (LuOrdering ordering : orderings)
    for (index_t bad : {0, 7, 49}) {
      auto A = random_general<T>(this->random, 50, 2);
      for (index_t i = 0; i < A.n; ++i) A.entries.erase({bad, i});  // structurally: an empty column
      const auto empty = A.compact();
      SparseLu<T> F(this->q, analyze_lu(empty.pattern(), {.ordering = ordering}));
      EXPECT_EQ(F.info(), -1);
      EXPECT_EQ(F.try_factor(empty.values), bad + 1);
      EXPECT_EQ(F.info(), bad + 1);
      EXPECT_EQ(F.det().sign, T(0));
      EXPECT_EQ(F.det().log_abs, -std::numeric_limits<real_t<T>>::infinity());
      try {
        F.factor(empty.values);
        ADD_FAILURE() << "no exception";
      } catch (const Singular& e) {
        EXPECT_EQ(e.row(), bad + 1);
        EXPECT_NE(std::string(e.what()).find("column " + std::to_string(bad + 1)), std::string::npos) << e.what();
      }
      EXPECT_THROW(F.solve(std::vector<T>(50)), InvalidArgument);

      for (index_t i = 0; i < A.n; ++i) A.entries[{bad, i}] = T(0);  // numerically: stored zeros
      const auto zeros = A.compact();
      SparseLu<T> G(this->q, analyze_lu(zeros.pattern(), {.ordering = ordering}));
      EXPECT_EQ(G.try_factor(zeros.values), bad + 1);
    }
}

// Two equal columns: the later one of the order fails, and the object takes the next matrix.
TYPED_TEST(SparseLuTest, BeginsAnewAfterAFailure) {
  using T = TypeParam;
  auto A = banded<T>(this->random, 30, 2, 2);
  auto bad = A;
  for (auto& [place, value] : bad.entries) value = T(0);
  for (index_t j = 0; j < 30; ++j) bad.entries[{j, j}] = T(1);
  bad.entries[{3, 3}] = bad.entries[{3, 4}] = bad.entries[{4, 3}] = bad.entries[{4, 4}] = T(1);
  SparseLu<T> F(this->q, analyze_lu(A.compact().pattern(), {.ordering = LuOrdering::Natural}));
  EXPECT_EQ(F.try_factor(bad.compact().values), 5);
  F.factor(A.compact().values);
  this->expect_solves(A, F, 300);
}

// More rows than columns hold them: no pivots are left for one of two columns.
TYPED_TEST(SparseLuTest, FindsStructuralSingularityWithoutAnEmptyColumn) {
  using T = TypeParam;
  General<T> A{"two columns, one row", 6};
  for (index_t j = 0; j < 6; ++j) A.entries[{j, j}] = T(2);
  A.entries.erase({5, 5});
  A.entries[{5, 2}] = T(1);
  A.entries[{2, 2}] = T(1);
  for (LuOrdering ordering : orderings) {
    const auto given = A.compact();
    SparseLu<T> F(this->q, analyze_lu(given.pattern(), {.ordering = ordering}));
    const index_t info = F.try_factor(given.values);
    EXPECT_TRUE(info == 3 || info == 6) << info;
  }
  General<T> none{"no entries", 3};
  const auto given = none.compact();
  SparseLu<T> F(this->q, analyze_lu(given.pattern()));
  EXPECT_GE(F.try_factor(given.values), 1);
}

// A NaN wins: the factorization is complete, and the solution is NaN where it depends on it. With an infinite entry the
// solution is what the arithmetic makes of it, and refinement tells that it is no good.
TYPED_TEST(SparseLuTest, NanAndInfinityPassThrough) {
  using T = TypeParam;
  for (const auto bad : {std::numeric_limits<real_t<T>>::quiet_NaN(), std::numeric_limits<real_t<T>>::infinity()})
    for (LuOrdering ordering : orderings) {
      auto A = full_general<T>(this->random, 40);
      A.entries[{17, 4}] = T(bad);
      const auto given = A.compact();
      SparseLu<T> F(this->q, analyze_lu(given.pattern(), {.ordering = ordering}));
      EXPECT_EQ(F.try_factor(given.values), 0);
      const auto x = F.solve(std::vector<T>(40, T(1)));
      const bool any_nan = std::any_of(x.begin(), x.end(), [](T v) { return std::isnan(std::abs(v)); });
      EXPECT_TRUE(any_nan || std::isinf(bad));
      EXPECT_FALSE(std::isfinite(F.norm1()));
      EXPECT_EQ(F.rcond(), 0);
      // Refinement ends, too.
      auto B = random_matrix<T>(this->random, 40, 1);
      const auto refined = F.solve_refined(given.values, B.view());
      EXPECT_FALSE(refined.backward_error < 1);
    }
}

// Where a reciprocal overflows, and where products do.
TYPED_TEST(SparseLuTest, TinyAndHugePivots) {
  using T = TypeParam;
  using R = real_t<T>;
  const R tiny = std::numeric_limits<R>::denorm_min() * 8, huge = std::numeric_limits<R>::max() / 4;
  for (const bool equilibrate : {false, true})
    for (const R scale : {tiny, huge}) {
      General<T> A{"scaled", 2, {{{0, 0}, T(scale)}, {{1, 0}, T(scale)}, {{1, 1}, T(1)}}};
      const auto given = A.compact();
      SparseLu<T> F(this->q, analyze_lu(given.pattern()), {.equilibrate = equilibrate});
      EXPECT_EQ(F.try_factor(given.values), 0);
      const auto x = F.solve({T(scale), T(0)});  // [scale scale; 0 1] x = (scale, 0)
      EXPECT_NEAR(std::abs(x[0] - T(1)), 0, 1e-5);
      EXPECT_EQ(x[1], T(0));
    }
}

// Mistakes.

TYPED_TEST(SparseLuTest, RefusesWrongCalls) {
  using T = TypeParam;
  const auto A = banded<T>(this->random, 4, 1, 1);
  const auto given = A.compact();
  const auto text = [](auto call) {
    try {
      call();
    } catch (const InvalidArgument& e) { return std::string(e.what()); }
    return std::string("no exception");
  };
  auto pattern = given.pattern();
  pattern.stored = Stored::Lower;
  EXPECT_EQ(text([&] { analyze_lu(pattern); }),
            "analyze_lu: pattern.stored must be Full: LU reads every entry of the matrix");
  pattern = given.pattern();
  pattern.cols = 5;
  EXPECT_EQ(text([&] { analyze_lu(pattern); }), "analyze_lu: pattern.cols = 5 must equal pattern.rows = 4");
  auto broken = given;
  broken.index[3] = 4;
  EXPECT_EQ(text([&] { analyze_lu(broken.pattern()); }),
            "analyze_lu: pattern.index[3] in column 1 = 4 must be at least 0 and less than n = 4");
  EXPECT_EQ(text([&] { analyze_lu(given.pattern(), {.permutation = {0}}); }),
            "analyze_lu: the size of options.permutation = 1 must be 0 unless ordering is Given");
  EXPECT_EQ(text([&] {
              analyze_lu(given.pattern(), {.ordering = LuOrdering::Given, .permutation = {0, 1, 1, 2}});
            }),
            "analyze_lu: options.permutation[2] = 1 must appear once, but is at 1 too");
  EXPECT_EQ(text([&] { SparseLu<T>(this->q, nullptr); }), "SparseLu: plan must not be null");

  SparseLu<T> F(this->q, analyze_lu(given.pattern()));
  EXPECT_EQ(text([&] { F.solve(std::vector<T>(4)); }), "SparseLu::solve: nothing has been factored yet");
  EXPECT_EQ(text([&] { F.det(); }), "SparseLu::det: nothing has been factored yet");
  EXPECT_EQ(text([&] { F.rcond(); }), "SparseLu::rcond: nothing has been factored yet");
  EXPECT_EQ(text([&] { F.norm1(); }), "SparseLu::norm1: nothing has been factored yet");
  EXPECT_EQ(text([&] { F.factor(std::vector<T>(3)); }),
            "SparseLu::factor: values.size() = 3 must equal the entries of the pattern, 10");
  F.factor(given.values);
  EXPECT_EQ(text([&] { F.solve(std::vector<T>(3)); }), "SparseLu::solve: b.size() = 3 must equal the order of A, 4");
  HostMatrix<T> B(5, 1);
  EXPECT_EQ(text([&] { F.solve(B.view()); }), "SparseLu::solve: B.rows = 5 must equal the order of A, 4");
}

TYPED_TEST(SparseLuTest, RefusesACudaQueue) {
  using T = TypeParam;
  if (!why_no_cuda().empty()) GTEST_SKIP() << why_no_cuda();
  auto cuda = Queue::cuda();
  const auto A = banded<T>(this->random, 4, 1, 1).compact();
  try {
    SparseLu<T>(cuda, analyze_lu(A.pattern()));
    ADD_FAILURE() << "no exception";
  } catch (const InvalidArgument& e) {
    EXPECT_EQ(std::string(e.what()),
              "SparseLu: sparse LU runs on the host only: give it Queue::host() in place of a CUDA queue");
  }
}

// Memory.

TYPED_TEST(SparseLuTest, EveryFailedAllocationIsOutOfMemory) {
  using T = TypeParam;
  const auto A = random_general<T>(this->random, 150, 3);  // fills enough for the factors to grow
  const auto given = A.compact();
  const auto plan = analyze_lu(given.pattern());
  const auto all = [&] {
    SparseLu<T> F(this->q, plan);
    F.factor(given.values);
    auto B = random_matrix<T>(this->random, A.n, 5);
    F.solve(B.view());
    F.solve_refined(given.values, B.view());
    F.rcond();
  };
  const index_t before = testing::allocation_count();
  all();
  const index_t count = testing::allocation_count() - before;
  EXPECT_GT(count, 25);
  for (index_t k = 1; k <= count; ++k) {
    testing::fail_allocation(k);
    EXPECT_THROW(all(), OutOfMemory) << "allocation " << k << " of " << count;
  }
  testing::fail_allocation(0);

  // An object survives its failed factorization.
  SparseLu<T> F(this->q, plan);
  for (index_t k = 1; k < count / 2; ++k) {
    testing::fail_allocation(k);
    try {
      F.factor(given.values);
    } catch (const OutOfMemory&) { EXPECT_EQ(F.info(), -1); }
  }
  testing::fail_allocation(0);
  F.factor(given.values);
  this->expect_solves(A, F);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool limits_count = false;  // shadow memory is address space, too
#else
constexpr bool limits_count = true;
#endif

// SuperLU itself would end the process with its own words and status.
TYPED_TEST(SparseLuTest, OutOfMemoryUnderALimitIsAnException) {
  using T = TypeParam;
  if (!limits_count) GTEST_SKIP() << "the sanitizers take address space of their own";
  const auto given = full_general<T>(this->random, 300).compact();  // factors of 90,000 entries, grown step by step
  const auto plan = analyze_lu(given.pattern());
  { this->factored(given); }  // BLAS takes its buffers
  for (const int megabytes : {0, 1, 3}) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      std::size_t pages = 0;
      if (FILE* const file = std::fopen("/proc/self/statm", "r")) {
        if (std::fscanf(file, "%zu", &pages) != 1) ::_exit(10);
        std::fclose(file);
      }
      const rlim_t limit = pages * rlim_t(::sysconf(_SC_PAGESIZE)) + (rlim_t(megabytes) << 20);
      const rlimit both{limit, limit};
      if (pages == 0 || ::setrlimit(RLIMIT_AS, &both) != 0) ::_exit(11);
      try {
        auto q = Queue::host(1);
        std::vector<SparseLu<T>> all;
        for (int k = 0; k < 1000; ++k) all.emplace_back(q, plan).factor(given.values);
      } catch (const OutOfMemory&) { ::_exit(0); } catch (const std::bad_alloc&) {
        ::_exit(12);
      } catch (...) { ::_exit(13); }
      ::_exit(14);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
    EXPECT_EQ(WEXITSTATUS(status), 0) << megabytes << " MiB";
  }
}

}  // namespace
}  // namespace trifactor::test
