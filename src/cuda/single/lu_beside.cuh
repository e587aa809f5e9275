// What a panel of up to 32 columns does to the columns beside it: interchanges, a solve with its triangle and, where
// these columns are few, the product of what is below in the same launch.
#pragma once

#include <cuda/device/fragments.cuh>
#include <cuda/device/pipeline.cuh>
#include <cuda/device/product.cuh>
#include <cuda/device/signals.cuh>
#include <cuda/engine/launch.cuh>
#include <cuda/single/row_moves.cuh>
#include <cuda/single/single.hpp>

namespace trifactor::cuda {

/// The interchanges of up to 32 rows as moves, in shared memory: by two warps, `forward` or not, a row to a lane.
/// `partner` is that of row `lane`; beyond the last step a lane's own number.
__device__ inline void find_moves(RowMoves<32>& moves, bool forward, int partner) {
  const int lane = int(threadIdx.x) % 32;
  int row = lane;
#pragma unroll 8
  for (int s = 0; s < 32; ++s) {
    const int x = forward ? s : 31 - s, y = __shfl_sync(~0u, partner, x);
    row = row == x ? y : row == y ? x : row;
  }
  (forward ? moves.to : moves.from)[lane] = row;
}

/// What a block has of a panel to solve for up to 32 columns: four warps, eight columns to each. Lanes 4 c .. 4 c + 3
/// have column c; lane q of them has rows 4 q .. 4 q + 3 and 16 more than these.
template <class T>
struct BesidePanel {
  static constexpr int width = int(lu_rows_limit), warps = 4, threads = 32 * warps, columns = 32, pitch = columns + 4;
  static_assert(width == 32);
  RowMoves<width> moves;
  __align__(16) T triangle[width][width];
  __align__(16) T rows[width][pitch];  // the first rows once they are solved, conjugate

  /// Row and column of x[i] in a lane's rows.
  __device__ static int row(int i) { return int(threadIdx.x) % 4 * 4 + i % 4 + i / 4 * 16; }
  __device__ static int column() { return int(threadIdx.x) / 4; }

  /// The triangle L and the interchanges, as moves; no pivots: none.
  __device__ void load(const T* L, index_t ld, int steps, const int* pivots, int first) {
    const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
    const int partner = warp < 2 && pivots && lane < steps ? pivots[lane] - 1 - first : lane;
    const T* from = L + min(lane, steps - 1) + warp * ld;
    T l[width / warps];
#pragma unroll
    for (int i = 0; i < width / warps; ++i, from += warps * ld) {
      const int k = warp + warps * i;
      l[i] = k < lane && lane < steps ? *from : T(0);
    }
    if (warp < 2) find_moves(moves, warp == 1, partner);
#pragma unroll
    for (int i = 0; i < width / warps; ++i) triangle[warp + warps * i][lane] = l[i];
    __syncthreads();  // the triangle and the moves are there
  }
  /// rows := L^-1 x
  __device__ void solve(T (&x)[8]) {
    const int q = int(threadIdx.x) % 4;
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll 1
      for (int owner = 0; owner < 4; ++owner) {
        const int k0 = 16 * half + 4 * owner;
        T y[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) y[k] = x[4 * half + k];
#pragma unroll
        for (int k = 0; k < 3; ++k)
#pragma unroll
          for (int i = k + 1; i < 4; ++i) y[i] = minus_product(y[i], triangle[k0 + k][k0 + i], y[k]);
        if (q == owner)
#pragma unroll
          for (int k = 0; k < 4; ++k) x[4 * half + k] = y[k];
#pragma unroll
        for (int k = 0; k < 4; ++k) y[k] = from_lane<4>(y[k], owner);
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          T l[4];
          read_vectors<4>(&triangle[k0 + k][16 * half + 4 * q], l);  // zero on the diagonal and above
          if (q > owner)
#pragma unroll
            for (int i = 0; i < 4; ++i) x[4 * half + i] = minus_product(x[4 * half + i], l[i], y[k]);
          if (half == 0) {
            read_vectors<4>(&triangle[k0 + k][16 + 4 * q], l);
#pragma unroll
            for (int i = 0; i < 4; ++i) x[4 + i] = minus_product(x[4 + i], l[i], y[k]);
          }
        }
      }
#pragma unroll
    for (int i = 0; i < 8; ++i) rows[row(i)][column()] = conj(x[i]);
  }
};

