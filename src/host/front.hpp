// One small front: fewer entries than a BLAS call costs. Column-major, one thread, vectors of two or four numbers.
#pragma once

#include <core/scalar.hpp>

#include <cstring>

namespace trifactor::host::front {

/// Numbers side by side: one register for real scalars. A complex number stays alone.
template <class T>
struct Lanes {
  static constexpr int count = 16 / int(sizeof(T));
  typedef T Vector __attribute__((vector_size(16)));
  static TF_HD Vector load(const T* p) {
    Vector v;
    std::memcpy(&v, p, sizeof v);
    return v;
  }
  static TF_HD void store(T* p, Vector v) { std::memcpy(p, &v, sizeof v); }
  static TF_HD Vector minus_product(Vector c, Vector a, T b) { return c - a * b; }
  static TF_HD Vector times(Vector a, T b) { return a * b; }
  static constexpr int columns = 4;  // of a register block, and vectors below each other in it
  static constexpr int high = 4;
};
template <class R>
struct Lanes<core::Complex<R>> {
  using T = core::Complex<R>;
  static constexpr int count = 1;
  using Vector = T;
  static TF_HD Vector load(const T* p) { return *p; }
  static TF_HD void store(T* p, Vector v) { *p = v; }
  static TF_HD Vector minus_product(Vector c, Vector a, T b) { return core::minus_product(c, a, b); }
  static TF_HD Vector times(Vector a, R b) { return a * b; }
  static constexpr int columns = 2;
  static constexpr int high = 2;
};
/// A single number in the place of a vector, for the rows that are left over.
template <class T>
struct Alone {
  static constexpr int count = 1;
  using Vector = T;
  static TF_HD Vector load(const T* p) { return *p; }
  static TF_HD void store(T* p, Vector v) { *p = v; }
  static TF_HD Vector minus_product(Vector c, Vector a, T b) { return core::minus_product(c, a, b); }
  static TF_HD Vector times(Vector a, core::Real<T> b) { return a * b; }
};

enum class Into { Zero, Itself };

/// A block of `high` vectors of rows and w columns: C = -A B^H, or C -= A B^H, with k columns in A and B.
template <class T, class V, int high, int w, Into into>
TF_HD void product_block(int k, const T* A, index_t lda, const T* B, index_t ldb, T* C, index_t ldc) {
  typename V::Vector c[w][high];
  for (int y = 0; y < w; ++y)
    for (int x = 0; x < high; ++x)
      c[y][x] = into == Into::Zero ? typename V::Vector{} : V::load(C + x * V::count + y * ldc);
  for (int p = 0; p < k; ++p) {
    typename V::Vector a[high];
    for (int x = 0; x < high; ++x) a[x] = V::load(A + x * V::count + p * lda);
    for (int y = 0; y < w; ++y) {
      const T b = core::conj(B[y + p * ldb]);
      for (int x = 0; x < high; ++x) c[y][x] = V::minus_product(c[y][x], a[x], b);
    }
  }
  for (int y = 0; y < w; ++y)
    for (int x = 0; x < high; ++x) V::store(C + x * V::count + y * ldc, c[y][x]);
}

/// The same for m rows.
template <class T, int w, Into into>
inline void product_columns(int m, int k, const T* A, index_t lda, const T* B, index_t ldb, T* C, index_t ldc) {
  using V = Lanes<T>;
  constexpr int tall = V::count * V::high;
  int i = 0;
  for (; i + tall <= m; i += tall) product_block<T, V, V::high, w, into>(k, A + i, lda, B, ldb, C + i, ldc);
  for (; i + V::count <= m; i += V::count) product_block<T, V, 1, w, into>(k, A + i, lda, B, ldb, C + i, ldc);
  for (; i < m; ++i) product_block<T, Alone<T>, 1, w, into>(k, A + i, lda, B, ldb, C + i, ldc);
}

/// f.template operator()<w>() for a width that is known to be 1 .. most.
template <int most, class F>
TF_HD decltype(auto) with_width(int w, F f) {
  if constexpr (most == 1)
    return f.template operator()<1>();
  else
    return w == most ? f.template operator()<most>() : with_width<most - 1>(w, f);
}

/// Factors the leading (w, w) block of F and divides the m - w rows below it; w is a few columns. Returns 0, or the first
/// column (from 1) whose pivot is not positive and finite.
template <class T, int w>
inline int few_columns(int m, T* F, index_t ld) {
  using R = core::Real<T>;
  T L[w][w];
  R inverse[w];
  for (int r = 0; r < w; ++r)
    for (int c = 0; c <= r; ++c) L[r][c] = F[r + c * ld];
  for (int c = 0; c < w; ++c) {
    const R d = core::real(L[c][c]);
    if (!core::good_pivot(d)) return c + 1;
    const R root = std::sqrt(d);
    inverse[c] = 1 / root;
    L[c][c] = T(root);
    for (int r = c + 1; r < w; ++r) L[r][c] = L[r][c] * inverse[c];
    for (int r = c + 1; r < w; ++r)
      for (int q = c + 1; q <= r; ++q) L[r][q] = core::minus_product(L[r][q], L[r][c], core::conj(L[q][c]));
  }
  for (int r = 0; r < w; ++r)
    for (int c = 0; c <= r; ++c) F[r + c * ld] = L[r][c];
  const auto rows = [&]<class V>(V, int i) {
    typename V::Vector x[w];
    for (int c = 0; c < w; ++c) x[c] = V::load(F + i + c * ld);
    for (int c = 0; c < w; ++c) {
      for (int p = 0; p < c; ++p) x[c] = V::minus_product(x[c], x[p], core::conj(L[c][p]));
      x[c] = V::times(x[c], inverse[c]);
      V::store(F + i + c * ld, x[c]);
    }
  };
  int i = w;
  for (; i + Lanes<T>::count <= m; i += Lanes<T>::count) rows(Lanes<T>{}, i);
  for (; i < m; ++i) rows(Alone<T>{}, i);
  return 0;
}

/// The columns of a front: F (m, w), F11 = L11 L11^H, F21 := F21 L11^-H. What lies above the diagonal is overwritten.
template <class T>
int columns(int m, int w, T* F, index_t ld) {
  constexpr int ib = Lanes<T>::columns;
  for (int k = 0; k < w; k += ib) {
    const int failed = with_width<ib>(core::min(ib, w - k), [&]<int b>() {
      T* D = F + k + k * ld;
      if (k > 0) product_columns<T, b, Into::Itself>(m - k, k, F + k, ld, F + k, ld, D, ld);
      return few_columns<T, b>(m - k, D, ld);
    });
    if (failed) return k + failed;
  }
  return 0;
}

/// The lower triangle of U (n, n) := -A A^H, with k columns in A. What lies above the diagonal is overwritten in part.
template <class T>
void update(int n, int k, const T* A, index_t lda, T* U, index_t ldu) {
  constexpr int ib = Lanes<T>::columns;
  for (int j = 0; j < n; j += ib)
    with_width<ib>(core::min(ib, n - j), [&]<int b>() {
      product_columns<T, b, Into::Zero>(n - j, k, A + j, lda, A + j, lda, U + j + j * ldu, ldu);
    });
}

}  // namespace trifactor::host::front
