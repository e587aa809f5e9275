// The main of every test binary but tests/tile's. TRIFACTOR_TEST_DEVICE says which device the tests use: host or cuda.
// Where there is no CUDA device, cuda exits with 77, which ctest reports as skipped; under TRIFACTOR_REQUIRE_CUDA=1
// that is a failure.
#include <trifactor/info.hpp>

#include <gtest/gtest.h>

#include <malloc.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

static bool is(const char* variable, std::string_view value) {
  const char* text = std::getenv(variable);
  return text && text == value;
}

static bool has_cuda() {
  for (const auto& device : trifactor::devices())
    if (device.number >= 0) return true;
  return false;
}

int main(int argc, char** argv) {
#ifdef __GLIBC__  // matrices come and go: their pages stay with the process
  if (!mallopt(M_MMAP_THRESHOLD, 1 << 30)) mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the most that old versions take
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
#endif
  ::testing::InitGoogleTest(&argc, argv);
  if (is("TRIFACTOR_TEST_DEVICE", "cuda") && !has_cuda()) {
    const bool required = is("TRIFACTOR_REQUIRE_CUDA", "1");
    std::printf("%s: %s\n", required ? "failed: TRIFACTOR_REQUIRE_CUDA=1" : "skipped",
                trifactor::why_no_cuda().c_str());
    return required ? 1 : 77;
  }
  const int result = RUN_ALL_TESTS();
  if (::testing::UnitTest::GetInstance()->test_to_run_count() == 0) {
    std::printf("failed: no tests ran\n");
    return 1;
  }
  return result;
}
