// Calls on the host that end early: at every question they may ask, with one thread and several, and again afterwards.
#include <sparse/matrices.hpp>
#include <support/ratios.hpp>
#include <trifactor/trifactor.hpp>

#include <thread>

namespace trifactor::test {
namespace {

template <class>
struct First;
template <class T, class... Rest>
struct First<::testing::Types<T, Rest...>> {
  using type = T;
};
using T = First<Scalars>::type;  // what is asked does not depend on it

/// Calls f and says yes to question number `last`, counted from 1; f ends there. Returns how many questions there were.
template <class F>
int ask(int last, F f) {
  int questions = 0;
  const auto caller = std::this_thread::get_id();
  const Interruptible scope([&] {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    return ++questions == last;
  });
  bool ended = false;
  try {
    f();
  } catch (const Interrupted&) { ended = true; }
  EXPECT_EQ(ended, last > 0 && questions == last) << questions << " questions, yes to " << last;
  return questions;
}

/// f ends after the first question, one in the middle and the last. Of several threads the calling one asks, which does
/// more or less of the work, and perhaps none.
template <class F>
void expect_ends(int threads, F f) {
  const int questions = ask(0, f);
  EXPECT_GE(questions, threads == 1 ? 2 : 0);
  for (const int last : {1, questions / 2, questions}) {
    const int asked = ask(last, f);
    EXPECT_TRUE(threads > 1 || asked == (last > 0 ? last : questions)) << asked;
  }
}

struct Batch {
  Batch(Random& random, index_t order, index_t items, bool positive) : n(order), count(items) {
    for (index_t i = 0; i < count; ++i) {
      const auto A = positive ? random_spd<T>(random, n) : random_matrix<T>(random, n, n);
      for (index_t j = 0; j < n; ++j)
        for (index_t k = 0; k < n; ++k) given.push_back(A(k, j));
    }
    reset();
  }
  void reset() { values = given; }
  StridedBatch<T> view() { return {values.data(), n, n, n, n * n, count}; }

  index_t n, count;
  std::vector<T> given, values;
};

class Interrupt : public ::testing::TestWithParam<int> {
 protected:
  int threads() const { return GetParam(); }
  Queue q = Queue::host(GetParam());
  Random random;
};
INSTANTIATE_TEST_SUITE_P(Threads, Interrupt, ::testing::Values(1, 3));

TEST_P(Interrupt, BatchesEndBetweenItems) {
  for (const index_t n : {4, 40, 150})
    for (const bool by_cholesky : {true, false}) {
      SCOPED_TRACE(::testing::Message() << (by_cholesky ? "cholesky" : "lu") << " n=" << n);
      Batch A(random, n, n < 40 ? 4000 : n < 150 ? 200 : 24, by_cholesky);  // several groups of SIMD lanes
      std::vector<int> info(A.count), pivots(A.count * n);
      const auto factor = [&] {
        A.reset();
        if (by_cholesky)
          cholesky(q, Uplo::Lower, A.view(), info.data());
        else
          lu(q, A.view(), pivots.data(), info.data());
      };
      factor();
      const auto expected = A.values;
      expect_ends(threads(), factor);
      factor();
      EXPECT_EQ(A.values, expected);
      std::vector<T> x(std::size_t(A.count * n), T(1));
      const StridedBatch<T> X{x.data(), n, 1, n, n, A.count};
      expect_ends(threads(), [&] {
        if (by_cholesky)
          cholesky_solve(q, Uplo::Lower, A.view(), X);
        else
          lu_solve(q, Op::None, A.view(), pivots.data(), X);
      });
    }
}

TEST_P(Interrupt, SparseCholeskyEndsBetweenFrontsAndWorksAgain) {
  for (const char* tuning : {"", "levels=1"}) {
    SCOPED_TRACE(tuning);
    const auto A = poisson2d<T>(random, 60).stored(Stored::Lower);
    SparseCholesky<T> F(q, analyze(A.pattern()), {.tuning = tuning});
    const std::span<const T> values(A.values);
    F.factor(values);
    const std::vector<T> b(std::size_t(A.n), T(1)), expected = F.solve(b);
    const auto factor = [&] { F.factor(values); };
    const int questions = ask(0, factor);
    EXPECT_GT(questions, threads() == 1 ? 10 : 0);
    for (const int last : {1, questions / 3, questions - 1}) {
      if (ask(last, factor) < last) continue;  // the other threads did most of it
      EXPECT_EQ(F.info(), -1);
      EXPECT_THROW(F.solve(b), InvalidArgument);
      F.factor(values);
      EXPECT_EQ(F.solve(b), expected);
    }
    Matrix<T> B(A.n, 70);
    expect_ends(threads(), [&] { F.solve(B.view()); });
  }
}

TEST(InterruptedAnalysis, EndsBetweenPieces) {
  Random random;
  for (const index_t k : {31, 90}) {  // by one thread, and by all
    const auto A = poisson2d<T>(random, k).stored(Stored::Lower);
    std::shared_ptr<const SparsePlan> plan;
    const auto call = [&] { plan = analyze(A.pattern(), {.ordering = Ordering::Metis}); };
    const int questions = ask(0, call);
    const double flops = plan->flops();
    for (const int last : {1, questions / 2, questions}) {
      const int asked = ask(last, call);
      EXPECT_TRUE(k > 31 || (last > 0 && asked == last)) << asked;
    }
    call();
    EXPECT_EQ(plan->flops(), flops);
  }
}

TEST_P(Interrupt, SparseLuEndsBetweenPanelsAndWorksAgain) {
  const auto A = poisson2d<T>(random, 40).stored(Stored::Full);
  SparseLu<T> F(q, analyze_lu(A.pattern()));
  const std::span<const T> values(A.values);
  F.factor(values);
  const std::vector<T> b(std::size_t(A.n), T(1)), expected = F.solve(b);
  for (const int last : {1, 7, 100}) {
    EXPECT_EQ(ask(last, [&] { F.factor(values); }), last);
    EXPECT_EQ(F.info(), -1);
    EXPECT_THROW(F.solve(b), InvalidArgument);
    F.factor(values);
    EXPECT_EQ(F.solve(b), expected);
  }
}

TEST_P(Interrupt, OnlyTheInnermostScopeOfTheThreadIsAsked) {
  Batch A(random, 40, 24, true);
  std::vector<int> info(A.count);
  const auto factor = [&] {
    A.reset();
    cholesky(q, Uplo::Lower, A.view(), info.data());
  };
  int outer = 0;
  const Interruptible scope([&] { return ++outer > 0; });
  ask(0, factor);
  {
    const Interruptible nobody(nullptr);
    factor();
  }
  std::thread(factor).join();
  EXPECT_EQ(outer, 0);
  if (threads() > 1) return;
  EXPECT_THROW(factor(), Interrupted);
  EXPECT_EQ(outer, 1);
}

TEST_P(Interrupt, OneMatrixIsOneItem) {
  Batch A(random, 300, 1, true);
  int info = 0;
  EXPECT_EQ(ask(0, [&] { cholesky(q, Uplo::Lower, A.view(), &info); }), 0);
}

}  // namespace
}  // namespace trifactor::test
