// Solves with the factors of many small matrices. On the host they go side by side in SIMD lanes: every size, number of
// items and of right-hand sides, items that are skipped, and pivots whose reciprocals overflow.
#include <support/batches.hpp>

namespace trifactor::test {
namespace {

template <class T>
class InterleavedSolve : public DeviceTest {
 protected:
  /// count items of order n; of the ragged kind any from 0 to n, and the first n.
  template <class Make>
  Items<T> items(Kind kind, index_t count, index_t n, Make make) {
    Items<T> A;
    for (index_t i = 0; i < count; ++i) {
      const bool vary = kind == Kind::Ragged && i > 0;
      A.push_back(make(vary ? random.integer(0, n) : n, kind == Kind::Ragged ? i % 3 : 1));
    }
    return A;
  }
  Items<T> positive_definite(Kind kind, index_t count, index_t n) {
    return items(kind, count, n, [&](index_t own, index_t pad) { return random_spd<T>(random, own, pad); });
  }
  Items<T> general(Kind kind, index_t count, index_t n) {
    return items(kind, count, n, [&](index_t own, index_t pad) { return random_matrix<T>(random, own, own, pad); });
  }
  /// Of ragged items any number up to `columns`, the most for the first.
  Items<T> sides(Kind kind, const Items<T>& A, index_t columns) {
    Items<T> B;
    for (std::size_t i = 0; i < A.size(); ++i)
      B.push_back(
          random_matrix<T>(random, A[i].rows, kind == Kind::Ragged && i > 0 ? random.integer(0, columns) : columns, 2));
    return B;
  }
  void expect_path(const char* on_host) {
    if (!on_cuda()) { EXPECT_EQ(testing::path_taken(), on_host); }
  }
};
TYPED_TEST_SUITE(InterleavedSolve, Scalars, ScalarNames);

struct Size {
  index_t n, count, columns;
};
constexpr Size sizes[] = {{1, 2, 1},   {2, 40, 1}, {3, 33, 3},  {4, 65, 1}, {5, 16, 2},  {6, 17, 6},  {7, 64, 4},
                          {8, 100, 1}, {9, 31, 5}, {13, 20, 1}, {16, 9, 9}, {23, 35, 1}, {31, 5, 17}, {32, 40, 1}};

TYPED_TEST(InterleavedSolve, WithCholeskyFactors) {
  for (Kind kind : all_kinds)
    for (Uplo uplo : both_uplos)
      for (auto [n, count, columns] : sizes) {
        SCOPED_TRACE(::testing::Message()
                     << name(kind) << ' ' << name(uplo) << " n=" << n << " count=" << count << " rhs=" << columns);
        const auto A = this->positive_definite(kind, count, n);
        const auto B = this->sides(kind, A, columns);
        auto L = factor_cholesky(this->q, kind, uplo, A);
        const std::size_t failed = std::size_t(count) / 2;
        L.info[failed] = 1;  // as if it had failed
        const auto X = solve_cholesky(this->q, kind, uplo, L, B);
        this->expect_path("interleaved");
        for (std::size_t i = 0; i < A.size(); ++i)
          if (i == failed)
            EXPECT_TRUE(same_bits(X[i], B[i]));
          else
            EXPECT_LT(solve_ratio(Op::None, A[i], X[i], B[i]), threshold) << "item " << i;
      }
}

TYPED_TEST(InterleavedSolve, WithLuFactors) {
  for (Kind kind : all_kinds)
    for (auto [n, count, columns] : sizes) {
      const auto A = this->general(kind, count, n);
      const auto B = this->sides(kind, A, columns);
      auto lu = factor_lu(this->q, kind, A);
      const std::size_t failed = std::size_t(count) / 2;
      lu.info[failed] = 1;
      for (Op op : all_ops) {
        SCOPED_TRACE(::testing::Message()
                     << name(kind) << ' ' << name(op) << " n=" << n << " count=" << count << " rhs=" << columns);
        const auto X = solve_lu(this->q, kind, op, lu, B);
        this->expect_path("interleaved");
        for (std::size_t i = 0; i < A.size(); ++i)
          if (i == failed)
            EXPECT_TRUE(same_bits(X[i], B[i]));
          else
            EXPECT_LT(solve_ratio(op, A[i], X[i], B[i]), threshold) << "item " << i;
      }
    }
}

// Strips of right-hand sides in one launch, down to tiles of 32 rows.
TYPED_TEST(InterleavedSolve, LargerItemsOnADevice) {
  if (!on_cuda()) GTEST_SKIP() << "kernels of a device";
  for (Kind kind : all_kinds)
    for (auto [n, count, columns] : {Size{33, 2, 1},
                                     {64, 3, 31},
                                     {65, 5, 33},
                                     {100, 4, 40},
                                     {161, 3, 70},
                                     {257, 2, 100},
                                     {300, 3, 33},
                                     {530, 2, 40}}) {
      const auto A = this->positive_definite(kind, count, n), G = this->general(kind, count, n);
      const auto B = this->sides(kind, A, columns), C = this->sides(kind, G, columns);
      for (Uplo uplo : both_uplos) {
        SCOPED_TRACE(::testing::Message() << name(kind) << ' ' << name(uplo) << " n=" << n << " rhs=" << columns);
        auto L = factor_cholesky(this->q, kind, uplo, A);
        L.info[1] = 1;  // as if it had failed
        const auto X = solve_cholesky(this->q, kind, uplo, L, B, {.tuning = "fused=0"});
        EXPECT_TRUE(same_bits(X[1], B[1]));
        for (std::size_t i = 0; i < A.size(); ++i)
          if (i != 1) { EXPECT_LT(solve_ratio(Op::None, A[i], X[i], B[i]), threshold) << "item " << i; }
        for (std::size_t i = 0; i < A.size(); ++i) EXPECT_TRUE(same_frame(B[i], X[i])) << "item " << i;
      }
      const auto lu = factor_lu(this->q, kind, G);
      for (Op op : all_ops) {
        SCOPED_TRACE(::testing::Message() << name(kind) << ' ' << name(op) << " n=" << n << " rhs=" << columns);
        const auto X = solve_lu(this->q, kind, op, lu, C);
        for (std::size_t i = 0; i < G.size(); ++i)
          EXPECT_LT(solve_ratio(op, G[i], X[i], C[i]), threshold) << "item " << i;
      }
    }
}

// So many strips that larger triangles are halved first.
TYPED_TEST(InterleavedSolve, ManyRightHandSidesOnADevice) {
  if (!on_cuda()) GTEST_SKIP() << "kernels of a device";
  const auto A = this->positive_definite(Kind::Strided, 3, 170);
  const auto B = this->sides(Kind::Strided, A, 11900);
  const auto L = factor_cholesky(this->q, Kind::Strided, Uplo::Lower, A);
  const auto X = solve_cholesky(this->q, Kind::Strided, Uplo::Lower, L, B, {.tuning = "fused=0"});
  for (std::size_t i = 0; i < A.size(); ++i)
    EXPECT_LT(solve_ratio(Op::None, A[i], X[i], B[i]), threshold) << "item " << i;
}

TYPED_TEST(InterleavedSolve, LargeItemsOfARaggedBatchAreAlone) {
  for (Uplo uplo : both_uplos)
    for (auto [tuning, path] : {std::pair{"interleaved=8", "item by item, interleaved"},
                                {"interleaved=0", "item by item"},
                                {"fused=0", "item by item"},
                                {"interleaved=30", "interleaved"}}) {
      SCOPED_TRACE(::testing::Message() << name(uplo) << ' ' << tuning);
      const auto A = this->positive_definite(Kind::Ragged, 50, 30);
      const auto B = this->sides(Kind::Ragged, A, 3);
      auto L = factor_cholesky(this->q, Kind::Ragged, uplo, A);
      L.info[0] = 3;
      const auto X = solve_cholesky(this->q, Kind::Ragged, uplo, L, B, {.tuning = tuning});
      this->expect_path(path);
      EXPECT_TRUE(same_bits(X[0], B[0]));
      for (std::size_t i = 1; i < A.size(); ++i)
        EXPECT_LT(solve_ratio(Op::None, A[i], X[i], B[i]), threshold) << "item " << i;
    }
}

TYPED_TEST(InterleavedSolve, NeighboursDoNotMatter) {
  auto A = this->positive_definite(Kind::Ragged, 45, 21);
  auto B = this->sides(Kind::Ragged, A, 5);
  const auto solve_both = [&] {
    const auto L = factor_cholesky(this->q, Kind::Ragged, Uplo::Lower, A);
    const auto lu = factor_lu(this->q, Kind::Ragged, A);
    return std::pair{solve_cholesky(this->q, Kind::Ragged, Uplo::Lower, L, B),
                     solve_lu(this->q, Kind::Ragged, Op::Transpose, lu, B)};
  };
  const auto first = solve_both();
  std::rotate(A.begin(), A.begin() + 7, A.end());
  std::rotate(B.begin(), B.begin() + 7, B.end());
  const auto second = solve_both();
  for (std::size_t i = 0; i < A.size(); ++i) {
    EXPECT_TRUE(same_bits(second.first[i], first.first[(i + 7) % 45])) << "item " << i;
    EXPECT_TRUE(same_bits(second.second[i], first.second[(i + 7) % 45])) << "item " << i;
  }
}

/// One factor for all items.
TYPED_TEST(InterleavedSolve, WithASharedFactor) {
  using T = TypeParam;
  const index_t n = 11, count = 300;
  const auto A = random_spd<T>(this->random, n, 1);
  Items<T> B;
  for (index_t i = 0; i < count; ++i) B.push_back(random_matrix<T>(this->random, n, 2, 1));
  for (Uplo uplo : both_uplos) {
    const auto L = factor_cholesky(this->q, uplo, A);
    DeviceMatrix<T> F(this->q, L.F);
    DeviceBatch<T> X(this->q, B);
    const auto view = F.view();
    cholesky_solve(this->q, uplo, StridedBatch<const T>{view.data, n, n, view.ld, 0, count}, X.strided());
    this->expect_path("interleaved");
    this->q.sync();
    const auto x = X.download();
    for (std::size_t i = 0; i < B.size(); ++i)
      EXPECT_LT(solve_ratio(Op::None, A, x[i], B[i]), threshold) << name(uplo) << " item " << i;
  }
}

/// Whose diagonal needs scaling before its reciprocals are taken.
TYPED_TEST(InterleavedSolve, WithASharedFactorNearUnderflow) {
  using T = TypeParam;
  using R = real_t<T>;
  const index_t count = 300;
  const R tiny = std::numeric_limits<R>::min() * 4;  // solutions are still finite
  HostMatrix<T> L(2, 2);
  L(0, 0) = T(tiny), L(1, 1) = T(1);
  DeviceMatrix<T> F(this->q, L);
  Items<T> B(std::size_t(count), HostMatrix<T>(2, 1));
  for (auto& b : B) b(0, 0) = T(tiny), b(1, 0) = T(3);
  DeviceBatch<T> X(this->q, B);
  cholesky_solve(this->q, Uplo::Lower, StridedBatch<const T>{F.view().data, 2, 2, F.view().ld, 0, count}, X.strided());
  this->q.sync();
  const auto x = X.download();
  for (std::size_t i = 0; i < B.size(); ++i) {
    EXPECT_EQ(x[i](0, 0), T(R(1) / tiny)) << "item " << i;
    EXPECT_EQ(x[i](1, 0), T(3)) << "item " << i;
  }
}

TYPED_TEST(InterleavedSolve, FactorAndSolveGivesTheBitsOfTwoCalls) {
  using T = TypeParam;
  if (on_cuda()) GTEST_SKIP() << "of host queues";
  for (Kind kind : {Kind::Strided, Kind::Pointers})
    for (Uplo uplo : both_uplos)
      for (auto [n, count, columns] : sizes) {
        SCOPED_TRACE(::testing::Message() << name(kind) << ' ' << name(uplo) << " n=" << n << " rhs=" << columns);
        auto A = this->positive_definite(kind, count, n);
        const std::size_t bad = count == 9 ? 8 : 1;  // the last one is repeated in lanes that would idle
        A[bad](n - 1, n - 1) = T(-1);
        const auto B = this->sides(kind, A, columns);
        const auto L = factor_cholesky(this->q, kind, uplo, A);
        EXPECT_EQ(L.info[bad], n);
        const auto expected = solve_cholesky(this->q, kind, uplo, L, B);
        Items<T> given;
        for (const auto& a : A) given.push_back(only_triangle(a, uplo));
        DeviceBatch<T> F(this->q, given), X(this->q, B);
        DeviceArray<int> info(this->q, count, garbage);
        as(kind, F, X, [&](auto f, auto x) { cholesky_factor_solve(this->q, uplo, f, x, info.data()); });
        this->expect_path("interleaved");
        EXPECT_EQ(info.download(), L.info);
        const auto f = F.download(), x = X.download();
        for (std::size_t i = 0; i < A.size(); ++i) {
          EXPECT_TRUE(same_bits(x[i], expected[i])) << "item " << i;
          EXPECT_TRUE(i == bad || same_bits(f[i], L.F[i])) << "item " << i;
        }
      }
}

/// Pivots whose reciprocals are infinite or denormal: x = b / d all the same, and nothing changes for the other lanes.
TYPED_TEST(InterleavedSolve, PivotsNearTheEndsOfTheRange) {
  using T = TypeParam;
  using R = real_t<T>;
  if (on_cuda()) GTEST_SKIP() << "of host queues";
  const index_t n = 6, count = 21;
  const R tiny = std::numeric_limits<R>::denorm_min() * 64, huge = std::numeric_limits<R>::max() / 8;
  const auto A = this->positive_definite(Kind::Strided, count, n);
  const auto B = this->sides(Kind::Strided, A, 1);
  for (Op op : all_ops) {
    SCOPED_TRACE(name(op));
    auto L = factor_cholesky(this->q, Kind::Strided, Uplo::Lower, A);
    auto lu = factor_lu(this->q, Kind::Strided, A);
    const auto usual = solve_cholesky(this->q, Kind::Strided, Uplo::Lower, L, B);
    const auto usual_lu = solve_lu(this->q, Kind::Strided, op, lu, B);
    auto C = B;
    const std::size_t odd = 5;
    for (index_t j = 0; j < n; ++j) {
      lu.pivots[odd][std::size_t(j)] = int(j + 1);
      for (index_t i = 0; i < n; ++i) lu.F[odd](i, j) = L.F[odd](i, j) = T(0);
      const R d = j == 1 ? tiny : j == 4 ? huge : R(1);
      L.F[odd](j, j) = d == R(1) ? T(1) : T(std::sqrt(d));  // squared in a solve
      lu.F[odd](j, j) = T(d);
      if constexpr (std::is_same_v<T, std::complex<R>>)
        if (j == 1) lu.F[odd](j, j) = T(d, -d);
      C[odd](j, 0) = T(R(3)) * (op == Op::ConjTranspose ? conj(lu.F[odd](j, j)) : lu.F[odd](j, j));
    }
    const auto x = solve_lu(this->q, Kind::Strided, op, lu, C);
    this->expect_path("interleaved");
    for (index_t j = 0; j < n; ++j) EXPECT_LT(std::abs(widen(x[odd](j, 0)) - Wide<T>(3)), 20 * eps<T>) << "row " << j;
    for (index_t j = 0; j < n; ++j) C[odd](j, 0) = T(R(3)) * L.F[odd](j, j) * L.F[odd](j, j);
    L.F[odd](1, 1) = T(tiny);  // itself the pivot: b / tiny / tiny
    C[odd](1, 0) = T(0);
    const auto y = solve_cholesky(this->q, Kind::Strided, Uplo::Lower, L, C);
    for (index_t j = 0; j < n; ++j)
      EXPECT_LT(std::abs(widen(y[odd](j, 0)) - Wide<T>(j == 1 ? 0 : 3)), 20 * eps<T>) << "row " << j;
    for (std::size_t i = 0; i < A.size(); ++i)
      if (i != odd) {
        EXPECT_TRUE(same_bits(y[i], usual[i])) << "item " << i;
        EXPECT_TRUE(same_bits(x[i], usual_lu[i])) << "item " << i;
      }
  }
}

TYPED_TEST(InterleavedSolve, ReservedCallsDoNotAllocate) {
  using T = TypeParam;
  for (Kind kind : all_kinds) {
    SCOPED_TRACE(name(kind));
    const auto A = this->positive_definite(kind, 40, 12);
    const auto B = this->sides(kind, A, 2);
    const auto L = factor_cholesky(this->q, kind, Uplo::Lower, A);
    const auto lu = factor_lu(this->q, kind, A);
    for (bool by_lu : {false, true}) {
      Queue q = test_queue();
      DeviceBatch<T> F(q, by_lu ? lu.F : L.F), X(q, B);
      DeviceArray<int> info(q, L.info), pivots(q, joined_pivots(lu));
      as(kind, F, X, [&](auto f, auto x) {
        q.reserve(by_lu ? lu_solve_scratch(q, Op::Transpose, f, x) : cholesky_solve_scratch(q, Uplo::Lower, f, x));
        const index_t before = testing::allocation_count();
        if (by_lu)
          lu_solve(q, Op::Transpose, f, pivots.data(), x, info.data());
        else
          cholesky_solve(q, Uplo::Lower, f, x, info.data());
        EXPECT_EQ(testing::allocation_count(), before);
      });
      q.sync();
    }
  }
}

}  // namespace
}  // namespace trifactor::test
