// A caller's mistake throws at once, names the argument, its value and the rule, and changes nothing.
#include <support/batches.hpp>

namespace trifactor::test {
namespace {

constexpr index_t too_large = index_t(1) << 31;

template <class T>
class Mistake : public DeviceTest {
 protected:
  static constexpr index_t n = 6;

  /// f throws InvalidArgument whose words hold all of `parts`, and no byte of A, X, info or pivots changes.
  template <class F>
  void expect_mistake(F f, std::initializer_list<const char*> parts) {
    std::string message;
    try {
      f();
      ADD_FAILURE() << "no exception";
    } catch (const InvalidArgument& e) { message = e.what(); } catch (const std::exception& e) {
      ADD_FAILURE() << "not InvalidArgument: " << e.what();
    }
    for (const char* part : parts)
      EXPECT_NE(message.find(part), std::string::npos) << '"' << part << "\" is not in: " << message;
    q.sync();
    EXPECT_TRUE(same_bits(A.download(), A0) && same_bits(X.download(), X0)) << message;
    EXPECT_EQ(info.download(), std::vector<int>(3, garbage)) << message;
    EXPECT_EQ(pivots.download(), std::vector<int>(n, garbage)) << message;
  }
  MatrixView<T> a() { return A.view(); }
  MatrixView<T> x() { return X.view(); }
  /// a() with one field changed.
  MatrixView<T> a(T* data) { return {data, n, n, n}; }
  T* misaligned() { return reinterpret_cast<T*>(reinterpret_cast<char*>(a().data) + sizeof(real_t<T>) / 2); }

