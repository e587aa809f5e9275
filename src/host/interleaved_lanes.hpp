// One operand of a group of items: lane l of vector u is item u W + l. Blocks of it are moved between the items and registers.
// Included by interleaved*.cpp alone; interleaved.cpp says what is allowed here.
#pragma once

#include <core/batch.hpp>

#include <cstdint>
#include <utility>
#ifdef __AVX2__
#include <immintrin.h>
#endif

#define INLINED __attribute__((always_inline))   // lambdas too: a call would put blocks into memory
#define INLINE inline INLINED
#define NOINLINE __attribute__((noinline))
#ifdef __clang__
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

namespace trifactor::host::TRIFACTOR_ISA {
namespace {

#if defined(__AVX512F__)
constexpr int vector_bytes = 64, registers = 32;
#elif defined(__AVX2__)
constexpr int vector_bytes = 32, registers = 16;
#elif defined(__aarch64__)
constexpr int vector_bytes = 16, registers = 32;
#else
constexpr int vector_bytes = 16, registers = 16;
#endif

template <class R, int N> struct Vector {
  typedef R type __attribute__((vector_size(N * sizeof(R))));
  typedef R unaligned __attribute__((vector_size(N * sizeof(R)), aligned(sizeof(R)), may_alias));
};

/// A number that a lambda can take as a template's argument.
template <int N> struct Constant { constexpr int operator()() const { return N; } };

template <int... I> using Sequence = std::integer_sequence<int, I...>;
template <int N> using count = std::make_integer_sequence<int, N>;   // 0 .. N - 1

/// Lanes First, First + Step, ... of a and b laid end to end.
template <int First, int Step, class V, int... I> INLINE auto pick(V a, V b, Sequence<I...>) {
  return __builtin_shufflevector(a, b, (First + Step * I)...);
}
/// a and b with their lanes alternating: the first half of that, or the second.
template <bool Second, class V, int... I> INLINE V zip(V a, V b, Sequence<I...>) {
  constexpr int W = sizeof...(I);
  return __builtin_shufflevector(a, b, (Second * W / 2 + I / 2 + I % 2 * W)...);
}

// GCC 12 takes wide vectors apart for their square roots in some places, and warns of _mm512_sqrt_pd.
#if defined(__AVX512F__)
INLINE __m512 square_root(__m512 a) { return _mm512_maskz_sqrt_ps(__mmask16(-1), a); }
INLINE __m512d square_root(__m512d a) { return _mm512_maskz_sqrt_pd(__mmask8(-1), a); }
#elif defined(__AVX2__)
INLINE __m256 square_root(__m256 a) { return _mm256_sqrt_ps(a); }
INLINE __m256d square_root(__m256d a) { return _mm256_sqrt_pd(a); }
#else
INLINE float square_root(float a) { return __builtin_sqrtf(a); }
INLINE double square_root(double a) { return __builtin_sqrt(a); }
template <class V> INLINE V square_root(V a) {
  UNROLL for (int l = 0; l < int(sizeof a / sizeof a[0]); ++l) a[l] = square_root(a[l]);
  return a;
}
#endif

/// U vectors of W items each, worked on side by side.
template <class T> struct Lanes {
  using R = core::Real<T>;
  static constexpr int parts = core::is_complex<T> ? 2 : 1;   // re and im are vectors of their own
  static constexpr int W = vector_bytes / int(sizeof(R));
  // The square roots and divisions of one vector hide behind the other's. Neoverse-N1, double, n = 8: 10 % faster than
  // one vector, no slower than four.
  static constexpr int U = 2;
  static constexpr int lanes = U * W;
  static constexpr int B = 4;                             // blocks are B x B entries,
  static constexpr int H = registers / (parts * B * 2);   // of which B x H are updated at once: half of the registers
  using V = typename Vector<R, W>::type;
  struct Entry { V part[parts]; };   // one entry of W items

  /// A lower triangle of entries is panels of B rows, in each the columns one after the other: that of row i, a multiple
  /// of B.
  INLINE static Entry* panel(Entry* L, index_t i) { return L + i * (i + B) / 2; }
  INLINE static index_t panel_entries(index_t n) {
    const index_t panels = core::ceil_div(n, B);
    return panels * (panels + 1) / 2 * B * B;
  }
  INLINE static void scale(Entry& c, V factor) {
    UNROLL for (int p = 0; p < parts; ++p) c.part[p] *= factor;
  }
};

/// Where the items of a group lie. `Written`: what is prefetched will be written.
template <class T, bool Written>
struct Operand : Lanes<T> {
  using typename Lanes<T>::R;
  using typename Lanes<T>::V;
  using typename Lanes<T>::Entry;
  using Lanes<T>::parts, Lanes<T>::W, Lanes<T>::U, Lanes<T>::lanes;
  static constexpr int run = core::min(W, 4);             // reals of an item that are moved together
  using Run = typename Vector<R, run>::type;
  using UnalignedRun = typename Vector<R, run>::unaligned;

