#include "new_file.hpp"

#include "failure.hpp"
#include "printable.hpp"
#include "standard_streams.hpp"

#include <fmt/core.h>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

namespace program {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse_output(const std::string& shown, const std::string& why) {
  throw InputError(fmt::format("{}: cannot be written: {}", shown, why));
}

/// Follows symbolic links to a file that need not be there.
std::string behind_links(const std::string& path, const std::string& shown) {
  constexpr int most_links = 40;
  fs::path at = path;
  for (int links = 0; links < most_links; ++links) {
    std::error_code none;
    const fs::path next = fs::read_symlink(at, none);
    if (none) return at.string();
    at = at.parent_path() / next;  // an absolute one replaces what is before it
  }
  refuse_output(shown, std::strerror(ELOOP));
}

std::string folder_of(const std::string& path) {
  const std::string folder = fs::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

/// Writes all of it; false with errno set where that fails.
bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t put = ::write(descriptor, text.data(), text.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return false;
    text.remove_prefix(std::size_t(put));
  }
  return true;
}

}  // namespace

NewFile::Target::Target(const std::string& given) : shown(printable(given)), path(given) {
  exists = ::stat(path.c_str(), &status) == 0;
  if (!exists && errno != ENOENT) refuse_output(shown, std::strerror(errno));
  if (is_plain()) {
    path = behind_links(given, shown);
    struct stat behind = {};
    if (exists && (::stat(path.c_str(), &behind) != 0 || behind.st_ino != status.st_ino)) path = given;  // /proc/.../fd
  }
  if (exists) {
    if (S_ISDIR(status.st_mode)) throw InputError(shown + ": is a directory");
    if (S_ISBLK(status.st_mode)) refuse_output(shown, "it is a block device");
    if (::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) != 0) refuse_output(shown, std::strerror(errno));
    if (S_ISREG(status.st_mode) && (status.st_mode & (S_IWUSR | S_IWGRP | S_IWOTH)) == 0)  // root may, but did not ask
      refuse_output(shown, "it is read-only");
  } else if (::faccessat(AT_FDCWD, folder_of(path).c_str(), W_OK | X_OK, AT_EACCESS) != 0) {
    const std::string why = std::strerror(errno);
    refuse_output(shown, path == given ? why : fmt::format("it is a link to {}: {}", printable(path), why));
  }
}

void NewFile::check(const std::string& path) { Target{path}; }

NewFile::NewFile(const std::string& path) : target_(is_standard_output(path) ? "/dev/null" : path) {
  if (is_standard_output(path)) {
    target_.shown = "standard output";
    descriptor_ = ::fcntl(standard_output_for_data(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  } else if (!target_.is_plain()) {
    descriptor_ = ::open(target_.path.c_str(), O_WRONLY | O_CLOEXEC);
  } else if (!open_beside()) {
    std::string name = (fs::temp_directory_path() / "trifactor-XXXXXX").string();
    descriptor_ = ::mkostemp(name.data(), O_CLOEXEC);
    if (descriptor_ >= 0) ::unlink(name.c_str());
  }
  if (descriptor_ < 0) refuse_output(target_.shown, std::strerror(errno));
}

/// Makes the partial file. False where the folder does not take it and the target is there to be filled.
bool NewFile::open_beside() {
  constexpr std::size_t longest_name = 200;  // of 255, with what is added here
  constexpr int most_tries = 100;            // names that a killed process of the same number left
  const fs::path target = target_.path;
  const bool is_long = target.filename().string().size() > longest_name;
  for (int attempt = 0; descriptor_ < 0 && attempt < most_tries; ++attempt) {
    const std::string suffix = fmt::format("{}{}.partial", ::getpid(), attempt > 0 ? fmt::format("-{}", attempt) : "");
    partial_ = is_long ? (fs::path(folder_of(target_.path)) / suffix).string() : target_.path + "." + suffix;
    pending_.emplace(partial_);
    descriptor_ = ::open(partial_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, target_.exists ? 0600 : 0666);
    if (descriptor_ < 0 && errno != EEXIST) break;
  }
  if (descriptor_ < 0) {
    partial_.clear();
    pending_.reset();
    if (!target_.exists) refuse_output(target_.shown, std::strerror(errno));
    return false;
  }
  renames_ = !target_.exists || target_.status.st_nlink == 1;
  if (target_.exists && renames_) {
    const struct stat& s = target_.status;
    struct stat own = {};
    const bool same_owner = ::fstat(descriptor_, &own) == 0 && own.st_uid == s.st_uid && own.st_gid == s.st_gid;
    renames_ =
        (same_owner || ::fchown(descriptor_, s.st_uid, s.st_gid) == 0) && ::fchmod(descriptor_, s.st_mode & 07777) == 0;
  }
  return true;
}

NewFile::~NewFile() { release(); }

void NewFile::release() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
  if (!partial_.empty()) ::unlink(partial_.c_str());
  partial_.clear();
  pending_.reset();
}

void NewFile::append(std::string_view text) {
  if (!write_all(descriptor_, text)) fail();
}

void NewFile::finish() {
  const bool stored_elsewhere = target_.exists && target_.is_plain();
  const int copy = ::dup(descriptor_);  // closed to hear of what was not written
  if (copy < 0 || ::close(copy) != 0) fail();
  if (renames_ && ::rename(partial_.c_str(), target_.path.c_str()) == 0)
    partial_.clear();
  else if (renames_ && errno != EBUSY)  // as where one file is mounted
    fail();
  else if (stored_elsewhere)
    fill_in_place();
  release();
}

/// Copies what was stored into the file that is there. Its room is taken first, so that a full disk is found while the
/// old content is whole.
void NewFile::fill_in_place() {
  const int target = ::open(target_.path.c_str(), O_WRONLY | O_CLOEXEC);
  const auto close_and_fail = [&] {
    const int reason = errno;
    if (target >= 0) ::close(target);
    errno = reason;
    fail();
  };
  const off_t size = ::lseek(descriptor_, 0, SEEK_END);
  if (target < 0 || size < 0 || ::lseek(descriptor_, 0, SEEK_SET) < 0) close_and_fail();
  if (size > target_.status.st_size)
    if (const int error = ::posix_fallocate(target, 0, size); error != 0) {
      errno = ::ftruncate(target, target_.status.st_size) == 0 ? error : errno;
      close_and_fail();
    }
  std::vector<char> block(1 << 20);
  for (ssize_t got; (got = ::read(descriptor_, block.data(), block.size())) != 0;) {
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 || !write_all(target, {block.data(), std::size_t(got)})) close_and_fail();
  }
  if (::ftruncate(target, size) != 0) close_and_fail();
  if (::close(target) != 0) fail();
}

void NewFile::fail() { throw OutputError(fmt::format("{}: writing failed: {}", target_.shown, std::strerror(errno))); }

}  // namespace program
