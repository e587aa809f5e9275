#include "failure.hpp"
#include "matrix_market.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace program {
namespace {

/// A file that takes its name only when it is complete; until then, and after a failure, it is not there.
class NewFile {
 public:
  explicit NewFile(const std::string& path) : shown_(path), target_(path) {
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
    } else {  // a pipe or a terminal keeps its name
      descriptor_ = ::open(target_.c_str(), O_WRONLY | O_CLOEXEC);
    }
    if (descriptor_ < 0) throw InputError(fmt::format("{}: cannot be written: {}", shown_, std::strerror(errno)));
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  ~NewFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
    if (!written_.empty()) ::unlink(written_.c_str());
  }

  void append(const char* data, std::size_t size) {
    while (size > 0) {
      const ssize_t put = ::write(descriptor_, data, size);
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) fail();
      data += put, size -= std::size_t(put);
    }
  }

  void finish() {
    const int closed = ::close(descriptor_);
    descriptor_ = -1;
    if (closed != 0) fail();
    if (!written_.empty() && ::rename(written_.c_str(), target_.c_str()) != 0) fail();
    written_.clear();
  }

 private:
  [[noreturn]] void fail() { throw OutputError(fmt::format("{}: writing failed: {}", shown_, std::strerror(errno))); }

  std::string shown_;
  std::filesystem::path target_, written_;
  int descriptor_ = -1;
};

}  // namespace

template <Scalar T>
void write_matrix_market(const std::string& path, MatrixView<const T> X) {
  constexpr bool is_complex = trifactor::ComplexScalar<T>;
  constexpr std::size_t block = 1 << 20;
  NewFile file(path);
  fmt::memory_buffer text;
  const auto out = std::back_inserter(text);
  fmt::format_to(out, "%%MatrixMarket matrix array {} general\n{} {}\n", is_complex ? "complex" : "real", X.rows,
                 X.cols);
  for (index_t j = 0; j < X.cols; ++j) {
    for (index_t i = 0; i < X.rows; ++i) {
      const T x = X(i, j);
      if constexpr (is_complex)
        fmt::format_to(out, "{:.17g} {:.17g}\n", x.real(), x.imag());
      else
        fmt::format_to(out, "{:.17g}\n", x);
      if (text.size() >= block) {
        file.append(text.data(), text.size());
        text.clear();
      }
    }
  }
  file.append(text.data(), text.size());
  file.finish();
}

template void write_matrix_market<double>(const std::string&, MatrixView<const double>);
template void write_matrix_market<std::complex<double>>(const std::string&, MatrixView<const std::complex<double>>);

}  // namespace program
