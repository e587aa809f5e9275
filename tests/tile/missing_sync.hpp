// How a test starts this program again to run one routine with a sync left out.
#pragma once

#include <string>

namespace trifactor::tile_test {

inline constexpr const char* missing_sync_flag = "--missing-sync";

/// Runs `routine` (cholesky, trsm, lu or invert) on a team of threads that forgets `which` sync: "all", "none", or the
/// number of one. Returns 0, unless the thread sanitizer ends the process first; 2 where the arguments are unknown.
int run_missing_sync(const std::string& routine, const std::string& which);

}  // namespace trifactor::tile_test
