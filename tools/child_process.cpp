#include "child_process.hpp"

#include "failure.hpp"
#include "printable.hpp"

#include <fmt/core.h>

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

namespace program {
namespace {

std::vector<char*> arguments_of(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  return arguments;
}

int wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  return status;
}

}  // namespace

int status_of_child(const std::vector<std::string>& command) {
  const std::vector<char*> arguments = arguments_of(command);
  // A key that interrupts goes to both programs: the child obeys, and we tell what was seen until then.
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t interrupts;
  ::sigemptyset(&interrupts), ::sigaddset(&interrupts, SIGINT), ::sigaddset(&interrupts, SIGQUIT);
  ::posix_spawnattr_setsigdefault(&attributes, &interrupts);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  struct sigaction ignore = {}, old_interrupt, old_quit;
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGINT, &ignore, &old_interrupt), ::sigaction(SIGQUIT, &ignore, &old_quit);
  pid_t child = 0;
  const int error = ::posix_spawnp(&child, arguments[0], nullptr, &attributes, arguments.data(), environ);
  ::posix_spawnattr_destroy(&attributes);
  const int status = error == 0 ? wait_for(child) : 0;
  ::sigaction(SIGINT, &old_interrupt, nullptr), ::sigaction(SIGQUIT, &old_quit, nullptr);
  if (error != 0)
    throw InputError(fmt::format("{}: cannot be started: {}", printable(command[0]), std::strerror(error)));
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string output_of(const std::vector<std::string>& command) {
  const auto fail = [&](const std::string& what) { throw OutputError(fmt::format("{}: {}", command[0], what)); };
  int ends[2];
  if (::pipe(ends) != 0) fail(std::strerror(errno));
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  ::posix_spawn_file_actions_addclose(&actions, ends[0]);
  ::posix_spawn_file_actions_addclose(&actions, ends[1]);
  const std::vector<char*> arguments = arguments_of(command);
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
  const int status = wait_for(child);
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
