// Several queues at once, each with a thread of its own, while others allocate, free and copy.
#include <support/jobs.hpp>

#include <atomic>
#include <cstdlib>
#include <thread>
#include <unistd.h>

namespace trifactor::test {
namespace {

template <class T>
class QueuesTest : public DeviceTest {
 protected:
  /// Columns outweigh their sums, so that both factorizations are good, and making it takes one pass.
  HostMatrix<T> dominant(Random& r, index_t n) {
    HostMatrix<T> A(n, n);
    for (index_t j = 0; j < n; ++j)
      for (index_t i = j; i < n; ++i) {
        A(i, j) = i == j ? T(real_t<T>(2 * n)) : narrow<T>(r.template wide<Wide<T>>());
        A(j, i) = conj_of(A(i, j));
      }
    return A;
  }
  static T conj_of(T a) {
    if constexpr (ComplexScalar<T>)
      return std::conj(a);
    else
      return a;
  }

  /// Factors and solves three times, so that the calls are launched, captured and replayed.
  void work(Queue& queue, Random& r, bool lu_of, index_t n) {
    const auto A = dominant(r, n), B = random_matrix<T>(r, n, 3);
    DeviceMatrix<T> F(queue, A), X(queue, B);
    DeviceArray<int> pivots(queue, n, 0), info(queue, 1, -7);
    for (int turn = 0; turn < 3; ++turn) {
      F.upload(A), X.upload(B);
      if (lu_of) {
        lu(queue, F.view(), pivots.data(), info.data());
        lu_solve(queue, Op::None, F.view(), pivots.data(), X.view(), info.data());
      } else {
        cholesky(queue, Uplo::Lower, F.view(), info.data());
        cholesky_solve(queue, Uplo::Lower, F.view(), X.view(), info.data());
      }
      queue.sync();
      EXPECT_EQ(info.download()[0], 0);
      EXPECT_LT(solve_ratio(Op::None, A, X.download(), B), threshold) << (lu_of ? "lu" : "cholesky") << " n=" << n;
    }
  }

