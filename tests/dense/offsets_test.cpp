// Offsets past 2^31 elements without the arithmetic of a large matrix: small matrices whose columns, or whose items,
// lie far apart. On the host the space between is address space that is never touched.
#include <support/factored.hpp>
#include <support/ratios.hpp>

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

TYPED_TEST(Offsets, BatchesOfItemsFarApart) {
  using T = TypeParam;
  const index_t n = 6, stride = 2 * far + 7;
  for (Uplo uplo : both_uplos) {
    const HostMatrix<T> A[] = {random_spd<T>(this->random, n), random_spd<T>(this->random, n)};
    const HostMatrix<T> B[] = {random_matrix<T>(this->random, n, 2), random_matrix<T>(this->random, n, 2)};
    T* data = this->space->data();
    for (int i = 0; i < 2; ++i) {
      copy(host_queue(), A[i].view(), this->q, MatrixView<T>{data + i * stride, n, n, n});
      copy(host_queue(), B[i].view(), this->q, MatrixView<T>{data + i * stride + n * n, n, 2, n});
    }
    DeviceArray<int> info(this->q, 2, garbage);
    const StridedBatch<T> L{data, n, n, n, stride, 2}, X{data + n * n, n, 2, n, stride, 2};
    cholesky(this->q, uplo, L, info.data());
    cholesky_solve(this->q, uplo, L, X, info.data());
    EXPECT_EQ(info.download(), std::vector<int>(2, 0));
    for (int i = 0; i < 2; ++i) {
      EXPECT_LT(cholesky_ratio(A[i], this->download({data + i * stride, n, n, n}), uplo), threshold) << i;
      EXPECT_LT(solve_ratio(Op::None, A[i], this->download({data + i * stride + n * n, n, 2, n}), B[i]), threshold)
          << i;
    }
  }
}

}  // namespace
}  // namespace trifactor::test
