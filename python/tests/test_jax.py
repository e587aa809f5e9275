"""JAX's arrays, on the host and on a CUDA device."""
import os

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import numpy as np
import pytest
import trifactor
from array_cases import Arrays, Cases

jax = pytest.importorskip("jax")
jax.config.update("jax_enable_x64", True)


class JaxArrays(Arrays):
    mutable = False

    def __init__(self, platform):
        self.device = jax.devices(platform)[0]

    def make(self, x, order="C"):
        return jax.device_put(np.array(x), self.device)

    def host(self, a):
        return np.asarray(a)

    def is_mine(self, a):
        return isinstance(a, jax.Array) and a.devices() == {self.device}


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def arrays(request):
    return JaxArrays(request.param)


class TestJax(Cases):
    def test_inputs_stay_as_they_are(self, arrays):
        A, b = arrays.make(4 * np.eye(3)), arrays.make(np.ones(3))
        trifactor.solve(A, b, overwrite_a=True, overwrite_b=True, assume_a="gen")
        F = trifactor.cholesky(A, overwrite_a=True)
        assert (np.asarray(A) == 4 * np.eye(3)).all() and (np.asarray(b) == 1).all() and np.asarray(F.L)[0, 0] == 2

    def test_jit_is_refused(self, arrays):
        with pytest.raises(TypeError, match="jit"):
            jax.jit(lambda A: trifactor.cholesky(A).L)(arrays.make(np.eye(3)))

    def test_results_feed_further_work(self, arrays):
        A = arrays.make(4 * np.eye(300))
        for _ in range(5):
            A = trifactor.cholesky(A * 1.0).L ** 2
        assert np.allclose(np.asarray(A), 4 * np.eye(300))
