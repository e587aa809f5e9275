#include "bench_compare.hpp"

#include "failure.hpp"
#include "input_file.hpp"
#include "printable.hpp"
#include "standard_streams.hpp"
#include "table.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

namespace program {
namespace {

using Json = nlohmann::json;

/// The fields that say what was measured. A row that lacks one has the same as a row where it is null.
constexpr const char* joined_by[] = {
    "op",    "method", "scalar", "m",     "n",        "ld",      "count",           "nrhs",    "kind",
    "sizes", "uplo",   "matrix", "phase", "ordering", "mode",    "tuning",          "looking", "nb",
    "first", "leaf",   "form",   "ib",    "device",   "machine", "max_device_bytes"};
constexpr std::size_t ld_place = 5;
static_assert(std::string_view(joined_by[ld_place]) == "ld");
constexpr const char* shown_alone[] = {"op", "scalar", "method", "kind", "matrix", "phase", "mode", "tuning"};
constexpr std::size_t longest_file = std::size_t(256) << 20;

/// What was measured once, or several times at one commit.
using Repeated = std::vector<Json>;

/// The rows of one side, each under what it measured. Where several commits measured the same, the last one counts.
struct MeasuredRows {
  std::string shown, commits;
  std::map<std::string, Repeated> rows;
};

std::string text_of(const std::string& path) {
  InputFile file(path);
  std::string text;
  char piece[1 << 16];
  for (std::size_t got; (got = file.read(piece, sizeof piece)) > 0;) {
    text.append(piece, got);
    if (text.size() > longest_file)
      throw InputError(fmt::format("{}: more than {} MiB are not a file of rows", file.name(), longest_file >> 20));
  }
  return text;
}

/// Throws InputError unless it is a row with the fields that count here.
Json parse_row(const std::string& where, const std::string& line) {
  Json row = Json::parse(line, nullptr, false);
  if (!row.is_object()) throw InputError(where + ": not a JSON object, as bench --json prints them");
  const auto number = [&](const char* name) { return row.contains(name) && row[name].is_number(); };
  if (!row.contains("op") || !row["op"].is_string()) throw InputError(where + ": a row has a string 'op'");
  if (!number("seconds") || !(row["seconds"].get<double>() > 0))
    throw InputError(where + ": a row has 'seconds', a number above 0");
  if (row.contains("spread") && !number("spread")) throw InputError(where + ": 'spread' must be a number");
  return row;
}

/// What was measured, with which peer where the ratio to it counts, as a text that is the same for the same.
std::string key_of(const Json& row, bool by_ratio) {
  Json key = Json::array();
  for (const char* const field : joined_by) key.push_back(row.value(field, Json()));
  Json& ld = key[ld_place];  // that of a matrix without a gap may be left out
  if (const Json rows = row.value("m", Json()).is_null() ? row.value("n", Json()) : row.value("m", Json()); ld == rows)
    ld = Json();
  if (by_ratio) key.push_back(row.value("peer", Json()));
  return key.dump();
}

MeasuredRows read_measured(const std::string& word, bool by_ratio) {
  std::string path = word, commit;
  if (const auto at = word.rfind('@'); at != std::string::npos && at > 0 && !std::filesystem::exists(word)) {
    path = word.substr(0, at), commit = word.substr(at + 1);
    if (commit.empty()) throw InputError(fmt::format("'{}': a commit comes after @", printable(word)));
  }
  MeasuredRows side{.shown = printable(word), .commits = {}, .rows = {}};
  const std::string text = text_of(path);
  std::size_t number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1, ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const Json row = parse_row(fmt::format("{}:{}", shown_input(path), number), line);
    const Json from = row.value("commit", Json());
    const std::string its_commit = from.is_string() ? from.get<std::string>() : std::string();
    if (!its_commit.starts_with(commit)) continue;
    Repeated& same = side.rows[key_of(row, by_ratio)];
    if (!same.empty() && same.back().value("commit", Json()) != from) same.clear();
    same.push_back(row);
    if (side.commits.find(its_commit) == std::string::npos)
      side.commits += (side.commits.empty() ? "" : ", ") + printable(its_commit);
  }
  if (side.rows.empty())
    throw InputError(fmt::format("{}: no rows{}", side.shown, commit.empty() ? "" : " of commit " + commit));
  return side;
}

std::optional<double> number_of(const Json& row, const char* field) {
  const auto found = row.find(field);
  if (found == row.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

/// The median of what was repeated, and how far it spreads: the row's own spread, or what lies between repetitions.
struct Middle {
  double value, spread;
};
std::optional<Middle> middle_of(const Repeated& rows, const char* field, const char* spread) {
  std::vector<double> values;
  Middle middle{0, 0};
  for (const Json& row : rows) {
    const auto value = number_of(row, field);
    if (!value || !(*value > 0)) return std::nullopt;
    values.push_back(*value);
    middle.spread = std::max(middle.spread, number_of(row, spread).value_or(0));
  }
  std::sort(values.begin(), values.end());
  middle.value = values[(values.size() - 1) / 2];
  middle.spread = std::max(middle.spread, (values.back() - values.front()) / middle.value);
  return middle;
}

/// One measurement on both sides. change: how much longer it takes than before, 0.1 for a tenth.
struct Change {
  const Json* row;
  double from, to, change, noise;
  const char* verdict;
};

/// Where it says: by the ratio to the peer, which both runs measured beside it, a slow hour of the machine does not
/// count.
std::optional<Change> compare(const Repeated& before, const Repeated& after, const CompareOptions& o) {
  const bool by_ratio = o.by == "ratio";
  const auto from = middle_of(before, o.by.c_str(), "spread"), to = middle_of(after, o.by.c_str(), "spread");
  if (!from || !to) return std::nullopt;
  double noise = from->spread + to->spread;
  if (by_ratio)
    noise += number_of(before.back(), "peer_spread").value_or(0) + number_of(after.back(), "peer_spread").value_or(0);
  noise = std::max(noise, o.tolerance);
  const double change = (by_ratio ? from->value / to->value : to->value / from->value) - 1;
  const char* const verdict = change > noise ? "slower" : 1 / (1 + change) - 1 > noise ? "faster" : "same";
  return Change{&after.back(), from->value, to->value, change, noise, verdict};
}

/// "cholesky f64 n=1024 lower", the fields of a row that are there.
std::string what_was_measured(const Json& row) {
  std::string text;
  const auto add = [&](const std::string& word) { text += (text.empty() ? "" : " ") + word; };
  for (const char* const field : shown_alone)
    if (const Json value = row.value(field, Json()); value.is_string() && value != "auto")
      add(printable(value.get<std::string>()));
  for (const char* const field : {"m", "n", "nrhs", "count", "nb", "leaf", "ib", "max_device_bytes"})
    if (const auto value = number_of(row, field); value && !(field == std::string("count") && *value == 1))
      add(fmt::format("{}={:.0f}", field, *value));
  if (row.value("uplo", Json()) == "upper") add("upper");
  return text;
}

void print_json(const Change& c, const CompareOptions& o) {
  nlohmann::ordered_json line = {{"what", what_was_measured(*c.row)},
                                 {"verdict", c.verdict},
                                 {"by", o.by},
                                 {"before", c.from},
                                 {"after", c.to},
                                 {"change", c.change},
                                 {"noise", c.noise}};
  for (const char* const field : joined_by)
    if (const Json value = c.row->value(field, Json()); !value.is_null()) line[field] = value;
  fmt::print("{}\n", json_text(line));
}

}  // namespace

void compare_rows(const CompareOptions& o) {
  const bool by_ratio = o.by == "ratio";
  const MeasuredRows before = read_measured(o.before, by_ratio), after = read_measured(o.after, by_ratio);
  std::vector<Change> changes;
  std::size_t gone = 0, without = 0;
  for (const auto& [key, row] : before.rows) {
    const auto found = after.rows.find(key);
    if (found == after.rows.end()) {
      ++gone;
    } else if (const auto change = compare(row, found->second, o)) {
      changes.push_back(*change);
    } else {
      ++without;
    }
  }
  if (changes.empty())
    throw InputError(fmt::format("no row of {} is in {}: rows are joined by what was measured, machine included{}",
                                 before.shown, after.shown, without ? ", and need " + o.by : ""));
  std::stable_sort(changes.begin(), changes.end(),
                   [](const Change& a, const Change& b) { return a.change > b.change; });
  const auto count = [&](const char* verdict) {
    return std::count_if(changes.begin(), changes.end(),
                         [&](const Change& c) { return c.verdict == std::string(verdict); });
  };
  if (o.json) {
    for (const Change& c : changes)
      if (o.all || c.verdict != std::string("same")) print_json(c, o);
  } else {
    std::size_t width = 8;
    for (const Change& c : changes) width = std::max(width, what_was_measured(*c.row).size());
    Table table({{"", 6, true},
                 {"measured", width, true},
                 {by_ratio ? "ratio before" : "ms before", 12},
                 {by_ratio ? "ratio after" : "ms after", 12},
                 {"change %", 8},
                 {"noise %", 7}});
    fmt::print("{} (commit {}) against {} (commit {})\n", after.shown, after.commits, before.shown, before.commits);
    bool started = false;
    const double scale = by_ratio ? 1 : 1e3;
    for (const Change& c : changes) {
      if (!o.all && c.verdict == std::string("same")) continue;
      if (!started) table.heading(), started = true;
      table.row({c.verdict, what_was_measured(*c.row), fmt::format("{:.4f}", c.from * scale),
                 fmt::format("{:.4f}", c.to * scale), fmt::format("{:+.1f}", c.change * 100),
                 fmt::format("{:.1f}", c.noise * 100)});
    }
    fmt::print("{} slower, {} faster, {} the same; {} only before, {} only after\n", count("slower"), count("faster"),
               count("same"), gone, after.rows.size() - changes.size() - without);
  }
  require_standard_output();
  if (const auto slower = count("slower"); slower > 0)
    throw MatrixError(fmt::format("{} of {} rows became slower beyond the noise", slower, changes.size()));
}

}  // namespace program
