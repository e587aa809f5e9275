// Cholesky of batches: the kernels for items of one size, and for ragged ones.
#include "support.hpp"

#include <core/tuning.hpp>
#include <cuda/batched/cholesky_select.cuh>

#include <algorithm>
#include <cstring>

namespace trifactor::simt {
namespace {

template <class T>
class CholeskyBatch : public testing::Test {
 protected:
  using R = Real<T>;
  std::mt19937_64 random{20261124};

  /// Positive definite items, of which item 1 is not at its last minor. Ragged ones are of random sizes, item 2
  /// impossible.
  void check(int n, int count, bool flipped, bool ragged, const char* path, index_t resident = 512) {
    SCOPED_TRACE(testing::Message() << "order " << n << (flipped ? ", flipped" : "") << (ragged ? ", ragged" : "")
                                    << ", seed " << schedule().seed);
    const int ld = n + 1, size = ld * n;
    std::vector<T> A(std::size_t(size * count), T(-9)), L = A, before;
    std::vector<int> orders, lds(std::size_t(count), ld), info(std::size_t(count), 77), expected(std::size_t(count), 0);
    std::vector<T*> pointers;
    const auto at = [&](std::vector<T>& v, int b, int i, int j) -> T& {
      return v[std::size_t(b * size + (flipped ? j + i * ld : i + j * ld))];
    };
    for (int b = 0; b < count; ++b) {
      const int order = !ragged ? n : b == 2 ? n + 1 : b == 3 ? n : int(random() % unsigned(n + 1));
      orders.push_back(order);
      pointers.push_back(A.data() + b * size);
      for (int j = 0; j < min(order, n); ++j)
        for (int i = j; i < min(order, n); ++i) {
          const T x = random_number<T>(random);
          at(L, b, i, j) = i == j ? T(R(2) + real(x)) : T(R(1) / R(8)) * x;
        }
      for (int j = 0; j < min(order, n); ++j)
        for (int i = j; i < min(order, n); ++i) {
          T sum(0);
          for (int k = 0; k <= j; ++k) sum += at(L, b, i, k) * conj(at(L, b, j, k));
          at(A, b, i, j) = sum;
        }
      if (order > n) expected[std::size_t(b)] = -1;
      if (b == 1 && order > 0) at(A, b, order - 1, order - 1) = T(Limits<R>::nan), expected[1] = order;
    }
    before = A;
    Items<T> items = items_of(A.data(), n, n, ld, count, size);
    if (ragged) {
      items.base = nullptr, items.pointers = pointers.data();
      items.item_rows = items.item_cols = orders.data(), items.item_ld = lds.data();
    }
    if (flipped) items = items.flipped();
    CholeskyTuning tuning;
    tuning.resident = resident;
    EXPECT_STREQ(cuda::launch_one<T>(nullptr, items, info.data(), 0, true, tuning), path);
    EXPECT_EQ(info, expected);
    Largest worst;
    for (int b = 0; b < count; ++b)
      for (int j = 0; j < n; ++j)
        for (int i = 0; i < n; ++i) {
          const int order = orders[std::size_t(b)], right = expected[std::size_t(b)] > 0 ? order - 1 : order;
          if (i < j || j >= order || order > n) {
            EXPECT_EQ(modulus(at(A, b, i, j) - at(before, b, i, j)), 0) << "wrote outside the triangle";
          } else if (i < right) {
            worst.add(modulus(at(A, b, i, j) - at(L, b, i, j)));
          }
        }
    EXPECT_LT(worst.value, tolerance<T>);
    ++schedule().seed;
  }
};
TYPED_TEST_SUITE(CholeskyBatch, Scalars, ScalarNames);

TYPED_TEST(CholeskyBatch, Lanes) {
  for (int n : {3, 8, 13})
    for (bool flipped : {false, true}) this->check(n, 9, flipped, false, "lanes");
}
TYPED_TEST(CholeskyBatch, Warp) {
  for (int n : {20, 33, 64})
    for (bool flipped : {false, true}) {
      if (in_short && n == 33) continue;
      this->check(n, 3, flipped, false, "warp");
    }
}
TYPED_TEST(CholeskyBatch, Blocks) {
  const char* const wide = is_complex<TypeParam> ? "streamed" : "resident";
  // Orders of whole strips: lanes beyond the last row read it beside its owner, and do not use it.
  this->check(96, 1, false, false, "panels");
  if (!sanitized || !is_complex<TypeParam>) this->check(176, 2, true, false, wide);
  this->check(80, 1, true, false, "streamed", 0);
  if (sanitized) return;
  this->check(170, 2, false, false, wide);
  this->check(100, 2, true, false, "streamed", 0);
  this->check(130, 2, true, false, std::is_same_v<TypeParam, float> ? "resident" : "panels");
  this->check(100, 5, false, true, "panels");
}
TYPED_TEST(CholeskyBatch, Mixed) {
  for (int n : {30, 60}) {
    if (in_short && n == 30) continue;
    this->check(n, 36, n == 60, true, "mixed");
  }
}

/// The list of a ragged batch: by size, the largest items first, cut into slices.
TEST(ItemList, HasTheLargestItemsFirst) {
  std::mt19937_64 random(20261125);
  for (unsigned blocks : {1u, 3u, 32u}) {
    schedule().resident_blocks = blocks;
    const int count = 150;
    std::vector<int> rows, flags(cuda::ItemList::flag_count, 0), room(std::size_t(cuda::ItemList::ints(count)), -1);
    for (int b = 0; b < count; ++b) rows.push_back(int(random() % 700));
    Items<double> items{.item_rows = rows.data(),
                        .item_cols = rows.data(),
                        .stored_rows = 700,
                        .stored_cols = 700,
                        .count = count,
                        .rows = 700,
                        .cols = 700};
    cuda::ItemList list(room.data(), count, flags.data());
    const int least[cuda::ItemList::slices] = {513, 385, 257, 193, 145, 129, 113, 97, 65};
    std::copy_n(least, cuda::ItemList::slices, list.least);
    std::fill_n(list.above, cuda::ItemList::levels, std::numeric_limits<int>::max());
    std::fill_n(list.at_most, cuda::ItemList::levels, -1);
    cuda::launch(nullptr, cuda::list_items_kernel<double>, 2 * unsigned(ceil_div(count, 32)), 32, 0, items, list);
    EXPECT_EQ(flags, std::vector<int>(flags.size(), 0));
    const int all = int(std::count_if(rows.begin(), rows.end(), [](int n) { return n >= 65; }));
    EXPECT_EQ(list.bounds[cuda::ItemList::slices], all);
    std::vector<int> listed(list.order, list.order + all), sorted = listed;
    for (int k = 0; k + 1 < all; ++k)
      EXPECT_LE(cuda::ItemList::key(rows[std::size_t(listed[std::size_t(k)])]),
                cuda::ItemList::key(rows[std::size_t(listed[std::size_t(k + 1)])]));
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(std::unique(sorted.begin(), sorted.end()), sorted.end());
    for (int r = 1; r < cuda::ItemList::slices; ++r)
      for (int k = list.bounds[r]; k < list.bounds[r + 1]; ++k)
        EXPECT_GE(rows[std::size_t(list.order[k])], least[r]) << "slice " << r;
    ++schedule().seed;
  }
  schedule().resident_blocks = ~0u;
}

}  // namespace
}  // namespace trifactor::simt
