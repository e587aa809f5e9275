// How triangles come from global memory and go back: lower ones, or upper ones seen flipped, whose rows are contiguous;
// any leading dimension; to shared memory, of which `Store` or `Layout` says where an entry lies, or to registers. The
// other triangle is never written. By one warp, unless it is said otherwise.
#pragma once

#include <cuda/device/fragments.cuh>
#include <cuda/device/pipeline.cuh>

namespace trifactor::cuda {

/// Positions of a lane when a warp walks a tile of 8 x 8 in two steps along contiguous memory: rows or columns. Four of
/// them a step, in the order with the fewest bank conflicts.
template <class T, bool by_rows>
struct TileWalk {
  int row[2], col[2];
  __device__ __forceinline__ TileWalk() {
    const int lane = int(threadIdx.x % 32);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int along = lane % 8, spread = lane / 8 % 2 * 4 + lane / 16 + 2 * h;
      row[h] = by_rows ? spread : along;
      col[h] = by_rows ? along : sizeof(T) == 4 ? spread : lane / 8 + 4 * h;
    }
  }
};

/// Starts to copy the lower triangle of A, of order up to 8 * max_tiles, in two groups: the first panel, and the rest;
/// the second group is empty where rows are contiguous, since those come by rows of tiles. The other triangle, and what
/// is missing of the last tiles, becomes zero.
template <class Store, bool by_rows, int max_tiles, class T>
__device__ __forceinline__ void copy_triangle(const Tile<T>& A, T* store) {
  const int n = int(A.rows);
  const index_t ld = by_rows ? A.row_stride : A.col_stride;
  constexpr int bytes = int(sizeof(T));
  const TileWalk<T, by_rows> walk;
  unsigned to[2];
  const T* from[2];
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    to[h] = shared_address(store + Store::place(walk.row[h], walk.col[h]));
    from[h] = A.data + (by_rows ? walk.row[h] * ld + walk.col[h] : walk.col[h] * ld + walk.row[h]);
    asm("" : "+r"(to[h]), "+l"(from[h]));  // optimization barrier: not recomputed for each tile
  }
  // s: which row of tiles, or column of them, is contiguous; t: the tile in it
#pragma unroll
  for (int s = 0; s < max_tiles; ++s) {
    if (8 * s < n) {
#pragma unroll
      for (int t = by_rows ? 0 : s; t < (by_rows ? s + 1 : max_tiles); ++t) {
        const int i = by_rows ? s : t, k = by_rows ? t : s;
        if (8 * i < n)
#pragma unroll
          for (int h = 0; h < 2; ++h) {
            const bool inside = 8 * i + walk.row[h] < n && (i > k || walk.col[h] <= walk.row[h]);
            copy_async<bytes>(to[h] + bytes * Store::tile(i, k), from[h] + 8 * t, inside ? bytes : 0);
          }
      }
#pragma unroll
      for (int h = 0; h < 2; ++h) from[h] += 8 * ld;
    }
    if (!by_rows && s == 0) copy_commit();
  }
  copy_commit();
  if (by_rows) copy_commit();
}

/// Copies panels of the lower triangle of A to shared memory, by `warps` warps. What is missing of the last tiles, and
/// the other triangle, becomes zero.
template <class Store, bool by_rows, class T>
class PanelCopy {
 public:
  __device__ __forceinline__ PanelCopy(const Tile<T>& A, T* store)
      : A_(A.data), ld_(by_rows ? A.row_stride : A.col_stride), n_(int(A.rows)) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      to_[h] = shared_address(store + Store::place(walk_.row[h], walk_.col[h]));
      from_[h] = by_rows ? walk_.row[h] * ld_ + walk_.col[h] : walk_.col[h] * ld_ + walk_.row[h];
    }
  }
  /// Starts to copy panel k, of which the warp takes every `warps`-th tile, as a group.
  __device__ __forceinline__ void start(int k, int warp, int warps) const {
    constexpr int bytes = int(sizeof(T));
#pragma unroll 2
    for (int i = k + warp; 8 * i < n_; i += warps) {
      const index_t at = by_rows ? 8 * i * ld_ + 8 * k : 8 * k * ld_ + 8 * i;
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const bool inside = 8 * i + walk_.row[h] < n_ && (i > k || walk_.col[h] <= walk_.row[h]);
        copy_async<bytes>(to_[h] + bytes * Store::tile(i, k), A_ + (inside ? at + from_[h] : 0), inside ? bytes : 0);
      }
    }
    copy_commit();
  }

 private:
  const T* A_;
  index_t ld_, from_[2];
  int n_;
  unsigned to_[2];
  TileWalk<T, by_rows> walk_;
};