  R* data[lanes];
  index_t rows_of[lanes], cols_of[lanes];
  index_t stride[lanes];         // in reals, from one contiguous line to the next
  std::uintptr_t ahead[lanes];   // bytes to the item that comes next in this lane
  bool columns;                  // the contiguous lines are columns, otherwise rows
  int vectors;                   // those in use
  index_t rows;                  // of the largest item
  index_t common_rows[U], common_cols[U];   // the least in each vector

  bool settled = false;          // all lanes are in use, of items of one size: the next group differs in addresses alone

  // What is prefetched: while items are factored the whole group is in use, while triangles are loaded one vector is.
  static constexpr int lookahead = Written ? lanes : W;

  /// items[0 .. lanes) of A, or [0 .. size) if that is less; always of the same batch. The next ones are prefetched.
  template <class Q> void take(const core::Items<Q>& A, const index_t* items, int size) {
    if (!settled || size < lanes) take_shapes(A, items, size);
    const auto start = [&](int l) INLINED { return A.pointers ? A.pointers[items[l]] : A.base + items[l] * A.stride; };
    const index_t window = A.item(items[0]).data - start(0);   // the same for all but empty items
    for (int l = 0; l < lanes; ++l) {
      // Idle lanes repeat the first of their vector, so that they read and write the same.
      const int own = l < size ? l : l / W < vectors ? l / W * W : 0;
      Q* const here = start(own) + (rows_of[l] > 0 && cols_of[l] > 0 ? window : 0);
      data[l] = reinterpret_cast<R*>(const_cast<T*>(here));
      ahead[l] = own + lookahead < size ? reinterpret_cast<std::uintptr_t>(start(own + lookahead)) -
                                              reinterpret_cast<std::uintptr_t>(start(own)) : 0;
    }
  }
  template <class Q> NOINLINE void take_shapes(const core::Items<Q>& A, const index_t* items, int size) {
    rows = 0, columns = !A.is_flipped, vectors = core::min(U, (size + W - 1) / W);
    for (int u = 0; u < U; ++u) {
      common_rows[u] = A.rows, common_cols[u] = A.cols;
      for (int l = u * W; l < (u + 1) * W; ++l) {
        core::Tile<Q> tile = A.item(items[l < size ? l : u < vectors ? u * W : 0]);
        if (u >= vectors) tile.rows = 0;   // an idle vector is empty
        rows_of[l] = tile.rows, cols_of[l] = tile.cols;
        stride[l] = (columns ? tile.col_stride : tile.row_stride) * parts;
        rows = core::max(rows, tile.rows);
        common_rows[u] = core::min(common_rows[u], tile.rows), common_cols[u] = core::min(common_cols[u], tile.cols);
      }
    }
    settled = !A.ragged() && size >= lanes;
  }
  /// Nothing of lane l is written any more.
  void leave_out(int l) { cols_of[l] = 0, common_cols[l / W] = 0, settled = false; }

