// cuSOLVER, and cuBLAS for batches of LU and of solves for several right-hand sides, on the stream of the queue that
// they are compared with, workspace made beforehand.
#include "failure.hpp"
#include "peers.hpp"
#include "scalars.hpp"

#if TRIFACTOR_HAS_CUDA

#include <cublas_v2.h>
#include <cusolverDn.h>
#include <fmt/core.h>

#include <algorithm>
#include <dlfcn.h>

namespace program {
namespace {

// Both libraries are loaded when a benchmark first asks for them: they take some 250 MB and 70 ms.

/// A function of a library, by its name.
void* function_of(const std::string& library, const char* name) {
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* function = handle ? dlsym(handle, name) : nullptr;
  if (!function) throw trifactor::DeviceFault(fmt::format("{} cannot be loaded: {}", library, dlerror()));
  return function;
}

#define NAME_OF(f) #f
// Headers rename some functions by macros, which are expanded before the name is taken.
#define FROM_LIBRARY(library, f)                                                                   \
  ([] {                                                                                            \
    static const auto function = reinterpret_cast<decltype(&f)>(function_of(library, NAME_OF(f))); \
    return function;                                                                               \
  }())
#define CUBLAS(f) FROM_LIBRARY(fmt::format("libcublas.so.{}", CUBLAS_VER_MAJOR), f)
#define CUSOLVER(f) FROM_LIBRARY(fmt::format("libcusolver.so.{}", CUSOLVER_VER_MAJOR), f)

using trifactor::Buffer;

void require(cusolverStatus_t status, const char* call) {
  if (status != CUSOLVER_STATUS_SUCCESS)
    throw trifactor::DeviceFault(fmt::format("cuSOLVER's {} failed with status {}", call, int(status)));
}

void require(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw trifactor::DeviceFault(fmt::format("cuBLAS's {} failed with status {}", call, int(status)));
}

template <Scalar T>
constexpr cudaDataType data_type = std::same_as<T, float>                 ? CUDA_R_32F
                                   : std::same_as<T, double>              ? CUDA_R_64F
                                   : std::same_as<T, std::complex<float>> ? CUDA_C_32F
                                                                          : CUDA_C_64F;

cublasFillMode_t fill_mode(Uplo uplo) { return uplo == Uplo::Lower ? CUBLAS_FILL_MODE_LOWER : CUBLAS_FILL_MODE_UPPER; }

cusolverStatus_t potrf_batched(cusolverDnHandle_t handle, cublasFillMode_t fill, int n, float** A, int* info,
                               int count) {
  return CUSOLVER(cusolverDnSpotrfBatched)(handle, fill, n, A, n, info, count);
}
cusolverStatus_t potrf_batched(cusolverDnHandle_t handle, cublasFillMode_t fill, int n, double** A, int* info,
                               int count) {
  return CUSOLVER(cusolverDnDpotrfBatched)(handle, fill, n, A, n, info, count);
}
cusolverStatus_t potrf_batched(cusolverDnHandle_t handle, cublasFillMode_t fill, int n, std::complex<float>** A,
                               int* info, int count) {
  return CUSOLVER(cusolverDnCpotrfBatched)(handle, fill, n, reinterpret_cast<cuComplex**>(A), n, info, count);
}
cusolverStatus_t potrf_batched(cusolverDnHandle_t handle, cublasFillMode_t fill, int n, std::complex<double>** A,
                               int* info, int count) {
  return CUSOLVER(cusolverDnZpotrfBatched)(handle, fill, n, reinterpret_cast<cuDoubleComplex**>(A), n, info, count);
}

/// X := A^-1 X for one right-hand side, with the factors A
cusolverStatus_t potrs_batched(cusolverDnHandle_t handle, cublasFillMode_t fill, int n, float** A, float** X, int* info,
                               int count) {
  return CUSOLVER(cusolverDnSpotrsBatched)(handle, fill, n, 1, A, n, X, n, info, count);
}
cusolverStatus_t potrs_batched(cusolverDnHandle_t handle, cublasFillMode_t fill, int n, double** A, double** X,
                               int* info, int count) {
  return CUSOLVER(cusolverDnDpotrsBatched)(handle, fill, n, 1, A, n, X, n, info, count);
}
cusolverStatus_t potrs_batched(cusolverDnHandle_t handle, cublasFillMode_t fill, int n, std::complex<float>** A,
                               std::complex<float>** X, int* info, int count) {
  return CUSOLVER(cusolverDnCpotrsBatched)(handle, fill, n, 1, reinterpret_cast<cuComplex**>(A), n,
                                           reinterpret_cast<cuComplex**>(X), n, info, count);
}
cusolverStatus_t potrs_batched(cusolverDnHandle_t handle, cublasFillMode_t fill, int n, std::complex<double>** A,
                               std::complex<double>** X, int* info, int count) {
  return CUSOLVER(cusolverDnZpotrsBatched)(handle, fill, n, 1, reinterpret_cast<cuDoubleComplex**>(A), n,
                                           reinterpret_cast<cuDoubleComplex**>(X), n, info, count);
}

/// k interchanges of rows
cusolverStatus_t laswp(cusolverDnHandle_t handle, int n, float* A, int ld, int k, const int* pivots) {
  return CUSOLVER(cusolverDnSlaswp)(handle, n, A, ld, 1, k, pivots, 1);
}
cusolverStatus_t laswp(cusolverDnHandle_t handle, int n, double* A, int ld, int k, const int* pivots) {
  return CUSOLVER(cusolverDnDlaswp)(handle, n, A, ld, 1, k, pivots, 1);
}
cusolverStatus_t laswp(cusolverDnHandle_t handle, int n, std::complex<float>* A, int ld, int k, const int* pivots) {
  return CUSOLVER(cusolverDnClaswp)(handle, n, reinterpret_cast<cuComplex*>(A), ld, 1, k, pivots, 1);
}
cusolverStatus_t laswp(cusolverDnHandle_t handle, int n, std::complex<double>* A, int ld, int k, const int* pivots) {
  return CUSOLVER(cusolverDnZlaswp)(handle, n, reinterpret_cast<cuDoubleComplex*>(A), ld, 1, k, pivots, 1);
}

cublasStatus_t getrf_batched(cublasHandle_t handle, int n, float* const* A, int* pivots, int* info, int count) {
  return CUBLAS(cublasSgetrfBatched)(handle, n, A, n, pivots, info, count);
}
cublasStatus_t getrf_batched(cublasHandle_t handle, int n, double* const* A, int* pivots, int* info, int count) {
  return CUBLAS(cublasDgetrfBatched)(handle, n, A, n, pivots, info, count);
}
cublasStatus_t getrf_batched(cublasHandle_t handle, int n, std::complex<float>* const* A, int* pivots, int* info,
                             int count) {
  return CUBLAS(cublasCgetrfBatched)(handle, n, reinterpret_cast<cuComplex* const*>(A), n, pivots, info, count);
}
cublasStatus_t getrf_batched(cublasHandle_t handle, int n, std::complex<double>* const* A, int* pivots, int* info,
                             int count) {
  return CUBLAS(cublasZgetrfBatched)(handle, n, reinterpret_cast<cuDoubleComplex* const*>(A), n, pivots, info, count);
}

/// X := op(triangle of A)^-1 X
cublasStatus_t trsm_batched(cublasHandle_t h, cublasFillMode_t fill, cublasOperation_t op, int m, int n,
                            float* const* A, float* const* X, int count) {
  const float one = 1;
  return CUBLAS(cublasStrsmBatched)(h, CUBLAS_SIDE_LEFT, fill, op, CUBLAS_DIAG_NON_UNIT, m, n, &one, A, m, X, m, count);
}
cublasStatus_t trsm_batched(cublasHandle_t h, cublasFillMode_t fill, cublasOperation_t op, int m, int n,
                            double* const* A, double* const* X, int count) {
  const double one = 1;
  return CUBLAS(cublasDtrsmBatched)(h, CUBLAS_SIDE_LEFT, fill, op, CUBLAS_DIAG_NON_UNIT, m, n, &one, A, m, X, m, count);
}
cublasStatus_t trsm_batched(cublasHandle_t h, cublasFillMode_t fill, cublasOperation_t op, int m, int n,
                            std::complex<float>* const* A, std::complex<float>* const* X, int count) {
  const cuComplex one{1, 0};
  return CUBLAS(cublasCtrsmBatched)(h, CUBLAS_SIDE_LEFT, fill, op, CUBLAS_DIAG_NON_UNIT, m, n, &one,
                                    reinterpret_cast<cuComplex* const*>(A), m, reinterpret_cast<cuComplex* const*>(X),
                                    m, count);
}
cublasStatus_t trsm_batched(cublasHandle_t h, cublasFillMode_t fill, cublasOperation_t op, int m, int n,
                            std::complex<double>* const* A, std::complex<double>* const* X, int count) {
  const cuDoubleComplex one{1, 0};
  return CUBLAS(cublasZtrsmBatched)(h, CUBLAS_SIDE_LEFT, fill, op, CUBLAS_DIAG_NON_UNIT, m, n, &one,
                                    reinterpret_cast<cuDoubleComplex* const*>(A), m,
                                    reinterpret_cast<cuDoubleComplex* const*>(X), m, count);
}

int potri_work_size(cusolverDnHandle_t handle, cublasFillMode_t fill, int n, const float*) {
  int size = 0;
  require(CUSOLVER(cusolverDnSpotri_bufferSize)(handle, fill, n, static_cast<float*>(nullptr), n, &size),
          "potri_bufferSize");
  return size;
}
cusolverStatus_t potri(cusolverDnHandle_t handle, cublasFillMode_t fill, int n, float* A, float* work, int size,
                       int* info) {
  return CUSOLVER(cusolverDnSpotri)(handle, fill, n, A, n, work, size, info);
}
int potri_work_size(cusolverDnHandle_t handle, cublasFillMode_t fill, int n, const double*) {
  int size = 0;
  require(CUSOLVER(cusolverDnDpotri_bufferSize)(handle, fill, n, static_cast<double*>(nullptr), n, &size),
          "potri_bufferSize");
  return size;
}
cusolverStatus_t potri(cusolverDnHandle_t handle, cublasFillMode_t fill, int n, double* A, double* work, int size,
                       int* info) {
  return CUSOLVER(cusolverDnDpotri)(handle, fill, n, A, n, work, size, info);
}
int potri_work_size(cusolverDnHandle_t handle, cublasFillMode_t fill, int n, const std::complex<float>*) {
  int size = 0;
  require(CUSOLVER(cusolverDnCpotri_bufferSize)(handle, fill, n, static_cast<cuComplex*>(nullptr), n, &size),
          "potri_bufferSize");
  return size;
}
cusolverStatus_t potri(cusolverDnHandle_t handle, cublasFillMode_t fill, int n, std::complex<float>* A,
                       std::complex<float>* work, int size, int* info) {
  return CUSOLVER(cusolverDnCpotri)(handle, fill, n, reinterpret_cast<cuComplex*>(A), n,
                                    reinterpret_cast<cuComplex*>(work), size, info);
}
int potri_work_size(cusolverDnHandle_t handle, cublasFillMode_t fill, int n, const std::complex<double>*) {
  int size = 0;
  require(CUSOLVER(cusolverDnZpotri_bufferSize)(handle, fill, n, static_cast<cuDoubleComplex*>(nullptr), n, &size),
          "potri_bufferSize");
  return size;
}
cusolverStatus_t potri(cusolverDnHandle_t handle, cublasFillMode_t fill, int n, std::complex<double>* A,
                       std::complex<double>* work, int size, int* info) {
  return CUSOLVER(cusolverDnZpotri)(handle, fill, n, reinterpret_cast<cuDoubleComplex*>(A), n,
                                    reinterpret_cast<cuDoubleComplex*>(work), size, info);
}

template <Scalar T>
class CusolverPeer final : public Peer<T> {
 public:
  using typename Peer<T>::OnMatrix;
  using typename Peer<T>::OnSides;
  using typename Peer<T>::OnItems;
  using typename Peer<T>::OnItemSides;
  using typename Peer<T>::FreshItems;

