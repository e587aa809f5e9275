// Products of small matrices held in shared memory, C -= A B^H, with C in the registers of a warp or of a block.
#pragma once

#include <cuda/device/mma.cuh>

namespace trifactor::cuda {

/// A 16 x 16 left operand of Fragment::subtract in registers, entry (r, k) from A[r * down + k * right].
template <class T>
struct LeftOperand {
  T v[4][2];
  template <class S>
  __device__ LeftOperand(const S* A, int down, int right) {
    const int lane = int(threadIdx.x) % 32;
    const S* a = A + lane % 4 * right + lane / 4 * down;
#pragma unroll
    for (int p = 0; p < 4; ++p) v[p][0] = T(a[4 * p * right]), v[p][1] = T(a[4 * p * right + 8 * down]);
  }
};

/// A 16 x 8 N matrix C in the registers of one warp. Operands are column-major: entry (r, k) of A at A[k * lda + r].
template <class T, int N>
struct Fragment {
  TensorEntries<T> c[N];

  /// The first entry of a lane, and where entry e lies from there.
  __device__ static int lane_row() { return int(threadIdx.x) % 32 / 4; }
  __device__ static int lane_col() { return int(threadIdx.x) % 4 * 2; }
  __device__ static constexpr int down(int e) { return e / 2 * 8; }
  __device__ static constexpr int right(int e) { return e % 2; }
  __device__ static int row(int e) { return lane_row() + down(e); }
  __device__ static int col(int e) { return lane_col() + right(e); }
  __device__ T get(int s, int e) const { return c[s].get(e); }
  __device__ void set(int s, int e, T x) { c[s].set(e, x); }
  /// f(row, column, value) for every entry of this lane.
  template <class F>
  __device__ void for_each(F f) const {
#pragma unroll
    for (int s = 0; s < N; ++s)
#pragma unroll
      for (int e = 0; e < 4; ++e) f(row(e), 8 * s + col(e), get(s, e));
  }
  template <class F>
  __device__ void fill(F f) {
#pragma unroll
    for (int s = 0; s < N; ++s)
#pragma unroll
      for (int e = 0; e < 4; ++e) set(s, e, f(row(e), 8 * s + col(e)));
  }

  /// f(row, column, value), which f may change.
  template <class F>
  __device__ void change(F f) {
#pragma unroll
    for (int s = 0; s < N; ++s)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        T v = get(s, e);
        f(row(e), 8 * s + col(e), v);
        set(s, e, v);
      }
  }
  __device__ void clear() {
    fill([](int, int) { return T(0); });
  }
  __device__ void negate() {
    change([](int, int, T& v) { v = -v; });
  }
  __device__ void add(const TensorEntries<T> (&other)[N]) {
#pragma unroll
    for (int s = 0; s < N; ++s)
#pragma unroll
      for (int e = 0; e < 4; ++e) set(s, e, get(s, e) + other[s].get(e));
  }

  /// this -= conj(A) B^T; A (16, 16), B (8 N, 16)
  template <class S>
  __device__ void subtract(const LeftOperand<T>& loaded, const S* B, int ldb) {
    const int lane = int(threadIdx.x) % 32;
    const S* b = B + lane % 4 * ldb + lane / 4;
    T y[4][N];
#pragma unroll
    for (int p = 0; p < 4; ++p)
#pragma unroll
      for (int s = 0; s < N; ++s) y[p][s] = T(b[4 * p * ldb + 8 * s]);
    TensorEntries<T> other[N] = {};  // a second sum: the products of one wait for each other
#pragma unroll
    for (int p = 0; p < 4; p += 2)
#pragma unroll
      for (int s = 0; s < N; ++s) {
        tensor_subtract<true>(c[s], loaded.v[p][0], loaded.v[p][1], y[p][s]);
        tensor_subtract<true>(other[s], loaded.v[p + 1][0], loaded.v[p + 1][1], y[p + 1][s]);
      }
    add(other);
  }

  /// this -= A B^H, or conj(A) B^T if `first`; A (16, depth), which may lie by rows, B (8 N, depth)
  template <int depth, bool first, bool by_rows = false, class S>
  __device__ void subtract(const S* A, int lda, const S* B, int ldb) {
    const int lane = int(threadIdx.x) % 32;
    const int down = by_rows ? lda : 1, right = by_rows ? 1 : lda;
    const S *a = A + lane % 4 * right + lane / 4 * down, *b = B + lane % 4 * ldb + lane / 4;
    TensorEntries<T> other[N] = {};  // a second sum: the products of one wait for each other
    constexpr int together =
        is_complex<T> ? min(depth / 4, 4) : depth / 4;  // more makes compiling long, not running short
#pragma unroll together
    for (int p = 0; p < depth; p += 4) {
      const T a0 = T(a[p * right]), a1 = T(a[p * right + 8 * down]);
#pragma unroll
      for (int s = 0; s < N; ++s) {
        if (p % 8 == 4)
          tensor_subtract<first>(other[s], a0, a1, T(b[p * ldb + 8 * s]));
        else
          tensor_subtract<first>(c[s], a0, a1, T(b[p * ldb + 8 * s]));
      }
    }
    add(other);
  }
};

/// An M x M matrix C in the registers of so many warps, held and multiplied as Work. `columns`: its operands lie by
/// columns, else by rows.
template <class T, int M, bool columns, class Work = T, int warps = 8>
struct Product {
  // On tensor cores a warp holds 16 rows_of x 8 cols_of entries and the warps lie in `down` rows of them.
  static constexpr int down = M == 64 && warps == 8 ? 4 : 2;
  static constexpr int rows_of = M / down / 16, cols_of = M / (warps / down) / 8;
  // A lane's rows, and its columns of two neighbouring fragments, are neighbours where one load can bring both: the
  // order of rows and columns within a product is free.
  static constexpr bool paired = columns && sizeof(T) <= 8 && cols_of % 2 == 0;