/// A := P A, and its first rows, as many as L has, := L^-1 times them; L is unit lower triangular.
template <class T>
__global__ void __launch_bounds__(BesidePanel<T>::threads)
    lu_rows_kernel(Tile<const T> L, const int* pivots, int first, Tile<T> A, const int* info) {
  using Beside = BesidePanel<T>;
  __shared__ Beside beside;
  if (info && *info != 0) return;
  const int rank = int(threadIdx.x), steps = int(L.cols), column = int(blockIdx.x) * Beside::columns;
  const int columns = min(Beside::columns, int(A.cols) - column);
  T* const a = A.data + column * A.col_stride;
  beside.load(L.data, L.col_stride, steps, pivots, first);
  T x[8];
  beside.moves.apply(a, A.col_stride, steps, rank / 32, Beside::warps, columns,
                     [&](T entry, int k, int j) { beside.rows[k][j] = entry; });
  __syncthreads();  // the rows are there
#pragma unroll
  for (int i = 0; i < 8; ++i)
    x[i] = Beside::row(i) < steps && Beside::column() < columns ? beside.rows[Beside::row(i)][Beside::column()] : T(0);
  __syncthreads();  // and read
  beside.solve(x);
  __syncthreads();  // and solved
#pragma unroll 4
  for (int j = rank / 32; j < columns; j += Beside::warps)
    if (rank % 32 < steps) a[rank % 32 + j * A.col_stride] = conj(beside.rows[rank % 32][j]);
}

template <class T>
void launch_lu_rows_of_one(void* stream, Items<const T> L, Pivots<const int> pivots, Items<T> A, const int* info) {
  using Beside = BesidePanel<T>;
  launch(stream, lu_rows_kernel<T>, unsigned(ceil_div(A.cols, Beside::columns)), Beside::threads, 0, L.item(0),
         pivots.data, int(pivots.first), A.item(0), info);
}

/// The same, and A's other rows -= those of L, below the triangle, times its first rows. A block has strips of 64 rows
/// of up to 32 columns, and solves for itself. The rows that move are updated by every block, but stored by the last one
/// that has read them: `arrived` counts the blocks of a group of columns, is zero, and so again afterwards. Offsets
/// within 32 columns are ints.
template <class T>
class UpdateBeside {
 public:
  using Beside = BesidePanel<T>;
  static constexpr int width = Beside::width, threads = Beside::threads, strip = 64, pitch = strip + 4;
  static_assert(width == 32 && Beside::columns == 32 && strip == 16 * Beside::warps);
  struct Memory {
    Beside beside;
    __align__(16) T L[width][pitch];
    __align__(16) T L_moving[width][Beside::pitch];
    bool last;
  };

  __device__ UpdateBeside(Memory& memory, const Tile<const T>& panel, const Tile<T>& A)
      : s(memory),
        L(panel.data),
        ldl(int(panel.col_stride)),
        a(A.data + index_t(blockIdx.y) * Beside::columns * A.col_stride),
        ld(int(A.col_stride)),
        m(int(A.rows)),
        steps(int(panel.cols)),
        columns(min(Beside::columns, int(A.cols) - int(blockIdx.y) * Beside::columns)),
        lane(int(threadIdx.x) % 32),
        warp(int(threadIdx.x) / 32) {}

  __device__ void run(const int* pivots, int first, int* arrived) {
    int row0 = steps + int(blockIdx.x) * strip;
    load_strip(row0);
    read(above, moving_row(), steps - 1, moving_column());
    s.beside.load(L, ldl, steps, pivots, first);
    solve();
    copy_wait_all();
    __syncthreads();  // this block has read what moves, and L and U are there
    if (threadIdx.x == threads - 1) s.last = add_both(arrived, 1) == int(gridDim.x) - 1;
    above.template subtract<width, false>(&s.L_moving[0][moving_row()], Beside::pitch,
                                          &s.beside.rows[0][moving_column()], Beside::pitch);
#pragma unroll 1
    while (true) {
      const int base = row0 + 16 * warp, to = lane < steps ? s.beside.moves.to[lane] - base : -1;
      const unsigned moved = __reduce_or_sync(~0u, to >= 0 && to < 16 ? 1u << to : 0u);
      c.template subtract<width, false>(&s.L[0][16 * warp], pitch, &s.beside.rows[0][0], Beside::pitch);
      write(c, 0, [&](int r) { return base + r < m && !(moved >> r & 1) ? base + r : -1; });
      row0 += int(gridDim.x) * strip;
      __syncthreads();  // L was used; and it is known who comes last
      if (row0 >= m) break;
      load_strip(row0);
      copy_wait_all();
      __syncthreads();  // L is there
    }
    if (!s.last) return;
    write(above, moving_column(), [&](int r) {
      const int to = moving_row() + r < steps ? s.beside.moves.to[moving_row() + r] : -1;
      return to >= steps ? to : -1;  // less: it is another one of the first rows
    });
#pragma unroll
    for (int j = warp; j < Beside::columns; j += Beside::warps)
      if (lane < steps && j < columns) a[lane + j * ld] = conj(s.beside.rows[lane][j]);
    if (threadIdx.x == 0) *arrived = 0;
  }

