#include <tuning/rows.hpp>

#include <core/memory.hpp>
#include <core/printable.hpp>
#include <trifactor/error.hpp>
#include <tuning/embedded.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace trifactor::tuning {

namespace {

/// How far an architecture is from a named machine, for the order of list(). Look-ups go by their chain alone.
int distance(std::string_view architecture) {
  if (architecture == "any") return 2;
  return architecture == "host" || architecture == "cuda" ? 1 : 0;
}

constexpr std::size_t most_bytes = 1 << 20;  // of a file: thousands of rows, and /dev/zero ends

std::string read_file(const char* name) {
  const auto refuse = [&](const std::string& why) {
    throw InvalidArgument("TRIFACTOR_TUNING names \"" + core::printable(name) + "\", which " + why);
  };
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(name, "rb"), &std::fclose);
  const auto unreadable = [] { return std::string("cannot be read: ") + std::strerror(errno); };
  if (!file) refuse(unreadable());
  std::string text;
  char piece[4096];
  while (const auto size = std::fread(piece, 1, sizeof piece, file.get())) {
    text.append(piece, size);
    if (text.size() > most_bytes) refuse("must not be larger than " + std::to_string(most_bytes) + " bytes");
  }
  if (std::ferror(file.get())) refuse(unreadable());  // a directory opens and cannot be read
  return text;
}

}  // namespace

void Table::add(std::span<const TextFile> files) {
  Layer layer;
  for (const TextFile& file : files) {
    for (Row& row : parse_rows(file.text, file.name)) {
      auto group = std::find_if(layer.begin(), layer.end(), [&](const Group& g) {
        return g.architecture == row.architecture && g.operation == row.operation;
      });
      if (group == layer.end()) group = layer.insert(layer.end(), {row.architecture, row.operation, {}});
      group->rows.push_back(std::move(row));
    }
  }
  std::stable_sort(layer.begin(), layer.end(), [](const Group& a, const Group& b) {
    return distance(a.architecture) < distance(b.architecture);
  });
  layers_.push_back(std::move(layer));
}

const Row* Table::match(const Operation& operation, std::span<const std::string_view> chain, std::string_view scalar,
                        index_t n, index_t count) const {
  for (const Layer& layer : layers_)
    for (const std::string_view architecture : chain)
      for (const Group& group : layer)
        if (group.operation == &operation && group.architecture == architecture)
          for (const Row& row : group.rows)
            if (row.matches(scalar, n, count)) return &row;
  return nullptr;
}

void Table::fill(void* tuning, const Operation& operation, std::span<const std::string_view> chain,
                 std::string_view scalar, index_t n, index_t count, std::string_view overrides) const {
  if (const Row* row = match(operation, chain, scalar, n, count))
    for (const Setting& setting : row->settings) setting.field->set(tuning, setting.value);
  for (auto word = next_word(overrides); !word.empty(); word = next_word(overrides)) {
    const Setting setting = parse_setting(operation, word, "tuning of the call: ");
    setting.field->set(tuning, setting.value);
  }
}

std::vector<TuningRow> Table::list() const {
  std::vector<TuningRow> list;
  for (const Layer& layer : layers_)
    for (const Group& group : layer)
      for (const Row& row : group.rows) list.push_back({row.text, row.source});
  return list;
}

Table load(const char* user_file) {
  Table table;
  if (user_file && *user_file) {
    const TextFile file{user_file, read_file(user_file)};
    table.add({&file, 1});
  }
  std::vector<TextFile> files;
  for (int i = 0; i < embedded_file_count; ++i) files.push_back({embedded_files[i].name, embedded_files[i].text});
  table.add(files);
  return table;
}

const Table& table() {
  static const Table table = load(std::getenv("TRIFACTOR_TUNING"));
  return table;
}

}  // namespace trifactor::tuning

namespace trifactor {

std::vector<TuningRow> tuning_rows() try { return tuning::table().list(); } TRIFACTOR_CATCH_BAD_ALLOC

}  // namespace trifactor
