// core::Tile and core::Items: which entry a view shows, and how windows of ragged batches are clipped.
#include "support.hpp"

namespace trifactor::tile_test {
namespace {

using core::Items;

/// A ragged batch of double whose entry (i, j) of item b, as stored, is 100 b + 10 i + j.
class Ragged {
 public:
  Ragged(std::vector<int> rows_of_items, std::vector<int> cols_of_items, int extra_ld = 0)
      : rows(rows_of_items), cols(cols_of_items) {
    for (std::size_t b = 0; b < rows.size(); ++b) {
      ld.push_back(std::max(rows[b], 1) + extra_ld);
      storage.emplace_back(ld[b] * cols[b] + 1, -1.0);
      for (int j = 0; j < cols[b]; ++j)
        for (int i = 0; i < rows[b]; ++i) storage[b][i + j * ld[b]] = 100.0 * b + 10 * i + j;
    }
    for (auto& item : storage) pointers.push_back(item.data());
  }
  Items<double> items(int max_rows, int max_cols) const {
    Items<double> A;
    A.pointers = pointers.data();
    A.item_rows = rows.data(), A.item_cols = cols.data(), A.item_ld = ld.data();
    A.stored_rows = A.rows = max_rows, A.stored_cols = A.cols = max_cols;
    A.count = index_t(rows.size());
    return A;
  }
  std::vector<int> rows, cols, ld;

