// Solves with Cholesky factors of order up to 64, for a batch: the factor in shared memory, sixteen right-hand sides at
// a time in the registers of a warp. A matrix may be factored first, so that it is read once.
#pragma once

#include <core/path.hpp>
#include <cuda/engine/engine.hpp>
#include <cuda/engine/launch.cuh>
#include <cuda/batched/cholesky_warp.cuh>
#include <cuda/batched/cholesky_lanes.cuh>

namespace trifactor::cuda {

inline constexpr index_t cholesky_solve_limit = 64;  // order of an item
inline constexpr index_t factor_solve_columns = 1;   // of B, at most, where A is factored in the same launch

/// The columns of a factor of order up to `max_order` in shared memory, sixteen at a time from their diagonal on.
template <class T, int max_order>
struct SharedFactor {
  static constexpr int pad = column_pad<T>, groups = max_order / 16;
  static constexpr int size = 16 * groups * (max_order + pad) - 128 * groups * (groups - 1);
  T* data;
  /// Entry (r, 8 p + c) is at panel(p)[c * pitch(p) + r].
  __device__ static int pitch(int p) { return max_order + pad - p / 2 * 16; }
  __device__ T* panel(int p) const {
    const int g = p / 2;
    return data + 16 * g * (max_order + pad) - 128 * g * (g - 1) + p % 2 * 8 * pitch(p) - 16 * g;
  }
  __device__ T& at(int p, int r, int c) const { return panel(p)[c * pitch(p) + r]; }
};

template <class T, int strips>
struct SolveShape {
  static constexpr int max_order = 16 * strips;  // the largest order
  using Factor = SharedFactor<T, max_order>;
  static constexpr int inverses = Factor::size;  // where they begin
  static constexpr int entries = inverses + 2 * strips * PivotBlock<T>::size;
  static constexpr int registers = sizeof(T) == 4 ? 128 : sizeof(T) > 8 || max_order > 32 ? 255 : 168;  // of a thread
  static constexpr int blocks = 65536 / (32 * registers);  // on a multiprocessor
};

/// L, of which the lower triangle of order n is given, into `factor`, and the inverses of its diagonal blocks into V.
template <class T, int strips>
__device__ void load_factor(const Tile<const T>& L, SharedFactor<T, 16 * strips> factor, T* V) {
  const int n = int(L.rows);
  const LanePlace place;
  const Tile<const T> in = opaque(L);
  for (int p = 0; 8 * p < n; ++p)
#pragma unroll
    for (int i = 0; i < strips; ++i)
      if (2 * i + 1 >= p && 16 * i < n) {
        const TensorEntries<T> c = load_tile(in, 16 * i, 8 * p, place);
#pragma unroll
        for (int e = 0; e < 4; ++e)
          if (16 * i + place.row(e) >= 8 * p) factor.at(p, 16 * i + place.row(e), place.col(e)) = c.get(e);
      }
  __syncwarp();  // the factor is there
  // V = L^-H: eight lanes to a block, a row each, by substitution.
  for (int t = int(threadIdx.x); t / 8 * 8 < n; t += 32) {
    const int p = t / 8, row = t % 8;
    T x[8];
#pragma unroll
    for (int c = 0; c < 8; ++c) {
      x[c] = T(c == row ? 1 : 0);
#pragma unroll
      for (int k = 0; k < c; ++k) x[c] = minus_product(x[c], x[k], conj(factor.at(p, 8 * p + c, k)));
      x[c] = x[c] * (Real<T>(1) / real(factor.at(p, 8 * p + c, c)));
      V[p * PivotBlock<T>::size + row * PivotBlock<T>::pitch + c] = x[c];
    }
  }
}

/// X := (L L^H)^-1 X, or (conj(L) L^T)^-1 X if `flipped`, by a warp, which holds X^H, or X^T, as tiles of 16 x 8.
template <class T, int strips>
__device__ void solve_with_factor(SharedFactor<T, 16 * strips> factor, const T* V, bool flipped, const Tile<T>& given) {
  constexpr int panels = 2 * strips;
  const int n = int(given.rows), columns = int(given.cols);
  const LanePlace place;
  for (int j0 = 0; j0 < columns; j0 += 16) {
    const Tile<T> X = opaque(given);
    TensorEntries<T> x[panels];
#pragma unroll
    for (int p = 0; p < panels; ++p)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int j = j0 + place.row(e), k = 8 * p + place.col(e);
        x[p].set(e, k < n && j < columns ? conj_if(!flipped, X(k, j)) : T(0));
      }
#pragma unroll
    for (int p = 0; p < panels; ++p)
      if (8 * p < n) {
        x[p] = times_inverse(x[p], negative_inverse(V + p * PivotBlock<T>::size, place));  // x_p := x_p L_pp^-H
#pragma unroll
        for (int i = p + 1; i < panels; ++i)
          if (8 * i < n) {
            RightPart<T> right;
#pragma unroll
            for (int s = 0; s < 2; ++s) right.v[s] = factor.at(p, 8 * i + place.right_row(), 4 * s + place.t);
            subtract_product(x[i], as_left(x[p]), right);  // x_i -= x_p L_ip^H
          }
      }
#pragma unroll
    for (int p = 0; p < panels; ++p)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        if (8 * p + place.col(e) >= n) x[p].set(e, T(0));  // rows of the factor beyond the last are not defined
#pragma unroll
    for (int p = panels - 1; p >= 0; --p)
      if (8 * p < n) {
        RightPart<T> negative;
#pragma unroll
        for (int s = 0; s < 2; ++s)
          negative.v[s] = -V[p * PivotBlock<T>::size + place.right_row() * PivotBlock<T>::pitch + 4 * s + place.t];
        x[p] = times_inverse(x[p], negative);  // x_p := x_p L_pp^-1
#pragma unroll
        for (int i = 0; i < p; ++i) {
          RightPart<T> right;
#pragma unroll
          for (int s = 0; s < 2; ++s) right.v[s] = conj(factor.at(i, 8 * p + 4 * s + place.t, place.right_row()));
          subtract_product(x[i], as_left(x[p]), right);  // x_i -= x_p L_pi
        }
      }
    const Tile<T> out = opaque(given);
#pragma unroll
    for (int p = 0; p < panels; ++p)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int j = j0 + place.row(e), k = 8 * p + place.col(e);
        if (k < n && j < columns) out(k, j) = conj_if(!flipped, x[p].get(e));
      }
  }
}

