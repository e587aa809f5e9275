#!/usr/bin/env python3
"""What the LAPACK drop-in gains, and from which order on: single routines, staged copies, and NumPy through it.

    scripts/measure_lapack.py                       # all three tables, two minutes with an H200
    scripts/measure_lapack.py --part routines       # of routines, chunks, numpy
    scripts/measure_lapack.py --device host         # the CPU in place of the GPU, to try the script

Each column is a process of its own with the drop-in preloaded: TRIFACTOR_LAPACK=off, which passes every call on, or the
device with every order forced through it. Times are milliseconds, the shortest of some calls. Needs NumPy.
"""
import argparse
import ctypes
import json
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
ORDERS = [128, 256, 384, 512, 768, 1024, 2048]
COLUMNS = [1, 64, 256, 1024]             # right-hand sides of dpotrs
CHUNKS = [128, 256, 512, 1024, 2048, 0]  # columns that are copied at a time; 0: the default
CHUNKED = [("dpotrf", 2048), ("dpotrf", 8192), ("dgetrf", 8192)]
NUMPY_ORDERS = [1024, 2048, 4096, 8192, 16384]
WARM_UP = 300                            # an order that starts the device


def shortest(call, restore, seconds=0.12, least=3):
    times = []
    while len(times) < least or sum(times) < seconds and len(times) < 200:
        restore()
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return 1e3 * min(times)


class Routines:
    """LAPACK by ctypes, on column-major matrices: nothing is copied but by the drop-in."""

    def __init__(self):
        import numpy
        self.np, self.lapack = numpy, ctypes.CDLL(None)
        self.random = numpy.random.default_rng(1)

    def matrix(self, m, n, diagonal=0.0):
        A = self.random.random((n, m)).T
        A.T.flat[::m + 1] += diagonal
        return A

    def call(self, name, *arguments):
        info = ctypes.c_int(-1)
        words = [ctypes.c_char_p(a) if isinstance(a, bytes) else ctypes.byref(ctypes.c_int(a)) if isinstance(a, int)
                 else a.ctypes.data_as(ctypes.c_void_p) for a in arguments]
        getattr(self.lapack, name)(*words, ctypes.byref(info))
        if info.value != 0:
            sys.exit(f"{name}: info = {info.value}")

    def measure(self, name, n, columns=0):
        given, b = self.matrix(n, n, float(n)), self.matrix(n, columns or 1)
        A, X, pivots = given.copy("F"), b.copy("F"), self.np.zeros(n, "i4")
        calls = {"dpotrf": lambda: self.call("dpotrf_", b"L", n, A, n),
                 "dgetrf": lambda: self.call("dgetrf_", n, n, A, n, pivots),
                 "dgesv": lambda: self.call("dgesv_", n, 1, A, n, pivots, X, n),
                 "dpotrs": lambda: self.call("dpotrs_", b"L", n, columns, A, n, X, n)}
        if name == "dpotrs":
            calls["dpotrf"]()

        def restore():
            if name != "dpotrs":
                self.np.copyto(A, given)
            self.np.copyto(X, b)
        calls[name]()                    # memory of the device grows
        return shortest(calls[name], restore)


def measure_routines():
    routines = Routines()
    for n in ORDERS:
        yield {"n": n, **{name: routines.measure(name, n) for name in ("dpotrf", "dgetrf", "dgesv")},
               **{f"dpotrs {k}": routines.measure("dpotrs", n, k) for k in COLUMNS}}


def measure_chunk():
    routines = Routines()
    yield {f"{name} {n}": routines.measure(name, n) for name, n in CHUNKED}


def measure_numpy(op, n):
    """Seconds of the calls, and of the first small one, which starts the device."""
    import numpy
    A = numpy.random.default_rng(1).random((n, n))
    A.flat[::n + 1] += n                 # cholesky reads one triangle
    b = numpy.ones(n)
    call = (lambda A: numpy.linalg.cholesky(A)) if op == "cholesky" else (lambda A: numpy.linalg.solve(A, b[:len(A)]))
    small = numpy.ascontiguousarray(A[:WARM_UP, :WARM_UP])
    begin = time.perf_counter()
    call(small)
    first, times = time.perf_counter() - begin, []
    for _ in range(1 if n >= 16384 else 2 if n >= 4096 else 10):
        begin = time.perf_counter()
        call(A)
        times.append(time.perf_counter() - begin)
    yield {"first": first, "seconds": times}


