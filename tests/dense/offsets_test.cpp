// Offsets past 2^31 elements without the arithmetic of a large matrix: small matrices whose columns, or whose items,
// lie far apart. On the host the space between is address space that is never touched.
#include <support/batches.hpp>

#include <sys/mman.h>

namespace trifactor::test {
namespace {

constexpr index_t far = (index_t(1) << 30) + 2;  // four columns: the last begins past 2^31

/// Room for `count` entries: device memory, or a reservation of addresses.
template <class T>
class Space {
 public:
  Space(Queue& q, index_t count) : bytes_(std::size_t(count) * sizeof(T)) {
    if (on_cuda()) {
      buffer_ = Buffer<T>(q, count);
      data_ = buffer_.data();
    } else {
      void* p = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (p == MAP_FAILED) throw OutOfMemory("mmap", bytes_);
      data_ = static_cast<T*>(p);
    }
  }
  Space(const Space&) = delete;
  ~Space() {
    if (!on_cuda()) munmap(data_, bytes_);
  }
  T* data() const { return data_; }

 private:
  std::size_t bytes_;
  Buffer<T> buffer_;
  T* data_ = nullptr;
};

template <class T>
class Offsets : public DeviceTest {
 protected:
  static constexpr index_t n = 4;

  void SetUp() override {
    try {
      space = std::make_unique<Space<T>>(q, 3 * far + n);
    } catch (const OutOfMemory& e) { GTEST_SKIP() << e.bytes() << " bytes cannot be had"; }
  }
  MatrixView<T> upload(const HostMatrix<T>& A) {
    const MatrixView<T> view{space->data(), A.rows, A.cols, far};
    copy(host_queue(), A.view(), q, view);
    return view;
  }
  HostMatrix<T> download(MatrixView<T> view) {
    HostMatrix<T> A(view.rows, view.cols);
    copy(q, view, host_queue(), A.view());
    return A;
  }

