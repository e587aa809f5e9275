# An unmodified R program.
set.seed(1)
n <- 150
A <- matrix(rnorm(n * n), n)
S <- crossprod(A) + n * diag(n)
b <- rnorm(n)
stopifnot(max(abs(A %*% solve(A, b) - b)) < 1e-8)
stopifnot(max(abs(crossprod(chol(S)) - S)) < 1e-8)
stopifnot(max(abs(chol2inv(chol(S)) %*% S - diag(n))) < 1e-8)
stopifnot(inherits(try(solve(matrix(1, n, n), b), silent = TRUE), "try-error"))
cat("R solved\n")
