// Which way a call went, for tests that force a path and must know that it was taken.
#pragma once

namespace trifactor::core {

/// Both are literals; testing::path_taken() returns them joined.
struct Path {
  const char* kind = "";
  const char* detail = "";
};
void set_path(const char* kind, const char* detail = "");
Path path();

/// For tests: a call was not launched step by step, but as a graph that was there.
void count_replay();

}  // namespace trifactor::core
