// C -= A B for every batch kind: one block for each item and each tile of C.
#pragma once

#include <cuda/batched/batched.hpp>
#include <cuda/device/pipeline.cuh>
#include <cuda/engine/launch.cuh>
#include <cuda/device/product.cuh>

#include <cstdint>

namespace trifactor::cuda {

template <class T>
struct UpdateShape {
  static constexpr int edge = 64;         // of a tile of C, in the registers of a block
  static constexpr int depth = 16;        // of the slices of A and B in shared memory
  static constexpr int pitch = edge + 4;  // of their columns: fragments are read without bank conflicts
  static constexpr int slice = depth * pitch, stages = sizeof(T) == 4 ? 3 : sizeof(T) == 8 ? 4 : 2;
  static constexpr std::size_t bytes = stages * 2 * slice * sizeof(T);
  static constexpr int warps = is_complex<T> ? 8 : 4, threads = 32 * warps;
  static constexpr int blocks = sizeof(T) > 8 ? 1 : sizeof(T) == 4 ? 4 : is_complex<T> ? 2 : 3;  // on a multiprocessor
};

/// This thread's part of the slices of X, (edge, depth) from row i0 on, zero outside X, on their way to shared memory,
/// where they lie by columns. Neighbouring threads copy neighbours; 16 bytes at a time where X is aligned so.
template <class T>
struct Slices {
  using S = UpdateShape<T>;
  static constexpr int wide = vector_of<T>, each = S::edge * S::depth / S::threads;
  const T* from;
  index_t step, advance;  // to the next copy of this thread, and to the next slice
  int rows, cols;         // that lie in X from its first entry on
  int place, place_step;  // of the first entry in a slice, and to that of the next copy
  bool down, aligned;

  __device__ Slices(const Tile<const T>& X, index_t i0)
      : down(X.row_stride == 1),
        aligned(down && reinterpret_cast<std::uintptr_t>(X.data) % 16 == 0 && X.col_stride % wide == 0) {
    constexpr int line = S::edge / wide;                                 // threads along a column
    constexpr int near = 32 / int(sizeof(T)), groups = S::depth / near;  // or along 32 bytes of a row
    const int t = int(threadIdx.x), lane = t % 32, warp = t / 32;
    int r = lane / near + warp / groups * (32 / near), k = lane % near + warp % groups * near;
    if (down) r = t % S::edge, k = t / S::edge;
    if (aligned) r = t % line * wide, k = t / line;
    const int along = aligned ? S::threads / line : down ? S::threads / S::edge : S::threads / S::depth;
    from = X.data + (i0 + r) * X.row_stride + k * X.col_stride;
    step = along * (down ? X.col_stride : X.row_stride), advance = S::depth * X.col_stride;
    rows = int(X.rows - i0) - r, cols = int(X.cols) - k;
    place = k * S::pitch + r, place_step = along * (down ? S::pitch : 1);
  }
  /// Starts to copy the next one.
  __device__ void fetch(T* slice) {
    const unsigned to = shared_address(slice + place);
    if (aligned) {
      const int inside = max(0, min(rows, wide)) * int(sizeof(T));
#pragma unroll
      for (int e = 0; e < each / wide; ++e)
        copy(std::integral_constant<int, wide>{}, to, e, e * (S::threads / (S::edge / wide)) < cols ? inside : 0);
    } else {
#pragma unroll
      for (int e = 0; e < each; ++e) {
        const bool in =
            down ? rows > 0 && e * (S::threads / S::edge) < cols : e * (S::threads / S::depth) < rows && cols > 0;
        copy(std::integral_constant<int, 1>{}, to, e, in ? int(sizeof(T)) : 0);
      }
    }
    from += advance, cols -= S::depth;
  }
  /// Of what this thread has copied and waited for.
  __device__ void conjugate(T* slice) const {
    for (int e = 0; e < (aligned ? each / wide : each); ++e)
      for (int w = 0; w < (aligned ? wide : 1); ++w) {
        T& x = slice[place + e * place_step + w];
        x = conj(x);
      }
  }

