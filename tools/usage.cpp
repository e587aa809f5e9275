#include "usage.hpp"

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include <algorithm>
#include <charconv>

namespace program {
namespace {

/// Letters to insert, remove, replace or exchange with their neighbour until a is b.
std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i)
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  return d[a.size()][b.size()];
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

/// Of the long ones, without their dashes.
std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    names.insert(names.end(), option->get_lnames().begin(), option->get_lnames().end());
  return names;
}

bool contains(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// The command that was being read, the last one of `trifactor bench cholesky`, or the first that left words over.
struct CommandPath {
  explicit CommandPath(const CLI::App& app) : command(&app), words(app.get_name()) {
    for (auto chosen = command->get_subcommands(); !chosen.empty() && command->remaining().empty();
         chosen = command->get_subcommands()) {
      command = chosen.back();
      words += " " + command->get_name();
    }
  }

  /// What it chooses among.
  const char* kind() const { return command->get_parent() ? "operation" : "command"; }
  /// What it is itself called in a message.
  std::string name() const { return command->get_parent() ? words.substr(words.find(' ') + 1) : words; }

  const CLI::App* command;
  std::string words;
};

std::string unknown_option(const CommandPath& path, const std::string& option) {
  const std::string complaint = fmt::format("{} has no option {}", path.name(), option);
  const std::string name = option.substr(std::min(option.find_first_not_of('-'), option.size()));
  const auto having_it = [&](const CLI::App& above) {
    std::vector<std::string> names;
    for (const CLI::App* command : above.get_subcommands({}))
      if (contains(option_names(*command), name)) names.push_back(command->get_name());
    return names;
  };
  if (name != "help" && !having_it(*path.command).empty())
    return fmt::format("{}: it comes after the {}", complaint, path.kind());
  const CLI::App* const parent = path.command->get_parent();
  if (parent && parent->get_parent())
    if (const auto others = having_it(*parent); !others.empty())
      return fmt::format("{}: it belongs to {} {}", complaint, parent->get_name(), listed(others));
  const std::string meant = closest(name, option_names(*path.command));
  return complaint + did_you_mean(meant.empty() ? "" : "--" + meant);
}

/// What CLI11 says, unless there is a word that it does not know or a command is missing.
std::string complaint(const CommandPath& path, const CLI::Error& error) {
  const std::vector<std::string> commands = command_names(*path.command);
  for (const std::string& word : path.command->remaining()) {
    if (word.size() > 1 && word.starts_with('-')) return unknown_option(path, word.substr(0, word.find('=')));
    if (commands.empty()) continue;
    const std::string meant = closest(word, commands);
    return fmt::format("{} has no {} '{}'{}", path.name(), path.kind(), word,
                       meant.empty() ? "; there are " + listed(commands) : did_you_mean(meant));
  }
  if (!commands.empty() && path.command->get_subcommands().empty() && error.get_name() == "RequiredError")
    return fmt::format("the {} is missing; there are {}", path.kind(), listed(commands));
  return error.what();
}

}  // namespace

std::string closest(const std::string& word, const std::vector<std::string>& known) {
  std::string found;
  std::size_t fewest = 2 + word.size() / 4;  // so many are too many
  for (const std::string& candidate : known) {
    const bool begun = word.size() > 1 && candidate.starts_with(word);
    if (!begun && std::max(word.size(), candidate.size()) - std::min(word.size(), candidate.size()) >= fewest) continue;
    const std::size_t distance = begun ? 1 : edit_distance(word, candidate);
    if (distance < fewest && distance < word.size()) found = candidate, fewest = distance;
  }
  return found;
}

std::string did_you_mean(const std::string& word) {
  return word.empty() ? "" : fmt::format("; did you mean {}?", word);
}

std::string listed(const std::vector<std::string>& words) {
  std::string all;
  for (std::size_t i = 0; i < words.size(); ++i)
    all += (i == 0 ? "" : i + 1 < words.size() ? ", " : " and ") + words[i];
  return all;
}

bool given(const CLI::App& command, const char* option) {
  const CLI::Option* const found = command.get_option_no_throw(option);
  return found && found->count() > 0;
}

std::string not_a_file_name(const std::string& text) { return text.empty() ? "the name of the file is empty" : ""; }

std::string not_a_byte_count(const std::string& text) {
  double bytes = 0;
  const auto [past, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  if (error == std::errc() && past == text.data() + text.size() && bytes >= 1 && bytes <= 1e15) return {};
  return fmt::format("'{}' is not a number of bytes in 1..1e15", text);
}

std::string usage_message(const CLI::App& app, const CLI::Error& error) {
  const CommandPath path(app);
  return fmt::format("{}\nRun {} --help for the usage.", complaint(path, error), path.words);
}

}  // namespace program
