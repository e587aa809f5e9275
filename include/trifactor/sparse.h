/* Of trifactor.h: sparse matrices, and measurements. */
#ifndef TRIFACTOR_SPARSE_H
#define TRIFACTOR_SPARSE_H

#include <trifactor/dense.h>

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

/* Sparse matrices: analyse the pattern once, factor often, solve often. Analysis runs on the host. */

typedef int trifactor_compressed;
enum { TRIFACTOR_COLUMNS = 0, TRIFACTOR_ROWS = 1 };
typedef int trifactor_stored; /* which entries are given; FULL: both triangles, of which Cholesky reads the lower one */
enum { TRIFACTOR_STORED_LOWER = 0, TRIFACTOR_STORED_UPPER = 1, TRIFACTOR_STORED_FULL = 2 };
typedef int trifactor_ordering; /* METIS and AUTO are Cholesky's, COLAMD is LU's */
enum {
  TRIFACTOR_ORDERING_AUTO = 0, /* of LU: COLAMD */
  TRIFACTOR_ORDERING_METIS = 1,
  TRIFACTOR_ORDERING_AMD = 2,
  TRIFACTOR_ORDERING_NATURAL = 3,
  TRIFACTOR_ORDERING_GIVEN = 4,
  TRIFACTOR_ORDERING_COLAMD = 5
};

/* Where the entries are: the caller's arrays, counted from 0. Column (row) j holds entries start[j] to start[j+1] - 1,
 * and index[k] is the row (column) of entry k. */
typedef struct trifactor_pattern {
  int64_t rows, cols;
  const void *start, *index; /* int32_t or int64_t */
  int index_bits;            /* 32 or 64 */
  trifactor_compressed compressed;
  trifactor_stored stored; /* of LU always FULL */
  int sorted;              /* a promise that the indices of each column (row) ascend; it is checked */
} trifactor_pattern;

typedef struct trifactor_analyze_options {
  size_t size;
  trifactor_ordering ordering;
  const int64_t* permutation; /* for GIVEN: column j of the reordered matrix is column permutation[j] */
  int64_t permutation_size;
  int64_t expected_factorizations; /* for AUTO: how often the plan will be used; 0: once. Not of LU */
  int duplicates;                  /* not 0: entries of the same place are added up; otherwise they are an error */
  const char* tuning;              /* not of LU */
} trifactor_analyze_options;

typedef struct trifactor_plan_info {
  size_t size;
  int64_t n, entries;          /* entries of the pattern, in whose order values are given */
  trifactor_ordering ordering; /* that was used */
  size_t plan_bytes;           /* of the plan itself; what follows is 0 for a plan of LU */
  int64_t factor_nonzeros;     /* of L with its diagonal */
  int64_t fronts, levels;      /* dense blocks, and the height of their tree */
  double flops, front_flops;   /* of a factorization; the second counts zeros inside fronts too */
  int64_t factor_entries;      /* that the factor stores */
  int64_t stack_entries;       /* update matrices that are alive at once */
} trifactor_plan_info;
typedef struct trifactor_front {
  int64_t parent, level, columns, rows; /* parent: a later front, or -1; level: 0 for a leaf */
  double flops;
} trifactor_front;
typedef struct trifactor_level {
  int64_t fronts, columns;
  double flops;
} trifactor_level;
typedef struct trifactor_width_bin {
  int64_t from, to, fronts; /* fronts of from .. to columns */
  double flops;
} trifactor_width_bin;
typedef struct trifactor_step {
  char name[24]; /* "amd", "tree" */
  double seconds;
} trifactor_step;

