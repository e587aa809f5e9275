// Calls end although an endless kernel holds multiprocessors: 60, 120 and 130 of 132. Two that are free are enough, but for
// LU of one matrix, whose clusters start whole: it ends once the others are released.
#include <support/factored.hpp>
#include <support/held.hpp>
#include <support/ratios.hpp>

namespace trifactor::test {
namespace {

constexpr int free_multiprocessors[] = {72, 12, 2};

template <class T>
class Held : public DeviceTest {
 protected:
  void SetUp() override {
    if (!on_cuda()) GTEST_SKIP() << "of the device";
    if (HeldMultiprocessors::available() <= free_multiprocessors[0])
      GTEST_SKIP() << "a device with few multiprocessors";
  }
  /// Calls run() while all multiprocessors but so many are held. It has run before: kernels are loaded, graphs are
  /// made, and nothing is allocated.
  template <class Run>
  void run_with(int free, Run run) {
    HeldMultiprocessors held(HeldMultiprocessors::available() - free);
    run();
    q.sync();
    EXPECT_FALSE(held.expired()) << "it ended when the multiprocessors were released";
  }
  /// prepare() and run() until nothing is new.
  template <class Prepare, class Run>
  void warm_up(Prepare prepare, Run run) {
    for (int turn = 0; turn < 3; ++turn) prepare(), run(), q.sync();
  }

  void factor_one(index_t n, Uplo uplo, const std::string& tuning = "") {
    const auto A = random_spd<T>(random, n);
    DeviceMatrix<T> F(q, A);
    DeviceArray<int> info(q, 1, garbage);
    const auto prepare = [&] { F.upload(A), info.upload({garbage}); };
    const auto run = [&] { cholesky(q, uplo, F.view(), info.data(), {.tuning = tuning}); };
    warm_up(prepare, run);
    for (int free : free_multiprocessors) {
      if (n > 2000 && (uplo == Uplo::Upper) == (free == 12)) continue;  // judging it takes long
      SCOPED_TRACE(::testing::Message() << name(uplo) << " n=" << n << ' ' << tuning << " free=" << free);
      prepare();
      run_with(free, run);
      EXPECT_EQ(info.download()[0], 0);
      EXPECT_LT(cholesky_ratio(A, F.download(), uplo), threshold);
    }
  }
  template <class Call>
  void factor_batch(const std::vector<index_t>& orders, Uplo uplo, Call call) {
    std::vector<HostMatrix<T>> A;
    for (index_t n : orders) A.push_back(random_spd<T>(random, n));
    DeviceBatch<T> F(q, A);
    const std::vector<int> unknown(A.size(), garbage);
    DeviceArray<int> info(q, unknown);
    const auto prepare = [&] { F.upload(A), info.upload(unknown); };
    const auto run = [&] { call(F, info.data()); };
    warm_up(prepare, run);
    for (int free : free_multiprocessors) {
      SCOPED_TRACE(::testing::Message() << name(uplo) << " free=" << free);
      prepare();
      run_with(free, run);
      const auto infos = info.download();
      const auto factors = F.download();
      for (std::size_t b = 0; b < A.size(); ++b) {
        EXPECT_EQ(infos[b], 0) << "item " << b;
        EXPECT_LT(cholesky_ratio(A[b], factors[b], uplo), threshold) << "item " << b;
      }
    }
  }
};
TYPED_TEST_SUITE(Held, Scalars, ScalarNames);

TYPED_TEST(Held, OneMatrixIsFactored) {
  for (Uplo uplo : both_uplos) {
    for (index_t n : {100, 500, 2000}) this->factor_one(n, uplo);
    for (index_t n : {300, 1500}) this->factor_one(n, uplo, "whole=0 macro_tiles=0");
    if (std::is_same_v<TypeParam, double>) this->factor_one(6000, uplo);
  }
}

TYPED_TEST(Held, FewLargeItemsAreFactored) {
  for (Uplo uplo : both_uplos)
    this->factor_batch({400, 400, 400, 400, 400}, uplo,
                       [&](const DeviceBatch<TypeParam>& F, int* info) { cholesky(this->q, uplo, F.strided(), info); });
}

TYPED_TEST(Held, RaggedBatchIsFactored) {
  for (Uplo uplo : both_uplos)
    this->factor_batch({700, 33, 400, 128, 5, 512, 64, 300, 0, 90, 650, 1}, uplo,
                       [&](const DeviceBatch<TypeParam>& F, int* info) { cholesky(this->q, uplo, F.ragged(), info); });
}

TYPED_TEST(Held, LuEndsOnceMultiprocessorsAreReleased) {
  // In double, clusters of one block, of three and of six, and a grid of 57.
  for (auto [m, n] : {std::pair<index_t, index_t>{200, 200}, {1000, 1000}, {2500, 2500}, {40000, 40}}) {
    SCOPED_TRACE(::testing::Message() << m << " x " << n);
    const auto A = random_matrix<TypeParam>(this->random, m, n);
    DeviceMatrix<TypeParam> F(this->q, A);
    DeviceArray<int> info(this->q, 1, garbage), pivots(this->q, n, garbage);
    const auto run = [&] { lu(this->q, F.view(), pivots.data(), info.data()); };
    this->warm_up([&] { F.upload(A); }, run);
    F.upload(A);
    this->q.sync();
    {
      const HeldMultiprocessors held(HeldMultiprocessors::available() - 2);
      run();
    }
    this->q.sync();
    EXPECT_EQ(info.download()[0], 0);
    EXPECT_LT(lu_ratio(A, F.download(), pivots.download()), threshold);
  }
}

TYPED_TEST(Held, OneRightHandSideIsSolvedFor) {
  const index_t n = 2000;
  const auto A = random_spd<TypeParam>(this->random, n), B = random_matrix<TypeParam>(this->random, n, 1);
  for (Uplo uplo : both_uplos) {
    const auto F = factor_cholesky(this->q, uplo, A);
    DeviceMatrix<TypeParam> L(this->q, F.F), X(this->q, B);
    DeviceArray<int> info(this->q, 1, 0);
    const auto prepare = [&] { X.upload(B); };
    const auto run = [&] { cholesky_solve(this->q, uplo, L.view(), X.view(), info.data()); };
    this->warm_up(prepare, run);
    for (int free : free_multiprocessors) {
      SCOPED_TRACE(::testing::Message() << name(uplo) << " free=" << free);
      prepare();
      this->run_with(free, run);
      EXPECT_LT(solve_ratio(Op::None, A, X.download(), B), threshold);
    }
  }
}

}  // namespace
}  // namespace trifactor::test