 private:
  template <int width>
  __device__ void copy(std::integral_constant<int, width>, unsigned to, int e, int inside) const {
    constexpr int bytes = width * int(sizeof(T));
    copy_async<bytes>(to + unsigned(e * place_step * int(sizeof(T))), from + (inside > 0 ? e * step : 0), inside);
  }
};

template <class T>
__global__ void __launch_bounds__(UpdateShape<T>::threads, UpdateShape<T>::blocks)
    update_kernel(Items<const T> A, bool conj_a, Items<const T> B, bool conj_b, Items<T> C, bool lower_only,
                  const int* info, int down, int right) {
  using S = UpdateShape<T>;
  constexpr int edge = S::edge, depth = S::depth, stages = S::stages;
  using Sum = Product<T, edge, true, T, S::warps>;
  using Pair = EntryVector<T, 2>;
  extern __shared__ __align__(16) unsigned char update_memory[];
  const auto a_slice = [](int c) { return reinterpret_cast<T*>(update_memory) + c % stages * 2 * S::slice; };
  const auto b_slice = [&](int c) { return a_slice(c) + S::slice; };
  const int tiles = down * right, tile = int(blockIdx.x) % tiles;
  for (index_t item = blockIdx.x / tiles; item < C.count; item += gridDim.x / tiles) {
    if (info && info[item] != 0) continue;
    const Tile<T> c = C.item(item);
    const Tile<const T> a = A.item(item), b = B.item(item).flipped();  // (m, k)   (n, k)
    const int chunks = int(ceil_div(a.cols, index_t(depth)));
    if (chunks == 0) continue;
    for (index_t i0 = index_t(tile % down) * edge; i0 < c.rows; i0 += index_t(down) * edge)
      for (index_t j0 = index_t(tile / down) * edge; j0 < c.cols; j0 += index_t(right) * edge) {
        if (lower_only && j0 > i0 + edge - 1) continue;
        Slices<T> a_from(a, i0), b_from(b, j0);
        const auto fetch = [&](int chunk) {
          if (chunk < chunks) a_from.fetch(a_slice(chunk)), b_from.fetch(b_slice(chunk));
          copy_commit();
        };
        for (int k = 0; k < stages - 1; ++k) fetch(k);
        Sum sum;
        const int first_row = sum.first_row(), first_col = sum.first_col();
        Tile<T> own = c.block(i0 + first_row, j0 + first_col, 0, 0);  // from this thread's first entry on
        const int rows = int(c.rows - i0) - first_row, cols = int(c.cols - j0) - first_col;
        const int above = lower_only ? int(j0 - i0) + first_col - first_row : -2 * edge;
        const auto inside = [&](int r, int s) { return r < rows && s < cols && r - s >= above; };
        // Two rows of a thread are neighbours, and one copy where they lie so.
        const bool pairs = Sum::paired && c.row_stride == 1 && c.col_stride % 2 == 0 &&
                           reinterpret_cast<std::uintptr_t>(c.data) % sizeof(Pair) == 0 &&
                           (i0 + edge <= c.rows || c.rows % 2 == 0) && (!lower_only || j0 + edge <= i0);
        const auto pair = [&](int r, int s) { return reinterpret_cast<Pair*>(own.data + r + s * own.col_stride); };
        if (pairs)
          Sum::visit([&](int k, int e, int r, int s) {
            if (e >= 2) return;
            const Pair v = r < rows && s < cols ? *pair(r, s) : Pair{};
            sum.set(k, e, v.v[0]), sum.set(k, e + 2, v.v[1]);
          });
        else
          Sum::visit([&](int k, int e, int r, int s) { sum.set(k, e, inside(r, s) ? own(r, s) : T(0)); });
        const bool outside = __all_sync(~0u, rows <= 0 || cols <= 0);  // all of this warp's entries
        for (int chunk = 0; chunk < chunks; ++chunk) {
          copy_wait<stages - 2>();
          if constexpr (is_complex<T>) {
            if (conj_a) a_from.conjugate(a_slice(chunk));
            if (!conj_b) b_from.conjugate(b_slice(chunk));  // the product takes the conjugate of the second
          }
          __syncthreads();  // the slices are there, and everyone is done with those before
          fetch(chunk + stages - 1);
          if (!outside) sum.template subtract<depth, S::pitch>(a_slice(chunk), b_slice(chunk), [](int) {});
        }
        asm volatile("" : "+l"(own.row_stride), "+l"(own.col_stride));  // optimization barrier: addresses would spill
        if (pairs)
          Sum::visit([&](int k, int e, int r, int s) {
            if (e < 2 && r < rows && s < cols) *pair(r, s) = {{sum.get(k, e), sum.get(k, e + 2)}};
          });
        else
          Sum::visit([&](int k, int e, int r, int s) {
            if (inside(r, s)) own(r, s) = sum.get(k, e);
          });
        __syncthreads();  // the slices are free
      }
  }
}

/// Tiles of an item are neighbours in the grid: what several of them read is still in the cache.
template <class T>
void launch_update(void* stream, Operand<T> A, Operand<T> B, Items<T> C, bool lower_only, const int* info) {
  constexpr index_t edge = UpdateShape<T>::edge;
  // Beyond `enough` blocks, which fill any device, a block takes several tiles: one large item among many small ones
  // would otherwise start as many blocks for each of them as it needs itself.
  constexpr index_t enough = 1 << 17, max_blocks = 1 << 30;
  const index_t each = max(index_t(1), enough / C.count);
  const index_t down = min(ceil_div(C.rows, edge), each);
  const index_t right = min(ceil_div(C.cols, edge), max(index_t(1), each / down));
  const dim3 grid(unsigned(down * right * min(C.count, max_blocks / (down * right))));
  launch(stream, update_kernel<T>, grid, UpdateShape<T>::threads, UpdateShape<T>::bytes, A.items, A.conj, B.items,
         B.conj, C, lower_only, info, int(down), int(right));
}

}  // namespace trifactor::cuda

#define TRIFACTOR_INSTANTIATE_KERNELS(T) \
  template void trifactor::cuda::launch_update<T>(void*, Operand<T>, Operand<T>, Items<T>, bool, const int*);
