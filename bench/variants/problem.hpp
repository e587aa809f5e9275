// A panel to factor on the device, and whether its factors are right.
#pragma once

#include "lu_panel.hpp"

#include <cstdint>

namespace variants {

/// The result is no LU factorization of the matrix.
struct ResultError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

template <class T>
class OnDevice {
 public:
  explicit OnDevice(std::size_t count) : count_(count) { require("cudaMalloc", cudaMalloc(&data_, count * sizeof(T))); }
  explicit OnDevice(const std::vector<T>& values) : OnDevice(values.size()) {
    require("cudaMemcpy", cudaMemcpy(data_, values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice));
  }
  OnDevice(const OnDevice&) = delete;
  ~OnDevice() { cudaFree(data_); }
  T* data() const { return data_; }
  std::size_t bytes() const { return count_ * sizeof(T); }
  std::vector<T> to_host() const {
    std::vector<T> values(count_);
    require("cudaMemcpy", cudaMemcpy(values.data(), data_, bytes(), cudaMemcpyDeviceToHost));
    return values;
  }

 private:
  T* data_ = nullptr;
  std::size_t count_;
};

/// The stream and cuBLAS, with a workspace of its own, so that calls can be captured.
struct Device {
  Device() : workspace(32 << 20) {
    require("cudaStreamCreate", cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    require("cublasCreate", cublasCreate(&blas));
    require("cublasSetStream", cublasSetStream(blas, stream));
    require("cublasSetWorkspace", cublasSetWorkspace(blas, workspace.data(), workspace.bytes()));
    cudaDeviceProp properties;
    require("cudaGetDeviceProperties", cudaGetDeviceProperties(&properties, 0));
    name = properties.name;
  }
  ~Device() { cublasDestroy(blas), cudaStreamDestroy(stream); }
  void wait() const { require("cudaStreamSynchronize", cudaStreamSynchronize(stream)); }

  OnDevice<char> workspace;
  cudaStream_t stream;
  cublasHandle_t blas;
  std::string name;
};

/// A matrix, and its copy on the device that is factored.
struct Problem {
  Problem(const Device& device, int m, int n, std::vector<double> entries)
      : device(device), m(m), n(n), A(std::move(entries)), given(A), factors(A.size()), flags(std::size_t(2 * n + 1)) {}

  Panel panel() const { return {factors.data(), m, m, n, flags.data(), flags.data() + n, flags.data() + 2 * n}; }
  void restore() const {
    require("copy",
            cudaMemcpyAsync(factors.data(), given.data(), given.bytes(), cudaMemcpyDeviceToDevice, device.stream));
  }

  const Device& device;
  int m, n;
  std::vector<double> A;
  OnDevice<double> given, factors;
  OnDevice<int> flags;  // pivots, written, info
};

std::vector<double> random_entries(int m, int n, std::uint64_t seed);

/// |P A - L U| / (m |A| eps) in the 1-norm. Throws ResultError where pivots are no pivots or L has entries above 1.
double residual_of(const Problem& p);

/// Throws ResultError where the residual is too large, or where info is not `info`.
void check_result(const Problem& p, double residual, int info = 0);

/// Pivots of plain LU on the host, 1-based: the first largest entry of a column.
std::vector<int> pivots_on_host(std::vector<double> A, int m, int n);

}  // namespace variants
