// Calls on batches of every kind, from host items to host results.
#pragma once

#include <support/factored.hpp>
#include <support/parallel.hpp>
#include <support/ratios.hpp>

namespace trifactor::test {

enum class Kind { Strided, Pointers, Ragged };
inline constexpr Kind all_kinds[] = {Kind::Strided, Kind::Pointers, Kind::Ragged};
inline const char* name(Kind kind) {
  return kind == Kind::Strided ? "strided" : kind == Kind::Pointers ? "pointers" : "ragged";
}

template <class T>
using Items = std::vector<HostMatrix<T>>;

/// Entries of all items together.
template <class T>
index_t entries_of(const Items<T>& A) {
  index_t sum = 0;
  for (const auto& item : A) sum += item.rows * item.cols;
  return sum;
}

/// f(view), or f(view, view), with the views of this kind.
template <class Views, class F>
void as(Kind kind, const Views& batch, F f) {
  if (kind == Kind::Strided)
    f(batch.strided());
  else if (kind == Kind::Pointers)
    f(batch.pointers());
  else
    f(batch.ragged());
}
template <class Views, class F>
void as(Kind kind, const Views& a, const Views& b, F f) {
  if (kind == Kind::Strided)
    f(a.strided(), b.strided());
  else if (kind == Kind::Pointers)
    f(a.pointers(), b.pointers());
  else
    f(a.ragged(), b.ragged());
}

template <class T>
struct FactoredItems {
  Items<T> F;
  std::vector<int> info;
  std::string path;
};

/// Factors one triangle of every item, the other full of canaries.
template <class T>
FactoredItems<T> factor_cholesky(Queue& q, Kind kind, Uplo uplo, const Items<T>& A,
                                 const CholeskyOptions& options = {}) {
  Items<T> given(A.size());
  in_parallel(A.size(), entries_of(A), [&](std::size_t i) { given[i] = only_triangle(A[i], uplo); });
  DeviceBatch<T> batch(q, given);
  DeviceArray<int> info(q, index_t(A.size()) + 1, garbage);  // one more than is written
  as(kind, batch, [&](auto view) { cholesky(q, uplo, view, info.data(), options); });
  FactoredItems<T> result{{}, {}, testing::path_taken()};
  q.sync();
  result.F = batch.download();
  result.info = info.download();
  EXPECT_EQ(result.info.back(), garbage) << "wrote behind info";
  result.info.pop_back();
  const auto same = values_in_parallel(A.size(), entries_of(A), [&](std::size_t i) {
    return same_outside_triangle(given[i], result.F[i], uplo) ? 1.0 : 0.0;
  });
  for (std::size_t i = 0; i < A.size(); ++i)
    if (same[i] == 0) ADD_FAILURE() << "wrote outside the triangle of item " << i;
  return result;
}

template <class T>
Items<T> solve_cholesky(Queue& q, Kind kind, Uplo uplo, const FactoredItems<T>& A, const Items<T>& B,
                        const SolveOptions& options = {}) {
  DeviceBatch<T> L(q, A.F), X(q, B);
  DeviceArray<int> info(q, A.info);
  as(kind, L, X, [&](auto l, auto x) { cholesky_solve(q, uplo, l, x, info.data(), options); });
  q.sync();
  const auto result = X.download(), F = L.download();
  for (std::size_t i = 0; i < B.size(); ++i) {
    if (!same_frame(B[i], result[i])) ADD_FAILURE() << "wrote outside item " << i;
    if (!same_bits(F[i], A.F[i])) ADD_FAILURE() << "wrote to the factor of item " << i;
  }
  return result;
}

template <class T>
std::vector<real_t<T>> log_det(Queue& q, Kind kind, Uplo uplo, const FactoredItems<T>& A) {
  DeviceBatch<T> L(q, A.F);
  DeviceArray<int> info(q, A.info);
  DeviceArray<real_t<T>> result(q, index_t(A.F.size()), real_t<T>(garbage));
  as(kind, L, [&](auto view) { cholesky_log_det(q, uplo, view, result.data(), info.data()); });
  q.sync();
  return result.download();
}

template <class T>
struct LuItems {
  Items<T> F;
  std::vector<std::vector<int>> pivots;
  std::vector<int> info;
  std::string path;
};

/// The pivots of all items as the library stores them, with garbage where an item has none, and one more behind.
template <class T>
std::vector<int> joined_pivots(const LuItems<T>& lu) {
  index_t m = 0, n = 0;
  for (const auto& F : lu.F) m = std::max(m, F.rows), n = std::max(n, F.cols);
  std::vector<int> all(std::size_t(std::min(m, n)) * lu.F.size() + 1, garbage);
  for (std::size_t i = 0; i < lu.F.size(); ++i)
    std::copy(lu.pivots[i].begin(), lu.pivots[i].end(), all.begin() + index_t(i) * std::min(m, n));
  return all;
}
template <class T>
std::vector<std::vector<int>> split_pivots(const Items<T>& A, const std::vector<int>& all) {
  LuItems<T> expected{A, std::vector<std::vector<int>>(A.size()), {}, ""};
  const index_t stride = A.empty() ? 0 : index_t(all.size() - 1) / index_t(A.size());
  for (std::size_t i = 0; i < A.size(); ++i) {
    const auto first = all.begin() + index_t(i) * stride;
    expected.pivots[i].assign(first, first + std::min(A[i].rows, A[i].cols));
  }
  EXPECT_EQ(joined_pivots(expected), all) << "wrote where an item has no pivots";
  return expected.pivots;
}

template <class T>
LuItems<T> factor_lu(Queue& q, Kind kind, const Items<T>& A, const LuOptions& options = {}) {
  DeviceBatch<T> batch(q, A);
  DeviceArray<int> info(q, index_t(A.size()) + 1, garbage);  // one more than is written
  DeviceArray<int> pivots(q, joined_pivots(LuItems<T>{A, std::vector<std::vector<int>>(A.size()), {}, ""}));
  as(kind, batch, [&](auto view) { lu(q, view, pivots.data(), info.data(), options); });
  LuItems<T> result{{}, {}, {}, testing::path_taken()};
  q.sync();
  result.F = batch.download(), result.info = info.download();
  EXPECT_EQ(result.info.back(), garbage) << "wrote behind info";
  result.info.pop_back();
  result.pivots = split_pivots(A, pivots.download());
  for (std::size_t i = 0; i < A.size(); ++i)
    if (!same_frame(A[i], result.F[i])) ADD_FAILURE() << "wrote outside item " << i;
  return result;
}

template <class T>
Items<T> solve_lu(Queue& q, Kind kind, Op op, const LuItems<T>& A, const Items<T>& B,
                  const SolveOptions& options = {}) {
  DeviceBatch<T> LU(q, A.F), X(q, B);
  DeviceArray<int> info(q, A.info), pivots(q, joined_pivots(A));
  as(kind, LU, X, [&](auto lu, auto x) { lu_solve(q, op, lu, pivots.data(), x, info.data(), options); });
  q.sync();
  const auto result = X.download(), F = LU.download();
  for (std::size_t i = 0; i < B.size(); ++i) {
    if (!same_frame(B[i], result[i])) ADD_FAILURE() << "wrote outside item " << i;
    if (!same_bits(F[i], A.F[i])) ADD_FAILURE() << "wrote to the factors of item " << i;
  }
  return result;
}

/// Every item's ratio is below the threshold, its info is 0 and its pivots are the largest of their columns.
template <class T>
void expect_right(const Items<T>& A, const LuItems<T>& result) {
  // Pivots are the largest in |re| + |im|, which is at most sqrt(2) times the modulus.
  const double bound = (ComplexScalar<T> ? std::sqrt(2.0) : 1.0) + 30 * eps<T>;
  ASSERT_EQ(result.info.size(), A.size());
  for (std::size_t b = 0; b < A.size(); ++b) {
    const auto& F = result.F[b];
    SCOPED_TRACE(::testing::Message() << "item " << b << ": " << F.rows << " x " << F.cols);
    ASSERT_EQ(result.info[b], 0);
    for (index_t k = 0; k < index_t(result.pivots[b].size()); ++k)
      ASSERT_TRUE(result.pivots[b][k] > k && result.pivots[b][k] <= F.rows) << "pivot " << result.pivots[b][k];
    ASSERT_LT(lu_ratio(A[b], F, result.pivots[b]), threshold);
    for (index_t j = 0; j < std::min(F.rows, F.cols); ++j)
      for (index_t i = j + 1; i < F.rows; ++i) ASSERT_LE(double(std::abs(F(i, j))), bound) << i << ',' << j;
  }
}

/// 2 sum log of the factor's diagonal.
template <class T>
double log_det_of(const HostMatrix<T>& F) {
  double sum = 0;
  for (index_t j = 0; j < F.cols; ++j) sum += 2 * std::log(double(real(F(j, j))));
  return sum;
}

/// Every item's ratio is below the threshold and its info is 0.
template <class T>
void expect_right(Uplo uplo, const Items<T>& A, const FactoredItems<T>& result) {
  ASSERT_EQ(result.info.size(), A.size());
  const auto ratios = values_in_parallel(A.size(), entries_of(A),
                                         [&](std::size_t i) { return cholesky_ratio(A[i], result.F[i], uplo); });
  for (std::size_t i = 0; i < A.size(); ++i) {
    ASSERT_EQ(result.info[i], 0) << "item " << i << " n=" << A[i].rows;
    ASSERT_LT(ratios[i], threshold) << "item " << i << " n=" << A[i].rows;
  }
}
template <class T>
void expect_solved(const Items<T>& A, const Items<T>& X, const Items<T>& B) {
  const auto ratios = values_in_parallel(A.size(), entries_of(A),
                                         [&](std::size_t i) { return solve_ratio(Op::None, A[i], X[i], B[i]); });
  for (std::size_t i = 0; i < A.size(); ++i)
    ASSERT_LT(ratios[i], threshold) << "item " << i << " n=" << A[i].rows << " rhs=" << X[i].cols;
}

/// X holds the inverses of A in the frames of what was there before, `start`; item `skipped` is as it was.
template <class T>
void expect_inverted(const Items<T>& A, const Items<T>& start, const Items<T>& X, std::size_t skipped) {
  for (std::size_t i = 0; i < A.size(); ++i) {
    EXPECT_TRUE(same_frame(start[i], X[i])) << "item " << i;
    if (i == skipped)
      EXPECT_TRUE(same_bits(start[i], X[i]));
    else
      EXPECT_LT(inverse_ratio(A[i], X[i]), threshold) << "item " << i;
  }
}

#define TRIFACTOR_TEST_INSTANCES(T)                                                                                   \
  TRIFACTOR_TEST_CALLS FactoredItems<T> factor_cholesky(Queue&, Kind, Uplo, const Items<T>&, const CholeskyOptions&); \
  TRIFACTOR_TEST_CALLS Items<T> solve_cholesky(Queue&, Kind, Uplo, const FactoredItems<T>&, const Items<T>&,          \
                                               const SolveOptions&);                                                  \
  TRIFACTOR_TEST_CALLS std::vector<real_t<T>> log_det(Queue&, Kind, Uplo, const FactoredItems<T>&);                   \
  TRIFACTOR_TEST_CALLS LuItems<T> factor_lu(Queue&, Kind, const Items<T>&, const LuOptions&);                         \
  TRIFACTOR_TEST_CALLS Items<T> solve_lu(Queue&, Kind, Op, const LuItems<T>&, const Items<T>&, const SolveOptions&);  \
  TRIFACTOR_TEST_CALLS void expect_right(const Items<T>&, const LuItems<T>&);                                         \
  TRIFACTOR_TEST_CALLS void expect_right(Uplo, const Items<T>&, const FactoredItems<T>&);                             \
  TRIFACTOR_TEST_CALLS void expect_solved(const Items<T>&, const Items<T>&, const Items<T>&);                         \
  TRIFACTOR_TEST_CALLS void expect_inverted(const Items<T>&, const Items<T>&, const Items<T>&, std::size_t);
TRIFACTOR_TEST_EACH_SCALAR(TRIFACTOR_TEST_INSTANCES)
#undef TRIFACTOR_TEST_INSTANCES

}  // namespace trifactor::test
