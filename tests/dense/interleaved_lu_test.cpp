// LU of many small square matrices on the host, side by side in SIMD lanes, compared with item by item: every order and
// number of items, orders mixed, and items with which lanes need help.
#include <support/batches.hpp>

namespace trifactor::test {
namespace {

constexpr index_t crossover = 96;  // the largest of tuning/*.txt
const LuOptions by_item{.tuning = "interleaved=0"}, in_lanes{.tuning = "interleaved=1000"};

template <class T>
class InterleavedLu : public DeviceTest {
 protected:
  Queue q = Queue::host(2);  // more threads would take few items one by one

  /// count items of order n; of the ragged kind any from 0 to n, and the first n.
  Items<T> square(Kind kind, index_t count, index_t n) {
    Items<T> A;
    for (index_t i = 0; i < count; ++i) {
      const bool ragged = kind == Kind::Ragged;
      const index_t own = ragged && i > 0 ? random.integer(0, n) : n;
      A.push_back(random_matrix<T>(random, own, own, ragged ? i % 3 : 1));
    }
    return A;
  }
  void expect_path(const LuItems<T>& result, const char* path) {
    EXPECT_EQ(result.path, path);
  }
};
TYPED_TEST_SUITE(InterleavedLu, AllScalars, ScalarNames);

/// Info and pivots are the same. Factors differ by rounding, and by that may, in single precision, the pivots of a few
/// items.
template <class T>
void expect_alike(const LuItems<T>& a, const LuItems<T>& b) {
  EXPECT_EQ(a.info, b.info);
  std::size_t different = 0;
  for (std::size_t i = 0; i < a.F.size(); ++i) different += a.pivots[i] != b.pivots[i];
  EXPECT_LE(different, sizeof(real_t<T>) == 4 ? 1 + a.F.size() / 20 : 0);
}

TYPED_TEST(InterleavedLu, EveryOrderAndKind) {
  for (index_t n = 1; n <= crossover + 2; n += n < 34 ? 1 : 8)
    for (Kind kind : {all_kinds[n % 3], Kind::Ragged})
      for (index_t count : {n % 2 ? 16 : 17, 35}) {
        SCOPED_TRACE(::testing::Message() << name(kind) << " n=" << n << " count=" << count);
        const auto A = this->square(kind, count, n);
        const auto lanes = factor_lu(this->q, kind, A, in_lanes), items = factor_lu(this->q, kind, A, by_item);
        this->expect_path(lanes, "interleaved");
        this->expect_path(items, "lapack");
        expect_right(A, lanes);
        expect_alike(lanes, items);
      }
}

TYPED_TEST(InterleavedLu, TheRowsOfTheTuningFilesSayWhere) {
  const auto path = [&](index_t n, const LuOptions& options = {}) {
    return factor_lu(this->q, Kind::Strided, this->square(Kind::Strided, 300, n), options);
  };
  this->expect_path(path(1), "interleaved");
  this->expect_path(path(16), "interleaved");
  this->expect_path(path(crossover + 2), "lapack");
  this->expect_path(path(9, {.tuning = "interleaved=8"}), "lapack");
  this->expect_path(path(9, {.tuning = "interleaved=9"}), "interleaved");
  this->expect_path(factor_lu(this->q, Kind::Strided, this->square(Kind::Strided, 1, 9)), "lapack");
}

TYPED_TEST(InterleavedLu, LargeItemsOfARaggedBatchAreAlone) {
  auto A = this->square(Kind::Ragged, 60, 31);
  const auto mixed = factor_lu(this->q, Kind::Ragged, A, {.tuning = "interleaved=20"});
  this->expect_path(mixed, "lapack, interleaved");
  expect_right(A, mixed);
  expect_alike(mixed, factor_lu(this->q, Kind::Ragged, A, by_item));
  A[5] = random_matrix<TypeParam>(this->random, 7, 9);  // rectangular: all items go one by one
  const auto rectangular = factor_lu(this->q, Kind::Ragged, A, {.tuning = "interleaved=20"});
  this->expect_path(rectangular, "lapack");
  expect_right(A, rectangular);
}

// Bit by bit: an item's factors do not depend on the items beside it, on their orders, on its lane or on threads.
TYPED_TEST(InterleavedLu, AnItemIsTheSameAmongOthers) {
  using T = TypeParam;
  for (index_t n : {1, 3, 4, 6, 13, 29}) {
    const auto A = this->square(Kind::Strided, 40, n);
    const auto alike = factor_lu(this->q, Kind::Strided, A, in_lanes);
    auto mixed = this->square(Kind::Ragged, 50, 32);
    for (std::size_t i = 0; i < 24; ++i) mixed[2 * i + 1] = A[39 - i];
    const auto among = factor_lu(this->q, Kind::Ragged, mixed, in_lanes);
    for (std::size_t i = 0; i < 24; ++i) {
      EXPECT_TRUE(same_bits(among.F[2 * i + 1], alike.F[39 - i])) << "n=" << n << " item " << i;
      EXPECT_EQ(among.pivots[2 * i + 1], alike.pivots[39 - i]);
    }
    const auto last = factor_lu(this->q, Kind::Strided, Items<T>(A.begin() + 19, A.end()), in_lanes);
    this->expect_path(last, "interleaved");
    for (std::size_t i = 0; i < 21; ++i)
      EXPECT_TRUE(same_bits(last.F[i], alike.F[19 + i])) << "n=" << n << " item " << i;
  }
}

// What lanes leave to others is bit by bit what it is item by item; what they do is in the order of LAPACK.
TYPED_TEST(InterleavedLu, BadItemsBetweenGoodOnes) {
  using T = TypeParam;
  using R = real_t<T>;
  const R infinity = std::numeric_limits<R>::infinity(), subnormal = std::numeric_limits<R>::denorm_min() * 4;
  for (Kind kind : all_kinds)
    for (index_t n : {1, 2, 5, 8, 11, 16}) {  // up to 16, item by item is the tile routine
      auto A = this->square(kind, 37, n);
      const auto good = factor_lu(this->q, kind, A, in_lanes);
      const std::size_t nan_at = 3, infinite = 9, zero = 20, tiny = 27, huge = 30;
      for (std::size_t b : {nan_at, infinite, zero, tiny, huge}) {
        A[b] = random_matrix<T>(this->random, n, n, 1);
        A[b](0, 0) = T(1);
      }
      A[nan_at](n - 1, n / 2) = T(nan<T>), A[infinite](n / 2, 0) = T(infinity);
      for (index_t i = 0; i < n; ++i) A[zero](i, n / 2) = T(0);
      for (auto& x : A[tiny].storage) x *= subnormal;
      for (auto& x : A[huge].storage) x *= std::numeric_limits<R>::max() / 8;
      const auto lanes = factor_lu(this->q, kind, A, in_lanes), items = factor_lu(this->q, kind, A, by_item);
      SCOPED_TRACE(::testing::Message() << name(kind) << " n=" << n);
      this->expect_path(lanes, "interleaved");
      expect_alike(lanes, items);
      EXPECT_EQ(lanes.info[zero], n / 2 + 1);
      for (std::size_t b = 0; b < A.size(); ++b) {
        if (b == zero)
          EXPECT_LT(lu_ratio(A[b], lanes.F[b], lanes.pivots[b]), threshold) << "item " << b;
        else if (b == nan_at || b == infinite || b == tiny || b == huge)
          EXPECT_TRUE(same_bits(lanes.F[b], items.F[b]) && lanes.pivots[b] == items.pivots[b]) << "item " << b;
        else
          EXPECT_TRUE(same_bits(lanes.F[b], good.F[b])) << "item " << b;
      }
    }
}

// Entries from a few integers: many ties, of rows that were exchanged before too, and singular items.
TYPED_TEST(InterleavedLu, TiesAndSingularItemsAsItemByItem) {
  using T = TypeParam;
  for (index_t n : {2, 3, 5, 8, 13, 16}) {
    Items<T> A;
    for (int b = 0; b < 50; ++b) {
      A.emplace_back(n, n);
      for (index_t j = 0; j < n; ++j)
        for (index_t i = 0; i < n; ++i) A.back()(i, j) = T(real_t<T>(this->random.integer(-1, 1)));
      if (b % 5 == 0)
        for (index_t j = 0; j < n; ++j) A.back()(n - 1, j) = A.back()(0, j);
      if (b % 7 == 0) std::fill(A.back().storage.begin(), A.back().storage.end(), T(0));
    }
    const auto lanes = factor_lu(this->q, Kind::Strided, A, in_lanes),
               items = factor_lu(this->q, Kind::Strided, A, by_item);
    for (std::size_t b = 0; b < A.size(); ++b) {
      EXPECT_LT(lu_ratio(A[b], lanes.F[b], lanes.pivots[b]), threshold) << "item " << b;
      if (n > 3) continue;  // beyond, rounding decides which of two multiples of a third is larger
      EXPECT_EQ(lanes.pivots[b], items.pivots[b]) << "n=" << n << " item " << b;
      EXPECT_EQ(lanes.info[b], items.info[b]) << "n=" << n << " item " << b;
    }
    EXPECT_EQ(lanes.info[0], 1);
  }
}

}  // namespace
}  // namespace trifactor::test