  explicit CusolverPeer(Queue& queue) : queue_(queue), info_(queue, 1) {
    require(CUSOLVER(cusolverDnCreate)(&handle_), "cusolverDnCreate");
    require(CUSOLVER(cusolverDnCreateParams)(&parameters_), "cusolverDnCreateParams");
    require(CUSOLVER(cusolverDnSetStream)(handle_, static_cast<cudaStream_t>(queue.stream())), "cusolverDnSetStream");
    info_.fill_zero();
  }
  ~CusolverPeer() override {
    if (blas_) CUBLAS(cublasDestroy)(blas_);
    if (parameters_) CUSOLVER(cusolverDnDestroyParams)(parameters_);
    if (handle_) CUSOLVER(cusolverDnDestroy)(handle_);
  }

  const char* name() const override { return name_; }
  Queue& queue() override { return queue_; }

  OnMatrix cholesky(Uplo uplo, index_t n) override {
    const cublasFillMode_t fill = fill_mode(uplo);
    std::size_t device_bytes = 0, host_bytes = 0;
    require(CUSOLVER(cusolverDnXpotrf_bufferSize)(handle_, parameters_, fill, n, type, nullptr, n, type, &device_bytes,
                                                  &host_bytes),
            "Xpotrf_bufferSize");
    make_workspace(device_bytes, host_bytes);
    return [this, fill](MatrixView<T> A) {
      require(
          CUSOLVER(cusolverDnXpotrf)(handle_, parameters_, fill, A.rows, type, A.data, A.ld, type, on_device_.data(),
                                     std::size_t(on_device_.size()), on_host_.data(), on_host_.size(), info_.data()),
          "Xpotrf");
    };
  }

