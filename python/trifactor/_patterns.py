"""Sparse matrices of SciPy and CuPy as the extension takes them."""

import numpy as np

from . import _core

DTYPES = ("float32", "float64", "complex64", "complex128")
NAMES = {np.dtype(name): name for name in DTYPES}
HELD = {"float32": DTYPES[:1], "float64": DTYPES[:2], "complex64": ("float32", "complex64"), "complex128": DTYPES}
HELD_BY_PARTS = {"float32": ("float32", "complex64"), "float64": DTYPES}


def is_cupy(A):
    return type(A).__module__.partition(".")[0] == "cupyx"


def of_known_dtype(x, name):
    """x with one of the four dtypes: integers become float64, and the other byte order goes."""
    if x.dtype in NAMES:
        return x
    if isinstance(x.dtype, np.dtype):
        dtype = np.dtype("float64") if x.dtype.kind in "iub" else x.dtype.newbyteorder("=")
        if dtype in NAMES:
            return x.astype(dtype)
    raise TypeError(f"{name} dtype {x.dtype} but must have {', '.join(DTYPES[:-1])} or {DTYPES[-1]}")


def check_held(name, given, dtype, held=HELD):
    """That a factor of this dtype holds entries of a given one."""
    if given not in held[dtype]:
        raise TypeError(f"{name} has dtype {given} but the factor {dtype}: {name} must have a dtype that the factor's "
                        "holds without loss")


def compressed(A, name="A"):
    """A as CSC or CSR, with one of the four dtypes."""
    if not hasattr(A, "tocsc") or not hasattr(A, "dtype"):
        raise TypeError(f"{name} is a {type(A).__module__}.{type(A).__qualname__} but must be a sparse matrix of SciPy "
                        "or CuPy; trifactor.cholesky and trifactor.lu take dense arrays")
    if len(A.shape) != 2 or A.shape[0] != A.shape[1]:
        raise ValueError(f"{name} has shape {A.shape} but must be square")
    if A.format not in ("csc", "csr"):
        A = A.tocsc()
    return of_known_dtype(A, f"{name} has")


def to_host(x):
    return x.get() if hasattr(x, "get") else x


def readable(values, device):
    """Values where a factor on this device, or on the host, can read them."""
    if isinstance(values, np.ndarray):
        return np.ascontiguousarray(values)
    return values.get() if device < 0 else values


def stream_of(values, device):
    """The address of the current stream of CuPy's values, and what keeps it; of others none."""
    if device < 0 or not hasattr(values, "get"):
        return None, None
    import cupy
    with values.device:
        current = cupy.cuda.get_current_stream()
    return current.ptr, current


def beside(x, like):
    """An array of NumPy's where another one is."""
    if not hasattr(like, "get"):
        return x
    import cupy
    with like.device:
        return cupy.asarray(x)


class Pattern:
    """Where the entries of a matrix are: finds the values of another matrix with the same entries.

    triangle: "full", or "upper" to leave out the entries below the diagonal.
    """

    def __init__(self, A, triangle="full"):
        self.shape, self.format, self.cupy = A.shape, A.format, is_cupy(A)
        self.array = "array" in type(A).__name__
        self.given = A.indptr.copy(), A.indices.copy()   # SciPy sorts the caller's in place
        indptr, indices = (to_host(x) for x in self.given)
        if indptr.dtype != indices.dtype:
            wide = np.promote_types(indptr.dtype, indices.dtype)
            indptr, indices = indptr.astype(wide), indices.astype(wide)
        self.kept = None
        if triangle == "upper":
            n = self.shape[0]
            if not (len(indptr) == n + 1 and indptr[0] == 0 and (np.diff(indptr) >= 0).all()
                    and indptr[-1] == len(indices) and (indices >= 0).all() and (indices < n).all()):
                # says what is wrong
                _core.analyze(indptr, indices, n, A.format == "csr", "full", "natural", None, 1, "")
            major = np.repeat(np.arange(self.shape[0]), np.diff(indptr))
            kept = indices <= major if A.format == "csc" else indices >= major
            counts = np.bincount(major[kept], minlength=self.shape[0])
            self.kept = np.flatnonzero(kept)
            indptr = np.concatenate([[0], np.cumsum(counts)]).astype(indices.dtype)
            indices = indices[self.kept]
        self.indptr, self.indices = np.ascontiguousarray(indptr), np.ascontiguousarray(indices)

    def values(self, A, name="A", dtype=None):
        """The values of A in the order of this pattern, or a ValueError; in a factor's dtype, or a TypeError."""
        A = compressed(A, name)
        if A.shape != self.shape:
            raise ValueError(f"{name} has shape {A.shape} but {self.shape} was analysed")
        if A.format != self.format:
            A = A.tocsc() if self.format == "csc" else A.tocsr()
        if dtype:
            check_held(name, str(A.dtype), dtype)
        data = A.data if self._same(A) else self._reordered(A, name)
        data = data.astype(dtype or data.dtype, copy=False)
        return data if self.kept is None else data[beside(self.kept, data)]

    def _same(self, A):
        mine, theirs = (A.indptr, A.indices), self.given
        if is_cupy(A) != self.cupy:
            mine, theirs = map(to_host, mine), map(to_host, theirs)
        return all(x.shape == y.shape and bool((x == y).all()) for x, y in zip(mine, theirs))

    def _reordered(self, A, name):
        """The same entries in another order within columns or rows."""
        import scipy.sparse as sp
        kind = sp.csc_array if self.format == "csc" else sp.csr_array
        indptr, indices = (to_host(x) for x in self.given)
        places = kind((np.arange(1, len(indices) + 1), indices.copy(), indptr.copy()), shape=self.shape)
        mine = kind((to_host(A.data).copy(), to_host(A.indices).copy(), to_host(A.indptr).copy()), shape=self.shape)
        places.sort_indices()
        mine.sum_duplicates()
        if not (np.array_equal(mine.indptr, places.indptr) and np.array_equal(mine.indices, places.indices)):
            raise ValueError(f"{name} has other entries than the matrix that was analysed: {mine.nnz} in other places, "
                             f"where {places.nnz} were; analyze it anew")
        data = np.empty_like(mine.data)
        data[places.data - 1] = mine.data
        return beside(data, A.data)

    def sparse(self, data, indices, indptr, shape=None):
        """A CSC matrix of the kind that was given."""
        if self.cupy:
            import cupy
            from cupyx.scipy.sparse import csc_matrix
            data, indices, indptr = cupy.asarray(data), cupy.asarray(indices), cupy.asarray(indptr)
        else:
            import scipy.sparse as sp
            csc_matrix = sp.csc_array if self.array else sp.csc_matrix
        return csc_matrix((data, indices, indptr), shape=shape or self.shape)
