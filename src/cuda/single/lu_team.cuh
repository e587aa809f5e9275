// LU of narrow panels in one launch, by a cluster of blocks for each, or by a grid: which shape it takes for so many
// rows.
#pragma once

#include <cuda/engine/launch.cuh>
#include <cuda/single/lu_team_panel.cuh>
#include <cuda/single/single.hpp>

namespace trifactor::cuda {

template <class T, class S>
__global__ void __launch_bounds__(S::all_threads, 1)
    lu_panel_kernel(Items<T> A, int left, int blocks, Pivots<int> pivots, int* info) {
#if TRIFACTOR_HAS_CLUSTERS
  const int b = int(blockIdx.x) / blocks, first = int(pivots.first);
  wait_for_launch_before();
  if (info[b] < 0) return;
  const int zero_at = TeamPanel<T, S>(A.item(b), left, blocks, pivots.item(b), first).factor();
  if (zero_at != 0 && threadIdx.x == 0 && int(blockIdx.x) % blocks == 0 && info[b] == 0) info[b] = first + zero_at;
#endif
}

/// One panel, by blocks that all run at once.
template <class T, class S>
__global__ void __launch_bounds__(S::all_threads, 1)
    lu_grid_panel_kernel(Tile<T> A, int left, int* pivots, int first, int* info, GridMemory<T, S>* messages) {
#if TRIFACTOR_HAS_CLUSTERS
  if (*info < 0) return;
  const int zero_at = TeamPanel<T, S>(A, left, int(gridDim.x), pivots, first, messages).factor();
  if (zero_at != 0 && threadIdx.x == 0 && blockIdx.x == 0 && *info == 0) *info = first + zero_at;
#endif
}

/// Calls f with the shape for a panel of so many rows: the widest whose rows fit in a cluster or, `alone` on the
/// device, in all multiprocessors. False if there is none.
template <class T, class F>
bool with_panel_shape(index_t rows, bool alone, F f) {
  constexpr int widest = 32;                               // columns
  constexpr int max_rows = 512 / int(sizeof(T)) / widest;  // of a thread with all columns in registers
  constexpr int fast_rows = min(max_rows, 2);              // two are faster than four
  const auto attempt = [&]<class S>() {
    constexpr auto bytes = sizeof(PanelMemory<T, S>);
    index_t blocks = 0;
    if constexpr (!S::is_grid) {
      const auto kernel = reinterpret_cast<const void*>(lu_panel_kernel<T, S>);
      blocks = min(largest_cluster(kernel, S::all_threads, bytes), S::one_block ? 1 : max_cluster_blocks);
    } else if (alone) {
      const auto kernel = reinterpret_cast<const void*>(lu_grid_panel_kernel<T, S>);
      blocks = min(largest_grid(kernel, S::all_threads, bytes), max_grid_blocks);
    }
    if (rows > blocks * S::block_rows) return false;
    f(S{});
    return true;
  };
  // Eight warps: each thread may have 255 registers.
  const auto in_registers = [&]<int rows_of_thread, PanelTeam team>() {
    return attempt.template operator()<LuPanelShape<256, rows_of_thread, widest, true, team>>();
  };
  // Twelve warps with the clerk, with up to 168 registers. Half the columns leave room for twice the rows.
  const auto in_memory = [&]<int width>() {
    constexpr int rows_of_thread = max_rows * widest / width;
    return attempt.template operator()<LuPanelShape<352, rows_of_thread, width, false, PanelTeam::cluster>>() ||
           attempt.template operator()<LuPanelShape<352, rows_of_thread, width, false, PanelTeam::grid>>();
  };
  using enum PanelTeam;
  return in_registers.template operator()<fast_rows, block>() || in_registers.template operator()<max_rows, block>() ||
         in_registers.template operator()<fast_rows, cluster>() ||
         in_registers.template operator()<max_rows, cluster>() || in_memory.template operator()<widest>() ||
         in_memory.template operator()<widest / 2>() || in_memory.template operator()<widest / 4>();
}

template <class T>
index_t lu_panel_width(index_t rows, bool alone) {
  index_t width = 0;
  with_panel_shape<T>(rows, alone, [&](auto shape) { width = decltype(shape)::width; });
  return width;
}

template <class T>
bool launch_lu_panel(void* stream, Items<T> A, index_t left, Pivots<int> pivots, int* info, void* messages) {
  bool launched = true;
  with_panel_shape<T>(A.rows, messages != nullptr, [&](auto shape) {
    using S = decltype(shape);
    const unsigned blocks = unsigned(ceil_div(A.rows, S::block_rows));
    if constexpr (S::is_grid) {
      static_assert(sizeof(GridMemory<T, S>) <= lu_messages_size);
      launched = launch_together(stream, lu_grid_panel_kernel<T, S>, blocks, S::all_threads, sizeof(PanelMemory<T, S>),
                                 A.item(0), int(left), pivots.data, int(pivots.first), info,
                                 static_cast<GridMemory<T, S>*>(messages));
    } else {
      launch_early(stream, lu_panel_kernel<T, S>, unsigned(A.count) * blocks, S::all_threads, sizeof(PanelMemory<T, S>),
                   blocks, A, int(left), int(blocks), pivots, info);
    }
  });
  return launched;
}

}  // namespace trifactor::cuda

#define TRIFACTOR_INSTANTIATE_KERNELS(T)                                                    \
  template trifactor::index_t trifactor::cuda::lu_panel_width<T>(trifactor::index_t, bool); \
  template bool trifactor::cuda::launch_lu_panel<T>(void*, Items<T>, trifactor::index_t, Pivots<int>, int*, void*);
