/* A LAPACK whose functions only say that they were called: info = 42. */
#include "names.h"

void NAME(dpotrf_)(const char* uplo, const integer* n, double* a, const integer* lda, integer* info) {
  (void)uplo, (void)n, (void)a, (void)lda;
  *info = 42;
}
void NAME(dgetrf_)(const integer* m, const integer* n, double* a, const integer* lda, integer* ipiv, integer* info) {
  (void)m, (void)n, (void)a, (void)lda, (void)ipiv;
  *info = 42;
}
