// The schedule of the host: every front once, children first, and update matrices that never share memory while both
// live.
#include <sparse/matrices.hpp>
#include <sparse/schedule.hpp>

#include <set>

namespace trifactor::test {
namespace {

using sparse::Plan;
using sparse::Schedule;

std::vector<SparseMatrix<double>> matrices(Random& random) {
  return {poisson3d<double>(random, 9),         poisson2d<double>(random, 40),  banded<double>(random, 2000, 8),
          disconnected<double>(random, 30, 50), full_matrix<double>(random, 1), full_matrix<double>(random, 0)};
}

/// Goes through fronts in the given order; fails where an update matrix is written over one that is still needed.
class Memory {
 public:
  Memory(const Plan& plan, const Schedule& schedule) : plan_(plan), schedule_(schedule) {}

  void pass(index_t s) {
    const index_t order = plan_.row_count(s) - plan_.col_count(s), begin = schedule_.update_at[s];
    ASSERT_GE(begin, 0);
    ASSERT_LE(begin + order * order, schedule_.work_entries);
    if (order > 0) {
      for (const auto& [from, to] : alive_) ASSERT_TRUE(begin + order * order <= from || to <= begin) << "front " << s;
      alive_.insert({begin, begin + order * order});
    }
    for (index_t c = schedule_.first_child[s]; c >= 0; c = schedule_.next_sibling[c]) {
      ASSERT_TRUE(done_.count(c)) << "child " << c << " comes after its parent " << s;
      const index_t size = plan_.row_count(c) - plan_.col_count(c);
      alive_.erase({schedule_.update_at[c], schedule_.update_at[c] + size * size});
    }
    ASSERT_TRUE(done_.insert(s).second) << "front " << s << " twice";
  }
  bool all_done() const { return index_t(done_.size()) == plan_.fronts() && alive_.empty(); }

 private:
  const Plan& plan_;
  const Schedule& schedule_;
  std::set<std::pair<index_t, index_t>> alive_;
  std::set<index_t> done_;
};

TEST(Schedule, UpdateMatricesDoNotOverlapWhileTheyLive) {
  Random random;
  for (const auto& A : matrices(random))
    for (int threads : {1, 2, 3, 8}) {
      SCOPED_TRACE(::testing::Message() << A.name << " n=" << A.n << " threads=" << threads);
      const auto shared = analyze(A.stored(Stored::Lower).pattern());
      const Plan& plan = shared->data();
      const Schedule schedule = sparse::make_schedule(plan, threads);
      Memory memory(plan, schedule);
      // The threads side by side: each in turn takes one front, the worst that can happen to their regions.
      std::vector<std::vector<index_t>> fronts(threads);
      for (int t = 0; t < threads; ++t)
        for (index_t b = schedule.branch_start[t]; b < schedule.branch_start[t + 1]; ++b)
          for (index_t s = schedule.branches[b].begin; s < schedule.branches[b].end; ++s) fronts[t].push_back(s);
      for (std::size_t step = 0, left = 1; left > 0; ++step) {
        left = 0;
        for (const auto& mine : fronts)
          if (step < mine.size()) memory.pass(mine[step]), ++left;
      }
      for (const index_t s : schedule.top) memory.pass(s);
      EXPECT_TRUE(memory.all_done());
      if (threads == 1) { EXPECT_EQ(schedule.work_entries, plan.stack_entries); }
      if (A.name.starts_with("poisson") && threads > 1) { EXPECT_FALSE(schedule.branches.empty()); }
    }
}

TEST(Schedule, RunsAndEntriesSayWhatThePlanSays) {
  Random random;
  for (const auto& A : matrices(random)) {
    const auto shared = analyze(A.stored(Stored::Full).pattern());
    const Plan& plan = shared->data();
    const Schedule schedule = sparse::make_schedule(plan, 2);
    for (index_t s = 0; s < plan.fronts(); ++s) {
      std::vector<index_t> places, expected;
      for (index_t r = schedule.run_start[s]; r < schedule.run_start[s + 1]; ++r)
        for (int i = 0; i < schedule.runs[r].length; ++i) places.push_back(schedule.runs[r].place + i);
      expected.assign(plan.place.begin() + plan.row_start[s] + plan.col_count(s),
                      plan.place.begin() + plan.row_start[s + 1]);
      ASSERT_EQ(places, expected) << "front " << s;
      for (index_t k = schedule.entries.start[s]; k < schedule.entries.start[s + 1]; ++k) {
        const index_t target = schedule.entries.target[k], at = target < 0 ? ~target : target;
        ASSERT_EQ(target, plan.target[schedule.entries.source[k]]);
        ASSERT_TRUE(plan.factor_start[s] <= at && at < plan.factor_start[s + 1]);
      }
    }
    index_t somewhere = 0;
    for (const index_t target : plan.target) somewhere += target != Plan::nowhere;
    EXPECT_EQ(index_t(schedule.entries.source.size()), somewhere);
  }
}

}  // namespace
}  // namespace trifactor::test
