// What the tile tests share: scalars, storage with canaries, teams, random entries and residual ratios.
#pragma once

#include "thread_team.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <complex>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace trifactor::tile_test {

/// The scalars of this build, or f64 and c32 alone, which take every branch of a template.
#define AND_SCALAR(T) , T
template <class, class... T>
using AfterTheFirst = ::testing::Types<T...>;
#if TRIFACTOR_TEST_TWO_SCALARS && TRIFACTOR_HAS_F64 && TRIFACTOR_HAS_C32
using Scalars = ::testing::Types<double, core::Complex<float>>;
#else
using Scalars = AfterTheFirst<void TRIFACTOR_FOR_EACH_SCALAR(AND_SCALAR)>;
#endif
#undef AND_SCALAR
struct ScalarNames {
  template <class T>
  static std::string GetName(int) {
    return core::scalar_name(T{});
  }
};

constexpr int all_sizes[] = {0, 1, 2, 3, 5, 7, 8, 9, 10, 16, 17, 33, 50};
constexpr int all_teams[] = {1, 2, 3, 5};  // threads; 1 is the SerialTeam
constexpr double ratio_limit = 30;         // LAPACK's

/// Reference arithmetic.
using Wide = std::complex<double>;
template <class T>
Wide wide(T a) {
  if constexpr (core::is_complex<T>)
    return {double(a.re), double(a.im)};
  else
    return double(a);
}
template <class T>
T narrow(Wide a) {
  using R = core::Real<T>;
  if constexpr (core::is_complex<T>)
    return {R(a.real()), R(a.imag())};
  else
    return R(a.real());
}
/// The rounding error of one operation.
template <class T>
constexpr double eps = double(std::numeric_limits<core::Real<T>>::epsilon()) / 2;
template <class T>
constexpr core::Real<T> nan_of = std::numeric_limits<core::Real<T>>::quiet_NaN();
template <class T>
constexpr core::Real<T> inf_of = std::numeric_limits<core::Real<T>>::infinity();

template <class T>
bool same_bits(const T& a, const T& b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

/// A signalling NaN: whoever computes with it spoils a result, and whoever writes over it is seen, even one who adds to
/// it, since that makes it quiet. Each is another one, so that an exchange is seen as well.
template <class T>
T canary(unsigned number) {
  using R = core::Real<T>;
  R value;
  if constexpr (sizeof(R) == 4)
    value = std::bit_cast<R>(0x7fa00000u + number + 1);
  else
    value = std::bit_cast<R>(0x7ff4beef00000000ull + number);
  if constexpr (core::is_complex<T>)
    return {value, value};
  else
    return value;
}

enum class Layout { Packed, Padded, Flipped, Strided };
constexpr Layout all_layouts[] = {Layout::Packed, Layout::Padded, Layout::Flipped, Layout::Strided};
inline std::ostream& operator<<(std::ostream& out, Layout layout) {
  constexpr const char* names[] = {"packed", "padded", "flipped", "strided"};
  return out << names[int(layout)];
}

/// What a failure message says of its case.
struct Case {
  int m, n;
  Layout layout;
  int threads;
  int at = -1;  // the row or column that the case is about, where there is one
};
inline std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.m << " x " << c.n << ' ' << c.layout << " threads=" << c.threads << " at=" << c.at;
}

/// The layouts in turn, for tests whose cases are many: any run of four cases meets them all.
class LayoutCycle {
 public:
  Layout next() { return all_layouts[turn++ % 4]; }

 private:
  unsigned turn = 0;
};

/// A matrix among canaries: in its padding, before its first entry and after its last; its entries are canaries too.
/// A packed one fits its memory exactly, so that the address sanitizer sees a step outside.
template <class T>
class Stored {
 public:
  Stored(int rows, int cols, Layout layout = Layout::Packed) : rows(rows), cols(cols) {
    switch (layout) {
      case Layout::Packed:
        row_stride = 1, col_stride = std::max(rows, 1);
        break;
      case Layout::Padded:
        row_stride = 1, col_stride = rows + 3;
        break;
      case Layout::Flipped:
        row_stride = cols + 2, col_stride = 1;
        break;
      case Layout::Strided:
        row_stride = 2, col_stride = 2 * rows + 5;
        break;
    }
    margin = layout == Layout::Packed ? 0 : 2;
    entries.resize(layout == Layout::Packed ? rows * cols : 2 * margin + rows * row_stride + cols * col_stride);
    for (std::size_t k = 0; k < entries.size(); ++k) entries[k] = canary<T>(unsigned(k));
  }

