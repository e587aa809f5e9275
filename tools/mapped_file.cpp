#include "mapped_file.hpp"

#include "failure.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace program {
namespace {

struct Descriptor {
  int number;
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
};

[[noreturn]] void refuse(const std::string& path) { throw InputError(path + ": " + std::strerror(errno)); }

}  // namespace

MappedFile::MappedFile(const std::string& path) {
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  struct stat status = {};
  if (file.number < 0 || ::fstat(file.number, &status) != 0) refuse(path);
  if (S_ISREG(status.st_mode) && status.st_size > 0) {
    void* const start = ::mmap(nullptr, std::size_t(status.st_size), PROT_READ, MAP_PRIVATE, file.number, 0);
    if (start != MAP_FAILED) {
      mapping_ = static_cast<const char*>(start);
      size_ = std::size_t(status.st_size);
      ::madvise(start, size_, MADV_SEQUENTIAL);
      return;
    }
  }
  char block[1 << 16];
  for (ssize_t got; (got = ::read(file.number, block, sizeof block)) != 0;) {
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) refuse(path);
    contents_.append(block, std::size_t(got));
  }
}

MappedFile::~MappedFile() {
  if (mapping_) ::munmap(const_cast<char*>(mapping_), size_);
}

}  // namespace program
