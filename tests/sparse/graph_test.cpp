// Sparse factorizations without waiting: captured with solves in one CUDA graph, and on several streams.
#include <sparse/calls.hpp>
#include <support/captured_stream.hpp>
#include <support/ratios.hpp>
#include <trifactor/testing.hpp>

namespace trifactor::test {
namespace {

template <class T>
class SparseGraph : public CudaTest {};
TYPED_TEST_SUITE(SparseGraph, Scalars, ScalarNames);

TYPED_TEST(SparseGraph, SparseFactorAndSolveAreOneGraph) {
  using T = TypeParam;
  const auto pattern = poisson3d<T>(this->random, 12);
  const auto given = pattern.stored(Stored::Lower);
  const auto plan = analyze(given.pattern());
  for (const bool streamed : {false, true}) {
    SCOPED_TRACE(streamed ? "streamed" : "in memory");
    Stream stream;
    Queue q = Queue::wrap_cuda_stream(stream.get(), 0);
    const std::size_t all = SparseCholesky<T>::memory(q, *plan).total();
    SparseCholesky<T> F(q, plan, {.max_device_bytes = streamed ? all - all / 8 : 0});
    EXPECT_EQ(F.memory().host > 0, streamed);
    DeviceArray<T> values(q, given.values);
    DeviceArray<int> info(q, 1, garbage);
    DeviceMatrix<T> X(q, HostMatrix<T>(pattern.n, 1));
    q.sync();
    stream.begin();
    F.factor_async(std::span<const T>(values.data(), given.values.size()), info.data());
    F.solve(X.view());
    expect_success(stream.end());
    stream.instantiate();
    for (const index_t bad : {-1, 5, -1, 1000}) {
      const auto A = pattern.with_new_values(this->random);
      auto now = A.stored(Stored::Lower);
      if (bad >= 0) now.at(bad, bad) = T(-1);
      const auto B = random_matrix<T>(this->random, A.n, 1);
      values.upload(now.values);
      X.upload(B);
      stream.replay();
      q.sync();
      EXPECT_EQ(info.download()[0], bad + 1);
      if (bad < 0) { EXPECT_LT(A.solve_ratio(X.download(), B), threshold); }
      if (bad >= 0) { EXPECT_TRUE(same_bits(X.download(), B)); }
      // A call outside of the graph does not trust what a replay has left on the device.
      factor(q, F, A.stored(Stored::Lower).values);
      auto Y = B;
      solve(q, F, Y);
      EXPECT_LT(A.solve_ratio(Y, B), threshold);
    }
  }
}

TYPED_TEST(SparseGraph, FactorizationsAreOneGraphFromTheSecondOn) {
  using T = TypeParam;
  const auto given = poisson3d<T>(this->random, 9).stored(Stored::Lower);
  Queue q = Queue::cuda();
  SparseCholesky<T> F(q, analyze(given.pattern()));
  for (index_t k = 0; k < 4; ++k) {
    const index_t replays = testing::replay_count();
    factor(q, F, given.values);
    EXPECT_EQ(testing::replay_count(), replays + (k > 0)) << "factorization " << k;
  }
}

TYPED_TEST(SparseGraph, ManyMatricesOfOnePatternAreOneGraph) {
  using T = TypeParam;
  constexpr index_t count = 3;
  const auto pattern = poisson3d<T>(this->random, 9);
  const auto plan = analyze(pattern.stored(Stored::Lower).pattern());
  Stream stream;
  Queue q = Queue::wrap_cuda_stream(stream.get(), 0);
  SparseCholeskyBatch<T> F(q, plan, count);
  const std::size_t entries = count * std::size_t(plan->entries());
  DeviceArray<T> values(q, std::vector<T>(entries));
  DeviceArray<int> info(q, count, garbage);
  // There is memory for one right-hand side from the beginning on.
  DeviceBatch<T> X(q, std::vector<HostMatrix<T>>(count, HostMatrix<T>(pattern.n, 1)));
  q.sync();
  stream.begin();
  F.factor_async(std::span<const T>(values.data(), entries), info.data());
  F.solve(X.strided());
  expect_success(stream.end());
  stream.instantiate();
  for (const index_t bad : {-1, 0, 2}) {  // an item
    std::vector<SparseMatrix<T>> A;
    std::vector<HostMatrix<T>> B;
    std::vector<T> now;
    for (index_t i = 0; i < count; ++i) {
      A.push_back(pattern.with_new_values(this->random));
      B.push_back(random_matrix<T>(this->random, pattern.n, 1));
      auto own = A.back().stored(Stored::Lower);
      if (i == bad) own.at(100, 100) = T(-1);
      now.insert(now.end(), own.values.begin(), own.values.end());
    }
    values.upload(now);
    X.upload(B);
    stream.replay();
    q.sync();
    const auto solved = X.download();
    const auto failed = info.download();
    for (index_t i = 0; i < count; ++i) {
      EXPECT_EQ(failed[i], i == bad ? 101 : 0);
      EXPECT_TRUE(i == bad ? same_bits(solved[i], B[i]) : A[i].solve_ratio(solved[i], B[i]) < threshold) << i;
    }
  }
}

TYPED_TEST(SparseGraph, HybridIsRefusedUnderCapture) {
  using T = TypeParam;
  const auto A = poisson3d<T>(this->random, 8);
  const auto given = A.stored(Stored::Lower);
  const auto plan = analyze(given.pattern());
  Stream stream;
  Queue q = Queue::wrap_cuda_stream(stream.get(), 0);
  SparseCholesky<T> hybrid(q, plan, {.mode = Mode::Hybrid, .tuning = "host_percent=20"}), native(q, plan);
  const DeviceArray<T> values(q, given.values);
  const DeviceArray<int> info(q, 1, garbage);
  const std::span<const T> span(values.data(), given.values.size());
  q.sync();
  stream.begin();
  EXPECT_THROW(hybrid.factor_async(span, info.data()), InvalidArgument);
  native.factor_async(span, info.data());  // the capture is still good
  expect_success(stream.end());
  stream.instantiate();
  stream.replay();
  EXPECT_EQ(info.download()[0], 0);
  hybrid.factor(span);
}

TYPED_TEST(SparseGraph, ObjectsOfOnePlanWorkOnTwoStreams) {
  using T = TypeParam;
  const auto pattern = poisson3d<T>(this->random, 12);
  const auto plan = analyze(pattern.stored(Stored::Lower).pattern());
  struct Side {
    Stream stream;
    Queue q = Queue::wrap_cuda_stream(stream.get(), 0);
  } sides[2];
  std::vector<SparseCholesky<T>> F;
  F.emplace_back(sides[0].q, plan);
  F.emplace_back(sides[1].q, plan, SparseOptions{.mode = Mode::Hybrid, .tuning = "host_percent=20"});
  for (int turn = 0; turn < 5; ++turn) {
    const SparseMatrix<T> A[2] = {pattern.with_new_values(this->random), pattern.with_new_values(this->random)};
    const auto B = random_matrix<T>(this->random, pattern.n, 2);
    std::vector<DeviceArray<T>> values;
    std::vector<DeviceArray<int>> info;
    std::vector<DeviceMatrix<T>> X;
    for (int k = 0; k < 2; ++k) {
      values.emplace_back(sides[k].q, A[k].stored(Stored::Lower).values);
      info.emplace_back(sides[k].q, 1, garbage);
      X.emplace_back(sides[k].q, B);
    }
    for (int k = 0; k < 2; ++k) {
      F[k].factor_async(std::span<const T>(values[k].data(), std::size_t(plan->entries())), info[k].data());
      F[k].solve(X[k].view());
    }
    for (int k = 0; k < 2; ++k) {
      EXPECT_EQ(info[k].download()[0], 0);
      EXPECT_LT(A[k].solve_ratio(X[k].download(), B), threshold);
    }
  }
}

}  // namespace
}  // namespace trifactor::test