typedef struct trifactor_plan trifactor_plan;       /* of Cholesky */
typedef struct trifactor_lu_plan trifactor_lu_plan; /* of LU */
trifactor_status trifactor_analyze(const trifactor_pattern*, const trifactor_analyze_options*, trifactor_plan**);
trifactor_status trifactor_analyze_lu(const trifactor_pattern*, const trifactor_analyze_options*, trifactor_lu_plan**);
void trifactor_plan_destroy(trifactor_plan*); /* factors that were made with it keep what they need */
void trifactor_lu_plan_destroy(trifactor_lu_plan*);
trifactor_status trifactor_plan_report(const trifactor_plan*, trifactor_plan_info*);
trifactor_status trifactor_lu_plan_report(const trifactor_lu_plan*, trifactor_plan_info*);
/* n numbers: column j of the reordered matrix is column permutation[j]. NULL for NULL. */
const int64_t* trifactor_plan_permutation(const trifactor_plan*);
const int64_t* trifactor_lu_plan_permutation(const trifactor_lu_plan*);
/* Some lines for a person, valid until the next call of the same function in the same thread; note: why another
 * ordering was used than asked for, mostly "". */
const char* trifactor_plan_text(const trifactor_plan*);
const char* trifactor_lu_plan_text(const trifactor_lu_plan*);
const char* trifactor_plan_note(const trifactor_plan*);
trifactor_status trifactor_plan_front(const trifactor_plan*, int64_t s, trifactor_front*);
/* The first `room` of them are written, and *count becomes how many there are. */
trifactor_status trifactor_plan_levels(const trifactor_plan*, trifactor_level*, int64_t room, int64_t* count);
trifactor_status trifactor_plan_widths(const trifactor_plan*, trifactor_width_bin*, int64_t room, int64_t* count);
trifactor_status trifactor_plan_steps(const trifactor_plan*, trifactor_step*, int64_t room, int64_t* count);
trifactor_status trifactor_lu_plan_steps(const trifactor_lu_plan*, trifactor_step*, int64_t room, int64_t* count);

/* One triangle of a matrix as compressed columns, counted from 0, rows ascending. trifactor_compressed_columns_free
 * gives its memory back. */
typedef struct trifactor_compressed_columns {
  trifactor_scalar scalar;
  int64_t n, entries;
  const int64_t *start, *index;
  const void* values;
  void* owner;
} trifactor_compressed_columns;
void trifactor_compressed_columns_free(trifactor_compressed_columns*);
/* *result: whether |a_ij - conj(a_ji)| <= tolerance sqrt(|a_ii a_jj|) everywhere in a matrix that is stored in full.
 * A negative tolerance stands for 16 times the scalar's epsilon. `count` is that of the values, here and below. */
trifactor_status trifactor_is_hermitian(const trifactor_pattern*, trifactor_scalar, const void* values, int64_t count,
                                        double tolerance, int* result);
/* The lower triangle of (A + A^H) / 2. */
trifactor_status trifactor_hermitian_part(const trifactor_pattern*, trifactor_scalar, const void* values, int64_t count,
                                          trifactor_compressed_columns*);

typedef struct trifactor_refinement {
  int steps;             /* of the right-hand side that took the most */
  double backward_error; /* largest |b - A x|_i / (|A| |x| + |b|)_i of all right-hand sides */
} trifactor_refinement;
typedef struct trifactor_sparse_memory {
  size_t size;
  size_t factor, updates, lists, vectors, scratch, values, total; /* bytes; LU has factor and vectors only */
  size_t host; /* of the host: a factor that does not fit on the device, what is factored there; no part of the total */
} trifactor_sparse_memory;
typedef struct trifactor_sparse_options {
  size_t size;
  const char* tuning;     /* Cholesky */
  double pivot_threshold; /* LU: up to 1; 0: 0.1 for plans by AMD, otherwise 1, which is partial pivoting */
  int no_equilibration;   /* LU: rows and columns are not scaled */
  /* Cholesky on a CUDA queue: bytes of the device that the object may take at most, with its part of the queue's
   * scratch memory; 0: what is free. Where the factor does not fit, it lies in page-locked memory of the host, and
   * passes through the device in every factorization and solve. TRIFACTOR_INVALID_ARGUMENT, with the least that works,
   * when this is too little. */
  size_t max_device_bytes;
  trifactor_mode mode; /* Cholesky; HYBRID, on a CUDA queue: threads of the CPU factor a part beside the GPU */
} trifactor_sparse_options;
typedef int trifactor_part; /* of a solve with P A P^T = L L^H: all of it, or one of P, L^-1, L^-H, P^T */
enum {
  TRIFACTOR_PART_ALL = 0,
  TRIFACTOR_PART_PERMUTE = 1,
  TRIFACTOR_PART_LOWER = 2,
  TRIFACTOR_PART_LOWER_ADJOINT = 3,
  TRIFACTOR_PART_PERMUTE_BACK = 4
};

