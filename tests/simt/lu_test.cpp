// LU of batches, and what LU of one matrix does beside its panels.
#include "support.hpp"

#include <cuda/batched/lu_registers.cuh>
#undef TRIFACTOR_INSTANTIATE_KERNELS
#include <cuda/batched/lu_shared.cuh>
#undef TRIFACTOR_INSTANTIATE_KERNELS
#include <cuda/single/lu_beside.cuh>
#undef TRIFACTOR_INSTANTIATE_KERNELS
#include <cuda/single/lu_tall.cuh>
#undef TRIFACTOR_INSTANTIATE_KERNELS

namespace trifactor::simt {
namespace {

template <class T>
class LuKernels : public testing::Test {
 protected:
  static constexpr int frame = 3;  // entries around a matrix, which nobody may touch
  std::mt19937_64 random{20261121};

  std::vector<T> random_entries(int count) {
    std::vector<T> entries(std::size_t(count), T(0));
    for (T& x : entries) x = random_number<T>(random);
    return entries;
  }
  /// The largest difference, over the largest entry.
  static double distance(const std::vector<T>& a, const std::vector<T>& b) {
    Largest entry, difference;
    for (std::size_t i = 0; i < a.size(); ++i) entry.add(modulus(b[i])), difference.add(modulus(a[i] - b[i]));
    return difference.value / entry.value;
  }

  /// The textbook's loop. Returns 0 or the first k + 1 whose pivot is zero.
  static int factor(T* A, int m, int n, int ld, int* pivots, int first) {
    int zero_at = 0;
    for (int k = 0; k < min(m, n); ++k) {
      int p = k;
      for (int i = k + 1; i < m; ++i)
        if (abs1(A[i + k * ld]) > abs1(A[p + k * ld])) p = i;
      pivots[k] = first + p + 1;
      for (int j = 0; j < n; ++j) std::swap(A[k + j * ld], A[p + j * ld]);
      const T d = A[k + k * ld];
      if (d == T(0) && zero_at == 0) zero_at = k + 1;
      for (int i = k + 1; i < m && !(d == T(0)); ++i) {
        A[i + k * ld] = A[i + k * ld] / d;
        for (int j = k + 1; j < n; ++j) A[i + j * ld] = A[i + j * ld] - A[i + k * ld] * A[k + j * ld];
      }
    }
    return zero_at;
  }

