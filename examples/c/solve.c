/* The same steps for one matrix, a batch and a sparse matrix, in C: factor, solve, look at what went wrong. */
#include <trifactor.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Ends the program with trifactor's message when a call failed. */
static void check(trifactor_status status) {
  if (status == TRIFACTOR_OK) return;
  fprintf(stderr, "%s: %s\n", trifactor_status_name(status), trifactor_last_message());
  exit(1);
}

/* One matrix in the host's memory: a factor that knows how to solve. */
static double dense(void) {
  const double A[] = {4, 1, 1, 3}; /* column-major */
  double b[] = {1, 2};
  trifactor_dense_cholesky* L;
  double rcond;
  check(trifactor_dense_cholesky_create(trifactor_matrix(TRIFACTOR_F64, A, 2, 2, 2), NULL, &L));
  check(trifactor_dense_cholesky_solve(L, trifactor_matrix(TRIFACTOR_F64, b, 2, 1, 2)));
  check(trifactor_dense_cholesky_rcond(L, &rcond));
  trifactor_dense_cholesky_destroy(L);
  printf("dense: x = (%.6f, %.6f), rcond %.3f\n", b[0], b[1], rcond);
  return fabs(b[0] - 1.0 / 11) + fabs(b[1] - 7.0 / 11);
}

/* Many small systems in one call on a queue; one of them is singular. */
static double batch(void) {
  enum { n = 3, count = 1000 };
  static double A[count][n][n], X[count][n];
  static int pivots[count][n], info[count];
  trifactor_queue* queue;
  double worst = 0;
  int i, j, b;
  for (b = 0; b < count; ++b)
    for (j = 0; j < n; ++j) {
      for (i = 0; i < n; ++i) A[b][j][i] = b == 500 ? 1 : (i == j ? 5 : 0) + (i + 2 * j + b) % 4;
      for (X[b][j] = 0, i = 0; i < n; ++i) X[b][j] += (j == i ? 5 : 0) + (j + 2 * i + b) % 4; /* A times ones */
    }
  check(trifactor_queue_host(0, &queue));
  check(trifactor_lu_factor_solve(queue, trifactor_strided(TRIFACTOR_F64, A, n, n, n, n * n, count), &pivots[0][0],
                                  trifactor_strided(TRIFACTOR_F64, X, n, 1, n, n, count), info, NULL));
  check(trifactor_queue_sync(queue)); /* calls on a CUDA queue are only enqueued */
  trifactor_queue_destroy(queue);
  for (b = 0; b < count; ++b)
    for (i = 0; i < n && info[b] == 0; ++i) worst = fmax(worst, fabs(X[b][i] - 1));
  printf("batch: the pivot that is zero in item 500: %d; error of the others %.1e\n", info[500], worst);
  return worst + (info[500] == 2 ? 0 : 1);
}

/* A sparse matrix: analyse once, factor and solve often. */
static double sparse(void) {
  enum { n = 1000 };
  static int start[n + 1], row[2 * n];
  static double value[2 * n], x[n];
  trifactor_pattern pattern = {0};
  trifactor_plan* plan;
  trifactor_plan_info info = {.size = sizeof info};
  trifactor_queue* queue;
  trifactor_sparse_cholesky* L;
  double log_det;
  int j, k = 0;
  for (j = 0; j < n; ++j) { /* the lower triangle of the second difference, by columns */
    start[j] = k;
    row[k] = j, value[k++] = 2;
    if (j + 1 < n) row[k] = j + 1, value[k++] = -1;
    x[j] = 1;
  }
  start[n] = k;
  pattern.rows = pattern.cols = n;
  pattern.start = start, pattern.index = row, pattern.index_bits = 32;
  check(trifactor_analyze(&pattern, NULL, &plan));
  check(trifactor_plan_report(plan, &info));
  check(trifactor_queue_host(0, &queue));
  check(trifactor_sparse_cholesky_create(queue, plan, TRIFACTOR_F64, NULL, &L));
  check(trifactor_sparse_cholesky_factor(L, value, k, 0.01)); /* A + 0.01 I */
  check(trifactor_sparse_cholesky_solve(L, TRIFACTOR_PART_ALL, trifactor_matrix(TRIFACTOR_F64, x, n, 1, n)));
  check(trifactor_sparse_cholesky_log_det(L, &log_det));
  printf("sparse: %ld nonzeros in L, log det %.4f, x in the middle %.4f\n", (long)info.factor_nonzeros, log_det,
         x[n / 2]);
  value[k - 1] = -1; /* no longer positive definite */
  if (trifactor_sparse_cholesky_factor(L, value, k, 0) == TRIFACTOR_NOT_POSITIVE_DEFINITE)
    printf("sparse: %s\n", trifactor_last_message());
  trifactor_sparse_cholesky_destroy(L);
  trifactor_queue_destroy(queue);
  trifactor_plan_destroy(plan);
  return fabs(2.01 * x[0] - x[1] - 1) + (trifactor_last_detail() == n ? 0 : 1);
}

int main(void) {
  const double error = dense() + batch() + sparse();
  return error < 1e-9 ? 0 : 1;
}