  T& operator()(int i, int j) { return entries[place(i, j)]; }
  const T& operator()(int i, int j) const { return entries[place(i, j)]; }
  core::Tile<T> tile() { return {entries.data() + margin, rows, cols, row_stride, col_stride}; }
  core::Tile<const T> tile() const { return {entries.data() + margin, rows, cols, row_stride, col_stride}; }
  core::Tile<T, int> int_tile() { return {entries.data() + margin, rows, cols, row_stride, col_stride}; }
  core::Tile<const T, int> int_tile() const { return {entries.data() + margin, rows, cols, row_stride, col_stride}; }

  /// Whether all entries and all padding hold the same bits, but for the entries (i, j) that may_change names.
  template <class F>
  bool same_but(const Stored& before, F may_change) const {
    std::vector<char> skipped(entries.size());
    for (int j = 0; j < cols; ++j)
      for (int i = 0; i < rows; ++i) skipped[place(i, j)] = may_change(i, j);
    for (std::size_t k = 0; k < entries.size(); ++k)
      if (!skipped[k] && !same_bits(entries[k], before.entries[k])) return false;
    return true;
  }
  /// Whether the entries that `part` names hold the same bits, whatever the layouts.
  template <class F>
  bool same_entries(const Stored& other, F part) const {
    for (int j = 0; j < cols; ++j)
      for (int i = 0; i < rows; ++i)
        if (part(i, j) && !same_bits((*this)(i, j), other(i, j))) return false;
    return true;
  }
  bool same(const Stored& before) const {
    return same_but(before, [](int, int) { return false; });
  }

  const int rows, cols;

 private:
  int margin, row_stride, col_stride;
  std::vector<T> entries;
  std::size_t place(int i, int j) const { return margin + i * row_stride + j * col_stride; }
};

inline bool anywhere(int, int) { return true; }
inline bool on_or_below_diagonal(int i, int j) { return i >= j; }

/// Calls f(team) on every rank of a team of `threads`; what it returns must be the same on all of them.
template <class F>
auto on_team(int threads, F f) {
  using Result = decltype(f(tile::SerialTeam{}));
  if (threads == 1) return f(tile::SerialTeam{});
  if constexpr (std::is_void_v<Result>) {
    run_team(threads, [&](const ThreadTeam& team) { f(team); });
  } else {
    std::vector<Result> results(threads);
    run_team(threads, [&](const ThreadTeam& team) { results[team.rank()] = f(team); });
    for (int rank = 1; rank < threads; ++rank)
      EXPECT_EQ(results[rank], results[0]) << "rank " << rank << " of " << threads;
    return results[0];
  }
}

/// Entries in [-1, 1], with imaginary parts in [-1, 1]; the same in every run.
template <class T>
class Random {
 public:
  explicit Random(unsigned seed) : generator(seed) {}
  T operator()() { return narrow<T>({uniform(generator), uniform(generator)}); }
  void fill(Stored<T>& A) {
    for (int j = 0; j < A.cols; ++j)
      for (int i = 0; i < A.rows; ++i) A(i, j) = (*this)();
  }

 private:
  std::mt19937 generator;
  std::uniform_real_distribution<double> uniform{-1.0, 1.0};
};

/// The largest column sum of |entry(i, j)|, a NaN if any entry is one.
template <class F>
double norm1(int rows, int cols, F entry) {
  double largest = 0;
  for (int j = 0; j < cols; ++j) {
    double sum = 0;
    for (int i = 0; i < rows; ++i) sum += std::abs(entry(i, j));
    if (!(sum <= largest)) largest = sum;
  }
  return largest;
}

}  // namespace trifactor::tile_test