/// Whether item b is to be factored and solved for.
template <class T>
__device__ bool fits(const Items<T>& A, const Items<T>& B, index_t b) {
  return A.possible_square(b) && B.possible(b) && (!B.ragged() || B.item_rows[b] == A.item_rows[b]);
}

/// Items whose info is not 0 are skipped.
template <class T, int strips>
__global__ void __launch_bounds__(32, SolveShape<T, strips>::blocks)
    cholesky_solve_kernel(Items<const T> L, bool flipped, Items<T> B, const int* info) {
  using Shape = SolveShape<T, strips>;
  extern __shared__ __align__(16) unsigned char raw[];
  T *const shared = reinterpret_cast<T*>(raw), *const V = shared + Shape::inverses;
  const typename Shape::Factor factor{shared};
  for (index_t b = blockIdx.x; b < B.count; b += gridDim.x) {
    if (!info || info[b] == 0) {
      load_factor<T, strips>(L.item(b), factor, V);
      __syncwarp();  // the inverses are there
      solve_with_factor<T, strips>(factor, V, flipped, B.item(b));
    }
    __syncwarp();  // shared memory is free again
  }
}

/// Factors, and solves for one right-hand side at most.
template <class T, int max_tiles>
__global__ void __launch_bounds__(32, WarpShape<T, max_tiles>::blocks)
    cholesky_solve_warp_kernel(Items<T> A, bool by_rows, Items<T> B, int* info) {
  using Shape = WarpShape<T, max_tiles>;
  extern __shared__ __align__(128) unsigned char aligned[];
  T *const scratch = reinterpret_cast<T*>(aligned), *const rhs = scratch + Shape::scratch;
  T* const store = rhs + Shape::right;
  const RightSide<T, max_tiles> right{rhs};
  const int lane = int(threadIdx.x % 32);
  for (index_t at = blockIdx.x; at < B.count; at += gridDim.x) {
    const index_t b = B.count - 1 - at;  // what was written last is still in the cache
    int failed = -1;
    if (fits(A, B, b)) {
      const Tile<T> a = item_if(true, by_rows, A, b), x = item_if(true, false, B, b);
      const bool some = x.cols > 0;
      const int n = int(a.rows);
      // Where A is seen flipped, conj(L) L^T x = b, and so L L^H conj(x) = conj(b).
#pragma unroll
      for (int i = 0; i < max_tiles / 4; ++i) {
        const int row = lane + 32 * i;
        const bool inside = some && row < n;
        const T* const from = x.data + (inside ? row * x.row_stride : 0);
        if (is_complex<T> && by_rows)
          rhs[row] = inside ? conj(*from) : T(0);
        else  // together with the first panel
          copy_async<int(sizeof(T))>(shared_address(rhs + row), from, inside ? int(sizeof(T)) : 0);
      }
      failed = factor_by_warp<max_tiles, true>(opaque(a), by_rows, store, scratch, right);
      if (failed == 0 && some) {
        T v[max_tiles / 4];
        right.backward(n, store, v);
        const Tile<T> out = opaque(x);
#pragma unroll
        for (int i = 0; i < max_tiles / 4; ++i) {
          const int row = lane + 32 * i;
          if (row < n) out.data[row * out.row_stride] = conj_if(by_rows, v[i]);
        }
      }
    }
    __syncwarp();  // shared memory is free again
    if (lane == 0) info[b] = failed;
  }
}