  /// Items of one size, of which one is zero and one has impossible sizes if they are ragged.
  template <class Launch>
  void check_batch(int m, int n, int count, bool ragged, const Launch& launch) {
    SCOPED_TRACE(testing::Message() << m << " x " << n << (ragged ? " ragged" : "") << ", seed " << schedule().seed);
    const int ld = m + frame, size = ld * (n + 1), steps = min(m, n), first = 2;
    std::vector<T> entries = random_entries(size * count);
    for (int i = 0; i < size; ++i) entries[std::size_t(i)] = T(0);
    std::vector<T> expected = entries;
    std::vector<T*> pointers;
    std::vector<int> rows, cols, lds, pivots(std::size_t(steps * count), -1), info(std::size_t(count), 7);
    std::vector<int> expected_pivots = pivots, expected_info = info;
    for (int b = 0; b < count; ++b) {
      pointers.push_back(entries.data() + b * size);
      const bool impossible = ragged && b == 2;
      rows.push_back(!ragged ? m : impossible ? m + 1 : int(random() % unsigned(m + 1)));
      cols.push_back(ragged ? int(random() % unsigned(n + 1)) : n);
      lds.push_back(ld);
      auto& info_b = expected_info[std::size_t(b)] = impossible ? -1 : 0;
      if (impossible) continue;
      const int zero_at =
          factor(expected.data() + b * size, rows.back(), cols.back(), ld, expected_pivots.data() + b * steps, first);
      if (zero_at != 0) info_b = first + zero_at;
    }
    Items<T> items = items_of(entries.data(), m, n, ld, count, size);
    Pivots<int> all_pivots{.data = pivots.data(), .stride = steps, .first = first};
    if (ragged) {
      items.base = nullptr, items.pointers = pointers.data();
      items.item_rows = rows.data(), items.item_cols = cols.data(), items.item_ld = lds.data();
      all_pivots.item_rows = rows.data(), all_pivots.item_cols = cols.data();
    }
    launch(items, all_pivots, info.data());
    EXPECT_EQ(info, expected_info);
    EXPECT_EQ(pivots, expected_pivots);
    EXPECT_LT(distance(entries, expected), tolerance<T>);
    ++schedule().seed;
  }
  template <int width, int step>
  void check_group() {
    const auto launch = [&](const Items<T>& A, const Pivots<int>& pivots, int* info) {
      cuda::launch(nullptr, cuda::lu_group_kernel<T, width, step>, 2, cuda::lu_group_threads, 0, A, pivots, info, true);
    };
    for (bool ragged : {false, true}) check_batch(width, width - 1, 9, ragged, launch);
  }
};
TYPED_TEST_SUITE(LuKernels, Scalars, ScalarNames);

TYPED_TEST(LuKernels, GroupsOfLanes) {
  this->template check_group<8, 8>();
  this->template check_group<12, 12>();
  this->template check_group<32, 8>();
}
TYPED_TEST(LuKernels, LanesWithAColumnEach) {
  using T = TypeParam;
  const auto launch = [&](const Items<T>& A, const Pivots<int>& pivots, int* info) {
    cuda::launch(nullptr, cuda::lu_lanes_kernel<T, 4>, 2, cuda::lu_lanes_threads, 0, A, pivots, info, true);
  };
  for (bool ragged : {false, true})
    for (int n = 1; n <= 4; ++n) this->check_batch(4, n, 40, ragged, launch), this->check_batch(n, 4, 9, ragged, launch);
}
TYPED_TEST(LuKernels, BlockWithARowToAThread) {
  using T = TypeParam;
  const auto launch = [&](const Items<T>& A, const Pivots<int>& pivots, int* info) {
    cuda::launch(nullptr, cuda::lu_block_kernel<T, 16, 8, 128>, 2, 96, 0, A, pivots, info, true);
  };
  this->check_batch(96, 16, 4, false, launch);
  this->check_batch(90, 13, 4, true, launch);
}
TYPED_TEST(LuKernels, InSharedMemory) {
  if (sanitized) GTEST_SKIP() << "lanes whose rows change places twice write the same entry to the same place";
  using T = TypeParam;
  const auto launch = [&](const Items<T>& A, const Pivots<int>& pivots, int* info) {
    cuda::launch_lu_resident<T>(nullptr, A, pivots, info, true);
  };
  this->check_batch(40, 40, 3, false, launch);
  this->check_batch(70, 45, 3, true, launch);
  this->check_batch(45, 70, 3, false, launch);
}

TYPED_TEST(LuKernels, TallPanel) {
  using T = TypeParam;
  const int m = in_short ? 300 : 700, n = 6, left = 3, ld = m + 3, first = 4;
  std::vector<T> entries = this->random_entries(ld * (left + n));
  std::vector<T> expected = entries;
  std::vector<int> pivots(std::size_t(n), -1), expected_pivots = pivots;
  int info = 0;
  std::vector<int> flags(std::size_t(4 + 4 * cuda::lu_tall_blocks), 0);
  const Items<T> A = items_of(entries.data() + left * ld, m, n, ld);
  cuda::launch_lu_tall<T>(nullptr, A, left, {.data = pivots.data(), .first = first}, flags.data(), &info);
  this->factor(expected.data() + left * ld, m, n, ld, expected_pivots.data(), first);
  for (int k = 0; k < n; ++k)
    for (int j = 0; j < left; ++j)
      std::swap(expected[std::size_t(k + j * ld)],
                expected[std::size_t(expected_pivots[std::size_t(k)] - 1 - first + j * ld)]);
  EXPECT_EQ(pivots, expected_pivots);
  EXPECT_EQ(info, 0);
  EXPECT_LT(this->distance(entries, expected), tolerance<T>);
  EXPECT_EQ(flags, std::vector<int>(flags.size(), 0));
}

/// The columns beside a panel: interchanges, solve and product, by one launch or two.
TYPED_TEST(LuKernels, BesideAPanel) {
  using T = TypeParam;
  for (int steps : {32, 20, 1})
    for (int m : {40, 150, 300}) {
      if (in_short && (m != 150 || steps == 1)) continue;
      const int columns = steps == 20 ? 70 : 30, ld = m + 1, first = 3;
      SCOPED_TRACE(testing::Message() << steps << " columns of L, " << m << " rows, seed " << schedule().seed);
      std::vector<T> L = this->random_entries(ld * steps), A = this->random_entries(ld * columns);
      std::vector<int> pivots(std::size_t(steps), -1), flags(std::size_t(ceil_div(columns, 32)), 0);
      int info = 0;
      this->factor(L.data(), m, steps, ld, pivots.data(), first);
      std::vector<T> expected = A;
      const auto at = [&](std::vector<T>& x, int i, int j) -> T& { return x[std::size_t(i + j * ld)]; };
      for (int j = 0; j < columns; ++j)
        for (int k = 0; k < steps; ++k) {
          std::swap(at(expected, k, j), at(expected, pivots[std::size_t(k)] - 1 - first, j));
        }
      std::vector<T> solved = expected;
      for (int j = 0; j < columns; ++j)
        for (int k = 0; k < steps; ++k)
          for (int i = k + 1; i < m; ++i) {
            at(expected, i, j) -= at(L, i, k) * at(expected, k, j);
            if (i < steps) at(solved, i, j) -= at(L, i, k) * at(solved, k, j);
          }
      const Items<const T> panel{
          .base = L.data(), .ld = ld, .stored_rows = m, .stored_cols = steps, .count = 1, .rows = m, .cols = steps};
      const auto items = [&](std::vector<T>& x) { return items_of(x.data(), m, columns, ld); };
      const Pivots<const int> swaps{.data = pivots.data(), .first = first};
      std::vector<T> by_update = A, by_rows = A;
      cuda::launch_lu_update<T>(nullptr, panel, swaps, items(by_update), flags.data(), &info);
      EXPECT_LT(this->distance(by_update, expected), tolerance<T>);
      EXPECT_EQ(flags, std::vector<int>(flags.size(), 0));
      cuda::launch_lu_rows_of_one<T>(nullptr, panel.block(0, 0, steps, steps), swaps, items(by_rows), &info);
      EXPECT_LT(this->distance(by_rows, solved), tolerance<T>);
      ++schedule().seed;
    }
}

}  // namespace
}  // namespace trifactor::simt
