// The numbers that were chosen by measurement, as the drivers and engines read them. src/tuning fills them from rows;
// tuning/fields.cpp holds the range of each.
#pragma once

#include <trifactor/types.hpp>

#include <limits>

namespace trifactor::core {

enum class Looking { Left, Right };
enum class TileForm { Inclusive, Exclusive };

struct CholeskyTuning {
  index_t whole = 64;         // up to this order an item is one engine operation: LAPACK, or one launch; ragged items
                              // above, which are few, are worked on by all of a CUDA device
  index_t small = 16;         // CUDA: up to this order, at most 16, several items of one size share a warp
  index_t resident = 128;     // CUDA: up to this order, at most 512 in float, 384 in double and 256 in complex, the
                              // factor of an item stays in a multiprocessor
  index_t sorted = 100000;    // CUDA: ragged items take each the kernel of its own size where their number times the
                              // largest order is this or more
  index_t order_per_item = 24;  // CUDA: all of the device works on a batch of order n, more than 256, or 160 if complex,
                              // that has up to n / order_per_item items; if it has more, a block on each
  index_t fused = 32;         // up to so many right-hand sides, small items are factored and solved in SIMD lanes together;
                              // CUDA: in one launch, for one right-hand side at most
  index_t persistent = 0;     // CUDA: up to this order one matrix is one launch of a persistent grid
  index_t macro_tiles = 4500;  // CUDA: from this order on its pieces are macro tiles of 2 x 2 tiles,
  index_t band = 1;           // CUDA: and so many columns of them are worked off together
  index_t realign = 4500;     // CUDA: from this order on a matrix whose lines do not start at multiples of 16 bytes is
                              // factored in an aligned copy, if there is memory for it
  index_t interleaved = 0;    // host: up to this order, items are factored side by side in SIMD lanes
  index_t nb = 256;           // width of a block column
  index_t leaf = 64;          // the diagonal tile is halved down to this order
  TileForm tile = TileForm::Inclusive;  // then one operation, or steps of `ib` columns, a launch for each part of a step
  index_t ib = 32;
  Looking looking = Looking::Right;

  bool operator==(const CholeskyTuning&) const = default;
};

struct LuTuning {
  index_t whole = 0;          // up to this min(m, n) an item is one engine operation, if it has one for its shape
  index_t interleaved = 0;    // host: up to this order, square items of a batch go side by side in lanes
  index_t nb = 128;           // width of a panel
  index_t leaf = 16;          // a panel is cut into parts of at most this width
  index_t by_rows = std::numeric_limits<int>::max();  // CUDA: from this min(m, n) on, one matrix is updated in a copy by rows
  index_t tall = std::numeric_limits<int>::max();     // CUDA: from so many times as many rows as columns on, one matrix is one
                                                      // panel, if it is too high for panels beside updates

  bool operator==(const LuTuning&) const = default;
};

struct SolveTuning {
  index_t sweep_columns = 8;  // CUDA: up to so many right-hand sides, one launch solves with a triangle,
  index_t sweep_groups = 64;  // or with those of a batch: up to so many groups of four right-hand sides of an item
  index_t fused = 128;        // up to so many, one launch solves with small Cholesky factors of a batch; host: those of
                              // a batch are solved side by side in SIMD lanes,
  index_t interleaved = 0;    // host: up to this order
  index_t invert = 64;        // CUDA: triangles above this order are solved with inverted diagonal blocks
  index_t nb = 256;           // rows that are solved between two products, with inverted blocks
  index_t halve = 2048;       // triangles above this order are halved first, so that the products are deep
  index_t columns = 512;      // width of a block column of an inverse

  bool operator==(const SolveTuning&) const = default;
};

struct SparseTuning {
  // Ordering Auto: the time of nested dissection (Metis) against what it may save. For one thread of the host:
  index_t flops_per_ns = 45;   // speed of a factorization,
  index_t nonzero_ns = 13;     // and for each nonzero of L on top of it, with one solve
  index_t metis_node_ns = 250, metis_entry_ns = 20;  // for each point and entry of their graph, times log2 of the points
  index_t tree_ns = 15;        // for each entry of that graph: another tree, by one thread however many there are
  index_t metis_gain = 10;     // percent that dissection may save of AMD's time on any graph
  // A front is merged into its parent when together they have up to `tiny` columns, or up to `narrow` columns and at most
  // `narrow_zeros` percent of stored zeros, or likewise up to `medium`, or any number with at most `wide_zeros` percent.
  index_t tiny = 4;
  index_t narrow = 16, narrow_zeros = 80;
  index_t medium = 48, medium_zeros = 10;
  index_t wide_zeros = 5;

  // The numeric phases.
  index_t levels = 0;         // 1: level by level over the engine's operations, also on the host; CUDA queues have no other way
  index_t alone = 256;        // by level: a front with more columns is no part of a batch,
  index_t alone_below = 1024; // nor one with more rows below them
  index_t alike = 2;          // by level: fronts of one batch differ by up to this factor in rows below their columns,
  index_t few = 256;          // unless they are so few that the device is not filled: then all of a level are one batch
  index_t widest = 4096;      // by level: a front with more columns is a chain of fronts, which takes less memory
  index_t spare_percent = 15; // by level: of factor and update matrices, which larger branches may take more than they must
  // Hybrid: percent of the operations that the CPU takes at most; 0: as many as it completes while the GPU does the rest. The
  // GPU's time is so much for each level, for each column of its widest front, and for the entries of factor and update
  // matrices, besides operations.
  index_t host_percent = 0;
  index_t level_ns = 16000, column_ns = 600, entry_ps = 10, gpu_flops_per_ns = 45000;
  index_t at_once = 32;       // right-hand sides that are solved together: enough for BLAS, and scratch memory stays small
  index_t leaf = 32;          // host: columns that the own routines factor
  index_t strip = 128;        // host: rows that they take at once, so that these stay in cache
  // host: the own routine is faster than BLAS for an update matrix up to this order, or from up to so many columns
  index_t update_order = 128, update_columns = 16;
  // host: threads share a front in tiles, so many below each other where their edge is between these two
  index_t tiles_down = 24, tile_least = 64, tile_most = 192;
  index_t team = 100000;      // host: entries of a front below which sharing a solve with it costs more than it gains
  // host: the time of a front in flops is its own, so much for each entry that is moved, and so much for the calls
  index_t entry_cost = 10, front_cost = 2000;
  index_t task_cost = 1000000;  // host: what threads that share a front lose by waiting for each other, in flops
  index_t shared_speed = 75;  // host: percent of its speed that a thread has which works on one front together with others
  index_t branch_cost = 1000000;  // host: a tree below it is not worth waking threads for
  index_t most_updates = 80;  // host: percent of the factor that update matrices may take when threads work side by side
};

struct ValueTuning {
  index_t gpu_from = 1024;    // value forms with Device::Auto move matrices of at least this order to the GPU,
  index_t gpu_mflops = 1000;  // and sparse ones of which all factorizations together take at least so many million flops
};

}  // namespace trifactor::core
