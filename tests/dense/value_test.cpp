// The value forms: no queue, host matrices in and out, exceptions.
#include <support/factored.hpp>
#include <support/ratios.hpp>
#include <trifactor/trifactor.hpp>

namespace trifactor::test {
namespace {

Device test_device() { return on_cuda() ? Device::Cuda : Device::Host; }

template <class T>
Matrix<T> to_matrix(const HostMatrix<T>& A) {
  Matrix<T> B(A.rows, A.cols);
  for (index_t j = 0; j < A.cols; ++j)
    for (index_t i = 0; i < A.rows; ++i) B(i, j) = A(i, j);
  return B;
}
template <class T>
HostMatrix<T> from_vector(const std::vector<T>& x) {
  HostMatrix<T> B(index_t(x.size()), 1);
  for (index_t i = 0; i < B.rows; ++i) B(i, 0) = x[i];
  return B;
}
template <class T>
std::vector<T> to_vector(const HostMatrix<T>& B) {
  return {B.data(), B.data() + B.rows};
}

template <class T>
class Value : public DeviceTest {};
TYPED_TEST_SUITE(Value, Scalars, ScalarNames);

TYPED_TEST(Value, OptionsOfCholeskyAreFlat) {
  using T = TypeParam;
  const auto A = random_spd<T>(this->random, 40);
  const auto F =
      cholesky(A.view(), {.device = test_device(), .mode = Mode::Native, .tuning = "whole=0 nb=8", .shift_tries = 3});
  EXPECT_EQ(F.shift(), 0);
  EXPECT_EQ(cholesky(Matrix<T>(0, 0), {.device = test_device(), .shift_tries = 3}).shift(), 0);
  EXPECT_LT(cholesky_ratio(A, as_host_matrix(F.factor()), Uplo::Lower), threshold);
  EXPECT_THROW(cholesky(A.view(), {.device = test_device(), .tuning = "nb=none"}), InvalidArgument);
  EXPECT_THROW(cholesky(A.view(), {.device = test_device(), .shift_tries = -1}), InvalidArgument);
}

TYPED_TEST(Value, CholeskySaysWhatWasAddedToTheDiagonal) {
  using T = TypeParam;
  HostMatrix<T> A(20, 20);
  for (index_t j = 0; j < 20; ++j) A(j, j) = T(4);
  A(7, 7) = T(-1);  // a quarter of the largest diagonal entry
  for (Uplo uplo : both_uplos) {
    const auto tried = [&](int tries) {
      return cholesky(
          A.view(),
          {.uplo = uplo, .device = test_device(), .shift_tries = tries, .shift_first = 0.125, .shift_growth = 4});
    };
    EXPECT_THROW(tried(0), NotPositiveDefinite);
    EXPECT_THROW(tried(1), NotPositiveDefinite);
    EXPECT_EQ(tried(3).shift(), 2);
    EXPECT_NEAR(double(std::abs(tried(3).factor()(7, 7))), 1, 30 * eps<T>);
  }
}

TYPED_TEST(Value, OptionsOfLuAreFlat) {
  using T = TypeParam;
  const auto A = random_matrix<T>(this->random, 40, 40);
  const auto F = lu(A.view(), {.device = test_device(), .mode = Mode::Native, .tuning = "whole=0 nb=8"});
  EXPECT_EQ(F.singular_at(), 0);
  EXPECT_LT(inverse_ratio(A, as_host_matrix(F.inverse())), threshold);
  EXPECT_THROW(lu(A.view(), {.device = test_device(), .tuning = "nb=none"}), InvalidArgument);
}

TYPED_TEST(Value, CholeskySolvesInvertsAndShowsItsFactor) {
  using T = TypeParam;
  for (Uplo uplo : both_uplos)
    for (index_t n : {0, 1, 5, 50, 130}) {
      SCOPED_TRACE(::testing::Message() << "n=" << n << (uplo == Uplo::Lower ? " lower" : " upper"));
      const auto A = random_spd<T>(this->random, n, 2);
      const auto given = only_triangle(A, uplo);  // the other triangle is not read
      const auto F = cholesky(given.view(), {.uplo = uplo, .device = test_device()});
      EXPECT_EQ(F.uplo(), uplo);
      EXPECT_EQ(F.device(), test_device());

      const auto B = random_matrix<T>(this->random, n, 3, 1);
      EXPECT_LT(solve_ratio(Op::None, A, as_host_matrix(F.solve(B.view())), B), threshold);
      EXPECT_LT(solve_ratio(Op::None, A, as_host_matrix(F.solve(to_matrix(B))), B), threshold);
      const auto b = leading(B, n, 1);
      EXPECT_LT(solve_ratio(Op::None, A, from_vector(F.solve(to_vector(b))), b), threshold);
      EXPECT_LT(inverse_ratio(A, as_host_matrix(F.inverse())), threshold);

      const auto L = as_host_matrix(F.factor());
      EXPECT_LT(cholesky_ratio(A, L, uplo), threshold);
      double log_det = 0;
      for (index_t j = 0; j < n; ++j) {
        log_det += 2 * std::log(double(real(L(j, j))));
        for (index_t i = 0; i < n; ++i)
          if (!in_triangle(uplo, i, j)) { ASSERT_EQ(L(i, j), T(0)) << i << ',' << j; }
      }
      EXPECT_NEAR(double(F.log_det()), log_det, log_tolerance(L));
    }
}

TYPED_TEST(Value, OneLineSolves) {
  const auto A = random_spd<TypeParam>(this->random, 20);
  const auto b = random_matrix<TypeParam>(this->random, 20, 1);
  EXPECT_LT(solve_ratio(Op::None, A, from_vector(cholesky(to_matrix(A)).solve(to_vector(b))), b), threshold);
  EXPECT_LT(solve_ratio(Op::None, A, from_vector(lu(to_matrix(A)).solve(to_vector(b))), b), threshold);
}

TYPED_TEST(Value, LeavesTheGivenMatrixAlone) {
  const auto A = random_spd<TypeParam>(this->random, 30, 1);
  auto given = A;
  cholesky(given.view(), {.device = test_device()});  // a view of T passes as one of const T
  lu(given.view(), {.device = test_device()});
  EXPECT_TRUE(same_bits(given, A));
}

TYPED_TEST(Value, NotPositiveDefiniteSaysWhere) {
  for (index_t k : {0, 7, 19}) {
    auto A = random_spd<TypeParam>(this->random, 20);
    A(k, k) = TypeParam(-1);
    try {
      cholesky(to_matrix(A), {.device = test_device()});
      ADD_FAILURE() << "no exception";
    } catch (const NotPositiveDefinite& e) {
      EXPECT_EQ(e.order(), k + 1);
      EXPECT_NE(std::string(e.what()).find(std::to_string(k + 1)), std::string::npos) << e.what();
    }
  }
}

TYPED_TEST(Value, LuSolvesInvertsAndShowsItsFactors) {
  using T = TypeParam;
  for (index_t n : {0, 1, 5, 50, 130}) {
    SCOPED_TRACE(::testing::Message() << "n=" << n);
    const auto A = random_matrix<T>(this->random, n, n, 2);
    const auto F = lu(A.view(), {.device = test_device()});
    EXPECT_EQ(F.device(), test_device());
    EXPECT_EQ(F.singular_at(), 0);
    const auto B = random_matrix<T>(this->random, n, 3, 1);
    const auto b = leading(B, n, 1);
    for (Op op : {Op::None, Op::Transpose, Op::ConjTranspose}) {
      EXPECT_LT(solve_ratio(op, A, as_host_matrix(F.solve(B.view(), op)), B), threshold);
      EXPECT_LT(solve_ratio(op, A, as_host_matrix(F.solve(to_matrix(B), op)), B), threshold);
      EXPECT_LT(solve_ratio(op, A, from_vector(F.solve(to_vector(b), op)), b), threshold);
    }
    EXPECT_LT(solve_ratio(Op::None, A, as_host_matrix(F.solve(B.view())), B), threshold);
    EXPECT_LT(inverse_ratio(A, as_host_matrix(F.inverse())), threshold);
    const auto [sign, log_abs] = F.det();
    const auto LU = as_host_matrix(F.factors());
    double log_det = 0;
    for (index_t j = 0; j < n; ++j) log_det += std::log(std::abs(widen(LU(j, j))));
    EXPECT_NEAR(std::abs(widen(sign)), 1, 30 * double(n + 1) * eps<T>);
    EXPECT_NEAR(double(log_abs), log_det, log_tolerance(LU));
  }
}

TYPED_TEST(Value, LuOfAnyShapeShowsItsFactorsAndPermutation) {
  using T = TypeParam;
  for (auto [m, n] : {std::pair<index_t, index_t>{40, 15}, {15, 40}, {0, 3}, {20, 20}}) {
    SCOPED_TRACE(::testing::Message() << m << " x " << n);
    const auto A = random_matrix<T>(this->random, m, n);
    const auto F = lu(A.view(), {.device = test_device()});
    const auto p = F.row_permutation();
    ASSERT_EQ(index_t(p.size()), m);
    HostMatrix<T> PA(m, n);
    for (index_t i = 0; i < m; ++i) {
      ASSERT_TRUE(p[i] >= 0 && p[i] < m);
      for (index_t j = 0; j < n; ++j) PA(i, j) = A(p[i], j);
    }
    EXPECT_LT(lu_ratio(PA, as_host_matrix(F.factors()), {}), threshold);
    if (m != n) {
      EXPECT_THROW(F.inverse(), InvalidArgument);
      EXPECT_THROW(F.solve(random_matrix<T>(this->random, m, 1).view()), InvalidArgument);
      EXPECT_THROW(F.det(), InvalidArgument);
    }
  }
}

TYPED_TEST(Value, SingularSaysWhere) {
  using T = TypeParam;
  for (index_t k : {0, 7, 19}) {
    auto A = random_matrix<T>(this->random, 20, 20);
    for (index_t i = 0; i < 20; ++i) A(i, k) = T(0);
    const auto F = lu(A.view(), {.device = test_device()});
    EXPECT_EQ(F.singular_at(), k + 1);
    EXPECT_EQ(F.det().sign, T(0));
    EXPECT_EQ(F.det().log_abs, -inf<T>);
    for (int call = 0; call < 3; ++call) {
      try {
        if (call == 0)
          F.solve(std::vector<T>(20, T(1)));
        else if (call == 1)
          F.solve(A.view(), Op::Transpose);
        else
          F.inverse();
        ADD_FAILURE() << "no exception";
      } catch (const Singular& e) {
        EXPECT_EQ(e.row(), k + 1);
        EXPECT_NE(std::string(e.what()).find(std::to_string(k + 1)), std::string::npos) << e.what();
      }
    }
  }
}

TYPED_TEST(Value, RefusesWhatDoesNotFit) {
  const auto A = random_spd<TypeParam>(this->random, 10);
  const auto F = cholesky(A.view());
  const auto G = lu(A.view());
  const std::vector<TypeParam> b(9);
  const Matrix<TypeParam> B(11, 2);
  EXPECT_THROW(F.solve(b), InvalidArgument);
  EXPECT_THROW(F.solve(B), InvalidArgument);
  EXPECT_THROW(G.solve(b), InvalidArgument);
  EXPECT_THROW(G.solve(B), InvalidArgument);
  EXPECT_THROW(cholesky(B), InvalidArgument);
  EXPECT_THROW(cholesky(MatrixView<const TypeParam>{nullptr, 3, 3, 3}), InvalidArgument);
  EXPECT_THROW(lu(MatrixView<const TypeParam>{A.data(), 3, 3, 2}), InvalidArgument);
  EXPECT_THROW(lu(MatrixView<const TypeParam>{A.data(), -3, 3, 2}), InvalidArgument);
}

TYPED_TEST(Value, ChoosesTheDevice) {
  const auto A = random_spd<TypeParam>(this->random, 8);
  EXPECT_EQ(cholesky(A.view()).device(), Device::Host) << "a small matrix gains nothing from a GPU";
  EXPECT_EQ(lu(A.view()).device(), Device::Host);
  EXPECT_EQ(cholesky(A.view(), {.device = Device::Host}).device(), Device::Host);
  if (why_no_cuda().empty()) {
    EXPECT_EQ(cholesky(A.view(), {.device = Device::Cuda}).device(), Device::Cuda);
    EXPECT_EQ(lu(A.view(), {.device = Device::Cuda}).device(), Device::Cuda);
    const auto large = random_spd<TypeParam>(this->random, 1200);
    EXPECT_EQ(cholesky(large.view()).device(), Device::Cuda);
  } else {
    EXPECT_THROW(cholesky(A.view(), {.device = Device::Cuda}), DeviceFault);
    EXPECT_THROW(lu(A.view(), {.device = Device::Cuda}), DeviceFault);
    EXPECT_THROW(Queue::cuda(), DeviceFault);
  }
  EXPECT_THROW(Queue::cuda(1000000), DeviceFault);
}

TYPED_TEST(Value, FactorsMove) {
  const auto A = random_spd<TypeParam>(this->random, 12);
  const auto b = random_matrix<TypeParam>(this->random, 12, 1);
  auto F = cholesky(A.view(), {.device = test_device()});
  auto G = std::move(F);
  EXPECT_LT(solve_ratio(Op::None, A, from_vector(G.solve(to_vector(b))), b), threshold);
  F = cholesky(A.view(), {.device = test_device()});  // what was moved from can be used again
  F = std::move(G);
  EXPECT_LT(solve_ratio(Op::None, A, from_vector(F.solve(to_vector(b))), b), threshold);
  auto H = lu(A.view(), {.device = test_device()});
  auto K = std::move(H);
  H = std::move(K);
  EXPECT_LT(solve_ratio(Op::None, A, from_vector(H.solve(to_vector(b))), b), threshold);
}

TYPED_TEST(Value, BuffersMatricesAndQueuesMove) {
  Queue q = test_queue();
  Buffer<TypeParam> a(q, 100);
  const auto* data = a.data();
  Buffer<TypeParam> b = std::move(a);
  EXPECT_EQ(a.data(), nullptr);
  EXPECT_EQ(a.size(), 0);
  EXPECT_EQ(b.data(), data);
  b = Buffer<TypeParam>(q, 3);
  EXPECT_EQ(b.size(), 3);
  { const Buffer<TypeParam> outlived = std::move(b); }

  Matrix<TypeParam> A(4, 5);
  A(3, 4) = TypeParam(7);
  Matrix<TypeParam> B = std::move(A);
  EXPECT_EQ(B(3, 4), TypeParam(7));
  EXPECT_THROW(lu(A), InvalidArgument) << "what was moved from holds no matrix";
  A = Matrix<TypeParam>(2, 2);
  EXPECT_EQ(A(1, 1), TypeParam(0));

  Queue r = std::move(q);
  r.sync();
  q = test_queue();
  EXPECT_EQ(q.is_cuda(), on_cuda());
  EXPECT_EQ(r.device() >= 0, on_cuda());
}

TYPED_TEST(Value, MemoryOutlivesItsQueue) {
  auto q = std::make_unique<Queue>(test_queue());
  Matrix<TypeParam> A(*q, 3, 3);
  q.reset();
  const Matrix<TypeParam> B = std::move(A);
  EXPECT_NE(B.data(), nullptr);
}

TYPED_TEST(Value, MatricesAreZeroAndCopyBetweenQueues) {
  Queue q = test_queue();
  const auto A = random_matrix<TypeParam>(this->random, 13, 7, 3);
  Matrix<TypeParam> there(q, 13, 7), back(13, 7);
  copy(q, there.view(), host_queue(), back.view());
  for (index_t j = 0; j < 7; ++j)
    for (index_t i = 0; i < 13; ++i) ASSERT_EQ(back(i, j), TypeParam(0));
  copy(host_queue(), A.view(), q, there.view());  // ld differs
  copy(q, there.view(), host_queue(), back.view());
  EXPECT_TRUE(same_bits(as_host_matrix(back), leading(A, 13, 7)));
  auto framed = A;
  copy(q, there.view(), host_queue(), framed.view());
  EXPECT_TRUE(same_bits(framed, A));
  EXPECT_EQ(there.on_host(), !on_cuda());
  if (on_cuda()) {
    EXPECT_THROW(there(0, 0), InvalidArgument);
    Queue other = test_queue();
    Matrix<TypeParam> elsewhere(other, 13, 7), again(13, 7);
    copy(q, there.view(), other, elsewhere.view());
    copy(other, elsewhere.view(), host_queue(), again.view());
    EXPECT_TRUE(same_bits(as_host_matrix(again), leading(A, 13, 7)));
  }
  Matrix<TypeParam> wrong(7, 13);
  EXPECT_THROW(copy(q, there.view(), host_queue(), wrong.view()), InvalidArgument);
}

TYPED_TEST(Value, ClonesAreCopiesOfTheirOwn) {
  using T = TypeParam;
  Queue q = test_queue();
  const auto given = random_matrix<T>(this->random, 5, 3);
  Matrix<T> there(q, 5, 3), back(5, 3);
  copy(host_queue(), given.view(), q, there.view());
  const Matrix<T> twin = there.clone();
  EXPECT_EQ(twin.on_host(), there.on_host());
  EXPECT_NE(twin.data(), there.data());
  copy(host_queue(), Matrix<T>(5, 3).view(), q, there.view());  // the twin keeps its own
  copy(q, twin.view(), host_queue(), back.view());
  for (index_t j = 0; j < 3; ++j)
    for (index_t i = 0; i < 5; ++i) ASSERT_EQ(back(i, j), given(i, j));
  EXPECT_EQ(Matrix<T>().clone().rows(), 0);
  EXPECT_EQ(Matrix<T>(0, 4).clone().cols(), 4);
  Buffer<int> numbers(2);
  numbers[0] = 1, numbers[1] = 2;
  const Buffer<int> same = numbers.clone();
  numbers[1] = 3;
  EXPECT_EQ(same.size(), 2);
  EXPECT_EQ(same[0] + same[1], 3);
}

TYPED_TEST(Value, RightHandSidesMayBeListed) {
  using T = TypeParam;
  Matrix<T> A(2, 2);
  A(0, 0) = T(4), A(1, 1) = T(16);
  EXPECT_EQ(cholesky(A).solve({T(4), T(16)}), std::vector<T>(2, T(1)));
  EXPECT_EQ(lu(A).solve({T(4), T(16)}), std::vector<T>(2, T(1)));
  EXPECT_EQ(lu(A).solve({T(4), T(16)}, Op::Transpose), std::vector<T>(2, T(1)));
}

}  // namespace
}  // namespace trifactor::test
