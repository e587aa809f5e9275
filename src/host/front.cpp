// Compiled once for each instruction set, with TRIFACTOR_ISA naming it. All but the table is in an unnamed namespace,
// and no function of a header is called that the compiler could emit: the linker must not share AVX code with others.
#include <host/front.hpp>

#define INLINE inline __attribute__((always_inline))

namespace trifactor::host::TRIFACTOR_ISA {
namespace {

#if defined(__AVX512F__)
constexpr int vector_bytes = 64, block_columns = 6;   // 4 vectors x 6 columns: 24 of 32 registers
#elif defined(__AVX2__)
constexpr int vector_bytes = 32, block_columns = 3;   // 12 of 16
#elif defined(__aarch64__)
constexpr int vector_bytes = 16, block_columns = 4;   // 16 of 32
#else
constexpr int vector_bytes = 16, block_columns = 3;
#endif

INLINE float square_root(float a) { return __builtin_sqrtf(a); }
INLINE double square_root(double a) { return __builtin_sqrt(a); }

/// Numbers side by side in one register.
template <class T, int bytes>
struct Lanes {
  static constexpr int count = bytes / int(sizeof(T));
  typedef T Vector __attribute__((vector_size(bytes)));
  static INLINE Vector load(const T* p) {
    Vector v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
  }
  static INLINE void store(T* p, Vector v) { __builtin_memcpy(p, &v, sizeof v); }
  static INLINE Vector minus_product(Vector c, Vector a, T b) { return c - a * b; }
  static INLINE Vector times(Vector a, T b) { return a * b; }
  using Half = Lanes<T, bytes / 2>;
};
/// A single number in the place of a vector.
template <class T>
struct Alone {
  static constexpr int count = 1;
  using Vector = T;
  static INLINE Vector load(const T* p) { return *p; }
  static INLINE void store(T* p, Vector v) { *p = v; }
  static INLINE Vector minus_product(Vector c, Vector a, T b) { return core::minus_product(c, a, b); }
  static INLINE Vector times(Vector a, core::Real<T> b) { return a * b; }
};
template <class T> struct Lanes<T, int(sizeof(T))> : Alone<T> {};

/// The register block of a scalar: `high` vectors of rows, `columns` columns. A complex number is a vector of its own.
template <class T>
struct Block {
  using V = Lanes<T, vector_bytes>;
  static constexpr int high = 4, columns = block_columns;
};
template <class R>
struct Block<core::Complex<R>> {
  using V = Alone<core::Complex<R>>;
  static constexpr int high = 2, columns = 2;
};

/// f(V, i) for rows i .. i + V::count of m, with vectors of half the width for the rows that are left over.
template <class V, class F>
INLINE void for_rows(int i, int m, F f) {
  for (; i + V::count <= m; i += V::count) f(V{}, i);
  if constexpr (V::count > 1) for_rows<typename V::Half>(i, m, f);
}

/// f.template operator()<w>() for a width that is known to be 1 .. limit.
template <int limit, class F>
INLINE decltype(auto) with_width(int w, F f) {
  if constexpr (limit == 1)
    return f.template operator()<1>();
  else
    return w == limit ? f.template operator()<limit>() : with_width<limit - 1>(w, f);
}

enum class Into { Zero, Itself };
/// How entry (p, y) of the right operand lies in memory: at y + p ld and conjugated, or at p + y ld.
enum class Right { Adjoint, Plain };

/// A block of `high` vectors of rows and w columns: C = -A B, or C -= A B, with k columns in A.
template <class T, class V, int high, int w, Into into, Right right>
INLINE void product_block(int k, const T* A, index_t lda, const T* B, index_t ldb, T* C, index_t ldc) {
  typename V::Vector c[w][high];
  for (int y = 0; y < w; ++y)
    for (int x = 0; x < high; ++x)
      c[y][x] = into == Into::Zero ? typename V::Vector{} : V::load(C + x * V::count + y * ldc);
  for (int p = 0; p < k; ++p) {
    typename V::Vector a[high];
    for (int x = 0; x < high; ++x) a[x] = V::load(A + x * V::count + p * lda);
    for (int y = 0; y < w; ++y) {
      const T b = right == Right::Adjoint ? core::conj(B[y + p * ldb]) : B[p + y * ldb];
      for (int x = 0; x < high; ++x) c[y][x] = V::minus_product(c[y][x], a[x], b);
    }
  }
  for (int y = 0; y < w; ++y)
    for (int x = 0; x < high; ++x) V::store(C + x * V::count + y * ldc, c[y][x]);
}

/// The same for m rows.
template <class T, int w, Into into, Right right>
void product_columns(int m, int k, const T* A, index_t lda, const T* B, index_t ldb, T* C, index_t ldc) {
  using V = typename Block<T>::V;
  constexpr int high = Block<T>::high, tall = V::count * high;
  int i = 0;
  for (; i + tall <= m; i += tall) product_block<T, V, high, w, into, right>(k, A + i, lda, B, ldb, C + i, ldc);
  for_rows<V>(i, m, [&]<class Some>(Some, int r) {
    product_block<T, Some, 1, w, into, right>(k, A + r, lda, B, ldb, C + r, ldc);
  });
}

/// B := B L^-H for m rows and a few columns, with the lower triangle L given as numbers and the inverses of its
/// diagonal.
template <class T, int w>
INLINE void divide_few(int m, const T (&L)[w][w], const core::Real<T> (&inverse)[w], T* B, index_t ld) {
  for_rows<typename Block<T>::V>(0, m, [&]<class V>(V, int r) {
    T* row = B + r;
    typename V::Vector x[w];
    for (int c = 0; c < w; ++c) x[c] = V::load(row + c * ld);
    for (int c = 0; c < w; ++c) {
      for (int p = 0; p < c; ++p) x[c] = V::minus_product(x[c], x[p], core::conj(L[c][p]));
      x[c] = V::times(x[c], inverse[c]);
      V::store(row + c * ld, x[c]);
    }
  });
}

/// Factors the leading (w, w) block of F and divides the m - w rows below it; w is a few columns. Returns 0, or the
/// first column (from 1) whose pivot is not positive and finite.
template <class T, int w>
int few_columns(int m, T* F, index_t ld) {
  using R = core::Real<T>;
  T L[w][w];
  R inverse[w];
  for (int r = 0; r < w; ++r)
    for (int c = 0; c <= r; ++c) L[r][c] = F[r + c * ld];
  for (int c = 0; c < w; ++c) {
    const R d = core::real(L[c][c]);
    if (!core::good_pivot(d)) return c + 1;
    const R root = square_root(d);
    inverse[c] = 1 / root;
    L[c][c] = T(root);
    for (int r = c + 1; r < w; ++r) L[r][c] = L[r][c] * inverse[c];
    for (int r = c + 1; r < w; ++r)
      for (int q = c + 1; q <= r; ++q) L[r][q] = core::minus_product(L[r][q], L[r][c], core::conj(L[q][c]));
  }
  for (int r = 0; r < w; ++r)
    for (int c = 0; c <= r; ++c) F[r + c * ld] = L[r][c];
  divide_few<T, w>(m - w, L, inverse, F + w, ld);
  return 0;
}

template <class T>
int columns(int m, int w, T* F, index_t ld) {
  constexpr int ib = Block<T>::columns;
  for (int k = 0; k < w; k += ib) {
    const int failed = with_width<ib>(core::min(ib, w - k), [&]<int b>() {
      T* D = F + k + k * ld;
      if (k > 0) product_columns<T, b, Into::Itself, Right::Adjoint>(m - k, k, F + k, ld, F + k, ld, D, ld);
      return few_columns<T, b>(m - k, D, ld);
    });
    if (failed) return k + failed;
  }
  return 0;
}

/// The block of L from row and column k on, and the inverses of its diagonal.
template <class T, int b>
INLINE void take_block(const T* L, index_t ldl, int k, T (&D)[b][b], core::Real<T> (&inverse)[b]) {
  for (int r = 0; r < b; ++r) {
    for (int c = 0; c <= r; ++c) D[r][c] = L[k + r + (k + c) * ldl];
    inverse[r] = 1 / core::real(D[r][r]);
  }
}

template <class T>
void divide(int m, int w, const T* L, index_t ldl, T* B, index_t ldb) {
  constexpr int ib = Block<T>::columns;
  for (int k = 0; k < w; k += ib)
    with_width<ib>(core::min(ib, w - k), [&]<int b>() {
      if (k > 0) product_columns<T, b, Into::Itself, Right::Adjoint>(m, k, B, ldb, L + k, ldl, B + k * ldb, ldb);
      T D[b][b];
      core::Real<T> inverse[b];
      take_block<T, b>(L, ldl, k, D, inverse);
      divide_few<T, b>(m, D, inverse, B + k * ldb, ldb);
    });
}

template <class T>
void divide_backward(int m, int w, const T* L, index_t ldl, T* B, index_t ldb) {
  constexpr int ib = Block<T>::columns;
  for (int k = (w - 1) / ib * ib; k >= 0; k -= ib)
    with_width<ib>(core::min(ib, w - k), [&]<int b>() {
      const int end = k + b;
      if (end < w)
        product_columns<T, b, Into::Itself, Right::Plain>(m, w - end, B + end * ldb, ldb, L + end + k * ldl, ldl,
                                                          B + k * ldb, ldb);
      T D[b][b];
      core::Real<T> inverse[b];
      take_block<T, b>(L, ldl, k, D, inverse);
      for_rows<typename Block<T>::V>(0, m, [&]<class V>(V, int r) {
        T* row = B + r + k * ldb;
        typename V::Vector x[b];
        for (int c = 0; c < b; ++c) x[c] = V::load(row + c * ldb);
        for (int c = b - 1; c >= 0; --c) {
          for (int p = c + 1; p < b; ++p) x[c] = V::minus_product(x[c], x[p], D[p][c]);
          x[c] = V::times(x[c], inverse[c]);
          V::store(row + c * ldb, x[c]);
        }
      });
    });
}

template <class T, Into into>
void square(int n, int k, const T* A, index_t lda, T* U, index_t ldu) {
  constexpr int ib = Block<T>::columns;
  for (int j = 0; j < n; j += ib)
    with_width<ib>(core::min(ib, n - j), [&]<int b>() {
      product_columns<T, b, into, Right::Adjoint>(n - j, k, A + j, lda, A + j, lda, U + j + j * ldu, ldu);
    });
}

template <class T>
void subtract_adjoint(int m, int n, int k, const T* A, index_t lda, const T* B, index_t ldb, T* C, index_t ldc) {
  constexpr int ib = Block<T>::columns;
  for (int j = 0; j < n; j += ib)
    with_width<ib>(core::min(ib, n - j), [&]<int b>() {
      for (int p = 0; p < k; ++p) __builtin_prefetch(B + j + 2 * ib + p * ldb);   // a column is too short for the CPU to foresee
      product_columns<T, b, Into::Itself, Right::Adjoint>(m, k, A, lda, B + j, ldb, C + j * ldc, ldc);
    });
}

template <class T>
void subtract(int m, int n, int k, const T* A, index_t lda, const T* B, index_t ldb, T* C, index_t ldc) {
  constexpr int ib = Block<T>::columns;
  for (int j = 0; j < n; j += ib)
    with_width<ib>(core::min(ib, n - j), [&]<int b>() {
      product_columns<T, b, Into::Itself, Right::Plain>(m, k, A, lda, B + j * ldb, ldb, C + j * ldc, ldc);
    });
}

template <class T>
void subtract_columns(index_t m, index_t n, const T* A, index_t lda, const T* x, T* __restrict y) {
  index_t c = 0;
  for (; c + 4 <= n; c += 4) {
    const T *a0 = A + c * lda, *a1 = a0 + lda, *a2 = a1 + lda, *a3 = a2 + lda;
    const T x0 = x[c], x1 = x[c + 1], x2 = x[c + 2], x3 = x[c + 3];
    for (index_t i = 0; i < m; ++i) {
      T sum = core::minus_product(y[i], x0, core::conj(a0[i]));
      sum = core::minus_product(sum, x1, core::conj(a1[i]));
      sum = core::minus_product(sum, x2, core::conj(a2[i]));
      y[i] = core::minus_product(sum, x3, core::conj(a3[i]));
    }
  }
  for (; c < n; ++c)
    for (index_t i = 0; i < m; ++i) y[i] = core::minus_product(y[i], x[c], core::conj(A[i + c * lda]));
}

/// y[0 .. w) -= A^T x for w columns of A.
template <class T, int w>
INLINE void subtract_few_dots(index_t m, const T* A, index_t lda, const T* x, T* y) {
  using V = Lanes<T, core::is_complex<T> ? int(sizeof(T)) : vector_bytes>;
  typename V::Vector sum[w] = {};
  index_t i = 0;
  for (; i + V::count <= m; i += V::count) {
    const typename V::Vector some = V::load(x + i);
    for (int c = 0; c < w; ++c) sum[c] = sum[c] + V::load(A + i + c * lda) * some;
  }
  T total[w];
  for (int c = 0; c < w; ++c) {
    if constexpr (V::count == 1) {
      total[c] = sum[c];
    } else {
      total[c] = sum[c][0];
      for (int l = 1; l < V::count; ++l) total[c] += sum[c][l];
    }
  }
  for (; i < m; ++i)
    for (int c = 0; c < w; ++c) total[c] += x[i] * A[i + c * lda];
  for (int c = 0; c < w; ++c) y[c] -= total[c];
}

template <class T>
void subtract_dots(index_t m, index_t n, const T* A, index_t lda, const T* x, T* y) {
  index_t c = 0;
  for (; c + 4 <= n; c += 4) subtract_few_dots<T, 4>(m, A + c * lda, lda, x, y + c);
  for (; c < n; ++c) subtract_few_dots<T, 1>(m, A + c * lda, lda, x, y + c);
}

}  // namespace

template <class T>
const FrontKernels<T>& front_kernels() {
  static constexpr FrontKernels<T> kernels{
      .columns = &columns<T>,
      .divide = &divide<T>,
      .divide_backward = &divide_backward<T>,
      .update = &square<T, Into::Zero>,
      .subtract_square = &square<T, Into::Itself>,
      .subtract_adjoint = &subtract_adjoint<T>,
      .subtract = &subtract<T>,
      .subtract_columns = &subtract_columns<T>,
      .subtract_dots = &subtract_dots<T>,
  };
  return kernels;
}

#define TRIFACTOR_INSTANTIATE(T) template const FrontKernels<T>& front_kernels<T>();
TRIFACTOR_FOR_EACH_SCALAR(TRIFACTOR_INSTANTIATE)
#undef TRIFACTOR_INSTANTIATE

}  // namespace trifactor::host::TRIFACTOR_ISA
