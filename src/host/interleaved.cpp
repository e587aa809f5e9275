// Compiled once for each instruction set, with TRIFACTOR_ISA naming it. All but the table is in an unnamed namespace and
// no function of a header is called that the compiler could emit: the linker must not take AVX code for shared code.
#include <host/interleaved.hpp>

#define INLINE inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 16")

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
template <class R> constexpr int lanes = vector_bytes / int(sizeof(R));

/// One entry of the matrices of a group, a lane for each matrix: part 0 is real, part 1 imaginary.
template <class T> struct Entry {
  using R = core::Real<T>;
  static constexpr int parts = core::is_complex<T> ? 2 : 1;
  typename Vector<R, lanes<R>>::type part[parts];
};

/// c -= a conj(b). Every entry of L is the sum of such products in the order of their columns, in whichever block it
/// lies: its bits do not depend on n or on the matrices in other lanes.
template <class T> INLINE void subtract_product(Entry<T>& c, const Entry<T>& a, const Entry<T>& b) {
  c.part[0] -= a.part[0] * b.part[0];
  if constexpr (core::is_complex<T>) {
    c.part[0] -= a.part[1] * b.part[1];
    c.part[1] -= a.part[1] * b.part[0];
    c.part[1] += a.part[0] * b.part[1];
  }
}

INLINE float sqrt(float a) { return __builtin_sqrtf(a); }
INLINE double sqrt(double a) { return __builtin_sqrt(a); }

template <int... I> struct Sequence {};
template <int N, int... I> struct Count : Count<N - 1, N - 1, I...> {};
template <int... I> struct Count<0, I...> { using type = Sequence<I...>; };
template <int N> using count = typename Count<N>::type;

/// Lanes first, first + step, ... of a and b laid end to end.
template <int First, int Step, class V, int... I> INLINE auto pick(V a, V b, Sequence<I...>) {
  return __builtin_shufflevector(a, b, (First + Step * I)...);
}
/// a and b with their lanes alternating: the first or the second half.
template <bool Second, class V, int... I> INLINE V zip(V a, V b, Sequence<I...>) {
  constexpr int W = sizeof...(I);
  return __builtin_shufflevector(a, b, (Second * W / 2 + I / 2 + I % 2 * W)...);
}

/// Up to U W matrices, side by side in U vectors.
template <class T>
struct Group {
  using E = Entry<T>;
  using R = core::Real<T>;
  static constexpr int W = lanes<R>, parts = E::parts;
  static constexpr int U = 2;                          // the square roots and divisions of one hide behind the other's
  static constexpr int B = 4;                          // blocks are B x B
  static constexpr int run = core::min(W, 4);          // reals of one matrix that are moved together
  static constexpr R infinity = std::numeric_limits<R>::infinity();
  using V = typename Vector<R, W>::type;
  using Run = typename Vector<R, run>::unaligned;

  R* data[U * W];                // of each matrix
  index_t stride[U * W];         // in reals, between the lines that are contiguous: columns, or rows
  index_t order[U * W];
  index_t n, common;             // the largest order and the smallest
  bool columns;
  E* L[U];                       // panels of B rows; in each the columns one after the other
  V check[U];                    // finite as long as all pivots are good
  V inverse[U][B];               // 1 / diagonal of the present block column

  INLINE E* panel(int u, index_t i) const { return L[u] + i * (i + B) / 2; }   // of row i, a multiple of B

  template <int N, class Line> INLINE static auto load_runs(Line line, int l) {
    if constexpr (N == 1) return typename Vector<R, run>::type(*reinterpret_cast<const Run*>(line(l)));
    else return pick<0, 1>(load_runs<N / 2>(line, l), load_runs<N / 2>(line, l + N / 2), count<N * run>{});
  }
  template <int N, class Line, class S> INLINE static void store_runs(S x, Line line, int l) {
    if constexpr (N == 1) {
      *reinterpret_cast<Run*>(line(l)) = x;
    } else {
      store_runs<N / 2>(pick<0, 1>(x, x, count<N / 2 * run>{}), line, l);
      store_runs<N / 2>(pick<N / 2 * run, 1>(x, x, count<N / 2 * run>{}), line, l + N / 2);
    }
  }
  /// x[e], lane l = line(l)[e], or back: a transpose as log2(run) perfect shuffles.
  template <bool Gather, class Line> INLINE static void move_run(V (&x)[run], Line line) {
    V y[run];
    if constexpr (Gather) {
      UNROLL for (int v = 0; v < run; ++v) x[v] = load_runs<W / run>(line, v * (W / run));
    }
    UNROLL for (int stage = 1; stage < run; stage *= 2) {
      UNROLL for (int v = 0; v < run / 2; ++v) {
        if constexpr (Gather) {
          y[v] = pick<0, 2>(x[2 * v], x[2 * v + 1], count<W>{});
          y[v + run / 2] = pick<1, 2>(x[2 * v], x[2 * v + 1], count<W>{});
        } else {
          y[2 * v] = zip<0>(x[v], x[v + run / 2], count<W>{});
          y[2 * v + 1] = zip<1>(x[v], x[v + run / 2], count<W>{});
        }
      }
      UNROLL for (int v = 0; v < run; ++v) x[v] = y[v];
    }
    if constexpr (!Gather) {
      UNROLL for (int v = 0; v < run; ++v) store_runs<W / run>(x[v], line, v * (W / run));
    }
  }

