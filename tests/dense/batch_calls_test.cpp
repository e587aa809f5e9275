// What is done with batches of Cholesky factors besides the solve: factor-and-solve, inverse, and tries with a shift.
#include <support/batches.hpp>

namespace trifactor::test {
namespace {

template <class T>
class BatchCalls : public DeviceTest {
 protected:
  Items<T> items(Kind kind, index_t count, index_t n) {
    Items<T> A;
    for (index_t i = 0; i < count; ++i)
      A.push_back(random_spd<T>(random, kind == Kind::Ragged && i > 0 ? random.integer(0, n) : n,
                                kind == Kind::Ragged ? i % 3 : 1));
    return A;
  }
  Items<T> triangles(Uplo uplo, const Items<T>& A) {
    Items<T> given;
    for (const auto& a : A) given.push_back(only_triangle(a, uplo));
    return given;
  }
};
TYPED_TEST_SUITE(BatchCalls, Scalars, ScalarNames);

TYPED_TEST(BatchCalls, FactorsAndSolvesInOneCall) {
  using T = TypeParam;
  for (Kind kind : all_kinds)
    for (Uplo uplo : both_uplos)
      for (index_t n : {0, 1, 4, 7, 13, 16, 23, 32, 33, 61, 64, 100})
        for (index_t columns : {1, 2, 20}) {
          SCOPED_TRACE(::testing::Message() << name(kind) << ' ' << name(uplo) << " n=" << n << " rhs=" << columns);
          auto A = this->items(kind, 9, n);
          std::vector<index_t> bad(9, -1);
          for (int i : {0, int(this->random.integer(1, 8))})
            if (A[i].rows > 0) {
              bad[i] = this->random.integer(0, A[i].rows - 1);
              A[i](bad[i], bad[i]) = i == 0 ? T(-1) : T(nan<T>);
            }
          const auto given = this->triangles(uplo, A);
          Items<T> B;
          for (const auto& a : A) B.push_back(random_matrix<T>(this->random, a.rows, columns, 1));
          DeviceBatch<T> F(this->q, given), X(this->q, B);
          DeviceArray<int> info(this->q, 9, garbage);
          as(kind, F, X, [&](auto f, auto x) { cholesky_factor_solve(this->q, uplo, f, x, info.data()); });
          this->q.sync();
          const auto f = F.download(), x = X.download();
          const auto infos = info.download();
          for (std::size_t i = 0; i < A.size(); ++i) {
            EXPECT_EQ(infos[i], bad[i] + 1) << "item " << i;
            EXPECT_TRUE(same_outside_triangle(given[i], f[i], uplo)) << "item " << i;
            EXPECT_TRUE(same_frame(B[i], x[i])) << "item " << i;
            if (bad[i] >= 0) {
              EXPECT_TRUE(same_bits(x[i], B[i])) << "item " << i;
              EXPECT_LT(cholesky_ratio(A[i], f[i], uplo, bad[i]), threshold) << "item " << i;
            } else {
              EXPECT_LT(cholesky_ratio(A[i], f[i], uplo), threshold) << "item " << i;
              EXPECT_LT(solve_ratio(Op::None, A[i], x[i], B[i]), threshold) << "item " << i;
            }
          }
        }
}

TYPED_TEST(BatchCalls, RaggedItemsHaveEachItsOwnRightHandSides) {
  using T = TypeParam;
  for (Uplo uplo : both_uplos)
    for (index_t n : {4, 8, 15, 30, 60, 80})
      for (index_t most : {1, 5, 40}) {
        SCOPED_TRACE(::testing::Message() << name(uplo) << " n=" << n << " rhs up to " << most);
        const auto A = this->items(Kind::Ragged, 7, n);
        Items<T> B;
        for (const auto& a : A) B.push_back(random_matrix<T>(this->random, a.rows, this->random.integer(0, most), 1));
        B[6] = random_matrix<T>(this->random, A[6].rows, most);
        DeviceBatch<T> F(this->q, this->triangles(uplo, A)), G(this->q, A), X(this->q, B), Y(this->q, B);
        DeviceArray<int> info(this->q, 7, garbage), lu_info(this->q, 7, garbage), pivots(this->q, 7 * n, garbage);
        cholesky_factor_solve(this->q, uplo, F.ragged(), X.ragged(), info.data());
        lu_factor_solve(this->q, G.ragged(), pivots.data(), Y.ragged(), lu_info.data());
        this->q.sync();
        EXPECT_EQ(info.download(), std::vector<int>(7, 0));
        EXPECT_EQ(lu_info.download(), std::vector<int>(7, 0));
        expect_solved(A, X.download(), B), expect_solved(A, Y.download(), B);
        const auto x = X.download(), y = Y.download();
        for (std::size_t i = 0; i < A.size(); ++i) EXPECT_TRUE(same_frame(B[i], x[i]) && same_frame(B[i], y[i])) << i;
      }
}

TYPED_TEST(BatchCalls, RaggedItemsThatDoNotFitGetMinusOne) {
  using T = TypeParam;
  auto A = this->items(Kind::Ragged, 6, 10);
  A[1] = random_spd<T>(this->random, 5);  // it is to fail, so it is not empty
  Items<T> B;
  for (const auto& a : A) B.push_back(random_matrix<T>(this->random, a.rows, 2));
  std::vector<int> rows;
  for (const auto& b : B) rows.push_back(int(b.rows));
  rows[0] = 9;
  DeviceBatch<T> F(this->q, A), X(this->q, B);
  X.claim_rows(rows);
  DeviceArray<int> info(this->q, 6, garbage), pivots(this->q, 60, garbage);
  auto x = X.ragged();
  x.max_rows = 10;
  cholesky_factor_solve(this->q, Uplo::Lower, F.ragged(), x, info.data());
  this->q.sync();
  EXPECT_EQ(info.download(), (std::vector<int>{-1, 0, 0, 0, 0, 0}));
  EXPECT_TRUE(same_bits(X.download()[0], B[0]));
  F.upload(A), X.upload(B);
  lu_factor_solve(this->q, F.ragged(), pivots.data(), x, info.data());
  this->q.sync();
  EXPECT_EQ(info.download(), (std::vector<int>{-1, 0, 0, 0, 0, 0}));
  EXPECT_TRUE(same_bits(X.download()[0], B[0]));

  // Also where the factorization fails, and -1 is not to be taken for it.
  auto singular = A;
  for (std::size_t i : {0, 1}) zero_row_and_column(singular[i], 0);
  F.upload(singular), X.upload(B);
  lu_factor_solve(this->q, F.ragged(), pivots.data(), x, info.data());
  this->q.sync();
  EXPECT_EQ(info.download(), (std::vector<int>{-1, 1, 0, 0, 0, 0}));
  F.upload(singular);
  cholesky_factor_solve(this->q, Uplo::Lower, F.ragged(), x, info.data());
  this->q.sync();
  EXPECT_EQ(info.download(), (std::vector<int>{-1, 1, 0, 0, 0, 0}));
  EXPECT_TRUE(same_bits(X.download()[0], B[0]) && same_bits(X.download()[1], B[1]));
}

// Grids have fewer places in one direction than batches may have items, and than items may have right-hand sides.
inline index_t beyond_a_grid() { return on_cuda() ? 70001 : 3001; }

/// Item b of order 2, or 0, 1 or 2 where the batch is ragged: positive definite, or in LU's case with its rows
/// exchanged.
template <class T>
T small_entry(index_t b, index_t i, index_t j, bool exchanged) {
  if (exchanged) i = 1 - i;
  return i == j ? T(real_t<T>(3 + b % 7)) : T(real_t<T>(b % 3 - 1));
}

template <class T>
struct ManyItems {
  static constexpr index_t n = 2;
  const index_t count = beyond_a_grid();
  std::vector<T> given;
  DeviceArray<T> values;
  DeviceArray<T*> starts;
  std::vector<int> orders;
  DeviceArray<int> sizes, lds;

