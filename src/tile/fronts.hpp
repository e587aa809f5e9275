// Assembly of fronts by one team: a column of a front at a time, so that no two teams write the same entry.
#pragma once

#include <core/fronts.hpp>
#include <tile/team.hpp>

namespace trifactor::tile {

/// Column `line` of its front := the given values in it, the shift on the diagonal, and the children's update matrices,
/// one child after the other: the sums are the same in every run.
template <Team G, class T>
TF_HD void assemble(const G& team, const core::Fronts& f, index_t line, const T* values, core::Real<T> shift, T* factor,
                    T* updates, const T* offloaded) {
  const index_t t = f.front[line], c = line - f.line_start[t];
  const index_t m = f.rows(t), w = f.columns[t];
  const bool in_factor = c < w;
  const core::FrontShape shape(m, w);
  T* base =
      in_factor ? factor + f.factor_at[t] + c * shape.ld : updates + f.update_at[t] + f.update.column(m - w, c - w) - w;
  const index_t gap = in_factor ? shape.gap : 0;
  const auto to = [=](index_t i) -> T& { return base[i < w ? i : i + gap]; };
  for (index_t i = c + team.rank(); i < m; i += team.size()) to(i) = in_factor && i == c ? T(shift) : T(0);
  team.sync();  // the column is clear before anything is added
  if (in_factor) {
    const index_t j = f.first[t] + c, begin = f.entry_start[j], end = f.entry_start[j + 1];
    for (index_t e = begin + team.rank(); e < end; e += team.size()) {
      const int row = f.entry_row[e];
      if (e > begin && f.entry_row[e - 1] == row) continue;  // whoever has the first of equal places adds them all
      T sum = to(row);
      for (index_t k = e; k < end && f.entry_row[k] == row; ++k) {
        const index_t source = f.entry_source[k];
        sum += core::conj_if(source < 0, values[source < 0 ? ~source : source]);
      }
      to(row) = sum;
    }
    team.sync();  // the given values are there before the children's are added
  }
  const index_t own = f.line_start[t];
  for (index_t k = f.child_start[line]; k < f.child_start[line + 1]; ++k) {
    const index_t child_line = f.child_line[k], child = f.front[child_line];
    const index_t end = f.line_start[child + 1], order = end - f.line_start[child] - f.columns[child];
    const index_t first = order - (end - child_line);  // of the rows of the child's update matrix
    const index_t away = f.offloaded_at ? f.offloaded_at[child] : -1;
    const T* U = away < 0 ? updates + f.update_at[child] : offloaded + away;
    const T* from = U + f.update.column(order, first) + first;
    const int* place = f.parent_line + child_line;
    for (index_t i = team.rank(); i < end - child_line; i += team.size()) to(place[i] - own) += from[i];
    team.sync();  // another rank may add the next child to the same entry
  }
}

/// Adds to a row of one right-hand side what the children left for it; a row below the columns begins with zero.
template <class T>
TF_HD void add_children(const core::Fronts& f, index_t line, T* Z) {
  const index_t t = f.front[line];
  T sum = line - f.line_start[t] < f.columns[t] ? Z[line] : T(0);
  for (index_t k = f.child_start[line]; k < f.child_start[line + 1]; ++k) sum += Z[f.child_line[k]];
  Z[line] = sum;
}

/// A row below the columns := the same row of the parent.
template <class T>
TF_HD void copy_parent(const core::Fronts& f, index_t line, T* Z) {
  if (f.parent_line[line] >= 0) Z[line] = Z[f.parent_line[line]];
}

/// Where the diagonal entry of column j of the factor is.
TF_HD index_t diagonal_at(const core::Fronts& f, index_t j) {
  const index_t line = f.line[j], t = f.front[line];
  return f.factor_at[t] + (line - f.line_start[t]) * (core::FrontShape(f.rows(t), f.columns[t]).ld + 1);
}

/// Row i of r := b - (A + shift I) x, and its size as a part of |b| + |A + shift I| |x|; 0 where that is 0.
template <class T>
TF_HD void residual(const core::MatrixRows& A, index_t i, const T* values, core::Real<T> shift, const T* b, const T* x,
                    T* r, core::Real<T>* error) {
  T sum = core::minus_product(b[i], T(shift), x[i]);
  core::Real<T> size = core::abs1(b[i]) + core::abs1(shift) * core::abs1(x[i]);
  for (index_t k = A.start[i]; k < A.start[i + 1]; ++k) {
    const index_t source = A.source[k], j = A.column[k];
    T a = core::conj_if(source < 0, values[source < 0 ? ~source : source]);
    if (i == j) a = T(core::real(a));
    sum = core::minus_product(sum, a, x[j]);
    size += core::abs1(a) * core::abs1(x[j]);
  }
  r[i] = sum;
  error[i] = size == 0 ? core::Real<T>(0) : core::abs1(sum) / size;  // a NaN stays
}

}  // namespace trifactor::tile
