// Memory: every allocation may fail and the queue lives on; what was reserved is not allocated again; nothing leaks
// (on the host the address sanitizer looks on).
#include <support/jobs.hpp>
#include <trifactor/info.hpp>
#include <trifactor/trifactor.hpp>

// Allocations that are far too large must return null, as they do without a sanitizer.
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }

namespace trifactor::test {
namespace {

template <class T>
class Memory : public DeviceTest {
 protected:
  void TearDown() override { testing::fail_allocation(0); }
};
TYPED_TEST_SUITE(Memory, Scalars, ScalarNames);

/// Runs f with its k-th allocation failing: true when that allocation was asked for, and OutOfMemory came out of f.
template <class F>
bool fails_at(index_t k, F f) {
  bool failed = false;
  testing::fail_allocation(k);
  try {
    f();
  } catch (const OutOfMemory& e) {
    failed = true;
    EXPECT_GT(e.bytes(), 0u);
    EXPECT_NE(std::string(e.what()).find(std::to_string(e.bytes())), std::string::npos) << e.what();
  }
  testing::fail_allocation(0);
  return failed;
}

constexpr index_t many = 200;  // no call allocates so often

TYPED_TEST(Memory, EveryRoutineSurvivesEveryFailedAllocation) {
  for_every_job<TypeParam>(this->random, [&](const MakeJob& make) {
    index_t k = 0;
    for (bool failed = true; failed;) {
      Queue q = test_queue();  // with nothing reserved
      Job job = make(q);
      SCOPED_TRACE(::testing::Message() << job.name << ", allocation " << ++k << " fails");
      ASSERT_LT(k, many);
      failed = fails_at(k, [&] { job.run(), q.sync(); });
      if (failed) {
        job.prepare();
        job.run();
        q.sync();
      }
      job.check();
    }
  });
}

TYPED_TEST(Memory, HybridSurvivesEveryFailedAllocation) {
  if (!on_cuda()) GTEST_SKIP() << "of CUDA queues";
  for (bool is_lu : {false, true}) {
    index_t k = 0;
    for (bool failed = true; failed;) {
      Queue q = test_queue();
      Job job = is_lu ? lu_job<TypeParam>(q, this->random, "lu, hybrid", 50, {.mode = Mode::Hybrid, .tuning = "nb=8"})
                      : cholesky_job<TypeParam>(q, this->random, "cholesky, hybrid", Uplo::Upper, 50,
                                                {.mode = Mode::Hybrid, .tuning = "nb=8"});
      SCOPED_TRACE(::testing::Message() << job.name << ", allocation " << ++k << " fails");
      ASSERT_LT(k, many);
      failed = fails_at(k, [&] { job.run(), q.sync(); });
      if (failed) {
        job.prepare();
        job.run();
        q.sync();
      }
      job.check();
    }
    EXPECT_GT(k, 1) << "pinned memory is counted";
  }
}

TYPED_TEST(Memory, ScratchQueriesOfHybridCallsDoNotAllocate) {
  if (!on_cuda()) GTEST_SKIP() << "of CUDA queues";
  Queue q = test_queue();
  Matrix<TypeParam> A(q, 300, 300);
  const index_t before = testing::allocation_count();
  cholesky_scratch(q, Uplo::Lower, A.view(), {.mode = Mode::Hybrid, .tuning = "nb=64"});
  lu_scratch(q, A.view(), {.mode = Mode::Hybrid, .tuning = "nb=64"});
  EXPECT_EQ(testing::allocation_count(), before);
}

TYPED_TEST(Memory, ReservedCallsDoNotAllocate) {
  for_every_job<TypeParam>(this->random, [&](const MakeJob& make) {
    Queue q = test_queue();
    Job job = make(q);
    SCOPED_TRACE(job.name);
    if (!job.scratch) return;
    q.reserve(job.scratch());
    const index_t before = testing::allocation_count();
    job.run();
    EXPECT_EQ(testing::allocation_count(), before);
    q.sync();
    job.check();
  });
}

TYPED_TEST(Memory, OneReserveServesEveryCall) {
  Queue q = test_queue();
  std::size_t largest = 0;
  for_every_job<TypeParam>(this->random, [&](const MakeJob& make) {
    Job job = make(q);
    if (job.scratch) largest = std::max(largest, job.scratch());
  });
  q.reserve(largest);
  for (int round = 0; round < 2; ++round)
    for_every_job<TypeParam>(this->random, [&](const MakeJob& make) {
      Job job = make(q);
      if (!job.scratch) return;
      SCOPED_TRACE(job.name);
      const index_t before = testing::allocation_count();
      job.run();
      EXPECT_EQ(testing::allocation_count(), before);
      q.sync();
      job.check();
    });
}

TYPED_TEST(Memory, EqualCallsAllocateOnce) {
  for_every_job<TypeParam>(this->random, [&](const MakeJob& make) {
    Queue q = test_queue();
    Job job = make(q);
    SCOPED_TRACE(job.name);
    job.run();
    q.sync();
    job.prepare();
    const index_t before = testing::allocation_count();
    job.run();
    EXPECT_EQ(testing::allocation_count(), before);
    q.sync();
    job.check();
  });
}

TYPED_TEST(Memory, ScratchQueriesAllocateAndWriteNothing) {
  for_every_job<TypeParam>(this->random, [&](const MakeJob& make) {
    Queue q = test_queue();
    Job job = make(q);
    if (!job.scratch) return;
    SCOPED_TRACE(job.name);
    const index_t before = testing::allocation_count();
    EXPECT_EQ(job.scratch(), job.scratch());
    EXPECT_EQ(testing::allocation_count(), before);
    job.run();  // on the data that was there before the query
    q.sync();
    job.check();
  });
}

/// The value forms, with the failures in what they make and what they do.
TYPED_TEST(Memory, ValueFormsSurviveEveryFailedAllocation) {
  using T = TypeParam;
  const Device device = on_cuda() ? Device::Cuda : Device::Host;
  const auto A = random_spd<T>(this->random, 40), B = random_matrix<T>(this->random, 40, 2);
  const std::pair<const char*, std::function<void()>> calls[] = {
      {"cholesky", [&] { cholesky(A.view(), {.device = device}); }},
      {"cholesky, solve", [&] { cholesky(A.view(), {.device = device}).solve(B.view()); }},
      {"cholesky, inverse", [&] { cholesky(A.view(), {.device = device}).inverse(); }},
      {"cholesky, factor", [&] { cholesky(A.view(), {.device = device}).factor(); }},
      {"cholesky, rcond", [&] { cholesky(A.view(), {.device = device}).rcond(); }},
      {"lu, rcond", [&] { lu(A.view(), {.device = device}).rcond(); }},
      {"cholesky, log_det", [&] { cholesky(A.view(), {.device = device}).log_det(); }},
      {"lu", [&] { lu(A.view(), {.device = device}); }},
      {"lu, solve", [&] { lu(A.view(), {.device = device}).solve(B.view(), Op::Transpose); }},
      {"lu, inverse", [&] { lu(A.view(), {.device = device}).inverse(); }},
      {"lu, factors", [&] { lu(A.view(), {.device = device}).factors(); }},
      {"lu, permutation", [&] { lu(A.view(), {.device = device}).row_permutation(); }},
      {"lu, det", [&] { lu(A.view(), {.device = device}).det(); }},
  };
  for (const auto& [name, call] : calls) {
    SCOPED_TRACE(name);
    index_t k = 1;
    while (fails_at(k, call)) ASSERT_LT(++k, many);
    EXPECT_GT(k, 1) << "no allocation was seen";
    call();
  }
  // A factor that was there before stays good.
  const auto F = cholesky(A.view(), {.device = device});
  index_t k = 1;
  while (fails_at(k, [&] { F.solve(B.view()); })) ASSERT_LT(++k, many);
  const auto X = F.solve(B.view());
  HostMatrix<T> result(40, 2);
  std::copy_n(X.data(), 40, &result(0, 0)), std::copy_n(X.data() + 40, 40, &result(0, 1));
  EXPECT_LT(solve_ratio(Op::None, A, result, B), threshold);
}

TYPED_TEST(Memory, QueuesAndBuffersSurviveEveryFailedAllocation) {
  index_t k = 1;
  while (fails_at(k, [] { Queue q = test_queue(); })) ASSERT_LT(++k, many);
  for (k = 1; fails_at(k, [&] { Buffer<TypeParam>(this->q, 100); });) ASSERT_LT(++k, many);
  EXPECT_EQ(k, 2);
  for (k = 1; fails_at(k, [&] { Matrix<TypeParam>(this->q, 10, 10); });) ASSERT_LT(++k, many);
  EXPECT_EQ(k, 2);
  const Matrix<TypeParam> A(this->q, 10, 10);
  for (k = 1; fails_at(k, [&] { A.to_host(); });) ASSERT_LT(++k, many);
  EXPECT_EQ(k, 2);
  for (k = 1; fails_at(k, [&] { this->q.reserve(1 << 20); });) ASSERT_LT(++k, many);
  EXPECT_GT(k, 1);
  const index_t before = testing::allocation_count();
  this->q.reserve(1 << 20);
  this->q.reserve(0);
  Buffer<TypeParam> none(this->q, 0);
  EXPECT_EQ(testing::allocation_count(), before) << "what is there or empty is not allocated again";
}

TYPED_TEST(Memory, TooMuchSaysHowMuch) {
  constexpr std::size_t bytes = std::size_t(1) << 48;
  try {
    Buffer<TypeParam>(this->q, index_t(bytes / sizeof(TypeParam)));
    ADD_FAILURE() << "no exception";
  } catch (const OutOfMemory& e) { EXPECT_EQ(e.bytes(), bytes); }
  try {
    this->q.reserve(bytes);
    ADD_FAILURE() << "no exception";
  } catch (const OutOfMemory& e) { EXPECT_EQ(e.bytes(), bytes); }
  const auto A = random_spd<TypeParam>(this->random, 50);
  EXPECT_LT(cholesky_ratio(A, factor_cholesky(this->q, Uplo::Lower, A).F, Uplo::Lower), threshold)
      << "the queue works on";
}

TYPED_TEST(Memory, WhatIsReservedServesAfterACallThatFailed) {
  using T = TypeParam;
  Queue q = test_queue();
  q.reserve(1 << 20);
  DeviceMatrix<T> A(q, random_spd<T>(this->random, 800));  // whose triangle is more
  Buffer<int> info(q, 1);
  EXPECT_TRUE(fails_at(1, [&] { cholesky(q, Uplo::Lower, A.view(), info, {.shift_tries = 1}); }));
  DeviceMatrix<T> small(q, random_spd<T>(this->random, 100));
  const index_t before = testing::allocation_count();
  cholesky(q, Uplo::Lower, small.view(), info, {.shift_tries = 1});
  EXPECT_EQ(testing::allocation_count(), before);
}

/// Items may be far smaller than max_order says.
TYPED_TEST(Memory, TriangleSizesThatOverflowAreOutOfMemory) {
  using T = TypeParam;
  DeviceMatrix<T> A(this->q, random_spd<T>(this->random, 2));
  DeviceArray<T*> items(this->q, std::vector<T*>(4, A.view().data));
  DeviceArray<int> order(this->q, 4, 2), info(this->q, 4, garbage);
  const auto batch = ragged(items.data(), order.data(), {.count = 4, .max_order = 1 << 30});
  EXPECT_THROW(cholesky(this->q, Uplo::Lower, batch, info.data(), {.shift_tries = 3}), OutOfMemory);
  EXPECT_THROW(cholesky_scratch(this->q, Uplo::Lower, batch, {.shift_tries = 3}), OutOfMemory);
}

TYPED_TEST(Memory, DeviceMemoryComesBack) {
  if (!on_cuda()) GTEST_SKIP() << "the address sanitizer looks for leaks on the host";
  const auto free_bytes = [] {
    for (const auto& device : devices())
      if (device.number == 0) return double(device.free_bytes);
    return 0.0;
  };
  const auto sweep = [&] {
    for (index_t k = 1;; ++k) {
      Queue q = test_queue();
      Job job = cholesky_inverse_job<TypeParam>(q, this->random, "cholesky_inverse", Uplo::Upper, 600);
      if (!fails_at(k, [&] { job.run(), q.sync(); })) return;
    }
  };
  sweep();
  const double before = free_bytes();
  for (int i = 0; i < 5; ++i) sweep();
  EXPECT_GT(free_bytes(), before - double(8 << 20));
}

}  // namespace
}  // namespace trifactor::test
