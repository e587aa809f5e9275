"""Accelerating sparse Cholesky factorization on GPUs by branches of the elimination tree (IA3, 2014)."""
import charts
from figures import Claim, Figure, bench, digits, lines_of, run, span

MATRIX = {"toy": "poisson3d:4", "cpu": "elastic3d:12", "gpu": "elastic3d:30"}      # in place of audikw_1
MATRICES = {"toy": "poisson3d:4,shell2d:4", "cpu": "poisson3d:20,shell2d:40,elastic3d:10,shell2d:80,elastic3d:14",
            "gpu": "poisson3d:20,shell2d:50,elastic3d:10,poisson3d:30,shell2d:100,elastic3d:20,poisson3d:40,"
                   "shell2d:150,elastic3d:30"}
ANALYZE = run("analyze --json", **{scale: matrix for scale, matrix in MATRIX.items()})
SPARSE = bench("sparse --scalar f64", **{scale: f"--matrix {{matrices}} {{against}}" for scale in MATRICES})
SPARSE_HOST = bench("sparse --scalar f64", gpu="--matrix {matrices} {against_host}", host=True)
LEAVES = {"toy": "poisson3d:4", "cpu": "shell2d:40",
          "gpu": "shell2d:100"}          # many small fronts, in place of inline_1
LEAF = {way: bench(f"sparse --scalar f64 --against none --tuning '{tuning}'",
                   **{scale: f"--matrix {matrix}" for scale, matrix in LEAVES.items()})
        for way, tuning in {"one by one": "levels=1 alone=0 alone_below=0", "in batches": "levels=1"}.items()}
SMALL = [bench(f"batch --n 16 --count {count} --scalar f64 --against none", toy="" if count < 200 else None, cpu="",
               gpu="")
         for count in (1, 128, 2048, 8192)]
ONE_FROM_HOST = bench("value --n 16 --scalar f64", toy="", cpu="", gpu="")


def analysis(results):
    return results.rows(ANALYZE)[0]


def width_lines(results):
    """Percent of fronts, and of flops, with an inner dimension up to k."""
    bins = analysis(results)["widths"]
    fronts, flops = sum(b["fronts"] for b in bins), sum(b["flops"] for b in bins)
    lines, seen_fronts, seen_flops = {"flops": {}, "fronts": {}}, 0, 0
    for one in bins:
        seen_fronts, seen_flops = seen_fronts + one["fronts"], seen_flops + one["flops"]
        lines["flops"][one["to"]] = 100 * seen_flops / flops
        lines["fronts"][one["to"]] = 100 * seen_fronts / fronts
    return lines


def width_of_half(what):
    """Up to which k half of them lie."""
    def half(results):
        return str(next(k for k, percent in sorted(width_lines(results)[what].items()) if percent >= 50))
    return half


def draw_levels(results):
    levels = analysis(results)["levels"]
    lines = {"fronts": {i + 1: level["fronts"] for i, level in enumerate(levels)},
             "operations": {i + 1: level["operations"] for i, level in enumerate(levels)}}
    return charts.line_chart(f"levels of {analysis(results)['matrix']}, leaves first", lines, "level",
                             "number in a level", linear=True)


def small_lines(results):
    """Gflop/s of factors of order 16 by how many go in one call."""
    lines = lines_of(results.rows(*SMALL), x="count", name=lambda row: "data where they are used")
    for row in results.rows(ONE_FROM_HOST):
        lines["one call, data on the host"] = {1: row["gflops"]}
    return lines


def small_speed(count):
    def speed(results):
        values = small_lines(results).get("data where they are used", {})
        return digits(values[count]) + " Gflop/s" if count in values else None
    return speed


def from_host(results):
    values = small_lines(results).get("one call, data on the host", {})
    return f"{values[1]:.3f} Gflop/s" if values else None


def refactor_seconds(results):
    return {way: row["seconds"] for way, one in LEAF.items() for row in results.rows(one) if row["phase"] == "refactor"}


def gain_of_batches(results):
    seconds = refactor_seconds(results)
    return digits(seconds["one by one"] / seconds["in batches"]) if len(seconds) == 2 else None


def draw_leaves(results):
    rows = [row for one in LEAF.values() for row in results.rows(one)]
    return charts.bar_chart(f"refactorization of {rows[0]['matrix']}, {results.machine}",
                            {way: {"ms": 1e3 * seconds} for way, seconds in refactor_seconds(results).items()}, "ms")


def by_matrix(results):
    """{matrix: {who: Gflop/s of a refactorization}}, in the order of the entries of A. Peers count our flops."""
    bars = {}
    rows = [row for row in results.rows(SPARSE) if row["phase"] == "refactor"]
    for row in sorted(rows, key=lambda row: row["entries"]):
        bar = bars.setdefault(short(row["matrix"]), {})
        bar["trifactor" if row["device"] == "cuda" else "trifactor, host"] = row["gflops"]
        add_peer(bar, row)
    for row in results.rows(SPARSE_HOST):
        if row["phase"] == "refactor" and short(row["matrix"]) in bars:
            bars[short(row["matrix"])]["trifactor, host"] = row["gflops"]
            add_peer(bars[short(row["matrix"])], row)
    return bars


