/* Of trifactor.h: errors, queues, memory, views, and dense matrices. */
#ifndef TRIFACTOR_DENSE_H
#define TRIFACTOR_DENSE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

/* Words. Each is an int, so that it has one size everywhere. */

typedef int trifactor_status;
enum {
  TRIFACTOR_OK = 0,
  TRIFACTOR_INVALID_ARGUMENT = 1, /* the message names the argument, its value and the rule; nothing was done */
  TRIFACTOR_OUT_OF_MEMORY = 2,
  TRIFACTOR_DEVICE_FAULT = 3,          /* the device or its driver, at the call or at trifactor_queue_sync */
  TRIFACTOR_NOT_POSITIVE_DEFINITE = 4, /* dense_ and sparse_ handles only; other calls report through info */
  TRIFACTOR_SINGULAR = 5,              /* the same */
  TRIFACTOR_INTERNAL_ERROR = 6
};
typedef int trifactor_scalar; /* float, double, and complex of both as in <complex.h>: a real and an imaginary part */
enum { TRIFACTOR_F32 = 0, TRIFACTOR_F64 = 1, TRIFACTOR_C32 = 2, TRIFACTOR_C64 = 3 };
typedef int trifactor_uplo; /* the triangle that holds a symmetric or hermitian matrix, or its factor */
enum { TRIFACTOR_LOWER = 0, TRIFACTOR_UPPER = 1 };
typedef int trifactor_op; /* a solve with A, A^T or A^H */
enum { TRIFACTOR_NONE = 0, TRIFACTOR_TRANSPOSE = 1, TRIFACTOR_CONJ_TRANSPOSE = 2 };
typedef int trifactor_mode; /* where the panels of a blocked factorization run, of a sparse one the last subtrees;
                             * HYBRID: on the CPU beside the GPU */
enum { TRIFACTOR_MODE_AUTO = 0, TRIFACTOR_MODE_NATIVE = 1, TRIFACTOR_MODE_HYBRID = 2 };
typedef int trifactor_device; /* where a dense_ handle works; AUTO: on the GPU if there is one and it gains */
enum { TRIFACTOR_DEVICE_AUTO = 0, TRIFACTOR_DEVICE_HOST = 1, TRIFACTOR_DEVICE_CUDA = 2 };

/* Errors, of the calling thread. Calls that succeed change nothing here. */

/* The message of the last call that failed; "" before the first. Valid until the next one fails. */
const char* trifactor_last_message(void);
/* Its number: the order of the minor that is not positive definite, the row or column of the zero pivot, counted from
 * 1, or the bytes that were asked for. 0 where there is none. */
int64_t trifactor_last_detail(void);
/* "TRIFACTOR_SINGULAR" */
const char* trifactor_status_name(trifactor_status);

/* What is there. */

const char* trifactor_version(void);
/* These two are valid until the next call of the same function in the same thread; why_no_cuda is "" with a GPU. */
const char* trifactor_blas(void);
const char* trifactor_why_no_cuda(void);

typedef struct trifactor_device_info {
  size_t size;
  char name[128], architecture[32]; /* "NVIDIA H200", "sm_90" */
  int number;                       /* of the CUDA device, -1 for the host */
  int cores;                        /* multiprocessors, or threads */
  size_t memory_bytes, free_bytes;
} trifactor_device_info;
trifactor_status trifactor_device_count(int64_t* count);
/* Device 0 is the host, then come the CUDA devices. */
trifactor_status trifactor_device_report(int64_t i, trifactor_device_info*);

trifactor_status trifactor_tuning_row_count(int64_t* count);
/* Row i, in the order in which they are tried, and where it is from; valid until the next call in this thread. */
trifactor_status trifactor_tuning_row(int64_t i, const char** text, const char** source);

/* Queue: where work runs and in which order. Calls are complete on return on the host, and enqueued on CUDA. */

