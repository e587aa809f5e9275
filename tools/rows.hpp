// Result rows of trifactor bench: one table for people, or one JSON object a line.
#pragma once

#include "table.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace program {

struct Row {
  std::string op, scalar, device, machine, mode;
  std::optional<std::string> method, kind, sizes, uplo, preset, tuning;  // where the operation has them
  std::int64_t n = 0, count = 1;
  std::optional<std::int64_t> m, ld, nrhs;             // m: rows, of a panel
  std::optional<std::string> looking;                  // of an update
  std::optional<std::int64_t> nb, first, leaf, ib;     // of an update and its one step; of a tile
  std::optional<std::string> form;                     // of a tile
  std::optional<std::string> matrix, phase, ordering;  // of a sparse factorization
  std::optional<std::int64_t> entries, factor_nonzeros, max_device_bytes;
  std::optional<double> memory, peer_memory, peer_residual;  // bytes, of all phases
  std::uint64_t seed = 0;

  double seconds = 0, spread = 0, flops = 0, columns = 0;  // of the whole call
  int runs = 0;
  std::optional<double> host_seconds;  // until the call returned, where it enqueues
  std::optional<double> joules;
  double energy_seconds = 0, peer_energy_seconds = 0;  // for which the sensors were watched; 0: joules are not known
  std::optional<std::string> peer;
  std::optional<double> peer_seconds, peer_spread, peer_joules;
  std::optional<double> residual;  // nothing where no result is made

  std::optional<double> bytes, copy_rate;  // of a batch: read and written once; of a copy, in a second

  // A batch of different sizes against the sum of fixed-size times per item, and its largest item alone.
  std::optional<double> fixed_sum_seconds, largest_seconds;
};

/// A column of the table and what a row shows there.
struct TableField {
  Table::Column column;
  std::string (*cell)(const Row&);
};

/// Prints rows as they arrive.
class RowPrinter {
 public:
  enum class Columns { Dense, Panel, Swap, Solve, Batch, SolveBatch, Ragged, Update, Tile, Sparse };

  /// matrix_width: of the longest name of a sparse matrix.
  RowPrinter(bool json, Columns columns, std::size_t matrix_width = 0);
  void print(const Row&);

 private:
  bool json_, started_ = false;
  Columns columns_;
  std::vector<TableField> fields_;
  Table table_;
};

}  // namespace program
