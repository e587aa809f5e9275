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

#include <sys/stat.h>

namespace trifactor::tuning {

namespace {

/// How far an architecture is from a named machine, for the order of list(). Look-ups go by their chain alone.
int distance(std::string_view architecture) {
  if (architecture == "any") return 2;
  return architecture == "host" || architecture == "cuda" ? 1 : 0;
}

constexpr std::size_t most_bytes = 1 << 20;  // of a file: thousands of rows, and /dev/zero ends

}  // namespace

std::string read_file(const char* name, const std::string& what) {
  const auto refuse = [&](const std::string& why) {
    throw InvalidArgument(what + " \"" + core::printable(name) + "\" " + why);
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

const Row* Table::match(const Operation& operation, const Machine& machine, std::string_view scalar, index_t n,
                        index_t count) const {
  for (const Layer& layer : layers_)
    for (const std::string_view architecture : machine.chain)
      for (const Group& group : layer)
        if (group.operation == &operation && group.architecture == architecture)
          for (const Row& row : group.rows) {
            if (!row.matches(scalar, n, count)) continue;
            if (!row.section || row.section->fits(machine.device)) return &row;
            if (!row.section->judged.exchange(true)) judge(layer, row, machine);
          }
  return nullptr;
}

void Table::judge(const Layer& layer, const Row& ignored, const Machine& machine) const {
  for (const Group& group : layer)
    for (const Row& row : group.rows)
      if (row.section && row.section->fits(machine.device)) return;  // the file is this machine's, too
  if (told_->exchange(true)) return;
  const std::string line = "trifactor: " + core::printable(ignored.source) + ": rows found with trifactor " +
                           core::printable(ignored.section->version) + " on " +
                           core::printable(ignored.section->device) +
                           " are ignored by trifactor " TRIFACTOR_VERSION " on " + core::printable(machine.device) +
                           "; trifactor tune finds others\n";
  std::fputs(line.c_str(), stderr);
}

void Table::fill(void* tuning, const Operation& operation, const Machine& machine, std::string_view scalar, index_t n,
                 index_t count, std::string_view overrides) const {
  if (const Row* row = match(operation, machine, scalar, n, count))
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
      for (const Row& row : group.rows)
        list.push_back(
            {row.text, row.source, row.section ? row.section->device : "", row.section ? row.section->version : ""});
  return list;
}

Table load(const char* user_file, const std::string& what) {
  Table table;
  if (user_file && *user_file) {
    const TextFile file{user_file, read_file(user_file, what)};
    table.add({&file, 1});
  }
  std::vector<TextFile> files;
  for (int i = 0; i < embedded_file_count; ++i) files.push_back({embedded_files[i].name, embedded_files[i].text});
  table.add(files);
  return table;
}

std::string home_file() {
  const auto folder_of = [](const char* variable) {
    const char* const folder = std::getenv(variable);
    return std::string(folder && *folder == '/' ? folder : "");  // a relative one would mean another file everywhere
  };
  std::string folder = folder_of("XDG_CONFIG_HOME");
  if (folder.empty() && !(folder = folder_of("HOME")).empty()) folder += "/.config";
  return folder.empty() ? folder : folder + "/trifactor/tuning.txt";
}

Loaded load_for(const char* variable) {
  const std::string word = variable ? variable : "";
  if (word == "off") return {load(nullptr), {}};
  if (!word.empty()) return {load(word.c_str()), {word, ""}};
  const std::string name = home_file();
  struct stat status = {};
  if (name.empty() || ::stat(name.c_str(), &status) != 0) return {load(nullptr), {}};
  std::string why = "the tuning file \"" + core::printable(name) + "\" is no plain file";  // a pipe would wait for ever
  try {
    if (S_ISREG(status.st_mode)) return {load(name.c_str(), "the tuning file"), {name, ""}};
  } catch (const InvalidArgument& e) { why = e.what(); }
  std::fputs(("trifactor: " + why + "; the file is ignored\n").c_str(), stderr);
  return {load(nullptr), {name, why}};
}

const Loaded& loaded() {
  static const Loaded loaded = load_for(std::getenv("TRIFACTOR_TUNING"));
  return loaded;
}

namespace {

template <class Tuning>
std::vector<index_t> values_of(const Tuning& tuning) {
  std::vector<index_t> values;
  for (const Field& field : operation_of<Tuning>().fields) values.push_back(field.get(&tuning));
  return values;
}

/// f(Tuning()) for the struct of an operation.
template <class F>
auto with_struct(const Operation& operation, F f) {
  if (&operation == &operation_of<core::CholeskyTuning>()) return f(core::CholeskyTuning());
  if (&operation == &operation_of<core::LuTuning>()) return f(core::LuTuning());
  if (&operation == &operation_of<core::SolveTuning>()) return f(core::SolveTuning());
  if (&operation == &operation_of<core::ValueTuning>()) return f(core::ValueTuning());
  return f(core::SparseTuning());
}

}  // namespace

std::vector<index_t> values_in_force(const Table& table, const Operation& operation, const Machine& machine,
                                     std::string_view scalar, index_t n, index_t count) {
  return with_struct(operation, [&]<class Tuning>(const Tuning&) {
    return values_of(table.find<Tuning>(machine, scalar, n, count, ""));
  });
}

std::vector<index_t> default_values(const Operation& operation) {
  return with_struct(operation, [](const auto& tuning) { return values_of(tuning); });
}

}  // namespace trifactor::tuning

namespace trifactor {

std::vector<TuningRow> tuning_rows() try { return tuning::loaded().table.list(); }
TRIFACTOR_CATCH_BAD_ALLOC
TuningFile tuning_file() try { return tuning::loaded().file; }
TRIFACTOR_CATCH_BAD_ALLOC

}  // namespace trifactor
