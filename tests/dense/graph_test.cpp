// Calls captured in a CUDA graph of the caller's, and replayed with new data.
#include <support/jobs.hpp>

#include <cuda_runtime.h>

namespace trifactor::test {
namespace {

void expect_success(cudaError_t error) { ASSERT_EQ(error, cudaSuccess) << cudaGetErrorString(error); }

/// A stream of the caller's, and a graph captured from it.
class Stream {
 public:
  Stream() { expect_success(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  Stream(const Stream&) = delete;
  ~Stream() {
    if (executable_) cudaGraphExecDestroy(executable_);
    if (graph_) cudaGraphDestroy(graph_);
    cudaStreamDestroy(stream_);
  }
  cudaStream_t get() const { return stream_; }
  void begin() { expect_success(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal)); }
  /// The error is the caller's to judge: a call that threw may have spoilt the capture.
  cudaError_t end() { return cudaStreamEndCapture(stream_, &graph_); }
  void instantiate() {
    ASSERT_NE(graph_, nullptr);
    expect_success(cudaGraphInstantiate(&executable_, graph_, 0));
  }
  std::size_t nodes() const {
    std::size_t count = 0;
    cudaGraphGetNodes(graph_, nullptr, &count);
    return count;
  }
  void replay() { expect_success(cudaGraphLaunch(executable_, stream_)); }

 private:
  cudaStream_t stream_ = nullptr;
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t executable_ = nullptr;
};

template <class T>
class Graph : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!on_cuda()) GTEST_SKIP() << "of CUDA queues";
  }
  Random random;

 private:
  ::testing::ScopedTrace trace_{__FILE__, __LINE__, "TRIFACTOR_TEST_SEED=" + std::to_string(test_seed())};
};
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

}  // namespace
}  // namespace trifactor::test
