// The analysis of sparse patterns, against definitions that are slow and plain.
#include <sparse/analyze.hpp>
#include <sparse/fronts.hpp>
#include <sparse/order.hpp>
#include <sparse/plan.hpp>
#include <trifactor/error.hpp>
#include <trifactor/sparse.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <new>
#include <numeric>
#include <random>
#include <set>
#include <thread>

// A new that pretends to fail. AMD has memory of its own, and the address sanitizer has its own new.
#ifndef __SANITIZE_ADDRESS__
static thread_local long allocations_left = -1;  // until one fails; negative: none does

// Not inline: the compiler would see malloc and free where it looks for new and delete.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  if (allocations_left-- == 0) throw std::bad_alloc();
  if (void* p = std::malloc(bytes ? bytes : 1)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }
#endif

namespace trifactor::sparse {
namespace {

/// A symmetric pattern, by its lower triangle with the diagonal: (row, column), each once.
struct EntryList {
  index_t n = 0;
  std::set<std::pair<index_t, index_t>> lower;

  explicit EntryList(index_t order, bool diagonal = true) : n(order) {
    if (diagonal)
      for (index_t i = 0; i < n; ++i) add(i, i);
  }
  void add(index_t i, index_t j) { lower.emplace(std::max(i, j), std::min(i, j)); }
};

/// The arrays that a pattern looks at.
template <class I>
struct Arrays {
  std::vector<I> start, index;
  Pattern<I> pattern;
  std::vector<std::pair<index_t, index_t>> at;  // (row, column) of each entry

