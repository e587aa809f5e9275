// Whatever a tuning field is set to within its range, results are right.
#include <support/batches.hpp>
#include <trifactor/sparse.hpp>
#include <tuning/fields.hpp>

namespace trifactor::test {
namespace {

template <class T>
class TuningRange : public DeviceTest {
 protected:
  /// f("field=value") for the ends of the range of every field of an operation, and for each of its words.
  template <class Tuning, class F>
  static void for_every_end(F f) {
    for (const tuning::Field& field : tuning::operation_of<Tuning>().fields) {
      std::vector<std::string> values(field.words.begin(), field.words.end());
      if (values.empty()) values = {std::to_string(field.min_value), std::to_string(field.max_value)};
      for (const std::string& value : values) {
        const std::string setting = ' ' + std::string(field.name) + '=' + value;
        SCOPED_TRACE(setting);
        f(setting);
      }
    }
  }
  static Items<T> orders(Random& random, Kind kind, index_t n, bool definite) {
    Items<T> items;
    for (index_t i = 0; i < 5; ++i) {
      const index_t own = kind == Kind::Ragged ? n - 3 * i : n;
      items.push_back(definite ? random_spd<T>(random, own) : random_matrix<T>(random, own, own));
    }
    return items;
  }
};
TYPED_TEST_SUITE(TuningRange, Scalars, ScalarNames);

TYPED_TEST(TuningRange, OfCholesky) {
  using T = TypeParam;
  const auto A = random_spd<T>(this->random, 45);
  this->template for_every_end<core::CholeskyTuning>([&](const std::string& setting) {
    for (const char* way :
         {"", "whole=0 interleaved=0 nb=8 leaf=4", "whole=0 interleaved=0 nb=8 leaf=8 tile=exclusive ib=3"}) {
      const CholeskyOptions options{.tuning = way + setting};
      const auto one = factor_cholesky(this->q, Uplo::Lower, A, options);
      EXPECT_EQ(one.info, 0);
      EXPECT_LT(cholesky_ratio(A, one.F, Uplo::Lower), threshold);
      for (Kind kind : {Kind::Strided, Kind::Ragged}) {
        const auto items = this->orders(this->random, kind, 20, true);
        expect_right(Uplo::Upper, items, factor_cholesky(this->q, kind, Uplo::Upper, items, options));
      }
    }
  });
}

TYPED_TEST(TuningRange, OfLu) {
  using T = TypeParam;
  const auto A = random_matrix<T>(this->random, 45, 40);
  this->template for_every_end<core::LuTuning>([&](const std::string& setting) {
    for (const char* way : {"", "whole=0 nb=8 leaf=4"}) {
      const LuOptions options{.tuning = way + setting};
      const auto one = factor_lu(this->q, A, options);
      EXPECT_EQ(one.info, 0);
      EXPECT_LT(lu_ratio(A, one.F, one.pivots), threshold);
      for (Kind kind : {Kind::Strided, Kind::Ragged}) {
        const auto items = this->orders(this->random, kind, 20, false);
        expect_right(items, factor_lu(this->q, kind, items, options));
      }
    }
  });
}

TYPED_TEST(TuningRange, OfSolves) {
  using T = TypeParam;
  const index_t n = 70;
  const auto A = random_spd<T>(this->random, n), B = random_matrix<T>(this->random, n, 3);
  const auto L = factor_cholesky(this->q, Uplo::Lower, A);
  const auto LU = factor_lu(this->q, A);
  this->template for_every_end<core::SolveTuning>([&](const std::string& setting) {
    const SolveOptions options{.tuning = setting};
    const auto X = solve_cholesky(this->q, Uplo::Lower, L.F, B, 0, options);
    EXPECT_LT(solve_ratio(Op::None, A, X, B), threshold);
    EXPECT_LT(solve_ratio(Op::Transpose, A, solve_lu(this->q, Op::Transpose, LU, B, 0, options), B), threshold);
    const DeviceMatrix<T> factor(this->q, L.F), factors(this->q, LU.F);
    DeviceMatrix<T> inverse(this->q, A);
    const DeviceArray<int> pivots(this->q, LU.pivots);
    cholesky_inverse(this->q, Uplo::Lower, factor.view(), inverse.view(), nullptr, options);
    EXPECT_LT(inverse_ratio(A, inverse.download()), threshold);
    lu_inverse(this->q, factors.view(), pivots.data(), inverse.view(), nullptr, options);
    EXPECT_LT(inverse_ratio(A, inverse.download()), threshold);
  });
}

TYPED_TEST(TuningRange, OfSparseMatrices) {
  using T = TypeParam;
  constexpr index_t edge = 6, n = edge * edge * edge;  // a cube of points, each with up to six neighbours
  std::vector<std::int64_t> start{0}, index;
  std::vector<T> values;
  HostMatrix<T> A(n, n);
  const auto add = [&](index_t i, index_t j, T value) {
    index.push_back(i), values.push_back(value);
    A(i, j) = value, A(j, i) = conj(value);
  };
  for (index_t j = 0; j < n; ++j) {
    add(j, j, T(7));
    for (index_t stride : {index_t(1), edge, edge * edge})
      if (j / stride % edge + 1 < edge) add(j + stride, j, narrow<T>(this->random.template wide<Wide<T>>()));
    start.push_back(index_t(index.size()));
  }
  const Pattern<std::int64_t> pattern{.rows = n, .cols = n, .start = start.data(), .index = index.data()};
  const auto B = random_matrix<T>(this->random, n, 3);
  this->template for_every_end<core::SparseTuning>([&](const std::string& setting) {
    const auto plan = analyze(pattern, {.tuning = "tiny=8" + setting});
    for (const char* way : {"levels=0 leaf=4 strip=8", "levels=1"}) {
      SparseCholesky<T> F(this->q, plan, {.tuning = way + setting});
      F.factor(std::span<const T>(values));
      const DeviceMatrix<T> X(this->q, B);
      F.solve(X.view());
      EXPECT_LT(solve_ratio(Op::None, A, X.download(), B), threshold);
    }
  });
}

}  // namespace
}  // namespace trifactor::test
