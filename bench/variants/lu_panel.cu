#include "lu_panel.hpp"

#include <cuda/device/row_exchange.cuh>
#include <cuda/device/signals.cuh>

#include <climits>

namespace variants {
namespace {

using trifactor::cuda::load_acquire;
using trifactor::cuda::row_before;
using trifactor::cuda::store_release;

constexpr int pivot_threads = 512;   // the paper's IDAMAX_TX
constexpr int update_threads = 256;  // DSCAL_GER_TX
constexpr int d2_threads = 512;      // D2_TX
constexpr unsigned whole_warp = 0xffffffffu;

// ---- The pivot of a column

/// |value| as an integer of the same order, NaN above all; among equal ones the first row is taken, as LAPACK does.
struct Candidate {
  unsigned long long magnitude = 0;
  int row = INT_MAX;

  __device__ static Candidate of(double value, int row) {
    constexpr unsigned long long nan = 0x7ff8000000000000ull;
    return {value != value ? nan : (unsigned long long)__double_as_longlong(fabs(value)), row};
  }
  __device__ void take(const Candidate& other) {
    if (other.magnitude > magnitude || (other.magnitude == magnitude && other.row < row)) *this = other;
  }
  __device__ void take_of_warp() {
    for (int offset = 16; offset > 0; offset /= 2)
      take({__shfl_down_sync(whole_warp, magnitude, offset), __shfl_down_sync(whole_warp, row, offset)});
  }
};

/// The best candidate of a block, for thread 0. `of_warps` has one place for each warp, at most 32.
__device__ Candidate best_of_block(Candidate mine, Candidate* of_warps) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  mine.take_of_warp();
  if (lane == 0) of_warps[warp] = mine;
  __syncthreads();  // the warps' candidates are there
  if (warp == 0) {
    mine = lane < warps ? of_warps[lane] : Candidate{};
    mine.take_of_warp();
  }
  return mine;
}

/// Divides what is no larger than the pivot by it. A subnormal pivot, whose reciprocal overflows, is lifted first; a
/// column without a pivot stays as it is.
struct Divide {
  double lift, reciprocal;

  __device__ explicit Divide(double pivot)
      : lift(fabs(pivot) < 0x1p-1022 ? 0x1p54 : 1), reciprocal(pivot == 0 ? 1 / lift : 1 / (pivot * lift)) {}
  __device__ double operator()(double value) const { return value * lift * reciprocal; }
};

// ---- Design D1: three launches for each column

/// pivots[0] of the column A[0:m], whose first row is row first_row of the panel. One block.
__global__ void __launch_bounds__(pivot_threads)
    d1_pivot(const double* A, int m, int first_row, int* pivots, int* info) {
  __shared__ Candidate of_warps[pivot_threads / 32];
  Candidate best;
#pragma unroll 4
  for (int i = threadIdx.x; i < m; i += pivot_threads) best.take(Candidate::of(A[i], i));
  best = best_of_block(best, of_warps);
  if (threadIdx.x == 0) {
    *pivots = first_row + best.row + 1;
    if (best.magnitude == 0) atomicCAS(info, 0, first_row + 1);
  }
}

/// Exchanges row `row` and that of the pivot, in the columns of the narrow panel A, a thread for each.
__global__ void d1_swap(double* A, int ld, int row, const int* pivot) {
  const int other = *pivot - 1;
  if (other == row) return;
  double* column = A + (long long)threadIdx.x * ld;
  const double moved = column[row];
  column[row] = column[other];
  column[other] = moved;
}

/// A[1:, 0] /= A[0, 0] and A[1:, 1:] -= A[1:, 0] A[0, 1:]; A is m x n, a thread for each row.
__global__ void __launch_bounds__(update_threads) d1_scale_update(double* A, int ld, int m, int n) {
  __shared__ double pivot_row[max_leaf];
  if (threadIdx.x < n) pivot_row[threadIdx.x] = A[(long long)threadIdx.x * ld];
  __syncthreads();  // the pivot row is there
  const int i = 1 + blockIdx.x * update_threads + threadIdx.x;
  if (i >= m) return;
  const double scaled = Divide(pivot_row[0])(A[i]);
  A[i] = scaled;
#pragma unroll 8
  for (int c = 1; c < n; ++c) A[i + (long long)c * ld] -= scaled * pivot_row[c];
}

// ---- Design D2: one launch, a block for each column

struct D2Arguments {
  double* A;  // m x gridDim.x
  int ld, m, first_row;
  int* pivots;
  int* written;
  int* info;
  Note* notes;  // or nullptr
  int notes_of_a_block;
};
using D2Kernel = void (*)(D2Arguments);

/// Thread 0 writes down when its block leaves a state.
class Notes {
 public:
  __device__ explicit Notes(const D2Arguments& to) : next_(threadIdx.x == 0 ? to.notes : nullptr) {
    if (next_) next_ += (long long)blockIdx.x * to.notes_of_a_block;
    leave(State::start);
  }
  __device__ void leave(State state) {
    if (!next_) return;
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)::"memory");
    *next_++ = {state, now};
  }

 private:
  Note* next_;
};

