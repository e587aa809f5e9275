// Several items to a block, each to a team of its warps.
#pragma once

#include <core/scalar.hpp>

namespace trifactor::cuda {

using namespace core;

/// So many teams of a shape side by side in one block, so that one launch has the same number of warps for all shapes.
/// Each has its part of `all` bytes of shared memory, and of the barriers: teams of one shape that are done leave both
/// to teams of another that are made of the same warps.
template <class Shape, int teams_, std::size_t all>
struct Teams : Shape {
  static constexpr int teams = teams_, blocks = 1, room = int(all / teams / 16 * 16);
  static_assert(Shape::bytes <= room && Shape::warps % 4 == 0);
};
/// The team of this thread, its rank there, and the number of its warp. Warps that factor are in different quarters of
/// the multiprocessor.
template <class Shape>
__device__ __forceinline__ int this_team() {
  if constexpr (Shape::teams == 1)
    return 0;
  else
    return int(threadIdx.x) / Shape::threads;
}
template <class Shape>
__device__ __forceinline__ int team_rank() {
  return int(threadIdx.x) - this_team<Shape>() * Shape::threads;
}
template <class Shape>
__device__ __forceinline__ int team_warp() {
  const int warp = team_rank<Shape>() / 32;
  if constexpr (Shape::teams == 1)
    return warp;
  else
    return (warp + this_team<Shape>() * max(1, 4 / Shape::teams)) % Shape::warps;
}
/// Barriers of all threads of a team, and of its workers, without the warp that factors.
template <class Shape>
__device__ __forceinline__ int team_barriers() {
  return 1 + 2 * (this_team<Shape>() * (Shape::warps / 4));  // the first of two
}
template <class Shape>
__device__ __forceinline__ void team_sync() {
  if constexpr (Shape::teams == 1)
    __syncthreads();
  else
    asm volatile("bar.sync %0, %1;" ::"r"(team_barriers<Shape>()), "n"(Shape::threads) : "memory");
}
template <class Shape>
__device__ __forceinline__ void meet_workers() {
  if constexpr (Shape::teams == 1)
    asm volatile("bar.sync 1, %0;" ::"n"(32 * Shape::workers) : "memory");
  else
    asm volatile("bar.sync %0, %1;" ::"r"(team_barriers<Shape>() + 1), "n"(32 * Shape::workers) : "memory");
}

}  // namespace trifactor::cuda
