// The kernels' host side: each enqueues one launch on a stream (a cudaStream_t) and checks it.
// Defined in batched, single and entries and instantiated once for each scalar.
#pragma once

#include <core/engine.hpp>
#include <cuda/engine/launch_graphs.hpp>

namespace trifactor::cuda {

using namespace core;

// batched/cholesky_select.cuh: windows of any order in one launch, or, where each ragged item takes the rung of its own size,
// in three to eleven, which are one graph. These take so many ints of scratch memory (0: one launch, and `list` is
// null), and flags, some 130, which must be zero and are so again afterwards. `resets`: info is decided here, not read.
// Returns the way it went.
template <class T>
index_t cholesky_list_size(const Items<T>& A, const CholeskyTuning&);
/// So many items of order n, at most, all of the device works on, several at a time. If there are more, a block takes each
/// up to `whole`; above, they go in steps, and those of a list by blocks as well. H200, us for 16 and 32 of order 2000 in
/// single: 2752 and 5435, in steps 3132 and 4346; at 1400 1190 and 2314, in steps 1893 and 2276.
template <class T>
index_t few_items(index_t n, const CholeskyTuning& tuning) {
  constexpr index_t least = is_complex<T> ? 160 : 256, large = 32;
  return n > tuning.persistent || n <= min(least, tuning.whole) ? 0 : n <= tuning.whole ? n / tuning.few : large;
}
template <class T>
struct ListRoom {
  int* list = nullptr;
  int* flags = nullptr;
  LaunchGraphs* graphs = nullptr;
  T* entries = nullptr;  // for items that the whole device works on: `sets` times persistent_entry_count
  int sets = 0;          // so many of them at a time, each with persistent_flag_count + 1 flags more, and three for all
};
template <class T>
const char* launch_cholesky(void* stream, int multiprocessors, Items<T> A, int* info, index_t first, bool resets,
                            const CholeskyTuning&, const ListRoom<T>&);

// batched/cholesky_solve.cuh: items of order up to this. A factored and B solved for, or solves with factors that exist;
// `flipped`: A = conj(L) L^T.
inline constexpr index_t cholesky_solve_limit = 64;
template <class T>
void launch_factor_and_solve(void* stream, Items<T> A, bool flipped, Items<T> B, int* info);
template <class T>
void launch_cholesky_solve(void* stream, Items<const T> L, bool flipped, Items<T> X, const int* info);

/// For traces: when a block of the persistent grid worked on what, by the device's clock in nanoseconds; begin is 0 where
/// nothing was noted. A step of the chain, or a piece, in either case square, with so many columns to its left. Blocks have the
/// number of their first ticket: that of the chain is 0.
struct Mark {
  unsigned long long begin, end;
  int block, edge, depth;
};

// single/cholesky_grid.cuh: one matrix. Wants so many entries of scratch memory, so many flags, which must be zero and are so
// again afterwards, and two multiprocessors. `band`: so many columns of squares of 2 x 2 tiles are worked off together; 0: in
// tiles. `resets`: info to 0, first. `marks` may be null.
template <class T>
index_t persistent_entry_count(index_t n);
template <class T>
index_t persistent_flag_count(index_t n);
template <class T>
index_t persistent_mark_count(index_t n);
template <class T>
void launch_persistent(void* stream, int multiprocessors, Items<T> A, int band, bool resets, int* info, index_t first,
                       T* entries, int* flags, Mark* marks);

/// Items order[bounds[0]] .. order[bounds[1] - 1], or, where there is no list, all. Up to `together` of them are worked on alike,
/// and up to `sets`, each with its room, are begun at a time.
template <class T>
struct LargeItems {
  const int *order = nullptr, *bounds = nullptr;
  T* entries;
  index_t entries_each;
  static constexpr int counters = 3;  // the next ticket, blocks that are finished, items that are worked on alike
  int* flags;                         // zero, and so again afterwards: counters + sets * (1 + flags_each)
  int flags_each, sets, together;
  // H200, double, 1, 2 and 4: 20 items of 1026 to 2048 rows 2.75, 2.43 and 2.45 ms, 40 of 1026 to 1400 3.39 and 2.67.
  static constexpr int most_together = 2;
};
/// The launch that factors them; what it refers to must stay until it is enqueued.
template <class T>
LaunchStep persistent_list_step(int multiprocessors, Items<T>& A, LargeItems<T>&, int*& info);

// batched/trsm.cuh
inline constexpr index_t trsm_kernel_limit = 64;  // order of the triangle, which is held in shared memory
template <class T>
void launch_trsm(void* stream, Shape, Operand<T> A, Items<T> B, const int* info);
// The same for batches. With pivots (data may be null), the rows of B are exchanged first: as many rows of B are solved as
// A has, and the others may be exchanged with them.
inline constexpr index_t trsm_batch_limit = 32;
template <class T>
void launch_trsm_batch(void* stream, Shape, Operand<T> A, Items<T> B, Pivots<const int> pivots, const int* info);
// B := U^-1 L^-1 P B, of the same orders
template <class T>
void launch_lu_solve(void* stream, Items<const T> LU, Pivots<const int> pivots, Items<T> B, const int* info);

// single/trsm_sweep.cuh: one strided matrix, any number of right-hand sides but meant for few; so many bytes of scratch memory.
template <class T>
index_t sweep_message_bytes(index_t n, index_t columns, bool twice);
template <class T>
void launch_sweep(void* stream, int multiprocessors, Shape, Operand<T> A, Items<T> B, bool twice, const int* info,
                  void* scratch);

// single/trsm_inverted.cuh: the inverses of the diagonal blocks of triangles, and a solve with them. The edge of a block is
// inverse_edge, or in a batch also 16 or 32.
template <class T>
inline constexpr index_t inverse_edge = sizeof(T) > 8 ? 32 : 64;
TF_HD constexpr index_t inverse_block_size(index_t edge) { return edge * (edge + 1); }  // entries, with a line for a mark
inline constexpr index_t inverted_limit = 256;  // order of the triangle, so that strips of B fit in shared memory
template <class T>
void launch_invert_blocks(void* stream, Shape, Operand<T> A, index_t edge, T* inverses, const int* info);
template <class T>
void launch_inverted(void* stream, int multiprocessors, Shape, Operand<T> A, const Inverses<T>&, Items<T> B,
                     const int* info);

// batched/gemm.cuh: C -= A B, or the lower triangle of it
template <class T>
void launch_update(void* stream, Operand<T> A, Operand<T> B, Items<T> C, bool lower_only, const int* info);

// batched/lu_registers.cuh: up to so many columns of a matrix of so many rows, a row to a thread. `resets`: info, first.
template <class T>
constexpr index_t lu_columns(index_t rows) {
  // of a row, in registers: 128 floats leave room for three blocks on a multiprocessor, 96 for four or five
  const index_t bytes = rows <= 128 ? (sizeof(T) == 4 ? 384 : 512) : rows <= 512 ? 256 : rows <= 1024 ? 128 : 0;
  return bytes / index_t(sizeof(T));
}
template <class T>
void launch_lu_rows(void* stream, Items<T> A, Pivots<int> pivots, int* info, bool resets);
// batched/lu_shared.cuh: matrices of up to 128 rows that fit in shared memory. `resets`: info, first.
template <class T>
TF_HD constexpr int lu_resident_pitch(int rows) {  // four columns of eight rows lie in different banks
  constexpr int period = 128 / int(sizeof(T)), offset = period / 4;
  const int all = ceil_div(rows, 16) * 16;
  return all + (offset + period - all % period) % period;
}
template <class T>
constexpr index_t lu_resident_bytes(index_t rows, index_t cols) {
  return lu_resident_pitch<T>(int(rows)) * (ceil_div(cols, index_t(8)) * 8) * index_t(sizeof(T));
}
/// Two of them on a multiprocessor: with one, n = 128 took 6.8 ms in f64, against 4.4 by the blocked driver.
template <class T>
constexpr bool lu_resident_fits(index_t rows, index_t cols) {
  constexpr index_t most = 108 << 10;  // bytes of a block, beside what is there anyway
  return rows <= 128 && cols <= most && lu_resident_bytes<T>(rows, cols) <= most;
}
/// Whether they are better off there than in registers: 1,000 of order 80 take 0.091 ms in f32, against 0.119, of order 96
/// 0.118 against 0.156, but of order 64 0.067 against 0.049.
template <class T>
constexpr bool lu_resident_better(index_t rows, index_t cols) {
  return sizeof(T) == 4 && min(rows, cols) > 64 && lu_resident_fits<T>(rows, cols);
}
template <class T>
void launch_lu_resident(void* stream, Items<T> A, Pivots<int> pivots, int* info, bool resets);
/// More than 64 interchanges of 32 and more columns with up to 512 rows are one permutation.
template <class T>
void launch_swap_rows(void* stream, Items<T> A, Pivots<const int> pivots, index_t n, bool backward, const int* info);

// batched/lu_trailing.cuh: A := P A with the pivots of the panel L, its first rows := L^-1 times them, and the others -= L
// times those. Real scalars, panels of up to so many columns.
inline constexpr index_t lu_beside_limit = 128;
template <class T>
void launch_lu_beside(void* stream, Items<const T> L, Pivots<const int> pivots, Items<T> A, const int* info);

// single/lu.cuh
template <class T>
void launch_lu(void* stream, Items<T> A, Pivots<int> pivots, int* info);
// A := P A or P^T A with the permutation p, through Y, which is as large as A. Two launches.
template <class T>
void launch_permute_rows(void* stream, Items<T> A, const int* p, bool backward, T* Y, const int* info);
template <class T>
void launch_lu_det(void* stream, Items<const T> LU, Pivots<const int> pivots, T* sign, Real<T>* log_abs);

// entries/entries.cuh
template <class T>
void launch_reset_info(void* stream, Items<T> A, bool square, int* info);
template <class T>
void launch_check_solve(void* stream, Items<const T> L, Items<T> X, const int* info, int* skip);
template <class T>
void launch_take_remaining(void* stream, Items<T> A, index_t k, index_t nb, int* info, const Remaining<T>& rest);
template <class T>
void launch_log_det(void* stream, Items<const T> L, Real<T>* out, const int* info);
template <class T>
void launch_set_identity(void* stream, Items<T> A, const int* info);
template <class T>
void launch_mirror_lower(void* stream, Items<T> A, const int* info);
template <class T>
void launch_column_norms(void* stream, Items<const T> A, NormOf of, double* norms);
template <class T>
void launch_keep_lower(void* stream, Items<const T> A, T* kept, double* shifts);
template <class T>
void launch_shift_failed(void* stream, Items<T> A, const T* kept, Real<T> shift, const int* info, int* retry,
                         double* shifts);
template <class T>
void launch_copy_if_failed(void* stream, Items<T> X, const int* info, T* saved, bool back);

// entries/fronts.cuh: see SparseEngineFor
template <class T>
void launch_assemble(void* stream, const Fronts&, index_t begin, index_t end, index_t rows, const T* values,
                     Real<T> shift, T* factor, T* updates);
template <class T>
void launch_add_children(void* stream, const Fronts&, index_t begin, index_t end, index_t columns, T* Z);
template <class T>
void launch_copy_parents(void* stream, const Fronts&, index_t begin, index_t end, index_t columns, T* Z);
template <class T>
void launch_take_rows(void* stream, const Fronts&, Items<const T> B, bool permute, T* Z);
template <class T>
void launch_give_rows(void* stream, const Fronts&, const T* Z, bool permute, Items<T> B);
template <class T>
void launch_front_diagonal(void* stream, const Fronts&, const T* factor, T* out);
template <class T>
void launch_residual(void* stream, const MatrixRows&, const T* values, Real<T> shift, const T* b, const T* x, T* r,
                     Real<T>* error);
template <class T>
void launch_add(void* stream, index_t n, const T* r, T* x);

// permutation.cu
/// Keeps a stream busy for this long.
void launch_pause(void* stream, int nanoseconds);
struct ArgumentCopies;  // cuda/engine/graph_cache.hpp
/// The launch that makes these copies, whose list must stay where it is until the step is enqueued.
LaunchStep copy_arguments_step(ArgumentCopies&);
void launch_take_retry(void* stream, index_t count, const int* retry, int* info);
void launch_permutation(void* stream, const int* pivots, index_t k, int* p, index_t rows);

}  // namespace trifactor::cuda
