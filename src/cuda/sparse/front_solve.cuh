// Solves with all fronts of a sparse factor, or those of a branch. The factor is read once for each triangle.
//
// Small subtrees are one launch, before all other fronts in the forward solve and after them in the backward one. What
// lies between is one launch: blocks of threads take strips of fronts by ticket (sparse/solve_lists.hpp), forward ones
// first. A strip waits for what its children and the strips before it have solved. What is solved lies in global memory
// as a message: a NaN that arithmetic does not make until it is there. Every wait is for an earlier ticket, whose
// holder is running already: a hang is impossible, wherever blocks are resident.
#pragma once

#include <cuda/engine/engine.hpp>
#include <cuda/engine/launch.cuh>
#include <cuda/sparse/solve_strip.cuh>
#include <cuda/sparse/solve_subtree.cuh>

#include <bit>

namespace trifactor::cuda {

/// One block for each diagonal block of a strip: above its diagonal comes the part of its inverse below the diagonal,
/// transposed.
template <class T>
__global__ void __launch_bounds__(invert_threads)
    invert_fronts_kernel(const SolveStrip* strips, T* factor, int* inexact) {
  using Block = DiagonalShape<T>;
  constexpr int edge = Block::edge, ld = Block::ld;
  extern __shared__ __align__(16) unsigned char raw[];
  T *D = reinterpret_cast<T*>(raw), *V = D + Block::size;
  auto* row_sums = reinterpret_cast<Real<T>*>(V + Block::size);
  const SolveStrip strip = strips[blockIdx.x];
  const int at = strip.number * edge, size = min(edge, strip.columns - at);
  T* F = factor + strip.factor_at;
  const index_t front_ld = FrontShape(strip.rows, strip.columns).ld;
  const Tile<const T> F11{F, index_t(strip.columns), index_t(strip.columns), 1, front_ld};
  const bool refine = invert_diagonal({true, false}, F11, at, D, V, row_sums);
  for (int t = int(threadIdx.x); t < size * edge; t += invert_threads) {
    const int i = t / edge, k = t % edge;
    if (k < i) F[(at + i) * front_ld + at + k] = V[k * ld + i];
  }
  if (threadIdx.x == 0) inexact[strip.diagonal] = refine;
}

template <class T, int F>
__global__ void __launch_bounds__(StripShape<T, F>::threads, StripShape<T, F>::resident)
    solve_strips_kernel(SolveVectors<T> vectors, SolveLists lists, const T* factor, const int* inexact, int* ticket) {
  using Shape = StripShape<T, F>;
  extern __shared__ __align__(16) unsigned char raw[];
  auto& s = *reinterpret_cast<typename Shape::Shared*>(raw);
  T* sides = s.X[0];
  for (int t = int(threadIdx.x); t < int(sizeof(s.X) / sizeof(T)) + Shape::edge * Shape::side_ld; t += Shape::threads)
    sides[t] = T(0);
  const int groups = int((vectors.B.cols + 8 * F - 1) / (8 * F));
  const int forward = lists.forward_strips, backward = lists.backward_strips;
  for (;;) {
    if (threadIdx.x == 0) s.ticket = atomicAdd(ticket, 1) + 1;  // from -1 on
    __syncthreads();                                            // the ticket is drawn
    const int turn = s.ticket / groups;
    if (turn >= forward + backward) return;
    const SolveStrip strip = turn < forward ? lists.forward[turn] : lists.backward[turn - forward];
    const int item = vectors.fronts.item_of(strip.first);
    if (vectors.failed[item] != 0) {
      __syncthreads();  // everyone has read the ticket
      continue;
    }
    const SolveVectors<T> v = vectors.of_group(s.ticket % groups).of_item(item);
    if (turn < forward)
      StripSolve<T, F>(v, strip, factor, inexact, s).forward();
    else
      StripSolve<T, F>(v, strip, factor, inexact, s).backward();
  }
}

template <class T>
SolveLimits CudaEngine::solve_limits() const {
  using Subtree = SubtreeSolve<T, 1>;
  return {Subtree::entries, Subtree::max_rows, Subtree::max_columns, cuda::inverse_edge<T>};
}

template <class T>
void CudaEngine::invert_fronts(const SolveLists& lists, T* factor, int* inexact) {
  if (arena().planning() || lists.backward_strips == 0) return;
  const Traced traced(*this, "invert_fronts", lists.backward_strips, cuda::inverse_edge<T>);
  using Block = DiagonalShape<T>;
  constexpr std::size_t bytes = 2 * Block::size * sizeof(T) + Block::edge * sizeof(Real<T>);
  launch(stream_, invert_fronts_kernel<T>, unsigned(lists.backward_strips), invert_threads, bytes, lists.backward,
         factor, inexact);
}

/// The least power of 2 that is at least k, as exponent.
inline int shift_for(index_t k) { return int(std::bit_width(std::uint64_t(max(k, index_t(1)) - 1))); }

/// Right-hand sides that share one pass over the factor, in eights.
template <class T>
inline constexpr int narrow_solve = sizeof(T) > 8 ? 2 : 1;
inline constexpr int wide_solve = 4;

template <class T>
index_t CudaEngine::solve_vector_entries(const Fronts& f, index_t columns) const {
  constexpr index_t most = 8 * wide_solve;
  const index_t groups = ceil_div(columns, most), each = index_t(1) << shift_for(min(columns, most));
  return groups * each * (f.lines + f.n) + 1;  // and the ticket
}

template <class T>
void CudaEngine::solve_fronts(const Fronts& f, const SolveLists& given, const T* factor, const int* inexact,
                              const int* failed, Items<T> B, const SolveSteps& steps, T* vectors) {
  const index_t columns = B.cols;
  if (arena().planning() || f.n == 0 || columns == 0) return;
  const Traced traced(*this, "solve_fronts", f.n, columns);
  const index_t entries = solve_vector_entries<T>(f, columns), unsolved = steps.first ? 0 : entries - 1;
  check(cudaMemsetAsync(vectors + unsolved, 0xff, std::size_t(entries - unsolved) * sizeof(T),
                        static_cast<cudaStream_t>(stream_)),
        "cudaMemsetAsync");  // unsolved, and the ticket from -1 on
  SolveLists lists = given;
  if (!steps.forward) lists.forward_strips = 0;
  if (!steps.backward) lists.backward_strips = 0;
  const auto go = [&]<int F>() {
    using Shape = StripShape<T, F>;
    const int shift = shift_for(min(columns, index_t(8 * F)));
    const unsigned groups = unsigned(ceil_div(columns, index_t(8 * F)));
    const SolveVectors<T> v{f,
                            failed,
                            {steps.solve_forward, steps.solve_backward, steps.solve_forward && steps.solve_backward},
                            B.item(0),
                            B.stride - f.item_columns,
                            0,
                            shift,
                            (f.lines + f.n) << shift,
                            vectors + (f.n << shift),
                            vectors};
    const auto subtrees = [&]<int together>(bool is_forward) {
      using Subtree = SubtreeSolve<T, together>;
      launch(stream_, solve_subtrees_kernel<T, together>, dim3(unsigned(lists.subtree_groups), groups),
             Subtree::threads, Subtree::bytes, v, lists, factor, is_forward);
    };
    const auto solve_subtrees = [&](bool is_forward) {
      if (lists.subtree_groups == 0) return;
      shift < 2 ? subtrees.template operator()<1>(is_forward) : subtrees.template operator()<4>(is_forward);
    };
    if (steps.forward) solve_subtrees(true);
    if (lists.forward_strips + lists.backward_strips > 0)
      launch(stream_, solve_strips_kernel<T, F>, unsigned(Shape::resident * multiprocessors_), Shape::threads,
             sizeof(typename Shape::Shared), v, lists, factor, inexact, reinterpret_cast<int*>(vectors + entries - 1));
    if (steps.backward) solve_subtrees(false);
  };
  // A small factor stays in the second-level cache, and narrow groups keep more blocks busy. H200, double, 64 columns:
  // 0.33 against 0.43 ms for ex15 (22,000 lines), 3.07 against 2.88 for poisson3d:40 (380,000).
  constexpr index_t few_lines = index_t(1) << 17;
  columns <= 8 * narrow_solve<T> || f.lines < few_lines ? go.template operator()<narrow_solve<T>>()
                                                        : go.template operator()<wide_solve>();
}

}  // namespace trifactor::cuda

#define TRIFACTOR_INSTANTIATE_KERNELS(T)                                                                             \
  template trifactor::core::SolveLimits trifactor::cuda::CudaEngine::solve_limits<T>() const;                        \
  template trifactor::index_t trifactor::cuda::CudaEngine::solve_vector_entries<T>(const Fronts&, index_t) const;    \
  template void trifactor::cuda::CudaEngine::invert_fronts<T>(const SolveLists&, T*, int*);                          \
  template void trifactor::cuda::CudaEngine::solve_fronts<T>(const Fronts&, const SolveLists&, const T*, const int*, \
                                                             const int*, Items<T>, const SolveSteps&, T*);
