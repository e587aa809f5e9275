// Handles that release themselves, arrays in a queue's memory by the C functions, and small matrices with known
// answers.
#pragma once

#include <support/scalars.hpp>
#include <trifactor.h>

#include <cmath>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

namespace trifactor::test::c {

template <class T>
constexpr trifactor_scalar scalar = (ComplexScalar<T> ? TRIFACTOR_C32 : TRIFACTOR_F32) +
                                    (sizeof(real_t<T>) == 8 ? 1 : 0);

struct Release {
  void operator()(trifactor_queue* p) const { trifactor_queue_destroy(p); }
  void operator()(trifactor_plan* p) const { trifactor_plan_destroy(p); }
  void operator()(trifactor_lu_plan* p) const { trifactor_lu_plan_destroy(p); }
  void operator()(trifactor_dense_cholesky* p) const { trifactor_dense_cholesky_destroy(p); }
  void operator()(trifactor_dense_lu* p) const { trifactor_dense_lu_destroy(p); }
  void operator()(trifactor_sparse_cholesky* p) const { trifactor_sparse_cholesky_destroy(p); }
  void operator()(trifactor_sparse_cholesky_batch* p) const { trifactor_sparse_cholesky_batch_destroy(p); }
  void operator()(trifactor_sparse_lu* p) const { trifactor_sparse_lu_destroy(p); }
};
template <class H>
using Handle = std::unique_ptr<H, Release>;

/// Fails the test with trifactor's message unless the status is OK.
#define EXPECT_OK(call) EXPECT_EQ(TRIFACTOR_OK, call) << trifactor_last_message()
/// Expects a status, and these words in the message.
#define EXPECT_STATUS(status, words, call)                                          \
  do {                                                                              \
    EXPECT_EQ(status, call);                                                        \
    EXPECT_NE(std::string(trifactor_last_message()).find(words), std::string::npos) \
        << "the message is: " << trifactor_last_message();                          \
  } while (false)

/// What `create(&handle)` makes.
template <class H, class Create>
Handle<H> made(Create create) {
  H* handle = nullptr;
  EXPECT_OK(create(&handle));
  EXPECT_NE(handle, nullptr);
  return Handle<H>(handle);
}

inline Handle<trifactor_queue> test_queue() {
  const char* device = std::getenv("TRIFACTOR_TEST_DEVICE");
  const bool cuda = device && std::string(device) == "cuda";
  return made<trifactor_queue>([&](auto q) { return cuda ? trifactor_queue_cuda(0, q) : trifactor_queue_host(2, q); });
}

/// Values in a queue's memory.
template <class T>
class Uploaded {
 public:
  Uploaded(const Handle<trifactor_queue>& queue, const std::vector<T>& values)
      : queue_(queue.get()), size_(values.size()) {
    void* memory = nullptr;
    EXPECT_OK(trifactor_allocate(queue_, size_ * sizeof(T), &memory));
    data_ = static_cast<T*>(memory);
    EXPECT_OK(trifactor_copy_bytes(nullptr, values.data(), queue_, data_, size_ * sizeof(T)));
  }
  Uploaded(const Uploaded&) = delete;
  ~Uploaded() { trifactor_free(queue_, data_); }
  T* data() const { return data_; }
  std::vector<T> download() const {
    std::vector<T> values(size_);
    EXPECT_OK(trifactor_copy_bytes(queue_, data_, nullptr, values.data(), size_ * sizeof(T)));
    return values;
  }

 private:
  trifactor_queue* queue_;
  std::size_t size_;
  T* data_ = nullptr;
};

/// Entry (i, j) of a hermitian positive definite matrix, whose inverse and factor are of moderate size.
template <class T>
T spd_entry(index_t n, index_t i, index_t j) {
  if (i == j) return T(real_t<T>(n + 2));
  const real_t<T> re = real_t<T>((i + j) % 3) / 2, im = real_t<T>((i * j) % 2) / 4;
  return make_scalar<T>(re, i > j ? im : -im);
}
/// And of one that is not symmetric, whose large entries lie beside the diagonal: rows are exchanged in pairs.
template <class T>
T general_entry(index_t n, index_t i, index_t j) {
  const index_t large = (i ^ 1) < n ? (i ^ 1) : i;
  return make_scalar<T>(real_t<T>((2 * i + 3 * j) % 7) / 4 + real_t<T>(j == large ? 2 * n : 0),
                        real_t<T>((i + 2 * j) % 3) / 4);
}

/// n x n entries by columns.
template <class T, class Entry>
std::vector<T> filled(index_t n, Entry entry) {
  std::vector<T> A;
  for (index_t j = 0; j < n; ++j)
    for (index_t i = 0; i < n; ++i) A.push_back(entry(n, i, j));
  return A;
}
template <class T>
std::vector<T> spd(index_t n) {
  return filled<T>(n, spd_entry<T>);
}
template <class T>
std::vector<T> general(index_t n) {
  return filled<T>(n, general_entry<T>);
}

/// What solutions are: (1, 2, ..., n), and -i times that.
template <class T>
T solution(index_t i) {
  return make_scalar<T>(real_t<T>(i + 1), -real_t<T>(i));
}

/// op(A) times the solution.
template <class T>
std::vector<T> right_side(const std::vector<T>& A, index_t n, trifactor_op op = TRIFACTOR_NONE) {
  std::vector<T> b(std::size_t(n), T(0));
  for (index_t i = 0; i < n; ++i)
    for (index_t j = 0; j < n; ++j) {
      const T a = op == TRIFACTOR_NONE ? A[i + j * n] : A[j + i * n];
      b[i] += (op == TRIFACTOR_CONJ_TRANSPOSE ? conj(a) : a) * solution<T>(j);
    }
  return b;
}

template <class T>
void expect_solution(const T* x, index_t n) {
  for (index_t i = 0; i < n; ++i)
    EXPECT_LT(std::abs(x[i] - solution<T>(i)), 1000 * eps<T> * double(n)) << "row " << i << " of " << n;
}

/// X A = 1?
template <class T>
void expect_inverse(const T* X, const std::vector<T>& A, index_t n) {
  for (index_t i = 0; i < n; ++i)
    for (index_t j = 0; j < n; ++j) {
      T sum = T(i == j ? -1 : 0);
      for (index_t k = 0; k < n; ++k) sum += X[i + k * n] * A[k + j * n];
      EXPECT_LT(std::abs(sum), 1000 * eps<T>) << "entry " << i << ", " << j;
    }
}

}  // namespace trifactor::test::c
