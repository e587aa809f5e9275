// Dense matrices through the C functions: every call, kind of view and scalar, and what is refused.
#include <c/support.hpp>

namespace trifactor::test::c {
namespace {

template <class T>
struct CDense : ::testing::Test {
  Handle<trifactor_queue> q = test_queue();
};
TYPED_TEST_SUITE(CDense, AllScalars, ScalarNames);

/// Items of orders n, or of n, n - 1, ... where they are ragged, with right-hand sides, as a batch of every kind.
template <class T>
struct Items {
  Items(const Handle<trifactor_queue>& q, trifactor_kind kind, index_t n, index_t count,
        T (*entry)(index_t, index_t, index_t), trifactor_op op = TRIFACTOR_NONE)
      : kind(kind), n(n), count(kind == TRIFACTOR_KIND_MATRIX ? 1 : count) {
    std::vector<T> all, sides;
    std::vector<int> orders, ones, lds;
    for (index_t b = 0; b < this->count; ++b) {
      const index_t order = order_of(b);
      matrices.push_back(filled<T>(order, entry));
      auto A = matrices.back(), x = right_side(A, order, op);
      A.resize(n * n), x.resize(n);
      all.insert(all.end(), A.begin(), A.end()), sides.insert(sides.end(), x.begin(), x.end());
      orders.push_back(int(order)), ones.push_back(1);
    }
    A = std::make_unique<Uploaded<T>>(q, all), X = std::make_unique<Uploaded<T>>(q, sides);
    Y = std::make_unique<Uploaded<T>>(q, all);
    sizes = std::make_unique<Uploaded<int>>(q, orders), one = std::make_unique<Uploaded<int>>(q, ones);
    info = std::make_unique<Uploaded<int>>(q, std::vector<int>(this->count, 77));
    pivots = std::make_unique<Uploaded<int>>(q, std::vector<int>(this->count * n, 0));
    real = std::make_unique<Uploaded<real_t<T>>>(q, std::vector<real_t<T>>(this->count));
    sign = std::make_unique<Uploaded<T>>(q, std::vector<T>(this->count));
    for (auto* array : {A.get(), X.get(), Y.get()}) {
      std::vector<T*> items;
      for (index_t b = 0; b < this->count; ++b) items.push_back(array->data() + b * (array == X.get() ? n : n * n));
      pointers.push_back(std::make_unique<Uploaded<T*>>(q, items));
    }
  }
  index_t order_of(index_t b) const { return kind == TRIFACTOR_KIND_RAGGED ? n - b % n : n; }

  trifactor_view view(const Uploaded<T>& array, int which, index_t cols) const {
    switch (kind) {
      case TRIFACTOR_KIND_MATRIX:
        return trifactor_matrix(scalar<T>, array.data(), n, cols, n);
      case TRIFACTOR_KIND_STRIDED:
        return trifactor_strided(scalar<T>, array.data(), n, cols, n, n * cols, count);
      case TRIFACTOR_KIND_POINTERS:
        return trifactor_pointers(scalar<T>, pointers[which]->data(), n, cols, n, count);
      default:
        return trifactor_ragged(scalar<T>, pointers[which]->data(), sizes->data(),
                                cols == 1 ? one->data() : sizes->data(), sizes->data(), n, cols, count);
    }
  }
  trifactor_view a() const { return view(*A, 0, n); }
  trifactor_view x() const { return view(*X, 1, 1); }
  trifactor_view inverse() const { return view(*Y, 2, n); }

