#include "child_process.hpp"

#include "failure.hpp"

#include <fmt/core.h>

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace program {

std::string output_of(const std::vector<std::string>& command) {
  const auto fail = [&](const std::string& what) { throw OutputError(fmt::format("{}: {}", command[0], what)); };
  int ends[2];
  if (::pipe(ends) != 0) fail(std::strerror(errno));
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  ::posix_spawn_file_actions_addclose(&actions, ends[0]);
  ::posix_spawn_file_actions_addclose(&actions, ends[1]);
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int error = ::posix_spawn(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);

  std::string text;
  char piece[4096];
  if (error == 0)
    for (ssize_t got; (got = ::read(ends[0], piece, sizeof piece)) != 0;) {
      if (got > 0) text.append(piece, std::size_t(got));
      if (got < 0 && errno != EINTR) break;
    }
  ::close(ends[0]);
  if (error != 0) fail(std::strerror(error));
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  if (!WIFEXITED(status)) fail(fmt::format("was ended by signal {}", WTERMSIG(status)));
  if (WEXITSTATUS(status) != 0) fail(fmt::format("ended with status {}", WEXITSTATUS(status)));
  return text;
}

std::filesystem::path program_folder() {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
}

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "trifactor-XXXXXX").string();
  if (!::mkdtemp(name.data())) throw OutputError(fmt::format("{}: {}", name, std::strerror(errno)));
  path_ = name;
  unfinished_.emplace_back(name);
}

std::string TemporaryFolder::file(const char* name) {
  std::string path = (path_ / name).string();
  unfinished_.emplace_back(path);
  return path;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace program
