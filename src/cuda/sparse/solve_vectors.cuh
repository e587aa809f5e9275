// The vectors of a solve with all fronts in one launch: right-hand sides as messages between blocks of threads.
#pragma once

#include <core/fronts.hpp>
#include <cuda/device/sentinels.cuh>

namespace trifactor::cuda {

/// Which triangles are solved with, and whether rows are permuted from B and back.
struct SolveParts {
  bool forward, backward, permute;
};

/// A group of right-hand sides, interleaved: 2^shift entries for each row. Entries are unsolved until they are known,
/// so that whoever reads one sees whether it is there.
template <class T>
struct SolveVectors {
  using M = Message<T>;

  Fronts fronts;
  const int* failed;  // of each item, not 0: its factor is not there, and its B stays
  SolveParts parts;
  Tile<T> B;          // of the first item, or of the one that of_item was asked for
  index_t next_item;  // from item to item in B: see Fronts::item_rows
  index_t column;  // of B: the first of the group
  int shift;
  index_t group_entries;  // of Z and X together
  T* Z;  // (lines): what forward leaves. In a front's own columns the solution, below what the parent adds.
  T* X;  // (n): what backward leaves, by column of the factor

  __device__ SolveVectors of_group(int group) const {
    SolveVectors v = *this;
    v.Z += group * group_entries, v.X += group * group_entries, v.column += index_t(group) << shift;
    return v;
  }
  __device__ SolveVectors of_item(int item) const {
    SolveVectors v = *this;
    v.B.data += item * next_item;
    return v;
  }
  __device__ bool inside(int c) const { return column + c < B.cols; }
  __device__ T& of_B(int j, int c) const { return B(parts.permute ? fronts.permutation[j] : j, column + c); }

  __device__ static T wait(const T* p) {
    T v;
    while (!M::is_solved(v = M::load(p))) __nanosleep(20);
    return v;
  }
  __device__ T* z(index_t line, int c) const { return Z + (line << shift) + c; }
  __device__ T* x(index_t j, int c) const { return X + (j << shift) + c; }

  /// The right-hand side of column j of the factor, on `line`, of the backward solve.
  __device__ T backward_side(int j, index_t line, int c) const {
    if (parts.forward) return wait(z(line, c));
    return inside(c) ? of_B(j, c) : T(0);
  }
  __device__ void solved_forward(int j, index_t line, int c, T y) const {
    M::store(z(line, c), y);
    if (!parts.backward && inside(c)) of_B(j, c) = y;
  }
  __device__ void solved_backward(int j, int c, T v) const {
    M::store(x(j, c), v);
    if (inside(c)) of_B(j, c) = v;
  }
};

}  // namespace trifactor::cuda
