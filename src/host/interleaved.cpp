// Compiled once for each instruction set, with TRIFACTOR_ISA naming it. All but the table is in an unnamed namespace,
// and no function of a header is called that the compiler could emit: the linker must not share AVX code with others.
#include <host/interleaved.hpp>

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

/// U vectors of W matrices each, factored side by side: lane l of vector u is matrix u W + l.
template <class T>
struct Group {
  using R = core::Real<T>;
  static constexpr int parts = core::is_complex<T> ? 2 : 1;   // re and im are vectors of their own
  static constexpr int W = vector_bytes / int(sizeof(R));
  // The square roots and divisions of one vector hide behind the other's. Neoverse-N1, double, n = 8: 10 % faster than
  // one vector, no slower than four.
  static constexpr int U = 2;
  static constexpr int lanes = U * W;
  static constexpr int B = 4;                             // blocks are B x B entries,
  static constexpr int H = registers / (parts * B * 2);   // of which B x H are updated at once: half of the registers
  static constexpr int run = core::min(W, 4);             // reals of a matrix that are moved together
  using V = typename Vector<R, W>::type;
  using Run = typename Vector<R, run>::type;
  using UnalignedRun = typename Vector<R, run>::unaligned;
  struct Entry { V part[parts]; };   // one entry of W matrices

  R* data[lanes];
  index_t order[lanes];
  index_t stride[lanes];         // in reals, from one contiguous line to the next
  std::uintptr_t ahead[lanes];   // bytes to the matrix that comes next in this lane
  bool columns;                  // the contiguous lines are columns, otherwise rows
  int vectors;                   // those in use
  index_t n;                     // the largest order
  index_t common[U];             // the smallest order in each vector
  Entry* L[U];                   // panels of B rows, in each the columns one after the other
  V inverse[U][B];               // 1 / diagonal of the present block column
  V check[U];                    // finite as long as all pivots are good

