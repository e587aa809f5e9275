// The host side of the kernels in src/cuda/batched: each call enqueues its launches on a stream (a cudaStream_t) and
// checks them. Instantiated once for each scalar.
#pragma once

#include <core/engine.hpp>

namespace trifactor::cuda {

using namespace core;

// batched/cholesky_select.cuh: windows of any order in one launch, or, where each ragged item takes the kernel of its
// own size, in three to eleven that overlap. These take so many ints of scratch memory (0: one launch, and `list` is
// null), and flags, some 130, which must be zero and are so again afterwards. `resets`: info is decided here, not read,
// as it always is with a list, whose items are whole matrices. Returns the way it went.
template <class T>
index_t cholesky_list_size(const Items<T>& A, const CholeskyTuning&);
/// Largest batch of order n that gets whole-device scheduling, several items at a time. In larger ones each item up to
/// `whole` gets a block, and larger items go in steps, or in a list by blocks as well.
/// H200, single, order 2000: 16 items 2752 us, in steps 3132; 32 items 5435, in steps 4346.
template <class T>
index_t whole_device_limit(index_t n, const CholeskyTuning& tuning) {
  constexpr index_t min_order = is_complex<T> ? 160 : 256, limit_above_whole = 32;
  return n > tuning.persistent || n <= min(min_order, tuning.whole) ? 0
         : n <= tuning.whole                                        ? n / tuning.order_per_item
                                                                    : limit_above_whole;
}
template <class T>
struct ListRoom {
  int* list = nullptr;
  int* flags = nullptr;
  T* entries = nullptr;  // for items that the whole device works on: `sets` times persistent_entry_count
  int sets = 0;          // so many of them at a time, each with persistent_flag_count + 1 flags more, and three for all
};
template <class T>
const char* launch_cholesky(void* stream, int multiprocessors, Items<T> A, int* info, index_t first, bool resets,
                            const CholeskyTuning&, const ListRoom<T>&);

// batched/trsm.cuh
inline constexpr index_t trsm_kernel_limit = 32;  // order of the triangle, which is held in shared memory
// With pivots (data may be null), B lies by columns, and its rows are exchanged first: as many rows of B are solved as
// A has, and the others may be exchanged with them.
template <class T>
void launch_trsm(void* stream, Shape, Operand<T> A, Items<T> B, Pivots<const int> pivots, const int* info);
// The order up to which a batch is solved in strips of right-hand sides, in one launch. Where strips are few, launches
// would take longer than the work: up to what fits in shared memory. So it is with narrow strips: a multiprocessor holds
// several. Where wide ones are many, products between are better from some order on. H200, both triangles, us with this
// limit, and with others: double, 30 items of order 200 with 200 right-hand sides 106 (32: 248), 1000 of order 300 607
// (512: 1074); one right-hand side, 1000 items of order 400, double 627 (160: 855), complex double 2205 (400: 2491), complex
// single 934 (256: 1532); 100 of them, 1000 items of order 200, complex double 3997 (256: 4966).
inline constexpr index_t trsm_narrow_strip = 8;
template <class T>
constexpr index_t trsm_strip_limit(index_t order, index_t columns, index_t count) {
  constexpr index_t few = 32000000, fits = sizeof(T) == 16 ? 256 : 512, two_each = 264;  // strips to a multiprocessor
  const index_t strips = ceil_div(columns, index_t(32)) * count;
  if (columns <= trsm_narrow_strip) return fits;
  if (is_complex<T>) return sizeof(T) == 8 || strips <= two_each ? 256 : 96;
  return order <= fits && strips <= few / (order * order + 1) ? fits : 160;
}
template <class T>
void launch_trsm_strips(void* stream, Shape, Operand<T> A, Items<T> B, const int* info);
// B := U^-1 L^-1 P B, of the same orders
template <class T>
void launch_lu_solve(void* stream, Items<const T> LU, Pivots<const int> pivots, Items<T> B, const int* info);

// batched/gemm.cuh: C -= A B, or the lower triangle of it
template <class T>
void launch_update(void* stream, Operand<T> A, Operand<T> B, Items<T> C, bool lower_only, const int* info);

// batched/lu_registers.cuh: up to so many columns of a matrix of so many rows, a row to a thread. `resets`: info,
// first.
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
/// Two on a multiprocessor: with one, n = 128 in f64 takes 6.8 ms, by the blocked driver 4.4 (H200).
template <class T>
constexpr bool lu_resident_fits(index_t rows, index_t cols) {
  constexpr index_t max_bytes = 108 << 10;  // of dynamic shared memory
  return rows <= 128 && cols <= max_bytes && lu_resident_bytes<T>(rows, cols) <= max_bytes;
}
/// Whether shared memory is faster than registers. H200, f32, 1,000 items: 0.091 and 0.119 ms at order 80, but 0.067
/// and 0.049 at 64.
template <class T>
constexpr bool lu_resident_better(index_t rows, index_t cols) {
  return sizeof(T) == 4 && min(rows, cols) > 64 && lu_resident_fits<T>(rows, cols);
}
template <class T>
void launch_lu_resident(void* stream, Items<T> A, Pivots<int> pivots, int* info, bool resets);
/// More than 64 interchanges of 32 and more columns with up to 512 rows are one permutation.
template <class T>
void launch_swap_rows(void* stream, Items<T> A, Pivots<const int> pivots, index_t n, bool backward, const int* info);

// batched/lu_trailing.cuh: A := P A with the pivots of the panel L, its first rows := L^-1 times them, and the others
// -= L times those. Real scalars, panels of up to so many columns.
inline constexpr index_t lu_trailing_limit = 128;
template <class T>
void launch_lu_trailing_update(void* stream, Items<const T> L, Pivots<const int> pivots, Items<T> A, const int* info);

}  // namespace trifactor::cuda