/// Waits until *flag >= wanted. The launch is cooperative: the block that sets the flag runs. Were this wrong, the
/// launch fails after some seconds and does not hang.
__device__ int wait_for_block(const int* flag, int wanted) {
  constexpr int max_polls = 10'000'000;
  for (int polls = 0; polls < max_polls; ++polls)
    if (const int value = load_acquire(flag); value >= wanted) return value;
  __trap();
  return 0;
}

/// Interchanges rows j and `pivot` of a column in registers; returns what row j then has. `exchanged`: two numbers in
/// shared memory, which the block may use again after its next barrier.
template <int segments>
__device__ double interchange(double (&a)[segments], int j, int pivot, double* exchanged) {
  const int t = threadIdx.x;
  const bool has_pivot = t == pivot % d2_threads;
  if (t == j) exchanged[0] = a[0];
  if (has_pivot) {
    double found = a[0];
#pragma unroll
    for (int s = 1; s < segments; ++s) found = s * d2_threads == pivot - t ? a[s] : found;
    exchanged[1] = found;
  }
  __syncthreads();  // both rows are there
  if (t == j) a[0] = exchanged[1];
  if (has_pivot && pivot != j) {
#pragma unroll
    for (int s = 0; s < segments; ++s) a[s] = s * d2_threads == pivot - t ? exchanged[0] : a[s];
  }
  return exchanged[1];
}

