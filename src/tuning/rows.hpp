// Which row is in force for a call: the first that matches, most specific architecture first.
#pragma once

#include <trifactor/info.hpp>
#include <tuning/parse.hpp>

namespace trifactor::tuning {

struct TextFile {
  std::string name, text;
};

/// Rows in the order in which they are tried. Built once and then only read, so that threads share it.
class Table {
 public:
  /// Adds the rows of these files, to be tried after all that are there: every architecture of an earlier add comes
  /// before any of a later one. Throws InvalidArgument with file, line and rule.
  void add(std::span<const TextFile> files);

  /// The struct's defaults, then the row's fields, then the caller's. chain holds architectures, most specific first:
  /// {"sm_90", "cuda", "any"}; overrides is "nb=128 looking=left" (the last of two settings of a field counts).
  /// Throws InvalidArgument when overrides is wrong. Allocates nothing otherwise: it is on the path of every call.
  template <class Tuning>
  Tuning find(std::span<const std::string_view> chain, std::string_view scalar, index_t n, index_t count,
              std::string_view overrides) const {
    Tuning tuning;
    fill(&tuning, operation_of<Tuning>(), chain, scalar, n, count, overrides);
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

  const Row* match(const Operation&, std::span<const std::string_view> chain, std::string_view scalar, index_t n,
                   index_t count) const;
  void fill(void* tuning, const Operation&, std::span<const std::string_view> chain, std::string_view scalar, index_t n,
            index_t count, std::string_view overrides) const;

  std::vector<Layer> layers_;
};

/// The rows of user_file, if it is not null or empty, and then those that were embedded at build time.
/// Throws InvalidArgument when the file cannot be read or a line of it is wrong.
Table load(const char* user_file);

/// load() of the file that TRIFACTOR_TUNING names, at the first use. A failure is thrown again by every later use.
const Table& table();

/// The numbers for one call, as Table::find says.
template <class Tuning>
Tuning find(std::span<const std::string_view> chain, std::string_view scalar, index_t n, index_t count,
            std::string_view overrides) {
  return table().find<Tuning>(chain, scalar, n, count, overrides);
}

}  // namespace trifactor::tuning
