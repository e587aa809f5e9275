// LU of one matrix of any shape: factors, pivots, permutation, and matrices that are singular or not numbers.
#include <support/batches.hpp>
#include <support/ratios.hpp>

#include <algorithm>
#include <numeric>

namespace trifactor::test {
namespace {

// Panels of 1, 3 and 8 columns, halved down to fewer.
constexpr const char* forced_paths[] = {"whole=0 nb=1 leaf=1", "whole=0 nb=3 leaf=1", "whole=0 nb=3 leaf=3",
                                        "whole=0 nb=8 leaf=1", "whole=0 nb=8 leaf=3", "whole=0 nb=8 leaf=8"};

template <class T>
class Lu : public DeviceTest {
 protected:
  /// Factors A and checks what holds for every input.
  Factored<T> factor(const HostMatrix<T>& A, const LuOptions& options = {}) {
    auto result = factor_lu(q, A, options);
    EXPECT_TRUE(same_frame(A, result.F)) << "wrote outside the matrix";
    for (index_t k = 0; k < index_t(result.pivots.size()); ++k) {
      EXPECT_GE(result.pivots[k], k + 1);
      EXPECT_LE(result.pivots[k], A.rows);
    }
    return result;
  }
  void expect_right(const HostMatrix<T>& A, const Factored<T>& result) {
    EXPECT_EQ(result.info, 0);
    EXPECT_LT(lu_ratio(A, result.F, result.pivots), threshold);
    // Pivots are the largest in |re| + |im|, which is at most sqrt(2) times the modulus.
    const double bound = (ComplexScalar<T> ? std::sqrt(2.0) : 1.0) + 30 * eps<T>;
    double largest = 0;
    for (index_t j = 0; j < std::min(A.rows, A.cols); ++j)
      for (index_t i = j + 1; i < A.rows; ++i) largest = std::max(largest, double(std::abs(result.F(i, j))));
    EXPECT_LE(largest, bound);
  }
  /// Calls f(options, path) for the default and for every forced path; path is empty where any will do.
  template <class F>
  void for_every_path(F f) {
    f(LuOptions{}, std::string());
    for (const char* tuning : forced_paths) {
      SCOPED_TRACE(tuning);
      f(LuOptions{.tuning = tuning}, std::string("blocked right"));
    }
    if (!on_cuda()) return;
    SCOPED_TRACE("hybrid");
    f(LuOptions{.mode = Mode::Hybrid, .tuning = "nb=8 leaf=3"}, std::string("blocked right hybrid"));
  }
  void expect_path(const Factored<T>& result, const std::string& path) {
    if (!path.empty()) { EXPECT_EQ(result.path, path); }
  }
};
TYPED_TEST_SUITE(Lu, Scalars, ScalarNames);

TYPED_TEST(Lu, FactorsEveryShape) {
  const std::pair<index_t, index_t> shapes[] = {
      {0, 0},   {0, 5},   {5, 0},    {1, 1},    {1, 7},     {7, 1},     {2, 2},     {3, 3},     {5, 5},  {10, 10},
      {50, 50}, {63, 63}, {64, 64},  {65, 65},  {127, 127}, {130, 130}, {200, 200}, {300, 300}, {10, 3}, {3, 10},
      {200, 7}, {7, 200}, {130, 64}, {64, 130}, {129, 128}, {128, 129}, {300, 40},  {40, 300}};
  for (auto [m, n] : shapes)
    for (index_t pad : {0, 3}) {
      SCOPED_TRACE(::testing::Message() << m << " x " << n << " pad=" << pad);
      const auto A = random_matrix<TypeParam>(this->random, m, n, pad);
      const auto result = this->factor(A);
      this->expect_right(A, result);
      if (m > 0 && n > 0 && !on_cuda()) {
        EXPECT_EQ(result.path, "lapack");
      } else if (m > 0 && n > 0) {
        EXPECT_FALSE(result.path.ends_with("hybrid")) << "Auto never leaves the queue's device";
      }
    }
}

TYPED_TEST(Lu, FactorsWithEveryForcedPath) {
  const std::pair<index_t, index_t> shapes[] = {{0, 3},  {1, 1},  {2, 2},   {3, 3},   {4, 4},   {5, 5},   {7, 7},
                                                {8, 8},  {9, 9},  {10, 10}, {16, 16}, {17, 17}, {50, 50}, {40, 8},
                                                {40, 9}, {8, 40}, {9, 40},  {1, 20},  {20, 1},  {65, 64}};
  for (auto [m, n] : shapes) {
    SCOPED_TRACE(::testing::Message() << m << " x " << n);
    const auto A = random_matrix<TypeParam>(this->random, m, n, n % 2 ? 2 : 0);
    this->for_every_path([&](const LuOptions& options, const std::string& path) {
      const auto result = this->factor(A, options);
      this->expect_right(A, result);
      if (m > 0 && n > 0) this->expect_path(result, path);
    });
  }
}

TYPED_TEST(Lu, FactorsWithWidePanels) {
  for (auto [m, n] : {std::pair<index_t, index_t>{200, 200}, {200, 129}, {129, 200}}) {
    const auto A = random_matrix<TypeParam>(this->random, m, n, 1);
    for (const char* tuning : {"whole=0 nb=64 leaf=16", "whole=0 nb=64 leaf=64"}) {
      SCOPED_TRACE(::testing::Message() << m << " x " << n << ' ' << tuning);
      const auto result = this->factor(A, {.tuning = tuning});
      this->expect_right(A, result);
      EXPECT_EQ(result.path, "blocked right");
    }
  }
}

// On CUDA the rows of a panel are those of one block, of few blocks, and of 16: with all columns in registers, with some of
// them in shared memory, and with fewer columns at a time. The tallest ones take a launch for each column. Columns of 52,000
// rows are too tall for a block's shared memory when they are permuted in the end.
TYPED_TEST(Lu, FactorsTallPanels) {
  for (auto [m, n] : {std::pair<index_t, index_t>{223, 33}, {225, 32}, {449, 40}, {900, 65}, {1800, 31}, {4000, 33}, {7200, 40},
                      {14400, 33}, {28800, 17}, {57400, 9}, {52000, 40}, {92000, 5}}) {
    if (!on_cuda() && m * n > 1000000) continue;   // long to check
    SCOPED_TRACE(::testing::Message() << m << " x " << n);
    const auto A = random_matrix<TypeParam>(this->random, m, n, m % 2);
    for (const char* tuning : {"whole=0 nb=32 leaf=32 tall=2147483647", "whole=0 nb=64 leaf=8 tall=2147483647"})
      this->expect_right(A, this->factor(A, {.tuning = tuning}));
  }
}

// Panels by all multiprocessors, and, with the last shapes, by a launch for each column.
TYPED_TEST(Lu, FactorsTallMatricesInOnePanel) {
  if (!on_cuda()) GTEST_SKIP() << "of the device";
  for (auto [m, n] : {std::pair<index_t, index_t>{50000, 100}, {48000, 33}, {93000, 40}, {200000, 7}, {800000, 3}}) {
    SCOPED_TRACE(::testing::Message() << m << " x " << n);
    auto A = random_matrix<TypeParam>(this->random, m, n, m % 3);
    if (n == 33)   // the same row again and again, and a column of zeros
      for (index_t j = 0; j < n; ++j)
        for (index_t i = 0; i < m; ++i) A(i, j) = j == 5 ? TypeParam(0) : A(i % 100, j);
    const auto result = this->factor(A, {.tuning = "whole=0 nb=32 leaf=32 tall=6"});
    // Up to nb columns are one panel anyway, and the path does not say so.
    EXPECT_EQ(result.path, n > 32 ? "blocked right in one panel" : "blocked right");
    if (n == 33) {
      EXPECT_EQ(result.info, 6);
      EXPECT_LT(lu_ratio(A, result.F, result.pivots), threshold);
    } else {
      this->expect_right(A, result);
    }
    for (int again = 0; again < 3; ++again) {
      const auto repeated = this->factor(A, {.tuning = "whole=0 nb=32 leaf=32 tall=6"});
      EXPECT_EQ(repeated.pivots, result.pivots);
      EXPECT_TRUE(same_bits(repeated.F, result.F));
    }
  }
}

// Of rows that are equal, and stay so, LAPACK takes the upper one, wherever interchanges have moved them.
TYPED_TEST(Lu, FactorsInManyPanels) {
  for (auto [m, n] : {std::pair<index_t, index_t>{420, 420}, {321, 700}, {700, 321}, {2200, 300}, {300, 2200}, {2100, 640}}) {
    if (!on_cuda() && std::max(m, n) > 1200) continue;   // sizes at which the GPU moves rows in the end
    const auto A = random_matrix<TypeParam>(this->random, m, n, m % 2);
    for (auto [nb, by_rows] : {std::pair<index_t, bool>{32, false}, {96, false}, {128, false}, {256, false}, {300, false}, {32, true},
                               {64, true}, {300, true}}) {
      const std::string tuning = "whole=0 nb=" + std::to_string(nb) + " leaf=32" + (by_rows ? " by_rows=1" : "");
      SCOPED_TRACE(::testing::Message() << m << " x " << n << ' ' << tuning);
      const auto result = this->factor(A, {.tuning = tuning});
      this->expect_right(A, result);
      const bool has_far_columns = n > 2 * std::min({nb, m, n});   // beyond the first two panels
      EXPECT_EQ(result.path, on_cuda() && by_rows && has_far_columns ? "blocked right by rows" : "blocked right");
    }
  }
}

// A matrix of 200,000 rows takes more than half of any device's memory.
TYPED_TEST(Lu, CopiesByRowsOnlyIntoHalfOfTheFreeMemory) {
  if (!on_cuda()) GTEST_SKIP() << "the host updates by columns";
  TypeParam entry{};
  const auto scratch = [&](index_t n, const char* by_rows) {
    const LuOptions options{.tuning = std::string("whole=0 nb=64 leaf=32 by_rows=") + by_rows};
    return lu_scratch(this->q, MatrixView<TypeParam>{&entry, n, n, n}, options);
  };
  EXPECT_GE(scratch(500, "1"), scratch(500, "2147483647") + 500 * 512 * sizeof(TypeParam));
  EXPECT_EQ(scratch(200000, "1"), scratch(200000, "2147483647"));
}

TYPED_TEST(Lu, TakesTheUpperOfEqualRows) {
  if (!on_cuda()) GTEST_SKIP() << "BLAS rounds rows of one product differently";
  for (index_t twins : {30, 300, 1100}) {
    const index_t m = 2 * twins, n = 20;
    auto A = random_matrix<TypeParam>(this->random, m, n);
    for (index_t j = 0; j < n; ++j)
      for (index_t i = 0; i < twins; ++i) A(i + twins, j) = A(i, j);
    const auto result = this->factor(A, {.tuning = "whole=0 nb=32 leaf=32"});
    std::vector<index_t> row(m);   // which lies at a place
    std::iota(row.begin(), row.end(), index_t(0));
    std::vector<bool> used(m);
    for (index_t k = 0; k < n; ++k) {
      const index_t p = result.pivots[k] - 1, twin = (row[p] + twins) % m;
      const index_t place = std::find(row.begin(), row.end(), twin) - row.begin();
      if (!used[twin]) { EXPECT_LT(p, place) << "column " << k << " of " << m << " rows"; }
      used[row[p]] = true;
      std::swap(row[k], row[p]);
    }
  }
}

TYPED_TEST(Lu, ThousandsInTurnGiveTheSameBits) {
  const auto A = random_matrix<TypeParam>(this->random, 1000, 70);
  const auto first = this->factor(A);
  for (int i = 0; i < (on_cuda() ? 2500 : 3); ++i) {
    const auto again = factor_lu(this->q, A, {});
    ASSERT_EQ(again.pivots, first.pivots) << "in turn " << i;
    ASSERT_TRUE(same_bits(again.F, first.F)) << "in turn " << i;
  }
}

TYPED_TEST(Lu, HybridFactorsOnCudaAndIsRefusedOnTheHost) {
  for (auto [m, n] : {std::pair<index_t, index_t>{1, 1}, {200, 200}, {600, 100}, {100, 600}, {500, 500}}) {
    SCOPED_TRACE(::testing::Message() << m << " x " << n);
    const auto A = random_matrix<TypeParam>(this->random, m, n, 1);
    const LuOptions hybrid{.mode = Mode::Hybrid, .tuning = "nb=64"};
    if (!on_cuda()) {
      EXPECT_THROW(this->factor(A, hybrid), InvalidArgument);
      continue;
    }
    const auto result = this->factor(A, hybrid);
    this->expect_right(A, result);
    EXPECT_EQ(result.path, "blocked right hybrid");
  }
}

/// A launch copies no more than 65535 * 32 columns.
TYPED_TEST(Lu, ColumnsByRowsMayBeMillions) {
  if (!on_cuda() || !std::is_same_v<TypeParam, float>) GTEST_SKIP() << "of CUDA queues, in the smallest scalar";
  const auto A = random_matrix<TypeParam>(this->random, 40, 65535 * 32 + 100);
  const auto result = this->factor(A, {.tuning = "whole=0 nb=16 leaf=16 by_rows=1"});
  this->expect_right(A, result);
  EXPECT_EQ(result.path, "blocked right by rows");
}

TYPED_TEST(Lu, TakesTheUpperOfTwoEqualPivots) {
  for (index_t n : {2, 9, 70}) {
    auto A = random_matrix<TypeParam>(this->random, n, n);
    for (index_t i = 0; i < n; ++i) A(i, 0) = TypeParam(i % 3 == 1 ? 2 : i % 3 == 2 ? -2 : 1);
    this->for_every_path(
        [&](const LuOptions& options, const std::string&) { EXPECT_EQ(this->factor(A, options).pivots[0], 2); });
  }
}

TYPED_TEST(Lu, PermutationSaysWhichRowStandsWhere) {
  for (auto [m, n] : {std::pair<index_t, index_t>{0, 0}, {1, 1}, {10, 10}, {50, 20}, {20, 50}, {300, 300}}) {
    SCOPED_TRACE(::testing::Message() << m << " x " << n);
    const auto A = random_matrix<TypeParam>(this->random, m, n);
    const auto result = this->factor(A);
    const auto PA = interchange(A, result.pivots);
    DeviceArray<int> pivots(this->q, result.pivots), p(this->q, m + 1, garbage);
    lu_row_permutation(this->q, pivots.data(), index_t(result.pivots.size()), p.data(), m);
    this->q.sync();
    auto rows = p.download();
    EXPECT_EQ(rows.back(), garbage) << "wrote behind p";
    rows.pop_back();
    for (index_t i = 0; i < m; ++i) {
      ASSERT_TRUE(rows[i] >= 0 && rows[i] < m) << rows[i];
      for (index_t j = 0; j < n; ++j) ASSERT_EQ(PA(i, j), A(rows[i], j)) << i;
    }
    std::sort(rows.begin(), rows.end());
    std::vector<int> all(m);
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(rows, all);
  }
}

TYPED_TEST(Lu, OfManyZeroPivotsTheFirstCounts) {
  using T = TypeParam;
  for (index_t n : {2, 5, 9, 37, 64, 150, 300, 1100}) {
    SCOPED_TRACE(::testing::Message() << "n=" << n);
    HostMatrix<T> ones(n, n);
    for (index_t j = 0; j < n; ++j)
      for (index_t i = 0; i < n; ++i) ones(i, j) = T(1);
    EXPECT_EQ(this->factor(ones, {}).info, 2);
  }
}

TYPED_TEST(Lu, ReportsTheFirstZeroPivotAndGoesOn) {
  for (auto [m, n] : {std::pair<index_t, index_t>{1, 1}, {10, 10}, {20, 9}, {17, 17}, {70, 70}})
    for (index_t k : {index_t(0), n / 2, n - 1}) {
      SCOPED_TRACE(::testing::Message() << m << " x " << n << " column " << k << " zero");
      auto A = random_matrix<TypeParam>(this->random, m, n);
      for (index_t i = 0; i < m; ++i) A(i, k) = TypeParam(0);
      auto B = A;  // the same with a second zero column
      for (index_t i = 0; i < m; ++i) B(i, n - 1) = TypeParam(0);
      this->for_every_path([&](const LuOptions& options, const std::string& path) {
        for (const auto& M : {A, B}) {
          const auto result = this->factor(M, options);
          EXPECT_EQ(result.info, k + 1);
          EXPECT_LT(lu_ratio(M, result.F, result.pivots), threshold);
          this->expect_path(result, path);
        }
      });
    }
}

TYPED_TEST(Lu, ReportsEachColumnInTurn) {
  const index_t n = 20;
  for (index_t k = 0; k < n; ++k) {
    SCOPED_TRACE(::testing::Message() << "column " << k << " zero");
    auto A = random_matrix<TypeParam>(this->random, n, n);
    for (index_t i = 0; i < n; ++i) A(i, k) = TypeParam(0);
    this->for_every_path(
        [&](const LuOptions& options, const std::string&) { EXPECT_EQ(this->factor(A, options).info, k + 1); });
  }
}

/// Its rows stay where they are: every pivot is on the diagonal.
template <class T>
HostMatrix<T> dominant(Random& random, index_t n) {
  auto A = random_matrix<T>(random, n, n);
  for (index_t j = 0; j < n; ++j) A(j, j) = T(real_t<T>(4 * n));
  return A;
}

TYPED_TEST(Lu, NaNWinsThePivotSearch) {
  using T = TypeParam;
  for (index_t n : {5, 20, 70})
    for (index_t c : {index_t(0), n / 2, n - 2})
      for (index_t r : {c + 1, n - 1})
        for (T bad : {T(nan<T>), make_scalar<T>(0, nan<T>)}) {
          if (!std::isnan(std::abs(bad))) continue;
          SCOPED_TRACE(::testing::Message() << "n=" << n << " NaN at " << r << ',' << c);
          auto A = dominant<T>(this->random, n);
          A(r, c) = bad;
          this->for_every_path([&](const LuOptions& options, const std::string& path) {
            const auto result = this->factor(A, options);
            EXPECT_EQ(result.info, 0);
            for (index_t k = 0; k < c; ++k) EXPECT_EQ(result.pivots[k], k + 1);
            EXPECT_EQ(result.pivots[c], r + 1);
            this->expect_path(result, path);
          });
        }
}

// Two infinities in a column: the quotient of the lower by the upper is NaN, and so is its row in the next search.
TYPED_TEST(Lu, NaNMadeByInfinitiesWinsThePivotSearch) {
  using T = TypeParam;
  for (index_t n : {5, 20, 70}) {
    SCOPED_TRACE(::testing::Message() << "n=" << n);
    auto A = dominant<T>(this->random, n);
    A(0, 0) = A(3, 0) = T(inf<T>);
    this->for_every_path([&](const LuOptions& options, const std::string&) {
      const auto result = this->factor(A, options);
      EXPECT_EQ(result.pivots[0], 1);
      EXPECT_EQ(result.pivots[1], 4);
      EXPECT_EQ(result.info, 0);
    });
  }
}

TYPED_TEST(Lu, RepeatsBitwise) {
  for (index_t n : {5, 50, 100, 300, 600}) {
    const auto A = random_matrix<TypeParam>(this->random, n, n, 1);
    this->for_every_path([&](const LuOptions& options, const std::string& path) {
      if (n > 100 && !path.empty()) return;  // tiny panels are slow, and no other there
      const auto first = this->factor(A, options), second = this->factor(A, options);
      EXPECT_TRUE(same_bits(first.F, second.F)) << "n=" << n << ' ' << first.path;
      EXPECT_EQ(first.pivots, second.pivots);
    });
  }
}

// LAPACK's eleven types of general test matrices; those with zero columns are above.
/// Entry by entry; a zero may have another sign.
template <class T>
bool same_numbers(const HostMatrix<T>& A, const HostMatrix<T>& B) {
  bool same = true;
  for (index_t j = 0; j < A.cols; ++j)
    for (index_t i = 0; i < A.rows; ++i) same = same && A(i, j) == B(i, j);
  return same;
}

/// Pivots whose reciprocal overflows: the factors and the solutions are finite, and right.
TYPED_TEST(Lu, DividesBySubnormalPivots) {
  using T = TypeParam;
  using R = real_t<T>;
  const R tiny = std::numeric_limits<R>::min() / 64;  // some digits are left
  for (index_t n : {2, 10, 40})
    for (index_t at : {index_t(0), n - 1})
      this->for_every_path([&](const LuOptions& options, const std::string& path) {
        SCOPED_TRACE(::testing::Message() << "n=" << n << " at " << at << ' ' << path);
        HostMatrix<T> A(n, n);
        for (index_t j = 0; j < n; ++j)
          for (index_t i = 0; i <= j; ++i) A(i, j) = i == j || j == n - 1 ? T(1) : T(0);
        A(at, at) = make_scalar<T>(tiny, tiny);
        const auto F = this->factor(A, options);
        EXPECT_EQ(F.info, 0);
        EXPECT_TRUE(same_numbers(F.F, A)) << "an upper triangle is its own factor";
        if (on_cuda()) return;  // solves there multiply by reciprocals
        HostMatrix<T> B(n, 2);
        for (index_t c = 0; c < 2; ++c) B(at, c) = A(at, at), B(n - 1, c) = at == n - 1 ? A(at, at) : T(0);
        for (Op op : all_ops) {
          const auto X = solve_lu(this->q, op, F, B);
          for (index_t c = 0; c < 2; ++c)
            for (index_t i = 0; i < n; ++i)
              ASSERT_TRUE(std::isfinite(std::abs(X(i, c)))) << name(op) << ": row " << i << " is " << X(i, c);
        }
        EXPECT_EQ(solve_lu(this->q, Op::None, F, B)(at, 0), T(1));
        const Items<T> items(3, A);
        const auto all = factor_lu(this->q, Kind::Strided, items);
        for (std::size_t b = 0; b < 3; ++b) EXPECT_TRUE(same_numbers(all.F[b], A)) << "item " << b;
        for (const auto& X : solve_lu(this->q, Kind::Strided, Op::None, all, Items<T>(3, B))) EXPECT_EQ(X(at, 1), T(1));
      });
}

TYPED_TEST(Lu, DividesByASubnormalPivotAlone) {
  using T = TypeParam;
  using R = real_t<T>;
  const R tiny = sizeof(R) == 8 ? R(1e-315) : R(1e-40);
  HostMatrix<T> A(2, 2);
  A(0, 0) = T(tiny), A(0, 1) = A(1, 1) = T(1);
  const auto F = this->factor(A);
  EXPECT_EQ(F.info, 0);
  EXPECT_TRUE(same_numbers(F.F, A));
}

TYPED_TEST(Lu, FactorsTheMatricesOfLapacksOwnTests) {
  using T = TypeParam;
  const double bad_condition = 0.1 / eps<T>;
  for (index_t n : {1, 2, 3, 5, 10, 50}) {
    HostMatrix<T> diagonal(n, n);
    auto upper = random_matrix<T>(this->random, n, n), lower = upper;
    for (index_t j = 0; j < n; ++j) {
      diagonal(j, j) = upper(j, j) = lower(j, j) =
          make_scalar<T>(real_t<T>(this->random.uniform(0.5, 2)), real_t<T>(this->random.uniform()));
      for (index_t i = 0; i < n; ++i)
        if (i != j) (i > j ? upper : lower)(i, j) = T(0);
    }
    auto half = random_matrix<T>(this->random, n, n);
    for (index_t j = n / 2; j < n; ++j)
      for (index_t i = 0; i < n; ++i) half(i, j) = T(0);
    const std::pair<const char*, HostMatrix<T>> good[] = {
        {"diagonal", diagonal},
        {"upper", upper},
        {"lower", lower},
        {"condition 2", with_singular_values<T>(this->random, graded(n, 2))},
        {"one singular value large", with_singular_values<T>(this->random, one_apart(n, 1, 1 / std::sqrt(bad_condition)))},
        {"one singular value small", with_singular_values<T>(this->random, one_apart(n, 1 / bad_condition, 1))},
        {"condition sqrt(0.1/eps)", with_singular_values<T>(this->random, graded(n, std::sqrt(bad_condition)))},
        {"condition 0.1/eps", with_singular_values<T>(this->random, graded(n, bad_condition))},
        {"near underflow", with_singular_values<T>(this->random, graded(n, 2), tiny_scale<T>())},
        {"near overflow", with_singular_values<T>(this->random, graded(n, 2), huge_scale<T>())}};
    this->for_every_path([&](const LuOptions& options, const std::string&) {
      for (const auto& [type, A] : good) {
        SCOPED_TRACE(::testing::Message() << type << " n=" << n);
        this->expect_right(A, this->factor(A, options));
      }
      const auto result = this->factor(half, options);
      EXPECT_EQ(result.info, n / 2 + 1);
      EXPECT_LT(lu_ratio(half, result.F, result.pivots), threshold);
    });
  }
}

}  // namespace
}  // namespace trifactor::test
