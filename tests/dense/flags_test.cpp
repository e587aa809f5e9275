// The persistent kernel, whose blocks wait for each other's flags in global memory: no tool sees a race there, so it
// runs many times, at many sizes, on two streams at once, and every result must be the same to the last bit.
#include <support/factored.hpp>
#include <support/ratios.hpp>

namespace trifactor::test {
namespace {

template <class T>
class Flags : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!on_cuda()) GTEST_SKIP() << "of CUDA queues";
  }
  Random random;
  const CholeskyOptions persistent{.tuning = "whole=0 persistent=2147483647 macro_tiles=2147483647"};
  const CholeskyOptions in_macro_tiles{.tuning = "whole=0 persistent=2147483647 macro_tiles=0"};

 private:
  ::testing::ScopedTrace trace_{__FILE__, __LINE__, "TRIFACTOR_TEST_SEED=" + std::to_string(test_seed())};
};
TYPED_TEST_SUITE(Flags, Scalars, ScalarNames);

TYPED_TEST(Flags, RepeatBitwiseUnderStress) {
  using T = TypeParam;
  struct Case {
    Uplo uplo;
    const CholeskyOptions& options;
    HostMatrix<T> expected;
    DeviceMatrix<T> given, F[2];  // on the device throughout: one F for each queue
  };
  Queue q = test_queue(), queues[2] = {test_queue(), test_queue()};
  std::vector<Case> cases;
  for (index_t n : {40, 64, 65, 100, 129, 200, 320, 511, 640, 1000})
    for (Uplo uplo : both_uplos)
      for (const CholeskyOptions* options : {&this->persistent, &this->in_macro_tiles}) {
        const auto A = random_spd<T>(this->random, n, n % 3);  // odd and even leading dimensions
        const auto result = factor_cholesky(q, uplo, A, *options);
        ASSERT_EQ(result.path, "persistent");
        ASSERT_EQ(result.info, 0);
        ASSERT_LT(cholesky_ratio(A, result.F, uplo), threshold) << "n=" << n;
        cases.push_back({uplo, *options, result.F, {q, A}, {{queues[0], A}, {queues[1], A}}});
      }
  DeviceArray<int> info[2] = {{queues[0], 1, garbage}, {queues[1], 1, garbage}};
  for (int round = 0; round < 1300; ++round) {
    Case* both[2];
    for (int s = 0; s < 2; ++s) {
      both[s] = &cases[std::size_t(this->random.integer(0, index_t(cases.size()) - 1))];
      copy(queues[s], both[s]->given.view(), queues[s], both[s]->F[s].view());
      info[s].upload({garbage});
    }
    for (int s = 0; s < 2; ++s)
      cholesky(queues[s], both[s]->uplo, both[s]->F[s].view(), info[s].data(), both[s]->options);
    for (int s = 0; s < 2; ++s) {
      queues[s].sync();
      ASSERT_EQ(info[s].download()[0], 0);
      ASSERT_TRUE(same_bits(both[s]->F[s].download(), both[s]->expected))
          << "n=" << both[s]->expected.rows << ' ' << name(both[s]->uplo) << ", round " << round;
    }
  }
}

TYPED_TEST(Flags, ManyRunsInARowGiveOneResult) {
  using T = TypeParam;
  Queue q = test_queue();
  for (index_t n : {70, 200, 450, 451}) {
    const auto& options = n % 2 ? this->in_macro_tiles : this->persistent;
    const auto A = random_spd<T>(this->random, n);
    const auto expected = factor_cholesky(q, Uplo::Lower, A, options);
    ASSERT_LT(cholesky_ratio(A, expected.F, Uplo::Lower), threshold);
    DeviceMatrix<T> given(q, A), F(q, A);
    DeviceArray<int> info(q, 1, garbage);
    for (int run = 0; run < 1000; ++run) {
      copy(q, given.view(), q, F.view());
      cholesky(q, Uplo::Lower, F.view(), info.data(), options);
      if (run % 100 == 99) {
        q.sync();
        ASSERT_EQ(info.download()[0], 0);
        ASSERT_TRUE(same_bits(F.download(), expected.F)) << "n=" << n << ", run " << run;
      }
    }
  }
}

TYPED_TEST(Flags, PivotsBelowTheNormalNumbersArePositive) {
  using T = TypeParam;
  using R = real_t<T>;
  Queue q = test_queue();
  const R tiny = std::numeric_limits<R>::denorm_min() * R(1 << 16);
  HostMatrix<T> A(80, 80);
  for (index_t j = 0; j < 80; ++j)
    for (index_t i = 0; i < 80; ++i) A(i, j) = T(i == j ? (i == 20 ? tiny : R(4)) : R(0));
  const auto result = factor_cholesky(q, Uplo::Lower, A, this->persistent);
  EXPECT_EQ(result.info, 0);
  EXPECT_NEAR(std::real(result.F(20, 20)) / std::sqrt(tiny), R(1), R(1e-5));
  EXPECT_EQ(result.F(79, 79), T(2));
}

#if TRIFACTOR_HAS_F64
// Bands of columns of squares, and sums that begin in the middle, need matrices of some size: the factor by tiles is
// the measure.
TEST(FlagsOfBands, GiveTheFactorOfTilesAndTheSameBitsAgain) {
  if (!on_cuda()) GTEST_SKIP() << "of CUDA queues";
  Random random;
  SCOPED_TRACE("TRIFACTOR_TEST_SEED=" + std::to_string(test_seed()));
  Queue q = test_queue();
  const CholeskyOptions tiles{.tuning = "whole=0 persistent=2147483647 macro_tiles=2147483647"};
  for (index_t n : {3600, 3601, 3608}) {  // all rows by the copy engine, none, all but the last
    const auto A = random_spd<double>(random, n);
    for (Uplo uplo : both_uplos) {
      const auto expected = factor_cholesky(q, uplo, A, tiles);
      for (const char* band : {"1", "5", "6"}) {
        const CholeskyOptions bands{.tuning = std::string("whole=0 persistent=2147483647 macro_tiles=0 band=") + band};
        const auto result = factor_cholesky(q, uplo, A, bands);
        ASSERT_EQ(result.path, "persistent");
        ASSERT_EQ(result.info, 0);
        ASSERT_LT(triangle_difference(result.F, expected.F, uplo, n), 1e-11)  // entries are below 13
            << "n=" << n << ' ' << name(uplo) << " band=" << band;
        ASSERT_TRUE(same_bits(factor_cholesky(q, uplo, A, bands).F, result.F)) << "n=" << n << " band=" << band;
      }
    }
  }
}
#endif

}  // namespace
}  // namespace trifactor::test
