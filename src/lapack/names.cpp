// The functions that programs call, each under four names: dpotrf_ and scipy_dpotrf_ with 32-bit integers, dpotrf_64_
// and scipy_dpotrf_64_ with 64-bit ones. The lengths of Fortran's character arguments, which come last, are not looked
// at: callers in C often leave them out.
#include <lapack/routines.hpp>

using namespace trifactor::lapack;

/// void name(parameters) as routine<T, Int>(next, the caller's address, arguments).
#define TRIFACTOR_FUNCTION(name, routine, parameters, arguments)           \
  extern "C" __attribute__((visibility("default"))) void name parameters { \
    static constinit Next next(#name);                                     \
    routine(next, __builtin_return_address(0), TRIFACTOR_LIST arguments);  \
  }
#define TRIFACTOR_LIST(...) __VA_ARGS__

#define TRIFACTOR_ROUTINES(T, Int, prefix, suffix)                                                                     \
  TRIFACTOR_FUNCTION(prefix##potrf##suffix, potrf, (const char* uplo, const Int* n, T* a, const Int* lda, Int* info),  \
                     (uplo, n, a, lda, info))                                                                          \
  TRIFACTOR_FUNCTION(prefix##potrf2##suffix, potrf, (const char* uplo, const Int* n, T* a, const Int* lda, Int* info), \
                     (uplo, n, a, lda, info))                                                                          \
  TRIFACTOR_FUNCTION(prefix##potri##suffix, potri, (const char* uplo, const Int* n, T* a, const Int* lda, Int* info),  \
                     (uplo, n, a, lda, info))                                                                          \
  TRIFACTOR_FUNCTION(                                                                                                  \
      prefix##potrs##suffix, potrs,                                                                                    \
      (const char* uplo, const Int* n, const Int* nrhs, const T* a, const Int* lda, T* b, const Int* ldb, Int* info),  \
      (uplo, n, nrhs, a, lda, b, ldb, info))                                                                           \
  TRIFACTOR_FUNCTION(                                                                                                  \
      prefix##posv##suffix, posv,                                                                                      \
      (const char* uplo, const Int* n, const Int* nrhs, T* a, const Int* lda, T* b, const Int* ldb, Int* info),        \
      (uplo, n, nrhs, a, lda, b, ldb, info))                                                                           \
  TRIFACTOR_FUNCTION(prefix##getrf##suffix, getrf,                                                                     \
                     (const Int* m, const Int* n, T* a, const Int* lda, Int* ipiv, Int* info),                         \
                     (m, n, a, lda, ipiv, info))                                                                       \
  TRIFACTOR_FUNCTION(prefix##getrf2##suffix, getrf,                                                                    \
                     (const Int* m, const Int* n, T* a, const Int* lda, Int* ipiv, Int* info),                         \
                     (m, n, a, lda, ipiv, info))                                                                       \
  TRIFACTOR_FUNCTION(prefix##getri##suffix, getri,                                                                     \
                     (const Int* n, T* a, const Int* lda, const Int* ipiv, T* work, const Int* lwork, Int* info),      \
                     (n, a, lda, ipiv, work, lwork, info))                                                             \
  TRIFACTOR_FUNCTION(prefix##getrs##suffix, getrs,                                                                     \
                     (const char* trans, const Int* n, const Int* nrhs, const T* a, const Int* lda, const Int* ipiv,   \
                      T* b, const Int* ldb, Int* info),                                                                \
                     (trans, n, nrhs, a, lda, ipiv, b, ldb, info))                                                     \
  TRIFACTOR_FUNCTION(                                                                                                  \
      prefix##gesv##suffix, gesv,                                                                                      \
      (const Int* n, const Int* nrhs, T* a, const Int* lda, Int* ipiv, T* b, const Int* ldb, Int* info),               \
      (n, nrhs, a, lda, ipiv, b, ldb, info))

#define TRIFACTOR_NAMES(T, prefix)                  \
  TRIFACTOR_ROUTINES(T, int, prefix, _)             \
  TRIFACTOR_ROUTINES(T, int, scipy_##prefix, _)     \
  TRIFACTOR_ROUTINES(T, std::int64_t, prefix, _64_) \
  TRIFACTOR_ROUTINES(T, std::int64_t, scipy_##prefix, _64_)

TRIFACTOR_NAMES(float, s)
TRIFACTOR_NAMES(double, d)
TRIFACTOR_NAMES(std::complex<float>, c)
TRIFACTOR_NAMES(std::complex<double>, z)
