// HostEngine: threads, checks, rows, diagonals and the other operations of one pass over the entries.
#include <host/engine.hpp>

#include <host/item_solves.hpp>

namespace trifactor::host {

HostEngine::HostEngine(int threads)
    : threads_(min(min(threads > 0 ? threads : omp_get_max_threads(), max_threads), openmp_thread_limit())),
      arena_(host_memory_source()) {}

std::string blas_name() {
  const int kind = openblas_get_parallel();
  return std::string(openblas_get_config()) + ", kernels for " + openblas_get_corename() + ", " +
         (kind == OPENBLAS_OPENMP   ? "OpenMP"
          : kind == OPENBLAS_THREAD ? "own threads"
                                    : "sequential");
}

template <class T>
void HostEngine::reset_info(Items<T> A, bool square, int* info) {
  if (arena_.planning()) return;
  for (index_t b = 0; b < A.count; ++b) info[b] = (square ? A.possible_square(b) : A.possible(b)) ? 0 : -1;
}

template <class T>
void HostEngine::check_solve(Items<const T> L, Items<T> X, const int* info, int* skip) {
  if (arena_.planning()) return;
  for (index_t b = 0; b < X.count; ++b) {
    const bool fits = L.possible_square(b) && X.possible(b) && L.item_rows[b] == X.item_rows[b];
    skip[b] = !fits ? -1 : info ? info[b] : 0;
  }
}

namespace {

template <class T>
double entries(const Items<T>& A) {
  return double(A.rows) * double(A.cols);
}

/// f(b, columns) for every item of A whose info is 0, where columns(cols, work_each, g) calls g(j) for each of its
/// columns: the threads share the items, or the columns of a single one.
template <class T, class F>
void for_item_columns(int threads, const Items<T>& A, const int* info, F f) {
  if (A.count == 1) {
    if (!info || info[0] == 0)
      f(index_t(0), [&](index_t cols, index_t work_each, auto g) { for_columns(threads, cols, work_each, g); });
    return;
  }
  for_items(threads, A.count, info, entries(A), [&](index_t b) {
    f(b, [](index_t cols, index_t, auto g) {
      for (index_t j = 0; j < cols; ++j) g(j);
    });
  });
}

}  // namespace

template <class T>
void HostEngine::swap_rows(Items<T> A, Pivots<const int> pivots, index_t n, bool backward, const int* info) {
  if (arena_.planning() || A.cols == 0 || n == 0) return;
  const Traced traced(*this, "swap_rows", A.rows, A.cols, n);
  for_item_columns(threads_, A, info, [&](index_t b, auto for_each_column) {
    const auto a = A.item(b);
    const int* partner = pivots.item(b);
    const index_t own = pivots.size(b, n);
    for_each_column(a.cols, own, [&](index_t j) { exchange(a, j, partner, own, pivots.first, backward); });
  });
}

template <class T>
void HostEngine::log_det(Items<const T> L, Real<T>* out, const int* info) {
  if (arena_.planning()) return;
  for_items(threads_, L.count, nullptr, 10 * double(L.rows), [&](index_t b) {
    Real<T> sum = 0;
    if ((info && info[b] != 0) || !L.possible_square(b)) {
      sum = std::numeric_limits<Real<T>>::quiet_NaN();
    } else {
      const auto a = L.item(b);
      for (index_t k = 0; k < min(a.rows, a.cols); ++k) sum += std::log(real(a(k, k)));
    }
    out[b] = 2 * sum;
  });
}

template <class T>
void HostEngine::lu_det(Items<const T> LU, Pivots<const int> pivots, T* sign, Real<T>* log_abs) {
  if (arena_.planning()) return;
  for_items(threads_, LU.count, nullptr, 10 * double(LU.rows), [&](index_t b) {
    if (!LU.possible_square(b)) {
      sign[b] = T(Limits<Real<T>>::nan), log_abs[b] = Limits<Real<T>>::nan;
      return;
    }
    const auto a = LU.item(b);
    const int* exchanged = pivots.item(b);
    T s(1);
    Real<T> sum = 0;
    for (index_t k = 0; k < a.rows; ++k) {
      const auto [phase, log_modulus] = polar_log(a(k, k));
      s = s * phase, sum += log_modulus;
      if (exchanged[k] != k + 1) s = -s;
    }
    sign[b] = s, log_abs[b] = sum;
  });
}

void HostEngine::row_permutation(const int* pivots, index_t k, int* p, index_t rows) {
  if (arena_.planning()) return;
  for (index_t i = 0; i < rows; ++i) p[i] = int(i);
  for (index_t i = 0; i < k; ++i) std::swap(p[i], p[pivots[i] - 1]);
}

template <class T>
void HostEngine::set_identity(Items<T> A, const int* info) {
  if (arena_.planning()) return;
  for_item_columns(threads_, A, info, [&](index_t b, auto for_each_column) {
    const auto a = A.item(b);
    for_each_column(a.cols, a.rows, [&](index_t j) {
      for (index_t i = 0; i < a.rows; ++i) a(i, j) = T(i == j ? 1 : 0);
    });
  });
}

template <class T>
void HostEngine::mirror_lower(Items<T> A, const int* info) {
  if (arena_.planning()) return;
  constexpr index_t edge = 32;  // squares of this edge stay in cache while they are read across
  for_item_columns(threads_, A, info, [&](index_t b, auto for_each_column) {
    const auto a = A.item(b);
    const index_t n = a.rows;
    for_each_column(ceil_div(n, edge), n * edge, [&](index_t square) {
      const index_t j0 = square * edge, j1 = min(n, j0 + edge);
      for (index_t i0 = j0; i0 < n; i0 += edge)
        for (index_t j = j0; j < j1; ++j)
          for (index_t i = max(i0, j + 1); i < min(n, i0 + edge); ++i) a(j, i) = conj(a(i, j));
    });
  });
}

template <class T>
void HostEngine::save_lower(Items<const T> A, T* saved, double* shifts) {
  if (arena_.planning()) return;
  for_items(threads_, A.count, nullptr, entries(A), [&](index_t b) {
    if (shifts) shifts[b] = 0;
    if (!A.possible_square(b)) return;
    const auto a = A.item(b);
    T* k = saved + b * lower_size(A);
    for (index_t j = 0; j < a.cols; ++j)
      for (index_t i = j; i < a.rows; ++i) *k++ = a(i, j);
  });
}

template <class T>
void HostEngine::shift_failed(Items<T> A, const T* saved, Real<T> shift, const int* info, int* retry, double* shifts) {
  if (arena_.planning()) return;
  for_items(threads_, A.count, nullptr, entries(A), [&](index_t b) {
    retry[b] = info[b] > 0 ? 0 : not_tried;
    if (retry[b] != 0) return;
    const auto a = A.item(b);
    const T* k = saved + b * lower_size(A);
    Real<T> largest = 0;
    for (index_t j = 0; j < a.cols; k += a.rows - j++) largest = max(largest, abs1(real(*k)));
    const Real<T> own_shift = shift * shift_scale(largest);
    if (shifts) shifts[b] = own_shift;
    k = saved + b * lower_size(A);
    for (index_t j = 0; j < a.cols; ++j)
      for (index_t i = j; i < a.rows; ++i, ++k) a(i, j) = i == j ? *k + T(own_shift) : *k;
  });
}

void HostEngine::take_retry(index_t count, const int* retry, int* info) {
  if (arena_.planning()) return;
  for (index_t b = 0; b < count; ++b)
    if (retry[b] != not_tried) info[b] = retry[b];
}

#define TRIFACTOR_INSTANTIATE(T)                                                                      \
  template void HostEngine::reset_info<T>(Items<T>, bool, int*);                                      \
  template void HostEngine::check_solve<T>(Items<const T>, Items<T>, const int*, int*);               \
  template void HostEngine::swap_rows<T>(Items<T>, Pivots<const int>, index_t, bool, const int*);     \
  template void HostEngine::log_det<T>(Items<const T>, Real<T>*, const int*);                         \
  template void HostEngine::lu_det<T>(Items<const T>, Pivots<const int>, T*, Real<T>*);               \
  template void HostEngine::save_lower<T>(Items<const T>, T*, double*);                               \
  template void HostEngine::shift_failed<T>(Items<T>, const T*, Real<T>, const int*, int*, double*);  \
  template void HostEngine::set_identity<T>(Items<T>, const int*);                                    \
  template void HostEngine::mirror_lower<T>(Items<T>, const int*);
TRIFACTOR_FOR_EACH_SCALAR(TRIFACTOR_INSTANTIATE)
#undef TRIFACTOR_INSTANTIATE

}  // namespace trifactor::host
