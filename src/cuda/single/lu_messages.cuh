// What the threads that factor a panel by one cluster, lu_cluster.cuh, tell each other: candidates for a pivot, and
// what lies in the shared memory of a block.
#pragma once

#include <cuda/batched/lu_panel.cuh>
#include <cuda/single/row_moves.cuh>

namespace trifactor::cuda {

inline constexpr int max_cluster_blocks = 16;

/// So many threads to a block, rows to a thread, and columns. `step` of them are factored before the rest is updated
/// with these. The rest is in registers, or, so that more rows fit, in shared memory.
template <int threads_, int rows_, int width_, bool rest_in_registers_>
struct PanelShape {
  static constexpr int threads = threads_, rows = rows_, width = width_;
  static constexpr bool rest_in_registers = rest_in_registers_;
  static constexpr int step = rest_in_registers ? min(width, 8) : min(width / 2, 8);
  static constexpr int block_rows = threads * rows, rest = width - step;
  static constexpr int in_registers = rest_in_registers ? width : step;
};

/// Quotients by one pivot d: |a| <= |d|, or d is zero, and so is a.
template <class T>
struct Quotient {
  using R = Real<T>;
  T inverse;
  R scale = 1;  // of d and a, where d alone has no reciprocal
  bool scaled;

  __device__ Quotient(T d, T reciprocal_of_d)
      : inverse(reciprocal_of_d), scaled(!has_safe_reciprocal<R>(pivot_key(d).high)) {
    if (scaled) {
      constexpr R far = sizeof(R) == 8 ? R(0x1p600) : R(0x1p60f);
      asm volatile("// seldom: a branch, not predicates");
      const R size = abs1(d);
      scale = size == 0 ? R(1) : size == Limits<R>::infinity ? R(0) : size > 1 ? 1 / far : far;
      inverse = reciprocal(size == 0 || size == Limits<R>::infinity ? T(1) : d * scale);
    }
  }
  __device__ T operator()(T a) const {
    if (scaled) {
      asm volatile("// seldom: a branch, not predicates");
      a = a * scale;
    }
    return a * inverse;
  }
};

/// A candidate for the pivot, and its row in the columns of the step.
template <class T, int step>
struct alignas(16) PivotMessage {
  PivotKey key;
  int place, row;  // where interchanges have moved it, -1: no candidate; and where it lies
  T inverse;       // of the pivot, where it has one
  alignas(16) T entries[step];
};

/// The shared memory of a block.
template <class T, class S>
struct PanelMemory {
  static constexpr int warps = S::threads / 32, rest = max(S::rest, 1);
  static constexpr int slots = 3;  // sets of candidates: see ClusterPanel::chosen
  using Message = PivotMessage<T, S::step>;
  Message own[2][warps];  // of a warp, to be sent
  Message candidates[slots][32];
  alignas(16) T raw[2][S::step][rest];      // pivot rows right of the step, as they were when they were chosen
  alignas(16) T own_raw[2][S::step][rest];  // those of this block, to be sent
  alignas(16) T upper[S::step][rest];       // rows of U right of the step
  alignas(16) T factor[S::step][S::step];   // the pivot rows in the columns of the step, column by column
  unsigned long long arrived[slots], raw_arrived[2];  // barriers for candidates and raw
  RowMoves<S::width> moves;                           // where pivot rows lie, and where the rows go that they replace
  // The rest, where it is not in registers. Neighbours in a row are in different banks.
  alignas(16) T rest_columns[S::rest_in_registers ? 1 : rest][S::rest_in_registers ? 1 : S::block_rows + 1];
};

/// Barriers of the hardware that a block names by number; 0 is that of __syncthreads.
enum class NamedBarrier { candidates = 1, last_pivot_row = 2 };
template <NamedBarrier barrier, int threads>
__device__ void meet() {
  asm volatile("barrier.sync.aligned %0, %1;" ::"n"(int(barrier)), "n"(threads) : "memory");
}
template <NamedBarrier barrier, int threads>
__device__ void arrive() {
  asm volatile("barrier.arrive.aligned %0, %1;" ::"n"(int(barrier)), "n"(threads) : "memory");
}

}  // namespace trifactor::cuda