typedef struct trifactor_queue trifactor_queue;
trifactor_status trifactor_queue_host(int threads, trifactor_queue**); /* 0: as many as OpenMP has */
trifactor_status trifactor_queue_cuda(int device, trifactor_queue**);
/* On the caller's cudaStream_t, which must outlive the queue. */
trifactor_status trifactor_queue_wrap_cuda_stream(void* stream, int device, trifactor_queue**);
void trifactor_queue_destroy(trifactor_queue*);
/* Afterwards, calls that need at most this much scratch memory (see the _scratch queries) do not allocate. */
trifactor_status trifactor_queue_reserve(trifactor_queue*, size_t bytes);
trifactor_status trifactor_queue_sync(trifactor_queue*);
int trifactor_queue_is_cuda(const trifactor_queue*);
int trifactor_queue_device(const trifactor_queue*);   /* -1 for the host */
void* trifactor_queue_stream(const trifactor_queue*); /* NULL for the host */

/* Memory of a queue's device, aligned to 256 bytes, not initialised. Free it before its queue; free waits for the
 * device. On the host, malloc's will do. Copies and fills come after the earlier work of the queues; copies are
 * complete on return. A queue that is NULL stands for the host's memory. The distance of columns is in bytes. */
trifactor_status trifactor_allocate(trifactor_queue*, size_t bytes, void** memory);
void trifactor_free(trifactor_queue*, void* memory);
trifactor_status trifactor_fill_zero(trifactor_queue*, void* memory, size_t bytes);
trifactor_status trifactor_copy_bytes(trifactor_queue* from, const void* source, trifactor_queue* to, void* target,
                                      size_t bytes);
trifactor_status trifactor_copy_columns(trifactor_queue* from, const void* source, size_t source_ld,
                                        trifactor_queue* to, void* target, size_t target_ld, size_t bytes_per_column,
                                        size_t columns);

/* Views: one matrix, or a batch of them. Column-major; sizes, leading dimensions and strides count entries. All memory,
 * info, pivots and the arrays of a batch included, is the queue's. A view owns nothing. */

typedef int trifactor_kind;
enum { TRIFACTOR_KIND_MATRIX = 0, TRIFACTOR_KIND_STRIDED = 1, TRIFACTOR_KIND_POINTERS = 2, TRIFACTOR_KIND_RAGGED = 3 };
typedef struct trifactor_view {
  trifactor_scalar scalar;
  trifactor_kind kind;
  void* data;         /* entries; of KIND_POINTERS and KIND_RAGGED an array of pointers, one for an item */
  int64_t rows, cols; /* of KIND_RAGGED the largest of all items, or more */
  int64_t ld;         /* not of KIND_RAGGED */
  int64_t stride;     /* of KIND_STRIDED: from item to item; 0 where all share one that is only read */
  int64_t count;      /* items; not of KIND_MATRIX */
  const int *item_rows, *item_cols, *item_ld; /* of KIND_RAGGED */
} trifactor_view;

trifactor_view trifactor_matrix(trifactor_scalar, const void* data, int64_t rows, int64_t cols, int64_t ld);
trifactor_view trifactor_strided(trifactor_scalar, const void* data, int64_t rows, int64_t cols, int64_t ld,
                                 int64_t stride, int64_t count);
trifactor_view trifactor_pointers(trifactor_scalar, const void* items, int64_t rows, int64_t cols, int64_t ld,
                                  int64_t count);
trifactor_view trifactor_ragged(trifactor_scalar, const void* items, const int* rows, const int* cols, const int* ld,
                                int64_t max_rows, int64_t max_cols, int64_t count);

/* Dense matrices in the queue's memory. Both views of a call are of one scalar and one kind, with as many items. info
 * has an entry for each item: calls that factor write it; calls that follow read it, or take NULL for "all are good".
 */

typedef struct trifactor_cholesky_options {
  size_t size;
  trifactor_mode mode;
  const char* tuning; /* overrides fields of the tuning row, such as "nb=128 looking=left" */
  int shift_tries;    /* how often an item that is not positive definite is tried again with a shift of its diagonal: */
  double shift_first; /* this times its largest diagonal entry at first; 0: the square root of the scalar's epsilon */
  double shift_growth; /* and this times the last one from then on; 0: 10 */
  double* shift_used;  /* in the queue's memory: what was added to each item; may be NULL */
} trifactor_cholesky_options;
typedef struct trifactor_lu_options {
  size_t size;
  trifactor_mode mode;
  const char* tuning;
} trifactor_lu_options;
typedef struct trifactor_solve_options {
  size_t size;
  const char* tuning;
} trifactor_solve_options;

