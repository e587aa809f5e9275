#include "rows.hpp"

#include "printable.hpp"
#include "standard_streams.hpp"
#include "step.hpp"

#include <commit.hpp>
#include <nlohmann/json.hpp>
#include <trifactor/info.hpp>

namespace program {
namespace {

using Columns = RowPrinter::Columns;

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
/// Gflop/s for each watt, which is Gflop for each joule.
std::optional<double> gflops_per_watt(const Row& r, const std::optional<double>& joules) {
  return joules && *joules > 0 ? std::optional(r.flops / *joules * 1e-9) : std::nullopt;
}
/// Bytes in a second, as a part of what a copy moves.
std::optional<double> part_of_copy(const Row& r) {
  return r.bytes && r.copy_rate && r.seconds > 0 ? std::optional(*r.bytes / r.seconds / *r.copy_rate) : std::nullopt;
}
double us_per_column(const Row& r) { return r.columns > 0 ? r.seconds / r.columns * 1e6 : 0; }

std::vector<TableField> table_fields(Columns columns, std::size_t matrix_width) {
  using R = const Row&;
  const bool batch = columns == Columns::Batch || columns == Columns::SolveBatch || columns == Columns::Ragged;
  const bool part = columns == Columns::Update || columns == Columns::Tile;  // of a factorization: it has no peer
  const bool swap = columns == Columns::Swap;                                // it has no arithmetic
  if (columns == Columns::Sparse)
    return {{{"matrix", matrix_width, true}, [](R r) { return printable(r.matrix.value_or("-")); }},
            {{"scalar", 6, true}, [](R r) { return r.scalar; }},
            {{"n", 8}, [](R r) { return fmt::format("{}", r.n); }},
            {{"nnz(L)", 10}, [](R r) { return cell("{}", r.factor_nonzeros); }},
            {{"ordering", 8, true}, [](R r) { return cell("{}", r.ordering); }},
            {{"phase", 9, true}, [](R r) { return cell("{}", r.phase); }},
            {{"count", 5}, [](R r) { return fmt::format("{}", r.count); }},
            {{"rhs", 4}, [](R r) { return r.phase == "solve" ? cell("{}", r.nrhs) : "-"; }},
            {{"seconds", 10}, [](R r) { return fmt::format("{:.6f}", r.seconds); }},
            {{"spread %", 8}, [](R r) { return fmt::format("{:.1f}", r.spread * 100); }},
            {{"Gflop/s", 8}, [](R r) { return r.flops > 0 ? fmt::format("{:.2f}", gflops(r)) : "-"; }},
            {{"peer", 13, true}, [](R r) { return cell("{}", r.peer); }},
            {{"peer seconds", 12}, [](R r) { return cell("{:.6f}", r.peer_seconds); }},
            {{"spread %", 8}, [](R r) { return cell("{:.1f}", scaled(r.peer_spread, 100)); }},
            {{"ratio", 8}, [](R r) { return cell("{:.3f}", quotient(r.peer_seconds, r.seconds)); }},
            {{"residual", 8}, [](R r) { return cell("{:.3g}", r.residual); }},
            {{"joules", 8}, [](R r) { return cell("{:.3g}", r.joules); }}};
  std::vector<TableField> f = {{{"op", 8, true}, [](R r) { return r.op; }},
                               {{"scalar", 6, true}, [](R r) { return r.scalar; }}};
  const auto add = [&](bool wanted, std::initializer_list<TableField> fields) {
    if (wanted) f.insert(f.end(), fields);
  };
  add(columns == Columns::Panel || swap, {{{"m", 6}, [](R r) { return cell("{}", r.m); }}});
  add(true, {{{"n", 6}, [](R r) { return fmt::format("{}", r.n); }}});
  add(swap, {{{"nb", 5}, [](R r) { return cell("{}", r.nb); }}});
  add(columns == Columns::Solve || columns == Columns::SolveBatch,
      {{{"rhs", 5}, [](R r) { return cell("{}", r.nrhs); }}});
  add(batch, {{{"count", 7}, [](R r) { return fmt::format("{}", r.count); }},
              {{"kind", 8, true}, [](R r) { return cell("{}", r.kind); }}});
  add(columns == Columns::Update, {{{"looking", 7, true}, [](R r) { return cell("{}", r.looking); }},
                                   {{"nb", 5}, [](R r) { return cell("{}", r.nb); }},
                                   {{"from", 6}, [](R r) { return cell("{}", r.first); }}});
  add(columns == Columns::Tile, {{{"leaf", 6}, [](R r) { return cell("{}", r.leaf); }},
                                 {{"form", 9, true}, [](R r) { return cell("{}", r.form); }},
                                 {{"ib", 4}, [](R r) { return cell("{}", r.ib); }}});
  add(true, {{{"device", 6, true}, [](R r) { return r.device; }},
             {{"mode", 12, true}, [](R r) { return r.mode; }},
             {{"ms", 10}, [](R r) { return fmt::format("{:.4f}", r.seconds * 1e3); }},
             {{"spread %", 8}, [](R r) { return fmt::format("{:.1f}", r.spread * 100); }}});
  add(columns == Columns::Update, {{{"Tflop/s", 9}, [](R r) { return fmt::format("{:.4f}", gflops(r) * 1e-3); }}});
  add(columns != Columns::Update && !swap,
      {{{"Gflop/s", 9}, [](R r) { return fmt::format("{:.2f}", gflops(r)); }},
       {{"us/column", 9}, [](R r) { return fmt::format("{:.4f}", us_per_column(r)); }}});
  add(batch, {{{"host us", 7}, [](R r) { return cell("{:.1f}", scaled(r.host_seconds, 1e6)); }}});
  add(batch || swap, {{{"of copy %", 9}, [](R r) { return cell("{:.1f}", scaled(part_of_copy(r), 100)); }}});
  add(!part, {{{"peer", 8, true}, [](R r) { return cell("{}", r.peer); }},
              {{"peer ms", 10}, [](R r) { return cell("{:.4f}", scaled(r.peer_seconds, 1e3)); }},
              {{"ratio", 8}, [](R r) { return cell("{:.3f}", quotient(r.peer_seconds, r.seconds)); }}});
  add(columns != Columns::Update, {{{"residual", 8}, [](R r) { return cell("{:.3g}", r.residual); }}});
  add(true, {{{"joules", 8}, [](R r) { return cell("{:.3g}", r.joules); }}});
  add(!swap, {{{"Gflop/s/W", 9}, [](R r) { return cell("{:.2f}", gflops_per_watt(r, r.joules)); }}});
  add(!part && !swap, {{{"peer's", 6}, [](R r) { return cell("{:.2f}", gflops_per_watt(r, r.peer_joules)); }}});
  add(columns == Columns::Ragged,
      {{{"fixed-size sum ms", 17}, [](R r) { return cell("{:.4f}", scaled(r.fixed_sum_seconds, 1e3)); }},
       {{"ratio to it", 11}, [](R r) { return cell("{:.3f}", quotient(r.fixed_sum_seconds, r.seconds)); }}});
  add(part || batch, {{{"tuning", 0, true}, [](R r) { return cell("{}", r.tuning); }}});
  return f;
}

std::vector<Table::Column> columns_of(const std::vector<TableField>& fields) {
  std::vector<Table::Column> columns;
  for (const TableField& f : fields) columns.push_back(f.column);
  return columns;
}

void print_json(const Row& r, bool ragged) {
  nlohmann::ordered_json j = {{"op", r.op},
                              {"scalar", r.scalar},
                              {"m", or_null(r.m)},
                              {"n", r.n},
                              {"ld", or_null(r.ld)},
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
                              {"host_us", or_null(scaled(r.host_seconds, 1e6))},
                              {"runs", r.runs},
                              {"gflops", gflops(r)},
                              {"us_per_column", us_per_column(r)},
                              {"peer", or_null(r.peer)},
                              {"peer_seconds", or_null(r.peer_seconds)},
                              {"peer_spread", or_null(r.peer_spread)},
                              {"ratio", or_null(quotient(r.peer_seconds, r.seconds))},
                              {"residual", or_null(r.residual)},
                              {"joules", or_null(r.joules)},
                              {"peer_joules", or_null(r.peer_joules)},
                              {"gflops_per_watt", or_null(gflops_per_watt(r, r.joules))},
                              {"peer_gflops_per_watt", or_null(gflops_per_watt(r, r.peer_joules))},
                              {"energy_seconds", r.energy_seconds},
                              {"peer_energy_seconds", r.peer_energy_seconds}};
  if (r.preset) j.update({{"preset", *r.preset}});
  if (const auto file = trifactor::tuning_file(); !file.name.empty() && file.ignored.empty())
    j.update({{"tuning_file", file.name}});
  if (r.looking) j.update({{"looking", *r.looking}, {"nb", or_null(r.nb)}, {"first", or_null(r.first)}});
  if (r.nb && !r.looking) j.update({{"nb", *r.nb}});
  if (r.leaf) j.update({{"leaf", *r.leaf}, {"form", or_null(r.form)}, {"ib", or_null(r.ib)}});
  if (r.bytes)
    j.update({{"bytes", *r.bytes}, {"copy_rate", or_null(r.copy_rate)}, {"part_of_copy", or_null(part_of_copy(r))}});
  if (r.phase)
    j.update({{"matrix", or_null(r.matrix)},
              {"phase", *r.phase},
              {"ordering", or_null(r.ordering)},
              {"max_device_bytes", or_null(r.max_device_bytes)},
              {"entries", or_null(r.entries)},
              {"factor_nonzeros", or_null(r.factor_nonzeros)},
              {"memory_bytes", or_null(r.memory)},
              {"peer_memory_bytes", or_null(r.peer_memory)},
              {"peer_residual", or_null(r.peer_residual)}});
  if (ragged)
    j.update({{"sizes", or_null(r.sizes)},
              {"fixed_sum_seconds", or_null(r.fixed_sum_seconds)},
              {"fixed_ratio", or_null(quotient(r.fixed_sum_seconds, r.seconds))},
              {"largest_seconds", or_null(r.largest_seconds)}});
  j.update({{"seed", r.seed}, {"commit", TRIFACTOR_COMMIT}});
  fmt::print("{}\n", json_text(j));
}

}  // namespace

RowPrinter::RowPrinter(bool json, Columns columns, std::size_t matrix_width)
    : json_(json), columns_(columns), fields_(table_fields(columns, matrix_width)), table_(columns_of(fields_)) {}

void RowPrinter::print(const Row& r) {
  const StepsHidden hidden;
  if (json_) {
    print_json(r, columns_ == Columns::Ragged);
  } else {
    if (!started_) {
      fmt::print("{}, commit {}\n", r.machine, TRIFACTOR_COMMIT);
      table_.heading();
      started_ = true;
    }
    std::vector<std::string> cells;
    for (const TableField& field : fields_) cells.push_back(field.cell(r));
    table_.row(cells);
  }
  require_standard_output();
}

}  // namespace program
