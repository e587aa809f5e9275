// LU of batches of every kind: each item as if it were alone, whatever its neighbours are.
#include <support/batches.hpp>

namespace trifactor::test {
namespace {

using Shape = std::pair<index_t, index_t>;
constexpr const char* blocked[] = {"whole=0 nb=1 leaf=1", "whole=0 nb=3 leaf=1", "whole=0 nb=8 leaf=3",
                                   "whole=0 nb=40 leaf=7"};

template <class T>
class LuBatch : public DeviceTest {
 protected:
  /// count items of one shape; of the ragged kind, the first has it and the others have any up to it.
  Items<T> items(Kind kind, index_t count, Shape shape, index_t pad = 0) {
    Items<T> A;
    for (index_t i = 0; i < count; ++i) {
      const bool vary = kind == Kind::Ragged && i > 0;
      A.push_back(random_matrix<T>(random, vary ? random.integer(0, shape.first) : shape.first,
                                   vary ? random.integer(0, shape.second) : shape.second, vary ? i % 3 : pad));
    }
    return A;
  }
  Items<T> square_items(Kind kind, index_t count, index_t n, index_t pad = 0) {
    Items<T> A;
    for (index_t i = 0; i < count; ++i) {
      const index_t own = kind == Kind::Ragged && i > 0 ? random.integer(0, n) : n;
      A.push_back(random_matrix<T>(random, own, own, kind == Kind::Ragged ? i % 3 : pad));
    }
    return A;
  }
  Items<T> rhs(const Items<T>& A, index_t columns) {
    Items<T> B;
    for (const auto& item : A) B.push_back(random_matrix<T>(random, item.rows, columns, 1));
    return B;
  }
};
TYPED_TEST_SUITE(LuBatch, Scalars, ScalarNames);

template <class T>
void expect_solved(Op op, const Items<T>& A, const Items<T>& X, const Items<T>& B) {
  for (std::size_t i = 0; i < A.size(); ++i)
    ASSERT_LT(solve_ratio(op, A[i], X[i], B[i]), threshold) << "item " << i << " n=" << A[i].rows;
}

TYPED_TEST(LuBatch, FactorsEveryShape) {
  const Shape shapes[] = {{0, 0},   {0, 5},   {5, 0},   {1, 1},   {1, 7},   {7, 1},    {2, 2},    {3, 3},
                          {4, 4},   {5, 5},   {8, 8},   {7, 3},   {3, 7},   {16, 16},  {12, 20},  {32, 32},
                          {33, 33}, {50, 20}, {20, 50}, {64, 64}, {65, 65}, {100, 40}, {40, 100}, {81, 81},
                          {97, 128}, {128, 70}, {113, 113}, {128, 128}, {130, 130}};
  for (Kind kind : all_kinds)
    for (auto shape : shapes)
      for (index_t count : {1, shape.first < 60 ? 19 : 5}) {
        SCOPED_TRACE(::testing::Message()
                     << name(kind) << ' ' << shape.first << " x " << shape.second << " count " << count);
        const auto A = this->items(kind, count, shape, (shape.first + count / 2) % 2 ? 2 : 0);
        expect_right(A, factor_lu(this->q, kind, A));
      }
}

TYPED_TEST(LuBatch, TakesForcedBlockedPaths) {
  for (Kind kind : all_kinds)
    for (auto shape : {Shape{1, 1}, {5, 5}, {9, 9}, {26, 26}, {30, 11}, {11, 30}, {50, 50}})
      for (const char* tuning : blocked) {
        SCOPED_TRACE(::testing::Message()
                     << name(kind) << ' ' << shape.first << " x " << shape.second << ' ' << tuning);
        const auto A = this->items(kind, 7, shape, 1);
        const auto result = factor_lu(this->q, kind, A, {.tuning = tuning});
        expect_right(A, result);
        EXPECT_EQ(result.path, "blocked right");
      }
}

// Columns beside a panel are one operation there on CUDA devices, whatever the width of the panel.
TYPED_TEST(LuBatch, TakesForcedBlockedPathsOfMiddleSizes) {
  for (Kind kind : all_kinds)
    for (auto shape : {Shape{140, 140}, {190, 133}, {129, 200}, {40, 150}})
      for (const char* tuning : {"whole=0 nb=40 leaf=7", "whole=0 nb=100 leaf=32"}) {
        SCOPED_TRACE(::testing::Message()
                     << name(kind) << ' ' << shape.first << " x " << shape.second << ' ' << tuning);
        const auto A = this->items(kind, 6, shape, 1);
        expect_right(A, factor_lu(this->q, kind, A, {.tuning = tuning}));
      }
}

TYPED_TEST(LuBatch, LargerItems) {
  for (Kind kind : all_kinds)
    for (auto shape : {Shape{300, 300}, {600, 70}, {70, 400}, {1100, 40}, {1500, 70}, {1030, 1030}, {7300, 20}}) {
      const auto [m, n] = shape;
      if (!on_cuda() && (m > 1100 || m * n > 100000)) continue;   // these are for panels of many blocks
      SCOPED_TRACE(::testing::Message() << name(kind) << ' ' << shape.first << " x " << shape.second);
      const auto A = this->items(kind, 3, shape, 1);
      expect_right(A, factor_lu(this->q, kind, A));
    }
}

TYPED_TEST(LuBatch, NothingOneAndHugeSideBySide) {
  for (const char* tuning : {"", "whole=0 nb=24 leaf=8"}) {
    Items<TypeParam> A;
    for (index_t n : {0, 1, 200, 2, 0, 31, 1, 33, 3}) A.push_back(random_matrix<TypeParam>(this->random, n, n, n % 2));
    const auto lu = factor_lu(this->q, Kind::Ragged, A, {.tuning = tuning});
    expect_right(A, lu);
    const auto B = this->rhs(A, 3);
    expect_solved(Op::None, A, solve_lu(this->q, Kind::Ragged, Op::None, lu, B), B);
  }
}

TYPED_TEST(LuBatch, ThousandsOfTinyItems) {
  for (Kind kind : all_kinds) {
    SCOPED_TRACE(name(kind));
    const auto A = this->items(kind, 10007, {3, 3});
    expect_right(A, factor_lu(this->q, kind, A));
  }
}

TYPED_TEST(LuBatch, SolvesWithAAndItsTransposes) {
  for (Kind kind : all_kinds)
    for (index_t n : {0, 1, 3, 8, 20, 33, 70, 130}) {
      const auto A = this->square_items(kind, 5, n, 1);
      const auto lu = factor_lu(this->q, kind, A);
      for (Op op : all_ops)
        for (index_t columns : {0, 1, 2, 15, 70}) {
          if (columns == 70 && n != 33) continue;
          SCOPED_TRACE(::testing::Message() << name(kind) << ' ' << name(op) << " n=" << n << " rhs=" << columns);
          const auto B = this->rhs(A, columns);
          expect_solved(op, A, solve_lu(this->q, kind, op, lu, B), B);
        }
    }
}

TYPED_TEST(LuBatch, RaggedRightHandSidesDifferInNumber) {
  for (index_t n : {30, 80}) {
    const auto A = this->square_items(Kind::Ragged, n > 64 ? 9 : 40, n);
    Items<TypeParam> B;
    for (const auto& item : A)
      B.push_back(random_matrix<TypeParam>(this->random, item.rows, this->random.integer(0, 6), 1));
    const auto lu = factor_lu(this->q, Kind::Ragged, A);
    for (Op op : all_ops) expect_solved(op, A, solve_lu(this->q, Kind::Ragged, op, lu, B), B);
  }
}

// What a batch makes of an item is, but for rounding, what the call for one matrix makes of it.
TYPED_TEST(LuBatch, EveryItemIsAsIfFactoredAlone) {
  for (Kind kind : all_kinds)
    for (auto shape : {Shape{1, 1}, {7, 7}, {20, 20}, {50, 30}, {30, 50}, {90, 90}, {140, 140}}) {
      const auto A = this->items(kind, 5, shape, 1);
      const auto batch = factor_lu(this->q, kind, A);
      for (std::size_t b = 0; b < A.size(); ++b) {
        const auto alone = factor_lu(this->q, A[b]);
        EXPECT_EQ(batch.pivots[b], alone.pivots) << name(kind) << " item " << b;
        EXPECT_EQ(batch.info[b], alone.info) << name(kind) << " item " << b;
      }
    }
}

/// Entries whose products vanish: on the host, items with such entries are not all LAPACK's.
TYPED_TEST(LuBatch, EntriesNearZeroAndZeroColumns) {
  using T = TypeParam;
  const auto tiny = T(std::sqrt(std::numeric_limits<real_t<T>>::min()) / 1000);
  for (Kind kind : all_kinds)
    for (auto shape : {Shape{40, 40}, {100, 100}, {150, 37}, {37, 150}, {133, 130}}) {
      auto A = this->items(kind, 3, shape, 1);
      for (auto& a : A)
        for (index_t k = 0; k < a.rows * a.cols / 10; ++k)
          a(this->random.integer(0, a.rows - 1), this->random.integer(0, a.cols - 1)) = tiny;
      SCOPED_TRACE(::testing::Message() << name(kind) << ' ' << shape.first << " x " << shape.second);
      expect_right(A, factor_lu(this->q, kind, A));
      for (index_t i = 0; i < A[0].rows; ++i) A[0](i, A[0].cols / 2) = T(0);
      const auto lu = factor_lu(this->q, kind, A);
      if (A[0].cols <= A[0].rows) { EXPECT_EQ(lu.info[0], A[0].cols / 2 + 1); }
    }
}

// Scales at which squares and reciprocals overflow or vanish.
TYPED_TEST(LuBatch, ItemsOfEveryScale) {
  using T = TypeParam;
  for (Kind kind : all_kinds)
    for (index_t n : {3, 8, 20, 32, 50, 100}) {
      Items<T> A;
      for (double scale : {tiny_scale<T>(), 1.0, huge_scale<T>()})
        A.push_back(with_singular_values<T>(this->random, graded(n, 2), scale));
      SCOPED_TRACE(::testing::Message() << name(kind) << " n=" << n);
      expect_right(A, factor_lu(this->q, kind, A));
    }
}

TYPED_TEST(LuBatch, FactorsAndSolvesInOneCall) {
  using T = TypeParam;
  for (Kind kind : all_kinds)
    for (index_t n : {0, 1, 5, 16, 32, 40, 90})
      for (index_t columns : {1, 3, 40}) {
        SCOPED_TRACE(::testing::Message() << name(kind) << " n=" << n << " rhs=" << columns);
        auto A = this->square_items(kind, 9, n, 1);
        if (n > 0) zero_row_and_column(A[0], n / 2);  // singular
        const auto B = this->rhs(A, columns);
        DeviceBatch<T> F(this->q, A), X(this->q, B);
        DeviceArray<int> info(this->q, 9, garbage), pivots(this->q, 9 * n + 1, garbage);
        as(kind, F, X, [&](auto f, auto x) { lu_factor_solve(this->q, f, pivots.data(), x, info.data()); });
        this->q.sync();
        const auto f = F.download(), x = X.download();
        const auto infos = info.download();
        const auto p = split_pivots(A, pivots.download());
        for (std::size_t i = 0; i < A.size(); ++i) {
          const bool singular = i == 0 && n > 0;
          EXPECT_EQ(infos[i] != 0, singular) << "item " << i;
          EXPECT_LT(lu_ratio(A[i], f[i], p[i]), threshold) << "item " << i;
          EXPECT_TRUE(same_frame(B[i], x[i])) << "item " << i;
          if (singular)
            EXPECT_TRUE(same_bits(x[i], B[i]));
          else
            EXPECT_LT(solve_ratio(Op::None, A[i], x[i], B[i]), threshold) << "item " << i;
        }
      }
}

TYPED_TEST(LuBatch, InvertsEveryItem) {
  using T = TypeParam;
  for (Kind kind : all_kinds)
    for (index_t n : {0, 1, 5, 32, 50, 100}) {
      SCOPED_TRACE(::testing::Message() << name(kind) << " n=" << n);
      const auto A = this->square_items(kind, 6, n, 1);
      auto lu = factor_lu(this->q, kind, A);
      lu.info[2] = 1;  // as if item 2 were singular
      Items<T> start;
      for (const auto& a : A) start.push_back(random_matrix<T>(this->random, a.rows, a.cols, 1));
      DeviceBatch<T> F(this->q, lu.F), X(this->q, start);
      DeviceArray<int> info(this->q, lu.info), pivots(this->q, joined_pivots(lu));
      as(kind, F, X, [&](auto f, auto x) { lu_inverse(this->q, f, pivots.data(), x, info.data()); });
      this->q.sync();
      expect_inverted(A, start, X.download(), 2);
    }
}

TYPED_TEST(LuBatch, DeterminantOfEveryItem) {
  using T = TypeParam;
  for (Kind kind : all_kinds)
    for (index_t n : {0, 1, 6, 40, 90}) {
      SCOPED_TRACE(::testing::Message() << name(kind) << " n=" << n);
      const auto A = this->square_items(kind, 8, n);
      const auto lu = factor_lu(this->q, kind, A);
      DeviceBatch<T> F(this->q, lu.F);
      DeviceArray<int> pivots(this->q, joined_pivots(lu));
      DeviceArray<T> sign(this->q, 8, T(garbage));
      DeviceArray<real_t<T>> log_abs(this->q, 8, real_t<T>(garbage));
      as(kind, F, [&](auto f) { lu_det(this->q, f, pivots.data(), sign.data(), log_abs.data()); });
      this->q.sync();
      const auto signs = sign.download();
      const auto logs = log_abs.download();
      for (std::size_t i = 0; i < A.size(); ++i) {
        double sum = 0;
        Wide<T> phase = 1;
        for (index_t k = 0; k < A[i].rows; ++k) {
          const Wide<T> u = widen(lu.F[i](k, k));
          sum += std::log(std::abs(u)), phase *= u / std::abs(u) * (lu.pivots[i][k] == k + 1 ? 1.0 : -1.0);
        }
        EXPECT_NEAR(logs[i], sum, log_tolerance(lu.F[i])) << "item " << i;
        EXPECT_LT(std::abs(widen(signs[i]) - phase), 30 * double(n + 1) * eps<T>) << "item " << i;
      }
    }
}

TYPED_TEST(LuBatch, WhatIsImpossibleOrNotSquareHasNoInverseNorDeterminant) {
  using T = TypeParam;
  auto& q = this->q;
  const auto A = this->square_items(Kind::Ragged, 4, 9);
  const auto lu = factor_lu(q, Kind::Ragged, A);
  for (int rows : {8, -1, 10}) {  // of the first, which has 9
    SCOPED_TRACE(rows);
    DeviceBatch<T> F(q, lu.F), X(q, A);
    std::vector<int> claimed;
    for (const auto& a : A) claimed.push_back(claimed.empty() ? rows : int(a.rows));
    F.claim_rows(claimed);
    DeviceArray<int> pivots(q, joined_pivots(lu));
    DeviceArray<T> sign(q, 4, T(0));
    DeviceArray<real_t<T>> log_abs(q, 4, 0);
    lu_inverse(q, F.ragged(), pivots.data(), X.ragged());
    lu_det(q, F.ragged(), pivots.data(), sign.data(), log_abs.data());
    q.sync();
    expect_inverted(A, A, X.download(), 0);
    for (int i = 0; i < 4; ++i) {
      EXPECT_EQ(std::isnan(log_abs.download()[i]), i == 0) << "item " << i;
      EXPECT_EQ(std::isnan(std::abs(sign.download()[i])), i == 0) << "item " << i;
    }
  }
}

TYPED_TEST(LuBatch, TakesTheUpperOfTwoEqualPivots) {
  for (Kind kind : all_kinds)
    for (index_t n : {2, 5, 9, 20, 32, 40, 64, 100})
      for (const char* tuning : {"", "whole=0 nb=8 leaf=3"}) {
        // A column of entries of one modulus, and then one whose ties lie in rows that were exchanged before.
        Items<TypeParam> A;
        for (int b = 0; b < 3; ++b) {
          A.push_back(random_matrix<TypeParam>(this->random, n, n));
          for (index_t i = 0; i < n; ++i) A[b](i, 0) = TypeParam(i == 0 ? 1 : i % 2 ? 2 : -2);
        }
        const auto result = factor_lu(this->q, kind, A, {.tuning = tuning});
        for (int b = 0; b < 3; ++b) EXPECT_EQ(result.pivots[b][0], 2) << name(kind) << " n=" << n << ' ' << tuning;
      }
  // Row 0 is exchanged with row 2, and then ties with rows 1 and 3 in the second column: row 1 stands uppermost.
  HostMatrix<TypeParam> A(4, 4);
  const double entries[4][4] = {{0, 1, 2, 3}, {0, -1, 5, 1}, {4, 0, 0, 1}, {0, 1, 1, 1}};
  for (index_t i = 0; i < 4; ++i)
    for (index_t j = 0; j < 4; ++j) A(i, j) = TypeParam(real_t<TypeParam>(entries[i][j]));
  const auto result = factor_lu(this->q, Kind::Strided, Items<TypeParam>{A, A, A});
  for (int b = 0; b < 3; ++b) {
    EXPECT_EQ(result.pivots[b][0], 3);
    EXPECT_EQ(result.pivots[b][1], 2);
  }
}

// Neighbours do not notice: they are bitwise what they are when all items are good.
TYPED_TEST(LuBatch, OneBadItemHarmsNoOther) {
  using T = TypeParam;
  for (Kind kind : all_kinds)
    for (const char* tuning : {"", "whole=0 nb=8 leaf=3"})
      for (index_t n : {4, 12, 32, 50, 80}) {
        Items<T> A;
        for (int i = 0; i < 13; ++i) A.push_back(random_matrix<T>(this->random, n, n, i % 2 && kind == Kind::Ragged));
        const auto good = factor_lu(this->q, kind, A, {.tuning = tuning});
        for (int bad : {0, 7, 12})
          for (const char* what : {"zero", "nan"}) {
            SCOPED_TRACE(::testing::Message() << name(kind) << " n=" << n << " item " << bad << ' ' << what << tuning);
            auto B = A;
            const index_t k = this->random.integer(0, n - 1);
            for (index_t i = 0; i < n; ++i) B[bad](i, k) = T(0);
            if (*what == 'n') B[bad](n - 1, 0) = T(nan<T>);
            const auto result = factor_lu(this->q, kind, B, {.tuning = tuning});
            for (int i = 0; i < 13; ++i) {
              if (i == bad) continue;
              EXPECT_EQ(result.info[i], 0);
              EXPECT_EQ(result.pivots[i], good.pivots[i]);
              if (!same_bits(result.F[i], good.F[i])) ADD_FAILURE() << "item " << i << " changed";
            }
            if (*what == 'z') {
              EXPECT_EQ(result.info[bad], k + 1);
              EXPECT_LT(lu_ratio(B[bad], result.F[bad], result.pivots[bad]), threshold);
            } else {
              EXPECT_EQ(result.pivots[bad][0], n) << "a NaN wins the pivot search";
            }
          }
      }
}

TYPED_TEST(LuBatch, ImpossibleItemsGetMinusOneAndAreLeftAlone) {
  using T = TypeParam;
  const auto A = this->items(Kind::Ragged, 9, {12, 14});
  for (const char* tuning : {"", "whole=0 nb=3 leaf=2"})
    for (int lie = 0; lie < 4; ++lie)
      for (int bad : {0, 4, 8}) {
        SCOPED_TRACE(::testing::Message() << "lie " << lie << " item " << bad << ' ' << tuning);
        std::vector<int> rows, cols, lds;
        for (const auto& a : A) rows.push_back(int(a.rows)), cols.push_back(int(a.cols)), lds.push_back(int(a.ld));
        if (lie == 0) rows[bad] = -1;
        if (lie == 1) cols[bad] = 15;
        if (lie == 2) rows[bad] = lds[bad] = std::numeric_limits<int>::max();
        if (lie == 3) lds[bad] = rows[bad] - 1;
        DeviceBatch<T> batch(this->q, A);
        batch.claim_rows(rows), batch.claim_cols(cols), batch.claim_ld(lds);
        DeviceArray<int> info(this->q, 9, garbage), pivots(this->q, 9 * 12 + 1, garbage);
        lu(this->q, batch.ragged(), pivots.data(), info.data(), {.tuning = tuning});
        this->q.sync();
        const auto F = batch.download();
        const auto infos = info.download();
        auto all = pivots.download();
        for (int k = 0; k < 12; ++k) EXPECT_EQ(all[bad * 12 + k], garbage);
        std::fill_n(all.begin() + bad * 12, std::min(A[bad].rows, A[bad].cols), 1);
        const auto p = split_pivots(A, all);
        for (int i = 0; i < 9; ++i) {
          EXPECT_EQ(infos[i], i == bad ? -1 : 0) << "item " << i;
          if (i == bad)
            EXPECT_TRUE(same_bits(F[i], A[i]));
          else
            EXPECT_LT(lu_ratio(A[i], F[i], p[i]), threshold) << "item " << i;
        }
      }
}

TYPED_TEST(LuBatch, RepeatsBitwiseWhateverTheOrderOfItems) {
  for (index_t n : {7, 32, 60, 140}) {
    auto A = this->square_items(Kind::Ragged, 15, n);
    // Items that LAPACK factors begin at the same place within 64 bytes again: what OpenBLAS's cgetrf rounds depends on that.
    constexpr std::size_t line = 64 / sizeof(TypeParam);
    for (auto& item : A) item.storage.resize((item.storage.size() + line - 1) / line * line);
    const auto first = factor_lu(this->q, Kind::Ragged, A);
    std::rotate(A.begin(), A.begin() + 4, A.end());
    const auto second = factor_lu(this->q, Kind::Ragged, A);
    for (std::size_t i = 0; i < A.size(); ++i) {
      ASSERT_TRUE(same_bits(second.F[i], first.F[(i + 4) % 15])) << "n=" << n << " item " << i;
      ASSERT_EQ(second.pivots[i], first.pivots[(i + 4) % 15]);
    }
  }
}

}  // namespace
}  // namespace trifactor::test