  std::unique_ptr<Space<T>> space;
};
TYPED_TEST_SUITE(Offsets, Scalars, ScalarNames);

TYPED_TEST(Offsets, CholeskyOfColumnsFarApart) {
  for (Uplo uplo : both_uplos)
    for (const char* tuning : {"", "whole=0 persistent=0 interleaved=0 nb=1 leaf=1 looking=right",
                               "whole=0 persistent=0 interleaved=0 nb=3 leaf=3 looking=left"}) {
      SCOPED_TRACE(::testing::Message() << name(uplo) << ' ' << tuning);
      const auto A = random_spd<TypeParam>(this->random, this->n);
      const auto view = this->upload(A);
      DeviceArray<int> info(this->q, 1, garbage);
      cholesky(this->q, uplo, view, info.data(), {.tuning = tuning});
      EXPECT_EQ(info.download()[0], 0);
      const auto F = this->download(view);
      EXPECT_LT(cholesky_ratio(A, F, uplo), threshold);

      DeviceMatrix<TypeParam> L(this->q, F);
      const auto B = random_matrix<TypeParam>(this->random, this->n, 4);
      const auto X = this->upload(B);
      cholesky_solve(this->q, uplo, L.view(), X, info.data());
      EXPECT_LT(solve_ratio(Op::None, A, this->download(X), B), threshold);
      cholesky_inverse(this->q, uplo, L.view(), X);
      EXPECT_LT(inverse_ratio(A, this->download(X)), threshold);
    }
}

TYPED_TEST(Offsets, LuOfColumnsFarApart) {
  for (const char* tuning : {"", "whole=0 nb=1 leaf=1", "whole=0 nb=3 leaf=3"}) {
    SCOPED_TRACE(tuning);
    const auto A = random_matrix<TypeParam>(this->random, this->n, this->n);
    const auto view = this->upload(A);
    DeviceArray<int> info(this->q, 1, garbage), pivots(this->q, this->n, garbage);
    lu(this->q, view, pivots.data(), info.data(), {.tuning = tuning});
    EXPECT_EQ(info.download()[0], 0);
    const auto F = this->download(view);
    EXPECT_LT(lu_ratio(A, F, pivots.download()), threshold);

    DeviceMatrix<TypeParam> LU(this->q, F);
    const auto B = random_matrix<TypeParam>(this->random, this->n, 4);
    for (Op op : all_ops) {
      const auto X = this->upload(B);
      lu_solve(this->q, op, LU.view(), pivots.data(), X, info.data());
      EXPECT_LT(solve_ratio(op, A, this->download(X), B), threshold) << name(op);
    }
    const auto X = this->upload(B);
    lu_inverse(this->q, LU.view(), pivots.data(), X);
    EXPECT_LT(inverse_ratio(A, this->download(X)), threshold);
  }
}

/// Cholesky and LU of two items, and what is done with their factors, where item i lies at A[i] and what is solved for
/// or inverted at X[i]; `batch(place)` is a view of either pair.
template <class T, class Batch>
void expect_right_far_away(Queue& q, Random& random, Uplo uplo, index_t n, T* const (&A)[2], T* const (&X)[2],
                           index_t ld, Batch batch) {
  const auto put = [&](const HostMatrix<T>& M, T* at) {
    copy(host_queue(), M.view(), q, MatrixView<T>{at, M.rows, M.cols, ld});
  };
  const auto get = [&](T* at) {
    HostMatrix<T> M(n, n);
    copy(q, MatrixView<T>{at, n, n, ld}, host_queue(), M.view());
    return M;
  };
  const HostMatrix<T> S[] = {random_spd<T>(random, n), random_spd<T>(random, n)},
                      B[] = {random_matrix<T>(random, n, n), random_matrix<T>(random, n, n)};
  DeviceArray<int> info(q, 2, garbage), pivots(q, 2 * n, garbage);
  DeviceArray<real_t<T>> log_det(q, 2, 0);
  for (int i = 0; i < 2; ++i) put(S[i], A[i]), put(B[i], X[i]);
  cholesky(q, uplo, batch(A), info.data());
  cholesky_solve(q, uplo, batch(A), batch(X), info.data());
  cholesky_log_det(q, uplo, batch(A), log_det.data(), info.data());
  EXPECT_EQ(info.download(), std::vector<int>(2, 0));
  for (int i = 0; i < 2; ++i) {
    const auto F = get(A[i]);
    EXPECT_LT(cholesky_ratio(S[i], F, uplo), threshold) << i;
    EXPECT_LT(solve_ratio(Op::None, S[i], get(X[i]), B[i]), threshold) << i;
    EXPECT_NEAR(log_det.download()[i], log_det_of(F), log_tolerance(F)) << i;
  }
  cholesky_inverse(q, uplo, batch(A), batch(X), info.data());
  for (int i = 0; i < 2; ++i) EXPECT_LT(inverse_ratio(S[i], get(X[i])), threshold) << i;
  for (int i = 0; i < 2; ++i) put(S[i], A[i]), put(B[i], X[i]);
  cholesky_factor_solve(q, uplo, batch(A), batch(X), info.data());
  for (int i = 0; i < 2; ++i) EXPECT_LT(solve_ratio(Op::None, S[i], get(X[i]), B[i]), threshold) << i;

  for (int i = 0; i < 2; ++i) put(B[i], A[i]), put(S[i], X[i]);
  lu(q, batch(A), pivots.data(), info.data());
  lu_solve(q, Op::None, batch(A), pivots.data(), batch(X), info.data());
  const auto all = pivots.download();
  for (int i = 0; i < 2; ++i) {
    EXPECT_LT(lu_ratio(B[i], get(A[i]), {all.begin() + i * n, all.begin() + (i + 1) * n}), threshold) << i;
    EXPECT_LT(solve_ratio(Op::None, B[i], get(X[i]), S[i]), threshold) << i;
  }
}

constexpr index_t rungs[] = {6, 14, 24, 50, 100, 200, 300};  // orders, one for each way that a batch may go

TYPED_TEST(Offsets, BatchesOfItemsFarApart) {
  using T = TypeParam;
  const index_t stride = 2 * far + 7;
  T* const data = this->space->data();
  for (index_t n : rungs)
    for (Uplo uplo : both_uplos) {
      if (n > 100 && (!on_cuda() || uplo == Uplo::Upper)) continue;
      SCOPED_TRACE(::testing::Message() << name(uplo) << " n=" << n);
      T* const A[] = {data, data + stride};
      T* const X[] = {data + n * n, data + stride + n * n};
      expect_right_far_away(this->q, this->random, uplo, n, A, X, n,
                            [&](T* const(&place)[2]) { return StridedBatch<T>{place[0], n, n, n, stride, 2}; });
    }
}

TYPED_TEST(Offsets, BatchesOfColumnsFarApart) {
  using T = TypeParam;
  T* const data = this->space->data();
  for (index_t n : rungs)
    for (Uplo uplo : both_uplos) {
      if (n > 100 && (!on_cuda() || uplo == Uplo::Lower)) continue;
      SCOPED_TRACE(::testing::Message() << name(uplo) << " n=" << n);
      const index_t ld = 3 * far / n;  // the last column begins past 2^31
      T* const A[] = {data + n, data};
      T* const X[] = {data + 2 * n, data + 3 * n};
      DeviceArray<T*> starts(this->q, {A[0], A[1], X[0], X[1]});
      DeviceArray<int> sizes(this->q, 2, int(n)), lds(this->q, 2, int(ld));
      expect_right_far_away(this->q, this->random, uplo, n, A, X, ld, [&](T* const(&place)[2]) {
        T* const* at = starts.data() + (place[0] == A[0] ? 0 : 2);
        return RaggedBatch<T>{at, sizes.data(), sizes.data(), lds.data(), 2, n, n};
      });
    }
}

}  // namespace
}  // namespace trifactor::test
