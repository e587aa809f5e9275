#include <tuning/fields.hpp>

namespace trifactor::tuning {

namespace {

using core::CholeskyTuning, core::Looking, core::LuTuning, core::SolveTuning, core::SparseTuning,
    core::TileForm, core::ValueTuning;

template <auto member>
struct Member;
template <class Tuning, class Value, Value Tuning::*member>
struct Member<member> {
  static void set(void* tuning, index_t value) { static_cast<Tuning*>(tuning)->*member = static_cast<Value>(value); }
  static index_t get(const void* tuning) { return static_cast<index_t>(static_cast<const Tuning*>(tuning)->*member); }
};

// The largest of each kind. Drivers and engines compute with them without overflow, in int where sizes are int.
constexpr index_t order = 2147483647;         // rows, columns, right-hand sides, as everywhere
constexpr index_t percent = 100;
constexpr index_t entries = 1000000000000;    // of all items of a batch, of a front
constexpr index_t flops = 1000000000000000;   // compared in double

// What trifactor tune tries. A row is for a range of orders, so a crossover is on or off in it.
using Calls = Candidates::Calls;
constexpr index_t crossover[] = {0, order}, crossover_of_entries[] = {1, entries}, crossover_of_copies[] = {1, order};
constexpr index_t two_words[] = {0, 1};
constexpr index_t widths[] = {16, 32, 64, 128, 256, 512, 1024, 2048}, step_widths[] = {16, 32, 64, 128};
constexpr index_t bands[] = {1, 2, 4, 8}, orders_per_item[] = {8, 10, 12, 16, 20, 24, 32, 40, 64};
constexpr index_t sides[] = {0, 1, 4, 8, 16, 32, 64, 128}, sides_at_once[] = {8, 16, 32, 64, 128}, sweeps[] = {0, 16, 32, 64, 128, 512};
constexpr index_t solve_rows[] = {64, 128, 256, 512}, halved[] = {512, 1024, 2048, 4096, order};
constexpr index_t inverse_columns[] = {128, 256, 512, 1024, 2048};
constexpr index_t front_columns[] = {64, 128, 256, 512, 1024}, front_rows[] = {256, 512, 1024, 2048, 4096};
constexpr index_t front_counts[] = {0, 32, 128, 256, 1024};
constexpr index_t factors[] = {2, 4, 8}, leaves[] = {16, 32, 48, 64, 96, 128}, strips[] = {32, 64, 128, 256, 512};
constexpr index_t update_orders[] = {0, 16, 64, 128, 256, 512}, update_widths[] = {0, 8, 16, 32, 64};
constexpr index_t tiles[] = {8, 16, 24, 32}, small_edges[] = {32, 64, 96, 128}, large_edges[] = {128, 192, 256, 384};
constexpr index_t team_entries[] = {10000, 100000, 1000000};
constexpr index_t sides_factored[] = {0, 64};
constexpr Candidates none = {}, blocked = {widths, Calls::Any, 17}, steps = {step_widths, Calls::Any, 17},
                     either = {two_words, Calls::Any, 17}, inverses = {inverse_columns, Calls::One, 65},
                     in_batches = {sides, Calls::Many, 0, 512}, solved_with = {sides_factored, Calls::Many, 0, 256};

template <auto member>
constexpr Field number(std::string_view name, index_t min_value, index_t max_value, Candidates host = none,
                       Candidates cuda = none) {
  return {name, min_value, max_value, {}, &Member<member>::set, &Member<member>::get, host, cuda};
}
template <auto member>
constexpr Field choice(std::string_view name, std::span<const std::string_view> words, Candidates host,
                       Candidates cuda) {
  return {name, 0, index_t(words.size()) - 1, words, &Member<member>::set, &Member<member>::get, host, cuda};
}

constexpr std::string_view looking_words[] = {"left", "right"};
static_assert(int(Looking::Left) == 0 && int(Looking::Right) == 1, "looking_words are in the order of the enum");
constexpr std::string_view tile_words[] = {"inclusive", "exclusive"};
static_assert(int(TileForm::Inclusive) == 0 && int(TileForm::Exclusive) == 1, "tile_words are in the order of the enum");

constexpr Field cholesky_fields[] = {
    number<&CholeskyTuning::whole>("whole", 0, order, {crossover}, {crossover, Calls::Any, 0, 1024}),
    number<&CholeskyTuning::small>("small", 0, order, none, {crossover, Calls::Many, 0, 16}),
    number<&CholeskyTuning::resident>("resident", 0, order, none, {crossover, Calls::Many, 17, 512}),
    number<&CholeskyTuning::sorted>("sorted", 0, entries, none, {crossover_of_entries, Calls::Many, 17}),
    number<&CholeskyTuning::order_per_item>("order_per_item", 1, order, none, {orders_per_item, Calls::Many, 161}),
    number<&CholeskyTuning::fused>("fused", 0, order, solved_with, solved_with),
    number<&CholeskyTuning::persistent>("persistent", 0, order, none, {crossover}),
    number<&CholeskyTuning::macro_tiles>("macro_tiles", 0, order, none, {crossover, Calls::One, 1024}),
    number<&CholeskyTuning::band>("band", 1, order, none, {bands, Calls::One, 4096}),
    number<&CholeskyTuning::realign>("realign", 0, order),
    number<&CholeskyTuning::interleaved>("interleaved", 0, order, {crossover, Calls::Many}),
    number<&CholeskyTuning::nb>("nb", 1, order, blocked, blocked),
    number<&CholeskyTuning::leaf>("leaf", 1, order, blocked, blocked),
    choice<&CholeskyTuning::tile>("tile", tile_words, none, either),
    number<&CholeskyTuning::ib>("ib", 1, order, none, steps),
    choice<&CholeskyTuning::looking>("looking", looking_words, either, either),
};
constexpr Field lu_fields[] = {
    number<&LuTuning::whole>("whole", 0, order, {crossover}, {crossover, Calls::Any, 0, 1024}),
    number<&LuTuning::interleaved>("interleaved", 0, order, {crossover, Calls::Many}),
    number<&LuTuning::nb>("nb", 1, order, blocked, blocked),
    number<&LuTuning::leaf>("leaf", 1, order, blocked, blocked),
    number<&LuTuning::by_rows>("by_rows", 1, order, none, {crossover_of_copies, Calls::One, 2048}),
    number<&LuTuning::tall>("tall", 1, order),
};
constexpr Field solve_fields[] = {
    number<&SolveTuning::sweep_columns>("sweep_columns", 0, order, none, {sides, Calls::One, 65}),
    number<&SolveTuning::sweep_groups>("sweep_groups", 0, order, none, {sweeps, Calls::Many, 65, 4096}),
    number<&SolveTuning::fused>("fused", 0, order, in_batches, in_batches),
    number<&SolveTuning::interleaved>("interleaved", 0, order, {crossover, Calls::Many}),
    number<&SolveTuning::invert>("invert", 0, order, none, {crossover, Calls::One, 65}),
    number<&SolveTuning::nb>("nb", 1, order, none, {solve_rows, Calls::One, 65}),
    number<&SolveTuning::halve>("halve", 1, order, none, {halved, Calls::One, 512}),
    number<&SolveTuning::columns>("columns", 1, order, inverses, inverses),
};
constexpr Field value_fields[] = {
    number<&ValueTuning::gpu_from>("gpu_from", 0, order, none, {crossover, Calls::One}),
    number<&ValueTuning::gpu_mflops>("gpu_mflops", 0, order),
};

constexpr Field sparse_fields[] = {
    number<&SparseTuning::flops_per_ns>("flops_per_ns", 1, 1000000),
    number<&SparseTuning::nonzero_ns>("nonzero_ns", 0, 1000000),
    number<&SparseTuning::metis_node_ns>("metis_node_ns", 0, 1000000000),
    number<&SparseTuning::metis_entry_ns>("metis_entry_ns", 0, 1000000000),
    number<&SparseTuning::tree_ns>("tree_ns", 0, 1000000),
    number<&SparseTuning::metis_gain>("metis_gain", 0, percent),
    number<&SparseTuning::tiny>("tiny", 0, order),
    number<&SparseTuning::narrow>("narrow", 0, order),
    number<&SparseTuning::narrow_zeros>("narrow_zeros", 0, percent),
    number<&SparseTuning::medium>("medium", 0, order),
    number<&SparseTuning::medium_zeros>("medium_zeros", 0, percent),
    number<&SparseTuning::wide_zeros>("wide_zeros", 0, percent),
    number<&SparseTuning::levels>("levels", 0, 1),
    number<&SparseTuning::alone>("alone", 0, order, none, {front_columns}),
    number<&SparseTuning::alone_below>("alone_below", 0, order, none, {front_rows}),
    number<&SparseTuning::alike>("alike", 2, order, none, {factors}),
    number<&SparseTuning::few>("few", 0, order, none, {front_counts}),
    number<&SparseTuning::widest>("widest", 64, order),
    number<&SparseTuning::spare_percent>("spare_percent", 0, 1000),
    number<&SparseTuning::host_percent>("host_percent", 0, percent),
    number<&SparseTuning::level_ns>("level_ns", 0, 1000000000),
    number<&SparseTuning::column_ns>("column_ns", 0, 1000000000),
    number<&SparseTuning::entry_ps>("entry_ps", 0, 1000000000),
    number<&SparseTuning::gpu_flops_per_ns>("gpu_flops_per_ns", 1, 1000000000),
    number<&SparseTuning::at_once>("at_once", 1, 65536, {sides_at_once}, {sides_at_once}),
    number<&SparseTuning::leaf>("leaf", 1, order, {leaves}),
    number<&SparseTuning::strip>("strip", 1, 1048576, {strips}),
    number<&SparseTuning::update_order>("update_order", 0, order, {update_orders}),
    number<&SparseTuning::update_columns>("update_columns", 0, order, {update_widths}),
    number<&SparseTuning::tiles_down>("tiles_down", 1, order, {tiles}),
    number<&SparseTuning::tile_least>("tile_least", 1, order, {small_edges}),
    number<&SparseTuning::tile_most>("tile_most", 1, order, {large_edges}),
    number<&SparseTuning::team>("team", 0, entries, {team_entries}),
    number<&SparseTuning::entry_cost>("entry_cost", 0, 1000000),
    number<&SparseTuning::front_cost>("front_cost", 0, flops),
    number<&SparseTuning::task_cost>("task_cost", 0, flops),
    number<&SparseTuning::shared_speed>("shared_speed", 1, percent),
    number<&SparseTuning::branch_cost>("branch_cost", 0, flops),
    number<&SparseTuning::most_updates>("most_updates", 0, 10000),
};

constexpr Operation all[] = {{"cholesky", cholesky_fields},
                             {"lu", lu_fields},
                             {"solve", solve_fields},
                             {"value", value_fields},
                             {"sparse", sparse_fields}};

}  // namespace

template <> const Operation& operation_of<CholeskyTuning>() { return all[0]; }
template <> const Operation& operation_of<LuTuning>() { return all[1]; }
template <> const Operation& operation_of<SolveTuning>() { return all[2]; }
template <> const Operation& operation_of<ValueTuning>() { return all[3]; }
template <> const Operation& operation_of<SparseTuning>() { return all[4]; }

std::span<const Operation> operations() { return all; }

std::string Field::text(index_t value) const {
  return std::string(name) + '=' + (words.empty() ? std::to_string(value) : std::string(words[std::size_t(value)]));
}

}  // namespace trifactor::tuning
