// cuDSS on a matrix that `trifactor bench sparse` wrote: seconds for each phase as one JSON object. Built where cuDSS is
// installed; nothing else links it.
//
//   trifactor_cudss MATRIX RUNS COLUMNS[,COLUMNS...] [THREADING_LAYER]
//
// MATRIX as trifactor_cholmod reads it. THREADING_LAYER: libcudss_mtlayer_gomp.so.1 with its path, by which cuDSS orders with
// all threads; without it, with one.
#include "peer.hpp"

#include <cuda_runtime.h>
#include <cudss.h>

#include <thread>

namespace {

using namespace peer;

void require(const char* what, cudssStatus_t status) {
  if (status != CUDSS_STATUS_SUCCESS)
    throw std::runtime_error(std::string("cuDSS: ") + what + " failed with status " + std::to_string(int(status)));
}
void require(const char* what, cudaError_t status) {
  if (status != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(status));
}

template <class T>
class OnDevice {
 public:
  explicit OnDevice(const std::vector<T>& values) {
    require("cudaMalloc", cudaMalloc(&data_, std::max<std::size_t>(1, values.size()) * sizeof(T)));
    require("cudaMemcpy", cudaMemcpy(data_, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
  }
  OnDevice(const OnDevice&) = delete;
  ~OnDevice() { cudaFree(data_); }
  T* data() const { return static_cast<T*>(data_); }
  std::vector<T> to_host(std::size_t count) const {
    std::vector<T> values(count);
    require("cudaMemcpy", cudaMemcpy(values.data(), data_, count * sizeof(T), cudaMemcpyDeviceToHost));
    return values;
  }

 private:
  void* data_ = nullptr;
};

std::size_t free_memory() {
  std::size_t available = 0, all = 0;
  require("cudaMemGetInfo", cudaMemGetInfo(&available, &all));
  return available;
}

void run(const std::string& path, int runs, const std::vector<Index>& columns, const char* threading) {
  const Matrix matrix(path);
  const std::vector<int> start32(matrix.start.begin(), matrix.start.end()), row32(matrix.row.begin(), matrix.row.end());
  const OnDevice<int> starts(start32), rows(row32);
  const OnDevice<double> values(matrix.value);
  cudssHandle_t handle;
  require("cudssCreate", cudssCreate(&handle));
  if (threading) require("cudssSetThreadingLayer", cudssSetThreadingLayer(handle, threading));
  cudssConfig_t config;
  require("cudssConfigCreate", cudssConfigCreate(&config));
  int threads = threading ? int(std::thread::hardware_concurrency()) : 1;
  require("host threads", cudssConfigSet(config, CUDSS_CONFIG_HOST_NTHREADS, &threads, sizeof threads));
  // The lower triangle by columns is the upper one by rows.
  cudssMatrix_t A;
  require("cudssMatrixCreateCsr",
          cudssMatrixCreateCsr(&A, matrix.n, matrix.n, Index(matrix.row.size()), starts.data(), nullptr, rows.data(),
                               values.data(), CUDA_R_32I, CUDA_R_32I, CUDA_R_64F, CUDSS_MTYPE_SPD, CUDSS_MVIEW_UPPER,
                               CUDSS_BASE_ZERO));
  const auto dense = [&](Index k, const OnDevice<double>& data) {
    cudssMatrix_t D;
    require("cudssMatrixCreateDn",
            cudssMatrixCreateDn(&D, matrix.n, k, matrix.n, data.data(), CUDA_R_64F, CUDSS_LAYOUT_COL_MAJOR));
    return D;
  };
  const OnDevice<double> one_side(std::vector<double>(std::size_t(matrix.n), 1)), one_solution(std::vector<double>(std::size_t(matrix.n), 0));
  const cudssMatrix_t b = dense(1, one_side), x = dense(1, one_solution);
  cudssData_t data = nullptr;
  const auto phase = [&](int which, cudssMatrix_t X, cudssMatrix_t B) {
    return seconds([&] {
      require("cudssExecute", cudssExecute(handle, which, config, data, A, X, B));
      require("cudaDeviceSynchronize", cudaDeviceSynchronize());
    });
  };
  std::vector<double> analyze, factor;
  const std::size_t before = free_memory();
  for (int k = 0; k <= std::min(runs, 3); ++k) {
    if (data) cudssDataDestroy(handle, data);
    require("cudssDataCreate", cudssDataCreate(handle, &data));
    const double analyzed = phase(CUDSS_PHASE_ANALYSIS, x, b), factored = phase(CUDSS_PHASE_FACTORIZATION, x, b);
    if (k > 0) analyze.push_back(analyzed), factor.push_back(factored);
  }
  const auto refactor = times_of(runs, [&] { return phase(CUDSS_PHASE_REFACTORIZATION, x, b); });
  std::printf("{\"n\": %lld, \"threads\": %d, ", static_cast<long long>(matrix.n), threads);
  print_phase("analyze", analyze), print_phase("factor", factor), print_phase("refactor", refactor);
  print_phase(solve_phase(1), times_of(runs, [&] { return phase(CUDSS_PHASE_SOLVE, x, b); }));
  const std::size_t used = before - std::min(before, free_memory());
  const auto solution = one_solution.to_host(std::size_t(matrix.n));
  const std::vector<double> ones(std::size_t(matrix.n), 1);
  for (const Index k : columns) {
    if (k == 1) continue;
    const std::vector<double> side(std::size_t(matrix.n * k), 1);
    const OnDevice<double> B(side), X(side);
    const cudssMatrix_t b_k = dense(k, B), x_k = dense(k, X);
    print_phase(solve_phase(k), times_of(runs, [&] { return phase(CUDSS_PHASE_SOLVE, x_k, b_k); }));
    cudssMatrixDestroy(b_k), cudssMatrixDestroy(x_k);
  }
  std::int64_t nonzeros = 0;
  std::size_t written = 0;
  require("cudssDataGet", cudssDataGet(handle, data, CUDSS_DATA_LU_NNZ, &nonzeros, sizeof nonzeros, &written));
  int version[3] = {};
  cudssGetProperty(MAJOR_VERSION, version), cudssGetProperty(MINOR_VERSION, version + 1);
  cudssGetProperty(PATCH_LEVEL, version + 2);
  std::printf("\"factor_nonzeros\": %lld, \"peak_bytes\": %zu, \"residual\": %s, \"version\": \"%d.%d.%d\"}\n",
              static_cast<long long>(nonzeros), used,
              json_number(residual_ratio(matrix, solution.data(), ones.data())).c_str(), version[0], version[1],
              version[2]);
  cudssMatrixDestroy(A), cudssMatrixDestroy(b), cudssMatrixDestroy(x);
  cudssDataDestroy(handle, data), cudssConfigDestroy(config), cudssDestroy(handle);
}

}  // namespace

int main(int count, char** arguments) {
  try {
    if (count < 4 || count > 5)
      throw std::runtime_error("usage: trifactor_cudss MATRIX RUNS COLUMNS[,COLUMNS...] [THREADING_LAYER]");
    run(arguments[1], std::max(1, std::atoi(arguments[2])), column_counts(arguments[3]), count > 4 ? arguments[4] : nullptr);
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "trifactor_cudss: %s\n", e.what());
    return 1;
  }
}
