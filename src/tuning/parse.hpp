// From text to rows and settings, with errors that name the place, the value and the rule.
#pragma once

#include <tuning/fields.hpp>

#include <atomic>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace trifactor::tuning {

/// What conditions such as "n>4 n<=1024" leave over.
struct Range {
  index_t min_value = 0, max_value = std::numeric_limits<index_t>::max();

  bool holds(index_t value) const { return min_value <= value && value <= max_value; }
};

/// "nb=128", checked.
struct Setting {
  const Field* field;
  index_t value;
};

/// The machine that rows were found on: a line `[trifactor 0.1.0 on NVIDIA H200]` stands before them.
struct Section {
  std::string version, device;
  bool is_current = false;                   // found with this version of the library
  mutable std::atomic<bool> judged = false;  // whether somebody was told that its rows are ignored, if that was due

  bool fits(std::string_view call_device) const { return is_current && device == call_device; }
};

/// One decision: `sm_90 cholesky f64 n<=1024 count>=100 : nb=128 looking=left   # evidence`.
struct Row {
  std::string architecture;
  const Operation* operation;
  std::string scalar;                   // "f64", or "any"
  Range n, count;
  std::vector<Setting> settings;
  std::string text, source;             // as written, and "file:line"
  std::shared_ptr<const Section> section;   // null: the row is for every machine of its architecture

  bool matches(std::string_view call_scalar, index_t call_n, index_t call_count) const {
    return n.holds(call_n) && count.holds(call_count) && (scalar == "any" || scalar == call_scalar);
  }
};

/// Takes the first word off the front of text: what lies between blanks. Empty at the end.
std::string_view next_word(std::string_view& text);

/// Reads one "field=value" of an operation. Throws InvalidArgument that begins with `where` and names the word, the
/// rule and the fields there are.
Setting parse_setting(const Operation& operation, std::string_view word, std::string_view where);

/// The rows of a file, in its order. Blank lines and lines of comment alone are skipped; a line in brackets is the
/// section of those that follow. Throws InvalidArgument with file, line and rule.
std::vector<Row> parse_rows(std::string_view text, std::string_view file);

}  // namespace trifactor::tuning
