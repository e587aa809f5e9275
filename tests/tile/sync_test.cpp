// Proves that the thread sanitizer finds a missing sync: this program starts itself with a team that forgets some, and
// the sanitizer must end it. The sanitizer compares what happened before what, not times, so few cores suffice.
#include "missing_sync.hpp"
#include "thread_team.hpp"

#include <tile/cholesky.hpp>
#include <tile/invert.hpp>
#include <tile/lu.hpp>
#include <tile/trsm.hpp>

#include <gtest/gtest.h>

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace trifactor::tile_test {
namespace {

#if defined(__SANITIZE_THREAD__)
constexpr bool sanitized = true;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif
#else
constexpr bool sanitized = false;
#endif

constexpr int threads = 4;
constexpr int sanitizer_exit_code = 66;
constexpr const char* routines[] = {"cholesky", "trsm", "lu", "invert"};

/// A routine and its data, so arranged that without any one of its syncs two ranks touch the same entry unordered.
class Work {
 public:
  explicit Work(const std::string& routine) : routine(routine) {
    const int m = rows(), n = cols();
    A.assign((m + 1) * n, 0.01);  // a row of padding, which a broken pivot search may choose
    B.assign((m + 1) * n, routine == "invert" ? 0.0 : 1.0);
    for (int j = 0; j < n; ++j) {
      if (routine == "lu")
        at(m - 1 - j * threads, j) = 10;  // the last rank holds every pivot: each level of the search writes
      else
        at(j, j) = 2 * n;  // positive definite, also when half updated
    }
  }

  static bool knows(const std::string& routine) {
    for (const char* name : routines)
      if (routine == name) return true;
    return false;
  }

  /// Runs the routine and reads its result, as a caller would.
  template <tile::Team G>
  void operator()(const G& team) {
    const int m = rows(), n = cols();
    const core::Tile<double> tile{A.data(), m, n, 1, m + 1}, X{B.data(), m, n, 1, m + 1};
    if (routine == "cholesky") tile::cholesky(team, tile);
    if (routine == "trsm") tile::trsm(team, true, false, core::Tile<const double>(tile), false, X);
    if (routine == "lu") tile::lu(team, tile, pivots, 0, candidates);
    if (routine == "invert") {
      tile::invert_triangle<inverted>(team, true, A.data(), B.data(), m + 1);
      team.sync();  // the inverse is there
    }
    double sum = 0;
    for (int j = 0; j < n; ++j)
      for (int i = 0; i < m; ++i) sum += tile(i, j) + X(i, j);
    sums[team.rank()] = sum;
  }

 private:
  std::string routine;
  std::vector<double> A, B;
  int pivots[3] = {};
  tile::PivotCandidate<double> candidates[threads] = {};
  double sums[threads] = {};

  static constexpr int inverted = 32;  // two blocks of 16
  int rows() const {
    return routine == "lu"       ? 3 * threads
           : routine == "invert" ? inverted
                                 : 20;  // 20: three blocks of 8, the last not full
  }
  int cols() const { return routine == "lu" ? 3 : rows(); }
  double& at(int i, int j) { return A[i + j * (rows() + 1)]; }
};

/// How many syncs the routine calls.
int count_syncs(const std::string& routine) {
  Work work(routine);
  int count = 0;
  run_team(threads, [&](const ThreadTeam& team) {
    const ForgetfulTeam counting(team, -1);
    work(counting);
    if (team.rank() == 0) count = counting.count();
  });
  return count;
}

struct Ended {
  int exit_code;  // -1: a signal
  std::string output;
};

/// This program again, with a sync left out.
Ended start_child(const std::string& routine, const std::string& which) {
  int ends[2];
  if (pipe(ends) != 0) return {-1, "no pipe"};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  posix_spawn_file_actions_addclose(&actions, ends[1]);
  std::string program = "/proc/self/exe", flag = missing_sync_flag, first = routine, second = which;
  char* const arguments[] = {program.data(), flag.data(), first.data(), second.data(), nullptr};
  std::string options =
      "TSAN_OPTIONS=exitcode=66:halt_on_error=1:symbolize=0";  // the first report ends the child, at once
  char* const environment[] = {options.data(), nullptr};
  pid_t child = 0;
  const int error = posix_spawn(&child, program.c_str(), &actions, nullptr, arguments, environment);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  Ended ended{-1, {}};
  if (error == 0) {
    char text[4096];
    for (ssize_t got; (got = read(ends[0], text, sizeof text)) > 0;) ended.output.append(text, got);
    int status = 0;
    if (waitpid(child, &status, 0) == child && WIFEXITED(status)) ended.exit_code = WEXITSTATUS(status);
  }
  close(ends[0]);
  return ended;
}

void expect_report(const std::string& routine, const std::string& which) {
  const Ended ended = start_child(routine, which);
  EXPECT_EQ(ended.exit_code, sanitizer_exit_code) << routine << " without sync " << which << '\n' << ended.output;
  EXPECT_NE(ended.output.find("data race"), std::string::npos) << routine << " without sync " << which << '\n'
                                                               << ended.output;
}

class TileThreads : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!sanitized) GTEST_SKIP() << "needs a build with -fsanitize=thread";
  }
};

TEST_F(TileThreads, SanitizerSeesAMissingSync) {
  for (const std::string routine : routines) expect_report(routine, "all");
}

TEST_F(TileThreads, SanitizerSeesEachSyncThatIsMissingAlone) {
  for (const std::string routine : routines) {
    const int count = count_syncs(routine);
    EXPECT_GT(count, 0);
    for (int k = 0; k < count; ++k) expect_report(routine, std::to_string(k));
  }
}

TEST_F(TileThreads, SanitizerIsSilentWhenNoSyncIsMissing) {
  for (const std::string routine : routines) {
    const Ended ended = start_child(routine, "none");
    EXPECT_EQ(ended.exit_code, 0) << routine << '\n' << ended.output;
    EXPECT_EQ(ended.output, "") << routine;
  }
}

}  // namespace

int run_missing_sync(const std::string& routine, const std::string& which) {
  if (!Work::knows(routine)) return 2;
  alarm(30);  // ranks that disagree could wait for each other for ever
  Work work(routine);
  if (which == "all") {
    run_team<BrokenTeam>(threads, [&](const BrokenTeam& team) { work(team); });
  } else if (which == "none") {
    run_team(threads, [&](const ThreadTeam& team) { work(team); });
  } else {
    const int forgotten = std::stoi(which);
    run_team(threads, [&](const ThreadTeam& team) { work(ForgetfulTeam(team, forgotten)); });
  }
  return 0;
}

}  // namespace trifactor::tile_test
