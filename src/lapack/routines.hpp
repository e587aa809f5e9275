// LAPACK's routines, for a scalar T and integers Int. Each passes on what is small, empty, a question or a mistake: the
// LAPACK that would have been called answers as it always does, xerbla included. The rest goes to a worker.
#pragma once

#include <lapack/next.hpp>
#include <lapack/settings.hpp>
#include <lapack/worker.hpp>

#include <algorithm>
#include <chrono>
#include <climits>
#include <complex>
#include <cstdlib>
#include <vector>

namespace trifactor::lapack {

template <class T>
constexpr trifactor_scalar scalar_of = -1;
template <>
constexpr trifactor_scalar scalar_of<float> = TRIFACTOR_F32;
template <>
constexpr trifactor_scalar scalar_of<double> = TRIFACTOR_F64;
template <>
constexpr trifactor_scalar scalar_of<std::complex<float>> = TRIFACTOR_C32;
template <>
constexpr trifactor_scalar scalar_of<std::complex<double>> = TRIFACTOR_C64;

/// While a worker works, calls of its thread are passed on: they are its own.
inline thread_local bool is_working = false;

inline double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Does work(worker) if the call is one for a worker and that succeeds, otherwise pass(). n is what the report says.
template <class Work, class Pass>
void carry_out(std::int64_t n, bool suits, Work work, Pass pass) {
  if (suits && !is_working) {
    if (Worker* worker = Worker::take()) {
      const double begin = seconds_now();
      is_working = true;
      bool done = false;
      try {
        done = work(*worker);
      } catch (const std::bad_alloc&) {  // there is no memory for pivots
      }
      is_working = false;
      const Place place = worker->on_cuda() ? Place::Cuda : Place::Host;
      Worker::give_back(worker);
      if (done) return count_call(place, n, seconds_now() - begin);
    }
  }
  if (!settings().verbose || is_working) return pass();
  const double begin = seconds_now();
  pass();
  count_call(Place::PassedOn, n, seconds_now() - begin);
}

/// The function to pass on to.
template <class F>
F* next_of(Next& next, const void* caller) {
  if (void* function = next.of(caller)) return reinterpret_cast<F*>(function);
  say("no LAPACK that has %s was found to pass the call on to", next.name());
  std::abort();
}

/// One of the letters, which are lower case.
inline int letter(const char* given, const char* letters) {
  for (int i = 0; letters[i]; ++i)
    if ((*given | 0x20) == letters[i]) return i;
  return -1;
}

/// Sizes that trifactor takes and that are worth it; k is the order of the factorization.
inline bool fits(std::int64_t rows, std::int64_t cols, std::int64_t ld) {
  return rows > 0 && cols > 0 && ld >= rows && ld <= INT_MAX && cols <= INT_MAX;
}
inline bool is_large(std::int64_t k) { return k >= settings().min_order; }
inline bool is_worth_copies(std::int64_t n, std::int64_t columns) {
  return n >= settings().min_solve_order && columns >= settings().min_columns;
}

/// LAPACK's solves and inverses with a zero on the diagonal are its own affair.
template <class T, class Int>
bool has_zero_pivot(const T* a, Int n, Int ld) {
  for (std::int64_t i = 0; i < n; ++i)
    if (a[i + i * std::int64_t(ld)] == T(0)) return true;
  return false;
}

/// Pivots as trifactor's int, in the caller's own array where that is int.
template <class Int>
class Pivots {
 public:
  Pivots(Int* given, std::int64_t count) : given_(given) {
    if constexpr (sizeof(Int) != sizeof(int)) copy_.resize(std::size_t(count));
  }
  /// The same with what the caller gave.
  static Pivots of(const Int* given, std::int64_t count) {
    Pivots p(const_cast<Int*>(given), count);
    if constexpr (sizeof(Int) != sizeof(int)) std::copy_n(given, count, p.copy_.begin());
    return p;
  }
  int* data() {
    if constexpr (sizeof(Int) != sizeof(int))
      return copy_.data();
    else
      return given_;
  }
  void give() { std::copy(copy_.begin(), copy_.end(), given_); }

