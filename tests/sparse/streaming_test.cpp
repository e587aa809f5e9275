// SparseCholesky in less memory than the factor takes: branches pass through a ring. On the host the same driver runs
// level by level.
#include <sparse/calls.hpp>
#include <support/ratios.hpp>
#include <trifactor/testing.hpp>

namespace trifactor::test {
namespace {

constexpr const char* in_levels = "levels=1 at_once=5";  // more right-hand sides than that take several passes
constexpr const char* small_blocks = "levels=1 at_once=5 alone=8 alone_below=16 widest=64";

template <class T>
class Streaming : public DeviceTest {
 protected:
  std::vector<SparseMatrix<T>> shapes() {
    std::vector<SparseMatrix<T>> all;
    all.push_back(poisson2d<T>(random, 25));
    all.push_back(poisson3d<T>(random, 8));
    all.push_back(banded<T>(random, 300, 9));
    all.push_back(arrow<T>(random, 60, false));
    all.push_back(disconnected<T>(random, 6, 30));
    all.push_back(full_matrix<T>(random, 150));
    all.push_back(random_pattern<T>(random, random.integer(100, 300), random.uniform(0.5, 3)));
    return all;
  }
  /// The least that the message of a refusal names.
  std::size_t least(const std::shared_ptr<const SparsePlan>& plan, const char* tuning, std::size_t bytes = 1) {
    try {
      SparseCholesky<T>::memory(q, *plan, {.max_device_bytes = bytes, .tuning = tuning});
    } catch (const InvalidArgument& refusal) {
      const std::string message = refusal.what(), before = "be at least ";
      EXPECT_NE(message.find("max_device_bytes = " + std::to_string(bytes)), std::string::npos) << message;
      return std::stoull(message.substr(message.find(before) + before.size()));
    }
    ADD_FAILURE() << bytes << " bytes are not refused";
    return 0;
  }
};
TYPED_TEST_SUITE(Streaming, Scalars, ScalarNames);

TYPED_TEST(Streaming, WorksFromTheLeastMemoryOn) {
  using T = TypeParam;
  for (const auto& A : this->shapes())
    for (const char* tuning : {in_levels, small_blocks}) {
      const auto given = A.stored(Stored::Lower);
      const auto plan = analyze(given.pattern());
      const std::size_t least = this->least(plan, tuning);
      EXPECT_EQ(this->least(plan, tuning, least / 2), least);
      const std::size_t all = SparseCholesky<T>::memory(this->q, *plan, {.tuning = tuning}).total();
      std::vector<std::size_t> caps{least, least + least / 10, (least + all) / 2, all - 1, all};
      for (const std::size_t cap : caps) {
        if (cap < least || cap > all) continue;
        SCOPED_TRACE(::testing::Message()
                     << A.name << " n=" << A.n << " " << tuning << " cap " << cap << " of " << all);
        SparseCholesky<T> F(this->q, plan, {.max_device_bytes = cap, .tuning = tuning});
        const SparseMemory memory = F.memory();
        EXPECT_LE(memory.total(), cap);
        EXPECT_TRUE(cap < all ? memory.host >= std::size_t(plan->factor_nonzeros()) * sizeof(T) : memory.host == 0);
        for (int turn = 0; turn < 2; ++turn) {
          const auto now = turn == 0 ? A : A.with_new_values(this->random);
          factor(this->q, F, now.stored(Stored::Lower).values);
          EXPECT_EQ(testing::path_taken(), cap < all ? "streamed" : "levels");
          for (index_t k : {1, 4, 13}) {
            const auto B = random_matrix<T>(this->random, A.n, k, 2);
            auto X = B;
            solve(this->q, F, X);
            EXPECT_TRUE(same_frame(B, X)) << "wrote outside B";
            EXPECT_LT(now.solve_ratio(X, B), threshold) << k << " right-hand sides";
          }
        }
        if (cap < all) { EXPECT_EQ(F.memory().total(), memory.total()) << "solves took more"; }
      }
    }
}

TYPED_TEST(Streaming, PartsOfASolveMakeTheWhole) {
  using T = TypeParam;
  const auto A = poisson3d<T>(this->random, 8);
  const auto given = A.stored(Stored::Lower);
  const auto plan = analyze(given.pattern());
  SparseCholesky<T> F(this->q, plan, {.max_device_bytes = this->least(plan, small_blocks), .tuning = small_blocks});
  factor(this->q, F, given.values);
  const auto B = random_matrix<T>(this->random, A.n, 7);
  auto X = B, Y = B;
  solve(this->q, F, X);
  for (const SparsePart part :
       {SparsePart::Permute, SparsePart::Lower, SparsePart::LowerAdjoint, SparsePart::PermuteBack})
    solve(this->q, F, Y, part);
  EXPECT_LT(A.solve_ratio(Y, B), threshold);
  EXPECT_TRUE(same_bits(X, Y));
  auto Z = B;
  EXPECT_LT(solve_refined(this->q, F, given.values, Z).backward_error, 10 * std::numeric_limits<real_t<T>>::epsilon());
  EXPECT_GT(F.rcond(), 0);
}

// Small fronts and those that are alone; batches of others may take another kernel when they have other members.
TYPED_TEST(Streaming, LimitsDoNotChangeBits) {
  using T = TypeParam;
  if (!on_cuda()) GTEST_SKIP() << "a property of devices";
  for (const auto& A : this->shapes()) {
    const auto given = A.stored(Stored::Lower);
    const auto plan = analyze(given.pattern());
    for (const char* tuning : {in_levels, small_blocks}) {
      const std::size_t least = this->least(plan, tuning);
      SparseCholesky<T> whole(this->q, plan, {.tuning = tuning});
      factor(this->q, whole, given.values);
      const auto B = random_matrix<T>(this->random, A.n, 6);
      auto X = B;
      solve(this->q, whole, X);
      for (const std::size_t cap : {least, least + least / 8, least + least / 3}) {
        SCOPED_TRACE(::testing::Message() << A.name << " n=" << A.n << " " << tuning << " cap " << cap);
        SparseCholesky<T> F(this->q, plan, {.max_device_bytes = cap, .tuning = tuning});
        factor(this->q, F, given.values);
        EXPECT_EQ(F.lower().values, whole.lower().values);
        EXPECT_EQ(F.diagonal(), whole.diagonal());
        auto Y = B;
        solve(this->q, F, Y);
        EXPECT_TRUE(same_bits(X, Y));
      }
    }
  }
}

// Small ones lie in memory that the driver gives, large ones in memory that is registered with it.
TYPED_TEST(Streaming, LargeFactorsLieInPageLockedMemory) {
  using T = TypeParam;
  if (!on_cuda()) GTEST_SKIP() << "a property of devices";
  const auto A = poisson3d<T>(this->random, 30);
  const auto given = A.stored(Stored::Lower);
  const auto plan = analyze(given.pattern());
  const std::size_t all = SparseCholesky<T>::memory(this->q, *plan, {.tuning = in_levels}).total();
  for (int turn = 0; turn < 2; ++turn) {  // its memory is given back
    SparseCholesky<T> F(this->q, plan, {.max_device_bytes = all - all / 8, .tuning = in_levels});
    EXPECT_GE(F.memory().host, std::size_t(16) << 20);
    factor(this->q, F, given.values);
    EXPECT_EQ(testing::path_taken(), "streamed");
    const auto B = random_matrix<T>(this->random, A.n, 2);
    auto X = B;
    solve(this->q, F, X);
    EXPECT_LT(A.solve_ratio(X, B), threshold);
  }
}

TYPED_TEST(Streaming, FailsAtTheColumnThatFails) {
  using T = TypeParam;
  const auto A = poisson2d<T>(this->random, 9);
  auto given = A.stored(Stored::Lower);
  const auto plan = analyze(given.pattern());
  SparseCholesky<T> F(this->q, plan, {.max_device_bytes = this->least(plan, small_blocks), .tuning = small_blocks});
  for (index_t j = 0; j < A.n; ++j) {
    auto bad = given;
    bad.at(j, j) = T(-1);
    EXPECT_EQ(try_factor(this->q, F, bad.values), j + 1);
  }
  factor(this->q, F, given.values);
  const auto B = random_matrix<T>(this->random, A.n, 1);
  auto X = B;
  solve(this->q, F, X);
  EXPECT_LT(A.solve_ratio(X, B), threshold);
}

TYPED_TEST(Streaming, NothingIsAllocatedAfterPlanningAndEveryFailureIsSurvived) {
  using T = TypeParam;
  const auto A = poisson2d<T>(this->random, 12);
  const auto given = A.stored(Stored::Lower);
  const auto plan = analyze(given.pattern());
  const SparseOptions options{.max_device_bytes = this->least(plan, in_levels), .tuning = in_levels};
  {
    Queue q = test_queue();  // with nothing reserved
    SparseCholesky<T> F(q, plan, options);
    EXPECT_EQ(F.memory().total(), SparseCholesky<T>::memory(q, *plan, options).total());
    const DeviceArray<T> values(q, given.values), x(q, std::vector<T>(5 * A.n, T(1)));
    const index_t columns = F.memory().host > 0 ? 5 : 1;  // a factor that streams has room for several
    const index_t before = testing::allocation_count();
    F.factor(std::span<const T>(values.data(), given.values.size()));
    F.solve(MatrixView<T>{x.data(), A.n, columns, A.n});
    EXPECT_EQ(testing::allocation_count(), before);
  }
  for (index_t k = 1;; ++k) {
    ASSERT_LT(k, 100);
    testing::fail_allocation(k);
    try {
      SparseCholesky<T> F(this->q, plan, options);
      auto X = random_matrix<T>(this->random, A.n, 5);
      factor(this->q, F, given.values);
      solve(this->q, F, X);
      testing::fail_allocation(0);
      break;
    } catch (const OutOfMemory&) { testing::fail_allocation(0); }
  }
}

}  // namespace
}  // namespace trifactor::test
