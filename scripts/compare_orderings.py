#!/usr/bin/env python3
"""What ordering Auto costs against AMD and METIS: analysis, one factorization and one solve, in milliseconds.

    scripts/compare_orderings.py build/trifactor                                   # the families of docs/sparse.md
    scripts/compare_orderings.py build/trifactor poisson3d:40 A.mtx --rounds 5     # these

Every matrix is measured with each ordering in turn, --rounds times; the shortest time of every phase counts. The last column is
Auto's total over the better one of the other two. OMP_NUM_THREADS sets the threads.
"""
import argparse
import json
import subprocess
import sys

FAMILIES = ["poisson2d:100", "poisson2d:300", "poisson2d:700", "poisson3d:15", "poisson3d:30", "poisson3d:40", "poisson3d:50",
            "elastic3d:8", "elastic3d:15", "elastic3d:20", "shell2d:50", "shell2d:100", "shell2d:150", "random:3000",
            "random:8000", "random:20000:2", "band:20000:40", "arrow:50000"]
ORDERINGS = ["amd", "metis", "auto"]


def phases(program, matrix, ordering, seconds):
    """Seconds of each phase, and the ordering that was used."""
    done = subprocess.run([program, "bench", "sparse", "--matrix", matrix, "--ordering", ordering, "--against", "none", "--device", "host",
                           "--seconds", str(seconds), "--json"], stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit("%s failed for %s" % (program, matrix))
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return {row["phase"]: row["seconds"] for row in rows}, rows[0]["ordering"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("matrices", nargs="*", default=FAMILIES)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.1, help="for each phase of each round")
    o = parser.parse_args()
    print("%-16s %10s %10s %10s  %-6s %6s" % ("matrix", "AMD", "METIS", "Auto", "chosen", "ratio"))
    for matrix in o.matrices:
        best, chosen = {}, None
        for _ in range(o.rounds):
            for ordering in ORDERINGS:
                found, chosen = phases(o.program, matrix, ordering, o.seconds)
                for phase in ["analyze", "factor", "solve"]:
                    key = ordering, phase
                    best[key] = min(best.get(key, found[phase]), found[phase])
        total = {ordering: sum(t for (which, _), t in best.items() if which == ordering) for ordering in ORDERINGS}
        print("%-16s %10.2f %10.2f %10.2f  %-6s %6.2f" % (
            matrix.split("/")[-1], *(1e3 * total[ordering] for ordering in ORDERINGS), chosen,
            total["auto"] / min(total["amd"], total["metis"])), flush=True)


if __name__ == "__main__":
    main()