/* A = L L^H or U^H U in place. info: 0, or the order k of the first leading minor that is not positive definite. */
trifactor_status trifactor_cholesky(trifactor_queue*, trifactor_uplo, trifactor_view A, int* info,
                                    const trifactor_cholesky_options*);
/* Factors A and solves A X = B; X holds B on entry, here and below. */
trifactor_status trifactor_cholesky_factor_solve(trifactor_queue*, trifactor_uplo, trifactor_view A, trifactor_view X,
                                                 int* info, const trifactor_cholesky_options*);
trifactor_status trifactor_cholesky_solve(trifactor_queue*, trifactor_uplo, trifactor_view L, trifactor_view X,
                                          const int* info, const trifactor_solve_options*);
/* log_det: float or double, the scalar's real part, for each item; NaN for items that failed. */
trifactor_status trifactor_cholesky_log_det(trifactor_queue*, trifactor_uplo, trifactor_view L, void* log_det,
                                            const int* info);
/* X = A^-1, both triangles, from the factor. */
trifactor_status trifactor_cholesky_inverse(trifactor_queue*, trifactor_uplo, trifactor_view L, trifactor_view X,
                                            const int* info, const trifactor_solve_options*);

/* P A = L U in place, any shape. pivots: LAPACK's row interchanges, counted from 1, min(rows, cols) for each item.
 * info: 0, or the first k whose pivot is exactly zero; the factorization is complete either way. */
trifactor_status trifactor_lu(trifactor_queue*, trifactor_view A, int* pivots, int* info, const trifactor_lu_options*);
trifactor_status trifactor_lu_factor_solve(trifactor_queue*, trifactor_view A, int* pivots, trifactor_view X, int* info,
                                           const trifactor_lu_options*);
trifactor_status trifactor_lu_solve(trifactor_queue*, trifactor_op, trifactor_view LU, const int* pivots,
                                    trifactor_view X, const int* info, const trifactor_solve_options*);
trifactor_status trifactor_lu_inverse(trifactor_queue*, trifactor_view LU, const int* pivots, trifactor_view X,
                                      const int* info, const trifactor_solve_options*);
/* det A = sign * exp(log_abs) of each item: sign is of the scalar, log_abs of its real part. */
trifactor_status trifactor_lu_det(trifactor_queue*, trifactor_view LU, const int* pivots, void* sign, void* log_abs);
/* p[i], i < rows: which row of A stands in row i of P A, counted from 0, from k interchanges. */
trifactor_status trifactor_lu_row_permutation(trifactor_queue*, const int* pivots, int64_t k, int* p, int64_t rows);

/* Scratch memory, in bytes, that the call of the same name takes from the queue: see trifactor_queue_reserve. */
trifactor_status trifactor_cholesky_scratch(const trifactor_queue*, trifactor_uplo, trifactor_view A,
                                            const trifactor_cholesky_options*, size_t* bytes);
trifactor_status trifactor_cholesky_factor_solve_scratch(const trifactor_queue*, trifactor_uplo, trifactor_view A,
                                                         trifactor_view X, const trifactor_cholesky_options*,
                                                         size_t* bytes);
trifactor_status trifactor_cholesky_solve_scratch(const trifactor_queue*, trifactor_uplo, trifactor_view L,
                                                  trifactor_view X, const trifactor_solve_options*, size_t* bytes);
trifactor_status trifactor_cholesky_inverse_scratch(const trifactor_queue*, trifactor_uplo, trifactor_view L,
                                                    trifactor_view X, const trifactor_solve_options*, size_t* bytes);
trifactor_status trifactor_lu_scratch(const trifactor_queue*, trifactor_view A, const trifactor_lu_options*,
                                      size_t* bytes);