def child(options, where, *words, **settings):
    """The lines that this script prints with the drop-in before LAPACK, and the drop-in's report."""
    environment = dict(os.environ, LD_PRELOAD=str(options.drop_in), TRIFACTOR_LAPACK=f"{where},verbose")
    environment.update(settings)
    done = subprocess.run([sys.executable, __file__, "--child", *map(str, words)], env=environment, text=True,
                          capture_output=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))} with TRIFACTOR_LAPACK={where}: {done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def used(report, where):
    """Calls and seconds of the part of the drop-in's report that belongs to a setting."""
    place = "passed on" if where == "off" else where
    found = re.search(rf"{place} (\d+) calls? of order \d+ to \d+ in ([0-9.]+) s", report)
    return (int(found.group(1)), float(found.group(2))) if found else (0, 0.0)


def routines_table(options):
    off, _ = child(options, "off", "routines")
    on, report = child(options, options.device, "routines", TRIFACTOR_LAPACK_MIN="1")
    if used(report, options.device)[0] == 0:
        sys.exit(f"no call went to {options.device}: {report}")
    names = [name for name in off[0] if name != "n"]
    print(f"passed on, on {options.device}, and the quotient: above 1 the device is faster\n{'n':>6}" +
          "".join(f"{name:>27}" for name in names))
    for a, b in zip(off, on):
        print(f"{a['n']:>6}" + "".join(f"{a[name]:>11.2f}{b[name]:>9.2f}{a[name] / b[name]:>7.2f}" for name in names))


def chunks_table(options):
    print(f"\nby TRIFACTOR_LAPACK_CHUNK, the columns that are copied at a time\n{'chunk':>8}" +
          "".join(f"{name + ' ' + str(n):>14}" for name, n in CHUNKED))
    for chunk in CHUNKS:
        settings = {"TRIFACTOR_LAPACK_CHUNK": str(chunk)} if chunk else {}
        (row,), _ = child(options, options.device, "chunk", TRIFACTOR_LAPACK_MIN="1", **settings)
        print(f"{chunk or 'default':>8}" + "".join(f"{row[f'{name} {n}']:>14.2f}" for name, n in CHUNKED), flush=True)


def numpy_table(options):
    print(f"\nNumPy passed on and on {options.device}: a call, the LAPACK routine inside it, and its part of the call\n"
          f"{'n':>6}{'':>10}{'passed on':>12}{'LAPACK':>10}{'part':>6}{options.device:>12}{'LAPACK':>10}{'part':>6}"
          f"{'gain':>6}{'LAPACK gains':>14}")
    for n in (n for n in NUMPY_ORDERS if n <= options.max_n):
        for op in ("cholesky", "solve"):
            cells = []
            for where in ("off", options.device):
                (row,), report = child(options, where, "numpy", op, n, TRIFACTOR_LAPACK_MIN="256")
                calls, seconds = used(report, where)
                if calls < len(row["seconds"]):
                    sys.exit(f"{op} of order {n} did not go to {where}: {report}")
                warm_up = row["first"] if where == "off" else 0  # the start of a device is not in the report
                part = min(1, max(0, seconds - warm_up) / sum(row["seconds"]))
                cells.append((1e3 * min(row["seconds"]), part))
            (a, a_part), (b, b_part) = cells
            inside = f"{a * a_part / (b * b_part):>14.2f}" if b_part > 0 else ""
            print(f"{n:>6}{op:>10}{a:>12.1f}{a * a_part:>10.1f}{100 * a_part:>5.0f}%{b:>12.1f}{b * b_part:>10.1f}"
                  f"{100 * b_part:>5.0f}%{a / b:>6.2f}{inside}", flush=True)


CHILDREN = {"routines": measure_routines, "chunk": measure_chunk, "numpy": lambda op, n: measure_numpy(op, int(n))}
TABLES = {"routines": routines_table, "chunks": chunks_table, "numpy": numpy_table}


def main():
    if sys.argv[1:2] == ["--child"]:
        for row in CHILDREN[sys.argv[2]](*sys.argv[3:]):
            print(json.dumps(row), flush=True)
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--drop-in", default=ROOT / "build" / "libtrifactor_lapack.so", type=pathlib.Path)
    parser.add_argument("--device", default="cuda", choices=["cuda", "host"])
    parser.add_argument("--part", default="routines,chunks,numpy", help="of routines, chunks, numpy")
    parser.add_argument("--max-n", default=16384, type=int, help="the largest order of NumPy's table")
    options = parser.parse_args()
    parts = options.part.split(",")
    if unknown := [part for part in parts if part not in TABLES]:
        sys.exit(f"--part {unknown[0]} is none of {', '.join(TABLES)}")
    if not options.drop_in.exists():
        sys.exit(f"--drop-in {options.drop_in} does not exist: build trifactor_lapack")
    options.drop_in = options.drop_in.resolve()
    for part in parts:
        TABLES[part](options)


if __name__ == "__main__":
    main()
