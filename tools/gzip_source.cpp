#include "gzip_source.hpp"

#include "failure.hpp"

#include <fmt/core.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <new>
#include <utility>

namespace program {
namespace {

class GzipSource : public ByteSource {
 public:
  GzipSource(std::unique_ptr<ByteSource> packed, std::string name)
      : packed_(std::move(packed)), name_(std::move(name)) {
    constexpr int gzip_header = 16;
    if (::inflateInit2(&state_, MAX_WBITS + gzip_header) != Z_OK) throw std::bad_alloc();
  }
  ~GzipSource() override { ::inflateEnd(&state_); }

  void rewind() override {
    packed_->rewind();
    ::inflateReset(&state_);
    state_.avail_in = 0;
    between_members_ = true;
    any_member_ = false;
  }

  std::size_t read(char* to, std::size_t size) override {
    constexpr std::size_t max_bytes = 1 << 30;  // zlib counts in unsigned int
    state_.next_out = reinterpret_cast<Bytef*>(to);
    state_.avail_out = uInt(std::min(size, max_bytes));
    const uInt wanted = state_.avail_out;
    while (state_.avail_out == wanted) {
      if (between_members_ && !begin_member()) return 0;
      const bool ended = state_.avail_in == 0 && !refill();
      const int status = ::inflate(&state_, Z_NO_FLUSH);
      if (ended && status == Z_BUF_ERROR) throw InputError(name_ + ": the gzip data ends too early");
      if (status == Z_MEM_ERROR) throw std::bad_alloc();
      if (status == Z_STREAM_END) {
        between_members_ = true;
        ::inflateReset(&state_);
      } else if (status != Z_OK && status != Z_BUF_ERROR) {
        throw InputError(fmt::format("{}: the gzip data is corrupted: {}", name_,
                                     state_.msg ? state_.msg : "it needs a dictionary"));
      }
    }
    return wanted - state_.avail_out;
  }

 private:
  bool refill() {
    state_.next_in = reinterpret_cast<Bytef*>(block_.data());
    state_.avail_in = uInt(packed_->read(block_.data(), block_.size()));
    return state_.avail_in > 0;
  }

  /// Files that were packed one by one and put together are one text; zeros may follow. False at the end.
  bool begin_member() {
    while (any_member_ && (state_.avail_in > 0 || refill()) && *state_.next_in == 0)
      ++state_.next_in, --state_.avail_in;
    if (state_.avail_in == 0 && !refill()) return false;
    constexpr Bytef magic = 0x1f;
    if (*state_.next_in != magic) throw InputError(name_ + ": something else follows the gzip data");
    between_members_ = false;
    return any_member_ = true;
  }

  std::unique_ptr<ByteSource> packed_;
  std::string name_;
  z_stream state_ = {};
  bool between_members_ = true, any_member_ = false;
  std::array<char, 1 << 16> block_;
};

}  // namespace

std::unique_ptr<ByteSource> make_gzip_source(std::unique_ptr<ByteSource> packed, const std::string& name) {
  return std::make_unique<GzipSource>(std::move(packed), name);
}

}  // namespace program
