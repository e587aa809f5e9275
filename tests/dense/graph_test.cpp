// Calls captured in a CUDA graph of the caller's, and replayed with new data; and calls that come again with the same
// arguments, which the queue itself replays.
#include <support/captured_stream.hpp>
#include <support/jobs.hpp>

#include <cstdlib>
#include <memory>
#include <thread>

namespace trifactor::test {
namespace {

template <class T>
class Graph : public CudaTest {};
TYPED_TEST_SUITE(Graph, Scalars, ScalarNames);

TYPED_TEST(Graph, EveryRoutineIsCapturedAndReplayedWithNewData) {
  for_every_job<TypeParam>(this->random, [&](const MakeJob& make) {
    Stream stream;
    Queue q = Queue::wrap_cuda_stream(stream.get(), 0);
    Job job = make(q);
    SCOPED_TRACE(job.name);
    if (job.scratch) {
      q.reserve(job.scratch());
    } else {  // no query: an equal call before finds what it needs
      job.run();
      q.sync();
      job.prepare();
    }
    stream.begin();
    job.run();
    expect_success(stream.end());
    EXPECT_GT(stream.nodes(), 0u);
    stream.instantiate();
    for (int replay = 0; replay < 3; ++replay) {
      if (replay > 0) job.prepare();
      stream.replay();
      q.sync();
      job.check();
    }
    job.prepare();  // and the queue works outside the graph as before
    job.run();
    q.sync();
    job.check();
  });
}

TYPED_TEST(Graph, CapturedFailuresAreReportedInEveryReplay) {
  using T = TypeParam;
  const index_t n = 100;
  Stream stream;
  Queue q = Queue::wrap_cuda_stream(stream.get(), 0);
  const auto good = random_spd<T>(this->random, n);
  DeviceMatrix<T> A(q, good);
  DeviceArray<int> info(q, 1, garbage);
  const CholeskyOptions options{.tuning = "whole=0 persistent=0 nb=8 leaf=8"};
  q.reserve(cholesky_scratch(q, Uplo::Lower, A.view(), options));
  stream.begin();
  cholesky(q, Uplo::Lower, A.view(), info.data(), options);
  expect_success(stream.end());
  stream.instantiate();
  for (index_t k : {-1, 0, 50, -1, 99}) {
    auto B = good;
    if (k >= 0) B(k, k) = T(-1);
    A.upload(B);
    stream.replay();
    q.sync();
    EXPECT_EQ(info.download()[0], k + 1);
  }
}

/// Ends the capture of a factorization of A, and replays it twice.
template <class T, class Ratio>
void expect_replays(Stream& stream, Queue& q, DeviceMatrix<T>& A, const HostMatrix<T>& good, const DeviceArray<int>& info,
                    Ratio ratio) {
  expect_success(stream.end());
  stream.instantiate();
  for (int replay = 0; replay < 2; ++replay) {
    A.upload(good);
    stream.replay();
    q.sync();
    EXPECT_EQ(info.download()[0], 0);
    EXPECT_LT(ratio(A.download()), threshold);
  }
}

TYPED_TEST(Graph, UnalignedMatrixIsCopiedUnderCaptureOnlyIntoReservedMemory) {
  using T = TypeParam;
  if (sizeof(T) == 16) GTEST_SKIP() << "entries of 16 bytes are always aligned";
  const index_t n = 201;
  const auto good = random_spd<T>(this->random, n, 2);  // with an odd leading dimension, and frame
  for (bool reserved : {true, false}) {
    SCOPED_TRACE(reserved);
    Stream stream;
    Queue q = Queue::wrap_cuda_stream(stream.get(), 0);
    DeviceMatrix<T> A(q, good);
    DeviceArray<int> info(q, 1, garbage);
    const std::string tuning = "whole=0 persistent=2147483647 macro_tiles=0 realign=";
    const CholeskyOptions copied{.tuning = tuning + "0"}, in_place{.tuning = tuning + "2147483647"};
    q.reserve(cholesky_scratch(q, Uplo::Lower, A.view(), reserved ? copied : in_place));
    stream.begin();
    cholesky(q, Uplo::Lower, A.view(), info.data(), copied);
    EXPECT_EQ(testing::path_taken(), reserved ? "persistent realigned" : "persistent");
    expect_replays(stream, q, A, good, info, [&](const auto& L) { return cholesky_ratio(good, L, Uplo::Lower); });
  }
}

TYPED_TEST(Graph, LuIsUpdatedByRowsUnderCaptureOnlyInReservedMemory) {
  using T = TypeParam;
  const index_t n = 333;
  const auto good = random_matrix<T>(this->random, n, n, 1);
  for (bool reserved : {true, false}) {
    SCOPED_TRACE(reserved);
    Stream stream;
    Queue q = Queue::wrap_cuda_stream(stream.get(), 0);
    DeviceMatrix<T> A(q, good);
    DeviceArray<int> pivots(q, n, garbage), info(q, 1, garbage);
    const std::string tuning = "whole=0 nb=64 leaf=32 by_rows=";
    const LuOptions copied{.tuning = tuning + "1"}, in_place{.tuning = tuning + "2147483647"};
    q.reserve(lu_scratch(q, A.view(), reserved ? copied : in_place));
    stream.begin();
    lu(q, A.view(), pivots.data(), info.data(), copied);
    EXPECT_EQ(testing::path_taken(), reserved ? "blocked right by rows" : "blocked right");
    expect_replays(stream, q, A, good, info, [&](const auto& F) { return lu_ratio(good, F, pivots.download()); });
  }
}

TYPED_TEST(Graph, TooShortAReserveThrowsUnderCapture) {
  for_every_job<TypeParam>(this->random, [&](const MakeJob& make) {
    Stream stream;
    Queue q = Queue::wrap_cuda_stream(stream.get(), 0);
    Job job = make(q);
    SCOPED_TRACE(job.name);
    if (!job.scratch || job.scratch() == 0) return;  // needs nothing, so nothing is short
    stream.begin();
    EXPECT_THROW(job.run(), Error);
    stream.end();
    cudaGetLastError();  // what a spoilt capture leaves behind is not what is tested
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusActive;
    expect_success(cudaStreamIsCapturing(stream.get(), &status));
    EXPECT_EQ(status, cudaStreamCaptureStatusNone) << "the capture can be ended";
    job.prepare();
    job.run();
    q.sync();
    job.check();
  });
}

TYPED_TEST(Graph, HybridIsRefusedUnderCaptureAndAutoIsNative) {
  using T = TypeParam;
  Stream stream;
  Queue q = Queue::wrap_cuda_stream(stream.get(), 0);
  Job hybrid = cholesky_job<T>(q, this->random, "cholesky, hybrid", Uplo::Lower, 50, {.mode = Mode::Hybrid});
  Job hybrid_lu = lu_job<T>(q, this->random, "lu, hybrid", 50, {.mode = Mode::Hybrid});
  Job automatic = cholesky_job<T>(q, this->random, "cholesky, auto", Uplo::Lower, 300,
                                  {.tuning = "whole=0 persistent=0 looking=right nb=64"});
  q.reserve(automatic.scratch());
  stream.begin();
  EXPECT_THROW(hybrid.run(), InvalidArgument);
  EXPECT_THROW(hybrid_lu.run(), InvalidArgument);
  automatic.run();  // the capture is still good
  EXPECT_EQ(testing::path_taken(), "blocked right");
  expect_success(stream.end());
  stream.instantiate();
  stream.replay();
  q.sync();
  automatic.check();
}

// Two graphs captured from one queue share its scratch memory; replayed one after the other both are right.
TYPED_TEST(Graph, TwoGraphsOfOneQueueKeepTheirMemory) {
  Stream first, second;
  Queue q = Queue::wrap_cuda_stream(first.get(), 0), r = Queue::wrap_cuda_stream(second.get(), 0);
  Job small =
      cholesky_job<TypeParam>(q, this->random, "small", Uplo::Lower, 40, {.tuning = "whole=0 persistent=0 nb=8"});
  Job large =
      cholesky_job<TypeParam>(q, this->random, "large", Uplo::Upper, 300, {.tuning = "whole=0 persistent=0 nb=64"});
  q.reserve(small.scratch());
  first.begin();
  small.run();
  expect_success(first.end());
  first.instantiate();
  q.reserve(large.scratch());  // grows: the chunk that the graph remembers must stay where it is
  large.run();
  q.sync();
  large.check();
  small.prepare();
  first.replay();
  q.sync();
  small.check();
}

TYPED_TEST(Graph, EveryRoutineThatComesAgainIsRightWithNewData) {
  const index_t replays = testing::replay_count();
  for_every_job<TypeParam>(this->random, [&](const MakeJob& make) {
    Stream stream;
    Queue q = Queue::wrap_cuda_stream(stream.get(), 0);
    Job job = make(q);
    SCOPED_TRACE(job.name);
    for (int turn = 0; turn < 4; ++turn) {
      if (turn > 0) job.prepare();
      job.run();
      q.sync();
      job.check();
    }
    job.prepare();
    stream.begin();  // what the queue replays can still be captured
    job.run();
    expect_success(stream.end());
    stream.instantiate();
    stream.replay();
    q.sync();
    job.check();
  });
  EXPECT_GT(testing::replay_count(), replays);
}

/// Calls that are many launches, on items of order n or up to n, with data of their own.
enum class Call { Lu, LuSolve, LuInverse, LuFactorSolve, Cholesky, Sorted, Shifted, CholeskySolve, CholeskyInverse };
/// Of every kind of batch; Sorted is several launches only for ragged ones.
constexpr Call all_calls[] = {Call::Lu,       Call::LuSolve, Call::LuInverse,     Call::LuFactorSolve,
                              Call::Cholesky, Call::Shifted, Call::CholeskySolve, Call::CholeskyInverse};
template <class T>
struct Called {
  Items<T> A, X;
  std::vector<int> pivots, info;
  std::vector<double> shifts;
  std::string path;

