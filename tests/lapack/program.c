/* Loads libraries that call LAPACK and prints what they got, also in a child, in threads, and of the program itself. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

void dpotrf_(const char*, const int*, double*, const int*, int*, size_t);
void dpotri_(const char*, const int*, double*, const int*, int*, size_t);
void dgetri_(const int*, double*, const int*, const int*, double*, const int*, int*);

/* Programs may have an xerbla of their own. */
void xerbla_(const char* name, const int* position, size_t length) {
  printf("xerbla %.*s %d\n", (int)(length < 6 ? length : 6), name, *position);
}

static void call(const char* library) {
  void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (!handle) { fprintf(stderr, "%s\n", dlerror()); exit(1); }
  int (*cholesky)(void) = (int (*)(void))dlsym(handle, "call_dpotrf");
  int (*lu)(void) = (int (*)(void))dlsym(handle, "call_dgetrf");
  for (int i = 0; i < 2; ++i) printf("%s potrf %d getrf %d\n", strrchr(library, '/') + 1, cholesky(), lu());
}

static void call_own(void) {
  double a[] = {4, 2, 2, -3};
  const int n = 2, wrong = -1;
  int info = -1;
  dpotrf_("L", &n, a, &n, &info, 1);
  printf("program %d\n", info);
  dpotrf_("L", &wrong, a, &n, &info, 1);
  printf("program %d\n", info);
  dpotrf_("X", &n, a, &n, &info, 1);
  printf("program %d\n", info);
}

/* Factors whose second pivot is zero have no inverse. */
static void call_singular(void) {
  double a[] = {1, 1, 1, 0}, b[] = {1, 1, 1, 0}, room[2];
  const int n = 2, pivots[] = {1, 2};
  int cholesky = -1, lu = -1;
  dpotri_("L", &n, a, &n, &cholesky, 1);
  dgetri_(&n, b, &n, pivots, room, &n, &lu);
  printf("singular %d %d\n", cholesky, lu);
}

static void* work(void* wrong) {
  for (int i = 0; i < 200; ++i) {
    double a[30 * 30] = {0};
    const int n = 30;
    int info = -1;
    for (int k = 0; k < n; ++k) a[k + k * n] = 9;
    dpotrf_("U", &n, a, &n, &info, 1);
    for (int k = 0; k < n; ++k)
      if (info != 0 || a[k + k * n] != 3) *(int*)wrong = 1;
  }
  return NULL;
}

int main(int count, char** words) {
  for (int i = 1; i < count; ++i) call(words[i]);
  call_own();
  call_singular();
  printf("visible %d\n", dlsym(RTLD_DEFAULT, "trifactor_version") != NULL);
  pthread_t threads[4];
  int wrong[4] = {0, 0, 0, 0};
  for (int i = 0; i < 4; ++i) pthread_create(&threads[i], NULL, work, &wrong[i]);
  for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
  printf("threads %d\n", wrong[0] + wrong[1] + wrong[2] + wrong[3]);
  fflush(stdout);
  if (fork() == 0) {
    if (count > 1) call(words[1]);
    fflush(stdout);
    _exit(0);
  }
  int status = 0;
  wait(&status);
  return status;
}
