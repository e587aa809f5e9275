// Fronts by level, as a GPU takes them: branches, chains of wide fronts, lists, the ring that a factor passes through,
// and what solves take one after the other.
#include <sparse/host_part.hpp>
#include <sparse/levels.hpp>
#include <sparse/plans.hpp>
#include <sparse/ring.hpp>
#include <sparse/solve_lists.hpp>
#include <sparse/split.hpp>

#include <limits>
#include <map>
#include <set>
#include <utility>

namespace trifactor::test {
namespace {

using sparse::Plan;

/// Branches of several kinds: all in one, of a few fronts, of one each.
std::vector<std::vector<sparse::Branch>> branches_of(const Plan& plan, const sparse::BranchRules& rules) {
  std::vector<std::vector<sparse::Branch>> all;
  for (const index_t limit : {index_t(1) << 40, plan.factor_entries / 4, plan.factor_entries / 30, index_t(0)})
    all.push_back(sparse::cut_into_branches(plan, rules, {limit, limit}));
  return all;
}

constexpr index_t unlimited = std::numeric_limits<index_t>::max();

sparse::Levels levels_of(const Plan& plan, const std::vector<sparse::Branch>& branches,
                         const core::SparseTuning& tuning = {}, core::FrontLimits small = {}, int threads = 1,
                         index_t update_entries = unlimited) {
  const core::UpdateShape shape = sparse::update_shape(tuning, small);
  const sparse::BranchCut cut{branches, sparse::place_updates(plan, {shape, {}}, branches, update_entries)};
  return sparse::make_levels(plan, plan, cut, tuning, small, threads);
}

TEST(Branches, AreSubtreesWithinTheLimits) {
  Random random;
  for (const auto& A : plan_matrices(random)) {
    const auto shared = analyze(A.stored(Stored::Lower).pattern());
    const Plan& plan = shared->data();
    const core::UpdateShape shape{16};
    const auto update = [&](index_t s) { return shape.entries(plan.row_count(s) - plan.col_count(s)); };
    std::vector<index_t> of_children(plan.fronts(), 0);
    for (index_t s = 0; s < plan.fronts(); ++s)
      if (plan.parent[s] >= 0) of_children[plan.parent[s]] += update(s);
    for (const index_t updates : {plan.factor_entries, plan.factor_entries / 20, index_t(0)})
      for (const index_t factor : {plan.factor_entries, plan.factor_entries / 5, index_t(0)}) {
        SCOPED_TRACE(::testing::Message() << A.name << " n=" << A.n << " limits " << updates << " " << factor);
        index_t next = 0, alive = 0;  // update matrices, with those of earlier branches
        for (const sparse::Branch& branch : sparse::cut_into_branches(plan, {shape, {}}, {updates, factor})) {
          ASSERT_EQ(branch.begin, next);
          ASSERT_LT(branch.begin, branch.end);
          next = branch.end;
          const bool several = branch.end - branch.begin > 1;
          for (const auto& level : sparse::levels_of_branch(plan, branch)) {
            for (const index_t s : level) alive += update(s);
            if (several) { EXPECT_LE(alive, updates); }
            for (const index_t s : level) alive -= of_children[s];
          }
          if (!several) continue;
          EXPECT_LE(plan.factor_start[branch.end] - plan.factor_start[branch.begin], factor);
          for (index_t s = std::max<index_t>(0, branch.begin - 50); s < branch.begin; ++s)  // no children outside
            EXPECT_FALSE(plan.parent[s] >= branch.begin && plan.parent[s] < branch.end) << "front " << s;
        }
        EXPECT_EQ(next, plan.fronts());
        EXPECT_EQ(alive, 0);
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
  const index_t whole = sparse::cut_in_memory(plan, {shape, {}}, 0, index_t(1) << 40).updates.entries;
  const sparse::BranchCut one_by_one = sparse::cut_one_by_one(plan, {shape, {}});
  const index_t least = sparse::place_updates(plan, {shape, {}}, one_by_one.branches, unlimited).entries;
  index_t largest = 0;  // update matrix
  for (index_t s = 0; s < plan.fronts(); ++s)
    largest = std::max(largest, shape.entries(plan.row_count(s) - plan.col_count(s)));
  const sparse::BranchCut cut = sparse::cut_in_memory(plan, {shape, {}}, 15, 0);
  EXPECT_LT(cut.updates.entries, whole);
  EXPECT_LE(100 * (cut.updates.entries + plan.factor_entries), 116 * (least + plan.factor_entries));
  index_t front = 0;
  for (index_t s = 0; s < plan.fronts(); ++s) front = std::max(front, plan.factor_start[s + 1] - plan.factor_start[s]);
  for (const index_t entries :
       {plan.factor_entries, least + least / 4 + front, least + least / 20 + front, 2 * largest + front}) {
    const bool offloads = entries < least + front;
    EXPECT_TRUE(!offloads || !sparse::cut_for_streaming(plan, {shape, {}}, entries, false)) << entries;
    const auto streamed = sparse::cut_for_streaming(plan, {shape, {}}, entries, offloads);
    ASSERT_TRUE(streamed) << entries;
    EXPECT_LE(streamed->updates.entries + front, entries);
    EXPECT_GT(streamed->branches.size(), 3u);
    EXPECT_LT(index_t(streamed->branches.size()), plan.fronts() / 4) << entries;  // also where there is little memory
    EXPECT_EQ(streamed->updates.offloaded.empty(), !offloads) << entries;
  }
  EXPECT_FALSE(sparse::cut_for_streaming(plan, {shape, {}}, largest + front - 1, true));
  EXPECT_EQ(index_t(one_by_one.branches.size()), plan.fronts());
  EXPECT_LT(one_by_one.updates.entries, largest + 32);
  EXPECT_LT(one_by_one.updates.entries, least);
}

TEST(HostPart, IsWholeSubtreesInBranchesOfTheirOwn) {
  Random random;
  index_t parts = 0;
  for (const auto& A : plan_matrices(random)) {
    const auto shared = analyze(A.stored(Stored::Lower).pattern());
    const Plan& plan = shared->data();
    std::vector<char> in_subtree(plan.fronts());
    for (index_t s = 0; s < plan.fronts(); ++s) in_subtree[s] = plan.row_count(s) < 12;
    for (index_t s = plan.fronts() - 1; s >= 0; --s)  // with all below them
      if (plan.parent[s] >= 0) in_subtree[s] |= in_subtree[plan.parent[s]];
    for (const index_t percent : {1, 10, 40, 100}) {
      SCOPED_TRACE(::testing::Message() << A.name << " n=" << A.n << " " << percent << " percent");
      core::SparseTuning tuning;
      tuning.host_percent = percent;
      const sparse::Branch part = sparse::choose_host_part(plan, in_subtree, tuning, {2, {}});
      if (percent == 100) { EXPECT_TRUE(part.begin == 0 && part.end == plan.fronts()); }
      parts += part.end > part.begin;
      const auto inside = [&](index_t s) { return part.begin <= s && s < part.end; };
      double flops = 0;
      for (index_t s = 0; s < plan.fronts(); ++s) {
        if (inside(s)) flops += shared->front(s).flops;
        if (const index_t p = plan.parent[s]; p >= 0 && inside(s) != inside(p)) {
          EXPECT_TRUE(inside(s)) << "a front below the part, " << s;
          EXPECT_FALSE(in_subtree[p]) << "a small subtree is cut at front " << s;
        }
      }
      EXPECT_LE(flops, 1.0001 * double(percent) / 100 * shared->front_flops());
      const sparse::BranchRules rules{{16}, in_subtree, part};
      for (const auto& cut : {sparse::cut_in_memory(plan, rules, 10, 0), sparse::cut_one_by_one(plan, rules)}) {
        for (std::size_t b = 0; b < cut.branches.size(); ++b)
          for (index_t s = cut.branches[b].begin; s < cut.branches[b].end; ++s)
            EXPECT_EQ(inside(s), cut.on_host(index_t(b))) << "front " << s;
        // What the CPU leaves has a place that nothing else ever takes.
        for (const sparse::Offloaded& own : cut.updates.from_host) {
          EXPECT_TRUE(inside(own.front) && !inside(plan.parent[own.front]));
          EXPECT_LE(own.at + own.entries, cut.updates.offloaded_entries);
          for (const auto* others : {&cut.updates.from_host, &cut.updates.offloaded})
            for (const sparse::Offloaded& other : *others)
              EXPECT_TRUE(other.front == own.front || other.at + other.entries <= own.at ||
                          own.at + own.entries <= other.at);
        }
        for (const sparse::Offloaded& copied : cut.updates.offloaded) EXPECT_FALSE(inside(copied.front));
      }
      const Plan own = sparse::plan_of_part(plan, part);
      ASSERT_EQ(own.fronts(), part.end - part.begin);
      index_t values = 0;
      for (std::size_t k = 0; k < plan.target.size(); ++k) {
        if (plan.target[k] == Plan::nowhere) continue;
        const index_t at = plan.target[k] < 0 ? ~plan.target[k] : plan.target[k];
        const bool in_part = plan.factor_start[part.begin] <= at && at < plan.factor_start[part.end];
        EXPECT_EQ(own.target[k] != Plan::nowhere, in_part);
        values += in_part;
      }
      EXPECT_EQ(index_t(sparse::entries_by_front(own).source.size()), values);
    }
  }
  EXPECT_GT(parts, 10);
}

// Fast threads get more than slow ones, and a slow device leaves them more.
TEST(HostPart, GrowsWithTheSpeedOfTheHost) {
  Random random;
  const auto A = poisson3d<double>(random, 16);
  const auto shared = analyze(A.stored(Stored::Lower).pattern());
  const auto flops = [&](int threads, index_t flops_per_ns, index_t gpu_flops_per_ns) {
    core::SparseTuning host, gpu;
    host.flops_per_ns = flops_per_ns, gpu.gpu_flops_per_ns = gpu_flops_per_ns;
    const sparse::Branch part = sparse::choose_host_part(shared->data(), {}, gpu, {threads, host});
    double sum = 0;
    for (index_t s = part.begin; s < part.end; ++s) sum += shared->front(s).flops;
    return sum;
  };
  EXPECT_GT(flops(16, 45, 100), flops(1, 45, 100));
  EXPECT_GT(flops(4, 45, 100), flops(4, 10, 100));
  EXPECT_GT(flops(4, 45, 10), flops(4, 45, 5000));
  EXPECT_EQ(flops(1, 1, 100000), 0);
}

TEST(Split, PartsOfAFrontAreAChainWithAllItsRows) {
  Random random;
  for (const auto& A : plan_matrices(random)) {
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
  for (const auto& A : plan_matrices(random)) {
    const auto shared = analyze(A.stored(Stored::Lower).pattern());
    const Plan& plan = shared->data();
    const sparse::Levels levels = levels_of(plan, {{0, plan.fronts()}});
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
  for (const auto& A : plan_matrices(random)) {
    const auto shared = analyze(A.stored(Stored::Lower).pattern());
    const Plan& plan = shared->data();
    const auto branches =
        sparse::cut_into_branches(plan, {{16}, {}}, {plan.factor_entries / 20, plan.factor_entries / 20});
    const sparse::Levels levels = levels_of(plan, branches);
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

// Copies are made in the order of branches; each branch begins when those are complete that it waits for.
TEST(Branches, OffloadedUpdateMatricesAreCopiedBeforeTheyAreReadOrReplaced) {
  Random random;
  for (const auto& A : plan_matrices(random)) {
    const auto shared = analyze(A.stored(Stored::Lower).pattern());
    const Plan& plan = shared->data();
    const core::UpdateShape shape{16};
    const auto size = [&](index_t s) { return shape.entries(plan.row_count(s) - plan.col_count(s)); };
    for (const auto& branches : branches_of(plan, {shape, {}})) {
      const index_t most = sparse::place_updates(plan, {shape, {}}, branches, unlimited).entries;
      for (const index_t limit : {most / 2, most / 4, index_t(0)}) {
        SCOPED_TRACE(::testing::Message()
                     << A.name << " n=" << A.n << " branches " << branches.size() << " limit " << limit);
        const sparse::UpdatePlaces places = sparse::place_updates(plan, {shape, {}}, branches, limit);
        EXPECT_LE(places.entries, most);
        std::map<index_t, sparse::Offloaded> offloaded;
        for (const sparse::Offloaded& update : places.offloaded) {
          EXPECT_GE(update.entries, size(update.front));
          EXPECT_LE(update.at + update.entries, places.offloaded_entries);
          EXPECT_TRUE(offloaded.emplace(update.front, update).second);
        }
        if (places.offloaded.empty()) continue;
        ASSERT_EQ(places.waits_for.size(), branches.size());
        struct Piece {
          index_t front, begin, end, branch;
          bool overlaps(const Piece& other) const { return begin < other.end && other.begin < end; }
        };
        std::vector<Piece> on_device, on_host, copied;  // alive; alive; on their way to the host
        index_t complete = -1;
        for (index_t b = 0; b < index_t(branches.size()); ++b) {
          EXPECT_LT(places.waits_for[b], b);
          complete = std::max(complete, places.waits_for[b]);
          std::erase_if(copied, [&](const Piece& piece) { return piece.branch <= complete; });
          for (const auto& level : sparse::levels_of_branch(plan, branches[b])) {
            for (const index_t s : level) {
              const Piece own{s, places.at[s], places.at[s] + size(s), b};
              for (const Piece& other : on_device) EXPECT_FALSE(own.overlaps(other)) << s << " and " << other.front;
              for (const Piece& other : copied) EXPECT_FALSE(own.overlaps(other)) << s << " and " << other.front;
              EXPECT_LE(own.end, places.entries);
              on_device.push_back(own);
            }
            for (const index_t s : level) {
              std::erase_if(on_device, [&](const Piece& piece) { return plan.parent[piece.front] == s; });
              std::erase_if(on_host, [&](const Piece& piece) {
                if (plan.parent[piece.front] != s) return false;
                EXPECT_LE(piece.branch, complete) << s << " reads " << piece.front;
                return true;
              });
            }
          }
          std::erase_if(on_device, [&](const Piece& piece) {
            const auto found = offloaded.find(piece.front);
            if (found == offloaded.end()) return false;
            const Piece there{piece.front, found->second.at, found->second.at + found->second.entries, b};
            for (const Piece& other : on_host) EXPECT_FALSE(there.overlaps(other)) << there.front << " on the host";
            on_host.push_back(there), copied.push_back(piece);
            return true;
          });
          index_t waiting = 0;
          for (const Piece& piece : on_device) waiting += piece.end - piece.begin;
          if (branches.size() > 1 && b + 1 < index_t(branches.size()) &&
              branches[b + 1].end - branches[b + 1].begin == 1) {
            EXPECT_TRUE(waiting + size(branches[b + 1].begin) <= limit || waiting == 0) << "branch " << b;
          }
        }
        EXPECT_TRUE(on_host.empty());
      }
    }
  }
}

TEST(Levels, ChildrenComeFirstAndUpdateMatricesDoNotOverlapWhileTheyLive) {
  Random random;
  for (const auto& A : plan_matrices(random))
    for (const auto& tuning : {core::SparseTuning{}, core::SparseTuning{.alone = 8, .alone_below = 16}}) {
      const auto shared = analyze(A.stored(Stored::Lower).pattern());
      const Plan& plan = shared->data();
      const core::FrontLimits small{tuning.alone, core::FrontLimits::entries_of(tuning.alone, tuning.alone / 2)};
      const core::UpdateShape shape = sparse::update_shape(tuning, small);
      std::map<index_t, std::vector<index_t>> children;
      for (index_t s = 0; s < plan.fronts(); ++s) children[plan.parent[s]].push_back(s);
      for (const auto& branches : branches_of(plan, {shape, {}})) {
        SCOPED_TRACE(::testing::Message()
                     << A.name << " n=" << A.n << " alone=" << tuning.alone << " branches " << branches.size());
        const sparse::Levels levels = levels_of(plan, branches, tuning, small, 3);
        ASSERT_EQ(levels.branches.size(), branches.size());
        EXPECT_TRUE(levels.cut.updates.offloaded.empty() && levels.offloaded_at.empty());
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
              EXPECT_EQ(small.hold(w + below, w), group.small);
              EXPECT_LE(core::FrontLimits::entries_of(w + below, w), group.entries);
              EXPECT_EQ(w > tuning.alone || below > tuning.alone_below, g >= level.alone);
              EXPECT_TRUE(group.count() == 1 || group.below <= shape.block) << "ragged batches are full squares";
              const index_t at = levels.update_at[t], end = at + shape.entries(below);
              if (below == 0) continue;
              const auto next = alive.lower_bound(at);
              ASSERT_TRUE(next == alive.end() || end <= next->first) << "front " << s;
              ASSERT_TRUE(next == alive.begin() || std::prev(next)->second <= at) << "front " << s;
              ASSERT_TRUE(at >= 0 && end <= levels.cut.updates.entries);
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
  for (const auto& A : plan_matrices(random)) {
    const auto shared = analyze(A.stored(Stored::Full).pattern());
    const Plan& plan = shared->data();
    const sparse::Levels levels = levels_of(plan, {{0, plan.fronts()}}, {}, {}, 2);
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
  for (const auto& A : plan_matrices(random))
    for (const core::SolveLimits limits : {core::SolveLimits{200, 20, 6, 4}, {3000, 60, 30, 8}, {0, 0, 0, 5}}) {
      SCOPED_TRACE(::testing::Message() << A.name << " n=" << A.n << " entries=" << limits.entries);
      const auto shared = analyze(A.stored(Stored::Lower).pattern());
      const Plan& plan = shared->data();
      const sparse::Levels levels = levels_of(plan, {{0, plan.fronts()}});
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
  for (const auto& A : plan_matrices(random)) {
    const auto shared = analyze(A.stored(Stored::Lower).pattern());
    const Plan& plan = shared->data();
    const core::SolveLimits limits{200, 20, 6, 4};
    sparse::BranchRules rules{{16}, {}};
    for (const index_t root : sparse::find_subtrees(plan, limits)) rules.in_subtree.push_back(root >= 0);
    for (const auto& branches : branches_of(plan, rules)) {
      SCOPED_TRACE(::testing::Message() << A.name << " n=" << A.n << " branches " << branches.size());
      const sparse::Levels levels = levels_of(plan, branches);
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