  TensorEntries<Work> c[rows_of * cols_of];

  /// f(row, column, value) for every entry of this thread.
  template <class F>
  __device__ void for_each(F f) const {
    const int r0 = first_row(), c0 = first_col();
    visit([&](int i, int e, int r, int k) { f(r0 + r, c0 + k, get(i, e)); });
  }

  /// f(row, column, value, value below) for pairs of rows, the first of which is even; only where entries are paired.
  template <class F>
  __device__ void for_each_pair(F f) const {
    const int r0 = first_row(), c0 = first_col();
    visit([&](int i, int e, int r, int k) {
      if (e < 2) f(r0 + r, c0 + k, get(i, e), get(i, e + 2));
    });
  }

  /// Where entry (r, k) of an operand lies whose columns, or rows, are `pitch` entries apart.
  template <int pitch>
  __device__ static constexpr int at(int r, int k) {
    return columns ? k * pitch + r : r * pitch + k;
  }
  /// this -= A B^H, both M x depth. beside(step) is called depth / 4 times meanwhile.
  template <int depth, int pitch, class Beside>
  __device__ __forceinline__ void subtract(const T* A, const T* B, Beside beside) {
    const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
    const T* a = A + at<pitch>(warp % down * 16 * rows_of + lane / 4 * (paired ? 2 : 1), lane % 4);
    const T* b = B + at<pitch>(warp / down * 8 * cols_of + lane / 4 * (paired ? 2 : 1), lane % 4);
    // Sums of floats are cut off, not rounded, inside the tensor cores: long ones are added up outside.
    constexpr bool rounded = sizeof(Real<Work>) == 4;
    TensorEntries<Work> part[rounded ? rows_of * cols_of : 1];
#pragma unroll
    for (int i = 0; i < (rounded ? rows_of * cols_of : 1); ++i)
#pragma unroll
      for (int e = 0; e < 4; ++e) part[i].set(e, Work(0));
    constexpr int together = std::is_same_v<Work, float> ? 2 : 1;  // products of 4 columns that are one instruction
    Work x[2][together][rows_of][2], y[2][together][cols_of];      // of this step, and of the next
    const auto read = [&](int p) {
      const int to = p / (4 * together) % 2;
      using Pair = EntryVector<T, paired ? 2 : 1>;
      const auto pair = [](const T* p) { return *reinterpret_cast<const Pair*>(p); };
#pragma unroll
      for (int s = 0; s < together; ++s) {
#pragma unroll
        for (int j = 0; j < cols_of; j += paired ? 2 : 1) {
          const Pair v = pair(b + at<pitch>(8 * j, p + 4 * s));
          y[to][s][j] = Work(v.v[0]);
          if constexpr (paired) y[to][s][j + 1] = Work(v.v[1]);
        }
#pragma unroll
        for (int i = 0; i < rows_of; ++i) {
          const Pair v = pair(a + at<pitch>(16 * i, p + 4 * s));
          x[to][s][i][0] = Work(v.v[0]);
          if constexpr (paired)
            x[to][s][i][1] = Work(v.v[1]);
          else
            x[to][s][i][1] = Work(a[at<pitch>(16 * i + 8, p + 4 * s)]);
        }
      }
    };
    read(0);
#pragma unroll
    for (int p = 0; p < depth; p += 4 * together) {
      if (p + 4 * together < depth) read(p + 4 * together);
      const auto& now = x[p / (4 * together) % 2];
      const auto& other = y[p / (4 * together) % 2];
#pragma unroll
      for (int i = 0; i < rows_of; ++i)
#pragma unroll
        for (int j = 0; j < cols_of; ++j) {
          auto& to = rounded ? part[rounded ? i * cols_of + j : 0] : c[i * cols_of + j];
          if constexpr (together == 2)
            mma(to.re, SplitLeft({{{-now[0][i][0], -now[0][i][1]}, {-now[1][i][0], -now[1][i][1]}}}),
                SplitRight(RightPart<float>{{other[0][j], other[1][j]}}));
          else
            tensor_subtract<false>(to, now[0][i][0], now[0][i][1], other[0][j]);
        }
#pragma unroll
      for (int s = 0; s < together; ++s) beside(p / 4 + s);
    }
    if constexpr (rounded)
#pragma unroll
      for (int i = 0; i < rows_of * cols_of; ++i)
#pragma unroll
        for (int e = 0; e < 4; ++e) c[i].set(e, c[i].get(e) + part[i].get(e));
  }

  /// The first entry of this thread; visit calls f(index, entry, rows from there, columns from there) for each.
  __device__ static int first_row() {
    const int t = int(threadIdx.x);
    return t / 32 % down * 16 * rows_of + t % 32 / 4 * (paired ? 2 : 1);
  }
  __device__ static int first_col() {
    const int t = int(threadIdx.x);
    return t / 32 / down * 8 * cols_of + t % 4 * (paired ? 4 : 2);
  }
  __device__ T get(int i, int e) const { return T(c[i].get(e)); }
  __device__ void set(int i, int e, T v) { c[i].set(e, Work(v)); }
  template <class F>
  __device__ static void visit(F f) {
#pragma unroll
    for (int j = 0; j < cols_of; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e)
#pragma unroll
        for (int i = 0; i < rows_of; ++i)
          f(i * cols_of + j, e, 16 * i + e / 2 * (paired ? 1 : 8),
            paired ? j / 2 * 16 + e % 2 * 2 + j % 2 : 8 * j + e % 2);
  }
};

}  // namespace trifactor::cuda
