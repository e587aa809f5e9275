// Whether a sparse matrix is hermitian by its values, and the hermitian matrix next to one that nearly is.
#include <api/check.hpp>
#include <core/memory.hpp>
#include <core/scalar.hpp>
#include <sparse/pattern_check.hpp>
#include <trifactor/sparse.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

namespace trifactor {

namespace {

template <Scalar T>
T mirror_image(T a) {
  if constexpr (ComplexScalar<T>)
    return std::conj(a);
  else
    return a;
}

template <Scalar T, SparseIndex I>
void check(const char* call, const Pattern<I>& p, std::span<const T> values) {
  api::checked_as(call, [&] {
    sparse::check_shape(p);
    sparse::check_entries(p, true, [](index_t, index_t) {});
  });
  api::check_values(call, values.size(), std::size_t(p.entries()));
}

/// Calls visit(i, j, a, b) for every place i >= j, by columns with ascending rows, in which a_ij or its mirror image is
/// stored: a is a_ij, and b the conjugate of a_ji. Entries of the same place are added up. Where one triangle is
/// stored, b equals a below the diagonal. Ends when visit returns false.
template <Scalar T, SparseIndex I, class Visit>
void for_each_pair(const Pattern<I>& p, std::span<const T> values, const Visit& visit) {
  const index_t n = p.rows;
  const auto column_of = [&](index_t k, index_t major) { return std::min<index_t>(p.index[k], major); };
  std::vector<index_t> start(n + 1, 0), entry(p.entries()), major(p.entries());  // by column of the lower triangle
  for (index_t m = 0; m < n; ++m)
    for (index_t k = p.start[m]; k < p.start[m + 1]; ++k) ++start[column_of(k, m) + 1];
  for (index_t j = 0; j < n; ++j) start[j + 1] += start[j];
  std::vector<index_t> next(start.begin(), start.end() - 1);
  for (index_t m = 0; m < n; ++m)
    for (index_t k = p.start[m]; k < p.start[m + 1]; ++k) {
      const index_t place = next[column_of(k, m)]++;
      entry[place] = k, major[place] = m;
    }

  std::vector<T> below(n, T(0)), mirrored(n, T(0));
  std::vector<index_t> rows, last_column(n, -1);
  for (index_t j = 0; j < n; ++j) {
    rows.clear();
    for (index_t at = start[j]; at < start[j + 1]; ++at) {
      const index_t k = entry[at], minor = p.index[k], m = major[at], i = std::max(minor, m);
      if (last_column[i] != j) last_column[i] = j, rows.push_back(i);
      const T a = values[k];
      const bool above = minor != m && (p.compressed == Compressed::Columns) == (minor < m);
      if (p.stored != Stored::Full && i != j) {
        below[i] += above ? mirror_image(a) : a;
        mirrored[i] = below[i];
      } else {
        if (!above) below[i] += a;
        if (above || i == j) mirrored[i] += mirror_image(a);
      }
    }
    std::sort(rows.begin(), rows.end());
    for (const index_t i : rows) {
      if (!visit(i, j, below[i], mirrored[i])) return;
      below[i] = mirrored[i] = T(0);
    }
  }
}

}  // namespace

template <BuiltScalar T, SparseIndex I>
bool is_hermitian(const Pattern<I>& p, std::span<const T> values, real_t<T> tolerance) try {
  check("is_hermitian", p, values);
  if (!(tolerance >= 0 && std::isfinite(tolerance)))
    throw InvalidArgument("is_hermitian: tolerance = " + std::to_string(tolerance) +
                          " must be finite and not negative");
  if (p.stored != Stored::Full) return true;  // there is no mirror image that could differ
  std::vector<T> diagonal(p.rows, T(0));
  for (index_t j = 0; j < p.rows; ++j)
    for (index_t k = p.start[j]; k < p.start[j + 1]; ++k)
      if (p.index[k] == j) diagonal[j] += values[k];
  std::vector<real_t<T>> size(p.rows);
  for (index_t j = 0; j < p.rows; ++j) size[j] = std::sqrt(std::abs(diagonal[j]));
  bool hermitian = true;
  for_each_pair(p, values, [&](index_t i, index_t j, T a, T b) {
    const real_t<T> tolerated = tolerance * size[i] * size[j];
    return hermitian = a == b || (std::isfinite(tolerated) && std::abs(a - b) <= tolerated);
  });
  return hermitian;
} TRIFACTOR_CATCH_BAD_ALLOC

template <BuiltScalar T, SparseIndex I>
CompressedColumns<T> hermitian_part(const Pattern<I>& p, std::span<const T> values) try {
  check("hermitian_part", p, values);
  CompressedColumns<T> lower;
  lower.start.assign(p.rows + 1, 0);
  for_each_pair(p, values, [&](index_t i, index_t j, T a, T b) {
    ++lower.start[j + 1];
    lower.index.push_back(i);
    lower.values.push_back(i == j ? T(std::real(a)) : a == b ? a : a + (b - a) / real_t<T>(2));
    return true;
  });
  for (index_t j = 0; j < p.rows; ++j) lower.start[j + 1] += lower.start[j];
  return lower;
} TRIFACTOR_CATCH_BAD_ALLOC

#define TRIFACTOR_INSTANTIATE_INDEX(T, I)                                                        \
  template TRIFACTOR_API bool is_hermitian<T>(const Pattern<I>&, std::span<const T>, real_t<T>); \
  template TRIFACTOR_API CompressedColumns<T> hermitian_part<T>(const Pattern<I>&, std::span<const T>);
#define TRIFACTOR_INSTANTIATE_SCALAR(T)        \
  TRIFACTOR_INSTANTIATE_INDEX(T, std::int32_t) \
  TRIFACTOR_INSTANTIATE_INDEX(T, std::int64_t)
#define TRIFACTOR_INSTANTIATE(T) TRIFACTOR_INSTANTIATE_SCALAR(core::ScalarTraits<T>::Public)
TRIFACTOR_FOR_EACH_SCALAR(TRIFACTOR_INSTANTIATE)
#undef TRIFACTOR_INSTANTIATE_INDEX
#undef TRIFACTOR_INSTANTIATE_SCALAR
#undef TRIFACTOR_INSTANTIATE

}  // namespace trifactor
