// LAPACK with the BLAS that is linked: column-major _work forms, without checks for NaN. One matrix runs with threaded
// BLAS, many in a parallel loop with serial BLAS inside.
#include "failure.hpp"
#include "peers.hpp"
#include "scalars.hpp"

#define lapack_complex_float std::complex<float>
#define lapack_complex_double std::complex<double>
#include <lapacke.h>

#include <cblas.h>
#include <fmt/core.h>
#include <omp.h>

#include <chrono>
#include <limits>

namespace program {
namespace {

inline int potrf(char uplo, int n, float* A, int ld) { return LAPACKE_spotrf_work(LAPACK_COL_MAJOR, uplo, n, A, ld); }
inline int potrf(char uplo, int n, double* A, int ld) { return LAPACKE_dpotrf_work(LAPACK_COL_MAJOR, uplo, n, A, ld); }
inline int potrf(char uplo, int n, std::complex<float>* A, int ld) {
  return LAPACKE_cpotrf_work(LAPACK_COL_MAJOR, uplo, n, A, ld);
}
inline int potrf(char uplo, int n, std::complex<double>* A, int ld) {
  return LAPACKE_zpotrf_work(LAPACK_COL_MAJOR, uplo, n, A, ld);
}

inline int getrf(int m, int n, float* A, int ld, int* pivots) {
  return LAPACKE_sgetrf_work(LAPACK_COL_MAJOR, m, n, A, ld, pivots);
}
inline int getrf(int m, int n, double* A, int ld, int* pivots) {
  return LAPACKE_dgetrf_work(LAPACK_COL_MAJOR, m, n, A, ld, pivots);
}
inline int getrf(int m, int n, std::complex<float>* A, int ld, int* pivots) {
  return LAPACKE_cgetrf_work(LAPACK_COL_MAJOR, m, n, A, ld, pivots);
}
inline int getrf(int m, int n, std::complex<double>* A, int ld, int* pivots) {
  return LAPACKE_zgetrf_work(LAPACK_COL_MAJOR, m, n, A, ld, pivots);
}

inline int laswp(int n, float* A, int ld, int k, const int* pivots) {
  return LAPACKE_slaswp_work(LAPACK_COL_MAJOR, n, A, ld, 1, k, pivots, 1);
}
inline int laswp(int n, double* A, int ld, int k, const int* pivots) {
  return LAPACKE_dlaswp_work(LAPACK_COL_MAJOR, n, A, ld, 1, k, pivots, 1);
}
inline int laswp(int n, std::complex<float>* A, int ld, int k, const int* pivots) {
  return LAPACKE_claswp_work(LAPACK_COL_MAJOR, n, A, ld, 1, k, pivots, 1);
}
inline int laswp(int n, std::complex<double>* A, int ld, int k, const int* pivots) {
  return LAPACKE_zlaswp_work(LAPACK_COL_MAJOR, n, A, ld, 1, k, pivots, 1);
}

inline int potrs(char uplo, int n, int columns, const float* L, float* X) {
  return LAPACKE_spotrs_work(LAPACK_COL_MAJOR, uplo, n, columns, L, n, X, n);
}
inline int potrs(char uplo, int n, int columns, const double* L, double* X) {
  return LAPACKE_dpotrs_work(LAPACK_COL_MAJOR, uplo, n, columns, L, n, X, n);
}
inline int potrs(char uplo, int n, int columns, const std::complex<float>* L, std::complex<float>* X) {
  return LAPACKE_cpotrs_work(LAPACK_COL_MAJOR, uplo, n, columns, L, n, X, n);
}
inline int potrs(char uplo, int n, int columns, const std::complex<double>* L, std::complex<double>* X) {
  return LAPACKE_zpotrs_work(LAPACK_COL_MAJOR, uplo, n, columns, L, n, X, n);
}

inline int potri(char uplo, int n, float* A) { return LAPACKE_spotri_work(LAPACK_COL_MAJOR, uplo, n, A, n); }
inline int potri(char uplo, int n, double* A) { return LAPACKE_dpotri_work(LAPACK_COL_MAJOR, uplo, n, A, n); }
inline int potri(char uplo, int n, std::complex<float>* A) {
  return LAPACKE_cpotri_work(LAPACK_COL_MAJOR, uplo, n, A, n);
}
inline int potri(char uplo, int n, std::complex<double>* A) {
  return LAPACKE_zpotri_work(LAPACK_COL_MAJOR, uplo, n, A, n);
}

inline int getrs(int n, int columns, const float* LU, const int* pivots, float* X) {
  return LAPACKE_sgetrs_work(LAPACK_COL_MAJOR, 'N', n, columns, LU, n, pivots, X, n);
}
inline int getrs(int n, int columns, const double* LU, const int* pivots, double* X) {
  return LAPACKE_dgetrs_work(LAPACK_COL_MAJOR, 'N', n, columns, LU, n, pivots, X, n);
}
inline int getrs(int n, int columns, const std::complex<float>* LU, const int* pivots, std::complex<float>* X) {
  return LAPACKE_cgetrs_work(LAPACK_COL_MAJOR, 'N', n, columns, LU, n, pivots, X, n);
}
inline int getrs(int n, int columns, const std::complex<double>* LU, const int* pivots, std::complex<double>* X) {
  return LAPACKE_zgetrs_work(LAPACK_COL_MAJOR, 'N', n, columns, LU, n, pivots, X, n);
}

char letter(Uplo uplo) { return uplo == Uplo::Lower ? 'L' : 'U'; }

/// Serial BLAS inside our own parallel loops. The OpenMP flavour of OpenBLAS does that by itself.
class SerialBlas {
 public:
  SerialBlas() : own_threads_(openblas_get_parallel() == OPENBLAS_THREAD) {
    if (own_threads_) openblas_set_num_threads(1);
  }
  SerialBlas(const SerialBlas&) = delete;
  SerialBlas& operator=(const SerialBlas&) = delete;
  ~SerialBlas() {
    if (own_threads_) openblas_set_num_threads(threads_);
  }

