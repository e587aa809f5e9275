// Tile: one small matrix. Items: which tile is item i of a batch, seen through a window and perhaps flipped.
#pragma once

#include <core/scalar.hpp>

#include <cmath>
#include <cstdint>

namespace trifactor::core {

/// A matrix with a stride for each direction, so that its transpose is a view too. I is the type of its indices:
/// 64 bits in global memory, int in shared memory.
template <class T, class I = index_t>
struct Tile {
  T* data;
  I rows, cols;
  I row_stride, col_stride;

  TF_HD T& operator()(I i, I j) const { return data[i * row_stride + j * col_stride]; }
  TF_HD Tile block(I i, I j, I m, I n) const { return {data + i * row_stride + j * col_stride, m, n, row_stride, col_stride}; }
  /// The plain transpose: no entry is conjugated.
  TF_HD Tile flipped() const { return {data, cols, rows, col_stride, row_stride}; }
  template <class U> requires std::same_as<U, const T> && (!std::is_const_v<T>)
  TF_HD operator Tile<U, I>() const { return {data, rows, cols, row_stride, col_stride}; }
};

/// Whether all lines of a matrix, so many entries apart, start at multiples of 16 bytes.
template <class T>
TF_HD bool lines_aligned(const T* data, index_t stride) {
  return reinterpret_cast<std::uintptr_t>(data) % 16 == 0 && std::size_t(stride) * sizeof(T) % 16 == 0;
}

/// Every batch kind behind one run-time descriptor. A window is clipped to each item's own size when it is used, so
/// ragged batches need no arrays of their own: an item smaller than the window's corner yields an empty tile.
template <class T>
struct Items {
  T* base = nullptr;                   // one matrix, or a strided batch
  T* const* pointers = nullptr;        // a pointer or ragged batch
  const int* item_rows = nullptr;      // a ragged batch, as stored (not flipped)
  const int* item_cols = nullptr;
  const int* item_ld = nullptr;
  index_t stride = 0, ld = 0;
  index_t stored_rows = 0, stored_cols = 0;   // of each item; the largest of a ragged batch
  index_t count = 0;
  // The window, in the coordinates of the view (after flipping).
  index_t row0 = 0, col0 = 0, rows = 0, cols = 0;
  bool is_flipped = false;

  TF_HD bool ragged() const { return item_rows != nullptr; }
  bool operator==(const Items&) const = default;

  TF_HD Items block(index_t i, index_t j, index_t m, index_t n) const {
    Items w = *this;
    w.row0 += i, w.col0 += j, w.rows = m, w.cols = n;
    return w;
  }
  TF_HD Items flipped() const {
    Items w = *this;
    w.row0 = col0, w.col0 = row0, w.rows = cols, w.cols = rows;
    w.is_flipped = !is_flipped;
    return w;
  }
  /// Item b of a strided batch as a batch of one.
  TF_HD Items one(index_t b) const {
    Items w = *this;
    w.base += b * stride, w.count = 1;
    return w;
  }
  /// Item b's part of the window.
  TF_HD Tile<T> item(index_t b) const {
    T* data = pointers ? pointers[b] : base + b * stride;
    const index_t own_ld = ragged() ? index_t(item_ld[b]) : ld;
    index_t m = rows, n = cols;
    if (ragged()) {
      index_t all_rows = item_rows[b], all_cols = item_cols[b];
      if (is_flipped) { const index_t t = all_rows; all_rows = all_cols, all_cols = t; }
      m = max(index_t(0), min(m, all_rows - row0));
      n = max(index_t(0), min(n, all_cols - col0));
    }
    const index_t rs = is_flipped ? own_ld : 1, cs = is_flipped ? 1 : own_ld;
    if (m > 0 && n > 0) data += row0 * rs + col0 * cs;
    return {data, m, n, rs, cs};
  }
  /// Whether a ragged item's sizes are possible: within the stated maxima, ld >= rows.
  TF_HD bool possible(index_t b) const {
    if (!ragged()) return true;
    const int m = item_rows[b], n = item_cols[b];
    return m >= 0 && n >= 0 && m <= stored_rows && n <= stored_cols && item_ld[b] >= max(m, 1);
  }
  TF_HD bool possible_square(index_t b) const { return possible(b) && !(ragged() && item_rows[b] != item_cols[b]); }
  template <class U> requires std::same_as<U, const T> && (!std::is_const_v<T>)
  operator Items<U>() const {
    return {base, pointers, item_rows, item_cols, item_ld, stride, ld, stored_rows, stored_cols, count,
            row0, col0, rows, cols, is_flipped};
  }
};

/// The row interchanges of every item, 1-based as LAPACK's; I is int, or const int where they are read. Those of item b
/// begin at data + b * stride; a ragged item has as many as its own sizes allow.
template <class I>
struct Pivots {
  I* data = nullptr;
  index_t stride = 0;
  const int* item_rows = nullptr;   // of a ragged batch
  const int* item_cols = nullptr;
  index_t first = 0;                // the row that data[0] exchanges, counted from 0

  TF_HD I* item(index_t b) const { return data + b * stride; }
  /// How many of the next n item b has.
  TF_HD index_t size(index_t b, index_t n) const {
    if (!item_rows) return n;
    return max(index_t(0), min(n, index_t(min(item_rows[b], item_cols[b])) - first));
  }
  Pivots from(index_t k) const { return {data + k, stride, item_rows, item_cols, first + k}; }
  template <class U> requires std::same_as<U, const I> && (!std::is_const_v<I>)
  operator Pivots<U>() const { return {data, stride, item_rows, item_cols, first}; }
};

/// Those of the matrices A: item b has min(rows, cols) of them, of the largest item where the batch is ragged.
template <class T, class I>
Pivots<I> pivots_of(const Items<T>& A, I* data) {
  return {data, min(A.stored_rows, A.stored_cols), A.item_rows, A.item_cols, 0};
}

/// Numbers beside the items of a batch: pivots, info. Data may be null.
template <class I>
struct Array {
  I* data = nullptr;
  index_t size = 0;
  bool operator==(const Array&) const = default;
};

/// The pivots of all matrices A, one item after the other.
template <class T, class I>
Array<I> all_pivots(const Items<T>& A, I* data) {
  return {data, A.count * min(A.stored_rows, A.stored_cols)};
}

/// Items of one matrix.
template <class T>
Items<T> one_matrix(T* data, index_t rows, index_t cols, index_t ld) {
  Items<T> A;
  A.base = data, A.ld = ld, A.count = 1;
  A.stored_rows = A.rows = rows, A.stored_cols = A.cols = cols;
  return A;
}

/// The order that stands for A in tuning rows: min(m, n) in a batch. One matrix is like a square one with as many
/// entries: updates take as long.
template <class T>
index_t tuning_order(const Items<T>& A) {
  if (A.count != 1) return min(A.rows, A.cols);
  return index_t(std::sqrt(double(A.rows) * double(A.cols)));
}

}  // namespace trifactor::core
