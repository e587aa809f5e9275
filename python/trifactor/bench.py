"""python -m trifactor bench: trifactor beside the libraries that are installed, in the same run on the same data."""

import argparse
import importlib
import json
import statistics
import time

import numpy as np

from . import _core, cholesky, info, solve

GROUPS = ("one", "batch", "sparse", "call")


def whole(text):
    if not text.strip().isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} must be a whole number from 1 on")
    return int(text)


def orders(text):
    return [whole(n) for n in text.split(",") if n]


def add_arguments(parser):
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=f"{', '.join(GROUPS)}; all of them by default")
    parser.add_argument("--n", type=orders, default=[], metavar="N,...",
                        help="orders, such as 256,1024; of sparse matrices the grid's side")
    parser.add_argument("--count", type=whole, default=1000, help="matrices of a batch (1000)")
    parser.add_argument("--dtype", default="float64", choices=["float32", "float64", "complex64", "complex128"])
    parser.add_argument("--device", default="all", choices=["all", "cpu", "cuda"])
    parser.add_argument("--seconds", type=float, default=0.5, help="for each measurement (0.5)")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")


def module(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def measure(contenders, seconds):
    """Median seconds of each call; they run in turn, so that clocks and neighbours disturb all alike."""
    times = {name: [] for name in contenders}
    for call, wait in contenders.values():   # first calls load and plan
        call()
        wait()
    begin = time.perf_counter()
    while True:
        for name, (call, wait) in contenders.items():
            start = time.perf_counter()
            call()
            wait()
            times[name].append(time.perf_counter() - start)
        rounds = len(times[name])
        if rounds >= 3 and (time.perf_counter() - begin > seconds * len(contenders) or rounds >= 1000):
            return {name: statistics.median(t) for name, t in times.items()}


def positive(shape, dtype):
    rng = np.random.default_rng(1)
    n = shape[-1]
    A = rng.standard_normal(shape) / np.sqrt(n)
    if "complex" in dtype:
        A = A + 1j * rng.standard_normal(shape) / np.sqrt(n)
    return (A @ np.swapaxes(A, -1, -2).conj() + np.eye(n)).astype(dtype)


def flops(operation, n, dtype):
    real = n**3 / 3 if operation in ("cholesky", "solve pos") else 2 * n**3 / 3
    return real * (4 if "complex" in dtype else 1)


def nothing():
    pass


def on_host(A, b):
    """name of the operation: {library: (call, wait)}"""
    linalg, torch = module("scipy.linalg"), module("torch")
    rows = {
        "cholesky": {"trifactor": lambda: cholesky(A), "numpy": lambda: np.linalg.cholesky(A)},
        "solve pos": {"trifactor": lambda: solve(A, b, assume_a="pos")},
        "solve": {"trifactor": lambda: solve(A, b, assume_a="gen"),
                  "numpy": lambda: np.linalg.solve(A, b)},
    }
    if linalg and A.ndim == 2:
        rows["cholesky"]["scipy"] = lambda: linalg.cholesky(A, lower=True, check_finite=False)
        rows["solve pos"]["scipy"] = lambda: linalg.solve(A, b, assume_a="pos", check_finite=False)
        rows["solve"]["scipy"] = lambda: linalg.solve(A, b, assume_a="gen", check_finite=False)
    if torch:
        tA, tb = torch.from_numpy(A), torch.from_numpy(b)
        rows["cholesky"]["torch"] = lambda: torch.linalg.cholesky(tA)
        rows["solve pos"]["torch"] = lambda: torch.cholesky_solve(tb, torch.linalg.cholesky(tA))
        rows["solve"]["torch"] = lambda: torch.linalg.solve(tA, tb)
    return {name: {library: (call, nothing) for library, call in calls.items()} for name, calls in rows.items()}


def on_cuda(A, b):
    """The same for data that is on the device; trifactor takes PyTorch's tensors, or else CuPy's arrays."""
    torch, cupy = module("torch"), module("cupy")
    rows = {"cholesky": {}, "solve pos": {}, "solve": {}}
    if torch and torch.cuda.is_available():
        tA, tb, wait = torch.from_numpy(A).cuda(), torch.from_numpy(b).cuda(), torch.cuda.synchronize
        rows["cholesky"]["trifactor"] = lambda: cholesky(tA), wait
        rows["cholesky"]["torch"] = lambda: torch.linalg.cholesky(tA), wait
        rows["solve pos"]["trifactor"] = lambda: solve(tA, tb, assume_a="pos"), wait
        rows["solve pos"]["torch"] = lambda: torch.cholesky_solve(tb, torch.linalg.cholesky(tA)), wait
        rows["solve"]["trifactor"] = lambda: solve(tA, tb, assume_a="gen"), wait
        rows["solve"]["torch"] = lambda: torch.linalg.solve(tA, tb), wait
    if cupy:
        cA, cb, wait = cupy.asarray(A), cupy.asarray(b), cupy.cuda.Device().synchronize
        for name, mine, theirs in (("cholesky", lambda: cholesky(cA), lambda: cupy.linalg.cholesky(cA)),
                                   ("solve pos", lambda: solve(cA, cb, assume_a="pos"), None),
                                   ("solve", lambda: solve(cA, cb, assume_a="gen"), lambda: cupy.linalg.solve(cA, cb))):
            rows[name].setdefault("trifactor", (mine, wait))
            if theirs:
                rows[name]["cupy"] = theirs, wait
    return rows


def grid(k, dtype):
    import scipy.sparse as sp
    line = sp.diags([-1.0, 2.0, -1.0], [-1, 0, 1], shape=(k, k))
    eye = sp.identity(k)
    A = sp.kron(sp.kron(line, eye), eye) + sp.kron(sp.kron(eye, line), eye) + sp.kron(sp.kron(eye, eye), line)
    return sp.csc_matrix(A + 0.1 * sp.identity(k**3)).astype(dtype)


def sparse_rows(k, dtype, device):
    """The seven-point Laplacian of a k x k x k grid."""
    from . import sparse
    A = grid(k, dtype)
    b = np.ones(A.shape[0], dtype)
    F = sparse.analyze(A, device=device, expected_factorizations=10)
    F.cholesky_inplace(A)
    rows = {"analyze": {"trifactor": (lambda: sparse.analyze(A, device=device), nothing)},
            "refactor": {"trifactor": (lambda: F.cholesky_inplace(A), nothing)},
            "solve": {"trifactor": (lambda: F(b), nothing)}}
    splu = module("scipy.sparse.linalg")
    if device == "cpu":
        G = splu.splu(A)
        rows["refactor"]["scipy splu"] = (lambda: splu.splu(A), nothing)
        rows["solve"]["scipy splu"] = (lambda: G.solve(b), nothing)
        H = sparse.lu(A)
        rows["refactor"]["trifactor lu"] = (lambda: H.lu_inplace(A), nothing)
        rows["solve"]["trifactor lu"] = (lambda: H.solve(b), nothing)
    try:
        from sksparse.cholmod import cholesky as cholmod
    except ImportError:
        pass
    else:
        C = cholmod(A)
        rows["refactor"]["scikit-sparse"] = (lambda: C.cholesky_inplace(A), nothing)
        rows["solve"]["scikit-sparse"] = (lambda: C(b), nothing)
    return rows


class Table:
    """Rows as they come: plain text with units in the heading, or JSON."""

    columns = (("group", 7), ("device", 7), ("operation", 10), ("n", 7), ("count", 7), ("library", 14), ("us", 13),
               ("Gflop/s", 9), ("times ours", 11))

    def __init__(self, as_json):
        self.json = as_json
        if not as_json:
            print(" ".join(f"{name:>{width}}" for name, width in self.columns))

    def row(self, **values):
        if self.json:
            print(json.dumps(values), flush=True)
            return
        texts = []
        for name, width in self.columns:
            value = values.get(name)
            text = "" if value is None else f"{value:.2f}" if isinstance(value, float) else str(value)
            texts.append(f"{text:>{width}}")
        print(" ".join(texts).rstrip(), flush=True)

    def rows(self, seconds, work, **values):
        ours = seconds.get("trifactor")
        for library, each in seconds.items():
            self.row(**values, library=library, us=each * 1e6, **{"Gflop/s": work / each / 1e9 if work else None,
                                                                 "times ours": each / ours if ours else None})


def calls(table, seconds, dtype):
    """What a call costs over that of C++, for a 4 x 4 matrix."""
    A, b = positive((4, 4), dtype), np.ones(4, dtype)
    F = cholesky(A)
    for name, call in (("cholesky", lambda: cholesky(A)), ("solve pos", lambda: solve(A, b, assume_a="pos")),
                       ("F.solve", lambda: F.solve(b))):
        best = best_plain = float("inf")
        begin = time.perf_counter()
        while time.perf_counter() - begin < seconds:
            start = time.perf_counter()
            for _ in range(200):
                call()
            best = min(best, (time.perf_counter() - start) / 200)
            best_plain = min(best_plain, _core.seconds_of_call(name, dtype, 4, 200))
        table.row(group="call", device="cpu", operation=name, n=4, count=1, library="trifactor", us=best * 1e6)
        table.row(group="call", device="cpu", operation=name, n=4, count=1, library="in C++", us=best_plain * 1e6)


def run(given):
    groups = given.groups or list(GROUPS)
    for group in groups:
        if group not in GROUPS:
            raise ValueError(f"group {group!r} must be one of {', '.join(GROUPS)}")
    devices = [d for d in ("cpu", "cuda") if given.device in ("all", d)]
    if info()["why_no_cuda"] and "cuda" in devices:
        if given.device == "cuda":
            raise RuntimeError(info()["why_no_cuda"])
        devices.remove("cuda")
    table = Table(given.json)
    for group in groups:
        if group == "call":
            calls(table, given.seconds, given.dtype)
            continue
        for device in devices:
            if group == "sparse":
                for k in given.n or ([16, 24] if device == "cpu" else [30, 50]):
                    for operation, contenders in sparse_rows(k, given.dtype, device).items():
                        table.rows(measure(contenders, given.seconds), None, group=group, device=device,
                                   operation=operation, n=k**3, count=1)
                continue
            count = given.count if group == "batch" else 1
            usual = [8, 32] if group == "batch" else [128, 1024] if device == "cpu" else [1024, 4096, 8192]
            for n in given.n or usual:
                shape = (count, n, n) if group == "batch" else (n, n)
                A, b = positive(shape, given.dtype), np.ones((*shape[:-1], 1), given.dtype)
                for operation, contenders in (on_host if device == "cpu" else on_cuda)(A, b).items():
                    if contenders:
                        table.rows(measure(contenders, given.seconds), count * flops(operation, n, given.dtype),
                                   group=group, device=device, operation=operation, n=n, count=count)
