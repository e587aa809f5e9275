// analyze_lu, and what a plan of LU tells about itself.
#include <api/check.hpp>
#include <core/memory.hpp>
#include <sparse/lu_plan.hpp>
#include <trifactor/sparse_lu.hpp>

#include <cstdio>

namespace trifactor {

struct SparseLuPlan::State {
  sparse::LuPlan plan;
};

SparseLuPlan::SparseLuPlan(std::unique_ptr<State> state) : state_(std::move(state)) {}
SparseLuPlan::~SparseLuPlan() = default;

const sparse::LuPlan& SparseLuPlan::data() const noexcept { return state_->plan; }
index_t SparseLuPlan::n() const noexcept { return data().n; }
index_t SparseLuPlan::entries() const noexcept { return index_t(data().place.size()); }
const std::vector<index_t>& SparseLuPlan::column_permutation() const noexcept { return data().permutation; }
LuOrdering SparseLuPlan::ordering() const noexcept { return data().ordering; }
const std::vector<SparsePlan::Step>& SparseLuPlan::steps() const noexcept { return data().steps; }

std::size_t SparseLuPlan::plan_bytes() const noexcept {
  const sparse::LuPlan& p = data();
  return sizeof(State) + p.permutation.size() * sizeof(index_t) + p.parent.size() * sizeof(p.parent[0]) +
         (p.start.size() + p.row.size() + p.place.size()) * sizeof(int);
}

std::string SparseLuPlan::text() const try {
  constexpr const char* names[] = {"COLAMD", "AMD of A + A^T", "natural", "given"};
  char line[160];
  std::snprintf(line, sizeof line, "order %lld, %lld entries, ordering %s\nseconds:", (long long)n(),
                (long long)entries(), names[int(ordering())]);
  std::string text = line;
  for (const SparsePlan::Step& step : steps()) {
    std::snprintf(line, sizeof line, " %s %.4f", step.name.c_str(), step.seconds);
    text += line;
  }
  return text + '\n';
} TRIFACTOR_CATCH_BAD_ALLOC

template <SparseIndex I>
std::shared_ptr<const SparseLuPlan> analyze_lu(const Pattern<I>& pattern, const AnalyzeLuOptions& options) try {
  auto state = std::make_unique<SparseLuPlan::State>();
  state->plan = api::checked_as("analyze_lu", [&] { return sparse::plan_lu(pattern, options); });
  return std::make_shared<SparseLuPlan>(std::move(state));
} TRIFACTOR_CATCH_BAD_ALLOC

template TRIFACTOR_API std::shared_ptr<const SparseLuPlan> analyze_lu(const Pattern<std::int32_t>&,
                                                                      const AnalyzeLuOptions&);
template TRIFACTOR_API std::shared_ptr<const SparseLuPlan> analyze_lu(const Pattern<std::int64_t>&,
                                                                      const AnalyzeLuOptions&);

}  // namespace trifactor