trifactor_status trifactor_lu_factor_solve_scratch(const trifactor_queue*, trifactor_view A, trifactor_view X,
                                                   const trifactor_lu_options*, size_t* bytes);
trifactor_status trifactor_lu_solve_scratch(const trifactor_queue*, trifactor_op, trifactor_view LU, trifactor_view X,
                                            const trifactor_solve_options*, size_t* bytes);
trifactor_status trifactor_lu_inverse_scratch(const trifactor_queue*, trifactor_view LU, trifactor_view X,
                                              const trifactor_solve_options*, size_t* bytes);

/* Dense matrices in the host's memory, without a queue: one matrix is factored once and used many times, on the GPU if
 * that gains. Calls are complete on return. Views are of KIND_MATRIX, and of the scalar that was factored. */

typedef struct trifactor_dense_options {
  size_t size;
  trifactor_uplo uplo; /* Cholesky: the triangle of A that is read */
  trifactor_device device;
  trifactor_mode mode;
  const char* tuning;
  int shift_tries; /* Cholesky: these three as in trifactor_cholesky_options */
  double shift_first, shift_growth;
} trifactor_dense_options;

typedef struct trifactor_dense_cholesky trifactor_dense_cholesky;
/* TRIFACTOR_NOT_POSITIVE_DEFINITE when A is not. */
trifactor_status trifactor_dense_cholesky_create(trifactor_view A, const trifactor_dense_options*,
                                                 trifactor_dense_cholesky**);
void trifactor_dense_cholesky_destroy(trifactor_dense_cholesky*);
trifactor_status trifactor_dense_cholesky_solve(const trifactor_dense_cholesky*, trifactor_view X);
trifactor_status trifactor_dense_cholesky_inverse(const trifactor_dense_cholesky*, trifactor_view X);
/* The factor, with zeros in the other triangle. */
trifactor_status trifactor_dense_cholesky_factor(const trifactor_dense_cholesky*, trifactor_view L);
trifactor_status trifactor_dense_cholesky_log_det(const trifactor_dense_cholesky*, double*);
/* An estimate of 1 / (|A| |A^-1|), one-norms. */
trifactor_status trifactor_dense_cholesky_rcond(const trifactor_dense_cholesky*, double*);
/* What was added to the diagonal of A. */
trifactor_status trifactor_dense_cholesky_shift(const trifactor_dense_cholesky*, double*);
trifactor_status trifactor_dense_cholesky_uplo(const trifactor_dense_cholesky*, trifactor_uplo*);
trifactor_status trifactor_dense_cholesky_device(const trifactor_dense_cholesky*, trifactor_device*);

typedef struct trifactor_dense_lu trifactor_dense_lu;
/* A of any shape. A zero pivot is no error here, but one of solve and inverse: TRIFACTOR_SINGULAR. */
trifactor_status trifactor_dense_lu_create(trifactor_view A, const trifactor_dense_options*, trifactor_dense_lu**);
void trifactor_dense_lu_destroy(trifactor_dense_lu*);
/* 0, or the first k whose pivot is exactly zero. */
trifactor_status trifactor_dense_lu_singular_at(const trifactor_dense_lu*, int64_t* k);
trifactor_status trifactor_dense_lu_solve(const trifactor_dense_lu*, trifactor_op, trifactor_view X);
trifactor_status trifactor_dense_lu_inverse(const trifactor_dense_lu*, trifactor_view X);
/* L below the diagonal, U on and above it. */
trifactor_status trifactor_dense_lu_factors(const trifactor_dense_lu*, trifactor_view LU);
/* Row i of P A is row p[i] of A, counted from 0; p has room for so many. */
trifactor_status trifactor_dense_lu_row_permutation(const trifactor_dense_lu*, int* p, int64_t room);
/* det A = sign * exp(log_abs); sign is of the matrix's scalar. */
trifactor_status trifactor_dense_lu_det(const trifactor_dense_lu*, void* sign, double* log_abs);
trifactor_status trifactor_dense_lu_rcond(const trifactor_dense_lu*, double*);
trifactor_status trifactor_dense_lu_device(const trifactor_dense_lu*, trifactor_device*);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
