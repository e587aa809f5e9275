// Solves with the triangles of a group of items. Included by interleaved*.cpp alone; interleaved.cpp says what is allowed here.
#pragma once

#include <host/interleaved_lanes.hpp>

namespace trifactor::host::TRIFACTOR_ISA {
namespace {

enum class Diagonal { Unit, Real, General };   // ones that are not stored; of a Cholesky factor; any

/// A product that is not fused with what it is added to. Of a b + c d the compiler may fuse either product, or none, and
/// chooses otherwise in another instance of a function: an item's bits would depend on the orders beside it.
template <class V> INLINE V rounded(V product) {
#if defined(__x86_64__)
  asm("" : "+x"(product));
#elif defined(__aarch64__)
  asm("" : "+w"(product));
#else
  asm("" : "+m"(product));
#endif
  return product;
}

/// x := L^-1 x and x := L^-T x for lower triangles L in panels and right-hand sides x, both in lanes.
template <class T>
struct Solver : Lanes<T> {
  using typename Lanes<T>::R;
  using typename Lanes<T>::V;
  using typename Lanes<T>::Entry;
  using Lanes<T>::parts, Lanes<T>::W, Lanes<T>::U, Lanes<T>::lanes, Lanes<T>::B, Lanes<T>::H;
  using Lanes<T>::panel, Lanes<T>::panel_entries, Lanes<T>::scale;

  Operand<T, true> X;
  index_t n, width;         // the largest number of rows and of columns of X
  Entry* L[U];              // panels, 1 / diagonal in place of the diagonal
  Entry* x[U];              // H columns together and row by row, then the columns that are left one after the other
  V* scales[U];             // what a row is multiplied by besides its 1 / diagonal, where `scaled`
  bool scaled = false;

  static index_t scratch_bytes(index_t n, index_t columns) {
    return U * ((panel_entries(n) + n * columns) * index_t(sizeof(Entry)) + n * index_t(sizeof(V)));
  }
  /// Takes the right-hand sides, to solve with triangles of order up to n.
  void take(const core::Items<T>& sides, const index_t* items, int size, index_t order, Entry* scratch) {
    X.take(sides, items, size);
    n = order, width = sides.cols;
    for (int u = 0; u < U; ++u) {
      L[u] = scratch + u * panel_entries(n);
      x[u] = scratch + U * panel_entries(n) + u * n * width;
      scales[u] = reinterpret_cast<V*>(scratch + U * (panel_entries(n) + n * width)) + u * n;
    }
    move<true>();
  }
  void give_back() { move<false>(); }

  /// f(first, C): the columns of x from `first` on are C side by side.
  template <class F> INLINE void for_columns(F f) {
    index_t j = 0;
    if constexpr (H > 1)
      for (; j + H <= width; j += H) f(j, Constant<H>{});
    for (; j < width; ++j) f(j, Constant<1>{});
  }
  /// f(i, M): M rows from i on, up to B of them.
  template <class F> INLINE static void with_rows(index_t i, index_t left, F f) {
    switch (left) {
      case 1: return f(i, Constant<1>{});
      case 2: return f(i, Constant<2>{});
      case 3: return f(i, Constant<3>{});
      default: return f(i, Constant<B>{});
    }
  }
  static_assert(B == 4, "as with_rows has it");

  template <bool Gather, int C, int M> NOINLINE void move_block(int u, index_t i, index_t j) {
    Entry c[M][C];
    Entry* at = x[u] + j * n + i * C;
    if (!Gather) UNROLL for (int r = 0; r < M; ++r)
      UNROLL for (int s = 0; s < C; ++s) c[r][s] = at[r * C + s];
    X.template move<Gather, false>(u, c, i, j);
    if (Gather) UNROLL for (int r = 0; r < M; ++r)
      UNROLL for (int s = 0; s < C; ++s) at[r * C + s] = c[r][s];
  }
  template <bool Gather> void move() {
    for (int u = 0; u < X.vectors; ++u)
      for_columns([&](index_t j, auto C) {
        for (index_t i = 0; i < n; i += B)
          with_rows(i, n - i, [&](index_t row, auto M) { move_block<Gather, C(), M()>(u, row, j); });
      });
  }

