"""An unmodified NumPy program, and SciPy where it is: it knows nothing of the drop-in."""
import numpy as np

random = np.random.default_rng(1)
n = 150
for dtype in (np.float32, np.float64, np.complex64, np.complex128):
    A = random.standard_normal((n, n)).astype(dtype)
    if np.iscomplexobj(A):
        A += 1j * random.standard_normal((n, n)).astype(dtype)
    S = A @ A.conj().T + n * np.eye(n, dtype=dtype)
    b = random.standard_normal((n, 3)).astype(dtype)
    small = 1e4 * n * np.finfo(dtype).eps
    L = np.linalg.cholesky(S)
    assert abs(L @ L.conj().T - S).max() < small * n
    assert abs(A @ np.linalg.solve(A, b) - b).max() < small
    assert abs(A @ np.linalg.inv(A) - np.eye(n)).max() < small
    sign, log_abs = np.linalg.slogdet(S)
    assert abs(sign - 1) < small and abs(log_abs - 2 * np.log(np.diag(L).real).sum()) < small
    try:
        np.linalg.cholesky(-S)
        raise AssertionError("-S passed for positive definite")
    except np.linalg.LinAlgError:
        pass
    try:
        np.linalg.solve(np.ones((n, n), dtype), b)
        raise AssertionError("a matrix of ones passed for regular")
    except np.linalg.LinAlgError:
        pass
try:
    import scipy.linalg
    x = scipy.linalg.cho_solve(scipy.linalg.cho_factor(S), b)
    y = scipy.linalg.lu_solve(scipy.linalg.lu_factor(S), b)
    assert abs(x - y).max() < small
    print(f"NumPy {np.__version__} and SciPy {scipy.__version__} solved")
except ImportError:
    print(f"NumPy {np.__version__} solved")
