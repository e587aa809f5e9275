"""A stand-in for PyTorch: NumPy's arrays with what the adaptor asks tensors for, where PyTorch need not be installed."""
import ctypes
import types

import numpy as np
import pytest
import trifactor
from matrices import adjoint, factor_ratio, positive, random, solve_ratio
from trifactor import _kinds


class Tensor:
    requires_grad, layout = False, "strided"

    def __init__(self, x, conj=False, neg=False):
        self.x, self.lazy = x, (conj, neg)
        self.dtype, self.shape = x.dtype, x.shape

    def is_conj(self):
        return self.lazy[0]

    def is_neg(self):
        return self.lazy[1]

    def resolve_conj(self):
        return Tensor(self.x.conj(), False, self.lazy[1]) if self.lazy[0] else self

    def resolve_neg(self):
        return Tensor(-self.x, self.lazy[0], False) if self.lazy[1] else self

    def host(self):
        return self.resolve_conj().resolve_neg().x

    def new_empty(self, shape, dtype):
        return Tensor(np.empty(shape, dtype))

    def new_empty_strided(self, shape, strides, dtype):
        x = np.empty(np.prod(shape, dtype=int), dtype)
        return Tensor(np.lib.stride_tricks.as_strided(x, shape, [s * x.itemsize for s in strides]))

    def data_ptr(self):
        return self.x.ctypes.data

    def copy_(self, other):
        self.x[...] = other.host()

    def tril_(self):
        self.x[...] = np.tril(self.x)

    @property
    def mH(self):
        return Tensor(np.swapaxes(self.x, -1, -2), not self.lazy[0], self.lazy[1])


def torch(export):
    return types.SimpleNamespace(
        **{name: np.dtype(name) for name in ("float32", "float64", "complex64", "complex128", "int32")},
        strided="strided", _C=None, utils=types.SimpleNamespace(dlpack=types.SimpleNamespace(to_dlpack=export)))


@pytest.fixture
def stand_in(monkeypatch):
    """makes a type of tensors; export(tensor) is a capsule."""
    def make(export=lambda t: t.x.__dlpack__()):
        kind, find, adaptor = type("Tensor", (Tensor,), {}), _kinds.find, _kinds._Torch(torch(export))
        monkeypatch.setattr(_kinds, "find", lambda x: adaptor if isinstance(x, Tensor) else find(x))
        return kind
    return make


@pytest.mark.parametrize("conj, neg", [(True, False), (False, True), (True, True)])
def test_what_is_not_computed_yet_is_not_overwritten(rng, stand_in, conj, neg):
    tensor = stand_in()
    M, b = positive(rng, (5, 5), "complex128"), random(rng, (5, 2), "complex128")
    if neg:
        M = -M

    def lazy(x, order="F"):
        return tensor(np.array(x, order=order), conj, neg)

    A = lazy(M).host()
    for order in "CF":
        given = lazy(M, order)
        for overwrite in (False, True):
            L = trifactor.cholesky(given, overwrite_a=overwrite).L.host()
            assert factor_ratio(A, L @ adjoint(L)) < 30
            F = trifactor.lu(given, overwrite_a=overwrite)
            assert solve_ratio(A, F.solve(lazy(b), overwrite_b=overwrite).host(), lazy(b).host()) < 30
        assert (given.x == M).all()
    X = trifactor.cholesky([lazy(M), lazy(M)], overwrite_a=True).L[1].host()
    assert factor_ratio(A, X @ adjoint(X)) < 30
    with pytest.raises(ValueError, match="out .* is conjugated or negated lazily"):
        trifactor.lu(lazy(M)).solve(lazy(b), out=lazy(b))


def test_adjoints(rng, stand_in):
    M = positive(rng, (5, 5), "complex128")
    L = trifactor.cholesky(stand_in()(M).mH, overwrite_a=True).L.host()
    assert factor_ratio(M, L @ adjoint(L)) < 30


def test_values_must_be_where_the_factor_is(stand_in):
    """What a host factor would read as the host's memory."""
    sp = pytest.importorskip("scipy.sparse")

    def on_device(t):
        capsule = t.x.__dlpack__()
        get = ctypes.pythonapi.PyCapsule_GetPointer
        get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
        (ctypes.c_int32 * 2).from_address(get(capsule, b"dltensor") + 8)[:] = 2, 1   # CUDA device 1
        return capsule

    values = stand_in(on_device)(np.ones(3))
    A = sp.identity(3, format="csc")
    for call in (lambda: trifactor.sparse.cholesky(A)._factored.solve_refined(values, np.ones(3)),
                 lambda: trifactor.sparse.cholesky(A)._factored.factor(values, 0.0),
                 lambda: trifactor.sparse.lu(A)._factored.solve_refined(values, np.ones(3), "N"),
                 lambda: trifactor.sparse.lu(A)._factored.factor(values)):
        with pytest.raises(ValueError, match="values are on CUDA device 1"):
            call()