  void expect_info(int value) const { EXPECT_EQ(info->download(), std::vector<int>(count, value)); }
  void expect_solutions() const {
    const auto found = X->download();
    for (index_t b = 0; b < count; ++b) expect_solution(found.data() + b * n, order_of(b));
  }
  void expect_inverses() const {
    const auto found = Y->download();
    for (index_t b = 0; b < count; ++b) expect_inverse(found.data() + b * n * n, matrices[b], order_of(b));
  }
  /// The logarithm of |det A| of item b, by elimination in double.
  double log_abs_det(index_t b) const {
    const index_t m = order_of(b);
    std::vector<Wide<T>> M;
    for (const T& a : matrices[b]) M.push_back(widen(a));
    double sum = 0;
    for (index_t k = 0; k < m; ++k) {
      index_t p = k;
      for (index_t i = k; i < m; ++i)
        if (std::abs(M[i + k * m]) > std::abs(M[p + k * m])) p = i;
      for (index_t j = 0; j < m; ++j) std::swap(M[k + j * m], M[p + j * m]);
      sum += std::log(std::abs(M[k + k * m]));
      for (index_t i = k + 1; i < m; ++i)
        for (index_t j = m - 1; j >= k; --j) M[i + j * m] -= M[i + k * m] / M[k + k * m] * M[k + j * m];
    }
    return sum;
  }
  void expect_log_dets() const {
    const auto found = real->download();
    for (index_t b = 0; b < count; ++b) EXPECT_NEAR(found[b], log_abs_det(b), 1e4 * eps<T>);
  }