  OnMatrix lu(index_t m, index_t n) override {
    std::size_t device_bytes = 0, host_bytes = 0;
    require(CUSOLVER(cusolverDnXgetrf_bufferSize)(handle_, parameters_, m, n, type, nullptr, m, type, &device_bytes,
                                                  &host_bytes),
            "Xgetrf_bufferSize");
    make_workspace(device_bytes, host_bytes);
    pivots_ = Buffer<std::int64_t>(queue_, std::min(m, n));
    return [this](MatrixView<T> A) {
      require(CUSOLVER(cusolverDnXgetrf)(handle_, parameters_, A.rows, A.cols, type, A.data, A.ld, pivots_.data(), type,
                                         on_device_.data(), std::size_t(on_device_.size()), on_host_.data(),
                                         on_host_.size(), info_.data()),
              "Xgetrf");
    };
  }

  std::vector<int> last_pivots() override {
    const std::vector<std::int64_t> wide = pivots_.to_host();
    return {wide.begin(), wide.end()};
  }

  OnMatrix swap_rows(const int* pivots, index_t k) override {
    require(CUSOLVER(cusolverDnSetStream)(handle_, static_cast<cudaStream_t>(queue_.stream())), "cusolverDnSetStream");
    return [this, pivots, k](MatrixView<T> A) {
      require(laswp(handle_, int(A.cols), A.data, int(A.ld), int(k), pivots), "laswp");
    };
  }