  ManyItems(Queue& q, Kind kind, auto entry)
      : given(std::size_t(n * n * count)),
        values(q, filled(entry)),
        starts(q, places(values.data())),
        orders(count, 2),
        sizes(q, count, 2),
        lds(q, count, 2) {
    if (kind == Kind::Ragged)
      for (index_t b = 0; b < count; ++b) orders[b] = b == 0 ? 2 : int(b % 3);
    sizes.upload(orders);
  }
  const std::vector<T>& filled(auto entry) {
    for (index_t b = 0; b < count; ++b)
      for (index_t j = 0; j < n; ++j)
        for (index_t i = 0; i < n; ++i) given[(b * n + j) * n + i] = entry(b, i, j);
    return given;
  }
  std::vector<T*> places(T* data) const {
    std::vector<T*> all;
    for (index_t b = 0; b < count; ++b) all.push_back(data + b * n * n);
    return all;
  }
  StridedBatch<T> strided() const { return {values.data(), n, n, n, n * n, count}; }
  PointerBatch<T> pointers() const { return {starts.data(), n, n, n, count}; }
  RaggedBatch<T> ragged() const { return {starts.data(), sizes.data(), sizes.data(), lds.data(), count, n, n}; }
};
/// How many items X are not A^-1 B, where B has the same shape as A and A is not zero.
template <class T>
index_t count_wrong(const ManyItems<T>& A, const std::vector<T>& X, auto B) {
  index_t wrong = 0;
  for (index_t b = 0; b < A.count; ++b) {
    const index_t n = A.orders[b], at = b * 4;
    bool right = true;
    if (n == 1 && A.given[at] == T(0)) continue;
    for (index_t j = 0; j < n; ++j)
      for (index_t i = 0; i < n; ++i) {
        T sum = -B(b, i, j);
        for (index_t k = 0; k < n; ++k) sum += A.given[at + k * 2 + i] * X[at + j * 2 + k];
        right = right && std::abs(sum) < 100 * std::numeric_limits<real_t<T>>::epsilon();
      }
    wrong += !right;
  }
  return wrong;
}

TYPED_TEST(BatchCalls, MoreItemsThanAGridHasPlaces) {
  using T = TypeParam;
  auto& q = this->q;
  const auto symmetric = [](index_t b, index_t i, index_t j) { return small_entry<T>(b, i, j, false); };
  const auto exchanged = [](index_t b, index_t i, index_t j) { return small_entry<T>(b, i, j, true); };
  const auto right = [](index_t b, index_t i, index_t j) { return T(real_t<T>(1 + (b + i + 2 * j) % 5)); };
  const auto identity = [](index_t, index_t i, index_t j) { return T(i == j ? 1 : 0); };
  for (Kind kind : all_kinds) {
    SCOPED_TRACE(name(kind));
    const Uplo uplo = kind == Kind::Strided ? Uplo::Upper : Uplo::Lower;
    ManyItems<T> A(q, kind, symmetric), X(q, kind, right);
    DeviceArray<int> info(q, A.count, garbage), pivots(q, 2 * A.count, garbage);
    DeviceArray<double> used(q, A.count, garbage);
    DeviceArray<real_t<T>> log_det(q, A.count, 0);
    DeviceArray<T> sign(q, A.count, T(0));
    const std::vector<int> zeros(A.count, 0);
    as(kind, A, X, [&](auto a, auto x) { cholesky_factor_solve(q, uplo, a, x, info.data()); });
    EXPECT_EQ(info.download(), zeros);
    EXPECT_EQ(count_wrong(A, X.values.download(), right), 0) << "cholesky_factor_solve";
    X.values.upload(X.given);
    as(kind, A, X, [&](auto a, auto x) { cholesky_solve(q, uplo, a, x, info.data()); });
    EXPECT_EQ(count_wrong(A, X.values.download(), right), 0) << "cholesky_solve";
    as(kind, A, X, [&](auto a, auto x) { cholesky_inverse(q, uplo, a, x, info.data()); });
    EXPECT_EQ(count_wrong(A, X.values.download(), identity), 0) << "cholesky_inverse";
    as(kind, A, X, [&](auto a, auto) { cholesky_log_det(q, uplo, a, log_det.data(), info.data()); });
    auto logs = log_det.download();
    index_t wrong = 0;
    const auto determinant = [&](index_t b) {
      const double d = double(3 + b % 7), c = double(b % 3 - 1);
      return A.orders[b] == 0 ? 1 : A.orders[b] == 1 ? d : d * d - c * c;
    };
    for (index_t b = 0; b < A.count; ++b) wrong += !(std::abs(logs[b] - std::log(determinant(b))) < 50 * eps<T>);
    EXPECT_EQ(wrong, 0) << "cholesky_log_det";

    auto negative = A.given;  // every item of order 2 is shifted by 10 times its diagonal
    for (auto& a : negative) a = -a;
    A.values.upload(negative);
    as(kind, A, X, [&](auto a, auto) {
      cholesky(q, uplo, a, info.data(),
               {.shift_tries = 2, .shift_first = 0.1, .shift_growth = 100, .shift_used = used.data()});
    });
    EXPECT_EQ(info.download(), zeros) << "shift_tries";
    const auto shifts = used.download();
    for (index_t b = 0; b < A.count; ++b)
      wrong += !(std::abs(shifts[b] - (A.orders[b] > 0 ? 10.0 * double(3 + b % 7) : 0)) < 1e-3);
    EXPECT_EQ(wrong, 0) << "shift_used";

    ManyItems<T> G(q, kind, exchanged);
    X.values.upload(X.given);
    for (const char* tuning : {"", "whole=0 nb=1 leaf=1"}) {
      G.values.upload(G.given), X.values.upload(X.given);
      as(kind, G, X, [&](auto g, auto x) { lu_factor_solve(q, g, pivots.data(), x, info.data(), {.tuning = tuning}); });
      const auto infos = info.download();
      for (index_t b = 0; b < G.count; ++b)
        wrong += infos[b] != (G.orders[b] == 1 ? 1 : 0);  // the entry off the diagonal
      EXPECT_EQ(wrong, 0) << "info of lu_factor_solve " << tuning;
      EXPECT_EQ(count_wrong(G, X.values.download(), right), 0) << "lu_factor_solve " << tuning;
    }
    as(kind, G, X, [&](auto g, auto x) { lu_inverse(q, g, pivots.data(), x, info.data()); });
    EXPECT_EQ(count_wrong(G, X.values.download(), identity), 0) << "lu_inverse";
    as(kind, G, X, [&](auto g, auto) { lu_det(q, g, pivots.data(), sign.data(), log_det.data()); });
    logs = log_det.download();
    const auto signs = sign.download();
    for (index_t b = 0; b < G.count; ++b)
      wrong += G.orders[b] == 2 &&
               !(std::abs(logs[b] - std::log(determinant(b))) < 50 * eps<T> && std::abs(signs[b] + T(1)) < 50 * eps<T>);
    EXPECT_EQ(wrong, 0) << "lu_det";
  }
}

// Tens of millions of items, of order 1: what counts them is the same for every scalar.
TYPED_TEST(BatchCalls, TwentyMillionItems) {
  using T = TypeParam;
  if (!on_cuda() || !std::is_same_v<T, float>) GTEST_SKIP() << "of CUDA queues, in float";
  constexpr index_t count = 20000003;
  auto& q = this->q;
  std::vector<T> squares(count), ones(count, T(1));
  for (index_t b = 0; b < count; ++b) squares[b] = b == count - 2 ? T(-1) : T(real_t<T>((1 + b % 9) * (1 + b % 9)));
  DeviceArray<T> A(q, squares), X(q, ones);
  std::vector<T*> places;
  for (index_t b = 0; b < count; ++b) places.push_back(A.data() + b);
  DeviceArray<T*> starts(q, places);
  DeviceArray<int> info(q, count, garbage), pivots(q, count, garbage), sizes(q, count, 1);
  const auto expect = [&](const char* what, const std::vector<T>& values, auto value) {
    const auto infos = info.download();
    index_t wrong = 0;
    for (index_t b = 0; b < count; ++b) {
      const T right = value(T(real_t<T>(1 + b % 9)));
      wrong += b == count - 2 ? infos[b] != 1
                              : infos[b] != 0 || !(std::abs(values[b] - right) <= 8 * eps<T> * std::abs(right));
    }
    EXPECT_EQ(wrong, 0) << what;
  };
  const StridedBatch<T> strided{A.data(), 1, 1, 1, 1, count}, x{X.data(), 1, 1, 1, 1, count};
  cholesky(q, Uplo::Lower, strided, info.data());
  expect("cholesky", A.download(), [](T root) { return root; });
  A.upload(squares);
  cholesky(q, Uplo::Upper, RaggedBatch<T>{starts.data(), sizes.data(), sizes.data(), sizes.data(), count, 1, 1},
           info.data());
  expect("ragged cholesky", A.download(), [](T root) { return root; });
  A.upload(ones), X.upload(squares);
  cholesky_solve(q, Uplo::Lower, strided, x, info.data());
  expect("cholesky_solve", X.download(), [](T root) { return root * root; });
  A.upload(ones);
  lu(q, strided, pivots.data(), info.data());
  EXPECT_EQ(info.download(), std::vector<int>(count, 0)) << "lu";
  EXPECT_EQ(pivots.download(), std::vector<int>(count, 1)) << "lu";
}

TYPED_TEST(BatchCalls, MoreRightHandSidesThanAGridHasPlaces) {
  using T = TypeParam;
  for (Kind kind : all_kinds)
    for (index_t n : {2, 70}) {
      if (n > 64 && kind == Kind::Pointers) continue;  // as strided
      SCOPED_TRACE(::testing::Message() << name(kind) << " n=" << n);
      const auto A = this->items(kind, 2, n);
      const index_t columns = n == 2 ? beyond_a_grid() : 500;
      Items<T> B;
      for (const auto& a : A) B.push_back(random_matrix<T>(this->random, a.rows, columns));
      expect_solved(A, solve_cholesky(this->q, kind, Uplo::Lower, factor_cholesky(this->q, kind, Uplo::Lower, A), B),
                    B);
      expect_solved(A, solve_lu(this->q, kind, Op::None, factor_lu(this->q, kind, A), B), B);
    }
}

TYPED_TEST(BatchCalls, NoItemsAndItemsOfNothing) {
  using T = TypeParam;
  auto& q = this->q;
  for (Kind kind : all_kinds)
    for (index_t count : {0, 3})
      for (index_t columns : {0, 2}) {
        SCOPED_TRACE(::testing::Message() << name(kind) << " count=" << count << " rhs=" << columns);
        DeviceBatch<T> A(q, Items<T>(count, HostMatrix<T>(0, 0))), X(q, Items<T>(count, HostMatrix<T>(0, columns)));
        DeviceArray<int> info(q, count + 1, garbage), pivots(q, 1, garbage);
        DeviceArray<double> used(q, count + 1, 7);
        DeviceArray<real_t<T>> logs(q, count + 1, 7);
        DeviceArray<T> signs(q, count + 1, T(7));
        const CholeskyOptions shift{.shift_tries = 2, .shift_used = used.data()};
        const auto expect_info = [&] {
          std::vector<int> expected(count + 1, 0);
          expected.back() = garbage;
          EXPECT_EQ(info.download(), expected);
          info.upload(std::vector<int>(count + 1, garbage));
        };
        as(kind, A, X, [&](auto a, auto x) {
          cholesky(q, Uplo::Lower, a, info.data()), expect_info();
          cholesky(q, Uplo::Upper, a, info.data(), shift), expect_info();
          cholesky_factor_solve(q, Uplo::Lower, a, x, info.data()), expect_info();
          lu(q, a, pivots.data(), info.data()), expect_info();
          lu_factor_solve(q, a, pivots.data(), x, info.data()), expect_info();
          cholesky_solve(q, Uplo::Lower, a, x);
          cholesky_inverse(q, Uplo::Lower, a, a);
          lu_solve(q, Op::Transpose, a, pivots.data(), x);
          lu_inverse(q, a, pivots.data(), a);
          cholesky_log_det(q, Uplo::Lower, a, logs.data());
          lu_det(q, a, pivots.data(), signs.data(), logs.data());
        });
        q.sync();
        for (index_t b = 0; b < count; ++b) {
          EXPECT_EQ(used.download()[b], 0);
          EXPECT_EQ(logs.download()[b], 0);
          EXPECT_EQ(signs.download()[b], T(1));
        }
        EXPECT_EQ(used.download()[count], 7);
        EXPECT_EQ(logs.download()[count], 7);
        EXPECT_EQ(pivots.download()[0], garbage);
      }
}

/// Larger factors of a batch: halved, or all items in one launch, for few right-hand sides unless a tuning forces it.
struct WayForLarger {
  const char *tuning, *path;
  index_t columns;
};
constexpr WayForLarger ways_for_larger[] = {
    {"sweep_columns=0", "halved", 9},
    {"", "halved", 40},
    {"", "one launch", 1},
    {"sweep_columns=7", "one launch", 7},
    {"sweep_columns=40 sweep_groups=2147483647", "one launch", 33},
    {"sweep_groups=9", "halved", 5},  // two groups for each of five items
};

TYPED_TEST(BatchCalls, SolvesWithLargerFactors) {
  using T = TypeParam;
  for (Kind kind : all_kinds)
    for (index_t n : {66, 97, 300})
      for (const WayForLarger& way : ways_for_larger) {
        if (!on_cuda() && n == 300) continue;  // item by item, as the others
        SCOPED_TRACE(::testing::Message() << name(kind) << " n=" << n << " rhs=" << way.columns << ' ' << way.tuning);
        const auto A = this->items(kind, 5, n);
        Items<T> B;
        for (const auto& a : A) B.push_back(random_matrix<T>(this->random, a.rows, way.columns, 1));
        const auto expect_all_but_2 = [&](Op op, const Items<T>& X) {
          EXPECT_EQ(testing::path_taken(), on_cuda() ? way.path : "item by item");
          for (std::size_t i = 0; i < A.size(); ++i)
            if (i == 2)
              EXPECT_TRUE(same_bits(X[i], B[i]));
            else
              EXPECT_LT(solve_ratio(op, A[i], X[i], B[i]), threshold) << "item " << i;
        };
        for (Uplo uplo : both_uplos) {
          auto L = factor_cholesky(this->q, kind, uplo, A);
          L.info[2] = 1;  // as if item 2 had failed
          expect_all_but_2(Op::None, solve_cholesky(this->q, kind, uplo, L, B, {.tuning = way.tuning}));
        }
        auto LU = factor_lu(this->q, kind, A);
        LU.info[2] = 1;
        for (Op op : all_ops) expect_all_but_2(op, solve_lu(this->q, kind, op, LU, B, {.tuning = way.tuning}));
      }
}

/// Blocks of one launch wait for each other: batches of many groups again and again, the bits always the same.
TYPED_TEST(BatchCalls, SolvesOfManyItemsInOneLaunchRepeatTheirBits) {
  using T = TypeParam;
  if (!on_cuda()) GTEST_SKIP() << "of CUDA queues";
  for (index_t count : {1, 7, 300})
    for (index_t columns : {1, 6}) {
      SCOPED_TRACE(::testing::Message() << count << " items, rhs=" << columns);
      const auto A = this->items(Kind::Ragged, count, 200);
      const auto L = factor_cholesky(this->q, Kind::Ragged, Uplo::Lower, A);
      Items<T> B;
      for (const auto& a : A) B.push_back(random_matrix<T>(this->random, a.rows, columns));
      const auto solve = [&](Queue& q) {
        return solve_cholesky(q, Kind::Ragged, Uplo::Lower, L, B, {.tuning = "sweep_columns=8 sweep_groups=2147483647"});
      };
      const auto X = solve(this->q);
      EXPECT_EQ(testing::path_taken(), "one launch");
      expect_solved(A, X, B);
      for (int repeat = 0; repeat < 5; ++repeat) {
        const auto again = solve(this->q);
        for (std::size_t i = 0; i < X.size(); ++i) ASSERT_TRUE(same_bits(X[i], again[i])) << "item " << i;
      }
    }
}

TYPED_TEST(BatchCalls, InvertsEveryItem) {
  using T = TypeParam;
  for (Kind kind : all_kinds)
    for (Uplo uplo : both_uplos)
      for (index_t n : {0, 1, 5, 32, 50, 130}) {
        SCOPED_TRACE(::testing::Message() << name(kind) << ' ' << name(uplo) << " n=" << n);
        const auto A = this->items(kind, 6, n);
        auto L = factor_cholesky(this->q, kind, uplo, A);
        L.info[2] = 1;  // as if item 2 had failed
        Items<T> start;
        for (const auto& a : A) start.push_back(random_matrix<T>(this->random, a.rows, a.cols, 1));
        DeviceBatch<T> F(this->q, L.F), X(this->q, start);
        DeviceArray<int> info(this->q, L.info);
        as(kind, F, X, [&](auto f, auto x) { cholesky_inverse(this->q, uplo, f, x, info.data()); });
        this->q.sync();
        expect_inverted(A, start, X.download(), 2);
      }
}

/// A with s added to its diagonal.
template <class T>
HostMatrix<T> shifted(HostMatrix<T> A, double s) {
  for (index_t j = 0; j < A.rows; ++j) A(j, j) += T(real_t<T>(s));
  return A;
}

template <class T>
void expect_shifted(Queue& q, Random& random, Kind kind, Uplo uplo, index_t n) {
  SCOPED_TRACE(::testing::Message() << name(kind) << ' ' << name(uplo) << " n=" << n);
  // Smallest eigenvalue -0.02 with a diagonal near 1: shifts of 0.001, 0.01 and 0.1 times the largest, and not before.
  const auto indefinite = [&] {
    std::vector<double> d(n, 1.0);
    d[0] = -0.02;
    return with_eigenvalues<T>(random, d, 1, kind == Kind::Ragged ? 0 : 1);
  };
  Items<T> A;
  for (int i = 0; i < 10; ++i)
    A.push_back(i % 3 == 1 ? indefinite()
                           : random_spd<T>(random, kind == Kind::Ragged && i > 0 ? random.integer(0, n) : n,
                                           kind == Kind::Ragged ? 0 : 1));
  A[5] = random_spd<T>(random, n, kind == Kind::Ragged ? 0 : 1), A[5](0, 0) = T(nan<T>);
  Items<T> given;
  for (const auto& a : A) given.push_back(only_triangle(a, uplo));
  const auto plain = factor_cholesky(q, kind, uplo, A);
  DeviceBatch<T> F(q, given);
  DeviceArray<int> info(q, 10, garbage);
  DeviceArray<double> used(q, 10, garbage);
  const CholeskyOptions options{.shift_tries = 4, .shift_first = 1e-3, .shift_growth = 10, .shift_used = used.data()};
  as(kind, F, [&](auto view) { cholesky(q, uplo, view, info.data(), options); });
  q.sync();
  const auto f = F.download();
  const auto infos = info.download();
  const auto shifts = used.download();
  for (int i = 0; i < 10; ++i) {
    SCOPED_TRACE(::testing::Message() << "item " << i);
    EXPECT_TRUE(same_outside_triangle(given[i], f[i], uplo));
    if (i == 5) {
      EXPECT_GT(infos[i], 0) << "no shift helps against NaN";
      continue;
    }
    EXPECT_EQ(infos[i], 0);
    if (plain.info[i] == 0) {
      EXPECT_EQ(shifts[i], 0);
      EXPECT_TRUE(same_bits(f[i], plain.F[i])) << "a good item was touched";
      continue;
    }
    EXPECT_GT(shifts[i], 0.005);
    EXPECT_LT(shifts[i], 0.3);
    EXPECT_LT(cholesky_ratio(shifted(A[i], shifts[i]), f[i], uplo), threshold);
  }
  EXPECT_GT(plain.info[1], 0) << "an item to be shifted";
  used.upload(std::vector<double>(10, garbage));
  F.upload(given);
  as(kind, F, [&](auto view) { cholesky(q, uplo, view, info.data(), {.shift_used = used.data()}); });
  q.sync();
  EXPECT_EQ(used.download(), std::vector<double>(10, 0)) << "without tries nothing is shifted";
}

TYPED_TEST(BatchCalls, FailedItemsAreTriedAgainWithAShift) {
  for (Kind kind : all_kinds)
    for (Uplo uplo : both_uplos)
      for (index_t n : {2, 5, 20, 40, 90, 150}) expect_shifted<TypeParam>(this->q, this->random, kind, uplo, n);
}

TYPED_TEST(BatchCalls, OneMatrixIsTriedAgainWithAShift) {
  using T = TypeParam;
  for (Uplo uplo : both_uplos)
    for (index_t n : {1, 10, 70, 200})
      for (bool good : {false, true}) {
        SCOPED_TRACE(::testing::Message() << name(uplo) << " n=" << n << (good ? " good" : " bad"));
        std::vector<double> d(n, 1.0);
        if (!good) d[0] = n == 1 ? -1e-3 : -0.02;
        const auto A = with_eigenvalues<T>(this->random, d);
        const auto plain = factor_cholesky(this->q, uplo, A);
        DeviceMatrix<T> F(this->q, A);
        DeviceArray<int> info(this->q, 1, garbage);
        DeviceArray<double> used(this->q, 1, garbage);
        cholesky(this->q, uplo, F.view(), info.data(),
                 {.shift_tries = 5, .shift_first = 1e-3, .shift_used = used.data()});
        this->q.sync();
        EXPECT_EQ(info.download()[0], 0);
        const double s = used.download()[0];
        if (good) {
          EXPECT_EQ(s, 0);
          EXPECT_TRUE(same_bits(F.download(), plain.F));
        } else {
          EXPECT_GT(s, 0);
          EXPECT_LT(cholesky_ratio(shifted(A, s), F.download(), uplo), threshold);
        }
      }
}

TYPED_TEST(BatchCalls, TriesThatAllFailLeaveInfo) {
  using T = TypeParam;
  Items<T> A;
  for (int i = 0; i < 3; ++i) A.push_back(random_spd<T>(this->random, 12));
  A[1](7, 7) = T(-1e4);
  DeviceBatch<T> F(this->q, A), X(this->q, Items<T>(3, random_matrix<T>(this->random, 12, 2)));
  const auto B = X.download();
  DeviceArray<int> info(this->q, 3, garbage);
  DeviceArray<double> used(this->q, 3, garbage);
  cholesky_factor_solve(this->q, Uplo::Lower, F.strided(), X.strided(), info.data(),
                        {.shift_tries = 2, .shift_first = 1e-6, .shift_used = used.data()});
  this->q.sync();
  EXPECT_EQ(info.download(), (std::vector<int>{0, 8, 0}));
  EXPECT_NEAR(used.download()[1] / 1e4, 1e-5, 1e-9);
  const auto x = X.download();
  EXPECT_TRUE(same_bits(x[1], B[1]));
  EXPECT_LT(solve_ratio(Op::None, A[0], x[0], B[0]), threshold);
}

TYPED_TEST(BatchCalls, ShiftOptionsAreChecked) {
  const auto A = random_spd<TypeParam>(this->random, 4);
  DeviceMatrix<TypeParam> F(this->q, A);
  DeviceArray<int> info(this->q, 1, garbage);
  const auto expect = [&](const CholeskyOptions& options, std::initializer_list<const char*> parts) {
    try {
      cholesky(this->q, Uplo::Lower, F.view(), info.data(), options);
      ADD_FAILURE() << "no exception";
    } catch (const InvalidArgument& e) {
      for (const char* part : parts) EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
    }
  };
  expect({.shift_tries = -1}, {"cholesky", "shift_tries", "-1", "0..100"});
  expect({.shift_tries = 101}, {"shift_tries", "101", "0..100"});
  expect({.shift_tries = 1, .shift_first = -2}, {"shift_first", "-2", "negative"});
  expect({.shift_tries = 1, .shift_growth = 0.5}, {"shift_growth", "0.5", "at least 1"});
  EXPECT_TRUE(same_bits(F.download(), A));
}

}  // namespace
}  // namespace trifactor::test
