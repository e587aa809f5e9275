// Where the address space is short, BLAS calls are refused before they begin: OpenBLAS waits without end for its
// buffers.
#include <support/batches.hpp>
#include <trifactor/sparse.hpp>

#include <cstdio>
#include <sys/resource.h>
#include <unistd.h>

namespace trifactor::test {
namespace {

/// The address space that this process uses, and so many bytes more.
void leave(std::size_t bytes) {
  std::size_t pages = 0;
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  if (!file || std::fscanf(file, "%zu", &pages) != 1) std::_Exit(9);
  std::fclose(file);
  const rlimit limit{pages * std::size_t(sysconf(_SC_PAGESIZE)) + bytes, RLIM_INFINITY};
  if (setrlimit(RLIMIT_AS, &limit) != 0) std::_Exit(8);
}

template <class F>
bool runs_out(F f) {
  try {
    f();
  } catch (const OutOfMemory& e) { return e.bytes() > 0; }
  return false;
}

template <class T>
class AddressSpace : public DeviceTest {
 protected:
  /// f is refused in a fresh process with 40 MiB left, and right there afterwards without a limit.
  template <class F>
  void expect_refused_at_first(F f) {
    if (TRIFACTOR_TEST_SANITIZED) GTEST_SKIP() << "sanitizers need an address space without limit";
    if (on_cuda()) GTEST_SKIP() << "of host queues";
    const auto child = [&] {
      alarm(60);  // instead of waiting without end
      leave(std::size_t(40) << 20);
      if (!runs_out(f)) std::_Exit(1);
      const rlimit none{RLIM_INFINITY, RLIM_INFINITY};
      setrlimit(RLIMIT_AS, &none);
      f();
      std::_Exit(HasFailure() ? 2 : 0);
    };
    GTEST_FLAG_SET(death_test_style, "threadsafe");  // a new process, whose BLAS has no buffer yet
    EXPECT_EXIT(child(), ::testing::ExitedWithCode(0), "");
  }
};
TYPED_TEST_SUITE(AddressSpace, Scalars, ScalarNames);

TYPED_TEST(AddressSpace, OneMatrix) {
  this->expect_refused_at_first([&] {
    const auto A = random_matrix<TypeParam>(this->random, 200, 200);
    const auto lu = factor_lu(this->q, A);
    EXPECT_LT(lu_ratio(A, lu.F, lu.pivots), threshold);
  });
}

TYPED_TEST(AddressSpace, ManyMatrices) {
  this->expect_refused_at_first([&] {
    const Items<TypeParam> A(8, random_matrix<TypeParam>(this->random, 120, 120));  // too large to go in lanes
    expect_right(A, factor_lu(this->q, Kind::Strided, A));
  });
}

TYPED_TEST(AddressSpace, MoreThreadsThanBefore) {
  this->expect_refused_at_first([&] {
    Queue q = Queue::host(24);
    const auto A = random_spd<TypeParam>(this->random, 200);
    EXPECT_LT(cholesky_ratio(A, factor_cholesky(q, Uplo::Lower, A).F, Uplo::Lower), threshold);
  });
}

TYPED_TEST(AddressSpace, ASparseMatrix) {
  this->expect_refused_at_first([&] {
    constexpr index_t n = 50;
    std::vector<int> start{0}, index;
    std::vector<TypeParam> values;
    for (int j = 0; j < n; ++j) {
      index.push_back(j), values.push_back(TypeParam(2));
      start.push_back(int(index.size()));
    }
    const auto plan = analyze(Pattern<int>{.rows = n, .cols = n, .start = start.data(), .index = index.data()},
                              {.ordering = Ordering::Amd});
    SparseCholesky<TypeParam> F(this->q, plan);
    F.factor(values);
    EXPECT_LT(std::abs(F.solve(std::vector<TypeParam>(n, TypeParam(1)))[0] - TypeParam(real_t<TypeParam>(0.5))), 1e-6);
  });
}

TYPED_TEST(AddressSpace, SmallItemsNeedNoBlas) {
  if (TRIFACTOR_TEST_SANITIZED || on_cuda()) GTEST_SKIP() << "of host queues without sanitizers";
  const auto child = [&] {
    leave(std::size_t(40) << 20);
    constexpr index_t n = 8;  // L has ones on and below the diagonal; references and ratios would call BLAS
    HostMatrix<TypeParam> A(n, n);
    for (index_t j = 0; j < n; ++j)
      for (index_t i = 0; i < n; ++i) A(i, j) = TypeParam(real_t<TypeParam>(std::min(i, j) + 1));
    const auto F = factor_cholesky(this->q, Uplo::Lower, A);
    bool good = F.info == 0;
    for (index_t j = 0; j < n; ++j)
      for (index_t i = j; i < n; ++i) good = good && std::abs(F.F(i, j) - TypeParam(1)) < 1e-5;
    std::_Exit(good ? 0 : 1);
  };
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(child(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace trifactor::test
