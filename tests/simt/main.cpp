// Runs the tests, and has the dynamic shared memory of all kernels.
#include "support.hpp"

#include <cstdio>

namespace trifactor::cuda {
constexpr std::size_t shared_bytes = 227 << 10;  // of a block of an H200
#define TRIFACTOR_DYNAMIC_SHARED(name) alignas(1024) __shared__ unsigned char name[shared_bytes]
TRIFACTOR_DYNAMIC_SHARED(panel_memory);
TRIFACTOR_DYNAMIC_SHARED(beside_memory);
TRIFACTOR_DYNAMIC_SHARED(update_memory);
TRIFACTOR_DYNAMIC_SHARED(raw);
TRIFACTOR_DYNAMIC_SHARED(aligned);
}  // namespace trifactor::cuda

void trifactor::simt::spoil_shared_memory() {
  for (unsigned char* memory : {cuda::panel_memory, cuda::beside_memory, cuda::update_memory, cuda::raw, cuda::aligned})
    std::memset(memory, 0xff, cuda::shared_bytes);
}

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const int failed = RUN_ALL_TESTS();
  if (!GTEST_FLAG_GET(list_tests) && testing::UnitTest::GetInstance()->test_to_run_count() == 0) {
    std::fprintf(stderr, "no tests ran\n");
    return 1;
  }
  return failed;
}