  trifactor_kind kind;
  index_t n, count;
  std::vector<std::vector<T>> matrices;
  std::unique_ptr<Uploaded<T>> A, X, Y, sign;
  std::unique_ptr<Uploaded<real_t<T>>> real;
  std::unique_ptr<Uploaded<int>> sizes, one, info, pivots;
  std::vector<std::unique_ptr<Uploaded<T*>>> pointers;
};

constexpr trifactor_kind kinds[] = {TRIFACTOR_KIND_MATRIX, TRIFACTOR_KIND_STRIDED, TRIFACTOR_KIND_POINTERS,
                                    TRIFACTOR_KIND_RAGGED};

TYPED_TEST(CDense, CholeskyOfEveryKind) {
  auto* q = this->q.get();
  for (const trifactor_kind kind : kinds)
    for (const trifactor_uplo uplo : {TRIFACTOR_LOWER, TRIFACTOR_UPPER}) {
      SCOPED_TRACE("kind " + std::to_string(kind) + " uplo " + std::to_string(uplo));
      Items<TypeParam> items(this->q, kind, 9, 5, spd_entry<TypeParam>);
      size_t bytes[4] = {1, 1, 1, 1};
      EXPECT_OK(trifactor_cholesky_scratch(q, uplo, items.a(), nullptr, &bytes[0]));
      EXPECT_OK(trifactor_cholesky_solve_scratch(q, uplo, items.a(), items.x(), nullptr, &bytes[1]));
      EXPECT_OK(trifactor_cholesky_inverse_scratch(q, uplo, items.a(), items.inverse(), nullptr, &bytes[2]));
      EXPECT_OK(trifactor_cholesky_factor_solve_scratch(q, uplo, items.a(), items.x(), nullptr, &bytes[3]));
      EXPECT_OK(trifactor_queue_reserve(q, std::max({bytes[0], bytes[1], bytes[2], bytes[3]})));
      EXPECT_OK(trifactor_cholesky(q, uplo, items.a(), items.info->data(), nullptr));
      items.expect_info(0);
      EXPECT_OK(trifactor_cholesky_solve(q, uplo, items.a(), items.x(), items.info->data(), nullptr));
      EXPECT_OK(trifactor_cholesky_log_det(q, uplo, items.a(), items.real->data(), items.info->data()));
      EXPECT_OK(trifactor_cholesky_inverse(q, uplo, items.a(), items.inverse(), nullptr, nullptr));
      EXPECT_OK(trifactor_queue_sync(q));
      items.expect_solutions(), items.expect_log_dets(), items.expect_inverses();

      Items<TypeParam> fused(this->q, kind, 6, 5, spd_entry<TypeParam>);
      EXPECT_OK(trifactor_cholesky_factor_solve(q, uplo, fused.a(), fused.x(), fused.info->data(), nullptr));
      fused.expect_info(0), fused.expect_solutions();
    }
}

TYPED_TEST(CDense, LuOfEveryKind) {
  auto* q = this->q.get();
  for (const trifactor_kind kind : kinds)
    for (const trifactor_op op : {TRIFACTOR_NONE, TRIFACTOR_TRANSPOSE, TRIFACTOR_CONJ_TRANSPOSE}) {
      SCOPED_TRACE("kind " + std::to_string(kind) + " op " + std::to_string(op));
      Items<TypeParam> items(this->q, kind, 9, 5, general_entry<TypeParam>, op);
      size_t bytes[4] = {1, 1, 1, 1};
      EXPECT_OK(trifactor_lu_scratch(q, items.a(), nullptr, &bytes[0]));
      EXPECT_OK(trifactor_lu_solve_scratch(q, op, items.a(), items.x(), nullptr, &bytes[1]));
      EXPECT_OK(trifactor_lu_inverse_scratch(q, items.a(), items.inverse(), nullptr, &bytes[2]));
      EXPECT_OK(trifactor_lu_factor_solve_scratch(q, items.a(), items.x(), nullptr, &bytes[3]));
      EXPECT_OK(trifactor_lu(q, items.a(), items.pivots->data(), items.info->data(), nullptr));
      items.expect_info(0);
      EXPECT_OK(trifactor_lu_solve(q, op, items.a(), items.pivots->data(), items.x(), items.info->data(), nullptr));
      EXPECT_OK(trifactor_lu_inverse(q, items.a(), items.pivots->data(), items.inverse(), nullptr, nullptr));
      EXPECT_OK(trifactor_lu_det(q, items.a(), items.pivots->data(), items.sign->data(), items.real->data()));
      EXPECT_OK(trifactor_queue_sync(q));
      items.expect_solutions(), items.expect_log_dets(), items.expect_inverses();
      for (const TypeParam s : items.sign->download()) EXPECT_NEAR(std::abs(s), 1, 100 * eps<TypeParam>);

      Items<TypeParam> fused(this->q, kind, 6, 5, general_entry<TypeParam>);
      EXPECT_OK(trifactor_lu_factor_solve(q, fused.a(), fused.pivots->data(), fused.x(), fused.info->data(), nullptr));
      fused.expect_info(0), fused.expect_solutions();
    }
}

TYPED_TEST(CDense, OptionsArriveAndFailuresAreInInfo) {
  auto* q = this->q.get();
  const index_t n = 12;
  auto indefinite = spd<TypeParam>(n), nan_inside = indefinite;
  indefinite[7 + 7 * n] = TypeParam(-1), nan_inside[3 + 3 * n] = TypeParam(nan<TypeParam>);
  const Uploaded<int> info(this->q, {77});
  const Uploaded<double> used(this->q, {-1});
  const auto factored = [&](const std::vector<TypeParam>& A, const trifactor_cholesky_options* options) {
    const Uploaded<TypeParam> a(this->q, A);
    EXPECT_OK(trifactor_cholesky(q, TRIFACTOR_LOWER, trifactor_matrix(scalar<TypeParam>, a.data(), n, n, n),
                                 info.data(), options));
    return info.download()[0];
  };
  EXPECT_EQ(factored(indefinite, nullptr), 8);
  EXPECT_EQ(factored(nan_inside, nullptr), 4);
  trifactor_cholesky_options options = {};
  options.size = sizeof options;
  options.tuning = "nb=4", options.shift_tries = 30, options.shift_first = 0.5, options.shift_growth = 2;
  options.shift_used = used.data();
  EXPECT_EQ(factored(indefinite, &options), 0);
  EXPECT_GT(used.download()[0], 1);
  options.tuning = "no_such_field=4";
  const Uploaded<TypeParam> a(this->q, indefinite);
  const auto view = trifactor_matrix(scalar<TypeParam>, a.data(), n, n, n);
  EXPECT_STATUS(TRIFACTOR_INVALID_ARGUMENT, "no_such_field",
                trifactor_cholesky(q, TRIFACTOR_LOWER, view, info.data(), &options));
  options.tuning = nullptr, options.shift_growth = 0.5;
  EXPECT_STATUS(TRIFACTOR_INVALID_ARGUMENT, "0.5", trifactor_cholesky(q, TRIFACTOR_LOWER, view, info.data(), &options));
  options.size = 12345;
  EXPECT_STATUS(TRIFACTOR_INVALID_ARGUMENT, "options.size = 12345",
                trifactor_cholesky(q, TRIFACTOR_LOWER, view, info.data(), &options));

  std::vector<TypeParam> singular(n * n, TypeParam(1));
  const Uploaded<TypeParam> s(this->q, singular);
  const Uploaded<int> pivots(this->q, std::vector<int>(n, 0)), rows(this->q, std::vector<int>(n, -1));
  trifactor_lu_options lu_options = {sizeof lu_options, TRIFACTOR_MODE_NATIVE, "nb=8"};
  EXPECT_OK(
      trifactor_lu(q, trifactor_matrix(scalar<TypeParam>, s.data(), n, n, n), pivots.data(), info.data(), &lu_options));
  EXPECT_EQ(info.download()[0], 2);
  EXPECT_OK(trifactor_lu_row_permutation(q, pivots.data(), n, rows.data(), n));
  EXPECT_EQ(rows.download()[0], 0);
  lu_options.mode = 9;
  EXPECT_STATUS(TRIFACTOR_INVALID_ARGUMENT, "mode = 9", trifactor_lu(q, view, pivots.data(), info.data(), &lu_options));
}

TYPED_TEST(CDense, OneThatIsFactoredOnce) {
  const index_t n = 20;
  const auto A = spd<TypeParam>(n), G = general<TypeParam>(n);
  const auto view = [&](const std::vector<TypeParam>& M, index_t cols) {
    return trifactor_matrix(scalar<TypeParam>, M.data(), n, cols, n);
  };
  for (const trifactor_uplo uplo : {TRIFACTOR_LOWER, TRIFACTOR_UPPER}) {
    trifactor_dense_options options = {};
    options.size = sizeof options, options.uplo = uplo, options.device = TRIFACTOR_DEVICE_HOST;
    const auto F = made<trifactor_dense_cholesky>(
        [&](auto f) { return trifactor_dense_cholesky_create(view(A, n), &options, f); });
    auto x = right_side(A, n);
    std::vector<TypeParam> X(n * n), L(n * n);
    EXPECT_OK(trifactor_dense_cholesky_solve(F.get(), view(x, 1)));
    EXPECT_OK(trifactor_dense_cholesky_inverse(F.get(), view(X, n)));
    EXPECT_OK(trifactor_dense_cholesky_factor(F.get(), view(L, n)));
    expect_solution(x.data(), n), expect_inverse(X.data(), A, n);
    EXPECT_EQ(L[uplo == TRIFACTOR_LOWER ? n : 1], TypeParam(0));
    double log_det = 0, sum = 0, rcond = 0, shift = -1;
    int found = -1, device = -1;
    for (index_t i = 0; i < n; ++i) sum += 2 * std::log(double(real(L[i + i * n])));
    EXPECT_OK(trifactor_dense_cholesky_log_det(F.get(), &log_det));
    EXPECT_OK(trifactor_dense_cholesky_rcond(F.get(), &rcond));
    EXPECT_OK(trifactor_dense_cholesky_shift(F.get(), &shift));
    EXPECT_OK(trifactor_dense_cholesky_uplo(F.get(), &found));
    EXPECT_OK(trifactor_dense_cholesky_device(F.get(), &device));
    EXPECT_NEAR(log_det, sum, 1e4 * eps<TypeParam>);
    EXPECT_GT(rcond, 0.05);
    EXPECT_LE(rcond, 1);
    EXPECT_EQ(shift, 0);
    EXPECT_EQ(found, uplo);
    EXPECT_EQ(device, TRIFACTOR_DEVICE_HOST);
    EXPECT_STATUS(TRIFACTOR_INVALID_ARGUMENT, "B.rows = 19",
                  trifactor_dense_cholesky_solve(F.get(), trifactor_matrix(scalar<TypeParam>, x.data(), n - 1, 1, n)));
    EXPECT_STATUS(TRIFACTOR_INVALID_ARGUMENT, "20 x 20", trifactor_dense_cholesky_inverse(F.get(), view(X, 3)));
    EXPECT_STATUS(
        TRIFACTOR_INVALID_ARGUMENT, "scalar of the view",
        trifactor_dense_cholesky_inverse(F.get(), trifactor_matrix((scalar<TypeParam> + 1) % 4, X.data(), n, n, n)));
  }
  const auto F = made<trifactor_dense_lu>([&](auto f) { return trifactor_dense_lu_create(view(G, n), nullptr, f); });
  for (const trifactor_op op : {TRIFACTOR_NONE, TRIFACTOR_TRANSPOSE, TRIFACTOR_CONJ_TRANSPOSE}) {
    auto x = right_side(G, n, op);
    EXPECT_OK(trifactor_dense_lu_solve(F.get(), op, view(x, 1)));
    expect_solution(x.data(), n);
  }
  std::vector<TypeParam> X(n * n), LU(n * n);
  std::vector<int> rows(n, -1);
  EXPECT_OK(trifactor_dense_lu_inverse(F.get(), view(X, n)));
  EXPECT_OK(trifactor_dense_lu_factors(F.get(), view(LU, n)));
  EXPECT_OK(trifactor_dense_lu_row_permutation(F.get(), rows.data(), n));
  expect_inverse(X.data(), G, n);
  EXPECT_LT(std::abs(LU[0] - G[rows[0]]), eps<TypeParam>);
  TypeParam sign(0);
  double log_abs = 0, sum = 0, rcond = 0;
  int device = -1;
  int64_t k = -1;
  for (index_t i = 0; i < n; ++i) sum += std::log(double(std::abs(LU[i + i * n])));
  EXPECT_OK(trifactor_dense_lu_det(F.get(), &sign, &log_abs));
  EXPECT_OK(trifactor_dense_lu_rcond(F.get(), &rcond));
  EXPECT_OK(trifactor_dense_lu_device(F.get(), &device));
  EXPECT_OK(trifactor_dense_lu_singular_at(F.get(), &k));
  EXPECT_NEAR(log_abs, sum, 1e4 * eps<TypeParam>);
  EXPECT_NEAR(std::abs(sign), 1, 100 * eps<TypeParam>);
  EXPECT_GT(rcond, 0);
  EXPECT_EQ(k, 0);
  EXPECT_NE(device, TRIFACTOR_DEVICE_AUTO);
  EXPECT_STATUS(TRIFACTOR_INVALID_ARGUMENT, "room = 3", trifactor_dense_lu_row_permutation(F.get(), rows.data(), 3));
}

TYPED_TEST(CDense, FailuresOfOneThatIsFactoredOnce) {
  const index_t n = 20;
  auto A = spd<TypeParam>(n);
  A[11 + 11 * n] = TypeParam(-100);
  const auto view = trifactor_matrix(scalar<TypeParam>, A.data(), n, n, n);
  trifactor_dense_cholesky* none = reinterpret_cast<trifactor_dense_cholesky*>(&A);
  EXPECT_STATUS(TRIFACTOR_NOT_POSITIVE_DEFINITE, "order 12", trifactor_dense_cholesky_create(view, nullptr, &none));
  EXPECT_EQ(none, nullptr);
  EXPECT_EQ(trifactor_last_detail(), 12);
  trifactor_dense_options options = {};
  options.size = sizeof options, options.shift_tries = 50, options.shift_first = 1;
  const auto shifted =
      made<trifactor_dense_cholesky>([&](auto f) { return trifactor_dense_cholesky_create(view, &options, f); });
  double shift = 0;
  EXPECT_OK(trifactor_dense_cholesky_shift(shifted.get(), &shift));
  EXPECT_GE(shift, 100);

  std::vector<TypeParam> ones(n * n, TypeParam(1));
  const auto F = made<trifactor_dense_lu>([&](auto f) {
    return trifactor_dense_lu_create(trifactor_matrix(scalar<TypeParam>, ones.data(), n, n, n), nullptr, f);
  });
  int64_t k = 0;
  EXPECT_OK(trifactor_dense_lu_singular_at(F.get(), &k));
  EXPECT_EQ(k, 2);
  EXPECT_STATUS(
      TRIFACTOR_SINGULAR, "pivot 2",
      trifactor_dense_lu_solve(F.get(), TRIFACTOR_NONE, trifactor_matrix(scalar<TypeParam>, ones.data(), n, 1, n)));
  EXPECT_EQ(trifactor_last_detail(), 2);
}

TYPED_TEST(CDense, MistakesAreNamed) {
  auto* q = this->q.get();
  const Uploaded<TypeParam> a(this->q, spd<TypeParam>(4));
  const Uploaded<int> info(this->q, {0, 0});
  const auto A = trifactor_matrix(scalar<TypeParam>, a.data(), 4, 4, 4);
  const auto refused = [&](const char* words, trifactor_view V, trifactor_uplo uplo = TRIFACTOR_LOWER) {
    EXPECT_STATUS(TRIFACTOR_INVALID_ARGUMENT, words, trifactor_cholesky(q, uplo, V, info.data(), nullptr));
  };
  EXPECT_STATUS(TRIFACTOR_INVALID_ARGUMENT, "trifactor_cholesky: queue is null",
                trifactor_cholesky(nullptr, TRIFACTOR_LOWER, A, info.data(), nullptr));
  EXPECT_STATUS(TRIFACTOR_INVALID_ARGUMENT, "info is null",
                trifactor_cholesky(q, TRIFACTOR_LOWER, A, nullptr, nullptr));
  EXPECT_STATUS(TRIFACTOR_INVALID_ARGUMENT, "bytes is null",
                trifactor_cholesky_scratch(q, TRIFACTOR_LOWER, A, nullptr, nullptr));
  EXPECT_STATUS(TRIFACTOR_INVALID_ARGUMENT, "op = -1", trifactor_lu_solve(q, -1, A, info.data(), A, nullptr, nullptr));
  EXPECT_STATUS(TRIFACTOR_INVALID_ARGUMENT, "log_det is null",
                trifactor_cholesky_log_det(q, TRIFACTOR_LOWER, A, nullptr, nullptr));
  refused("uplo = 5", A, 5);
  refused("A.ld = 3", trifactor_matrix(scalar<TypeParam>, a.data(), 4, 4, 3));
  refused("A.data is null", trifactor_matrix(scalar<TypeParam>, nullptr, 4, 4, 4));
  refused("A.rows = -1", trifactor_matrix(scalar<TypeParam>, a.data(), -1, 4, 4));
  refused("4 x 3", trifactor_matrix(scalar<TypeParam>, a.data(), 4, 3, 4));
  refused("scalar = 7", trifactor_matrix(7, a.data(), 4, 4, 4));
  refused("A.stride = 2", trifactor_strided(scalar<TypeParam>, a.data(), 2, 2, 2, 2, 2));
  trifactor_view other = A;
  other.kind = 44;
  refused("kind of a view = 44", other);
  EXPECT_STATUS(
      TRIFACTOR_INVALID_ARGUMENT, "one scalar and one kind",
      trifactor_cholesky_solve(q, TRIFACTOR_LOWER, A, trifactor_strided(scalar<TypeParam>, a.data(), 4, 4, 4, 16, 1),
                               nullptr, nullptr));
}

}  // namespace
}  // namespace trifactor::test::c