 private:
  bool own_threads_;
  int threads_ = openblas_get_num_threads();
};

struct Schedule {
  omp_sched_t kind;
  int chunk;
};

/// call(i) for all items in parallel, but for a BLAS without threads, which bears one caller. The largest info that one
/// returned.
int for_items(std::size_t count, Schedule schedule, const auto& call) {
  const SerialBlas serial;
  omp_set_schedule(schedule.kind, schedule.chunk);
  const bool side_by_side = openblas_get_parallel() != OPENBLAS_SEQUENTIAL;
  int worst = 0;
#pragma omp parallel for schedule(runtime) reduction(max : worst) if (side_by_side)
  for (std::size_t i = 0; i < count; ++i) worst = std::max(worst, call(i));
  return worst;
}

template <Scalar T>
int factor_items(Uplo uplo, const std::vector<int>& sizes, T* const* items, Schedule schedule) {
  return for_items(sizes.size(), schedule,
                   [&](std::size_t i) { return potrf(letter(uplo), sizes[i], items[i], sizes[i]); });
}

/// That of a parallel loop over the items which was the fastest of two trials each.
template <Scalar T>
Schedule fastest_schedule(Uplo uplo, const std::vector<int>& sizes, const typename Peer<T>::FreshItems& fresh) {
  using Clock = std::chrono::steady_clock;
  Schedule best{omp_sched_static, 0};
  auto least = Clock::duration::max();
  for (int trial = 0; trial < 2; ++trial)
    for (const Schedule schedule :
         {Schedule{omp_sched_static, 0}, Schedule{omp_sched_static, 8}, Schedule{omp_sched_dynamic, 1},
          Schedule{omp_sched_dynamic, 16}, Schedule{omp_sched_dynamic, 128}, Schedule{omp_sched_guided, 1}}) {
      T* const* const items = fresh();
      const auto begin = Clock::now();
      factor_items(uplo, sizes, items, schedule);
      const auto took = Clock::now() - begin;
      if (took < least) least = took, best = schedule;
    }
  return best;
}

template <Scalar T>
class LapackPeer final : public Peer<T> {
 public:
  using typename Peer<T>::OnMatrix;
  using typename Peer<T>::OnSides;
  using typename Peer<T>::OnItems;
  using typename Peer<T>::OnItemSides;
  using typename Peer<T>::FreshItems;

