// The copy engine of compute capability 9.0 (TMA), which loads a box of a matrix by a tensor map.
#pragma once

#include <core/scalar.hpp>

#include <cuda.h>
#include <cuda_runtime_api.h>

namespace trifactor::cuda {

using namespace core;

/// Makes the tensor map of a matrix; false if that is impossible. A box of it is 128 rows and 16 columns: of a
/// column-major matrix in three dimensions, 16 rows, 16 columns and 8 groups of 16 rows.
template <bool column_major>
bool make_map(CUtensorMap& map, double* A, index_t stride, index_t n) {
  static const auto encode = [] {
    void* p = nullptr;
    cudaDriverEntryPointQueryResult found;
    if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &p, 12000, cudaEnableDefault, &found) != cudaSuccess)
      p = nullptr;
    return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(p);
  }();
  const auto count = [](index_t v) { return cuuint64_t(v); };
  const cuuint64_t sizes[] = {column_major ? 16 : count(n), count(n), count(n / 16)};
  const cuuint64_t strides[] = {count(stride) * sizeof(double), 128};
  const cuuint32_t box[] = {16, column_major ? 16 : 128, 8}, steps[] = {1, 1, 1};
  return encode && n >= 128 &&
         encode(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT64, column_major ? 3 : 2, A, sizes, strides, box, steps,
                CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

/// Whether this is compiled for a device that has a copy engine.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
inline constexpr bool copies_boxes = true;
/// What the caller read and wrote, or has acquired, comes before what the copy engine does for it from here on.
__device__ inline void fence_copy_engine() { asm volatile("fence.proxy.async;" ::: "memory"); }
__device__ inline void copy_box(unsigned shared, const CUtensorMap* map, int x, int y, unsigned barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::
          "r"(shared),
      "l"(map), "r"(x), "r"(y), "r"(barrier)
      : "memory");
}
__device__ inline void copy_box(unsigned shared, const CUtensorMap* map, int x, int y, int z, unsigned barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], "
      "[%5];" ::"r"(shared),
      "l"(map), "r"(x), "r"(y), "r"(z), "r"(barrier)
      : "memory");
}
#else
inline constexpr bool copies_boxes = false;
__device__ inline void fence_copy_engine() {}
__device__ inline void copy_box(unsigned, const CUtensorMap*, int, int, unsigned) {}
__device__ inline void copy_box(unsigned, const CUtensorMap*, int, int, int, unsigned) {}
#endif

}  // namespace trifactor::cuda
