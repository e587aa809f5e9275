// The routines of the drop-in under all four names, with integers of both sizes, by what LAPACK promises: results, the
// other triangle, pivots, info, and what is beyond a matrix's columns. ctest sets TRIFACTOR_LAPACK=host, so that they
// run here, and chunks of 8 columns.
#include <c/support.hpp>

#include <dlfcn.h>

namespace trifactor::test::c {
namespace {

template <class T>
std::string letter() {
  return std::string(ComplexScalar<T> ? (sizeof(real_t<T>) == 4 ? "c" : "z") : (sizeof(real_t<T>) == 4 ? "s" : "d"));
}

/// A function of the drop-in.
template <class... Arguments>
auto function(const std::string& name) {
  static void* const library = dlopen(TRIFACTOR_DROP_IN, RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(library, nullptr) << dlerror();
  auto* found = reinterpret_cast<void (*)(Arguments...)>(dlsym(library, name.c_str()));
  EXPECT_NE(found, nullptr) << name;
  return found;
}

constexpr index_t n = 37, ld = 41, columns = 11;

/// Matrices with rows to spare, in which nothing may be written.
template <class T>
struct Padded {
  explicit Padded(const std::vector<T>& A) : entries(ld * (index_t(A.size()) / n), T(-7)) {
    for (index_t k = 0; k < index_t(A.size()); ++k) entries[k % n + k / n * ld] = A[k];
  }
  T& operator()(index_t i, index_t j) { return entries[i + j * ld]; }
  std::vector<T> inner() const {
    std::vector<T> A;
    for (index_t k = 0; k < index_t(entries.size()); ++k) {
      if (k % ld < n)
        A.push_back(entries[k]);
      else
        EXPECT_EQ(entries[k], T(-7)) << "beyond the rows of column " << k / ld;
    }
    return A;
  }
  std::vector<T> entries;
};

/// Right-hand sides, all the same.
template <class T>
Padded<T> sides(const std::vector<T>& A, trifactor_op op = TRIFACTOR_NONE) {
  std::vector<T> B;
  const auto b = right_side(A, n, op);
  for (index_t j = 0; j < columns; ++j) B.insert(B.end(), b.begin(), b.end());
  return Padded<T>(B);
}
template <class T>
void expect_solutions(const Padded<T>& X) {
  const auto x = X.inner();
  for (index_t j = 0; j < columns; ++j) expect_solution(x.data() + j * n, n);
}

/// What Cholesky must not touch is marked, and looked at afterwards.
template <class T>
void mark_other(Padded<T>& A, bool lower) {
  for (index_t j = 0; j < n; ++j)
    for (index_t i = 0; i < n; ++i)
      if (lower ? i < j : i > j) A(i, j) = T(99);
}
template <class T>
void expect_marks(Padded<T>& A, bool lower) {
  for (index_t j = 0; j < n; ++j)
    for (index_t i = 0; i < n; ++i)
      if (lower ? i < j : i > j) {
        EXPECT_EQ(A(i, j), T(99)) << "entry " << i << ", " << j << " of the other triangle";
      }
}

template <class T, class Int>
void check_cholesky(const std::string& prefix, const std::string& suffix) {
  const Int order = n, count = columns, lead = ld;
  for (const std::string& name : {prefix + "potrf" + suffix, prefix + "potrf2" + suffix})
    for (const char* uplo : {"L", "u"}) {
      SCOPED_TRACE(name + " " + uplo);
      const bool lower = *uplo == 'L';
      const auto A = spd<T>(n);
      Int info = -5;
      Padded<T> L(A), X = sides(A), Y = sides(A), M(A);
      mark_other(L, lower), mark_other(M, lower);
      function<const char*, const Int*, T*, const Int*, Int*>(name)(uplo, &order, L.entries.data(), &lead, &info);
      EXPECT_EQ(info, 0);
      expect_marks(L, lower);
      function<const char*, const Int*, const Int*, const T*, const Int*, T*, const Int*, Int*>(
          prefix + "potrs" + suffix)(uplo, &order, &count, L.entries.data(), &lead, X.entries.data(), &lead, &info);
      EXPECT_EQ(info, 0);
      expect_solutions(X);
      function<const char*, const Int*, const Int*, T*, const Int*, T*, const Int*, Int*>(prefix + "posv" + suffix)(
          uplo, &order, &count, M.entries.data(), &lead, Y.entries.data(), &lead, &info);
      EXPECT_EQ(info, 0);
      expect_solutions(Y), expect_marks(M, lower);
      EXPECT_EQ(M.inner(), L.inner());
      function<const char*, const Int*, T*, const Int*, Int*>(prefix + "potri" + suffix)(uplo, &order, L.entries.data(),
                                                                                         &lead, &info);
      EXPECT_EQ(info, 0);
      expect_marks(L, lower);
      for (index_t j = 0; j < n; ++j)
        for (index_t i = 0; i < n; ++i)
          if (lower ? i < j : i > j) L(i, j) = conj(L(j, i));
      expect_inverse(L.inner().data(), A, n);

      Padded<T> bad(A), B = sides(A);
      bad(20, 20) = T(-1);
      const auto before = B.inner();
      function<const char*, const Int*, const Int*, T*, const Int*, T*, const Int*, Int*>(prefix + "posv" + suffix)(
          uplo, &order, &count, bad.entries.data(), &lead, B.entries.data(), &lead, &info);
      EXPECT_EQ(info, 21);
      EXPECT_EQ(B.inner(), before);
    }
}

template <class T, class Int>
void check_lu(const std::string& prefix, const std::string& suffix) {
  const Int order = n, count = columns, lead = ld, room = n;
  const auto A = general<T>(n);
  for (const std::string& name : {prefix + "getrf" + suffix, prefix + "getrf2" + suffix}) {
    SCOPED_TRACE(name);
    Int info = -5;
    std::vector<Int> pivots(n + 1, -3), others(n + 1, -3);
    Padded<T> LU(A), M(A), Y = sides(A);
    function<const Int*, const Int*, T*, const Int*, Int*, Int*>(name)(&order, &order, LU.entries.data(), &lead,
                                                                       pivots.data(), &info);
    EXPECT_EQ(info, 0);
    EXPECT_EQ(pivots[n], -3);
    for (const auto& [letter, op] :
         {std::pair{"N", TRIFACTOR_NONE}, {"T", TRIFACTOR_TRANSPOSE}, {"c", TRIFACTOR_CONJ_TRANSPOSE}}) {
      Padded<T> X = sides(A, op);
      function<const char*, const Int*, const Int*, const T*, const Int*, const Int*, T*, const Int*, Int*>(
          prefix + "getrs" + suffix)(letter, &order, &count, LU.entries.data(), &lead, pivots.data(), X.entries.data(),
                                     &lead, &info);
      EXPECT_EQ(info, 0);
      expect_solutions(X);
    }
    function<const Int*, const Int*, T*, const Int*, Int*, T*, const Int*, Int*>(prefix + "gesv" + suffix)(
        &order, &count, M.entries.data(), &lead, others.data(), Y.entries.data(), &lead, &info);
    EXPECT_EQ(info, 0);
    expect_solutions(Y);
    EXPECT_EQ(M.inner(), LU.inner());
    EXPECT_EQ(pivots, others);
    std::vector<T> work(n);
    function<const Int*, T*, const Int*, const Int*, T*, const Int*, Int*>(prefix + "getri" + suffix)(
        &order, LU.entries.data(), &lead, pivots.data(), work.data(), &room, &info);
    EXPECT_EQ(info, 0);
    EXPECT_GE(real(work[0]), n);
    expect_inverse(LU.inner().data(), A, n);

    Padded<T> singular(std::vector<T>(n * n, T(1))), B = sides(A);
    const auto before = B.inner();
    function<const Int*, const Int*, T*, const Int*, Int*, T*, const Int*, Int*>(prefix + "gesv" + suffix)(
        &order, &count, singular.entries.data(), &lead, others.data(), B.entries.data(), &lead, &info);
    EXPECT_EQ(info, 2);
    EXPECT_EQ(B.inner(), before);
    const Int wide = 7;  // of 37 x 7, transposed in spirit: as many pivots as columns
    std::fill(pivots.begin(), pivots.end(), -3);
    Padded<T> tall(A);
    function<const Int*, const Int*, T*, const Int*, Int*, Int*>(name)(&order, &wide, tall.entries.data(), &lead,
                                                                       pivots.data(), &info);
    EXPECT_EQ(info, 0);
    EXPECT_GT(pivots[6], 0);
    EXPECT_EQ(pivots[7], -3);
    const auto tall_inner = tall.inner();
    EXPECT_TRUE(std::equal(tall_inner.begin() + 7 * n, tall_inner.end(), A.begin() + 7 * n));
  }
}

template <class T>
struct LapackRoutines : ::testing::Test {};
TYPED_TEST_SUITE(LapackRoutines, AllScalars, ScalarNames);

TYPED_TEST(LapackRoutines, OfCholesky) {
  for (const std::string prefix : {"", "scipy_"}) {
    check_cholesky<TypeParam, int>(prefix + letter<TypeParam>(), "_");
    check_cholesky<TypeParam, std::int64_t>(prefix + letter<TypeParam>(), "_64_");
  }
}
TYPED_TEST(LapackRoutines, OfLu) {
  for (const std::string prefix : {"", "scipy_"}) {
    check_lu<TypeParam, int>(prefix + letter<TypeParam>(), "_");
    check_lu<TypeParam, std::int64_t>(prefix + letter<TypeParam>(), "_64_");
  }
}

}  // namespace
}  // namespace trifactor::test::c
