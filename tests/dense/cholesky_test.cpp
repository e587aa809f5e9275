// Cholesky of one matrix: every size around a block, every path, both triangles, and what must not be touched.
#include <support/factored.hpp>
#include <support/ratios.hpp>

namespace trifactor::test {
namespace {

struct Forced {
  const char* tuning;
  const char* path;
};
// Block widths of 1, 3 and 8, diagonal tiles smaller than a block, and both directions of looking.
constexpr Forced forced_paths[] = {
    {"whole=0 persistent=0 interleaved=0 looking=right nb=1 leaf=1", "blocked right"},
    {"whole=0 persistent=0 interleaved=0 looking=left nb=1 leaf=1", "blocked left"},
    {"whole=0 persistent=0 interleaved=0 looking=right nb=3 leaf=3", "blocked right"},
    {"whole=0 persistent=0 interleaved=0 looking=left nb=3 leaf=3", "blocked left"},
    {"whole=0 persistent=0 interleaved=0 looking=right nb=8 leaf=8", "blocked right"},
    {"whole=0 persistent=0 interleaved=0 looking=left nb=8 leaf=8", "blocked left"},
    {"whole=0 persistent=0 interleaved=0 looking=right nb=8 leaf=3", "blocked right"},
    {"whole=0 persistent=0 interleaved=0 looking=left nb=8 leaf=3", "blocked left"},
    {"whole=0 persistent=0 interleaved=0 looking=right nb=16 leaf=8 tile=exclusive ib=3", "blocked right"},
};

// One launch for the whole matrix, and the same launch for the diagonal tiles of a blocked run.
constexpr Forced forced_on_cuda[] = {
    {"whole=0 persistent=2147483647 macro_tiles=2147483647", "persistent"},
    {"whole=0 persistent=2147483647 macro_tiles=0", "persistent"},
    {"whole=0 persistent=0 looking=right nb=128 leaf=128", "blocked right"},
    {"whole=0 persistent=0 looking=left nb=128 leaf=128", "blocked left"},
    {"whole=0 persistent=0 looking=left nb=128 leaf=128 tile=exclusive ib=16", "blocked left"},
};

template <class T>
class Cholesky : public DeviceTest {
 protected:
  /// Factors one triangle of A, the other full of canaries; checks all that holds for every input.
  Factored<T> factor(Uplo uplo, const HostMatrix<T>& A, const CholeskyOptions& options = {}) {
    const auto given = only_triangle(A, uplo);
    auto result = factor_cholesky(q, uplo, given, options);
    EXPECT_TRUE(same_outside_triangle(given, result.F, uplo)) << "wrote outside the triangle";
    return result;
  }
  void expect_right(Uplo uplo, const HostMatrix<T>& A, const Factored<T>& result) {
    EXPECT_EQ(result.info, 0);
    EXPECT_LT(cholesky_ratio(A, result.F, uplo), threshold);
    for (index_t j = 0; j < A.cols; ++j)
      ASSERT_EQ(result.F(j, j), T(real(result.F(j, j)))) << "diagonal not real at " << j;
  }
  /// Calls f(options, path) for the default and for every forced path; path is empty where any will do.
  template <class F>
  void for_every_path(F f) {
    f(CholeskyOptions{}, std::string());
    for (const auto& [tuning, path] : forced_paths) {
      SCOPED_TRACE(tuning);
      f(CholeskyOptions{.tuning = tuning}, std::string(path));
    }
    if (!on_cuda()) return;
    for (const auto& [tuning, path] : forced_on_cuda) {
      SCOPED_TRACE(tuning);
      f(CholeskyOptions{.tuning = tuning}, std::string(path));
    }
    SCOPED_TRACE("hybrid");
    f(CholeskyOptions{.mode = Mode::Hybrid, .tuning = "whole=0 persistent=0 looking=right nb=8 leaf=8"},
      std::string("blocked right hybrid"));
  }
  void expect_path(const Factored<T>& result, const std::string& path) {
    if (!path.empty()) { EXPECT_EQ(result.path, path); }
  }
};
/// A triangle in memory whose first entry and whose columns may start anywhere; all around it are canaries.
template <class T>
struct Placed {
  Uplo uplo;
  index_t n, at;  // at: the row of the storage that row 0 is
  HostMatrix<T> stored;
  DeviceMatrix<T> on_device;

