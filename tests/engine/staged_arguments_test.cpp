// cuda::StagedArguments: which calls become a graph that serves all addresses. Nothing here needs a device.
#include <cuda/engine/graph_cache.hpp>

#include <gtest/gtest.h>

namespace trifactor::engine_test {
namespace {

using namespace core;

TEST(StagedArguments, OfBatchesAndArraysArePossible) {
  Arena arena(host_memory_source());
  std::vector<double> entries(400);
  std::vector<int> info(4);
  auto A = one_matrix(entries.data(), 10, 10, 10);
  A.count = 4, A.stride = 100;
  EXPECT_TRUE(cuda::StagedArguments(arena, A, Array<int>{info.data(), 4}).possible());
  EXPECT_FALSE(cuda::StagedArguments(arena, A.one(0), Array<int>{info.data(), 1}).possible()) << "one matrix";
}

/// With nothing staged, the call with staged arguments would be the call itself, and counted twice: captured when it
/// comes for the first time.
TEST(StagedArguments, WithoutAnythingToStageAreNot) {
  Arena arena(host_memory_source());
  const double* const values = nullptr;
  EXPECT_FALSE(cuda::StagedArguments(arena, std::uint64_t(7), values, 0.5).possible());
}

}  // namespace
}  // namespace trifactor::engine_test
