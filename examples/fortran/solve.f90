! One matrix, a batch and a sparse matrix, in Fortran.
program solve
  use trifactor
  implicit none
  real(c_double) :: error
  error = 0
  call dense()
  call batch()
  call sparse()
  if (error > 1e-9_c_double) error stop 1

contains

  ! Ends the program with trifactor's message when a call failed.
  subroutine check(status)
    integer(c_int), intent(in) :: status
    if (status == TRIFACTOR_OK) return
    print '(a)', trifactor_string(trifactor_status_name(status)) // ': ' // trifactor_string(trifactor_last_message())
    error stop 1
  end subroutine

  ! One matrix in the host's memory: a factor that knows how to solve. The options read the upper triangle.
  subroutine dense()
    complex(c_double_complex), target :: A(2, 2), b(2)
    type(trifactor_dense_options) :: options
    type(c_ptr) :: L
    A = reshape([(4, 0), (0, 0), (1, 1), (3, 0)], [2, 2])
    b = [(5, 1), (4, -1)]                          ! A times ones
    options%uplo = TRIFACTOR_UPPER
    call check(trifactor_dense_cholesky_create(trifactor_matrix(TRIFACTOR_C64, c_loc(A), 2_c_int64_t, 2_c_int64_t, &
      2_c_int64_t), options, L))
    call check(trifactor_dense_cholesky_solve(L, trifactor_matrix(TRIFACTOR_C64, c_loc(b), 2_c_int64_t, 1_c_int64_t, &
      2_c_int64_t)))
    call trifactor_dense_cholesky_destroy(L)
    print '(a, 4f9.6)', 'dense: x =', b
    error = error + sum(abs(b - 1))
  end subroutine

  ! Many small systems in one call on a queue.
  subroutine batch()
    integer(c_int64_t), parameter :: n = 3, count = 1000
    real(c_double), allocatable, target :: A(:, :, :), X(:, :)
    integer(c_int), target :: pivots(n, count), info(count)
    type(c_ptr) :: queue
    integer :: b, i
    allocate (A(n, n, count), X(n, count))
    call random_number(A)
    do b = 1, int(count)
      do i = 1, int(n)
        A(i, i, b) = A(i, i, b) + 3
      end do
      X(:, b) = sum(A(:, :, b), dim=2)             ! A times ones
    end do
    call check(trifactor_queue_host(0, queue))
    call check(trifactor_lu_factor_solve(queue, trifactor_strided(TRIFACTOR_F64, c_loc(A), n, n, n, n * n, count), &
      c_loc(pivots), trifactor_strided(TRIFACTOR_F64, c_loc(X), n, 1_c_int64_t, n, n, count), c_loc(info)))
    call trifactor_queue_destroy(queue)
    print '(a, es8.1)', 'batch: error', maxval(abs(X - 1))
    error = error + maxval(abs(X - 1)) + sum(abs(info))
  end subroutine

  ! A sparse matrix: analyse once, factor and solve often. Indices count from 0.
  subroutine sparse()
    integer, parameter :: n = 1000
    integer(c_int), target :: start(n + 1), row(2 * n)
    real(c_double), target :: value(2 * n), x(n)
    type(trifactor_pattern) :: pattern
    type(trifactor_refinement) :: refinement
    type(trifactor_sparse_memory) :: memory
    type(c_ptr) :: plan, queue, L
    integer :: j, k
    k = 0
    do j = 1, n                                    ! the lower triangle of the second difference, by columns
      start(j) = k
      row(k + 1:k + 2) = [j - 1, j]
      value(k + 1:k + 2) = [2, -1]
      k = k + merge(2, 1, j < n)
    end do
    start(n + 1) = k
    x = 1
    pattern%rows = n
    pattern%cols = n
    pattern%start = c_loc(start)
    pattern%index = c_loc(row)
    pattern%index_bits = 32
    call check(trifactor_analyze(pattern, plan=plan))
    call check(trifactor_queue_host(0, queue))
    call check(trifactor_sparse_cholesky_create(queue, plan, TRIFACTOR_F64, factor=L))
    call check(trifactor_sparse_cholesky_factor(L, c_loc(value), int(k, c_int64_t), 0.01_c_double))
    call check(trifactor_sparse_cholesky_solve(L, TRIFACTOR_PART_ALL, &
      trifactor_matrix(TRIFACTOR_F64, c_loc(x), int(n, c_int64_t), 1_c_int64_t, int(n, c_int64_t))))
    call check(trifactor_sparse_cholesky_memory(L, memory))
    print '(a, f9.4, a, i0, a)', 'sparse: x in the middle', x(n / 2), ', ', memory%total, ' bytes'
    error = error + abs(2.01_c_double * x(1) - x(2) - 1)
    ! What a failure looks like: one right-hand side too long.
    if (trifactor_sparse_cholesky_solve_refined(L, c_loc(value), int(k, c_int64_t), trifactor_matrix(TRIFACTOR_F64, &
      c_loc(value), int(n + 1, c_int64_t), 1_c_int64_t, int(n + 1, c_int64_t)), refinement) &
      /= TRIFACTOR_INVALID_ARGUMENT) error = error + 1
    print '(a)', 'sparse: ' // trifactor_string(trifactor_last_message())
    call trifactor_sparse_cholesky_destroy(L)
    call trifactor_queue_destroy(queue)
    call trifactor_plan_destroy(plan)
  end subroutine
end program
