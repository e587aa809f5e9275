// analyze, and what a plan tells about itself.
#include <api/queue_state.hpp>
#include <sparse/analyze.hpp>
#include <sparse/fronts.hpp>
#include <trifactor/sparse.hpp>
#include <tuning/rows.hpp>

#include <cstdio>

namespace trifactor {

struct SparsePlan::State : sparse::Analysis {
  std::vector<std::int32_t> level;  // of each front
};

SparsePlan::SparsePlan(std::unique_ptr<State> state) : state_(std::move(state)) {
  const sparse::Plan& plan = state_->plan;
  state_->level.resize(plan.fronts());
  for (index_t l = 0; l < levels(); ++l)
    for (index_t k = plan.level_start[l]; k < plan.level_start[l + 1]; ++k)
      state_->level[plan.level_fronts[k]] = std::int32_t(l);
}
SparsePlan::~SparsePlan() = default;

const sparse::Plan& SparsePlan::data() const noexcept { return state_->plan; }
index_t SparsePlan::n() const noexcept { return data().n; }
index_t SparsePlan::entries() const noexcept { return index_t(data().target.size()); }
index_t SparsePlan::factor_nonzeros() const noexcept { return data().factor_nonzeros; }
double SparsePlan::flops() const noexcept { return data().flops; }
double SparsePlan::front_flops() const noexcept { return data().front_flops; }
index_t SparsePlan::fronts() const noexcept { return data().fronts(); }
index_t SparsePlan::levels() const noexcept { return index_t(data().level_start.size()) - 1; }
const std::vector<index_t>& SparsePlan::permutation() const noexcept { return data().permutation; }
Ordering SparsePlan::ordering() const noexcept { return state_->ordering; }
const std::string& SparsePlan::note() const noexcept { return state_->note; }
index_t SparsePlan::factor_entries() const noexcept { return data().factor_entries; }
index_t SparsePlan::stack_entries() const noexcept { return data().stack_entries; }
const std::vector<SparsePlan::Step>& SparsePlan::steps() const noexcept { return state_->steps; }

std::size_t SparsePlan::plan_bytes() const noexcept {
  return sizeof(State) + state_->level.size() * sizeof(state_->level[0]) + data().bytes();
}

SparsePlan::Front SparsePlan::front(index_t s) const try {
  const sparse::Plan& plan = data();
  if (s < 0 || s >= plan.fronts())
    throw InvalidArgument("SparsePlan::front: s = " + std::to_string(s) +
                          " must be at least 0 and less than fronts = " + std::to_string(plan.fronts()));
  const index_t columns = plan.col_count(s), rows = plan.row_count(s);
  return {plan.parent[s], state_->level[s], columns, rows, sparse::front_flops(rows, columns)};
} TRIFACTOR_CATCH_BAD_ALLOC

std::vector<SparsePlan::Level> SparsePlan::level_summary() const try {
  std::vector<Level> list(levels());
  for (index_t s = 0; s < fronts(); ++s) {
    const Front f = front(s);
    Level& level = list[f.level];
    ++level.fronts;
    level.columns += f.columns;
    level.flops += f.flops;
  }
  return list;
} TRIFACTOR_CATCH_BAD_ALLOC

std::vector<SparsePlan::WidthBin> SparsePlan::width_histogram() const try {
  std::vector<WidthBin> bins;
  for (index_t s = 0; s < fronts(); ++s) {
    const Front f = front(s);
    std::size_t b = 0;
    for (index_t width = f.columns; width > 1; width /= 2) ++b;
    for (auto k = bins.size(); k <= b; ++k) bins.push_back({index_t(1) << k, (index_t(2) << k) - 1});
    ++bins[b].fronts;
    bins[b].flops += f.flops;
  }
  return bins;
} TRIFACTOR_CATCH_BAD_ALLOC

std::string SparsePlan::text() const try {
  constexpr const char* names[] = {"auto", "METIS", "AMD", "natural", "given"};
  std::string text;
  char line[160];
  const auto add = [&](const char* format, auto... values) {
    std::snprintf(line, sizeof line, format, values...);
    text += line;
  };
  add("order %lld, %lld entries, ordering %s\n", (long long)n(), (long long)entries(), names[int(ordering())]);
  add("factor: %lld nonzeros, %.4g flops\n", (long long)factor_nonzeros(), flops());
  add("%lld fronts in %lld levels: %lld entries, %.4g flops, %lld entries of update matrices at once\n",
      (long long)fronts(), (long long)levels(), (long long)factor_entries(), front_flops(), (long long)stack_entries());
  text += "seconds:";
  for (const Step& step : steps()) add(" %s %.4f", step.name.c_str(), step.seconds);
  text += '\n';
  if (!note().empty()) text += note() + '\n';
  return text;
} TRIFACTOR_CATCH_BAD_ALLOC

template <SparseIndex I>
std::shared_ptr<const SparsePlan> analyze(const Pattern<I>& pattern, const AnalyzeOptions& options) try {
  const auto tuning = tuning::find<core::SparseTuning>(api::host_machine(), "any", pattern.rows, 1, options.tuning);
  auto state = std::make_unique<SparsePlan::State>();
  const int threads = host::HostEngine(0).threads();
  static_cast<sparse::Analysis&>(*state) = sparse::analyze(pattern, options, tuning, threads);
  return std::make_shared<SparsePlan>(std::move(state));
} TRIFACTOR_CATCH_BAD_ALLOC

template TRIFACTOR_API std::shared_ptr<const SparsePlan> analyze(const Pattern<std::int32_t>&, const AnalyzeOptions&);
template TRIFACTOR_API std::shared_ptr<const SparsePlan> analyze(const Pattern<std::int64_t>&, const AnalyzeOptions&);

}  // namespace trifactor