 private:
  Int* given_;
  std::vector<int> copy_;
};

template <class T, class Int>
HostMatrix host_matrix(const T* data, Int rows, Int cols, Int ld) {
  return {const_cast<T*>(data), rows, cols, ld};
}

// potrf and potrf2.
template <class T, class Int>
void potrf(Next& next, const void* caller, const char* uplo, const Int* n, T* a, const Int* lda, Int* info) {
  using F = void(const char*, const Int*, T*, const Int*, Int*, std::size_t);
  const int triangle = letter(uplo, "lu");
  carry_out(
      *n, triangle >= 0 && fits(*n, *n, *lda) && is_large(*n),
      [&](Worker& w) {
        int found = 0;
        if (!w.factor_cholesky(scalar_of<T>, triangle, host_matrix(a, *n, *n, *lda), nullptr, found)) return false;
        return *info = found, true;
      },
      [&] { next_of<F>(next, caller)(uplo, n, a, lda, info, 1); });
}

template <class T, class Int>
void potrs(Next& next, const void* caller, const char* uplo, const Int* n, const Int* nrhs, const T* a, const Int* lda,
           T* b, const Int* ldb, Int* info) {
  using F = void(const char*, const Int*, const Int*, const T*, const Int*, T*, const Int*, Int*, std::size_t);
  const int triangle = letter(uplo, "lu");
  carry_out(
      *n,
      triangle >= 0 && fits(*n, *n, *lda) && fits(*n, *nrhs, *ldb) && is_worth_copies(*n, *nrhs) &&
          !has_zero_pivot(a, *n, *lda),
      [&](Worker& w) {
        if (!w.solve_cholesky(scalar_of<T>, triangle, host_matrix(a, *n, *n, *lda), host_matrix(b, *n, *nrhs, *ldb)))
          return false;
        return *info = 0, true;
      },
      [&] { next_of<F>(next, caller)(uplo, n, nrhs, a, lda, b, ldb, info, 1); });
}

template <class T, class Int>
void potri(Next& next, const void* caller, const char* uplo, const Int* n, T* a, const Int* lda, Int* info) {
  using F = void(const char*, const Int*, T*, const Int*, Int*, std::size_t);
  const int triangle = letter(uplo, "lu");
  carry_out(
      *n, triangle >= 0 && fits(*n, *n, *lda) && is_large(*n) && !has_zero_pivot(a, *n, *lda),
      [&](Worker& w) {
        if (!w.invert_cholesky(scalar_of<T>, triangle, host_matrix(a, *n, *n, *lda))) return false;
        return *info = 0, true;
      },
      [&] { next_of<F>(next, caller)(uplo, n, a, lda, info, 1); });
}

template <class T, class Int>
void posv(Next& next, const void* caller, const char* uplo, const Int* n, const Int* nrhs, T* a, const Int* lda, T* b,
          const Int* ldb, Int* info) {
  using F = void(const char*, const Int*, const Int*, T*, const Int*, T*, const Int*, Int*, std::size_t);
  const int triangle = letter(uplo, "lu");
  carry_out(
      *n, triangle >= 0 && fits(*n, *n, *lda) && fits(*n, *nrhs, *ldb) && is_large(*n),
      [&](Worker& w) {
        int found = 0;
        HostMatrix x = host_matrix(b, *n, *nrhs, *ldb);
        if (!w.factor_cholesky(scalar_of<T>, triangle, host_matrix(a, *n, *n, *lda), &x, found)) return false;
        return *info = found, true;
      },
      [&] { next_of<F>(next, caller)(uplo, n, nrhs, a, lda, b, ldb, info, 1); });
}

// getrf and getrf2.
template <class T, class Int>
void getrf(Next& next, const void* caller, const Int* m, const Int* n, T* a, const Int* lda, Int* ipiv, Int* info) {
  using F = void(const Int*, const Int*, T*, const Int*, Int*, Int*);
  const std::int64_t k = std::min(*m, *n);
  carry_out(
      k, fits(*m, *n, *lda) && is_large(k),
      [&](Worker& w) {
        int found = 0;
        Pivots<Int> pivots(ipiv, k);
        if (!w.factor_lu(scalar_of<T>, host_matrix(a, *m, *n, *lda), pivots.data(), nullptr, found)) return false;
        pivots.give();
        return *info = found, true;
      },
      [&] { next_of<F>(next, caller)(m, n, a, lda, ipiv, info); });
}

template <class T, class Int>
void getrs(Next& next, const void* caller, const char* trans, const Int* n, const Int* nrhs, const T* a, const Int* lda,
           const Int* ipiv, T* b, const Int* ldb, Int* info) {
  using F =
      void(const char*, const Int*, const Int*, const T*, const Int*, const Int*, T*, const Int*, Int*, std::size_t);
  const int op = letter(trans, "ntc");
  carry_out(
      *n,
      op >= 0 && fits(*n, *n, *lda) && fits(*n, *nrhs, *ldb) && is_worth_copies(*n, *nrhs) &&
          !has_zero_pivot(a, *n, *lda),
      [&](Worker& w) {
        auto pivots = Pivots<Int>::of(ipiv, *n);
        if (!w.solve_lu(scalar_of<T>, op, host_matrix(a, *n, *n, *lda), pivots.data(), host_matrix(b, *n, *nrhs, *ldb)))
          return false;
        return *info = 0, true;
      },
      [&] { next_of<F>(next, caller)(trans, n, nrhs, a, lda, ipiv, b, ldb, info, 1); });
}

template <class T, class Int>
void getri(Next& next, const void* caller, const Int* n, T* a, const Int* lda, const Int* ipiv, T* work,
           const Int* lwork, Int* info) {
  using F = void(const Int*, T*, const Int*, const Int*, T*, const Int*, Int*);
  carry_out(
      *n, fits(*n, *n, *lda) && *lwork >= *n && is_large(*n) && !has_zero_pivot(a, *n, *lda),
      [&](Worker& w) {
        auto pivots = Pivots<Int>::of(ipiv, *n);
        if (!w.invert_lu(scalar_of<T>, host_matrix(a, *n, *n, *lda), pivots.data())) return false;
        work[0] = T(static_cast<decltype(std::abs(T()))>(*n));  // the least that a later call needs
        return *info = 0, true;
      },
      [&] { next_of<F>(next, caller)(n, a, lda, ipiv, work, lwork, info); });
}

template <class T, class Int>
void gesv(Next& next, const void* caller, const Int* n, const Int* nrhs, T* a, const Int* lda, Int* ipiv, T* b,
          const Int* ldb, Int* info) {
  using F = void(const Int*, const Int*, T*, const Int*, Int*, T*, const Int*, Int*);
  carry_out(
      *n, fits(*n, *n, *lda) && fits(*n, *nrhs, *ldb) && is_large(*n),
      [&](Worker& w) {
        int found = 0;
        Pivots<Int> pivots(ipiv, *n);
        HostMatrix x = host_matrix(b, *n, *nrhs, *ldb);
        if (!w.factor_lu(scalar_of<T>, host_matrix(a, *n, *n, *lda), pivots.data(), &x, found)) return false;
        pivots.give();
        return *info = found, true;
      },
      [&] { next_of<F>(next, caller)(n, nrhs, a, lda, ipiv, b, ldb, info); });
}

}  // namespace trifactor::lapack
