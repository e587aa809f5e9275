"""Sparse matrices: analyse the pattern once, factor as often as the values change, solve as often as you like.

Cholesky has the names of scikit-sparse, LU those of SciPy's SuperLU. Matrices of SciPy are factored on the host,
those of CuPy on their device, unless device says otherwise.

>>> import scipy.sparse as sp
>>> A = sp.diags([-1., 2., -1.], [-1, 0, 1], shape=(4, 4), format="csc")
>>> F = trifactor.sparse.cholesky(A)
>>> F(np.array([1., 0., 0., 1.])).round(12)
array([1., 1., 1., 1.])
"""

import functools
from typing import Any, Optional, Tuple

import numpy as np

from . import _core, _kinds
from ._patterns import Pattern, compressed, readable, stream_of
from ._results import RefinedSolution, SlogdetResult
from ._rhs import refined, solved
from ._sparse_batch import FactorBatch
from ._sparse_lu import LuFactor, analyze_lu, lu
from ._sparse_options import ORDERINGS, byte_count, device_number, ordering_named

__all__ = ["Factor", "FactorBatch", "LuFactor", "RefinedSolution", "analyze", "analyze_lu", "cholesky", "lu"]

class Factor:
    """P A P^T = L L^H of a sparse matrix, made by trifactor.sparse.cholesky, or its plan alone, made by analyze.

    >>> F = trifactor.sparse.cholesky(sp.diags([4., 9.], format="csc"))
    >>> F(np.array([4., 9.]))
    array([1., 1.])
    """

    def __init__(self, plan, pattern, dtype, device, options):
        self._plan, self._pattern, self._device = plan, pattern, device
        self._options = options   # max_device_bytes, tuning
        self._dtype, self._numeric = dtype, None

    # The factorization.

    def cholesky_inplace(self, A: Any, beta: float = 0.0) -> None:
        """Factors A + beta I, a matrix with the entries that were analysed, in place of the last one.

        >>> A = sp.diags([4., 9.], format="csc")
        >>> F = trifactor.sparse.analyze(A)
        >>> F.cholesky_inplace(A)
        >>> F.cholesky_inplace(2 * A, beta=2)
        >>> F.D()
        array([10., 20.])
        """
        values = self._pattern.values(A)
        if self._numeric is None or str(values.dtype) != self._dtype:
            self._dtype = str(values.dtype)
            self._numeric = None   # its memory is given back first
            self._numeric = _core.SparseCholesky(self._plan, self._dtype, self._device, *stream_of(values, self._device),
                                                  *self._options)
        self._numeric.factor(readable(values, self._device), float(beta))

    def cholesky(self, A: Any, beta: float = 0.0) -> "Factor":
        """A new factor, with the plan of this one.

        >>> A = sp.diags([4., 9.], format="csc")
        >>> F = trifactor.sparse.analyze(A).cholesky(A)
        >>> round(F.logdet(), 6) == round(float(np.log(36)), 6)
        True
        """
        factor = Factor(self._plan, self._pattern, self._dtype, self._device, self._options)
        factor.cholesky_inplace(A, beta)
        return factor

    def cholesky_batch(self, values: Any, beta: float = 0.0, *, check: bool = True) -> FactorBatch:
        """Factors many matrices with the entries that were analysed at once: small ones fill a device together.

        values: an array of shape (count, entries) with a row for the data of each matrix, or a list of matrices. check:
        raise NotPositiveDefinite for the first one that is not; with False see info, and the others are factored.

        >>> A = sp.csc_matrix([[4., 2.], [2., 5.]])
        >>> F = trifactor.sparse.analyze(A).cholesky_batch(np.array([A.data, 2 * A.data]))
        >>> F.solve(np.array([[6., 7.], [6., 7.]]))
        array([[1. , 1. ],
               [0.5, 0.5]])
        """
        return FactorBatch(self, values, beta, check)

    @property
    def _factored(self):
        if self._numeric is None:
            raise ValueError("nothing was factored yet: call cholesky_inplace first")
        return self._numeric

    # Solves.

    def __call__(self, b: Any) -> Any:
        """A x = b, as solve_A.

        >>> trifactor.sparse.cholesky(sp.diags([4., 9.], format="csc"))(np.array([[4., 8.], [9., 18.]]))
        array([[1., 2.],
               [1., 2.]])
        """
        return self.solve_A(b)

    def solve_A(self, b: Any) -> Any:
        """A x = b, with b of shape (n,) or (n, k), dense or sparse, real or complex.

        >>> trifactor.sparse.cholesky(sp.diags([4., 9.], format="csc")).solve_A(np.array([4., 9.]))
        array([1., 1.])
        """
        return self._solve(b, "A")

    solve = solve_A

    def _solve(self, b, *parts):
        """One part after another: its name in the extension, or a power of diag(L) to multiply with."""
        return solved(b, self._dtype, lambda x: functools.reduce(self._apply, parts, x))

    def _apply(self, x, part):
        return self._factored.solve(x, part) if isinstance(part, str) else self._scaled(x, part)

    def _scaled(self, x, power):
        """diag(L)^power x"""
        n = self._pattern.shape[0]
        if x.ndim not in (1, 2) or x.shape[0] != n:
            raise ValueError(f"b has shape {tuple(x.shape)} but must be ({n},) or ({n}, k)")
        d = (_kinds.find(x) or _kinds.NUMPY).from_numpy(self._factored.diagonal() ** power, x)
        return x * (d if x.ndim == 1 else d[:, None])

    def solve_LDLt(self, b: Any) -> Any:
        """L D L^H x = b: a solve without the permutations.

        >>> trifactor.sparse.cholesky(sp.diags([4., 4.], format="csc")).solve_LDLt(np.array([4., 8.]))
        array([1., 2.])
        """
        return self._solve(b, "L", "LH")

    def solve_L(self, b: Any, use_LDLt_decomposition: bool = True) -> Any:
        """L x = b with the unit L of L D L^H, or else with that of L L^H.

        >>> trifactor.sparse.cholesky(sp.diags([4., 4.], format="csc")).solve_L(np.array([4., 8.]), False)
        array([2., 4.])
        """
        return self._solve(b, "L", *((1,) if use_LDLt_decomposition else ()))

    def solve_Lt(self, b: Any, use_LDLt_decomposition: bool = True) -> Any:
        """L^H x = b with the unit L of L D L^H, or else with that of L L^H.

        >>> trifactor.sparse.cholesky(sp.diags([4., 4.], format="csc")).solve_Lt(np.array([4., 8.]), False)
        array([2., 4.])
        """
        return self._solve(b, *((1,) if use_LDLt_decomposition else ()), "LH")

    def solve_D(self, b: Any) -> Any:
        """D x = b with the D of L D L^H.

        >>> trifactor.sparse.cholesky(sp.diags([4., 4.], format="csc")).solve_D(np.array([4., 8.]))
        array([1., 2.])
        """
        return self._solve(b, -2)

    def solve_LD(self, b: Any) -> Any:
        """L D x = b.

        >>> trifactor.sparse.cholesky(sp.diags([4., 4.], format="csc")).solve_LD(np.array([4., 8.]))
        array([1., 2.])
        """
        return self._solve(b, "L", -1)

    def solve_DLt(self, b: Any) -> Any:
        """D L^H x = b.

        >>> trifactor.sparse.cholesky(sp.diags([4., 4.], format="csc")).solve_DLt(np.array([4., 8.]))
        array([1., 2.])
        """
        return self._solve(b, -1, "LH")

    def apply_P(self, b: Any) -> Any:
        """P b.

        >>> F = trifactor.sparse.cholesky(sp.identity(3, format="csc"))
        >>> b = np.array([1., 2., 3.])
        >>> np.array_equal(F.apply_P(b), b[F.P()])
        True
        """
        return self._solve(b, "P")

    def apply_Pt(self, b: Any) -> Any:
        """P^T b.

        >>> F = trifactor.sparse.cholesky(sp.identity(3, format="csc"))
        >>> b = np.array([1., 2., 3.])
        >>> np.array_equal(F.apply_Pt(F.apply_P(b)), b)
        True
        """
        return self._solve(b, "Pt")

    def solve_refined(self, A: Any, b: Any) -> RefinedSolution:
        """A x = b with iterative refinement; A is the matrix that was factored, or one near it.

        >>> A = sp.diags([4., 9.], format="csc")
        >>> trifactor.sparse.cholesky(A).solve_refined(A, np.array([4., 9.])).x
        array([1., 1.])
        """
        factored = self._factored
        values = readable(self._pattern.values(A, dtype=self._dtype), self._device)
        return refined(b, self._dtype, lambda x: factored.solve_refined(values, x))

    # What the factor is.

    def L(self) -> Any:
        """L of L L^H = P A P^T, as CSC.

        >>> trifactor.sparse.cholesky(sp.diags([4., 9.], format="csc"), ordering_method="natural").L().toarray()
        array([[2., 0.],
               [0., 3.]])
        """
        return self._pattern.sparse(*self._factored.lower())

    def _unit(self):
        data, indices, indptr = self._factored.lower()
        return data / np.repeat(self._factored.diagonal(), np.diff(indptr)), indices, indptr

    def L_D(self) -> Tuple[Any, Any]:
        """The unit L, and D as a diagonal matrix, of L D L^H = P A P^T.

        >>> L, D = trifactor.sparse.cholesky(sp.diags([4., 4.], format="csc")).L_D()
        >>> (L @ D @ L.T).toarray()
        array([[4., 0.],
               [0., 4.]])
        """
        n = self._pattern.shape[0]
        D = self._pattern.sparse(np.asarray(self.D()), np.arange(n), np.arange(n + 1))
        return self._pattern.sparse(*self._unit()), D

    def LD(self) -> Any:
        """The unit L below the diagonal and D on it, in one CSC matrix.

        >>> trifactor.sparse.cholesky(sp.diags([4., 4.], format="csc")).LD().toarray()
        array([[4., 0.],
               [0., 4.]])
        """
        data, indices, indptr = self._unit()
        data[indptr[:-1]] = self.D()
        return self._pattern.sparse(data, indices, indptr)

    def D(self) -> np.ndarray:
        """The diagonal of D in L D L^H = P A P^T.

        >>> trifactor.sparse.cholesky(sp.diags([4., 4.], format="csc")).D()
        array([4., 4.])
        """
        return self._factored.diagonal() ** 2

    def P(self) -> np.ndarray:
        """The permutation: L L^H = A[p][:, p].

        >>> trifactor.sparse.cholesky(sp.identity(3, format="csc"), ordering_method=[2, 0, 1]).P()
        array([2, 0, 1])
        """
        return self._plan.permutation

    def logdet(self) -> float:
        """log det A.

        >>> round(trifactor.sparse.cholesky(sp.diags([2., 4.], format="csc")).logdet(), 6)
        2.079442
        """
        return self._factored.log_det()

    log_det = logdet

    def slogdet(self) -> SlogdetResult:
        """(1, log det A), as numpy.linalg.slogdet.

        >>> trifactor.sparse.cholesky(sp.diags([1., 1.], format="csc")).slogdet().sign
        1.0
        """
        return SlogdetResult(1.0, self.logdet())

    def det(self) -> float:
        """det A; it overflows where logdet does not.

        >>> round(trifactor.sparse.cholesky(sp.diags([2., 4.], format="csc")).det(), 9)
        8.0
        """
        return float(np.exp(self.logdet()))

    def inv(self) -> Any:
        """A^-1 as CSC, with every entry: seldom what is needed.

        >>> trifactor.sparse.cholesky(sp.diags([2., 4.], format="csc")).inv().toarray()
        array([[0.5 , 0.  ],
               [0.  , 0.25]])
        """
        n = self._pattern.shape[0]
        X = np.asarray(self._solve(np.eye(n, dtype=self._dtype), "A"))
        indices = np.tile(np.arange(n), n)
        return self._pattern.sparse(X.T.ravel(), indices, np.arange(n + 1) * n)

    def rcond(self) -> float:
        """An estimate of 1 / (|A| |A^-1|): solutions lose about -log10 of it of their digits.

        >>> round(trifactor.sparse.cholesky(sp.diags([1., 4.], format="csc")).rcond(), 9)
        0.25
        """
        return self._factored.rcond()

    @property
    def plan(self) -> _core.SparsePlan:
        """Fill, operations, fronts and ordering, before anything is factored.

        >>> trifactor.sparse.analyze(sp.identity(5, format="csc")).plan.factor_nonzeros
        5
        """
        return self._plan

    @property
    def memory(self) -> "dict[str, int]":
        """Bytes that the factor holds, by what they are for.

        'host' is page-locked memory of the host, for a factor that does not fit on the device; no part of 'total'.

        >>> memory = trifactor.sparse.cholesky(sp.identity(5, format="csc")).memory
        >>> memory["total"] > 0, memory["host"]
        (True, 0)
        """
        return self._factored.memory()


