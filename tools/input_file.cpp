#include "input_file.hpp"

#include "failure.hpp"
#include "gzip_source.hpp"
#include "memory.hpp"
#include "printable.hpp"

#include <fmt/core.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

namespace program {
namespace {

class InputDescriptor {
 public:
  explicit InputDescriptor(const std::string& path)
      : number_(path == "-" ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  InputDescriptor(InputDescriptor&& from) noexcept : number_(std::exchange(from.number_, -1)) {}
  ~InputDescriptor() {
    if (number_ > STDIN_FILENO) ::close(number_);
  }
  int number() const { return number_; }

 private:
  int number_;
};

[[noreturn]] void refuse_input(const std::string& name) { throw InputError(name + ": " + std::strerror(errno)); }

/// A regular file from where it stands. A file that is cut meanwhile ends earlier; one in mapped memory would be a
/// SIGBUS.
class FileSource : public ByteSource {
 public:
  FileSource(InputDescriptor file, std::string name, off_t start)
      : file_(std::move(file)), name_(std::move(name)), start_(start), at_(start) {}

  void rewind() override { at_ = start_; }
  std::size_t read(char* to, std::size_t size) override {
    for (;;) {
      const ssize_t got = ::pread(file_.number(), to, size, at_);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) refuse_input(name_);
      at_ += got;
      return std::size_t(got);
    }
  }

 private:
  InputDescriptor file_;
  std::string name_;
  off_t start_, at_;
};

/// A pipe, a terminal or a device. It can be read once: what was read is kept.
class StreamSource : public ByteSource {
 public:
  StreamSource(InputDescriptor file, std::string name) : file_(std::move(file)), name_(std::move(name)) {}

  void rewind() override { at_ = 0; }
  std::size_t read(char* to, std::size_t size) override {
    if (at_ == kept_ && !receive()) return 0;
    size = std::min({size, kept_ - at_, block - at_ % block});
    std::memcpy(to, blocks_[at_ / block].get() + at_ % block, size);
    at_ += size;
    return size;
  }

 private:
  static constexpr std::size_t block = 1 << 20, blocks_between_checks = 64;

  bool receive() {
    if (ended_) return false;  // a terminal would go on
    if (kept_ == blocks_.size() * block) {
      if (blocks_.size() % blocks_between_checks == 0 && available_memory() < 2 * blocks_between_checks * block)
        throw InputError(fmt::format("{}: after {} of this stream there is no memory for more", name_,
                                     readable_bytes(double(kept_))));
      blocks_.push_back(std::make_unique_for_overwrite<char[]>(block));
    }
    for (;;) {
      const ssize_t got = ::read(file_.number(), blocks_.back().get() + kept_ % block, block - kept_ % block);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) refuse_input(name_);
      kept_ += std::size_t(got);
      ended_ = got == 0;
      return !ended_;
    }
  }

  InputDescriptor file_;
  std::string name_;
  std::vector<std::unique_ptr<char[]>> blocks_;
  std::size_t kept_ = 0, at_ = 0;
  bool ended_ = false;
};

using namespace std::string_view_literals;
constexpr std::string_view gzip_magic = "\x1f\x8b";
constexpr std::pair<std::string_view, const char*> other_compressions[] = {{"BZh", "bzip2"},
                                                                           {"\xfd\x37zXZ\0"sv, "xz"},
                                                                           {"\x28\xb5\x2f\xfd", "zstd"},
                                                                           {"\x04\x22\x4d\x18", "lz4"},
                                                                           {"7z\xbc\xaf\x27\x1c", "7-Zip"},
                                                                           {"PK\x03\x04", "zip"},
                                                                           {"\x1f\x9d", "compress"},
                                                                           {"\x1f\xa0", "compress"}};

/// The first bytes: enough to tell what it is.
std::string first_bytes(ByteSource& source) {
  std::string begin;
  std::array<char, 32> piece;
  while (begin.size() < piece.size()) {
    const std::size_t got = source.read(piece.data(), piece.size() - begin.size());
    if (got == 0) break;
    begin.append(piece.data(), got);
  }
  source.rewind();
  return begin;
}

}  // namespace

InputFile::InputFile(const std::string& path) : name_(shown_input(path)) {
  InputDescriptor file(path);
  struct stat status = {};
  if (file.number() < 0 || ::fstat(file.number(), &status) != 0) refuse_input(name_);
  if (S_ISREG(status.st_mode)) {
    const off_t start = std::max<off_t>(::lseek(file.number(), 0, SEEK_CUR), 0);  // standard input may be further on
    size_ = std::size_t(std::max<off_t>(status.st_size - start, 0));
    source_ = std::make_unique<FileSource>(std::move(file), name_, start);
  } else {
    source_ = std::make_unique<StreamSource>(std::move(file), name_);
  }
  beginning_ = first_bytes(*source_);
  for (const auto& [magic, format] : other_compressions)
    if (beginning_.starts_with(magic))
      throw InputError(fmt::format("{}: is compressed by {}; only gzip is unpacked here", name_, format));
  if (beginning_.starts_with(gzip_magic)) {
    source_ = make_gzip_source(std::move(source_), name_);
    size_.reset();
    beginning_ = first_bytes(*source_);
  }
}

std::string shown_input(const std::string& path) { return path == "-" ? "standard input" : printable(path); }

}  // namespace program
