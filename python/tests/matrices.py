"""Matrices for tests, how good a result must be (LAPACK's residual ratios, below 30), and work in threads."""
import threading

import numpy as np

DTYPES = ("float32", "float64", "complex64", "complex128")


def random(rng, shape, dtype):
    x = rng.standard_normal(shape)
    if "complex" in dtype:
        x = x + 1j * rng.standard_normal(shape)
    return x.astype(dtype)


def positive(rng, shape, dtype):
    M = random(rng, shape, dtype)
    n = shape[-1]
    return (M @ np.swapaxes(M, -1, -2).conj() + n * np.eye(n)).astype(dtype)


def adjoint(x):
    return np.swapaxes(x, -1, -2).conj()


def norm(x):
    return np.abs(x).sum(axis=-2).max(initial=0)


def factor_ratio(A, product):
    """|A - L L^H| / (n |A| eps)"""
    n = A.shape[-1]
    return 0 if A.size == 0 else norm(A - product) / (n * norm(A) * np.finfo(A.dtype).eps)


def solve_ratio(A, x, b):
    """|b - A x| / (n |A| |x| eps)"""
    if b.ndim == 1 or (A.ndim > 2 and b.shape == A.shape[:-1]):
        x, b = x[..., None], b[..., None]
    if x.size == 0:
        return 0
    n = A.shape[-1]
    return norm(b - A @ x) / (n * norm(A) * norm(x) * np.finfo(x.dtype).eps)


def in_threads(work):
    """work(0) to work(3), side by side."""
    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
