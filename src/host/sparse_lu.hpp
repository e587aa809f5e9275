// The numeric phases of a sparse LU factorization on the host: the factorization by SuperLU's kernels, solves by our
// own.
#pragma once

#include <core/scalar.hpp>
#include <sparse/lu_plan.hpp>
#include <trifactor/queue.hpp>

namespace trifactor::host {

using core::Real;

/// L U = P A Q as SuperLU's kernels store it. Supernode s is columns first_column[s] to first_column[s + 1] - 1: one
/// dense block by columns, with U on and above its diagonal and L below. What U has above the block is stored by
/// columns on its own.
template <class T>
struct SparseLuFactors {
  explicit SparseLuFactors(index_t n)
      : row_place(n),
        first_column(n + 1),
        supernode(n + 1),
        block_rows_start(n + 1),
        block_start(n + 1),
        above_start(n + 1) {}

  Buffer<int> row_place;                // row i of A is this row of P A
  Buffer<int> first_column, supernode;  // of each supernode; of each column
  Buffer<int> block_rows_start,
      block_rows;  // at the supernode's first column: the rows of P A in the block, diagonal first
  Buffer<int> block_start, above_start;  // of each column
  Buffer<T> block;                       // columns of all blocks
  Buffer<int> above_rows;                // and of U above them
  Buffer<T> above;

  index_t supernodes = 0;
  index_t nonzeros = 0;

  std::size_t bytes() const {
    return sizeof(T) * std::size_t(block.size() + above.size()) +
           sizeof(int) * std::size_t(block_rows.size() + above_rows.size() + 5 * supernode.size());
  }
};

/// Factors the matrix of the plan, whose values come in the plan's places. Pivots are on the diagonal of A where that
/// is at least `threshold` times the largest candidate. Returns the first column of A Q whose candidates are all zero,
/// -1 if there is none. Every allocation is ours, made before the kernel that needs it is called: SuperLU's own end the
/// process when they fail.
index_t superlu_factor(const sparse::LuPlan&, float* values, double threshold, SparseLuFactors<float>&);
index_t superlu_factor(const sparse::LuPlan&, double* values, double threshold, SparseLuFactors<double>&);
index_t superlu_factor(const sparse::LuPlan&, core::Complex<float>* values, double threshold,
                       SparseLuFactors<core::Complex<float>>&);
index_t superlu_factor(const sparse::LuPlan&, core::Complex<double>* values, double threshold,
                       SparseLuFactors<core::Complex<double>>&);

/// X := (L U)^-1 X, (L U)^-T X or (L U)^-H X for k right-hand sides, given by rows: entry (i, c) is X[i * k + c].
template <class T>
void sparse_lu_solve(const SparseLuFactors<T>&, Op, index_t k, T* X);

/// r := b - op(A) x and size := |b| + |op(A)| |x|, with A's values in the plan's places and everything in A's own
/// order.
template <class T>
void sparse_lu_residual(const sparse::LuPlan&, const T* values, Op, const T* b, const T* x, T* r, Real<T>* size);

}  // namespace trifactor::host