/// Stores the triangle where rows are contiguous.
template <class Store, int max_tiles, class T>
__device__ __forceinline__ void write_triangle_rows(const Tile<T>& A, const T* store) {
  const TileWalk<T, true> walk;
  const int n = int(A.rows);
  T* at[2];
  const T* from[2];
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    at[h] = A.data + walk.row[h] * A.row_stride + walk.col[h];
    from[h] = store + Store::place(walk.row[h], walk.col[h]);
  }
#pragma unroll
  for (int i = 0; i < max_tiles; ++i)
    if (8 * i < n) {
      T v[max_tiles][2];
#pragma unroll
      for (int k = 0; k <= i; ++k)
#pragma unroll
        for (int h = 0; h < 2; ++h) v[k][h] = from[h][Store::tile(i, k)];
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const bool inside = 8 * i + walk.row[h] < n;
        if constexpr (is_complex<T>)
          if (walk.row[h] == walk.col[h]) v[i][h] = T(real(v[i][h]));
#pragma unroll
        for (int k = 0; k <= i; ++k)
          if (inside && (k < i || walk.col[h] <= walk.row[h])) at[h][8 * k] = v[k][h];
        at[h] += 8 * A.row_stride;
      }
    }
}

/// Writes row i of tiles, where rows are contiguous, by one warp.
template <class Store, class T>
__device__ __forceinline__ void write_tile_row(const Tile<T>& A, const T* store, int i) {
  const TileWalk<T, true> walk;
  const int n = int(A.rows);
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const T* const from = store + Store::tile(i, 0) + Store::place(walk.row[h], walk.col[h]);
    T* const to = A.data + (8 * i + walk.row[h]) * A.row_stride + walk.col[h];
    const bool inside = 8 * i + walk.row[h] < n;
    const int last = walk.col[h] <= walk.row[h] ? i : i - 1;
#pragma unroll 4
    for (int k = 0; k <= i; ++k) {
      T v = from[Store::pitch * k];
      if constexpr (is_complex<T>)
        if (k == i && walk.row[h] == walk.col[h]) v = T(real(v));
      if (inside && k <= last) to[8 * k] = v;
    }
  }
}

/// Writes a tile on the diagonal, where columns are contiguous, by one warp: rows and columns from 8 p on.
template <class Store, class T>
__device__ __forceinline__ void write_diagonal_tile(const Tile<T>& A, const T* tile, int p) {
  const TileWalk<T, false> walk;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    T v = tile[Store::place(walk.row[h], walk.col[h])];
    if constexpr (is_complex<T>)
      if (walk.row[h] == walk.col[h]) v = T(real(v));
    if (walk.col[h] <= walk.row[h] && 8 * p + walk.row[h] < int(A.rows))
      A.data[(8 * p + walk.col[h]) * A.col_stride + 8 * p + walk.row[h]] = v;
  }
}

