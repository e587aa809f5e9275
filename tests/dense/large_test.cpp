// Offsets past 2^31: order 50,000 in double, 20 GB. Only under TRIFACTOR_TEST_LARGE=1, where the memory is there.
// TRIFACTOR_TEST_LARGE_ORDER makes it smaller, to try the test itself.
#include <support/device.hpp>
#include <trifactor/info.hpp>
#include <trifactor/trifactor.hpp>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <memory>

namespace trifactor::test {
namespace {

// Entry (i, j) in [-1, 1), made again wherever it is needed, so that A needs no copy.
double noise(std::uint64_t i, std::uint64_t j) {
  std::uint64_t x = (i << 32 | j) + test_seed() * 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return double(std::int64_t(x ^ x >> 31)) * 0x1p-63;
}

double available_host_bytes() {
  std::ifstream file("/proc/meminfo");
  double kilobytes = 0;
  for (std::string word; file >> word;)
    if (word == "MemAvailable:") file >> kilobytes;
  return kilobytes * 1024;
}

class Large : public ::testing::Test {
 protected:
  using Entry = double (*)(index_t i, index_t j, index_t n);

  index_t n = 50000;
  std::unique_ptr<double[]> A;  // column-major, ld = n

  void SetUp() override {
    const char* wanted = std::getenv("TRIFACTOR_TEST_LARGE");
    if (!wanted || std::string(wanted) != "1") GTEST_SKIP() << "TRIFACTOR_TEST_LARGE=1 is not set";
    if (const char* order = std::getenv("TRIFACTOR_TEST_LARGE_ORDER")) n = std::atoll(order);
    const double bytes = 8.0 * double(n) * double(n), slack = 1.15;  // scratch memory, and what others use
    const double host = available_host_bytes();
    if (host < bytes * slack)
      GTEST_SKIP() << bytes * slack / 1e9 << " GB of host memory are needed, " << host / 1e9 << " GB are free";
    if (!on_cuda()) return;
    for (const auto& device : devices())
      if (device.number == 0 && double(device.free_bytes) < bytes * slack)
        GTEST_SKIP() << bytes * slack / 1e9 << " GB of device memory are needed, " << double(device.free_bytes) / 1e9
                     << " GB are free";
  }

