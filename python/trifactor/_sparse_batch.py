"""Sparse Cholesky factors of many matrices with one pattern."""

from typing import Any

import numpy as np

from . import _core
from ._errors import NotPositiveDefinite
from ._patterns import beside, of_known_dtype, readable, stream_of
from ._rhs import solved


class FactorBatch:
    """P A_i P^T = L_i L_i^H of many matrices with the entries of one, made by Factor.cholesky_batch.

    >>> A = sp.csc_matrix([[4., 2.], [2., 5.]])
    >>> F = trifactor.sparse.analyze(A).cholesky_batch([A, 2 * A, 4 * A])
    >>> F.count, F.info
    (3, array([0, 0, 0], dtype=int32))
    >>> F(np.array([[6., 7.]] * 3))
    array([[1.  , 1.  ],
           [0.5 , 0.5 ],
           [0.25, 0.25]])
    """

    def __init__(self, factor, values, beta, check):
        self._plan, self._pattern, self._device = factor._plan, factor._pattern, factor._device
        values = self._values(values)
        self._shape, self._dtype = values.shape, str(values.dtype)
        self._numeric = _core.SparseCholeskyBatch(self._plan, values.shape[0], self._dtype, self._device,
                                                  *stream_of(values, self._device), *factor._options)
        self._factor(values, beta, check)

    def _values(self, values):
        """As an array of shape (count, entries of the plan)."""
        if not hasattr(values, "ndim"):   # matrices
            found = [self._pattern.values(A, f"A[{i}]") for i, A in enumerate(values)]
            if not found:
                raise ValueError("no matrices were given: an array of shape (0, entries) stands for none")
            dtype = np.result_type(*(str(v.dtype) for v in found))
            if hasattr(found[0], "get"):
                import cupy
                return cupy.stack([v.astype(dtype) for v in found])
            return np.stack([v.astype(dtype) for v in found])
        entries = len(self._pattern.given[1])
        if values.ndim != 2 or values.shape[1] != entries:
            raise ValueError(f"values have shape {tuple(values.shape)} but must have (count, {entries}), a row for each "
                             "matrix in the order of the data that was analysed")
        values = of_known_dtype(values, "values have")
        kept = self._pattern.kept
        return values if kept is None else values[:, beside(kept, values)]

    def _factor(self, values, beta, check):
        self._info = self._numeric.factor(readable(values, self._device).reshape(-1), float(beta))
        failed = np.flatnonzero(self._info)
        if check and len(failed):
            raise NotPositiveDefinite(int(self._info[failed[0]]), (int(failed[0]),), True)

    def cholesky_inplace(self, values: Any, beta: float = 0.0, *, check: bool = True) -> None:
        """Factors A_i + beta I for other values of as many matrices, in place of the last ones.

        >>> A = sp.diags([4., 9.], format="csc")
        >>> F = trifactor.sparse.analyze(A).cholesky_batch([A, A])
        >>> F.cholesky_inplace(np.array([[1., 4.], [4., 1.]]))
        >>> F.D()
        array([[1., 4.],
               [4., 1.]])
        """
        values = self._values(values)
        if values.shape != self._shape or str(values.dtype) != self._dtype:
            raise ValueError(f"values have shape {tuple(values.shape)} and dtype {values.dtype} but those of this object "
                             f"have {tuple(self._shape)} and {self._dtype}")
        self._factor(values, beta, check)

    def __call__(self, b: Any) -> Any:
        """A_i x_i = b_i, as solve.

        >>> F = trifactor.sparse.analyze(sp.identity(2, format="csc")).cholesky_batch(np.array([[1., 2.], [4., 5.]]))
        >>> F(np.array([[1., 2.], [4., 5.]]))
        array([[1., 1.],
               [1., 1.]])
        """
        return self.solve(b)

    def solve(self, b: Any) -> Any:
        """A_i x_i = b_i for every i, with b of shape (count, n) or (count, n, k).

        Where the factorization failed, x_i is b_i.

        >>> F = trifactor.sparse.analyze(sp.identity(2, format="csc")).cholesky_batch(np.array([[1., 2.], [4., 5.]]))
        >>> F.solve(np.ones((2, 2, 3))).shape
        (2, 2, 3)
        """
        return solved(b, self._dtype, self._numeric.solve)

    @property
    def count(self) -> int:
        """How many matrices there are.

        >>> trifactor.sparse.analyze(sp.identity(2, format="csc")).cholesky_batch(np.ones((5, 2))).count
        5
        """
        return self._shape[0]

    @property
    def info(self) -> np.ndarray:
        """For each matrix 0, or the column that failed, counted from 1.

        >>> F = trifactor.sparse.analyze(sp.identity(2, format="csc"))
        >>> F.cholesky_batch(np.array([[1., 1.], [1., -1.]]), check=False).info
        array([0, 2], dtype=int32)
        """
        return self._info.copy()

    def logdet(self) -> np.ndarray:
        """log det A_i; NaN where it failed.

        >>> F = trifactor.sparse.analyze(sp.identity(2, format="csc")).cholesky_batch(np.array([[1., 2.], [4., 4.]]))
        >>> F.logdet().round(4)
        array([0.6931, 2.7726])
        """
        return self._numeric.log_det()

    def D(self) -> np.ndarray:
        """The diagonals of D_i in L_i D_i L_i^H = P A_i P^T, of shape (count, n); NaN where it failed.

        >>> trifactor.sparse.analyze(sp.identity(2, format="csc")).cholesky_batch(np.array([[4., 9.]])).D()
        array([[4., 9.]])
        """
        return self._numeric.diagonal().reshape(self.count, -1 if self.count else self._plan.n) ** 2

    @property
    def memory(self) -> "dict[str, int]":
        """Bytes that the factors hold, by what they are for, as Factor.memory.

        >>> trifactor.sparse.analyze(sp.identity(2, format="csc")).cholesky_batch(np.ones((5, 2))).memory["values"]
        80
        """
        return self._numeric.memory()
