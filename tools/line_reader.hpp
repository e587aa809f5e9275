// Words and numbers of a text, line by line, with the rules that a number has to keep.
#pragma once

#include "input_file.hpp"
#include "matrix_market.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>

namespace program {

/// Holds a few lines at a time, so that the length of the text does not matter.
class LineReader {
 public:
  static constexpr std::size_t longest_line = 1 << 20;

  /// Reads the file from `start` on. A text of more than `most_bytes` is refused: it need not have an end.
  LineReader(InputFile& file, TextPosition start, double most_bytes);

  TextPosition position() const noexcept { return {offset_ + std::size_t(at_ - buffer_.get()), line_}; }
  /// What is there of this line and the next ones.
  std::string_view ahead() const noexcept { return {at_, std::size_t(end_ - at_)}; }
  void skip(std::size_t bytes) noexcept { at_ += std::min(bytes, ahead().size()); }

  /// Goes to the next line that holds a word; false at the end of the text, where the line is its last one.
  bool next_line();
  /// The next word of this line; empty when there is none.
  std::string_view word();
  /// The next word of this line as a number; `what` names it in the complaint.
  index_t integer(const char* what);
  double real(const char* what);
  /// A real number that is written as an integer.
  double whole(const char* what);
  /// Throws unless the line ends here.
  void end_line();

  /// Throws InputError "file:line: rule" for the current line.
  [[noreturn]] void reject(const std::string& rule) const;

 private:
  bool at_break(const char* p) const noexcept;  // the end of a word
  bool at_line_end() const noexcept;
  void skip_blanks() noexcept;
  bool read_lines();  // false at the end of the text
  double unusual_real(const char* what);
  std::string_view peek_word(const char* what);  // never empty

  InputFile& file_;
  double most_bytes_;
  std::unique_ptr<char[]> buffer_;
  std::size_t offset_ = 0;  // of the buffer's first byte in the text
  std::size_t held_ = 0;    // bytes in the buffer: whole lines up to end_, and the beginning of one more
  const char* end_;
  const char* at_;
  std::size_t line_;
};

/// A word as it can be shown in a message: short and printable.
std::string quoted(std::string_view word);

}  // namespace program
