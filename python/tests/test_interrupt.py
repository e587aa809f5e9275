"""Ctrl-C ends long calls on the host early, and what they worked with can be used again.

Each test is a process of its own with two threads, so that a call lasts a few tenths of a second on any machine.
"""
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import trifactor

sp = pytest.importorskip("scipy.sparse")


def cube(k):
    """The seven-point Laplacian of a cube of k^3 points."""
    line, eye = sp.diags([-1.0, 2.0, -1.0], [-1, 0, 1], shape=(k, k)), sp.identity(k)
    return sp.csc_matrix(sp.kron(sp.kron(line, eye), eye) + sp.kron(sp.kron(eye, line), eye)
                         + sp.kron(sp.kron(eye, eye), line))


def interrupt(call, error=KeyboardInterrupt, attempts=5):
    """Makes one call and SIGINT during it. True where the call raised `error` sooner than it lasts; the signal may also
    come at the end of it, so there are several attempts."""
    begin = time.monotonic()
    call()
    lasts = time.monotonic() - begin
    for _ in range(attempts):
        timer = threading.Timer(0.2 * lasts, os.kill, (os.getpid(), signal.SIGINT))
        begin = time.monotonic()
        try:
            timer.start()
            call()
            timer.join()
            time.sleep(0.1)                 # at the latest it is raised here
            raise AssertionError("no signal came")
        except error:
            took = time.monotonic() - begin
        if took < 0.8 * lasts:
            return True
    raise AssertionError(f"a call of {lasts:.3f} s took {took:.3f} s with SIGINT after {0.2 * lasts:.3f} s")


def batch():
    rng = np.random.default_rng(1)
    A = rng.standard_normal((60, 300, 300)) + 1j * rng.standard_normal((60, 300, 300))
    assert interrupt(lambda: trifactor.inv(A))
    assert np.allclose(trifactor.inv(A[:2]) @ A[:2], np.eye(300))


def sparse_cholesky():
    A = cube(32)
    F = trifactor.sparse.cholesky(A)
    assert interrupt(lambda: F.cholesky_inplace(A))
    with pytest.raises(ValueError, match="nothing has been factored"):
        F(np.ones(A.shape[0]))
    F.cholesky_inplace(A)
    assert np.allclose(A @ F(np.ones(A.shape[0])), 1)


def sparse_lu():
    def handler(number, frame):             # what a handler raises comes out, whatever it is
        raise OSError("from the handler")
    signal.signal(signal.SIGINT, handler)
    A = cube(16)
    F = trifactor.sparse.lu(A)
    assert interrupt(lambda: F.lu_inplace(A), OSError)
    with pytest.raises(ValueError, match="nothing has been factored"):
        F.solve(np.ones(A.shape[0]))
    F.lu_inplace(A)
    assert np.allclose(A @ F.solve(np.ones(A.shape[0])), 1)


def handler_that_returns():
    seen = []
    signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
    A = cube(28)
    F = trifactor.sparse.cholesky(A)
    timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    F.cholesky_inplace(A)
    timer.join()
    assert seen == [signal.SIGINT]
    assert np.allclose(A @ F(np.ones(A.shape[0])), 1)


def other_thread():
    """Signals are the main thread's: a call of another one is not ended."""
    A = cube(28)
    F = trifactor.sparse.cholesky(A)
    thread = threading.Thread(target=F.cholesky_inplace, args=(A,))
    thread.start()
    try:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(1)
        raise AssertionError("no signal came")
    except KeyboardInterrupt:
        thread.join()
    assert np.allclose(A @ F(np.ones(A.shape[0])), 1)


CASES = [batch, sparse_cholesky, sparse_lu, handler_that_returns, other_thread]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_interrupt(case):
    environment = dict(os.environ, OMP_NUM_THREADS="2")
    done = subprocess.run([sys.executable, __file__, case.__name__], env=environment, capture_output=True, text=True,
                          timeout=120)
    assert done.returncode == 0, done.stderr


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    {case.__name__: case for case in CASES}[sys.argv[1]]()
