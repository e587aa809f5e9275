// The text of a file or a stream, from its beginning to its end and again; unpacked where it is compressed by gzip.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

namespace program {

/// Where bytes come from. A part of InputFile.
class ByteSource {
 public:
  ByteSource() = default;
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;
  virtual ~ByteSource() = default;

  /// Goes back to the first byte.
  virtual void rewind() = 0;
  /// The next bytes, at most `size`; 0 at the end. Throws InputError.
  virtual std::size_t read(char* to, std::size_t size) = 0;
};

class InputFile {
 public:
  /// "-" is standard input. What is compressed is known by its first bytes, not by its name. Throws InputError with the
  /// system's own words, or with the name of a compression other than gzip.
  explicit InputFile(const std::string& path);

  /// As messages show it.
  const std::string& name() const noexcept { return name_; }
  /// The first 32 bytes of the text, or fewer.
  const std::string& beginning() const noexcept { return beginning_; }
  /// Bytes of the text, where they can be told before it is read.
  std::optional<std::size_t> size() const noexcept { return size_; }

  void rewind() { source_->rewind(); }
  /// The next bytes of the text, at most `size`; 0 at the end. Never follows a file that grows for ever: who reads sets
  /// the limit. Throws InputError.
  std::size_t read(char* to, std::size_t size) { return source_->read(to, size); }

 private:
  std::string name_, beginning_;
  std::optional<std::size_t> size_;
  std::unique_ptr<ByteSource> source_;
};

/// "standard input" for "-", otherwise the name as messages show it.
std::string shown_input(const std::string& path);

}  // namespace program
