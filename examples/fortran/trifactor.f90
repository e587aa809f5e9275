! trifactor for Fortran: every function of trifactor.h under its own name. Made from the C headers by
! scripts/make_fortran_module.py. Compile it with your program: modules of different compilers do not mix.
! Structs are ready to use as they are declared; options may be left out. Arrays in a queue's memory are passed as
! c_loc(array), handles are type(c_ptr). docs/c.md explains.
module trifactor
  use, intrinsic :: iso_c_binding
  implicit none
  public

  integer(c_int), parameter :: TRIFACTOR_OK = 0, TRIFACTOR_INVALID_ARGUMENT = 1, TRIFACTOR_OUT_OF_MEMORY = 2, &
    TRIFACTOR_DEVICE_FAULT = 3, TRIFACTOR_NOT_POSITIVE_DEFINITE = 4, TRIFACTOR_SINGULAR = 5, &
    TRIFACTOR_INTERNAL_ERROR = 6
  integer(c_int), parameter :: TRIFACTOR_F32 = 0, TRIFACTOR_F64 = 1, TRIFACTOR_C32 = 2, TRIFACTOR_C64 = 3
  integer(c_int), parameter :: TRIFACTOR_LOWER = 0, TRIFACTOR_UPPER = 1
  integer(c_int), parameter :: TRIFACTOR_NONE = 0, TRIFACTOR_TRANSPOSE = 1, TRIFACTOR_CONJ_TRANSPOSE = 2
  integer(c_int), parameter :: TRIFACTOR_MODE_AUTO = 0, TRIFACTOR_MODE_NATIVE = 1, TRIFACTOR_MODE_HYBRID = 2
  integer(c_int), parameter :: TRIFACTOR_DEVICE_AUTO = 0, TRIFACTOR_DEVICE_HOST = 1, TRIFACTOR_DEVICE_CUDA = 2
  integer(c_int), parameter :: TRIFACTOR_KIND_MATRIX = 0, TRIFACTOR_KIND_STRIDED = 1, TRIFACTOR_KIND_POINTERS = 2, &
    TRIFACTOR_KIND_RAGGED = 3
  integer(c_int), parameter :: TRIFACTOR_COLUMNS = 0, TRIFACTOR_ROWS = 1
  integer(c_int), parameter :: TRIFACTOR_STORED_LOWER = 0, TRIFACTOR_STORED_UPPER = 1, TRIFACTOR_STORED_FULL = 2
  integer(c_int), parameter :: TRIFACTOR_ORDERING_AUTO = 0, TRIFACTOR_ORDERING_METIS = 1, &
    TRIFACTOR_ORDERING_AMD = 2, TRIFACTOR_ORDERING_NATURAL = 3, TRIFACTOR_ORDERING_GIVEN = 4, &
    TRIFACTOR_ORDERING_COLAMD = 5
  integer(c_int), parameter :: TRIFACTOR_PART_ALL = 0, TRIFACTOR_PART_PERMUTE = 1, TRIFACTOR_PART_LOWER = 2, &
    TRIFACTOR_PART_LOWER_ADJOINT = 3, TRIFACTOR_PART_PERMUTE_BACK = 4

  type, bind(C) :: trifactor_device_info
    integer(c_size_t) :: size = 192
    character(kind=c_char) :: name(128) = c_null_char
    character(kind=c_char) :: architecture(32) = c_null_char
    integer(c_int) :: number = 0
    integer(c_int) :: cores = 0
    integer(c_size_t) :: memory_bytes = 0
    integer(c_size_t) :: free_bytes = 0
  end type
  type, bind(C) :: trifactor_view
    integer(c_int) :: scalar = 0
    integer(c_int) :: kind = 0
    type(c_ptr) :: data = c_null_ptr
    integer(c_int64_t) :: rows = 0
    integer(c_int64_t) :: cols = 0
    integer(c_int64_t) :: ld = 0
    integer(c_int64_t) :: stride = 0
    integer(c_int64_t) :: count = 0
    type(c_ptr) :: item_rows = c_null_ptr
    type(c_ptr) :: item_cols = c_null_ptr
    type(c_ptr) :: item_ld = c_null_ptr
  end type
  type, bind(C) :: trifactor_cholesky_options
    integer(c_size_t) :: size = 56
    integer(c_int) :: mode = 0
    type(c_ptr) :: tuning = c_null_ptr
    integer(c_int) :: shift_tries = 0
    real(c_double) :: shift_first = 0
    real(c_double) :: shift_growth = 0
    type(c_ptr) :: shift_used = c_null_ptr
  end type
  type, bind(C) :: trifactor_lu_options
    integer(c_size_t) :: size = 24
    integer(c_int) :: mode = 0
    type(c_ptr) :: tuning = c_null_ptr
  end type
  type, bind(C) :: trifactor_solve_options
    integer(c_size_t) :: size = 16
    type(c_ptr) :: tuning = c_null_ptr
  end type
  type, bind(C) :: trifactor_dense_options
    integer(c_size_t) :: size = 56
    integer(c_int) :: uplo = 0
    integer(c_int) :: device = 0
    integer(c_int) :: mode = 0
    type(c_ptr) :: tuning = c_null_ptr
    integer(c_int) :: shift_tries = 0
    real(c_double) :: shift_first = 0
    real(c_double) :: shift_growth = 0
  end type
  type, bind(C) :: trifactor_pattern
    integer(c_int64_t) :: rows = 0
    integer(c_int64_t) :: cols = 0
    type(c_ptr) :: start = c_null_ptr
    type(c_ptr) :: index = c_null_ptr
    integer(c_int) :: index_bits = 0
    integer(c_int) :: compressed = 0
    integer(c_int) :: stored = 0
    integer(c_int) :: sorted = 0
  end type
  type, bind(C) :: trifactor_analyze_options
    integer(c_size_t) :: size = 56
    integer(c_int) :: ordering = 0
    type(c_ptr) :: permutation = c_null_ptr
    integer(c_int64_t) :: permutation_size = 0
    integer(c_int64_t) :: expected_factorizations = 0
    integer(c_int) :: duplicates = 0
    type(c_ptr) :: tuning = c_null_ptr
  end type
  type, bind(C) :: trifactor_plan_info
    integer(c_size_t) :: size = 96
    integer(c_int64_t) :: n = 0
    integer(c_int64_t) :: entries = 0
    integer(c_int) :: ordering = 0
    integer(c_size_t) :: plan_bytes = 0
    integer(c_int64_t) :: factor_nonzeros = 0
    integer(c_int64_t) :: fronts = 0
    integer(c_int64_t) :: levels = 0
    real(c_double) :: flops = 0
    real(c_double) :: front_flops = 0
    integer(c_int64_t) :: factor_entries = 0
    integer(c_int64_t) :: stack_entries = 0
  end type
  type, bind(C) :: trifactor_front
    integer(c_int64_t) :: parent = 0
    integer(c_int64_t) :: level = 0
    integer(c_int64_t) :: columns = 0
    integer(c_int64_t) :: rows = 0
    real(c_double) :: flops = 0
  end type
  type, bind(C) :: trifactor_level
    integer(c_int64_t) :: fronts = 0
    integer(c_int64_t) :: columns = 0
    real(c_double) :: flops = 0
  end type
  type, bind(C) :: trifactor_width_bin
    integer(c_int64_t) :: from = 0
    integer(c_int64_t) :: to = 0
    integer(c_int64_t) :: fronts = 0
    real(c_double) :: flops = 0
  end type
  type, bind(C) :: trifactor_step
    character(kind=c_char) :: name(24) = c_null_char
    real(c_double) :: seconds = 0
  end type
  type, bind(C) :: trifactor_compressed_columns
    integer(c_int) :: scalar = 0
    integer(c_int64_t) :: n = 0
    integer(c_int64_t) :: entries = 0
    type(c_ptr) :: start = c_null_ptr
    type(c_ptr) :: index = c_null_ptr
    type(c_ptr) :: values = c_null_ptr
    type(c_ptr) :: owner = c_null_ptr
  end type
  type, bind(C) :: trifactor_refinement
    integer(c_int) :: steps = 0
    real(c_double) :: backward_error = 0
  end type
  type, bind(C) :: trifactor_sparse_memory
    integer(c_size_t) :: size = 72
    integer(c_size_t) :: factor = 0
    integer(c_size_t) :: updates = 0
    integer(c_size_t) :: lists = 0
    integer(c_size_t) :: vectors = 0
    integer(c_size_t) :: scratch = 0
    integer(c_size_t) :: values = 0
    integer(c_size_t) :: total = 0
    integer(c_size_t) :: host = 0
  end type
  type, bind(C) :: trifactor_sparse_options
    integer(c_size_t) :: size = 48
    type(c_ptr) :: tuning = c_null_ptr
    real(c_double) :: pivot_threshold = 0
    integer(c_int) :: no_equilibration = 0
    integer(c_size_t) :: max_device_bytes = 0
    integer(c_int) :: mode = 0
  end type
  type, bind(C) :: trifactor_contender
    type(c_funptr) :: run = c_null_funptr
    type(c_funptr) :: prepare = c_null_funptr
    type(c_ptr) :: context = c_null_ptr
    type(c_ptr) :: queue = c_null_ptr
  end type
  type, bind(C) :: trifactor_measure_options
    integer(c_size_t) :: size = 48
    integer(c_int) :: warmups = 0
    integer(c_int) :: min_runs = 0
    integer(c_int) :: max_runs = 0
    real(c_double) :: max_seconds = 0
    real(c_double) :: target_spread = 0
    real(c_double) :: energy_seconds = 0
  end type
  type, bind(C) :: trifactor_measurement
    real(c_double) :: seconds = 0
    real(c_double) :: spread = 0
    integer(c_int) :: runs = 0
    real(c_double) :: host_seconds = 0
    real(c_double) :: joules = 0
    real(c_double) :: energy_seconds = 0
  end type

  interface
    type(c_ptr) function trifactor_last_message() bind(C)
      import
    end function
    integer(c_int64_t) function trifactor_last_detail() bind(C)
      import
    end function
    type(c_ptr) function trifactor_status_name(status) bind(C)
      import
      integer(c_int), value :: status
    end function
    type(c_ptr) function trifactor_version() bind(C)
      import
    end function
    type(c_ptr) function trifactor_blas() bind(C)
      import
    end function
    type(c_ptr) function trifactor_why_no_cuda() bind(C)
      import
    end function
    integer(c_int) function trifactor_device_count(count) bind(C)
      import
      integer(c_int64_t), intent(out) :: count
    end function
    integer(c_int) function trifactor_device_report(i, info) bind(C)
      import
      integer(c_int64_t), value :: i
      type(trifactor_device_info), intent(inout) :: info
    end function
    integer(c_int) function trifactor_tuning_row_count(count) bind(C)
      import
      integer(c_int64_t), intent(out) :: count
    end function
    integer(c_int) function trifactor_tuning_row(i, text, source) bind(C)
      import
      integer(c_int64_t), value :: i
      type(c_ptr), intent(out) :: text, source
    end function
    integer(c_int) function trifactor_queue_host(threads, queue) bind(C)
      import
      integer(c_int), value :: threads
      type(c_ptr), intent(out) :: queue
    end function
    integer(c_int) function trifactor_queue_cuda(device, queue) bind(C)
      import
      integer(c_int), value :: device
      type(c_ptr), intent(out) :: queue
    end function
    integer(c_int) function trifactor_queue_wrap_cuda_stream(stream, device, queue) bind(C)
      import
      type(c_ptr), value :: stream
      integer(c_int), value :: device
      type(c_ptr), intent(out) :: queue
    end function
    subroutine trifactor_queue_destroy(queue) bind(C)
      import
      type(c_ptr), value :: queue
    end subroutine
    integer(c_int) function trifactor_queue_reserve(queue, bytes) bind(C)
      import
      type(c_ptr), value :: queue
      integer(c_size_t), value :: bytes
    end function
    integer(c_int) function trifactor_queue_sync(queue) bind(C)
      import
      type(c_ptr), value :: queue
    end function
    integer(c_int) function trifactor_queue_is_cuda(queue) bind(C)
      import
      type(c_ptr), value :: queue
    end function
    integer(c_int) function trifactor_queue_device(queue) bind(C)
      import
      type(c_ptr), value :: queue
    end function
    type(c_ptr) function trifactor_queue_stream(queue) bind(C)
      import
      type(c_ptr), value :: queue
    end function
    integer(c_int) function trifactor_allocate(queue, bytes, memory) bind(C)
      import
      type(c_ptr), value :: queue
      integer(c_size_t), value :: bytes
      type(c_ptr), intent(out) :: memory
    end function
    subroutine trifactor_free(queue, memory) bind(C)
      import
      type(c_ptr), value :: queue, memory
    end subroutine
    integer(c_int) function trifactor_fill_zero(queue, memory, bytes) bind(C)
      import
      type(c_ptr), value :: queue, memory
      integer(c_size_t), value :: bytes
    end function
    integer(c_int) function trifactor_copy_bytes(from, source, to, target, bytes) bind(C)
      import
      type(c_ptr), value :: from, source, to, target
      integer(c_size_t), value :: bytes
    end function
    integer(c_int) function trifactor_copy_columns(from, source, source_ld, to, target, target_ld, &
      bytes_per_column, columns) bind(C)
      import
      type(c_ptr), value :: from, source, to, target
      integer(c_size_t), value :: source_ld, target_ld, bytes_per_column, columns
    end function
    type(trifactor_view) function trifactor_matrix(scalar, data, rows, cols, ld) bind(C)
      import
      integer(c_int), value :: scalar
      type(c_ptr), value :: data
      integer(c_int64_t), value :: rows, cols, ld
    end function
    type(trifactor_view) function trifactor_strided(scalar, data, rows, cols, ld, stride, count) bind(C)
      import
      integer(c_int), value :: scalar
      type(c_ptr), value :: data
      integer(c_int64_t), value :: rows, cols, ld, stride, count
    end function
    type(trifactor_view) function trifactor_pointers(scalar, items, rows, cols, ld, count) bind(C)
      import
      integer(c_int), value :: scalar
      type(c_ptr), value :: items
      integer(c_int64_t), value :: rows, cols, ld, count
    end function
    type(trifactor_view) function trifactor_ragged(scalar, items, rows, cols, ld, max_rows, max_cols, count) bind(C)
      import
      integer(c_int), value :: scalar
      type(c_ptr), value :: items, rows, cols, ld
      integer(c_int64_t), value :: max_rows, max_cols, count
    end function
    integer(c_int) function trifactor_cholesky(queue, uplo, A, info, options) bind(C)
      import
      type(c_ptr), value :: queue, info
      integer(c_int), value :: uplo
      type(trifactor_view), value :: A
      type(trifactor_cholesky_options), intent(in), optional :: options
    end function
    integer(c_int) function trifactor_cholesky_factor_solve(queue, uplo, A, X, info, options) bind(C)
      import
      type(c_ptr), value :: queue, info
      integer(c_int), value :: uplo
      type(trifactor_view), value :: A, X
      type(trifactor_cholesky_options), intent(in), optional :: options
    end function
    integer(c_int) function trifactor_cholesky_solve(queue, uplo, L, X, info, options) bind(C)
      import
      type(c_ptr), value :: queue, info
      integer(c_int), value :: uplo
      type(trifactor_view), value :: L, X
      type(trifactor_solve_options), intent(in), optional :: options
    end function
    integer(c_int) function trifactor_cholesky_log_det(queue, uplo, L, log_det, info) bind(C)
      import
      type(c_ptr), value :: queue, log_det, info
      integer(c_int), value :: uplo
      type(trifactor_view), value :: L
    end function
    integer(c_int) function trifactor_cholesky_inverse(queue, uplo, L, X, info, options) bind(C)
      import
      type(c_ptr), value :: queue, info
      integer(c_int), value :: uplo
      type(trifactor_view), value :: L, X
      type(trifactor_solve_options), intent(in), optional :: options
    end function
    integer(c_int) function trifactor_lu(queue, A, pivots, info, options) bind(C)
      import
      type(c_ptr), value :: queue, pivots, info
      type(trifactor_view), value :: A
      type(trifactor_lu_options), intent(in), optional :: options
    end function
    integer(c_int) function trifactor_lu_factor_solve(queue, A, pivots, X, info, options) bind(C)
      import
      type(c_ptr), value :: queue, pivots, info
      type(trifactor_view), value :: A, X
      type(trifactor_lu_options), intent(in), optional :: options
    end function
    integer(c_int) function trifactor_lu_solve(queue, op, LU, pivots, X, info, options) bind(C)
      import
      type(c_ptr), value :: queue, pivots, info
      integer(c_int), value :: op
      type(trifactor_view), value :: LU, X
      type(trifactor_solve_options), intent(in), optional :: options
    end function
    integer(c_int) function trifactor_lu_inverse(queue, LU, pivots, X, info, options) bind(C)
      import
      type(c_ptr), value :: queue, pivots, info
      type(trifactor_view), value :: LU, X
      type(trifactor_solve_options), intent(in), optional :: options
    end function
    integer(c_int) function trifactor_lu_det(queue, LU, pivots, sign, log_abs) bind(C)
      import
      type(c_ptr), value :: queue, pivots, sign, log_abs
      type(trifactor_view), value :: LU
    end function
    integer(c_int) function trifactor_lu_row_permutation(queue, pivots, k, p, rows) bind(C)
      import
      type(c_ptr), value :: queue, pivots, p
      integer(c_int64_t), value :: k, rows
    end function
    integer(c_int) function trifactor_cholesky_scratch(queue, uplo, A, options, bytes) bind(C)
      import
      type(c_ptr), value :: queue
      integer(c_int), value :: uplo
      type(trifactor_view), value :: A
      type(trifactor_cholesky_options), intent(in), optional :: options
      integer(c_size_t), intent(out) :: bytes
    end function
    integer(c_int) function trifactor_cholesky_factor_solve_scratch(queue, uplo, A, X, options, bytes) bind(C)
      import
      type(c_ptr), value :: queue
      integer(c_int), value :: uplo
      type(trifactor_view), value :: A, X
      type(trifactor_cholesky_options), intent(in), optional :: options
      integer(c_size_t), intent(out) :: bytes
    end function
    integer(c_int) function trifactor_cholesky_solve_scratch(queue, uplo, L, X, options, bytes) bind(C)
      import
      type(c_ptr), value :: queue
      integer(c_int), value :: uplo
      type(trifactor_view), value :: L, X
      type(trifactor_solve_options), intent(in), optional :: options
      integer(c_size_t), intent(out) :: bytes
    end function
    integer(c_int) function trifactor_cholesky_inverse_scratch(queue, uplo, L, X, options, bytes) bind(C)
      import
      type(c_ptr), value :: queue
      integer(c_int), value :: uplo
      type(trifactor_view), value :: L, X
      type(trifactor_solve_options), intent(in), optional :: options
      integer(c_size_t), intent(out) :: bytes
    end function
    integer(c_int) function trifactor_lu_scratch(queue, A, options, bytes) bind(C)
      import
      type(c_ptr), value :: queue
      type(trifactor_view), value :: A
      type(trifactor_lu_options), intent(in), optional :: options
      integer(c_size_t), intent(out) :: bytes
    end function
    integer(c_int) function trifactor_lu_factor_solve_scratch(queue, A, X, options, bytes) bind(C)
      import
      type(c_ptr), value :: queue
      type(trifactor_view), value :: A, X
      type(trifactor_lu_options), intent(in), optional :: options
      integer(c_size_t), intent(out) :: bytes
    end function
    integer(c_int) function trifactor_lu_solve_scratch(queue, op, LU, X, options, bytes) bind(C)
      import
      type(c_ptr), value :: queue
      integer(c_int), value :: op
      type(trifactor_view), value :: LU, X
      type(trifactor_solve_options), intent(in), optional :: options
      integer(c_size_t), intent(out) :: bytes
    end function
    integer(c_int) function trifactor_lu_inverse_scratch(queue, LU, X, options, bytes) bind(C)
      import
      type(c_ptr), value :: queue
      type(trifactor_view), value :: LU, X
      type(trifactor_solve_options), intent(in), optional :: options
      integer(c_size_t), intent(out) :: bytes
    end function
    integer(c_int) function trifactor_dense_cholesky_create(A, options, factor) bind(C)
      import
      type(trifactor_view), value :: A
      type(trifactor_dense_options), intent(in), optional :: options
      type(c_ptr), intent(out) :: factor
    end function
    subroutine trifactor_dense_cholesky_destroy(factor) bind(C)
      import
      type(c_ptr), value :: factor
    end subroutine
    integer(c_int) function trifactor_dense_cholesky_solve(factor, X) bind(C)
      import
      type(c_ptr), value :: factor
      type(trifactor_view), value :: X
    end function
    integer(c_int) function trifactor_dense_cholesky_inverse(factor, X) bind(C)
      import
      type(c_ptr), value :: factor
      type(trifactor_view), value :: X
    end function
    integer(c_int) function trifactor_dense_cholesky_factor(factor, L) bind(C)
      import
      type(c_ptr), value :: factor
      type(trifactor_view), value :: L
    end function
    integer(c_int) function trifactor_dense_cholesky_log_det(factor, number) bind(C)
      import
      type(c_ptr), value :: factor
      real(c_double), intent(out) :: number
    end function
    integer(c_int) function trifactor_dense_cholesky_rcond(factor, number) bind(C)
      import
      type(c_ptr), value :: factor
      real(c_double), intent(out) :: number
    end function
    integer(c_int) function trifactor_dense_cholesky_shift(factor, number) bind(C)
      import
      type(c_ptr), value :: factor
      real(c_double), intent(out) :: number
    end function
    integer(c_int) function trifactor_dense_cholesky_uplo(factor, uplo) bind(C)
      import
      type(c_ptr), value :: factor
      integer(c_int), intent(out) :: uplo
    end function
    integer(c_int) function trifactor_dense_cholesky_device(factor, device) bind(C)
      import
      type(c_ptr), value :: factor
      integer(c_int), intent(out) :: device
    end function
    integer(c_int) function trifactor_dense_lu_create(A, options, factor) bind(C)
      import
      type(trifactor_view), value :: A
      type(trifactor_dense_options), intent(in), optional :: options
      type(c_ptr), intent(out) :: factor
    end function
    subroutine trifactor_dense_lu_destroy(factor) bind(C)
      import
      type(c_ptr), value :: factor
    end subroutine
    integer(c_int) function trifactor_dense_lu_singular_at(factor, k) bind(C)
      import
      type(c_ptr), value :: factor
      integer(c_int64_t), intent(out) :: k
    end function
    integer(c_int) function trifactor_dense_lu_solve(factor, op, X) bind(C)
      import
      type(c_ptr), value :: factor
      integer(c_int), value :: op
      type(trifactor_view), value :: X
    end function
    integer(c_int) function trifactor_dense_lu_inverse(factor, X) bind(C)
      import
      type(c_ptr), value :: factor
      type(trifactor_view), value :: X
    end function
    integer(c_int) function trifactor_dense_lu_factors(factor, LU) bind(C)
      import
      type(c_ptr), value :: factor
      type(trifactor_view), value :: LU
    end function
    integer(c_int) function trifactor_dense_lu_row_permutation(factor, p, room) bind(C)
      import
      type(c_ptr), value :: factor, p
      integer(c_int64_t), value :: room
    end function
    integer(c_int) function trifactor_dense_lu_det(factor, sign, log_abs) bind(C)
      import
      type(c_ptr), value :: factor, sign
      real(c_double), intent(out) :: log_abs
    end function
    integer(c_int) function trifactor_dense_lu_rcond(factor, number) bind(C)
      import
      type(c_ptr), value :: factor
      real(c_double), intent(out) :: number
    end function
    integer(c_int) function trifactor_dense_lu_device(factor, device) bind(C)
      import
      type(c_ptr), value :: factor
      integer(c_int), intent(out) :: device
    end function
    integer(c_int) function trifactor_analyze(pattern, options, plan) bind(C)
      import
      type(trifactor_pattern), intent(in) :: pattern
      type(trifactor_analyze_options), intent(in), optional :: options
      type(c_ptr), intent(out) :: plan
    end function
    integer(c_int) function trifactor_analyze_lu(pattern, options, plan) bind(C)
      import
      type(trifactor_pattern), intent(in) :: pattern
      type(trifactor_analyze_options), intent(in), optional :: options
      type(c_ptr), intent(out) :: plan
    end function
    subroutine trifactor_plan_destroy(plan) bind(C)
      import
      type(c_ptr), value :: plan
    end subroutine
    subroutine trifactor_lu_plan_destroy(plan) bind(C)
      import
      type(c_ptr), value :: plan
    end subroutine
    integer(c_int) function trifactor_plan_report(plan, info) bind(C)
      import
      type(c_ptr), value :: plan
      type(trifactor_plan_info), intent(inout) :: info
    end function
    integer(c_int) function trifactor_lu_plan_report(plan, info) bind(C)
      import
      type(c_ptr), value :: plan
      type(trifactor_plan_info), intent(inout) :: info
    end function
    type(c_ptr) function trifactor_plan_permutation(plan) bind(C)
      import
      type(c_ptr), value :: plan
    end function
    type(c_ptr) function trifactor_lu_plan_permutation(plan) bind(C)
      import
      type(c_ptr), value :: plan
    end function
    type(c_ptr) function trifactor_plan_text(plan) bind(C)
      import
      type(c_ptr), value :: plan
    end function
    type(c_ptr) function trifactor_lu_plan_text(plan) bind(C)
      import
      type(c_ptr), value :: plan
    end function
    type(c_ptr) function trifactor_plan_note(plan) bind(C)
      import
      type(c_ptr), value :: plan
    end function
    integer(c_int) function trifactor_plan_front(plan, s, front) bind(C)
      import
      type(c_ptr), value :: plan
      integer(c_int64_t), value :: s
      type(trifactor_front), intent(inout) :: front
    end function
    integer(c_int) function trifactor_plan_levels(plan, levels, room, count) bind(C)
      import
      type(c_ptr), value :: plan
      type(trifactor_level), intent(inout) :: levels(*)
      integer(c_int64_t), value :: room
      integer(c_int64_t), intent(out) :: count
    end function
    integer(c_int) function trifactor_plan_widths(plan, widths, room, count) bind(C)
      import
      type(c_ptr), value :: plan
      type(trifactor_width_bin), intent(inout) :: widths(*)
      integer(c_int64_t), value :: room
      integer(c_int64_t), intent(out) :: count
    end function
    integer(c_int) function trifactor_plan_steps(plan, steps, room, count) bind(C)
      import
      type(c_ptr), value :: plan
      type(trifactor_step), intent(inout) :: steps(*)
      integer(c_int64_t), value :: room
      integer(c_int64_t), intent(out) :: count
    end function
    integer(c_int) function trifactor_lu_plan_steps(plan, steps, room, count) bind(C)
      import
      type(c_ptr), value :: plan
      type(trifactor_step), intent(inout) :: steps(*)
      integer(c_int64_t), value :: room
      integer(c_int64_t), intent(out) :: count
    end function
    subroutine trifactor_compressed_columns_free(columns) bind(C)
      import
      type(trifactor_compressed_columns), intent(inout) :: columns
    end subroutine
    integer(c_int) function trifactor_is_hermitian(pattern, scalar, values, count, tolerance, result) bind(C)
      import
      type(trifactor_pattern), intent(in) :: pattern
      integer(c_int), value :: scalar
      type(c_ptr), value :: values
      integer(c_int64_t), value :: count
      real(c_double), value :: tolerance
      integer(c_int), intent(out) :: result
    end function
    integer(c_int) function trifactor_hermitian_part(pattern, scalar, values, count, columns) bind(C)
      import
      type(trifactor_pattern), intent(in) :: pattern
      integer(c_int), value :: scalar
      type(c_ptr), value :: values
      integer(c_int64_t), value :: count
      type(trifactor_compressed_columns), intent(inout) :: columns
    end function
    integer(c_int) function trifactor_sparse_cholesky_create(queue, plan, scalar, options, factor) bind(C)
      import
      type(c_ptr), value :: queue, plan
      integer(c_int), value :: scalar
      type(trifactor_sparse_options), intent(in), optional :: options
      type(c_ptr), intent(out) :: factor
    end function
    subroutine trifactor_sparse_cholesky_destroy(factor) bind(C)
      import
      type(c_ptr), value :: factor
    end subroutine
    integer(c_int) function trifactor_sparse_cholesky_memory_needed(queue, plan, scalar, options, memory) bind(C)
      import
      type(c_ptr), value :: queue, plan
      integer(c_int), value :: scalar
      type(trifactor_sparse_options), intent(in), optional :: options
      type(trifactor_sparse_memory), intent(inout) :: memory
    end function
    integer(c_int) function trifactor_sparse_cholesky_memory(factor, memory) bind(C)
      import
      type(c_ptr), value :: factor
      type(trifactor_sparse_memory), intent(inout) :: memory
    end function
    integer(c_int) function trifactor_sparse_cholesky_factor(factor, values, count, shift) bind(C)
      import
      type(c_ptr), value :: factor, values
      integer(c_int64_t), value :: count
      real(c_double), value :: shift
    end function
    integer(c_int) function trifactor_sparse_cholesky_info(factor, info) bind(C)
      import
      type(c_ptr), value :: factor
      integer(c_int64_t), intent(out) :: info
    end function
    integer(c_int) function trifactor_sparse_cholesky_solve(factor, part, B) bind(C)
      import
      type(c_ptr), value :: factor
      integer(c_int), value :: part
      type(trifactor_view), value :: B
    end function
    integer(c_int) function trifactor_sparse_cholesky_solve_refined(factor, values, count, B, refinement) bind(C)
      import
      type(c_ptr), value :: factor, values
      integer(c_int64_t), value :: count
      type(trifactor_view), value :: B
      type(trifactor_refinement), intent(out), optional :: refinement
    end function
    integer(c_int) function trifactor_sparse_cholesky_log_det(factor, number) bind(C)
      import
      type(c_ptr), value :: factor
      real(c_double), intent(out) :: number
    end function
    integer(c_int) function trifactor_sparse_cholesky_rcond(factor, number) bind(C)
      import
      type(c_ptr), value :: factor
      real(c_double), intent(out) :: number
    end function
    integer(c_int) function trifactor_sparse_cholesky_diagonal(factor, diagonal, room) bind(C)
      import
      type(c_ptr), value :: factor
      real(c_double), intent(inout) :: diagonal(*)
      integer(c_int64_t), value :: room
    end function
    integer(c_int) function trifactor_sparse_cholesky_lower(factor, columns) bind(C)
      import
      type(c_ptr), value :: factor
      type(trifactor_compressed_columns), intent(inout) :: columns
    end function
    integer(c_int) function trifactor_sparse_cholesky_batch_create(queue, plan, scalar, items, options, &
      factors) bind(C)
      import
      type(c_ptr), value :: queue, plan
      integer(c_int), value :: scalar
      integer(c_int64_t), value :: items
      type(trifactor_sparse_options), intent(in), optional :: options
      type(c_ptr), intent(out) :: factors
    end function
    subroutine trifactor_sparse_cholesky_batch_destroy(factors) bind(C)
      import
      type(c_ptr), value :: factors
    end subroutine
    integer(c_int) function trifactor_sparse_cholesky_batch_memory_needed(queue, plan, scalar, items, options, &
      memory) bind(C)
      import
      type(c_ptr), value :: queue, plan
      integer(c_int), value :: scalar
      integer(c_int64_t), value :: items
      type(trifactor_sparse_options), intent(in), optional :: options
      type(trifactor_sparse_memory), intent(inout) :: memory
    end function
    integer(c_int) function trifactor_sparse_cholesky_batch_memory(factors, memory) bind(C)
      import
      type(c_ptr), value :: factors
      type(trifactor_sparse_memory), intent(inout) :: memory
    end function
    integer(c_int) function trifactor_sparse_cholesky_batch_factor(factors, values, count, shift, failed) bind(C)
      import
      type(c_ptr), value :: factors, values
      integer(c_int64_t), value :: count
      real(c_double), value :: shift
      integer(c_int64_t), intent(out) :: failed
    end function
    integer(c_int) function trifactor_sparse_cholesky_batch_info(factors, info, room) bind(C)
      import
      type(c_ptr), value :: factors, info
      integer(c_int64_t), value :: room
    end function
    integer(c_int) function trifactor_sparse_cholesky_batch_solve(factors, part, B) bind(C)
      import
      type(c_ptr), value :: factors
      integer(c_int), value :: part
      type(trifactor_view), value :: B
    end function
    integer(c_int) function trifactor_sparse_cholesky_batch_log_det(factors, log_det, room) bind(C)
      import
      type(c_ptr), value :: factors
      real(c_double), intent(inout) :: log_det(*)
      integer(c_int64_t), value :: room
    end function
    integer(c_int) function trifactor_sparse_cholesky_batch_diagonal(factors, diagonal, room) bind(C)
      import
      type(c_ptr), value :: factors
      real(c_double), intent(inout) :: diagonal(*)
      integer(c_int64_t), value :: room
    end function
    integer(c_int) function trifactor_sparse_lu_create(queue, plan, scalar, options, factor) bind(C)
      import
      type(c_ptr), value :: queue, plan
      integer(c_int), value :: scalar
      type(trifactor_sparse_options), intent(in), optional :: options
      type(c_ptr), intent(out) :: factor
    end function
    subroutine trifactor_sparse_lu_destroy(factor) bind(C)
      import
      type(c_ptr), value :: factor
    end subroutine
    integer(c_int) function trifactor_sparse_lu_memory(factor, memory) bind(C)
      import
      type(c_ptr), value :: factor
      type(trifactor_sparse_memory), intent(inout) :: memory
    end function
    integer(c_int) function trifactor_sparse_lu_factor(factor, values, count) bind(C)
      import
      type(c_ptr), value :: factor, values
      integer(c_int64_t), value :: count
    end function
    integer(c_int) function trifactor_sparse_lu_info(factor, info) bind(C)
      import
      type(c_ptr), value :: factor
      integer(c_int64_t), intent(out) :: info
    end function
    integer(c_int) function trifactor_sparse_lu_solve(factor, op, B) bind(C)
      import
      type(c_ptr), value :: factor
      integer(c_int), value :: op
      type(trifactor_view), value :: B
    end function
    integer(c_int) function trifactor_sparse_lu_solve_refined(factor, values, count, op, B, refinement) bind(C)
      import
      type(c_ptr), value :: factor, values
      integer(c_int64_t), value :: count
      integer(c_int), value :: op
      type(trifactor_view), value :: B
      type(trifactor_refinement), intent(out), optional :: refinement
    end function
    integer(c_int) function trifactor_sparse_lu_det(factor, sign, log_abs) bind(C)
      import
      type(c_ptr), value :: factor, sign
      real(c_double), intent(out) :: log_abs
    end function
    integer(c_int) function trifactor_sparse_lu_rcond(factor, number) bind(C)
      import
      type(c_ptr), value :: factor
      real(c_double), intent(out) :: number
    end function
    integer(c_int) function trifactor_sparse_lu_norm1(factor, number) bind(C)
      import
      type(c_ptr), value :: factor
      real(c_double), intent(out) :: number
    end function
    integer(c_int) function trifactor_sparse_lu_factor_nonzeros(factor, number) bind(C)
      import
      type(c_ptr), value :: factor
      integer(c_int64_t), intent(out) :: number
    end function
    integer(c_int) function trifactor_measure(contenders, count, options, results) bind(C)
      import
      type(trifactor_contender), intent(in) :: contenders(*)
      integer(c_int64_t), value :: count
      type(trifactor_measure_options), intent(in), optional :: options
      type(trifactor_measurement), intent(inout) :: results(*)
    end function
    integer(c_int) function trifactor_seconds_of(queue, work, context, seconds) bind(C)
      import
      type(c_ptr), value :: queue, context
      type(c_funptr), value :: work
      real(c_double), intent(out) :: seconds
    end function
    type(c_ptr) function trifactor_energy_sensors() bind(C)
      import
    end function
  end interface

contains

  !> A text of trifactor, such as trifactor_last_message(), as a Fortran string.
  function trifactor_string(text) result(string)
    type(c_ptr), intent(in) :: text
    character(len=:), allocatable :: string
    character(kind=c_char), pointer :: letters(:)
    integer :: i, n
    string = ''
    if (.not. c_associated(text)) return
    call c_f_pointer(text, letters, [huge(n)])
    n = 0
    do while (letters(n + 1) /= c_null_char)
      n = n + 1
    end do
    string = repeat(' ', n)
    do i = 1, n
      string(i:i) = letters(i)
    end do
  end function

end module