  void expect_same_bits(const Called& other) const {
    for (std::size_t i = 0; i < A.size(); ++i) {
      EXPECT_TRUE(same_bits(A[i], other.A[i])) << "item " << i;
      EXPECT_TRUE(same_bits(X[i], other.X[i])) << "item " << i;
    }
    EXPECT_EQ(pivots, other.pivots);
    EXPECT_EQ(info, other.info);
    EXPECT_EQ(shifts, other.shifts);
    EXPECT_EQ(path, other.path);
  }
};
template <class T>
class CallAgain {
 public:
  CallAgain(Queue& q, Random& random, Call call, Kind kind, index_t n, index_t count)
      : q_(&q),
        call_(call),
        kind_(kind),
        start_(data(random, n, count)),
        A_(q, start_.A),
        X_(q, start_.X),
        pivots_(q, start_.pivots),
        info_(q, start_.info),
        shifts_(q, start_.shifts) {}
  void renew(const CallAgain& other) { start_ = other.start_; }
  Called<T> run() {
    A_.upload(start_.A), X_.upload(start_.X), pivots_.upload(start_.pivots), info_.upload(start_.info);
    shifts_.upload(start_.shifts);
    const CholeskyOptions steps{.tuning = "whole=0 persistent=0 nb=32 leaf=16"};
    as(kind_, A_, X_, [&](auto a, auto x) {
      if (call_ == Call::Lu) lu(*q_, a, pivots_.data(), info_.data());
      if (call_ == Call::LuSolve) lu_solve(*q_, Op::None, a, pivots_.data(), x, info_.data());
      if (call_ == Call::LuInverse) lu_inverse(*q_, a, pivots_.data(), x, info_.data());
      if (call_ == Call::LuFactorSolve) lu_factor_solve(*q_, a, pivots_.data(), x, info_.data());
      if (call_ == Call::Cholesky) cholesky(*q_, Uplo::Lower, a, info_.data(), steps);
      if (call_ == Call::Sorted) cholesky(*q_, Uplo::Lower, a, info_.data(), {.tuning = "whole=1000 sorted=1"});
      if (call_ == Call::Shifted)
        cholesky(*q_, Uplo::Upper, a, info_.data(), {.shift_tries = 2, .shift_used = shifts_.data()});
      if (call_ == Call::CholeskySolve) cholesky_solve(*q_, Uplo::Upper, a, x, info_.data());
      if (call_ == Call::CholeskyInverse) cholesky_inverse(*q_, Uplo::Lower, a, x, info_.data());
    });
    const std::string path = testing::path_taken();
    q_->sync();
    return {A_.download(), X_.download(), pivots_.download(), info_.download(), shifts_.download(), path};
  }

