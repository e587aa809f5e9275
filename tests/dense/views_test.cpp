// Batches by name, a Matrix or a Buffer where a view is expected, and the way to a queue's memory and back.
#include <support/factored.hpp>
#include <support/ratios.hpp>
#include <trifactor/trifactor.hpp>

#include <limits>

namespace trifactor::test {
namespace {

template <class T>
HostMatrix<T> from_values(const std::vector<T>& values, index_t rows, index_t cols) {
  HostMatrix<T> B(rows, cols);
  for (index_t j = 0; j < cols; ++j)
    for (index_t i = 0; i < rows; ++i) B(i, j) = values[std::size_t(i + j * rows)];
  return B;
}

template <class T>
class Views : public DeviceTest {
 protected:
  /// What a call throws says all of the parts.
  template <class F>
  void expect_mistake(F&& call, std::initializer_list<const char*> parts) {
    try {
      call();
      ADD_FAILURE() << "no exception, but one with " << *parts.begin();
    } catch (const InvalidArgument& e) {
      for (const char* part : parts) EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
    }
  }
};
TYPED_TEST_SUITE(Views, Scalars, ScalarNames);

TYPED_TEST(Views, StridedBatchesAreMadeByName) {
  using T = TypeParam;
  Buffer<T> data(this->q, 100);
  const StridedBatch<T> plain = strided(data, 4, 3, {.count = 8});
  EXPECT_EQ(plain.data, data.data());
  EXPECT_EQ(plain.rows, 4);
  EXPECT_EQ(plain.cols, 3);
  EXPECT_EQ(plain.ld, 4);
  EXPECT_EQ(plain.stride, 12);
  EXPECT_EQ(plain.count, 8);
  const StridedBatch<T> apart = strided(data.data() + 1, 4, 3, {.count = 5, .ld = 6, .stride = 19});
  EXPECT_EQ(apart.data, data.data() + 1);
  EXPECT_EQ(apart.ld, 6);
  EXPECT_EQ(apart.stride, 19);
  EXPECT_EQ(strided(data, 4, 3, {.count = 5, .ld = 6}).stride, 18);
  EXPECT_EQ(strided(data, 0, 3, {.count = 5}).ld, 1);

  const StridedBatch<const T> shared = strided(std::as_const(data), 10, 10, {.count = 1000, .stride = 0});
  EXPECT_EQ(shared.stride, 0);
  std::vector<T> values(12);
  EXPECT_EQ(strided(values, 2, 2, {.count = 3}).data, values.data());
  strided(data, 10, 10, {.count = 1});  // exactly as large
  strided(data, 4, 3, {.count = 8, .stride = 12});
  strided(static_cast<T*>(nullptr), 4, 0, {.count = 5});
}

TYPED_TEST(Views, StridedNamesWhatIsWrong) {
  using T = TypeParam;
  Buffer<T> data(this->q, 100);
  const auto made = [&](index_t rows, index_t cols, const StridedLayout& layout) {
    return [&data, rows, cols, layout] { strided(data, rows, cols, layout); };
  };
  this->expect_mistake(made(4, 3, {}), {"strided: count must be given"});
  this->expect_mistake(made(4, 3, {.count = -2}), {"strided: count = -2 must not be negative"});
  this->expect_mistake(made(-4, 3, {.count = 2}), {"strided: rows = -4 must not be negative"});
  this->expect_mistake(made(4, index_t(1) << 31, {.count = 2}),
                       {"strided: cols = 2147483648 must be at most 2147483647"});
  this->expect_mistake(made(4, 3, {.count = 2, .ld = 3}), {"strided: ld = 3 must be at least max(rows, 1) = 4"});
  this->expect_mistake(made(4, 3, {.count = 2, .stride = -1}), {"strided: stride = -1 must not be negative"});
  this->expect_mistake(made(4, 3, {.count = 2, .stride = 11}), {"stride = 11 must be at least", "12", "overlap"});
  this->expect_mistake(made(4, 3, {.count = 9}),
                       {"strided: data.size = 100 must hold count = 9 items of 12 entries, 12 apart"});
  this->expect_mistake(made(101, 1, {.count = 1}), {"data.size = 100 must hold count = 1"});
  this->expect_mistake(made(4, 3, {.count = std::numeric_limits<index_t>::max()}), {"data.size = 100 must hold"});
  this->expect_mistake([] { strided(static_cast<T*>(nullptr), 4, 3, {.count = 2}); }, {"strided: data is null"});
}

TYPED_TEST(Views, PointerAndRaggedBatchesAreMadeByName) {
  using T = TypeParam;
  Buffer<T*> items(this->q, 5);
  Buffer<int> rows(this->q, 5), cols(this->q, 6), ld(this->q, 5);
  const PointerBatch<T> P = pointers(items, 4, 3, {.count = 5});
  EXPECT_EQ(P.data, items.data());
  EXPECT_EQ(P.rows, 4);
  EXPECT_EQ(P.cols, 3);
  EXPECT_EQ(P.ld, 4);
  EXPECT_EQ(P.count, 5);
  EXPECT_EQ(pointers(items.data(), 4, 3, {.count = 500, .ld = 7}).ld, 7);
  const PointerBatch<const T> read = pointers(Buffer<const T*>(this->q, 2), 4, 3, {.count = 2});
  EXPECT_EQ(read.count, 2);

  const RaggedBatch<T> R = ragged(items, rows, cols, {.count = 5, .max_rows = 40, .max_cols = 30});
  EXPECT_EQ(R.data, items.data());
  EXPECT_EQ(R.rows, rows.data());
  EXPECT_EQ(R.cols, cols.data());
  EXPECT_EQ(R.ld, rows.data());
  EXPECT_EQ(R.count, 5);
  EXPECT_EQ(R.max_rows, 40);
  EXPECT_EQ(R.max_cols, 30);
  EXPECT_EQ(ragged(items, rows, cols, {.count = 5, .max_rows = 40, .max_cols = 30, .ld = ld}).ld, ld.data());
  const RaggedBatch<T> S = ragged(items, rows.data(), {.count = 4, .max_order = 40});
  EXPECT_EQ(S.rows, rows.data());
  EXPECT_EQ(S.cols, rows.data());
  EXPECT_EQ(S.ld, rows.data());
  EXPECT_EQ(S.max_rows, 40);
  EXPECT_EQ(S.max_cols, 40);
  EXPECT_EQ(ragged(items, rows, {.count = 5, .max_order = 40, .ld = ld}).ld, ld.data());
}

TYPED_TEST(Views, PointersAndRaggedNameWhatIsWrong) {
  using T = TypeParam;
  Buffer<T*> items(this->q, 5);
  Buffer<int> five(this->q, 5), three(this->q, 3);
  this->expect_mistake([&] { pointers(items, 4, 3, {}); }, {"pointers: count must be given"});
  this->expect_mistake([&] { pointers(items, 4, 3, {.count = 6}); },
                       {"pointers: items.size = 5 must be at least count = 6"});
  this->expect_mistake([&] { pointers(items, 4, 3, {.count = 5, .ld = 3}); }, {"pointers: ld = 3", "max(rows, 1) = 4"});
  this->expect_mistake([&] { pointers(static_cast<T**>(nullptr), 4, 3, {.count = 5}); }, {"pointers: items is null"});

  this->expect_mistake([&] { ragged(items, five, {.count = 5}); }, {"ragged: max_order must be given"});
  this->expect_mistake([&] { ragged(items, five, {.max_order = 5}); }, {"ragged: count must be given"});
  this->expect_mistake([&] { ragged(items, five, {.count = -1, .max_order = 5}); },
                       {"count = -1 must not be negative"});
  this->expect_mistake([&] { ragged(items, five, {.count = 5, .max_order = -5}); },
                       {"ragged: max_order = -5 must not be negative"});
  this->expect_mistake([&] { ragged(items, three, {.count = 5, .max_order = 5}); },
                       {"ragged: order.size = 3 must be at least count = 5"});
  this->expect_mistake([&] { ragged(items, nullptr, {.count = 5, .max_order = 5}); }, {"ragged: order is null"});
  this->expect_mistake([&] { ragged(items, five, {.count = 5, .max_order = 5, .ld = three}); },
                       {"ld.size = 3", "count = 5"});
  this->expect_mistake([&] { ragged(items, five, three, {.count = 5, .max_rows = 5, .max_cols = 5}); },
                       {"cols.size = 3", "count = 5"});
  this->expect_mistake([&] { ragged(items, five, five, {.count = 5, .max_rows = 5}); },
                       {"ragged: max_cols must be given"});
  this->expect_mistake([&] { ragged(items, five, five, {.count = 6, .max_rows = 5, .max_cols = 5}); },
                       {"items.size = 5", "count = 6"});
}

TYPED_TEST(Views, ToAQueueAndBack) {
  using T = TypeParam;
  const auto A = random_matrix<T>(this->random, 7, 5, 3);
  const Matrix<T> there(this->q, A.view());  // A's ld is larger
  EXPECT_EQ(there.on_host(), !on_cuda());
  const Matrix<T> back = there.to_host();
  EXPECT_TRUE(back.on_host());
  EXPECT_NE(back.data(), there.data());
  ASSERT_EQ(back.rows(), 7);
  ASSERT_EQ(back.cols(), 5);
  for (index_t j = 0; j < 5; ++j)
    for (index_t i = 0; i < 7; ++i) ASSERT_EQ(back(i, j), A(i, j));

  const std::vector<T> values = {T(1), T(2), T(3)};
  Buffer<T> buffer(this->q, values);
  EXPECT_EQ(buffer.to_host(), values);
  Buffer<T> twin(this->q, 3);
  copy(this->q, buffer, this->q, twin);
  buffer.fill_zero();  // enqueued
  EXPECT_EQ(buffer.to_host(), std::vector<T>(3));
  EXPECT_EQ(twin.to_host(), values);
  Matrix<T> column(this->q, 3, 1);
  copy(this->q, twin, this->q, column);
  EXPECT_EQ(column.to_host()(2, 0), T(3));

  EXPECT_TRUE(Buffer<T>(this->q, 0).to_host().empty());
  EXPECT_TRUE(Buffer<T>().to_host().empty());
  EXPECT_TRUE(Buffer<T>(this->q, std::vector<T>()).to_host().empty());
  EXPECT_EQ(Matrix<T>(this->q, 0, 4).to_host().cols(), 4);
  EXPECT_EQ(Matrix<T>(this->q, Matrix<T>(4, 0)).rows(), 4);
  Buffer<T> longer(this->q, 4);
  this->expect_mistake([&] { copy(this->q, buffer, this->q, longer); }, {"copy: source.size = 3", "target.size = 4"});
  this->expect_mistake([&] { Matrix<T>(this->q, MatrixView<T>{nullptr, 2, 2, 2}); }, {"source is null"});
  this->expect_mistake([&] { Matrix<T>(this->q, MatrixView<const T>{values.data(), 2, 1, 1}); }, {"A.ld = 1"});
}

TYPED_TEST(Views, CholeskyTakesMatricesAndBuffers) {
  using T = TypeParam;
  const index_t n = 20;
  const auto A = random_spd<T>(this->random, n);
  const auto B = random_matrix<T>(this->random, n, 3);
  const auto b = leading(B, n, 1);
  Queue& q = this->q;
  for (Uplo uplo : both_uplos) {
    Matrix<T> F(q, A.view()), X(q, B.view()), inverse(q, n, n);
    Buffer<T> x(q, std::span<const T>(b.data(), std::size_t(n)));
    Buffer<int> info(q, 1);
    Buffer<real_t<T>> log_det(q, 1);
    q.reserve(std::max({cholesky_scratch(q, uplo, F), cholesky_solve_scratch(q, uplo, F, X),
                        cholesky_factor_solve_scratch(q, uplo, F, X), cholesky_inverse_scratch(q, uplo, F, inverse)}));
    cholesky(q, uplo, F, info);
    const Matrix<T>& factor = F;
    cholesky_solve(q, uplo, factor, X, info);
    cholesky_solve(q, uplo, F, x);
    cholesky_log_det(q, uplo, factor, log_det, info);
    cholesky_inverse(q, uplo, factor, inverse, info);
    EXPECT_EQ(info.to_host(), std::vector<int>{0});
    EXPECT_LT(cholesky_ratio(A, as_host_matrix(F.to_host()), uplo), threshold);
    EXPECT_LT(solve_ratio(Op::None, A, as_host_matrix(X.to_host()), B), threshold);
    EXPECT_LT(solve_ratio(Op::None, A, from_values(x.to_host(), n, 1), b), threshold);
    EXPECT_LT(inverse_ratio(A, as_host_matrix(inverse.to_host())), threshold);
    EXPECT_TRUE(std::isfinite(log_det.to_host()[0]));

    Matrix<T> again(q, A.view());
    Buffer<T> y(q, std::span<const T>(b.data(), std::size_t(n)));
    Buffer<double> used(q, 1);
    cholesky_factor_solve(q, uplo, again, y, info, {.shift_tries = 1, .shift_used = used});
    EXPECT_EQ(used.to_host(), std::vector<double>{0});
    EXPECT_LT(solve_ratio(Op::None, A, from_values(y.to_host(), n, 1), b), threshold);
  }
}

TYPED_TEST(Views, LuTakesMatricesAndBuffers) {
  using T = TypeParam;
  const index_t n = 20;
  const auto A = random_matrix<T>(this->random, n, n);
  const auto B = random_matrix<T>(this->random, n, 3);
  const auto b = leading(B, n, 1);
  Queue& q = this->q;
  Matrix<T> F(q, A.view()), X(q, B.view()), inverse(q, n, n);
  Buffer<T> x(q, std::span<const T>(b.data(), std::size_t(n))), sign(q, 1);
  Buffer<int> info(q, 1), pivots(q, n), rows(q, n);
  Buffer<real_t<T>> log_abs(q, 1);
  q.reserve(std::max({lu_scratch(q, F), lu_solve_scratch(q, Op::None, F, X), lu_factor_solve_scratch(q, F, X),
                      lu_inverse_scratch(q, F, inverse)}));
  lu(q, F, pivots, info);
  const Matrix<T>& factors = F;
  lu_solve(q, Op::None, factors, pivots, X, info);
  lu_solve(q, Op::Transpose, F, std::as_const(pivots), x);
  lu_inverse(q, factors, pivots, inverse, info);
  lu_det(q, factors, pivots, sign, log_abs);
  lu_row_permutation(q, pivots, n, rows, n);
  EXPECT_EQ(info.to_host(), std::vector<int>{0});
  EXPECT_LT(solve_ratio(Op::None, A, as_host_matrix(X.to_host()), B), threshold);
  EXPECT_LT(solve_ratio(Op::Transpose, A, from_values(x.to_host(), n, 1), b), threshold);
  EXPECT_LT(inverse_ratio(A, as_host_matrix(inverse.to_host())), threshold);
  EXPECT_NEAR(std::abs(widen(sign.to_host()[0])), 1, 30 * double(n + 1) * eps<T>);
  auto sorted = rows.to_host();
  std::sort(sorted.begin(), sorted.end());
  for (int i = 0; i < n; ++i) EXPECT_EQ(sorted[std::size_t(i)], i);

  Matrix<T> again(q, A.view());
  Buffer<T> y(q, std::span<const T>(b.data(), std::size_t(n)));
  lu_factor_solve(q, again, pivots, y, info);
  EXPECT_LT(solve_ratio(Op::None, A, from_values(y.to_host(), n, 1), b), threshold);
}

TYPED_TEST(Views, NamedBatchesAreFactoredAndSolved) {
  using T = TypeParam;
  const index_t n = 6, count = 9;
  Queue& q = this->q;
  std::vector<T> matrices, sides;
  std::vector<HostMatrix<T>> A;
  for (index_t k = 0; k < count; ++k) {
    A.push_back(random_spd<T>(this->random, n));
    for (index_t j = 0; j < n; ++j)
      for (index_t i = 0; i < n; ++i) matrices.push_back(A.back()(i, j));
    for (index_t i = 0; i < n; ++i) sides.push_back(T(real_t<T>(i + k)));
  }
  const auto expect_solved = [&](const Buffer<T>& X, const Buffer<int>& info) {
    EXPECT_EQ(info.to_host(), std::vector<int>(count));
    const auto x = X.to_host();
    for (index_t k = 0; k < count; ++k) {
      const auto item = [&](const std::vector<T>& from) {
        return from_values(std::vector<T>(from.begin() + k * n, from.begin() + (k + 1) * n), n, 1);
      };
      EXPECT_LT(solve_ratio(Op::None, A[std::size_t(k)], item(x), item(sides)), threshold);
    }
  };
  Buffer<int> info(q, count), pivots(q, n * count);
  {
    Buffer<T> F(q, matrices), X(q, sides);
    cholesky(q, Uplo::Lower, strided(F, n, n, {.count = count}), info);
    cholesky_solve(q, Uplo::Lower, strided(std::as_const(F), n, n, {.count = count}),
                   strided(X, n, 1, {.count = count}));
    expect_solved(X, info);
  }
  {
    Buffer<T> F(q, matrices), X(q, sides);
    std::vector<T*> at_F, at_X;
    for (index_t k = 0; k < count; ++k) at_F.push_back(F.data() + k * n * n), at_X.push_back(X.data() + k * n);
    Buffer<T*> to_F(q, at_F), to_X(q, at_X);
    lu_factor_solve(q, pointers(to_F, n, n, {.count = count}), pivots, pointers(to_X, n, 1, {.count = count}), info);
    expect_solved(X, info);
  }
  {
    Buffer<T> F(q, matrices), X(q, sides);
    std::vector<T*> at_F, at_X;
    for (index_t k = 0; k < count; ++k) at_F.push_back(F.data() + k * n * n), at_X.push_back(X.data() + k * n);
    Buffer<T*> to_F(q, at_F), to_X(q, at_X);
    Buffer<int> order(q, std::vector<int>(count, int(n))), one(q, std::vector<int>(count, 1));
    cholesky_factor_solve(q, Uplo::Upper, ragged(to_F, order, {.count = count, .max_order = n}),
                          ragged(to_X, order, one, {.count = count, .max_rows = n, .max_cols = 1}), info);
    expect_solved(X, info);
  }
}

TYPED_TEST(Views, ArraysThatAreTooSmallAreNamed) {
  using T = TypeParam;
  Queue& q = this->q;
  Buffer<T> data(q, 3 * 16), sides(q, 3 * 4), sign(q, 2);
  data.fill_zero(), sides.fill_zero();
  Buffer<int> two(q, 2), three(q, 3), eleven(q, 11), twelve(q, 12);
  Buffer<double> used(q, 2);
  Buffer<real_t<T>> real(q, 2);
  const auto A = strided(data, 4, 4, {.count = 3});
  const auto X = strided(sides, 4, 1, {.count = 3});
  this->expect_mistake([&] { cholesky(q, Uplo::Lower, A, two); },
                       {"cholesky: info.size = 2 must be at least the count of items = 3"});
  this->expect_mistake([&] { cholesky(q, Uplo::Lower, A, three, {.shift_tries = 1, .shift_used = used}); },
                       {"cholesky: shift_used.size = 2", "3"});
  this->expect_mistake([&] { cholesky_factor_solve(q, Uplo::Lower, A, X, two); }, {"info.size = 2", "3"});
  this->expect_mistake([&] { cholesky_solve(q, Uplo::Lower, A, X, two); }, {"cholesky_solve: info.size = 2", "3"});
  this->expect_mistake([&] { cholesky_inverse(q, Uplo::Lower, A, A, two); }, {"cholesky_inverse: info.size = 2", "3"});
  this->expect_mistake([&] { cholesky_log_det(q, Uplo::Lower, A, real); }, {"log_det.size = 2", "3"});
  this->expect_mistake([&] { lu(q, A, eleven, three); },
                       {"lu: pivots.size = 11 must be at least count * min(rows, cols) = 12"});
  this->expect_mistake([&] { lu(q, A, twelve, two); }, {"lu: info.size = 2", "3"});
  this->expect_mistake([&] { lu_factor_solve(q, A, eleven, X, three); }, {"lu_factor_solve: pivots.size = 11", "12"});
  this->expect_mistake([&] { lu_solve(q, Op::None, A, eleven, X); }, {"lu_solve: pivots.size = 11", "12"});
  this->expect_mistake([&] { lu_solve(q, Op::None, A, twelve, X, two); }, {"lu_solve: info.size = 2", "3"});
  this->expect_mistake([&] { lu_inverse(q, A, eleven, A); }, {"lu_inverse: pivots.size = 11", "12"});
  this->expect_mistake([&] { lu_det(q, A, twelve, sign, real); }, {"lu_det: sign.size = 2", "3"});
  this->expect_mistake([&] { lu_row_permutation(q, two, 3, three, 3); }, {"pivots.size = 2 must be at least k = 3"});
  this->expect_mistake([&] { lu_row_permutation(q, two, 2, two, 3); }, {"p.size = 2 must be at least rows = 3"});
}

TYPED_TEST(Views, SparseCholeskyTakesMatricesAndBuffers) {
  using T = TypeParam;
  const std::vector<index_t> start = {0, 2, 3}, row = {0, 1, 1};  // 4 2; 2 3
  const auto plan = analyze(Pattern<index_t>{.rows = 2, .cols = 2, .start = start.data(), .index = row.data()});
  SparseCholesky<T> L(this->q, plan);
  const Buffer<T> values(this->q, std::vector<T>{T(4), T(2), T(3)});
  L.factor(values);
  Buffer<T> x(this->q, std::vector<T>{T(8), T(7)});
  Matrix<T> X(this->q, 2, 1);
  copy(this->q, x, this->q, X);
  L.solve(x);
  L.solve_refined(values, X);
  for (const T entry : {x.to_host()[0] - T(1.25), x.to_host()[1] - T(1.5), X.to_host()(0, 0) - T(1.25)})
    EXPECT_LT(std::abs(entry), 30 * eps<T>);
}

}  // namespace
}  // namespace trifactor::test