def analyze(A: Any, mode: str = "auto", ordering_method: Any = "default", use_long: Any = None, *, lower: bool = True,
            device: Optional[str] = None, expected_factorizations: int = 1, max_device_bytes: Optional[int] = None,
            tuning: str = "") -> Factor:
    """Plans the factorization of all matrices with the entries of A; nothing is factored yet.

    A is CSC, CSR or COO of SciPy or CuPy, stored in full or as one triangle; the lower one is read, or the upper one
    where lower is False. ordering_method: 'default', 'amd', 'metis', 'natural', or a permutation. device: 'cpu',
    'cuda', 'cuda:1', or None for where A is. expected_factorizations: the more, the longer an ordering may take. mode
    and use_long are scikit-sparse's and change nothing.

    max_device_bytes: what the factor may take of a CUDA device, beside copies of A's values and of b; None: what is
    free. A factor that does not fit lies in page-locked memory of the host, and passes through the device in every
    factorization and solve. Too little is a ValueError that names the least, when the factor is made.

    >>> A = sp.diags([-1., 2., -1.], [-1, 0, 1], shape=(4, 4), format="csc")
    >>> F = trifactor.sparse.analyze(A)
    >>> F.plan.n, F.plan.factor_nonzeros
    (4, 7)
    >>> F.cholesky_inplace(A)
    """
    if mode not in ("auto", "simplicial", "supernodal"):
        raise ValueError(f"mode = {mode!r} must be 'auto', 'simplicial' or 'supernodal'")
    A = compressed(A)
    number = device_number(device, A)
    options = byte_count("max_device_bytes", max_device_bytes), tuning
    pattern = Pattern(A, "full" if lower else "upper")
    ordering, permutation = ordering_named("ordering_method", ordering_method, ORDERINGS)
    plan = _core.analyze(pattern.indptr, pattern.indices, A.shape[0], A.format == "csr", "full" if lower else "upper",
                         ordering, permutation, expected_factorizations, tuning)
    return Factor(plan, pattern, str(A.dtype), number, options)


