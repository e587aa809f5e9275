// A whole file as text in memory: mapped where it can be, read where it is a pipe.
#pragma once

#include <string>
#include <string_view>

namespace program {

class MappedFile {
 public:
  /// Throws InputError with the system's own words.
  explicit MappedFile(const std::string& path);
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::string_view text() const noexcept { return mapping_ ? std::string_view(mapping_, size_) : contents_; }

 private:
  const char* mapping_ = nullptr;
  std::size_t size_ = 0;
  std::string contents_;
};

}  // namespace program
