// Words and numbers of a text, line by line, with the rules that a number has to keep.
#pragma once

#include "matrix_market.hpp"

#include <string>
#include <string_view>

namespace program {

class LineReader {
 public:
  LineReader(const std::string& path, std::string_view text, TextPosition start)
      : path_(&path), end_(text.data() + text.size()), at_(start.at), line_(start.line) {}

  TextPosition position() const noexcept { return {at_, line_}; }
  std::size_t remaining() const noexcept { return std::size_t(end_ - at_); }

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
  double unusual_real(const char* what);
  std::string_view peek_word(const char* what);  // never empty

  const std::string* path_;
  const char* end_;
  const char* at_;
  std::size_t line_;
};

/// A word as it can be shown in a message: short and printable.
std::string quoted(std::string_view word);

}  // namespace program