  /// work(queue, random, t) on eight threads t with a queue each. Meanwhile memory comes and goes, and the default
  /// stream, which waits for all others that do not refuse, copies.
  template <class Work>
  void eight_at_once(const Work& work) {
    if (!blas_bears_threads()) GTEST_SKIP() << "the checks call BLAS side by side";
    constexpr int queues = 8;
    std::atomic<int> busy{queues};
    const auto guarded = [](auto run) {
      try {
        run();
      } catch (const std::exception& e) { ADD_FAILURE() << e.what(); }
    };
    std::vector<std::thread> threads;
    for (int t = 0; t < queues; ++t)
      threads.emplace_back([&, t] {
        guarded([&] {
          Random r(test_seed() + std::uint64_t(t) * 1000);
          Queue own = on_cuda() ? Queue::cuda() : Queue::host(1);
          work(own, r, t);
        });
        --busy;
      });
    threads.emplace_back([&] {
      guarded([&] {
        Queue other = on_cuda() ? Queue::wrap_cuda_stream(nullptr, 0) : Queue::host(1);
        std::vector<double> here(1000, 1.5);
        while (busy > 0) {
          Buffer<double> there(other, 1000);
          copy(host_queue(), here.data(), other, there.data(), 1000);
          copy(other, there.data(), host_queue(), here.data(), 1000);
          std::this_thread::yield();
        }
        EXPECT_EQ(here, std::vector<double>(1000, 1.5));
      });
    });
    for (auto& thread : threads) thread.join();
  }
};
TYPED_TEST_SUITE(QueuesTest, Scalars, ScalarNames);

TYPED_TEST(QueuesTest, EightAtOnceMixFactorizations) {
  const int rounds = on_cuda() ? 6 : 2;
  this->eight_at_once([&](Queue& own, Random& r, int t) {
    for (int round = 0; round < rounds; ++round)
      this->work(own, r, (t + round) % 3 != 0, on_cuda() ? r.integer(64, 1500) : r.integer(10, 120));
  });
}

// Grids whose blocks wait for each other: two that began by halves would never end.
TYPED_TEST(QueuesTest, EightAtOnceFactorTallMatrices) {
  if (!on_cuda()) GTEST_SKIP() << "of the device";
  this->eight_at_once([&](Queue& own, Random& r, int t) {
    const index_t m = 12000 + 4000 * t, n = 40;
    const auto A = random_matrix<TypeParam>(r, m, n);
    DeviceMatrix<TypeParam> F(own, A);
    DeviceArray<int> pivots(own, n, 0), info(own, 1, garbage);
    std::vector<int> first;
    for (int turn = 0; turn < 40; ++turn) {
      F.upload(A);
      lu(own, F.view(), pivots.data(), info.data());
      own.sync();
      if (turn == 0) first = pivots.download();
      ASSERT_EQ(pivots.download(), first);
    }
    EXPECT_EQ(info.download()[0], 0);
    EXPECT_LT(lu_ratio(A, F.download(), first), threshold);
  });
}

// Each call is launched, captured and replayed.
TYPED_TEST(QueuesTest, EightAtOnceMakeEveryCall) {
  this->eight_at_once([&](Queue& own, Random& r, int t) {
    if (!on_cuda() && t >= 2) return;  // the host has no graphs
    for_every_job<TypeParam>(r, [&](const MakeJob& make) {
      const Job job = make(own);
      SCOPED_TRACE(job.name);
      for (int turn = 0; turn < 3; ++turn) {
        if (turn > 0) job.prepare();
        job.run();
        own.sync();
        job.check();
      }
    });
  });
}

/// BLAS shares buffers, or the number of its threads, among all threads of the process.
TYPED_TEST(QueuesTest, QueuesWithDifferentNumbersOfThreadsDisturbNoOther) {
  if (on_cuda()) GTEST_SKIP() << "of host queues";
  struct Factored {
    HostMatrix<TypeParam> A, F;
    std::vector<int> pivots;
  };
  const std::vector<int> teams{8, 3, 2};
  std::vector<std::vector<Factored>> factored(teams.size());  // checked in the end: that calls BLAS too
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < teams.size(); ++t)
    threads.emplace_back([&, t] {
      Random r(test_seed() + t);
      Queue own = Queue::host(teams[t]);
      for (const index_t n : {300, 200, 260, 340}) {
        const auto A = this->dominant(r, n);
        DeviceArray<int> pivots(own, n, 0), info(own, 1, -7);
        for (int turn = 0; turn < (TRIFACTOR_TEST_SANITIZED ? 2 : 6); ++turn) {
          DeviceMatrix<TypeParam> F(own, A);
          lu(own, F.view(), pivots.data(), info.data(), {.tuning = "whole=0 nb=64"});
          const auto found = F.download();
          if (turn == 0)
            factored[t].push_back({A, found, pivots.download()});
          else
            EXPECT_TRUE(same_bits(found, factored[t].back().F)) << teams[t] << " threads, n=" << n;
        }
      }
    });
  for (auto& thread : threads) thread.join();
  for (std::size_t t = 0; t < teams.size(); ++t)
    for (const Factored& f : factored[t])
      EXPECT_LT(lu_ratio(f.A, f.F, f.pivots), threshold) << teams[t] << " threads, n=" << f.A.rows;
}

/// BLAS on OpenMP waits without end for threads that OpenMP does not give it. A fresh process, since OpenMP reads its
/// variables once; nothing but the library calls BLAS there.
TYPED_TEST(QueuesTest, HostQueuesEndWithTheThreadsThatOpenMPGives) {
  if (TRIFACTOR_TEST_SANITIZED || on_cuda()) GTEST_SKIP() << "of host queues without sanitizers";
  using T = TypeParam;
  const auto child = [] {
    alarm(60);
    constexpr index_t n = 400;
    Queue own = Queue::host(4);
    HostMatrix<T> A(n, n);   // 1 everywhere, and n more on the diagonal: A times ones is 2 n
    for (index_t j = 0; j < n; ++j)
      for (index_t i = 0; i < n; ++i) A(i, j) = T(real_t<T>(i == j ? n + 1 : 1));
    bool good = true;
    for (const bool lu_of : {false, true}) {
      HostMatrix<T> B(n, 50);
      for (index_t j = 0; j < 50; ++j)
        for (index_t i = 0; i < n; ++i) B(i, j) = T(real_t<T>(2 * n));
      DeviceMatrix<T> F(own, A), X(own, B);
      DeviceArray<int> pivots(own, n, 0), info(own, 1, -7);
      if (lu_of) {
        lu(own, F.view(), pivots.data(), info.data(), {.tuning = "whole=0 nb=64"});
        lu_solve(own, Op::None, F.view(), pivots.data(), X.view(), info.data());
      } else {
        cholesky(own, Uplo::Lower, F.view(), info.data());
        cholesky_solve(own, Uplo::Lower, F.view(), X.view(), info.data());
      }
      const auto x = X.download();
      good = good && info.download()[0] == 0;
      for (index_t j = 0; j < 50; ++j)
        for (index_t i = 0; i < n; ++i) good = good && std::abs(x(i, j) - T(1)) < 1e-3;
    }
    std::_Exit(good ? 0 : 1);
  };
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const auto& [name, value] : {std::pair{"OMP_THREAD_LIMIT", "1"}, {"OMP_DYNAMIC", "true"}, {"OMP_MAX_ACTIVE_LEVELS", "0"}}) {
    setenv(name, value, 1);
    EXPECT_EXIT(child(), ::testing::ExitedWithCode(0), "") << name << "=" << value;
    unsetenv(name);
  }
}

// A queue that ends synchronizes the device, and with it every capture would be lost that is going on: it waits for
// them.
TYPED_TEST(QueuesTest, QueuesThatComeAndGoSpoilNoGraph) {
  if (!on_cuda()) GTEST_SKIP() << "of CUDA queues";
  using T = TypeParam;
  constexpr int workers = 4, orders = 20, turns = 3;
  const index_t replays = testing::replay_count();
  std::atomic<int> busy{workers};
  std::vector<std::thread> threads;
  for (int t = 0; t < workers; ++t)
    threads.emplace_back([&, t] {
      try {
        Random r(test_seed() + std::uint64_t(t) * 1000);
        Queue own = Queue::cuda();
        own.reserve(16 << 20);
        for (index_t n = 80; n < 80 + orders; ++n) {
          const auto A = this->dominant(r, n);
          DeviceMatrix<T> F(own, A);
          DeviceArray<int> pivots(own, n, 0), info(own, 1, -7);
          for (int turn = 0; turn < turns; ++turn) {
            F.upload(A);
            lu(own, F.view(), pivots.data(), info.data(), {.tuning = "whole=0 nb=16 leaf=8"});
            own.sync();
            EXPECT_EQ(info.download()[0], 0);
            EXPECT_LT(lu_ratio(A, F.download(), pivots.download()), threshold) << "n=" << n << " turn " << turn;
          }
        }
      } catch (const std::exception& e) { ADD_FAILURE() << e.what(); }
      --busy;
    });
  while (busy > 0) { const Queue passing = Queue::cuda(); }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(testing::replay_count(), replays + workers * orders * (turns - 1));
}

}  // namespace
}  // namespace trifactor::test
