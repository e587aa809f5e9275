// Many small factorizations and solves side by side: lane l of every vector belongs to matrix l of a group.
#pragma once

#include <core/batch.hpp>

#include <cstddef>

namespace trifactor::host {

/// What one instruction set offers for scalar T. Items are items[0 .. size) of a batch; size is best several times the
/// lanes: the data of one group are prefetched while the group before it is worked on. An item's bits do not depend on
/// the items beside it.
template <class T>
struct InterleavedTable {
  /// Items that are worked on at once.
  int lanes;
  /// Bytes of scratch that one thread needs for orders up to n and so many right-hand sides.
  std::size_t (*scratch)(index_t n, index_t columns);
  /// Factors the lower triangles of A. info[item] becomes k when the pivot of column k (from 1) is not positive and
  /// finite, and is left as it is otherwise; the columns before k are then valid, the rest of that triangle is unspecified.
  /// With X, also X := A^-1 X of items whose info is 0. `flipped` as in core/engine.hpp: A is an upper triangle.
  void (*cholesky)(const core::Items<T>& A, bool flipped, const core::Items<T>* X, const index_t* items, int size, int* info,
                   void* scratch);
  /// X := A^-1 X with the Cholesky factors of A. The items fit each other.
  void (*cholesky_solve)(const core::Items<const T>& L, bool flipped, const core::Items<T>& X, const index_t* items, int size,
                         void* scratch);
  /// X := op(A)^-1 X with P A = L U.
  void (*lu_solve)(const core::Items<const T>& LU, const core::Pivots<const int>& pivots, Op op, const core::Items<T>& X,
                   const index_t* items, int size, void* scratch);
};
/// The same for LU with partial pivoting of square items.
template <class T>
struct InterleavedLuTable {
  int lanes;
  /// Bytes of scratch that one thread needs for orders up to n.
  std::size_t (*scratch)(index_t n);
  /// Factors items and writes their pivots and info as LAPACK does. Items that are not finite, or whose pivots have no
  /// accurate reciprocal, are left as they were: they are listed in left_out[0 .. result), which has room for all.
  int (*lu)(const core::Items<T>& A, const core::Pivots<int>& pivots, const index_t* items, int size, int* info,
            index_t* left_out, void* scratch);
};
#define TRIFACTOR_DECLARE_TABLES                                           \
  template <class T> const InterleavedTable<T>& interleaved_table();       \
  template <class T> const InterleavedLuTable<T>& interleaved_lu_table();
namespace baseline { TRIFACTOR_DECLARE_TABLES }
namespace avx2 { TRIFACTOR_DECLARE_TABLES }
namespace avx512 { TRIFACTOR_DECLARE_TABLES }
#undef TRIFACTOR_DECLARE_TABLES

/// The tables of the widest instruction set that was compiled and that this CPU has.
template <class T> const InterleavedTable<T>& interleaved();
template <class T> const InterleavedLuTable<T>& interleaved_lu();

}  // namespace trifactor::host
