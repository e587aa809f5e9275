// C -= A B for every batch kind: one block for each item and each square of C, on the tensor cores where there are any.
#pragma once

#include <cuda/kernels/launch.cuh>
#include <cuda/kernels/mma.cuh>

namespace trifactor::cuda {

struct UpdateShape {
  static constexpr int edge = 64;         // of a square of C, in the registers of a block
  static constexpr int depth = 16;        // of the slices of A and B in shared memory
  static constexpr int pitch = edge + 4;  // of their columns: fragments are read without bank conflicts
  static constexpr int threads = 256, each = edge * depth / threads;
};

/// A thread's part of the slices of X, (edge, depth) from row i0 on, zero outside X. Neighbouring threads read
/// neighbouring addresses.
template <class T>
struct Slices {
  using S = UpdateShape;
  const T* from;
  index_t step, advance;  // to the next entry of this thread, and of the next slice
  int rows, columns;      // that lie in X from this thread's first entry on
  int place;              // of that entry in a slice
  bool down;
  T entries[S::each];

  __device__ Slices(const Tile<const T>& X, index_t i0) : down(X.row_stride == 1) {
    const int t = int(threadIdx.x), r = down ? t % S::edge : t / S::depth, p = down ? t / S::edge : t % S::depth;
    from = X.data + (i0 + r) * X.row_stride + p * X.col_stride;
    step = down ? S::threads / S::edge * X.col_stride : S::threads / S::depth * X.row_stride;
    advance = S::depth * X.col_stride;
    rows = int(X.rows - i0) - r, columns = int(X.cols) - p;
    place = p * S::pitch + r;
  }
  /// Of the next slice, without waiting for it.
  __device__ void fetch() {
#pragma unroll
    for (int e = 0; e < S::each; ++e) {
      const bool inside =
          down ? rows > 0 && S::threads / S::edge * e < columns : S::threads / S::depth * e < rows && columns > 0;
      entries[e] = inside ? from[e * step] : T(0);
    }
    from += advance, columns -= S::depth;
  }
  __device__ void store(T* slice, bool conj) const {
#pragma unroll
    for (int e = 0; e < S::each; ++e)
      slice[place + e * (down ? S::threads / S::edge * S::pitch : S::threads / S::depth)] = conj_if(conj, entries[e]);
  }
};

template <class T>
__global__ void __launch_bounds__(UpdateShape::threads, sizeof(T) > 8 ? 1 : 2)
    update_kernel(Items<const T> A, bool conj_a, Items<const T> B, bool conj_b, Items<T> C, bool lower_only,
                  const int* info) {
  constexpr int edge = UpdateShape::edge, depth = UpdateShape::depth, pitch = UpdateShape::pitch;
  using Sum = Product<T, edge, true>;
  __shared__ __align__(16) T a_slice[depth * pitch], b_slice[depth * pitch];
  for (index_t item = blockIdx.x; item < C.count; item += gridDim.x) {
    if (info && info[item] != 0) continue;
    const Tile<T> c = C.item(item);
    const Tile<const T> a = A.item(item), b = B.item(item).flipped();  // (m, k)   (n, k)
    for (index_t i0 = index_t(blockIdx.y) * edge; i0 < c.rows; i0 += index_t(gridDim.y) * edge)
      for (index_t j0 = index_t(blockIdx.z) * edge; j0 < c.cols; j0 += index_t(gridDim.z) * edge) {
        if (lower_only && j0 > i0 + edge - 1) continue;
        Slices<T> next_a(a, i0), next_b(b, j0);
        next_a.fetch(), next_b.fetch();
        Sum sum;
        const int first_row = sum.first_row(), first_col = sum.first_col();
        Tile<T> own = c.block(i0 + first_row, j0 + first_col, 0, 0);  // from this thread's first entry on
        const int rows = int(c.rows - i0) - first_row, cols = int(c.cols - j0) - first_col;
        const int above = lower_only ? int(j0 - i0) + first_col - first_row : -2 * edge;
        const auto inside = [&](int r, int s) { return r < rows && s < cols && r - s >= above; };
        Sum::visit([&](int k, int e, int r, int s) { sum.set(k, e, inside(r, s) ? own(r, s) : T(0)); });
        for (int left = int(a.cols); left > 0; left -= depth) {
          next_a.store(a_slice, conj_a),
              next_b.store(b_slice, !conj_b);  // the product takes the conjugate of the second
          __syncthreads();                     // the slices are complete
          if (left > depth) next_a.fetch(), next_b.fetch();
          sum.template subtract<depth>(a_slice, b_slice, Layout<true, pitch>{}, [](int) {});
          __syncthreads();  // everyone is done with the slices before they are overwritten
        }
        asm volatile("" : "+l"(own.row_stride), "+l"(own.col_stride));  // addresses are made again, instead of kept
        Sum::visit([&](int k, int e, int r, int s) {
          if (inside(r, s)) own(r, s) = sum.get(k, e);
        });
      }
  }
}

template <class T>
void launch_update(void* stream, Operand<T> A, Operand<T> B, Items<T> C, bool lower_only, const int* info) {
  constexpr index_t edge = UpdateShape::edge, most = 65535;
  // Enough for any device: beyond, a block takes several squares. One large item among many small ones would otherwise
  // make all of them start as many blocks as it has itself, which find nothing to do.
  constexpr index_t enough = 1 << 17;
  const index_t each = max(index_t(1), enough / C.count);
  const index_t rows = min(ceil_div(C.rows, edge), min(each, most));
  const index_t cols = min(ceil_div(C.cols, edge), min(max(index_t(1), each / rows), most));
  const dim3 grid(grid_for(C.count), unsigned(rows), unsigned(cols));
  launch(stream, update_kernel<T>, grid, UpdateShape::threads, 0, A.items, A.conj, B.items, B.conj, C, lower_only,
         info);
}

}  // namespace trifactor::cuda

#define TRIFACTOR_INSTANTIATE_KERNELS(T) \
  template void trifactor::cuda::launch_update<T>(void*, Operand<T>, Operand<T>, Items<T>, bool, const int*);