/// Brings tiles of the rows of A from r0 on to shared memory by one warp, one after the other from the left. Rows
/// beyond the last are zero, and nothing is read for them.
template <class Layout, class T>
class TileCopy {
 public:
  __device__ __forceinline__ TileCopy(const Tile<T>& A, int r0) : down_(A.row_stride == 1) {
    const int lane = int(threadIdx.x) % 32;
    last_ = int(A.rows) - 1 - r0 - (down_ ? lane : 0);
    from_ = &A(r0 + (down_ ? lane + min(last_, 0) : 0), down_ ? 0 : lane);
    step_ = down_ ? A.col_stride : A.row_stride;
    at_ = down_ ? lane : lane / 8 * Layout::eight + Layout::column(lane % 8);
  }
  /// Starts to copy the next tile.
  __device__ __forceinline__ void next(T* tile) {
    const unsigned to = shared_address(tile + at_);
    constexpr int edge = Layout::edge, at_once = 8, bytes = int(sizeof(T));
    const T* p = from_;
    if (down_) {
#pragma unroll 1
      for (int k = 0; k < edge; k += at_once)
#pragma unroll
        for (int i = 0; i < at_once; ++i, p += step_) {
          const int column = k / 8 * Layout::eight + Layout::column(i);
          copy_async<bytes>(to + unsigned(column * bytes), p, last_ >= 0 ? bytes : 0);
        }
      from_ = p;
    } else {
#pragma unroll 1
      for (int r = 0; r < edge; r += at_once)
#pragma unroll
        for (int i = 0; i < at_once; ++i) {
          copy_async<bytes>(to + unsigned((r + i) * bytes), p, r + i <= last_ ? bytes : 0);
          if (r + i < last_) p += step_;
        }
      from_ += edge;
    }
  }

 private:
  const T* from_;
  index_t step_;
  bool down_;
  int last_, at_;  // last_: down from the lane's row
};

/// Asks for the lines of columns k0 .. k0 + 31, from row k0 on, ahead of their use; by one warp.
template <class T>
__device__ __forceinline__ void prefetch_columns(const Tile<T>& A, int k0) {
  const int lane = int(threadIdx.x) % 32, n = int(A.rows), line = 128 / int(sizeof(T));
  if (A.row_stride == 1) {
    if (k0 + lane < n)
#pragma unroll 1
      for (int r = k0; r < n + line; r += line) prefetch_l2(&A(min(r, n - 1), k0 + lane));
  } else {
#pragma unroll 1
    for (int r = k0 + lane; r < n; r += 32)
#pragma unroll 1
      for (int k = k0; k < min(r, k0 + 31) + line; k += line) prefetch_l2(&A(r, min(k, min(r, k0 + 31))));
  }
}

/// Writes a lower triangle of order up to 32, which lies by columns at L, to rows and columns of A from k0 on. By one
/// warp.
template <int pitch, class T>
__device__ __forceinline__ void write_triangle(const Tile<T>& A, int k0, const T* L) {
  constexpr int nb = 32, at_once = 8;
  const int order = min(nb, int(A.rows) - k0), lane = int(threadIdx.x) % 32;
  const bool down = A.row_stride == 1;
  T* p = &A(k0 + (down ? lane : 0), k0 + (down ? 0 : lane));
  const T* q = L + (down ? lane : lane * pitch);
  const index_t step = down ? A.col_stride : A.row_stride;
  const int begin = down ? 0 : lane, count = lane < order ? (down ? lane + 1 : order - lane) : 0,
            along = down ? pitch : 1;
#pragma unroll 1
  for (int t = 0; t < nb; t += at_once) {
    T v[at_once];
#pragma unroll
    for (int i = 0; i < at_once; ++i, q += along) v[i] = *q;
#pragma unroll
    for (int i = 0; i < at_once; ++i, p += step)
      if (unsigned(t + i - begin) < unsigned(count)) *p = v[i];
  }
}

