// The updates of Cholesky alone, the interchanges of LU alone, and recordings of what an engine does.
#include <support/factored.hpp>
#include <trifactor/inspect.hpp>

namespace trifactor::test {
namespace {

template <class T>
class Inspect : public DeviceTest {};
TYPED_TEST_SUITE(Inspect, Scalars, ScalarNames);

/// C minus the products of all blocks of L, as far as a blocked factorization updates them: block (I, J), I >= J, of
/// the lower triangle with those of block columns before J.
template <class T>
HostMatrix<T> updated(const HostMatrix<T>& L, HostMatrix<T> C, Uplo uplo, index_t nb) {
  const auto conj = [](T x) {
    if constexpr (ComplexScalar<T>)
      return std::conj(x);
    else
      return x;
  };
  for (index_t j = 0; j < C.cols; ++j)
    for (index_t i = j; i < C.rows; ++i)
      for (index_t k = 0; k < j / nb * nb; ++k)
        if (uplo == Uplo::Lower)
          C(i, j) -= L(i, k) * conj(L(j, k));
        else
          C(j, i) -= L(k, i) * conj(L(k, j));
  return C;
}

TYPED_TEST(Inspect, UpdatesAreThoseOfTheLoop) {
  using T = TypeParam;
  for (Uplo uplo : both_uplos)
    for (const char* looking : {"left", "right"})
      for (const index_t n : {1, 2, 7, 24, 41})
        for (const index_t nb : {1, 3, 8, 41}) {
          SCOPED_TRACE(::testing::Message() << name(uplo) << ' ' << looking << " n = " << n << " nb = " << nb);
          const auto L = random_matrix<T>(this->random, n, n, 2), C = random_spd<T>(this->random, n, 1);
          const DeviceMatrix<T> factor(this->q, L), target(this->q, C);
          inspect::cholesky_updates(this->q, uplo, factor.view(), target.view(), 0, n,
                                    "nb=" + std::to_string(nb) + " looking=" + looking);
          const auto expected = updated(L, C, uplo, nb), found = target.download();
          EXPECT_TRUE(same_bits(factor.download(), L));
          for (index_t j = 0; j < n; ++j)
            for (index_t i = 0; i < n; ++i)
              EXPECT_LE(std::abs(expected(i, j) - found(i, j)), 100 * std::numeric_limits<real_t<T>>::epsilon() * n);
        }
}

TYPED_TEST(Inspect, TimesWhatIsEnqueuedAndWaitsForIt) {
  using T = TypeParam;
  const index_t n = 300;
  const auto A = random_spd<T>(this->random, n);
  DeviceMatrix<T> alone(this->q, A), timed(this->q, A);
  DeviceArray<int> info(this->q, 1, -7);
  cholesky(this->q, Uplo::Lower, alone.view(), info.data());
  const auto factor = [&] { cholesky(this->q, Uplo::Lower, timed.view(), info.data()); };
  const double seconds = seconds_of(this->q, factor);
  EXPECT_GT(seconds, 1e-7 * double(n) * (this->q.is_cuda() ? 1 : 0.01));
  EXPECT_LT(seconds, 60);
  EXPECT_TRUE(same_bits(alone.download(), timed.download()));
  EXPECT_THROW(seconds_of(this->q, [] { throw InvalidArgument("thrown by the work"); }), InvalidArgument);
  EXPECT_GT(seconds_of(this->q, factor), 0);
}

TYPED_TEST(Inspect, ARecordingHoldsEveryOperationAndChangesNoResult) {
  using T = TypeParam;
  const index_t n = 150;
  const CholeskyOptions options{.tuning = "whole=0 persistent=0 nb=64 leaf=32"};
  const auto A = random_spd<T>(this->random, n);
  DeviceMatrix<T> plain(this->q, A), recorded(this->q, A);
  DeviceArray<int> info(this->q, 1, -7);
  cholesky(this->q, Uplo::Lower, plain.view(), info.data(), options);
  inspect::Recording recording(this->q);
  cholesky(this->q, Uplo::Lower, recorded.view(), info.data(), options);
  const auto operations = recording.finish();
  EXPECT_TRUE(same_bits(plain.download(), recorded.download()));

  double before = 0;
  index_t tiles = 0;
  for (const auto& operation : operations) {
    EXPECT_GE(operation.begin, before);
    EXPECT_GE(operation.end, operation.begin);
    before = operation.begin;
    tiles += operation.name.starts_with("cholesky_");
    EXPECT_EQ(operation.lane == "CPU", !on_cuda());
  }
  EXPECT_EQ(tiles, 5);  // 64 = 32 + 32, twice, and 22

  cholesky(this->q, Uplo::Lower, plain.view(), info.data(), options);
  EXPECT_EQ(recording.finish().size(), operations.size());  // it has ended
}

TYPED_TEST(Inspect, AnExclusiveTileIsFactoredInSteps) {
  using T = TypeParam;
  const auto A = random_spd<T>(this->random, 60);
  DeviceMatrix<T> matrix(this->q, A);
  DeviceArray<int> info(this->q, 1, -7);
  for (auto [tuning, expected] :
       {std::pair{"tile=inclusive ib=8", 1}, {"tile=exclusive ib=8", 8}, {"tile=exclusive ib=60", 1}}) {
    matrix.upload(A);
    inspect::Recording recording(this->q);
    cholesky(this->q, Uplo::Lower, matrix.view(), info.data(),
             {.tuning = std::string("whole=0 persistent=0 interleaved=0 nb=60 leaf=60 ") + tuning});
    const auto operations = recording.finish();
    EXPECT_EQ(std::count_if(operations.begin(), operations.end(), [](auto& o) { return o.name == "cholesky_tile"; }),
              expected)
        << tuning;
    EXPECT_EQ(info.download()[0], 0);
  }
}

TYPED_TEST(Inspect, ARecordingThatIsNotFinishedEndsByItself) {
  using T = TypeParam;
  const auto A = random_spd<T>(this->random, 40);
  DeviceMatrix<T> matrix(this->q, A);
  DeviceArray<int> info(this->q, 1, -7);
  {
    inspect::Recording recording(this->q);
    cholesky(this->q, Uplo::Lower, matrix.view(), info.data());
  }
  matrix.upload(A);
  cholesky(this->q, Uplo::Lower, matrix.view(), info.data());
  EXPECT_EQ(info.download()[0], 0);
}

TYPED_TEST(Inspect, InterchangesAreMadeOneAfterTheOther) {
  using T = TypeParam;
  for (const index_t m : {1, 9, 300, 700})
    for (const index_t k : {index_t(1), m / 2, std::min<index_t>(m, 257), m}) {
      SCOPED_TRACE(::testing::Message() << "m = " << m << " k = " << k);
      auto expected = random_matrix<T>(this->random, m, 5, 3);
      DeviceMatrix<T> matrix(this->q, expected);
      std::vector<int> pivots;
      for (index_t i = 0; i < k; ++i) pivots.push_back(int(i + (i * 7919 + 13) % (m - i)) + 1);
      const Buffer<int> interchanges(this->q, pivots);
      inspect::swap_rows<T>(this->q, matrix.view(), interchanges, k);
      for (index_t i = 0; i < k; ++i)
        for (index_t j = 0; j < 5; ++j) std::swap(expected(i, j), expected(pivots[std::size_t(i)] - 1, j));
      const auto found = matrix.download();
      for (index_t j = 0; j < 5; ++j)
        for (index_t i = 0; i < m; ++i) ASSERT_EQ(found(i, j), expected(i, j)) << "at " << i << ", " << j;
    }
}

TYPED_TEST(Inspect, BadArgumentsAreNamed) {
  Matrix<TypeParam> L(this->q, 5, 5), C(this->q, 5, 5), other(this->q, 4, 4);
  EXPECT_THROW(inspect::cholesky_updates(this->q, Uplo::Lower, L.view(), C.view(), 3, 2), InvalidArgument);
  EXPECT_THROW(inspect::cholesky_updates(this->q, Uplo::Lower, L.view(), C.view(), 0, 6), InvalidArgument);
  try {
    inspect::cholesky_updates(this->q, Uplo::Lower, L.view(), other.view(), 0, 4);
    ADD_FAILURE() << "L and C do not fit each other";
  } catch (const InvalidArgument& mistake) {
    EXPECT_EQ(mistake.what(), std::string("cholesky_updates: C.rows = 4 must equal L.rows = 5"));
  }
  const Buffer<int> pivots(this->q, 5);
  EXPECT_THROW(inspect::swap_rows<TypeParam>(this->q, C.view(), pivots, 6), InvalidArgument);
  EXPECT_THROW(inspect::swap_rows<TypeParam>(this->q, C.view(), nullptr, 2), InvalidArgument);
}

}  // namespace
}  // namespace trifactor::test
