// Copies of entries on the host, between any strides.
#include "array.hpp"

#include <algorithm>
#include <cstring>

namespace trifactor::python {

namespace {

struct Bytes16 {
  std::uint64_t half[2];
};

/// rows x cols entries, to a target whose rows are neighbours.
template <class E, class F>
void copy_matrix(const E* from, index_t from_row, index_t from_col, E* to, index_t to_col, index_t rows, index_t cols,
                 F f) {
  constexpr index_t tile = 32;  // both sides of a tile stay in the first cache
  if (from_row == 1) {
    for (index_t j = 0; j < cols; ++j)
      for (index_t i = 0; i < rows; ++i) to[i + j * to_col] = f(from[i + j * from_col]);
    return;
  }
  for (index_t j0 = 0; j0 < cols; j0 += tile)
    for (index_t i0 = 0; i0 < rows; i0 += tile)
      for (index_t j = j0; j < std::min(j0 + tile, cols); ++j)
        for (index_t i = i0; i < std::min(i0 + tile, rows); ++i)
          to[i + j * to_col] = f(from[i * from_row + j * from_col]);
}

template <class E, class F>
void copy_typed(const Array& source, const Array& target, F f) {
  const int n = target.ndim();
  // The source's strides in the target's dimensions; 0 where it is spread.
  std::array<index_t, max_dims> from{};
  for (int d = 0; d < n; ++d) {
    const int s = d - (n - source.ndim());
    if (s >= 0 && source.shape[s] != 1) from[std::size_t(d)] = source.stride[std::size_t(s)];
  }
  if (target.shape.product() == 0) return;
  const auto* in = static_cast<const E*>(source.data);
  auto* out = static_cast<E*>(target.data);
  auto extent = [&](int d) { return d >= 0 ? target.shape[d] : 1; };
  auto in_stride = [&](int d) { return d >= 0 ? from[std::size_t(d)] : 0; };
  auto out_stride = [&](int d) { return d >= 0 ? target.stride[std::size_t(d)] : 1; };
  int row = n - 2, col = n - 1;
  if (extent(col) > 1 && (out_stride(col) == 1 || extent(row) == 1)) std::swap(row, col);
  const bool strided = extent(row) > 1 && out_stride(row) != 1;  // neither direction is dense
  std::array<index_t, max_dims> at{};
  while (true) {
    index_t i = 0, o = 0;
    for (int d = 0; d < n - 2; ++d)
      i += at[std::size_t(d)] * from[std::size_t(d)], o += at[std::size_t(d)] * target.stride[std::size_t(d)];
    if (strided) {
      for (index_t c = 0; c < extent(col); ++c)
        for (index_t r = 0; r < extent(row); ++r)
          out[o + r * out_stride(row) + c * out_stride(col)] = f(in[i + r * in_stride(row) + c * in_stride(col)]);
    } else {
      copy_matrix(in + i, in_stride(row), in_stride(col), out + o, out_stride(col), extent(row), extent(col), f);
    }
    int d = n - 3;
    for (; d >= 0; --d) {
      if (++at[std::size_t(d)] < target.shape[d]) break;
      at[std::size_t(d)] = 0;
    }
    if (d < 0) return;
  }
}

}  // namespace

void copy_entries(const Array& source, const Array& target, bool conj) {
  auto copy = [&] {
    auto same = [](auto e) { return e; };
    if (conj && target.dtype == Dtype::C32)
      return copy_typed<std::complex<float>>(source, target, [](auto e) { return std::conj(e); });
    if (conj && target.dtype == Dtype::C64)
      return copy_typed<std::complex<double>>(source, target, [](auto e) { return std::conj(e); });
    switch (entry_bytes(target.dtype)) {
      case 4:
        return copy_typed<std::uint32_t>(source, target, same);
      case 8:
        return copy_typed<std::uint64_t>(source, target, same);
      default:
        return copy_typed<Bytes16>(source, target, same);
    }
  };
  if (target.shape.product() < 10000) return copy();
  nb::gil_scoped_release release;
  copy();
}

void conjugate_entries(const Array& target) {
  if (is_complex(target.dtype)) copy_entries(target, target, true);
}

}  // namespace trifactor::python
