// Ragged items that cannot be: the host does not see their sizes, so they are refused where they are met, one by one.
#include <support/batches.hpp>

namespace trifactor::test {
namespace {

template <class T>
class Ragged : public DeviceTest {
 protected:
  static constexpr index_t count = 11;

  Items<T> items(index_t n = 12) {
    Items<T> A;
    for (index_t i = 0; i < count; ++i) A.push_back(random_spd<T>(random, i == 0 ? n : random.integer(1, n), i % 2));
    return A;
  }
};
TYPED_TEST_SUITE(Ragged, Scalars, ScalarNames);

/// One lie about the sizes of an item; the largest has n rows.
struct Lie {
  const char* what;
  void (*tell)(std::vector<int>& rows, std::vector<int>& cols, std::vector<int>& lds, int item, int n);
};
constexpr Lie impossible[] = {
    {"negative rows and columns", [](auto& rows, auto& cols, auto&, int i, int) { rows[i] = cols[i] = -1; }},
    {"most negative",
     [](auto& rows, auto& cols, auto&, int i, int) { rows[i] = cols[i] = std::numeric_limits<int>::min(); }},
    {"above the maximum", [](auto& rows, auto& cols, auto& lds, int i, int n) { rows[i] = cols[i] = lds[i] = n + 1; }},
    {"far above the maximum", [](auto& rows, auto& cols, auto& lds, int i,
                                 int) { rows[i] = cols[i] = lds[i] = std::numeric_limits<int>::max(); }},
    {"ld < rows", [](auto& rows, auto&, auto& lds, int i, int) { lds[i] = rows[i] - 1; }},
    {"negative ld", [](auto&, auto&, auto& lds, int i, int) { lds[i] = -5; }},
    {"more rows than columns", [](auto&, auto& cols, auto&, int i, int) { --cols[i]; }},
    {"fewer rows than columns", [](auto& rows, auto&, auto&, int i, int) { --rows[i]; }},
};

template <class T>
void claim(DeviceBatch<T>& batch, const Items<T>& A, const Lie& lie, int item) {
  std::vector<int> rows, cols, lds;
  for (const auto& a : A) rows.push_back(int(a.rows)), cols.push_back(int(a.cols)), lds.push_back(int(a.ld));
  lie.tell(rows, cols, lds, item, *std::max_element(rows.begin(), rows.end()));
  batch.claim_rows(rows), batch.claim_cols(cols), batch.claim_ld(lds);
}

template <class T>
void expect_refused(Queue& q, const Items<T>& A, Uplo uplo, const char* tuning, const Lie& lie, int bad) {
  SCOPED_TRACE(::testing::Message() << name(uplo) << ' ' << lie.what << " item " << bad << ' ' << tuning);
  DeviceBatch<T> batch(q, A);
  claim(batch, A, lie, bad);
  DeviceArray<int> info(q, index_t(A.size()), garbage);
  cholesky(q, uplo, batch.ragged(), info.data(), {.tuning = tuning});
  q.sync();
  const auto F = batch.download();
  const auto infos = info.download();
  for (int i = 0; i < int(A.size()); ++i) {
    EXPECT_EQ(infos[i], i == bad ? -1 : 0) << "item " << i;
    if (i == bad)
      EXPECT_TRUE(same_bits(F[i], A[i]));
    else
      EXPECT_LT(cholesky_ratio(A[i], F[i], uplo), threshold) << "item " << i;
  }
}

TYPED_TEST(Ragged, ImpossibleItemsGetMinusOneAndAreLeftAlone) {
  for (Uplo uplo : both_uplos)
    for (const char* tuning : {"", "whole=0 persistent=0 interleaved=0 nb=3 leaf=3 looking=right",
                               "whole=0 persistent=0 interleaved=0 nb=3 leaf=3 looking=left",
                               "small=0 sorted=1",
                               "small=0 resident=0 sorted=1", "small=0 resident=0", "whole=8"})
      for (const Lie& lie : impossible)
        for (int bad : {0, 4, 10}) expect_refused(this->q, this->items(), uplo, tuning, lie, bad);
}

// Above 64 rows lists tell who takes an item.
TYPED_TEST(Ragged, ImpossibleItemsOfAListAreLeftAlone) {
  for (Uplo uplo : both_uplos)
    for (const char* tuning : {"sorted=1", "whole=64"})
      for (const Lie& lie : impossible)
        for (int bad : {0, 7}) expect_refused(this->q, this->items(90), uplo, tuning, lie, bad);
}

/// Solves with a lie about item `bad` of L or of X, and without the info of the factorization.
template <class T>
void expect_skipped(Queue& q, Random& random, const Items<T>& A, bool lie_about_X, const Lie& lie, int bad, Uplo uplo) {
  SCOPED_TRACE(::testing::Message() << name(uplo) << ' ' << lie.what << " of " << (lie_about_X ? "X" : "L") << " item "
                                    << bad);
  const auto L = factor_cholesky(q, Kind::Ragged, uplo, A);
  Items<T> B;
  for (const auto& a : A) B.push_back(random_matrix<T>(random, a.rows, a.rows, 1));
  DeviceBatch<T> factors(q, L.F), X(q, B);
  if (lie_about_X)
    claim(X, B, lie, bad);
  else
    claim(factors, L.F, lie, bad);
  cholesky_solve(q, uplo, factors.ragged(), X.ragged());
  q.sync();
  const auto result = X.download();
  for (int i = 0; i < int(A.size()); ++i) {
    if (i == bad)
      EXPECT_TRUE(same_bits(result[i], B[i]));
    else
      EXPECT_LT(solve_ratio(Op::None, A[i], result[i], B[i]), threshold) << "item " << i;
  }
}

TYPED_TEST(Ragged, SolveSkipsImpossibleAndMismatchedItems) {
  for (Uplo uplo : both_uplos)
    for (const Lie& lie : impossible)
      for (int bad : {0, 10}) expect_skipped(this->q, this->random, this->items(), false, lie, bad, uplo);
  // X may have any number of columns, so only lies about its rows count.
  for (Uplo uplo : both_uplos)
    for (const Lie& lie : impossible)
      if (std::string(lie.what) != "more rows than columns")
        for (int bad : {0, 10}) expect_skipped(this->q, this->random, this->items(), true, lie, bad, uplo);
}

TYPED_TEST(Ragged, LogDetOfImpossibleItemsIsNaN) {
  auto L = factor_cholesky(this->q, Kind::Ragged, Uplo::Lower, this->items());
  const auto expect = [&](const auto& result, std::size_t bad) {
    for (std::size_t i = 0; i < result.size(); ++i) {
      if (i == bad)
        EXPECT_TRUE(std::isnan(result[i]));
      else
        EXPECT_NEAR(result[i], log_det_of(L.F[i]), log_tolerance(L.F[i]));
    }
  };
  for (const Lie& lie : impossible) {  // and without an info that tells
    SCOPED_TRACE(lie.what);
    DeviceBatch<TypeParam> factors(this->q, L.F);
    claim(factors, L.F, lie, 4);
    DeviceArray<real_t<TypeParam>> result(this->q, this->count, real_t<TypeParam>(garbage));
    cholesky_log_det(this->q, Uplo::Lower, factors.ragged(), result.data());
    this->q.sync();
    expect(result.download(), 4);
  }
  L.info[3] = -1;
  expect(log_det(this->q, Kind::Ragged, Uplo::Lower, L), 3);
}

TYPED_TEST(Ragged, ImpossibleItemsAreNotTriedWithAShift) {
  using T = TypeParam;
  for (Uplo uplo : both_uplos)
    for (const Lie& lie : impossible) {
      SCOPED_TRACE(::testing::Message() << name(uplo) << ' ' << lie.what);
      auto A = this->items();
      A[7](0, 0) = T(-1);
      DeviceBatch<T> batch(this->q, A);
      claim(batch, A, lie, 4);
      DeviceArray<int> info(this->q, this->count, garbage);
      DeviceArray<double> used(this->q, this->count, double(garbage));
      cholesky(this->q, uplo, batch.ragged(), info.data(),
               {.shift_tries = 3, .shift_first = 10, .shift_used = used.data()});
      this->q.sync();
      const auto F = batch.download();
      const auto infos = info.download();
      const auto shifts = used.download();
      for (int i = 0; i < this->count; ++i) {
        EXPECT_EQ(infos[i], i == 4 ? -1 : 0) << "item " << i;
        EXPECT_EQ(shifts[i] != 0, i == 7) << "item " << i;
      }
      EXPECT_TRUE(same_bits(F[4], A[4]));
    }
}

}  // namespace
}  // namespace trifactor::test
