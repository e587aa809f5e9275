"""Sparse matrices of SciPy and CuPy as the extension takes them."""

import numpy as np

DTYPES = ("float32", "float64", "complex64", "complex128")


def is_cupy(A):
    return type(A).__module__.partition(".")[0] == "cupyx"


def compressed(A, name="A"):
    """A as CSC or CSR, with one of the four dtypes."""
    if not hasattr(A, "tocsc") or not hasattr(A, "dtype"):
        raise TypeError(f"{name} is a {type(A).__module__}.{type(A).__qualname__} but must be a sparse matrix of SciPy "
                        "or CuPy; trifactor.cholesky and trifactor.lu take dense arrays")
    if len(A.shape) != 2 or A.shape[0] != A.shape[1]:
        raise ValueError(f"{name} has shape {A.shape} but must be square")
    if A.format not in ("csc", "csr"):
        A = A.tocsc()
    if str(A.dtype) not in DTYPES:
        if A.dtype.kind not in "iub":
            raise TypeError(f"{name} has dtype {A.dtype} but must have {', '.join(DTYPES[:-1])} or {DTYPES[-1]}")
        A = A.astype("float64")
    return A


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
        self.given = A.indptr, A.indices
        indptr, indices = to_host(A.indptr), to_host(A.indices)
        if indptr.dtype != indices.dtype:
            wide = np.promote_types(indptr.dtype, indices.dtype)
            indptr, indices = indptr.astype(wide), indices.astype(wide)
        self.kept = None
        if triangle == "upper":
            major = np.repeat(np.arange(self.shape[0]), np.diff(indptr))
            kept = indices <= major if A.format == "csc" else indices >= major
            counts = np.bincount(major[kept], minlength=self.shape[0])
            self.kept = np.flatnonzero(kept)
            indptr = np.concatenate([[0], np.cumsum(counts)]).astype(indices.dtype)
            indices = indices[self.kept]
        self.indptr, self.indices = np.ascontiguousarray(indptr), np.ascontiguousarray(indices)

    def values(self, A, name="A"):
        """The values of A in the order of this pattern, or a ValueError."""
        A = compressed(A, name)
        if A.shape != self.shape:
            raise ValueError(f"{name} has shape {A.shape} but {self.shape} was analysed")
        if A.format != self.format:
            A = A.tocsc() if self.format == "csc" else A.tocsr()
        data = A.data if self._same(A) else self._reordered(A, name)
        return data if self.kept is None else data[beside(self.kept, data)]

    def _same(self, A):
        indptr, indices = self.given
        if A.indptr is indptr and A.indices is indices:
            return True
        if is_cupy(A) != self.cupy:
            pairs = (A.indptr, indptr), (A.indices, indices)
            return all(np.array_equal(to_host(mine), to_host(theirs)) for mine, theirs in pairs)
        if A.indptr.shape != indptr.shape or A.indices.shape != indices.shape:
            return False
        return bool((A.indptr == indptr).all()) and bool((A.indices == indices).all())

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