/// Factors and solves for one right-hand side at most, several items to a warp.
template <class T, int width, bool by_rows>
__global__ void __launch_bounds__(LanesShape<T, width, true>::threads, LanesShape<T, width, true>::solve_blocks)
    cholesky_solve_lanes_kernel(Items<T> A, Items<T> B, int* info) {
  using Shape = LanesShape<T, width, true>;
  extern __shared__ __align__(16) unsigned char raw[];
  const int group = int(threadIdx.x / width), row = int(threadIdx.x % width);
  T* const scratch = reinterpret_cast<T*>(raw) + group * Shape::scratch;
  const index_t b = index_t(blockIdx.x) * Shape::items + group;
  const bool own = b < B.count;
  const Tile<T> a = item_if(own, by_rows, A, b), x = item_if(own, false, B, b);
  const int n = int(a.rows);
  // A is seen flipped: conj(L) L^T x = b, and so L L^H conj(x) = conj(b).
  const bool some = row < n && x.cols > 0;
  const T given = some ? conj_if(by_rows, x.data[row * x.row_stride]) : T(0);
  auto result = factor_lanes<false, T, width, by_rows, true>(a, n, true, scratch, given);
  if (__any_sync(~0u, result.failed < 0)) {
    const bool again = result.failed < 0;
    const auto safe = factor_lanes_safely<T, width, by_rows, true>(a, again ? n : 0, again, scratch, given);
    if (again) result = safe;
  }
  T column[width], v = result.x;  // M^H x = v, from the last column on
  read_vectors<width>(scratch + row * Shape::Scratch::step, column);
#pragma unroll
  for (int c = width - 1; c > 0; --c) {
    const T last = from_lane<width>(v, c);
    if (row < c && c < n) v = minus_product(v, conj((column[c] * result.scale) * result.scale), last);
  }
  const Tile<T> to = opaque(x);
  if (some && result.failed == 0) to.data[row * to.row_stride] = conj_if(by_rows, v);
  if (b < B.count && row == 0) info[b] = own ? result.failed : -1;
}

template <class T>
bool CudaEngine::cholesky_solve_whole(Items<T> A, bool flipped, Items<T> B, int* info, const CholeskyTuning& tuning) {
  if (A.rows > min(tuning.whole, cholesky_solve_limit) || B.cols > min(tuning.fused, factor_solve_columns))
    return false;
  if (arena().planning()) return true;
  const Traced traced(*this, "cholesky_solve_whole", A.rows, B.cols);
  set_path("one launch");
  const auto small = [&]<int width>(std::integral_constant<int, width>) {
    using Shape = LanesShape<T, width, true>;
    const auto kernel =
        flipped ? cholesky_solve_lanes_kernel<T, width, true> : cholesky_solve_lanes_kernel<T, width, false>;
    launch(stream_, kernel, grid_of_all(ceil_div(B.count, Shape::items)), Shape::threads, Shape::bytes, A, B, info);
  };
  const auto large = [&]<int order>(std::integral_constant<int, order>) {
    constexpr int max_tiles = order / 8;
    using Shape = WarpShape<T, max_tiles>;
    const std::size_t bytes = std::size_t(Shape::entries(int(A.rows)) + Shape::right) * sizeof(T);
    launch(stream_, cholesky_solve_warp_kernel<T, max_tiles>, grid_for(B.count), 32, bytes, A, flipped, B, info);
  };
  const index_t n = A.ragged() || B.ragged() ? max(A.rows, index_t(17)) : A.rows;  // ragged items have a warp each
  n <= 16 ? with_least<4, 8, 16>(n, small) : with_least<32, 64>(n, large);
  return true;
}

template <class T>
bool CudaEngine::cholesky_solved_whole(Items<const T> L, bool flipped, Items<T> X, const int* info,
                                       const SolveTuning& tuning) {
  if ((L.count == 1 && !L.pointers) || L.rows > cholesky_solve_limit || X.cols > tuning.fused) return false;
  if (arena().planning()) return true;
  const Traced traced(*this, "cholesky_solved_whole", L.rows, X.cols);
  set_path("one launch");
  with_least<32, 64>(L.rows, [&]<int order>(std::integral_constant<int, order>) {
    constexpr int strips = order / 16;
    launch(stream_, cholesky_solve_kernel<T, strips>, grid_for(X.count), 32, SolveShape<T, strips>::entries * sizeof(T),
           L, flipped, X, info);
  });
  return true;
}

}  // namespace trifactor::cuda

#define TRIFACTOR_INSTANTIATE_KERNELS(T)                                                                          \
  template bool trifactor::cuda::CudaEngine::cholesky_solve_whole<T>(Items<T>, bool, Items<T>, int*,              \
                                                                     const CholeskyTuning&);                      \
  template bool trifactor::cuda::CudaEngine::cholesky_solved_whole<T>(Items<const T>, bool, Items<T>, const int*, \
                                                                      const SolveTuning&);
