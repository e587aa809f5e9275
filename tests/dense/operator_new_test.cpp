// What the standard library cannot allocate is OutOfMemory: every public call on the host, with the k-th operator new
// failing for k = 1, 2, ... until the call succeeds. This binary has an operator new of its own.
#include <support/jobs.hpp>
#include <trifactor/info.hpp>
#include <trifactor/inspect.hpp>
#include <trifactor/sparse.hpp>

#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<long> until_failure{0};  // operator new fails when it counts down to 0; 0: never

void* allocated(std::size_t bytes) {
  if (until_failure > 0 && --until_failure == 0) throw std::bad_alloc();
  void* const p = std::malloc(bytes > 0 ? bytes : 1);
  if (!p) throw std::bad_alloc();
  return p;
}
}  // namespace

void* operator new(std::size_t bytes) { return allocated(bytes); }
void* operator new[](std::size_t bytes) { return allocated(bytes); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return allocated(bytes);
  } catch (const std::bad_alloc&) { return nullptr; }
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }

namespace trifactor::test {
namespace {

/// f with its k-th allocation failing, for every k. Returns how many there are.
template <class F>
long sweep(const char* name, F f) {
  SCOPED_TRACE(name);
  for (long k = 1; k < 20000; ++k) {
    enum { Done, Refused, Escaped, Other } result = Done;
    until_failure = k;
    try {
      f();
    } catch (const OutOfMemory&) { result = Refused; } catch (const std::bad_alloc&) {
      result = Escaped;
    } catch (...) { result = Other; }
    const bool failed = until_failure == 0;
    until_failure = 0;
    EXPECT_NE(result, Escaped) << "std::bad_alloc of allocation " << k;
    EXPECT_NE(result, Other) << "another exception at allocation " << k;
    if (result == Escaped || result == Other) return k;
    if (!failed) return k - 1;
  }
  ADD_FAILURE() << "no end";
  return 0;
}

template <class T>
class OperatorNew : public DeviceTest {
 protected:
  /// A library that was linked with a standard library of its own calls that one's operator new.
  void SetUp() override {
    constexpr long many = 1000000;
    until_failure = many;
    tuning_rows();
    const bool seen = until_failure < many;
    until_failure = 0;
    if (!seen) GTEST_SKIP() << "the library does not call the operator new of this program";
  }
};
TYPED_TEST_SUITE(OperatorNew, Scalars, ScalarNames);

TYPED_TEST(OperatorNew, FailsInWhatIsKnownOfTheMachine) {
  EXPECT_GT(sweep("tuning_rows", [] { tuning_rows(); }), 0);
  EXPECT_GT(sweep("devices", [] { devices(); }), 0);
  EXPECT_GT(sweep("blas", [] { blas(); }), 0);
  sweep("why_no_cuda", [] { why_no_cuda(); });
}

TYPED_TEST(OperatorNew, FailsInQueuesAndMemory) {
  using T = TypeParam;
  EXPECT_GT(sweep("Queue::host", [] { Queue::host(); }), 0);
  EXPECT_GT(sweep("Queue::reserve",
                  [] {
                    Queue q = Queue::host(2);
                    q.reserve(1000);
                    q.reserve(2000);
                  }),
            0);
  sweep("Matrix", [] {
    Matrix<T> A(3, 3);
    Queue q = Queue::host();
    Matrix<T> B(q, 3, 3);
    copy(q, A, q, B);
    Matrix<T> C(q, B);
    C.to_host();
  });
  EXPECT_GT(sweep("Buffer::to_host", [] { Buffer<T>(10).to_host(); }), 0);
  Queue q = Queue::host();
  sweep("Recording", [&] {
    inspect::Recording recording(q);
    recording.finish();
  });
}

TYPED_TEST(OperatorNew, FailsInExpertForms) {
  for_every_job<TypeParam>(this->random, [&](const MakeJob& make) {
    Queue q = Queue::host(1);
    Job job = make(q);
    sweep(job.name, [&] { job.run(); });
    if (job.scratch) sweep(job.name, [&] { job.scratch(); });
    job.prepare();
    job.run();
    job.check();
  });
}

TYPED_TEST(OperatorNew, FailsInMessages) {
  using T = TypeParam;
  const auto refused = [&](const char* name, auto f) {
    sweep(name, [&] {
      try {
        f();
      } catch (const InvalidArgument&) {}
    });
  };
  Matrix<T> A(3, 3);
  std::vector<int> info(3);
  refused("a wrong tuning", [&] { cholesky(this->q, Uplo::Lower, A.view(), info.data(), {.tuning = "nb=0 leaf=3"}); });
  refused("a wrong size", [&] { lu(this->q, MatrixView<T>{A.data(), -1, 3, 3}, info.data(), info.data()); });
  refused("a wrong layout", [&] { strided(A.data(), 3, 3, {.count = 10, .ld = 1}); });
  refused("a wrong number of threads", [&] { Queue::host(-1); });
}

TYPED_TEST(OperatorNew, FailsInValueForms) {
  using T = TypeParam;
  const auto A = random_spd<T>(this->random, 20);
  const std::vector<T> b(20, T(1));
  const auto B = random_matrix<T>(this->random, 20, 2);
  EXPECT_GT(sweep("cholesky", [&] { cholesky(A.view(), {.device = Device::Host}); }), 0);
  EXPECT_GT(sweep("lu", [&] { lu(A.view(), {.device = Device::Host}); }), 0);
  const auto L = cholesky(A.view(), {.device = Device::Host});
  const auto F = lu(A.view(), {.device = Device::Host});
  sweep("cholesky, solve", [&] { L.solve(b), L.solve(B.view()); });
  sweep("cholesky, the rest", [&] { L.inverse(), L.factor(), L.log_det(); });
  sweep("lu, solve", [&] { F.solve(b), F.solve(B.view(), Op::Transpose); });
  sweep("lu, the rest", [&] { F.inverse(), F.factors(), F.det(), F.row_permutation(); });
  EXPECT_LT(std::abs(L.solve(b)[0] - F.solve(b)[0]), 1e-3 * (1 + std::abs(F.solve(b)[0])));
}

TYPED_TEST(OperatorNew, FailsInSparseCalls) {
  using T = TypeParam;
  constexpr int edge = 5, n = edge * edge;
  std::vector<int> start{0}, index;
  std::vector<T> values;
  for (int j = 0; j < n; ++j) {
    for (int i = 0; i < n; ++i)
      if (i == j || (i / edge == j / edge && std::abs(i - j) == 1) || std::abs(i - j) == edge)
        index.push_back(i), values.push_back(T(i == j ? 5 : -1));
    start.push_back(int(index.size()));
  }
  const Pattern<int> pattern{
      .rows = n, .cols = n, .start = start.data(), .index = index.data(), .stored = Stored::Full};
  const std::span<const T> given(values);
  std::vector<index_t> order(n);
  for (index_t j = 0; j < n; ++j) order[j] = n - 1 - j;
  for (Ordering ordering : {Ordering::Auto, Ordering::Metis, Ordering::Amd, Ordering::Natural, Ordering::Given}) {
    const AnalyzeOptions options{.ordering = ordering,
                                 .permutation = ordering == Ordering::Given ? order : std::vector<index_t>(),
                                 .duplicates = true};
    EXPECT_GT(sweep("analyze", [&] { analyze(pattern, options); }), 0);
  }
  EXPECT_GT(sweep("is_hermitian", [&] { is_hermitian<T>(pattern, given); }), 0);
  EXPECT_GT(sweep("hermitian_part", [&] { hermitian_part<T>(pattern, given); }), 0);
  const auto plan = analyze(pattern);
  sweep("what a plan tells", [&] { plan->text(), plan->level_summary(), plan->width_histogram(), plan->front(0); });
  for (const char* tuning : {"levels=0", "levels=1"}) {
    const SparseOptions options{.tuning = tuning};
    Queue q = Queue::host();
    EXPECT_GT(sweep("SparseCholesky", [&] { SparseCholesky<T>(q, plan, options); }), 0);
    EXPECT_GT(sweep("SparseCholesky::memory", [&] { SparseCholesky<T>::memory(q, *plan, options); }), 0);
    SparseCholesky<T> F(q, plan, options);
    std::vector<T> x(3 * n, T(1));
    const std::vector<T> x1(n, T(1));
    const MatrixView<T> X{x.data(), n, 3, n};
    sweep("factor", [&] { F.factor(given); });
    F.factor(given);
    sweep("solve", [&] { F.solve(X), F.solve(x1); });
    sweep("solve_refined", [&] { F.solve_refined(given, X); });
    sweep("the rest", [&] { F.log_det(), F.diagonal(), F.lower(); });
    const auto y = F.solve(std::vector<T>(n, T(1)));
    EXPECT_LT(std::abs(T(5) * y[0] - y[1] - y[edge] - T(1)), 1e-4);
    values[0] = T(-5);
    sweep("a matrix that is not positive definite", [&] {
      try {
        F.factor(given);
      } catch (const NotPositiveDefinite&) {}
    });
    values[0] = T(5);
  }
}

TYPED_TEST(OperatorNew, FailsInSparseLu) {
  using T = TypeParam;
  const std::vector<int> start{0, 2, 5, 8, 10}, index{0, 1, 0, 1, 2, 1, 2, 3, 2, 3};
  std::vector<T> values(index.size(), T(1));
  for (const int k : {0, 3, 6, 9}) values[k] = T(3);
  const Pattern<int> pattern{
      .rows = 4, .cols = 4, .start = start.data(), .index = index.data(), .stored = Stored::Full};
  for (LuOrdering ordering : {LuOrdering::Colamd, LuOrdering::Amd, LuOrdering::Natural})
    EXPECT_GT(sweep("analyze_lu", [&] { analyze_lu(pattern, {.ordering = ordering, .duplicates = true}); }), 0);
  const auto plan = analyze_lu(pattern);
  sweep("what a plan tells", [&] { plan->text(); });
  Queue q = Queue::host();
  EXPECT_GT(sweep("SparseLu", [&] { SparseLu<T>(q, plan); }), 0);
  SparseLu<T> F(q, plan);
  std::vector<T> x(8, T(1));
  const std::vector<T> x1(4, T(1));
  EXPECT_GT(sweep("factor", [&] { F.factor(values); }), 0);
  sweep("solve", [&] { F.solve(MatrixView<T>{x.data(), 4, 2, 4}), F.solve(x1, Op::Transpose); });
  sweep("solve_refined", [&] { F.solve_refined(values, MatrixView<T>{x.data(), 4, 2, 4}); });
  sweep("the rest", [&] { F.det(), F.norm1(), F.memory(); });
  const auto y = F.solve(x1);
  EXPECT_LT(std::abs(T(3) * y[0] + y[1] - T(1)), 1e-4);
  values.assign(values.size(), T(0));
  sweep("a singular matrix", [&] {
    try {
      F.factor(values);
    } catch (const Singular&) {}
  });
}

}  // namespace
}  // namespace trifactor::test