  /// A block of at most B x B that reaches beyond some matrix's order, where the identity lies.
  template <bool Gather> void move_ragged(int u, E* c, int rows, int cols, bool triangle, index_t i, index_t j) const {
    for (int l = 0; l < W; ++l)
      for (int r = 0; r < rows; ++r)
        for (int s = 0; s < (triangle ? r + 1 : cols); ++s) {
          const int m = u * W + l;
          const index_t line = columns ? j + s : i + r, entry = columns ? i + r : j + s;
          for (int p = 0; p < parts; ++p) {
            R& x = reinterpret_cast<R*>(&c[r * cols + s])[p * W + l];
            R* outside = i + r < order[m] ? data[m] + line * stride[m] + entry * parts + p : nullptr;
            if (Gather) x = outside ? *outside : R(p == 0 && i + r == j + s);
            else if (outside) *outside = x;
          }
        }
  }
  /// A block within all matrices.
  template <bool Gather, bool Triangle, bool Columns, int M, int N>
  INLINE void move_whole(int u, E (&c)[M][N], index_t i, index_t j) const {
    R* a[W];
    index_t step[W];
    UNROLL for (int l = 0; l < W; ++l) {
      step[l] = stride[u * W + l];
      a[l] = data[u * W + l] + (Columns ? j * step[l] + i * parts : i * step[l] + j * parts);
    }
    constexpr int lines = Columns ? N : M, length = (Columns ? M : N) * parts;
    UNROLL for (int k = 0; k < lines; ++k) {
      const int begin = Triangle && Columns ? k * parts : 0, end = Triangle && !Columns ? (k + 1) * parts : length;
      const auto inside = [&](int e) -> V& { return (Columns ? c[e / parts][k] : c[k][e / parts]).part[e % parts]; };
      UNROLL for (int e = 0; e < length; ++e) {
        if (e % run == 0 && begin <= e && e + run <= end) {
          V x[run];
          if (!Gather) UNROLL for (int t = 0; t < run; ++t) x[t] = inside(e + t);
          move_run<Gather>(x, [&](int l) { return a[l] + k * step[l] + e; });
          if (Gather) UNROLL for (int t = 0; t < run; ++t) inside(e + t) = x[t];
        } else if ((begin > e / run * run || e / run * run + run > end) && begin <= e && e < end) {
          V x = Gather ? V{} : inside(e);
          UNROLL for (int l = 0; l < W; ++l) {
            R& outside = a[l][k * step[l] + e];
            if (Gather) x[l] = outside;
            else outside = x[l];
          }
          if (Gather) inside(e) = x;
        }
      }
    }
  }
  /// The M x N block c at (i, j), or the lower triangle of it, from the matrices or to them.
  template <bool Gather, bool Triangle, int M, int N>
  INLINE void move(int u, E (&c)[M][N], index_t i, index_t j) const {
    if (i + M > common) {
      E copy[M][N];
      if (!Gather)
        UNROLL for (int r = 0; r < M; ++r)
          UNROLL for (int s = 0; s < (Triangle ? r + 1 : N); ++s) copy[r][s] = c[r][s];
      move_ragged<Gather>(u, copy[0], M, N, Triangle, i, j);
      if (Gather)
        UNROLL for (int r = 0; r < M; ++r)
          UNROLL for (int s = 0; s < (Triangle ? r + 1 : N); ++s) c[r][s] = copy[r][s];
    } else if (columns) {
      move_whole<Gather, Triangle, true>(u, c, i, j);
    } else {
      move_whole<Gather, Triangle, false>(u, c, i, j);
    }
  }