/// 16 rows of a block column in the registers of a warp.
template <class T>
struct Strip {
  static constexpr int tiles = 4;
  /// How far from the first entry of A a lane's rows meet column k0; not pointers, which would lose their address
  /// space. Rows beyond the last are copies of it when they are read.
  index_t at[2];
  __device__ __forceinline__ void find(const Tile<T>& A, int row, int k0, const TilePlace& place) {
#pragma unroll
    for (int h = 0; h < 2; ++h)
      at[h] = min(row + place.g + 8 * h, int(A.rows) - 1) * A.row_stride + (k0 + place.t) * A.col_stride;
  }
  /// c := what is in A, `on` entries from there; the identity outside of the triangle.
  __device__ __forceinline__ void load(TensorEntries<T> (&c)[tiles], const T* A, int n, int row, int k0, index_t half,
                                       index_t on, const TilePlace& place) const {
    if (k0 + 8 * tiles <= row) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const T* p = A + at[h] + on;
#pragma unroll
        for (int j = 0; j < 2 * tiles; ++j, p += half) c[j / 2].set(2 * h + j % 2, *p);
      }
    } else {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const T* p = A + at[h] + on;
        const int r = row + place.g + 8 * h;
#pragma unroll
        for (int j = 0; j < 2 * tiles; ++j, p += half) {
          const int column = k0 + 4 * j + place.t;
          T v = T(r == column ? 1 : 0);
          if (column <= r && r < n) v = *p;
          c[j / 2].set(2 * h + j % 2, v);
        }
      }
    }
  }
  /// The next eight columns as left operand, if there are `more`; without a branch.
  __device__ __forceinline__ void next(LeftPart<T>& to, const T* A, index_t half, bool more, bool moves) {
    const index_t step = moves ? half : 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      to.v[i % 2][i / 2] = A[more ? at[i / 2] : 0];
      at[i / 2] += step;
    }
  }
};

/// Writes tiles of a strip to A, one after the other from column k0 on.
template <class T>
class StripWriter {
 public:
  __device__ __forceinline__ StripWriter(const Tile<T>& A, int row, int k0, const TilePlace& place)
      : A_(A.data), four_(4 * A.col_stride), left_(int(A.rows) - row - place.g) {
    at_[0] = (row + place.g) * A.row_stride + (k0 + place.t) * A.col_stride;
    at_[1] = at_[0] + 8 * A.row_stride;
  }
  __device__ __forceinline__ void next(const TensorEntries<T>& x) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      if (e / 2 * 8 < left_) A_[at_[e / 2]] = x.get(e);
      at_[e / 2] += four_;
    }
  }

 private:
  T* A_;
  index_t at_[2], four_;
  int left_;  // rows from the lane's first on
};

/// The tile of 16 x 8 at (r0, k0): entries of the lower triangle of A and, outside of it, of the identity.
template <class T>
__device__ __forceinline__ TensorEntries<T> load_tile(const Tile<const T>& A, int r0, int k0, const LanePlace& place) {
  TensorEntries<T> c;
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    const int r = r0 + place.row(e), k = k0 + place.col(e);
    T v = T(r == k ? 1 : 0);
    if (r < int(A.rows) && k <= r)
      v = *(&A(r0 + place.g, k0 + place.t) + (e / 2 ? 8 * A.row_stride : 0) + (e % 2 ? 4 * A.col_stride : 0));
    c.set(e, v);
  }
  return c;
}

/// A row of a triangle of order n, up to `width`, to each of `width` lanes; what lies beyond is not set.
template <bool by_rows, int width, class T>
__device__ __forceinline__ void load_lane_row(const Tile<T>& A, int row, int n, T (&a)[width]) {
  const T* at = A.data + (by_rows ? row * A.row_stride : row);
  const int last = row < n ? row : -1;  // column
#pragma unroll
  for (int c = 0; c < width; ++c, at += by_rows ? 1 : A.col_stride) {
    a[c] = uninitialized<T>();
    if (c <= last) a[c] = *at;
  }
}
/// Back again, where columns are contiguous.
template <int width, class T>
__device__ __forceinline__ void store_lane_row(const Tile<T>& A, int row, int n, const T (&a)[width]) {
  T* to = A.data + row;
  const int last = row < n ? row : -1;
#pragma unroll
  for (int c = 0; c < width; ++c, to += A.col_stride)
    if (c <= last) *to = a[c];
}

}  // namespace trifactor::cuda