  /// L := the lower triangles of A.
  void load(const Operand<T, false>& A, Diagonal kind) {
    scaled = false;
    for (int u = 0; u < A.vectors; ++u) {
      V extreme{};
      const auto diagonal = [&](index_t i) {
        with_rows(i, n - i, [&](index_t row, auto M) { load_diagonal<M()>(A, u, row, kind, extreme); });
      };
      const auto block = [&](index_t i, index_t k) {
        with_rows(i, n - i, [&](index_t row, auto M) { load_block<M()>(A, u, row, k); });
      };
      for (index_t i = 0; i < n; i += B) {   // along the lines of A
        if (A.columns) {
          diagonal(i);
          for (index_t below = i + B; below < n; below += B) block(below, i);
        } else {
          for (index_t k = 0; k < i; k += B) block(i, k);
          diagonal(i);
        }
      }
      R any = 0;
      for (int l = 0; l < W; ++l) any += extreme[l];
      if (any > 0) load_scaled(A, u, kind);
    }
  }
  template <int M> NOINLINE void load_block(const Operand<T, false>& A, int u, index_t i, index_t k) {
    Entry c[M][B];
    Entry* P = panel(L[u], i) + k * B;
    A.template move<true, false>(u, c, i, k);
    UNROLL for (int s = 0; s < B; ++s)
      UNROLL for (int r = 0; r < M; ++r) P[s * B + r] = c[r][s];
  }
  template <int M> NOINLINE void load_diagonal(const Operand<T, false>& A, int u, index_t i, Diagonal kind, V& extreme) {
    Entry d[M][M];
    Entry* P = panel(L[u], i) + i * B;
    A.template move<true, true>(u, d, i, i);
    UNROLL for (int s = 0; s < M; ++s) {
      P[s * B + s] = reciprocal(d[s][s], kind, extreme);
      UNROLL for (int r = s + 1; r < M; ++r) P[s * B + r] = d[r][s];
    }
  }

  // Between these 1 / d is neither infinite nor denormal, and |d|^2 is not either where that is needed.
  static constexpr R power(int e) { return e < 0 ? 1 / power(-e) : e == 0 ? R(1) : e == 1 ? R(2) : power(e / 2) * power(e - e / 2); }
  static constexpr int exponent_limit(Diagonal kind) {
    return parts == 2 && kind == Diagonal::General ? (sizeof(R) == 4 ? 60 : 500) : (sizeof(R) == 4 ? 120 : 1000);
  }
  template <Diagonal Kind> INLINE static Entry reciprocal(const Entry& d, V& extreme) {
    constexpr R largest = power(exponent_limit(Kind)), smallest = power(-exponent_limit(Kind));
    const V re = d.part[0];
    V modulus = re < 0 ? -re : re;
    Entry r{};
    if constexpr (parts == 2 && Kind == Diagonal::General) {
      const V im = d.part[1], other = im < 0 ? -im : im, square = rounded(re * re) + rounded(im * im);
      modulus = modulus < other ? other : modulus;
      r.part[0] = re / square, r.part[1] = -im / square;
    } else {
      r.part[0] = 1 / re;
    }
    extreme = ((modulus < smallest) | (modulus > largest)) ? V{} + 1 : extreme;
    return r;
  }
  INLINE static Entry reciprocal(const Entry& d, Diagonal kind, V& extreme) {
    if (kind == Diagonal::Unit) return {V{} + 1};
    return kind == Diagonal::Real ? reciprocal<Diagonal::Real>(d, extreme) : reciprocal<Diagonal::General>(d, extreme);
  }
  /// The diagonal again, where some of it is tiny or huge: x / d = x (1 / (d s)) s, with s the power of two that brings d s
  /// near to one. The other lanes have s = 1, so that their bits stay the same.
  NOINLINE void load_scaled(const Operand<T, false>& A, int u, Diagonal kind) {
    if (!scaled)
      for (int v = 0; v < U; ++v)
        for (index_t i = 0; i < n; ++i) scales[v][i] = V{} + 1;
    scaled = true;
    const bool full = parts == 2 && kind == Diagonal::General;
    for (int l = 0; l < W; ++l)
      for (index_t i = 0; i < core::min(A.rows_of[u * W + l], A.cols_of[u * W + l]); ++i) {
        const R* d = A.data[u * W + l] + i * (A.stride[u * W + l] + parts);
        R re = d[0], im = full ? d[1] : R(0);
        const R modulus = core::max(re < 0 ? -re : re, im < 0 ? -im : im);
        if (!(modulus > 0) || modulus - modulus != 0) continue;
        int exponent = 0;
        __builtin_frexp(double(modulus), &exponent);
        if (exponent <= exponent_limit(kind) && exponent > -exponent_limit(kind)) continue;
        constexpr int max_exponent = sizeof(R) == 4 ? 127 : 1023;   // of a power of two and, less one, of its inverse
        const R s = R(__builtin_ldexp(1.0, core::max(1 - max_exponent, core::min(max_exponent, -exponent))));
        re *= s, im *= s;
        Entry& P = panel(L[u], i - i % B)[i * B + i % B];
        P.part[0][l] = full ? re / (re * re + im * im) : 1 / re;
        if (full) P.part[parts - 1][l] = -im / (re * re + im * im);
        scales[u][i][l] = s;
      }
  }