  Placed(Queue& q, const HostMatrix<T>& A, Uplo triangle, index_t first_row, index_t pad)
      : uplo(triangle), n(A.rows), at(first_row), stored(filled(A, triangle, first_row, pad)), on_device(q, stored) {}
  static HostMatrix<T> filled(const HostMatrix<T>& A, Uplo uplo, index_t at, index_t pad) {
    HostMatrix<T> S(A.rows + 1, A.cols, pad);
    for (index_t j = 0; j < S.cols; ++j)
      for (index_t i = 0; i < S.rows; ++i) S(i, j) = canary<T>(i + j);
    for (index_t j = 0; j < A.cols; ++j)
      for (index_t i = 0; i < A.rows; ++i)
        if (in_triangle(uplo, i, j)) S(i + at, j) = A(i, j);
    return S;
  }
  MatrixView<T> view() const {
    auto v = on_device.view();
    v.data += at, v.rows = n;
    return v;
  }
  /// Device memory itself is aligned.
  bool aligned() const {
    return std::size_t(stored.frame + at) * sizeof(T) % 16 == 0 && std::size_t(stored.ld) * sizeof(T) % 16 == 0;
  }
  /// The triangle, after it is shown that nothing else has changed.
  HostMatrix<T> download() {
    const auto after = on_device.download();
    HostMatrix<T> F(n, n);
    for (index_t j = 0; j < n; ++j)
      for (index_t i = 0; i < n; ++i)
        if (in_triangle(uplo, i, j)) F(i, j) = stored(i + at, j) = after(i + at, j);
    EXPECT_TRUE(same_bits(stored, after)) << "wrote outside the triangle";
    return F;
  }
};

TYPED_TEST_SUITE(Cholesky, Scalars, ScalarNames);

TYPED_TEST(Cholesky, FactorsEverySize) {
  for (index_t n : {0, 1, 2, 3, 5, 10, 31, 32, 33, 50, 63, 64, 65, 127, 130, 200, 300})
    for (index_t pad : {0, 3})
      for (Uplo uplo : both_uplos) {
        SCOPED_TRACE(::testing::Message() << name(uplo) << " n=" << n << " pad=" << pad);
        const auto A = random_spd<TypeParam>(this->random, n, pad);
        const auto result = this->factor(uplo, A);
        this->expect_right(uplo, A, result);
        if (n == 0) continue;
        const bool whole = on_cuda() ? result.path == "lanes" || result.path == "warp" || result.path == "persistent"
                                     : result.path == "lapack" || result.path == "tile";
        EXPECT_TRUE(whole || result.path == "blocked right" || result.path == "blocked left") << result.path;
        if (n <= 32) { EXPECT_TRUE(whole) << result.path; }
      }
}

TYPED_TEST(Cholesky, FactorsWithEveryForcedPath) {
  for (index_t n : {0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 15, 16, 17, 50, 65, 130})
    for (Uplo uplo : both_uplos) {
      SCOPED_TRACE(::testing::Message() << name(uplo) << " n=" << n);
      const auto A = random_spd<TypeParam>(this->random, n, n % 2 ? 2 : 0);
      this->for_every_path([&](const CholeskyOptions& options, const std::string& path) {
        const auto result = this->factor(uplo, A, options);
        this->expect_right(uplo, A, result);
        if (n > 0) this->expect_path(result, path);
      });
    }
}

TYPED_TEST(Cholesky, FactorsWithWideBlocks) {
  for (const char* looking : {"right", "left"})
    for (index_t n : {63, 64, 65, 129, 200})
      for (Uplo uplo : both_uplos) {
        SCOPED_TRACE(::testing::Message() << looking << ' ' << name(uplo) << " n=" << n);
        const auto A = random_spd<TypeParam>(this->random, n, 1);
        const auto result = this->factor(
            uplo, A, {.tuning = std::string("whole=0 persistent=0 interleaved=0 nb=64 leaf=16 looking=") + looking});
        this->expect_right(uplo, A, result);
        EXPECT_EQ(result.path, std::string("blocked ") + looking);
      }
}

TYPED_TEST(Cholesky, HybridFactorsOnCudaAndIsRefusedOnTheHost) {
  for (Uplo uplo : both_uplos)
    for (index_t n : {1, 63, 200, 600}) {
      const auto A = random_spd<TypeParam>(this->random, n, 1);
      const CholeskyOptions hybrid{.mode = Mode::Hybrid, .tuning = "nb=64"};
      if (!on_cuda()) {
        EXPECT_THROW(this->factor(uplo, A, hybrid), InvalidArgument);
        continue;
      }
      SCOPED_TRACE(::testing::Message() << name(uplo) << " n=" << n);
      const auto result = this->factor(uplo, A, hybrid);
      this->expect_right(uplo, A, result);
      if (n > 64) { EXPECT_TRUE(result.path.ends_with("hybrid")) << result.path; }
    }
}

/// Nobody waits between the calls, which share page-locked memory.
TYPED_TEST(Cholesky, HybridCallsInARowKeepTheirFailures) {
  if (!on_cuda()) GTEST_SKIP() << "of CUDA queues";
  using T = TypeParam;
  constexpr index_t n = 300, calls = 40;
  const auto good = random_spd<T>(this->random, n);
  auto bad = good;
  bad(n - 1, n - 1) = T(-1);
  std::vector<DeviceMatrix<T>> all;
  for (index_t k = 0; k < calls; ++k) all.emplace_back(this->q, k % 2 == 0 ? bad : good);
  DeviceArray<int> info(this->q, calls, garbage);
  for (index_t k = 0; k < calls; ++k)
    cholesky(this->q, Uplo::Lower, all[std::size_t(k)].view(), info.data() + k,
             {.mode = Mode::Hybrid, .tuning = k % 3 == 0 ? "nb=256" : "nb=64"});
  this->q.sync();
  const auto found = info.download();
  for (index_t k = 0; k < calls; ++k) EXPECT_EQ(found[std::size_t(k)], k % 2 == 0 ? n : 0) << "call " << k;
}

TYPED_TEST(Cholesky, FactorsMatricesAtEveryAlignment) {
  using T = TypeParam;
  std::vector<index_t> orders = {1, 2, 64, 65, 130};
  if (on_cuda()) orders.insert(orders.end(), {257, 333, 383});  // of several macro tiles
  for (const index_t n : orders)
    for (const char* pieces : {"macro_tiles=0", "macro_tiles=2147483647"})
      for (const char* realign : {" realign=0", " realign=2147483647"})
        for (Uplo uplo : both_uplos) {
          const auto A = random_spd<T>(this->random, n);
          const CholeskyOptions options{.tuning = std::string("whole=0 persistent=2147483647 ") + pieces + realign};
          for (index_t pad : {0, 1, 2, 3})
            for (index_t at : {0, 1}) {
              SCOPED_TRACE(::testing::Message()
                           << name(uplo) << " n=" << n << " pad=" << pad << " at=" << at << options.tuning);
              Placed<T> P(this->q, A, uplo, at, pad);
              DeviceArray<int> info(this->q, 1, garbage);
              const bool copies = on_cuda() && !P.aligned() && realign == std::string(" realign=0");
              if (copies) {  // whose order is a multiple of 16, so that a tensor map covers every row
                const index_t order = (n + 15) / 16 * 16;
                const CholeskyOptions in_place{.tuning = options.tuning + " realign=2147483647"};
                EXPECT_GE(cholesky_scratch(this->q, uplo, P.view(), options),
                          cholesky_scratch(this->q, uplo, P.view(), in_place) + std::size_t(order * order) * sizeof(T));
              }
              cholesky(this->q, uplo, P.view(), info.data(), options);
              if (on_cuda()) { EXPECT_EQ(testing::path_taken(), copies ? "persistent realigned" : "persistent"); }
              EXPECT_EQ(info.download()[0], 0);
              EXPECT_LT(cholesky_ratio(A, P.download(), uplo), threshold);
            }
        }
}

TYPED_TEST(Cholesky, ReportsTheFailingColumnOfAnUnalignedMatrix) {
  using T = TypeParam;
  const index_t n = 329;
  const auto good = random_spd<T>(this->random, n);
  for (index_t k : {0, 64, 130, 256, 328})
    for (Uplo uplo : both_uplos) {
      SCOPED_TRACE(::testing::Message() << name(uplo) << " k=" << k);
      auto A = good;
      A(k, k) = T(-1);
      Placed<T> P(this->q, A, uplo, 1, 1);
      DeviceArray<int> info(this->q, 1, garbage);
      cholesky(this->q, uplo, P.view(), info.data(),
               {.tuning = "whole=0 persistent=2147483647 macro_tiles=0 realign=0"});
      EXPECT_EQ(info.download()[0], k + 1);
      EXPECT_LT(cholesky_ratio(A, P.download(), uplo, k), threshold);
    }
}

TYPED_TEST(Cholesky, UnalignedMatrixIsFactoredInPlaceWithoutMemoryForACopy) {
  using T = TypeParam;
  if (!on_cuda()) GTEST_SKIP() << "of the device";
  const index_t n = 201;
  const auto A = random_spd<T>(this->random, n);
  Placed<T> P(this->q, A, Uplo::Lower, 1, 1);
  DeviceArray<int> info(this->q, 1, garbage);
  const auto run = [&](const char* realign) {
    cholesky(this->q, Uplo::Lower, P.view(), info.data(),
             {.tuning = std::string("whole=0 persistent=2147483647 macro_tiles=0 realign=") + realign});
  };
  run("2147483647");  // takes what it needs without a copy
  P.on_device.upload(P.stored);
  testing::fail_allocation(1);
  run("0");
  testing::fail_allocation(0);
  EXPECT_EQ(testing::path_taken(), "persistent");
  EXPECT_EQ(info.download()[0], 0);
  EXPECT_LT(cholesky_ratio(A, P.download(), Uplo::Lower), threshold);
}

TYPED_TEST(Cholesky, ReportsTheFailingColumnWhereverItIs) {
  const index_t n = 20;
  const auto good = random_spd<TypeParam>(this->random, n, 1);
  for (index_t k = 0; k < n; ++k)
    for (TypeParam pivot : {TypeParam(-1), TypeParam(0)})
      for (Uplo uplo : both_uplos) {
        SCOPED_TRACE(::testing::Message() << name(uplo) << " k=" << k << " pivot=" << pivot);
        auto A = good;
        A(k, k) = pivot;
        if (pivot == TypeParam(0)) zero_row_and_column(A, k);
        this->for_every_path([&](const CholeskyOptions& options, const std::string& path) {
          const auto result = this->factor(uplo, A, options);
          EXPECT_EQ(result.info, k + 1);
          EXPECT_LT(cholesky_ratio(A, result.F, uplo, k), threshold);
          this->expect_path(result, path);
        });
      }
}

TYPED_TEST(Cholesky, ReportsTheFailingColumnOfALargerMatrix) {
  const index_t n = 200;
  const auto good = random_spd<TypeParam>(this->random, n);
  for (index_t k : {0, 31, 32, 62, 63, 64, 65, 127, 128, 129, 198, 199})
    for (Uplo uplo : both_uplos)
      for (const char* tuning : {"", "whole=0 persistent=0 interleaved=0 nb=64 leaf=32 looking=right",
                                 "whole=0 persistent=0 interleaved=0 nb=64 leaf=32 looking=left"}) {
        SCOPED_TRACE(::testing::Message() << name(uplo) << " k=" << k << ' ' << tuning);
        auto A = good;
        A(k, k) = TypeParam(-1);
        const auto result = this->factor(uplo, A, {.tuning = tuning});
        EXPECT_EQ(result.info, k + 1);
        EXPECT_LT(cholesky_ratio(A, result.F, uplo, k), threshold);
      }
}

TYPED_TEST(Cholesky, ReportsTheFirstOfTwoFailures) {
  const index_t n = 40;
  for (auto [first, second] :
       {std::pair<index_t, index_t>{0, 1}, {0, 39}, {6, 7}, {7, 8}, {8, 15}, {15, 16}, {23, 24}, {38, 39}})
    for (Uplo uplo : both_uplos) {
      SCOPED_TRACE(::testing::Message() << name(uplo) << ' ' << first << ' ' << second);
      auto A = random_spd<TypeParam>(this->random, n);
      A(first, first) = TypeParam(-2), A(second, second) = TypeParam(nan<TypeParam>);
      this->for_every_path([&](const CholeskyOptions& options, const std::string&) {
        EXPECT_EQ(this->factor(uplo, A, options).info, first + 1);
      });
    }
}

// A NaN or an infinity at (i, j) makes the pivot of row i bad, and no pivot before it.
TYPED_TEST(Cholesky, NaNAndInfFailAtTheirRow) {
  using T = TypeParam;
  const index_t n = 20;
  const auto good = random_spd<T>(this->random, n, 1);
  for (T bad : {T(nan<T>), T(inf<T>), T(-inf<T>), make_scalar<T>(1, nan<T>), make_scalar<T>(1, inf<T>)})
    for (auto [i, j] :
         {std::pair<index_t, index_t>{0, 0}, {1, 0}, {7, 7}, {8, 7}, {8, 8}, {9, 2}, {19, 0}, {19, 19}, {12, 11}}) {
      if (std::isfinite(std::abs(bad))) continue;        // the imaginary rows of the list, for real scalars
      if (i == j && std::isfinite(real(bad))) continue;  // not read there: see below
      auto A = good;
      set_hermitian(A, i, j, bad);
      for (Uplo uplo : both_uplos) {
        SCOPED_TRACE(::testing::Message() << name(uplo) << ' ' << bad << " at " << i << ',' << j);
        this->for_every_path([&](const CholeskyOptions& options, const std::string&) {
          const auto result = this->factor(uplo, A, options);
          EXPECT_EQ(result.info, i + 1);
          EXPECT_LT(cholesky_ratio(good, result.F, uplo, i), threshold);
        });
      }
    }
}

TYPED_TEST(Cholesky, IgnoresTheImaginaryPartOfTheDiagonal) {
  using T = TypeParam;
  if constexpr (ComplexScalar<T>) {
    for (index_t n : {1, 7, 50, 130})
      for (Uplo uplo : both_uplos) {
        SCOPED_TRACE(::testing::Message() << name(uplo) << " n=" << n);
        const auto clean = random_spd<T>(this->random, n);
        auto A = clean;
        for (index_t j = 0; j < n; ++j) A(j, j) = T(A(j, j).real(), real_t<T>(j % 2 ? 3 : -500));
        this->for_every_path([&](const CholeskyOptions& options, const std::string&) {
          this->expect_right(uplo, clean, this->factor(uplo, A, options));
        });
      }
  } else {
    GTEST_SKIP() << "real";
  }
}

TYPED_TEST(Cholesky, RepeatsBitwise) {
  for (index_t n : {5, 50, 100, 300, 600}) {
    const auto A = random_spd<TypeParam>(this->random, n, 1);
    for (Uplo uplo : both_uplos)
      this->for_every_path([&](const CholeskyOptions& options, const std::string& path) {
        if (n > 100 && !path.empty()) return;  // tiny blocks are slow, and no other there
        const auto first = this->factor(uplo, A, options), second = this->factor(uplo, A, options);
        EXPECT_TRUE(same_bits(first.F, second.F)) << name(uplo) << " n=" << n << ' ' << first.path;
      });
  }
}

// LAPACK's nine types of positive definite test matrices.
TYPED_TEST(Cholesky, FactorsTheMatricesOfLapacksOwnTests) {
  using T = TypeParam;
  const double bad_condition = 0.1 / eps<T>;
  for (index_t n : {1, 2, 3, 5, 10, 50})
    for (Uplo uplo : both_uplos) {
      HostMatrix<T> diagonal(n, n);
      for (index_t j = 0; j < n; ++j) diagonal(j, j) = T(real_t<T>(this->random.uniform(0.1, 2)));
      const std::pair<const char*, HostMatrix<T>> good[] = {
          {"diagonal", diagonal},
          {"condition 2", with_eigenvalues<T>(this->random, graded(n, 2))},
          {"one eigenvalue large", with_eigenvalues<T>(this->random, one_apart(n, 1, 1 / std::sqrt(bad_condition)))},
          {"one eigenvalue small", with_eigenvalues<T>(this->random, one_apart(n, 1 / std::sqrt(bad_condition), 1))},
          {"condition sqrt(0.1/eps)", with_eigenvalues<T>(this->random, graded(n, std::sqrt(bad_condition)))},
          {"condition 0.1/eps", with_eigenvalues<T>(this->random, graded(n, bad_condition))},
          {"near underflow", with_eigenvalues<T>(this->random, graded(n, 2), tiny_scale<T>())},
          {"near overflow", with_eigenvalues<T>(this->random, graded(n, 2), huge_scale<T>())}};
      this->for_every_path([&](const CholeskyOptions& options, const std::string&) {
        for (const auto& [type, A] : good) {
          SCOPED_TRACE(::testing::Message() << type << ' ' << name(uplo) << " n=" << n);
          this->expect_right(uplo, A, this->factor(uplo, A, options));
        }
        for (index_t k : {index_t(0), n - 1, n / 2}) {
          SCOPED_TRACE(::testing::Message() << "row and column " << k << " zero " << name(uplo) << " n=" << n);
          auto A = with_eigenvalues<T>(this->random, graded(n, 2));
          zero_row_and_column(A, k);
          const auto result = this->factor(uplo, A, options);
          EXPECT_EQ(result.info, k + 1);
          EXPECT_LT(cholesky_ratio(A, result.F, uplo, k), threshold);
        }
      });
    }
}

}  // namespace
}  // namespace trifactor::test
