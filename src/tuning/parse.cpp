#include <tuning/parse.hpp>

#include <core/printable.hpp>
#include <trifactor/error.hpp>

#include <algorithm>
#include <charconv>
#include <optional>

namespace trifactor::tuning {

namespace {

constexpr std::string_view blanks = " \t\r\v\f";
constexpr std::string_view scalars[] = {"f32", "f64", "c32", "c64", "any"};

template <class... Parts>
[[noreturn]] void fail(const Parts&... parts) {
  std::string message;
  (message.append(parts), ...);
  throw InvalidArgument(message);
}

std::string in_quotes(std::string_view text) { return '"' + core::printable(text) + '"'; }

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(blanks);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

/// "a, b, c", of things that have names or are names.
template <class Names>
std::string listed(const Names& names) {
  std::string list;
  for (const auto& name : names) {
    if (!list.empty()) list += ", ";
    if constexpr (requires { name.name; })
      list += name.name;
    else
      list += name;
  }
  return list;
}

std::optional<index_t> whole_number(std::string_view text) {
  index_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Narrows a row's range of n or count by one condition.
void parse_condition(Row& row, std::string_view word, std::string_view where) {
  constexpr std::string_view signs[] = {"<=", ">=", "<", ">", "="};  // the longer ones first
  const auto at = std::min(word.find_first_of("<>="), word.size());
  const auto name = word.substr(0, at), rest = word.substr(at);
  const auto sign = std::find_if(std::begin(signs), std::end(signs), [&](auto s) { return rest.starts_with(s); });
  if ((name != "n" && name != "count") || sign == std::end(signs))
    fail(where, in_quotes(word),
         " is no condition; the rule is n or count, then <=, <, >=, > or =, then a whole number,", " without blanks");
  const auto bound = whole_number(rest.substr(sign->size()));
  if (!bound || *bound < 0 || *bound == std::numeric_limits<index_t>::max())  // so that bound + 1 is a number
    fail(where, in_quotes(word), " must compare with a whole number from 0 to 2^63 - 2");

  Range& range = name == "n" ? row.n : row.count;
  if (*sign == "<=" || *sign == "=") range.max_value = std::min(range.max_value, *bound);
  if (*sign == "<") range.max_value = std::min(range.max_value, *bound - 1);
  if (*sign == ">=" || *sign == "=") range.min_value = std::max(range.min_value, *bound);
  if (*sign == ">") range.min_value = std::max(range.min_value, *bound + 1);
  if (range.min_value > range.max_value) fail(where, in_quotes(row.text), " matches nothing: no ", name, " fits its conditions");
}

Row parse_row(std::string_view line, std::string_view file, index_t number) {
  Row row;
  row.text = trimmed(line);
  row.source = std::string(file) + ':' + std::to_string(number);
  const std::string where = core::printable(row.source) + ": ";

  line = line.substr(0, line.find('#'));
  const auto colon = line.find(':');
  if (colon == line.npos)
    fail(where, in_quotes(row.text),
         " has no colon; the rule is: architecture operation scalar conditions : field=value");
  auto head = line.substr(0, colon), tail = line.substr(colon + 1);

  row.architecture = next_word(head);
  const auto operation_name = next_word(head);
  row.scalar = next_word(head);
  if (row.scalar.empty())
    fail(where, in_quotes(row.text), " must have an architecture, an operation and a scalar before the colon");
  const auto known = operations();
  const auto found =
      std::find_if(known.begin(), known.end(), [&](const Operation& o) { return o.name == operation_name; });
  if (found == known.end())
    fail(where, in_quotes(operation_name), " is no operation; the operations are ", listed(known));
  row.operation = &*found;
  if (std::find(std::begin(scalars), std::end(scalars), row.scalar) == std::end(scalars))
    fail(where, in_quotes(row.scalar), " is no scalar; the scalars are ", listed(scalars));

  while (!trimmed(head).empty()) parse_condition(row, next_word(head), where);
  while (!trimmed(tail).empty()) row.settings.push_back(parse_setting(*row.operation, next_word(tail), where));
  if (row.settings.empty())
    fail(where, in_quotes(row.text), " sets nothing; the fields of ", found->name, " are ", listed(found->fields));
  return row;
}

std::shared_ptr<const Section> parse_section(std::string_view line, std::string_view file, index_t number) {
  const auto refuse = [&] {
    fail(core::printable(file), ":", std::to_string(number), ": ", in_quotes(line),
         " is no section; the rule is: [trifactor VERSION on DEVICE]");
  };
  if (line.back() != ']') refuse();
  auto text = line.substr(1, line.size() - 2);
  const auto program = next_word(text), version = next_word(text), on = next_word(text), device = trimmed(text);
  if (program != "trifactor" || on != "on" || device.empty()) refuse();
  auto section = std::make_shared<Section>();
  section->version = version, section->device = device, section->is_current = version == TRIFACTOR_VERSION;
  return section;
}

}  // namespace

std::string_view next_word(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
  const auto word = text.substr(0, text.find_first_of(blanks));
  text.remove_prefix(word.size());
  return word;
}

Setting parse_setting(const Operation& operation, std::string_view word, std::string_view where) {
  const auto equals = std::min(word.find('='), word.size());
  const auto name = word.substr(0, equals);
  const auto text = word.substr(std::min(equals + 1, word.size()));
  const auto refuse = [&](const std::string& rule) {
    fail(where, in_quotes(word), ": ", rule, "; the fields of ", operation.name, " are ", listed(operation.fields));
  };
  if (equals == word.size()) refuse("the rule is field=value, without blanks");

  const auto fields = operation.fields;
  const auto field = std::find_if(fields.begin(), fields.end(), [&](const Field& f) { return f.name == name; });
  if (field == fields.end()) refuse("there is no field " + in_quotes(name));

  if (!field->words.empty()) {
    const auto at = std::find(field->words.begin(), field->words.end(), text);
    if (at == field->words.end())
      refuse(std::string(name) + " must be one of " + listed(field->words) + ", not " + in_quotes(text));
    return {&*field, at - field->words.begin()};
  }
  const auto value = whole_number(text);
  if (!value || *value < field->min_value || *value > field->max_value)
    refuse(std::string(name) + " must be a whole number from " + std::to_string(field->min_value) + " to " +
           std::to_string(field->max_value) + ", not " + in_quotes(text));
  return {&*field, *value};
}

std::vector<Row> parse_rows(std::string_view text, std::string_view file) {
  std::vector<Row> rows;
  std::shared_ptr<const Section> section;
  for (index_t number = 1; !text.empty(); ++number) {
    const auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const auto content = trimmed(line);
    if (content.empty() || content.front() == '#') continue;
    if (content.front() == '[') {
      section = parse_section(content, file, number);
    } else {
      rows.push_back(parse_row(line, file, number));
      rows.back().section = section;
    }
  }
  return rows;
}

}  // namespace trifactor::tuning
