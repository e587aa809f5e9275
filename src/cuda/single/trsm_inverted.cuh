// Solves with the inverses of a triangle's diagonal blocks: what is left of them is products.
#pragma once

#include <cuda/device/pipeline.cuh>
#include <cuda/single/inverted_diagonal.cuh>
#include <cuda/engine/engine.hpp>
#include <cuda/engine/launch.cuh>
#include <cuda/single/single.hpp>
#include <cuda/device/product.cuh>

namespace trifactor::cuda {

/// One block of threads for each diagonal block. Its inverse is left as A is stored, flipped or not, (edge, edge)
/// without padding; behind it, a 1 where a product with it wants a step of refinement.
template <class T>
__global__ void __launch_bounds__(invert_threads)
    invert_kernel(Shape shape, Tile<const T> A, T* inverses, const int* info) {
  using Block = DiagonalShape<T>;
  constexpr int edge = Block::edge;
  extern __shared__ __align__(16) unsigned char raw[];
  if (info && *info != 0) return;
  T *D = reinterpret_cast<T*>(raw), *V = D + Block::size;
  auto* row_sums = reinterpret_cast<Real<T>*>(V + Block::size);
  const index_t k = blockIdx.x;
  const bool refine = invert_diagonal(shape, A, k * edge, D, V, row_sums);
  T* inverse = inverses + k * inverse_block_size<T>;
  const bool down = A.row_stride == 1;
  for (int t = int(threadIdx.x); t < edge * edge; t += invert_threads)
    inverse[t] = V[down ? t / edge * Block::ld + t % edge : t % edge * Block::ld + t / edge];
  if (threadIdx.x == 0) inverse[edge * edge] = T(refine ? 1 : 0);
}
template <class T>
index_t CudaEngine::inverse_edge(const Operand<T>& A, const Items<T>& B, const SolveTuning& tuning) const {
  constexpr index_t full_edge = cuda::inverse_edge<T>;
  const bool too_small = A.items.rows <= max(tuning.invert, full_edge);
  // The inverses are in scratch memory, which is for the main lane alone.
  return main_ != this || B.count != 1 || B.pointers || too_small ? 0 : full_edge;
}
template <class T>
index_t CudaEngine::inverses_size(const Operand<T>& A) const {
  return ceil_div(A.items.rows, cuda::inverse_edge<T>) * inverse_block_size<T>;
}
template <class T>
void CudaEngine::invert_blocks(Shape shape, Operand<T> A, T* inverses, const int* info) {
  if (arena().planning()) return;
  const Traced traced(*this, "invert_blocks", A.items.rows, cuda::inverse_edge<T>);
  using Block = DiagonalShape<T>;
  constexpr std::size_t bytes = 2 * Block::size * sizeof(T) + Block::edge * sizeof(Real<T>);
  const dim3 grid(unsigned(ceil_div(A.items.rows, index_t(Block::edge))));
  launch(stream_, invert_kernel<T>, grid, invert_threads, bytes, shape, A.items.item(0), inverses, info);
}

/// B := A^-1 B for strips of 8 N columns of B, each by one block that holds the strip in shared memory and streams the
/// triangle through it. A and the inverses are row-major or column-major.
template <class T, int N, bool row_major>
struct InvertedSolve {
  using Block = DiagonalShape<T>;
  static constexpr int edge = Block::edge, ld = Block::ld, threads = 128;
  static constexpr int strip = 8 * N, strip_ld = strip + 4;
  static constexpr int stages = N <= 2 ? 4 : 2;  // tiles in shared memory: one in use, the others on their way
  static constexpr int row_tiles = edge / 16, col_parts = threads / 32 / row_tiles;  // how the warps share a tile
  static constexpr int fragments = N / col_parts;                                    // of a warp, side by side
  static_assert(fragments > 0);
  using Part = Fragment<T, fragments>;

  Shape shape;
  Tile<const T> A;  // (n, n)
  bool conj;        // conj(A) X = B is solved as A conj(X) = conj(B)
  bool wide;        // lines of A start at multiples of 16 bytes
  const T* inverses;
  Tile<T> B;  // (n, columns)

  TF_HD InvertedSolve(Shape shape_, Tile<const T> A_, bool conj_, const Inverses<T>& all, Tile<T> B_)
      : shape(shape_), A(A_), conj(conj_), inverses(all.data + all.first / edge * inverse_block_size<T>), B(B_) {
    const index_t line = row_major ? A.row_stride : A.col_stride;
    wide = lines_aligned(A.data, line);
  }

  static std::size_t bytes(index_t n) {
    return (stages * std::size_t(Block::size) + std::size_t(ceil_div(n, edge) * edge) * strip_ld) * sizeof(T);
  }
  __device__ int blocks() const { return int((A.rows + edge - 1) / edge); }
  __device__ const T* inverse(int i) const { return inverses + index_t(i) * inverse_block_size<T>; }
  __device__ bool wants_refinement(int i) const { return real(inverse(i)[edge * edge]) != 0; }

