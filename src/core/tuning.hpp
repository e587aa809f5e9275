// The numbers that were chosen by measurement, as the drivers and engines read them. src/tuning fills them from rows.
#pragma once

#include <trifactor/types.hpp>

namespace trifactor::core {

enum class Looking { Left, Right };

struct CholeskyTuning {
  index_t whole = 64;         // up to this order an item is one engine operation: LAPACK, or one launch
  index_t persistent = 0;     // CUDA: up to this order one matrix is one launch of a persistent grid
  index_t squares = 3600;     // CUDA: from this order on its pieces are squares of 2 x 2 tiles
  index_t interleaved = 0;    // host: up to this order, items are factored side by side in SIMD lanes
  index_t nb = 256;           // width of a block column
  index_t leaf = 64;          // the diagonal tile is halved down to this order
  Looking looking = Looking::Right;
};

struct LuTuning {
  index_t whole = 0;          // up to this min(m, n) the matrix is one engine operation
  index_t nb = 128;           // width of a panel
  index_t leaf = 16;          // a panel is halved down to this width
};

struct SolveTuning {
  index_t few = 8;            // CUDA: up to so many right-hand sides, one launch solves with one triangle
  index_t invert = 64;        // CUDA: triangles above this order are solved with inverted diagonal blocks
  index_t nb = 256;           // rows that are solved between two products, with inverted blocks
  index_t halve = 2048;       // triangles above this order are halved first, so that the products are deep
  index_t columns = 512;      // width of a block column of an inverse
};

struct ValueTuning {
  index_t gpu_from = 1024;    // value forms with Device::Auto move matrices of at least this order to the GPU
};

}  // namespace trifactor::core