  INLINE Entry* panel(int u, index_t i) const { return L[u] + i * (i + B) / 2; }   // of row i, a multiple of B
  INLINE static index_t panel_entries(index_t n) {
    const index_t panels = core::ceil_div(n, B);
    return panels * (panels + 1) / 2 * B * B;
  }

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
        __builtin_prefetch(reinterpret_cast<const void*>(here + ahead[u * W + l]), 1);
      }
    }
  }
  /// A block that reaches beyond the order of some of them, where the identity lies.
  template <bool Gather>
  NOINLINE void move_ragged(int u, Entry* c, int rows, int cols, bool triangle, index_t i, index_t j) const {
    for (int l = 0; l < W; ++l)
      for (int r = 0; r < rows; ++r)
        for (int s = 0; s < (triangle ? r + 1 : cols); ++s) {
          R* inside = reinterpret_cast<R*>(c + r * cols + s) + l;   // re; im is W further
          const int m = u * W + l;
          const index_t line = columns ? j + s : i + r, e = columns ? i + r : j + s;
          for (int p = 0; p < parts; ++p) {
            if (i + r >= order[m]) {
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
    if (i + M <= common[u] && columns) return move_whole<Gather, Triangle, true>(u, c, i, j);
    if (i + M <= common[u]) return move_whole<Gather, Triangle, false>(u, c, i, j);
    Entry copy[M][N];   // so that c itself stays in registers
    UNROLL for (int r = 0; r < M; ++r)
      UNROLL for (int s = 0; s < N; ++s) copy[r][s] = Gather || (Triangle && s > r) ? Entry{} : c[r][s];
    move_ragged<Gather>(u, copy[0], M, N, Triangle, i, j);
    if (Gather) UNROLL for (int r = 0; r < M; ++r)
      UNROLL for (int s = 0; s < (Triangle ? r + 1 : N); ++s) c[r][s] = copy[r][s];
  }

  /// c -= a conj(b). Every entry of L is made of such steps, in the order of the columns, and one product with an
  /// inverse, in whichever block it lies: its bits depend neither on n nor on the other lanes.
  INLINE static void subtract_product(Entry& c, const Entry& a, const Entry& b) {
    c.part[0] -= a.part[0] * b.part[0];
    if constexpr (parts == 2) {
      c.part[0] -= a.part[1] * b.part[1];
      c.part[1] -= a.part[1] * b.part[0];
      c.part[1] += a.part[0] * b.part[1];
    }
  }
  INLINE static void scale(Entry& c, V factor) {
    UNROLL for (int p = 0; p < parts; ++p) c.part[p] *= factor;
  }

  /// Updates the C x C block at (j, j) by the columns before it and factors it, both vectors at once.
  template <int C> NOINLINE void diagonal_block(index_t j) {
    Entry c[U][C][C];
    const auto pivot = [&](int u, int s) INLINED {
      V& d = c[u][s][s].part[0];
      d = square_root(d);
      inverse[u][s] = 1 / d;
      check[u] += d + inverse[u][s];   // a bad pivot gives NaN or infinity here, and its lane goes on with that
      if constexpr (parts == 2) c[u][s][s].part[1] = V{};
    };
    UNROLL for (int u = 0; u < U; ++u) {
      move<true, true>(u, c[u], j, j);
      const Entry* P = panel(u, j);
      for (index_t k = 0; k < j; ++k)
        UNROLL for (int r = 0; r < C; ++r)
          UNROLL for (int s = 0; s <= r; ++s) subtract_product(c[u][r][s], P[k * B + r], P[k * B + s]);
      pivot(u, 0);
    }
    UNROLL for (int s = 0; s + 1 < C; ++s)
      UNROLL for (int u = 0; u < U; ++u) {
        UNROLL for (int r = s + 1; r < C; ++r) {
          scale(c[u][r][s], inverse[u][s]);
          UNROLL for (int q = s + 1; q <= r; ++q) subtract_product(c[u][r][q], c[u][r][s], c[u][q][s]);
        }
        pivot(u, s + 1);
      }
    UNROLL for (int u = 0; u < U; ++u) {
      move<false, true>(u, c[u], j, j);
      Entry* P = panel(u, j) + j * B;
      UNROLL for (int r = 0; r < C; ++r)
        UNROLL for (int s = 0; s < r; ++s) P[s * B + r] = c[u][r][s];
    }
  }

  /// The M x B block at (i, j), below the diagonal block of its columns.
  template <int M> NOINLINE void block_below(int u, index_t i, index_t j) {
    Entry c[M][B];
    Entry* P = panel(u, i - i % B) + i % B;
    const Entry* Q = panel(u, j);
    move<true, false>(u, c, i, j);
    UNROLL for (int h = 0; h < B; h += H)
      for (index_t k = 0; k < j; ++k)
        UNROLL for (int r = 0; r < M; ++r)
          UNROLL for (int s = h; s < h + H; ++s) subtract_product(c[r][s], P[k * B + r], Q[k * B + s]);
    P += j * B, Q += j * B;
    UNROLL for (int s = 0; s < B; ++s)
      UNROLL for (int r = 0; r < M; ++r) {
        UNROLL for (int q = 0; q < s; ++q) subtract_product(c[r][s], c[r][q], Q[q * B + s]);
        scale(c[r][s], inverse[u][s]);
      }
    move<false, false>(u, c, i, j);
    UNROLL for (int s = 0; s < B; ++s)
      UNROLL for (int r = 0; r < M; ++r) P[s * B + r] = c[r][s];
  }

  void block_column(index_t j) {
    switch (n - j) {
      case 1: return diagonal_block<1>(j);
      case 2: return diagonal_block<2>(j);
      case 3: return diagonal_block<3>(j);
    }
    diagonal_block<B>(j);
    for (int u = 0; u < vectors; ++u) {
      index_t i = j + B;
      for (; i + B <= n; i += B) block_below<B>(u, i, j);
      for (; i < n; ++i) block_below<1>(u, i, j);
    }
  }

  /// Factors items[0 .. lanes), or [0 .. size) if that is less; the next ones are prefetched.
  void cholesky(const core::Items<T>& A, const index_t* items, int size, int* info, Entry* scratch) {
    n = 0, columns = !A.is_flipped, vectors = core::min(U, (size + W - 1) / W);
    for (int u = 0; u < U; ++u) {
      common[u] = A.rows, check[u] = V{};
      for (int l = u * W; l < (u + 1) * W; ++l) {
        // Idle lanes repeat the first of their vector, so that they read and write the same; an idle vector is empty.
        core::Tile<T> tile = A.item(items[l < size ? l : u < vectors ? u * W : 0]);
        if (u >= vectors) tile.rows = 0;
        const T* next = l + lanes < size ? A.item(items[l + lanes]).data : tile.data;
        data[l] = reinterpret_cast<R*>(tile.data), order[l] = tile.rows;
        stride[l] = (columns ? tile.col_stride : tile.row_stride) * parts;
        ahead[l] = reinterpret_cast<std::uintptr_t>(next) - reinterpret_cast<std::uintptr_t>(tile.data);
        n = core::max(n, order[l]), common[u] = core::min(common[u], order[l]);
      }
    }
    for (int u = 0; u < U; ++u) L[u] = scratch + u * panel_entries(n);
    for (index_t j = 0; j < n; j += B) block_column(j);
    for (int l = 0; l < lanes && l < size; ++l) {
      const R sum = check[l / W][l % W];
      if (sum - sum == 0) continue;
      index_t k = 0;
      while (core::good_pivot(data[l][k * (stride[l] + parts)])) ++k;   // the diagonal of L
      info[items[l]] = int(k + 1);
    }
  }
};

constexpr std::uintptr_t alignment = vector_bytes;

template <class T> std::size_t scratch_bytes(index_t n) {
  return alignment + Group<T>::U * Group<T>::panel_entries(n) * sizeof(typename Group<T>::Entry);
}

template <class T>
void cholesky(const core::Items<T>& A, const index_t* items, int size, index_t, int* info, void* scratch) {
  const auto aligned = (reinterpret_cast<std::uintptr_t>(scratch) + alignment - 1) / alignment * alignment;
  Group<T> group;
  for (; size > 0; items += group.lanes, size -= group.lanes)
    group.cholesky(A, items, size, info, reinterpret_cast<typename Group<T>::Entry*>(aligned));
}

template <class T> constexpr InterleavedTable<T> table = {Group<T>::lanes, scratch_bytes<T>, cholesky<T>};

}  // namespace

template <class T> const InterleavedTable<T>& interleaved_table() { return table<T>; }

#define INSTANTIATE(T) template const InterleavedTable<T>& interleaved_table<T>();
TRIFACTOR_FOR_EACH_SCALAR(INSTANTIATE)

}  // namespace trifactor::host::TRIFACTOR_ISA