  /// c -= a b
  INLINE static void subtract_product(Entry& c, const Entry& a, const Entry& b) {
    c.part[0] -= a.part[0] * b.part[0];
    if constexpr (parts == 2) {
      c.part[0] += a.part[1] * b.part[1];
      c.part[1] -= a.part[1] * b.part[0];
      c.part[1] -= a.part[0] * b.part[1];
    }
  }
  INLINE static Entry product(const Entry& a, const Entry& b) {
    Entry c;
    c.part[0] = a.part[0] * b.part[0];
    if constexpr (parts == 2) {
      c.part[0] = rounded(c.part[0]) - rounded(a.part[1] * b.part[1]);
      c.part[1] = rounded(a.part[1] * b.part[0]) + rounded(a.part[0] * b.part[1]);
    }
    return c;
  }
  INLINE void divide(Entry& c, const Entry& reciprocal, int u, index_t row) const {
    c = product(c, reciprocal);
    if (scaled) scale(c, scales[u][row]);
  }

  /// Rows i .. i + M - 1 of N vectors from u on, columns j .. j + C - 1.
  template <int N, int C, int M> NOINLINE void forward_panel(int u, index_t i, index_t j) {
    Entry c[N][M][C];
    Entry* at[N];
    const Entry* P[N];
    UNROLL for (int v = 0; v < N; ++v) {
      at[v] = x[u + v] + j * n, P[v] = panel(L[u + v], i);
      UNROLL for (int r = 0; r < M; ++r)
        UNROLL for (int s = 0; s < C; ++s) c[v][r][s] = at[v][(i + r) * C + s];
    }
    for (index_t k = 0; k < i; ++k)
      UNROLL for (int v = 0; v < N; ++v)
        UNROLL for (int r = 0; r < M; ++r)
          UNROLL for (int s = 0; s < C; ++s) subtract_product(c[v][r][s], P[v][k * B + r], at[v][k * C + s]);
    UNROLL for (int q = 0; q < M; ++q)
      UNROLL for (int v = 0; v < N; ++v)
        UNROLL for (int s = 0; s < C; ++s) {
          const Entry* Q = P[v] + (i + q) * B;
          divide(c[v][q][s], Q[q], u + v, i + q);
          UNROLL for (int r = q + 1; r < M; ++r) subtract_product(c[v][r][s], Q[r], c[v][q][s]);
        }
    UNROLL for (int v = 0; v < N; ++v)
      UNROLL for (int r = 0; r < M; ++r)
        UNROLL for (int s = 0; s < C; ++s) at[v][(i + r) * C + s] = c[v][r][s];
  }
  template <int N, int C, int M> NOINLINE void backward_panel(int u, index_t i, index_t j) {
    Entry c[N][M][C];
    Entry* at[N];
    const Entry* P[N];
    UNROLL for (int v = 0; v < N; ++v) {
      at[v] = x[u + v] + j * n, P[v] = panel(L[u + v], i);
      UNROLL for (int r = 0; r < M; ++r)
        UNROLL for (int s = 0; s < C; ++s) c[v][r][s] = at[v][(i + r) * C + s];
    }
    UNROLL for (int q = M - 1; q >= 0; --q)
      UNROLL for (int v = 0; v < N; ++v)
        UNROLL for (int s = 0; s < C; ++s) {
          const Entry* Q = P[v] + (i + q) * B;
          UNROLL for (int r = M - 1; r > q; --r) subtract_product(c[v][q][s], Q[r], c[v][r][s]);
          divide(c[v][q][s], Q[q], u + v, i + q);
          at[v][(i + q) * C + s] = c[v][q][s];
        }
    for (index_t k = 0; k < i; ++k)
      UNROLL for (int v = 0; v < N; ++v)
        UNROLL for (int s = 0; s < C; ++s) {
          Entry y = at[v][k * C + s];
          UNROLL for (int r = M - 1; r >= 0; --r) subtract_product(y, P[v][k * B + r], c[v][r][s]);
          at[v][k * C + s] = y;
        }
  }