/* Values and right-hand sides are in the queue's memory; views are of KIND_MATRIX. On a CUDA queue, solve is enqueued
 * and all others are complete on return. Numbers of one column or entry come as double for every scalar. */
typedef struct trifactor_sparse_cholesky trifactor_sparse_cholesky;
trifactor_status trifactor_sparse_cholesky_create(trifactor_queue*, const trifactor_plan*, trifactor_scalar,
                                                  const trifactor_sparse_options*, trifactor_sparse_cholesky**);
void trifactor_sparse_cholesky_destroy(trifactor_sparse_cholesky*);
/* What create will allocate, and what an object holds. */
trifactor_status trifactor_sparse_cholesky_memory_needed(trifactor_queue*, const trifactor_plan*, trifactor_scalar,
                                                         const trifactor_sparse_options*, trifactor_sparse_memory*);
trifactor_status trifactor_sparse_cholesky_memory(const trifactor_sparse_cholesky*, trifactor_sparse_memory*);
/* Factors A + shift I. TRIFACTOR_NOT_POSITIVE_DEFINITE when it is not; info is then the column, counted from 1. */
trifactor_status trifactor_sparse_cholesky_factor(trifactor_sparse_cholesky*, const void* values, int64_t count,
                                                  double shift);
/* 0, or the column that failed; -1 before the first factorization. */
trifactor_status trifactor_sparse_cholesky_info(const trifactor_sparse_cholesky*, int64_t* info);
trifactor_status trifactor_sparse_cholesky_solve(const trifactor_sparse_cholesky*, trifactor_part, trifactor_view B);
/* With iterative refinement for the matrix of these values; the report may be NULL. */
trifactor_status trifactor_sparse_cholesky_solve_refined(const trifactor_sparse_cholesky*, const void* values,
                                                         int64_t count, trifactor_view B, trifactor_refinement*);
trifactor_status trifactor_sparse_cholesky_log_det(const trifactor_sparse_cholesky*, double*);
trifactor_status trifactor_sparse_cholesky_rcond(const trifactor_sparse_cholesky*, double*);
/* Of L, n numbers in the host's memory: entry j belongs to column permutation[j] of A. */
trifactor_status trifactor_sparse_cholesky_diagonal(const trifactor_sparse_cholesky*, double*, int64_t room);
trifactor_status trifactor_sparse_cholesky_lower(const trifactor_sparse_cholesky*, trifactor_compressed_columns*);

/* `items` matrices with the pattern of one plan, factored at once; the values of item i begin at entry i * entries of
 * the plan. An item that is not positive definite fails alone: that is no error, and solves leave its B as it is. */
typedef struct trifactor_sparse_cholesky_batch trifactor_sparse_cholesky_batch;
trifactor_status trifactor_sparse_cholesky_batch_create(trifactor_queue*, const trifactor_plan*, trifactor_scalar,
                                                        int64_t items, const trifactor_sparse_options*,
                                                        trifactor_sparse_cholesky_batch**);
void trifactor_sparse_cholesky_batch_destroy(trifactor_sparse_cholesky_batch*);
trifactor_status trifactor_sparse_cholesky_batch_memory_needed(trifactor_queue*, const trifactor_plan*,
                                                               trifactor_scalar, int64_t items,
                                                               const trifactor_sparse_options*,
                                                               trifactor_sparse_memory*);
trifactor_status trifactor_sparse_cholesky_batch_memory(const trifactor_sparse_cholesky_batch*,
                                                        trifactor_sparse_memory*);