  const char* name() const override { return "lapack"; }
  Queue& queue() override { return queue_; }

  OnMatrix cholesky(Uplo uplo, index_t) override {
    return [this, side = letter(uplo)](MatrixView<T> A) { info_ = potrf(side, int(A.rows), A.data, int(A.ld)); };
  }
  OnMatrix lu(index_t m, index_t n) override {
    pivots_.resize(std::size_t(std::min(m, n)));
    return [this](MatrixView<T> A) { info_ = getrf(int(A.rows), int(A.cols), A.data, int(A.ld), pivots_.data()); };
  }
  std::vector<int> last_pivots() override { return pivots_; }
  OnMatrix swap_rows(const int* pivots, index_t k) override {
    return [this, pivots, k](MatrixView<T> A) { info_ = laswp(int(A.cols), A.data, int(A.ld), int(k), pivots); };
  }
  OnSides cholesky_solve(Uplo uplo, index_t, index_t) override {
    return [this, side = letter(uplo)](MatrixView<T> L, MatrixView<T> X) {
      info_ = potrs(side, int(L.rows), int(X.cols), L.data, X.data);
    };
  }
  OnSides lu_solve(index_t, index_t) override {
    return [this](MatrixView<T> LU, MatrixView<T> X) {
      info_ = getrs(int(LU.rows), int(X.cols), LU.data, pivots_.data(), X.data);
    };
  }

  OnMatrix cholesky_inverse(Uplo uplo, index_t) override {
    return [this, side = letter(uplo)](MatrixView<T> L) { info_ = potri(side, int(L.rows), L.data); };
  }

  OnItems cholesky_batch(Uplo uplo, const std::vector<int>& sizes, const FreshItems& fresh) override {
    return [this, uplo, sizes, best = fastest_schedule<T>(uplo, sizes, fresh)](T* const* items) {
      info_ = factor_items(uplo, sizes, items, best);
    };
  }

  OnItems lu_batch(index_t n, index_t count) override {
    pivots_.resize(std::size_t(n * count));
    return [this, n, count](T* const* items) {
      info_ = for_items(std::size_t(count), {omp_sched_dynamic, 16}, [&](std::size_t i) {
        return getrf(int(n), int(n), items[i], int(n), pivots_.data() + index_t(i) * n);
      });
    };
  }

  OnItemSides cholesky_solve_batch(Uplo uplo, index_t n, index_t columns, index_t count) override {
    return [this, side = letter(uplo), n, columns, count](T* const* factors, T* const* X) {
      info_ = for_items(std::size_t(count), {omp_sched_dynamic, 1},
                        [&](std::size_t i) { return potrs(side, int(n), int(columns), factors[i], X[i]); });
    };
  }

  /// An item is solved with while it is in the cache.
  OnItemSides cholesky_factor_solve_batch(Uplo uplo, index_t n, index_t columns, index_t count,
                                          const FreshItems& fresh) override {
    const Schedule best = fastest_schedule<T>(uplo, std::vector<int>(std::size_t(count), int(n)), fresh);
    return [this, best, side = letter(uplo), n, columns, count](T* const* items, T* const* X) {
      info_ = for_items(std::size_t(count), best, [&](std::size_t i) {
        const int failed = potrf(side, int(n), items[i], int(n));
        return failed != 0 ? failed : potrs(side, int(n), int(columns), items[i], X[i]);
      });
    };
  }

  void check() override {
    if (info_ != 0) throw MatrixError(fmt::format("lapack failed with info = {}", info_));
  }

 private:
  Queue queue_ = Queue::host();
  std::vector<int> pivots_;
  int info_ = 0;
};

}  // namespace

template <Scalar T>
std::unique_ptr<Peer<T>> make_lapack_peer() {
  return std::make_unique<LapackPeer<T>>();
}

#define TRIFACTOR_LAPACK_PEER(T) template std::unique_ptr<Peer<T>> make_lapack_peer<T>();
TRIFACTOR_FOR_EACH_SCALAR(TRIFACTOR_LAPACK_PEER)

}  // namespace program