  OnSides cholesky_solve(Uplo uplo, index_t, index_t) override {
    return [this, fill = fill_mode(uplo)](MatrixView<T> L, MatrixView<T> X) {
      require(CUSOLVER(cusolverDnXpotrs)(handle_, parameters_, fill, L.rows, X.cols, type, L.data, L.ld, type, X.data,
                                         X.ld, info_.data()),
              "Xpotrs");
    };
  }

  OnSides lu_solve(index_t, index_t) override {
    return [this](MatrixView<T> LU, MatrixView<T> X) {
      require(CUSOLVER(cusolverDnXgetrs)(handle_, parameters_, CUBLAS_OP_N, LU.rows, X.cols, type, LU.data, LU.ld,
                                         pivots_.data(), type, X.data, X.ld, info_.data()),
              "Xgetrs");
    };
  }

  OnMatrix cholesky_inverse(Uplo uplo, index_t n) override {
    const cublasFillMode_t fill = fill_mode(uplo);
    const int size = potri_work_size(handle_, fill, int(n), static_cast<const T*>(nullptr));
    make_workspace(std::size_t(size) * sizeof(T), 0);
    return [this, fill, size](MatrixView<T> L) {
      require(potri(handle_, fill, int(L.rows), L.data, reinterpret_cast<T*>(on_device_.data()), size, info_.data()),
              "potri");
    };
  }

