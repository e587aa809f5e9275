#include <host/sparse_lu.hpp>

#include <algorithm>

namespace trifactor::host {

namespace {

/// One supernode of the factors.
template <class T>
struct LuBlock {
  LuBlock(const SparseLuFactors<T>& f, index_t s)
      : first(f.first_column.data()[s]),
        end(f.first_column.data()[s + 1]),
        rows(f.block_rows_start.data()[first + 1] - f.block_rows_start.data()[first]),
        row(f.block_rows.data() + f.block_rows_start.data()[first]),
        values(f.block.data() + f.block_start.data()[first]) {}

  /// Column j of the matrix in this block.
  const T* column(index_t j) const { return values + (j - first) * rows; }

  index_t first, end, rows;
  const int* row;
  const T* values;
};

/// visit(row, entry) for what U has above the block of column j.
template <class T, class Visit>
void for_each_above(const SparseLuFactors<T>& f, index_t j, const Visit& visit) {
  const int* const row = f.above_rows.data();
  const T* const value = f.above.data();
  const index_t end = f.above_start.data()[j + 1];
  for (index_t e = f.above_start.data()[j]; e < end; ++e) visit(row[e], value[e]);
}

/// target -= a source, rows of k numbers
template <class T>
void subtract_row(index_t k, T a, const T* source, T* target) {
  for (index_t c = 0; c < k; ++c) target[c] = core::minus_product(target[c], a, source[c]);
}
template <class T>
void divide_row(index_t k, T a, T* x) {
  for (index_t c = 0; c < k; ++c) x[c] = x[c] / a;
}

template <class T>
void solve_lu(const SparseLuFactors<T>& f, index_t k, T* X) {
  for (index_t s = 0; s < f.supernodes; ++s) {  // X := L^-1 X
    const LuBlock<T> b(f, s);
    for (index_t j = b.first; j < b.end; ++j)
      for (index_t i = j - b.first + 1; i < b.rows; ++i) subtract_row(k, b.column(j)[i], X + j * k, X + b.row[i] * k);
  }
  for (index_t s = f.supernodes - 1; s >= 0; --s) {  // X := U^-1 X
    const LuBlock<T> b(f, s);
    for (index_t j = b.end - 1; j >= b.first; --j) {
      const T* const column = b.column(j);
      divide_row(k, column[j - b.first], X + j * k);
      for (index_t i = 0; i < j - b.first; ++i) subtract_row(k, column[i], X + j * k, X + (b.first + i) * k);
      for_each_above(f, j, [&](index_t i, T a) { subtract_row(k, a, X + j * k, X + i * k); });
    }
  }
}

template <bool conjugated, class T>
void solve_lu_transposed(const SparseLuFactors<T>& f, index_t k, T* X) {
  const auto op = [](T a) { return core::conj_if(conjugated, a); };
  for (index_t s = 0; s < f.supernodes; ++s) {  // X := U^-T X
    const LuBlock<T> b(f, s);
    for (index_t j = b.first; j < b.end; ++j) {
      const T* const column = b.column(j);
      for_each_above(f, j, [&](index_t i, T a) { subtract_row(k, op(a), X + i * k, X + j * k); });
      for (index_t i = 0; i < j - b.first; ++i) subtract_row(k, op(column[i]), X + (b.first + i) * k, X + j * k);
      divide_row(k, op(column[j - b.first]), X + j * k);
    }
  }
  for (index_t s = f.supernodes - 1; s >= 0; --s) {  // X := L^-T X
    const LuBlock<T> b(f, s);
    for (index_t j = b.end - 1; j >= b.first; --j)
      for (index_t i = j - b.first + 1; i < b.rows; ++i)
        subtract_row(k, op(b.column(j)[i]), X + b.row[i] * k, X + j * k);
  }
}

}  // namespace

template <class T>
void sparse_lu_solve(const SparseLuFactors<T>& f, Op op, index_t k, T* X) {
  if (op == Op::None)
    solve_lu(f, k, X);
  else if (op == Op::Transpose)
    solve_lu_transposed<false>(f, k, X);
  else
    solve_lu_transposed<true>(f, k, X);
}

template <class T>
void sparse_lu_residual(const sparse::LuPlan& plan, const T* values, Op op, const T* b, const T* x, T* r,
                        Real<T>* size) {
  for (index_t i = 0; i < plan.n; ++i) r[i] = b[i], size[i] = core::abs1(b[i]);
  for (index_t j = 0; j < plan.n; ++j)
    for (int k = plan.start[j]; k < plan.start[j + 1]; ++k) {
      index_t i = plan.row[k], c = plan.permutation[j];
      if (op != Op::None) std::swap(i, c);
      r[i] = core::minus_product(r[i], core::conj_if(op == Op::ConjTranspose, values[k]), x[c]);
      size[i] += core::abs1(values[k]) * core::abs1(x[c]);
    }
}

#define TRIFACTOR_INSTANTIATE(T)                                             \
  template void sparse_lu_solve(const SparseLuFactors<T>&, Op, index_t, T*); \
  template void sparse_lu_residual(const sparse::LuPlan&, const T*, Op, const T*, const T*, T*, Real<T>*);
TRIFACTOR_FOR_EACH_SCALAR(TRIFACTOR_INSTANTIATE)
#undef TRIFACTOR_INSTANTIATE

}  // namespace trifactor::host
