// The host side of the kernels in src/cuda/single: each call enqueues its launches on a stream (a cudaStream_t) and
// checks them. Instantiated once for each scalar.
#pragma once

#include <core/engine.hpp>
#include <cuda/engine/launch_step.hpp>

namespace trifactor::cuda {

using namespace core;

/// For traces: when a block of the persistent grid worked on what, by the device's clock in nanoseconds; begin is 0
/// where nothing was noted. A step of the chain, or a piece of edge x edge entries, with `depth` columns to its left.
/// Blocks have the number of their first ticket: that of the chain is 0.
struct Mark {
  unsigned long long begin, end;
  int block, edge, depth;
};

// single/cholesky_grid.cuh: one matrix. Wants so many entries of scratch memory, so many flags, which must be zero and
// are so again afterwards, and two multiprocessors. `band`: so many columns of macro tiles of 2 x 2 tiles are worked
// off together; 0: in tiles. `resets`: info to 0, first. `marks` may be null.
template <class T>
index_t persistent_entry_count(index_t n);
template <class T>
index_t persistent_flag_count(index_t n);
template <class T>
index_t persistent_mark_count(index_t n);
template <class T>
void launch_persistent(void* stream, int multiprocessors, Items<T> A, int band, bool resets, int* info, index_t first,
                       T* entries, int* flags, Mark* marks);

/// Items order[bounds[0]] .. order[bounds[1] - 1], or, where there is no list, all. Up to `together` of them are worked
/// on alike, and up to `sets`, each with its room, are begun at a time.
template <class T>
struct LargeItems {
  const int *order = nullptr, *bounds = nullptr;
  T* entries;
  index_t entries_each;
  static constexpr int counters = 3;  // the next ticket, blocks that are finished, items that are worked on alike
  int* flags;                         // zero, and so again afterwards: counters + sets * (1 + flags_each)
  int flags_each, sets, together;
  // H200, double, 1, 2 and 4: 20 items of 1026 to 2048 rows 2.75, 2.43 and 2.45 ms, 40 of 1026 to 1400 3.39 and 2.67.
  static constexpr int max_together = 2;
};
/// The launch that factors them; what it refers to must stay until it is enqueued.
template <class T>
LaunchStep persistent_list_step(int multiprocessors, Items<T>& A, LargeItems<T>&, int*& info);

// single/trsm_inverted.cuh, trsm_sweep.cuh: the edge of the diagonal blocks that are inverted, and entries of an
// inverted block, with a line for a mark.
template <class T>
inline constexpr index_t inverse_edge = sizeof(T) > 8 ? 32 : 64;
template <class T>
inline constexpr index_t inverse_block_size = inverse_edge<T>*(inverse_edge<T> + 1);

// single/lu_team.cuh: narrow panels, by a cluster of blocks for each, or, of one strided matrix that has the device
// alone, by all multiprocessors. lu_panel_width is the most columns that one with so many rows may have; 0: it is too tall, or
// the device has no clusters. The interchanges are made in `left` columns to the left of A too. `messages`: null where the
// device is shared, or so many bytes, which must be zero and are so again afterwards. False, and nothing is enqueued, where
// the stream has too small a part of the device for that.
template <class T>
index_t lu_panel_width(index_t rows, bool alone);
inline constexpr index_t lu_messages_size = 1 << 17;
template <class T>
bool launch_lu_panel(void* stream, Items<T> A, index_t left, Pivots<int> pivots, int* info, void* messages);

// single/lu_tall.cuh: the same for one strided matrix of any height, best with so many columns, by up to so many blocks,
// four for each multiprocessor of an H200. Wants 4 + 4 lu_tall_blocks flags, which must be zero and are so again afterwards.
inline constexpr index_t lu_tall_width = 8, lu_tall_blocks = 528;
template <class T>
void launch_lu_tall(void* stream, Items<T> A, index_t left, Pivots<int> pivots, int* flags, int* info);

// single/lu.cuh
template <class T>
void launch_lu(void* stream, Items<T> A, Pivots<int> pivots, int* info);
// The next n interchanges of one strided matrix; row 0 of A is row pivots.first.
template <class T>
void launch_exchange_rows(void* stream, Items<T> A, Pivots<const int> pivots, index_t n, const int* info);
// A := P A or P^T A with the permutation p, through Y, which is as large as A. Two launches.
template <class T>
void launch_permute_rows(void* stream, Items<T> A, const int* p, bool backward, T* Y, const int* info);
template <class T>
void launch_lu_det(void* stream, Items<const T> LU, Pivots<const int> pivots, T* sign, Real<T>* log_abs);

// single/lu_beside.cuh: the interchanges of a panel of which L is the triangle, and A's first rows := L^-1 times them. Up to
// so many columns of L.
inline constexpr index_t lu_rows_limit = 32;
template <class T>
void launch_lu_rows_of_one(void* stream, Items<const T> L, Pivots<const int> pivots, Items<T> A, const int* info);
// The same for a panel L, and A's other rows -= L times the first ones; meant for few columns of A. Without pivots there are
// no interchanges. Wants a flag for every 32 columns of A, which must be zero and is so again afterwards.
template <class T>
void launch_lu_update(void* stream, Items<const T> L, Pivots<const int> pivots, Items<T> A, int* flags, const int* info);

}  // namespace trifactor::cuda