 private:
  Called<T> data(Random& random, index_t n, index_t count) const {
    Called<T> start;
    for (index_t i = 0; i < count; ++i) {
      const index_t own = kind_ == Kind::Ragged ? n - i : n;
      start.A.push_back(call_ == Call::Lu || call_ == Call::LuFactorSolve ? random_matrix<T>(random, own, own)
                                                                          : random_spd<T>(random, own));
      start.X.push_back(random_matrix<T>(random, own, own));
      for (index_t k = 0; k < n; ++k) start.pivots.push_back(int(std::min(k + 1, own)));
    }
    if (call_ == Call::Shifted) start.A[0](0, 0) = T(-1e-9);
    start.info.assign(count, 0);
    start.shifts.assign(count, 0);
    return start;
  }
  Queue* q_;
  Call call_;
  Kind kind_;
  Called<T> start_;
  DeviceBatch<T> A_, X_;
  DeviceArray<int> pivots_, info_;
  DeviceArray<double> shifts_;
};

/// Both are new: launched once, then replayed. Returns what the first made.
template <class T>
Called<T> expect_replayed_by_turns(CallAgain<T>& first, CallAgain<T>& second) {
  const Called<T> one = first.run(), two = second.run();
  const index_t replays = testing::replay_count();
  for (int turn = 0; turn < 3; ++turn) first.run().expect_same_bits(one), second.run().expect_same_bits(two);
  EXPECT_EQ(testing::replay_count(), replays + 6);
  return one;
}

TYPED_TEST(Graph, ReplaysAreTheLaunchesBitByBit) {
  using T = TypeParam;
  for (Call call : all_calls)
    for (Kind kind : all_kinds) {
      SCOPED_TRACE(::testing::Message() << "call " << int(call) << ", " << name(kind));
      Queue q = Queue::cuda(), fresh = Queue::cuda();
      CallAgain<T> again(q, this->random, call, kind, 150, 3), other(fresh, this->random, call, kind, 150, 3);
      const Called<T> launched = again.run();
      const index_t replays = testing::replay_count();
      for (int turn = 0; turn < 3; ++turn) again.run().expect_same_bits(launched);
      EXPECT_EQ(testing::replay_count(), replays + 3);
      again.renew(other);
      again.run().expect_same_bits(other.run());
      EXPECT_EQ(testing::replay_count(), replays + 4);
      q.reserve(64 << 20);  // scratch memory lies elsewhere from here on
      for (int turn = 0; turn < 2; ++turn) again.run().expect_same_bits(other.run());
    }
}

// Ragged items by size: a launch for each rung.
TYPED_TEST(Graph, ListsAreReplayedBitByBit) {
  using T = TypeParam;
  for (index_t n : {150, 300}) {
    SCOPED_TRACE(n);
    Queue q = Queue::cuda();
    CallAgain<T> first(q, this->random, Call::Sorted, Kind::Ragged, n, 40);
    CallAgain<T> second(q, this->random, Call::Sorted, Kind::Ragged, n, 40);
    EXPECT_EQ(expect_replayed_by_turns(first, second).path, "sorted");
  }
}

TYPED_TEST(Graph, CallsAtOtherAddressesAreReplayedBitByBit) {
  using T = TypeParam;
  for (Call call : all_calls)
    for (Kind kind : all_kinds) {
      SCOPED_TRACE(::testing::Message() << "call " << int(call) << ", " << name(kind));
      Queue q = Queue::cuda();
      const index_t replays = testing::replay_count();
      std::vector<std::unique_ptr<CallAgain<T>>> calls;  // all of them stay, so that each lies elsewhere
      std::vector<Called<T>> results;
      for (int i = 0; i < 4; ++i) {
        calls.push_back(std::make_unique<CallAgain<T>>(q, this->random, call, kind, 150, 3));
        Queue fresh = Queue::cuda();
        CallAgain<T> launched(fresh, this->random, call, kind, 150, 3);
        launched.renew(*calls.back());
        results.push_back(launched.run());
        calls.back()->run().expect_same_bits(results.back());
        EXPECT_EQ(testing::replay_count(), replays + i);
      }
      for (int turn = 0; turn < 4; ++turn)  // those that came before, too; in the end each has a graph of its own
        for (std::size_t i = 0; i < calls.size(); ++i) calls[i]->run().expect_same_bits(results[i]);
      EXPECT_EQ(testing::replay_count(), replays + 3 + 4 * 4);
    }
}

TYPED_TEST(Graph, CallsThatTakeTurnsAreReplayedAndOldOnesForgotten) {
  using T = TypeParam;
  constexpr index_t others = 70;  // more calls than are kept
  Queue q = Queue::cuda();
  CallAgain<T> first(q, this->random, Call::Lu, Kind::Pointers, 150, 2),
      second(q, this->random, Call::Lu, Kind::Pointers, 150, 2);
  const Called<T> one = expect_replayed_by_turns(first, second);
  for (index_t n = 1; n <= others; ++n) {
    CallAgain<T> small(q, this->random, Call::Cholesky, Kind::Strided, n, 2);
    const Called<T> launched = small.run();
    small.run().expect_same_bits(launched);
  }
  const index_t before = testing::replay_count();
  for (int turn = 0; turn < 3; ++turn) first.run().expect_same_bits(one);
  EXPECT_EQ(testing::replay_count(), before + 2);
}

// Two queues of one thread, one of them on the default stream, which cannot be captured.
TYPED_TEST(Graph, QueuesReplayEachItsOwnCalls) {
  using T = TypeParam;
  Queue q = Queue::cuda(), legacy = Queue::wrap_cuda_stream(nullptr, 0);
  CallAgain<T> first(q, this->random, Call::LuFactorSolve, Kind::Ragged, 150, 3),
      second(legacy, this->random, Call::LuFactorSolve, Kind::Ragged, 150, 3);
  expect_replayed_by_turns(first, second);
}

TYPED_TEST(Graph, ThreadsReplayEachTheirOwnCalls) {
  using T = TypeParam;
  const index_t replays = testing::replay_count();
  const auto work = [](Call call) {
    Random random;
    Queue q = Queue::cuda();
    for (index_t n : {150, 170}) {
      CallAgain<T> again(q, random, call, Kind::Ragged, n, 3);
      const Called<T> launched = again.run();
      for (int turn = 0; turn < 4; ++turn) again.run().expect_same_bits(launched);
    }
  };
  std::thread other(work, Call::CholeskyInverse);
  work(Call::LuFactorSolve);
  other.join();
  EXPECT_EQ(testing::replay_count(), replays + 16);
}

TYPED_TEST(Graph, CallsAreLaunchedWhereGraphsAreSwitchedOff) {
  using T = TypeParam;
  Queue q = Queue::cuda();
  CallAgain<T> again(q, this->random, Call::Lu, Kind::Ragged, 150, 3);
  const Called<T> launched = again.run();
  const index_t replays = testing::replay_count();
  setenv("TRIFACTOR_GRAPHS", "off", 1);
  for (int turn = 0; turn < 4; ++turn) again.run().expect_same_bits(launched);
  unsetenv("TRIFACTOR_GRAPHS");
  EXPECT_EQ(testing::replay_count(), replays);
  for (int turn = 0; turn < 4; ++turn) again.run().expect_same_bits(launched);
  EXPECT_GT(testing::replay_count(), replays);
}

}  // namespace
}  // namespace trifactor::test
