"""Sparse LU, on the host."""

from typing import Any, Optional, Tuple

import numpy as np

from . import _core
from ._patterns import Pattern, compressed, is_cupy
from ._results import RefinedSolution, SlogdetResult
from ._rhs import refined, solved
from ._sparse_options import LU_ORDERINGS, ordering_named


class LuFactor:
    """P A Q = L U of a sparse matrix on the host, made by trifactor.sparse.lu, or its plan alone, made by analyze_lu.

    >>> F = trifactor.sparse.lu(sp.csc_matrix([[0., 2.], [4., 1.]]))
    >>> F.solve(np.array([2., 5.]))
    array([1., 1.])
    """

    def __init__(self, plan, pattern, options):
        self._plan, self._pattern, self._options, self._numeric, self._dtype = plan, pattern, options, None, None

    def lu_inplace(self, A: Any) -> None:
        """Factors A, a matrix with the entries that were analysed, in place of the last one.

        >>> A = sp.csc_matrix([[0., 2.], [4., 1.]])
        >>> F = trifactor.sparse.analyze_lu(A)
        >>> F.lu_inplace(A)
        >>> F.lu_inplace(2 * A)
        >>> F(np.array([4., 10.]))
        array([1., 1.])
        """
        values = np.ascontiguousarray(self._pattern.values(A))
        if self._numeric is None or str(values.dtype) != self._dtype:
            self._dtype = str(values.dtype)
            self._numeric = _core.SparseLu(self._plan, self._dtype, *self._options)
        self._numeric.factor(values)

    @property
    def _factored(self):
        if self._numeric is None:
            raise ValueError("nothing was factored yet: call lu_inplace first")
        return self._numeric

    def solve(self, b: Any, trans: str = "N") -> Any:
        """A x = b, A^T x = b (trans = 'T') or A^H x = b ('H'), with b of shape (n,) or (n, k), dense or sparse.

        >>> F = trifactor.sparse.lu(sp.csc_matrix([[2., 2.], [0., 4.]]))
        >>> F.solve(np.array([2., 6.]), "T")
        array([1., 1.])
        """
        factored = self._factored
        return solved(b, self._dtype, lambda x: factored.solve(x, trans))

    def __call__(self, b: Any) -> Any:
        """A x = b, as solve.

        >>> trifactor.sparse.lu(sp.identity(2, format="csr"))(np.array([1., 2.]))
        array([1., 2.])
        """
        return self.solve(b)

    def solve_refined(self, A: Any, b: Any, trans: str = "N") -> RefinedSolution:
        """The same with iterative refinement; A is the matrix that was factored, or one near it.

        >>> A = sp.csc_matrix([[0., 2.], [4., 1.]])
        >>> trifactor.sparse.lu(A).solve_refined(A, np.array([2., 5.])).x
        array([1., 1.])
        """
        factored = self._factored
        values = np.ascontiguousarray(self._pattern.values(A, dtype=self._dtype))
        return refined(b, self._dtype, lambda x: factored.solve_refined(values, x, trans))

    def slogdet(self) -> SlogdetResult:
        """(sign, logabsdet) with det A = sign * exp(logabsdet).

        >>> trifactor.sparse.lu(sp.csc_matrix([[0., 1.], [1., 0.]])).slogdet()
        SlogdetResult(sign=-1.0, logabsdet=0.0)
        """
        return SlogdetResult(*self._factored.slogdet())

    def rcond(self) -> float:
        """An estimate of 1 / (|A| |A^-1|): solutions lose about -log10 of it of their digits.

        >>> trifactor.sparse.lu(sp.diags([1., 4.], format="csc")).rcond()
        0.25
        """
        return self._factored.rcond()

    @property
    def perm_c(self) -> np.ndarray:
        """Column j of A is column perm_c[j] of A Q, as in SciPy's SuperLU; plan.permutation is the inverse.

        >>> A = sp.csc_matrix([[1., 0., 0.], [0., 2., 0.], [0., 0., 3.]])
        >>> F = trifactor.sparse.lu(A, ordering=[2, 0, 1])
        >>> F.perm_c.tolist()
        [1, 2, 0]
        >>> Q = sp.csc_matrix((np.ones(3), (np.arange(3), F.perm_c)))
        >>> (A @ Q).toarray()   # A[:, np.argsort(F.perm_c)]
        array([[0., 1., 0.],
               [0., 0., 2.],
               [3., 0., 0.]])
        """
        return np.argsort(self._plan.permutation)

    @property
    def nnz(self) -> int:
        """Entries of L and U without L's diagonal of ones.

        >>> trifactor.sparse.lu(sp.identity(3, format="csc")).nnz
        3
        """
        return self._factored.nonzeros()

    @property
    def shape(self) -> Tuple[int, int]:
        """The shape of A."""
        return self._pattern.shape

    @property
    def plan(self) -> _core.SparseLuPlan:
        """The order of the columns, and how long it took.

        >>> trifactor.sparse.analyze_lu(sp.identity(3, format="csc")).plan.n
        3
        """
        return self._plan


def analyze_lu(A: Any, *, ordering: Any = "colamd", pivot_threshold: Optional[float] = None,
               equilibrate: bool = True) -> LuFactor:
    """Plans sparse LU of all matrices with the entries of A; nothing is factored yet.

    A is CSC, CSR or COO of SciPy. ordering: 'colamd', 'amd' for nearly symmetric patterns with a strong diagonal,
    'natural', or a permutation: column j of A Q is column ordering[j] of A. pivot_threshold: the diagonal is the pivot
    where it is at least this times the largest entry of its column. equilibrate: rows and columns are scaled by powers
    of 2.

    >>> trifactor.sparse.analyze_lu(sp.identity(3, format="csc")).plan.entries
    3
    """
    A = compressed(A)
    if is_cupy(A):
        raise TypeError("A is on a CUDA device, but sparse LU runs on the host: pass A.get()")
    pattern = Pattern(A)
    name, permutation = ordering_named("ordering", ordering, LU_ORDERINGS)
    plan = _core.analyze_lu(pattern.indptr, pattern.indices, A.shape[0], A.format == "csr", name, permutation)
    return LuFactor(plan, pattern, (pivot_threshold, equilibrate))


def lu(A: Any, *, ordering: Any = "colamd", pivot_threshold: Optional[float] = None,
       equilibrate: bool = True) -> LuFactor:
    """Factors P A Q = L U on the host, with threshold partial pivoting. The arguments are those of analyze_lu.

    >>> A = sp.csr_matrix([[0., 2., 0.], [4., 1., 1.], [0., 0., 3.]])
    >>> np.allclose(A @ trifactor.sparse.lu(A).solve(np.ones(3)), 1)
    True
    >>> trifactor.sparse.lu(sp.csc_matrix([[1., 0.], [0., 0.]]))
    Traceback (most recent call last):
        ...
    trifactor.Singular: A is singular: its pivot in column 1 counted from 0 is zero
    """
    factor = analyze_lu(A, ordering=ordering, pivot_threshold=pivot_threshold, equilibrate=equilibrate)
    factor.lu_inplace(A)
    return factor