  void fill(Entry entry) {
    A.reset(new double[std::size_t(n) * std::size_t(n)]);
#pragma omp parallel for schedule(dynamic, 64)
    for (index_t j = 0; j < n; ++j)
      for (index_t i = 0; i < n; ++i) A[i + j * n] = entry(i, j, n);
  }
  /// y = A x with the A that fill() made, and the 1-norm of A.
  std::vector<double> times(Entry entry, const std::vector<double>& x, double& norm) const {
    std::vector<double> y(n, 0.0), sums(n, 0.0);
#pragma omp parallel
    {
      std::vector<double> mine(n, 0.0);
#pragma omp for schedule(dynamic, 64)
      for (index_t j = 0; j < n; ++j)
        for (index_t i = 0; i < n; ++i) {
          const double a = entry(i, j, n);
          mine[i] += a * x[j], sums[j] += std::abs(a);
        }
#pragma omp critical
      for (index_t i = 0; i < n; ++i) y[i] += mine[i];
    }
    norm = *std::max_element(sums.begin(), sums.end());
    return y;
  }
  /// Runs f(queue, view) on the queue under test with A in its memory, then brings A back.
  template <class F>
  void on_queue(F f) {
    Queue q = test_queue();
    MatrixView<double> host{A.get(), n, n, n};
    if (!on_cuda()) return f(q, host);
    Buffer<double> buffer(q, n * n);
    MatrixView<double> view{buffer.data(), n, n, n};
    copy(host_queue(), host, q, view);
    f(q, view);
    copy(q, view, host_queue(), host);
  }
  /// |r| / (n |A| |x| eps) in the 1-norm, for the residual r = A x - (product of factors) x of a random x.
  void expect_small(const std::vector<double>& y, const std::vector<double>& z, const std::vector<double>& x,
                    double norm) const {
    double residual = 0, size = 0;
    for (index_t i = 0; i < n; ++i) residual += std::abs(y[i] - z[i]), size += std::abs(x[i]);
    const double ratio = residual / double(n) / norm / size / eps<double>;
    std::printf("n = %lld: |A x - F x| / (n |A| |x| eps) = %.3g\n", static_cast<long long>(n), ratio);
    EXPECT_LT(ratio, 1);  // far below 30: of a wrong tile only the part that meets x is seen
    EXPECT_GT(ratio, 0);
  }
  std::vector<double> random_vector() {
    Random random;
    std::vector<double> x(n);
    for (double& v : x) v = random.uniform();
    return x;
  }
};

double spd_entry(index_t i, index_t j, index_t n) {
  return i == j ? double(n) : noise(std::uint64_t(std::max(i, j)), std::uint64_t(std::min(i, j)));
}
double general_entry(index_t i, index_t j, index_t) { return noise(std::uint64_t(i), std::uint64_t(j)); }

TEST_F(Large, CholeskyIsRightByProbing) {
  fill(spd_entry);
  int info = -7;
  on_queue([&](Queue& q, MatrixView<double> view) {
    DeviceArray<int> device_info(q, 1, -7);
    cholesky(q, Uplo::Lower, view, device_info.data());
    q.sync();
    info = device_info.download()[0];
  });
  ASSERT_EQ(info, 0);

  const auto x = random_vector();
  std::vector<double> t(n), z(n, 0.0);
#pragma omp parallel for schedule(dynamic, 64)
  for (index_t j = 0; j < n; ++j) {  // t = L^T x
    double sum = 0;
    for (index_t i = j; i < n; ++i) sum += A[i + j * n] * x[i];
    t[j] = sum;
  }
#pragma omp parallel
  {
    std::vector<double> mine(n, 0.0);
#pragma omp for schedule(dynamic, 64)
    for (index_t j = 0; j < n; ++j)  // z = L t
      for (index_t i = j; i < n; ++i) mine[i] += A[i + j * n] * t[j];
#pragma omp critical
    for (index_t i = 0; i < n; ++i) z[i] += mine[i];
  }
  for (index_t j = 0; j < n; j += 997)  // the other triangle, in places
    for (index_t i = 0; i < j; ++i) ASSERT_EQ(A[i + j * n], spd_entry(i, j, n)) << i << ',' << j;
  double norm = 0;
  const auto y = times(spd_entry, x, norm);
  expect_small(y, z, x, norm);
}

TEST_F(Large, LuIsRightByProbing) {
  fill(general_entry);
  int info = -7;
  std::vector<int> pivots;
  on_queue([&](Queue& q, MatrixView<double> view) {
    DeviceArray<int> device_info(q, 1, -7), device_pivots(q, n, -7);
    lu(q, view, device_pivots.data(), device_info.data());
    q.sync();
    info = device_info.download()[0], pivots = device_pivots.download();
  });
  ASSERT_EQ(info, 0);

  const auto x = random_vector();
  std::vector<double> t(n, 0.0), z(n, 0.0);
#pragma omp parallel
  {
    std::vector<double> mine(n, 0.0);
#pragma omp for schedule(dynamic, 64)
    for (index_t j = 0; j < n; ++j)  // t = U x
      for (index_t i = 0; i <= j; ++i) mine[i] += A[i + j * n] * x[j];
#pragma omp critical
    for (index_t i = 0; i < n; ++i) t[i] += mine[i];
#pragma omp barrier
    std::fill(mine.begin(), mine.end(), 0.0);
#pragma omp for schedule(dynamic, 64)
    for (index_t j = 0; j < n; ++j) {  // z = L t
      mine[j] += t[j];
      for (index_t i = j + 1; i < n; ++i) mine[i] += A[i + j * n] * t[j];
    }
#pragma omp critical
    for (index_t i = 0; i < n; ++i) z[i] += mine[i];
  }
  for (index_t k = n - 1; k >= 0; --k) {  // z = P^T L U x
    ASSERT_TRUE(pivots[k] > k && pivots[k] <= n);
    std::swap(z[k], z[pivots[k] - 1]);
  }
  double norm = 0;
  const auto y = times(general_entry, x, norm);
  expect_small(y, z, x, norm);
}

}  // namespace
}  // namespace trifactor::test