 private:
  std::vector<std::vector<double>> storage;
  std::vector<double*> pointers;
};

TEST(Tile, BlocksAndFlipsComposeInAnyOrder) {
  std::vector<double> a(35);
  for (int k = 0; k < 35; ++k) a[k] = k;
  const core::Tile<double> A{a.data(), 4, 5, 1, 7};
  const auto left = A.block(1, 2, 3, 2).flipped(), right = A.flipped().block(2, 1, 2, 3);
  ASSERT_EQ(left.rows, 2);
  ASSERT_EQ(left.cols, 3);
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 3; ++j) {
      EXPECT_EQ(left(i, j), A(1 + j, 2 + i));
      EXPECT_EQ(&left(i, j), &right(i, j));
    }
}

TEST(Items, AWindowIsClippedToEachItem) {
  const std::vector<int> rows = {6, 3, 0, 5, 1}, cols = {4, 3, 2, 0, 5};
  const Ragged batch(rows, cols, 2);
  for (const bool flip : {false, true})
    for (int i = 0; i <= 6; ++i)
      for (int j = 0; j <= 5; ++j) {
        auto W = batch.items(6, 5);
        W = flip ? W.flipped().block(j, i, 2, 3) : W.block(i, j, 3, 2);  // the same window of the stored items
        for (int b = 0; b < 5; ++b) {
          const auto item = W.item(b), tile = flip ? item.flipped() : item;
          ASSERT_EQ(tile.rows, std::clamp(rows[b] - i, 0, 3)) << b << ' ' << i << ' ' << j << ' ' << flip;
          ASSERT_EQ(tile.cols, std::clamp(cols[b] - j, 0, 2)) << b << ' ' << i << ' ' << j << ' ' << flip;
          for (int q = 0; q < tile.cols; ++q)
            for (int p = 0; p < tile.rows; ++p) EXPECT_EQ(tile(p, q), 100.0 * b + 10 * (i + p) + j + q);
        }
      }
}

TEST(Items, AnEmptyTilePointsIntoItsItem) {
  const Ragged batch({2}, {2});
  const auto A = batch.items(9, 9);
  EXPECT_EQ(A.block(5, 0, 3, 2).item(0).data, A.item(0).data);
  EXPECT_EQ(A.block(0, 5, 2, 3).item(0).data, A.item(0).data);
}

TEST(Items, WindowsOfWindowsAndFlipsCompose) {
  std::vector<double> a(3 * 40, -1.0);
  for (int b = 0; b < 3; ++b)
    for (int j = 0; j < 5; ++j)
      for (int i = 0; i < 6; ++i) a[b * 40 + j * 7 + i] = 100.0 * b + 10 * i + j;
  auto A = core::one_matrix(a.data(), 6, 5, 7);
  A.stride = 40, A.count = 3;
  const auto W = A.block(1, 1, 5, 4).flipped().block(1, 2, 3, 3).flipped();  // rows 3..5, columns 2..4
  for (int b = 0; b < 3; ++b) {
    const auto tile = W.item(b);
    ASSERT_EQ(tile.rows, 3);
    ASSERT_EQ(tile.cols, 3);
    for (int j = 0; j < 3; ++j)
      for (int i = 0; i < 3; ++i) EXPECT_EQ(tile(i, j), 100.0 * b + 10 * (3 + i) + 2 + j);
  }
}

TEST(Items, OnlyRaggedSizesCanBeImpossible) {
  Ragged batch({3, 3, 3, 3, 3, 3, 0}, {2, 2, 2, 2, 2, 2, 0});
  batch.rows[1] = -1, batch.cols[2] = -1, batch.rows[3] = 5, batch.cols[4] = 3, batch.ld[5] = 2, batch.ld[6] = 0;
  const auto A = batch.items(4, 2);
  EXPECT_TRUE(A.possible(0));
  EXPECT_FALSE(A.possible(1)) << "negative rows";
  EXPECT_FALSE(A.possible(2)) << "negative columns";
  EXPECT_FALSE(A.possible(3)) << "more rows than the stated maximum";
  EXPECT_FALSE(A.possible(4)) << "more columns than the stated maximum";
  EXPECT_FALSE(A.possible(5)) << "ld < rows";
  EXPECT_FALSE(A.possible(6)) << "ld < 1";
  std::vector<double> one(1);
  EXPECT_TRUE(core::one_matrix(one.data(), 1, 1, 1).possible(0));
}

TEST(Complex, HasTheLayoutOfStdComplex) {
  static_assert(sizeof(core::Complex<float>) == sizeof(std::complex<float>));
  static_assert(sizeof(core::Complex<double>) == sizeof(std::complex<double>));
  const auto a = std::bit_cast<core::Complex<double>>(std::complex<double>(1, 2));
  EXPECT_EQ(a.re, 1);
  EXPECT_EQ(a.im, 2);
}

TEST(Complex, ArithmeticIsThatOfStdComplex) {
  Random<core::Complex<double>> random(1);
  for (int repeat = 0; repeat < 1000; ++repeat) {
    const auto a = random(), b = random(), c = random();
    const Wide wa = wide(a), wb = wide(b), wc = wide(c);
    EXPECT_EQ(wide(a + b), wa + wb);
    EXPECT_EQ(wide(a - b), wa - wb);
    EXPECT_EQ(wide(-a), -wa);
    EXPECT_EQ(wide(core::conj(a)), std::conj(wa));
    EXPECT_LT(std::abs(wide(a * b) - wa * wb), 1e-15);
    EXPECT_LT(std::abs(wide(core::minus_product(c, a, b)) - (wc - wa * wb)), 1e-15);
    EXPECT_LT(std::abs(wide(a / b) * wb - wa), 1e-15 + 1e-15 * std::abs(wa));
  }
}

TEST(Complex, AQuotientNearTheEndsOfTheRangeIsFinite) {
  using C = core::Complex<double>;
  const double huge = 1e300, tiny = 1e-300;
  EXPECT_EQ(wide(C(huge, huge) / C(huge, huge)), Wide(1));
  EXPECT_EQ(wide(C(tiny, tiny) / C(tiny, tiny)), Wide(1));
  EXPECT_EQ(wide(C(0, huge) / C(0, huge)), Wide(1));
  EXPECT_LT(std::abs(wide(C(huge, 0) / C(0, huge)) - Wide(0, -1)), 1e-15);
}

TEST(Scalar, OnlyPositiveFinitePivotsAreGood) {
  using limits = std::numeric_limits<double>;
  for (const double good : {1.0, limits::denorm_min(), limits::min(), limits::max()})
    EXPECT_TRUE(core::good_pivot(good)) << good;
  for (const double bad :
       {0.0, -0.0, -1.0, -limits::denorm_min(), limits::infinity(), -limits::infinity(), limits::quiet_NaN()})
    EXPECT_FALSE(core::good_pivot(bad)) << bad;
}

}  // namespace
}  // namespace trifactor::tile_test