/* *failed: how many items failed. `count` is that of the values of all items. */
trifactor_status trifactor_sparse_cholesky_batch_factor(trifactor_sparse_cholesky_batch*, const void* values,
                                                        int64_t count, double shift, int64_t* failed);
/* Of each item, in the host's memory: 0, or the column that failed, counted from 1; -1 before the first factorization. */
trifactor_status trifactor_sparse_cholesky_batch_info(const trifactor_sparse_cholesky_batch*, int* info, int64_t room);
/* B is of KIND_STRIDED. */
trifactor_status trifactor_sparse_cholesky_batch_solve(const trifactor_sparse_cholesky_batch*, trifactor_part,
                                                       trifactor_view B);
/* Of each item, and n numbers of each item, in the host's memory; NaN where it failed. */
trifactor_status trifactor_sparse_cholesky_batch_log_det(const trifactor_sparse_cholesky_batch*, double*, int64_t room);
trifactor_status trifactor_sparse_cholesky_batch_diagonal(const trifactor_sparse_cholesky_batch*, double*,
                                                          int64_t room);

typedef struct trifactor_sparse_lu trifactor_sparse_lu; /* on host queues */
trifactor_status trifactor_sparse_lu_create(trifactor_queue*, const trifactor_lu_plan*, trifactor_scalar,
                                            const trifactor_sparse_options*, trifactor_sparse_lu**);
void trifactor_sparse_lu_destroy(trifactor_sparse_lu*);
trifactor_status trifactor_sparse_lu_memory(const trifactor_sparse_lu*, trifactor_sparse_memory*);
/* TRIFACTOR_SINGULAR when a pivot is exactly zero; info is then the column, counted from 1. */
trifactor_status trifactor_sparse_lu_factor(trifactor_sparse_lu*, const void* values, int64_t count);
trifactor_status trifactor_sparse_lu_info(const trifactor_sparse_lu*, int64_t* info);
trifactor_status trifactor_sparse_lu_solve(const trifactor_sparse_lu*, trifactor_op, trifactor_view B);
trifactor_status trifactor_sparse_lu_solve_refined(const trifactor_sparse_lu*, const void* values, int64_t count,
                                                   trifactor_op, trifactor_view B, trifactor_refinement*);
/* det A = sign * exp(log_abs); sign is of the matrix's scalar. */
trifactor_status trifactor_sparse_lu_det(const trifactor_sparse_lu*, void* sign, double* log_abs);
trifactor_status trifactor_sparse_lu_rcond(const trifactor_sparse_lu*, double*);
trifactor_status trifactor_sparse_lu_norm1(const trifactor_sparse_lu*, double*); /* of the matrix factored last */
trifactor_status trifactor_sparse_lu_factor_nonzeros(const trifactor_sparse_lu*, int64_t*);

/* Seconds and joules of pieces of work, in turn: see docs/c.md. */

typedef struct trifactor_contender {
  void (*run)(void* context);
  void (*prepare)(void* context); /* not timed; may be NULL */
  void* context;
  trifactor_queue* queue; /* a CUDA queue where run enqueues its work; may be NULL */
} trifactor_contender;
typedef struct trifactor_measure_options {
  size_t size;
  int warmups, min_runs, max_runs;                   /* 0: 1, 5, 100; warmups < 0: none */
  double max_seconds, target_spread, energy_seconds; /* 0: 2, 0.02, and no energy */
} trifactor_measure_options;
typedef struct trifactor_measurement {
  double seconds, spread; /* median, and the distance of the quartiles over it */
  int runs;
  double host_seconds, joules, energy_seconds; /* NaN, NaN and 0 where they are not known */
} trifactor_measurement;
trifactor_status trifactor_measure(const trifactor_contender*, int64_t count, const trifactor_measure_options*,
                                   trifactor_measurement* results);
trifactor_status trifactor_seconds_of(trifactor_queue*, void (*work)(void* context), void* context, double* seconds);
/* Lines of names, "" without a sensor; valid until the next call of this function in this thread. */
const char* trifactor_energy_sensors(void);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