/// One iteration after the other of the state machine in the paper's figure 7. Row s * d2_threads + threadIdx.x of the
/// block's column is a[s]. Rows up to gridDim.x are in the first segment: gridDim.x <= max_leaf.
template <int segments, bool greedy>
__global__ void __launch_bounds__(d2_threads, 1) d2_panel(D2Arguments p) {
  static_assert(max_leaf <= d2_threads);
  __shared__ Candidate of_warps[d2_threads / 32];
  __shared__ int shared_pivot;
  __shared__ double exchanged[2];  // of this column: row j and the pivot's row before the interchange
  const int t = threadIdx.x, me = blockIdx.x, columns = gridDim.x, rows = p.m - t;  // from the thread's first one on
  double* const own = p.A + (long long)me * p.ld + t;
  Notes notes(p);
  double a[segments];
#pragma unroll
  for (int s = 0; s < segments; ++s) a[s] = s * d2_threads < rows ? own[s * d2_threads] : 0;
  notes.leave(State::read);
  for (int j = 0; j < columns; ++j) {
    double* const column = p.A + (long long)j * p.ld + t;
    if (me == j) {
      Candidate best;
#pragma unroll
      for (int s = 0; s < segments; ++s)
        if (s > 0 || t >= j) best.take(Candidate::of(a[s], s * d2_threads + t));
      best = best_of_block(best, of_warps);
      if (t == 0) {
        if (best.magnitude == 0) atomicCAS(p.info, 0, p.first_row + j + 1);
        shared_pivot = best.row;
        store_release(p.pivots + j, p.first_row + best.row + 1);
      }
    } else if (t == 0) {
      shared_pivot = wait_for_block(p.pivots + j, 1) - p.first_row - 1;
    }
    __syncthreads();  // the pivot is known
    notes.leave(me == j ? State::idamax : State::wait_idamax);
    const double top = interchange(a, j, shared_pivot, exchanged);
    notes.leave(State::swap);
    if (me < j) continue;
    if (me == j) {
      const Divide divide(top);
#pragma unroll
      for (int s = 0; s < segments; ++s) {
        if (s > 0 || t > j) a[s] = divide(a[s]);
        if (s * d2_threads < rows) __stcg(column + s * d2_threads, a[s]);
        if (greedy && s * d2_threads < p.m) {
          __syncthreads();  // all threads have written this segment
          if (t == 0) store_release(p.written + j, s + 1);
        }
      }
      if (!greedy) {
        __syncthreads();  // all threads have written the column
        if (t == 0) store_release(p.written + j, 1);
      }
      notes.leave(State::scale_write);
      continue;
    }
    if (!greedy) {
      if (t == 0) wait_for_block(p.written + j, 1);
      __syncthreads();  // column j is there
      notes.leave(State::wait_scale_write);
    }
#pragma unroll
    for (int s = 0; s < segments; ++s) {
      if (greedy && s * d2_threads < p.m) {
        if (t == 0) wait_for_block(p.written + j, s + 1);
        __syncthreads();  // segment s of column j is there
        notes.leave(State::wait_scale_write);
      }
      if ((s > 0 || t > j) && s * d2_threads < rows) a[s] -= __ldcg(column + s * d2_threads) * top;
      if (greedy && s * d2_threads < p.m) notes.leave(State::update);
    }
    if (!greedy) notes.leave(State::update);
  }
  // Nobody reads this column any more: the last pivot comes after all updates of all blocks.
#pragma unroll
  for (int s = 0; s < segments; ++s)
    if (s * d2_threads < rows) own[s * d2_threads] = a[s];
  notes.leave(State::store);
}

template <bool greedy>
D2Kernel d2_kernel(int segments) {
  if (segments <= 4) return d2_panel<4, greedy>;
  if (segments <= 8) return d2_panel<8, greedy>;
  if (segments <= 16) return d2_panel<16, greedy>;
  if (segments <= 32) return d2_panel<32, greedy>;
  return d2_panel<48, greedy>;
}

/// Launches D2 so that all blocks run at once, one on a multiprocessor: each takes more than half of its shared memory.
void launch_d2(Design design, D2Arguments arguments, int columns, cudaStream_t stream) {
  const int segments = (arguments.m + d2_threads - 1) / d2_threads;
  const D2Kernel kernel = design == Design::d2_greedy ? d2_kernel<true>(segments) : d2_kernel<false>(segments);
  int device = 0, multiprocessors = 0, shared = 0, resident = 0;
  require("cudaGetDevice", cudaGetDevice(&device));
  require("multiprocessors", cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  require("shared memory", cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device));
  shared = shared / 2 + 1024;
  require("dynamic shared memory", cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
  require("occupancy", cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, d2_threads, shared));
  if (columns > resident * multiprocessors)
    throw std::invalid_argument("D2 takes a block for each column and all of them at once: " + std::to_string(columns) +
                                " columns, but the device runs " + std::to_string(resident * multiprocessors));
  cudaLaunchAttribute cooperative;
  cooperative.id = cudaLaunchAttributeCooperative;
  cooperative.val.cooperative = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = columns;
  config.blockDim = d2_threads;
  config.dynamicSmemBytes = shared;
  config.stream = stream;
  config.attrs = &cooperative;
  config.numAttrs = 1;
  require("launch of D2", cudaLaunchKernelEx(&config, kernel, arguments));
}

// ---- Recursion over the columns