def cholesky(A: Any, beta: float = 0.0, mode: str = "auto", ordering_method: Any = "default", use_long: Any = None, *,
             lower: bool = True, device: Optional[str] = None, expected_factorizations: int = 1,
             max_device_bytes: Optional[int] = None, tuning: str = "") -> Factor:
    """Factors A + beta I, symmetric or hermitian and positive definite. The arguments are those of analyze.

    >>> A = sp.csc_matrix([[4., 2., 0.], [2., 5., 1.], [0., 1., 6.]])
    >>> F = trifactor.sparse.cholesky(A)
    >>> np.allclose(A @ F(np.ones(3)), 1)
    True
    >>> p = F.P()
    >>> np.allclose((F.L() @ F.L().T).toarray(), A.toarray()[p][:, p])
    True
    >>> trifactor.sparse.cholesky(sp.diags([1., -1., 1.], format="csc"))
    Traceback (most recent call last):
        ...
    trifactor.NotPositiveDefinite: A is not positive definite: the pivot of column 1 counted from 0 is not positive
    """
    factor = analyze(A, mode, ordering_method, use_long, lower=lower, device=device,
                     expected_factorizations=expected_factorizations, max_device_bytes=max_device_bytes, tuning=tuning)
    factor.cholesky_inplace(A, beta)
    return factor