 private:
  /// Of the first rows, which may move, a warp has 16 in 16 columns, from here on.
  __device__ int moving_row() const { return 16 * (warp % 2); }
  __device__ int moving_column() const { return 16 * (warp / 2); }

  /// L of a strip to shared memory, and A to registers. Rows beyond the last are read elsewhere, and not used.
  __device__ void load_strip(int row0) {
    constexpr int together = threads / strip;  // columns
    const int r = int(threadIdx.x) % strip, k0 = int(threadIdx.x) / strip;
    const T* from = L + min(row0 + r, m - 1) + k0 * ldl;
#pragma unroll
    for (int k = k0; k < width; k += together, from += together * ldl) copy_L(&s.L[k][r], from, k);
    read(c, row0 + 16 * warp, m - 1, 0);
  }
  __device__ void copy_L(T* to, const T* from, int k) const {
    if (k < steps)
      copy_async<int(sizeof(T))>(shared_address(to), from);
    else
      *to = T(0);
  }
  /// U; and meanwhile L of the rows where the first ones go.
  __device__ void solve() const {
    T x[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int k = Beside::row(i);
      x[i] = load_l2(a + s.beside.moves.from[min(k, steps - 1)] + min(Beside::column(), columns - 1) * ld);
      if (k >= steps) x[i] = T(0);
    }
    const T* from = L + (lane < steps ? max(s.beside.moves.to[lane], 0) : 0) + warp * ldl;
#pragma unroll
    for (int k = warp; k < width; k += Beside::warps, from += Beside::warps * ldl)
      copy_L(&s.L_moving[k][lane], from, k);
    s.beside.solve(x);
  }

  /// 16 rows and some columns of A.
  template <int parts>
  __device__ void read(Fragment<T, parts>& x, int row, int last_row, int column) const {
    x.fill([&](int i, int j) { return load_l2(a + min(row + i, last_row) + min(column + j, columns - 1) * ld); });
  }
  /// To the rows target(0) .. target(15), where these are not negative.
  template <int parts, class Target>
  __device__ void write(const Fragment<T, parts>& x, int column, const Target& target) const {
    using Part = Fragment<T, parts>;
    const int own = column + Part::lane_col();
    for_constants<2>([&](auto half) TF_INLINE_LAMBDA {
      const int row = target(Part::lane_row() + Part::down(2 * half.value));
      if (row < 0) return;
      T* const at = a + row + own * ld;
#pragma unroll
      for (int n = 0; n < parts; ++n)
#pragma unroll
        for (int e = 2 * half.value; e < 2 * half.value + 2; ++e)
          if (own + Part::right(e) + 8 * n < columns) at[(Part::right(e) + 8 * n) * ld] = x.get(n, e);
    });
  }

  Memory& s;
  const T* const L;
  const int ldl;
  T* const a;
  const int ld, m, steps, columns, lane, warp;
  Fragment<T, Beside::columns / 8> c;       // of a strip
  Fragment<T, Beside::columns / 16> above;  // of the first rows
};

template <class T>
__global__ void __launch_bounds__(UpdateBeside<T>::threads)
    lu_update_kernel(Tile<const T> L, const int* pivots, int first, Tile<T> A, int* arrived, const int* info) {
  extern __shared__ __align__(16) unsigned char beside_memory[];
  let_next_start();
  wait_for_launch_before();
  if (info && *info != 0) return;
  auto& memory = *reinterpret_cast<typename UpdateBeside<T>::Memory*>(beside_memory);
  UpdateBeside<T>(memory, L, A).run(pivots, first, arrived + blockIdx.y);
}

template <class T>
void launch_lu_update(void* stream, Items<const T> L, Pivots<const int> pivots, Items<T> A, int* flags,
                      const int* info) {
  using Update = UpdateBeside<T>;
  constexpr index_t enough = 396;  // blocks: three to a multiprocessor of an H200, for which there are registers
  const index_t strips = max(index_t(1), ceil_div(A.rows - L.cols, Update::strip));
  const index_t groups = ceil_div(A.cols, Update::Beside::columns);
  const index_t each = ceil_div(strips * groups, enough);
  const dim3 grid(unsigned(ceil_div(strips, each)), unsigned(groups));
  launch_early(stream, lu_update_kernel<T>, grid, Update::threads, sizeof(typename Update::Memory), 0, L.item(0),
               pivots.data, int(pivots.first), A.item(0), flags, info);
}

}  // namespace trifactor::cuda

#define TRIFACTOR_INSTANTIATE_KERNELS(T)                                                                       \
  template void trifactor::cuda::launch_lu_rows_of_one<T>(void*, Items<const T>, Pivots<const int>, Items<T>,  \
                                                          const int*);                                         \
  template void trifactor::cuda::launch_lu_update<T>(void*, Items<const T>, Pivots<const int>, Items<T>, int*, \
                                                     const int*);
