// trifactor analyze: what the factorization of a sparse matrix will cost, before it is done.
#include "commands.hpp"
#include "failure.hpp"
#include "file_use.hpp"
#include "generate.hpp"
#include "input_file.hpp"
#include "memory.hpp"
#include "new_file.hpp"
#include "printable.hpp"
#include "scalars.hpp"
#include "sparse_matrix.hpp"
#include "step.hpp"
#include "table.hpp"
#include "tree_picture.hpp"

#include <commit.hpp>
#include <nlohmann/json.hpp>
#include <trifactor/info.hpp>

#include <algorithm>
#include <memory>

namespace program {
namespace {

using nlohmann::ordered_json;
using trifactor::SparsePlan;

/// A level of the tree: independent fronts, and the dense operations on them.
struct Level {
  index_t fronts = 0, columns = 0;
  index_t operations = 0;  // potrf, and where rows lie below, trsm and syrk
  index_t widest = 0, tallest = 0;
  double flops = 0;
};

std::vector<Level> levels_of(const SparsePlan& plan) {
  std::vector<Level> levels(std::size_t(plan.levels()));
  for (index_t s = 0; s < plan.fronts(); ++s) {
    const SparsePlan::Front front = plan.front(s);
    Level& level = levels[std::size_t(front.level)];
    ++level.fronts;
    level.columns += front.columns;
    level.operations += front.rows > front.columns ? 3 : 1;
    level.widest = std::max(level.widest, front.columns);
    level.tallest = std::max(level.tallest, front.rows);
    level.flops += front.flops;
  }
  return levels;
}

/// What is alive in each phase, in bytes.
struct Phase {
  const char *name, *what;
  double bytes;
};

/// What a device takes; of a factor that does not fit, what passes through the device, and what lies on the host.
template <class T>
void add_cuda_phases(const SparsePlan& plan, std::vector<Phase>& phases) try {
  auto queue = trifactor::Queue::cuda();
  const trifactor::SparseMemory memory = trifactor::SparseCholesky<T>::memory(queue, plan);
  phases.push_back({"cuda", "of a device: factor, lists and update matrices", double(memory.total())});
  if (memory.host > 0)
    phases.push_back({"cuda_host", "of the host: the factor, which passes through the device", double(memory.host)});
} catch (const trifactor::OutOfMemory& needed) {
  phases.push_back({"cuda", "of a device at least, which is more than is free", double(needed.bytes())});
}

template <class T>
std::vector<Phase> phases_of(const SparsePlan& plan, const SparseMatrix<T>& A) {
  const double plan_bytes = double(plan.plan_bytes());
  const double matrix = double(A.entries()) * (sizeof(index_t) + sizeof(T)) + double(A.n + 1) * sizeof(index_t);
  std::vector<Phase> phases = {{"matrix", "rows, columns and values of the triangle", matrix},
                               {"plan", "permutation, fronts, places of the entries", plan_bytes}};
  if constexpr (in_build<T>) {  // what the library can factor
    auto host = trifactor::Queue::host();
    const double on_host = plan_bytes + double(trifactor::SparseCholesky<T>::memory(host, plan).total());
    phases.push_back(
        {"factor", "plan, factor, lists and the update matrices alive at once, with all threads", on_host});
    phases.push_back({"solve", "the same and one right-hand side", on_host + double(A.n) * sizeof(T)});
    if (trifactor::why_no_cuda().empty()) add_cuda_phases<T>(plan, phases);
  }
  return phases;
}

double share(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

/// "12.3 M"
std::string readable(double number) {
  const char* const units[] = {"", " k", " M", " G", " T", " P", " E"};
  int unit = 0;
  for (; number >= 1000 && unit < 6; ++unit) number /= 1000;
  return unit == 0 ? fmt::format("{:.0f}", number) : fmt::format("{:.3g}{}", number, units[unit]);
}

template <class T>
void print_text(const AnalyzeOptions& o, const SparsePlan& plan, const SparseMatrix<T>& A, double seconds) {
  const auto line = [](const char* label, const std::string& text) { fmt::print("{:<10}{}\n", label, text); };
  line("matrix",
       fmt::format("{}: {} x {}, {} entries of the lower triangle", shown_input(o.matrix), A.n, A.n, A.entries()));
  if (A.evened) line("symmetry", A.evened.text());
  line("ordering", fmt::format("{}{}", name_of(plan.ordering()), o.ordering == "auto" ? ", chosen" : ", as asked"));
  if (!plan.note().empty()) line("", plan.note());
  line("fill",
       fmt::format("{} nonzeros in L, {:.1f} times the triangle of A; {} with the zeros that fronts store",
                   plan.factor_nonzeros(), A.entries() > 0 ? double(plan.factor_nonzeros()) / double(A.entries()) : 0,
                   plan.factor_entries()));
  line("flops", fmt::format("{}; {} with those zeros", readable(plan.flops()), readable(plan.front_flops())));
  line("fronts", fmt::format("{} in {} levels", plan.fronts(), plan.levels()));

  const auto levels = levels_of(plan);
  double all = 0;
  for (const Level& level : levels) all += level.flops;
  fmt::print("\nLevels, leaves first; the fronts of one are independent:\n");
  const Table by_level({{"level"},
                        {"fronts", 8},
                        {"operations"},
                        {"columns", 9},
                        {"widest"},
                        {"most rows"},
                        {"Mflop", 12},
                        {"share %"}});
  by_level.heading();
  for (std::size_t l = 0; l < levels.size(); ++l)
    by_level.row({fmt::format("{}", l), fmt::format("{}", levels[l].fronts), fmt::format("{}", levels[l].operations),
                  fmt::format("{}", levels[l].columns), fmt::format("{}", levels[l].widest),
                  fmt::format("{}", levels[l].tallest), fmt::format("{:.3f}", levels[l].flops * 1e-6),
                  fmt::format("{:.1f}", share(levels[l].flops, all))});

  fmt::print("\nInner dimension k of the updates, which is the number of columns of a front:\n");
  const Table by_width(
      {{"k", 13}, {"fronts", 8}, {"Mflop", 12}, {"share %"}, {"fronts up to here %"}, {"flops up to here %"}});
  by_width.heading();
  double fronts = 0, flops = 0;
  for (const SparsePlan::WidthBin& bin : plan.width_histogram()) {
    fronts += double(bin.fronts), flops += bin.flops;
    by_width.row({bin.from == bin.to ? fmt::format("{}", bin.from) : fmt::format("{}-{}", bin.from, bin.to),
                  fmt::format("{}", bin.fronts), fmt::format("{:.3f}", bin.flops * 1e-6),
                  fmt::format("{:.1f}", share(bin.flops, all)),
                  fmt::format("{:.1f}", share(fronts, double(plan.fronts()))),
                  fmt::format("{:.1f}", share(flops, all))});
  }

  fmt::print("\nMemory by phase:\n");
  std::vector<std::vector<std::string>> rows;
  for (const Phase& phase : phases_of(plan, A))
    rows.push_back({phase.name, fmt::format("{:.3f}", phase.bytes / double(1 << 20)), phase.what});
  print_table({"phase", "MiB", "what"}, rows);

  fmt::print("\nTime by step:\n");
  const Table by_step({{"step", 10, true}, {"seconds", 10}, {"share %"}});
  by_step.heading();
  for (const SparsePlan::Step& step : plan.steps())
    by_step.row({step.name, fmt::format("{:.4f}", step.seconds), fmt::format("{:.1f}", share(step.seconds, seconds))});
  by_step.row({"all", fmt::format("{:.4f}", seconds), "100.0"});
}

template <class T>
void print_json(const AnalyzeOptions& o, const SparsePlan& plan, const SparseMatrix<T>& A, double seconds) {
  ordered_json levels = ordered_json::array(), widths = ordered_json::array(), steps = ordered_json::object(),
               memory = ordered_json::object();
  for (const Level& level : levels_of(plan))
    levels.push_back({{"fronts", level.fronts},
                      {"operations", level.operations},
                      {"columns", level.columns},
                      {"widest", level.widest},
                      {"most_rows", level.tallest},
                      {"flops", level.flops}});
  for (const SparsePlan::WidthBin& bin : plan.width_histogram())
    widths.push_back({{"from", bin.from}, {"to", bin.to}, {"fronts", bin.fronts}, {"flops", bin.flops}});
  for (const SparsePlan::Step& step : plan.steps()) steps[step.name] = steps.value(step.name, 0.0) + step.seconds;
  for (const Phase& phase : phases_of(plan, A)) memory[phase.name] = std::int64_t(phase.bytes);
  const ordered_json all = {{"matrix", o.matrix},
                            {"n", A.n},
                            {"entries", A.entries()},
                            {"evened_pairs", A.evened.pairs},
                            {"evened_diagonals", A.evened.diagonals},
                            {"ordering", name_of(plan.ordering())},
                            {"note", plan.note()},
                            {"factor_nonzeros", plan.factor_nonzeros()},
                            {"factor_entries", plan.factor_entries()},
                            {"flops", plan.flops()},
                            {"front_flops", plan.front_flops()},
                            {"fronts", plan.fronts()},
                            {"levels", levels},
                            {"widths", widths},
                            {"memory_bytes", memory},
                            {"factor_bytes", plan.template factor_bytes<T>()},
                            {"stack_bytes", plan.template stack_bytes<T>()},
                            {"seconds", seconds},
                            {"step_seconds", steps},
                            {"commit", TRIFACTOR_COMMIT}};
  fmt::print("{}\n", json_text(all));
}

template <class T>
void analyze_as(const AnalyzeOptions& o, const SparseSource& source) {
  SparseMatrix<T> A;
  timed_step(is_generated(o.matrix) ? "generating" : "reading", [&] { A = source.load<T>(); });
  require_memory("analysing this matrix", analysis_bytes(A.n, double(A.entries()), sizeof(T)));
  std::shared_ptr<const SparsePlan> plan;
  const double seconds = timed_step(
      "analysing", [&] { plan = trifactor::analyze(A.pattern(), {.ordering = ordering_named(o.ordering)}); });
  o.json ? print_json(o, *plan, A, seconds) : print_text(o, *plan, A, seconds);
  if (o.picture.empty()) return;
  const Step step("drawing");
  NewFile file(o.picture);
  file.append(tree_picture(
      *plan, fmt::format("{}, {}: {} fronts in {} levels, {}flop", shown_input(o.matrix), name_of(plan->ordering()),
                         plan->fronts(), plan->levels(), readable(plan->flops()))));
  file.finish();
}

}  // namespace

void analyze(const AnalyzeOptions& o) {
  check_file_use({o.matrix}, {o.picture});
  const SparseSource source(o.matrix, std::uint64_t(o.seed));
  source.is_complex() ? analyze_as<std::complex<double>>(o, source) : analyze_as<double>(o, source);
}

}  // namespace program