def short(matrix):
    return matrix.rsplit("/", 1)[-1].removesuffix(".mtx")


def add_peer(bar, row):
    if row.get("peer_seconds"):
        bar["cholmod" if row["peer"].startswith("cholmod")
            else row["peer"]] = row["gflops"] * row["seconds"] / row["peer_seconds"]


def ours_in(bar):
    return bar.get("trifactor", bar.get("trifactor, host"))


def speedups(results, under):
    """{matrix: ours over the first of these that was measured}"""
    found = {}
    for matrix, bar in by_matrix(results).items():
        other = next((bar[name] for name in under if name in bar), None)
        if other and ours_in(bar) != other:
            found[matrix] = ours_in(bar) / other
    return found


def draw_speedup(under, title):
    def draw(results):
        values = speedups(results, under)
        return charts.bar_chart(f"{title}, {results.machine}", {m: {"speedup": v} for m, v in values.items()}, "times",
                                {"equal": 1.0}) if values else None
    return draw


def average(values):
    return digits(sum(values.values()) / len(values)) if values else None


CPU, GPU_PEER = ("cholmod", "trifactor, host"), ("cudss", "cholmod")   # the first of them that was measured


def figure(number, title, runs, draw, claims=(), note=""):
    return Figure(f"sparse:{number}", title, runs, draw, list(claims), note)


ORDER_16 = "Cholesky of order 16 in place of DGEMM with m, n, k = 16"
FAMILIES = ("generated matrices, or those of --matrices, in place of the largest of the collection; the CPU is "
            "CHOLMOD, or ours without it")
FIGURES = [
    figure(3, "flops and calls by inner dimension", [ANALYZE],
           lambda results: charts.line_chart(f"updates of {analysis(results)['matrix']}", width_lines(results),
                                             "k", "% up to k"),
           [Claim("half of the flops have k up to", "1,024", width_of_half("flops")),
            Claim("half of the calls have k up to", "128", width_of_half("fronts"))],
           "elastic3d in place of audikw_1; a front is one update in place of several calls"),
    figure(5, "small operations one by one", [SMALL[0], ONE_FROM_HOST], lambda results: charts.bar_chart(
        f"factors of order 16, one a call, {results.machine}",
        {name: {"Gflop/s": line[1]} for name, line in small_lines(results).items()
                                                                  if 1 in line}, "Gflop/s"),
        [Claim("data copied from the host for each", "0.1 Gflop/s", from_host),
         Claim("data where they are used", "0.5 Gflop/s", small_speed(1))], ORDER_16),
    figure(6, "small operations in batches", [*SMALL, ONE_FROM_HOST], lambda results: charts.line_chart(
        f"factors of order 16, {results.machine}", {"one call": small_lines(results)["data where they are used"]},
        "factors in one call"),
        [Claim("8192 in one call", "1.2 Gflop/s; 34 in 64 concurrent batches", small_speed(8192))], ORDER_16),
    figure(8, "independent fronts by level", [ANALYZE], draw_levels,
           [Claim("fronts in the lowest level", "24,700", lambda r: f"{analysis(r)['levels'][0]['fronts']:,}"),
            Claim("levels with one front", "10",
                  lambda r: str(sum(level["fronts"] == 1 for level in analysis(r)["levels"])))],
           "elastic3d in place of audikw_1"),
    figure(10, "leaves one by one", list(LEAF.values()), draw_leaves,
           note="the time of a refactorization in place of a profiler's picture"),
    figure(11, "leaves in batches", list(LEAF.values()), draw_leaves,
           [Claim("batches over one by one", "4.8", gain_of_batches)],
           "the time of a whole refactorization in place of a profiler's picture of its leaves"),
    figure(12, "speed by matrix", [SPARSE, SPARSE_HOST],
           lambda results: charts.bar_chart(f"refactorization, f64, {results.machine}", by_matrix(results),
                                            "Gflop/s"),
           [Claim("fastest", "783 Gflop/s", lambda r: f"{max(map(ours_in, by_matrix(r).values())):.0f} Gflop/s"),
            Claim("over the CPU, largest matrices", "2.2 (little fill) to 4.1", lambda r: span(
                dict(list(speedups(r, CPU).items())[-3:])))], FAMILIES),
    figure(13, "speedup over the CPU", [SPARSE, SPARSE_HOST], draw_speedup(CPU, "over the CPU"),
           [Claim("average over the CPU", "1.75", lambda r: average(speedups(r, CPU)))], FAMILIES),
    figure(14, "speedup over an earlier GPU code", [SPARSE, SPARSE_HOST],
           draw_speedup(GPU_PEER, "over cuDSS, or CHOLMOD where it is not"),
           [Claim("average", "1.2 over CHOLMOD 4.3.1's GPU code", lambda r: average(speedups(r, GPU_PEER)))],
           FAMILIES + "; cuDSS in place of CHOLMOD 4.3.1 with its GPU code"),
]
