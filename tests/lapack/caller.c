/* A library that calls the LAPACK it was linked with, as a Python extension does. */
#include "names.h"

void NAME(dpotrf_)(const char*, const integer*, double*, const integer*, integer*);
void NAME(dgetrf_)(const integer*, const integer*, double*, const integer*, integer*, integer*);

/* What dpotrf says about [4 2; 2 3], whose factor is [2; 1 sqrt(2)]; -99 where info is 0 but the factor is wrong. */
int call_dpotrf(void) {
  double a[] = {4, 2, 77, 3};
  const integer n = 2;
  integer info = -1;
  NAME(dpotrf_)("L", &n, a, &n, &info);
  if (info == 0 && !(a[0] == 2 && a[1] == 1 && a[2] == 77 && a[3] > 1.41421 && a[3] < 1.41422)) return -99;
  return (int)info;
}
/* And dgetrf about [1 4; 2 3], where the rows are exchanged. */
int call_dgetrf(void) {
  double a[] = {1, 2, 4, 3};
  const integer n = 2;
  integer pivots[2] = {-1, -1}, info = -1;
  NAME(dgetrf_)(&n, &n, a, &n, pivots, &info);
  if (info == 0 && !(a[0] == 2 && a[1] == 0.5 && a[3] == 2.5 && pivots[0] == 2 && pivots[1] == 2)) return -99;
  return (int)info;
}
