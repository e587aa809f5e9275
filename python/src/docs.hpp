// Docstrings of the extension. Their examples are run by python/tests/test_docs.py, with NumPy as np.
#pragma once

namespace trifactor::python::docs {

inline constexpr const char* cholesky = R"(Factors A = L L^H, symmetric or hermitian and positive definite.

A has shape (..., n, n), or is a list of arrays of different orders. One triangle is read: the lower one, or the
upper one where lower is False. NumPy's arrays are factored on the host; arrays of PyTorch, CuPy and JAX where they
are, on the current stream.

overwrite_a: the factor may take A's memory, whether it is row-major or column-major. check: raise
NotPositiveDefinite; on a device this waits for the result, and with check=False nothing does: see info. shift_tries:
how often to try again with a growing shift of the diagonal, the first of shift_first times its largest entry (0: the
square root of epsilon).

>>> F = trifactor.cholesky([[4., 2.], [2., 5.]])
>>> F.solve([8., 6.])
array([1.75, 0.5 ])
>>> trifactor.cholesky([[1., 2.], [2., 1.]])
Traceback (most recent call last):
    ...
trifactor.NotPositiveDefinite: A is not positive definite: its leading minor of order 2, at column 1 counted from 0
)";

inline constexpr const char* Cholesky = R"(Factors that know how to solve, made by trifactor.cholesky.

>>> A = np.array([[4., 2.], [2., 3.]])
>>> F = trifactor.cholesky(A)
>>> np.allclose(F.L @ F.L.T, A)
True
)";
inline constexpr const char* Cholesky_solve = R"(Solves A x = b.

b has shape (n,), (..., n) with the batch of A, or (..., n, k); of a list it is a list. overwrite_b: the solution may
take b's memory. out: where it goes, an array that may share memory with b; column-major arrays and vectors are
written directly.

>>> trifactor.cholesky(np.diag([2., 4.])).solve([2., 2.])
array([1. , 0.5])
)";
inline constexpr const char* Cholesky_log_det = R"(log det A, one for each matrix.

>>> round(float(trifactor.cholesky(np.diag([2., 4.])).log_det()), 6)
2.079442
)";
inline constexpr const char* Cholesky_inverse = R"(A^-1, both triangles; NaN for a matrix whose info is not 0.

>>> trifactor.cholesky(np.diag([2., 4.])).inverse()
array([[0.5 , 0.  ],
       [0.  , 0.25]])
)";
inline constexpr const char* Cholesky_L =
    R"(L of A = L L^H, with zeros above the diagonal. Where lower is True it is the memory that solve reads.

>>> trifactor.cholesky([[4., 2.], [2., 5.]]).L
array([[2., 0.],
       [1., 2.]])
)";
inline constexpr const char* Cholesky_U = R"(U = L^H of A = U^H U.

>>> trifactor.cholesky([[4., 2.], [2., 5.]], lower=False).U
array([[2., 1.],
       [0., 2.]])
)";
inline constexpr const char* Cholesky_info =
    R"(For each matrix 0, or the order of the first leading minor that is not positive definite.

>>> trifactor.cholesky(np.array([np.eye(2), -np.eye(2)]), check=False).info
array([0, 1], dtype=int32)
)";
inline constexpr const char* Cholesky_shift =
    R"(What was added to the diagonal of each matrix, where shift_tries allowed it.

>>> F = trifactor.cholesky([[1., 1.], [1., 1.]], shift_tries=3, shift_first=0.5)
>>> float(F.shift)
0.5
)";

inline constexpr const char* lu = R"(Factors P A = L U with partial pivoting.

A has shape (..., m, n), or is a list of arrays of different sizes. A singular matrix is factored, too; solve and
inverse then raise Singular. check=False: they do not look; solve leaves out the matrices whose info is not 0, and
their inverses are NaN.
overwrite_a: the factors may take the memory of a column-major A.

>>> F = trifactor.lu([[0., 2.], [4., 4.]])
>>> F.solve([2., 8.])
array([1., 1.])
>>> F.p
array([1, 0], dtype=int32)
)";
inline constexpr const char* LU = R"(Factors that know how to solve, made by trifactor.lu.

