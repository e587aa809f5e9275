#!/usr/bin/env python3
"""Time of host operations by number of threads: sparse factor and solve, batches, one matrix, solves.

Runs `trifactor bench --device host` once for each case and number of threads, and prints milliseconds in a table. A
time that is more than a tenth above that of fewer threads is marked with `!`. --json FILE keeps the rows.
"""
import argparse
import json
import os
import re
import subprocess
import sys

SPARSE = ["poisson2d:300", "elastic3d:12", "shell2d:60", "poisson3d:40", "elastic3d:20"]
LARGE = ["elastic3d:30", "shell2d:300", "poisson3d:80", "elastic3d:50"]


def cases(which, matrices):
    for matrix in matrices:
        if "sparse" in which:
            yield "sparse", f"{matrix}", ["sparse", "--matrix", matrix, "--rhs", "1"], ("refactor", "solve")
        if "many" in which:
            yield "sparse", f"{matrix}, 64 rhs", ["sparse", "--matrix", matrix, "--rhs", "64"], ("solve",)
    if "batch" in which:
        for n in ("4", "16", "64"):
            yield "batch", f"batch of 10000, n={n}", ["batch", "--n", n], None
            yield "batch", f"solve 10000, n={n}", ["batch", "--n", n, "--method", "solve", "--rhs", "1"], None
    if "dense" in which:
        for n in ("100", "500", "1000", "2000", "5000"):
            yield "dense", f"cholesky n={n}", ["cholesky", "--n", n], None
            yield "dense", f"lu n={n}", ["lu", "--n", n], None
            yield "dense", f"solve n={n}, 1 rhs", ["solve", "--n", n, "--rhs", "1"], None
            yield "dense", f"solve n={n}, 64 rhs", ["solve", "--n", n, "--rhs", "64"], None


def run(program, arguments, threads, seconds, against):
    environment = dict(os.environ, OMP_NUM_THREADS=str(threads), OPENBLAS_NUM_THREADS=str(threads))
    command = [program, "bench", *arguments, "--device", "host", "--against", against, "--seconds", str(seconds), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default="build/trifactor")
    parser.add_argument("--threads", default="1,2,4,8,16")
    parser.add_argument("--only", default="sparse,many,batch,dense", help="of sparse, many (64 right-hand sides), batch, dense")
    parser.add_argument("--rows", default="", help="a regular expression: only cases that it is found in, such as 'lu n=500'")
    parser.add_argument("--matrix", default=",".join(SPARSE), help="sparse matrices; 'large' for the four of the documentation")
    parser.add_argument("--seconds", default=0.5, type=float)
    parser.add_argument("--against", default="none", help="cholmod: sparse rows hold its time with the most threads")
    parser.add_argument("--json", help="file for the rows")
    options = parser.parse_args()
    counts = [int(t) for t in options.threads.split(",")]
    matrices = LARGE if options.matrix == "large" else options.matrix.split(",")
    kept = []
    print(f"{'ms by number of threads':34s}" + "".join(f"{t:>11d}" for t in counts) + "    peer")
    for kind, title, arguments, phases in cases(options.only.split(","), matrices):
        if not re.search(options.rows, title):
            continue
        lines, peers = {}, {}
        for t in counts:
            against = options.against if kind == "sparse" and t == counts[-1] else "none"
            for row in run(options.program, arguments, t, options.seconds, against):
                if phases and row["phase"] not in phases:
                    continue
                name = f"{title} {row['phase']}" if phases else title
                lines.setdefault(name, []).append(row["seconds"] * 1e3)
                if row.get("peer_seconds"):
                    peers[name] = row["peer_seconds"] * 1e3
                kept.append(dict(row, threads=t))
        for name, times in lines.items():
            marks = ["!" if any(t > 1.1 * earlier for earlier in times[:i]) else " " for i, t in enumerate(times)]
            peer = f"{peers[name]:10.2f}" if name in peers else ""
            print(f"{name:34s}" + "".join(f"{t:10.3f}{m}" for t, m in zip(times, marks)) + peer, flush=True)
    if options.json:
        with open(options.json, "w") as file:
            file.writelines(json.dumps(row) + "\n" for row in kept)


if __name__ == "__main__":
    main()