/// Makes the interchanges of rows first + i and pivots[i] - 1, i < size, in the columns of A, as one permutation: a
/// thread for each row that may change, a block for each column.
__global__ void permute_rows(double* A, int ld, int first, const int* pivots, int size) {
  extern __shared__ int partner[];
  for (int i = threadIdx.x; i < size; i += blockDim.x) partner[i] = pivots[i] - 1;
  __syncthreads();  // the interchanges are there
  double* const column = A + (long long)blockIdx.x * ld;
  const bool works = threadIdx.x < 2 * size;
  const int to = !works ? 0 : threadIdx.x < size ? first + threadIdx.x : partner[threadIdx.x - size];
  const double moved = works ? column[row_before(to, partner, first, size, false)] : 0;
  __syncthreads();                // all rows are read before one is written
  if (works) column[to] = moved;  // rows that are named twice get the same value twice
}

struct Recursion {
  Design design;
  int leaf;
  const Panel& panel;
  cublasHandle_t blas;
  cudaStream_t stream;

  double* at(int i, int j) const { return panel.A + i + (long long)j * panel.ld; }

  void permute(int first, int size, int column, int columns) const {
    const int threads = (2 * size + 31) / 32 * 32;
    permute_rows<<<columns, threads, size * sizeof(int), stream>>>(at(0, column), panel.ld, first, panel.pivots + first,
                                                                   size);
    require("launch of permute_rows", cudaGetLastError());
  }

  void factor_leaf(int first, int width) const {
    const int m = panel.m - first;
    if (design != Design::d1 && m <= d2_rows)
      return launch_d2(
          design,
          {at(first, first), panel.ld, m, first, panel.pivots + first, panel.written + first, panel.info, nullptr, 0},
          width, stream);
    for (int j = first; j < first + width; ++j) {
      const int rows = panel.m - j, below = rows - 1;
      d1_pivot<<<1, pivot_threads, 0, stream>>>(at(j, j), rows, j, panel.pivots + j, panel.info);
      d1_swap<<<1, width, 0, stream>>>(at(0, first), panel.ld, j, panel.pivots + j);
      if (below > 0)
        d1_scale_update<<<(below + update_threads - 1) / update_threads, update_threads, 0, stream>>>(
            at(j, j), panel.ld, rows, first + width - j);
    }
    require("launch of D1", cudaGetLastError());
  }

  /// Columns first to first + width, from row `first` down.
  void factor(int first, int width) const {
    if (width <= leaf) return factor_leaf(first, width);
    const int left = (width / 2 + leaf - 1) / leaf * leaf, right = width - left, next = first + left;
    const double one = 1, minus = -1;
    factor(first, left);
    permute(first, left, next, right);
    require("dtrsm",
            cublasDtrsm(blas, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, CUBLAS_DIAG_UNIT, left, right,
                        &one, at(first, first), panel.ld, at(first, next), panel.ld));  // A01 = L00^-1 A01
    if (panel.m > next)
      require("dgemm", cublasDgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, panel.m - next, right, left, &minus, at(next, first),
                                   panel.ld, at(first, next), panel.ld, &one, at(next, next),
                                   panel.ld));  // A11 -= A10 A01
    factor(next, right);
    permute(next, right, first, left);
  }
};

void clear(const Panel& panel, cudaStream_t stream) {
  require("cudaMemsetAsync", cudaMemsetAsync(panel.pivots, 0, (2 * panel.n + 1) * sizeof(int), stream));
}

}  // namespace

const char* name_of(State state) {
  constexpr const char* names[] = {"none", "start",           "read",       "idamax", "wait idamax",
                                   "swap", "scale and write", "wait scale", "update", "store"};
  return names[int(state)];
}

int notes_of_a_block(int m, int n) { return 3 + n * (3 + 2 * ((m + d2_threads - 1) / d2_threads)); }

void factor(Design design, int leaf, const Panel& panel, cublasHandle_t blas, cudaStream_t stream) {
  require("cublasSetStream", cublasSetStream(blas, stream));
  clear(panel, stream);
  Recursion{design, leaf, panel, blas, stream}.factor(0, panel.n);
}

void factor_with_notes(Design design, const Panel& panel, Note* notes, cudaStream_t stream) {
  clear(panel, stream);
  launch_d2(design,
            {panel.A, panel.ld, panel.m, 0, panel.pivots, panel.written, panel.info, notes,
             notes_of_a_block(panel.m, panel.n)},
            panel.n, stream);
}

}  // namespace variants