  /// S := a tile as it is stored, line by line, without waiting: lines of `fast_count` entries, `slow_count` of them,
  /// zero beyond.
  template <int width>
  __device__ static void fetch(T* S, const T* lines, index_t line_stride, int fast_count, int slow_count) {
    constexpr int line = edge / width, bytes = width * int(sizeof(T));
    const int fast = int(threadIdx.x) % line * width;
#pragma unroll 8
    for (int slow = int(threadIdx.x) / line; slow < edge; slow += threads / line) {
      const int inside = slow < slow_count ? max(0, min(width, fast_count - fast)) : 0;
      copy_async<bytes>(shared_address(S + slow * ld + fast), inside > 0 ? lines + slow * line_stride + fast : lines,
                        inside * int(sizeof(T)));
    }
  }
  /// Tile (i, j) of A, or, where i = j, the inverse of the diagonal block.
  __device__ void fetch_tile(T* S, int i, int j) const {
    if (i == j)
      fetch<vector_of<T>>(S, inverse(i), edge, edge, edge);
    else
      fetch_from_A(S, i, j);
  }
  __device__ void fetch_from_A(T* S, int i, int j) const {
    const index_t r0 = index_t(i) * edge, c0 = index_t(j) * edge;
    const index_t fast = row_major ? c0 : r0, slow = row_major ? r0 : c0,
                  line = row_major ? A.row_stride : A.col_stride;
    const int fast_count = int(min(index_t(edge), A.rows - fast)), slow_count = int(min(index_t(edge), A.rows - slow));
    if (wide)
      fetch<vector_of<T>>(S, A.data + fast + slow * line, line, fast_count, slow_count);
    else
      fetch<1>(S, A.data + fast + slow * line, line, fast_count, slow_count);
  }

  __device__ static int row0() { return int(threadIdx.x) / 32 % row_tiles * 16; }
  __device__ static int col0() { return int(threadIdx.x) / 32 / row_tiles * fragments * 8; }

  /// f -= tile X: the warp's rows of a tile, and its columns of the strip's rows X. Strips hold conjugates, so that
  /// the tile routine for C -= A B^H serves.
  __device__ static void subtract(Part& f, const T* tile, const T* X) {
    f.template subtract<edge, false, row_major>(tile + row0() * (row_major ? ld : 1), ld, X + col0(), strip_ld);
  }
  /// g(entry of X in shared memory, entry of f) for the warp's part.
  template <class G>
  __device__ static void for_part(Part& f, T* X, G g) {
    f.change([&](int r, int c, T& v) { g(X[(row0() + r) * strip_ld + col0() + c], v); });
  }

  /// The strip := A's part of B, or back.
  template <class G>
  __device__ void for_strip(index_t first, T* strip_data, G g) const {
    const int rows = blocks() * edge, rank = int(threadIdx.x);
    const bool down = B.row_stride == 1;
    for (int t = rank; t < rows * strip; t += threads) {
      const int r = down ? t % rows : t / strip, c = down ? t / rows : t % strip;
      g(r < A.rows && first + c < B.cols, index_t(r), first + c, strip_data[r * strip_ld + c]);
    }
  }

  /// X := X + V (Y - D X), with Y, in `before`, what X was solved for: with the diagonal block and its inverse, which
  /// go through the buffer `tile`.
  __device__ void refine(int i, T* X, Part& before, T* tile) const {
    fetch_from_A(tile, i, i);
    copy_commit(), copy_wait<0>();
    __syncthreads();  // the block is there, with what lies in the other triangle
    for (int t = int(threadIdx.x); t < edge * edge; t += threads) {
      const int slow = t / edge, fast = t % edge, r = row_major ? slow : fast, k = row_major ? fast : slow;
      if (shape.lower ? k > r : k < r) tile[slow * ld + fast] = T(0);
      if (r == k && (shape.unit || index_t(i) * edge + r >= A.rows)) tile[slow * ld + fast] = T(1);
    }
    __syncthreads();            // the triangle is alone
    subtract(before, tile, X);  // Y - D X
    Part x;
    for_part(x, X, [](T& in, T& v) { v = core::conj(in); });
    __syncthreads();  // X and the block are read
    for_part(before, X, [](T& in, T& v) { in = core::conj(v); });
    fetch_tile(tile, i, i);
    copy_commit(), copy_wait<0>();
    __syncthreads();  // the residual and the inverse are there
    Part step;
    step.clear();
    subtract(step, tile, X);
    __syncthreads();  // the residual is read
    step.negate();
    x.add(step.c);
    for_part(x, X, [](T& in, T& v) { in = core::conj(v); });
  }