  HostMatrix<T> A0 = random_spd<T>(random, n), X0 = random_matrix<T>(random, n, 2);
  DeviceMatrix<T> A{q, A0}, X{q, X0};
  DeviceArray<int> info{q, 3, garbage}, pivots{q, n, garbage};
};
TYPED_TEST_SUITE(Mistake, Scalars, ScalarNames);

TYPED_TEST(Mistake, CholeskyOfABadMatrix) {
  auto& q = this->q;
  auto* data = this->a().data;
  int* info = this->info.data();
  for (Uplo uplo : both_uplos) {
    const auto with = [&](auto view) { return [&q, uplo, view, info] { cholesky(q, uplo, view, info); }; };
    using View = MatrixView<TypeParam>;
    this->expect_mistake(with(View{data, -1, 6, 6}), {"cholesky", "A.rows", "-1", "negative"});
    this->expect_mistake(with(View{data, 6, -2, 6}), {"cholesky", "A.cols", "-2", "negative"});
    this->expect_mistake(with(View{data, 6, 6, 5}), {"cholesky", "A.ld", "5", "6"});
    this->expect_mistake(with(View{data, 0, 0, 0}), {"cholesky", "A.ld", "0", "1"});
    this->expect_mistake(with(View{data, 6, 6, -6}), {"cholesky", "A.ld", "-6"});
    this->expect_mistake(with(View{data, 5, 6, 6}), {"cholesky", "A", "5", "6", "square"});
    this->expect_mistake(with(View{nullptr, 6, 6, 6}), {"cholesky", "A.data", "null"});
    this->expect_mistake(with(this->a(this->misaligned())), {"cholesky", "A.data", "multiple"});
    this->expect_mistake(with(View{data, too_large, too_large, too_large}),
                         {"cholesky", "A.rows", "2147483648", "2147483647"});
    this->expect_mistake(with(View{data, 6, too_large, 6}), {"cholesky", "A.cols", "2147483648", "2147483647"});
    this->expect_mistake(with(View{data, 6, 6, too_large}), {"cholesky", "A.ld", "2147483648", "2147483647"});
    this->expect_mistake([&] { cholesky(q, uplo, this->a(), nullptr); }, {"cholesky", "info", "null"});
    this->expect_mistake(
        [&] { cholesky(q, uplo, this->a(), reinterpret_cast<int*>(reinterpret_cast<char*>(info) + 1)); },
        {"cholesky", "info", "multiple"});
  }
}

TYPED_TEST(Mistake, CholeskyOfABadBatch) {
  using T = TypeParam;
  auto& q = this->q;
  T* data = this->a().data;
  int* info = this->info.data();
  DeviceBatch<T> batch(q, {this->A0, this->A0, this->A0});
  const auto pointers = batch.pointers();
  const auto ragged = batch.ragged();
  const auto with = [&](auto view) { return [&q, view, info] { cholesky(q, Uplo::Lower, view, info); }; };
  // rows, cols, ld, stride, count: two items of order 2 take 4 + 4 entries.
  this->expect_mistake(with(StridedBatch<T>{data, 2, 2, 2, 3, 2}), {"A.stride", "3", "overlap"});
  this->expect_mistake(with(StridedBatch<T>{data, 2, 2, 3, 4, 2}), {"A.stride", "4", "overlap"});
  this->expect_mistake(with(StridedBatch<T>{data, 2, 2, 2, 0, 2}), {"A.stride", "0", "overlap"});
  this->expect_mistake(with(StridedBatch<T>{data, 2, 2, 2, -4, 2}), {"A.stride", "-4"});
  this->expect_mistake(with(StridedBatch<T>{data, 2, 2, 2, 4, -1}), {"A.count", "-1", "negative"});
  this->expect_mistake(with(StridedBatch<T>{data, 2, 2, 1, 4, 2}), {"A.ld", "1", "2"});
  this->expect_mistake(with(StridedBatch<T>{data, 2, 3, 2, 6, 2}), {"A", "2", "3", "square"});
  this->expect_mistake(with(StridedBatch<T>{data, -2, 2, 2, 4, 2}), {"A.rows", "-2", "negative"});
  this->expect_mistake(with(StridedBatch<T>{nullptr, 2, 2, 2, 4, 2}), {"A.data", "null"});
  this->expect_mistake(with(StridedBatch<T>{this->misaligned(), 2, 2, 2, 4, 2}), {"A.data", "multiple"});
  this->expect_mistake(with(StridedBatch<T>{data, too_large, too_large, too_large, 4, 2}), {"A.rows", "2147483648"});

  this->expect_mistake(with(PointerBatch<T>{nullptr, 6, 6, 6, 3}), {"A.data", "null"});
  this->expect_mistake(with(PointerBatch<T>{pointers.data, 6, 6, 5, 3}), {"A.ld", "5", "6"});
  this->expect_mistake(with(PointerBatch<T>{pointers.data, 6, 5, 6, 3}), {"A", "6", "5", "square"});
  this->expect_mistake(with(PointerBatch<T>{pointers.data, 6, 6, 6, -3}), {"A.count", "-3", "negative"});
  this->expect_mistake(with(PointerBatch<T>{pointers.data, -6, -6, 6, 3}), {"A.rows", "-6", "negative"});

  const auto [items, rows, cols, lds, count, max_rows, max_cols] = ragged;
  this->expect_mistake(with(RaggedBatch<T>{nullptr, rows, cols, lds, count, 6, 6}), {"A.data", "null"});
  this->expect_mistake(with(RaggedBatch<T>{items, nullptr, cols, lds, count, 6, 6}), {"A.rows", "null"});
  this->expect_mistake(with(RaggedBatch<T>{items, rows, nullptr, lds, count, 6, 6}), {"A.cols", "null"});
  this->expect_mistake(with(RaggedBatch<T>{items, rows, cols, nullptr, count, 6, 6}), {"A.ld", "null"});
  this->expect_mistake(with(RaggedBatch<T>{items, rows, cols, lds, -1, 6, 6}), {"A.count", "-1", "negative"});
  this->expect_mistake(with(RaggedBatch<T>{items, rows, cols, lds, count, -6, 6}), {"A.max_rows", "-6", "negative"});
  this->expect_mistake(with(RaggedBatch<T>{items, rows, cols, lds, count, 6, too_large}), {"A.max_cols", "2147483648"});
  this->expect_mistake(with(RaggedBatch<T>{items, rows, cols, lds, count, 6, 7}), {"A", "6", "7", "square"});
  this->expect_mistake([&] { cholesky(q, Uplo::Lower, ragged, nullptr); }, {"info", "null"});
  EXPECT_EQ(max_rows, 6);
  EXPECT_EQ(max_cols, 6);
  for (const auto& item : batch.download()) EXPECT_TRUE(same_bits(item, this->A0));
}

TYPED_TEST(Mistake, BadOptions) {
  auto& q = this->q;
  int *info = this->info.data(), *pivots = this->pivots.data();
  const auto cholesky_with = [&](const char* tuning) {
    return [&, tuning] { cholesky(q, Uplo::Lower, this->a(), info, {.tuning = tuning}); };
  };
  this->expect_mistake(cholesky_with("wdith=3"), {"wdith", "nb", "looking"});
  this->expect_mistake(cholesky_with("nb=0"), {"nb", "0", "from 1 to 2147483647"});
  this->expect_mistake(cholesky_with("nb=8 leaf=-3"), {"leaf", "-3"});
  this->expect_mistake(cholesky_with("nb=many"), {"nb", "many"});
  this->expect_mistake(cholesky_with("nb=8x"), {"nb", "8x"});
  this->expect_mistake(cholesky_with("nb"), {"nb", "field=value"});
  this->expect_mistake(cholesky_with("nb = 8"), {"nb"});
  this->expect_mistake(cholesky_with("looking=up"), {"looking", "up", "left", "right"});
  this->expect_mistake(cholesky_with("nb=99999999999999999999"), {"nb", "99999999999999999999"});
  this->expect_mistake([&] { lu(q, this->a(), pivots, info, {.tuning = "looking=left"}); }, {"looking", "lu"});
  this->expect_mistake([&] { lu(q, this->a(), pivots, info, {.tuning = "nb=0"}); }, {"nb", "0"});
  this->expect_mistake([&] { (void)cholesky_scratch(q, Uplo::Lower, this->a(), {.tuning = "nb=0"}); }, {"nb", "0"});
  DeviceBatch<TypeParam> batch(q, {this->A0, this->A0, this->A0});
  const CholeskyOptions hybrid{.mode = Mode::Hybrid};
  if (on_cuda()) {
    this->expect_mistake([&] { cholesky(q, Uplo::Lower, batch.strided(), info, hybrid); },
                         {"Hybrid", "count", "3", "1"});
    this->expect_mistake([&] { cholesky(q, Uplo::Lower, batch.ragged(), info, hybrid); },
                         {"Hybrid", "count", "3", "1"});
  } else {
    this->expect_mistake([&] { cholesky(q, Uplo::Lower, batch.strided(), info, hybrid); }, {"Hybrid", "CUDA"});
    this->expect_mistake([&] { cholesky(q, Uplo::Lower, this->a(), info, hybrid); }, {"Hybrid", "CUDA"});
    this->expect_mistake([&] { lu(q, this->a(), pivots, info, {.mode = Mode::Hybrid}); }, {"Hybrid", "CUDA"});
  }
}

TYPED_TEST(Mistake, CholeskySolveOfWhatDoesNotFit) {
  using T = TypeParam;
  using View = MatrixView<T>;
  auto& q = this->q;
  const auto a = this->a(), x = this->x();
  const auto solve = [&](View L, View X) { return [&q, L, X] { cholesky_solve(q, Uplo::Upper, L, X); }; };
  this->expect_mistake(solve({a.data, 6, 5, 6}, x), {"cholesky_solve", "L", "6", "5", "square"});
  this->expect_mistake(solve({a.data, 6, 6, 5}, x), {"cholesky_solve", "L.ld", "5"});
  this->expect_mistake(solve({nullptr, 6, 6, 6}, x), {"cholesky_solve", "L.data", "null"});
  this->expect_mistake(solve(a, {x.data, 5, 2, 6}), {"cholesky_solve", "X.rows", "5", "6"});
  this->expect_mistake(solve(a, {x.data, 6, -2, 6}), {"cholesky_solve", "X.cols", "-2", "negative"});
  this->expect_mistake(solve(a, {x.data, 6, 2, 4}), {"cholesky_solve", "X.ld", "4"});
  this->expect_mistake(solve(a, {nullptr, 6, 2, 6}), {"cholesky_solve", "X.data", "null"});
  DeviceBatch<T> L(q, {this->A0, this->A0, this->A0}), X(q, {this->X0, this->X0});
  this->expect_mistake([&] { cholesky_solve(q, Uplo::Lower, L.strided(), X.strided()); }, {"X.count", "2", "3"});
  this->expect_mistake([&] { cholesky_solve(q, Uplo::Lower, L.pointers(), X.pointers()); }, {"X.count", "2", "3"});
  this->expect_mistake([&] { cholesky_solve(q, Uplo::Lower, L.ragged(), X.ragged()); }, {"X.count", "2", "3"});
  auto overlapping = X.strided();
  overlapping.stride = 3;
  this->expect_mistake(
      [&] {
        cholesky_solve(q, Uplo::Lower, StridedBatch<T>{a.data, 6, 6, 6, 0, 2}, overlapping);
      },
      {"X.stride", "3", "overlap"});

  this->expect_mistake([&] { cholesky_inverse(q, Uplo::Lower, a, x); }, {"cholesky_inverse", "X", "6", "2", "square"});
  this->expect_mistake(
      [&] {
        cholesky_inverse(q, Uplo::Lower, a, MatrixView<T>{x.data, 5, 5, 5});
      },
      {"cholesky_inverse", "X.rows", "5", "6"});
  this->expect_mistake([&] { cholesky_log_det(q, Uplo::Lower, a, static_cast<real_t<T>*>(nullptr)); },
                       {"log_det", "null"});
  this->expect_mistake([&] { cholesky_log_det(q, Uplo::Lower, x, static_cast<real_t<T>*>(nullptr)); },
                       {"L", "6", "2", "square"});
}

TYPED_TEST(Mistake, FactorSolveOfWhatDoesNotFit) {
  using T = TypeParam;
  auto& q = this->q;
  const auto a = this->a(), x = this->x();
  int *info = this->info.data(), *pivots = this->pivots.data();
  DeviceBatch<T> A(q, {this->A0, this->A0, this->A0}), X(q, {this->X0, this->X0});
  for (Kind kind : all_kinds)
    as(kind, A, X, [&](auto f, auto r) {
      this->expect_mistake([&] { cholesky_factor_solve(q, Uplo::Lower, f, r, info); },
                           {"cholesky_factor_solve", "X.count", "2", "A.count = 3"});
      this->expect_mistake([&] { lu_factor_solve(q, f, pivots, r, info); },
                           {"lu_factor_solve", "X.count", "2", "A.count = 3"});
      this->expect_mistake([&] { cholesky_inverse(q, Uplo::Lower, f, r); }, {"cholesky_inverse", "X.count", "2", "3"});
      this->expect_mistake([&] { lu_inverse(q, f, pivots, r); }, {"lu_inverse", "X.count", "2", "3"});
      this->expect_mistake([&] { lu_solve(q, Op::None, f, pivots, r); }, {"lu_solve", "X.count", "2", "LU.count = 3"});
      this->expect_mistake([&] { lu_det(q, f, nullptr, static_cast<T*>(nullptr), static_cast<real_t<T>*>(nullptr)); },
                           {"lu_det", "null"});
    });
  const MatrixView<T> other{x.data, 5, 2, 6};
  this->expect_mistake([&] { cholesky_factor_solve(q, Uplo::Lower, a, other, info); },
                       {"cholesky_factor_solve", "X.rows", "5", "A.rows = 6"});
  this->expect_mistake([&] { cholesky_factor_solve(q, Uplo::Lower, x, a, info); },
                       {"cholesky_factor_solve", "A", "6 x 2", "square"});
  this->expect_mistake([&] { cholesky_factor_solve(q, Uplo::Lower, a, x, nullptr); },
                       {"cholesky_factor_solve", "info", "null"});
  this->expect_mistake([&] { lu_factor_solve(q, a, pivots, other, info); }, {"lu_factor_solve", "X.rows", "5", "6"});
  this->expect_mistake([&] { lu_factor_solve(q, a, nullptr, x, info); }, {"lu_factor_solve", "pivots", "null"});
  this->expect_mistake([&] { lu_factor_solve(q, a, pivots, x, nullptr); }, {"lu_factor_solve", "info", "null"});
  this->expect_mistake([&] { cholesky_factor_solve(q, Uplo::Lower, a, x, info, {.mode = Mode::Hybrid}); },
                       {"cholesky_factor_solve", "Hybrid", "two calls"});
  this->expect_mistake([&] { lu_factor_solve(q, a, pivots, x, info, {.mode = Mode::Hybrid}); },
                       {"lu_factor_solve", "Hybrid", "two calls"});
  const int* const odd_info = reinterpret_cast<int*>(reinterpret_cast<char*>(info) + 1);
  real_t<T>* const log_det = reinterpret_cast<real_t<T>*>(a.data);
  this->expect_mistake([&] { cholesky_solve(q, Uplo::Lower, a, x, odd_info); }, {"cholesky_solve", "info", "multiple"});
  this->expect_mistake([&] { cholesky_inverse(q, Uplo::Lower, a, a, odd_info); },
                       {"cholesky_inverse", "info", "multiple"});
  this->expect_mistake([&] { cholesky_log_det(q, Uplo::Lower, a, log_det, odd_info); }, {"cholesky_log_det", "info"});
  this->expect_mistake([&] { lu_solve(q, Op::None, a, pivots, x, odd_info); }, {"lu_solve", "info", "multiple"});
  this->expect_mistake([&] { lu_inverse(q, a, pivots, a, odd_info); }, {"lu_inverse", "info", "multiple"});
  double odd[2];
  double* const misaligned = reinterpret_cast<double*>(reinterpret_cast<char*>(odd) + 1);
  const CholeskyOptions shift{.shift_tries = 1, .shift_used = misaligned};
  this->expect_mistake([&] { cholesky(q, Uplo::Lower, a, info, shift); },
                       {"cholesky", "shift_used", "multiple"});
}

/// The factor of a strided solve is only read, so all items may share one.
TYPED_TEST(Mistake, SharingAFactorIsNone) {
  using T = TypeParam;
  const auto L = factor_cholesky(this->q, Uplo::Lower, this->A0);
  DeviceMatrix<T> F(this->q, L.F);
  DeviceBatch<T> X(this->q, {this->X0, this->X0, this->X0});
  cholesky_solve(this->q, Uplo::Lower, StridedBatch<T>{F.view().data, this->n, this->n, F.view().ld, 0, 3},
                 X.strided());
  for (const auto& x : X.download()) EXPECT_LT(solve_ratio(Op::None, this->A0, x, this->X0), threshold);
}

TYPED_TEST(Mistake, LuOfABadMatrix) {
  using T = TypeParam;
  using View = MatrixView<T>;
  auto& q = this->q;
  const auto a = this->a(), x = this->x();
  int *info = this->info.data(), *pivots = this->pivots.data();
  const auto with = [&](View A) { return [&q, A, pivots, info] { lu(q, A, pivots, info); }; };
  this->expect_mistake(with({a.data, -1, 6, 6}), {"lu", "A.rows", "-1", "negative"});
  this->expect_mistake(with({a.data, 6, -1, 6}), {"lu", "A.cols", "-1", "negative"});
  this->expect_mistake(with({a.data, 6, 3, 5}), {"lu", "A.ld", "5", "6"});
  this->expect_mistake(with({nullptr, 6, 3, 6}), {"lu", "A.data", "null"});
  this->expect_mistake(with(this->a(this->misaligned())), {"lu", "A.data", "multiple"});
  this->expect_mistake(with({a.data, too_large, 1, too_large}), {"lu", "A.rows", "2147483648"});
  this->expect_mistake([&] { lu(q, a, nullptr, info); }, {"lu", "pivots", "null"});
  this->expect_mistake([&] { lu(q, a, pivots, nullptr); }, {"lu", "info", "null"});

  T* sign = nullptr;
  real_t<T>* log_abs = nullptr;
  this->expect_mistake([&] { lu_solve(q, Op::None, x, pivots, x); }, {"lu_solve", "LU", "6", "2", "square"});
  this->expect_mistake(
      [&] {
        lu_solve(q, Op::None, a, pivots, View{x.data, 5, 2, 5});
      },
      {"lu_solve", "X.rows", "5", "6"});
  this->expect_mistake([&] { lu_solve(q, Op::None, a, nullptr, x); }, {"lu_solve", "pivots", "null"});
  this->expect_mistake([&] { lu_inverse(q, a, pivots, x); }, {"lu_inverse", "X", "6", "2", "square"});
  this->expect_mistake([&] { lu_inverse(q, a, nullptr, a); }, {"lu_inverse", "pivots", "null"});
  this->expect_mistake([&] { lu_det(q, x, pivots, sign, log_abs); }, {"lu_det", "LU", "6", "2", "square"});
  this->expect_mistake([&] { lu_det(q, a, pivots, sign, log_abs); }, {"lu_det", "sign", "null"});
  this->expect_mistake([&] { lu_row_permutation(q, pivots, -1, pivots, 6); }, {"lu_row_permutation", "k", "-1", "negative"});
  this->expect_mistake([&] { lu_row_permutation(q, pivots, 7, pivots, 6); }, {"lu_row_permutation", "k", "7", "6"});
  this->expect_mistake([&] { lu_row_permutation(q, nullptr, 3, pivots, 6); }, {"lu_row_permutation", "pivots", "null"});
  this->expect_mistake([&] { lu_row_permutation(q, pivots, 3, nullptr, 6); }, {"lu_row_permutation", "p", "null"});
}

TYPED_TEST(Mistake, ScratchQueriesCheckAsTheCallsDo) {
  using View = MatrixView<TypeParam>;
  auto& q = this->q;
  const auto a = this->a(), x = this->x();
  this->expect_mistake([&] { (void)cholesky_scratch(q, Uplo::Lower, x); },
                       {"cholesky_scratch", "A", "6", "2", "square"});
  this->expect_mistake(
      [&] {
        (void)cholesky_solve_scratch(q, Uplo::Lower, a, View{x.data, 5, 2, 5});
      },
      {"cholesky_solve_scratch", "X.rows", "5"});
  this->expect_mistake([&] { (void)cholesky_inverse_scratch(q, Uplo::Lower, a, x); },
                       {"cholesky_inverse_scratch", "X", "square"});
  this->expect_mistake([&] { (void)lu_scratch(q, View{a.data, 6, 6, 1}); }, {"lu_scratch", "A.ld", "1"});
  this->expect_mistake(
      [&] {
        (void)lu_solve_scratch(q, Op::None, a, View{x.data, 5, 2, 5});
      },
      {"lu_solve_scratch", "X.rows", "5"});
  this->expect_mistake([&] { (void)lu_inverse_scratch(q, a, x); }, {"lu_inverse_scratch", "X", "6 x 2", "square"});
}

TYPED_TEST(Mistake, BadMemory) {
  auto& q = this->q;
  this->expect_mistake([&] { Buffer<TypeParam>(q, -1); }, {"Buffer", "-1", "negative"});
  this->expect_mistake([&] { Matrix<TypeParam>(q, 3, -2); }, {"Matrix", "-2", "negative"});
  this->expect_mistake([&] { Matrix<TypeParam>(q, too_large * too_large, too_large); }, {"Matrix", "at most"});
  this->expect_mistake([&] { Queue::host(-1); }, {"Queue::host", "threads", "-1", "negative"});
  for (int threads : {513, 100000, std::numeric_limits<int>::max()})
    this->expect_mistake([&] { Queue::host(threads); },
                         {"Queue::host", "threads", std::to_string(threads).c_str(), "at most 512"});
}

TYPED_TEST(Mistake, CopiesOfBadViews) {
  using View = MatrixView<TypeParam>;
  auto& q = this->q;
  const auto a = this->a();
  const auto copied = [&](View from, View to) { return [&q, from, to] { copy(q, from, q, to); }; };
  this->expect_mistake(copied({a.data, -1, 2, 6}, {a.data, -1, 2, 6}), {"copy", "source.rows", "-1", "negative"});
  this->expect_mistake(copied({a.data, 2, -1, 6}, {a.data, 2, -1, 6}), {"copy", "source.cols", "-1", "negative"});
  this->expect_mistake(copied({a.data, 2, 2, -1}, a.block(0, 0, 2, 2)), {"copy", "source.ld", "-1", "negative"});
  this->expect_mistake(copied(a.block(0, 0, 2, 2), {a.data, 2, 2, -1}), {"copy", "target.ld", "-1", "negative"});
  this->expect_mistake(copied(a.block(0, 0, 2, 1), {a.data, 2, 1, 1}), {"copy", "target.ld", "1", "2"});
  this->expect_mistake(copied(a.block(0, 0, 2, 2), a.block(0, 0, 2, 3)), {"copy", "2 x 2", "2 x 3"});
  copy(q, View{}, q, View{});
}

}  // namespace
}  // namespace trifactor::test
