// Runs the tile tests, or one routine with a sync left out (see sync_test.cpp). Links no part of the library.
#include "missing_sync.hpp"

#include <gtest/gtest.h>

#include <cstdio>

int main(int argc, char** argv) {
  using namespace trifactor::tile_test;
  if (argc == 4 && std::string(argv[1]) == missing_sync_flag) return run_missing_sync(argv[2], argv[3]);
  ::testing::InitGoogleTest(&argc, argv);
  const int failed = RUN_ALL_TESTS();
  if (!GTEST_FLAG_GET(list_tests) && ::testing::UnitTest::GetInstance()->test_to_run_count() == 0) {
    std::fprintf(stderr, "no tests ran\n");
    return 1;
  }
  return failed;
}
