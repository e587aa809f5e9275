#include <tuning/fields.hpp>

namespace trifactor::tuning {

namespace {

using core::CholeskyTuning, core::Looking, core::LuTuning, core::SolveTuning, core::SparseTuning,
    core::TileForm, core::ValueTuning;

template <auto member> struct Setter;
template <class Tuning, class Value, Value Tuning::*member>
struct Setter<member> {
  static void set(void* tuning, index_t value) { static_cast<Tuning*>(tuning)->*member = static_cast<Value>(value); }
};

// The largest of each kind. Drivers and engines compute with them without overflow, in int where sizes are int.
constexpr index_t order = 2147483647;         // rows, columns, right-hand sides, as everywhere
constexpr index_t percent = 100;
constexpr index_t entries = 1000000000000;    // of all items of a batch, of a front
constexpr index_t flops = 1000000000000000;   // compared in double

template <auto member>
constexpr Field number(std::string_view name, index_t min_value, index_t max_value) {
  return {name, min_value, max_value, {}, &Setter<member>::set};
}
template <auto member>
constexpr Field choice(std::string_view name, std::span<const std::string_view> words) {
  return {name, 0, index_t(words.size()) - 1, words, &Setter<member>::set};
}

constexpr std::string_view looking_words[] = {"left", "right"};
static_assert(int(Looking::Left) == 0 && int(Looking::Right) == 1, "looking_words are in the order of the enum");
constexpr std::string_view tile_words[] = {"inclusive", "exclusive"};
static_assert(int(TileForm::Inclusive) == 0 && int(TileForm::Exclusive) == 1, "tile_words are in the order of the enum");

constexpr Field cholesky_fields[] = {
    number<&CholeskyTuning::whole>("whole", 0, order),
    number<&CholeskyTuning::small>("small", 0, order),
    number<&CholeskyTuning::resident>("resident", 0, order),
    number<&CholeskyTuning::sorted>("sorted", 0, entries),
    number<&CholeskyTuning::order_per_item>("order_per_item", 1, order),
    number<&CholeskyTuning::fused>("fused", 0, order),
    number<&CholeskyTuning::persistent>("persistent", 0, order),
    number<&CholeskyTuning::macro_tiles>("macro_tiles", 0, order),
    number<&CholeskyTuning::band>("band", 1, order),
    number<&CholeskyTuning::realign>("realign", 0, order),
    number<&CholeskyTuning::interleaved>("interleaved", 0, order),
    number<&CholeskyTuning::nb>("nb", 1, order),
    number<&CholeskyTuning::leaf>("leaf", 1, order),
    choice<&CholeskyTuning::tile>("tile", tile_words),
    number<&CholeskyTuning::ib>("ib", 1, order),
    choice<&CholeskyTuning::looking>("looking", looking_words),
};
constexpr Field lu_fields[] = {
    number<&LuTuning::whole>("whole", 0, order),
    number<&LuTuning::nb>("nb", 1, order),
    number<&LuTuning::leaf>("leaf", 1, order),
};
constexpr Field solve_fields[] = {
    number<&SolveTuning::sweep_columns>("sweep_columns", 0, order),
    number<&SolveTuning::fused>("fused", 0, order),
    number<&SolveTuning::interleaved>("interleaved", 0, order),
    number<&SolveTuning::invert>("invert", 0, order),
    number<&SolveTuning::nb>("nb", 1, order),
    number<&SolveTuning::halve>("halve", 1, order),
    number<&SolveTuning::columns>("columns", 1, order),
};
constexpr Field value_fields[] = {
    number<&ValueTuning::gpu_from>("gpu_from", 0, order),
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
    number<&SparseTuning::alone>("alone", 0, order),
    number<&SparseTuning::alone_below>("alone_below", 0, order),
    number<&SparseTuning::alike>("alike", 2, order),
    number<&SparseTuning::at_once>("at_once", 1, 65536),
    number<&SparseTuning::leaf>("leaf", 1, order),
    number<&SparseTuning::strip>("strip", 1, 1048576),
    number<&SparseTuning::update_order>("update_order", 0, order),
    number<&SparseTuning::update_columns>("update_columns", 0, order),
    number<&SparseTuning::tiles_down>("tiles_down", 1, order),
    number<&SparseTuning::tile_least>("tile_least", 1, order),
    number<&SparseTuning::tile_most>("tile_most", 1, order),
    number<&SparseTuning::team>("team", 0, entries),
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

}  // namespace trifactor::tuning
