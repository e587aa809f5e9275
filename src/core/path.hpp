// Which way a call went, for tests that force a path and must know that it was taken.
#pragma once

namespace trifactor::core {

/// Both are literals; testing::path_taken() returns them joined.
void set_path(const char* kind, const char* detail = "");

}  // namespace trifactor::core
