#!/usr/bin/env python3
"""Writes the tables of README.md that lie between markers, from the rows of bench/results/*.jsonl.

    scripts/make_tables.py            # writes them
    scripts/make_tables.py --check    # fails where README.md and the rows differ

Files count in the order of their names, which begin with a date, and lines in their order: the last row of a
measurement is the one that is shown. A cell is the peer's time over ours, both measured in one run.
"""
import difflib
import pathlib
import re
import sys

from plot_results import read_rows

ROOT = pathlib.Path(__file__).resolve().parent.parent
MACHINE = "NVIDIA H200"
ONE = [512, 1024, 2048, 4096, 8192, 16384, 24576, 40960]
BATCH = [4, 8, 16, 32, 64, 100, 128, 256, 512]


def is_plain(row):
    """Measured as the library comes, against a peer."""
    return (row.get("machine") == MACHINE and row["device"] == "cuda" and row["mode"] == "auto"
            and row.get("peer_seconds") and not row.get("tuning") and not row.get("tuning_file")
            and row.get("uplo") in (None, "lower") and row.get("ld") in (None, row["n"])
            and row.get("kind") in (None, "strided") and row.get("preset") in (None, "guard"))


class Rows:
    def __init__(self, rows):
        self.last = {}
        for row in filter(is_plain, rows):
            key = (row["op"], row.get("method"), row["scalar"], row["n"], row["count"],
                   row.get("nrhs") if row["op"] == "solve" else None)
            self.last[key] = row

    def find(self, op, scalar, n, method=None, count=(1,), nrhs=None):
        """The row of the first of these counts that was measured, or None."""
        return next((row for c in count if (row := self.last.get((op, method, scalar, n, c, nrhs)))), None)


def ratio(row):
    if row is None:
        return ""
    value = row["peer_seconds"] / row["seconds"]
    return f"{value:.1f}" if value >= 1.95 else f"{value:.2f}"


def tflops(row):
    if row is None:
        return ""
    return f"{row['gflops'] / 1000:.1f}" if row["gflops"] < 9950 else f"{row['gflops'] / 1000:.0f}"


def table(heading, lines):
    text = [f"| {' | '.join([str(word) for word in heading])} |", "|---" * len(heading) + "|"]
    text += ["| " + " | ".join([name, *cells]).rstrip() + " |" for name, cells in lines]
    return "\n".join(line.replace("|  |", "| |").replace("|  |", "| |") for line in text)


def one_matrix(rows):
    def line(op, scalar, show):
        return [show(rows.find(op, scalar, n)) for n in ONE]
    def solves(method):
        cells = []
        for n in ONE:
            found = [rows.find("solve", "f64", n, method, nrhs=nrhs) for nrhs in (1, 64, 1024)]
            cells.append(" / ".join(map(ratio, found)) if all(found) else "")
        return cells
    return table(["n", *ONE], [
        ("Cholesky, lower, double", line("cholesky", "f64", ratio)),
        ("the same in Tflop/s", line("cholesky", "f64", tflops)),
        ("Cholesky, lower, single", line("cholesky", "f32", ratio)),
        ("LU, double", line("lu", "f64", ratio)),
        ("the same in Tflop/s", line("lu", "f64", tflops)),
        ("LU, single", line("lu", "f32", ratio)),
        ("solve, Cholesky, 1 / 64 / 1024 right-hand sides", solves("cholesky")),
        ("solve, LU, the same", solves("lu")),
    ])


def batches(rows):
    def line(scalar, method, few_from):
        return [ratio(rows.find("batch", scalar, n, method, count=(1000,) if n >= few_from else (10000,)))
                for n in BATCH]
    return table(["n", *BATCH], [
        ("Cholesky, double", line("f64", None, 512)),
        ("Cholesky, single", line("f32", None, 512)),
        ("LU, double", line("f64", "lu", 256)),
        ("LU, single", line("f32", "lu", 256)),
    ])


TABLES = {"one matrix": one_matrix, "batches": batches}
MARKED = re.compile(r"(<!-- rows: ([a-z ]+) -->\n).*?(\n<!-- end -->)", re.DOTALL)


def filled(text, rows, where="README.md"):
    """The text with its tables made again."""
    names = [match.group(2) for match in MARKED.finditer(text)]
    if sorted(names) != sorted(TABLES):
        sys.exit(f"{where}: it must have the tables {', '.join(sorted(TABLES))} between markers, not "
                 f"{', '.join(names) or 'none'}")
    return MARKED.sub(lambda match: match.group(1) + TABLES[match.group(2)](rows) + match.group(3), text)


def self_test():
    def row(**changes):
        return {"op": "cholesky", "scalar": "f64", "n": 512, "count": 1, "device": "cuda", "machine": MACHINE,
                "mode": "auto", "uplo": "lower", "ld": 512, "seconds": 1.0, "peer_seconds": 2.0, "gflops": 500.0,
                **changes}
    found = Rows([row(), row(peer_seconds=3.0), row(tuning="nb=1", peer_seconds=9.0),
                  row(tuning_file="mine.txt", peer_seconds=9.0), row(uplo="upper", peer_seconds=9.0),
                  row(ld=513, peer_seconds=9.0), row(machine="other", peer_seconds=9.0)])
    text = "a\n<!-- rows: one matrix -->\nold\n<!-- end -->\nb\n<!-- rows: batches -->\n\n<!-- end -->\n"
    made = filled(text, found)
    ok = "| Cholesky, lower, double | 3.0 |" in made and made.startswith("a\n") and "old" not in made
    ok = ok and filled(made, found) == made and filled(made, Rows([row(peer_seconds=4.0)])) != made
    ok = ok and ratio(row(peer_seconds=1.254)) == "1.25" and ratio(None) == "" and tflops(row(gflops=52300.0)) == "52"
    print("self-test passed" if ok else "self-test failed")
    return 0 if ok else 1


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    if arguments not in ([], ["--check"]):
        sys.exit(f"unknown: {' '.join(arguments)}; there are --check and --self-test")
    page = ROOT / "README.md"
    old = page.read_text()
    new = filled(old, Rows(read_rows(sorted((ROOT / "bench" / "results").glob("*.jsonl")))))
    if arguments == ["--check"]:
        sys.stdout.writelines(difflib.unified_diff(old.splitlines(True), new.splitlines(True), "README.md", "the rows"))
        if new != old:
            sys.exit("README.md differs from bench/results: run scripts/make_tables.py")
        return 0
    page.write_text(new)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