  template <int N, class Line> INLINE static auto load_runs(Line line, int l) {
    if constexpr (N == 1) return Run(*reinterpret_cast<const UnalignedRun*>(line(l)));
    else return pick<0, 1>(load_runs<N / 2>(line, l), load_runs<N / 2>(line, l + N / 2), count<N * run>{});
  }
  template <int N, class S, class Line> INLINE static void store_runs(S x, Line line, int l) {
    if constexpr (N == 1) {
      *reinterpret_cast<UnalignedRun*>(line(l)) = x;
    } else {
      store_runs<N / 2>(pick<0, 1>(x, x, count<N / 2 * run>{}), line, l);
      store_runs<N / 2>(pick<N / 2 * run, 1>(x, x, count<N / 2 * run>{}), line, l + N / 2);
    }
  }
  /// x[e], lane l = line(l)[e], or back: W x run transposed by log2(run) perfect shuffles.
  template <bool Gather, class Line> INLINE static void move_run(V (&x)[run], Line line) {
    constexpr int N = W / run;   // runs that fill a vector
    if (Gather) UNROLL for (int v = 0; v < run; ++v) x[v] = load_runs<N>(line, v * N);
    UNROLL for (int stage = 1; stage < run; stage *= 2) {
      V y[run];
      UNROLL for (int v = 0; v < run / 2; ++v) {
        if (Gather) {
          y[v] = pick<0, 2>(x[2 * v], x[2 * v + 1], count<W>{});
          y[v + run / 2] = pick<1, 2>(x[2 * v], x[2 * v + 1], count<W>{});
        } else {
          y[2 * v] = zip<0>(x[v], x[v + run / 2], count<W>{});
          y[2 * v + 1] = zip<1>(x[v], x[v + run / 2], count<W>{});
        }
      }
      UNROLL for (int v = 0; v < run; ++v) x[v] = y[v];
    }
    if (!Gather) UNROLL for (int v = 0; v < run; ++v) store_runs<N>(x[v], line, v * N);
  }

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push  // g++ 13 does not see that move_one returns before it leaves the block
#pragma GCC diagnostic ignored "-Waggressive-loop-optimizations"
#endif
  /// A block that lies within all W matrices.
  template <bool Gather, bool Triangle, bool Columns, int M, int N>
  INLINE void move_whole(int u, Entry (&c)[M][N], index_t i, index_t j) const {
    R* a[W];   // (i, j) of each matrix
    index_t step[W];
    UNROLL for (int l = 0; l < W; ++l) {
      step[l] = stride[u * W + l];
      a[l] = data[u * W + l] + (Columns ? j * step[l] + i * parts : i * step[l] + j * parts);
    }
    constexpr int lines = Columns ? N : M, length = (Columns ? M : N) * parts, whole_runs = length / run * run;
    UNROLL for (int k = 0; k < lines; ++k) {
      const int begin = Triangle && Columns ? k * parts : 0, end = Triangle && !Columns ? (k + 1) * parts : length;
      const auto inside = [&](int e) INLINED -> V& {
        return (Columns ? c[e / parts][k] : c[k][e / parts]).part[e % parts];
      };
      const auto move_one = [&](int e) INLINED {
        if (e < begin || e >= end) return;
        V x = Gather ? V{} : inside(e);
        UNROLL for (int l = 0; l < W; ++l) {
          R& outside = a[l][k * step[l] + e];
          if (Gather) x[l] = outside; else outside = x[l];
        }
        if (Gather) inside(e) = x;
      };
      UNROLL for (int e = 0; e < whole_runs; e += run) {
        if (begin <= e && e + run <= end) {
          V x[run];
          if (!Gather) UNROLL for (int t = 0; t < run; ++t) x[t] = inside(e + t);
          move_run<Gather>(x, [&](int l) INLINED { return a[l] + k * step[l] + e; });
          if (Gather) UNROLL for (int t = 0; t < run; ++t) inside(e + t) = x[t];
        } else {
          UNROLL for (int t = 0; t < run; ++t) move_one(e + t);
        }
      }
      UNROLL for (int e = whole_runs; e < length; ++e) move_one(e);
      // The same line of the matrices that come next. Neoverse-N1, double: -25 % of the time at n = 32, -13 % at 64.
      if (Gather) UNROLL for (int l = 0; l < W; ++l) {
        const auto here = reinterpret_cast<std::uintptr_t>(a[l] + k * step[l]);
        __builtin_prefetch(reinterpret_cast<const void*>(here + ahead[u * W + l]), Written);
      }
    }
  }
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
  /// A block that reaches beyond some of them, where the identity lies.
  template <bool Gather>
  NOINLINE void move_ragged(int u, Entry* c, int height, int width, bool triangle, index_t i, index_t j) const {
    for (int l = 0; l < W; ++l)
      for (int r = 0; r < height; ++r)
        for (int s = 0; s < (triangle ? r + 1 : width); ++s) {
          R* inside = reinterpret_cast<R*>(c + r * width + s) + l;   // re; im is W further
          const int m = u * W + l;
          const index_t line = columns ? j + s : i + r, e = columns ? i + r : j + s;
          for (int p = 0; p < parts; ++p) {
            if (i + r >= rows_of[m] || j + s >= cols_of[m]) {
              if (Gather) inside[p * W] = R(p == 0 && i + r == j + s);
              continue;
            }
            R& outside = data[m][line * stride[m] + e * parts + p];
            if (Gather) inside[p * W] = outside; else outside = inside[p * W];
          }
        }
  }
  /// c = the M x N block at (i, j) of the matrices of vector u, or its lower triangle only; or back.
  template <bool Gather, bool Triangle, int M, int N>
  INLINE void move(int u, Entry (&c)[M][N], index_t i, index_t j) const {
    const bool whole = i + M <= common_rows[u] && j + N <= common_cols[u];
    if (whole && columns) return move_whole<Gather, Triangle, true>(u, c, i, j);
    if (whole) return move_whole<Gather, Triangle, false>(u, c, i, j);
    Entry copy[M][N];   // so that c itself stays in registers
    UNROLL for (int r = 0; r < M; ++r)
      UNROLL for (int s = 0; s < N; ++s) copy[r][s] = Gather || (Triangle && s > r) ? Entry{} : c[r][s];
    move_ragged<Gather>(u, copy[0], M, N, Triangle, i, j);
    if (Gather) UNROLL for (int r = 0; r < M; ++r)
      UNROLL for (int s = 0; s < (Triangle ? r + 1 : N); ++s) c[r][s] = copy[r][s];
  }
};

}  // namespace
}  // namespace trifactor::host::TRIFACTOR_ISA
