// A stream of the caller's, and a graph captured from it; and tests that have one.
#pragma once

#include <support/device.hpp>

#include <cuda_runtime.h>
#include <gtest/gtest.h>

namespace trifactor::test {

inline void expect_success(cudaError_t error) { ASSERT_EQ(error, cudaSuccess) << cudaGetErrorString(error); }

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

/// A test of CUDA queues alone.
class CudaTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!on_cuda()) GTEST_SKIP() << "of CUDA queues";
  }
  Random random;

 private:
  ::testing::ScopedTrace trace_{__FILE__, __LINE__, "TRIFACTOR_TEST_SEED=" + std::to_string(test_seed())};
};

}  // namespace trifactor::test
