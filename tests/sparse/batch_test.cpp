// SparseCholeskyBatch: many matrices of one pattern, which fail alone.
#include <sparse/calls.hpp>
#include <support/ratios.hpp>
#include <trifactor/testing.hpp>

#include <set>

namespace trifactor::test {
namespace {

// On the host: level by level, many small tasks for several threads, and as it comes.
constexpr const char* ways[] = {"", "levels=1 at_once=5 alone=8 alone_below=16",
                                "tile_least=5 tile_most=7 branch_cost=1 team=1 most_updates=100 leaf=3"};

/// Matrices of one pattern, and their values one after the other.
template <class T>
struct OnePattern {
  std::vector<SparseMatrix<T>> items;
  StoredMatrix<T> first;
  std::vector<T> values;
  std::shared_ptr<const SparsePlan> plan;

  OnePattern(Random& random, const SparseMatrix<T>& A, index_t count, Stored stored = Stored::Lower)
      : first(A.stored(stored)), plan(analyze(first.pattern())) {
    for (index_t i = 0; i < count; ++i) {
      items.push_back(i == 0 ? A : A.with_new_values(random));
      const auto given = items.back().stored(stored).values;
      values.insert(values.end(), given.begin(), given.end());
    }
  }
  index_t count() const { return index_t(items.size()); }
  /// The diagonal entry of a column.
  T& pivot(std::vector<T>& all, index_t item, index_t column) const {
    for (index_t k = first.start[column]; k < first.start[column + 1]; ++k)
      if (first.index[k] == column) return all[item * index_t(first.values.size()) + k];
    throw std::out_of_range("no such entry");
  }
};

template <class T>
std::vector<HostMatrix<T>> sides(Random& random, index_t count, index_t n, index_t k) {
  std::vector<HostMatrix<T>> B;
  for (index_t i = 0; i < count; ++i) B.push_back(random_matrix<T>(random, n, k, 2));
  return B;
}

template <class T>
class SparseBatch : public DeviceTest {
 protected:
  /// Items that are not in `failed` are solved with, the others keep their right-hand sides.
  void expect_solves(const OnePattern<T>& A, const SparseCholeskyBatch<T>& F, index_t k,
                     const std::set<index_t>& failed = {}) {
    const auto B = sides<T>(random, A.count(), A.first.n, k);
    auto X = B;
    solve(q, F, X);
    for (index_t i = 0; i < A.count(); ++i) {
      if (failed.count(i)) {
        EXPECT_TRUE(same_bits(X[i], B[i])) << "item " << i << " has failed";
      } else {
        EXPECT_TRUE(same_frame(B[i], X[i])) << "wrote outside of item " << i;
        EXPECT_LT(A.items[i].solve_ratio(X[i], B[i]), threshold) << "item " << i << ", " << k << " right-hand sides";
      }
    }
  }
  template <class F>
  void expect_message(F call, const std::string& part) {
    try {
      call();
      ADD_FAILURE() << "no exception: " << part;
    } catch (const InvalidArgument& e) {
      EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what() << "\nshould say: " << part;
    }
  }
};
TYPED_TEST_SUITE(SparseBatch, Scalars, ScalarNames);

TYPED_TEST(SparseBatch, FactorsAndSolvesEveryItem) {
  using T = TypeParam;
  Random& random = this->random;
  for (const auto& shape :
       {full_matrix<T>(random, 0), full_matrix<T>(random, 1), full_matrix<T>(random, 40),
        diagonal_matrix<T>(random, 30), poisson2d<T>(random, 9), poisson3d<T>(random, 5), arrow<T>(random, 40, false),
        disconnected<T>(random, 5, 12), random_pattern<T>(random, 60, 2)})
    for (const index_t count : {0, 1, 2, 9})
      for (const char* tuning : ways) {
        SCOPED_TRACE(::testing::Message() << shape.name << " n=" << shape.n << " count=" << count << " " << tuning);
        const OnePattern<T> A(random, shape, count, count == 2 ? Stored::Full : Stored::Lower);
        SparseCholeskyBatch<T> F(this->q, A.plan, count, {.tuning = tuning});
        EXPECT_EQ(F.count(), count);
        EXPECT_EQ(&F.plan(), A.plan.get());
        EXPECT_EQ(F.info(), std::vector<int>(count, -1));
        EXPECT_EQ(factor(this->q, F, A.values), 0);
        EXPECT_EQ(F.info(), std::vector<int>(count, 0));
        for (const index_t k : {1, 7}) this->expect_solves(A, F, k);
      }
}

TYPED_TEST(SparseBatch, TellsWhatSingleFactorsTell) {
  using T = TypeParam;
  const OnePattern<T> A(this->random, poisson3d<T>(this->random, 6), 5);
  const real_t<T> shift = real_t<T>(0.5);
  for (const char* tuning : ways) {
    SparseCholeskyBatch<T> F(this->q, A.plan, A.count(), {.tuning = tuning});
    ASSERT_EQ(factor(this->q, F, A.values, shift), 0);
    const auto log_det = F.log_det(), diagonal = F.diagonal();
    ASSERT_EQ(index_t(log_det.size()), A.count());
    ASSERT_EQ(index_t(diagonal.size()), A.count() * A.first.n);
    const double rounding = 100 * eps<T>;
    for (index_t i = 0; i < A.count(); ++i) {
      SparseCholesky<T> one(this->q, A.plan, {.tuning = tuning});
      factor(this->q, one, A.items[i].stored(Stored::Lower).values, shift);
      EXPECT_NEAR(log_det[i], one.log_det(), rounding * double(A.first.n));
      const auto expected = one.diagonal();
      for (index_t j = 0; j < A.first.n; ++j)
        EXPECT_NEAR(diagonal[i * A.first.n + j], expected[j], rounding * double(expected[j])) << "item " << i;
    }
  }
}

TYPED_TEST(SparseBatch, ItemsFailAlone) {
  using T = TypeParam;
  const OnePattern<T> A(this->random, poisson2d<T>(this->random, 9), 7);
  const index_t n = A.first.n;
  for (const char* tuning : ways) {
    SparseCholeskyBatch<T> F(this->q, A.plan, A.count(), {.tuning = tuning});
    for (const std::set<index_t>& failed :
         std::vector<std::set<index_t>>{{0}, {6}, {3}, {0, 2, 6}, {0, 1, 2, 3, 4, 5, 6}})
      for (const T wrong : {T(-1), T(nan<T>)}) {
        auto values = A.values;
        std::vector<int> info(A.count(), 0);
        for (const index_t i : failed) {
          info[i] = int(this->random.integer(1, n));
          A.pivot(values, i, info[i] - 1) = wrong;
        }
        SCOPED_TRACE(::testing::Message() << tuning << " " << ::testing::PrintToString(info));
        EXPECT_EQ(factor(this->q, F, values), index_t(failed.size()));
        EXPECT_EQ(F.info(), info);
        for (const index_t k : {1, 6}) this->expect_solves(A, F, k, failed);
        const auto log_det = F.log_det(), diagonal = F.diagonal();
        for (index_t i = 0; i < A.count(); ++i) {
          EXPECT_EQ(std::isnan(log_det[i]), failed.count(i) > 0) << "item " << i;
          EXPECT_EQ(std::isnan(diagonal[i * n + n / 2]), failed.count(i) > 0) << "item " << i;
        }
      }
    EXPECT_EQ(factor(this->q, F, A.values), 0) << "the next one begins anew";
    this->expect_solves(A, F, 2);
  }
}

// Of several bad columns the first one counts, in the order of elimination, as in a single factorization.
TYPED_TEST(SparseBatch, EveryItemTellsItsFirstColumn) {
  using T = TypeParam;
  const OnePattern<T> A(this->random, poisson3d<T>(this->random, 5), 8);
  auto values = A.values;
  for (index_t i = 0; i < A.count(); ++i)
    for (index_t k = 0; k < i; ++k) A.pivot(values, i, this->random.integer(0, A.first.n - 1)) = T(-1);
  for (const char* tuning : ways) {
    SparseCholeskyBatch<T> F(this->q, A.plan, A.count(), {.tuning = tuning});
    EXPECT_EQ(factor(this->q, F, values), A.count() - 1);
    const index_t entries = A.plan->entries();
    for (index_t i = 0; i < A.count(); ++i) {
      SparseCholesky<T> one(this->q, A.plan);
      const std::vector<T> own(values.begin() + i * entries, values.begin() + (i + 1) * entries);
      EXPECT_EQ(F.info()[i], try_factor(this->q, one, own)) << "item " << i;
    }
  }
}

TYPED_TEST(SparseBatch, PartsOfASolveMakeTheWhole) {
  using T = TypeParam;
  const OnePattern<T> A(this->random, random_pattern<T>(this->random, 50, 2), 4);
  auto values = A.values;
  A.pivot(values, 2, 7) = T(-1);
  for (const char* tuning : ways) {
    SparseCholeskyBatch<T> F(this->q, A.plan, A.count(), {.tuning = tuning});
    EXPECT_EQ(factor(this->q, F, values), 1);
    const auto B = sides<T>(this->random, A.count(), A.first.n, 3);
    auto X = B;
    for (const SparsePart part :
         {SparsePart::Permute, SparsePart::Lower, SparsePart::LowerAdjoint, SparsePart::PermuteBack})
      solve(this->q, F, X, part);
    for (index_t i = 0; i < A.count(); ++i)
      EXPECT_TRUE(i == 2 ? same_bits(X[i], B[i]) : A.items[i].solve_ratio(X[i], B[i]) < threshold) << "item " << i;
  }
}

TYPED_TEST(SparseBatch, FactorsWithoutWaiting) {
  using T = TypeParam;
  const OnePattern<T> A(this->random, poisson2d<T>(this->random, 8), 5);
  auto values = A.values;
  A.pivot(values, 1, 3) = T(-1), A.pivot(values, 4, 0) = T(0);
  const std::vector<int> expected{0, 4, 0, 0, 1};
  for (const char* tuning : ways) {
    SparseCholeskyBatch<T> F(this->q, A.plan, A.count(), {.tuning = tuning});
    const DeviceArray<T> there(this->q, values);
    Buffer<int> info(this->q, A.count());
    for (int turn = 0; turn < 4; ++turn) {  // a graph from the second or third time on
      F.factor_async(std::span<const T>(there.data(), values.size()), info);
      EXPECT_EQ(F.info(), std::vector<int>(5, -1));
      this->expect_solves(A, F, 2, {1, 4});
      std::vector<int> got(5, -5);
      copy(this->q, static_cast<const int*>(info.data()), host_queue(), got.data(), 5);
      EXPECT_EQ(got, expected);
    }
    EXPECT_EQ(std::isnan(F.log_det()[1]), true);
    EXPECT_EQ(F.info(), expected) << "log_det has waited";
  }
}

TYPED_TEST(SparseBatch, PassesThroughLessMemoryThanTheFactorsTake) {
  using T = TypeParam;
  const OnePattern<T> A(this->random, poisson2d<T>(this->random, 15), 12);
  const char* tuning = ways[1];
  const auto memory = [&](std::size_t bytes) {
    return SparseCholeskyBatch<T>::memory(this->q, *A.plan, A.count(), {.max_device_bytes = bytes, .tuning = tuning});
  };
  std::size_t least = 0;
  try {
    memory(1);
  } catch (const InvalidArgument& refusal) {
    const std::string message = refusal.what(), before = "be at least ";
    EXPECT_TRUE(message.starts_with("SparseCholeskyBatch: max_device_bytes = 1 must")) << message;
    least = std::stoull(message.substr(message.find(before) + before.size()));
  }
  const std::size_t all = memory(0).total();
  ASSERT_GT(least, 0u);
  ASSERT_LT(least, all);
  auto values = A.values;
  A.pivot(values, 3, 100) = T(-1), A.pivot(values, 11, 20) = T(-1);
  for (const std::size_t cap : {least, (least + all) / 2}) {
    SparseCholeskyBatch<T> F(this->q, A.plan, A.count(), {.max_device_bytes = cap, .tuning = tuning});
    const std::size_t lists_of_host =
        on_cuda() ? 0 : A.plan->plan_bytes() * 12;  // copies of the plan, beside the limit
    EXPECT_LE(F.memory().total(), cap + lists_of_host);
    EXPECT_GE(F.memory().host, 12 * A.plan->template factor_bytes<T>());
    EXPECT_EQ(factor(this->q, F, A.values), 0);
    EXPECT_EQ(testing::path_taken(), "streamed");
    for (const index_t k : {1, 9}) this->expect_solves(A, F, k);
    EXPECT_EQ(factor(this->q, F, values), 2);
    EXPECT_EQ(F.info()[3], 101);
    EXPECT_EQ(F.info()[11], 21);
    for (const index_t k : {1, 9}) this->expect_solves(A, F, k, {3, 11});
  }
}

TYPED_TEST(SparseBatch, SolvesVectorsOfTheHost) {
  using T = TypeParam;
  const OnePattern<T> A(this->random, banded<T>(this->random, 20, 3), 3);
  SparseCholeskyBatch<T> F(this->q, A.plan, 3);
  factor(this->q, F, A.values);
  const auto B = random_matrix<T>(this->random, 20, 3);
  std::vector<T> b;
  for (index_t i = 0; i < 3; ++i)
    for (index_t j = 0; j < 20; ++j) b.push_back(B(j, i));
  const auto x = F.solve(b);
  for (index_t i = 0; i < 3; ++i) {
    HostMatrix<T> X(20, 1), one(20, 1);
    for (index_t j = 0; j < 20; ++j) X(j, 0) = x[i * 20 + j], one(j, 0) = B(j, i);
    EXPECT_LT(A.items[i].solve_ratio(X, one), threshold);
  }
  F = SparseCholeskyBatch<T>(this->q, A.plan, 2);
  EXPECT_EQ(F.count(), 2);
}

TYPED_TEST(SparseBatch, RefusesWhatBreaksARule) {
  using T = TypeParam;
  const OnePattern<T> A(this->random, banded<T>(this->random, 10, 2), 3);
  Queue& q = this->q;
  const auto make = [&](index_t count) { return [&q, &A, count] { SparseCholeskyBatch<T>(q, A.plan, count); }; };
  this->expect_message([&] { SparseCholeskyBatch<T>(q, nullptr, 3); }, "SparseCholeskyBatch: plan must not be null");
  this->expect_message(make(-1), "count = -1 must not be negative");
  this->expect_message(make(214748365),
                       "count = 214748365 must be at most 214748364, so that matrices of order 10 have fewer than 2^31 "
                       "columns in all");
  this->expect_message(make(std::numeric_limits<index_t>::max()), "must be at most 214748364");
  this->expect_message([&] { SparseCholeskyBatch<T>::memory(q, *A.plan, index_t(1) << 40); },
                       "must be at most 214748364");

  SparseCholeskyBatch<T> F(q, A.plan, 3);
  const DeviceArray<T> values(q, A.values);
  const auto first = [&](index_t size) { return std::span<const T>(values.data(), std::size_t(size)); };
  const index_t entries = A.plan->entries();
  Buffer<T> b(q, 60);
  const auto strided = [&](index_t n, index_t k, index_t ld, index_t stride, index_t count) {
    return StridedBatch<T>{b.data(), n, k, ld, stride, count};
  };
  this->expect_message([&] { F.solve(strided(10, 1, 10, 10, 3)); }, "nothing has been factored yet");
  this->expect_message([&] { F.log_det(); }, "nothing has been factored yet");
  this->expect_message([&] { F.diagonal(); }, "nothing has been factored yet");
  this->expect_message([&] { F.factor(first(entries)); }, "values.size() = " + std::to_string(entries) +
                                                              " must equal the entries of the pattern times count, " +
                                                              std::to_string(entries) +
                                                              " * 3 = " + std::to_string(3 * entries));
  this->expect_message([&] { F.factor_async(first(3 * entries), nullptr); }, "info");
  Buffer<int> info(q, 2);
  this->expect_message([&] { F.factor_async(first(3 * entries), info); }, "info.size = 2 must be at least count = 3");
  EXPECT_EQ(F.factor(first(3 * entries)), 0);
  this->expect_message([&] { F.solve(strided(10, 1, 10, 10, 2)); }, "B.count = 2 must equal count = 3");
  this->expect_message([&] { F.solve(strided(9, 1, 10, 10, 3)); }, "B.rows = 9 must equal the order of A, 10");
  this->expect_message([&] { F.solve(strided(10, 2, 10, 10, 3)); }, "B.stride = 10 must be at least");
  this->expect_message([&] { F.solve(strided(10, 1, 9, 10, 3)); }, "B.ld = 9 must");
  this->expect_message([&] { F.solve(std::vector<T>(10)); },
                       "b.size() = 10 must equal the order of A times count, 10 * 3 = 30");
  F.solve(strided(10, 0, 10, 0, 3));  // no right-hand sides
}

TYPED_TEST(SparseBatch, NothingIsAllocatedAfterTheConstructorAndEveryFailureIsSurvived) {
  using T = TypeParam;
  const OnePattern<T> A(this->random, poisson2d<T>(this->random, 10), 6);
  for (const char* tuning : {"", "levels=1"}) {
    {
      Queue q = test_queue();  // with nothing reserved
      const auto before_it = SparseCholeskyBatch<T>::memory(q, *A.plan, 6, {.tuning = tuning});
      SparseCholeskyBatch<T> F(q, A.plan, 6, {.tuning = tuning});
      EXPECT_EQ(F.memory().total(), before_it.total());
      EXPECT_EQ(F.memory().values, sizeof(T) * A.values.size());
      EXPECT_GE(F.memory().factor, 6 * A.plan->template factor_bytes<T>());
      const auto single = SparseCholesky<T>::memory(q, *A.plan, {.tuning = tuning});
      EXPECT_GT(F.memory().lists, 3 * single.lists);
      const DeviceArray<T> values(q, A.values), x(q, std::vector<T>(6 * A.first.n, T(1)));
      const index_t before = testing::allocation_count();
      F.factor(std::span<const T>(values.data(), A.values.size()));
      F.solve(StridedBatch<T>{x.data(), A.first.n, 1, A.first.n, A.first.n, 6});
      EXPECT_EQ(testing::allocation_count(), before);
    }
    for (index_t k = 1;; ++k) {
      ASSERT_LT(k, 100);
      testing::fail_allocation(k);
      try {
        SparseCholeskyBatch<T> F(this->q, A.plan, 6, {.tuning = tuning});
        factor(this->q, F, A.values);
        testing::fail_allocation(0);
        break;
      } catch (const OutOfMemory&) { testing::fail_allocation(0); }
    }
  }
}

// Trees that are worth threads, more of them than threads and fewer; on a device, fronts that solves cut into strips.
TYPED_TEST(SparseBatch, LargerTreesFailAloneOnAnyNumberOfThreads) {
  using T = TypeParam;
  Random& random = this->random;
  for (const auto& shape : {poisson3d<T>(random, 8), full_matrix<T>(random, 100)})
    for (const index_t count : {2, 9}) {
      const OnePattern<T> A(random, shape, count);
      auto values = A.values;
      A.pivot(values, 1, 77) = T(-1);
      for (const int threads : {1, 3}) {
        if (on_cuda() && threads > 1) continue;
        SCOPED_TRACE(::testing::Message() << shape.name << " count=" << count << " threads=" << threads);
        if (!on_cuda()) this->q = Queue::host(threads);
        SparseCholeskyBatch<T> F(this->q, A.plan, count, {.tuning = "branch_cost=1000"});
        EXPECT_EQ(factor(this->q, F, values), 1);
        EXPECT_EQ(F.info()[1], 78);
        for (const index_t k : {1, 5}) this->expect_solves(A, F, k, {1});
        EXPECT_EQ(factor(this->q, F, A.values), 0);
        this->expect_solves(A, F, count == 2 ? 40 : 2);
      }
    }
}

}  // namespace
}  // namespace trifactor::test
