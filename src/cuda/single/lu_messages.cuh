// What the threads that factor a panel in one launch, lu_team.cuh, tell each other: candidates for a pivot, and what
// lies in the shared memory of a block, or in global memory for blocks of a whole grid.
#pragma once

#include <cuda/batched/lu_panel.cuh>
#include <cuda/single/row_moves.cuh>

namespace trifactor::cuda {

inline constexpr int max_cluster_blocks = 16, max_grid_blocks = 160;

/// Who factors a panel: one block, a cluster, or all multiprocessors with a block each.
enum class PanelTeam { block, cluster, grid };

/// So many threads with rows to a block, rows to a thread, and columns. `step` of them are factored before the rest is
/// updated with these. The rest is in registers, or, so that more rows fit, in shared memory.
template <int threads_, int rows_, int width_, bool rest_in_registers_, PanelTeam team>
struct LuPanelShape {
  static constexpr int threads = threads_, rows = rows_, width = width_;
  static constexpr bool rest_in_registers = rest_in_registers_;
  static constexpr bool one_block = team == PanelTeam::block, is_grid = team == PanelTeam::grid;
  static constexpr int step = min(width / 2, 8);
  static constexpr int block_rows = threads * rows, rest = width - step;
  static constexpr int in_registers = rest_in_registers ? width : step;
  /// A clerk is a warp without rows that speaks for its block. Eight warps with rows take all registers.
  static constexpr bool has_clerk = !rest_in_registers;
  static constexpr int all_threads = threads + (has_clerk ? 32 : 0), row_warps = threads / 32;
};

/// Quotients by one pivot d: |a| <= |d|, or d is zero, and so is a.
template <class T>
struct Quotient {
  using R = Real<T>;
  T inverse;
  R scale = 1;  // of d and a, where d alone has no reciprocal
  bool scaled;

  __device__ Quotient(T d, T reciprocal_of_d, unsigned high_word_of_key)
      : inverse(reciprocal_of_d), scaled(!has_safe_reciprocal<R>(high_word_of_key)) {
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

/// A candidate for the pivot.
struct alignas(16) PivotCandidate {
  PivotKey key;
  int place, row;  // where interchanges have moved it, -1: no candidate; and where it lies
};
inline constexpr PivotCandidate no_candidate{{0, 0}, -1, 0};

/// Whether one candidate is better than another; those that are none have a key of 0 and a negative place.
__device__ inline bool beats(PivotKey a, int place_a, PivotKey b, int place_b) {
  const bool equal = (a.high == b.high) & (a.low == b.low);
  return (a.high > b.high) | ((a.high == b.high) & (a.low > b.low)) | (equal & (unsigned(place_a) < unsigned(place_b)));
}
/// The lane of the best candidate as a mask of one bit, 0 if there is none.
template <bool two_words>
__device__ unsigned best_lane_mask(PivotCandidate mine) {
  using Warp = LaneGroup<32>;
  const unsigned tied = __ballot_sync(~0u, mine.key.high == Warp::largest(mine.key.high));
  if ((tied & (tied - 1)) == 0) return tied;
  return Warp::best_of_tied<two_words>(tied & __ballot_sync(~0u, mine.place >= 0), mine.key, mine.place);
}

/// The upper bits of a key's high word, and below them the number of its row or sender. The largest of such tags is
/// that of the largest key, unless several have its upper bits: then keys decide.
template <int number_bits>
__device__ unsigned pivot_tag(unsigned high_word_of_key, int number) {
  return (high_word_of_key << 1 & ~0u << number_bits) | unsigned(number);
}
template <int number_bits>
__device__ bool same_upper_bits(unsigned a, unsigned b) {
  return (a ^ b) >> number_bits == 0;
}
template <class R>
__device__ bool tag_has_safe_reciprocal(unsigned tag) {
  return has_safe_reciprocal<R>(tag >> 1);
}

/// A candidate with its row, from the column of the pivot to the last one of the step.
template <class T, int step>
struct alignas(32) PivotMessage {
  static constexpr int together = vector_of<T>, size = (1 + step + together - 1) / together * together;
  static constexpr int words = 1 + size / together;  // of 16 bytes
  unsigned tag;                                      // of its key; its number is zero
  int place, row;                                    // as in PivotCandidate
  int holder;                                        // the warp of the cluster that has the row
  T values[size];                                    // the reciprocal of the pivot, where it has one, and the row
};
/// A message in registers.
template <class T, int step>
struct PivotWords {
  using Message = PivotMessage<T, step>;
  ulonglong2 word[Message::words];
  __device__ Message& message() { return reinterpret_cast<Message&>(word); }
};

/// The shared memory of a block.
template <class T, class S>
struct PanelMemory {
  using Message = PivotMessage<T, S::step>;
  // Candidates of the warps of the only block, a set for each column of a step; of all blocks of a cluster, two sets in
  // turn; or the best of a grid.
  static constexpr int sets = S::one_block ? S::step : 2;
  static constexpr int senders = S::one_block ? S::row_warps : S::is_grid ? 1 : max_cluster_blocks;
  Message candidates[sets][senders];
  Message own[S::one_block ? 1 : S::row_warps];      // of a warp, to be sent
  alignas(16) T raw[2][S::step][S::step + S::rest];  // pivot rows when they were chosen: L of the step, and right of it
  alignas(16) T own_raw[S::one_block ? 1 : S::step][S::step + S::rest];  // those of this block, to be sent
  alignas(16) T upper[S::step][S::rest];                                 // rows of U right of the step
  T lower[S::step][S::block_rows];                                       // L of the step
  unsigned long long arrived[2], raw_arrived[2];                         // barriers for candidates and raw
  RowMoves<S::width> moves;  // where pivot rows lie, and where the rows go that they replace
  // The rest, where it is not in registers. Neighbours in a row are in different banks.
  alignas(16) T rest_columns[S::rest_in_registers ? 1 : S::rest][S::rest_in_registers ? 1 : S::block_rows + 1];
};

/// The same in global memory, for blocks of a grid: zeros before and after a launch.
template <class T, class S>
struct GridMemory {
  // A word has four bytes of a message and above them the number of the column, from 1 on, so that it tells itself
  // whether it is there: no word waits for another.
  using Word = unsigned long long;
  static constexpr int words = int(sizeof(PivotMessage<T, S::step>) / 4);
  Word candidates[2][max_grid_blocks][words];
  Word tags[2][max_grid_blocks];  // of candidates
  alignas(16) T raw[2][S::step][S::step + S::rest];
  int raw_columns[2][S::step];  // of rows that are there, from 1 on
  int arrived, left;            // blocks, in the end
  int rows_to[S::width];        // as RowMoves::to
};

}  // namespace trifactor::cuda
