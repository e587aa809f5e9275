"""python -m trifactor, the cost of a call, and the end of the interpreter."""
import json
import os
import subprocess
import sys
import time

import numpy as np
import pytest
import trifactor
from trifactor import _core
from trifactor.__main__ import main


def test_info(capsys):
    assert main(["info"]) == 0
    text = capsys.readouterr().out
    assert trifactor.__version__ in text and "host" in text and "blas" in text and f"numpy    {np.__version__}" in text
    assert main(["info", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["version"] == trifactor.__version__


def test_bench(capsys):
    pytest.importorskip("scipy")
    assert main(["bench", "--n", "5", "--count", "3", "--seconds", "0", "--json", "--device", "cpu"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {row["group"] for row in rows} == {"one", "batch", "sparse", "call"}
    assert {"trifactor", "numpy", "scipy"} <= {row["library"] for row in rows}
    assert all(row["us"] > 0 for row in rows)
    assert main(["bench", "one", "--n", "5", "--seconds", "0", "--device", "cpu"]) == 0
    heading, *table = capsys.readouterr().out.splitlines()
    assert "us" in heading.split() and "Gflop/s" in heading.split()
    assert table and all(len(line) == len(heading) for line in table if "trifactor" in line)   # aligned columns


def test_bench_refuses(capsys):
    assert main(["bench", "huge"]) == 2
    assert "'huge'" in capsys.readouterr().err
    for option, text in [("--n", "x"), ("--n", "8,0"), ("--n", "1.5"), ("--count", "x"), ("--count", "-1"), ("--count", "0")]:
        with pytest.raises(SystemExit):
            main(["bench", "batch", f"{option}={text}"])
        words = f"argument {option}: {text.split(',')[-1]!r} must be a whole number from 1 on"
        assert words in capsys.readouterr().err
    if trifactor.info()["why_no_cuda"]:
        assert main(["bench", "one", "--device", "cuda"]) == 2


def test_a_call_costs_less_than_10_microseconds_over_cpp():
    A, b = 8 * np.eye(4) + np.ones((4, 4)), np.ones(4)
    F = trifactor.cholesky(A)
    calls = {"cholesky": lambda: trifactor.cholesky(A), "solve pos": lambda: trifactor.solve(A, b, assume_a="pos"),
             "F.solve": lambda: F.solve(b)}
    for name, call in calls.items():
        mine = plain = float("inf")
        for _ in range(200):   # the shortest of many: others use this machine, too
            begin = time.perf_counter()
            for _ in range(20):
                call()
            mine = min(mine, (time.perf_counter() - begin) / 20)
            plain = min(plain, _core.seconds_of_call(name, "float64", 4, 20))
        assert mine - plain < 10e-6, name


@pytest.mark.parametrize("code", [
    "import trifactor, numpy; F = trifactor.cholesky(numpy.eye(3))",
    "import trifactor, numpy, threading\n"
    "t = threading.Thread(target=lambda: trifactor.cholesky(numpy.eye(3))); t.start(); t.join()",
    "import trifactor, scipy.sparse as sp; F = trifactor.sparse.cholesky(sp.identity(3, format='csc'))",
])
def test_the_interpreter_ends_quietly(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_child_of_a_fork_works():
    """OpenMP's threads stay with the parent: a parallel call of the child would wait for them without end."""
    code = """
import os, signal, numpy as np, trifactor, scipy.sparse as sp
one, batch = 4 * np.eye(400) + 1, np.tile(np.eye(16), (5000, 1, 1))
line, eye = sp.diags([-1, 2, -1], [-1, 0, 1], shape=(120, 120)), sp.identity(120)
S = sp.csc_matrix(sp.kron(line, eye) + sp.kron(eye, line))
plan = trifactor.sparse.analyze(S)
def work():
    trifactor.cholesky(one), trifactor.cholesky(batch), trifactor.lu(one)
    for F in trifactor.sparse.cholesky(S), plan.cholesky(S):
        F.solve_refined(S, np.ones(120 * 120))
    plan.cholesky_batch(np.array([S.data, S.data])), trifactor.sparse.lu(S)
work()
child = os.fork()
if child == 0:
    signal.alarm(30)
    work()
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
work()
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "OMP_NUM_THREADS": "4"})
    assert (done.returncode, done.stderr) == (0, "")


def test_the_version_comes_from_one_place():
    import importlib.metadata
    import pathlib
    import re
    lists = pathlib.Path(__file__).resolve().parents[2] / "CMakeLists.txt"
    assert trifactor.__version__ == re.search(r"project\(trifactor VERSION ([0-9.]+)", lists.read_text())[1]
    try:
        installed = importlib.metadata.version("trifactor")
    except importlib.metadata.PackageNotFoundError:   # the package by plain CMake
        return
    assert installed == trifactor.__version__