>>> A = np.array([[0., 2.], [4., 4.]])
>>> F = trifactor.lu(A)
>>> np.allclose(F.L @ F.U, A[F.p])
True
)";
inline constexpr const char* LU_solve = R"(Solves A x = b, A^T x = b (trans = 1 or 'T') or A^H x = b (2 or 'H').

b, overwrite_b and out are those of Cholesky.solve.

>>> trifactor.lu([[2., 0.], [2., 4.]]).solve([4., 4.], trans=1)
array([1., 1.])
>>> trifactor.lu([[1., 1.], [1., 1.]]).solve([1., 1.])
Traceback (most recent call last):
    ...
trifactor.Singular: A is singular: its pivot in column 1 counted from 0 is zero
)";
inline constexpr const char* LU_slogdet = R"((sign, logabsdet) with det A = sign * exp(logabsdet), one for each matrix.

>>> sign, logabsdet = trifactor.lu([[0., 2.], [4., 4.]]).slogdet()
>>> float(sign), round(float(logabsdet), 6)
(-1.0, 2.079442)
)";
inline constexpr const char* LU_log_det = R"(log |det A|, one for each matrix.

>>> round(float(trifactor.lu([[0., 2.], [4., 4.]]).log_det()), 6)
2.079442
)";
inline constexpr const char* LU_inverse = R"(A^-1. out: where it goes.

>>> trifactor.lu([[0., 2.], [4., 0.]]).inverse()
array([[0.  , 0.25],
       [0.5 , 0.  ]])
)";
inline constexpr const char* LU_L = R"(L of P A = L U, with its diagonal of ones.

>>> trifactor.lu([[2., 4.], [1., 3.]]).L
array([[1. , 0. ],
       [0.5, 1. ]])
)";
inline constexpr const char* LU_U = R"(U of P A = L U.

>>> trifactor.lu([[2., 4.], [1., 3.]]).U
array([[2., 4.],
       [0., 1.]])
)";
inline constexpr const char* LU_p = R"(Row i of P A is row p[i] of A.

>>> trifactor.lu([[0., 1.], [1., 0.]]).p
array([1, 0], dtype=int32)
)";
inline constexpr const char* LU_info = R"(For each matrix 0, or the first k whose pivot is exactly zero.

>>> trifactor.lu([[1., 1.], [1., 1.]]).info
array(2, dtype=int32)
)";

inline constexpr const char* solve = R"(Solves A x = b.

A has shape (..., n, n), or is a list; b has shape (n,), (..., n) with the batch of A, or (..., n, k). assume_a:
'pos' takes Cholesky and reads one triangle (lower says which), 'gen' takes LU. None: on the host Cholesky where A is
hermitian by its values, LU where it is not or where that fails; on a device LU. overwrite_a, overwrite_b: their
memory may be used. out: where the solution goes. check: raise NotPositiveDefinite or Singular, which on a device
waits for the result.

>>> trifactor.solve([[4., 2.], [2., 5.]], [8., 6.])
array([1.75, 0.5 ])
>>> A = np.array([np.eye(3), 2 * np.eye(3)])
>>> trifactor.solve(A, np.ones(3), assume_a="pos")
array([[1. , 1. , 1. ],
       [0.5, 0.5, 0.5]])
)";
inline constexpr const char* inv = R"(A^-1, by LU, or by Cholesky where assume_a is 'pos'.

>>> trifactor.inv([[0., 2.], [4., 0.]])
array([[0.  , 0.25],
       [0.5 , 0.  ]])
)";
inline constexpr const char* slogdet =
    R"((sign, logabsdet) with det A = sign * exp(logabsdet); a singular matrix has (0, -inf).

>>> sign, logabsdet = trifactor.slogdet(np.diag([2., -4.]))
>>> float(sign), round(float(logabsdet), 6)
(-1.0, 2.079442)
)";

inline constexpr const char* info =
    R"(What the library found on this machine, as a dict: version, devices, blas, why_no_cuda.

>>> trifactor.info()["devices"][0]["number"]
-1
)";
inline constexpr const char* release_queues = R"(Gives back the memory that this thread's queues keep from call to call.

Queues are kept for each CUDA stream. Call it before you destroy a stream that was made outside of PyTorch and CuPy.

>>> trifactor.release_queues()
)";

}  // namespace trifactor::python::docs
