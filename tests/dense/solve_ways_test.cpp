// The ways to solve with one large triangle, each forced at its edges: halved down to a kernel's order, one launch for
// few right-hand sides, inverted diagonal blocks for many.
#include <support/factored.hpp>
#include <support/ratios.hpp>

#include <cstring>
#include <span>

namespace trifactor::test {
namespace {

struct Way {
  const char* tuning;
  const char* path;  // on a CUDA queue, above order 64
};
constexpr Way all_ways[] = {
    {"sweep_columns=0 invert=2147483647", "halved"},
    {"sweep_columns=2147483647", "one launch"},
    {"sweep_columns=0 nb=1 halve=64 columns=1", "inverted blocks"},
    {"sweep_columns=0 nb=128 halve=2147483647 columns=128", "inverted blocks"},
    {"sweep_columns=0 nb=256 halve=256", "inverted blocks"},
};
/// The host has one.
std::span<const Way> ways() { return std::span(all_ways).first(on_cuda() ? std::size(all_ways) : 1); }

template <class T>
class SolveWays : public DeviceTest {
 protected:
  /// The way was taken by the solve before; small triangles are one kernel.
  void expect_path(const Way& way, index_t n) {
    EXPECT_EQ(testing::path_taken(), !on_cuda() || n <= 64 ? "halved" : way.path) << way.tuning << " n=" << n;
  }
};
TYPED_TEST_SUITE(SolveWays, Scalars, ScalarNames);

TYPED_TEST(SolveWays, CholeskyAtTheEdges) {
  using T = TypeParam;
  for (index_t n : {1, 63, 65, 97, 128, 129, 192, 257, 450})
    for (Uplo uplo : both_uplos) {
      const auto A = random_spd<T>(this->random, n, n % 3);  // lines that begin anywhere
      const auto L = factor_cholesky(this->q, uplo, A);
      ASSERT_EQ(L.info, 0);
      for (const Way& way : ways())
        for (index_t columns : {1, 2, 4, 5, 9, 33}) {
          SCOPED_TRACE(::testing::Message() << name(uplo) << " n=" << n << " rhs=" << columns << ' ' << way.tuning);
          const auto B = random_matrix<T>(this->random, n, columns, 1);
          const auto X = solve_cholesky(this->q, uplo, L.F, B, 0, {.tuning = way.tuning});
          this->expect_path(way, n);
          EXPECT_LT(solve_ratio(Op::None, A, X, B), threshold);
          EXPECT_TRUE(same_frame(B, X));
        }
    }
}

TYPED_TEST(SolveWays, LuAtTheEdges) {
  using T = TypeParam;
  for (index_t n : {1, 64, 66, 127, 130, 321}) {
    const auto A = random_matrix<T>(this->random, n, n, n % 2);
    const auto lu = factor_lu(this->q, A);
    ASSERT_EQ(lu.info, 0);
    for (Op op : all_ops)
      for (const Way& way : ways())
        for (index_t columns : {1, 3, 8, 17}) {
          SCOPED_TRACE(::testing::Message() << name(op) << " n=" << n << " rhs=" << columns << ' ' << way.tuning);
          const auto B = random_matrix<T>(this->random, n, columns, 1);
          const auto X = solve_lu(this->q, op, lu, B, 0, {.tuning = way.tuning});
          this->expect_path(way, n);
          EXPECT_LT(solve_ratio(op, A, X, B), threshold);
          EXPECT_TRUE(same_frame(B, X));
        }
  }
}

TYPED_TEST(SolveWays, ManyRightHandSides) {
  using T = TypeParam;
  for (auto [n, columns] : {std::pair<index_t, index_t>{140, 1500}, {600, 150}}) {
    const auto A = random_spd<T>(this->random, n);
    const auto B = random_matrix<T>(this->random, n, columns);
    for (Uplo uplo : both_uplos) {
      const auto L = factor_cholesky(this->q, uplo, A);
      for (const Way& way : ways())
        EXPECT_LT(solve_ratio(Op::None, A, solve_cholesky(this->q, uplo, L.F, B, 0, {.tuning = way.tuning}), B),
                  threshold)
            << name(uplo) << " n=" << n << ' ' << way.tuning;
    }
  }
}

/// Right-hand sides that belong to small solutions are the hard ones: what is large in the inverse cancels.
TYPED_TEST(SolveWays, IllConditionedSystemsAreSolvedBackwardStably) {
  using T = TypeParam;
  for (index_t n : {70, 150, 300}) {
    const auto d = graded(n, 1e-3 / eps<T>);
    const auto S = with_eigenvalues<T>(this->random, d), G = with_singular_values<T>(this->random, d);
    const auto lu = factor_lu(this->q, G);
    ASSERT_EQ(lu.info, 0);
    const auto X0 = random_matrix<Wide<T>>(this->random, n, 3);
    for (const Way& way : ways())
      for (bool hard : {false, true}) {
        SCOPED_TRACE(::testing::Message() << "n=" << n << ' ' << way.tuning << (hard ? " small solution" : ""));
        const auto sides = [&](const HostMatrix<Wide<T>>& A) {
          return hard ? narrow<T>(product(A, X0), 0) : random_matrix<T>(this->random, n, 3);
        };
        for (Uplo uplo : both_uplos) {
          const auto L = factor_cholesky(this->q, uplo, S);
          ASSERT_EQ(L.info, 0);
          const auto B = sides(widen(S));
          EXPECT_LT(solve_ratio(Op::None, S, solve_cholesky(this->q, uplo, L.F, B, 0, {.tuning = way.tuning}), B),
                    threshold)
              << name(uplo);
        }
        for (Op op : all_ops) {
          const auto B = sides(transformed(op, widen(G)));
          EXPECT_LT(solve_ratio(op, G, solve_lu(this->q, op, lu, B, 0, {.tuning = way.tuning}), B), threshold)
              << name(op);
        }
      }
  }
}

TYPED_TEST(SolveWays, GradedSystemsAreSolvedBackwardStably) {
  using T = TypeParam;
  const index_t n = 200;
  auto A = random_spd<T>(this->random, n);
  const auto d = graded(n, 1e6);
  for (bool falling : {false, true}) {
    auto G = A;
    for (index_t j = 0; j < n; ++j)
      for (index_t i = 0; i < n; ++i) G(i, j) *= real_t<T>(d[falling ? i : n - 1 - i] * d[falling ? j : n - 1 - j]);
    const auto B = random_matrix<T>(this->random, n, 2);
    for (Uplo uplo : both_uplos) {
      const auto L = factor_cholesky(this->q, uplo, G);
      ASSERT_EQ(L.info, 0);
      for (const Way& way : ways())
        EXPECT_LT(solve_ratio(Op::None, G, solve_cholesky(this->q, uplo, L.F, B, 0, {.tuning = way.tuning}), B),
                  threshold)
            << name(uplo) << ' ' << way.tuning;
    }
  }
}

TYPED_TEST(SolveWays, Inverses) {
  using T = TypeParam;
  for (index_t n : {65, 130, 300}) {
    const auto A = random_spd<T>(this->random, n, 1), G = random_matrix<T>(this->random, n, n, 1);
    const auto lu = factor_lu(this->q, G);
    for (const Way& way : ways()) {
      SCOPED_TRACE(::testing::Message() << "n=" << n << ' ' << way.tuning);
      DeviceMatrix<T> X(this->q, A);
      for (Uplo uplo : both_uplos) {
        DeviceMatrix<T> L(this->q, factor_cholesky(this->q, uplo, A).F);
        cholesky_inverse(this->q, uplo, L.view(), X.view(), nullptr, {.tuning = way.tuning});
        this->expect_path(way, n);
        this->q.sync();
        EXPECT_LT(inverse_ratio(A, X.download()), threshold) << name(uplo);
        EXPECT_TRUE(same_frame(A, X.download()));
      }
      DeviceMatrix<T> F(this->q, lu.F);
      DeviceArray<int> pivots(this->q, lu.pivots);
      lu_inverse(this->q, F.view(), pivots.data(), X.view(), nullptr, {.tuning = way.tuning});
      this->expect_path(way, n);
      this->q.sync();
      EXPECT_LT(inverse_ratio(G, X.download()), threshold);
    }
  }
}

TYPED_TEST(SolveWays, AreSkippedWhenTheFactorizationFailed) {
  using T = TypeParam;
  const index_t n = 150;
  const auto A = random_spd<T>(this->random, n);
  auto lu = factor_lu(this->q, A);
  lu.F(n / 2, n / 2) = T(0);
  for (const Way& way : ways())
    for (index_t columns : {1, 20}) {
      const auto B = random_matrix<T>(this->random, n, columns, 1);
      for (Uplo uplo : both_uplos) {
        const auto L = factor_cholesky(this->q, uplo, A);
        EXPECT_TRUE(same_bits(solve_cholesky(this->q, uplo, L.F, B, 7, {.tuning = way.tuning}), B)) << way.tuning;
      }
      EXPECT_TRUE(same_bits(solve_lu(this->q, Op::None, lu, B, 76, {.tuning = way.tuning}), B)) << way.tuning;
    }
}

/// Whatever the bits: a NaN that looks like an entry which is not solved yet must not be waited for.
TYPED_TEST(SolveWays, NanStaysInItsColumn) {
  using T = TypeParam;
  const index_t n = 200, columns = 6;
  const auto A = random_spd<T>(this->random, n);
  for (Uplo uplo : both_uplos) {
    const auto L = factor_cholesky(this->q, uplo, A);
    auto B = random_matrix<T>(this->random, n, columns);
    for (index_t j : {1, 5})
      for (index_t i = 0; i < n; ++i) std::memset(static_cast<void*>(&B(i, j)), 0xff, sizeof(T));
    for (const Way& way : ways()) {
      const auto X = solve_cholesky(this->q, uplo, L.F, B, 0, {.tuning = way.tuning});
      for (index_t j = 0; j < columns; ++j)
        for (index_t i = 0; i < n; ++i)
          ASSERT_EQ(std::isnan(std::real(X(i, j))), j == 1 || j == 5) << way.tuning << " i=" << i << " j=" << j;
    }
  }
}

TYPED_TEST(SolveWays, ZeroOnTheDiagonalGivesNoFiniteSolution) {
  using T = TypeParam;
  const index_t n = 150;
  const auto A = random_matrix<T>(this->random, n, n), B = random_matrix<T>(this->random, n, 2);
  auto lu = factor_lu(this->q, A);
  lu.F(n / 2, n / 2) = T(0);
  for (const Way& way : ways()) {
    const auto X = solve_lu(this->q, Op::None, lu, B, 0, {.tuning = way.tuning});
    EXPECT_FALSE(std::isfinite(std::abs(widen(X(n / 2, 0))))) << way.tuning;
    EXPECT_FALSE(std::isfinite(std::abs(widen(X(0, 0))))) << way.tuning;
  }
}

TYPED_TEST(SolveWays, ReservedCallsDoNotAllocate) {
  using T = TypeParam;
  const index_t n = 200;
  const auto A = random_spd<T>(this->random, n);
  const auto F = factor_cholesky(host_queue(), Uplo::Lower, A);
  const auto lu = factor_lu(host_queue(), A);
  for (const Way& way : ways())
    for (index_t columns : {2, 40}) {
      const auto B = random_matrix<T>(this->random, n, columns);
      const SolveOptions options{.tuning = way.tuning};
      for (bool by_lu : {false, true}) {
        SCOPED_TRACE(::testing::Message() << way.tuning << " rhs=" << columns << (by_lu ? " lu" : " cholesky"));
        Queue q = test_queue();
        DeviceMatrix<T> L(q, by_lu ? lu.F : F.F), X(q, B);
        DeviceArray<int> info(q, 1, 0), pivots(q, lu.pivots);
        q.reserve(by_lu ? lu_solve_scratch(q, Op::None, L.view(), X.view(), options)
                        : cholesky_solve_scratch(q, Uplo::Lower, L.view(), X.view(), options));
        const index_t before = testing::allocation_count();
        if (by_lu)
          lu_solve(q, Op::None, L.view(), pivots.data(), X.view(), info.data(), options);
        else
          cholesky_solve(q, Uplo::Lower, L.view(), X.view(), info.data(), options);
        EXPECT_EQ(testing::allocation_count(), before);
        q.sync();
        EXPECT_LT(solve_ratio(Op::None, A, X.download(), B), threshold);
      }
    }
}

/// Blocks that wait for each other's messages in global memory: many runs, at many sizes, on two streams at once, and
/// every result the same to the last bit.
TYPED_TEST(SolveWays, RepeatBitwiseUnderStress) {
  using T = TypeParam;
  if (!on_cuda()) GTEST_SKIP() << "of CUDA queues";
  struct Case {
    Uplo uplo;
    const char* tuning;
    HostMatrix<T> F, B, expected;
  };
  std::vector<Case> cases;
  for (index_t n : {65, 100, 129, 320, 700, 1500})
    for (Uplo uplo : both_uplos) {
      const auto A = random_spd<T>(this->random, n, n % 3);
      const auto L = factor_cholesky(this->q, uplo, A);
      ASSERT_EQ(L.info, 0);
      for (index_t columns : {1, 3, 7}) {
        const char* tuning = n % 2 == 0 && columns == 7 ? "sweep_columns=0" : "sweep_columns=8";
        const auto B = random_matrix<T>(this->random, n, columns);
        const auto X = solve_cholesky(this->q, uplo, L.F, B, 0, {.tuning = tuning});
        ASSERT_LT(solve_ratio(Op::None, A, X, B), threshold) << "n=" << n;
        cases.push_back({uplo, tuning, L.F, B, X});
      }
    }
  Queue queues[2] = {test_queue(), test_queue()};
  for (int round = 0; round < 100; ++round) {
    const Case* both[2];
    std::vector<DeviceMatrix<T>> F, X;
    for (int s = 0; s < 2; ++s) {
      both[s] = &cases[std::size_t(this->random.integer(0, index_t(cases.size()) - 1))];
      F.emplace_back(queues[s], both[s]->F), X.emplace_back(queues[s], both[s]->B);
    }
    for (int repeat = 0; repeat < 20; ++repeat) {
      for (int s = 0; s < 2; ++s) X[s].upload(both[s]->B);
      for (int s = 0; s < 2; ++s)
        cholesky_solve(queues[s], both[s]->uplo, F[s].view(), X[s].view(), nullptr, {.tuning = both[s]->tuning});
      for (int s = 0; s < 2; ++s) {
        queues[s].sync();
        ASSERT_TRUE(same_bits(X[s].download(), both[s]->expected))
            << "n=" << both[s]->F.rows << " rhs=" << both[s]->B.cols << ' ' << name(both[s]->uplo) << ", round "
            << round;
      }
    }
  }
}

TYPED_TEST(SolveWays, AnUnknownFieldIsAnError) {
  const auto A = random_spd<TypeParam>(this->random, 3);
  EXPECT_THROW(solve_cholesky(this->q, Uplo::Lower, A, A, 0, {.tuning = "neither=1"}), InvalidArgument);
}

}  // namespace
}  // namespace trifactor::test