  Arrays(index_t n, std::vector<std::pair<index_t, index_t>> list, Compressed compressed, Stored stored, bool sorted)
      : at(std::move(list)) {
    const bool columns = compressed == Compressed::Columns;
    const auto major = [&](const auto& e) { return columns ? e.second : e.first; };
    const auto minor = [&](const auto& e) { return columns ? e.first : e.second; };
    std::stable_sort(at.begin(), at.end(), [&](const auto& a, const auto& b) {
      return sorted ? std::pair(major(a), minor(a)) < std::pair(major(b), minor(b)) : major(a) < major(b);
    });
    start.assign(n + 1, 0);
    for (const auto& e : at) {
      ++start[major(e) + 1];
      index.push_back(I(minor(e)));
    }
    for (index_t j = 0; j < n; ++j) start[j + 1] += start[j];
    pattern = {n, n, start.data(), index.data(), compressed, stored, sorted};
  }
  Arrays(const Arrays&) = delete;
};

template <class I = std::int32_t>
Arrays<I> arrays_of(const EntryList& entries, Stored stored = Stored::Lower,
                    Compressed compressed = Compressed::Columns, bool sorted = true, unsigned seed = 1) {
  std::vector<std::pair<index_t, index_t>> list;
  for (const auto& [i, j] : entries.lower) {
    if (stored != Stored::Upper) list.emplace_back(i, j);
    if (stored == Stored::Upper || (stored == Stored::Full && i != j)) list.emplace_back(j, i);
  }
  if (!sorted) std::shuffle(list.begin(), list.end(), std::mt19937(seed));
  return {entries.n, std::move(list), compressed, stored, sorted};
}

EntryList random_entries(index_t n, index_t count, std::mt19937& random) {
  EntryList e(n, random() % 4 != 0);
  for (index_t k = 0; k < count && n > 0; ++k) e.add(index_t(random() % n), index_t(random() % n));
  return e;
}

/// All kinds of patterns, many of them random.
void for_each_pattern(const std::function<void(const std::string&, const EntryList&)>& run) {
  for (const index_t n : {0, 1, 2, 3, 10, 40}) {
    const auto name = [&](const char* kind) { return kind + std::string(" of order ") + std::to_string(n); };
    run(name("diagonal"), EntryList(n));
    run(name("empty"), EntryList(n, false));
    EntryList banded(n), full(n), arrow_up(n), arrow_down(n), chain(n), pieces(n);
    for (index_t i = 0; i < n; ++i)
      for (index_t j = 0; j <= i; ++j) {
        full.add(i, j);
        if (i - j <= 3) banded.add(i, j);
        if (i - j <= 1) chain.add(i, j);
        if (j == 0) arrow_up.add(i, j);
        if (i == n - 1) arrow_down.add(i, j);
        if (i / 7 == j / 7) pieces.add(i, j);
      }
    EntryList dense_row = chain;
    for (index_t j = 0; j < n; ++j) dense_row.add(n / 2, j);
    run(name("banded"), banded);
    run(name("full"), full);
    run(name("chain"), chain);
    run(name("arrow with its dense row first"), arrow_up);
    run(name("arrow with its dense row last"), arrow_down);
    run(name("disconnected"), pieces);
    run(name("dense row in the middle"), dense_row);
  }
  EntryList grid(3 * 36);  // three unknowns on each point of a 6 x 6 mesh
  for (index_t x = 0; x < 6; ++x)
    for (index_t y = 0; y < 6; ++y)
      for (const auto& [dx, dy] : {std::pair<index_t, index_t>{0, 0}, {1, 0}, {0, 1}})
        if (x + dx < 6 && y + dy < 6)
          for (index_t a = 0; a < 3; ++a)
            for (index_t b = 0; b < 3; ++b) grid.add(3 * (6 * x + y) + a, 3 * (6 * (x + dx) + y + dy) + b);
  run("mesh", grid);
  std::mt19937 random(7);
  for (int k = 0; k < 300; ++k) {
    const index_t n = 1 + index_t(random() % 45);
    run("random " + std::to_string(k), random_entries(n, index_t(random() % (3 * n)), random));
  }
}

using Matrix = std::vector<std::vector<bool>>;

/// L's pattern by elimination: each column joins its rows pairwise.
Matrix eliminate(const EntryList& entries, const std::vector<index_t>& inverse) {
  const index_t n = entries.n;
  Matrix L(n, std::vector<bool>(n, false));
  for (index_t i = 0; i < n; ++i) L[i][i] = true;
  for (const auto& [i, j] : entries.lower) {
    const index_t a = inverse[i], b = inverse[j];
    L[std::max(a, b)][std::min(a, b)] = true;
  }
  for (index_t k = 0; k < n; ++k)
    for (index_t j = k + 1; j < n; ++j)
      if (L[j][k])
        for (index_t i = j; i < n; ++i)
          if (L[i][k]) L[i][j] = true;
  return L;
}

index_t column_count(const Matrix& L, index_t j) {
  index_t count = 0;
  for (std::size_t i = j; i < L.size(); ++i) count += L[i][j];
  return count;
}

index_t column_parent(const Matrix& L, index_t j) {
  for (std::size_t i = j + 1; i < L.size(); ++i)
    if (L[i][j]) return index_t(i);
  return -1;
}

template <class V>
bool is_permutation_of(const V& order, index_t n) {
  std::vector<bool> seen(n, false);
  if (index_t(order.size()) != n) return false;
  for (const auto i : order) {
    if (i < 0 || i >= n || seen[i]) return false;
    seen[i] = true;
  }
  return true;
}

constexpr const char* no_merging = "tiny=0 narrow=0 medium=0 wide_zeros=0";
constexpr const char* much_merging = "tiny=8 narrow=20 narrow_zeros=100 medium=30 medium_zeros=90 wide_zeros=50";

/// Everything of a plan that does not depend on how entries are given.
void expect_plan(const Plan& plan, const EntryList& entries) {
  const index_t n = entries.n, fronts = plan.fronts();
  ASSERT_EQ(plan.n, n);
  ASSERT_TRUE(is_permutation_of(plan.permutation, n));
  for (index_t j = 0; j < n; ++j) ASSERT_EQ(plan.inverse[plan.permutation[j]], j);
  const Matrix L = eliminate(entries, plan.inverse);

  // Columns are cut into fronts.
  ASSERT_EQ(index_t(plan.first.size()), fronts + 1);
  ASSERT_EQ(index_t(plan.row_start.size()), fronts + 1);
  ASSERT_EQ(index_t(plan.factor_start.size()), fronts + 1);
  ASSERT_EQ(plan.first.front(), 0);
  ASSERT_EQ(plan.first.back(), n);
  ASSERT_EQ(plan.row_start.back(), index_t(plan.rows.size()));
  ASSERT_EQ(plan.place.size(), plan.rows.size());
  ASSERT_EQ(plan.factor_start.front(), 0);
  ASSERT_EQ(plan.factor_start.back(), plan.factor_entries);
  index_t nonzeros = 0;
  double flops = 0, front_flops = 0;
  for (index_t j = 0; j < n; ++j) {
    const index_t count = column_count(L, j);
    nonzeros += count;
    flops += double(count * count);
  }
  EXPECT_EQ(plan.factor_nonzeros, nonzeros);
  EXPECT_EQ(plan.flops, flops);

  std::vector<std::vector<index_t>> rows(fronts);
  for (index_t s = 0; s < fronts; ++s) {
    ASSERT_GT(plan.col_count(s), 0);
    rows[s].assign(plan.rows.begin() + plan.row_start[s], plan.rows.begin() + plan.row_start[s + 1]);
    std::set<index_t> expected;  // its columns, and the rows of L in any of them
    for (index_t j = plan.first[s]; j < plan.first[s + 1]; ++j) {
      expected.insert(j);
      for (index_t i = j; i < n; ++i)
        if (L[i][j]) expected.insert(i);
    }
    ASSERT_EQ(rows[s], std::vector<index_t>(expected.begin(), expected.end())) << "front " << s;
    ASSERT_EQ(plan.factor_start[s + 1] - plan.factor_start[s], plan.row_count(s) * plan.col_count(s));
    for (index_t k = 0; k < plan.col_count(s); ++k)
      front_flops += double((plan.row_count(s) - k) * (plan.row_count(s) - k));
  }
  EXPECT_DOUBLE_EQ(plan.front_flops, front_flops);

  // The tree: the parent owns the first row below; subtrees are ranges.
  std::vector<index_t> subtree_first(fronts);
  std::iota(subtree_first.begin(), subtree_first.end(), 0);
  for (index_t s = 0; s < fronts; ++s) {
    const index_t columns = plan.col_count(s), parent = plan.parent[s];
    if (plan.row_count(s) == columns) {
      ASSERT_EQ(parent, -1);
    } else {
      ASSERT_GT(parent, s);
      ASSERT_LT(parent, fronts);
      ASSERT_GE(rows[s][columns], plan.first[parent]);
      ASSERT_LT(rows[s][columns], plan.first[parent + 1]);
      subtree_first[parent] = std::min(subtree_first[parent], subtree_first[s]);
    }
    for (index_t k = 0; k < plan.row_count(s); ++k) {
      const index_t place = plan.place[plan.row_start[s] + k];
      if (k < columns) {
        ASSERT_EQ(place, -1);
      } else {
        ASSERT_GE(place, 0);
        ASSERT_LT(place, plan.row_count(parent));
        ASSERT_EQ(rows[parent][place], rows[s][k]);
      }
    }
  }
  for (index_t s = 0; s < fronts; ++s)
    if (plan.parent[s] >= 0)
      for (index_t k = s + 1; k < plan.parent[s]; ++k) {
        ASSERT_GT(plan.parent[k], -1);
        ASSERT_LE(plan.parent[k], plan.parent[s]) << "not a postorder";
      }

  // Levels.
  std::vector<index_t> level(fronts, -1);
  const index_t levels = index_t(plan.level_start.size()) - 1;
  ASSERT_EQ(plan.level_start.front(), 0);
  ASSERT_EQ(plan.level_start.back(), fronts);
  ASSERT_TRUE(is_permutation_of(plan.level_fronts, fronts));
  for (index_t l = 0; l < levels; ++l) {
    ASSERT_LT(plan.level_start[l], plan.level_start[l + 1]);
    for (index_t k = plan.level_start[l]; k < plan.level_start[l + 1]; ++k) level[plan.level_fronts[k]] = l;
  }
  for (index_t s = 0; s < fronts; ++s) {
    index_t expected = 0;
    for (index_t c = 0; c < s; ++c)
      if (plan.parent[c] == s) expected = std::max(expected, level[c] + 1);
    ASSERT_EQ(level[s], expected);
  }

  // The stack, by acting it out.
  const auto update = [&](index_t s) {
    return (plan.row_count(s) - plan.col_count(s)) * (plan.row_count(s) - plan.col_count(s));
  };
  std::set<index_t> alive;
  index_t peak = 0;
  for (index_t s = 0; s < fronts; ++s) {
    alive.insert(s);
    index_t sum = 0;
    for (const index_t a : alive) sum += update(a);
    peak = std::max(peak, sum);
    for (index_t c = 0; c < s; ++c)
      if (plan.parent[c] == s) alive.erase(c);
  }
  EXPECT_EQ(plan.stack_entries, peak);
}

/// Where each entry goes, by looking for it.
template <class I>
void expect_targets(const Plan& plan, const Arrays<I>& arrays) {
  ASSERT_EQ(plan.target.size(), arrays.at.size());
  for (std::size_t k = 0; k < arrays.at.size(); ++k) {
    const auto [i, j] = arrays.at[k];
    if (arrays.pattern.stored == Stored::Full && i < j) {
      ASSERT_EQ(plan.target[k], Plan::nowhere);
      continue;
    }
    const index_t row = std::max(plan.inverse[i], plan.inverse[j]), col = std::min(plan.inverse[i], plan.inverse[j]);
    index_t s = 0;
    while (plan.first[s + 1] <= col) ++s;
    const auto begin = plan.rows.begin() + plan.row_start[s], end = plan.rows.begin() + plan.row_start[s + 1];
    const auto found = std::find(begin, end, row);
    ASSERT_NE(found, end);
    const index_t target = plan.factor_start[s] + (col - plan.first[s]) * plan.row_count(s) + (found - begin);
    ASSERT_EQ(plan.target[k], plan.inverse[i] < plan.inverse[j] ? ~target : target);
  }
}

TEST(Analysis, OfAnyPatternIsWhatEliminationGives) {
  for_each_pattern([](const std::string& name, const EntryList& entries) {
    const auto arrays = arrays_of(entries);
    for (const auto ordering : {Ordering::Natural, Ordering::Amd, Ordering::Metis, Ordering::Auto})
      for (const char* tuning : {no_merging, "", much_merging}) {
        SCOPED_TRACE(name + ", ordering " + std::to_string(int(ordering)) + ", " + tuning);
        const auto plan = analyze(arrays.pattern, {.ordering = ordering, .tuning = tuning});
        expect_plan(plan->data(), entries);
        expect_targets(plan->data(), arrays);
        if (::testing::Test::HasFatalFailure()) return;
      }
  });
}

TEST(Analysis, TreeAndCountsAreThoseOfElimination) {
  std::mt19937 random(3);
  for_each_pattern([&](const std::string& name, const EntryList& entries) {
    SCOPED_TRACE(name);
    const auto arrays = arrays_of(entries);
    std::vector<node_t> order(entries.n);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    const CompressedGraph points = points_of(arrays.pattern, false, 1, &order);
    const Tree tree = make_tree(points, natural_order(points.graph), 1);
    ASSERT_TRUE(is_permutation_of(tree.permutation, points.points()));
    ASSERT_TRUE(is_permutation_of(points.members, entries.n));
    EXPECT_EQ(points.members, order) << "points are runs of the order";
    std::vector<index_t> inverse(entries.n), before(entries.n), point(entries.n);  // column of each node, and its point
    index_t column = 0, nonzeros = 0;
    for (index_t j = 0; j < points.points(); ++j)
      for (node_t m = 0; m < tree.weight[j]; ++m, ++column) {
        const node_t node = points.members[points.member_start[tree.permutation[j]] + m];
        inverse[node] = column, point[column] = j;
      }
    for (index_t j = 0; j < entries.n; ++j) before[order[j]] = j;
    const Matrix L = eliminate(entries, inverse), L_before = eliminate(entries, before);
    column = 0;
    for (index_t j = 0; j < points.points(); ++j)
      for (node_t m = 0; m < tree.weight[j]; ++m, ++column) {
        const index_t parent = column_parent(L, column);
        nonzeros += column_count(L, column);
        ASSERT_EQ(tree.count[j] - m, column_count(L, column));
        ASSERT_EQ(m + 1 < tree.weight[j] ? j : tree.parent[j], parent < 0 ? -1 : point[parent]);
        const node_t node = points.members[points.member_start[tree.permutation[j]] + m];
        ASSERT_EQ(tree.count[j] - m, column_count(L_before, before[node])) << "the postorder changed the fill";
        for (index_t k = j + 1; k < tree.parent[j]; ++k) { ASSERT_LE(tree.parent[k], tree.parent[j]); }
      }
    EXPECT_EQ(tree.nonzeros, nonzeros);
  });
}

TEST(Analysis, WithoutMergingFrontsStoreNoZeros) {
  for_each_pattern([](const std::string& name, const EntryList& entries) {
    SCOPED_TRACE(name);
    const auto arrays = arrays_of(entries);
    const auto plan = analyze(arrays.pattern, {.ordering = Ordering::Amd, .tuning = no_merging});
    index_t stored = 0;
    for (index_t s = 0; s < plan->fronts(); ++s) {
      const auto f = plan->front(s);
      stored += f.columns * f.rows - f.columns * (f.columns - 1) / 2;
    }
    ASSERT_EQ(stored, plan->factor_nonzeros());
    ASSERT_DOUBLE_EQ(plan->front_flops(), plan->flops());
  });
}

TEST(Analysis, MergingMakesFewerFrontsAndKeepsTheFill) {
  std::mt19937 random(5);
  const EntryList entries = random_entries(400, 600, random);
  const auto arrays = arrays_of(entries);
  const auto plain = analyze(arrays.pattern, {.ordering = Ordering::Amd, .tuning = no_merging});
  const auto merged = analyze(arrays.pattern, {.ordering = Ordering::Amd});
  EXPECT_LT(merged->fronts(), plain->fronts());
  EXPECT_EQ(merged->factor_nonzeros(), plain->factor_nonzeros());
  EXPECT_EQ(merged->flops(), plain->flops());
}

/// Every postorder of the fronts below s and of s, by the peak of its stack.
index_t best_peak(const Plan& plan, index_t s) {
  const auto update = [&](index_t t) {
    return (plan.row_count(t) - plan.col_count(t)) * (plan.row_count(t) - plan.col_count(t));
  };
  std::vector<index_t> children;
  for (index_t c = 0; c < s; ++c)
    if (plan.parent[c] == s) children.push_back(c);
  std::vector<index_t> peaks;
  for (const index_t c : children) peaks.push_back(best_peak(plan, c));
  std::vector<std::size_t> order(children.size());
  std::iota(order.begin(), order.end(), 0u);
  index_t best = Plan::nowhere;
  do {
    index_t waiting = 0, peak = 0;
    for (const auto k : order) {
      peak = std::max(peak, waiting + peaks[k]);
      waiting += update(children[k]);
    }
    best = std::min(best, std::max(peak, waiting + update(s)));
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

TEST(Analysis, NoOrderOfChildrenHasASmallerStack) {
  std::mt19937 random(11);
  for (int k = 0; k < 100; ++k) {
    SCOPED_TRACE(k);
    const index_t n = 2 + index_t(random() % 25);
    const auto arrays = arrays_of(random_entries(n, index_t(random() % (2 * n)), random));
    const auto plan = analyze(arrays.pattern, {.ordering = Ordering::Amd, .tuning = k % 2 ? no_merging : ""});
    const Plan& p = plan->data();
    index_t best = 0;
    bool few = true;
    for (index_t s = 0; s < p.fronts(); ++s) few = few && std::count(p.parent.begin(), p.parent.end(), s) <= 6;
    if (!few) continue;
    for (index_t s = 0; s < p.fronts(); ++s)
      if (p.parent[s] < 0) best = std::max(best, best_peak(p, s));
    EXPECT_EQ(p.stack_entries, best);
  }
}

template <class I>
void expect_every_form(const EntryList& entries) {
  const auto reference = arrays_of(entries);
  for (const auto stored : {Stored::Lower, Stored::Upper, Stored::Full})
    for (const auto compressed : {Compressed::Columns, Compressed::Rows})
      for (const bool sorted : {true, false}) {
        const auto arrays = arrays_of<I>(entries, stored, compressed, sorted);
        const auto plan = analyze(arrays.pattern, {.ordering = Ordering::Natural});
        const auto expected = analyze(reference.pattern, {.ordering = Ordering::Natural});
        ASSERT_EQ(plan->permutation(), expected->permutation());
        expect_plan(plan->data(), entries);
        expect_targets(plan->data(), arrays);
        ASSERT_EQ(plan->entries(), arrays.pattern.entries());
        for (const auto ordering : {Ordering::Metis, Ordering::Amd}) {
          const auto other = analyze(arrays.pattern, {.ordering = ordering});
          ASSERT_EQ(other->permutation(), analyze(reference.pattern, {.ordering = ordering})->permutation());
          expect_targets(other->data(), arrays);
        }
      }
}

TEST(Analysis, TakesEveryFormOfThePattern) {
  std::mt19937 random(13);
  for (const index_t n : {0, 1, 2, 5, 30}) {
    const EntryList entries = random_entries(n, 2 * n, random);
    expect_every_form<std::int32_t>(entries);
    expect_every_form<std::int64_t>(entries);
  }
}

TEST(Analysis, AddsDuplicatesUpWhenAsked) {
  std::mt19937 random(17);
  for (const index_t n : {1, 2, 6, 30})
    for (const bool sorted : {true, false}) {
      const EntryList entries = random_entries(n, 2 * n, random);
      std::vector<std::pair<index_t, index_t>> list;
      for (const auto& e : entries.lower) list.insert(list.end(), 1 + random() % 3, e);
      list.push_back({n - 1, n - 1}), list.push_back({n - 1, n - 1});
      std::shuffle(list.begin(), list.end(), random);
      const Arrays<std::int32_t> arrays(n, list, Compressed::Columns, Stored::Lower, sorted);
      const auto plan = analyze(arrays.pattern, {.ordering = Ordering::Metis, .duplicates = true});
      expect_plan(plan->data(), entries);
      expect_targets(plan->data(), arrays);
      EXPECT_THROW(analyze(arrays.pattern), InvalidArgument);
    }
}

TEST(Analysis, GivenAndNaturalOrdersAreKeptUpToAPostorder) {
  std::mt19937 random(19);
  for (int k = 0; k < 30; ++k) {
    const index_t n = 1 + index_t(random() % 30);
    const EntryList entries = random_entries(n, 2 * n, random);
    const auto arrays = arrays_of(entries);
    std::vector<index_t> given(n);
    std::iota(given.begin(), given.end(), 0);
    const auto natural = analyze(arrays.pattern, {.ordering = Ordering::Natural});
    EXPECT_EQ(analyze(arrays.pattern, {.ordering = Ordering::Given, .permutation = given})->permutation(),
              natural->permutation());
    std::shuffle(given.begin(), given.end(), random);
    const auto plan = analyze(arrays.pattern, {.ordering = Ordering::Given, .permutation = given});
    expect_plan(plan->data(), entries);
    std::vector<index_t> inverse(n);
    for (index_t j = 0; j < n; ++j) inverse[given[j]] = j;
    const Matrix L = eliminate(entries, inverse);
    index_t nonzeros = 0;
    for (index_t j = 0; j < n; ++j) nonzeros += column_count(L, j);
    EXPECT_EQ(plan->factor_nonzeros(), nonzeros);
    EXPECT_EQ(plan->ordering(), Ordering::Given);
  }
}

/// The five-point star on a square, with several unknowns on each point.
EntryList square(index_t side, index_t unknowns) {
  EntryList e(side * side * unknowns);
  for (index_t p = 0; p < side * side; ++p)
    for (index_t a = 0; a < unknowns; ++a)
      for (index_t b = 0; b < unknowns; ++b) {
        e.add(p * unknowns + a, p * unknowns + b);
        if (p % side + 1 < side) e.add(p * unknowns + a, (p + 1) * unknowns + b);
        if (p + side < side * side) e.add(p * unknowns + a, (p + side) * unknowns + b);
      }
  return e;
}

TEST(Orderings, MetisIsRepeatableInEveryThread) {
  const auto arrays = arrays_of(square(60, 1));
  const AnalyzeOptions options{.ordering = Ordering::Metis};
  const auto expected = analyze(arrays.pattern, options)->permutation();
  std::vector<std::vector<index_t>> found(4);
  std::vector<std::thread> threads;
  for (auto& order : found) threads.emplace_back([&] { order = analyze(arrays.pattern, options)->permutation(); });
  for (auto& thread : threads) thread.join();
  for (const auto& order : found) EXPECT_EQ(order, expected);
}

bool tried_metis(const SparsePlan& plan) {
  return std::any_of(plan.steps().begin(), plan.steps().end(), [](const auto& step) { return step.name == "metis"; });
}

TEST(Orderings, AutoTakesTheOneWithFewerOperations) {
  const auto arrays = arrays_of(square(40, 2));
  const auto metis = analyze(arrays.pattern, {.ordering = Ordering::Metis});
  const auto amd = analyze(arrays.pattern, {.ordering = Ordering::Amd});
  const auto both = analyze(arrays.pattern, {.tuning = "metis_node_ns=0 metis_entry_ns=0 tree_ns=0"});
  EXPECT_TRUE(tried_metis(*both));
  EXPECT_EQ(both->flops(), std::min(metis->flops(), amd->flops()));
  EXPECT_EQ(both->ordering(), metis->flops() < amd->flops() ? Ordering::Metis : Ordering::Amd);
  const auto natural = analyze(arrays.pattern, {.ordering = Ordering::Natural});
  EXPECT_LT(amd->flops(), natural->flops());
  EXPECT_LT(metis->flops(), natural->flops());
}

TEST(Orderings, AutoWeighsTheTimeOfMetis) {
  const auto arrays = arrays_of(square(60, 1));
  const auto once = analyze(arrays.pattern);
  EXPECT_EQ(once->ordering(), Ordering::Amd);
  EXPECT_FALSE(tried_metis(*once));
  EXPECT_FALSE(tried_metis(*analyze(arrays.pattern, {.expected_factorizations = 2})));
  const auto often = analyze(arrays.pattern, {.expected_factorizations = 1000000});
  EXPECT_TRUE(tried_metis(*often));
  EXPECT_EQ(often->flops(), std::min(once->flops(), analyze(arrays.pattern, {.ordering = Ordering::Metis})->flops()));
  EXPECT_TRUE(tried_metis(*analyze(arrays.pattern, {.tuning = "flops_per_ns=1 nonzero_ns=10000"})));
  EXPECT_FALSE(
      tried_metis(*analyze(arrays.pattern, {.tuning = "flops_per_ns=1 nonzero_ns=10000 metis_node_ns=1000000"})));

  EntryList band(5000);
  for (index_t i = 0; i < band.n; ++i)
    for (index_t j = std::max<index_t>(0, i - 3); j < i; ++j) band.add(i, j);
  const auto filled = arrays_of(band);
  EXPECT_FALSE(tried_metis(*analyze(filled.pattern, {.expected_factorizations = 1000000000})))
      << "nothing can be better than no fill";
  for (const index_t wrong : {0, -1})
    EXPECT_THROW(analyze(arrays.pattern, {.expected_factorizations = wrong}), InvalidArgument);
}

/// Points of a mesh with all their neighbours, also across corners.
EntryList block(index_t side, int dimensions) {
  index_t points = 1;
  for (int d = 0; d < dimensions; ++d) points *= side;
  EntryList e(points);
  for (index_t p = 0; p < points; ++p)
    for (index_t q = 0; q < p; ++q) {
      bool near = true;
      for (index_t a = p, b = q, d = 0; d < dimensions; ++d, a /= side, b /= side)
        near = near && std::abs(a % side - b % side) <= 1;
      if (near) e.add(p, q);
    }
  return e;
}

// METIS is given three tenths of the time of AMD's factorization. Only in a solid body it may save more than that.
TEST(Orderings, AutoKnowsWhereDissectionIsBetter) {
  std::mt19937 random(3);
  EntryList tangle(1000);
  for (int k = 0; k < 4000; ++k) tangle.add(index_t(random() % 1000), index_t(random() % 1000));
  const std::tuple<const char*, EntryList, bool> cases[] = {
      {"solid", block(10, 3), true}, {"flat", block(32, 2), false}, {"random", tangle, false}};
  for (const auto& [name, entries, expected] : cases) {
    const auto arrays = arrays_of(entries);
    const auto amd = analyze(arrays.pattern, {.ordering = Ordering::Amd});
    const double n = double(entries.n), share = 0.3 * amd->flops() / (n * std::log2(n + 1));
    const std::string tuning = "flops_per_ns=1 nonzero_ns=0 shared_speed=1 tree_ns=0 metis_entry_ns=0 metis_node_ns=";
    const auto plan = analyze(arrays.pattern, {.tuning = tuning + std::to_string(index_t(share))});
    EXPECT_EQ(tried_metis(*plan), expected) << name;
    EXPECT_LE(plan->flops(), amd->flops()) << name;
  }
}

TEST(Orderings, CompressionFindsTheUnknownsOfAPoint) {
  for (const index_t unknowns : {1, 2, 3, 6}) {
    const auto arrays = arrays_of(square(7, unknowns), Stored::Lower, Compressed::Columns, false);
    const CompressedGraph c = compress(graph_of(arrays.pattern, false));
    ASSERT_EQ(c.graph.nodes(), 49);
    ASSERT_TRUE(is_permutation_of(c.members, 49 * unknowns));
    EXPECT_EQ(c.graph.start.back(), 4 * 7 * 6);
    for (index_t s = 0; s < 49; ++s) {
      EXPECT_EQ(c.weight[s], unknowns);
      for (index_t k = c.member_start[s]; k < c.member_start[s + 1]; ++k)
        EXPECT_EQ(c.members[k] / unknowns, c.members[c.member_start[s]] / unknowns);
    }
  }
  const auto full = arrays_of(square(1, 9));
  EXPECT_EQ(compress(graph_of(full.pattern, false)).graph.nodes(), 1);
  const auto diagonal = arrays_of(EntryList(5));
  EXPECT_EQ(compress(graph_of(diagonal.pattern, false)).graph.nodes(), 5);
}

TEST(SparsePlan, TellsAboutItself) {
  const auto arrays = arrays_of(square(20, 2));
  const auto plan = analyze(arrays.pattern);
  EXPECT_EQ(plan->n(), 800);
  EXPECT_EQ(plan->factor_bytes<double>(), 8 * std::size_t(plan->data().factor_entries));
  EXPECT_EQ(plan->stack_bytes<float>(), 4 * std::size_t(plan->data().stack_entries));
  EXPECT_GT(plan->plan_bytes(), plan->data().rows.size() * sizeof(index_t));
  index_t fronts = 0, columns = 0;
  double flops = 0;
  for (const auto& level : plan->level_summary())
    fronts += level.fronts, columns += level.columns, flops += level.flops;
  EXPECT_EQ(index_t(plan->level_summary().size()), plan->levels());
  EXPECT_EQ(fronts, plan->fronts());
  EXPECT_EQ(columns, plan->n());
  EXPECT_NEAR(flops, plan->front_flops(), 1e-9 * flops);
  fronts = 0, flops = 0;
  index_t next = 1;
  for (const auto& bin : plan->width_histogram()) {
    EXPECT_EQ(bin.from, next);
    next = bin.to + 1;
    fronts += bin.fronts, flops += bin.flops;
  }
  EXPECT_EQ(fronts, plan->fronts());
  EXPECT_NEAR(flops, plan->front_flops(), 1e-9 * flops);
  for (const char* part : {"order 800", "fronts", "levels", "flops", "seconds: graph"})
    EXPECT_NE(plan->text().find(part), std::string::npos) << plan->text();
  EXPECT_THROW(plan->front(-1), InvalidArgument);
  EXPECT_THROW(plan->front(plan->fronts()), InvalidArgument);
}

TEST(SparsePlan, OfAnEmptyMatrixIsEmpty) {
  const auto plan = analyze(Pattern<std::int32_t>{});
  EXPECT_EQ(plan->n(), 0);
  EXPECT_EQ(plan->fronts(), 0);
  EXPECT_EQ(plan->levels(), 0);
  EXPECT_EQ(plan->factor_entries(), 0);
  EXPECT_TRUE(plan->level_summary().empty());
  EXPECT_TRUE(plan->width_histogram().empty());
}

template <class Call>
std::string message_of(Call call) {
  try {
    call();
  } catch (const InvalidArgument& e) { return e.what(); }
  return "nothing was thrown";
}

TEST(MalformedPatterns, AreNamedWithTheValueAndTheRule) {
  using P = Pattern<std::int64_t>;
  std::vector<std::int64_t> start = {0, 2, 3, 4}, index = {0, 2, 1, 2};
  const P good{3, 3, start.data(), index.data(), Compressed::Columns, Stored::Lower, true};
  ASSERT_NO_THROW(analyze(good));
  const auto with = [&](auto change) {
    auto s = start, i = index;
    P p = good;
    change(p, s, i);
    if (p.start) p.start = s.data();
    if (p.index) p.index = i.data();
    return message_of([&] { analyze(p); });
  };
  using V = std::vector<std::int64_t>;
  EXPECT_EQ(with([](P& p, V&, V&) { p.rows = -1; }), "analyze: pattern.rows = -1 must not be negative");
  EXPECT_EQ(with([](P& p, V&, V&) { p.cols = 4; }), "analyze: pattern.cols = 4 must equal pattern.rows = 3");
  EXPECT_EQ(with([](P& p, V&, V&) { p.rows = p.cols = index_t(1) << 31; }),
            "analyze: pattern.rows = 2147483648 must be at most 2147483646");
  EXPECT_EQ(with([](P& p, V&, V&) { p.start = nullptr; }), "analyze: pattern.start is null");
  EXPECT_EQ(with([](P& p, V&, V&) { p.index = nullptr; }), "analyze: pattern.index is null");
  EXPECT_EQ(with([](P&, V& s, V&) { s[0] = 1; }), "analyze: pattern.start[0] = 1 must be 0");
  EXPECT_EQ(with([](P&, V& s, V&) { s[2] = 1; }),
            "analyze: pattern.start[2] = 1 must be at least pattern.start[1] = 2");
  EXPECT_EQ(with([](P&, V&, V& i) { i[1] = 3; }),
            "analyze: pattern.index[1] in column 0 = 3 must be at least 0 and less than n = 3");
  EXPECT_EQ(with([](P&, V&, V& i) { i[1] = -1; }),
            "analyze: pattern.index[1] in column 0 = -1 must be at least 0 and less than n = 3");
  EXPECT_EQ(
      with([](P&, V&, V& i) { i[0] = 2, i[1] = 0; }),
      "analyze: pattern.index[1] in column 0 = 0 must not be less than the index before it, 2, in a pattern that is "
      "promised to be sorted");
  EXPECT_EQ(with([](P& p, V&, V& i) { i[0] = 2, i[1] = 0, p.sorted = false; }), "nothing was thrown");
  for (const bool sorted : {true, false})
    EXPECT_EQ(
        with([&](P& p, V&, V& i) { i[1] = 0, p.sorted = sorted; }),
        "analyze: pattern.index[1] in column 0 = 0 must not appear twice in a column unless duplicates are asked for");
  EXPECT_EQ(with([](P&, V&, V& i) { i[2] = 0; }),
            "analyze: pattern.index[2] in column 1 = 0 must lie in the lower triangle, which alone is promised");
  EXPECT_EQ(with([](P& p, V&, V&) { p.compressed = Compressed::Rows; }),
            "analyze: pattern.index[1] in row 0 = 2 must lie in the lower triangle, which alone is promised");
  EXPECT_EQ(with([](P& p, V&, V&) { p.stored = Stored::Upper; }),
            "analyze: pattern.index[1] in column 0 = 2 must lie in the upper triangle, which alone is promised");
}

#ifndef __SANITIZE_ADDRESS__
TEST(Memory, EveryAllocationOfTheAnalysisMayFail) {
  const auto arrays = arrays_of(square(12, 2));
  for (const Ordering ordering : {Ordering::Natural, Ordering::Amd, Ordering::Metis, Ordering::Auto}) {
    analyze(arrays.pattern, {.ordering = ordering});  // what is made once, such as the table of tuning rows, is there
    long k = 0;
    for (bool done = false; !done; ++k) {
      ASSERT_LT(k, 10000);
      allocations_left = k;
      try {
        analyze(arrays.pattern, {.ordering = ordering});
        done = true;
      } catch (const OutOfMemory&) {
      } catch (...) {
        allocations_left = -1;
        FAIL() << "another exception at allocation " << k;
      }
      allocations_left = -1;
    }
    EXPECT_GT(k, 20);
  }
}

TEST(Memory, AllocationsBesideOtherThreadsMayFail) {
  const auto arrays = arrays_of(square(80, 2));
  for (const Ordering ordering : {Ordering::Amd, Ordering::Metis})
    for (long k = 0;; k = k + k / 4 + 1) {
      ASSERT_LT(k, 1000000);
      allocations_left = k;
      try {
        analyze(arrays.pattern, {.ordering = ordering}, {}, 3);
        allocations_left = -1;
        break;
      } catch (const std::bad_alloc&) {  // OutOfMemory is what the library makes of it
        allocations_left = -1;
      }
    }
}
#endif

TEST(MalformedOptions, AreNamedWithTheValueAndTheRule) {
  const auto arrays = arrays_of(square(2, 1));
  const auto with = [&](AnalyzeOptions options) { return message_of([&] { analyze(arrays.pattern, options); }); };
  EXPECT_EQ(with({.ordering = Ordering::Given, .permutation = {0, 1, 2}}),
            "analyze: the size of options.permutation = 3 must equal n = 4");
  EXPECT_EQ(with({.ordering = Ordering::Given, .permutation = {0, 1, 4, 2}}),
            "analyze: options.permutation[2] = 4 must be at least 0 and less than n = 4");
  EXPECT_EQ(with({.ordering = Ordering::Given, .permutation = {0, 1, -1, 2}}),
            "analyze: options.permutation[2] = -1 must be at least 0 and less than n = 4");
  EXPECT_EQ(with({.ordering = Ordering::Given, .permutation = {0, 3, 2, 3}}),
            "analyze: options.permutation[3] = 3 must appear once, but is at 1 too");
  EXPECT_EQ(with({.permutation = {0, 1, 2, 3}}),
            "analyze: the size of options.permutation = 4 must be 0 unless ordering is Given");
  EXPECT_NE(with({.tuning = "tiny=x"}).find("tiny must be a whole number"), std::string::npos);
}

}  // namespace
}  // namespace trifactor::sparse
