// Which row is in force for a call: the first that matches, most specific architecture first.
#pragma once

#include <trifactor/info.hpp>
#include <tuning/parse.hpp>

namespace trifactor::tuning {

struct TextFile {
  std::string name, text;
};

/// What a file holds. Throws InvalidArgument, which calls the file `what`, where it cannot be read and where it holds
/// more than 1 MiB.
std::string read_file(const char* name, const std::string& what);

/// Where a call runs.
struct Machine {
  template <class Chain>
  Machine(const Chain& architectures, std::string_view name = {}) : chain(architectures), device(name) {}

  std::span<const std::string_view> chain;  // architectures, most specific first: {"sm_90", "cuda", "any"}
  std::string_view device;                  // "NVIDIA H200", for rows that were found on one
};

/// Rows in the order in which they are tried. Built once and then only read, so that threads share it.
class Table {
 public:
  /// Adds the rows of these files, to be tried after all that are there: every architecture of an earlier add comes
  /// before any of a later one. Throws InvalidArgument with file, line and rule.
  void add(std::span<const TextFile> files);

  /// The struct's defaults, then the row's fields, then the caller's. overrides is "nb=128 looking=left" (the last of
  /// two settings of a field counts). Throws InvalidArgument when overrides is wrong. Allocates nothing otherwise: it
  /// is on the path of every call. Rows of a section for another device or version are passed over. The first time that
  /// no row of theirs fits this machine instead, one line on stderr says so.
  template <class Tuning>
  Tuning find(const Machine& machine, std::string_view scalar, index_t n, index_t count,
              std::string_view overrides) const {
    Tuning tuning;
    fill(&tuning, operation_of<Tuning>(), machine, scalar, n, count, overrides);
    return tuning;
  }

  /// Every row: those for a named architecture, then host and cuda, then any; for each file set in turn.
  std::vector<TuningRow> list() const;

 private:
  struct Group {  // the rows that a look-up tries in turn
    std::string architecture;
    const Operation* operation;
    std::vector<Row> rows;
  };
  using Layer = std::vector<Group>;  // of one add()

  const Row* match(const Operation&, const Machine&, std::string_view scalar, index_t n, index_t count) const;
  void judge(const Layer&, const Row& ignored, const Machine&) const;
  void fill(void* tuning, const Operation&, const Machine&, std::string_view scalar, index_t n, index_t count,
            std::string_view overrides) const;

  std::vector<Layer> layers_;
  std::shared_ptr<std::atomic<bool>> told_ = std::make_shared<std::atomic<bool>>(false);
};

/// The rows of user_file, if it is not null or empty, and then those that were embedded at build time.
/// Throws InvalidArgument when the file cannot be read or a line of it is wrong.
Table load(const char* user_file, const std::string& what = "TRIFACTOR_TUNING: the tuning file");

/// Where trifactor tune writes and the library looks by itself: trifactor/tuning.txt in $XDG_CONFIG_HOME or ~/.config.
/// Empty where neither is known.
std::string home_file();

/// The rows in force, and the file that they come from beside those that are embedded.
struct Loaded {
  Table table;
  TuningFile file;
};
/// By the value of TRIFACTOR_TUNING. "off": no file. A name: load() of that file. Nothing: of home_file(), where there
/// is one; one that cannot be read or that has a wrong line is ignored, with one line on stderr.
Loaded load_for(const char* variable);

/// load_for() of the environment, at the first use. A failure is thrown again by every later use.
const Loaded& loaded();

/// The values of all fields of an operation in their order, as a call would find them; and those that no row sets.
std::vector<index_t> values_in_force(const Table&, const Operation&, const Machine&, std::string_view scalar, index_t n,
                                     index_t count);
std::vector<index_t> default_values(const Operation&);

/// The numbers for one call, as Table::find says.
template <class Tuning>
Tuning find(const Machine& machine, std::string_view scalar, index_t n, index_t count, std::string_view overrides) {
  return loaded().table.find<Tuning>(machine, scalar, n, count, overrides);
}

}  // namespace trifactor::tuning
