#include "standard_streams.hpp"

#include "failure.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

namespace program {
namespace {

int output_error = 0;  // the first one
int data_descriptor = STDOUT_FILENO;
std::string data_path = "-";  // /dev/stdout means standard error once that takes the place

}  // namespace

void reserve_standard_streams() {
  for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; ++stream) {
    if (::fcntl(stream, F_GETFD) >= 0) continue;
    // The wrong way round, so that using a closed stream still fails; messages alone may get lost.
    const int opened = ::open("/dev/null", stream == STDOUT_FILENO ? O_RDONLY : O_WRONLY);
    if (opened >= 0 && opened != stream) ::dup2(opened, stream), ::close(opened);
  }
}

bool is_standard_output(const std::string& path) {
  if (path == "-" || path == data_path) return true;
  struct stat named = {}, output = {};
  if (::stat(path.c_str(), &named) != 0 || ::fstat(data_descriptor, &output) != 0 || S_ISCHR(output.st_mode))
    return false;
  return named.st_dev == output.st_dev && named.st_ino == output.st_ino;
}

void keep_standard_output_for_data(const std::string& path) {
  if (data_descriptor != STDOUT_FILENO) return;
  std::fflush(stdout);
  const int data = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (data < 0 || ::dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
    throw OutputError(std::string("standard output: ") + std::strerror(errno));
  data_descriptor = data;
  data_path = path;
}

int standard_output_for_data() { return data_descriptor; }

void flush_standard_output() {
  if (std::fflush(stdout) != 0 && output_error == 0) output_error = errno;
}

void require_standard_output() {
  flush_standard_output();
  if (output_error == 0 && std::ferror(stdout) == 0) return;
  throw OutputError(std::string("standard output: writing failed: ") + std::strerror(output_error));
}

void finish_standard_output() {
  flush_standard_output();
  if (::close(STDOUT_FILENO) != 0 && output_error == 0) output_error = errno;  // a network file system writes so late
  require_standard_output();
}

}  // namespace program
