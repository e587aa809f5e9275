// HostEngine: threads, checks, rows, diagonals and the other operations of one pass over the entries.
#include <host/engine.hpp>

#include <host/threads.hpp>

namespace trifactor::host {

HostEngine::HostEngine(int threads)
    : threads_(threads > 0 ? threads : omp_get_max_threads()), arena_(host_memory_source()) {}

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
  for (index_t b = 0; b < A.count; ++b)
    info[b] = A.possible(b) && !(square && A.ragged() && A.item_rows[b] != A.item_cols[b]) ? 0 : -1;
}

template <class T>
void HostEngine::check_solve(Items<const T> L, Items<T> X, const int* info, int* skip) {
  if (arena_.planning()) return;
  for (index_t b = 0; b < X.count; ++b) {
    const bool fits =
        L.possible(b) && X.possible(b) && L.item_rows[b] == L.item_cols[b] && L.item_rows[b] == X.item_rows[b];
    skip[b] = info && info[b] != 0 ? info[b] : fits ? 0 : -1;
  }
}

template <class T>
void HostEngine::swap_rows(Items<T> A, const int* pivots, index_t n, index_t offset, bool backward, const int* info) {
  if (arena_.planning() || (info && info[0] != 0)) return;
  const auto a = A.item(0);
  for_columns(threads_, a.cols, n, [&](index_t j) {
    for (index_t s = 0; s < n; ++s) {
      const index_t i = backward ? n - 1 - s : s, p = pivots[i] - 1 - offset;
      const T t = a(i, j);
      a(i, j) = a(p, j), a(p, j) = t;
    }
  });
}

template <class T>
void HostEngine::log_det(Items<const T> L, Real<T>* out, const int* info) {
  if (arena_.planning()) return;
  for_items(threads_, L.count, nullptr, [&](index_t b) {
    Real<T> sum = 0;
    if ((info && info[b] != 0) || !L.possible(b)) {
      sum = std::numeric_limits<Real<T>>::quiet_NaN();
    } else {
      const auto a = L.item(b);
      for (index_t k = 0; k < min(a.rows, a.cols); ++k) sum += std::log(real(a(k, k)));
    }
    out[b] = 2 * sum;
  });
}

template <class T>
void HostEngine::lu_det(Items<const T> LU, const int* pivots, T* sign, Real<T>* log_abs) {
  if (arena_.planning()) return;
  const auto a = LU.item(0);
  T s(1);
  Real<T> sum = 0;
  for (index_t k = 0; k < a.rows; ++k) {
    const auto [phase, log_modulus] = polar_log(a(k, k));
    s = s * phase, sum += log_modulus;
    if (pivots[k] != k + 1) s = -s;
  }
  *sign = s, *log_abs = sum;
}

void HostEngine::permutation(const int* pivots, index_t k, int* p, index_t rows) {
  if (arena_.planning()) return;
  for (index_t i = 0; i < rows; ++i) p[i] = int(i);
  for (index_t i = 0; i < k; ++i) std::swap(p[i], p[pivots[i] - 1]);
}

template <class T>
void HostEngine::set_identity(Items<T> A, const int* info) {
  if (arena_.planning() || (info && info[0] != 0)) return;
  const auto a = A.item(0);
  for_columns(threads_, a.cols, a.rows, [&](index_t j) {
    for (index_t i = 0; i < a.rows; ++i) a(i, j) = T(i == j ? 1 : 0);
  });
}

template <class T>
void HostEngine::mirror_lower(Items<T> A, const int* info) {
  if (arena_.planning() || (info && info[0] != 0)) return;
  const auto a = A.item(0);
  constexpr index_t edge = 32;  // squares of this edge stay in cache while they are read across
  const index_t n = a.rows;
  for_columns(threads_, ceil_div(n, edge), n * edge, [&](index_t square) {
    const index_t j0 = square * edge, j1 = min(n, j0 + edge);
    for (index_t i0 = j0; i0 < n; i0 += edge)
      for (index_t j = j0; j < j1; ++j)
        for (index_t i = max(i0, j + 1); i < min(n, i0 + edge); ++i) a(j, i) = conj(a(i, j));
  });
}

#define TRIFACTOR_INSTANTIATE(T)                                                                    \
  template void HostEngine::reset_info<T>(Items<T>, bool, int*);                                    \
  template void HostEngine::check_solve<T>(Items<const T>, Items<T>, const int*, int*);             \
  template void HostEngine::swap_rows<T>(Items<T>, const int*, index_t, index_t, bool, const int*); \
  template void HostEngine::log_det<T>(Items<const T>, Real<T>*, const int*);                       \
  template void HostEngine::lu_det<T>(Items<const T>, const int*, T*, Real<T>*);                    \
  template void HostEngine::set_identity<T>(Items<T>, const int*);                                  \
  template void HostEngine::mirror_lower<T>(Items<T>, const int*);
TRIFACTOR_FOR_EACH_SCALAR(TRIFACTOR_INSTANTIATE)

}  // namespace trifactor::host
