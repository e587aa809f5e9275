#include "new_file.hpp"

#include "failure.hpp"

#include <fmt/core.h>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace program {

NewFile::NewFile(const std::string& path) : shown_(path), target_(path) {
  std::error_code ignored;
  if (std::filesystem::is_symlink(target_, ignored)) {
    const auto pointed_at = std::filesystem::canonical(target_, ignored);
    if (!ignored) target_ = pointed_at;
  }
  const auto status = std::filesystem::status(target_, ignored);
  const bool replaceable = !std::filesystem::exists(status) || std::filesystem::is_regular_file(status);
  if (replaceable) {
    written_ = target_;
    written_ += fmt::format(".{}.partial", ::getpid());
    descriptor_ = ::open(written_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } else {
    descriptor_ = ::open(target_.c_str(), O_WRONLY | O_CLOEXEC);
  }
  if (descriptor_ < 0) throw InputError(fmt::format("{}: cannot be written: {}", shown_, std::strerror(errno)));
}

NewFile::~NewFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!written_.empty()) ::unlink(written_.c_str());
}

void NewFile::append(std::string_view text) {
  while (!text.empty()) {
    const ssize_t put = ::write(descriptor_, text.data(), text.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) fail();
    text.remove_prefix(std::size_t(put));
  }
}

void NewFile::finish() {
  const int closed = ::close(descriptor_);
  descriptor_ = -1;
  if (closed != 0) fail();
  if (!written_.empty() && ::rename(written_.c_str(), target_.c_str()) != 0) fail();
  written_.clear();
}

void NewFile::fail() { throw OutputError(fmt::format("{}: writing failed: {}", shown_, std::strerror(errno))); }

}  // namespace program
