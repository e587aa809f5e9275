#include "line_reader.hpp"

#include "failure.hpp"
#include "memory.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>

namespace program {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; }

/// Past a plus sign, which std::from_chars does not know; "+-1" stays a mistake.
const char* past_plus(const char* p, const char* end) {
  return end - p > 1 && p[0] == '+' && p[1] != '-' && p[1] != '+' ? p + 1 : p;
}

}  // namespace

std::string quoted(std::string_view word) {
  std::string shown;
  for (const char c : word.substr(0, 40)) shown += c > ' ' && c < '\x7f' ? c : '?';
  return "'" + shown + (word.size() > 40 ? "...'" : "'");
}

LineReader::LineReader(InputFile& file, TextPosition start, double most_bytes)
    : file_(file),
      most_bytes_(most_bytes),
      buffer_(std::make_unique_for_overwrite<char[]>(longest_line)),
      end_(buffer_.get()),
      at_(buffer_.get()),
      line_(start.line) {
  file_.rewind();
  while (offset_ < start.offset) {
    const std::size_t got = file_.read(buffer_.get(), std::min(longest_line, start.offset - offset_));
    if (got == 0) break;  // it has been cut
    offset_ += got;
  }
  read_lines();
}

bool LineReader::read_lines() {
  char* const begin = buffer_.get();
  const auto done = std::size_t(end_ - begin);
  offset_ += done;
  held_ -= done;
  std::memmove(begin, end_, held_);
  at_ = end_ = begin;
  for (;;) {
    if (held_ == longest_line) reject(fmt::format("this line is longer than {}", readable_bytes(double(longest_line))));
    const std::size_t got = file_.read(begin + held_, longest_line - held_);
    const void* const last = ::memrchr(begin + held_, '\n', got);
    held_ += got;
    if (got == 0)
      end_ = begin + held_;
    else if (last)
      end_ = static_cast<const char*>(last) + 1;
    else
      continue;
    if (double(offset_) + double(held_) > most_bytes_)
      reject(fmt::format("the text goes on beyond {}, more than its entries can need", readable_bytes(most_bytes_)));
    return end_ != begin;
  }
}

bool LineReader::at_break(const char* p) const noexcept { return p == end_ || is_blank(*p) || *p == '\n' || *p == '%'; }

bool LineReader::at_line_end() const noexcept { return at_ == end_ || *at_ == '\n' || *at_ == '%'; }

void LineReader::skip_blanks() noexcept {
  while (at_ != end_ && is_blank(*at_)) ++at_;
}

bool LineReader::next_line() {
  for (;;) {
    skip_blanks();
    if (at_ == end_) return false;
    if (*at_ == '%') at_ = std::find(at_, end_, '\n');
    if (at_ == end_) return false;
    if (*at_ != '\n') return true;
    ++line_;
    if (++at_ == end_ && !read_lines()) return --line_, false;
  }
}

std::string_view LineReader::word() {
  skip_blanks();
  const char* const start = at_;
  while (!at_break(at_)) ++at_;
  return {start, std::size_t(at_ - start)};
}

std::string_view LineReader::peek_word(const char* what) {
  skip_blanks();
  const char* const start = at_;
  const std::string_view found = word();
  at_ = start;
  if (found.empty()) reject(fmt::format("{} is missing", what));
  return found;
}

index_t LineReader::integer(const char* what) {
  skip_blanks();
  index_t value = 0;
  const auto [past, error] = std::from_chars(past_plus(at_, end_), end_, value);
  if (error == std::errc() && at_break(past)) {
    at_ = past;
    return value;
  }
  const std::string_view found = peek_word(what);
  if (error == std::errc::result_out_of_range && at_break(past))
    reject(fmt::format("{} {} does not fit in 64 bits", what, quoted(found)));
  reject(fmt::format("{} {} is not an integer", what, quoted(found)));
}

double LineReader::real(const char* what) {
  skip_blanks();
  double value = 0;
  const auto [past, error] = std::from_chars(past_plus(at_, end_), end_, value);
  if (error != std::errc() || !at_break(past)) return unusual_real(what);
  at_ = past;
  return value;
}

/// Fortran's exponents (1.5D+3), numbers beyond the range of double, and what is not a number.
double LineReader::unusual_real(const char* what) {
  const std::string_view found = peek_word(what);
  const char* const begin = past_plus(found.data(), found.data() + found.size());
  std::string digits(begin, found.data() + found.size());
  for (char& c : digits)
    if (c == 'd' || c == 'D') c = 'e';
  double value = 0;
  const char* const end = digits.data() + digits.size();
  const auto [past, error] = std::from_chars(digits.data(), end, value);
  const bool out_of_range = error == std::errc::result_out_of_range;
  if (past != end || !(error == std::errc() || out_of_range))
    reject(fmt::format("{} {} is not a number", what, quoted(found)));
  if (out_of_range) value = std::strtod(digits.c_str(), nullptr);  // infinite, or tiny and harmless
  if (out_of_range && std::isinf(value))
    reject(fmt::format("{} {} is beyond the range of double", what, quoted(found)));
  at_ += found.size();
  return value;
}

double LineReader::whole(const char* what) {
  const std::string_view found = peek_word(what);
  const std::size_t sign = found[0] == '+' || found[0] == '-' ? 1 : 0;
  if (found.size() == sign || found.find_first_not_of("0123456789", sign) != found.npos)
    reject(fmt::format("{} {} is not an integer", what, quoted(found)));
  return real(what);
}

void LineReader::end_line() {
  skip_blanks();
  if (!at_line_end()) reject(fmt::format("{} is one word too many on this line", quoted(word())));
}

void LineReader::reject(const std::string& rule) const {
  throw InputError(fmt::format("{}:{}: {}", file_.name(), line_, rule));
}

}  // namespace program
