// Mode::Hybrid: threads of the CPU factor the last subtrees beside the GPU. On the host the same driver runs level by
// level, and the part of the CPU comes first.
#include <sparse/calls.hpp>
#include <support/ratios.hpp>
#include <trifactor/testing.hpp>

namespace trifactor::test {
namespace {

/// The part of the CPU in percent, with fronts as they come and with small ones that are alone or chains.
std::vector<std::string> hybrid_ways() {
  std::vector<std::string> all;
  for (const char* percent : {"1", "20", "60", "100"})
    for (const char* fronts : {"", " alone=8 alone_below=16 widest=64"})
      all.push_back("levels=1 at_once=5 host_percent=" + std::string(percent) + fronts);
  return all;
}

template <class T>
class Hybrid : public DeviceTest {
 protected:
  std::vector<SparseMatrix<T>> shapes() {
    std::vector<SparseMatrix<T>> all;
    all.push_back(poisson2d<T>(random, 25));
    all.push_back(poisson3d<T>(random, 7));
    all.push_back(banded<T>(random, 300, 9));
    all.push_back(disconnected<T>(random, 6, 30));
    all.push_back(random_pattern<T>(random, random.integer(100, 300), random.uniform(0.5, 3)));
    return all;
  }
};
TYPED_TEST_SUITE(Hybrid, Scalars, ScalarNames);

TYPED_TEST(Hybrid, AnyPartMayBeTheHosts) {
  using T = TypeParam;
  for (const auto& A : this->shapes()) {
    const auto plan = analyze(A.stored(Stored::Lower).pattern());
    index_t parts = 0, streamed_parts = 0;
    for (const std::string& way : hybrid_ways())
      for (const bool streamed : {false, true}) {
        SCOPED_TRACE(::testing::Message() << A.name << " n=" << A.n << " " << way << (streamed ? " streamed" : ""));
        SparseOptions options{.mode = Mode::Hybrid, .tuning = way};
        const SparseMemory all = SparseCholesky<T>::memory(this->q, *plan, options);
        const bool part = all.host > 0;  // nothing else is there while all fits
        if (streamed) options.max_device_bytes = all.total() - all.total() / 20;
        SparseMemory planned;
        try {
          planned = SparseCholesky<T>::memory(this->q, *plan, options);
        } catch (const InvalidArgument&) { continue; }  // nearly all of it is one front
        parts += part, streamed_parts += part && streamed;
        if (way.find("=100") != std::string::npos) { EXPECT_TRUE(part); }
        SparseCholesky<T> F(this->q, plan, options), again(this->q, plan, options);
        EXPECT_EQ(F.memory().total(), planned.total());
        EXPECT_EQ(F.memory().host, planned.host);
        for (int turn = 0; turn < 2; ++turn) {
          const auto now = turn == 0 ? A : A.with_new_values(this->random);
          auto given = now.stored(Stored::Lower);
          const real_t<T> shift = real_t<T>(turn);
          for (index_t j = 0; j < A.n; ++j) given.at(j, j) -= T(shift);
          factor(this->q, F, given.values, shift);
          EXPECT_EQ(testing::path_taken(), std::string(streamed ? "streamed" : "levels") + (part ? " hybrid" : ""));
          for (const index_t k : {1, 7}) {
            const auto B = random_matrix<T>(this->random, A.n, k, 2);
            auto X = B;
            solve(this->q, F, X);
            EXPECT_TRUE(same_frame(B, X)) << "wrote outside B";
            EXPECT_LT(now.solve_ratio(X, B), threshold) << k << " right-hand sides";
          }
          if (turn > 0) continue;
          factor(this->q, again, given.values, shift);
          EXPECT_EQ(F.lower().values, again.lower().values) << "equal settings, other bits";
        }
      }
    EXPECT_GT(parts, on_cuda() ? 1 : 4) << A.name;  // solves on a device have small subtrees, which are not cut
    if (A.name.starts_with("poisson")) { EXPECT_GT(streamed_parts, on_cuda() ? 1 : 4) << A.name; }
  }
}

TYPED_TEST(Hybrid, FailsAtTheColumnThatFails) {
  using T = TypeParam;
  const auto A = poisson2d<T>(this->random, 9);
  const auto given = A.stored(Stored::Lower);
  const auto plan = analyze(given.pattern());
  for (const std::string& way : hybrid_ways()) {
    SparseCholesky<T> F(this->q, plan, {.mode = Mode::Hybrid, .tuning = way});
    const auto B = random_matrix<T>(this->random, A.n, 1);
    for (index_t j = 0; j < A.n; ++j) {
      auto bad = given;
      bad.at(j, j) = j % 2 ? T(-1) : T(std::numeric_limits<real_t<T>>::quiet_NaN());
      EXPECT_EQ(try_factor(this->q, F, bad.values), j + 1) << way;
    }
    factor(this->q, F, given.values);
    auto X = B;
    solve(this->q, F, X);
    EXPECT_LT(A.solve_ratio(X, B), threshold) << way;
  }
}

// Both parts fail, and the first column of the factor counts.
TYPED_TEST(Hybrid, TheEarliestColumnCounts) {
  using T = TypeParam;
  const auto A = poisson2d<T>(this->random, 20);
  const auto given = A.stored(Stored::Lower);
  const auto plan = analyze(given.pattern());
  SparseCholesky<T> F(this->q, plan, {.mode = Mode::Hybrid, .tuning = "levels=1 host_percent=30"});
  const auto& order = plan->permutation();
  for (int turn = 0; turn < 20; ++turn) {
    auto bad = given;
    index_t first = A.n;
    for (int k = 0; k < 3; ++k) {
      const index_t column = this->random.integer(0, A.n - 1);
      first = std::min(first, column);
      bad.at(order[column], order[column]) = T(-1);
    }
    EXPECT_EQ(try_factor(this->q, F, bad.values), order[first] + 1);
  }
}

TYPED_TEST(Hybrid, SolvesFollowWithoutWaiting) {
  using T = TypeParam;
  const auto pattern = poisson3d<T>(this->random, 10);
  const auto plan = analyze(pattern.stored(Stored::Lower).pattern());
  SparseCholesky<T> F(this->q, plan, {.mode = Mode::Hybrid, .tuning = "levels=1 host_percent=20"});
  for (int turn = 0; turn < 5; ++turn) {
    const auto A = pattern.with_new_values(this->random), other = pattern.with_new_values(this->random);
    const auto now = A.stored(Stored::Lower).values, before = other.stored(Stored::Lower).values;
    const DeviceArray<T> values(this->q, now), values_before(this->q, before);
    const DeviceArray<int> info(this->q, 1, garbage);
    const auto B = random_matrix<T>(this->random, A.n, 2);
    const DeviceMatrix<T> X(this->q, B);
    F.factor_async(std::span<const T>(values_before.data(), before.size()), info.data(), real_t<T>(3));
    F.factor_async(std::span<const T>(values.data(), now.size()), info.data());
    F.solve(X.view());
    EXPECT_LT(A.solve_ratio(X.download(), B), threshold);
    EXPECT_EQ(info.download()[0], 0);
  }
}

TYPED_TEST(Hybrid, ItemsOfABatchFailAlone) {
  using T = TypeParam;
  constexpr index_t count = 5;
  const auto A = poisson2d<T>(this->random, 8);
  const auto given = A.stored(Stored::Lower);
  const auto plan = analyze(given.pattern());
  for (const std::string& way : hybrid_ways()) {
    SCOPED_TRACE(way);
    SparseCholeskyBatch<T> F(this->q, plan, count, {.mode = Mode::Hybrid, .tuning = way});
    std::vector<SparseMatrix<T>> items;
    std::vector<T> values;
    std::vector<int> expected;
    std::vector<HostMatrix<T>> B;
    for (index_t i = 0; i < count; ++i) {
      items.push_back(A.with_new_values(this->random));
      auto now = items.back().stored(Stored::Lower);
      const index_t bad = i % 2 ? this->random.integer(0, A.n - 1) : -1;
      if (bad >= 0) now.at(bad, bad) = T(-1);
      values.insert(values.end(), now.values.begin(), now.values.end());
      expected.push_back(int(bad + 1));
      B.push_back(random_matrix<T>(this->random, A.n, 2));
    }
    EXPECT_EQ(factor(this->q, F, values), count / 2);
    EXPECT_EQ(F.info(), expected);
    auto X = B;
    solve(this->q, F, X);
    for (index_t i = 0; i < count; ++i)
      if (expected[i] != 0)
        EXPECT_TRUE(same_bits(X[i], B[i])) << i;
      else
        EXPECT_LT(items[i].solve_ratio(X[i], B[i]), threshold) << i;
  }
}

TYPED_TEST(Hybrid, TinyMatrices) {
  using T = TypeParam;
  for (const index_t n : {0, 1, 2, 3})
    for (const char* way : {"levels=1 host_percent=50", "levels=1 host_percent=100", "levels=1"}) {
      const auto A = full_matrix<T>(this->random, n);
      const auto given = A.stored(Stored::Lower);
      SparseCholesky<T> F(this->q, analyze(given.pattern()), {.mode = Mode::Hybrid, .tuning = way});
      factor(this->q, F, given.values);
      const auto B = random_matrix<T>(this->random, n, 2);
      auto X = B;
      solve(this->q, F, X);
      EXPECT_LT(A.solve_ratio(X, B), threshold) << n << " " << way;
    }
}

TYPED_TEST(Hybrid, WhatGainsNothingIsLeftToTheDevice) {
  using T = TypeParam;
  const auto A = poisson2d<T>(this->random, 20);
  const auto given = A.stored(Stored::Lower);
  SparseCholesky<T> F(this->q, analyze(given.pattern()), {.mode = Mode::Hybrid, .tuning = "levels=1"});
  factor(this->q, F, given.values);
  EXPECT_EQ(testing::path_taken(), "levels");
  EXPECT_EQ(F.memory().host, 0u);
}

TYPED_TEST(Hybrid, EveryFailedAllocationIsSurvived) {
  using T = TypeParam;
  const auto A = poisson2d<T>(this->random, 12);
  const auto given = A.stored(Stored::Lower);
  const auto plan = analyze(given.pattern());
  const SparseOptions options{.mode = Mode::Hybrid, .tuning = "levels=1 host_percent=30"};
  {
    Queue q = test_queue();  // with nothing reserved
    SparseCholesky<T> F(q, plan, options);
    const DeviceArray<T> values(q, given.values), x(q, std::vector<T>(A.n, T(1)));
    const index_t before = testing::allocation_count();
    F.factor(std::span<const T>(values.data(), given.values.size()));
    F.solve(MatrixView<T>{x.data(), A.n, 1, A.n});
    EXPECT_EQ(testing::allocation_count(), before);
  }
  for (index_t k = 1;; ++k) {
    ASSERT_LT(k, 100);
    testing::fail_allocation(k);
    try {
      SparseCholesky<T> F(this->q, plan, options);
      factor(this->q, F, given.values);
      testing::fail_allocation(0);
      break;
    } catch (const OutOfMemory&) { testing::fail_allocation(0); }
  }
}

TYPED_TEST(Hybrid, NeedsADevice) {
  using T = TypeParam;
  Queue q = Queue::host();
  const auto A = poisson2d<T>(this->random, 5);
  const auto plan = analyze(A.stored(Stored::Lower).pattern());
  const auto refused = [](auto call) {
    try {
      call();
      ADD_FAILURE() << "not refused";
    } catch (const InvalidArgument& refusal) {
      EXPECT_NE(std::string(refusal.what()).find("mode = Hybrid must run on a CUDA queue"), std::string::npos)
          << refusal.what();
    }
  };
  const SparseOptions options{.mode = Mode::Hybrid, .tuning = "levels=0"};
  refused([&] { SparseCholesky<T>(q, plan, options); });
  refused([&] { SparseCholesky<T>::memory(q, *plan, options); });
  refused([&] { SparseCholeskyBatch<T>(q, plan, 2, options); });
}

}  // namespace
}  // namespace trifactor::test