  /// f(N, C, u, j): N vectors from u on, columns j .. j + C - 1. A single column of one vector would wait for itself.
  template <class F> INLINE void for_vectors(F f) {
    for_columns([&](index_t j, auto C) {
      constexpr int N = C() == 1 ? core::min(U, H) : 1;
      int u = 0;
      for (; u + N <= X.vectors; u += N) f(Constant<N>{}, C, u, j);
      for (; u < X.vectors; ++u) f(Constant<1>{}, C, u, j);
    });
  }
  void forward() {   // x := L^-1 x
    for_vectors([&](auto N, auto C, int u, index_t j) {
      for (index_t i = 0; i < n; i += B)
        with_rows(i, n - i, [&](index_t row, auto M) { forward_panel<N(), C(), M()>(u, row, j); });
    });
  }
  void backward() {   // x := L^-T x
    for_vectors([&](auto N, auto C, int u, index_t j) {
      for (index_t i = (n - 1) / B * B; i >= 0; i -= B)
        with_rows(i, n - i, [&](index_t row, auto M) { backward_panel<N(), C(), M()>(u, row, j); });
    });
  }
  void conjugate() {   // x := conj(x)
    if constexpr (parts == 2)
      for (int u = 0; u < X.vectors; ++u)
        for (index_t i = 0; i < n * width; ++i) x[u][i].part[1] = -x[u][i].part[1];
  }
  /// Makes the interchanges in x, or takes them back.
  void swap_rows(const core::Pivots<const int>& pivots, const index_t* items, int size, bool backward) {
    for (int l = 0; l < X.vectors * W; ++l) {
      const index_t item = items[l < size ? l : l / W * W], own = pivots.size(item, n);
      const int* const partner = pivots.item(item);
      R* const lane = reinterpret_cast<R*>(x[l / W]) + l % W;
      for_columns([&](index_t j, auto C) {
        for (index_t q = 0; q < own; ++q) {
          const index_t i = backward ? own - 1 - q : q, p = partner[i] - 1;
          if (p == i) continue;
          for (int e = 0; e < C() * parts; ++e) {
            R &a = lane[((j * n + i * C()) * parts + e) * W], &b = lane[((j * n + p * C()) * parts + e) * W];
            const R t = a;
            a = b, b = t;
          }
        }
      });
    }
  }
};

}  // namespace
}  // namespace trifactor::host::TRIFACTOR_ISA