  /// The C x C block at (j, j): subtract the columns before it and factor.
  template <int C> __attribute__((noinline)) void diagonal_block(index_t j) {
    E c[U][C][C];
    UNROLL for (int u = 0; u < U; ++u) {
      move<true, true>(u, c[u], j, j);
      const E* P = panel(u, j);
      for (index_t k = 0; k < j; ++k, P += B)
        UNROLL for (int r = 0; r < C; ++r)
          UNROLL for (int s = 0; s <= r; ++s) subtract_product<T>(c[u][r][s], P[r], P[s]);
    }
    UNROLL for (int s = 0; s < C; ++s) {
      UNROLL for (int u = 0; u < U; ++u) {
        V& d = c[u][s][s].part[0];
        UNROLL for (int l = 0; l < W; ++l) d[l] = sqrt(d[l]);   // positive and finite where the pivot is
        inverse[u][s] = 1 / d;
        check[u] += d + inverse[u][s];
        if constexpr (parts == 2) c[u][s][s].part[1] = V{};
      }
      UNROLL for (int u = 0; u < U; ++u)
        UNROLL for (int r = s + 1; r < C; ++r) {
          UNROLL for (int p = 0; p < parts; ++p) c[u][r][s].part[p] *= inverse[u][s];
          UNROLL for (int q = s + 1; q <= r; ++q) subtract_product<T>(c[u][r][q], c[u][r][s], c[u][q][s]);
        }
    }
    UNROLL for (int u = 0; u < U; ++u) {
      move<false, true>(u, c[u], j, j);
      E* const P = panel(u, j) + j * B;
      UNROLL for (int r = 0; r < C; ++r)
        UNROLL for (int s = 0; s <= r; ++s) P[s * B + r] = c[u][r][s];
    }
  }

  /// The M x B block at (i, j), below a diagonal block; i = first mod B.
  template <int M> __attribute__((noinline)) void block_below(int u, index_t i, index_t j) {
    E c[M][B];
    E* P = panel(u, i / B * B) + i % B;
    const E* Q = panel(u, j);
    move<true, false>(u, c, i, j);
    for (index_t k = 0; k < j; ++k, P += B, Q += B)
      UNROLL for (int r = 0; r < M; ++r)
        UNROLL for (int s = 0; s < B; ++s) subtract_product<T>(c[r][s], P[r], Q[s]);
    UNROLL for (int s = 0; s < B; ++s)
      UNROLL for (int r = 0; r < M; ++r) {
        UNROLL for (int q = 0; q < s; ++q) subtract_product<T>(c[r][s], c[r][q], Q[q * B + s]);
        UNROLL for (int p = 0; p < parts; ++p) c[r][s].part[p] *= inverse[u][s];
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
    for (int u = 0; u < U; ++u) {
      index_t i = j + B;
      for (; i + B <= n; i += B) block_below<B>(u, i, j);
      for (; i < n; ++i) block_below<1>(u, i, j);
    }
  }

  static index_t entries(index_t n) { const index_t m = core::ceil_div(n, B); return B * B * m * (m + 1) / 2; }

  void cholesky(const core::Items<T>& A, const index_t* items, int size, int* info, E* scratch) {
    n = 0, common = A.rows;
    columns = !A.is_flipped;
    for (int l = 0; l < U * W; ++l) {
      const core::Tile<T> tile = A.item(items[l < size ? l : 0]);   // idle lanes repeat the first
      data[l] = reinterpret_cast<R*>(tile.data), order[l] = tile.rows;
      stride[l] = (columns ? tile.col_stride : tile.row_stride) * parts;
      n = core::max(n, order[l]), common = core::min(common, order[l]);
    }
    for (int u = 0; u < U; ++u) L[u] = scratch + u * entries(n), check[u] = V{};
    for (index_t j = 0; j < n; j += B) block_column(j);
    for (int l = 0; l < size; ++l) {
      if (check[l / W][l % W] - check[l / W][l % W] == 0) continue;
      index_t k = 0;
      while (core::good_pivot(data[l][k * (stride[l] + parts)])) ++k;
      info[items[l]] = int(k + 1);
    }
  }
};

constexpr int scratch_alignment = 64;

template <class T>
std::size_t scratch_bytes(index_t n) {
  return scratch_alignment + Group<T>::U * Group<T>::entries(n) * sizeof(Entry<T>);
}

template <class T>
void cholesky(const core::Items<T>& A, const index_t* items, int size, index_t, int* info, void* scratch) {
  const auto address = reinterpret_cast<std::uintptr_t>(scratch);
  const auto aligned = reinterpret_cast<Entry<T>*>((address + scratch_alignment - 1) / scratch_alignment * scratch_alignment);
  Group<T> group;
  group.cholesky(A, items, size, info, aligned);
}

}  // namespace

template <class T>
const InterleavedTable<T>& interleaved_table() {
  static constexpr InterleavedTable<T> table = {Group<T>::U * Group<T>::W, scratch_bytes<T>, cholesky<T>};
  return table;
}

#define INSTANTIATE(T) template const InterleavedTable<T>& interleaved_table<T>();
TRIFACTOR_FOR_EACH_SCALAR(INSTANTIATE)

}  // namespace trifactor::host::TRIFACTOR_ISA
