"""What can go wrong. All of it is also an error of a kind that callers know: numpy.linalg.LinAlgError, MemoryError."""

from numpy.linalg import LinAlgError


def _where(item):
    return "" if item is None else f", in item {item[0] if len(item) == 1 else item}"


class _AtColumn(LinAlgError):
    """order counts from 1 as LAPACK's info does, column from 0; item is where in a batch the matrix is, or None."""

    def __init__(self, order, item=None, sparse=False):
        self.order, self.column, self.item, self.sparse = order, order - 1, item, sparse
        super().__init__(self._text() + _where(item))

    def __reduce__(self):
        return (type(self), (self.order, self.item, self.sparse))


class NotPositiveDefinite(_AtColumn):
    """The leading minor of this order is not positive definite; of a sparse matrix, the pivot of this column.

    >>> try:
    ...     trifactor.cholesky(np.diag([1., -1., 1.]))
    ... except trifactor.NotPositiveDefinite as e:
    ...     print(e.column, e.order, e.item)
    1 2 None
    """

    def _text(self):
        if self.sparse:
            return f"A is not positive definite: the pivot of column {self.column} counted from 0 is not positive"
        return (f"A is not positive definite: its leading minor of order {self.order}, at column {self.column} "
                "counted from 0")


class Singular(_AtColumn):
    """A pivot is exactly zero.

    >>> try:
    ...     trifactor.solve(np.zeros((3, 2, 2)), np.ones(2))
    ... except trifactor.Singular as e:
    ...     print(e.column, e.item)
    0 (0,)
    """

    def _text(self):
        return f"A is singular: its pivot in column {self.column} counted from 0 is zero"


class OutOfMemory(MemoryError):
    """The host's or the device's memory ran out; the message says how many bytes were asked for."""


class DeviceFault(RuntimeError):
    """There is no such device, or it or its driver reported a fault."""


for _error in (NotPositiveDefinite, Singular, OutOfMemory, DeviceFault):
    _error.__module__ = "trifactor"
