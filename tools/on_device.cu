#include "on_device.hpp"

#include "scalars.hpp"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace program {
namespace {

using trifactor::Buffer;
using trifactor::Queue;
using trifactor::Uplo;
using Wide = Parts<double>;  // a number of any scalar: what judges a factor may round less than what made it

constexpr unsigned threads = 256;

void require(cudaError_t status, const char* what) {
  if (status != cudaSuccess) throw trifactor::DeviceFault(std::string(what) + ": " + cudaGetErrorString(status));
}

template <class R>
__device__ Wide wide(const std::complex<R>& z) {
  const R* parts = reinterpret_cast<const R*>(&z);
  return {double(parts[0]), double(parts[1])};
}
template <std::floating_point R>
__device__ Wide wide(R x) {
  return {double(x), 0};
}

template <Scalar T>
__global__ void fill_kernel(MatrixView<T> A, std::uint64_t seed) {
  const index_t i = index_t(blockIdx.x) * threads + threadIdx.x;
  for (index_t j = blockIdx.y; i < A.rows && j < A.cols; j += gridDim.y) {
    const auto entry = positive_definite_entry<T>(A.rows, i, j, seed);
    auto* to = reinterpret_cast<trifactor::real_t<T>*>(A.data + i + j * A.ld);
    to[0] = entry.re;
    if constexpr (trifactor::ComplexScalar<T>) to[1] = entry.im;
  }
}

/// The matrix itself, made again entry by entry.
template <Scalar T>
struct Given {
  index_t n;
  std::uint64_t seed;
  __device__ index_t first(index_t) const { return 0; }
  __device__ index_t last(index_t) const { return n; }
  __device__ Wide operator()(index_t i, index_t k) const {
    const auto entry = positive_definite_entry<T>(n, i, k, seed);
    return {double(entry.re), double(entry.im)};
  }
};

/// The triangle of a factor as L, or, `adjoint`, as L^H.
template <Scalar T>
struct Triangle {
  const T* data;
  index_t n, ld;
  bool upper, adjoint;  // upper: U is stored, which is L^H
  __device__ index_t first(index_t i) const { return adjoint ? i : 0; }
  __device__ index_t last(index_t i) const { return adjoint ? n : i + 1; }
  __device__ Wide operator()(index_t i, index_t k) const {
    if (upper == adjoint) return wide(data[i + k * ld]);
    const Wide z = wide(data[k + i * ld]);
    return {z.re, -z.im};
  }
};

/// y = M x, and the sums of moduli of M's rows: a row to a block, summed in the same order every time.
template <class M>
__global__ void multiply_kernel(M matrix, const Wide* x, Wide* y, double* row_sums) {
  __shared__ Wide parts[threads];
  __shared__ double moduli[threads];
  const index_t i = blockIdx.x;
  Wide sum{0, 0};
  double modulus = 0;
  for (index_t k = matrix.first(i) + threadIdx.x; k < matrix.last(i); k += threads) {
    const Wide a = matrix(i, k), b = x[k];
    sum = {sum.re + a.re * b.re - a.im * b.im, sum.im + a.re * b.im + a.im * b.re};
    modulus += sqrt(a.re * a.re + a.im * a.im);
  }
  parts[threadIdx.x] = sum, moduli[threadIdx.x] = modulus;
  for (unsigned half = threads / 2; half > 0; half /= 2) {
    __syncthreads();  // the sums of twice as many threads are there
    if (threadIdx.x >= half) continue;
    const Wide other = parts[threadIdx.x + half];
    parts[threadIdx.x].re += other.re, parts[threadIdx.x].im += other.im;
    moduli[threadIdx.x] += moduli[threadIdx.x + half];
  }
  if (threadIdx.x == 0) y[i] = parts[0], row_sums[i] = moduli[0];
}

}  // namespace

void enqueue_copy(Queue& queue, const void* from, void* to, std::size_t bytes) {
  const auto stream = static_cast<cudaStream_t>(queue.stream());
  require(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream), "cudaMemcpyAsync");
}

template <Scalar T>
void fill_positive_definite(Queue& q, MatrixView<T> A, std::uint64_t seed) {
  if (A.rows == 0) return;
  const dim3 grid(unsigned((A.rows + threads - 1) / threads), unsigned(std::min<index_t>(A.cols, 65535)));
  fill_kernel<<<grid, threads, 0, static_cast<cudaStream_t>(q.stream())>>>(A, seed);
  require(cudaGetLastError(), "a matrix on the device");
  q.sync();
}

template <Scalar T>
double cholesky_probe(Queue& q, Uplo uplo, MatrixView<T> factor, std::uint64_t seed) {
  const index_t n = factor.rows;
  if (n == 0) return 0;
  Queue host = Queue::host();
  std::vector<Wide> v(static_cast<std::size_t>(n)), Av(v.size()), LLv(v.size());
  std::vector<double> row_sums(v.size());
  double norm_A = 0, norm_v = 0, residual = 0;
  for (std::size_t j = 0; j < v.size(); ++j) {
    v[j] = {random_number(1, 2 * j), trifactor::ComplexScalar<T> ? random_number(1, 2 * j + 1) : 0};
    norm_v += std::hypot(v[j].re, v[j].im);
  }
  Buffer<Wide> x(q, n), y(q, n), z(q, n);
  Buffer<double> sums(q, n);
  trifactor::copy(host, static_cast<const Wide*>(v.data()), q, x.data(), n);
  const auto multiply = [&](const auto& matrix, const Buffer<Wide>& from, const Buffer<Wide>& to) {
    const auto stream = static_cast<cudaStream_t>(q.stream());
    multiply_kernel<<<unsigned(n), threads, 0, stream>>>(matrix, from.data(), to.data(), sums.data());
    require(cudaGetLastError(), "a product on the device");
  };
  const bool upper = uplo == Uplo::Upper;
  multiply(Triangle<T>{factor.data, n, factor.ld, upper, true}, x, y);
  multiply(Triangle<T>{factor.data, n, factor.ld, upper, false}, y, z);
  multiply(Given<T>{n, seed}, x, y);
  trifactor::copy(q, static_cast<const Wide*>(y.data()), host, Av.data(), n);
  trifactor::copy(q, static_cast<const Wide*>(z.data()), host, LLv.data(), n);
  trifactor::copy(q, static_cast<const double*>(sums.data()), host, row_sums.data(), n);
  for (std::size_t i = 0; i < v.size(); ++i) {
    norm_A = std::max(norm_A, row_sums[i]);  // of a hermitian matrix: also the largest sum of a column
    residual += std::hypot(Av[i].re - LLv[i].re, Av[i].im - LLv[i].im);
  }
  const double eps = std::numeric_limits<trifactor::real_t<T>>::epsilon() / 2;
  return residual / (double(n) * norm_A * norm_v * eps);
}

#define TRIFACTOR_ON_DEVICE(T)                                                   \
  template void fill_positive_definite<T>(Queue&, MatrixView<T>, std::uint64_t); \
  template double cholesky_probe<T>(Queue&, Uplo, MatrixView<T>, std::uint64_t);
TRIFACTOR_FOR_EACH_SCALAR(TRIFACTOR_ON_DEVICE)

}  // namespace program
