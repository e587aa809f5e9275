// The schedule of the host, and forests of many matrices of one pattern: every front once, children first, and update
// matrices that never share memory while both live.
#include <sparse/forest.hpp>
#include <sparse/plans.hpp>
#include <sparse/schedule.hpp>

#include <set>
#include <utility>

namespace trifactor::test {
namespace {

using sparse::Plan;
using sparse::Schedule;

/// Goes through fronts in the given order; fails where an update matrix is written over one that is still needed.
class Memory {
 public:
  Memory(const Plan& plan, const Schedule& schedule) : plan_(plan), schedule_(schedule) {}

  /// `own` and `children`: where the region begins that holds the update matrix of s, and those of its children.
  void pass(index_t s, index_t own, index_t children) {
    const index_t order = plan_.row_count(s) - plan_.col_count(s), begin = own + schedule_.update_at[s];
    ASSERT_GE(begin, 0);
    ASSERT_LE(begin + order * order, schedule_.work_entries);
    if (order > 0) {
      for (const auto& [from, to] : alive_) ASSERT_TRUE(begin + order * order <= from || to <= begin) << "front " << s;
      alive_.insert({begin, begin + order * order});
    }
    for (index_t c = schedule_.first_child[s]; c >= 0; c = schedule_.next_sibling[c]) {
      ASSERT_TRUE(done_.count(c)) << "child " << c << " comes after its parent " << s;
      const index_t size = plan_.row_count(c) - plan_.col_count(c);
      const index_t at = children + schedule_.update_at[c];
      alive_.erase({at, at + size * size});
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
  for (const auto& A : plan_matrices(random))
    for (int threads : {1, 2, 3, 8}) {
      SCOPED_TRACE(::testing::Message() << A.name << " n=" << A.n << " threads=" << threads);
      const auto shared = analyze(A.stored(Stored::Lower).pattern());
      const Plan& plan = shared->data();
      const Schedule schedule =
          sparse::make_schedule(plan, threads, {.branch_cost = 1000});  // a small tree is worth threads
      Memory memory(plan, schedule);
      // The threads side by side: each in turn takes one front, the worst that can happen to their regions.
      struct Worker {
        index_t branch = -1, next = 0, end = 0;
      };
      std::vector<Worker> workers(std::min<std::size_t>(schedule.threads, schedule.branches.size()));
      index_t ticket = 0;
      for (bool busy = true; busy;) {
        busy = false;
        for (std::size_t t = 0; t < workers.size(); ++t) {
          Worker& w = workers[t];
          if (w.next == w.end && ticket < index_t(schedule.branches.size())) {
            const sparse::Branch& b = schedule.branches[ticket];
            w = {ticket++, b.begin, b.end};
          }
          if (w.next == w.end) continue;
          busy = true;
          const index_t region = schedule.region_start + index_t(t) * schedule.region_entries;
          memory.pass(w.next, w.next == w.end - 1 ? 0 : region, region);
          ++w.next;
        }
      }
      for (const index_t s : schedule.top) memory.pass(s, 0, 0);
      EXPECT_TRUE(memory.all_done());
      if (threads == 1) { EXPECT_EQ(schedule.work_entries, plan.stack_entries); }
      if (threads == 2 && plan.n > 100) { EXPECT_LE(schedule.work_entries, plan.factor_entries); }
      if (A.name.starts_with("poisson") && threads > 1) { EXPECT_FALSE(schedule.branches.empty()); }
    }
}

TEST(Schedule, ManyThreadsWantMoreToDoThanFew) {
  Random random;
  const auto shared = analyze(poisson2d<double>(random, 60).stored(Stored::Lower).pattern());
  const auto threads = [&](int asked, index_t branch_cost) {
    return sparse::make_schedule(shared->data(), asked, {.branch_cost = branch_cost}).threads;
  };
  int before = 0;
  for (index_t branch_cost : {1000000, 100000, 30000, 10000, 3000, 1000, 100}) {  // more and more to do
    const int most = threads(64, branch_cost);
    EXPECT_GE(most, before);
    for (int asked : {1, 4, 8, 16, 32}) { EXPECT_EQ(threads(asked, branch_cost), std::min(asked, most)); }
    before = most;
  }
  EXPECT_EQ(threads(64, 1000000), 1);
  EXPECT_EQ(before, 64);
}

/// `count` times the pattern along the diagonal.
StoredMatrix<double> block_diagonal(const StoredMatrix<double>& one, index_t count) {
  StoredMatrix<double> all{one.n * count, one.stored, {0}, {}, {}};
  for (index_t i = 0; i < count; ++i) {
    for (index_t j = 0; j < one.n; ++j) all.start.push_back(one.start[j + 1] + i * one.start[one.n]);
    for (const index_t row : one.index) all.index.push_back(row + i * one.n);
  }
  return all;
}

TEST(Forest, IsThePlanOfABlockDiagonalMatrix) {
  Random random;
  for (const auto& A : plan_matrices(random))
    for (const index_t count : {0, 1, 3}) {
      SCOPED_TRACE(::testing::Message() << A.name << " n=" << A.n << " count=" << count);
      const auto given = A.stored(Stored::Full);
      const auto one = analyze(given.pattern(), {.ordering = Ordering::Natural});
      const Plan forest = sparse::forest_of(one->data(), count);
      const auto all = analyze(block_diagonal(given, count).pattern(), {.ordering = Ordering::Natural});
      const Plan& expected = all->data();
      EXPECT_EQ(forest.items, count);
      EXPECT_EQ(forest.n, expected.n);
      EXPECT_EQ(forest.permutation, expected.permutation);
      EXPECT_EQ(forest.inverse, expected.inverse);
      EXPECT_EQ(forest.first, expected.first);
      EXPECT_EQ(forest.parent, expected.parent);
      EXPECT_EQ(forest.row_start, expected.row_start);
      EXPECT_EQ(forest.rows, expected.rows);
      EXPECT_EQ(forest.place, expected.place);
      EXPECT_EQ(forest.factor_start, expected.factor_start);
      EXPECT_EQ(forest.target, expected.target);
      EXPECT_EQ(forest.factor_entries, expected.factor_entries);
      EXPECT_EQ(forest.stack_entries, expected.stack_entries);
      EXPECT_EQ(forest.factor_nonzeros, expected.factor_nonzeros);
      EXPECT_NEAR(forest.flops, expected.flops, 1e-9 * expected.flops);
      EXPECT_NEAR(forest.front_flops, expected.front_flops, 1e-9 * expected.front_flops);
      if (count > 0) {
        EXPECT_EQ(forest.level_start, expected.level_start);
        EXPECT_EQ(forest.level_fronts, expected.level_fronts);
      }
    }
}

TEST(Forest, ManyTreesAreTakenWholeByThreads) {
  Random random;
  const auto one = analyze(poisson3d<double>(random, 9).stored(Stored::Lower).pattern());
  for (const int threads : {2, 5}) {
    const Plan forest = sparse::forest_of(one->data(), 100);
    const Schedule schedule = sparse::make_schedule(forest, threads, {.branch_cost = 1000});
    EXPECT_EQ(schedule.threads, threads);
    EXPECT_EQ(schedule.branches.size(), 100u);
    EXPECT_TRUE(schedule.top.empty());
    EXPECT_LE(schedule.work_entries, threads * one->stack_entries());
  }
}

TEST(Forest, OfMoreColumnsThanAreCountedIsRefused) {
  Plan one;
  one.n = 1 << 20;
  EXPECT_THROW(sparse::forest_of(one, 2048), InvalidArgument);
  EXPECT_THROW(sparse::forest_of(one, -1), InvalidArgument);
  one.n = 1, one.factor_entries = index_t(1) << 40;
  EXPECT_THROW(sparse::forest_of(one, 1 << 30), std::bad_alloc);
}

TEST(Schedule, RunsAndEntriesSayWhatThePlanSays) {
  Random random;
  for (const auto& A : plan_matrices(random)) {
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
