// LU panels as in "Analysis and design techniques towards high-performance and energy-efficient dense linear solvers on
// GPUs", section 6.5: P A = L U of m x n, m >= n, by recursion over the columns, with two designs for narrow panels.
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace variants {

/// D1: three launches for each column, any height. D2: one launch for all columns, a block for each; columns to the
/// right are updated by segments of 512 rows (greedy), or when the whole column is written (lazy).
enum class Design { d1, d2_greedy, d2_lazy };

constexpr int max_leaf = 64;       // columns of a narrow panel
constexpr int max_width = 512;     // of a panel: an interchange takes two threads for each column of its left half
constexpr int d2_rows = 512 * 48;  // a block keeps a column in registers

struct CudaError : std::runtime_error {
  using std::runtime_error::runtime_error;
};
inline void require(const char* what, cudaError_t status) {
  if (status != cudaSuccess) throw CudaError(std::string(what) + ": " + cudaGetErrorString(status));
}
inline void require(const char* what, cublasStatus_t status) {
  if (status != CUBLAS_STATUS_SUCCESS) throw CudaError(std::string(what) + ": " + cublasGetStatusString(status));
}

/// A panel in device memory. Pivots are 1-based, as LAPACK's; info is the first column without a nonzero pivot, or 0.
struct Panel {
  double* A;
  int ld, m, n;
  int* pivots;   // n
  int* written;  // n: how much of a column is in global memory; D2's flags
  int* info;     // behind these, so that one memset clears all three
};

/// What a block of D2 does from one note to the next.
enum class State : int { none, start, read, idamax, wait_idamax, swap, scale_write, wait_scale_write, update, store };
const char* name_of(State state);

/// A block leaves `state` at this time. Notes of a block are in order.
struct Note {
  State state;
  unsigned long long nanoseconds;
};
/// How many notes a block of D2 leaves at most.
int notes_of_a_block(int m, int n);

/// Enqueues the factorization. leaf: columns of the narrow panels. Panels taller than d2_rows are D1's in every design.
/// Throws std::invalid_argument when the blocks of D2 cannot all run at once.
void factor(Design design, int leaf, const Panel& panel, cublasHandle_t blas, cudaStream_t stream);

/// Enqueues one launch of D2 that takes notes: notes_of_a_block of each block, cleared before. n <= max_leaf, m <=
/// d2_rows.
void factor_with_notes(Design design, const Panel& panel, Note* notes, cudaStream_t stream);

}  // namespace variants
