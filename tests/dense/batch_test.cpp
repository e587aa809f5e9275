// Batches of every kind: each item as if it were alone, whatever its neighbours are.
#include <support/batches.hpp>

#include <algorithm>

namespace trifactor::test {
namespace {

template <class T>
class Batch : public DeviceTest {
 protected:
  /// count items of order n; of the ragged kind, the first of order n and the others of orders 0..n.
  Items<T> items(Kind kind, index_t count, index_t n, index_t pad = 0) {
    std::vector<OrderAndPad> shapes;
    for (index_t i = 0; i < count; ++i) {
      const bool vary = kind == Kind::Ragged && i > 0;
      shapes.push_back({vary ? random.integer(0, n) : n, vary ? random.integer(0, 3) : pad});
    }
    return random_spd_items<T>(random, shapes);
  }
  Items<T> rhs(const Items<T>& A, index_t columns, index_t pad = 0) {
    Items<T> B;
    for (const auto& item : A) B.push_back(random_matrix<T>(random, item.rows, columns, pad));
    return B;
  }
};
TYPED_TEST_SUITE(Batch, Scalars, ScalarNames);

TYPED_TEST(Batch, FactorsAndSolvesEveryItem) {
  for (Kind kind : all_kinds)
    for (Uplo uplo : both_uplos)
      for (index_t n : {0, 1, 2, 3, 5, 8, 10, 16, 17, 32, 33, 50, 64, 65})
        for (index_t count : {1, 2, n < 33 ? 19 : 5}) {
          const index_t pad = (n + count / 2) % 2 ? 2 : 0;
          SCOPED_TRACE(::testing::Message() << name(kind) << ' ' << name(uplo) << " n=" << n << " count=" << count);
          const auto A = this->items(kind, count, n, pad);
          const auto L = factor_cholesky(this->q, kind, uplo, A);
          expect_right(uplo, A, L);
          const auto B = this->rhs(A, n % 3 ? 2 : 1, pad);
          expect_solved(A, solve_cholesky(this->q, kind, uplo, L, B), B);
        }
}

TYPED_TEST(Batch, SolvesForAnyNumberOfRightHandSides) {
  for (Kind kind : all_kinds)
    for (Uplo uplo : both_uplos)
      for (index_t n : {3, 24, 70})
        for (index_t columns : {0, 1, 2, 15}) {
          SCOPED_TRACE(::testing::Message() << name(kind) << ' ' << name(uplo) << " n=" << n << " rhs=" << columns);
          const auto A = this->items(kind, 7, n, 1);
          const auto B = this->rhs(A, columns, 2);
          expect_solved(A, solve_cholesky(this->q, kind, uplo, factor_cholesky(this->q, kind, uplo, A), B), B);
        }
}

TYPED_TEST(Batch, RaggedRightHandSidesDifferInNumber) {
  for (index_t n : {30, 80}) {
    const auto A = this->items(Kind::Ragged, n > 64 ? 9 : 40, n);
    Items<TypeParam> B;
    for (const auto& item : A)
      B.push_back(random_matrix<TypeParam>(this->random, item.rows, this->random.integer(0, 6), 1));
    for (Uplo uplo : both_uplos)
      expect_solved(A, solve_cholesky(this->q, Kind::Ragged, uplo, factor_cholesky(this->q, Kind::Ragged, uplo, A), B),
                    B);
  }
}

TYPED_TEST(Batch, LogDetOfEveryItem) {
  for (Kind kind : all_kinds)
    for (Uplo uplo : both_uplos)
      for (index_t n : {0, 1, 5, 33, 100}) {
        SCOPED_TRACE(::testing::Message() << name(kind) << ' ' << name(uplo) << " n=" << n);
        auto L = factor_cholesky(this->q, kind, uplo, this->items(kind, 11, n));
        L.info[4] = 1;  // as if item 4 had failed
        const auto result = log_det(this->q, kind, uplo, L);
        for (std::size_t i = 0; i < result.size(); ++i) {
          if (i == 4)
            EXPECT_TRUE(std::isnan(result[i]));
          else
            EXPECT_NEAR(result[i], log_det_of(L.F[i]), log_tolerance(L.F[i]));
        }
      }
}

TYPED_TEST(Batch, ManyItemsOfMixedSizes) {
  const auto A = this->items(Kind::Ragged, 1000, 33);
  for (Uplo uplo : both_uplos) {
    const auto L = factor_cholesky(this->q, Kind::Ragged, uplo, A);
    expect_right(uplo, A, L);
    const auto B = this->rhs(A, 1);
    expect_solved(A, solve_cholesky(this->q, Kind::Ragged, uplo, L, B), B);
  }
}

TYPED_TEST(Batch, ThousandsOfTinyItems) {
  for (Kind kind : all_kinds) {
    SCOPED_TRACE(name(kind));
    const Uplo uplo = kind == Kind::Pointers ? Uplo::Upper : Uplo::Lower;
    const auto A = this->items(kind, 10007, kind == Kind::Pointers ? 2 : 3);
    const auto L = factor_cholesky(this->q, kind, uplo, A);
    expect_right(uplo, A, L);
    if (!on_cuda()) { EXPECT_EQ(L.path, "interleaved"); }
  }
}

TYPED_TEST(Batch, SmallItemsTakeTheInterleavedPathOnTheHost) {
  if (on_cuda()) GTEST_SKIP() << "of the host";
  for (Kind kind : all_kinds)
    for (index_t n : {2, 8, 16}) {
      const auto L = factor_cholesky(this->q, kind, Uplo::Upper, this->items(kind, 200, n));
      EXPECT_EQ(L.path, "interleaved") << name(kind) << " n=" << n;
    }
}

TYPED_TEST(Batch, LargerItemsTakeEveryPath) {
  for (Kind kind : all_kinds)
    for (Uplo uplo : both_uplos)
      for (index_t n : {150, 300}) {
        if (n == 300 && (uplo == Uplo::Upper) != (kind == Kind::Ragged)) continue;  // one triangle is enough there
        const auto A = this->items(kind, 3, n, 1);
        const auto B = this->rhs(A, 3);
        for (const char* looking : {"", "right", "left"}) {
          SCOPED_TRACE(::testing::Message() << name(kind) << ' ' << name(uplo) << " n=" << n << ' ' << looking);
          const std::string tuning =
              *looking ? std::string("whole=0 persistent=0 interleaved=0 nb=8 leaf=8 looking=") + looking : "";
          const auto L = factor_cholesky(this->q, kind, uplo, A, {.tuning = tuning});
          expect_right(uplo, A, L);
          if (*looking) {
            EXPECT_EQ(L.path, std::string("blocked ") + looking);
          } else {
            expect_solved(A, solve_cholesky(this->q, kind, uplo, L, B), B);
          }
        }
      }
}

/// A method of the CUDA kernels that is forced, and the orders that it takes.
struct Method {
  const char *tuning, *path;
  index_t first, last;
};

TYPED_TEST(Batch, EveryMethodTakesEverySizeThatItHolds) {
  if (!on_cuda()) GTEST_SKIP() << "of CUDA";
  constexpr bool real = std::is_floating_point_v<TypeParam>;
  constexpr bool single = std::is_same_v<TypeParam, float>;
  constexpr index_t panels = !real ? 160 : single ? 112 : 144, resident = !real ? 0 : single ? 512 : 384;
  const Method methods[] = {{"", "lanes", 1, 16},
                            {"small=0", "warp", 1, 64},
                            {"resident=512", "panels", 65, panels},
                            {"resident=512", "resident", panels + 1, resident},
                            {"small=0 resident=0", "streamed", 1, 321}};
  for (Kind kind : all_kinds)
    for (Uplo uplo : both_uplos)
      for (const Method& method : methods)
        for (index_t n : {1,   2,   3,   4,   5,   6,   7,   8,   9,   15,  16,  17,  24,  31,  32,  33,  40,
                          48,  63,  64,  65,  100, 111, 112, 113, 123, 127, 128, 129, 144, 145, 160, 171, 192,
                          193, 200, 207, 224, 225, 256, 257, 300, 321, 363, 384, 385, 449, 489, 500, 512}) {
          if (n < method.first || n > method.last) continue;
          SCOPED_TRACE(::testing::Message() << name(kind) << ' ' << name(uplo) << " n=" << n << ' ' << method.path);
          const auto A = this->items(kind, n > 300 ? 2 : n > 64 ? 5 : 21, n, n % 3);
          const auto L =
              factor_cholesky(this->q, kind, uplo, A,
                              {.tuning = std::string("whole=1000 persistent=0 sorted=1000000 ") + method.tuning});
          expect_right(uplo, A, L);
          const std::string path = method.path;
          const bool mixed = kind == Kind::Ragged && (path == "lanes" || path == "warp");
          EXPECT_EQ(L.path, mixed ? "mixed" : path);
        }
}

// As blocks of larger matrices: columns lie far apart, and what is below belongs to others.
TYPED_TEST(Batch, FactorsBlocksOfLargerMatrices) {
  for (Uplo uplo : both_uplos) {
    for (index_t n : {15, 27, 63, 108, 126, 168, 300}) {
      if (n > 100 && !on_cuda()) continue;
      SCOPED_TRACE(::testing::Message() << name(uplo) << " n=" << n);
      Items<TypeParam> A;
      for (index_t i = 0; i < 37; ++i)
        A.push_back(random_spd<TypeParam>(this->random, i == 0 ? n : this->random.integer(1, n), 60 + 7 * i));
      expect_right(uplo, A, factor_cholesky(this->q, Kind::Ragged, uplo, A));
    }
    for (index_t n : {126, 147, 294, 400}) {
      if (!on_cuda()) continue;
      SCOPED_TRACE(::testing::Message() << name(uplo) << " one of n=" << n);
      const auto A = random_spd<TypeParam>(this->random, n, 1071);
      const auto L = factor_cholesky(this->q, uplo, A);
      EXPECT_EQ(L.info, 0);
      EXPECT_LT(cholesky_ratio(A, L.F, uplo), threshold);
    }
  }
}

// Up to order 64 each size has its own way, and a launch takes chunks of 32 items.
TYPED_TEST(Batch, RaggedItemsShareALaunch) {
  for (Uplo uplo : both_uplos)
    for (index_t n : {9, 16, 17, 32, 33, 64})
      for (index_t count : {2, 31, 32, 33, 200}) {
        SCOPED_TRACE(::testing::Message() << name(uplo) << " n=" << n << " count=" << count);
        const auto A = this->items(Kind::Ragged, count, n);
        const auto L = factor_cholesky(this->q, Kind::Ragged, uplo, A);
        expect_right(uplo, A, L);
        if (on_cuda()) { EXPECT_EQ(L.path, "mixed"); }
      }
}

// However many of a chunk go alone, in pairs and in fours, each is taken: the numbers of warps are rounded up.
TYPED_TEST(Batch, RaggedItemsOfEveryMixtureAreTaken) {
  for (Uplo uplo : both_uplos)
    for (index_t large : {12, 20, 40})
      for (index_t others = 0; others <= 5; others += on_cuda() ? 1 : 5)
        for (index_t small : {3, 12}) {
          SCOPED_TRACE(::testing::Message() << name(uplo) << ' ' << others << " of " << small << " among " << large);
          Items<TypeParam> A;
          for (index_t i = 0; i < 3 * 32; ++i)
            A.push_back(random_spd<TypeParam>(this->random, i % 32 < others ? small : large));
          expect_right(uplo, A, factor_cholesky(this->q, Kind::Ragged, uplo, A));
        }
}

// Who takes an item does not depend on which others fail, nor on when that is known.
TYPED_TEST(Batch, RaggedItemsFailEachForItself) {
  using T = TypeParam;
  for (Uplo uplo : both_uplos)
    for (index_t n : {12, 30, 64, 100, 300}) {
      if (n == 300 && !on_cuda()) continue;  // the host has no rung of its own there
      SCOPED_TRACE(::testing::Message() << name(uplo) << " n=" << n);
      auto A = this->items(Kind::Ragged, n > 64 ? 50 : 150, n);
      const CholeskyOptions options{.tuning = on_cuda() ? "whole=1000 sorted=1" : ""};
      const auto good = factor_cholesky(this->q, Kind::Ragged, uplo, A, options);
      std::vector<index_t> bad(A.size(), -1);
      for (std::size_t i = 0; i < A.size(); ++i)
        if (i % 3 == 1 && A[i].rows > 0) {
          bad[i] = this->random.integer(0, A[i].rows - 1);
          A[i](bad[i], bad[i]) = i % 2 ? T(-1) : T(nan<T>);
        }
      const auto result = factor_cholesky(this->q, Kind::Ragged, uplo, A, options);
      for (std::size_t i = 0; i < A.size(); ++i) {
        EXPECT_EQ(result.info[i], bad[i] + 1) << "item " << i << " of order " << A[i].rows;
        if (bad[i] < 0)
          EXPECT_TRUE(same_bits(result.F[i], good.F[i])) << "item " << i;
        else
          EXPECT_LT(cholesky_ratio(A[i], result.F[i], uplo, bad[i]), threshold) << "item " << i;
      }
    }
}

TYPED_TEST(Batch, SortedItemsOfEverySize) {
  Items<TypeParam> A;
  for (index_t n : {0, 1, 260, 16, 17, 2, 128, 129, 64, 65, 0, 33, 201, 32, 31, 400, 5, 150, 90, 600, 1, 250, 0}) {
    if (n > 300 && !on_cuda()) continue;  // more of the same on the host
    for (int i = 0; i < (n > 200 ? 1 : 3); ++i) A.push_back(random_spd<TypeParam>(this->random, n, i));
  }
  for (Uplo uplo : both_uplos)
    for (const char* tuning :
         {"whole=1000 sorted=1", "whole=1000 sorted=1 persistent=0", "whole=1000 sorted=1 persistent=0 resident=64",
          "whole=1000 sorted=1 persistent=0 resident=0", "whole=200", "whole=24"}) {
      if (!on_cuda() && std::string(tuning).find("resident") != std::string::npos)
        continue;  // of CUDA, here nothing new
      SCOPED_TRACE(::testing::Message() << name(uplo) << ' ' << tuning);
      const auto L = factor_cholesky(this->q, Kind::Ragged, uplo, A, {.tuning = tuning});
      expect_right(uplo, A, L);
      if (on_cuda()) { EXPECT_EQ(L.path, "sorted"); }
    }
}

// Items above `whole` share the device, as many at a time as there are flags for.
TYPED_TEST(Batch, LargeItemsOfARaggedBatch) {
  using T = TypeParam;
  for (Uplo uplo : both_uplos) {
    Items<T> A;
    for (index_t i = 0; i < (on_cuda() ? 90 : 20); ++i)
      A.push_back(random_spd<T>(this->random, i % 3 == 1 ? this->random.integer(129, 330) : i % 3 ? 20 : 80, i % 2));
    const CholeskyOptions options{.tuning = "whole=128"};
    const auto good = factor_cholesky(this->q, Kind::Ragged, uplo, A, options);
    expect_right(uplo, A, good);
    std::vector<index_t> bad(A.size(), -1);
    for (std::size_t i = 0; i < A.size(); i += 4) {
      bad[i] = this->random.integer(0, A[i].rows - 1);
      A[i](bad[i], bad[i]) = i % 8 ? T(-1) : T(nan<T>);
    }
    const auto result = factor_cholesky(this->q, Kind::Ragged, uplo, A, options);
    for (std::size_t i = 0; i < A.size(); ++i) {
      EXPECT_EQ(result.info[i], bad[i] + 1) << "item " << i << " of order " << A[i].rows;
      if (bad[i] < 0) { EXPECT_TRUE(same_bits(result.F[i], good.F[i])) << "item " << i; }
    }
  }
}

// More above 512 than are begun at a time: all of the device works on them, up to `whole` and above it.
TYPED_TEST(Batch, ManyLargeItemsOfARaggedBatch) {
  const index_t large = on_cuda() ? 530 : 70, many = on_cuda() ? 12 : 3;
  Items<TypeParam> A;
  for (index_t i = 0; i < 2 * many; ++i)
    A.push_back(random_spd<TypeParam>(this->random, i % 2 ? large + i : 10 * i, i % 3));
  for (Uplo uplo : both_uplos)
    for (const char* tuning : {"whole=1000 sorted=1", "whole=32 sorted=1"})
      expect_right(uplo, A, factor_cholesky(this->q, Kind::Ragged, uplo, A, {.tuning = tuning}));
}

// Many chunks of 32 count and list together, and leave everything as it was before.
TYPED_TEST(Batch, ListsOfManyItems) {
  for (index_t count : {33, on_cuda() ? 1000 : 70}) {  // the host makes no lists
    const auto A = this->items(Kind::Ragged, count, 140);
    const CholeskyOptions options{.tuning = on_cuda() ? "whole=1000 sorted=1" : ""};
    const auto L = factor_cholesky(this->q, Kind::Ragged, Uplo::Lower, A, options);
    expect_right(Uplo::Lower, A, L);
    const auto again = factor_cholesky(this->q, Kind::Ragged, Uplo::Lower, A, options);
    for (std::size_t i = 0; i < A.size(); ++i) ASSERT_TRUE(same_bits(L.F[i], again.F[i])) << count << " item " << i;
  }
}

TYPED_TEST(Batch, TheOrderOfItemsDoesNotMatter) {
  for (Kind kind : all_kinds)
    for (index_t n : {7, 12, 20, 50, 100, 200, 300}) {
      if (n > 100 && (kind != Kind::Ragged || !on_cuda())) continue;  // a block to an item there, as below
      auto A = this->items(kind, n > 64 && kind != Kind::Ragged ? 7 : 60, n, 1);
      auto B = this->rhs(A, 2);
      const CholeskyOptions options{.tuning = on_cuda() ? "whole=1000 sorted=1" : ""};
      const Uplo uplo = n % 3 ? Uplo::Lower : Uplo::Upper;
      const auto first = factor_cholesky(this->q, kind, uplo, A, options);
      const auto X = solve_cholesky(this->q, kind, uplo, first, B);
      std::reverse(A.begin(), A.end()), std::reverse(B.begin(), B.end());
      const auto second = factor_cholesky(this->q, kind, uplo, A, options);
      const auto Y = solve_cholesky(this->q, kind, uplo, second, B);
      for (std::size_t i = 0; i < A.size(); ++i) {
        ASSERT_TRUE(same_bits(first.F[i], second.F[A.size() - 1 - i])) << name(kind) << " n=" << n << " item " << i;
        ASSERT_TRUE(same_bits(X[i], Y[A.size() - 1 - i])) << name(kind) << " n=" << n << " item " << i;
      }
    }
}

// Every other item begins at an odd place, and so does every other row if the leading dimension is odd: what is moved
// by pairs elsewhere cannot be there.
TYPED_TEST(Batch, PointersMayBeAlignedInDifferentWays) {
  for (Uplo uplo : both_uplos)
    for (index_t n : {6, 108, 118, 124, 200, 300, 400, 520})
      for (index_t more : {0, 1}) {
        if (n > 124 && !on_cuda()) continue;
        auto A = this->items(Kind::Pointers, 5, n, more);
        for (auto& item : A) item.storage.insert(item.storage.begin(), canary<TypeParam>(0)), ++item.frame;
        SCOPED_TRACE(::testing::Message() << name(uplo) << " n=" << n << " ld=" << n + more);
        expect_right(uplo, A, factor_cholesky(this->q, Kind::Pointers, uplo, A));
        A[1](n - 2, n - 2) = A[2](n - 2, n - 2) = TypeParam(-1);
        const auto L = factor_cholesky(this->q, Kind::Pointers, uplo, A);
        EXPECT_EQ(L.info, std::vector<int>({0, int(n) - 1, int(n) - 1, 0, 0}));
      }
}

// How an upper triangle of up to eight rows is moved depends on how far apart its columns are.
TYPED_TEST(Batch, SmallItemsWithEveryLeadingDimension) {
  for (Uplo uplo : both_uplos)
    for (index_t n = 1; n <= 8; ++n)
      for (index_t ld = n; ld <= 9; ++ld) {
        SCOPED_TRACE(::testing::Message() << name(uplo) << " n=" << n << " ld=" << ld);
        auto A = this->items(Kind::Strided, 35, n, ld - n);
        expect_right(uplo, A, factor_cholesky(this->q, Kind::Strided, uplo, A));
        std::vector<int> info(A.size(), 0);
        for (std::size_t i : {0, 7, 8, 33}) {
          const index_t bad = this->random.integer(0, n - 1);
          A[i](bad, bad) = i == 8 ? TypeParam(nan<TypeParam>) : TypeParam(-1);
          info[i] = int(bad) + 1;
        }
        EXPECT_EQ(factor_cholesky(this->q, Kind::Strided, uplo, A).info, info);
      }
}

// What a batch makes of an item is, but for rounding, what the call for one matrix makes of it.
TYPED_TEST(Batch, EveryItemIsAsIfFactoredAlone) {
  using T = TypeParam;
  for (Kind kind : all_kinds)
    for (Uplo uplo : both_uplos)
      for (index_t n : {1, 6, 16, 40, 90, 150}) {
        auto A = this->items(kind, 6, n, 1);
        A[0](n - 1, n - 1) = T(-1);
        const auto batch = factor_cholesky(this->q, kind, uplo, A);
        for (std::size_t b = 0; b < A.size(); ++b) {
          SCOPED_TRACE(::testing::Message() << name(kind) << ' ' << name(uplo) << " n=" << n << " item " << b);
          const auto alone = factor_cholesky(this->q, uplo, A[b]);
          EXPECT_EQ(batch.info[b], alone.info);
          const index_t good = alone.info == 0 ? A[b].rows : alone.info - 1;
          // entries are below 6, and their condition is some tens
          EXPECT_LT(triangle_difference(batch.F[b], alone.F, uplo, good), 100 * double(n) * eps<T>);
        }
      }
}

/// Factors of 2 for the rows and columns of a matrix, so that its pivots lie far apart, and beyond what fast ways bear.
template <class T>
std::vector<int> far_apart(Random& random, index_t n) {
  const bool single = sizeof(real_t<T>) == 4;
  const index_t least = single ? -51 : -400, most = !single ? 400 : n > 100 ? 60 : 62;
  std::vector<int> exponents;
  for (index_t i = 0; i < n; ++i) exponents.push_back(int(random.integer(least, most)));
  return exponents;
}
/// D A D, or its rows alone, with D = diag(2^e).
template <class T>
HostMatrix<T> scaled(HostMatrix<T> A, const std::vector<int>& e, bool rows, bool columns, int sign) {
  using R = real_t<T>;
  for (index_t j = 0; j < A.cols; ++j)
    for (index_t i = 0; i < A.rows; ++i) A(i, j) *= std::ldexp(R(1), sign * ((rows ? e[i] : 0) + (columns ? e[j] : 0)));
  return A;
}

// Every rung, at the edges of what numbers can hold: all of an item near one of them, or its rows spread between both.
TYPED_TEST(Batch, ItemsOfEveryScale) {
  using T = TypeParam;
  for (Kind kind : all_kinds)
    for (Uplo uplo : both_uplos)
      for (index_t n : {3, 4, 6, 8, 13, 16, 27, 50, 64, 100, 200, 300}) {
        if (n > 64 && (!on_cuda() || (n > 100 && kind == Kind::Pointers))) continue;
        SCOPED_TRACE(::testing::Message() << name(kind) << ' ' << name(uplo) << " n=" << n);
        Items<T> A, given;
        std::vector<std::vector<int>> exponents;
        for (int b = 0; b < 5; ++b) {
          A.push_back(random_spd<T>(this->random, kind == Kind::Ragged ? n - b % 3 : n));
          const index_t own = A.back().rows;
          const int tiny = std::ilogb(tiny_scale<T>()) / 2 + 1, huge = std::ilogb(huge_scale<T>()) / 2 - 4;
          exponents.push_back(b % 2   ? far_apart<T>(this->random, own)
                              : b > 0 ? std::vector<int>(std::size_t(own), b == 2 ? tiny : huge)
                                      : std::vector<int>(std::size_t(own), 0));
          given.push_back(scaled(A.back(), exponents.back(), true, true, 1));
        }
        auto L = factor_cholesky(this->q, kind, uplo, given);
        for (std::size_t b = 0; b < A.size(); ++b) {
          const bool lower = uplo == Uplo::Lower;
          auto F = L.F[b];
          for (index_t j = 0; j < F.cols; ++j)
            for (index_t i = 0; i < F.rows; ++i)
              if (!in_triangle(uplo, i, j)) F(i, j) = T(0);
          L.F[b] = scaled(F, exponents[b], lower, !lower, -1);
        }
        expect_right(uplo, A, L);
      }
}

// A NaN or an infinity below the diagonal makes the pivot of its row a bad one, and no other before.
TYPED_TEST(Batch, WhatIsNotFiniteIsFoundAtItsRow) {
  using T = TypeParam;
  for (Kind kind : all_kinds)
    for (Uplo uplo : both_uplos)
      for (index_t n : {3, 8, 14, 16, 25, 32, 50, 64, 90, 128, 200, 300}) {
        if (n > 64 && (!on_cuda() || (n > 128 && kind == Kind::Pointers))) continue;
        SCOPED_TRACE(::testing::Message() << name(kind) << ' ' << name(uplo) << " n=" << n);
        auto A = this->items(Kind::Strided, 7, n);
        const auto good = factor_cholesky(this->q, kind, uplo, A);
        std::vector<index_t> row(A.size(), -1);
        for (std::size_t b = 1; b < A.size(); b += 2) {
          row[b] = this->random.integer(1, n - 1);
          set_hermitian(A[b], row[b], this->random.integer(0, row[b] - 1), b == 3 ? T(inf<T>) : T(nan<T>));
        }
        const auto result = factor_cholesky(this->q, kind, uplo, A);
        for (std::size_t b = 0; b < A.size(); ++b) {
          EXPECT_EQ(result.info[b], row[b] + 1) << "item " << b;
          if (row[b] < 0)
            EXPECT_TRUE(same_bits(result.F[b], good.F[b])) << "item " << b;
          else
            EXPECT_LT(cholesky_ratio(A[b], result.F[b], uplo, row[b]), threshold) << "item " << b;
        }
      }
}

// Above the ladder: items go a few at a time through the persistent grid; without it, and if they are many, in steps.
TYPED_TEST(Batch, ItemsBeyondTheLadder) {
  for (Kind kind : all_kinds)
    for (Uplo uplo : both_uplos)
      for (const char* tuning : {"whole=100", "whole=100 persistent=0"}) {
        SCOPED_TRACE(::testing::Message() << name(kind) << ' ' << name(uplo) << ' ' << tuning);
        auto A = this->items(kind, 4, 180, 1);
        A[2](0, 0) = TypeParam(-1);
        auto L = factor_cholesky(this->q, kind, uplo, A, {.tuning = tuning + std::string(on_cuda() ? "" : " nb=64")});
        EXPECT_EQ(L.info[2], A[2].rows > 0 ? 1 : 0);
        const bool in_steps = tuning == std::string("whole=100 persistent=0");
        if (on_cuda()) {
          EXPECT_EQ(L.path, in_steps ? "blocked right" : kind == Kind::Ragged ? "sorted" : "persistent");
        }
        for (auto* items : {&A, &L.F}) items->erase(items->begin() + 2);
        L.info.erase(L.info.begin() + 2);
        expect_right(uplo, A, L);
      }
}

TYPED_TEST(Batch, ManyItemsBeyondTheLadder) {
  for (Kind kind : {Kind::Strided, Kind::Pointers}) {
    SCOPED_TRACE(name(kind));
    const auto A = this->items(kind, 33, 70);
    const auto L = factor_cholesky(this->q, kind, Uplo::Lower, A, {.tuning = on_cuda() ? "whole=60" : ""});
    expect_right(Uplo::Lower, A, L);
    if (on_cuda()) { EXPECT_EQ(L.path, "blocked right"); }
  }
}

// More items than an H200 has multiprocessors, which are shared by two blocks then where that pays. Four matrices take
// turns, the last of them fails.
TYPED_TEST(Batch, ItemsShareMultiprocessors) {
  using T = TypeParam;
  if (!on_cuda()) GTEST_SKIP() << "of CUDA";
  for (Kind kind : all_kinds)
    for (Uplo uplo : both_uplos)
      for (index_t n : {161, 200, 287}) {
        SCOPED_TRACE(::testing::Message() << name(kind) << ' ' << name(uplo) << ' ' << n);
        if (n == 200 && (uplo == Uplo::Upper) != (kind == Kind::Ragged)) continue;  // one triangle is enough there
        Items<T> four;
        for (index_t i = 0; i < 4; ++i) four.push_back(random_spd<T>(this->random, n));
        const index_t k = this->random.integer(0, n - 1);
        four[3](k, k) = T(-1);
        Items<T> A;
        for (index_t i = 0; i < 150; ++i) A.push_back(four[i % 4]);
        const auto L = factor_cholesky(this->q, kind, uplo, A, {.tuning = "whole=1000 resident=512 order_per_item=1000"});
        for (index_t i = 0; i < 150; ++i) {
          EXPECT_EQ(L.info[i], i % 4 == 3 ? k + 1 : 0) << "item " << i;
          if (i >= 4 && !same_bits(L.F[i], L.F[i % 4])) ADD_FAILURE() << "item " << i << " differs from its twin";
          if (i < 4) { EXPECT_LT(cholesky_ratio(A[i], L.F[i], uplo, i == 3 ? k : n), threshold) << "item " << i; }
        }
      }
}

// All of the device works on large items if they are few: up to 12 of order 300.
TYPED_TEST(Batch, FewLargeItems) {
  using T = TypeParam;
  if (!on_cuda()) GTEST_SKIP() << "of CUDA";
  const auto all = random_spd_items<T>(this->random, std::vector<OrderAndPad>(40, {300, 5}));
  for (Kind kind : all_kinds)
    for (Uplo uplo : both_uplos)
      for (index_t count : {1, 2, 9, 12, 13, 40}) {
        if (count == 40 && (uplo == Uplo::Upper) != (kind == Kind::Ragged)) continue;  // one triangle is enough there
        SCOPED_TRACE(::testing::Message() << name(kind) << ' ' << name(uplo) << ' ' << count);
        Items<T> A(all.begin(), all.begin() + count);
        const CholeskyOptions options{.tuning = "whole=1000 resident=512 order_per_item=25"};
        const auto good = factor_cholesky(this->q, kind, uplo, A, options);
        const bool large = count <= 12 && (kind == Kind::Pointers || count > 1);
        EXPECT_EQ(good.path, kind == Kind::Ragged          ? "sorted"
                             : large                       ? "persistent"
                             : std::is_floating_point_v<T> ? "resident"
                                                           : "streamed");
        expect_right(uplo, A, good);
        const index_t b = count / 2, k = this->random.integer(0, 299);
        A[b](k, k) = count % 2 ? T(-1) : T(nan<T>);
        const auto bad = factor_cholesky(this->q, kind, uplo, A, options);
        for (index_t i = 0; i < count; ++i) {
          EXPECT_EQ(bad.info[i], i == b ? k + 1 : 0) << "item " << i;
          if (i != b && !same_bits(bad.F[i], good.F[i])) ADD_FAILURE() << "item " << i << " changed";
        }
        EXPECT_LT(cholesky_ratio(A[b], bad.F[b], uplo, k), threshold);
      }
}

// Of a ragged batch, it works on the largest that are few enough. However many that makes of two items of order 700,
// three of 400 and 20 of 300, all of them, some or none, each item is taken once.
TYPED_TEST(Batch, TheLargestOfARaggedBatchAreFew) {
  using T = TypeParam;
  std::vector<OrderAndPad> shapes;
  const index_t part = on_cuda() ? 1 : 4;  // what is few is decided on CUDA
  for (index_t i = 0; i < 25; ++i) shapes.push_back({(i % 12 == 5 ? 700 : i % 8 == 3 ? 400 : 300) / part});
  shapes.push_back({20});
  const auto A = random_spd_items<T>(this->random, shapes);
  for (Uplo uplo : both_uplos)
    for (const char* tuning : {"order_per_item=10", "order_per_item=77", "order_per_item=200", "order_per_item=1000", "whole=350 order_per_item=77"}) {
      SCOPED_TRACE(::testing::Message() << name(uplo) << ' ' << tuning);
      if (!on_cuda() && tuning != std::string("order_per_item=10")) continue;  // of CUDA
      const auto L = factor_cholesky(this->q, Kind::Ragged, uplo, A, {.tuning = tuning});
      expect_right(uplo, A, L);
    }
}

// So many that a block has several squares of an update.
TYPED_TEST(Batch, OneLargeItemAmongManyInSteps) {
  Items<TypeParam> A(6000, random_spd<TypeParam>(this->random, 2));
  A[4321] = random_spd<TypeParam>(this->random, on_cuda() ? 420 : 100);
  const auto L = factor_cholesky(this->q, Kind::Ragged, Uplo::Lower, A,
                                 {.tuning = "whole=0 persistent=0 interleaved=0 nb=64 leaf=64"});
  expect_right(Uplo::Lower, A, L);
}

// Small items are done after the first steps; what fails is counted from each item's own first row.
TYPED_TEST(Batch, RaggedItemsInSteps) {
  using T = TypeParam;
  for (Uplo uplo : both_uplos)
    for (const auto& [tuning, max_order] : {std::pair{"nb=1 leaf=1", 8},
                                       {"nb=3 leaf=3", 26},
                                       {"nb=8 leaf=3", 26},
                                       {"nb=24 leaf=24 tile=exclusive ib=5", 70},
                                       {"", 70}})
      for (index_t n : {1, 8, 26, 70}) {
        if (n > max_order) continue;
        SCOPED_TRACE(::testing::Message() << name(uplo) << " n=" << n << ' ' << tuning);
        auto A = this->items(Kind::Ragged, 30, n);
        A.push_back(HostMatrix<T>(0, 0)), A.push_back(random_spd<T>(this->random, 1));
        std::vector<index_t> bad(A.size(), -1);
        for (std::size_t i = 0; i < A.size(); i += 4)
          if (A[i].rows > 0) {
            bad[i] = this->random.integer(0, A[i].rows - 1);
            A[i](bad[i], bad[i]) = i % 8 ? T(-1) : T(nan<T>);
          }
        const auto L =
            factor_cholesky(this->q, Kind::Ragged, uplo, A,
                            {.tuning = std::string("whole=0 persistent=0 interleaved=0 ") + tuning});
        EXPECT_EQ(L.path, "blocked right");
        for (std::size_t i = 0; i < A.size(); ++i) {
          EXPECT_EQ(L.info[i], bad[i] + 1) << "item " << i << " of order " << A[i].rows;
          EXPECT_LT(cholesky_ratio(A[i], L.F[i], uplo, bad[i] < 0 ? A[i].rows : bad[i]), threshold) << "item " << i;
        }
      }
}

TYPED_TEST(Batch, AMillionOfOrderThree) {
  using T = TypeParam;
  constexpr index_t n = 3, count = TRIFACTOR_TEST_SANITIZED ? 100003 : 1000003;
  std::vector<T> values(std::size_t(n * n * count));
  for (index_t b = 0; b < count; ++b)
    for (index_t j = 0; j < n; ++j)
      for (index_t i = j; i < n; ++i)
        values[std::size_t((b * n + j) * n + i)] = i == j ? T(real_t<T>(4 + b % 5)) : T(real_t<T>((b + i) % 3 - 1));
  DeviceArray<T> A(this->q, values);
  DeviceArray<int> info(this->q, count + 1, garbage);
  cholesky(this->q, Uplo::Lower, StridedBatch<T>{A.data(), n, n, n, n * n, count}, info.data());
  this->q.sync();
  const auto L = A.download();
  const auto infos = info.download();
  EXPECT_EQ(infos.back(), garbage);
  index_t wrong = 0;
  for (index_t b = 0; b < count; ++b) {
    const T *l = &L[std::size_t(b * n * n)], *a = &values[std::size_t(b * n * n)];
    bool right =
        infos[std::size_t(b)] == 0 && l[3] == a[3] && l[6] == a[6] && l[7] == a[7];  // what lies above is untouched
    for (index_t j = 0; j < n; ++j)
      for (index_t i = j; i < n; ++i) {
        T sum = a[j * n + i];
        for (index_t k = 0; k <= j; ++k) sum -= l[k * n + i] * l[k * n + j];  // the entries are real
        right = right && std::abs(sum) < 100 * std::numeric_limits<real_t<T>>::epsilon();
      }
    wrong += !right;
  }
  EXPECT_EQ(wrong, 0);
}

TYPED_TEST(Batch, SmallItemsTakeForcedBlockedPaths) {
  for (Kind kind : all_kinds)
    for (Uplo uplo : both_uplos)
      for (const char* tuning :
           {"nb=1 leaf=1", "nb=3 leaf=3", "nb=8 leaf=3", "nb=8 leaf=8 tile=exclusive ib=3"})
        for (const char* looking : {"right", "left"})
          for (index_t n : {2, 8, 9, 26}) {
            SCOPED_TRACE(::testing::Message()
                         << name(kind) << ' ' << name(uplo) << " n=" << n << ' ' << tuning << ' ' << looking);
            const auto A = this->items(kind, 9, n, 1);
            const auto L = factor_cholesky(
                this->q, kind, uplo, A,
                {.tuning = std::string("whole=0 persistent=0 interleaved=0 looking=") + looking + ' ' + tuning});
            expect_right(uplo, A, L);
            EXPECT_EQ(L.path, std::string("blocked ") + looking);
          }
}

// Neighbours do not notice: they are bitwise what they are when all items are good. Each kind of bad pivot alone, where
// items are small, and all of them in one batch.
TYPED_TEST(Batch, ABadItemHarmsNoOther) {
  using T = TypeParam;
  const std::vector<std::pair<int, T>> each_bad = {{0, T(-1)}, {5, T(nan<T>)}, {20, T(inf<T>)}, {16, T(0)}};
  for (Kind kind : all_kinds)
    for (index_t n : {4, 12, 40, 100, 150, 330}) {
      if (n >= 100 && !on_cuda()) continue;
      std::vector<OrderAndPad> shapes;
      for (int i = 0; i < 21; ++i) shapes.push_back({kind == Kind::Ragged ? n - i % 3 : n});
      const auto A = random_spd_items<T>(this->random, shapes);
      std::vector<std::vector<std::pair<int, T>>> cases = {each_bad};
      for (const auto& bad : each_bad)
        if (n <= 12) cases.push_back({bad});
      for (Uplo uplo : both_uplos)
        for (const char* tuning : {"", "whole=0 persistent=0 interleaved=0 nb=3 leaf=3 looking=right",
                                   "whole=0 persistent=0 interleaved=0 nb=3 leaf=3 looking=left", "whole=1000 small=0",
                                   "whole=1000 small=0 resident=0", "whole=1000 sorted=1",
                                   "whole=0 persistent=0 interleaved=0 nb=8 leaf=8 tile=exclusive ib=3"}) {
          if (n >= 40 && std::string(tuning).find("nb=3") != std::string::npos) continue;  // slow, and no other than 12
          if (!on_cuda() && std::string(tuning).find("resident") != std::string::npos) continue;  // of CUDA
          if (n > 150 && *tuning && std::string(tuning).find("resident=0") == std::string::npos) continue;
          const auto good = factor_cholesky(this->q, kind, uplo, A, {.tuning = tuning});
          for (const auto& bad : cases) {
            SCOPED_TRACE(::testing::Message() << name(kind) << ' ' << name(uplo) << " n=" << n << ' ' << bad.size()
                                              << " bad, first " << bad[0].first << ' ' << tuning);
            auto B = A;
            std::vector<int> info(A.size(), 0);
            for (auto [b, pivot] : bad) {
              const index_t k = this->random.integer(0, A[b].rows - 1);
              B[b](k, k) = pivot, info[b] = int(k) + 1;
            }
            const auto result = factor_cholesky(this->q, kind, uplo, B, {.tuning = tuning});
            EXPECT_EQ(result.info, info);
            for (std::size_t i = 0; i < A.size(); ++i) {
              if (info[i] > 0)
                EXPECT_LT(cholesky_ratio(A[i], result.F[i], uplo, info[i] - 1), threshold) << "item " << i;
              else if (!same_bits(result.F[i], good.F[i]))
                ADD_FAILURE() << "item " << i << " changed";
            }
          }
        }
    }
}

TYPED_TEST(Batch, RepeatsBitwise) {
  for (Kind kind : all_kinds)
    for (index_t n : {7, 60}) {
      const auto A = this->items(kind, 50, n, 1);
      const auto B = this->rhs(A, 3);
      const auto first = factor_cholesky(this->q, kind, Uplo::Lower, A),
                 second = factor_cholesky(this->q, kind, Uplo::Lower, A);
      const auto X = solve_cholesky(this->q, kind, Uplo::Lower, first, B),
                 Y = solve_cholesky(this->q, kind, Uplo::Lower, second, B);
      for (std::size_t i = 0; i < A.size(); ++i) {
        ASSERT_TRUE(same_bits(first.F[i], second.F[i])) << name(kind) << " n=" << n << " item " << i;
        ASSERT_TRUE(same_bits(X[i], Y[i])) << name(kind) << " n=" << n << " item " << i;
      }
    }
}

TYPED_TEST(Batch, AnyNumberOfThreadsIsFine) {
  if (on_cuda()) GTEST_SKIP() << "of the host";
  for (int threads : {1, 2, 5}) {
    Queue q = Queue::host(threads);
    const auto A = this->items(Kind::Ragged, 60, 40);
    const auto L = factor_cholesky(q, Kind::Ragged, Uplo::Lower, A);
    expect_right(Uplo::Lower, A, L);
    const auto B = this->rhs(A, 2);
    expect_solved(A, solve_cholesky(q, Kind::Ragged, Uplo::Lower, L, B), B);
    const auto large = random_spd<TypeParam>(this->random, 200);
    EXPECT_LT(cholesky_ratio(large, factor_cholesky(q, Uplo::Upper, large).F, Uplo::Upper), threshold) << threads;
  }
}

TYPED_TEST(Batch, SolveSkipsFailedItems) {
  for (Kind kind : all_kinds)
    for (Uplo uplo : both_uplos)
      for (index_t n : {3, 20, 90}) {
        SCOPED_TRACE(::testing::Message() << name(kind) << ' ' << name(uplo) << " n=" << n);
        Items<TypeParam> A, B;
        for (int i = 0; i < 9; ++i) {
          A.push_back(random_spd<TypeParam>(this->random, n));
          B.push_back(random_matrix<TypeParam>(this->random, n, 4, 1));
        }
        A[2](n - 1, n - 1) = TypeParam(-1);
        const auto L = factor_cholesky(this->q, kind, uplo, A);
        EXPECT_EQ(L.info[2], n);
        auto X = solve_cholesky(this->q, kind, uplo, L, B);
        EXPECT_TRUE(same_bits(X[2], B[2]));
        A.erase(A.begin() + 2), B.erase(B.begin() + 2), X.erase(X.begin() + 2);
        expect_solved(A, X, B);
      }
}

}  // namespace
}  // namespace trifactor::test
