// Many small Cholesky factorizations side by side: lane l of every vector belongs to matrix l of a group.
#pragma once

#include <core/batch.hpp>

#include <cstddef>

namespace trifactor::host {

/// Items that are factored at once for scalar T on this CPU.
template <class T> int interleaved_lanes();

/// Bytes of scratch that one thread needs for orders up to n.
template <class T> std::size_t interleaved_scratch(index_t n);

/// Factors the lower triangles of items[0 .. size) of A, whose orders are at most n. Size is best several times the
/// lanes: the data of one group are prefetched while the group before it is factored.
/// info[item] becomes k when the pivot of column k (from 1) is not positive and finite, and is left as it is otherwise;
/// the columns before k are then valid, the rest of that triangle is unspecified. An item's bits do not depend on the
/// items beside it.
template <class T>
void cholesky_interleaved(const core::Items<T>& A, const index_t* items, int size, index_t n, int* info, void* scratch);

/// The three functions above, as compiled for one instruction set.
template <class T>
struct InterleavedTable {
  int lanes;
  std::size_t (*scratch)(index_t n);
  void (*cholesky)(const core::Items<T>& A, const index_t* items, int size, index_t n, int* info, void* scratch);
};
namespace baseline { template <class T> const InterleavedTable<T>& interleaved_table(); }
namespace avx2 { template <class T> const InterleavedTable<T>& interleaved_table(); }
namespace avx512 { template <class T> const InterleavedTable<T>& interleaved_table(); }

}  // namespace trifactor::host