  __device__ void solve(index_t first, T* shared) const {
    T* S = shared + stages * Block::size;
    const int all = blocks();
    const auto place = [&](int t) { return shape.lower ? t : all - 1 - t; };
    // Tiles come row by row of tiles, each row up to its diagonal.
    int row = 0, col = 0, slot = 0;
    const auto fetch_next = [&] {
      if (row < all) fetch_tile(shared + slot * Block::size, place(row), place(col));
      copy_commit();  // perhaps of nothing, so that the number of groups is that of tiles
      slot = (slot + 1) % stages;
      if (++col > row) ++row, col = 0;
    };
    for (int s = 0; s < stages - 1; ++s) fetch_next();
    for_strip(first, S, [&](bool inside, index_t r, index_t c, T& x) {
      x = inside ? conj_if(!conj, B(r, c)) : T(0);  // conjugated once more for the products
    });
    int now = 0;
    for (int t = 0; t < all; ++t) {
      T* X = S + place(t) * edge * strip_ld;  // (edge, strip), rows contiguous
      Part f;
      f.clear();
      for (int u = 0; u <= t; ++u) {
        T* tile = shared + now * Block::size;
        now = (now + 1) % stages;
        fetch_next();
        copy_wait<stages - 1>();
        __syncthreads();  // the tile is there, and so is what was written to the strip
        if (u < t) {
          subtract(f, tile, S + place(u) * edge * strip_ld);  // Y -= A(t, u) X(u)
          if (u + 1 == t) for_part(f, X, [](T& in, T& v) { v = v + core::conj(in), in = core::conj(v); });
        } else {
          Part y;
          for_part(y, X, [](T& in, T& v) { v = core::conj(in); });
          f.clear();
          subtract(f, tile, X);  // -X(t) = -V(t) Y
          __syncthreads();       // Y is read
          for_part(f, X, [](T& in, T& v) { in = core::conj(-v); });
          if (wants_refinement(place(t))) {
            __syncthreads();  // X is there, and the tile is read
            refine(place(t), X, y, tile);
          }
        }
        __syncthreads();  // the tile is read before it is overwritten, and this part of the strip is written
      }
    }
    for_strip(first, S, [&](bool inside, index_t r, index_t c, T& x) {
      if (inside) B(r, c) = conj_if(!conj, x);
    });
    __syncthreads();  // the strip is written out before the next one overwrites it
  }
};

/// What describes the matrix stays in the kernel's parameters, and registers are free for products.
template <class T, int N, bool row_major>
__global__ void __launch_bounds__(InvertedSolve<T, N, row_major>::threads)
    inverted_kernel(InvertedSolve<T, N, row_major> solver, const int* info) {
  extern __shared__ __align__(16) unsigned char raw[];
  if (info && *info != 0) return;
  for (index_t first = index_t(blockIdx.x) * solver.strip; first < solver.B.cols;
       first += index_t(gridDim.x) * solver.strip)
    solver.solve(first, reinterpret_cast<T*>(raw));
}
template <class T>
void CudaEngine::trsm_inverted(Shape shape, Operand<T> A, const Inverses<T>& inverses, Items<T> B, const int* info) {
  if (arena().planning()) return;
  const Traced traced(*this, "trsm_inverted", B.rows, B.cols, B.rows);
  constexpr int narrow = sizeof(T) > 8 ? 2 : 1, broad = sizeof(T) > 8 ? 2 : 4;
  const bool row_major = A.items.is_flipped;
  const auto go = [&]<int N, bool is_row_major>() {
    using Solve = InvertedSolve<T, N, is_row_major>;
    launch(stream_, inverted_kernel<T, N, is_row_major>, grid_for(ceil_div(B.cols, Solve::strip)), Solve::threads,
           Solve::bytes(A.items.rows), Solve(shape, A.items.item(0), A.conj, inverses, B.item(0)), info);
  };
  if (B.cols <= 8 * narrow * multiprocessors_)  // narrow strips if they all run at once: a shorter critical path
    row_major ? go.template operator()<narrow, true>() : go.template operator()<narrow, false>();
  else
    row_major ? go.template operator()<broad, true>() : go.template operator()<broad, false>();
}

}  // namespace trifactor::cuda

#define TRIFACTOR_INSTANTIATE_KERNELS(T)                                                                       \
  template trifactor::index_t trifactor::cuda::CudaEngine::inverse_edge<T>(const Operand<T>&, const Items<T>&, \
                                                                           const SolveTuning&) const;          \
  template trifactor::index_t trifactor::cuda::CudaEngine::inverses_size<T>(const Operand<T>&) const;          \
  template void trifactor::cuda::CudaEngine::invert_blocks<T>(Shape, Operand<T>, T*, const int*);              \
  template void trifactor::cuda::CudaEngine::trsm_inverted<T>(Shape, Operand<T>, const Inverses<T>&, Items<T>, \
                                                              const int*);
