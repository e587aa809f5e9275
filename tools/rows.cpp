#include "rows.hpp"

#include <commit.hpp>
#include <nlohmann/json.hpp>

namespace program {
namespace {

using Columns = RowPrinter::Columns;

std::vector<Table::Column> table_columns(Columns columns) {
  std::vector<Table::Column> c = {{"op", 8, true}, {"scalar", 6, true}, {"n", 6}};
  if (columns == Columns::Solve) c.push_back({"rhs", 5});
  if (columns == Columns::Batch || columns == Columns::Ragged) c.insert(c.end(), {{"count", 7}, {"kind", 8, true}});
  c.insert(c.end(), {{"device", 6, true},
                     {"mode", 6, true},
                     {"ms", 10},
                     {"spread %", 8},
                     {"Gflop/s", 9},
                     {"us/column", 9},
                     {"peer", 8, true},
                     {"peer ms", 10},
                     {"ratio", 6},
                     {"residual", 8},
                     {"joules", 8}});
  if (columns == Columns::Ragged) c.insert(c.end(), {{"fixed-size sum ms", 17}, {"ratio to it", 11}});
  return c;
}

template <class Value>
std::string cell(const char* format, const std::optional<Value>& value) {
  return value ? fmt::format(fmt::runtime(format), *value) : "-";
}

std::optional<double> scaled(const std::optional<double>& value, double factor) {
  return value ? std::optional(*value * factor) : std::nullopt;
}

std::optional<double> quotient(const std::optional<double>& over, double under) {
  return over && under > 0 ? std::optional(*over / under) : std::nullopt;
}

template <class Value>
nlohmann::ordered_json or_null(const std::optional<Value>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}

double gflops(const Row& r) { return r.seconds > 0 ? r.flops / r.seconds * 1e-9 : 0; }
double us_per_column(const Row& r) { return r.columns > 0 ? r.seconds / r.columns * 1e6 : 0; }

void print_json(const Row& r, bool ragged) {
  nlohmann::ordered_json j = {{"op", r.op},
                              {"scalar", r.scalar},
                              {"n", r.n},
                              {"count", r.count},
                              {"nrhs", or_null(r.nrhs)},
                              {"method", or_null(r.method)},
                              {"kind", or_null(r.kind)},
                              {"uplo", or_null(r.uplo)},
                              {"device", r.device},
                              {"machine", r.machine},
                              {"mode", r.mode},
                              {"tuning", or_null(r.tuning)},
                              {"seconds", r.seconds},
                              {"spread", r.spread},
                              {"runs", r.runs},
                              {"gflops", gflops(r)},
                              {"us_per_column", us_per_column(r)},
                              {"peer", or_null(r.peer)},
                              {"peer_seconds", or_null(r.peer_seconds)},
                              {"peer_spread", or_null(r.peer_spread)},
                              {"ratio", or_null(quotient(r.peer_seconds, r.seconds))},
                              {"residual", r.residual},
                              {"joules", or_null(r.joules)},
                              {"peer_joules", or_null(r.peer_joules)}};
  if (ragged)
    j.update({{"fixed_sum_seconds", or_null(r.fixed_sum_seconds)},
              {"fixed_ratio", or_null(quotient(r.fixed_sum_seconds, r.seconds))},
              {"largest_seconds", or_null(r.largest_seconds)}});
  j.update({{"seed", r.seed}, {"commit", TRIFACTOR_COMMIT}});
  fmt::print("{}\n", j.dump());
  std::fflush(stdout);
}

}  // namespace

RowPrinter::RowPrinter(bool json, Columns columns) : json_(json), columns_(columns), table_(table_columns(columns)) {}

void RowPrinter::print(const Row& r) {
  if (json_) return print_json(r, columns_ == Columns::Ragged);
  if (!started_) {
    fmt::print("{}, commit {}\n", r.machine, TRIFACTOR_COMMIT);
    table_.heading();
    started_ = true;
  }
  std::vector<std::string> cells = {r.op, r.scalar, fmt::format("{}", r.n)};
  if (columns_ == Columns::Solve) cells.push_back(cell("{}", r.nrhs));
  if (columns_ == Columns::Batch || columns_ == Columns::Ragged)
    cells.insert(cells.end(), {fmt::format("{}", r.count), cell("{}", r.kind)});
  cells.insert(cells.end(),
               {r.device, r.mode, fmt::format("{:.4f}", r.seconds * 1e3), fmt::format("{:.1f}", r.spread * 100),
                fmt::format("{:.2f}", gflops(r)), fmt::format("{:.4f}", us_per_column(r)), cell("{}", r.peer),
                cell("{:.4f}", scaled(r.peer_seconds, 1e3)), cell("{:.3f}", quotient(r.peer_seconds, r.seconds)),
                fmt::format("{:.3g}", r.residual), cell("{:.3g}", r.joules)});
  if (columns_ == Columns::Ragged)
    cells.insert(cells.end(), {cell("{:.4f}", scaled(r.fixed_sum_seconds, 1e3)),
                               cell("{:.3f}", quotient(r.fixed_sum_seconds, r.seconds))});
  table_.row(cells);
}

}  // namespace program
