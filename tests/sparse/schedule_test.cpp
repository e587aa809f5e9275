// The schedule of the host and the levels of an engine: every front once, children first, and update matrices that
// never share memory while both live.
#include <sparse/matrices.hpp>
#include <sparse/forest.hpp>
#include <sparse/levels.hpp>
#include <sparse/ring.hpp>
#include <sparse/schedule.hpp>
#include <sparse/solve_lists.hpp>
#include <sparse/split.hpp>

#include <map>
#include <set>
#include <utility>

namespace trifactor::test {
namespace {

using sparse::Plan;
using sparse::Schedule;

std::vector<SparseMatrix<double>> matrices(Random& random) {
  return {poisson3d<double>(random, 9),         poisson2d<double>(random, 40),  banded<double>(random, 2000, 8),
          disconnected<double>(random, 30, 50), full_matrix<double>(random, 1), full_matrix<double>(random, 0),
          full_matrix<double>(random, 200)};
}

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
  for (const auto& A : matrices(random))
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
  for (const auto& A : matrices(random))
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

/// Branches of several kinds: all in one, of a few fronts, of one each.
std::vector<std::vector<sparse::Branch>> branches_of(const Plan& plan, const sparse::BranchRules& rules) {
  std::vector<std::vector<sparse::Branch>> all;
  for (const index_t limit : {index_t(1) << 40, plan.factor_entries / 4, plan.factor_entries / 30, index_t(0)})
    all.push_back(sparse::cut_into_branches(plan, rules, {limit, limit}));
  return all;
}

TEST(Branches, AreSubtreesWithinTheLimits) {
  Random random;
  for (const auto& A : matrices(random)) {
    const auto shared = analyze(A.stored(Stored::Lower).pattern());
    const Plan& plan = shared->data();
    const core::UpdateShape shape{16};
    for (const index_t updates : {plan.factor_entries, plan.factor_entries / 20, index_t(0)})
      for (const index_t factor : {plan.factor_entries, plan.factor_entries / 5, index_t(0)}) {
        SCOPED_TRACE(::testing::Message() << A.name << " n=" << A.n << " limits " << updates << " " << factor);
        index_t next = 0;
        for (const sparse::Branch& branch : sparse::cut_into_branches(plan, {shape, {}}, {updates, factor})) {
          ASSERT_EQ(branch.begin, next);
          ASSERT_LT(branch.begin, branch.end);
          next = branch.end;
          if (branch.end - branch.begin == 1) continue;
          EXPECT_LE(plan.factor_start[branch.end] - plan.factor_start[branch.begin], factor);
          index_t alive = 0;  // of the largest level alone
          for (const auto& level : sparse::levels_of_branch(plan, branch)) {
            index_t here = 0;
            for (const index_t s : level) here += shape.entries(plan.row_count(s) - plan.col_count(s));
            alive = std::max(alive, here);
          }
          EXPECT_LE(alive, updates);
          for (index_t s = std::max<index_t>(0, branch.begin - 50); s < branch.begin; ++s)  // no children outside
            EXPECT_FALSE(plan.parent[s] >= branch.begin && plan.parent[s] < branch.end) << "front " << s;
        }
        EXPECT_EQ(next, plan.fronts());
      }
  }
}

TEST(Branches, UpdateMatricesArePackedWithoutOverlap) {
  for (const index_t block : {4, 8, 100})
    for (index_t order = 0; order < 30; ++order) {
      const core::UpdateShape shape{block};
      std::set<index_t> places;
      for (index_t c = 0; c < order; ++c)
        for (index_t i = c; i < order; ++i) {
          const index_t at = shape.column(order, c) + i;
          EXPECT_TRUE(at >= 0 && at < shape.entries(order)) << order << " " << block;
          EXPECT_TRUE(places.insert(at).second) << order << " " << block;
        }
      EXPECT_LE(shape.entries(order), (order * (order + 1) + order * block) / 2 + 3 * order);
    }
}

TEST(Branches, CutsTakeLittleMoreThanTheyMust) {
  Random random;
  const auto A = poisson3d<double>(random, 12);
  const auto shared = analyze(A.stored(Stored::Lower).pattern());
  const Plan& plan = shared->data();
  const core::UpdateShape shape{32};
  const index_t whole = sparse::cut_in_memory(plan, {shape, {}}, 0, index_t(1) << 40).update_entries;
  const index_t least = sparse::cut_one_by_one(plan, {shape, {}}).update_entries;
  const sparse::BranchCut cut = sparse::cut_in_memory(plan, {shape, {}}, 15, 0);
  EXPECT_LT(cut.update_entries, whole);
  EXPECT_LE(100 * (cut.update_entries + plan.factor_entries), 116 * (least + plan.factor_entries));
  index_t front = 0;
  for (index_t s = 0; s < plan.fronts(); ++s)
    front = std::max(front, plan.factor_start[s + 1] - plan.factor_start[s]);
  for (const index_t entries : {plan.factor_entries, plan.factor_entries / 2, least + least / 20 + front}) {
    const auto streamed = sparse::cut_for_streaming(plan, {shape, {}}, entries);
    ASSERT_TRUE(streamed) << entries;
    EXPECT_LE(streamed->update_entries + front, entries);
    EXPECT_GT(streamed->branches.size(), 3u);
    EXPECT_LT(index_t(streamed->branches.size()), plan.fronts() / 4) << entries;  // also where there is little memory
  }
  EXPECT_FALSE(sparse::cut_for_streaming(plan, {shape, {}}, least + front - 1));
  EXPECT_EQ(index_t(sparse::cut_one_by_one(plan, {shape, {}}).branches.size()), plan.fronts());
}

TEST(Split, PartsOfAFrontAreAChainWithAllItsRows) {
  Random random;
  for (const auto& A : matrices(random)) {
    const auto shared = analyze(A.stored(Stored::Lower).pattern());
    const Plan& plan = shared->data();
    index_t most = 0;
    for (index_t s = 0; s < plan.fronts(); ++s) most = std::max(most, plan.col_count(s));
    EXPECT_FALSE(sparse::split_fronts(plan, most, 2));
    const auto split = sparse::split_fronts(plan, 64, 2);
    ASSERT_EQ(bool(split), most > 64);
    if (!split) continue;
    const Plan& parts = split->plan;
    EXPECT_EQ(parts.first.back(), plan.n);
    EXPECT_LT(parts.factor_entries, plan.factor_entries);
    for (index_t t = 0; t < parts.fronts(); ++t) {
      const index_t s = split->whole[t], m = parts.row_count(t), w = parts.col_count(t), p = parts.parent[t];
      EXPECT_LE(w, 64);
      EXPECT_EQ((parts.first[t] - plan.first[s]) % 64, 0);
      EXPECT_EQ(m - w, plan.first[s + 1] - parts.first[t + 1] + plan.row_count(s) - plan.col_count(s));
      for (index_t i = 0; i < m; ++i) {
        const index_t row = parts.rows[parts.row_start[t] + i], place = parts.place[parts.row_start[t] + i];
        if (i < w) {
          EXPECT_EQ(row, parts.first[t] + i);
          EXPECT_EQ(place, -1);
        } else {
          ASSERT_GT(p, t);
          EXPECT_EQ(parts.rows[parts.row_start[p] + place], row);
        }
      }
    }
  }
}

TEST(Levels, FrontsLieApartAndTheirLinesAreAligned) {
  Random random;
  for (const auto& A : matrices(random)) {
    const auto shared = analyze(A.stored(Stored::Lower).pattern());
    const Plan& plan = shared->data();
    const sparse::Levels levels = sparse::make_levels(plan, plan, {{0, plan.fronts()}}, {}, {}, 1);
    std::map<index_t, index_t> taken;  // where fronts begin and end
    for (index_t t = 0; t < plan.fronts(); ++t) {
      const index_t s = levels.front[t], m = plan.row_count(s), w = plan.col_count(s);
      const core::FrontShape shape(m, w);
      EXPECT_EQ(levels.factor_ld[t], shape.ld);
      EXPECT_GE(shape.ld, m + shape.gap);
      if (m > 64) { EXPECT_EQ(levels.factor_at[t] % 4 + shape.ld % 4 + (w + shape.gap) % 4, 0); }
      taken[levels.factor_at[t]] = levels.factor_at[t] + shape.ld * w;
    }
    index_t end = 0;
    for (const auto& [from, to] : taken) EXPECT_GE(from, std::exchange(end, to));
    EXPECT_EQ(end, levels.factor_entries);
    EXPECT_LE(levels.factor_entries, plan.factor_entries + plan.factor_entries / 10 + 3 * plan.fronts());
  }
}

TEST(Ring, NoPartIsReplacedByItsNeighbours) {
  Random random;
  for (const auto& A : matrices(random)) {
    const auto shared = analyze(A.stored(Stored::Lower).pattern());
    const Plan& plan = shared->data();
    const auto branches =
        sparse::cut_into_branches(plan, {{16}, {}}, {plan.factor_entries / 20, plan.factor_entries / 20});
    const sparse::Levels levels = sparse::make_levels(plan, plan, branches, {}, {}, 1);
    const index_t least = sparse::Ring::least(levels), count = index_t(branches.size());
    for (const index_t entries : {least, 2 * least, 3 * least + 32, sparse::Ring::all(levels)}) {
      const sparse::Ring ring = sparse::make_ring(levels, entries);
      const auto begin = [&](index_t b) { return ring.at[b]; };
      const auto end = [&](index_t b) {
        return ring.at[b] + levels.branches[b].factor_end - levels.branches[b].factor_begin;
      };
      for (index_t b = 0; b < count; ++b) {
        EXPECT_TRUE(begin(b) >= 0 && end(b) <= entries);
        EXPECT_EQ((begin(b) - levels.branches[b].factor_begin) % sparse::Ring::alignment, 0);
        for (index_t a = 0; a < count; ++a)
          if (a != b && begin(a) < end(b) && begin(b) < end(a)) {
            EXPECT_TRUE(a > b || ring.before[b] >= a);
            EXPECT_TRUE(a < b || (ring.after[b] >= 0 && ring.after[b] <= a));
          }
      }
      if (entries == sparse::Ring::all(levels)) {
        EXPECT_EQ(std::count(ring.before.begin(), ring.before.end(), -1), count);
      }
    }
  }
}

TEST(Levels, ChildrenComeFirstAndUpdateMatricesDoNotOverlapWhileTheyLive) {
  Random random;
  for (const auto& A : matrices(random))
    for (const auto& tuning : {core::SparseTuning{}, core::SparseTuning{.alone = 8, .alone_below = 16}}) {
      const auto shared = analyze(A.stored(Stored::Lower).pattern());
      const Plan& plan = shared->data();
      const core::FrontLimits small{tuning.alone, tuning.alone / 2};
      const core::UpdateShape shape = sparse::update_shape(tuning, small);
      std::map<index_t, std::vector<index_t>> children;
      for (index_t s = 0; s < plan.fronts(); ++s) children[plan.parent[s]].push_back(s);
      for (const auto& branches : branches_of(plan, {shape, {}})) {
        SCOPED_TRACE(::testing::Message()
                     << A.name << " n=" << A.n << " alone=" << tuning.alone << " branches " << branches.size());
        const sparse::Levels levels = sparse::make_levels(plan, plan, branches, tuning, small, 3);
        ASSERT_EQ(levels.branches.size(), branches.size());
        std::map<index_t, std::size_t> level_of;  // by the plan's number
        std::map<index_t, index_t> place;         // likewise
        std::map<index_t, index_t> alive;         // where update matrices begin and end
        for (std::size_t l = 0; l < levels.levels.size(); ++l) {
          const sparse::Level& level = levels.levels[l];
          std::vector<index_t> fronts;
          for (index_t g = level.begin; g < level.end; ++g) {
            const sparse::Group& group = levels.groups[g];
            EXPECT_EQ(group.begin, g == 0 ? 0 : levels.groups[g - 1].end);
            for (index_t t = group.begin; t < group.end; ++t) {
              const index_t s = levels.front[t], w = plan.col_count(s), below = plan.row_count(s) - w;
              fronts.push_back(s), place[s] = t;
              EXPECT_TRUE(level_of.emplace(s, l).second) << "front " << s << " twice";
              EXPECT_TRUE(w <= group.columns && below <= group.below && w + below <= group.rows);
              EXPECT_EQ(w <= small.columns && w + below <= small.rows, group.small);
              EXPECT_EQ(w > tuning.alone || below > tuning.alone_below, g >= level.alone);
              EXPECT_TRUE(group.count() == 1 || group.below <= shape.block) << "ragged batches are full squares";
              const index_t at = levels.update_at[t], end = at + shape.entries(below);
              if (below == 0) continue;
              const auto next = alive.lower_bound(at);
              ASSERT_TRUE(next == alive.end() || end <= next->first) << "front " << s;
              ASSERT_TRUE(next == alive.begin() || std::prev(next)->second <= at) << "front " << s;
              ASSERT_TRUE(at >= 0 && end <= levels.update_entries);
              alive[at] = end;
            }
          }
          for (const index_t s : fronts)
            for (const index_t c : children[s]) {
              ASSERT_TRUE(level_of.count(c) && level_of[c] < l) << "child " << c;
              alive.erase(levels.update_at[place[c]]);
            }
        }
        ASSERT_EQ(index_t(level_of.size()), plan.fronts());
        EXPECT_TRUE(alive.empty());
      }
    }
}

TEST(Levels, ListsSayWhatThePlanSays) {
  Random random;
  for (const auto& A : matrices(random)) {
    const auto shared = analyze(A.stored(Stored::Full).pattern());
    const Plan& plan = shared->data();
    const sparse::Levels levels = sparse::make_levels(plan, plan, {{0, plan.fronts()}}, {}, {}, 2);
    std::vector<index_t> row(levels.lines());  // of the factor, for each line
    for (index_t t = 0; t < plan.fronts(); ++t)
      for (index_t i = 0; i < levels.rows[t]; ++i) {
        const index_t line = levels.line_start[t] + i;
        row[line] = plan.rows[plan.row_start[levels.front[t]] + i];
        EXPECT_EQ(levels.line_front[line], t);
        if (i < levels.columns[t]) { EXPECT_EQ(levels.line[row[line]], line); }
      }
    std::multiset<std::pair<int, int>> down, up;
    for (index_t line = 0; line < levels.lines(); ++line) {
      if (levels.parent_line[line] >= 0) {
        down.insert({levels.parent_line[line], int(line)});
        EXPECT_EQ(row[levels.parent_line[line]], row[line]);
      }
      for (index_t k = levels.child_start[line]; k < levels.child_start[line + 1]; ++k)
        up.insert({int(line), levels.child_line[k]});
    }
    EXPECT_EQ(down, up);

    std::multiset<std::pair<index_t, index_t>> targets, expected;  // target, source
    for (index_t j = 0; j < plan.n; ++j) {
      const index_t t = levels.line_front[levels.line[j]], c = levels.line[j] - levels.line_start[t];
      for (index_t k = levels.entry_start[j]; k < levels.entry_start[j + 1]; ++k) {
        const index_t at = plan.factor_start[levels.front[t]] + c * levels.rows[t] + levels.entry_row[k];
        const index_t source = levels.entry_source[k];
        targets.insert({source < 0 ? ~at : at, source < 0 ? ~source : source});
        if (k > levels.entry_start[j]) { EXPECT_LE(levels.entry_row[k - 1], levels.entry_row[k]); }
      }
    }
    for (std::size_t k = 0; k < plan.target.size(); ++k)
      if (plan.target[k] != Plan::nowhere) expected.insert({plan.target[k], index_t(k)});
    EXPECT_EQ(targets, expected);
  }
}

// A solve by the lists, with numbers of what is known in place of values: nothing is read before it is there.
TEST(SolveLists, EveryStripComesAfterWhatItWaitsFor) {
  Random random;
  for (const auto& A : matrices(random))
    for (const core::SolveLimits limits : {core::SolveLimits{200, 20, 6, 4}, {3000, 60, 30, 8}, {0, 0, 0, 5}}) {
      SCOPED_TRACE(::testing::Message() << A.name << " n=" << A.n << " entries=" << limits.entries);
      const auto shared = analyze(A.stored(Stored::Lower).pattern());
      const Plan& plan = shared->data();
      const sparse::Levels levels = sparse::make_levels(plan, plan, {{0, plan.fronts()}}, {}, {}, 1);
      const sparse::SolveLists lists = sparse::make_solve_lists(plan, levels, limits, true);
      std::vector<char> known(levels.lines(), 0), solved(plan.n, 0);
      const auto know_forward = [&](index_t line) {
        for (int k = levels.child_start[line]; k < levels.child_start[line + 1]; ++k)
          EXPECT_TRUE(known[levels.child_line[k]]) << "line " << line << " before its child";
        EXPECT_FALSE(known[line]) << "line " << line << " twice";
        known[line] = 1;
      };
      for (std::size_t g = 0; g + 1 < lists.subtree_start.size(); ++g) {
        index_t entries = 0;
        for (int k = lists.subtree_start[g], next = 0; k < lists.subtree_start[g + 1]; ++k) {
          const core::SolveFront& f = lists.subtree_fronts[k];
          EXPECT_TRUE(f.rows <= limits.rows && f.columns <= limits.columns);
          EXPECT_EQ(f.at, entries);
          entries += (f.rows | 1) * f.columns;
          if (k >= next) next = f.level_end;
          EXPECT_EQ(f.level_end, next);
          for (int i = 0; i < f.rows; ++i) know_forward(f.line + i);
        }
        EXPECT_LE(entries, limits.entries);
      }
      const int edge = int(limits.edge);
      for (const core::SolveStrip& strip : lists.forward) {
        const int across = (strip.columns + edge - 1) / edge;
        const bool diagonal = strip.number < across;
        const int begin = diagonal ? strip.number * edge : strip.columns + (strip.number - across) * edge;
        for (int i = 0; i < (diagonal ? begin : strip.columns); ++i) EXPECT_TRUE(known[strip.line + i]);
        for (int i = begin; i < std::min(begin + edge, diagonal ? strip.columns : strip.rows); ++i)
          know_forward(strip.line + i);
        if (diagonal) { EXPECT_EQ(lists.backward[strip.diagonal].first, strip.first); }
        if (diagonal) { EXPECT_EQ(lists.backward[strip.diagonal].number, strip.number); }
      }
      EXPECT_EQ(std::count(known.begin(), known.end(), char(1)), levels.lines());

      const auto solve_columns = [&](int line, int rows, int begin, int end) {  // of a front's own columns
        for (int i = end; i < rows; ++i) EXPECT_TRUE(solved[levels.line_column[line + i]]) << "line " << line + i;
        for (int i = begin; i < end; ++i) solved[levels.line_column[line + i]] = 1;
      };
      for (const core::SolveStrip& strip : lists.backward)
        solve_columns(strip.line, strip.rows, strip.number * edge, std::min((strip.number + 1) * edge, strip.columns));
      for (std::size_t g = 0; g + 1 < lists.subtree_start.size(); ++g)
        for (int k = lists.subtree_start[g + 1] - 1; k >= lists.subtree_start[g]; --k)
          solve_columns(lists.subtree_fronts[k].line, lists.subtree_fronts[k].rows, 0, lists.subtree_fronts[k].columns);
      EXPECT_EQ(std::count(solved.begin(), solved.end(), char(1)), plan.n);
    }
}

// The lists of branches that are solved with one after the other: each has the fronts of its own, all of them.
TEST(SolveLists, EveryBranchHasItsPart) {
  Random random;
  for (const auto& A : matrices(random)) {
    const auto shared = analyze(A.stored(Stored::Lower).pattern());
    const Plan& plan = shared->data();
    const core::SolveLimits limits{200, 20, 6, 4};
    sparse::BranchRules rules{{16}, {}};
    for (const index_t root : sparse::find_subtrees(plan, limits)) rules.in_subtree.push_back(root >= 0);
    for (const auto& branches : branches_of(plan, rules)) {
      SCOPED_TRACE(::testing::Message() << A.name << " n=" << A.n << " branches " << branches.size());
      const sparse::Levels levels = sparse::make_levels(plan, plan, branches, {}, {}, 1);
      const sparse::SolveLists lists = sparse::make_solve_lists(plan, levels, limits, false);
      ASSERT_EQ(lists.branch_start.size(), branches.size() + 1);
      std::set<int> forward, backward;  // columns
      for (std::size_t b = 0; b < branches.size(); ++b) {
        const int first = int(plan.first[branches[b].begin]), last = int(plan.first[branches[b].end]);
        const auto inside = [&](int column) { return first <= column && column < last; };
        const auto &begin = lists.branch_start[b], &end = lists.branch_start[b + 1];
        for (index_t g = begin.subtree; g < end.subtree; ++g)
          for (int k = lists.subtree_start[g]; k < lists.subtree_start[g + 1]; ++k)
            for (int c = 0; c < lists.subtree_fronts[k].columns; ++c) {
              ASSERT_TRUE(inside(lists.subtree_fronts[k].first + c));
              forward.insert(lists.subtree_fronts[k].first + c), backward.insert(lists.subtree_fronts[k].first + c);
            }
        const auto take = [&](const core::SolveStrip& strip, std::set<int>& columns) {
          for (int c = strip.number * 4; c < std::min(strip.number * 4 + 4, strip.columns); ++c) {
            ASSERT_TRUE(inside(strip.first + c));
            columns.insert(strip.first + c);
          }
        };
        for (index_t k = begin.forward; k < end.forward; ++k) take(lists.forward[k], forward);
        const index_t last_strip = b > 0 ? lists.branch_start[b - 1].backward : index_t(lists.backward.size());
        for (index_t k = begin.backward; k < last_strip; ++k) take(lists.backward[k], backward);
      }
      EXPECT_EQ(index_t(forward.size()), plan.n);
      EXPECT_EQ(index_t(backward.size()), plan.n);
    }
  }
}

}  // namespace
}  // namespace trifactor::test
