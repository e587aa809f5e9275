// For this project's own tests; not installed.
#pragma once

#include <trifactor/types.hpp>

#include <string>

namespace trifactor::testing {

/// The k-th allocation from now on (1-based, host, pinned and device together) fails with OutOfMemory; 0 turns it off.
TRIFACTOR_API void fail_allocation(index_t k);
/// How many allocations the library has made.
TRIFACTOR_API index_t allocation_count();
/// How many bytes they asked for, all together.
TRIFACTOR_API std::size_t allocated_bytes();
/// Which way the last call of this thread went, such as "lapack", "interleaved", "tile", "warp", "block",
/// "blocked right", "blocked left", "blocked right hybrid"; of a sparse factorization "branches" or "levels".
TRIFACTOR_API std::string path_taken();
/// How many calls were launched as one graph that was there, on CUDA queues.
TRIFACTOR_API index_t replay_count();

}  // namespace trifactor::testing