  OnItems cholesky_batch(Uplo uplo, const std::vector<int>& sizes, const FreshItems&) override {
    const bool one_size = std::adjacent_find(sizes.begin(), sizes.end(), std::not_equal_to<>()) == sizes.end();
    if (sizes.empty() || !one_size) return {};
    info_ = Buffer<int>(queue_, index_t(sizes.size()));
    return [this, fill = fill_mode(uplo), n = sizes[0], count = int(sizes.size())](T* const* items) {
      require(potrf_batched(handle_, fill, n, const_cast<T**>(items), info_.data(), count), "potrfBatched");
    };
  }

  OnItems lu_batch(index_t n, index_t count) override {
    open_blas();
    name_ = "cublas";
    info_ = Buffer<int>(queue_, count);
    batch_pivots_ = Buffer<int>(queue_, n * count);
    return [this, n, count](T* const* items) {
      require(getrf_batched(blas_, int(n), items, batch_pivots_.data(), info_.data(), int(count)), "getrfBatched");
    };
  }

  OnItemSides cholesky_solve_batch(Uplo uplo, index_t n, index_t columns, index_t count) override {
    if (columns == 1) {
      one_info_ = Buffer<int>(queue_, 1);
      return [=, this, fill = fill_mode(uplo)](T* const* factors, T* const* X) {
        require(potrs_batched(handle_, fill, int(n), const_cast<T**>(factors), const_cast<T**>(X), one_info_.data(),
                              int(count)),
                "potrsBatched");
      };
    }
    open_blas();
    name_ = "cublas";
    const auto first = uplo == Uplo::Lower ? CUBLAS_OP_N : CUBLAS_OP_C,
               second = uplo == Uplo::Lower ? CUBLAS_OP_C : CUBLAS_OP_N;
    return [=, this, fill = fill_mode(uplo)](T* const* factors, T* const* X) {
      for (const auto op : {first, second})
        require(trsm_batched(blas_, fill, op, int(n), int(columns), factors, X, int(count)), "trsmBatched");
    };
  }

  void check() override {
    const std::vector<int> info = info_.to_host();
    for (std::size_t i = 0; i < info.size(); ++i)
      if (info[i] != 0) throw MatrixError(fmt::format("{} failed at item {} with info = {}", name_, i, info[i]));
  }

 private:
  static constexpr cudaDataType type = data_type<T>;

  void open_blas() {
    if (!blas_) require(CUBLAS(cublasCreate)(&blas_), "cublasCreate");
    require(CUBLAS(cublasSetStream)(blas_, static_cast<cudaStream_t>(queue_.stream())), "cublasSetStream");
  }

  void make_workspace(std::size_t device_bytes, std::size_t host_bytes) {
    on_device_ = Buffer<char>(queue_, index_t(device_bytes));
    on_host_.resize(host_bytes);
  }

  const char* name_ = "cusolver";
  Queue& queue_;
  Buffer<int> info_, one_info_;
  Buffer<char> on_device_;
  std::vector<char> on_host_;
  Buffer<std::int64_t> pivots_;
  Buffer<int> batch_pivots_;
  cublasHandle_t blas_ = nullptr;
  cusolverDnHandle_t handle_ = nullptr;
  cusolverDnParams_t parameters_ = nullptr;
};

}  // namespace

template <Scalar T>
std::unique_ptr<Peer<T>> make_cusolver_peer(Queue& queue) {
  return std::make_unique<CusolverPeer<T>>(queue);
}

}  // namespace program

#else

namespace program {

template <Scalar T>
std::unique_ptr<Peer<T>> make_cusolver_peer(Queue&) {
  throw InputError("--against cusolver: this program is built without CUDA");
}

}  // namespace program

#endif

namespace program {

#define TRIFACTOR_CUSOLVER_PEER(T) template std::unique_ptr<Peer<T>> make_cusolver_peer<T>(Queue&);
TRIFACTOR_FOR_EACH_SCALAR(TRIFACTOR_CUSOLVER_PEER)

}  // namespace program
