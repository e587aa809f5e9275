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
namespace baseline { template <class T> const InterleavedTable<T>& interleaved_table(); }
namespace avx2 { template <class T> const InterleavedTable<T>& interleaved_table(); }
namespace avx512 { template <class T> const InterleavedTable<T>& interleaved_table(); }

/// The table of the widest instruction set that was compiled and that this CPU has.
template <class T> const InterleavedTable<T>& interleaved();

}  // namespace trifactor::host
