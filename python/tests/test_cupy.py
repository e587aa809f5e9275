"""CuPy's arrays and sparse matrices. Where there is no CuPy, one made of NumPy takes its place on the host for the
dense cases: it has the parts of CuPy that trifactor uses."""
import contextlib
import sys
import types

import numpy as np
import pytest
import trifactor
from array_cases import Arrays, Cases
from matrices import DTYPES

try:
    import cupy
    import cupyx.scipy.sparse as csp
    HERE = not trifactor.info()["why_no_cuda"]
except ImportError:
    HERE = False


def imitation():
    """A module named cupy whose arrays are NumPy's."""
    module = types.ModuleType("cupy")

    class Device(contextlib.nullcontext):
        id = 0

    class ndarray(np.ndarray):
        device = property(lambda self: Device())
        data = property(lambda self: types.SimpleNamespace(ptr=self.ctypes.data))

        def get(self):
            return np.array(self)

        def __dlpack__(self, stream=None):
            assert stream == 1   # the default stream
            return np.asarray(self).__dlpack__()

    ndarray.__module__ = "cupy"
    stream = types.SimpleNamespace(ptr=0)
    module.cuda = types.SimpleNamespace(Device=lambda i: contextlib.nullcontext(), get_current_stream=lambda: stream)
    module.ndarray = ndarray
    module.asarray = lambda x: np.asarray(x).view(ndarray)
    module.empty = lambda shape, dtype: np.empty(shape, dtype).view(ndarray)
    for name in ("swapaxes", "tril", "triu", "eye", "conjugate", "full", "ones_like"):
        setattr(module, name, lambda *given, call=getattr(np, name), **named: module.asarray(call(*given, **named)))
    return module


class CupyArrays(Arrays):
    def __init__(self, module):
        self.cupy = module

    def make(self, x, order="C"):
        t = self.cupy.asarray(np.array(x, order="C"))
        return t.swapaxes(-1, -2).copy().swapaxes(-1, -2) if order == "F" and t.ndim > 1 else t

    def host(self, a):
        return a.get() if hasattr(a, "get") else np.asarray(a)

    def is_mine(self, a):
        return isinstance(a, (self.cupy.ndarray, np.generic))

    def address(self, a):
        return a.data.ptr


@pytest.fixture(scope="module", params=["imitation", pytest.param("cuda", marks=pytest.mark.cuda)])
def arrays(request):
    from trifactor import _kinds
    if request.param == "cuda":
        pytest.importorskip("cupy")
        yield CupyArrays(cupy)
        return
    if HERE:
        pytest.skip("CuPy itself is here")
    module = imitation()
    before, sys.modules["cupy"] = sys.modules.get("cupy"), module
    _kinds._found.pop("cupy", None)
    yield CupyArrays(module)
    _kinds._found.pop("cupy", None)
    sys.modules.pop("cupy") if before is None else sys.modules.update(cupy=before)


class TestCupy(Cases):
    @pytest.mark.parametrize("lower", [True, False])
    def test_sparse_on_the_host(self, arrays, rng, lower):
        """What is CuPy's own of sparse matrices, but for the device."""
        from test_sparse import grid, sp
        if arrays.cupy is not sys.modules.get("cupy") or HERE:
            pytest.skip("CuPy itself is here")

        class csc_matrix:
            format = "csc"

            def __init__(self, A):
                self.shape, self.dtype = A.shape, A.dtype
                self.data, self.indices, self.indptr = (arrays.make(x) for x in (A.data, A.indices, A.indptr))

            def tocsc(self):
                return self

        csc_matrix.__module__ = "cupyx.scipy.sparse"
        A, b = grid(6), rng.standard_normal(36)
        F = trifactor.sparse.cholesky(csc_matrix(A), lower=lower, device="cpu")
        assert np.allclose(A @ F(b), b)
        turned = sp.csc_matrix((A.data[::-1].copy(), A.indices[::-1].copy(), A.indptr), shape=A.shape)
        for j in range(36):   # the same entries in another order
            k = slice(A.indptr[j], A.indptr[j + 1])
            turned.data[k], turned.indices[k] = A.data[k][::-1], A.indices[k][::-1]
        for M in (csc_matrix(2 * A), 2 * A, csc_matrix(2 * turned)):
            F.cholesky_inplace(M)
            assert np.allclose(2 * (A @ F(b)), b)
        assert trifactor.sparse.cholesky(csc_matrix(A), device="cpu")._pattern.cupy
        with pytest.raises(TypeError, match="on the host"):
            trifactor.sparse.lu(csc_matrix(A))


@pytest.mark.cuda
@pytest.mark.skipif(not HERE, reason="no CuPy")
class TestOnTheDevice:
    def test_streams(self, rng):
        for _ in range(20):
            with cupy.cuda.Stream(non_blocking=True):   # gone after the block: the queue keeps it
                A = 4 * cupy.eye(200)
                x = trifactor.cholesky(A, check=False).solve(cupy.ones(200))
                assert float(abs(x - 0.25).max()) < 1e-12
        trifactor.release_queues()

    @pytest.mark.parametrize("dtype", DTYPES)
    @pytest.mark.parametrize("kind", ["csc_matrix", "csr_matrix", "coo_matrix"])
    def test_sparse(self, rng, dtype, kind):
        from test_sparse import close, grid
        host = grid(12, dtype)
        A = getattr(csp, kind)(csp.csc_matrix(host))
        F = trifactor.sparse.cholesky(A)
        for shape in [(144,), (144, 3)]:
            b = rng.standard_normal(shape).astype(dtype)
            for x in (F(cupy.asarray(b)), F(b), F.solve_refined(A, cupy.asarray(b)).x):
                assert isinstance(x, np.ndarray) or isinstance(x, cupy.ndarray)
                assert close(host @ (x.get() if hasattr(x, "get") else x), b, dtype)
        assert isinstance(F(cupy.asarray(b)), cupy.ndarray) and isinstance(F(b), np.ndarray)
        L, p = F.L(), F.P()
        assert csp.issparse(L)
        L = L.get()
        assert close((L @ L.conj().T).toarray(), host.toarray()[p][:, p], dtype)
        F.cholesky_inplace(2 * A)
        assert close(2 * (host @ F(b)), b, dtype)
        assert np.isclose(F.logdet(), np.linalg.slogdet(2 * host.toarray())[1], rtol=1e-4)
        G = trifactor.sparse.cholesky(A, device="cpu")
        assert close(host @ G(b), b, dtype)

    def test_sparse_of_scipy_on_the_device(self, rng):
        from test_sparse import grid
        A, b = grid(30), rng.standard_normal((900, 2))
        F = trifactor.sparse.cholesky(A, device="cuda")
        assert np.allclose(A @ F(b), b) and isinstance(F(b), np.ndarray)
        x = F(cupy.asarray(b))
        assert isinstance(x, cupy.ndarray) and np.allclose(A @ x.get(), b)
        with pytest.raises(trifactor.NotPositiveDefinite, match="column"):
            F.cholesky_inplace(-A)
        F.cholesky_inplace(3 * A, beta=1)
        assert np.allclose(3 * (A @ F(b)) + F(b), b)
        G = trifactor.sparse.cholesky(A)
        with pytest.raises(ValueError, match="on the host"):
            G(cupy.asarray(b))

    def test_sparse_on_a_side_stream(self, rng):
        from test_sparse import grid
        host, b = grid(30), rng.standard_normal(900)
        F = trifactor.sparse.cholesky(csp.csc_matrix(host))
        with cupy.cuda.Stream(non_blocking=True):
            x = F(cupy.asarray(b))
            assert np.allclose(host @ x.get(), b)
